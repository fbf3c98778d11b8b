"""Simulated students of a class: they send what the page's script would, and remember what was acknowledged."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from app.store import Store
from simulation.http_client import HttpClient, HttpResponse
from simulation.lesson import WORKSHEET, Lesson

FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 30.0  # as in static/js/save.js
PRINT_LOOK_S = 0.7  # as in templates/handouts/_print_job.html


@dataclass
class Timings:
    """Seconds of every response by kind of request ("save", "hand in" …), and failures by kind and cause."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    undrawn: int = 0  # saves whose drawing comes later

    def add(self, kind: str, seconds: float) -> None:
        self.seconds.setdefault(kind, []).append(seconds)


@dataclass
class ClassStudent:
    """One student in a browser: what was typed, by running number, and which numbers were acknowledged."""

    lesson: Lesson
    number: int
    timings: Timings
    client: HttpClient = field(init=False)
    form: dict[str, str] = field(default_factory=dict)
    sent: dict[int, dict[str, str]] = field(default_factory=dict)  # all boxes, by the number of the last change
    acknowledged: list[int] = field(default_factory=list)
    handed_in: dict[str, str] | None = None
    first_retry_s: float = FIRST_RETRY_S
    longest_retry_s: float = LONGEST_RETRY_S

    def __post_init__(self) -> None:
        self.client = HttpClient(self.lesson.server.url)
        self.boxes = list(self.lesson.variant.blanks_by_name)
        self.answers = dict.fromkeys(self.boxes, "")
        self.tab = f"{self.number:016}"  # instead of a page's random id
        self._edits: dict[str, int] = {}  # the number of each unacknowledged edit
        self._chance = random.Random(self.number)  # noqa: S311 - so that it can be repeated

    @property
    def name(self) -> str:
        """The name under which this student joins, such as "Student 007"."""
        return f"Student {self.number:03}"

    async def join(self) -> None:
        """Enter the join code and this name, and open the sheet."""
        path = f"/join/{self.lesson.activity.join_code}"
        name_page = await self._request("join", "GET", path)
        await self._request("join", "POST", path, {**hidden_fields(name_page), "name": self.name})
        sheet_page = await self._request("sheet", "GET", self.lesson.sheet_path)
        self.form = {**hidden_fields(sheet_page), "scale": "root"}

    async def save(self) -> None:
        """Type into one more box, right two times in three, and save the changes until they are acknowledged."""
        number = self._type()
        changed = {box: self.answers[box] for box in self._edits}
        await self._send_until_taken("save", f"{self.lesson.sheet_path}/save", changed)
        self.acknowledged.append(number)

    async def hand_in(self) -> None:
        """Type into one more box and hand in until it is acknowledged."""
        number = self._type()
        await self._send_until_taken("hand in", f"{self.lesson.sheet_path}/hand-in", self.answers)
        self.acknowledged.append(number)
        self.handed_in = self.sent[number]

    async def run_head(self) -> list[str]:
        """Ask for a run of the sheet with the current answers; return what is shown until its end (see `watch_run`)."""
        path, form = f"{self.lesson.sheet_path}/run", {**self.form, **self.answers}
        async with self._other_tab() as tab:
            return await watch_run(tab, await self._insist(lambda: tab.post(path, form, script=True)))

    async def print_sheets(self, names: Sequence[str]) -> HttpResponse:
        """Ask for a large handout with a sheet per name; return the PDF, or the page saying why there is none."""
        form = {"worksheet": WORKSHEET, "names": "\n".join(names)}
        async with self._other_tab() as tab:
            address = (await self._insist(lambda: tab.post("/handout/class", form))).headers["location"]
            while "<progress" in (page := await self._insist(lambda: tab.get(address))).text:
                await asyncio.sleep(PRINT_LOOK_S)
            pdf = await self._insist(lambda: tab.get(f"{address}.pdf"))
            return pdf if pdf.status == 200 else page

    @asynccontextmanager
    async def _other_tab(self) -> AsyncIterator[HttpClient]:
        tab = HttpClient(self.lesson.server.url, self.client.cookies)
        try:
            yield tab
        finally:
            await tab.wait_closed()

    async def _insist(self, ask: Callable[[], Awaitable[HttpResponse]]) -> HttpResponse:
        while True:
            with suppress(OSError):
                if (answer := await ask()).status < 500:
                    return answer
            await asyncio.sleep(self.first_retry_s)

    def _type(self) -> int:
        box = self.boxes[len(self.sent) % len(self.boxes)]
        truth = str(self.lesson.variant.key[box])
        self.answers[box] = truth if self._chance.random() < 2 / 3 else str(self._chance.randrange(10_000))
        number = len(self.sent) + 1
        self.sent[number] = dict(self.answers)
        self._edits[box] = number
        self.form["edits"] = " ".join(f"{each}:{self.tab}:{last}" for each, last in self._edits.items())
        return number

    async def _send_until_taken(self, kind: str, path: str, answers: Mapping[str, str]) -> None:
        form, wait = {**self.form, **answers}, self.first_retry_s
        while True:
            try:
                if (await self._request(kind, "POST", path, form)).status == 200:
                    self._edits.clear()
                    return
            except OSError:
                pass
            await asyncio.sleep(wait)
            wait = min(2 * wait, self.longest_retry_s)

    async def _request(self, kind: str, method: str, path: str, form: dict[str, str] | None = None) -> HttpResponse:
        begin = time.perf_counter()
        script = kind in ("save", "hand in")
        try:
            if method == "GET":
                response = await self.client.get(path)
            else:
                response = await self.client.post(path, form or {}, script=script)
        except OSError as error:
            self.timings.errors[f"{kind}: {type(error).__name__}"] += 1
            raise
        self.timings.add(kind, time.perf_counter() - begin)
        self.timings.undrawn += "x-drawing" in response.headers
        if response.status not in (200, 303):  # joining leads to the sheet
            self.timings.errors[f"{kind}: {response.status}"] += 1
        return response


def hidden_fields(page: HttpResponse) -> dict[str, str]:
    """Name and value of every hidden field in a page's form."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))


async def watch_run(client: HttpClient, page: HttpResponse) -> list[str]:
    """What is shown from this page on, reloaded as often as it says until the run is done."""
    states = [_state_of_run(page.text)]
    while states[-1] in ("in the queue, with its place", "running"):
        address, waits = re.search(r'hx-get="([^"]+)"', page.text), re.search(r"every (\d+)ms", page.text)
        assert address is not None, page.text
        assert waits is not None, page.text
        await asyncio.sleep(int(waits[1]) / 1000)
        with suppress(OSError):
            answer = await client.get(address[1], script=True)
            page = page if answer.status >= 500 else answer
        states.append(_state_of_run(page.text))
    return states


def _state_of_run(text: str) -> str:
    if 'class="compared"' in text or 'id="stages"' in text:
        return "served"
    if 'class="progress"' not in text and 'id="progress"' not in text:
        return text
    return "in the queue, with its place" if "Waiting:" in text else "running"


async def watch_live_view(lesson: Lesson, timings: Timings) -> None:
    """Poll the instructor's live view every second, as its page does, until cancelled."""
    client = HttpClient(lesson.server.url, {"attention_shapes_teacher": lesson.session})
    while True:
        begin = time.perf_counter()
        try:
            response = await client.get(f"/activities/{lesson.activity.id}/now?sheet=1", script=True)
            timings.add("live view", time.perf_counter() - begin)
            if response.status != 200:
                timings.errors[f"live view: {response.status}"] += 1
        except OSError as error:
            timings.errors[f"live view: {type(error).__name__}"] += 1
        await asyncio.sleep(max(0.0, 1 - (time.perf_counter() - begin)))


def find_losses(lesson: Lesson, students: Iterable[ClassStudent]) -> Iterator[str]:
    """Compare the database with what students remember: a sentence for everything lost, changed or doubled."""
    store = Store(lesson.server.database, lesson.server.folder)
    course = store.courses.find(lesson.activity.course_id)
    assert course is not None
    ids = dict[str, list[int]]()
    for student in store.roster.students(course):
        ids.setdefault(student.name, []).append(student.id)
    everybody = [student_id for named in ids.values() for student_id in named]
    drafts = {key[0]: draft for key, draft in store.classwork.draft_texts(lesson.activity.id, everybody).items()}
    attempts = dict[int, list[dict[str, str]]]()
    for attempt in store.classwork.attempts_of_activity(lesson.activity.id):
        attempts.setdefault(attempt.student_id, []).append(dict(attempt.answers))
    store.close()
    for simulated in students:
        stored_ids = ids.get(simulated.name, [])
        if len(stored_ids) != 1:
            yield f"{simulated.name} is stored {len(stored_ids)} times"
            continue
        [student_id] = stored_ids
        stored = drafts[student_id].tab_versions.get(simulated.tab, 0) if student_id in drafts else 0
        lost = [number for number in simulated.acknowledged if number > stored]
        yield from (f"{simulated.name}: change {number} is lost" for number in lost)
        if stored and dict(drafts[student_id].answers) != simulated.sent.get(stored):
            yield f"{simulated.name}: the draft after change {stored} holds other texts than were typed"
        expected = [simulated.handed_in] if simulated.handed_in is not None else []
        if attempts.get(student_id, []) != expected:
            count = len(attempts.get(student_id, []))
            yield f"{simulated.name}: {count} attempts are stored, {len(expected)} were acknowledged"
