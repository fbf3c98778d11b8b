"""The letters that name one sheet on paper: KTR-FB-CD opens exactly the sheet they were printed on.

The letters cannot be mistaken for each other and spell no words. Three stand for the worksheet and some for the
tokens; more follow a Y where the decoder's tokens are not the worksheet's own, and an X where the model is not. The
last two check the others against every number of the sheet, so that a worksheet that was changed since refuses old
codes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a Variant knows its code, so worksheet.py imports this module
    from app.sheets.worksheet import Variant

LETTERS = "BCDFGHJKLMNPQRSTVWZ"
_ONE = f"[{LETTERS}]"
_CODE = re.compile(f"({_ONE}{{3}})({_ONE}{{2,6}})(?:Y({_ONE}{{2,6}}))?(?:X({_ONE}{{5}}))?({_ONE}{{2}})")
_IMPORTED = re.compile("cfg-([0-9a-f]{5})[0-9a-f]+")


@dataclass(frozen=True)
class Code:
    """A code taken apart: marks of its worksheet and model, tokens, decoder tokens; None for the worksheet's own."""

    worksheet: str
    tokens: int
    decoder_tokens: int | None
    model: str | None
    check: str


def read_code(text: str) -> Code | None:
    """A code as typed, in any case, with its hyphens or without; None for what is none.

    >>> read_code("vtm zn bw") == read_code("VTM-ZN-BW") != None
    True
    >>> read_code("a hand")
    """
    letters = re.sub(r"[\s‐-–-]+", "", text[:60]).upper()
    if not (found := _CODE.fullmatch(letters)):
        return None
    worksheet, tokens, decoded, model, check = found.groups()
    return Code(worksheet, _number(tokens), None if decoded is None else _number(decoded), model, check)


def write_code(variant: Variant) -> str:
    """The letters that name this sheet."""
    sheet = variant.worksheet
    parts = [mark(sheet.key, 3), _letters(variant.tokens, 2)]
    if variant.decoder_tokens is not None:
        parts.append(f"Y{_letters(variant.decoder_tokens, 2)}")
    if variant.model.key != sheet.model:
        parts.append(f"X{model_mark(variant.model.key)}")
    return "-".join([*parts, check_letters(variant)])


def check_letters(variant: Variant) -> str:
    """Two letters that depend on every number of the sheet."""
    sizes = (variant.worksheet.key, variant.model.key, variant.tokens, variant.decoder_tokens)
    answers = (f"{blank}={size}" for blank, size in variant.key.items())
    return mark("/".join((*map(str, sizes), *answers)), 2)


def mark(key: str, length: int) -> str:
    """A few letters that stand for a key; two keys may share them, which the check letters tell."""
    return _letters(int.from_bytes(sha256(key.encode()).digest()[:8]) % len(LETTERS) ** length, length)


def model_mark(key: str) -> str:
    """Five letters for a model; for an imported one those of its key's beginning, by which it can be looked up."""
    imported = _IMPORTED.fullmatch(key)
    return _letters(int(imported[1], 16), 5) if imported else mark(key, 5)


def imported_prefix(letters: str) -> str:
    """How the key of an imported model begins that has these five letters."""
    return f"cfg-{_number(letters):05x}"


def _letters(number: int, least: int) -> str:
    digits = ""
    while number or len(digits) < least:
        number, rest = divmod(number, len(LETTERS))
        digits = LETTERS[rest] + digits
    return digits


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * len(LETTERS) + LETTERS.index(letter)
    return number
