"""Exhibits: products step by step as numpy multiplies, heads dealt as repeat_interleave has it, and a growing cache."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from app.figures.parts import Figure
from app.figures.steps import (
    ExhibitStep,
    asked_head,
    dealt,
    heads_steps,
    product_steps,
    products_of,
    shown_products,
    token_rows,
    token_steps,
    true_answers,
)
from app.models.architecture import TokensError
from app.shapes.table import Blank
from app.sheets.answers import Answer
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.topics.layer_heads import LayerHeads, possible_kv_heads
from app.topics.requirements import TopicError
from tests.helpers.shipped import IN_SYMBOLS, LIBRARY

DECODE = "decode-gpt2"


def drawn_sides(figure: Figure, tensor: str) -> set[str]:
    """What is written along the sides of one matrix."""
    return {edge.label for edge in figure.edges if edge.blank and edge.blank.tensor == tensor}


def of_part(steps: list[ExhibitStep], part: str) -> list[ExhibitStep]:
    """The steps of one product."""
    return [step for step in steps if step.part == part]


@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_every_product_of_a_right_sheet_meets_and_appears(library: Library, key: str) -> None:
    for model in ("llama-7b", "qwen2.5-0.5b", "gpt2", "mistral-7b", "whisper-tiny"):
        try:
            variant = library.variant(key, model)
        except (TopicError, TokensError):
            continue
        steps = [*product_steps(variant, true_answers(variant))]
        results = [product.result for product in shown_products(variant)]
        assert [step.part for step in steps] == [part for result in results for part in (result, result)]
        for product, met, made in zip(shown_products(variant), steps[::2], steps[1::2], strict=True):
            assert not met.figures()[0].mismatches
            assert {product.left, product.right, product.result} <= {*made.figures()[0].tensors}
            assert "{" not in met.sentence + made.sentence


def test_every_product_in_a_figure_of_a_whole_sheet_is_shown(library: Library) -> None:
    for key in ("llama-7b", "layer-mistral-7b", "three-dimensions-llama-7b", DECODE):
        variant = library.variant(key)
        assert shown_products(variant)
        drawn = {product.result for product in products_of(variant.table)}
        assert {product.result for product in shown_products(variant)} == drawn & {
            step.part for step in product_steps(variant, true_answers(variant))
        }


def test_typed_numbers_fit_exactly_where_numpy_multiplies(library: Library) -> None:
    variant, random = library.variant("llama-7b"), Random(1)  # noqa: S311 - any sizes will do
    for _ in range(60):
        sizes = [random.choice((2, 3, 5)) for _side in range(4)]
        blanks = [
            Blank("queries", "rows"),
            Blank("queries", "columns"),
            Blank("keys", "rows"),
            Blank("keys", "columns"),
        ]
        steps = of_part([*product_steps(variant, dict(zip(blanks, sizes, strict=True)))], "scores")
        try:
            made = (np.ones(sizes[:2]) @ np.ones(sizes[2:]).T).shape
        except ValueError:
            [met] = steps
            assert met.figures()[0].mismatches
            assert not met.question
            continue
        assert " × ".join(map(str, made)) in steps[1].sentence
        assert {str(side) for side in made} == drawn_sides(steps[1].figures()[0], "scores") - {""}


def test_the_result_is_not_told_before_it_appears(library: Library) -> None:
    variant = library.variant("llama-7b")
    met, made = of_part([*product_steps(variant, true_answers(variant))], "scores")
    assert met.question
    assert drawn_sides(met.figures()[0], "scores") <= {"", "?"}
    assert drawn_sides(made.figures()[0], "scores") == {"100"}
    assert not made.question


def test_what_was_typed_for_a_result_does_not_change_what_its_operands_make(library: Library) -> None:
    variant = library.variant("llama-7b")
    wrong = true_answers(variant) | {Blank("scores", "columns"): Answer(7)}
    _met, made = of_part([*product_steps(variant, wrong)], "scores")
    assert drawn_sides(made.figures()[0], "scores") == {"100"}


def test_a_flow_shows_where_the_product_is(library: Library) -> None:
    variant = library.variant("llama-7b")
    met, _made = of_part([*product_steps(variant, true_answers(variant))], "scores")
    _alone, whole = met.figures()
    assert whole.flow
    on = {box.tensor for box in whole.boxes if whole.flow.states[box.products].startswith("on")}
    assert on == {"queries", "keys", "scores"}


def test_heads_of_unequal_width_do_not_fit(library: Library) -> None:
    variant = library.variant("layer-mistral-7b", "qwen2.5-0.5b", 7)
    answers = true_answers(variant)
    assert len(of_part([*product_steps(variant, answers)], "scores")) == 2
    wide = {**answers, Blank("keys", "columns"): replace(answers[Blank("keys", "columns")], value=896)}
    assert len(of_part([*product_steps(variant, wide)], "scores")) == 1


def test_decks_of_unequal_height_do_not_fit_though_their_inner_sides_are_equal(library: Library) -> None:
    variant = library.variant("three-dimensions-llama-7b")
    [heads] = [blank for blank in variant.blanks if str(blank) == "keys_by_head.dim0"]
    answers = {**true_answers(variant), heads: Answer(8)}
    [met] = [step for step in product_steps(variant, answers) if step.part == "scores"]
    assert not met.question
    assert "card for card" in met.sentence


@pytest.mark.parametrize("key", IN_SYMBOLS)
def test_a_sheet_in_symbols_is_shown_in_symbols(library: Library, key: str) -> None:
    variant = library.variant(key)
    for step in product_steps(variant, true_answers(variant)):
        assert not any(str(size) in step.sentence.split() for size in variant.sizes.values() if size > 9)


@pytest.mark.parametrize("count", possible_kv_heads(32))
def test_heads_are_dealt_as_repeat_interleave_has_it(library: Library, count: int) -> None:
    heads = LayerHeads({**library.variant("three-dimensions-llama-7b").sizes, "G": count})
    read = np.repeat(np.arange(count), 32 // count)
    asked = asked_head(heads)
    for key in range(count):
        assert dealt(heads, key).startswith("Right") == (key == read[asked])
        assert list(np.flatnonzero(read == key)) == list(heads.readers_of(key))
        assert str(heads.readers_of(key)[-1]) in dealt(heads, key)[dealt(heads, key).index(":") :] or key == read[asked]


def test_the_steps_of_heads_draw_the_sheet_of_all_heads(library: Library) -> None:
    for model in ("llama-7b", "qwen2.5-0.5b", "gpt2"):
        variant = library.variant("three-dimensions-llama-7b", model)
        steps = {step.part: step for step in heads_steps(variant)}
        assert [figure.key for figure in steps["pairs"].figures()] == ["deck-scores"]
        assert all("{" not in step.sentence + step.question for step in steps.values())


# One more token


def with_window(variant: Variant, window: int) -> Variant:
    """A sheet about a model whose layers all have a sliding window."""
    architecture = variant.architecture
    stack = architecture.stacks[0]
    runs = tuple(replace(run, window=window) for run in stack.runs)
    own = replace(architecture, window=window, stacks=(replace(stack, runs=runs),))
    return replace(variant, model=replace(variant.model, architecture=own))


def test_shapes_are_those_of_arrays_that_grow_by_a_row(library: Library) -> None:
    variant = library.variant(DECODE, "llama-7b", 100)
    cached = np.zeros((0, 128))
    steps = {token.cached: (step, token) for step, token in token_steps(variant)}
    for count in range(101):
        query, cached = np.ones((1, 128)), np.vstack([cached, np.ones((1, 128))])
        if count in steps:
            step, token = steps[count]
            assert token.shape("keys") == token.shape("values") == cached.shape
            assert token.shape("scores") == (query @ cached.T).shape
            [figure] = step.figures()
            assert drawn_sides(figure, "keys") - {""} == {str(side) for side in cached.shape}
    assert sorted(steps) == [0, 1, 2, 3, 4, 100]


@pytest.mark.parametrize("window", [None, 3])
def test_scores_are_the_rows_of_the_mask(library: Library, window: int | None) -> None:
    variant = library.variant(DECODE, "gpt2", 4)
    variant = with_window(variant, window) if window else variant
    _step, last = token_steps(variant)[-1]
    visible = np.tril(np.ones((5, 5), bool)) & ~np.tril(np.ones((5, 5), bool), -(window or 5))
    rows = token_rows(last)
    for number, (row, mask) in enumerate(zip(rows, visible, strict=True)):
        assert row.scores == tuple(mask[: number + 1])
    assert [row.state for row in rows] == ["dropped"] * (5 - (window or 5)) + ["kept"] * ((window or 5) - 1) + ["new"]


def test_windows_drop_the_oldest_key_where_the_model_has_them(library: Library) -> None:
    for key, layers in (("mistral-7b", (0, 0)), ("gemma-2-2b", (13, 26))):
        step, last = token_steps(library.variant(DECODE, key, 100))[-1]
        assert (last.cached, last.keys, last.dropped, last.layers) == (4096, 4096, 1, layers)
        assert "4096" in drawn_sides(step.figures()[0], "keys")
    assert all(token.dropped == 0 for _step, token in token_steps(library.variant(DECODE, "llama-3-8b", 5000)))


def test_every_model_has_an_exhibit_or_the_reason_of_the_topic(library: Library) -> None:
    for key, model in library.models.items():
        if reason := library.refusal(DECODE, key):
            assert model.name in reason
            continue
        for step, _token in token_steps(library.variant(DECODE, key, 12)):
            assert step.figures()
            assert "{" not in step.sentence
