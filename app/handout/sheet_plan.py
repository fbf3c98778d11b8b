"""Which variant each sheet of a handout has: one for all, all different, or one for each name of a class list."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.handout.options import HandoutError, HandoutOptions
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.translation import ngettext

ReportProgress = Callable[[int, int], None]  # called with how many are done, and of how many
EXTRA_SEEDS_TRIED = 40  # in a row without a new variant, beside one for each variant asked for


@dataclass(frozen=True)
class HandoutSheet:
    """One student's sheet: its variant, and the name printed on it, "" for a line to write it on."""

    variant: Variant
    name: str = ""


def plan_sheets(
    library: Library, options: HandoutOptions, names: Sequence[str] = (), progress: ReportProgress | None = None
) -> tuple[HandoutSheet, ...]:
    """The sheets of a handout: one for each name in their order, or `options.sheets` without names.

    Everyone gets the same sheet, unless `options` ask for variants and for no length. A student's variant follows from
    the seed and the name alone, so it stays when the class list is reordered; the second of two equal names gets
    another one. Variants without names are all different. Raises HandoutError where a worksheet has too few, and what
    Library raises for a worksheet, model or length that cannot be used.
    """
    if options.variants and not options.has_fixed_length:
        return tuple(
            _named_sheets(library, options, names, progress) if names else _differing_sheets(library, options, progress)
        )
    same = library.variant(options.worksheet, options.model or None, options.tokens, options.decoder_tokens)
    return tuple(HandoutSheet(same, name) for name in names) or (HandoutSheet(same),) * options.sheets


def check_version_count(library: Library, options: HandoutOptions) -> None:
    """Raise HandoutError where a worksheet cannot have as many different versions as are asked for without names.

    The lengths that a seed may draw are counted, which takes no time; of some, no seed draws a sheet.
    """
    if not options.variants or options.has_fixed_length:
        return
    most = library.max_versions(options.worksheet, options.model or None)
    if options.sheets > most:
        problem = ngettext(
            "“{worksheet}” has only {count} version: print the same sheet for everyone.",
            "“{worksheet}” has at most {count} different versions: print fewer, or the same sheet for everyone.",
            most,
        )
        raise HandoutError(problem.format(worksheet=options.worksheet, count=most), "sheets")


def _named_sheets(
    library: Library, options: HandoutOptions, names: Sequence[str], progress: ReportProgress | None
) -> list[HandoutSheet]:
    """A sheet for each name, in order, its variant's seed made of the name and how often the name came before.

    `progress` is called after each.
    """
    occurrences = Counter[str]()
    sheets = list[HandoutSheet]()
    for name in names:
        seed = _derived_seed(options, f"{name}/{occurrences[name]}")
        occurrences[name] += 1
        sheets.append(HandoutSheet(library.seeded(options.worksheet, seed, options.model or None), name))
        if progress:
            progress(len(sheets), len(names))
    return sheets


def _differing_sheets(library: Library, options: HandoutOptions, progress: ReportProgress | None) -> list[HandoutSheet]:
    """Return `options.sheets` sheets without names, no two alike; `progress` is called as they are found.

    Seeds are tried in turn. Raises HandoutError once too many in a row gave no new variant.
    """
    sheets: dict[str, HandoutSheet] = {}
    repeats = seed_number = 0
    while len(sheets) < options.sheets:
        variant = library.seeded(options.worksheet, _derived_seed(options, str(seed_number)), options.model or None)
        seed_number += 1
        repeats = repeats + 1 if variant.code in sheets else 0
        if repeats > EXTRA_SEEDS_TRIED + options.sheets:
            problem = ngettext(
                "“{worksheet}” has only {count} version: print the same sheet for everyone.",
                "“{worksheet}” has only {count} different versions: print at most {count} sheets.",
                len(sheets),
            )
            raise HandoutError(problem.format(worksheet=options.worksheet, count=len(sheets)))
        sheets.setdefault(variant.code, HandoutSheet(variant))
        if progress:
            progress(len(sheets), options.sheets)
    return list(sheets.values())


def _derived_seed(options: HandoutOptions, sheet_id: str) -> int:
    """The seed of one sheet, from the worksheet, the handout's seed, and a name or number."""
    digest = hashlib.sha256(f"{options.worksheet}/{options.seed}/{sheet_id}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:4], "big")
