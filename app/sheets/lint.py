"""Findings about worksheets that an author should see before a class does.

Each sheet is checked as written: for misconceptions that stay hidden on it, and for sizes that happen to be equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, combinations
from typing import Literal

from app.algebra.number_text import format_number
from app.misconceptions.predictions import cannot_tell_apart
from app.models.architecture import TokensError
from app.shapes.table import WrittenPattern
from app.sheets.authoring.author_misconceptions import author_findings
from app.sheets.library import Library
from app.sheets.seeds import ConfusedPairs, unavoidable_confusions
from app.sheets.variant import Row, Variant
from app.sheets.worksheet import AUTHOR_MISCONCEPTION_PREFIX, Worksheet
from app.topics.registry import check_topic_tokens, possible_tokens
from app.topics.requirements import TopicError
from app.translation import gettext as _

FindingKind = Literal[
    "hides", "must-hide", "author", "must-author", "coincides", "must-coincide", "same-answer",
    "must-have-same-answer", "gives-away",
]  # fmt: skip
FARTHEST_PROPOSED = 60  # tokens away that another length may be
ANY_TOKENS = 100  # where the number plays no part
SHORTEST_PROPOSED = 3  # tokens; with fewer, most sizes coincide
CONFUSIONS_KEPT = 512
_FIXED_BY_TOKENS: frozenset[FindingKind] = frozenset({"hides", "coincides", "same-answer"})
_BY_LENGTH = frozenset({"N", "M", "B"})  # sizes that another number of tokens changes


@dataclass(frozen=True)
class Finding:
    """One finding about one worksheet; a kind with "must" is due to its model, and no other length would fix it."""

    worksheet: str
    kind: FindingKind
    message: str
    proposed_tokens: int | None = None

    @property
    def fixable(self) -> bool:
        """Whether the author can do something about it."""
        return not self.kind.startswith("must")


def findings(library: Library) -> Iterator[Finding]:
    """Yield every finding about every worksheet, each with its model and length."""
    for key in library.worksheets:
        yield from findings_on(library.variant(key))


def findings_on(variant: Variant) -> tuple[Finding, ...]:
    """Every finding about one sheet."""
    key, proposed = variant.worksheet.key, _confusions(_Questions.of(variant)).proposed_tokens
    messages = chain(
        _hidden_misconceptions(variant),
        _author_misconceptions(variant),
        _equal_sizes(variant),
        _rows_with_one_answer(variant),
        _patterns_given_away(variant),
    )
    return tuple(Finding(key, kind, text, proposed if kind in _FIXED_BY_TOKENS else None) for kind, text in messages)


@dataclass(frozen=True)
class _Questions:
    """What the confusions on a sheet depend on; sheets that differ only in words have equal ones."""

    worksheet: Worksheet
    config: str
    tokens: int
    variant: Variant = field(compare=False)

    @classmethod
    def of(cls, variant: Variant) -> _Questions:
        """The questions of a sheet, with its number of tokens."""
        sheet = variant.worksheet
        bare = Worksheet(
            "", "…", variant.model.key, sheet.topic, sheet.tokens, variant.problem.rows,
            kv_head_per_query_head=sheet.kv_head_per_query_head,
            decoder_tokens=variant.decoder_tokens or sheet.decoder_tokens,
            bug=sheet.bug,
            frozen_bug=sheet.frozen_bug,
            notation=sheet.notation, answers=sheet.answers,
            misconceptions=tuple(replace(m, name="…", question="…", explanation="…") for m in sheet.misconceptions),
        )  # fmt: skip
        return cls(bare, variant.model.config, variant.tokens, replace(variant, worksheet=bare, decoder_tokens=None))

    def with_tokens(self, _model: str, tokens: int | None, decoder_tokens: int | None) -> Variant:
        """The sheet with these tokens and decoder tokens, and the same model."""
        return replace(self.variant, tokens=tokens or self.tokens, decoder_tokens=decoder_tokens)


@dataclass(frozen=True)
class _Confusions:
    """The misconceptions that a sheet can't distinguish: `here` at its length, and `unavoidable` ones at any length."""

    here: ConfusedPairs
    unavoidable: ConfusedPairs
    proposed_tokens: int | None


@lru_cache(CONFUSIONS_KEPT)
def _confusions(questions: _Questions) -> _Confusions:
    here, variant = _confused_in_marking(questions.variant), questions.variant
    asks_for_tokens = any("N" in variant.expression(blank).symbols for blank in variant.blanks)
    any_tokens = possible_tokens(variant.worksheet.topic, variant.architecture, ANY_TOKENS)
    at_any_length = replace(questions, tokens=any_tokens, worksheet=replace(questions.worksheet, tokens=any_tokens))
    unavoidable = _unavoidable(at_any_length if asks_for_tokens else questions)
    is_fine = here <= unavoidable and not _avoidable_equalities(variant)
    return _Confusions(here, unavoidable, None if is_fine else _proposed_tokens(questions, unavoidable))


@lru_cache(CONFUSIONS_KEPT)
def _unavoidable(questions: _Questions) -> ConfusedPairs:
    return unavoidable_confusions(questions.variant.model.key, questions.with_tokens)


def _confused_in_marking(variant: Variant) -> ConfusedPairs:
    return frozenset(cannot_tell_apart(variant.problem_for_marking))


def _proposed_tokens(questions: _Questions, unavoidable: ConfusedPairs) -> int | None:
    variant = questions.variant
    for tokens in _lengths_around(questions.tokens):
        try:
            check_topic_tokens(variant.worksheet.topic, variant.architecture, tokens)
            other = questions.with_tokens(variant.model.key, tokens, None)
            if not _avoidable_equalities(other) and _confused_in_marking(other) <= unavoidable:
                return tokens
        except (TokensError, TopicError):
            continue
    return None


def _lengths_around(tokens: int) -> Iterator[int]:
    """Yield the lengths around a length: multiples of ten first, nearer ones first.

    >>> [*_lengths_around(32)][:4]
    [30, 40, 20, 50]
    """
    around = (tokens + step * sign for step in range(1, FARTHEST_PROPOSED + 1) for sign in (-1, 1))
    possible = [length for length in around if length >= SHORTEST_PROPOSED]
    yield from sorted(possible, key=lambda length: length % 10 != 0)


def _avoidable_equalities(variant: Variant) -> list[str]:
    equalities = (*_equal_sizes(variant), *_rows_with_one_answer(variant))
    return [message for kind, message in equalities if kind in ("coincides", "same-answer")]


def _hidden_misconceptions(variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    confusions = _confusions(_Questions.of(variant))
    here, unavoidable = confusions.here, confusions.unavoidable
    of_authors = {pair for pair in here if any((key or "").startswith(AUTHOR_MISCONCEPTION_PREFIX) for key in pair)}
    of_model = (here & unavoidable) - of_authors
    yield from (("hides", sentence) for sentence in _confusion_sentences(variant, "hides", here - unavoidable))
    yield from (("must-hide", sentence) for sentence in _confusion_sentences(variant, "must-hide", of_model))


def _author_misconceptions(variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    if not variant.worksheet.misconceptions:
        return
    confusions = _confusions(_Questions.of(variant))
    avoidable = confusions.here - confusions.unavoidable
    for finding in author_findings(variant):
        pairs = {(finding.key, finding.other or None), (finding.other, finding.key)}
        if finding.kind == "formula" or pairs.isdisjoint(avoidable):
            yield "must-author" if finding.shows else "author", finding.message


def _confusion_sentences(variant: Variant, kind: FindingKind, confusions: ConfusedPairs) -> Iterator[str]:
    if kind == "must-hide":
        right = _("With {model} these misconceptions cannot be seen, whatever the number of tokens: {misconceptions}.")
        alike = _("With {model} “{one}” and “{other}” cannot be told apart, whatever the number of tokens.")
    else:
        right = _(
            "With {tokens} tokens these misconceptions cannot be seen, because every box comes out right or one digit "
            "off: {misconceptions}. Change the number of tokens."
        )
        alike = _(
            "With {tokens} tokens “{one}” and “{other}” cannot be told apart: they lead to the same answers. "
            "Change the number of tokens."
        )
    words = {"model": variant.model.name, "tokens": variant.tokens}
    if unseen := sorted(f"“{key}”" for key, other in confusions if other is None):
        yield right.format(misconceptions=", ".join(unseen), **words)
    for key, other in sorted((key, other) for key, other in confusions if other is not None):
        yield alike.format(one=key, other=other, **words)


def _equal_sizes(variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    if variant.worksheet.in_letters:  # which are compared by their values in the model
        return
    asked = sorted(frozenset[str]().union(*(variant.expression(blank).symbols for blank in variant.blanks)))
    is_same = variant.symbols.are_identical
    distinct = [symbol for at, symbol in enumerate(asked) if not any(is_same(symbol, before) for before in asked[:at])]
    for first, second in combinations(distinct, 2):
        size = variant.sizes[first]
        if size == variant.sizes[second]:
            words = {"one": first, "other": second, "size": size, "model": variant.model.name}
            if {first, second} & _BY_LENGTH:
                message = _(
                    "{one} and {other} are both {size}, so a student who confuses them is marked right. "
                    "Change the number of tokens."
                )
                yield "coincides", message.format(**words)
            else:
                message = _(
                    "In {model}, {one} and {other} are both {size}, so a student who confuses them is marked right."
                )
                yield "must-coincide", message.format(**words)


def _rows_with_one_answer(variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    if variant.worksheet.in_letters:
        return
    canonical, rows_by_numbers = variant.symbols.canonical, defaultdict[tuple[int, ...], list[Row]](list)
    for row in variant.rows:
        rows_by_numbers[tuple(map(variant.answer, row.blanks))].append(row)
    for numbers, rows in rows_by_numbers.items():
        # The right answers of each row in symbols that the model doesn't make equal.
        meanings = [*dict.fromkeys(tuple(map(canonical, map(variant.expression, row.blanks))) for row in rows)]
        if len(meanings) == 1:
            continue
        pairs = (pair for first, second in combinations(meanings, 2) for pair in zip(first, second, strict=True))
        by_length = any(_BY_LENGTH & (first.symbols ^ second.symbols) for first, second in pairs)
        sides = [number for number, field in zip(numbers, rows[0].fields, strict=True) if field != "count"]
        names, size = ", ".join(f"“{row.name}”" for row in rows), " × ".join(map(format_number, sides or numbers))
        if by_length:
            message = _(
                "By chance, these rows have the same answer, {size}, so a student who confuses them is marked right: "
                "{rows}. Change the number of tokens."
            )
            yield "same-answer", message.format(rows=names, size=size)
        else:
            message = _(
                "In {model}, these rows have the same answer, {size}, so a student who confuses them is marked right: "
                "{rows}."
            )
            yield "must-have-same-answer", message.format(model=variant.model.name, rows=names, size=size)


def _patterns_given_away(variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    for row in variant.rows:
        asked = row.asked
        if not isinstance(asked, WrittenPattern):
            continue
        call = row.code.partition('"')[0]
        for other in variant.rows:
            its_call, _quote, rest = other.code.partition('"')
            pattern = rest.partition('"')[0]
            if other != row and its_call == call and asked.number_of(pattern) == asked.right:
                message = _("“{other}” shows the pattern that “{row}” asks for: leave one of them out.")
                yield "gives-away", message.format(other=other.name, row=row.name)
