"""Which sizes a seed gives a worksheet.

A seed draws tokens, and a model if the worksheet lists several, until the sheet hides no more misconceptions than its
model always hides: sizes are refused by filling in the sheet as each misconception would. The draws come only from
SHA-256, so a seed gives the same sheet on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256

from app.misconceptions.predictions import Confusion, cannot_tell_apart
from app.models.architecture import MAX_TOKENS, TokensError
from app.refusal import Refusal
from app.sheets.variant import Variant
from app.topics.registry import TOPICS, possible_tokens
from app.topics.requirements import TopicError
from app.translation import gettext as _

TOKENS = range(12, 200)  # two or three digits: short to write, and more than any small count of heads
MAX_DRAWS = 64
MAX_SHEET_SEED = 2**63 - 1
# A sample of the lengths: about sixteen, evenly spread, from the eighth possible one on. The shortest ones equal small
# sizes such as the number of heads by chance, and so hide more than others.
SAMPLE_START, SAMPLE_SIZE = 7, 16
DECODER_STEP = 7  # decoder lengths are taken in steps of a prime, so that they don't run in parallel with the tokens

ConfusedPairs = frozenset[Confusion]
# A model's key, tokens and decoder tokens -> the sheet; None means the worksheet's.
MakeVariant = Callable[[str, int | None, int | None], Variant]


class SeedError(Refusal):
    """A seed that is out of range."""


def check_seed(seed: int) -> int:
    """The seed itself; raises SeedError below 0 and above 2^63 - 1."""
    if 0 <= seed <= MAX_SHEET_SEED:
        return seed
    raise SeedError(_("The seed must be a whole number from 0 to {most:,}.").format(most=MAX_SHEET_SEED))


def draw_variant(
    worksheet: str, models: tuple[str, ...], make: MakeVariant, unavoidable: Callable[[str], ConfusedPairs], seed: int
) -> Variant:
    """The sheet of a seed: of up to 64 draws the first that hides only what is `unavoidable` for its model."""
    best: tuple[int, Variant] | None = None
    refused = TopicError("")
    for draw in range(MAX_DRAWS):
        try:
            variant = draw_once(models, make, random_numbers(f"{worksheet}/{seed}/{draw}"))
        except TopicError as error:
            refused = error
            continue
        confused = confusable_misconceptions(variant)
        avoidable = len(confused - unavoidable(variant.model.key)) if confused else 0
        if best is None or avoidable < best[0]:
            best = avoidable, variant
        if avoidable == 0:
            break
    if best is None:
        raise refused
    return best[1]


def draw_bug(worksheet: str, bugs: Iterable[str], seed: int) -> str:
    """The bug of a seed: each bug has its number, and the lowest is drawn, so that a new bug changes few draws."""
    return min(bugs, key=lambda bug: next(random_numbers(f"{worksheet}/{seed}/{bug}")))


def max_versions(models: tuple[str, ...], make: MakeVariant) -> int:
    """The most sheets that seeds can draw: numbers of tokens times numbers of decoder tokens, over all models."""
    sheets = [make(model, None, None) for model in models]
    return sum(len(possible_lengths(sheet)) * max(1, len(_possible_decoder_lengths(sheet))) for sheet in sheets)


def unavoidable_confusions(model: str, make: MakeVariant) -> ConfusedPairs:
    """The pairs of misconceptions that sheets with this model can't distinguish at any length."""
    any_sheet = make(model, None, None)
    lengths, decoder_lengths = possible_lengths(any_sheet), _possible_decoder_lengths(any_sheet)
    start = SAMPLE_START if any_sheet.worksheet.tokens_from is None else 0  # an author's range may be short
    sample = [*lengths[start :: max(1, len(lengths) // SAMPLE_SIZE)], lengths[-1]]
    confused = list[ConfusedPairs]()
    for tokens in sample:
        decoder_tokens = decoder_lengths[tokens * DECODER_STEP % len(decoder_lengths)] if decoder_lengths else None
        with suppress(TopicError):
            confused.append(confusable_misconceptions(make(model, tokens, decoder_tokens)))
    return frozenset.intersection(*confused) if confused else frozenset()


def confusable_misconceptions(variant: Variant) -> ConfusedPairs:
    """The pairs of misconceptions that this sheet can't distinguish, including those that don't show on it."""
    return frozenset(cannot_tell_apart(variant.problem))


def draw_once(models: tuple[str, ...], make: MakeVariant, numbers: Iterator[int]) -> Variant:
    """The sheet with a model, tokens and decoder tokens, chosen in this order by the next random numbers."""
    model = models[next(numbers) % len(models)]
    any_sheet = make(model, None, None)
    lengths, decoder_lengths = possible_lengths(any_sheet), _possible_decoder_lengths(any_sheet)
    tokens = lengths[next(numbers) % len(lengths)]
    return make(model, tokens, decoder_lengths[next(numbers) % len(decoder_lengths)] if decoder_lengths else None)


def possible_lengths(sheet: Variant) -> range:
    """The numbers of tokens that a seed may choose: those in the worksheet's range that the model can take.

    Raises TokensError if the range begins above what the model can take.
    """
    first, last, topic = sheet.worksheet.tokens_from, sheet.worksheet.tokens_to, sheet.worksheet.topic
    longest = possible_tokens(topic, sheet.architecture, MAX_TOKENS)
    is_the_same = bool(sheet.worksheet.sentence) or (first is None and not _asks_for("N", sheet))
    if is_the_same or sheet.tokens == sheet.architecture.fixed_tokens:
        return range(sheet.tokens, sheet.tokens + 1)
    step = TOPICS[topic].token_step(sheet.architecture)
    if first is None or last is None:
        return _lengths_up_to(max(1, longest - 1), step)
    if first > longest:
        problem = _("{model} takes at most {most:,} tokens, and “{title}” draws from {first:,} or more.")
        words = {"model": sheet.model.name, "most": longest, "title": sheet.worksheet.title, "first": first}
        raise TokensError(problem.format(**words))
    return _multiples(range(first, min(last, longest) + 1), step)


def _possible_decoder_lengths(sheet: Variant) -> range:
    return _lengths_up_to(sheet.architecture.max_decoder_tokens) if _asks_for("M", sheet) else range(0)


def _lengths_up_to(longest: int, step: int = 1) -> range:
    return _multiples(range(max(1, min(TOKENS[0], longest // 2)), min(TOKENS[-1], longest) + 1), step)


def _multiples(lengths: range, step: int) -> range:
    multiples = range(lengths.start + -lengths.start % step, lengths.stop, step)
    return multiples or lengths


def _asks_for(symbol: str, sheet: Variant) -> bool:
    return any(symbol in sheet.expression(blank).symbols for blank in sheet.blanks)


def random_numbers(text: str) -> Iterator[int]:
    """Four numbers that depend only on the text."""
    digest = sha256(text.encode()).digest()
    return (int.from_bytes(digest[at : at + 8]) for at in range(0, 32, 8))
