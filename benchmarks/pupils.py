"""Students who type as the page's script sends it, keep what was acknowledged, and look for it in the database."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.store import Store
from benchmarks.serving import Lesson
from benchmarks.wire import Answer, Browser

BACK_OFF = (1.0, 30.0)  # the first wait and the longest, as static/js/save.js has them


@dataclass
class Measured:
    """Seconds for each answer, by what was asked; and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, seconds: float) -> None:
        self.seconds.setdefault(what, []).append(seconds)


@dataclass
class Pupil:
    """One student: what was typed under which version, and which versions were acknowledged."""

    lesson: Lesson
    number: int
    measured: Measured
    browser: Browser = field(init=False)
    form: dict[str, str] = field(default_factory=dict)
    sent: dict[int, dict[str, str]] = field(default_factory=dict)
    acknowledged: list[int] = field(default_factory=list)
    handed_in: dict[str, str] | None = None

    def __post_init__(self) -> None:
        self.browser = Browser(self.lesson.server.url)
        self.boxes = [str(blank) for blank in self.lesson.variant.blanks]
        self.answers = dict.fromkeys(self.boxes, "")
        self._chance = random.Random(self.number)  # noqa: S311 - so that it can be repeated

    @property
    def name(self) -> str:
        return f"Student {self.number:03}"

    async def join(self) -> None:
        """By the code, with a name, on to the sheet and its form."""
        door = f"/join/{self.lesson.activity.join_code}"
        names = await self._timed("join", "GET", door)
        await self._timed("join", "POST", door, {**_hidden(names), "name": self.name})
        page = await self._timed("sheet", "GET", self.lesson.sheet_path)
        self.form = {**_hidden(page), "scale": "root"}

    async def save(self) -> None:
        """Type into one more box, right two times in three, and let it be saved."""
        version = self._type()
        await self._until_taken("save", f"{self.lesson.sheet_path}/save", {**self.form, **self.answers})
        self.acknowledged.append(version)

    async def hand_in(self) -> None:
        version = self._type()
        await self._until_taken("hand in", f"{self.lesson.sheet_path}/hand-in", {**self.form, **self.answers})
        self.acknowledged.append(version)
        self.handed_in = self.sent[version]

    def _type(self) -> int:
        box = self.boxes[len(self.sent) % len(self.boxes)]
        truth = next(str(size) for blank, size in self.lesson.variant.key.items() if str(blank) == box)
        self.answers[box] = truth if self._chance.random() < 2 / 3 else str(self._chance.randrange(10_000))
        version = max(time.time_ns() // 1_000_000, *(known + 1 for known in self.sent)) if self.sent else 1
        self.sent[version] = dict(self.answers)
        self.form["version"] = str(version)
        return version

    async def _until_taken(self, what: str, path: str, form: dict[str, str]) -> None:
        """The same request again, after longer and longer waits, until the server has taken it."""
        wait, longest = BACK_OFF
        while True:
            try:
                if (await self._timed(what, "POST", path, form)).status == 200:
                    return
            except OSError:
                pass
            await asyncio.sleep(wait)
            wait = min(2 * wait, longest)

    async def _timed(self, what: str, method: str, path: str, form: dict[str, str] | None = None) -> Answer:
        begin = time.perf_counter()
        script = what in ("save", "hand in")
        try:
            if method == "GET":
                answer = await self.browser.get(path)
            else:
                answer = await self.browser.post(path, form or {}, script=script)
        except OSError as error:
            self.measured.errors[f"{what}: {type(error).__name__}"] += 1
            raise
        self.measured.add(what, time.perf_counter() - begin)
        if answer.status != 200:
            self.measured.errors[f"{what}: {answer.status}"] += 1
        return answer


def _hidden(page: Answer) -> dict[str, str]:
    """What the form of a page sends along."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))


async def watch(lesson: Lesson, measured: Measured) -> None:
    """An instructor's live view, asked each second as its page does, until it is cancelled."""
    browser = Browser(lesson.server.url, {"attention_shapes_teacher": lesson.session})
    while True:
        begin = time.perf_counter()
        try:
            answer = await browser.get(f"/activities/{lesson.activity.id}/live/now?sheet=1", script=True)
            measured.add("live view", time.perf_counter() - begin)
            if answer.status != 200:
                measured.errors[f"live view: {answer.status}"] += 1
        except OSError as error:
            measured.errors[f"live view: {type(error).__name__}"] += 1
        await asyncio.sleep(max(0.0, 1 - (time.perf_counter() - begin)))


def missing(lesson: Lesson, pupils: Iterable[Pupil]) -> Iterator[str]:
    """What was acknowledged and is not in the database, and what is there twice, each in a sentence.

    A save replaces the one before it and holds all that one held, so the kept version must be an acknowledged one's or
    a newer one's, and its texts those that were sent under it.
    """
    store = Store(lesson.server.database)
    course = store.courses.find(lesson.activity.course_id)
    assert course is not None
    ids = dict[str, list[int]]()
    for student in store.courses.students(course):
        ids.setdefault(student.name, []).append(student.id)
    drafts = {draft.student_id: draft for draft in store.classwork.drafts_of_activity(lesson.activity.id)}
    versions = {whose[0]: version for whose, version in store.live.drafts(lesson.activity.id).items()}
    tries = dict[int, list[dict[str, str]]]()
    for found in store.classwork.tries_of_activity(lesson.activity.id):
        tries.setdefault(found.student_id, []).append(dict(found.answers))
    store.close()
    for pupil in pupils:
        found_ids = ids.get(pupil.name, [])
        if len(found_ids) != 1:
            yield f"{pupil.name} is there {len(found_ids)} times"
            continue
        [who] = found_ids
        kept = versions.get(who, 0)
        yield from (f"{pupil.name}: save {version} is lost" for version in pupil.acknowledged if version > kept)
        if kept and dict(drafts[who].answers) != pupil.sent.get(kept):
            yield f"{pupil.name}: version {kept} holds other texts than were sent"
        expected = [pupil.handed_in] if pupil.handed_in is not None else []
        if tries.get(who, []) != expected:
            yield f"{pupil.name}: {len(tries.get(who, []))} tries are kept, {len(expected)} were acknowledged"
