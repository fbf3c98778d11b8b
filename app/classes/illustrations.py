"""Misconceptions as they are explained to a class: drawn with another model than the sheet's, so no answer is shown."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from app.classes.frozen.misconception_words import MisconceptionWords
from app.classes.student_sheet import models_of
from app.figures.parts import Figure
from app.grading.explain import explain_misconception
from app.misconceptions.predictions import expectations
from app.sheets.library import Library
from app.sheets.siblings import sibling
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.store import Content

REMEMBERED = 200


@dataclass(frozen=True)
class Illustration:
    """A misconception in words and, if another model shows it, drawn with that model's sheet `example`."""

    key: str
    name: str
    question: str
    message: str
    example: Variant | None
    figures: tuple[Figure, ...]  # with the misconception, and right; or none


class Illustrations:
    """Explains misconceptions, and remembers the examples: finding another model takes a tenth of a second."""

    def __init__(self) -> None:
        self._examples: OrderedDict[tuple[Wording, str, frozenset[str]], Variant | None] = OrderedDict()

    def get(
        self, library: Library, words: MisconceptionWords, content: Content, sheet_key: str, variant: Variant, key: str
    ) -> Illustration:
        """A misconception on one sheet of an activity, which is the class's `variant`."""
        models = frozenset(model for item in content.items for model in models_of(item))
        place = library.wording, sheet_key, models
        if place not in self._examples:
            self._examples[place] = _example(library, variant, models)
            while len(self._examples) > REMEMBERED:
                self._examples.popitem(last=False)
        example = self._examples.get(place)
        figures = _figures(example, key) if example else ()
        shown = example if figures else None
        return Illustration(key, words.name(key), words.question(key), words.explanation(key), shown, figures)


def _example(library: Library, variant: Variant, models: frozenset[str]) -> Variant | None:
    """A sheet with the same rows about a model that no student has on any sheet of the activity."""
    if not variant.has_topic:
        return None
    theirs = {variant.model.key, variant.worksheet.model, *variant.worksheet.models, *models}
    others = {name: model for name, model in library.models.items() if name not in theirs}
    example = sibling(variant, others, 0, "numbers")
    authors = variant.worksheet.misconceptions  # whose predictions are formulas
    return example and replace(example, worksheet=replace(example.worksheet, misconceptions=authors))


def _figures(example: Variant, key: str) -> tuple[Figure, ...]:
    if not any(entry.misconception == key for entry in expectations(example.problem)):
        return ()
    pairs = explain_misconception(example, key).figures
    return pairs[0] if pairs else ()
