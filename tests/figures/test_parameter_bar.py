"""The bar of a model's parameters is to scale, for every model of the library."""

from __future__ import annotations

import re

import pytest

from app.figures.parameter_bar import BAR_LENGTH, parameter_bar
from app.models.parameter_count import parameter_counts
from app.models.parameter_formula import parameter_formula
from app.sheets.library import Library


def test_the_stripes_of_every_model_tile_its_bar_and_are_as_long_as_they_count(library: Library) -> None:
    for key, model in library.models.items():
        counts, formula = parameter_counts(model.architecture), parameter_formula(model.architecture)
        stripes, active = [], 0.0
        for summand, group in zip(formula.summands, parameter_bar(formula), strict=True):
            for bucket, piece in zip(summand.buckets, group.pieces, strict=True):
                drawn = [(float(x), float(w)) for x, w in re.findall(r"M([\d.]+) 0h([\d.]+)v1h-\2z", piece.outline)]
                share = bucket.count * (summand.layers or 1) / counts.total
                assert sum(width for _, width in drawn) == pytest.approx(share * BAR_LENGTH, abs=0.01), key
                heights = [float(height) for height in re.findall(r"v([\d.]+)h", piece.idle)]
                active += share * (1 - (heights[0] if heights else 0))
                stripes += drawn
        end = 0.0
        for start, width in sorted(stripes):
            assert start == pytest.approx(end, abs=0.002), key
            end = start + width
        assert end == pytest.approx(BAR_LENGTH, abs=0.002), key
        assert active == pytest.approx(counts.active / counts.total, abs=1e-4), key


def test_experts_alone_can_be_idle(library: Library) -> None:
    idle = {
        key: [
            piece.bucket.bucket
            for group in parameter_bar(parameter_formula(library.model(key).architecture))
            for piece in group.pieces
            if piece.idle
        ]
        for key in ("mixtral-8x7b", "llama-7b", "t5-small")
    }
    assert idle == {"mixtral-8x7b": ["mlp"], "llama-7b": [], "t5-small": []}
