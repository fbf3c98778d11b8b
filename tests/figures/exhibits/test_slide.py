"""Slide it together: every number in it is read from the table or was typed, and it fits where numpy multiplies."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from app.algebra.number_text import format_number
from app.figures.exhibits.axes import cells_of, true_lengths
from app.figures.exhibits.frames import Exhibit, Frame, TextMark
from app.figures.exhibits.slide import products_of, slide_exhibit
from app.figures.typed_shapes import TypedShapes
from app.models.architecture import TokensError
from app.shapes.requirements import TopicError
from app.sheets.library import Library


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


def test_every_product_of_every_sheet_fits_and_has_the_shape_of_its_result(library: Library) -> None:
    """For every shipped worksheet with every model: its outer sides are the true sides of the result."""
    seen = set()
    for key, sheet in library.worksheets.items():
        for model in library.models:
            try:
                variant = library.variant(key, model)
            except (TopicError, TokensError):
                continue
            products = products_of(variant.table)
            if sheet.topic in ("single-head", "cross-attention", "decode-step", "whole-model", "attention-layer"):
                assert products
            for product in products:
                if (variant.table.key, product, model) in seen:
                    continue
                seen.add((variant.table.key, product, model))
                exhibit = slide_exhibit(true_shapes(library, key, model), product)
                shape = variant.table.shapes(variant.sizes)[product.result]
                written = texts(exhibit, "result", "result")
                assert [text.split()[0] for text in written if text[0].isdecimal()] == [
                    *map(format_number, reversed(shape))
                ]
    assert len(seen) > 300


def test_a_changed_table_changes_the_exhibit(library: Library) -> None:
    """Keys twice as wide no longer fit the queries; by how much is written at the overhang."""
    shapes = true_shapes(library, "llama-7b")
    keys = shapes.table["keys"]
    wider = replace(keys, shape=(keys.rows, keys.columns * 2))
    tensors = tuple(wider if each is keys else each for each in shapes.table.tensors)
    changed = replace(shapes, table=replace(shapes.table, tensors=tensors))
    changed = replace(changed, lengths=true_lengths(changed))
    [product] = [each for each in products_of(changed.table) if each.result == "scores"]
    assert [frame.key for frame in slide_exhibit(shapes, product).frames][1] == "meet"
    bounced = slide_exhibit(changed, product)
    assert [frame.key for frame in bounced.frames] == ["apart", "bounce"]
    assert "128" in texts(bounced, "bounce", "verdict")  # 2 · 128 − 128


def test_typed_numbers_fit_exactly_where_numpy_multiplies(library: Library) -> None:
    """And where they do, the outer sides are the shape that numpy has."""
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
    """Of six words in a causal model: 15 of 36."""
    shapes = true_shapes(library, "llama-7b", model)
    [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
    exhibit = slide_exhibit(shapes, product)
    assert len(texts(exhibit, "mask", "hidden")) == np.count_nonzero(np.triu(np.ones((6, 6)), 1))


def test_an_encoder_has_no_mask_and_t5_no_scale(library: Library) -> None:
    """BERT divides by √64 = 8; T5 adds a bias and divides by nothing (arXiv:1910.10683)."""
    keys = dict[str, list[str]]()
    for model in ("bert-base", "t5-small"):
        shapes = true_shapes(library, "bidirectional-bert-base", model)
        [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
        exhibit = slide_exhibit(shapes, product)
        keys[model] = [frame.key for frame in exhibit.frames]
        said = next(frame.sentence for frame in exhibit.frames if frame.key == "scale")
        assert ("8" in said) == (model == "bert-base")
    assert all("mask" not in each and each[-1] == "softmax" for each in keys.values())


def test_patches_of_an_image_are_numbered_and_no_words(library: Library) -> None:
    """ViT reads 196 patches and a class token (arXiv:2010.11929), and no sentence."""
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
    """So that a part can move from one frame to the next."""
    shapes = true_shapes(library, "cross-t5-small")
    for product in products_of(shapes.table):
        frames = slide_exhibit(shapes, product).frames
        assert len({(frame.drawing.width, frame.drawing.height) for frame in frames}) == 1
        assert [frame.number for frame in frames] == list(range(1, len(frames) + 1))
        for frame in frames:
            keys = [part.key for part in frame.drawing.parts]
            assert len(keys) == len(set(keys))
