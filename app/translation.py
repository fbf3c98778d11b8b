"""Translation of everything but sheets: `gettext` and `ngettext` give a sentence in the language that is spoken now.
A request is answered in the language that its browser asks for (app/web/shared/request_guard.py), and so is the
work that it starts in other threads and processes. Whatever no request has started speaks English. Every package
may import this module; it imports only the standard library.
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
    """The languages there are, such as "en" and "de"; English comes first."""
    return tuple(catalogues_by_language())


def language() -> str:
    """The language that is spoken now: that of the request, and English outside of one."""
    return _language.get()


def speak(language: str) -> None:
    """Speak a language from now on, in this request, thread or task."""
    _language.set(language)


def in_language(language: str, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call `work` while a language is spoken, and return its result; afterwards, also if it raises, the one before
    is spoken again.
    """
    token = _language.set(language)
    try:
        return work(*arguments, **options)
    finally:
        _language.reset(token)


def preferred_language(accepted: str) -> str:
    """The language that a header Accept-Language prefers of those there are; English where it names none of them,
    even if it refuses English.
    """
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
    """A sentence in the language that is spoken now, or as it is where no translation is known."""
    return _catalogue().gettext(message)


def ngettext(singular: str, plural: str, number: int) -> str:
    """The form of a sentence that goes with a number."""
    return _catalogue().ngettext(singular, plural, number)


def N_(message: str) -> str:
    """A message in a constant of a module, as it is: marked to be extracted, and translated by gettext when it is
    said.
    """
    return message


def alternatives(items: Iterable[str]) -> str:
    """Items one of which is meant, as a phrase; empty for none."""
    joined = gettext("{first} or {second}")
    return reduce(lambda first, second: joined.format(first=first, second=second) if first else second, items, "")
