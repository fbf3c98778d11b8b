"""Which variant each sheet of a handout has: one for all, all different, or one per name of a class list."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.handout.options import HandoutError, HandoutOptions
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.translation import ngettext

ReportProgress = Callable[[int, int], None]  # called with the number done and the total
EXTRA_SEEDS_TRIED = 40  # seeds in a row without a new variant before giving up, besides one per variant asked for


@dataclass(frozen=True)
class HandoutSheet:
    """One student's sheet: its variant, and the name printed on it; without a name there is a line for it."""

    variant: Variant
    name: str = ""


def plan_sheets(
    library: Library, options: HandoutOptions, names: Sequence[str] = (), progress: ReportProgress | None = None
) -> tuple[HandoutSheet, ...]:
    """The sheets of a handout: one per name, or `options.sheets` if there are no names."""
    if options.variants and not options.has_fixed_length:
        return tuple(
            _named_sheets(library, options, names, progress) if names else _differing_sheets(library, options, progress)
        )
    same = library.variant(options.worksheet, options.model or None, options.tokens, options.decoder_tokens)
    return tuple(HandoutSheet(same, name) for name in names) or (HandoutSheet(same),) * options.sheets


def check_version_count(library: Library, options: HandoutOptions) -> None:
    """Raise HandoutError if `options` ask for more different variants than the worksheet has."""
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
    digest = hashlib.sha256(f"{options.worksheet}/{options.seed}/{sheet_id}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:4], "big")
