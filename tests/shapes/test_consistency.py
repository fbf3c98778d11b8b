"""Shapes typed by a student against each other, along the equations: worked by hand."""

from __future__ import annotations

import pytest

from app.shapes.consistency import DimensionMismatch, Values, mismatches, typed_source_of, upstream_blanks
from app.shapes.table import Blank, BlankField, TensorTable, side_fields
from app.topics.attention_layer import ATTENTION_LAYER
from app.topics.single_head import SINGLE_HEAD
from tests.helpers.tables import TABLES


def typed(**shapes: tuple[int | None, int | None]) -> dict[Blank, int]:
    """Shapes as typed, None for a box left empty."""
    axes: tuple[BlankField, BlankField] = ("rows", "columns")
    pairs = [(Blank(key, axis), size) for key, shape in shapes.items() for axis, size in zip(axes, shape, strict=True)]
    return {blank: size for blank, size in pairs if size is not None}


ASKED = frozenset({"input", "queries", "keys", "values", "scores", "weights", "output"})
RIGHT = typed(
    input=(100, 4096), queries=(100, 128), keys=(100, 128), values=(100, 128),
    scores=(100, 100), weights=(100, 100), output=(100, 4096),
)  # fmt: skip


def infer_unasked_lengths(table: TensorTable, values: Values, asked: frozenset[str]) -> dict[Blank, int]:
    """The lengths that typed ones give the sides that nobody typed."""
    sources = typed_source_of(table, values, asked)
    return {blank: values[source] for blank, source in sources.items() if blank not in values}


def test_a_right_sheet_has_no_mismatch() -> None:
    assert mismatches(SINGLE_HEAD, RIGHT) == []


def test_an_empty_sheet_has_no_mismatch_and_implies_nothing() -> None:
    assert mismatches(SINGLE_HEAD, {}) == []
    assert infer_unasked_lengths(SINGLE_HEAD, {}, ASKED) == {}


def test_wide_keys_do_not_meet_the_queries() -> None:
    found = mismatches(SINGLE_HEAD, RIGHT | typed(keys=(100, 4096)))
    assert found == [DimensionMismatch("scores", Blank("queries", "columns"), Blank("keys", "columns"))]


def test_a_shape_that_is_wrong_but_fits_has_no_mismatch() -> None:
    assert mismatches(SINGLE_HEAD, RIGHT | typed(queries=(100, 4096), keys=(100, 4096))) == []


def test_scores_that_kept_the_head_width_fit_nowhere() -> None:
    found = [
        (clash.at, str(clash.left), str(clash.right))
        for clash in mismatches(SINGLE_HEAD, RIGHT | typed(scores=(100, 128)))
    ]
    assert found == [
        ("scores", "keys.rows", "scores.columns"),
        ("weights", "scores.columns", "weights.columns"),
    ]


def test_mismatches_come_in_the_order_of_computation() -> None:
    sheet = RIGHT | typed(input=(99, 4096))
    found = [(clash.at, sheet[clash.left], sheet[clash.right]) for clash in mismatches(SINGLE_HEAD, sheet)]
    assert found == [("queries", 99, 100), ("keys", 99, 100), ("values", 99, 100), ("output", 99, 100)]


def test_half_a_shape_is_compared_as_far_as_it_goes() -> None:
    found = mismatches(SINGLE_HEAD, typed(queries=(None, 64), keys=(None, 128)))
    assert [(str(clash.left), str(clash.right)) for clash in found] == [("queries.columns", "keys.columns")]


def test_parameters_are_as_large_as_the_shapes_need_them() -> None:
    found = infer_unasked_lengths(SINGLE_HEAD, RIGHT, ASKED)
    assert found == typed(
        W_Q=(4096, 128), W_K=(4096, 128), W_V=(4096, 128), W_O=(128, 4096), context=(100, 128)
    )  # fmt: skip


def test_an_asked_row_is_never_filled_in() -> None:
    sheet = {blank: size for blank, size in RIGHT.items() if blank.tensor not in ("scores", "weights", "output")}
    found = infer_unasked_lengths(SINGLE_HEAD, sheet, ASKED)
    assert {blank.tensor for blank in found} == {"W_Q", "W_K", "W_V", "W_O", "context"}
    assert found[Blank("context", "columns")] == 128
    assert Blank("context", "rows") not in found  # its rows come from the weights, which are empty
    assert Blank("W_O", "columns") not in found


def test_wrong_shapes_imply_what_they_would_need() -> None:
    found = infer_unasked_lengths(SINGLE_HEAD, typed(input=(100, 128), queries=(100, 64)), ASKED)
    assert (found[Blank("W_Q", "rows")], found[Blank("W_Q", "columns")]) == (128, 64)


def test_grouped_keys_are_no_mismatch_in_a_layer() -> None:
    sheet = typed(
        input=(50, 896), queries=(50, 896), keys=(50, 128), values=(50, 128),
        scores=(50, 50), weights=(50, 50), output=(50, 896),
    )  # fmt: skip
    assert mismatches(ATTENTION_LAYER, sheet) == []


def test_keys_and_scores_of_a_layer_still_meet_in_the_tokens() -> None:
    found = mismatches(ATTENTION_LAYER, typed(keys=(49, 128), scores=(50, 50)))
    assert [(str(clash.left), str(clash.right)) for clash in found] == [("keys.rows", "scores.columns")]


def test_every_side_that_differs_from_the_first_is_a_mismatch() -> None:
    found = mismatches(TABLES["whole-model"], typed(embedded=(5, None), attended=(6, None), residual=(7, None)))
    assert [(clash.at, clash.left.tensor, clash.right.tensor) for clash in found] == [
        ("residual", "embedded", "attended"),
        ("residual", "embedded", "residual"),
    ]


def test_a_narrow_output_cannot_be_added_to_the_input() -> None:
    found = mismatches(SINGLE_HEAD, RIGHT | typed(output=(100, 128)))
    assert found == [DimensionMismatch("output", Blank("input", "columns"), Blank("output", "columns"), added=True)]


@pytest.mark.parametrize(
    "topic", ["single-head", "bidirectional-head", "attention-layer", "decode-step", "windowed-decode-step"]
)
def test_output_and_input_are_compared_side_by_side(topic: str) -> None:
    found = mismatches(TABLES[topic], typed(input=(5, 7), output=(7, 5)))
    assert [(str(clash.left), str(clash.right), clash.added) for clash in found] == [
        ("input.rows", "output.rows", True),
        ("input.columns", "output.columns", True),
    ]


def test_what_leaves_a_decoder_s_head_is_added_to_the_decoder_s_tokens() -> None:
    sheet = typed(input=(12, 512), encoded=(30, 512), output=(12, 512))
    assert mismatches(TABLES["cross-attention"], sheet) == []
    found = mismatches(TABLES["cross-attention"], sheet | typed(output=(30, 512)))
    assert [(str(clash.left), str(clash.right)) for clash in found] == [("input.rows", "output.rows")]


def test_the_sum_at_the_end_makes_no_side_of_the_output() -> None:
    assert Blank("output", "columns") not in infer_unasked_lengths(
        SINGLE_HEAD, typed(input=(100, 4096)), ASKED - {"output"}
    )
    assert upstream_blanks(SINGLE_HEAD, ASKED)[Blank("output", "columns")] == frozenset()


def in_dimensions(**shapes: tuple[int, ...]) -> dict[Blank, int]:
    """Shapes of tensors as typed, in the order of PyTorch's shape."""
    return {
        Blank(key, field): size
        for key, shape in shapes.items()
        for field, size in zip(side_fields(len(shape)), shape, strict=True)
    }


def test_a_view_keeps_every_number() -> None:
    table = TABLES["grouped-three-dimensions"]
    assert mismatches(table, in_dimensions(queries=(100, 4096), split_queries=(100, 32, 128))) == []
    (split,) = mismatches(table, in_dimensions(queries=(100, 4096), split_queries=(100, 32, 100)))
    assert str(split.left) == "queries.columns"
    assert [str(part) for part in split.parts] == ["split_queries.dim1", "split_queries.dim2"]
    (merged,) = mismatches(table, in_dimensions(context_by_token=(100, 32, 64), joined_context=(100, 4096)))
    assert str(merged.left) == "joined_context.columns"


def test_unrepeated_keys_do_not_meet_the_queries() -> None:
    typed_heads = in_dimensions(queries_by_head=(32, 100, 128), repeated_keys=(8, 100, 128))
    (clash,) = mismatches(TABLES["grouped-three-dimensions"], typed_heads)
    assert (str(clash.left), str(clash.right)) == ("queries_by_head.dim0", "repeated_keys.dim0")
