"""Finds models and model types by a name, a type, a class or a family, and says which sheets a type gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture
from app.models.recognition import known_types, text_type, why_refused
from app.sheets.worksheet import Model
from app.topics.registry import TOPICS
from app.topics.requirements import unmet

Sheets = Literal["both", "attention", "counts", "none", "depends", "text-part", "refused"]
MAX_FOUND = 30  # of models, of imported models and of types
_OF_ATTENTION = frozenset({"head", "softmax", "layer"})
_FAMILY_NAME = re.compile(r"[a-z]{3,}")
_MIN_ALIKE = 3  # letters
_A_FEW_TOKENS = 16


@dataclass(frozen=True)
class TypeLine:
    """A model type: its classes in transformers, the sheets that a config of it gets, and why not others.

    `text_type` is the type of a multimodal file's text part, if it is known.
    """

    model_type: str
    classes: tuple[str, ...]
    sheets: Sheets
    problem: str = ""
    text_type: str = ""


@dataclass(frozen=True)
class FoundFamily:
    """The models and types that were found whose types begin with the same word."""

    name: str
    models: list[Model]
    types: list[TypeLine]


@dataclass(frozen=True)
class Found:
    """What a search found. `alike` is set if nothing has the whole text in its name, but types are its beginning."""

    families: list[FoundFamily]
    imported: list[tuple[str, str]]  # key and name
    alike: bool
    more: int


def find_models(shipped: Iterable[Model], imported: list[tuple[str, str]], search: str) -> Found:
    """Models and model types by a name, a type, a class or a family, in any spelling: "GPT 2", "gpt2", "GPT2LMHead"."""
    words, types = [letters for word in search.split() if (letters := _letters(word))], known_types()
    models = [
        model
        for model in shipped
        if _contains((model.name, model.architecture.family, model.architecture.model_class), words)
    ]
    names = [name for name, classes in types.items() if _contains((name, *classes), words)]
    alike = not (models or names or imported)
    if alike:
        names = _types_alike(search, types)
    names.sort(key=lambda name: (not _letters(name).startswith(words[0] if words else ""), name.lower()))
    lines = [_type_line(name, types[name]) for name in names[:MAX_FOUND]]
    return Found(_by_family(models, lines), imported, alike and bool(names), max(len(names) - MAX_FOUND, 0))


def _types_alike(search: str, types: Iterable[str]) -> list[str]:
    # A model's name often begins with its type: "GLM-4.5" is found under glm4, where glm4_moe is too.
    name = _letters(search.rpartition("/")[2])
    letters = {model_type: _letters(model_type) for model_type in types}
    starts = [start for start in letters.values() if len(start) >= _MIN_ALIKE and name.startswith(start)]
    longest = max(starts, key=len, default=None)
    return [model_type for model_type, start in letters.items() if longest and start.startswith(longest)]


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _contains(names: Iterable[str], words: Sequence[str]) -> bool:
    text = " ".join(map(_letters, names))
    return bool(words) and all(word in text for word in words)


def _by_family(models: Iterable[Model], types: Iterable[TypeLine]) -> list[FoundFamily]:
    found = [*((model.architecture.family, model) for model in models), *((line.model_type, line) for line in types)]
    in_order = sorted(found, key=lambda each: (_family_name(each[0]), each[0].lower()))
    families = list[FoundFamily]()
    for name, group in groupby(in_order, key=lambda each: _family_name(each[0])):
        members = [member for _model_type, member in group]
        of_types = [member for member in members if isinstance(member, TypeLine)]
        families.append(FoundFamily(name, [member for member in members if isinstance(member, Model)], of_types))
    return families


def _family_name(model_type: str) -> str:
    start = _FAMILY_NAME.match(model_type.lower())
    return start[0] if start else model_type


def _type_line(model_type: str, classes: tuple[str, ...]) -> TypeLine:
    """What a config of a type gets, tried with the sizes that the type has by default."""
    of_text = text_type(model_type)
    is_own_text_type = of_text == ""
    if not is_own_text_type and (problem := why_refused(of_text or model_type)):
        return TypeLine(model_type, classes, "refused", problem)
    if of_text is not None:
        return TypeLine(model_type, classes, "text-part", text_type=of_text)
    try:
        architecture = build_architecture({"model_type": model_type}, model_type)
    except ConfigError:  # a size that a config must state
        return TypeLine(model_type, classes, "depends")
    has_attention, has_counts = (
        any(
            unmet(topic.requirements, architecture, _A_FEW_TOKENS) is None
            for topic in TOPICS.values()
            if (topic.subject in _OF_ATTENTION) == about_attention
        )
        for about_attention in (True, False)
    )
    if has_attention and has_counts:
        return TypeLine(model_type, classes, "both")
    if has_attention:
        return TypeLine(model_type, classes, "attention", architecture.layer_problem)
    return TypeLine(model_type, classes, "counts" if has_counts else "none", architecture.attention_problem)
