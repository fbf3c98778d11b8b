"""Whole classes of simulated students, on sheets drawn by seeds; `python -m benchmarks.diagnosis` runs a thousand."""

from __future__ import annotations

from functools import cache

import pytest

from app.grading.grade import grade
from app.misconceptions.predictions import expectations
from simulation.simulated_sheets import (
    ALONE,
    BOTH,
    GUESSED,
    RIGHT,
    SHARES,
    SLIPPED,
    SimulatedSheet,
    Tally,
    simulate_class,
    transposed,
)
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

# Simulated students write numbers; those in letters are in tests/sheets/test_symbols.py.
WORKSHEETS = [key for key, worksheet in LIBRARY.worksheets.items() if worksheet.answers == "numbers"]
ON_EACH_WORKSHEET = pytest.mark.parametrize("worksheet", one_in(8, WORKSHEETS))
SEEDS = range(9)
ABOUT_A_BUG = {key for key in WORKSHEETS if LIBRARY.worksheets[key].bug}


@cache
def figures(worksheet: str) -> Tally:
    return simulate_class(LIBRARY, worksheet, SEEDS)


def total() -> Tally:
    found = Tally()
    for worksheet in WORKSHEETS:
        found.update(figures(worksheet))
    return found


@pytest.mark.parametrize("model", LIBRARY.models)
def test_what_a_footnote_on_shared_heads_invites_is_recognised(model: str) -> None:
    if LIBRARY.refusal("qwen2.5-0.5b", model):
        return
    variant = LIBRARY.variant("qwen2.5-0.5b", model)
    real, right = variant.model.architecture, {box: str(size) for box, size in variant.key.items()}
    if real.G == real.H:
        assert "all-kv-heads-in-one" not in {each.misconception for each in expectations(variant.problem)}
        return
    widths = {"all-kv-heads-in-one": real.G * real.d_h, "wider-kv-heads": real.d // real.G}
    for width in {*widths.values()} - {real.d_h, real.d}:  # which is right, or a head as wide as the model
        typed = dict.fromkeys(("keys.columns", "values.columns"), str(width))
        diagnosis = grade(variant, right | typed).diagnosis
        held = {misconception for misconception, written in widths.items() if written == width}
        assert {diagnosis.key if diagnosis else None} == (held if len(held) == 1 else {None})


@ON_EACH_WORKSHEET
def test_a_misconception_is_named_on_every_drawn_sheet(worksheet: str) -> None:
    dealt = LIBRARY.worksheet(worksheet).bugs != "one"  # then a seed draws the bug, and few have a misconception
    assert figures(worksheet).tried(ALONE) >= (1 if dealt else len(SEEDS))
    assert figures(worksheet).share(ALONE) >= 0.995


@ON_EACH_WORKSHEET
def test_a_slip_hides_no_misconception_on_drawn_sheets(worksheet: str) -> None:
    assert figures(worksheet).share(SLIPPED) >= 0.98


@ON_EACH_WORKSHEET
def test_two_misconceptions_held_at_once_are_both_named(worksheet: str) -> None:
    assert figures(worksheet).share(BOTH) >= 0.9


@ON_EACH_WORKSHEET
def test_a_right_sheet_is_never_diagnosed_with_or_without_a_slip(worksheet: str) -> None:
    assert figures(worksheet).share(RIGHT) == 1


@ON_EACH_WORKSHEET
def test_guesses_are_rarely_diagnosed(worksheet: str) -> None:
    """Numbers of the sheet's own words in any box: fewer than 5 in 100."""
    assert figures(worksheet).share(GUESSED) > 0.95


@pytest.mark.slow
def test_enough_was_tried_for_the_shares_to_mean_something() -> None:
    assert min(total().tried(share) for share in SHARES) > 2000
    assert {key for key in WORKSHEETS if not figures(key).tried(BOTH)} == ABOUT_A_BUG


def test_who_holds_another_misconception_in_the_other_convention_turns_it_too() -> None:
    sheet = SimulatedSheet(LIBRARY.variant("llama-7b"))
    boxes = {"input.rows": 4096, "input.columns": 100, "output.rows": 4096, "output.columns": 100} | {
        f"{row}.{axis}": n for row in ("queries", "keys", "values") for axis, n in (("rows", 4096), ("columns", 100))
    }
    found = sheet.diagnose({**sheet.right, **boxes})
    assert found is not None
    assert {found.key, *found.also} == {"columns-are-tokens", "head-as-wide-as-model"}
    assert sorted(map(str, found.explains)) == sorted(boxes)


@ON_EACH_WORKSHEET
def test_one_matrix_with_its_sides_swapped_is_not_the_other_convention(worksheet: str) -> None:
    sheet = SimulatedSheet(LIBRARY.variant(worksheet))
    for tensor in {box.partition(".")[0] for box in sheet.right if box.endswith(".rows")}:
        swapped = transposed(sheet.right, (f"{tensor}.",))
        assert "columns-are-tokens" not in sheet.diagnosed_keys(swapped)


def test_one_side_of_the_keys_is_no_proof_that_they_are_transposed() -> None:
    sheet = SimulatedSheet(LIBRARY.variant("cross-bart-base", "t5-small"))
    assert sheet.diagnose({**sheet.right, "keys.rows": 512}) is None
