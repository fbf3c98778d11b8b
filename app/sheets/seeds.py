"""Which sizes a seed gives a worksheet.

A seed is turned into tokens, and into a model where the worksheet lists several, until the catalogue of misconceptions
says that the sheet hides no more than its model must hide whatever the tokens: numbers are refused by filling the
sheet in as each misconception would. The draws come from SHA-256 alone, so that a seed gives the same sheet on every
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from app.misconceptions.catalogue import cannot_tell_apart
from app.sheets.worksheet import Row, Variant

TOKENS = range(12, 200)  # two or three digits: short to write, and more than any small count of heads
TRIES = 64
LARGEST_SEED = 2**63 - 1

Alike = frozenset[tuple[str, str]]
Make = Callable[[str, int, int | None], Variant]  # a model's key, tokens, decoder tokens -> the sheet


class SeedError(ValueError):
    """A seed that draws no sheet; one sentence that says which do."""


def check_seed(seed: int) -> int:
    """The seed itself; raises SeedError below 0 and above 2^63 - 1."""
    if 0 <= seed <= LARGEST_SEED:
        return seed
    raise SeedError(f"A seed is a whole number from 0 to {LARGEST_SEED}.")


def draw(worksheet: str, models: tuple[str, ...], make: Make, least: Callable[[str], Alike], seed: int) -> Variant:
    """The sheet of a seed: the first draw that hides no more than `least` of its model, else the best of all tries."""
    best: tuple[int, Variant] | None = None
    for turn in range(TRIES):
        variant = _drawn(models, make, _chance(f"{worksheet}/{seed}/{turn}"))
        more = len(alike(variant) - least(variant.model.key))
        if best is None or more < best[0]:
            best = more, variant
        if more == 0:
            break
    assert best is not None  # noqa: S101 - there is at least one try
    return best[1]


def least_alike(model: str, make: Make) -> Alike:
    """The misconceptions that sheets of this model hide whatever the tokens: what a spread of lengths all hide."""
    lengths = _lengths(make(model, 1, None))
    spread = [*lengths[7 :: max(1, len(lengths) // 16)], lengths[-1]]
    decoded = _lengths_decoded(make(model, 1, None))
    probes = (make(model, n, decoded[n * 7 % len(decoded)] if decoded else None) for n in spread)
    return frozenset.intersection(*map(alike, probes))


def alike(variant: Variant) -> Alike:
    """The pairs of misconceptions that this sheet cannot tell apart, "right" among them."""
    return frozenset(cannot_tell_apart(variant.with_tokens_as_rows))


def _drawn(models: tuple[str, ...], make: Make, chance: Iterator[int]) -> Variant:
    model = models[next(chance) % len(models)]
    sheet = make(model, 1, None)
    lengths, decoded = _lengths(sheet), _lengths_decoded(sheet)
    tokens = lengths[next(chance) % len(lengths)]
    return make(model, tokens, decoded[next(chance) % len(decoded)] if decoded else None)


def _lengths(sheet: Variant) -> range:
    """The numbers of tokens that a seed may choose: the worksheet's own alone where no box depends on it."""
    if not _asks_for("N", sheet):
        return range(sheet.worksheet.tokens, sheet.worksheet.tokens + 1)
    return _up_to(sheet.architecture.max_tokens - 1)  # one is left for a decode step


def _lengths_decoded(sheet: Variant) -> range:
    return _up_to(sheet.architecture.max_decoder_tokens) if _asks_for("M", sheet) else range(0)


def _up_to(most: int) -> range:
    return range(max(1, min(TOKENS[0], most // 2)), min(TOKENS[-1], most) + 1)


def _asks_for(symbol: str, sheet: Variant) -> bool:
    return any(symbol in sheet.dim(blank).symbols for blank in sheet.blanks)


def _chance(text: str) -> Iterator[int]:
    """Numbers that only the text decides."""
    digest = sha256(text.encode()).digest()
    return (int.from_bytes(digest[at : at + 8]) for at in range(0, 32, 8))


def variant_json(variant: Variant) -> dict[str, Any]:
    """A sheet without its answers, as API and terminal print it."""
    sheet = variant.worksheet
    return {
        "code": variant.code,
        "worksheet": sheet.key,
        "model": variant.model.key,
        "topic": sheet.topic,
        "tokens": variant.tokens,
        "decoder_tokens": variant.sizes["M"] if sheet.topic == "cross-attention" else None,
        "title": variant.title,
        "description": variant.description,
        "task": variant.task,
        "assumptions": list(variant.assumptions),
        "footnote": variant.footnote,
        "rows": [_row_json(row) for row in variant.rows],
        "cannot_tell_apart": [list(pair) for pair in cannot_tell_apart(variant.with_tokens_as_rows)],
    }


def _row_json(row: Row) -> dict[str, Any]:
    boxes = [str(blank) for blank in row.blanks]
    return {"key": row.key, "letter": row.letter, "name": row.name, "note": row.note, "boxes": boxes}
