"""Translation of the interface: `gettext` and `ngettext` return a sentence in the language the app speaks.

Every package may import this module; it imports only the standard library. Sentences on sheets are not here but in
worksheets/wording/. docs/translation.md says how a language is added.

    from app.translation import gettext as _

    raise PrintError(_("{count} sheets are too many: print at most 300.").format(count=count))
"""

from __future__ import annotations

import gettext as catalogues
from collections.abc import Iterable
from functools import reduce
from pathlib import Path

LANGUAGE = "en"  # of pages, messages and sheets alike; English is the only one
DOMAIN = "attention_shapes"
LOCALES = Path(__file__).resolve().parent.parent / "locales"

_catalogue = catalogues.translation(DOMAIN, LOCALES, languages=[LANGUAGE], fallback=True)


def gettext(message: str) -> str:
    """A sentence in LANGUAGE, or as it is where no translation is known.

    `message` is a constant, so that it can be extracted; what varies is a named placeholder, filled afterwards with
    `.format(name=...)`.
    """
    return _catalogue.gettext(message)


def N_(message: str) -> str:
    """The sentence itself, marked to be translated by `gettext` where it is shown: for tables made at import."""
    return message


def ngettext(singular: str, plural: str, number: int) -> str:
    """The form of a sentence that goes with a number.

    ngettext("{count} byte", "{count} bytes", 1)    # "{count} byte"
    """
    return _catalogue.ngettext(singular, plural, number)


def alternatives(items: Iterable[str]) -> str:
    """Items one of which is meant, as a phrase; empty for none.

    alternatives(["d_model", "H·d_h", "V"])    # "d_model or H·d_h or V"
    """
    joined = gettext("{first} or {second}")
    return reduce(lambda first, second: joined.format(first=first, second=second) if first else second, items, "")
