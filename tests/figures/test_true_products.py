"""Every product that is drawn can be multiplied: checked with torch's rules for shapes, for every sheet and model."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from math import prod
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.figures.geometry import Polygon
from app.figures.mismatch_brackets import MIN_BRACKET_PX
from app.figures.parts import Box, Figure
from app.figures.sheet_figures import draw_figures
from app.models.read_config import build_architecture
from app.shapes.operation import Matmul
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.answers import Answer
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.topics.registry import DRAWN_WITH, FIGURE_PLANS, TOPICS
from tests.helpers.own_sheets import own_sheet
from tests.helpers.rectangles import touch
from tests.helpers.shipped import IN_SYMBOLS, LIBRARY
from tests.helpers.slow import one_in


def kind_of(worksheet: Worksheet) -> tuple[str, ...]:
    return worksheet.topic, worksheet.answers


KEYS = (*LIBRARY.worksheets, *IN_SYMBOLS)
FIRST_OF_KIND = {kind_of(LIBRARY.worksheet(key)): key for key in reversed(KEYS)}


@cache
def named(name: str) -> Variant:
    """A sheet by its name, such as "llama-7b@gpt2"."""
    key, _at, model = name.partition("@")
    return LIBRARY.variant(key, model or None)


def names_of(key: str) -> Iterator[str]:
    """A worksheet's own sheet; with every model where it is the first worksheet of its kind."""
    worksheet = LIBRARY.worksheet(key)
    models = LIBRARY.models if FIRST_OF_KIND[kind_of(worksheet)] == key else [worksheet.model]
    for model in models:
        if not LIBRARY.refusal(key, model) and named(f"{key}@{model}").blanks:
            yield f"{key}@{model}"


@cache
def variants() -> list[Variant]:
    return [named(name) for key in LIBRARY.worksheets for name in names_of(key)]


def on_every_sheet(kept: Callable[[Variant], bool] = lambda _: True) -> Callable[[Callable[[str], None]], object]:
    """Make of a test of one sheet a test for each worksheet, which takes all of its models in turn."""

    def for_worksheets(test: Callable[[str], None]) -> object:
        def on_each_model(worksheet: str) -> None:
            for name in filter(lambda name: kept(named(name)), names_of(worksheet)):
                test(name)

        on_each_model.__doc__ = test.__doc__
        worksheets = [key for key in LIBRARY.worksheets if kept(LIBRARY.variant(key))]
        return pytest.mark.parametrize("worksheet", one_in(5, worksheets))(on_each_model)

    return for_worksheets


@cache
def right_figures(variant_name: str) -> tuple[Figure, ...]:
    """The figures of a sheet that is filled in with its key."""
    variant = named(variant_name)
    return draw_figures(variant, {blank: variant.answer(blank) for blank in variant.blanks})


def meta(rows: float, columns: float) -> torch.Tensor:
    """A matrix with a shape and no numbers; a thousandth of a pixel counts as one row or column."""
    return torch.empty(round(rows * 1000), round(columns * 1000), device="meta")


def products(figure: Figure) -> Iterator[tuple[Box, Box, Box]]:
    """The products in a figure as drawn: what is left of a result, what is above it on the right, and the result."""
    if figure.flow:
        yield from lane_products(figure) if figure.flow.lanes else card_products(figure)
    for result in () if figure.flow else figure.boxes:
        above = [b for b in figure.boxes if b.rect.x == result.rect.x and 0 < result.rect.y - b.rect.bottom < 13]
        beside = [b for b in figure.boxes if b.rect.y == result.rect.y and 0 < result.rect.x - b.rect.right < 13]
        if above and beside:
            yield beside[0], above[0], result


def lane_products(figure: Figure) -> Iterator[tuple[Box, Box, Box]]:
    """The products of a flow; with the lane running down, a result's right operand is the left one."""
    products = [(box, box.products.split()) for box in figure.boxes]
    lane = [(box, keys) for box, keys in products if len(keys) > 1 or box.tensor in keys]
    for result, _keys in lane:
        operands = [each for each in products if each not in lane and each[0].rect.x == result.rect.x]
        if operands:  # the nearest one; a head is pulled out of the other
            operand, [key] = min(operands, key=lambda each: abs(each[0].rect.centre.y - result.rect.centre.y))
            yield next(box for box, keys in reversed(lane) if box != result and key in keys[1:]), operand, result


def card_products(figure: Figure) -> Iterator[tuple[Box, Box, Box]]:
    """The products of decks by their front cards: one is above the result, the other left of it."""
    for result in figure.boxes:
        above = [box for box in figure.boxes if box.rect.x == result.rect.x and box.rect.bottom < result.rect.y]
        if above:
            yield (
                max((box for box in figure.boxes if box.rect.x < result.rect.x), key=lambda box: box.rect.x),
                above[0],
                result,
            )


def test_every_topic_is_drawn_for_some_sheet() -> None:
    own = (f"{key}@{worksheet.model}" for key, worksheet in LIBRARY.worksheets.items())
    drawn = {named(name).worksheet.topic for name in own if right_figures(name)}
    assert drawn == {key for key, topic in TOPICS.items() if not topic.bugs}
    tables = {v.table.key for v in variants()}
    assert tables & FIGURE_PLANS.keys() >= {"attention-layer", "direct-latent-attention-layer", "plain-whole-model"}


@on_every_sheet()
def test_products_of_a_right_sheet_can_be_multiplied_as_they_are_drawn(name: str) -> None:
    for figure in right_figures(name):
        for left, above, result in products(figure):
            shape = (meta(left.rect.height, left.rect.width) @ meta(above.rect.height, above.rect.width)).shape
            assert shape == meta(result.rect.height, result.rect.width).shape, (figure.key, left.tensor, above.tensor)


@on_every_sheet(lambda v: v.table.key in FIGURE_PLANS)
def test_each_figure_of_products_has_as_many_as_its_plan(name: str) -> None:
    table = named(name).table
    plans = {plan.key: plan for plan in FIGURE_PLANS[table.key]}
    table = DRAWN_WITH.get(table.key, table)
    figures = {figure.key: figure for figure in right_figures(name)}
    assert table.has_more_sides or plans.keys() == figures.keys()  # steps whose results are not asked are left out
    for plan, figure in ((plans[key], figure) for key, figure in figures.items()):
        multiplied = [made for key in plan.results if isinstance(made := table[key].made_by, Matmul)]
        expected = len(multiplied)
        assert len(list(products(figure))) >= min(expected, 1), plan.key
        if any(made.is_by_head for made in multiplied):
            ((left, above, _),) = products(figure)
            letters = {box.letter for box in (left, above)}
            assert any("_" in letter for letter in letters), letters


# Tokens of several kinds on a sheet with tensors: read before, new, both, to be predicted, read by an encoder, only the
# class token, and what tokens are made from.
TOKEN_NAMES = {"tokens", "cached", "new tokens", "cached + new", "predicted", "encoder", "token", "frames", "patches"}


@on_every_sheet()
def test_a_right_sheet_has_no_mismatch_and_every_asked_side_is_named(name: str) -> None:
    variant = named(name)
    for figure in right_figures(name):
        assert not figure.mismatches, figure.mismatches
        assert not any(arc.mismatch for arc in figure.arcs)
        if figure.flow and not figure.flow.lanes:  # a step of decks, where a name appears once
            assert max(Counter(edge.name for edge in figure.edges if edge.name).values()) == 1
            assert all((edge.kind == "tokens") == (edge.name in TOKEN_NAMES) for edge in figure.edges if edge.name)
            continue
        if figure.flow:  # where a name appears once in each lane, and later sides have the same colour
            names = Counter(edge.name for edge in figure.edges if edge.name)
            asked = {edge.kind for edge in figure.edges if edge.blank and edge.blank.tensor in variant.worksheet.rows}
            assert len(names) >= min(3, len(asked))
            assert max(names.values()) <= len(figure.flow.lanes)
            assert {edge.kind for edge in figure.edges if "token" in edge.name} <= {"tokens"}
            continue
        for edge in figure.edges:
            if edge.blank and edge.blank.field != "count" and edge.blank.tensor in variant.worksheet.rows:
                assert edge.name, edge
                assert ("token" in edge.name or edge.name in ("cached + new", "window")) == (edge.kind == "tokens")


@on_every_sheet(lambda v: v.worksheet.answers == "letters")
def test_a_sheet_in_letters_has_no_numbers_in_its_figures(name: str) -> None:
    for figure in right_figures(name):
        words = [*(e.label + e.name for e in figure.edges), *(b.letter for b in figure.boxes), figure.alt_text]
        said = " ".join(
            [*words, *figure.explanations, *figure.captions, *(each.sentence for each in figure.mismatches)]
        )
        of_code = r"× \d+|d_(head|rot)/2|transpose\([-\d, ]+\)|dim=-?\d|\[[:, ]+0\]"
        assert not re.search(r"[02-9]|1\d", re.sub(of_code, "", said))


@on_every_sheet()
def test_alt_texts_follow_the_convention_and_the_model(name: str) -> None:
    variant = named(name)
    letters = variant.letters
    for figure in right_figures(name):
        if "scores" in figure.tensors and "queries" in figure.tensors and not variant.table.has_more_sides:
            q, k = letters["queries"], letters["keys"]
            assert f"{q} · {k}ᵀ" in figure.alt_text
        masked = [box for box in figure.boxes if box.masked]
        says_mask = "mask" in figure.alt_text.lower() or any("causal mask" in c for c in figure.explanations)
        topic = TOPICS[variant.worksheet.topic]
        if not (topic.masked and (variant.architecture.causal or topic.uses_decoder)):
            assert not masked
            assert not says_mask
        assert {box.tensor for box in masked} <= {"weights", "mask"}


@on_every_sheet(lambda v: bool(v.table.counts))
def test_parts_of_a_count_are_drawn_as_long_as_their_whole(name: str) -> None:
    variant = named(name)
    right = {blank: variant.answer(blank) for blank in variant.blanks}
    for figure in (figure for figure in draw_figures(variant, right) if figure.key == "parts"):
        *parts, whole = figure.boxes
        assert all(b.rect.x == pytest.approx(a.rect.right) for a, b in pairwise(parts))
        numbers = [edge.label.replace(",", "").split(" × ") for edge in figure.edges if edge.side == "right"]
        *summands, total = (prod(map(int, factors)) for factors in numbers)
        assert sum(summands) == total
        assert parts[-1].rect.right == pytest.approx(whole.rect.width, abs=1.5 * len(parts))  # thin ones are seen
        wrong = {**right, Blank(whole.tensor, "count"): right[Blank(whole.tensor, "count")] // 3}
        redrawn = {each.tensors[-1]: each for each in draw_figures(variant, wrong) if each.boxes}[whole.tensor]
        assert redrawn.mismatches
        assert redrawn.outlines[0].width > redrawn.boxes[-1].rect.width


@on_every_sheet()
def test_labels_stand_free(name: str) -> None:
    """No label lies on another one, on a matrix or on an arc, and all lie in the frame."""
    for figure in right_figures(name):
        texts = [edge.text_box for edge in figure.edges]
        for (first, a), (second, b) in combinations(zip(figure.edges, texts, strict=True), 2):
            assert not touch(a, b), (figure.key, first.label, first.side, second.label, second.side)
        for edge, text in zip(figure.edges, texts, strict=True):
            for box in figure.boxes:
                assert not touch(text, box.rect), (figure.key, edge.label, edge.side, box.tensor)
            assert figure.frame.holds(text)


HEAD_ROWS = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")
HEAD, LAYER = own_sheet(LIBRARY, model="llama-3.2-1b", rows=HEAD_ROWS), LIBRARY.variant("layer-mistral-7b")


def multiplies(values: dict[str, tuple[int, int]], variant: Variant, heads: int, kv_heads: int) -> bool:
    """Whether torch can compute attention with a residual connection, with the parameters that the text gives."""
    stated = frozenset({"d_v"}).union(*(fact.symbols for fact in prose.stated_facts(variant)))  # here as large as d_h

    def parameter(key: str, rows: int, columns: int) -> torch.Tensor:
        """A parameter with the sides that are given, and otherwise those that fit."""
        drawn = zip(variant.table[key].shape, (rows, columns), strict=True)
        shape = [side.size(variant.sizes) if str(side) in stated else fitting for side, fitting in drawn]
        return torch.empty(shape, device="meta")

    m = {key: torch.empty(shape, device="meta") for key, shape in values.items()}
    x, q, k, v = (m[key] for key in ("input", "queries", "keys", "values"))
    try:
        for key, projected in (("W_Q", q), ("W_K", k), ("W_V", v)):
            assert (x @ parameter(key, x.shape[1], projected.shape[1])).shape == projected.shape
        q, k, v = (t.view(t.shape[0], n, -1).transpose(0, 1) for t, n in ((q, heads), (k, kv_heads), (v, kv_heads)))
        k, v = (t.repeat_interleave(heads // kv_heads, 0) for t in (k, v))
        scores = q @ k.transpose(1, 2)
        assert scores.shape[1:] == m["scores"].shape == m["weights"].shape
        context = m["weights"].expand(heads, -1, -1) @ v
        assert context.transpose(0, 1).reshape(context.shape[1], -1).shape == m["context"].shape
        output = m["context"] @ parameter("W_O", m["context"].shape[1], m["output"].shape[1])
        assert output.shape == m["output"].shape
        return (x + m["output"]).shape == x.shape == m["output"].shape
    except (AssertionError, RuntimeError):
        return False


NUMBERED = st.deferred(
    lambda: st.sampled_from([v for v in variants() if v.table.key in FIGURE_PLANS and v.worksheet.answers != "letters"])
)


@given(st.integers(0, 2**32), NUMBERED)
def test_each_pair_of_sides_that_differ_is_broken_in_plain_sight(seed: int, variant: Variant) -> None:
    values = {blank: variant.answer(blank) for blank in variant.blanks}
    chance = Random(seed)  # noqa: S311 - so that it can be repeated
    values |= {chance.choice(variant.blanks): int(10 ** chance.uniform(0, 6)) for _ in range(chance.randrange(4))}
    for figure in draw_figures(variant, values):
        assert bool(figure.brackets) <= bool(figure.mismatches)
        if any("divisible" not in each.sentence for each in figure.mismatches):
            assert figure.brackets, figure.mismatches
        taken = [edge.text_box for edge in figure.edges] + [box.rect for box in figure.boxes]
        for each in figure.brackets:
            assert max(each.bracket_box[2:]) >= MIN_BRACKET_PX
            assert all(not touch(each.text_box, other) for other in taken), (figure.key, each)
            assert figure.frame.holds(each.text_box)
            taken.append(each.text_box)


@given(st.integers(0, 2**32), st.sampled_from([HEAD, LAYER]))
def test_there_is_a_mismatch_exactly_where_torch_cannot_multiply(seed: int, variant: Variant) -> None:
    values = {blank: variant.answer(blank) for blank in variant.blanks}
    chance = Random(seed)  # noqa: S311 - so that it can be repeated
    sizes = [*values.values(), 7, 96]
    values |= {chance.choice(variant.blanks): chance.choice(sizes) for _ in range(chance.randrange(4))}
    shapes = {row.key: (values[Blank(row.key, "rows")], values[Blank(row.key, "columns")]) for row in variant.rows}
    layer = variant is LAYER
    heads, kv_heads = (variant.architecture.H, variant.architecture.G) if layer else (1, 1)
    drawn = any(figure.mismatches for figure in draw_figures(variant, values))
    assert drawn != multiplies(shapes, variant, heads, kv_heads), shapes


@on_every_sheet()
def test_an_empty_sheet_gives_no_answer_away(name: str) -> None:
    variant = named(name)
    for figure in draw_figures(variant, {}):
        assert not figure.mismatches
        asked = [edge for edge in figure.edges if edge.blank in variant.blanks]
        assert {edge.label for edge in asked} <= {"?", ""}
        assert not any(edge.name for edge in asked)
        numbers = {
            int(n.replace(",", ""))
            for c in (*figure.explanations, *figure.captions)
            for n in re.findall(r"\d[\d,]*", c)
        }
        assert numbers <= {variant.architecture.query_heads_per_kv_head}


def test_letters_do_not_fit_because_their_numbers_are_equal() -> None:
    variant = LIBRARY.variant("llama-7b~symbols", tokens=128)
    written = {Blank("queries", "columns"): "T", Blank("keys", "columns"): "d_h"}
    typed = {blank: variant.read(blank, text) for blank, text in written.items()}
    scores = draw_figures(variant, {blank: answer for blank, answer in typed.items() if isinstance(answer, Answer)})[0]
    assert [arc.products for arc in scores.arcs if arc.mismatch] == ["scores"]
    assert [each.text for each in scores.brackets] in (["N ≠ d_head"], ["d_head ≠ N"])
    sentence = scores.mismatches[0].sentence
    assert len(scores.mismatches) == 1
    assert "N columns" in sentence
    assert "has d_head" in sentence


def test_a_mask_hides_what_the_layers_hide() -> None:
    variant = LIBRARY.variant("llama-7b", "mistral-7b", 9000)
    figures = draw_figures(variant, {blank: variant.answer(blank) for blank in variant.blanks})
    weights = next(box for figure in figures for box in figure.boxes if box.tensor == "weights")
    shares = [polygon_area(polygon) / (weights.rect.width * weights.rect.height) for polygon in weights.masked]
    assert shares == pytest.approx([1 / 2, ((9000 - 4096) / 9000) ** 2 / 2])


@pytest.mark.parametrize("tokens", [40, 65, 66, 100])
def test_a_window_to_both_sides_hides_tokens_beyond_either(tokens: int) -> None:
    variant = LIBRARY.variant("bidirectional-bert-base", "modernbert-base", tokens)
    config = {**json.loads(variant.model.config), "layer_types": ["sliding_attention"] * 22}
    variant = replace(variant, model=replace(variant.model, architecture=build_architecture(config)))
    figures = draw_figures(variant, {blank: variant.answer(blank) for blank in variant.blanks})
    weights = next(box for figure in figures for box in figure.boxes if box.tensor == "weights")
    shares = [polygon_area(polygon) / (weights.rect.width * weights.rect.height) for polygon in weights.masked]
    assert shares == pytest.approx([((tokens - 65) / tokens) ** 2 / 2] * 2 if tokens > 65 else [])
    assert bool(shares) == any("hides tokens that are too far away" in s for f in figures for s in f.explanations)


def polygon_area(polygon: Polygon) -> float:
    """The area by the shoelace formula."""
    ends = [*polygon[1:], polygon[0]]
    return abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in zip(polygon, ends, strict=True))) / 2
