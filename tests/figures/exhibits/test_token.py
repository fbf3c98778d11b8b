"""One more token: its rows and lines against numpy arrays that really grow, and against the mask of a whole text."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from app.figures.exhibits.frames import FrameDrawing, Part, PathMark, RectangleMark
from app.figures.exhibits.token import steps_of, token_exhibit
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.topics import decode_step
from app.topics.decode_step import DECODE_STEP
from tests.helpers.tables import with_shapes

SHEET = "decode-gpt2"


def parts(drawing: FrameDrawing) -> dict[str, Part]:
    """Every part of a picture by its key; each is there once."""
    by_key = {part.key: part for part in drawing.parts}
    assert len(by_key) == len(drawing.parts)
    return by_key


def with_window(variant: Variant, window: int) -> Variant:
    """A sheet about a model whose layers all have a sliding window."""
    architecture = variant.architecture
    stack = architecture.stacks[0]
    runs = tuple(replace(run, window=window) for run in stack.runs)
    own = replace(architecture, window=window, stacks=(replace(stack, runs=runs),))
    return replace(variant, model=replace(variant.model, architecture=own))


def test_shapes_are_those_of_arrays_that_grow_by_a_row(library: Library) -> None:
    variant = library.variant(SHEET, "llama-7b", 100)
    cached = np.zeros((0, 128))
    steps = {step.cached: step for step in steps_of(variant)}
    for count in range(101):
        query, cached = np.ones((1, 128)), np.vstack([cached, np.ones((1, 128))])
        if step := steps.get(count):
            assert step.shape("keys") == step.shape("values") == cached.shape
            assert step.shape("scores") == (query @ cached.T).shape
    assert sorted(steps) == [0, 1, 2, 3, 4, 5, 100]


def test_a_changed_table_changes_the_exhibit(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = library.variant(SHEET, "llama-7b", 100)
    before = token_exhibit(variant)
    monkeypatch.setattr(decode_step, "DECODE_STEP", with_shapes(DECODE_STEP, {"keys": "N + 1, 3*d_h"}))
    after = token_exhibit(variant)
    assert "× 128" in before.frames[0].drawing.alt_text
    assert "× 384" not in before.frames[0].drawing.alt_text
    assert all("× 384" in frame.drawing.alt_text for frame in after.frames)


@pytest.mark.parametrize("window", [None, 3])
def test_lines_of_scores_are_the_rows_of_the_mask(library: Library, window: int | None) -> None:
    variant = library.variant(SHEET, "gpt2", 4)
    variant = with_window(variant, window) if window else variant
    last = token_exhibit(variant).frames[-1]
    drawn = parts(last.drawing)
    visible = np.tril(np.ones((5, 5), bool)) & ~np.tril(np.ones((5, 5), bool), -(window or 5))
    for row, line in enumerate(visible):
        cells, hidden = drawn[f"s-{row}"].marks
        assert isinstance(cells, PathMark)
        assert isinstance(hidden, RectangleMark)
        starts = [float(cell.split()[0]) for cell in cells.path.split("M")[1:]]
        assert starts == [14.0 * column for column in np.flatnonzero(line)]
        assert hidden.x == 14.0 * (row + 1)
    dropped = [key for key, part in drawn.items() if "dropped" in part.css]
    assert dropped == [f"{letter}-{row}" for row in range(5 - (window or 5)) for letter in "kv"]


def test_each_step_adds_one_row_that_arrives(library: Library) -> None:
    frames = token_exhibit(library.variant(SHEET, "mistral-7b", 100)).frames
    for before, after in pairwise(frames):
        new = parts(after.drawing).keys() - parts(before.drawing).keys()
        arriving = {key for key, part in parts(after.drawing).items() if part.data}
        assert {key[0] for key in arriving} == {"k", "v", "s"}
        assert arriving <= new


def test_windows_drop_the_oldest_key_where_the_model_has_them(library: Library) -> None:
    for key, layers in (("mistral-7b", (0, 0)), ("gemma-2-2b", (13, 26))):
        last = steps_of(library.variant(SHEET, key, 100))[-1]
        assert (last.cached, last.keys, last.dropped, last.layers) == (4096, 4096, 1, layers)
    assert all(step.dropped == 0 for step in steps_of(library.variant(SHEET, "llama-3-8b", 5000)))


def test_what_leaves_a_window_is_not_attended_to_but_may_still_be_seen(library: Library) -> None:
    frames = token_exhibit(library.variant(SHEET, "mistral-7b", 100)).frames
    assert "no longer attends to" in frames[-1].sentence
    assert not any(re.search(r"\bsees?\b", frame.sentence) for frame in frames)


def test_every_model_has_an_exhibit_or_the_reason_of_the_topic(library: Library) -> None:
    for key, model in library.models.items():
        if reason := library.refusal(SHEET, key):
            assert model.name in reason
            continue
        for frame in token_exhibit(library.variant(SHEET, key, 12)).frames:
            assert frame.sentence
            assert "{" not in frame.sentence
            assert len(frame.drawing.alt_text.split(", ")) == 4
