"""What a class is shown of a misconception: another model than its sheet's."""

from __future__ import annotations

from typing import Any

import pytest

from app.classes.frozen.misconception_words import MisconceptionWords
from app.classes.illustrations import Illustrations
from app.misconceptions.predictions import expectations


@pytest.mark.parametrize("sheet", ["llama-7b", "layer-mistral-7b", "cross-bart-base", "costs-llama-7b", "bug-layer"])
def test_a_misconception_is_drawn_with_a_model_that_no_student_has(library: Any, sheet: str) -> None:
    variant, drawn = library.variant(sheet), Illustrations()
    words = MisconceptionWords(library.wording, lambda _key: None)
    for key in [each.misconception for each in expectations(variant.problem)]:
        shown = drawn.get(library, words, sheet, variant, key)
        assert shown.question
        assert shown.message
        assert shown.example is None or shown.example.model.key not in (variant.model.key, *variant.worksheet.models)
        assert len(shown.figures) == (2 if shown.example else 0)
