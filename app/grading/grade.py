"""A Variant and the texts typed into its boxes become a Report; the only blank where answers are marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from app.grading.totals import made_from_typed
from app.misconceptions.catalogue import Diagnosis, diagnose, sentence
from app.shapes.consistency import Values, mismatches, typed_source_of
from app.shapes.table import MATRIX_FIELDS, Blank
from app.sheets.numbers import Unreadable
from app.sheets.worksheet import Typed, Variant, format_number

MarkKind = Literal["right", "follows", "wrong", "unreadable", "empty"]
MARK_KINDS: tuple[MarkKind, ...] = get_args(MarkKind)


class AnswersError(ValueError):
    """Answers that are not for this sheet; one sentence that says what to change."""


@dataclass(frozen=True)
class Mark:
    """What one box got: its kind, the text as typed, the number it was read as, and a sentence that teaches."""

    kind: MarkKind
    text: str
    read_as: int | None
    message: str


@dataclass(frozen=True)
class FirstMismatch:
    """The first link of the chain that does not fit: the matrix whose equation breaks, its two sides, a sentence."""

    at: str
    left: Blank
    right: Blank
    message: str

    def as_json(self) -> dict[str, str]:
        return {"at": self.at, "left": str(self.left), "right": str(self.right), "message": self.message}


@dataclass(frozen=True)
class Report:
    """The marks of a whole sheet, what a box that follows is worth, the first broken link, the diagnosis if any."""

    marks: Mapping[Blank, Mark]
    follow_share: float = 0.5
    first_mismatch: FirstMismatch | None = None
    diagnosis: Diagnosis | None = None

    @property
    def score(self) -> float:
        """The boxes that are right, of `out_of`, and a share of those that follow; whole wherever it can be."""
        score = round(self.right + self.follow_share * self.follows, 6)
        return int(score) if score == int(score) else score

    @property
    def out_of(self) -> int:
        return len(self.marks)

    @property
    def right(self) -> int:
        """How many boxes are right by the key."""
        return self._count("right")

    @property
    def follows(self) -> int:
        """How many boxes are right given earlier answers alone."""
        return self._count("follows")

    @property
    def empty(self) -> int:
        """How many boxes nothing was written into."""
        return self._count("empty")

    @property
    def complete(self) -> bool:
        """Whether every box is right."""
        return self.right == self.out_of

    @property
    def tried(self) -> bool:
        """Whether anything was answered that could be read."""
        return any(mark.read_as is not None for mark in self.marks.values())

    def _count(self, kind: MarkKind) -> int:
        return sum(mark.kind == kind for mark in self.marks.values())

    def as_json(self) -> dict[str, object]:
        """The report as API and terminal print it."""
        marks = {
            str(blank): {"mark": mark.kind, "read_as": mark.read_as, "message": mark.message}
            for blank, mark in self.marks.items()
        }
        first_break = self.first_mismatch.as_json() if self.first_mismatch else None
        return {
            "score": self.score,
            "out_of": self.out_of,
            "marks": marks,
            "first_break": first_break,
            "diagnosis": self.diagnosis.as_json() if self.diagnosis else None,
        }


def grade(variant: Variant, answers: Mapping[str, str]) -> Report:
    """Mark every box of the sheet; answers are texts by blank, such as {'queries.rows': '100'}.

    A box left out counts as empty. Raises AnswersError for a key that is no box of this sheet.
    """
    known = variant.blanks_by_name
    if unknown := sorted(answers.keys() - known.keys()):
        raise AnswersError(f"“{unknown[0][:60]}” is no box of this sheet; its boxes are: {', '.join(sorted(known))}.")
    texts = {blank: answers.get(box, "") for box, blank in known.items()}
    read = {blank: variant.read(text) for blank, text in texts.items()}
    values = {
        variant.in_table_orientation(blank): typed.value for blank, typed in read.items() if isinstance(typed, Typed)
    }
    carried = {variant.in_table_orientation(blank) for blank in following(variant.with_tokens_as_rows, values)}
    marks = {blank: _mark(variant, blank, text, read[blank], blank in carried) for blank, text in texts.items()}
    return Report(
        marks, variant.worksheet.follow_share, find_first_mismatch(variant, values), _diagnosis(variant, values)
    )


def with_kept_marks(variant: Variant, report: Report, kinds: Mapping[str, str]) -> Report:
    """The report with the kinds of mark that its boxes got before, where these are to stand whatever they get now.

    A box that got none has none. Where anything differs, neither a broken link nor a misconception is told.
    """
    kept = {blank: kind for blank in report.marks for kind in MARK_KINDS if kinds.get(str(blank)) == kind}
    if kept == {blank: mark.kind for blank, mark in report.marks.items()}:
        return report
    marks = {blank: _as(variant, blank, report.marks[blank], kind) for blank, kind in kept.items()}
    return Report(marks, report.follow_share)


def _as(variant: Variant, blank: Blank, mark: Mark, kind: MarkKind) -> Mark:
    return mark if mark.kind == kind else replace(mark, kind=kind, message=_said(variant, blank, kind))


def _mark(variant: Variant, blank: Blank, text: str, typed: Typed | Unreadable | None, follows: bool) -> Mark:
    if typed is None:
        return Mark("empty", text, None, "")
    if isinstance(typed, Unreadable):
        return Mark("unreadable", text, None, variant.wording.unreadable(typed))
    kind: MarkKind = "right" if variant.is_right(blank, typed) else "follows" if follows else "wrong"
    return Mark(kind, text, typed.value, _said(variant, blank, kind))


def _said(variant: Variant, blank: Blank, kind: MarkKind) -> str:
    if kind == "follows":
        return variant.wording.say("marks", "follows")
    return nudge(variant, blank) if kind == "wrong" else ""


def nudge(variant: Variant, blank: Blank) -> str:
    """What is said beside a wrong box: a question that points, and no number of the sheet."""
    if variant.worksheet.tokens_are == "columns":
        return variant.wording.nudge_turned(blank)
    return variant.wording.nudge(variant.worksheet.topic, blank)


def _diagnosis(variant: Variant, values: Values) -> Diagnosis | None:
    found = diagnose(variant.with_tokens_as_rows, values)
    if found is None:
        return None
    message = sentence(variant, found.key, "nudge")
    return replace(found, message=message, explains=tuple(map(variant.in_table_orientation, found.explains)))


def find_first_mismatch(variant: Variant, values: Values) -> FirstMismatch | None:
    """The first gap in order of computation, from what was typed alone: the key is never asked.

    The values stand by the table's blanks, tokens as rows; the break names the sheet's.
    """
    typed = typed_source_of(variant.table, values, frozenset(variant.worksheet.rows))
    for gap in mismatches(variant.table, {blank: values[origin] for blank, origin in typed.items()}):
        left, right = (
            variant.in_table_orientation(typed[gap.first[0]]),
            variant.in_table_orientation(typed[gap.second[0]]),
        )
        message = variant.wording.say(
            "chain",
            "added" if gap.added and left.tensor == gap.first[0].tensor else "mismatch",
            **_side(variant, "left", left, gap.first[1]),
            **_side(variant, "right", right, gap.second[1]),
        )
        return FirstMismatch(gap.result, left, right, message)
    return None


def _side(variant: Variant, name: str, blank: Blank, value: int) -> dict[str, str]:
    words = variant.wording.sections["rows"][variant.worksheet.topic][blank.tensor]
    count = variant.wording.say("lengths" if value > 1 else "length-one", blank.field, length=format_number(value))
    return {name: words["name"], f"{name}_length": count}


def following(variant: Variant, values: Values) -> set[Blank]:
    """The boxes that are wrong by the key and right given the student's own earlier answers.

    A number that is the only one with which anything was right, or that stands on a sheet where nothing is right,
    earns nothing by standing in many boxes.
    """
    wrong = {blank: value for blank, value in values.items() if value != variant.key[blank]}
    right = {value for blank, value in values.items() if blank not in wrong}
    carried = {
        *_carried_along(variant.upstream_blanks, values, wrong),
        *_multiplied(values, wrong),
        *_added_up(variant, values, wrong),
    }
    return {blank for blank in carried if right - {wrong[blank]}}


def _carried_along(made_from: Mapping[Blank, frozenset[Blank]], values: Values, wrong: Values) -> Iterator[Blank]:
    """Sides with the wrong number of a side they are made from, or of a first mistake made from the same right side.

    The second keeps a repaired answer from costing marks: with an input of the right length, queries and keys of one
    wrong length are one mistake made once, as they were before the input was put right.
    """
    first = list[Blank]()  # wrong, and following from nothing
    for blank, sources in made_from.items():
        if (value := wrong.get(blank)) is None:
            continue
        right = {source for source in sources if source in values and source not in wrong}
        siblings = (other for other in first if made_from[other] & right)
        if any(wrong.get(other) == value for other in (*sources, *siblings)):
            yield blank
        else:
            first.append(blank)


def _multiplied(values: Values, wrong: Values) -> Iterator[Blank]:
    """Counts that are the product of the rows and columns as typed."""
    for blank in wrong:
        sides = [Blank(blank.tensor, axis) for axis in MATRIX_FIELDS]
        known = [values[side] for side in sides if side in values]
        if blank.field == "count" and len(known) == 2 and values[blank] == known[0] * known[1]:
            yield blank


def _added_up(variant: Variant, values: Values, wrong: Values) -> Iterator[Blank]:
    """Totals of their parts as typed."""
    for blank, value in wrong.items():
        if value == made_from_typed(variant.table, variant.sizes, variant.worksheet.rows, values, blank):
            yield blank
