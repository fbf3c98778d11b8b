"""Libraries as they may be after a restart: with everything gone, or everything changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from app.sheets.library import Library
from app.sheets.wording import Wording

Change = Callable[[Library], Library]
# What a sheet says; sentences about drawings, marks and misconceptions are the app's.
OF_ALL = ("description", "assumptions")
OF_SHEETS = ("answers", "footnotes", "inventory", "layer-names")
OF_TOPICS = ("title", "task", "description", "assumptions", "rows", "steps", "nudges")


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
    topics = [(topic, OF_TOPICS) for topic in sentences["topics"].values()]
    for part, keys in ((sentences, OF_ALL), (sentences["sheets"], OF_SHEETS), *topics):
        part |= {key: longer(part[key]) for key in keys}
    wording = Wording.model_validate(sentences)
    return Library(sheets, models, wording)


def without_topic(library: Library, topic: str) -> Library:
    """A library without a topic's worksheets and sentences."""
    sheets = {key: sheet for key, sheet in library.worksheets.items() if sheet.topic != topic}
    topics = {key: words for key, words in library.wording.topics.items() if key != topic}
    return Library(sheets, library.models, library.wording.model_copy(update={"topics": topics}))


def longer(sentences: Any) -> Any:
    """A section with one more word in every sentence, but not in its conditions."""
    if isinstance(sentences, Mapping):
        kept = ("when", "states", "aside")
        return {key: value if key in kept else longer(value) for key, value in sentences.items()}
    if isinstance(sentences, list | tuple):
        return [longer(each) for each in sentences]
    return f"{sentences} New." if isinstance(sentences, str) else sentences
