"""Which definition of a worksheet an attempt's report is based on: the one that `marked_by` names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.classes.activity_results import report_as_stored
from app.classes.frozen.frozen_library import frozen_form
from app.classes.regrade import Regrading
from app.classes.student_sheet import activity_variant
from app.grading.grade import Report
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Attempt, FrozenWorksheet, Store
from tests.helpers.answer_keys import KEY
from tests.helpers.running_activity import RunningActivity

MISTAKEN = {"answers": "letters"}


class RegradedAttempt:
    """One attempt with the answers of KEY on a sheet that was frozen in letters by mistake, then regraded."""

    def __init__(self, library: Library, store: Store) -> None:
        self.library, self.store = library, store
        self.running = RunningActivity(library, store)
        content = self.running.activity.content
        self.item = FrozenWorksheet({**content.items[0].worksheet, **MISTAKEN})
        store.activities.revise(self.running.activity, replace(content, items=(self.item,)))
        self.before = self.running.attempt(self.running.student(), KEY)
        regrading = Regrading()
        activity = self.running.activity
        preview = regrading.preview(library, store, activity, "library")
        assert regrading.apply(library, store, activity, self.running.teacher, preview.fingerprint, "library")

    @property
    def after(self) -> Attempt:
        """The attempt as it is in the database."""
        [attempt] = self.store.classwork.attempts_of_activity(self.running.activity.id)
        return attempt

    def report(self, attempt: Attempt) -> tuple[bool, Variant, Report]:
        """Whether the sheet of the attempt's report is the frozen one, that sheet, and the report."""
        activity = self.running.activity
        frozen = activity_variant(self.library, self.store, activity, 1)
        sheet, report = report_as_stored(self.library, self.store, activity, self.item, frozen, attempt)
        return sheet is frozen, sheet, report


@pytest.fixture
def regraded(library: Library, store: Store) -> RegradedAttempt:
    return RegradedAttempt(library, store)


def kinds(sheet: Variant, report: Report) -> dict[str, str]:
    """The kind of mark of each box of a sheet's report."""
    return {str(blank): mark.kind for blank, mark in report.marks.items()}


def test_before_a_regrade_it_is_the_frozen_definition(regraded: RegradedAttempt) -> None:
    is_frozen, sheet, report = regraded.report(regraded.before)
    assert is_frozen
    assert kinds(sheet, report) == regraded.before.marks


def test_after_a_regrade_it_is_the_corrected_definition(regraded: RegradedAttempt) -> None:
    is_frozen, sheet, report = regraded.report(regraded.after)
    assert not is_frozen
    assert regraded.after.marked_by == frozen_form(sheet.worksheet).sheet_key != regraded.item.sheet_key
    assert kinds(sheet, report) == regraded.after.marks == dict.fromkeys(KEY, "right")


def test_what_names_the_definition_is_the_key_and_not_the_marks(regraded: RegradedAttempt) -> None:
    is_frozen, sheet, report = regraded.report(replace(regraded.after, marked_by=regraded.item.sheet_key))
    assert is_frozen
    assert kinds(sheet, report) == regraded.after.marks
    assert report.diagnosis is None
