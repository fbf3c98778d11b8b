"""Regrades an activity's attempts after a worksheet was corrected, or to mark and count by another rule.

Attempts are marked by the worksheets as students had them or, if the teacher asks, as the library has them now. First
`Regrading.preview` shows what would change. Then `Regrading.apply` makes exactly these changes, or none if they are out
of date.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    Policies,
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


@dataclass(frozen=True)
class CountedChange:
    """A student's score on a sheet that would change: the attempt that counts, and the one that then would."""

    before: Attempt
    after: Attempt
    sheet_title: str

    @property
    def difference(self) -> float:
        """By how much the score would change: -0.5 if half a point is lost."""
        return round(self.after.score - self.before.score, 6)


@dataclass(frozen=True)
class RegradePreview:
    """What a regrade would change now: the number of attempts, those that would get other marks, and scores.

    `policies` are the activity's, with the marking and the attempt that would count.
    """

    attempts: int
    policies: Policies
    changes: tuple[MarkChange, ...] = ()
    score_changes: tuple[CountedChange, ...] = ()
    definitions: Mapping[str, Content] = field(default_factory=dict)  # the corrected definitions, by sheet key

    @cached_property
    def fingerprint(self) -> str:
        """32 characters that identify these changes; the form sends them back to `Regrading.apply`."""
        scores = [
            (change.before.id, change.before.score, change.after.id, change.after.score, change.after.out_of)
            for change in self.score_changes
        ]
        marks = [
            (change.attempt.id, sorted(change.new.graded.marks.items()), vars(change.new.graded))
            for change in self.changes
        ]
        text = repr([self.policies.marking, self.policies.counting, marks, scores])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class _State(NamedTuple):
    """What a preview depends on. Sheets of earlier revisions never change, and attempts only change in a regrade."""

    worksheets: tuple[Worksheet, ...]  # the library's, including own ones
    models: tuple[tuple[str, str], ...]  # keys and configs
    wording_id: int
    basis: Basis
    activity_id: int
    revision: int  # which says what worksheets count
    policies: Policies  # now
    new_policies: Policies
    last_regrade: int
    last_attempts: frozenset[tuple[StudentSheetKey, int]]


class Regrading:
    """Previews of regrades, each cached for a minute, unless what it depends on changes before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        # with the time when each expires
        self._previews: OrderedDict[_State, tuple[float, RegradePreview]] = OrderedDict()

    def preview(
        self,
        library: Library,
        store: Store,
        activity: Activity,
        basis: Basis = "frozen",
        policies: Policies | None = None,
    ) -> RegradePreview:
        """What marking every attempt again would change; `policies` are the activity's with another rule; cached."""
        policies = policies or activity.policies
        return self._cached_preview(_state(library, store, activity, basis, policies), library, store, activity)

    def apply(
        self,
        library: Library,
        store: Store,
        activity: Activity,
        teacher: Teacher,
        fingerprint: str,
        basis: Basis = "frozen",
        policies: Policies | None = None,
    ) -> RegradePreview | None:
        """Make the changes of the preview with this fingerprint, and return it; the old marks are kept.

        The last check and the changes are one transaction with the activity locked and an entry in the audit log.
        """
        policies = policies or activity.policies
        state = _state(library, store, activity, basis, policies)
        preview = self._cached_preview(state, library, store, activity)
        if preview.fingerprint != fingerprint:
            return None
        with store.transaction():
            locked = store.activities.locked(activity)
            if locked is None or _state(library, store, locked, basis, policies) != state:
                return None
            if policies != locked.policies:
                store.activities.change(locked, replace(locked.plan, policies=policies))
                store.audit_log.record(teacher, AuditAction.ACTIVITY_SAVED, activity)
            if preview.changes:
                marks = {change.attempt.id: change.new for change in preview.changes}
                regrade_id = store.regrades.apply(activity.id, teacher.id, marks, preview.definitions)
                _keep_sheets(library, store, activity, preview)
                store.audit_log.record(teacher, AuditAction.ATTEMPTS_REGRADED, activity, str(len(preview.changes)))
                state = state._replace(last_regrade=regrade_id)
        # Marking twice by the same rule changes nothing more: the next page need not do it to say so.
        self._cache_preview(state._replace(policies=policies), RegradePreview(preview.attempts, policies))
        return preview

    def _cached_preview(self, state: _State, library: Library, store: Store, activity: Activity) -> RegradePreview:
        with self._lock:
            expires_at, preview = self._previews.get(state, (0.0, None))
        if preview is None or self._clock() >= expires_at:
            preview = _compute_preview(library, store, activity, state.basis, state.new_policies)
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


def _with_policies(activity: Activity, policies: Policies) -> Activity:
    return replace(activity, plan=replace(activity.plan, policies=policies))


def _state(library: Library, store: Store, activity: Activity, basis: Basis, policies: Policies) -> _State:
    last = frozenset((whose, attempt.id) for whose, attempt in store.classwork.last_attempts(activity.id).items())
    regrade = store.regrades.last(activity.id)
    models = tuple((model.key, model.config) for model in library.models.values())
    defined = (tuple(library.worksheets.values()), models, id(library.wording))
    return _State(*defined, basis, activity.id, activity.revision, activity.policies, policies, regrade, last)


def _compute_preview(
    library: Library, store: Store, activity: Activity, basis: Basis, policies: Policies
) -> RegradePreview:
    attempts = store.classwork.attempts_of_activity(activity.id)
    revisions = store.activities.revisions(activity)
    models = {attempt.variant.model for attempt in attempts}
    definitions = dict[tuple[int, int], Content]()  # by revision and number of the sheet
    variants = dict[tuple[int, int, VariantSizes], Variant]()
    changes, ruled = list[MarkChange](), _with_policies(activity, policies)
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
            variants[key] = defined_variant(library, store, ruled, definitions[sheet], attempt.variant, gives=False)
        variant, marked_by = variants[key], definitions[sheet].items[0].sheet_key
        report = grade(variant, box_texts(variant, attempt.answers))  # which ignores answers to boxes that it lacks
        new = NewMarks(stored_marks(variant, report), marked_by)
        if new.graded != Graded(attempt.marks, attempt.misconceptions, attempt.score, attempt.out_of):
            changes.append(MarkChange(attempt, new))
    corrected = {each.items[0].sheet_key: each for each in definitions.values() if basis == "library"}
    score_changes = _score_changes(activity, ruled, attempts, changes)
    return RegradePreview(len(attempts), policies, tuple(changes), score_changes, corrected)


def _score_changes(
    activity: Activity, ruled: Activity, attempts: Sequence[Attempt], changes: Iterable[MarkChange]
) -> tuple[CountedChange, ...]:
    marked = {change.attempt.id: replace(change.attempt, **vars(change.new.graded)) for change in changes}
    before = counted_attempts(activity, attempts)
    after = counted_attempts(ruled, [marked.get(attempt.id, attempt) for attempt in attempts])
    return tuple(
        CountedChange(attempt, after[whose], activity.content.items[whose[1]].title)
        for whose, attempt in before.items()
        if (attempt.score, attempt.out_of) != (after[whose].score, after[whose].out_of)
    )
