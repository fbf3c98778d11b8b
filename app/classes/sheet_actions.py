"""What can be done with a sheet: save, check, get a hint, see the answers, hand in, and auto-submit at closing.

An action is a pure function of the sheet, what was done on it so far, the rules of this moment and what a form has
sent. Its outcome says what to store and what to show. `perform` stores it in a SheetWork: that of a student in a class,
of somebody who practises, or of the preview, which keeps it in its form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self, TypeVar

from app.activities.content import question_name
from app.activities.rules import Rules
from app.activities.work import Answers, Graded, MergedBoxes, NoAttemptsLeftError, Stamp, UnfinishedWork, merge_boxes
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
    "try-first",  # no answers are shown before an attempt
    "auto-submitted",
    # Refused, with nothing stored:
    "not-open",
    "marks-later",  # a check would show marks
    "no-hint",
    "nothing-to-submit",
]


@dataclass(frozen=True)
class SentSheet:
    """What a form with a sheet has sent: the text of every box and open question, and which of them are new there.

    `edits` is None for a form that was sent without script: then every text counts. `request_id` is the same where a
    request is sent again. `rules_changed`: the page told other rules than those of now. `asks_about_empty`: if boxes
    are empty, the page wants to ask before it hands in.
    """

    answers: Answers
    edits: Mapping[str, Stamp] | None = None
    request_id: str = ""
    rules_changed: bool = False
    asks_about_empty: bool = False


class SavedDraft(Protocol):
    """A draft as it is stored, of a class or of practice."""

    @property
    def answers(self) -> Answers: ...
    @property
    def version(self) -> int: ...
    @property
    def pages(self) -> Mapping[str, int]: ...


class MadeAttempt(Protocol):
    """An attempt as it is stored, in a class or in practice."""

    @property
    def answers(self) -> Answers: ...
    @property
    def handed_in(self) -> bool: ...
    @property
    def client_id(self) -> str: ...


class WorkSoFar(Protocol):
    """What was done on a sheet so far: what is typed, how many attempts there are, and the last one.

    `has_other_numbers`: the last attempt answers a sheet with other sizes, as one on paper may, so that its marks are
    not for this one.
    """

    @property
    def draft(self) -> SavedDraft | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def last(self) -> MadeAttempt | None: ...
    @property
    def has_other_numbers(self) -> bool: ...


@dataclass(frozen=True)
class NewAttempt:
    """An attempt to be stored, with its marks."""

    answers: Answers
    report: Report
    graded: Graded
    request_id: str
    handed_in: bool = False
    late: bool = False
    auto_submitted: bool = False


@dataclass(frozen=True)
class Outcome:
    """What an action comes to: its result, the texts in the boxes then, and what is to be stored.

    `sent` is merged into the draft. `attempt` is added. The last attempt gets the answers to open questions in
    `written`, and is then handed in if `hands_in_last`. `report` has the marks of these texts, where they
    were graded.
    """

    result: ActionResult
    answers: Answers
    sent: SentSheet | None = None
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
        """The work with this outcome, stored durably; NoAttemptsLeftError where another request has used the last."""

    def read_again(self) -> Self:
        """The work as it is stored now."""


Work = TypeVar("Work", bound=SheetWork)
Action = Callable[[Variant, WorkSoFar, Rules, SentSheet], Outcome]


def perform(action: Action, variant: Variant, work: Work, rules: Rules, sent: SentSheet) -> tuple[Outcome, Work]:
    """Do an action and store its outcome; if another request has used the last attempt, read the work and try again.

    Returns the outcome and the work as it is then.
    """
    while True:
        outcome = action(variant, work, rules, sent)
        try:
            return outcome, work.kept(outcome)
        except NoAttemptsLeftError:
            work = work.read_again()


def save(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Save what was typed; once no attempt is left, answers to open questions also go to the last attempt.

    Refused ("not-open") if the activity accepts nothing.
    """
    if not rules.accepts:
        return _refused("not-open", work, sent)
    answers = _merged(work, sent)
    return Outcome("saved", answers, sent, written=_written_to_last(variant, work, rules, answers))


def check(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Mark the sheet as one more attempt; if no answer can be read, it is only saved, and costs no attempt.

    In this order: refused if the activity accepts nothing; only saved if the rules have changed since the page was
    made; refused if marks come later; with no attempt left, nothing is stored. A repeated request adds no attempt.
    """
    if turned_back := _turned_back(work, rules, sent):
        return turned_back
    if not rules.can_check:
        return _refused("marks-later", work, sent)
    answers = _merged(work, sent)
    report = grade(variant, box_texts(variant, answers))
    if not report.has_readable_answer:
        return Outcome("nothing-read", answers, sent, report=report)
    is_repeated = bool(sent.request_id) and work.last is not None and work.last.client_id == sent.request_id
    if rules.attempts_left(work.attempts) == 0 and not is_repeated:
        return Outcome("no-attempts-left", answers)
    attempt = graded_attempt(variant, answers, rules, report=report, request_id=sent.request_id)
    return Outcome("checked", answers, _all_of(work, sent), None if is_repeated else attempt, report=report)


def check_if_new(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """In practice: check, but add no attempt if the answers are those of the last one."""
    outcome = check(variant, work, rules, sent)
    if outcome.attempt and work.last and dict(work.last.answers) == dict(outcome.attempt.answers):
        return replace(outcome, attempt=None)
    return outcome


def hint(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Save what was typed, and give a hint on the last attempt, at no cost; in practice, check first.

    In a class it is refused if the activity accepts nothing, or `can_hint` is False.
    """
    if rules.in_practice:
        return replace(check_if_new(variant, work, rules, sent), result="hint")
    if not rules.accepts:
        return _refused("not-open", work, sent)
    if not can_hint(variant, work, rules):
        return _refused("no-hint", work, sent)
    return Outcome("hint", _merged(work, sent), sent)


def can_hint(variant: Variant, work: WorkSoFar, rules: Rules) -> bool:
    """Whether there is a hint on the last attempt: activity and worksheet give some, and its marks are shown."""
    return variant.worksheet.show_hints and rules.gives_hints and marks_visible(work, rules)


def may_see_example(variant: Variant, rules: Rules) -> bool:
    """Whether a sheet like this one may be seen worked out: as the rules say, on a worksheet that gives hints.

    Once the answers are shown, on any.
    """
    return rules.shows_answers or (rules.gives_examples and variant.worksheet.show_hints)


def marks_visible(work: WorkSoFar, rules: Rules) -> bool:
    """Whether the marks of the last attempt are shown now, and the boxes of this sheet are those it answered."""
    last = work.last
    return last is not None and rules.marks_visible(handed_in=last.handed_in) and not work.has_other_numbers


def may_run(work: WorkSoFar, rules: Rules) -> bool:
    """Whether a student may run the head now.

    A run shows the answers, so it needs an attempt whose marks are visible, unless the activity allows it before. Never
    before the activity opens, or while its rules give no help.
    """
    if rules.phase == "waiting" or not rules.gives_help:
        return False
    return rules.may_run_first or marks_visible(work, rules)


def show_answers(_variant: Variant, work: WorkSoFar, _rules: Rules, sent: SentSheet) -> Outcome:
    """In practice: save what was typed, and show the answers if there is an attempt, else the advice to make one."""
    return Outcome("answers" if work.last else "try-first", _merged(work, sent), sent)


def hand_in(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Hand the sheet in; if boxes are empty and the page wants to ask about that, it is only saved.

    It is refused if the activity accepts nothing, and only saved if the rules have changed since the page was made. If
    the last attempt has the same boxes and was not handed in, or was made by this very request, that attempt is handed
    in; otherwise a new one is made. With no attempt left, the last one is handed in, and only answers to open questions
    are saved.
    """
    if turned_back := _turned_back(work, rules, sent):
        return turned_back
    answers = _merged(work, sent)
    boxes = box_texts(variant, answers)
    if sent.asks_about_empty and empty_boxes(variant, boxes):
        return Outcome("empty", answers, sent)
    last, written = work.last, _written(variant, answers)
    if last and not last.handed_in and box_texts(variant, last.answers) == boxes:
        return Outcome("handed-in", answers, sent, written=written, hands_in_last=True)
    is_repeated = bool(sent.request_id) and last is not None and last.client_id == sent.request_id
    if is_repeated:
        return Outcome("handed-in", answers, sent, hands_in_last=True)
    if rules.attempts_left(work.attempts) == 0:
        questions = _questions_of(sent, written) if written else None
        return Outcome("no-attempts-left", answers, questions, written=written, hands_in_last=True)
    attempt = graded_attempt(variant, answers, rules, request_id=sent.request_id, handed_in=True)
    return Outcome("handed-in", answers, _all_of(work, sent), attempt, report=attempt.report)


def auto_submit(variant: Variant, work: UnfinishedWork, rules: Rules) -> Outcome:
    """What is typed when the activity ends, as a submission; `rules` are those of the moment it was saved.

    Nothing is submitted if the activity does not do so, the work has no news since the last attempt, or no attempt is
    left; if it was typed late and something was handed in on time; or if no box can be read and no open question is
    answered.
    """
    answers, questions = work.draft.answers, [question_name(each.key) for each in variant.worksheet.questions]
    nothing = Outcome("nothing-to-submit", answers)
    if not rules.policies.take_in_drafts or not work.has_news or rules.attempts_left(work.attempts) == 0:
        return nothing
    if rules.is_late and work.handed_in_on_time:
        return nothing
    report = grade(variant, box_texts(variant, answers))
    if not (report.has_readable_answer or work.writes(questions)):
        return nothing
    attempt = graded_attempt(variant, answers, rules, report=report, handed_in=True)
    return Outcome("auto-submitted", answers, attempt=replace(attempt, auto_submitted=True), report=report)


def graded_attempt(
    variant: Variant,
    answers: Answers,
    rules: Rules,
    *,
    report: Report | None = None,
    request_id: str = "",
    handed_in: bool = False,
) -> NewAttempt:
    """A new attempt with these answers and their marks; in practice without the answers to open questions.

    `report` is that of these answers, if they have been graded already.
    """
    boxes = box_texts(variant, answers)
    report = report or grade(variant, boxes)
    stored = boxes if rules.in_practice else answers
    return NewAttempt(stored, report, stored_marks(variant, report), request_id, handed_in, rules.is_late)


def empty_boxes(variant: Variant, answers: Answers) -> int:
    """How many boxes are empty."""
    return sum(not answers.get(box, "").strip() for box in variant.blanks_by_name)


def _refused(result: ActionResult, work: WorkSoFar, sent: SentSheet) -> Outcome:
    """Nothing is stored, and what was typed stays in the boxes."""
    return Outcome(result, _merged(work, sent))


def _turned_back(work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome | None:
    """Why a press is not carried out: the activity is not open, or its rules have changed; None if neither.

    In the second case, what was typed is saved.
    """
    if not rules.accepts:
        return _refused("not-open", work, sent)
    if sent.rules_changed:
        return Outcome("new-rules", _merged(work, sent), sent)
    return None


def _merged(work: WorkSoFar, sent: SentSheet) -> Answers:
    """The texts of the sheet: as sent, but every box that the page has not edited as it is stored."""
    draft = work.draft
    if draft is None or sent.edits is None:
        return sent.answers
    merged = merge_boxes(MergedBoxes(draft.answers, draft.pages), sent.answers, sent.edits)
    return {**sent.answers, **(merged or draft).answers}


def _all_of(work: WorkSoFar, sent: SentSheet) -> SentSheet:
    """What an attempt saves: all of its texts where nothing is saved yet or new, so that there is a draft to lock."""
    return sent if work.draft or sent.edits else replace(sent, edits=None)


def _written(variant: Variant, answers: Answers) -> Answers:
    """The answers to the open questions of a sheet."""
    names = [question_name(question.key) for question in variant.worksheet.questions]
    return {name: answers.get(name, "") for name in names}


def _written_to_last(variant: Variant, work: WorkSoFar, rules: Rules, answers: Answers) -> Answers:
    """The answers to open questions if no attempt is left, for the last one; else none."""
    return _written(variant, answers) if rules.attempts_left(work.attempts) == 0 else {}


def _questions_of(sent: SentSheet, written: Answers) -> SentSheet:
    """The part of what was sent that answers open questions."""
    edits = None if sent.edits is None else {name: edit for name, edit in sent.edits.items() if name in written}
    return replace(sent, answers={name: sent.answers.get(name, "") for name in written}, edits=edits)
