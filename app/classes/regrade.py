"""Regrades an activity's attempts after a worksheet was corrected or its marking changed.

Attempts are marked by the worksheets as students had them or, if the teacher asks, as the library has them now. First
`Regrading.preview` shows what would change. Then `Regrading.apply` makes exactly these changes, or none if they are out
of date.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from app.classes.activity_results import frozen_item
from app.classes.frozen.definitions import corrected_definition, defined_variant, frozen_definition
from app.classes.gradebook import counted_attempts
from app.classes.student_sheet import stored_marks
from app.grading.grade import grade
from app.sheets.library import Library
from app.sheets.variant import Variant, box_texts
from app.sheets.worksheet import Worksheet
from app.store import (
    Activity,
    Attempt,
    AuditAction,
    Content,
    Graded,
    NewMarks,
    Store,
    Teacher,
    VariantSizes,
)
from app.store.classwork import StudentSheetKey

PREVIEW_TTL_S = 60.0
MAX_CACHED_PREVIEWS = 20

Basis = Literal["frozen", "library"]  # mark by the worksheets as students had them, or as the library has them now


@dataclass(frozen=True)
class MarkChange:
    """An attempt that would get other marks."""

    attempt: Attempt
    new: NewMarks
    sheet_title: str
    counts: bool  # whether the gradebook counts it

    @property
    def difference(self) -> float:
        """By how much the score would change: -0.5 if half a point is lost."""
        return round(self.new.graded.score - self.attempt.score, 6)

    @property
    def changes_score(self) -> bool:
        """Whether the student's counted score, or the points it is out of, would change."""
        return self.counts and bool(self.difference or self.attempt.out_of != self.new.graded.out_of)


@dataclass(frozen=True)
class RegradePreview:
    """What a regrade would change now: the number of attempts, and those that would get other marks, by id."""

    attempts: int
    changes: tuple[MarkChange, ...] = ()
    definitions: Mapping[str, Content] = field(default_factory=dict)  # the corrected definitions, by sheet key

    @cached_property
    def fingerprint(self) -> str:
        """32 characters that identify these changes; the form sends them back to `Regrading.apply`."""
        text = repr([
            (change.attempt.id, change.attempt.score, sorted(change.new.graded.marks.items()), change.new.graded.score,
             change.new.graded.out_of, change.new.graded.misconceptions)
            for change in self.changes
        ])  # fmt: skip
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def score_changes(self) -> tuple[MarkChange, ...]:
        """The changes of counted attempts whose score, or what it is out of, would change."""
        return tuple(change for change in self.changes if change.changes_score)


class _State(NamedTuple):
    """What a preview depends on. Sheets of earlier revisions never change, and attempts only change in a regrade."""

    worksheets: tuple[Worksheet, ...]  # the library's, including own ones
    models: tuple[tuple[str, str], ...]  # keys and configs
    wording_id: int
    basis: Basis
    activity_id: int
    revision: int  # which says what worksheets count
    marking: str
    last_regrade: int
    last_attempts: frozenset[tuple[StudentSheetKey, int]]


class Regrading:
    """Previews of regrades, each cached for a minute, unless what it depends on changes before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        # with the time when each expires
        self._previews: OrderedDict[_State, tuple[float, RegradePreview]] = OrderedDict()

    def preview(self, library: Library, store: Store, activity: Activity, basis: Basis = "frozen") -> RegradePreview:
        """What marking every attempt again, with the activity's marking, would change; cached."""
        return self._cached_preview(_state(library, store, activity, basis), library, store, activity)

    def apply(
        self,
        library: Library,
        store: Store,
        activity: Activity,
        teacher: Teacher,
        fingerprint: str,
        basis: Basis = "frozen",
    ) -> RegradePreview | None:
        """Make the changes of the preview with this fingerprint, and return it; the old marks are kept.

        The last check and the changes are one transaction with the activity locked and an entry in the audit log.
        """
        state = _state(library, store, activity, basis)
        preview = self._cached_preview(state, library, store, activity)
        if preview.fingerprint != fingerprint:
            return None
        if preview.changes:
            marks = {change.attempt.id: change.new for change in preview.changes}
            with store.transaction():
                locked = store.activities.locked(activity)
                if locked is None or _state(library, store, locked, basis) != state:
                    return None
                regrade_id = store.regrades.apply(activity.id, teacher.id, marks, preview.definitions)
                _keep_sheets(library, store, activity, preview)
                store.audit_log.record(teacher, AuditAction.ATTEMPTS_REGRADED, activity, str(len(marks)))
            # Marking twice by the same sheets changes nothing more: the next page need not do it to say so.
            self._cache_preview(state._replace(last_regrade=regrade_id), RegradePreview(preview.attempts))
        return preview

    def _cached_preview(self, state: _State, library: Library, store: Store, activity: Activity) -> RegradePreview:
        with self._lock:
            expires_at, preview = self._previews.get(state, (0.0, None))
        if preview is None or self._clock() >= expires_at:
            preview = _compute_preview(library, store, activity, state.basis)
            self._cache_preview(state, preview)
        return preview

    def _cache_preview(self, state: _State, preview: RegradePreview) -> None:
        with self._lock:
            self._previews[state] = (self._clock() + PREVIEW_TTL_S, preview)
            self._previews.move_to_end(state)
            while len(self._previews) > MAX_CACHED_PREVIEWS:
                self._previews.popitem(last=False)


def _keep_sheets(library: Library, store: Store, activity: Activity, preview: RegradePreview) -> None:
    for change in preview.changes:
        if definition := preview.definitions.get(change.new.marked_by):
            defined_variant(library, store, activity, definition, change.attempt.variant)


def _state(library: Library, store: Store, activity: Activity, basis: Basis) -> _State:
    last = frozenset((whose, attempt.id) for whose, attempt in store.classwork.last_attempts(activity.id).items())
    regrade = store.regrades.last(activity.id)
    models = tuple((model.key, model.config) for model in library.models.values())
    defined = (tuple(library.worksheets.values()), models, id(library.wording))
    return _State(*defined, basis, activity.id, activity.revision, activity.policies.marking, regrade, last)


def _compute_preview(library: Library, store: Store, activity: Activity, basis: Basis) -> RegradePreview:
    attempts = store.classwork.attempts_of_activity(activity.id)
    revisions = store.activities.revisions(activity)
    counted = {attempt.id for attempt in counted_attempts(activity, attempts).values()}
    models = {attempt.variant.model for attempt in attempts}
    definitions = dict[tuple[int, int], Content]()  # by revision and number of the sheet
    variants = dict[tuple[int, int, VariantSizes], Variant]()
    changes = list[MarkChange]()
    for attempt in attempts:
        item = frozen_item(revisions, attempt)
        if item is None:
            continue
        sheet = (attempt.revision, attempt.sheet_number)
        if sheet not in definitions:
            content = revisions[attempt.revision]
            definitions[sheet] = (
                frozen_definition(content, item)
                if basis == "frozen"
                else corrected_definition(library, store, activity, content, item, models)
            )
        if (key := (*sheet, attempt.variant)) not in variants:
            variants[key] = defined_variant(library, store, activity, definitions[sheet], attempt.variant, gives=False)
        variant, marked_by = variants[key], definitions[sheet].items[0].sheet_key
        report = grade(variant, box_texts(variant, attempt.answers))  # which ignores answers to boxes that it lacks
        new = NewMarks(stored_marks(variant, report), marked_by)
        if new.graded != Graded(attempt.marks, attempt.misconceptions, attempt.score, attempt.out_of):
            changes.append(MarkChange(attempt, new, item.title, attempt.id in counted))
    corrected = {each.items[0].sheet_key: each for each in definitions.values() if basis == "library"}
    return RegradePreview(len(attempts), tuple(changes), corrected)
