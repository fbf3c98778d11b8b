"""How far a class is with an activity right now, counted at most once a second for any number of viewers.

A student's last attempt counts. Without one, their draft is graded as it is, whatever the policies say about showing
marks: the snapshot informs the instructor, most usefully while nobody has checked anything yet.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple

from app.classes.frozen.given_sheets import given_variant
from app.classes.student_sheet import activity_variant, stored_marks
from app.grading.grade import grade
from app.grading.item_analysis import RowState, misconception_counts, row_state
from app.logs import request_thread
from app.shapes.table import OTHER_PATTERN, OneOf, WrittenPattern
from app.sheets.answers import Answer
from app.sheets.code_text import option_label
from app.sheets.library import Library
from app.sheets.variant import Row, Variant, box_texts
from app.store import Activity, Attendance, LastAttempt, Store, VariantSizes
from app.store.classwork import StudentSheetKey

SNAPSHOT_TTL_S = 1.0
MIN_IDLE_FACTOR = 3  # wait at least 3 times the last computation before the next one, so that saves keep priority
# How long an expired snapshot is still shown while the next one is taken. A page asks every second; of two servers
# behind a balancer, each is asked again within this time except once in two thousand.
MAX_STALE_S = 10.0
MAX_CACHED_ACTIVITIES = 100

log = logging.getLogger("attention_shapes")

Stage = Literal["nothing", "typing", "checked", "auto-submitted", "handed-in"]


@dataclass(frozen=True)
class LiveProgress:
    """One student's progress with one sheet: the stage, each row's state, and misconceptions, the diagnosis first.

    `choices` are the chosen options, as stored, by the row's key.
    """

    stage: Stage = "nothing"
    rows: Mapping[str, RowState] = field(default_factory=dict)  # by the row's key
    misconceptions: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows_right(self) -> int:
        """How many rows are right in all their blanks."""
        return sum(state == "right" for state in self.rows.values())


class BarSegment(NamedTuple):
    """One piece of a bar: its start and width in per cent of the bar."""

    kind: RowState
    start: float
    width: float


@dataclass(frozen=True)
class RowBar:
    """One row of a sheet, and on how many started sheets it is in each state."""

    row: Row
    right: int
    follows: int
    wrong: int
    open: int
    chosen: tuple[tuple[str, int], ...] = ()

    @property
    def segments(self) -> tuple[BarSegment, ...]:
        """The bar's non-empty pieces from left to right: right, follow-through, wrong."""
        total, start, segments = max(self.right + self.follows + self.wrong + self.open, 1), 0.0, list[BarSegment]()
        counts: tuple[tuple[RowState, int], ...] = (
            ("right", self.right),
            ("follows", self.follows),
            ("wrong", self.wrong),
        )
        for kind, count in counts:
            width = 100 * count / total
            if count:
                segments.append(BarSegment(kind, round(start, 2), round(width, 2)))
            start += width
        return tuple(segments)


@dataclass(frozen=True)
class SheetSnapshot:
    """One sheet of an activity: everybody's progress, its rows, and the misconceptions shown, the commonest first."""

    progress: Mapping[int, LiveProgress]  # by student: everybody who came, including those who did nothing yet
    rows: tuple[RowBar, ...]
    misconceptions: tuple[tuple[str, int], ...]  # key, and how many students

    @property
    def begun(self) -> int:
        """How many students typed, checked or handed in anything."""
        return sum(progress.stage != "nothing" for progress in self.progress.values())

    def percent(self, students: int) -> float:
        """A number of students as a percentage of those who have begun the sheet."""
        return round(100 * students / self.begun, 2)

    @property
    def handed_in(self) -> int:
        return sum(progress.stage == "handed-in" for progress in self.progress.values())

    @property
    def working(self) -> int:
        """How many students have started but not handed in, nor been auto-submitted."""
        return self.begun - self.handed_in - self.auto_submitted

    @property
    def auto_submitted(self) -> int:
        """How many students' drafts were auto-submitted at closing because they handed nothing in."""
        return sum(progress.stage == "auto-submitted" for progress in self.progress.values())


@dataclass(frozen=True)
class LiveSnapshot:
    """An activity at one moment: who came, how many exit tickets are in, and each of its sheets in order.

    Snapshots with the same `version` show the same, whichever process made them.
    """

    version: str
    taken_at: datetime
    student_ids: tuple[int, ...]  # those who came, in order of arrival, then those who only have work in it
    tickets: int
    sheets: tuple[SheetSnapshot, ...]
    sheet_keys: tuple[str, ...]

    def is_of(self, activity: Activity) -> bool:
        """Whether it has the activity's sheets as they are now, which a teacher may have changed."""
        return self.sheet_keys == tuple(item.sheet_key for item in activity.content.items)


@dataclass
class _CacheEntry:
    """The last snapshot of an activity, and what was read and graded for it, so that only changes are read again."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    snapshot: LiveSnapshot | None = None
    expires_at: float = 0.0  # on the clock of LiveSnapshots
    regrade: int = 0  # the last regrade that `attempts` take into account
    attempts: dict[int, LiveProgress] = field(default_factory=dict)  # by the attempt's id
    drafts: dict[StudentSheetKey, tuple[int, LiveProgress]] = field(default_factory=dict)  # with the draft's version
    variants: dict[tuple[str, VariantSizes], Variant] = field(default_factory=dict)  # by sheet and sizes


def _in_thread(work: Callable[[], None]) -> None:
    request_thread(work, name="live snapshot").start()


class LiveSnapshots:
    """The snapshots of the activities being watched, taken outside of the requests if possible."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], None] = _in_thread,
    ) -> None:
        self._clock, self._start, self._lock = clock, start, threading.Lock()
        self._entries: OrderedDict[int, _CacheEntry] = OrderedDict()

    def get(self, library: Library, store: Store, activity: Activity) -> LiveSnapshot:
        """The snapshot of an activity: the cached one, or a new one if that has expired."""
        entry = self._cache_entry(activity.id)
        shown, now = entry.snapshot, self._clock()
        if shown is None or not shown.is_of(activity) or now > entry.expires_at + MAX_STALE_S:
            return self._renew(library, store, activity, entry)
        if now >= entry.expires_at and entry.lock.acquire(blocking=False):
            entry.lock.release()  # nobody is taking one
            self._start(lambda: self._renew_quietly(library, store, activity, entry))
        newest = entry.snapshot
        return newest if newest and newest.is_of(activity) else shown

    def _renew_quietly(self, library: Library, store: Store, activity: Activity, entry: _CacheEntry) -> None:
        try:
            self._renew(library, store, activity, entry)
        except Exception as error:
            log.warning("live snapshot: %s", type(error).__name__)
            entry.expires_at = float("-inf")

    def _renew(self, library: Library, store: Store, activity: Activity, entry: _CacheEntry) -> LiveSnapshot:
        with entry.lock:
            begin = self._clock()
            snapshot = entry.snapshot
            if snapshot is None or not snapshot.is_of(activity) or begin >= entry.expires_at:
                snapshot = entry.snapshot = _take_snapshot(library, store, activity, entry)
                end = self._clock()
                entry.expires_at = end + max(SNAPSHOT_TTL_S, MIN_IDLE_FACTOR * (end - begin))
            return snapshot

    def expire(self, activity_id: int) -> None:
        """Make the next `get` take a new snapshot and wait for it, however recent the cached one is."""
        self._cache_entry(activity_id).expires_at = float("-inf")

    def _cache_entry(self, activity_id: int) -> _CacheEntry:
        with self._lock:
            entry = self._entries.setdefault(activity_id, _CacheEntry())
            self._entries.move_to_end(activity_id)
            while len(self._entries) > MAX_CACHED_ACTIVITIES:
                self._entries.popitem(last=False)
        return entry


def _take_snapshot(library: Library, store: Store, activity: Activity, entry: _CacheEntry) -> LiveSnapshot:
    taken_at, attendance = store.now(), store.classwork.attendance(activity.id)
    regrade = store.regrades.last(activity.id)
    if regrade != entry.regrade:
        entry.regrade, entry.attempts = regrade, {}
    last, drafts = store.classwork.last_attempts(activity.id), store.classwork.draft_versions(activity.id)
    sheets = {item.sheet_key for item in activity.content.items}
    # An attempt takes precedence over the draft it was made from; work on earlier revisions' sheets is left out.
    graded_drafts = {whose: version for whose, version in drafts.items() if whose not in last and whose[1] in sheets}
    _read_attempts(store, entry, [attempt.id for (_, sheet), attempt in last.items() if sheet in sheets])
    _grade_drafts(library, store, activity, entry, graded_drafts)
    came = [student.student_id for student in attendance]
    student_ids = tuple(dict.fromkeys(came + [student_id for student_id, _ in (*last, *drafts)]))
    return LiveSnapshot(
        _snapshot_version(activity, regrade, attendance, last, graded_drafts),
        taken_at,
        student_ids,
        sum(student.ticket_in for student in attendance),
        tuple(
            _sheet_snapshot(library, store, activity, number, entry, student_ids, last)
            for number in range(1, len(activity.content.items) + 1)
        ),
        tuple(item.sheet_key for item in activity.content.items),
    )


def _snapshot_version(
    activity: Activity,
    regrade: int,
    attendance: Sequence[Attendance],
    last: Mapping[StudentSheetKey, LastAttempt],
    drafts: Mapping[StudentSheetKey, int],
) -> str:
    attempts = sorted((*whose, attempt.id, attempt.handed_in) for whose, attempt in last.items())
    typed = sorted((*whose, version) for whose, version in drafts.items())
    came = [(student.student_id, student.ticket_in) for student in attendance]
    text = json.dumps([activity.revision, regrade, came, attempts, typed])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read_attempts(store: Store, entry: _CacheEntry, attempt_ids: Collection[int]) -> None:
    marks = store.classwork.stored_marks([attempt_id for attempt_id in attempt_ids if attempt_id not in entry.attempts])
    for attempt_id, stored in marks.items():
        entry.attempts[attempt_id] = LiveProgress(
            "checked", _row_states(stored.marks), stored.misconceptions, _choices(stored.answers)
        )
    for dropped in set(entry.attempts) - set(attempt_ids):
        del entry.attempts[dropped]


def _grade_drafts(
    library: Library, store: Store, activity: Activity, entry: _CacheEntry, versions: Mapping[StudentSheetKey, int]
) -> None:
    changed = {whose for whose, version in versions.items() if entry.drafts.get(whose, (-1,))[0] != version}
    texts = store.classwork.draft_texts(activity.id, {student_id for student_id, _ in changed})
    content = activity.content
    items = {item.sheet_key: item for item in content.items}
    for student_id, sheet in changed & set(texts):
        draft = texts[student_id, sheet]
        if (sheet, draft.variant) not in entry.variants:
            entry.variants[sheet, draft.variant] = given_variant(
                library, store, activity, content, items[sheet], draft.variant
            )
        variant = entry.variants[sheet, draft.variant]
        marked = stored_marks(variant, grade(variant, box_texts(variant, draft.answers)))
        progress = LiveProgress("typing", _row_states(marked.marks), marked.misconceptions, _choices(draft.answers))
        entry.drafts[student_id, sheet] = (draft.version, progress)
    for dropped in set(entry.drafts) - set(versions):
        del entry.drafts[dropped]


def _row_states(marks: Mapping[str, str]) -> dict[str, RowState]:
    blanks = dict[str, list[str]]()
    for blank in marks:
        blanks.setdefault(blank.rpartition(".")[0], []).append(blank)
    return {row: row_state(marks, of_row) for row, of_row in blanks.items()}


def _sheet_snapshot(
    library: Library,
    store: Store,
    activity: Activity,
    sheet_number: int,
    entry: _CacheEntry,
    student_ids: Sequence[int],
    last: Mapping[StudentSheetKey, LastAttempt],
) -> SheetSnapshot:
    sheet = activity.content.items[sheet_number - 1].sheet_key
    progress = {student_id: _sheet_progress(entry, (student_id, sheet), last) for student_id in student_ids}
    begun = [student for student in progress.values() if student.stage != "nothing"]
    variant = activity_variant(library, store, activity, sheet_number)
    return SheetSnapshot(
        progress,
        tuple(_row_bar(variant, row, begun) for row in variant.rows),
        misconception_counts(student.misconceptions for student in begun),
    )


def _sheet_progress(
    entry: _CacheEntry, key: StudentSheetKey, last: Mapping[StudentSheetKey, LastAttempt]
) -> LiveProgress:
    attempt = last.get(key)
    if attempt is None or attempt.id not in entry.attempts:
        return entry.drafts[key][1] if key in entry.drafts else LiveProgress()
    checked = entry.attempts[attempt.id]
    stage: Stage = "handed-in" if attempt.handed_in else "auto-submitted" if attempt.auto_submitted else "checked"
    return replace(checked, stage=stage)


def _choices(answers: Mapping[str, str]) -> dict[str, str]:
    return {box.removesuffix(".choice"): text for box, text in answers.items() if box.endswith(".choice") and text}


def _row_bar(variant: Variant, row: Row, begun: Sequence[LiveProgress]) -> RowBar:
    states = [progress.rows.get(row.key, "open") for progress in begun]
    asked, chosen = row.asked, Counter[int]()
    options = asked.options if isinstance(asked, OneOf) else ()
    if isinstance(asked, WrittenPattern):
        options = (*options, OTHER_PATTERN)
    for progress in begun if options else ():
        answer = variant.read(row.blanks[0], progress.choices.get(row.key, ""))
        if isinstance(answer, Answer):
            chosen[answer.value] += 1
    return RowBar(
        row,
        states.count("right"),
        states.count("follows"),
        states.count("wrong"),
        states.count("open"),
        tuple((option_label(variant, row.key, number), chosen[number]) for number in options if chosen[number]),
    )
