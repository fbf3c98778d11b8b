"""Translation of everything but sheets: `gettext` and `ngettext` give a sentence in the current language.

A request is answered in its browser's language (app/web/shared/request_guard.py), and so is the work that it starts in
other threads and processes. Everything else is in English. Every package may import this module; it imports only the
standard library.
"""

from __future__ import annotations

import gettext as catalogues
import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import cache, reduce
from pathlib import Path
from typing import Any, TypeVar

ENGLISH = "en"
DOMAIN = "attention_shapes"
LOCALES = Path(__file__).resolve().parent.parent / "locales"

T = TypeVar("T")

_language: ContextVar[str] = ContextVar("language", default=ENGLISH)


@cache
def catalogues_by_language() -> Mapping[str, catalogues.NullTranslations]:
    """The catalogue of each language: empty for English, then the compiled ones in LOCALES by name."""
    names = sorted(file.parent.parent.name for file in LOCALES.glob(f"*/LC_MESSAGES/{DOMAIN}.mo"))
    compiled = {name: catalogues.translation(DOMAIN, LOCALES, [name]) for name in names}
    return {ENGLISH: catalogues.NullTranslations(), **compiled}


def languages() -> tuple[str, ...]:
    """The available languages, such as "en" and "de"; English comes first."""
    return tuple(catalogues_by_language())


def language() -> str:
    """The language set for this request, thread or task; English if none is set."""
    return _language.get()


def speak(language: str) -> None:
    """Switch to a language from now on, in this request, thread or task."""
    _language.set(language)


def in_language(language: str, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call `work` in a language, return its result, and restore the earlier language, even if it raises."""
    token = _language.set(language)
    try:
        return work(*arguments, **options)
    finally:
        _language.reset(token)


def preferred_language(accepted: str) -> str:
    """The available language that an Accept-Language header prefers; English if it names none of them."""
    if len(languages()) == 1:
        return ENGLISH
    weights = dict[str, float]()
    for tag, weight in re.findall(r"([A-Za-z]+)[\w-]*\s*(?:;\s*q=([01](?:\.\d*)?))?", accepted):
        weights.setdefault(tag.lower(), float(weight or 1))
    wanted = [name for name in weights if name in languages() and weights[name]]
    return max(wanted, key=weights.__getitem__, default=ENGLISH)


def _catalogue() -> catalogues.NullTranslations:
    return catalogues_by_language().get(_language.get()) or catalogues_by_language()[ENGLISH]


def gettext(message: str) -> str:
    """A sentence in the current language, or as it is without a translation."""
    return _catalogue().gettext(message)


def ngettext(singular: str, plural: str, number: int) -> str:
    """The form of a sentence that goes with a number."""
    return _catalogue().ngettext(singular, plural, number)


def N_(message: str) -> str:
    """A message in a module's constant, unchanged: marked for extraction, and translated by gettext when shown."""
    return message


def alternatives(items: Iterable[str]) -> str:
    """Items joined as alternatives: "A or B"; empty for none."""
    joined = gettext("{first} or {second}")
    return reduce(lambda first, second: joined.format(first=first, second=second) if first else second, items, "")
