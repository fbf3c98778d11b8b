"""What a class is shown of a misconception: another model than its sheet's."""

from __future__ import annotations

from typing import Any

import pytest

from app.classes.frozen.misconception_words import MisconceptionWords
from app.classes.illustrations import Illustrations
from app.classes.student_sheet import ChosenWorksheet, freeze
from app.misconceptions.predictions import expectations


@pytest.mark.parametrize("sheet", ["llama-7b", "layer-mistral-7b", "cross-bart-base", "costs-llama-7b", "bug-layer"])
def test_a_misconception_is_drawn_with_a_model_that_no_student_has(library: Any, sheet: str) -> None:
    variant, drawn, content = library.variant(sheet), Illustrations(), freeze(library, (sheet,), None)
    words = MisconceptionWords(library.wording, lambda _key: None)
    for key in [each.misconception for each in expectations(variant.problem)]:
        shown = drawn.get(library, words, content, sheet, variant, key)
        assert shown.question
        assert shown.message
        assert shown.example is None or shown.example.model.key not in (variant.model.key, *variant.worksheet.models)
        assert len(shown.figures) == (2 if shown.example else 0)


def test_it_is_not_drawn_with_the_model_of_another_sheet_of_the_activity(library: Any) -> None:
    variant, drawn = library.variant("llama-7b"), Illustrations()
    words = MisconceptionWords(library.wording, lambda _key: None)
    key = "head-as-wide-as-model"
    alone = drawn.get(library, words, freeze(library, ("llama-7b",), None), "", variant, key).example
    assert alone
    both = freeze(library, ("llama-7b", ChosenWorksheet("llama-7b", alone.model.key)), None)
    beside = drawn.get(library, words, both, "", variant, key).example
    assert beside
    assert beside.model.key not in ("llama-7b", alone.model.key)
