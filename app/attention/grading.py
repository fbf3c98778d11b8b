"""A Variant and the texts typed into its boxes become a Report; the only place where answers are marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .answers import Unreadable
from .tensors import Place
from .worksheet import Variant

Kind = Literal["right", "wrong", "unreadable", "empty"]


class AnswersError(ValueError):
    """Answers that are not for this sheet; one sentence that says what to change."""


@dataclass(frozen=True)
class Mark:
    """What one box got: its kind, the text as typed, the number it was read as, and a sentence that teaches."""

    kind: Kind
    text: str
    read_as: int | None
    message: str


@dataclass(frozen=True)
class Report:
    """The marks of a whole sheet. `score` counts the boxes that are right, of `out_of` boxes."""

    marks: Mapping[Place, Mark]

    @property
    def score(self) -> int:
        return sum(mark.kind == "right" for mark in self.marks.values())

    @property
    def out_of(self) -> int:
        return len(self.marks)

    @property
    def empty(self) -> int:
        """How many boxes nothing was written into."""
        return sum(mark.kind == "empty" for mark in self.marks.values())

    @property
    def tried(self) -> bool:
        """Whether anything was answered that could be read."""
        return any(mark.read_as is not None for mark in self.marks.values())

    def as_json(self) -> dict[str, object]:
        """The report as API and terminal print it."""
        marks = {
            str(place): {"mark": mark.kind, "read_as": mark.read_as, "message": mark.message}
            for place, mark in self.marks.items()
        }
        return {"score": self.score, "out_of": self.out_of, "marks": marks, "diagnosis": None}


def grade(variant: Variant, answers: Mapping[str, str]) -> Report:
    """Mark every box of the sheet; answers are texts by place, such as {'queries.rows': '100'}.

    A box left out counts as empty. Raises AnswersError for a key that is no box of this sheet.
    """
    known = {str(place) for place in variant.blanks}
    if unknown := sorted(set(answers) - known):
        raise AnswersError(f"“{unknown[0][:60]}” is no box of this sheet; its boxes are: {', '.join(sorted(known))}.")
    return Report({place: _mark(variant, place, answers.get(str(place), "")) for place in variant.blanks})


def _mark(variant: Variant, place: Place, text: str) -> Mark:
    typed = variant.read(text)
    if typed is None:
        return Mark("empty", text, None, "")
    if isinstance(typed, Unreadable):
        return Mark("unreadable", text, None, variant.wording.unreadable(typed))
    if variant.is_right(place, typed):
        return Mark("right", text, typed.value, "")
    return Mark("wrong", text, typed.value, _nudge(variant, place))


def _nudge(variant: Variant, place: Place) -> str:
    if variant.worksheet.tokens_are == "columns":
        return variant.wording.nudge_turned(place)
    return variant.wording.nudge(variant.worksheet.topic, place)
