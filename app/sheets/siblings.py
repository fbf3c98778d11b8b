"""Sheets like another one: the same rows about another model or another length, so that no answer is the same.

An answer depends on numbers if it has a symbol. A row of a sibling may be revealed only if each such answer differs
from the one in the same box of the sheet. Other answers, such as the single query of a decoding step, are the same on
every sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations, product

from app.bugs.bank import BugKind
from app.models.architecture import TokensError
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.library import Library
from app.sheets.notation import without_own_name
from app.sheets.seeds import draw_once, random_numbers
from app.sheets.variant import Variant
from app.sheets.worksheet import Answers, Model, library_key
from app.topics.requirements import TopicError

DRAWS = 3  # lengths tried per model
BUG_DRAWS = 20  # in search of a bug other than the sheet's


def sibling(variant: Variant, models: Mapping[str, Model], seed: int, answers: Answers) -> Variant | None:
    """A sheet with the same rows about one of the models, in numbers or letters, or None."""
    if variant.problem.case:
        return None
    sheet = replace(
        variant.worksheet, rows=variant.problem.rows,
        sentence="", checkpoint="", layer=0, head=0,
        introduction="", footnote="", misconceptions=(), questions=(),
        row_hints={}, answers=answers,
    )  # fmt: skip
    of_any_length = replace(sheet, tokens_from=None, tokens_to=None)
    libraries = [Library({sheet.key: each}, models, variant.wording) for each in dict.fromkeys((of_any_length, sheet))]

    def drawn() -> Iterator[tuple[tuple[int, bool, int, int, int], Variant]]:
        for model, library in product(models, libraries):
            for draw in range(DRAWS):
                numbers = random_numbers(f"{sheet.key}/{model}/{seed}/{draw}")
                with suppress(TopicError, TokensError):
                    other = draw_once((model,), partial(library.variant, sheet.key), numbers)
                    told = set(rows_to_tell(variant, other)) & variant.problem.asked
                    if told and other.problem.rows == variant.problem.rows:
                        difference = len(_facts(variant) ^ _facts(other))
                        is_alike = other.table.key == variant.table.key
                        yield (len(told), is_alike, -_coincidences(other), -difference, next(numbers)), other

    return max(drawn(), key=lambda each: each[0], default=(None, None))[1]


def another_bug(library: Library, variant: Variant, seed: int, kind: BugKind) -> Variant | None:
    """A sheet about another bug, of this kind if possible; None if the worksheet has no other bug."""
    sheet = library.worksheets.get(library_key(variant.worksheet.key))
    if sheet is None or not sheet.deals_bugs:
        return None
    model = None if variant.model.key in (sheet.model, *sheet.models) else variant.model.key
    dealt = (library.seeded(sheet.key, seed + turn, model, kind) for turn in range(BUG_DRAWS))
    return next((other for other in dealt if other.worksheet.bug != variant.worksheet.bug), None)


def _coincidences(variant: Variant) -> int:
    symbols = {symbol for blank in variant.blanks for symbol in variant.expression(blank).symbols}
    sizes = [variant.sizes[each] for each in {*symbols, "N", "d", "H", "G", "d_h"} - without_own_name(variant.sizes)]
    equal_sides = [
        blanks
        for row in variant.rows
        for blanks in combinations(row.blanks, 2)
        if variant.answer(blanks[0]) == variant.answer(blanks[1])
        and len({variant.symbols.canonical(variant.expression(blank)) for blank in blanks}) > 1
    ]
    return len(sizes) - len(set(sizes)) + len(equal_sides)


def _facts(variant: Variant) -> frozenset[object]:
    return frozenset(
        [*((fact.part, fact.symbols) for fact in prose.stated_facts(variant)), variant.architecture.causal]
    )


def rows_to_tell(variant: Variant, other: Variant) -> tuple[str, ...]:
    """The rows of the sibling `other` that may be revealed: none of their boxes repeats an answer of the sheet."""
    right = variant.problem.answers

    def repeats(blank: Blank) -> bool:
        depends = blank in right and bool(other.expression(blank).symbols or variant.expression(blank).symbols)
        return depends and other.answer(blank) == right[blank]

    return tuple(row.key for row in other.rows if not any(map(repeats, row.blanks)))
