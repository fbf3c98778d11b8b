"""The reasons of rows are true, by their numbers, for every topic with every family, and tell nothing of other rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest

from app.algebra.expression import Expression
from app.models.architecture import TokensError
from app.shapes.operation import Operation
from app.shapes.table import Count, Tensor
from app.sheets.reasons import row_reason
from app.sheets.variant import Row, Variant
from app.sheets.worksheet import Answers, Model, Worksheet, WorksheetError
from app.topics.registry import TOPICS, check_topic_tokens, possible_tokens, topic_for
from app.topics.requirements import TopicError
from tests.helpers.every_family import bug_shown, possible
from tests.helpers.shipped import LIBRARY, MODELS, UNLIKE_MODELS

ON_MODELS = pytest.mark.parametrize("models", ["shipped", pytest.param("families", marks=pytest.mark.slow)])


def sheets(topic: str, models: str, answers: Answers) -> Iterator[Variant]:
    """A sheet with every row of the topic for each of the models: those shipped, or those of every family."""
    architectures = possible(topic) if models == "families" else (MODELS[key] for key in UNLIKE_MODELS)
    for architecture in architectures:
        named = LIBRARY.wording.topics[topic].rows
        with suppress(TopicError, TokensError, WorksheetError):
            tokens = possible_tokens(topic, architecture, 60)
            table = topic_for(topic, architecture, tokens)
            rows = tuple(key for key in table.askable if key in named)
            worksheet = Worksheet("asked", "T", "model", topic, tokens, rows, answers=answers, bug=bug_shown(table))
            model = Model("model", "The model", "", "", architecture, "{}")
            yield Variant(worksheet, model, check_topic_tokens(topic, architecture, tokens), LIBRARY.wording)


def number(text: str) -> int:
    """What arithmetic in a sheet's way of writing comes to, rounded as it says."""
    arithmetic = re.sub(r", for each of ([\d,]+) \w+", r" · \1", text)
    rounding = math.ceil if "rounded up" in text else math.floor if "rounded down" in text else int
    arithmetic = re.sub(r", rounded (up|down)| bytes?", "", arithmetic).replace(",", "").replace("·", "*")
    value = Expression.parse(arithmetic.replace("−", "-").replace("÷", "/")).value({})
    assert value.denominator == 1 or "rounded" in text
    return rounding(value)


def shape(text: str) -> list[int]:
    """A shape as a sheet writes it: "100 × 128", or "(32, 100, 128)"."""
    inner = text.removeprefix("(").removesuffix(")") if ", " in text else text
    return [number(side) for side in re.split(r", | × ", inner)]


def numbers_in(text: str) -> set[int]:
    return {number(each) for each in re.findall(r"\d+(?:,\d{3})*", re.sub(r"\bdim \d", "", text))}


def check_product(working: str, row: list[int]) -> None:
    """Two shapes with equal inner sides give the third: the last two sides of the row, or what one head has of them."""
    product, *joined = working.split("; ")
    factors, result = product.removesuffix(" in each head").split(" = ")
    left, right = (shape(factor) for factor in factors.removeprefix("(").removesuffix(")").split(") · ("))
    assert left[1] == right[0]
    assert shape(result) == [left[0], right[1]]
    wholes = [number(each.split(" = ")[1]) for each in joined]
    assert all(each in (side, *wholes) for each, side in zip(row[-2:], shape(result), strict=True))
    for each in joined:
        check_equation(each, set(row))


def check_equation(working: str, right: set[int]) -> None:
    """The two sides of an equation are equal, and the second is a number of the row."""
    left, result = working.split(" = ")
    assert number(left) == number(result)
    assert number(result) in right


def check_in_numbers(variant: Variant, row: Row) -> None:
    reason, entry = row_reason(variant, row.key), variant.table.askable[row.key]
    answers = [variant.answer(blank) for blank in row.blanks]
    assert not re.search(r"[{}]|None|  | ,", reason.text + reason.working), f"{row.key}: a word is empty: {reason.text}"
    if isinstance(entry, Tensor):
        written, _, text = reason.text.partition(": ")
        assert shape(written) == [n for n, field in zip(answers, row.fields, strict=True) if field != "count"], reason
        assert numbers_in(text) <= set(answers), reason
        assert text.endswith(".")
    else:
        assert not numbers_in(reason.text), reason
    if "×" in reason.working:
        assert isinstance(entry, Tensor)
        check_product(reason.working, answers)
    elif reason.working:
        merged = {variant.answer(side) for side in getattr(entry, "merged_sides", {})}
        check_equation(reason.working, {*answers, *merged})


@ON_MODELS
@pytest.mark.parametrize("topic", TOPICS)
def test_the_numbers_of_every_reason_are_those_of_the_answers(topic: str, models: str) -> None:
    seen = set()
    for variant in sheets(topic, models, "numbers"):
        for row in variant.rows:
            if not row.is_question:  # those about a program are tested with its topic
                check_in_numbers(variant, row)
            seen.add(row.key)
    if TOPICS[topic].bugs:  # only the first bug's, which has fewer shapes
        return
    assert seen == set(LIBRARY.wording.topics[topic].rows) or models == "families" or topic == "parameter-count"


@ON_MODELS
@pytest.mark.parametrize("topic", TOPICS)
def test_on_a_sheet_in_symbols_every_reason_has_the_answers_in_symbols(topic: str, models: str) -> None:
    for variant in sheets(topic, models, "letters"):
        for row in variant.rows:
            text, working = row_reason(variant, row.key)
            if row.is_question:
                continue
            assert not re.search(r"[{}]|None|  ", text + working), (text, working)
            is_count = isinstance(variant.table.askable[row.key], Count)
            separator = ", " if variant.has_dimensions else " × "
            written = [working.rpartition(" = ")[2]] if is_count else text.partition(": ")[0].split(separator)
            for blank, symbols in zip(row.blanks, written, strict=False):
                right = variant.notation.write(variant.expression(blank))
                assert symbols in ("", right, f"({right})", f"({right}", f"{right})", f"({right},)"), (text, working)


def test_every_kind_of_operation_has_a_sentence() -> None:
    kinds = {each.__name__ for each in operations(Operation) if not each.__name__.startswith("_")}
    sentences = {key.partition("-")[0] for key in LIBRARY.wording.sheets["reasons"] if key[0].isupper()}
    assert sentences == kinds


def operations(kind: type[Operation]) -> Iterator[type[Operation]]:
    for each in kind.__subclasses__():
        yield each
        yield from operations(each)
