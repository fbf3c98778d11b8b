"""Marks a sheet: turns a Variant and the texts typed into its boxes into a Report. Nothing else marks answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Literal, get_args

from app.algebra.number_text import format_number
from app.algebra.parser import Unreadable
from app.grading.causes import Cause, find_causes, worked_out
from app.misconceptions.diagnosis import Diagnosis, diagnose
from app.misconceptions.predictions import expectations
from app.refusal import Refusal
from app.shapes.consistency import DimensionMismatch, Values, mismatches, typed_source_of
from app.shapes.table import Blank, Filling, Joint, JointPart, WrittenPattern
from app.sheets import prose
from app.sheets.answers import PREFIXES, Answer, box_unit, decimal_prefix
from app.sheets.variant import Row, Variant
from app.sheets.worksheet import Marking
from app.topics.problem import Problem
from app.translation import gettext as _

MarkKind = Literal["right", "follows", "wrong", "unreadable", "empty"]
# "follows" is follow-through: wrong by the key, right given the student's earlier answers.
MARK_KINDS: tuple[MarkKind, ...] = get_args(MarkKind)
NearMiss = Literal["close", "close-or-rounded", "binary", "prefix", "coincidence"]


class AnswersError(Refusal):
    """Answers for boxes that the sheet doesn't have, or paper answers that can't be used."""


@dataclass(frozen=True)
class Mark:
    """The mark of one box."""

    kind: MarkKind
    text: str
    read_as: int | None
    message: str
    repeats: Blank | None = None


@dataclass(frozen=True)
class Report:
    """The marks of a whole sheet by blank."""

    marks: Mapping[Blank, Mark]
    marking: Marking = "causes"
    first_mismatch: DimensionMismatch | None = None
    diagnosis: Diagnosis | None = None
    points: Mapping[Blank, int] = field(default_factory=dict)
    causes: tuple[Cause, ...] = ()
    losses: tuple[str, ...] = ()

    @property
    def score(self) -> int:
        """What earns points depends on the marking; the three are in docs/grading.md."""
        if self.marking == "causes":
            return self._points("right", "follows")
        if self.marking == "boxes":
            return self._points("right")
        spoiled = {blank.tensor for blank, mark in self.marks.items() if mark.kind != "right"}
        return sum(self.points.get(blank, 1) for blank in self.marks if blank.tensor not in spoiled)

    @property
    def out_of(self) -> int:
        """The best possible score: the points of all boxes."""
        return self._points(*MARK_KINDS)

    @property
    def boxes(self) -> int:
        return len(self.marks)

    @property
    def right(self) -> int:
        return self._count("right")

    @property
    def follows(self) -> int:
        """How many wrong boxes follow from a mistake that costs another box."""
        return self._count("follows")

    @property
    def empty(self) -> int:
        """How many boxes are empty; unreadable ones don't count."""
        return self._count("empty")

    @property
    def complete(self) -> bool:
        return self.right == self.boxes

    @property
    def has_readable_answer(self) -> bool:
        """Whether anything readable was typed."""
        return any(mark.read_as is not None for mark in self.marks.values())

    def _count(self, kind: MarkKind) -> int:
        return sum(mark.kind == kind for mark in self.marks.values())

    def _points(self, *kinds: MarkKind) -> int:
        return sum(self.points.get(blank, 1) for blank, mark in self.marks.items() if mark.kind in kinds)

    def as_json(self) -> dict[str, object]:
        """The report as the API and the terminal give it, with box names such as 'queries.rows'."""
        first, diagnosis = self.first_mismatch, self.diagnosis
        return {
            "score": self.score,
            "out_of": self.out_of,
            "marks": {
                str(blank): {
                    "mark": mark.kind, "read_as": mark.read_as, "message": mark.message,
                    "repeats": mark.repeats and str(mark.repeats),
                }
                for blank, mark in self.marks.items()
            },
            "causes": [
                {"costs": str(cause.costs), "others": list(map(str, cause.others)),
                 "misconception": cause.misconception or None}
                for cause in self.causes
            ],
            "first_mismatch": first and {
                "at": first.at, "left": str(first.left), "right": str(first.right), "message": first.message,
            },
            "diagnosis": diagnosis and {
                "key": diagnosis.key, "message": diagnosis.message, "explains": list(map(str, diagnosis.explains)),
                "also": list(diagnosis.also),
            },
        }  # fmt: skip


def grade(variant: Variant, answers: Mapping[str, str]) -> Report:
    """Mark every box of the sheet, and find causes, a diagnosis and, if the worksheet shows it, a mismatch.

    Raises AnswersError for an unknown box name.
    """
    blanks = variant.blanks_by_name
    if unknown := sorted(answers.keys() - blanks.keys()):
        refusal = _("“{name}” is not a box of this sheet. Its boxes: {boxes}.")
        raise AnswersError(refusal.format(name=unknown[0][:60], boxes=", ".join(sorted(blanks))))
    texts = {blank: answers.get(name, "") for name, blank in blanks.items()}
    read = {blank: variant.read(blank, text) for blank, text in texts.items()}
    marks = {blank: _mark(variant, blank, text, read[blank]) for blank, text in texts.items()}
    for row in variant.rows:
        if row.together:
            marks.update(_marks_together(variant, row, texts, read))
    questions = {blank for row in variant.rows if row.is_question for blank in row.blanks}
    typed = {b: answer for b, answer in read.items() if isinstance(answer, Answer) and b not in questions}
    values = {
        blank: _number_meant(variant, blank, answer, right=marks[blank].kind == "right")
        for blank, answer in typed.items()
    }
    problem = variant.problem_for_marking

    def within_rounding(blank: Blank, number: int) -> bool:
        return typed[blank].may_be_rounded_from(number)

    following = worked_out(problem, values, within_rounding)
    diagnosis = diagnose(problem, values, following) or _diagnosis_of_choices(problem, read)
    points = {blank: number for blank, number in variant.points.items() if blank not in questions}
    causes = find_causes(problem, values, diagnosis, within_rounding, points)
    for cause in causes:
        for blank in cause.others:
            repeats = None if blank in following else cause.costs
            marks[blank] = _follow_through_mark(variant, blank, marks[blank], repeats)
    if diagnosis:
        diagnosis = replace(diagnosis, message=prose.misconception(variant, diagnosis.key, "nudge"))
    mismatch = find_first_mismatch(variant, values, texts)
    losses = tuple(_losses(variant, causes))
    return Report(marks, variant.worksheet.marking, mismatch, diagnosis, variant.points, causes, losses)


def _losses(variant: Variant, causes: Iterable[Cause]) -> Iterator[str]:
    for cause in causes if variant.worksheet.marking == "causes" else ():
        if count := len(cause.others):
            name = prose.misconception_name(variant, cause.misconception) if cause.misconception else ""
            yield variant.wording.say(
                "losses",
                ("misconception-one" if name else "mistake-one")
                if count == 1
                else ("misconception" if name else "mistake"),
                name=name, row=variant.row_name(cause.costs.tensor), count=count,
            )  # fmt: skip


def with_kept_marks(variant: Variant, report: Report, kinds: Mapping[str, str]) -> Report:
    """The report with the kinds that its marks had earlier, by box name, even where today's differ."""
    earlier = {blank: kinds.get(str(blank)) for blank in report.marks}
    earlier_kinds = {blank: kind for blank, name in earlier.items() for kind in MARK_KINDS if name == kind}
    if earlier_kinds == {blank: mark.kind for blank, mark in report.marks.items()}:
        return report
    marks = dict[Blank, Mark]()
    for blank, kind in earlier_kinds.items():
        mark = report.marks[blank]
        other = replace(mark, kind=kind, message=feedback(variant, blank, kind), repeats=None)
        marks[blank] = mark if mark.kind == kind else other
    return Report(marks, report.marking, points=report.points)


def without_help(report: Report) -> Report:
    """The report without the messages of wrong boxes; the score is unchanged."""
    marks = {blank: replace(mark, message="") if mark.kind == "wrong" else mark for blank, mark in report.marks.items()}
    return Report(marks, report.marking, points=report.points)


def _mark(variant: Variant, blank: Blank, text: str, typed: Answer | Unreadable | None) -> Mark:
    if typed is None:
        return Mark("empty", text, None, "")
    if isinstance(typed, Unreadable):
        return Mark("unreadable", text, None, variant.wording.unreadable(typed))
    if _is_right(variant, blank, typed):
        return Mark("right", text, typed.value, "")
    return Mark("wrong", text, typed.value, _message(variant, blank, text, typed))


def _marks_together(
    variant: Variant, row: Row, texts: Mapping[Blank, str], read: Mapping[Blank, Answer | Unreadable | None]
) -> Iterator[tuple[Blank, Mark]]:
    joint = row.asked
    filled = {blank: answer for blank in row.blanks if isinstance(answer := read[blank], Answer)}
    if not isinstance(joint, Joint) or not filled:
        return
    first, is_whole = next(iter(filled)), len(filled) == len(row.blanks)
    if not is_whole:
        message = variant.wording.say("marks", "incomplete")
        for blank in filled:
            yield blank, Mark("unreadable", texts[blank], None, message if blank == first else "")
        return
    kind: MarkKind = "right" if _works(variant, joint, filled) else "wrong"
    for blank, answer in filled.items():
        message = prose.nudge(variant, blank) if kind == "wrong" and blank == first else ""
        yield blank, Mark(kind, texts[blank], answer.value, message)


def _works(variant: Variant, joint: Joint, filled: Mapping[Blank, Answer]) -> bool:
    if joint.works is None:
        in_any_order = permutations(filled.values())
        return any(all(map(partial(_is_right, variant), filled, answers)) for answers in in_any_order)
    return joint.works(tuple(_filling(joint.part(blank.field), answer) for blank, answer in filled.items()))


def _filling(part: JointPart, answer: Answer) -> Filling:
    if part.kind == "word":
        return part.words[answer.value - 1]
    return answer.value if answer.meaning is None else answer.meaning


def _diagnosis_of_choices(problem: Problem, read: Mapping[Blank, Answer | Unreadable | None]) -> Diagnosis | None:
    chosen = {blank: a.value for blank, a in read.items() if blank.field == "choice" and isinstance(a, Answer)}
    return next(filter(None, (diagnose(problem, {blank: number}) for blank, number in chosen.items())), None)


def _message(variant: Variant, blank: Blank, text: str, typed: Answer) -> str:
    asked = variant.table.askable[blank.tensor]
    if isinstance(asked, WrittenPattern):
        explained = diagnose(variant.problem, {blank: typed.value})
        return prose.misconception(variant, explained.key, "nudge") if explained else prose.nudge(variant, blank)
    missed = near_miss(variant, blank, typed, text)
    if missed is None:
        return prose.nudge(variant, blank)
    prefix = decimal_prefix(text)
    message = variant.wording.say(
        "near-misses", missed, text=text.strip(), number=format_number(typed.value), decimal=f"{prefix}B",
        binary=f"{prefix.upper()}iB",
    )  # fmt: skip
    return f"{message} {prose.nudge(variant, blank)}" if missed in ("prefix", "coincidence") else message


def _follow_through_mark(variant: Variant, blank: Blank, wrong: Mark, repeats: Blank | None) -> Mark:
    row = variant.row_name(repeats.tensor) if repeats else ""
    key = "follows" if not repeats else "repeats-beside" if repeats.tensor == blank.tensor else "repeats"
    message = variant.wording.say("marks", key, row=row, credit=_credit(variant))
    return replace(wrong, kind="follows", message=message, repeats=repeats)


def feedback(variant: Variant, blank: Blank, kind: MarkKind) -> str:
    """The message for a kind of mark: the nudge of a wrong box, what a follow-through earns, or ""."""
    if kind == "follows":
        return variant.wording.say("marks", "follows", credit=_credit(variant))
    return prose.nudge(variant, blank) if kind == "wrong" else ""


def _credit(variant: Variant) -> str:
    return variant.wording.say("credit", "full" if variant.worksheet.marking == "causes" else "none")


def find_first_mismatch(variant: Variant, values: Values, texts: Mapping[Blank, str]) -> DimensionMismatch | None:
    """The first mismatch among the typed shapes, in the order of computation; None if everything fits."""
    source_of = typed_source_of(variant.table, values, frozenset(variant.worksheet.rows))
    lengths = {blank: values[source] for blank, source in source_of.items()}
    clashes = mismatches(variant.table, lengths)

    def is_plain(mismatch: DimensionMismatch) -> bool:
        sides = (mismatch.left, mismatch.right)
        columns = {variant.column_of(source_of[blank]) for blank in sides}
        return all(source_of[blank] == blank for blank in sides) or len(columns) == 1 or not variant.has_dimensions

    first = next(filter(is_plain, clashes), next(iter(clashes), None))
    if first is None:
        return None
    left, right = source_of[first.left], source_of[first.right]

    def written(blank: Blank) -> str:
        in_letters = variant.worksheet.in_letters
        text = texts[source_of[blank]].strip()
        return text if in_letters else format_number(lengths[blank])

    # The sentence may only mention adding if the boxes belong to the very matrices that are added.
    adds = "residual" if first.added and left.tensor == first.left.tensor else _adds(variant, first)
    size = "" if is_plain(first) else prose.size_in_words(variant, str(variant.expression(left)))
    message = variant.wording.say(
        "chain",
        "merged" if first.parts else adds or ("one-size" if size else "broadcast" if first.broadcast else "mismatch"),
        size=size,
        **_side_words(variant, "left", left, written(first.left)),
        **_side_words(variant, "right", right, written(first.right)),
        product=" · ".join(map(written, first.parts)),
    )
    return replace(first, left=left, right=right, message=message)


def _adds(variant: Variant, mismatch: DimensionMismatch) -> str:
    made_by, operands = variant.table[mismatch.at].made_by, {mismatch.left.tensor, mismatch.right.tensor}
    if made_by is None or operands != set(made_by.operands) or not operands <= variant.problem.asked:
        return ""
    return made_by.adds


def _side_words(variant: Variant, name: str, blank: Blank, length: str) -> dict[str, str]:
    axis = variant.wording.axes[variant.column_of(blank)]
    template = axis.length_one if length == "1" else axis.length
    return {name: variant.row_name(blank.tensor), f"{name}_length": template.format(length=length)}


# Comparing what was typed with numbers: the key's, and others that it may mean. A count of bytes or operations may be
# rounded, as 13.5 GB is. On a sheet in letters, answers are compared by their values in the model.


def _is_right(variant: Variant, blank: Blank, typed: Answer) -> bool:
    if typed.meaning is None:
        key = variant.answer(blank)
        return typed.value == key or typed.may_be_rounded_from(key)
    return variant.is_equivalent(typed, variant.expression(blank))


def near_miss(variant: Variant, blank: Blank, typed: Answer, text: str) -> NearMiss | None:
    """How a wrong answer narrowly misses its key or may have been misread, or None.

    The caller must have found the answer wrong; this isn't checked.
    """
    if typed.meaning is not None:
        return "coincidence" if typed.value == variant.answer(blank) else None
    key, unit, prefix = variant.answer(blank), box_unit(variant.problem, blank), decimal_prefix(text)
    if prefix and unit == "bytes":
        factor = Fraction(PREFIXES[f"{prefix.upper()}i"], PREFIXES[prefix])
        if abs(typed.value * factor - key) <= typed.margin * factor:
            return "binary"
    digits = str(typed.value).rstrip("0")
    step = 10 ** (len(str(typed.value)) - len(digits))
    if blank.is_count and len(digits) > 1 and 1 < step > abs(typed.value - key):
        return "close-or-rounded" if unit in ("bytes", "operations") else "close"
    return "prefix" if prefix and text.rstrip().endswith(prefix) else None


def _number_meant(variant: Variant, blank: Blank, typed: Answer, *, right: bool) -> int:
    """The number that an answer is compared by: the key of `variant.problem_for_marking` if it is `right`."""
    if right:
        return variant.problem_for_marking.answers[blank]
    if typed.meaning is not None:
        # N/3 may be whole only at the sheet’s own length
        return typed.meaning.size(variant.problem_for_marking.sizes, "up")
    if not typed.margin:
        return typed.value
    predicted = (expected.wrong_answers.get(blank) for expected in expectations(variant.problem))
    close = [number for number in predicted if number is not None and typed.may_be_rounded_from(number)]
    return min(close, key=lambda number: abs(number - typed.value), default=typed.value)
