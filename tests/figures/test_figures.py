"""Figures are drawn from what was typed, in one scale, inside their own frame."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import pairwise
from math import lcm
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.algebra.number_text import format_number
from app.figures.geometry import Point, Rect
from app.figures.parts import (
    Arc,
    Box,
    Edge,
    Figure,
    Flow,
    MismatchBracket,
    Pulled,
    Sign,
    Sketch,
)
from app.figures.scale import MAX_SIDE_PX, MIN_SIDE_PX
from app.figures.sheet_figures import draw_figures
from app.shapes.table import Blank
from app.sheets.library import Library
from app.sheets.variant import Variant
from tests.helpers.rectangles import touch
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

LLAMA, GROUPED = LIBRARY.variant("llama-7b"), LIBRARY.variant("layer-mistral-7b", "qwen2.5-0.5b")
LANE = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")
SIZES = st.one_of(st.integers(1, 300), st.integers(1, 10**18))


def sizes_by_blank(variant: Variant) -> dict[Blank, int]:
    """The sheet filled in with its key."""
    return {blank: variant.answer(blank) for blank in variant.blanks}


def typed(variant: Variant) -> st.SearchStrategy[dict[Blank, int]]:
    return st.dictionaries(st.sampled_from(variant.blanks), SIZES)


def lengths(figures: tuple[Figure, ...]) -> dict[str, set[float]]:
    """The lengths of all edges, by their labels."""
    lengths_by_label: dict[str, set[float]] = {}
    for figure in figures:
        for edge in figure.edges:
            if edge.label not in ("", "?"):
                length = round(math.hypot(edge.end.x - edge.start.x, edge.end.y - edge.start.y), 6)
                lengths_by_label.setdefault(edge.label, set()).add(length)
    return lengths_by_label


def in_lane(figure: Figure, tensor: str) -> Box:
    """A matrix of the flow, not as a right operand."""
    return next(box for box in figure.boxes if box.tensor == tensor and tensor in box.products.split())


def as_operand(figure: Figure, tensor: str) -> Box:
    """The same as a right operand."""
    return next(box for box in figure.boxes if box.tensor == tensor and tensor not in box.products.split())


def by_label(values: Mapping[Blank, int], variant: Variant = LLAMA) -> dict[str, float]:
    lengths_by_label = lengths(draw_figures(variant, values)[-1:])
    assert all(len(several) == 1 for several in lengths_by_label.values()), lengths_by_label
    return {label: next(iter(several)) for label, several in lengths_by_label.items()}


def test_one_size_has_one_length_everywhere() -> None:
    lengths_by_label = by_label(sizes_by_blank(LLAMA))
    assert set(lengths_by_label) == {"100", "128", "4096"}
    assert lengths_by_label["4096"] / lengths_by_label["100"] == pytest.approx(6.4)
    assert lengths_by_label["128"] / lengths_by_label["100"] == pytest.approx(math.sqrt(1.28))
    assert lengths_by_label["4096"] <= MAX_SIDE_PX


@given(SIZES, SIZES)
def test_lengths_follow_the_sizes_down_to_the_shortest(first: int, second: int) -> None:
    figures = draw_figures(LLAMA, {Blank("queries", "rows"): first, Blank("keys", "columns"): second})
    edges = {
        edge.blank: max(edge.end.x - edge.start.x, edge.end.y - edge.start.y)
        for figure in figures
        for edge in figure.edges
    }
    one, other = edges[Blank("queries", "rows")], edges[Blank("keys", "columns")]
    ratio = math.sqrt(first / second)
    if min(one, other) > MIN_SIDE_PX * 1.001:
        assert one / other == pytest.approx(ratio, rel=1e-6)
    assert one >= other - 1e-6 if first >= second else one <= other + 1e-6


@given(typed(LLAMA))
def test_figures_are_finite_and_hold_their_boxes(values: dict[Blank, int]) -> None:
    for figure in draw_figures(LLAMA, values):
        assert 0 < figure.frame.width < math.inf
        assert 0 < figure.frame.height < math.inf
        for box in figure.boxes:
            assert min(box.rect.width, box.rect.height) >= MIN_SIDE_PX * 0.999
            assert figure.frame.holds(box.rect)
        for edge in figure.edges:
            assert all(math.isfinite(end) for end in (*edge.start, *edge.end, *edge.label_at))
        assert all(math.isfinite(end) for arc in figure.arcs for end in (*arc.start, *arc.end))


@given(typed(LLAMA))
def test_matrices_of_a_figure_do_not_cover_each_other(values: dict[Blank, int]) -> None:
    for figure in draw_figures(LLAMA, values):
        for i, a in enumerate(figure.boxes):
            for b in figure.boxes[i + 1 :]:
                assert not touch(a.rect, b.rect), (a.tensor, b.tensor)


@given(st.data())
def test_sides_have_what_was_typed_and_nothing_else(data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from([LLAMA, GROUPED]))
    values = data.draw(typed(variant))
    for edge in (edge for figure in draw_figures(variant, values) for edge in figure.edges):
        if edge.blank in variant.blanks and edge.label:
            assert edge.label == (format_number(values[edge.blank]) if edge.blank in values else "?")


def test_drawing_never_looks_an_answer_up(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dict(sizes_by_blank(LLAMA))
    sheets: list[dict[Blank, int]] = [{}, right, dict.fromkeys(right, 7)]
    before = [draw_figures(LLAMA, sheet) for sheet in sheets]

    def closed(*_arguments: object) -> int:
        raise AssertionError("the drawing looked an answer up")

    monkeypatch.setattr(Variant, "answer", closed)
    assert [draw_figures(LLAMA, sheet) for sheet in sheets] == before


def test_right_answers_leave_no_mismatch(library: Library) -> None:
    drawn = 0
    for variant in (library.variant(sheet) for sheet in library.worksheets):
        figures = draw_figures(variant, sizes_by_blank(variant))
        edges = [edge for figure in figures for edge in figure.edges]
        assert not any(figure.mismatches for figure in figures)
        assert not any(arc.mismatch for figure in figures for arc in figure.arcs)
        assert "mismatch" not in {edge.kind for edge in edges}
        assert not any(figure.brackets for figure in figures)
        drawn += len(figures)
    assert drawn >= 9


def test_an_empty_sheet_is_drawn_open(library: Library) -> None:
    *_, figure = draw_figures(library.variant("llama-7b"), {})
    asked = [box for box in figure.boxes if box.tensor in library.variant("llama-7b").worksheet.rows]
    assert all(box.incomplete for box in asked)
    assert len({box.rect[2:] for box in asked}) == 1
    labels = {edge.label for edge in figure.edges}
    assert labels == {"?", "4096", "128"}, "parameters have the sizes that the text gives"
    assert {edge.label for edge in figure.edges if edge.blank in library.variant("llama-7b").blanks} == {"?"}
    assert figure.flow
    assert not figure.flow.lanes
    assert not figure.mismatches


def test_the_lane_is_where_rows_are_known(library: Library) -> None:
    variant = library.variant("llama-7b")
    rows = {Blank("input", "rows"): 100}
    for typed in (rows, rows | {Blank("queries", "rows"): 100}):
        *_, figure = draw_figures(variant, typed)
        assert figure.flow
        known = {blank.tensor for blank in typed}
        for key in LANE:
            assert any(lane.holds(in_lane(figure, key).rect) for lane in figure.flow.lanes) == (key in known)


def test_captions_come_after_the_first_check(library: Library) -> None:
    variant = library.variant("llama-7b")
    *_, filled = draw_figures(variant, sizes_by_blank(variant))
    *_, empty = draw_figures(variant, {})
    assert filled.captions == ()
    assert len(filled.explanations) == len(empty.explanations) + 1


def test_a_mismatch_is_drawn_and_named_by_what_was_typed(library: Library) -> None:
    values = {Blank("queries", "columns"): 128, Blank("keys", "columns"): 4096}
    figures = draw_figures(library.variant("llama-7b"), values, names_sizes=False)  # without the given parameters
    broken = [figure for figure in figures if figure.mismatches]
    assert [figure.key for figure in broken] == ["flow"]
    (mismatch,) = broken[0].mismatches
    assert set(re.findall(r"\d+", mismatch.sentence)) == {"128", "4096"}
    assert mismatch.about == ("queries.columns", "keys.columns", "scores")
    assert broken[0].explanations == draw_figures(library.variant("llama-7b"), {})[0].explanations
    assert [arc.products for arc in broken[0].arcs if arc.mismatch] == ["scores"]
    assert [each.text for each in broken[0].brackets] == ["4096 ≠ 128"]
    assert "mismatch" not in {edge.kind for edge in broken[0].edges}, "neither is blamed"


def test_what_does_not_fit_a_given_parameter_is_marked(library: Library) -> None:
    values = {Blank("queries", "columns"): 4096}
    broken = [figure for figure in draw_figures(library.variant("llama-7b"), values) if figure.mismatches]
    assert [mismatch.about[0] for figure in broken for mismatch in figure.mismatches] == ["queries.columns"]
    assert [each.text for figure in broken for each in figure.brackets] == ["4096 ≠ 128"]


def test_an_output_that_cannot_be_added_stands_in_the_outline_of_the_input(library: Library) -> None:
    variant = library.variant("llama-7b")
    right = sizes_by_blank(variant)
    assert not any(figure.outlines for figure in draw_figures(variant, right))
    wide = Blank("output", "columns")
    *_, figure = draw_figures(variant, right | {wide: 128})
    (outline,) = figure.outlines
    before, after = in_lane(figure, "input"), in_lane(figure, "output")
    assert (outline.x, outline.y) == (after.rect.x, after.rect.y)
    assert (outline.width, outline.height) == pytest.approx((before.rect.width, before.rect.height))
    assert outline.x + outline.width < figure.frame.right
    assert outline.y + outline.height < figure.frame.bottom
    needed = right[Blank("input", wide.field)]
    assert {each.text for each in figure.brackets} == {f"{needed} ≠ 128"}
    assert any("cannot be added" in each.sentence for each in figure.mismatches)


def test_queries_and_keys_of_one_width_meet_at_the_corner(library: Library) -> None:
    values = {Blank("queries", "columns"): 128, Blank("keys", "columns"): 128}
    *_, figure = draw_figures(library.variant("llama-7b"), values)
    (arc,) = (arc for arc in figure.arcs if arc.products == "scores")
    queries, keys = in_lane(figure, "queries"), as_operand(figure, "keys")
    assert not arc.mismatch
    assert not arc.is_open
    assert keys.transposed
    assert keys.rect.height == pytest.approx(queries.rect.width)
    assert arc.start[0] == queries.rect.x
    assert arc.end[1] == pytest.approx(keys.rect.y + keys.rect.height)


def test_a_head_is_one_lane_of_tokens(library: Library) -> None:
    variant = library.variant("llama-7b")
    *_, figure = draw_figures(variant, sizes_by_blank(variant))
    lane = [in_lane(figure, key).rect for key in LANE]
    assert len({(y, height) for _, y, _, height in lane}) == 1
    assert all(a[0] + a[2] < b[0] for a, b in pairwise(lane))
    projections = [("W_V", "values"), ("W_K", "keys"), ("W_Q", "queries")]
    above = []
    for operand, result in [*projections, ("keys", "scores"), ("values", "context"), ("W_O", "output")]:
        (x, y, width, height), under = as_operand(figure, operand).rect, in_lane(figure, result).rect
        assert (x, width) == pytest.approx((under[0], under[2]))
        above.append(y + height < under[1])
        assert above[-1] or y > under[1] + under[3]
    assert above == [True, True, True, False, True, False]


def test_a_matrix_with_other_rows_sticks_out_of_the_lane(library: Library) -> None:
    variant = library.variant("llama-7b")
    *_, right = draw_figures(variant, sizes_by_blank(variant))
    rows = {Blank("queries", "rows"): 400, Blank("values", "rows"): 20}
    *_, wrong = draw_figures(variant, sizes_by_blank(variant) | rows)
    assert right.flow
    assert wrong.flow
    queries, keys, values = (in_lane(wrong, key).rect.height for key in ("queries", "keys", "values"))
    assert queries > wrong.flow.lanes[0].height > keys > values
    assert {"400 ≠ 100", "20 ≠ 100"} <= {each.text for each in wrong.brackets}
    assert right.brackets == ()


def test_the_product_being_worked_on_is_the_first_that_is_not_answered(library: Library) -> None:
    variant = library.variant("llama-7b")
    right, typed, on = sizes_by_blank(variant), dict[Blank, int](), list[set[str]]()
    for blank in variant.blanks:
        *_, figure = draw_figures(variant, typed)
        assert figure.flow
        on.append({box.tensor for box in figure.boxes if "on" in figure.flow.states[box.products].split()})
        typed[blank] = right[blank]
    assert on[0] == on[1] == {"input"}
    assert on[2] == {"input", "W_Q", "queries"}
    assert on[9] == {"queries", "keys", "scores"}
    *_, whole = draw_figures(variant, right)
    assert whole.flow
    assert set(whole.flow.states.values()) == {"on done"}
    assert {part.products for parts in (whole.boxes, whole.arcs, whole.signs) for part in parts} <= set(
        whole.flow.states
    )
    assert set(whole.flow.frames) == set(LANE)


def test_the_mask_hides_a_corner_of_the_weights_and_changes_no_shape(library: Library) -> None:
    variant = library.variant("llama-7b")
    boxes = [box for figure in draw_figures(variant, sizes_by_blank(variant)) for box in figure.boxes]
    assert {box.tensor for box in boxes if box.masked} == {"weights"}
    assert {box.tensor for box in boxes if box.hatched} == {"W_Q", "W_K", "W_V", "W_O"}
    scores, weights = (next(box for box in boxes if box.tensor == key) for key in ("scores", "weights"))
    assert (scores.rect.width, scores.rect.height) == (weights.rect.width, weights.rect.height)


def test_colours_follow_the_number_and_not_the_box(library: Library) -> None:
    values = {Blank("input", "rows"): 128, Blank("scores", "columns"): 128, Blank("values", "rows"): 77}
    edges = [edge for figure in draw_figures(library.variant("llama-7b"), values) for edge in figure.edges]
    kinds = {(str(edge.blank), edge.kind) for edge in edges if edge.label in ("128", "77")}
    assert ("input.rows", "head") in kinds
    assert ("scores.columns", "head") in kinds
    assert {kind for blank, kind in kinds if blank == "values.rows"} <= {"other", "mismatch"}


def told(variant: Variant, sizes: Mapping[Blank, int]) -> list[Any]:
    """What a drawing that may tell nothing marks, and which boxes have their number written in it."""
    figures = draw_figures(variant, sizes, names_sizes=False, shows_mismatches=False)
    marked = {(f.mismatches, f.brackets, f.outlines, tuple(arc for arc in f.arcs if arc.mismatch)) for f in figures}
    edges = [edge for figure in figures for edge in figure.edges if edge.blank in sizes and edge.shown == "label"]
    return [marked - {((), (), (), ())}, sorted((str(edge.blank), edge.kind) for edge in edges)]


@pytest.mark.parametrize("worksheet", one_in(7, LIBRARY.worksheets))
def test_a_drawing_that_may_tell_nothing_tells_nothing(worksheet: str) -> None:
    for model in LIBRARY.models:
        if LIBRARY.refusal(worksheet, model) is None:
            variant = LIBRARY.variant(worksheet, model)
            heads = lcm(*(variant.sizes.get(symbol, 1) for symbol in "HG"))
            right = variant.problem.answers
            wrong = {blank: size + place * heads for place, (blank, size) in enumerate(right.items(), 1)}
            marked, written = told(variant, wrong)
            assert not marked, variant.code
            assert told(variant, right) == [marked, written], variant.code


def test_a_drawing_that_is_moved_there_and_back_is_the_drawing_itself() -> None:
    part = Rect(1.0, 2.0, 3.0, 4.0)
    areas = (((1.0, 2.0), (3.0, 4.0), (5.0, 7.0)),)
    box = Box("queries", "Q", "query", part, masked=areas, strips=5, groups=areas, part=part, gaps=areas)
    ends = (Point(1.0, 2.0), Point(3.0, 5.0))
    edge = Edge(Blank("queries", "rows"), "upper", *ends, "128", "head")
    sketch = Sketch(
        boxes=(box,),
        edges=(edge,),
        arcs=(Arc(*ends, True, False),),
        outlines=(part,),
        signs=(Sign("+", ends[0]),),
        pulled=(Pulled(areas[0]),),
        brackets=(MismatchBracket(*ends, Point(1.0, 0.0), "1 ≠ 2"),),
        flow=Flow((part,), {"queries": part}, {"queries": edge}),
    )
    assert all(vars(sketch).values())  # so that none can be lost
    moved = sketch.moved(3.0, 4.0)
    assert all(one != other for one, other in zip(vars(sketch).values(), vars(moved).values(), strict=True))
    assert moved.moved(-3.0, -4.0) == sketch
    assert sketch + Sketch() == sketch == Sketch() + sketch


def test_the_drawing_of_first_steps_grows_with_them() -> None:
    variant = LIBRARY.variant("first-steps")
    key, drawn = variant.problem.answers, list[tuple[str, ...]]()
    for at in range(len(variant.rows)):
        typed = {blank: key[blank] for row in variant.rows[:at] for blank in row.blanks}
        [figure] = draw_figures(variant, typed)
        drawn.append(figure.tensors)
    assert {*drawn[0]} == {"token", "W_Q", "token_query"}
    assert "transposed_key" in drawn[2]
    growing = [len(step) for step in drawn[4:10]]
    assert growing == sorted(growing)
    assert growing[0] < growing[-1]
    assert len(draw_figures(variant, key)) == 4
