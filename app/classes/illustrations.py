"""Misconceptions as they are explained to a class: drawn with another model than the sheet's, so no answer is shown."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from app.classes.frozen.misconception_words import MisconceptionWords
from app.figures.parts import Figure
from app.grading.explain import explain_misconception
from app.misconceptions.predictions import expectations
from app.sheets.library import Library
from app.sheets.siblings import sibling
from app.sheets.variant import Variant
from app.sheets.wording import Wording

REMEMBERED = 200
EXAMPLES_TRIED = 3  # until one is found on which the misconception leads to a wrong answer

Drawing = tuple[Variant, tuple[Figure, Figure]]  # with the misconception, and right


@dataclass(frozen=True)
class Illustration:
    """A misconception in words and, if another model shows it, drawn with that model's sheet `example`."""

    key: str
    name: str
    question: str
    message: str
    example: Variant | None
    figures: tuple[Figure, ...]  # two, or none


class Illustrations:
    """Draws misconceptions, and remembers the drawings: finding another model takes a tenth of a second."""

    def __init__(self) -> None:
        self._drawings: OrderedDict[tuple[Wording, str, str], Drawing | None] = OrderedDict()

    def get(
        self, library: Library, words: MisconceptionWords, sheet_key: str, variant: Variant, key: str
    ) -> Illustration:
        """A misconception on the sheet `variant`, whose drawing is remembered under `sheet_key`."""
        place = library.wording, sheet_key, key
        if place not in self._drawings:
            self._drawings[place] = _drawing(library, variant, key)
            while len(self._drawings) > REMEMBERED:
                self._drawings.popitem(last=False)
        example, figures = self._drawings.get(place) or (None, ())
        return Illustration(key, words.name(key), words.question(key), words.explanation(key), example, figures)


def _drawing(library: Library, variant: Variant, key: str) -> Drawing | None:
    """The first figure that the misconception changes, for a model that no student has on this sheet."""
    if not variant.has_topic or not _shows(variant, key):
        return None
    theirs = {variant.model.key, variant.worksheet.model, *variant.worksheet.models}
    others = {name: model for name, model in library.models.items() if name not in theirs}
    for seed in range(EXAMPLES_TRIED):
        example = sibling(variant, others, seed, "numbers")
        if example and _shows(example, key):
            figures = explain_misconception(example, key).figures
            if figures:
                return example, figures[0]
    return None


def _shows(variant: Variant, key: str) -> bool:
    return any(entry.misconception == key for entry in expectations(variant.problem))
