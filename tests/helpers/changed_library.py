"""Libraries as they may be after a restart: with everything gone, or everything changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from app.sheets.library import Library
from app.sheets.wording import Wording

Change = Callable[[Library], Library]


def without_anything(library: Library) -> Library:
    """A library without worksheets and models."""
    return Library({}, {}, library.wording)


def with_everything_changed(library: Library) -> Library:
    """A library whose worksheets are longer with fewer rows, whose models all differ, and whose sheets say more."""
    sheets = {
        key: replace(sheet, title=f"New {sheet.title}", tokens=sheet.tokens + 1, rows=sheet.rows[:2], models=())
        for key, sheet in library.worksheets.items()
    }
    other = library.models["gpt2"]
    models = {key: replace(other, key=key, name=f"New {model.name}") for key, model in library.models.items()}
    sentences = library.wording.model_dump(by_alias=True)
    wording = Wording.model_validate(longer(sentences))
    return Library(sheets, models, wording)


def longer(sentences: Any) -> Any:
    """A section with one more word in every sentence; lists stay, since they hold keys."""
    if isinstance(sentences, Mapping):
        return {key: longer(value) for key, value in sentences.items()}
    return f"{sentences} New." if isinstance(sentences, str) else sentences
