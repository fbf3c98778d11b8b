"""The letters that name one sheet on paper: KTR-FB-CD opens exactly the sheet they were printed on.

The letters can't be mistaken for each other and spell no words. Three are for the worksheet and some for the tokens.
More follow a Y for other decoder tokens than the worksheet's, two Y for some of its rows only, three Y for another bug,
and an X for another model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

CODE_LETTERS = "BCDFGHJKLMNPQRSTVWZ"
_LETTER = f"[{CODE_LETTERS}]"
_NUMBER = f"({_LETTER}{{2,6}})"
BUG_LETTERS = 3
_CODE = re.compile(
    f"({_LETTER}{{3}}){_NUMBER}(?:Y{_NUMBER})?(?:YY{_NUMBER})?(?:YYY({_LETTER}{{{BUG_LETTERS}}}))?"
    f"(?:X({_LETTER}{{5}}))?({_LETTER}{{2}})"
)
_IMPORTED_KEY = re.compile("cfg-([0-9a-f]{5})[0-9a-f]+")


@dataclass(frozen=True)
class Code:
    """A code taken apart: short hashes of worksheet, bug and model, tokens, decoder tokens, and the check letters.

    `decoder_tokens`, `bug` and `model` are None if they are the worksheet's.
    """

    worksheet: str
    tokens: int
    decoder_tokens: int | None
    rows: int | None
    bug: str | None
    model: str | None
    check: str


def read_code(text: str) -> Code | None:
    """A typed code taken apart, ignoring case, hyphens and spaces; None if it doesn't have a code's form.

    >>> read_code("vtm zn bw") == read_code("VTM-ZN-BW") != None
    True
    >>> read_code("a hand")
    """
    letters = re.sub(r"[\s‐-–-]+", "", text[:60]).upper()
    if not (match := _CODE.fullmatch(letters)):
        return None
    worksheet, tokens, decoder_tokens, rows, bug, model, check = match.groups()
    decoder_tokens, rows = (None if part is None else _number_of(part) for part in (decoder_tokens, rows))
    return Code(worksheet, _number_of(tokens), decoder_tokens, rows, bug, model, check)


def write_code(
    worksheet: str,
    rows: int | None,
    model: str,
    tokens: int,
    decoder_tokens: int | None,
    key: Mapping[str, int],
    *,
    is_default: bool,
    dealt_bug: str = "",
) -> str:
    """The code of a sheet, such as KTR-FB-CD, from its worksheet's and model's keys, its tokens and its answer key."""
    parts = [short_hash(worksheet, 3), _letters_of(tokens, 2)]
    if decoder_tokens is not None:
        parts.append(f"Y{_letters_of(decoder_tokens, 2)}")
    if rows is not None:
        parts.append(f"YY{_letters_of(rows, 2)}")
    if dealt_bug:
        parts.append(f"YYY{short_hash(dealt_bug, BUG_LETTERS)}")
    if not is_default:
        parts.append(f"X{model_letters(model)}")
    return "-".join([*parts, check_letters(worksheet, model, tokens, decoder_tokens, key)])


def check_letters(worksheet: str, model: str, tokens: int, decoder_tokens: int | None, key: Mapping[str, int]) -> str:
    """Two letters that depend on worksheet, model, tokens, decoder tokens and every number of the answer key."""
    answers = (f"{box}={number}" for box, number in key.items())
    return short_hash("/".join((worksheet, model, str(tokens), str(decoder_tokens), *answers)), 2)


def short_hash(text: str, length: int) -> str:
    """`length` letters, always the same for the same text; different texts may share them."""
    number = int.from_bytes(sha256(text.encode()).digest()[:8])
    return _letters_of(number % len(CODE_LETTERS) ** length, length)


def model_letters(key: str) -> str:
    """Five letters for a model's key; an imported model's can be turned back into the key's beginning."""
    imported = _IMPORTED_KEY.fullmatch(key)
    return _letters_of(int(imported[1], 16), 5) if imported else short_hash(key, 5)


def imported_key_prefix(letters: str) -> str:
    """The beginning of an imported model's key, such as 'cfg-0a1b2', from its five letters in a code."""
    return f"cfg-{_number_of(letters):05x}"


def _letters_of(number: int, min_length: int) -> str:
    digits = ""
    while number or len(digits) < min_length:
        number, digit = divmod(number, len(CODE_LETTERS))
        digits = CODE_LETTERS[digit] + digits
    return digits


def _number_of(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * len(CODE_LETTERS) + CODE_LETTERS.index(letter)
    return number
