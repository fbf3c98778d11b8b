"""Slide it together: every number in it is read from the table or was typed, and it fits where numpy multiplies."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from app.algebra.number_text import format_number
from app.figures.exhibits.axes import cells_of, true_lengths
from app.figures.exhibits.frames import Exhibit, Frame, TextMark
from app.figures.exhibits.products import UnmultipliableError, multiplied, products_of
from app.figures.exhibits.slide import slide_exhibit
from app.figures.shapes import TypedShapes
from app.models.architecture import TokensError
from app.shapes.table import Blank
from app.sheets.library import Library
from app.sheets.reading import Answer
from app.topics.requirements import TopicError
from tests.helpers.shipped import IN_SYMBOLS
from tests.helpers.tables import with_shapes


def true_shapes(library: Library, worksheet: str, model: str | None = None, tokens: int | None = None) -> TypedShapes:
    """A sheet with the lengths that its model has."""
    shapes = TypedShapes.of(library.variant(worksheet, model, tokens), {})
    return replace(shapes, lengths=true_lengths(shapes))


def texts(exhibit: Exhibit, frame: str, part: str) -> list[str]:
    """What is written in one part of the frame with this key."""
    [asked] = [each for each in exhibit.frames if each.key == frame]
    return texts_of(asked, part)


def texts_of(frame: Frame, part: str = "") -> list[str]:
    """What is written in one part of a frame, or in all of it."""
    marks = [mark for each in frame.drawing.parts if part in ("", each.key) for mark in each.marks]
    return [mark.text for mark in marks if isinstance(mark, TextMark)]


TOPICS_WITH_PRODUCTS = (
    "single-head", "cross-attention", "decode-step", "whole-model", "attention-layer", "three-dimensions",
    "four-dimensions",
)  # fmt: skip


@pytest.mark.slow
def test_every_product_of_every_sheet_fits_and_has_the_shape_of_its_result(library: Library) -> None:
    seen = set()
    for key, sheet in library.worksheets.items():
        for model in library.models:
            try:
                variant = library.variant(key, model)
            except (TopicError, TokensError):
                continue
            products = products_of(variant.table)
            assert products or sheet.topic not in TOPICS_WITH_PRODUCTS
            for product in products:
                if (variant.table.key, product, model) in seen:
                    continue
                seen.add((variant.table.key, product, model))
                exhibit = slide_exhibit(true_shapes(library, key, model), product)
                *leading, rows, columns = variant.table.shapes(variant.sizes)[product.result]
                if product.sliced and not leading and "H" in variant.table[product.result].columns.symbols:
                    columns //= variant.sizes["H"]  # heads side by side, of which one is shown
                written = texts(exhibit, "result", "result")
                assert [text.split()[0] for text in written if text[0].isdecimal()] == [
                    *map(format_number, (columns, rows))
                ]
    assert len(seen) > 300


def test_a_changed_table_changes_the_exhibit(library: Library) -> None:
    shapes = true_shapes(library, "llama-7b")
    changed = replace(shapes, table=with_shapes(shapes.table, {"keys": "N, 2*d_h"}))
    changed = replace(changed, lengths=true_lengths(changed))
    [product] = [each for each in products_of(changed.table) if each.result == "scores"]
    assert [frame.key for frame in slide_exhibit(shapes, product).frames][1] == "meet"
    bounced = slide_exhibit(changed, product)
    assert [frame.key for frame in bounced.frames] == ["apart", "bounce"]
    assert "128" in texts(bounced, "bounce", "verdict")  # 2 · 128 − 128


def test_typed_numbers_fit_exactly_where_numpy_multiplies(library: Library) -> None:
    shapes, random = true_shapes(library, "llama-7b"), Random(7)  # noqa: S311 - reproducible
    fitting = 0
    for product in products_of(shapes.table):
        for _ in range(30):
            lengths = [random.choice((1, 3, 4, 8)) for _ in range(4)]
            typed = replace(shapes, lengths={**shapes.lengths, **dict(zip(product.blanks, lengths, strict=True))})
            exhibit = slide_exhibit(typed, product)
            rows, inner, inner_rows, columns = (
                lengths if len(set(product.blanks)) == 4 else [typed.lengths[blank] for blank in product.blanks]
            )
            try:
                shape = (np.zeros((rows, inner)) @ np.zeros((inner_rows, columns))).shape
            except ValueError:
                assert exhibit.frames[-1].key == "bounce"
                assert str(abs(inner - inner_rows)) in texts(exhibit, "bounce", "verdict")
                continue
            fitting += 1
            written = texts(exhibit, "result", "result")
            assert [int(text.split()[0]) for text in written if text[0].isdecimal()] == [shape[1], shape[0]]
    assert fitting > 20


@pytest.mark.parametrize("model", ["gpt2", "llama-7b", "mistral-7b"])
def test_the_mask_hides_what_numpy_has_above_the_diagonal(library: Library, model: str) -> None:
    shapes = true_shapes(library, "llama-7b", model)
    [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
    exhibit = slide_exhibit(shapes, product)
    assert len(texts(exhibit, "mask", "hidden")) == np.count_nonzero(np.triu(np.ones((6, 6)), 1))


def test_an_encoder_has_no_mask_and_t5_no_scale(library: Library) -> None:
    keys = dict[str, list[str]]()
    for model in ("bert-base", "t5-small"):
        shapes = true_shapes(library, "bidirectional-bert-base", model)
        [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
        exhibit = slide_exhibit(shapes, product)
        keys[model] = [frame.key for frame in exhibit.frames]
        said = next(frame.sentence for frame in exhibit.frames if frame.key == "scale")
        assert ("8" in said) == (model == "bert-base")
    assert all("mask" not in each and each[-1] == "softmax" for each in keys.values())


def test_scores_are_said_to_be_divided_by_what_they_are_divided_by(library: Library) -> None:
    kinds = set()
    for model in library.models:
        if library.refusal("layer-mistral-7b", model):
            continue
        shapes = true_shapes(library, "layer-mistral-7b", model)
        [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
        said = "".join(frame.sentence for frame in slide_exhibit(shapes, product).frames if frame.key == "scale")
        scale = shapes.variant.architecture.score_scale
        under, times = re.search(r"= √(\d+) ", said), re.search(r"multiplies it by ([\d.]+)\.", said)
        assert bool(under) == (scale.kind in ("inverse-sqrt", "yarn")), said
        assert bool(times) == (scale.kind == "yarn"), said
        if under:
            factor = (float(times[1]) if times else 1) / float(under[1]) ** 0.5
            assert factor == pytest.approx(scale.factor, rel=1e-3)
        kinds.add(scale.kind)
    assert {"inverse-sqrt", "yarn"} <= kinds


@pytest.mark.parametrize("worksheet", ["llama-7b", "layer-mistral-7b", "decode-gpt2"])
def test_weights_beside_a_sink_sum_to_less_than_one(library: Library, worksheet: str) -> None:
    for model in library.models:
        if library.refusal(worksheet, model):
            continue
        shapes = true_shapes(library, worksheet, model)
        [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
        [last] = [frame for frame in slide_exhibit(shapes, product).frames if frame.key == "softmax"]
        has_sink = library.models[model].architecture.has_sinks
        scores = np.zeros((3, 3 + has_sink))
        row_sum = (np.exp(scores) / np.exp(scores).sum(1, keepdims=True))[:, :3].sum(1)
        drawn = [text for text in texts_of(last, "result") if text in ("1", "<1")]
        assert set(drawn) == {"<1" if row_sum[0] < 1 else "1"}
        assert ("less than 1" in last.sentence) == has_sink


@pytest.mark.parametrize("worksheet", ["layer-mistral-7b", "three-dimensions-llama-7b"])
def test_of_heads_one_is_multiplied_as_numpy_slices_it(library: Library, worksheet: str) -> None:
    shapes = true_shapes(library, worksheet, "qwen2.5-0.5b")
    sizes = shapes.variant.sizes
    tokens, heads, groups, width = (sizes[symbol] for symbol in ("N", "H", "G", "d_h"))
    queries, keys = (np.zeros((tokens, count * width)).reshape(tokens, count, width) for count in (heads, groups))
    scores = queries[:, 0] @ keys[:, 0].T
    context = scores @ keys[:, 0]  # values are as wide as keys
    by_result = {product.result: product for product in products_of(shapes.table)}
    for result, expected in (("scores", scores), ("context", context)):
        exhibit = slide_exhibit(shapes, by_result[result])
        written = texts(exhibit, "result", "result")
        assert [int(text.split()[0]) for text in written if text[0].isdecimal()] == [*reversed(expected.shape)]
        assert str(heads) in exhibit.about
    typed = replace(shapes, lengths={**shapes.lengths, **dict.fromkeys(typed_queries(shapes), 15)})
    with pytest.raises(UnmultipliableError):  # 15 columns of 14 heads, or 15 heads against 14
        slide_exhibit(typed, by_result["scores"])


def typed_queries(shapes: TypedShapes) -> list[Blank]:
    """The side of the queries that holds their heads."""
    return [Blank("queries_by_head", "dim0") if shapes.table.has_more_sides else Blank("queries", "columns")]


def test_what_is_right_in_letters_fits(library: Library) -> None:
    tried = 0
    for key in IN_SYMBOLS:
        variant = library.variant(key)
        right = {blank: variant.answer(blank) for blank in variant.blanks}
        shapes = TypedShapes.of(variant, right)
        for product in products_of(variant.table):
            if all(blank in multiplied(shapes, product).meanings for blank in product.blanks):
                exhibit = slide_exhibit(shapes, product)
                assert exhibit.frames[1].key == "meet", (key, product.result)
                tried += 1
    assert tried > 10


def test_letters_fit_where_they_mean_the_same(library: Library) -> None:
    variant = library.variant("llama-7b~symbols", None, 128)
    letters = {"N": variant.notation.symbol("N"), "d": variant.notation.symbol("d_h")}
    for inner, key in (("d", "meet"), ("N", "bounce")):
        texts_of_boxes = {"queries.rows": "N", "queries.columns": "d", "keys.rows": "N", "keys.columns": inner}
        typed = {variant.blanks_by_name[name]: letters[text] for name, text in texts_of_boxes.items()}
        read = {blank: variant.read(blank, text) for blank, text in typed.items()}
        shapes = TypedShapes.of(variant, {blank: each for blank, each in read.items() if isinstance(each, Answer)})
        [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
        exhibit = slide_exhibit(shapes, product)
        assert exhibit.frames[1].key == key
        assert not any("128" in text for frame in exhibit.frames for text in texts_of(frame))


def test_patches_of_an_image_are_numbered_and_no_words(library: Library) -> None:
    shapes = true_shapes(library, "bidirectional-bert-base", "vit-base")
    [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
    written = {text for frame in slide_exhibit(shapes, product).frames for text in texts_of(frame)}
    assert "France" not in written
    assert {"1", "6"} <= written


def test_longer_is_drawn_longer_and_equal_equally_long() -> None:
    random = Random(3)  # noqa: S311 - reproducible
    for _ in range(200):
        lengths = [random.choice((random.randint(1, 20), random.randint(1, 10**7))) for _ in range(4)]
        cells = cells_of(lengths)
        drawn = [cells[length] for length in sorted(set(lengths))]
        assert drawn == sorted(set(drawn))
        assert max(drawn) <= 12


def test_every_frame_of_an_exhibit_has_one_size_and_its_parts_one_key(library: Library) -> None:
    shapes = true_shapes(library, "cross-bart-base", "t5-small")
    for product in products_of(shapes.table):
        frames = slide_exhibit(shapes, product).frames
        assert len({(frame.drawing.width, frame.drawing.height) for frame in frames}) == 1
        assert [frame.number for frame in frames] == list(range(1, len(frames) + 1))
        for frame in frames:
            keys = [part.key for part in frame.drawing.parts]
            assert len(keys) == len(set(keys))
