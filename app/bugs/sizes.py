"""The sizes that a program runs with: the model's, and small ones for computing numbers.

Sizes must all differ: with as many heads as tokens, code that mixes them up raises no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from math import prod

from app.algebra.expression import Expression
from app.bugs.programs import CodeProgram
from app.models.architecture import Architecture, TokensError
from app.translation import gettext as _

MIN_BATCH = 2
_TRIES = 200  # lengths tried in each direction for a proposal


class BugError(ValueError):
    """A bug that can't be shown with this model and these numbers, with the reason.

    `tokens` and `batch` are numbers that would work, or None.
    """

    def __init__(self, reason: str, tokens: int | None = None, batch: int | None = None) -> None:
        self.tokens = tokens
        self.batch = batch
        super().__init__(reason)


def sizes_of(program: CodeProgram, architecture: Architecture, tokens: int, batch: int) -> dict[str, int]:
    """Map each symbol of the program to its size: B is `batch`, N is `tokens`, the others are the model's."""
    of_decoder = program.two_texts or program.decodes
    model = architecture.decoder_sizes if of_decoder else architecture.all_sizes
    sizes = {"B": batch, "N": tokens, **{symbol: model[symbol] for symbol in ("H", "G", "d_h", "d")}}
    if program.two_texts:
        most = architecture.max_decoder_tokens
        first = min(tokens * 2 // 3 + 1, most // 2)
        taken = {*sizes.values(), sizes["H"] * sizes["d_h"]}
        sizes["M"] = next(number for number in range(max(first, 2), first + 20) if number not in taken)
    return {symbol: size for symbol, size in sizes.items() if symbol in program.symbols}


def check_sizes(program: CodeProgram, architecture: Architecture, tokens: int, batch: int) -> None:
    """Raise BugError unless the model can read this many tokens, B is at least MIN_BATCH, and all sizes differ."""
    _check_positions(program, architecture, tokens)
    if "B" in program.symbols and batch < MIN_BATCH:
        raise BugError(_("A batch of one input hides bugs: choose a batch of at least 2."), tokens, MIN_BATCH + 1)
    clash = _equal_sizes(program, architecture, tokens, batch)
    if clash is None:
        return
    first, second, size = clash
    reason = _("{first} and {second} are both {size:,}, so code that mixes them up raises no error.").format(
        first=first, second=second, size=size
    )
    if "B" not in (first, second):
        other_tokens = first_possible(program, architecture, _around(tokens), batch)
        raise BugError(with_proposal(reason, other_tokens), other_tokens)
    for other in range(batch + 1, batch + 50):
        if not _equal_sizes(program, architecture, tokens, other):
            raise BugError(f"{reason} {_('Choose a batch of {batch}.').format(batch=other)}", batch=other)
    raise BugError(with_proposal(reason, None))


def with_proposal(reason: str, tokens: int | None) -> str:
    """The reason of a refusal, followed by a number of tokens that would work, or the advice to choose another
    model.
    """
    choice = _("Choose another model.") if tokens is None else _("Choose {tokens:,} tokens.").format(tokens=tokens)
    return f"{reason} {choice}"


def first_possible(program: CodeProgram, architecture: Architecture, lengths: Iterable[int], batch: int) -> int | None:
    """The first of these lengths that the model can read and that makes all sizes differ, or None."""
    possible = (n for n in lengths if not _equal_sizes(program, architecture, n, batch))
    return next((n for n in possible if _fits(program, architecture, n)), None)


def _check_positions(program: CodeProgram, architecture: Architecture, tokens: int) -> None:
    if tokens < 2:
        raise BugError(_("With one token, most bugs change nothing. Choose 5 tokens."), tokens=5)
    if program.decodes:
        if tokens + 1 > architecture.max_decoder_tokens:
            most = architecture.max_decoder_tokens
            reason = _("Choose fewer than {most:,} tokens: this model has no more positions.").format(most=most)
            raise BugError(reason, tokens=most - 1)
        return
    try:
        architecture.check_tokens(tokens)
    except TokensError as error:
        raise BugError(str(error), tokens=architecture.fixed_tokens) from None


def _fits(program: CodeProgram, architecture: Architecture, tokens: int) -> bool:
    try:
        _check_positions(program, architecture, tokens)
    except BugError:
        return False
    return True


def _around(tokens: int) -> Iterator[int]:
    for step in range(1, _TRIES):
        yield tokens + step
        if tokens - step >= 2:
            yield tokens - step


def _equal_sizes(
    program: CodeProgram, architecture: Architecture, tokens: int, batch: int
) -> tuple[str, str, int] | None:
    sizes = sizes_of(program, architecture, tokens, batch)
    named = [(symbol, size) for symbol, size in sizes.items() if symbol != "G" or size < sizes["H"]]
    if "G" in sizes:
        heads = {"H": sizes["H"]} if sizes["G"] == sizes["H"] else {"H": sizes["H"], "G": sizes["G"]}
        widths = {f"{symbol}·d_h": count * sizes["d_h"] for symbol, count in heads.items()}
        named += [(name, width) for name, width in widths.items() if width not in (sizes["d"], sizes["d_h"])]
    if program.decodes:
        named.append(("N + 1", tokens + 1))
    if program.rotary:
        named.append(("d_h/2", sizes["d_h"] // 2))
    for (first, a), (second, b) in combinations(named, 2):
        if a == b:
            return first, second, a
    return None


def small_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """Map each symbol to a fixed small size; sizes that are compared with each other differ."""
    small = {"B": 3, "N": 6, "M": 9, "d_h": 10, "H": 4, "G": 4, "d": 11 if "H" in sizes else 80}
    if sizes.get("G") == 1 < sizes["H"]:
        small["G"] = 1
    elif sizes.get("G") != sizes.get("H"):
        small |= {"H": 8, "G": 2}
    if "H" in sizes and sizes["H"] * sizes["d_h"] == sizes["d"]:
        small["d"] = small["H"] * small["d_h"]
    return {symbol: small[symbol] for symbol in sizes}


@lru_cache(256)
def written_as(sizes: tuple[tuple[str, int], ...]) -> Mapping[int, tuple[Expression, ...]]:
    """Map each number to the ways of writing it: a size, a product of up to four symbols, or H/G."""
    ways = dict[int, list[Expression]]()
    for count in range(1, 5):
        for some in combinations(sizes, count):
            expression = Expression.parse("*".join(symbol for symbol, _size in some))
            ways.setdefault(prod(size for _symbol, size in some), []).append(expression)
    by_symbol = dict(sizes)
    if "G" in by_symbol:
        ways.setdefault(by_symbol["H"] // by_symbol["G"], []).append(Expression.parse("H/G"))
    return {number: tuple(expressions) for number, expressions in ways.items()}
