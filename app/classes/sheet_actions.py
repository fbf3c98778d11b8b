"""What can be done with a sheet: save, check, get a hint, see the answers, hand in, and auto-submit at closing.

An action is a pure function of the sheet, the work on it so far, the current rules and the sent form. Its outcome says
what to store and what to show. `perform` stores it in a SheetWork: a student's, a practising visitor's, or a preview's,
which is kept in its form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self, TypeVar

from app.activities.content import question_name
from app.activities.rules import Rules
from app.activities.work import (
    Answers,
    Attempt,
    Draft,
    Edit,
    Graded,
    NewAttempt,
    UnfinishedWork,
    VariantSizes,
    WorkChangedError,
    merged_draft,
)
from app.classes.student_sheet import stored_marks
from app.grading.grade import Report, grade
from app.sheets.variant import Variant, box_texts

ActionResult = Literal[
    "saved",
    "checked",
    "nothing-read",
    "no-attempts-left",
    "handed-in",
    "empty",  # boxes are empty: hand in anyway?
    "new-rules",
    "hint",
    "answers",
    "try-first",  # answers are hidden before an attempt
    "auto-submitted",
    # Refused, with nothing stored:
    "not-open",
    "marks-later",  # a check would show marks
    "no-hint",
    "nothing-to-submit",
]


@dataclass(frozen=True)
class SentSheet:
    """A sent sheet form: the text of every box and open question, and which of them are new there.

    `edits` is None for a form sent without script: then every text counts.
    """

    answers: Answers
    edits: Mapping[str, Edit] | None = None
    request_id: str = ""
    rules_changed: bool = False
    asks_about_empty: bool = False


class WorkSoFar(Protocol):
    """The work on a sheet so far: what is typed, the number of attempts, and the last one.

    `sizes` are the sheet's.
    """

    @property
    def sizes(self) -> VariantSizes: ...
    @property
    def draft(self) -> Draft | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def last(self) -> Attempt | None: ...
    def answers_other_numbers(self, attempt: Attempt) -> bool: ...


@dataclass(frozen=True)
class Outcome:
    """An action's outcome: its result, the texts then in the boxes, and what is to be stored.

    `draft` replaces the work's draft, if it is given.
    """

    result: ActionResult
    answers: Answers
    draft: Draft | None = None
    attempt: NewAttempt | None = None
    written: Answers = field(default_factory=dict)
    hands_in_last: bool = False
    report: Report | None = None

    @property
    def is_refused(self) -> bool:
        """Whether nothing is done, and the page says why."""
        return self.result in ("not-open", "marks-later", "no-hint")


class SheetWork(WorkSoFar, Protocol):
    """The work on one sheet, wherever it is kept."""

    def kept(self, outcome: Outcome) -> Self:
        """The work with this outcome, stored durably."""

    def read_again(self) -> Self:
        """The work as it is stored now."""


Work = TypeVar("Work", bound=SheetWork)
Action = Callable[[Variant, WorkSoFar, Rules, SentSheet], Outcome]


def perform(action: Action, variant: Variant, work: Work, rules: Rules, sent: SentSheet) -> tuple[Outcome, Work]:
    """Do an action and store its outcome; redo it as long as other requests change the work meanwhile."""
    while True:
        outcome = action(variant, work, rules, sent)
        try:
            return outcome, work.kept(outcome)
        except WorkChangedError:
            work = work.read_again()


def save(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Save what was typed; without attempts left, answers to open questions also go to the last attempt."""
    if not rules.accepts:
        return _refused("not-open", work, sent)
    answers, draft = _merged(work, sent)
    # Without attempts left, answers to open questions still count for the last one.
    written = _written(variant, answers) if rules.attempts_left(work.attempts) == 0 else {}
    return Outcome("saved", answers, draft, written=written)


def check(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Mark the sheet as a new attempt; if nothing is readable, it is only saved, and costs no attempt."""
    if turned_back := _turned_back(work, rules, sent):
        return turned_back
    if not rules.can_check:
        return _refused("marks-later", work, sent)
    answers, draft = _merged(work, sent)
    report = grade(variant, box_texts(variant, answers))
    if not report.has_readable_answer:
        return Outcome("nothing-read", answers, draft, report=report)
    is_repeated = bool(sent.request_id) and work.last is not None and work.last.client_id == sent.request_id
    if rules.attempts_left(work.attempts) == 0 and not is_repeated:
        return Outcome("no-attempts-left", answers)
    attempt = graded_attempt(variant, answers, rules, report, work.sizes, sent.request_id)
    draft = _draft_for_attempt(work, sent, draft)
    return Outcome("checked", answers, draft, None if is_repeated else attempt, report=report)


def check_if_new(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """In practice: check, but add no attempt if no answer has changed since the last one."""
    outcome = check(variant, work, rules, sent)
    if outcome.attempt and work.last and dict(work.last.answers) == dict(outcome.attempt.answers):
        return replace(outcome, attempt=None)
    return outcome


def hint(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Save what was typed, and give a hint on the last attempt, at no cost; in practice, check first."""
    if rules.in_practice:
        return replace(check_if_new(variant, work, rules, sent), result="hint")
    if not rules.accepts:
        return _refused("not-open", work, sent)
    if not can_hint(variant, work, rules):
        return _refused("no-hint", work, sent)
    return Outcome("hint", *_merged(work, sent))


def can_hint(variant: Variant, work: WorkSoFar, rules: Rules) -> bool:
    """Whether there is a hint on the last attempt: the activity gives some, and its marks are shown."""
    return rules.gives_hints and marks_visible(work, rules)


def may_see_example(variant: Variant, rules: Rules) -> bool:
    """Whether a similar sheet may be seen worked out; never for a sheet about a program with a bug."""
    return (rules.shows_answers or rules.gives_examples) and not variant.problem.case


def marks_visible(work: WorkSoFar, rules: Rules) -> bool:
    """Whether the marks of the last attempt are shown now, and the boxes of this sheet are those it answered."""
    return work.last is not None and attempt_visible(work.last, work, rules)


def attempt_visible(attempt: Attempt, work: WorkSoFar, rules: Rules) -> bool:
    """Whether an attempt's marks are shown now, and the boxes of this sheet are those it answered."""
    return rules.marks_visible(handed_in=attempt.handed_in) and not work.answers_other_numbers(attempt)


def may_run(work: WorkSoFar, rules: Rules) -> bool:
    """Whether a student may run the head now."""
    if rules.phase == "waiting" or not rules.gives_help:
        return False
    return rules.may_run_first or marks_visible(work, rules)


def show_answers(_variant: Variant, work: WorkSoFar, _rules: Rules, sent: SentSheet) -> Outcome:
    """In practice: save what was typed, and show the answers, or advice to make an attempt first."""
    return Outcome("answers" if work.last else "try-first", *_merged(work, sent))


def hand_in(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Hand the sheet in."""
    if turned_back := _turned_back(work, rules, sent):
        return turned_back
    answers, draft = _merged(work, sent)
    boxes = box_texts(variant, answers)
    if sent.asks_about_empty and empty_boxes(variant, boxes):
        return Outcome("empty", answers, draft)
    last, written = work.last, _written(variant, answers)
    if last and not last.handed_in and box_texts(variant, last.answers) == boxes:
        return Outcome("handed-in", answers, draft, written=written, hands_in_last=True)
    if sent.request_id and last and last.client_id == sent.request_id:
        return Outcome("handed-in", answers, draft, hands_in_last=True)
    if rules.attempts_left(work.attempts) == 0:
        draft = _merged(work, _questions_of(sent, written))[1] if written else None
        return Outcome("no-attempts-left", answers, draft, written=written, hands_in_last=True)
    report = grade(variant, boxes)
    attempt = graded_attempt(variant, answers, rules, report, work.sizes, sent.request_id)
    draft = _draft_for_attempt(work, sent, draft)
    return Outcome("handed-in", answers, draft, replace(attempt, handed_in=True), report=report)


def auto_submit(variant: Variant, work: UnfinishedWork, rules: Rules) -> Outcome:
    """Submit what is typed when the activity ends; `rules` are those when it was saved."""
    answers, questions = work.draft.answers, [question_name(each.key) for each in variant.worksheet.questions]
    nothing = Outcome("nothing-to-submit", answers)
    if not rules.policies.auto_submit or not work.has_news or rules.attempts_left(work.attempts) == 0:
        return nothing
    if rules.is_late and work.handed_in_on_time:
        return nothing
    report = grade(variant, box_texts(variant, answers))
    if not (report.has_readable_answer or work.writes(questions)):
        return nothing
    attempt = graded_attempt(variant, answers, rules, report, work.draft.variant)
    attempt = replace(attempt, handed_in=True, auto_submitted=True)
    return Outcome("auto-submitted", answers, attempt=attempt, report=report)


def graded_attempt(
    variant: Variant, answers: Answers, rules: Rules, report: Report, sizes: VariantSizes, request_id: str = ""
) -> NewAttempt:
    """A new attempt with these answers and their marks; in practice, only with the score."""
    if rules.in_practice:
        return NewAttempt(box_texts(variant, answers), sizes, Graded({}, (), report.score, report.out_of))
    return NewAttempt(answers, sizes, stored_marks(variant, report), request_id, late=rules.is_late)


def empty_boxes(variant: Variant, answers: Answers) -> int:
    return sum(not answers.get(box, "").strip() for box in variant.blanks_by_name)


def _refused(result: ActionResult, work: WorkSoFar, sent: SentSheet) -> Outcome:
    return Outcome(result, _merged(work, sent)[0])


def _turned_back(work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome | None:
    if not rules.accepts:
        return _refused("not-open", work, sent)
    if sent.rules_changed:
        return Outcome("new-rules", *_merged(work, sent))
    return None


def _merged(work: WorkSoFar, sent: SentSheet) -> tuple[Answers, Draft | None]:
    draft = merged_draft(work.draft, sent.answers, sent.edits, work.sizes)
    current = draft or work.draft
    if work.draft is None or sent.edits is None or current is None:
        return sent.answers, draft
    return {**sent.answers, **current.answers}, draft


def _draft_for_attempt(work: WorkSoFar, sent: SentSheet, draft: Draft | None) -> Draft | None:
    """The draft to store with an attempt, so that there is a row to lock."""
    return draft if draft or work.draft else merged_draft(None, sent.answers, None, work.sizes)


def _written(variant: Variant, answers: Answers) -> Answers:
    names = [question_name(question.key) for question in variant.worksheet.questions]
    return {name: answers.get(name, "") for name in names}


def _questions_of(sent: SentSheet, written: Answers) -> SentSheet:
    edits = None if sent.edits is None else {name: edit for name, edit in sent.edits.items() if name in written}
    return replace(sent, answers={name: sent.answers.get(name, "") for name in written}, edits=edits)
