"""The picture of a head against numpy written here: its stages, reductions, colours, SVG and PNG."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from app.figures.head_readout import cell_texts
from app.figures.heat_map import (
    HEAT_LEVELS,
    HUES,
    LIGHT_PAPER,
    MOST_CELLS,
    PNG_SCALE,
    HeadNumbers,
    cells,
    decimal,
    draw_stage,
    first_token_share,
    heat_png,
    heat_svg,
    mixed,
    percent_text,
    small_svg,
    stage_numbers,
    stages,
)
from app.settings import PROJECT
from tests.helpers.head_numbers import made_head


def luminance(colour: str) -> float:
    """The relative luminance of '#rrggbb', as WCAG defines it."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_the_stages_are_those_of_the_head() -> None:
    head = made_head(7, 5)
    product = head.queries.astype(np.float64) @ head.keys.astype(np.float64).T
    assert stages(head) == ("products", "scaled", "masked", "weights")
    assert stage_numbers(head, "products")[0] == pytest.approx(product, rel=1e-5)
    assert stage_numbers(head, "scaled")[0] == pytest.approx(product / 5**0.5, rel=1e-5)
    values, hidden = stage_numbers(head, "masked")
    assert values is head.scores
    assert (hidden == np.triu(np.ones((7, 7), bool), 1)).all()
    unscaled = replace(head, scale=replace(head.scale, kind="none", factor=1.0), scores=head.products)
    assert stages(unscaled) == ("products", "masked", "weights")


def test_without_the_first_token_rows_add_up_to_one_again() -> None:
    head = made_head(6, 4)
    values, hidden = stage_numbers(head, "rest")
    assert values.shape == hidden.shape == (6, 5)
    assert values.sum(axis=1) == pytest.approx([0, 1, 1, 1, 1, 1])
    assert values[5] == pytest.approx(head.weights[5, 1:] / (1 - head.weights[5, 0]), rel=1e-5)


def test_the_share_of_the_first_token_is_a_mean_over_the_later_ones() -> None:
    even = np.tril(np.ones((4, 4), np.float32))
    head = replace(made_head(4, 4), weights=even / even.sum(axis=1, keepdims=True))
    expected = (1 / 2 + 1 / 3 + 1 / 4) / 3
    assert first_token_share(head) == pytest.approx((expected, expected))
    resting = np.zeros((4, 4), np.float32)
    resting[:, 0] = 1
    assert first_token_share(replace(head, weights=resting)) == pytest.approx((1, expected))
    assert first_token_share(made_head(1, 4)) is None
    window = np.triu(head.mask, -1)  # of two tokens
    assert first_token_share(replace(head, mask=window)) is None
    assert first_token_share(head.last_row()) == pytest.approx((head.weights[3, 0], 1 / 4))


@pytest.mark.parametrize(("rows", "columns"), [(48, 48), (49, 49), (130, 130), (1, 1000), (1, 48)])
def test_a_long_text_is_reduced_to_means_of_what_is_not_masked(rows: int, columns: int) -> None:
    drawn = np.random.default_rng(0)
    values = drawn.normal(size=(rows, columns)).astype(np.float32)
    hidden = drawn.random((rows, columns)) < 0.5
    reduced = cells(values, hidden)
    side = -(-columns // MOST_CELLS)
    assert reduced.side == side
    assert len(reduced.row_starts) <= MOST_CELLS >= len(reduced.column_starts)
    for row, top in enumerate(range(0, rows, side)):
        for column, left in enumerate(range(0, columns, side)):
            square = (slice(top, top + side), slice(left, left + side))
            shown = values[square][~hidden[square]].astype(np.float64)
            assert reduced.hidden[row, column] == (shown.size == 0)
            assert reduced.values[row, column] == pytest.approx(shown.mean() if shown.size else 0, abs=1e-9)


def test_luminance_changes_steadily_from_the_paper_to_either_end() -> None:
    css = (PROJECT / "static" / "css" / "heads.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--(plus|minus): (#\w{6})", part)) for part in css.split("@media (prefers", 1))
    assert light == HUES
    for paper, hues in ((LIGHT_PAPER, light), ("#17181b", dark)):
        for end in hues.values():
            assert len({end[at : at + 2] > paper[at : at + 2] for at in (1, 3, 5)}) == 1
            low, high = sorted((luminance(end), luminance(paper)))
            assert (high + 0.05) / (low + 0.05) > 4.5


@pytest.mark.parametrize("tokens", [1, 2, 22, 48, 200])
def test_every_stage_is_an_svg_of_bounded_size(tokens: int) -> None:
    head = replace(made_head(tokens, 8), key_tokens=("<a&\"b'",) * tokens)
    for stage in stages(head):
        svg = heat_svg(draw_stage(head, stage), "Shows <it>", stage, for_file=True)
        assert len(svg) < 150_000
        root = ElementTree.fromstring(svg)  # noqa: S314 - written here
        assert root.get("aria-label") == "Shows <it>"
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert any((text or "").startswith("<a&") for text in texts)
        assert "style" not in svg


def test_the_png_has_the_colours_of_the_numbers() -> None:
    head = made_head(9, 4)
    for stage in ("weights", "masked"):
        drawing = draw_stage(head, stage)
        image = Image.open(io.BytesIO(heat_png(drawing))).convert("RGB")
        values, hidden = stage_numbers(head, stage)
        largest = np.abs(np.where(hidden, 0, values)).max()
        cell = drawing.plot.width / 9
        for row in range(9):
            for column in range(row + 1):
                at = [drawing.plot.x + (column + 0.5) * cell, drawing.plot.y + (row + 0.5) * cell]
                x, y = (round(each * PNG_SCALE) for each in at)
                pixel = image.getpixel((x, y))
                share = float(values[row, column] / largest)
                colour = mixed(HUES["plus" if share > 0 else "minus"], abs(share))
                wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
                assert np.abs(np.subtract(pixel, wanted)).max() <= 255 / HEAT_LEVELS  # type: ignore[arg-type]
        corner = drawing.plot.right - 1.5 * cell, drawing.plot.y + 0.5 * cell
        box = [round(each * PNG_SCALE) for each in (corner[0], corner[1], corner[0] + cell / 2, corner[1] + cell / 2)]
        assert len(image.crop((box[0], box[1], box[2], box[3])).getcolors() or []) > 1


def test_one_row_of_a_decode_step_is_drawn_as_one() -> None:
    square = made_head(12, 4)
    row = square.last_row()
    assert (row.scores == square.scores[-1:]).all()
    assert row.products.shape == (1, 12)
    assert row.first_query == 11
    drawing = draw_stage(row, "weights")
    assert drawing.plot.width > 10 * drawing.plot.height
    assert [len(line) for line in cell_texts(row, "weights")] == [12]


def test_a_small_picture_is_light() -> None:
    weights = np.tril(np.random.default_rng(0).random((300, 300))).astype(np.float16)
    for each in (weights / weights.sum(-1, keepdims=True), np.eye(20, dtype=np.float16)):
        svg = small_svg(each)
        ElementTree.fromstring(svg)  # noqa: S314 - written here
        assert len(svg) < 12_000


def test_numbers_are_written_alike() -> None:
    """With a minus sign, without a negative zero, and with a decimal below one per cent."""
    assert [decimal(value, 2) for value in (-0.004, -1.5, 2)] == ["0.00", "−1.50", "2.00"]
    texts = [percent_text(share).replace("\u00a0", " ") for share in (0, 0.0004, 0.004, 0.0096, 0.61, 1)]
    assert texts == ["0 %", "< 0.1 %", "0.4 %", "1 %", "61 %", "100 %"]


def test_all_scores_may_be_zero() -> None:
    head = made_head(3, 2)
    nothing: HeadNumbers = replace(head, queries=head.queries * 0, scores=head.scores * 0)
    assert cell_texts(nothing, "products") == (("0.00",) * 3,) * 3
    assert heat_svg(draw_stage(nothing, "products"), "", "products")
