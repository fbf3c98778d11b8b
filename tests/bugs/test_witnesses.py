"""Probes: what they show of right programs, and that each silent bug has one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from app.bugs.bank import BUGS
from app.bugs.case import BugCase, bug_case
from app.bugs.sizes import BugError
from tests.helpers.shipped import MODELS
from tests.helpers.slow import one_in


def silent_cases(model: str) -> Iterator[BugCase]:
    """Every silent bug of a model."""
    for bug in BUGS:
        try:
            case = bug_case(BUGS[bug], MODELS[model], 10, 3)
        except BugError:
            continue
        if case.wrong_line and not case.raises_at:
            yield case


@pytest.mark.parametrize("model", one_in(2, ["qwen2.5-0.5b", "qwen3-4b", "gpt2", "bert-base", "bart-base", "vit-base"]))
def test_a_right_program_shows_what_its_caption_says(model: str) -> None:
    for case in silent_cases(model):
        witness = case.witness
        assert witness is not None
        rows, sizes = witness.expected, witness.sizes
        cells = [cell for row in rows for cell in row]
        assert str(witness.cells) != str(rows), case.bug.key
        assert [len(row) for row in witness.cells] == [len(row) for row in rows] or witness.probe == "row-sums"
        match witness.probe:
            case "row-sums":
                assert {*cells} == {1.0}
            case "first-query-head":
                assert cells == [1.0] + [0.0] * (sizes["H"] - 1)
            case "first-key-head":
                shared = sizes["H"] // sizes["G"]
                assert cells == [1.0] * shared + [0.0] * (sizes["H"] - shared)
            case "new-token":
                assert cells == [1.0] + [0.0] * (sizes["B"] - 1)
            case "spread":
                assert math.isclose(cells[0], 1, abs_tol=0.5)
            case "last-token":
                first = [0.0] * (sizes["N"] - 1) + [1.0] if MODELS[model].causal else [1.0] * sizes["N"]
                assert list(rows[0]) == first
                assert not any(cell for row in rows[1:] for cell in row)
            case "shift" | "formula":
                assert not any(cells)


def test_probes_find_what_they_are_made_for() -> None:
    probes = {case.bug.key: case.witness.probe for case in silent_cases("qwen2.5-0.5b") if case.witness}
    assert probes["layer-softmax-over-queries"] == probes["diagonal-masked"] == "row-sums"
    assert probes["heads-split-by-view"] == probes["mask-inverted"] == probes["tokens-before-batch"] == "last-token"
    assert probes["causal-for-one-query"] == "new-token"
    assert probes["keys-tiled"] == "first-key-head"
    assert probes["scaled-by-model-width"] == "spread"
    assert probes["rotated-backwards"] == probes["no-rotation"] == "shift"
    assert probes["keys-as-values"] == "formula"
