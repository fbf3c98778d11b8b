"""What stands on the sheets of a room, counted at most once a second however many people look at it.

Only what has changed since the last count is read and graded. A student's last try counts; where there is none yet,
their draft is graded as it stands, whatever the activity says about when marks are shown: the room is told no student's
marks, and a sheet that nobody has checked is when the instructor needs to look.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.classes.student_sheet import fix, frozen_variant, graded, worksheet_of
from app.grading.grade import grade
from app.grading.item_analysis import RowState, misconception_counts, row_state
from app.sheets.worksheet import Row, Variant
from app.store import Activity, Fixed, LastTry
from app.store.live import Whose
from app.web.shared.services import Services

SECONDS, KEPT = 1.0, 100  # a count is good for that long; rooms that are remembered
REST = 3  # or for so many times as long as it took: where there is much to do, those who type come first

Progress = Literal["handed-in", "checked", "typing", "nothing"]


@dataclass(frozen=True)
class Standing:
    """How one sheet of one student stands: how far they are, each row, and misconceptions with the diagnosis first."""

    progress: Progress
    rows: Mapping[str, RowState] = field(default_factory=dict)
    misconceptions: tuple[str, ...] = ()

    @property
    def right(self) -> int:
        return sum(state == "right" for state in self.rows.values())


@dataclass(frozen=True)
class RowCount:
    """One row of a sheet, and in how many sheets of the room it stands how."""

    row: Row
    right: int
    follows: int
    wrong: int
    open: int


@dataclass(frozen=True)
class SheetRoom:
    """One sheet in a room: who is how far with it, its rows, and the misconceptions that are held, the commonest
    first.
    """

    standings: Mapping[int, Standing]  # by student, of everybody who came
    rows: tuple[RowCount, ...]
    misconceptions: tuple[tuple[str, int], ...]

    @property
    def begun(self) -> int:
        return sum(standing.progress != "nothing" for standing in self.standings.values())

    @property
    def handed_in(self) -> int:
        return sum(standing.progress == "handed-in" for standing in self.standings.values())

    @property
    def working(self) -> int:
        return self.begun - self.handed_in


@dataclass(frozen=True)
class Room:
    """An activity at one moment: who came or has work in it, how many exit tickets are in, and each of its sheets."""

    came: tuple[int, ...]
    tickets: int
    sheets: tuple[SheetRoom, ...]


@dataclass
class _Seen:
    """What a room looked like when it was last counted."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    room: Room | None = None
    until: float = 0.0  # when it is to be counted again
    regrade: int = 0
    tries: dict[int, Standing] = field(default_factory=dict)
    drafts: dict[Whose, tuple[int, Standing]] = field(default_factory=dict)
    variants: dict[tuple[str, Fixed], Variant] = field(default_factory=dict)


class Rooms:
    """The rooms that somebody looks at, each counted by one and waited for by the others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._seen: OrderedDict[int, _Seen] = OrderedDict()

    def look(self, services: Services, activity: Activity) -> Room:
        """The room of an activity as it was at most a second ago."""
        seen = self._of(activity.id)
        with seen.lock:
            begin = self._clock()
            if seen.room is None or begin >= seen.until:
                seen.room = _count(services, activity, seen)
                seen.until = self._clock() + max(SECONDS, REST * (self._clock() - begin))
            return seen.room

    def _of(self, activity_id: int) -> _Seen:
        with self._lock:
            seen = self._seen.setdefault(activity_id, _Seen())
            self._seen.move_to_end(activity_id)
            while len(self._seen) > KEPT:
                self._seen.popitem(last=False)
        return seen


def _count(services: Services, activity: Activity, seen: _Seen) -> Room:
    live, came = services.store.live, services.store.classwork.attendance(activity.id)
    regrade = live.last_regrade(activity.id)
    if regrade != seen.regrade:
        seen.regrade, seen.tries = regrade, {}
    tries, drafts = live.last_tries(activity.id), live.drafts(activity.id)
    sheets = {item.sheet for item in activity.content.items}
    _read_tries(services, activity, seen, [last.id for whose, last in tries.items() if whose[1] in sheets])
    _grade_drafts(services, activity, seen, {w: v for w, v in drafts.items() if w not in tries and w[1] in sheets})
    there = tuple(dict.fromkeys([one.student_id for one in came] + [student for student, _ in (*tries, *drafts)]))
    return Room(
        there,
        sum(one.ticket_in for one in came),
        tuple(_sheet(services, activity, number, seen, there, tries) for number in range(len(activity.content.items))),
    )


def _read_tries(services: Services, activity: Activity, seen: _Seen, wanted: Collection[int]) -> None:
    held = services.store.live.held([try_id for try_id in wanted if try_id not in seen.tries])
    for try_id, found in held.items():
        seen.tries[try_id] = Standing("checked", _states(found.marks), found.misconceptions)
    for gone in set(seen.tries) - set(wanted):
        del seen.tries[gone]


def _grade_drafts(services: Services, activity: Activity, seen: _Seen, versions: Mapping[Whose, int]) -> None:
    changed = {whose for whose, version in versions.items() if seen.drafts.get(whose, (-1,))[0] != version}
    texts = services.store.live.draft_texts(activity.id, {student for student, _ in changed})
    items = {item.sheet: item for item in activity.content.items}
    for whose in changed & set(texts):
        draft, blank = texts[whose], (whose[1], texts[whose].variant)
        if blank not in seen.variants:
            seen.variants[blank] = fix(services, worksheet_of(items[whose[1]], activity.policies), draft.variant)
        variant = seen.variants[blank]
        boxes = {str(blank) for blank in variant.blanks}
        found = graded(grade(variant, {box: text for box, text in draft.answers.items() if box in boxes}))
        seen.drafts[whose] = (draft.version, Standing("typing", _states(found.marks), found.misconceptions))
    for gone in set(seen.drafts) - set(versions):
        del seen.drafts[gone]


def _states(marks: Mapping[str, str]) -> dict[str, RowState]:
    """How each row stands, from the boxes it has marks for."""
    boxes = dict[str, list[str]]()
    for box in marks:
        boxes.setdefault(box.rpartition(".")[0], []).append(box)
    return {row: row_state(marks, blanks) for row, blanks in boxes.items()}


def _sheet(
    services: Services,
    activity: Activity,
    number: int,
    seen: _Seen,
    came: Sequence[int],
    tries: Mapping[Whose, LastTry],
) -> SheetRoom:
    sheet = activity.content.items[number].sheet
    standings = {student_id: _standing(seen, (student_id, sheet), tries) for student_id in came}
    begun = [standing for standing in standings.values() if standing.progress != "nothing"]
    rows = frozen_variant(services, activity, number).rows
    return SheetRoom(
        standings,
        tuple(_row_count(row, begun) for row in rows),
        misconception_counts(standing.misconceptions for standing in begun),
    )


def _standing(seen: _Seen, whose: Whose, tries: Mapping[Whose, LastTry]) -> Standing:
    last = tries.get(whose)
    if last is None or last.id not in seen.tries:
        return seen.drafts[whose][1] if whose in seen.drafts else Standing("nothing")
    found = seen.tries[last.id]
    return Standing("handed-in" if last.handed_in else "checked", found.rows, found.misconceptions)


def _row_count(row: Row, standings: Sequence[Standing]) -> RowCount:
    states = [standing.rows.get(row.key, "open") for standing in standings]
    return RowCount(row, states.count("right"), states.count("follows"), states.count("wrong"), states.count("open"))
