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
    edits: Mapping[str, Edit] | None = None
    request_id: str = ""
    rules_changed: bool = False
    asks_about_empty: bool = False


class WorkSoFar(Protocol):
    """What was done on a sheet so far: what is typed, how many attempts there are, and the last one.

    `sizes` are those of the sheet. `has_other_numbers`: the last attempt answers a sheet with other sizes, as one on
    paper may, so that its marks are not for this one.
    """

    @property
    def sizes(self) -> VariantSizes: ...
    @property
    def draft(self) -> Draft | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def last(self) -> Attempt | None: ...
    @property
    def has_other_numbers(self) -> bool: ...


@dataclass(frozen=True)
class Outcome:
    """What an action comes to: its result, the texts in the boxes then, and what is to be stored.

    `draft` takes the place of the draft that the work had, if what was sent changes it. `attempt` is added. The last
    attempt gets the answers to open questions in `written`, and is then handed in if `hands_in_last`. `report` has the
    marks of these texts, where they were graded.
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
        """The work with this outcome, stored durably.

        Raises WorkChangedError, and stores nothing, where another request has changed the draft that the outcome was
        made from, or used the last attempt.
        """

    def read_again(self) -> Self:
        """The work as it is stored now."""


Work = TypeVar("Work", bound=SheetWork)
Action = Callable[[Variant, WorkSoFar, Rules, SentSheet], Outcome]


def perform(action: Action, variant: Variant, work: Work, rules: Rules, sent: SentSheet) -> tuple[Outcome, Work]:
    """Do an action and store its outcome; while another request has changed the work meanwhile, read it and do it
    again, however often.

    Returns the outcome of the last try, and the work after it. Other errors of storing are raised.
    """
    while True:
        outcome = action(variant, work, rules, sent)
        try:
            return outcome, work.kept(outcome)
        except WorkChangedError:
            work = work.read_again()


def save(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Save what was typed; once no attempt is left, answers to open questions also go to the last attempt.

    The result is "saved", or "not-open", with nothing stored, if the activity accepts nothing.
    """
    if not rules.accepts:
        return _refused("not-open", work, sent)
    answers, draft = _merged(work, sent)
    # Once no attempt is left, answers to open questions still count for the last one.
    written = _written(variant, answers) if rules.attempts_left(work.attempts) == 0 else {}
    return Outcome("saved", answers, draft, written=written)


def check(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Mark the sheet as one more attempt; if no answer can be read, it is only saved, and costs no attempt.

    The first of these that applies is the result: "not-open", if the activity accepts nothing; "new-rules", only saved,
    if the rules have changed since the page was made; "marks-later", if the activity does not give marks at once;
    "nothing-read", only saved; "no-attempts-left"; else "checked". With "not-open", "marks-later" and
    "no-attempts-left" nothing is stored. A repeated request is "checked", even with no attempt left, but adds no
    attempt.
    """
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
    """In practice: check, but add no attempt if the answers, those to open questions included, are those of the last
    one; the outcome is otherwise that of `check`, "checked" included.
    """
    outcome = check(variant, work, rules, sent)
    if outcome.attempt and work.last and dict(work.last.answers) == dict(outcome.attempt.answers):
        return replace(outcome, attempt=None)
    return outcome


def hint(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Save what was typed, and give a hint on the last attempt, at no cost; in practice, check first.

    In practice the result is always "hint", whatever came of the check. In a class it is refused, and nothing is saved,
    if the activity accepts nothing ("not-open") or `can_hint` is False ("no-hint").
    """
    if rules.in_practice:
        return replace(check_if_new(variant, work, rules, sent), result="hint")
    if not rules.accepts:
        return _refused("not-open", work, sent)
    if not can_hint(variant, work, rules):
        return _refused("no-hint", work, sent)
    return Outcome("hint", *_merged(work, sent))


def can_hint(variant: Variant, work: WorkSoFar, rules: Rules) -> bool:
    """Whether there is a hint on the last attempt: activity and worksheet give some, and its marks are shown."""
    return variant.worksheet.show_hints and rules.gives_hints and marks_visible(work, rules)


def may_see_example(variant: Variant, rules: Rules) -> bool:
    """Whether a sheet like this one may be seen worked out; never of a sheet about a program with a bug.

    It may once the answers are shown; before that, if the rules give examples and the worksheet shows hints.
    """
    gives_example = rules.shows_answers or (rules.gives_examples and variant.worksheet.show_hints)
    return gives_example and not variant.problem.case


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
    return Outcome("answers" if work.last else "try-first", *_merged(work, sent))


def hand_in(variant: Variant, work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome:
    """Hand the sheet in.

    The first of these that applies is the result: "not-open", with nothing stored, if the activity accepts nothing;
    "new-rules", only saved, if the rules have changed since the page was made; "empty", only saved, if boxes are empty
    and the page wants to ask about that; else "handed-in" or "no-attempts-left".

    If the last attempt was not handed in and has the same texts in its boxes, it is handed in, with the present answers
    to open questions; if this very request made it, it is handed in as it is. Otherwise a new attempt is made. If none
    is left ("no-attempts-left"), the last one is handed in, and only answers to open questions are saved, in it and in
    the draft.
    """
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
    """What is typed when the activity ends, as a submission; `rules` are those of the moment it was saved.

    The outcome is "auto-submitted", with an attempt that is handed in, or "nothing-to-submit" without one. Nothing is
    submitted if the policies do not auto-submit, the work has no news since the last attempt, or no attempt is left; if
    it was typed late and something was handed in on time; or if no box can be read and no open question is answered.
    Nothing is stored here.
    """
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
    """A new attempt with these answers and their marks; in practice, of the marks only the score.

    Answers to open questions belong to it only in an activity. `sizes` are those of the sheet, which is `variant`.
    `request_id` keeps one press of a button that is sent twice from making two attempts; practice has none.
    """
    if rules.in_practice:
        return NewAttempt(box_texts(variant, answers), sizes, Graded({}, (), report.score, report.out_of))
    return NewAttempt(answers, sizes, stored_marks(variant, report), request_id, late=rules.is_late)


def empty_boxes(variant: Variant, answers: Answers) -> int:
    return sum(not answers.get(box, "").strip() for box in variant.blanks_by_name)


def _refused(result: ActionResult, work: WorkSoFar, sent: SentSheet) -> Outcome:
    """Nothing is stored, and what was typed stays in the boxes."""
    return Outcome(result, _merged(work, sent)[0])


def _turned_back(work: WorkSoFar, rules: Rules, sent: SentSheet) -> Outcome | None:
    """The outcome of a press that is not carried out: "not-open", if the activity accepts nothing, else "new-rules", if
    its rules have changed since the page was made; None if neither.

    Only with "new-rules" is what was typed saved.
    """
    if not rules.accepts:
        return _refused("not-open", work, sent)
    if sent.rules_changed:
        return Outcome("new-rules", *_merged(work, sent))
    return None


def _merged(work: WorkSoFar, sent: SentSheet) -> tuple[Answers, Draft | None]:
    """The texts of the sheet, and the draft that stores them; None if what was sent brings nothing new.

    Every box that the page has not edited is as it is stored; the others are as sent. From a form without script, and
    where nothing is stored, all are as sent. See `merged_draft`.
    """
    draft = merged_draft(work.draft, sent.answers, sent.edits, work.sizes)
    current = draft or work.draft
    if work.draft is None or sent.edits is None or current is None:
        return sent.answers, draft
    return {**sent.answers, **current.answers}, draft


def _draft_for_attempt(work: WorkSoFar, sent: SentSheet, draft: Draft | None) -> Draft | None:
    """The draft to store with an attempt, so that there is a row to lock.

    It is `draft`, if that has something new; None, if nothing is new and a draft is stored; else one of all texts sent.
    """
    return draft if draft or work.draft else merged_draft(None, sent.answers, None, work.sizes)


def _written(variant: Variant, answers: Answers) -> Answers:
    """The answers to the open questions of a sheet."""
    names = [question_name(question.key) for question in variant.worksheet.questions]
    return {name: answers.get(name, "") for name in names}


def _questions_of(sent: SentSheet, written: Answers) -> SentSheet:
    """What was sent for the questions in `written` alone, as if the form had nothing else."""
    edits = None if sent.edits is None else {name: edit for name, edit in sent.edits.items() if name in written}
    return replace(sent, answers={name: sent.answers.get(name, "") for name in written}, edits=edits)
