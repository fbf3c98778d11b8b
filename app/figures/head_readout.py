"""One head's numbers in words: what a row attends to, and how one score is computed, from q · k to its weight.

No sentence says why a head attends to a token: weights are what the head computed, not an explanation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from app.figures.heat_map import (
    Cells,
    HeadNumbers,
    StageKey,
    cells,
    decimal,
    first_token_share,
    percent_text,
    places_for,
    stage_numbers,
)
from app.translation import gettext as _
from app.translation import ngettext

NAMED_KEYS = 4  # the most keys in a row's sentence
LEAST_NAMED = 0.1  # the weight from which a key is named
SHOWN_TERMS = 5  # terms of a dot product
LARGE_FIRST_SHARE = 0.3  # from here on the first token's share is explained, if it is twice an even share
PRONOUNS = frozenset({"it", "its", "he", "him", "his", "she", "her", "they", "them", "their"})
SPACE_MARKS = "·␣▁Ġ "  # how the space before a word is shown


@dataclass(frozen=True)
class ProductTerm:
    """One summand of q · k: a feature, counted from 1, and the query's and the key's number with their product."""

    feature: int
    query: str
    key: str
    product: str


@dataclass(frozen=True)
class CellReadout:
    """One query and one key: from their dot product to the weight."""

    column: int
    first_key: int
    key: int
    token: str
    position: int
    product: str
    score: str
    weight: str
    is_hidden: bool
    terms: tuple[ProductTerm, ...]
    rest_count: int
    rest: str
    steps: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RowReadout:
    """What one query attends to. `row` is its row in the picture, `query` its index; `position` counts from 1."""

    row: int
    query: int
    token: str
    position: int
    sentence: str
    cells: tuple[CellReadout, ...]
    rounding: str
    reduction: str


def row_sentence(numbers: HeadNumbers, query: int) -> str:
    """A row as a sentence: “it” attends to “cat” 61 %, “the (5)” 20 %; 6 others get 19 % together."""
    import numpy as np

    weights = numbers.weights[query]
    visible = int(numbers.mask[query].sum())
    token = spoken(numbers.query_tokens[query])
    order = [int(key) for key in np.argsort(-weights, kind="stable")[:NAMED_KEYS]]
    named = [key for key in order if weights[key] >= LEAST_NAMED] or order[:1]
    this = numbers.first_query + query
    names = [_("itself") if key == this else f"“{_distinct(numbers.key_tokens, key)}”" for key in named]
    shares = (percent_text(float(weights[key])) for key in named)
    keys = ", ".join(f"{name} {share}" for name, share in zip(names, shares, strict=True))
    others, rest = visible - len(named), float(weights.sum() - weights[named].sum())
    sentence = _("“{token}” attends to {keys}.").format(token=token, keys=keys)
    if others > 0:
        sentence = ngettext(
            "“{token}” attends to {keys}; {count} other gets {share}.",
            "“{token}” attends to {keys}; {count} others get {share} together.",
            others,
        ).format(token=token, keys=keys, count=others, share=percent_text(rest))
    unseen = 1 - float(weights.sum())
    if unseen > 0.005:
        sink = _("{share} goes to the model’s learned sink, which is no token.").format(share=percent_text(unseen))
        sentence = f"{sentence} {sink}"
    return sentence


def read_row(numbers: HeadNumbers, query: int) -> RowReadout:
    """A query's row with its cells: every key or, in a reduced picture, each column's key with the largest weight.

    Raises IndexError for an unknown query.
    """
    if not 0 <= query < len(numbers.queries):
        raise IndexError(query)
    drawn = _drawn(numbers)
    weights = numbers.weights[query]
    keys = [start + int(weights[start : start + drawn.side].argmax()) for start in drawn.column_starts]
    places = places_for(max(float(abs(numbers.products).max()), 1e-6))
    reduction = ""
    if drawn.side > 1:
        reduction = _(
            "The picture has one column for {side} keys; here is the one of them that gets most of this row’s weight."
        ).format(side=drawn.side)
    return RowReadout(
        row=query // drawn.row_starts.step,
        query=query,
        token=numbers.query_tokens[query],
        position=numbers.first_query + query + 1,
        sentence=row_sentence(numbers, query),
        cells=tuple(
            _read_cell(numbers, query, key, column, first, places)
            for column, (first, key) in enumerate(zip(drawn.column_starts, keys, strict=True))
        ),
        rounding=ngettext(
            "Numbers are rounded to {places} decimal, so that they may not add up exactly.",
            "Numbers are rounded to {places} decimals, so that they may not add up exactly.",
            places,
        ).format(places=places),
        reduction=reduction,
    )


def telling_row(numbers: HeadNumbers) -> tuple[int, int]:
    """The query and key to start with, both from 0: a token, if possible a pronoun, that attends to an earlier one."""
    import numpy as np

    weights, visible = numbers.weights.astype(np.float64), numbers.mask.sum(axis=1, keepdims=True)
    places = np.arange(len(weights))[:, None] + numbers.first_query
    keys = np.arange(weights.shape[1])[None]
    is_counted = (keys > 0) & (keys < places) & (weights * visible > 1)
    gains = np.where(is_counted, weights * np.log(np.where(is_counted, weights * visible, 1)), 0)
    pronouns = [token.strip(SPACE_MARKS).lower() in PRONOUNS for token in numbers.query_tokens]
    if gains[pronouns].any():
        gains[np.logical_not(pronouns)] = 0
    if gains.max() <= 0:
        return len(weights) - 1, int(weights[-1].argmax())
    query, key = np.unravel_index(gains.argmax(), gains.shape)
    return int(query), int(key)


def stage_title(stage: StageKey) -> str:
    """The short name of a stage, as it is shown for choosing."""
    titles: dict[StageKey, str] = {
        "products": "Q·Kᵀ",
        "scaled": _("scaled"),
        "masked": _("masked"),
        "weights": _("softmax"),
        "rest": _("without the first token"),
    }
    return titles[stage]


def stage_sentences(numbers: HeadNumbers, stage: StageKey) -> tuple[str, ...]:
    """One or two sentences on what a stage shows, true of this model and text."""
    rows, columns = numbers.scores.shape
    hidden = int((~numbers.mask).sum())
    match stage:
        case "products":
            shape = _("Each cell is the dot product of a query’s row of Q and a key’s row of K: {rows} × {columns}.")
            return (shape.format(rows=rows, columns=columns),)
        case "scaled":
            steps = "; ".join(text for text, _value in _score_steps(numbers, 0, 0, 2))
            changed = numbers.softcap is not None or numbers.has_bias
            same = "" if changed else _("All by the same factor: the picture stays, its numbers change.")
            return tuple(filter(None, (_("Each score: {steps}.").format(steps=steps), same)))
        case "masked" if hidden:
            text = _("A query may not see the hatched keys: their scores become −∞. It stays {rows} × {columns}.")
            return (text.format(rows=rows, columns=columns),)
        case "masked":
            return (_("The mask hides nothing here: each of these queries may see every key."),)
        case "weights":
            if float(numbers.weights.sum(axis=1).min()) < 0.995:
                return (_("Each row becomes shares of the whole; what is missing to 100 % goes to a learned sink."),)
            return (_("Each row becomes shares that add up to 100 %; a masked key gets 0 %."),)
        case "rest":
            return (
                _(
                    "These are not the model’s weights: the first column is left out, and each row divided by what is "
                    "left of it, however little that was."
                ),
            )


def reduction_sentence(numbers: HeadNumbers) -> str:
    """How a long text was reduced; "" if every number has a cell."""
    drawn = _drawn(numbers)
    if drawn.side == 1:
        return ""
    if len(numbers.queries) == 1:
        return _("Each cell is the mean of {side} numbers, masked ones left out.").format(side=drawn.side)
    return _("Each cell is the mean of {side} × {side} numbers, masked ones left out.").format(side=drawn.side)


def first_token_sentences(numbers: HeadNumbers) -> tuple[str, ...]:
    """The first token's share of the weight, and the reason for it if the share is large."""
    shares = first_token_share(numbers)
    if shares is None:
        return ()
    share, even = shares
    told = _("The first token, “{token}”, gets {share} of the later tokens’ weight; shared evenly it would be {even}.")
    if len(numbers.queries) == 1:
        told = _("The first token, “{token}”, gets {share} of this query’s weight; shared evenly it would be {even}.")
    texts = [told.format(token=spoken(numbers.key_tokens[0]), share=percent_text(share), even=percent_text(even))]
    if share >= max(LARGE_FIRST_SHARE, 2 * even):
        texts.append(
            _(
                "That is called an attention sink. The shares of a row must add up to 100 %, so a head with nothing to "
                "fetch often parks its weight on the first token, which every later one can see."
            )
        )
    return tuple(texts)


def alt_text(numbers: HeadNumbers, stage: StageKey) -> str:
    """The picture for people who can't see it: the head's name, the stage and its size, and one more sentence."""
    import numpy as np

    values, hidden = stage_numbers(numbers, stage)
    text = _("{name}, {stage}: {rows} queries by {columns} keys.")
    drawn = text.format(name=numbers.name, stage=stage_title(stage), rows=len(values), columns=values.shape[1])
    if stage == "rest":
        return drawn
    if stage == "weights":
        return f"{drawn} {row_sentence(numbers, telling_row(numbers)[0])}"
    shown = np.where(hidden, -np.inf, values)
    query, key = (int(index) for index in np.unravel_index(shown.argmax(), shown.shape))
    largest = _("Largest: “{query}” and “{key}”, {value}.").format(
        query=spoken(numbers.query_tokens[query]),
        key=spoken(numbers.key_tokens[key]),
        value=decimal(float(shown[query, key]), places_for(max(abs(float(shown[query, key])), 1e-6))),
    )
    return f"{drawn} {largest}"


def row_queries(numbers: HeadNumbers) -> tuple[int, ...]:
    """The query that each row of the picture leads to; in a reduced one, its row with the largest weight."""
    starts, side = _drawn(numbers).row_starts, _drawn(numbers).row_starts.step
    later = numbers.weights[:, 1:] if len(numbers.keys) > 1 else numbers.weights
    return tuple(start + int(later[start : start + side].max(axis=1).argmax()) for start in starts)


def query_labels(numbers: HeadNumbers) -> tuple[str, ...]:
    """The labels of the picture's rows: a token or, in a reduced one, the first and last of its tokens."""
    return _labels(numbers.query_tokens, _drawn(numbers).row_starts)


def key_labels(numbers: HeadNumbers) -> tuple[str, ...]:
    """The labels of the picture's columns, like `query_labels`."""
    return _labels(numbers.key_tokens, _drawn(numbers).column_starts)


def cell_texts(numbers: HeadNumbers, stage: StageKey) -> tuple[tuple[str, ...], ...]:
    """A picture's numbers as text, row by row: means where it is reduced, "" for a masked cell."""
    drawn = cells(*stage_numbers(numbers, stage))
    is_share, places = stage in ("weights", "rest"), places_for(drawn.largest)
    return tuple(
        tuple(
            "" if hidden else percent_text(value) if is_share else decimal(value, places)
            for value, hidden in zip(values, hiddens, strict=True)
        )
        for values, hiddens in zip(drawn.values.tolist(), drawn.hidden.tolist(), strict=True)
    )


def number_rows(numbers: HeadNumbers) -> Iterator[tuple[str | int | float, ...]]:
    """Yield the rows of a CSV file: a heading, then each pair of query and key, hidden ones included."""
    yield ("query", "query_token", "key", "key_token", "product", "score", "visible", "weight")
    lines = zip(numbers.products, numbers.scores, numbers.mask, numbers.weights, strict=True)
    for query, (products, scores, mask, weights) in enumerate(lines):
        for key, token in enumerate(numbers.key_tokens):
            # A float32 is written with the fewest digits that read back as the same number.
            shown = (float(str(products[key])), float(str(scores[key])), int(mask[key]), float(str(weights[key])))
            position = numbers.first_query + query + 1
            yield position, numbers.query_tokens[query], key + 1, token, *shown


def spoken(token: str) -> str:
    """A token without the mark of the space before it, if anything is left: 'cat' for '·cat'."""
    return token.lstrip(SPACE_MARKS) or token


def _drawn(numbers: HeadNumbers) -> Cells:
    return cells(*stage_numbers(numbers, "weights"))


def _labels(tokens: tuple[str, ...], starts: range) -> tuple[str, ...]:
    ends = [min(start + starts.step, len(tokens)) - 1 for start in starts]
    return tuple(
        spoken(tokens[start]) if start == end else f"{spoken(tokens[start])} … {spoken(tokens[end])}"
        for start, end in zip(starts, ends, strict=True)
    )


def _distinct(tokens: tuple[str, ...], index: int) -> str:
    text = spoken(tokens[index])
    return f"{text} ({index + 1})" if sum(spoken(token) == text for token in tokens) > 1 else text


def _read_cell(numbers: HeadNumbers, query: int, key: int, column: int, first_key: int, places: int) -> CellReadout:
    import numpy as np

    terms = numbers.queries[query] * numbers.keys[key]
    largest = [int(feature) for feature in np.argsort(-np.abs(terms), kind="stable")[:SHOWN_TERMS]]
    product, is_hidden = float(numbers.products[query, key]), not numbers.mask[query, key]
    weight = percent_text(float(numbers.weights[query, key]))
    masked = _("mask: hidden, its score becomes −∞") if is_hidden else _("mask: may be seen")
    score = decimal(float(numbers.scores[query, key]), places)
    return CellReadout(
        column=column,
        first_key=first_key,
        key=key,
        token=numbers.key_tokens[key],
        position=key + 1,
        product=decimal(product, places),
        score=score,
        weight=weight,
        is_hidden=is_hidden,
        terms=tuple(
            ProductTerm(
                feature + 1,
                decimal(float(numbers.queries[query, feature]), places),
                decimal(float(numbers.keys[key, feature]), places),
                decimal(float(terms[feature]), places),
            )
            for feature in largest
        ),
        rest_count=len(terms) - len(largest),
        rest=decimal(product - float(terms[largest].sum()), places),
        steps=(
            *_score_steps(numbers, query, key, places),
            (masked, "−∞" if is_hidden else score),
            (_("softmax over the row"), weight),
        ),
    )


def _score_steps(numbers: HeadNumbers, query: int, key: int, places: int) -> Iterator[tuple[str, str]]:
    scale, width = numbers.scale, numbers.queries.shape[1]
    value, score = float(numbers.products[query, key]) * scale.factor, float(numbers.scores[query, key])
    texts = {
        "inverse-sqrt": _("divided by √{width} = {root}").format(width=width, root=_plain(math.sqrt(width))),
        "root": _("divided by √{number} = {root}").format(
            number=_plain(scale.number), root=_plain(math.sqrt(scale.number))
        ),
        "stated": _("multiplied by {factor}").format(factor=_plain(scale.factor)),
        "yarn": _("multiplied by {number} and divided by √{width}").format(number=_plain(scale.number), width=width),
    }
    is_last = not numbers.has_bias and numbers.softcap is None
    if scale.kind != "none":
        yield texts[scale.kind], decimal(score if is_last else value, places)
    if numbers.has_bias:
        uncapped = score
        if numbers.softcap is not None:
            uncapped = numbers.softcap * math.atanh(max(-0.999999, min(0.999999, score / numbers.softcap)))
        yield _("a number for the position added"), decimal(uncapped, places)
    if numbers.softcap is not None:
        cap = _plain(numbers.softcap)
        yield _("capped to {cap} · tanh(score / {cap})").format(cap=cap), decimal(score, places)


def _plain(number: float) -> str:
    return f"{number:.4f}".rstrip("0").rstrip(".")
