"""Formulas in a sheet's letters: every operand is named, and nothing of the table's own keys is left."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from app.models.score_scale import ScoreScale
from app.sheets.library import Library
from app.sheets.prose import formula_pieces, write_formula
from app.sheets.variant import Variant


def written(variant: Variant) -> dict[str, str]:
    """Every formula of a sheet's table by key, including rows that it doesn't ask for."""
    return {key: write_formula(variant, key) for key in variant.table.askable}


def test_every_formula_names_the_operands_of_its_operation_and_nothing_unknown(library: Library) -> None:
    phrases = {**library.wording.sheets["formulas"], "norm": ""}
    for key in library.worksheets:
        variant = library.variant(key)
        known = {*variant.letters, *variant.sizes, *phrases}
        for tensor in variant.table.tensors:
            formula = variant.table.formula(tensor.key)
            for phrase in re.findall(r"\{([a-z-]+)\}", formula):
                formula += str(phrases.get(phrase, ""))
            names = set(re.findall(r"\{([\w-]+)\}", formula))
            assert names <= known, (key, tensor.key)
            assert set(tensor.made_by.operands if tensor.made_by else ()) <= names, (key, tensor.key)
        for count in variant.table.counts:
            assert set(re.findall(r"\{([\w-]+)\}", count.formula)) <= known | set(variant.table.askable), (
                key,
                count.key,
            )


def test_no_brace_and_no_key_is_left_in_a_formula(library: Library) -> None:
    for key in library.worksheets:
        for formula in written(library.variant(key)).values():
            assert not re.search(r"[{}]|\w+ed_\w+|_flops", formula), formula


@pytest.mark.parametrize(
    ("worksheet", "key", "formula"),
    [
        ("walk-llama-3.2-1b", "gate", "R' · W_gate"),
        ("walk-llama-3.2-1b", "hidden", "activation(G) ⊙ U"),
        ("walk-llama-3.2-1b", "logits", "Y' · W_out"),
        ("llama-7b~symbols", "queries", "X · W_Q"),
        ("llama-7b~symbols", "weights", "softmax(S/√d_head + mask), row by row"),
        ("cross-bart-base", "keys", "E · W_K"),
        ("costs-llama-7b", "scores_flops", "2 · N · N · d_head, for each of H heads"),
    ],
)
def test_a_formula_is_in_the_letters_of_the_sheet(library: Library, worksheet: str, key: str, formula: str) -> None:
    assert write_formula(library.variant(worksheet), key) == formula


def test_a_formula_is_in_the_notation_of_the_worksheet(library: Library) -> None:
    variant = library.variant("llama-7b")
    lecture = replace(variant, worksheet=replace(variant.worksheet, notation="lecture"))
    assert write_formula(lecture, "queries") == "E · W'_Q"
    assert write_formula(lecture, "weights") == "softmax(S/√d_h + mask), row by row"


@pytest.mark.parametrize(
    ("model", "changes", "formula"),
    [
        ("llama-7b", {}, "softmax(S/√d_head + mask), row by row"),
        ("llama-7b", {"score_softcap": 50.0}, "softmax(softcap(S/√d_head) + mask), row by row"),
        ("llama-7b", {"position_bias": "alibi"}, "softmax(S/√d_head + position bias + mask), row by row"),
        ("llama-7b", {"score_scale": ScoreScale("none", 1.0)}, "softmax(S + mask), row by row"),
        ("llama-7b", {"score_scale": ScoreScale("stated", 0.1)}, "softmax(scale · S + mask), row by row"),
    ],
)
def test_the_softmax_is_that_of_the_model(library: Library, model: str, changes: dict[str, Any], formula: str) -> None:
    variant = library.variant("llama-7b", model)
    architecture = replace(variant.model.architecture, **changes)
    assert (
        write_formula(replace(variant, model=replace(variant.model, architecture=architecture)), "weights") == formula
    )


def test_t5_does_not_scale_its_scores_and_adds_a_position_bias_in_self_attention_only(library: Library) -> None:
    own = write_formula(library.variant("bidirectional-bert-base", "t5-small"), "weights")
    cross = write_formula(library.variant("cross-bart-base", "t5-small"), "weights")
    assert (own, cross) == ("softmax(S + position bias), row by row", "softmax(S), row by row")


def test_a_given_matrix_has_no_formula_and_symbols_are_told_from_words(library: Library) -> None:
    variant = library.variant("llama-7b~symbols")
    assert formula_pieces(variant, "input") == ()
    symbols = [piece.text for piece in formula_pieces(variant, "weights") if piece.is_symbol]
    assert symbols == ["S", "d_head"]
