"""Which variant everyone gets: one for all, versions, or one for each name of a class list."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.sheets.library import Library
from app.sheets.worksheet import Variant

from .options import HandoutError, Options

Progress = Callable[[int, int], None]
TRIES = 40  # seeds tried for one more version that differs


@dataclass(frozen=True)
class Sheet:
    """One student's sheet: the variant, and the name on it if there is a class list."""

    variant: Variant
    name: str = ""


def plan(
    library: Library, options: Options, names: Sequence[str] = (), progress: Progress | None = None
) -> tuple[Sheet, ...]:
    """The sheets of a handout in their order; `progress` is told how many of them are ready.

    A version follows from the seed and the name alone, so that it stays when the class list is put in another order.
    Raises HandoutError, and what Library raises for a worksheet, model or length that cannot be used.
    """
    if names and (options.same or options.fixed):
        one = _one(library, options)
        return tuple(Sheet(one, name) for name in names)
    if names:
        return tuple(_for_names(library, options, names, progress))
    if options.variants:
        return tuple(_versions(library, options, progress))
    return (Sheet(_one(library, options)),) * options.copies


def _one(library: Library, options: Options) -> Variant:
    return library.variant(options.worksheet, options.model or None, options.tokens, options.decoder_tokens)


def _for_names(library: Library, options: Options, names: Sequence[str], progress: Progress | None) -> list[Sheet]:
    seen = Counter[str]()
    sheets = list[Sheet]()
    for name in names:
        seed = _seed(options, f"{name}/{seen[name]}")
        seen[name] += 1
        sheets.append(Sheet(library.seeded(options.worksheet, seed, options.model or None), name))
        if progress:
            progress(len(sheets), len(names))
    return sheets


def _versions(library: Library, options: Options, progress: Progress | None) -> list[Sheet]:
    """So many versions, no two alike; raises HandoutError where the worksheet has no more."""
    found: dict[str, Sheet] = {}
    missed = at = 0
    while len(found) < options.variants:
        variant = library.seeded(options.worksheet, _seed(options, str(at)), options.model or None)
        at += 1
        missed = missed + 1 if variant.code in found else 0
        if missed > TRIES + options.variants:
            raise HandoutError(f"“{options.worksheet}” has only {len(found)} versions that differ: ask for fewer.")
        found.setdefault(variant.code, Sheet(variant))
        if progress:
            progress(len(found), options.variants)
    return list(found.values())


def _seed(options: Options, of: str) -> int:
    digest = hashlib.sha256(f"{options.worksheet}/{options.seed}/{of}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:4], "big")
