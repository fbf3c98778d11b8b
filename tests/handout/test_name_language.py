"""The language that a name on a sheet is set in."""

from __future__ import annotations

import pytest

from app.handout.name_language import language_of


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("Ada", "en"),
        ("Ελένη", "el"),
        ("Дмитрий", "ru"),
        ("王小明", "zh"),
        ("田中さくら", "ja"),
        ("김철수", "ko"),
        ("محمد", "ar"),
        ("כהן", "he"),
    ],
)
def test_a_name_is_set_in_its_language(name: str, language: str) -> None:
    assert language_of(name)[0] == language
