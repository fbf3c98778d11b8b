"""Which bug a seed deals: every one of the bank, with a key that torch agrees with, the same on every machine."""

from __future__ import annotations

from itertools import count
from typing import get_args

import pytest

from app.bugs.bank import BUGS, BugKind
from app.grading.grade import grade
from app.sheets.siblings import another_bug
from app.sheets.variant import Variant
from tests.helpers.bug_in_torch import outcome_in_torch
from tests.helpers.shipped import LIBRARY

DEALING = [key for key, sheet in LIBRARY.worksheets.items() if sheet.bugs != "one"]


def first_sheets(worksheet: str) -> dict[str, Variant]:
    """The first sheet about each of the bugs that can be dealt, over as many seeds as that takes."""
    found, wanted = dict[str, Variant](), set(LIBRARY.worksheets[worksheet].dealt_bugs)
    for seed in count():
        assert seed < 20 * len(wanted), wanted - found.keys()
        variant = LIBRARY.seeded(worksheet, seed)
        found.setdefault(variant.worksheet.bug, variant)
        if found.keys() == wanted:
            return found
    raise AssertionError


def test_every_bug_of_the_bank_is_dealt() -> None:
    assert set(first_sheets("bug-or-none")) == set(BUGS)


@pytest.mark.parametrize("worksheet", DEALING)
def test_a_dealt_sheet_has_a_key_that_torch_agrees_with_and_a_code_that_opens_it(worksheet: str) -> None:
    for bug, variant in first_sheets(worksheet).items():
        case = variant.problem.case
        assert case
        _made, error, message, line = outcome_in_torch(case)
        assert (case.error, case.message, case.raises_at) == (error, message, line), bug
        assert bool(case.wrong_line) == bool(BUGS[bug].line)
        right = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
        assert grade(variant, right).complete, bug
        assert LIBRARY.variant_from_code(variant.code) == variant
        assert LIBRARY.worksheet(variant.worksheet.key) == variant.worksheet


def test_a_seed_deals_the_same_bug_on_every_machine() -> None:
    dealt = [LIBRARY.seeded("bug-or-none", seed) for seed in range(3)]
    assert [(each.worksheet.bug, each.model.key, each.tokens) for each in dealt] == [
        ("mask-inverted", "gemma-2-2b", 134),
        ("cache-joined-along-heads", "gemma-2-2b", 102),
        ("tokens-halved", "qwen2.5-0.5b", 93),
    ]


@pytest.mark.parametrize("rows", ["", "~3"])
def test_versions_of_a_dealt_bug_are_those_of_the_models_that_show_it(rows: str) -> None:
    key = f"bug-layer~keys-tiled{rows}"
    showing = [model for model in LIBRARY.worksheet(key).models if LIBRARY.refusal(key, model) is None]
    assert 0 < len(showing) < len(LIBRARY.worksheet(key).models)
    assert LIBRARY.max_versions(key) == sum(LIBRARY.max_versions(key, model) for model in showing)


def test_a_cut_sheet_deals_only_bugs_that_have_its_rows() -> None:
    assert len({LIBRARY.seeded("bug-layer~3", seed).worksheet.bug for seed in range(60)}) > 1
    assert LIBRARY.max_versions("bug-layer~3") > LIBRARY.max_versions("bug-layer~keys-tiled~3")


def test_bugs_have_different_letters_in_codes() -> None:
    sheet = LIBRARY.worksheets["bug-or-none"]
    codes = {LIBRARY.variant(sheet.with_bug(bug).key, "qwen2.5-0.5b").code.split("-")[2] for bug in BUGS
             if LIBRARY.refusal(sheet.with_bug(bug).key, "qwen2.5-0.5b") is None}  # fmt: skip
    assert len(codes) > 50


@pytest.mark.parametrize("worksheet", DEALING)
@pytest.mark.parametrize("kind", get_args(BugKind))
def test_another_bug_is_of_the_wanted_kind_and_never_the_same(worksheet: str, kind: BugKind) -> None:
    variant = LIBRARY.variant(worksheet)
    for seed in range(5):
        other = another_bug(LIBRARY, variant, seed, kind)
        assert other
        assert other.worksheet.bug != variant.worksheet.bug
        assert kind == "any" or BUGS[other.worksheet.bug].is_kind(kind)
        variant = other


def test_a_cut_sheet_is_dealt_a_bug_as_well() -> None:
    cut = LIBRARY.worksheet("bug-one-head").cut_to(("where", "why"))
    variant = LIBRARY.seeded(cut.key, 1)
    assert variant.worksheet.rows == ("where", "why")
    assert variant.worksheet.bug == LIBRARY.seeded("bug-one-head", 1).worksheet.bug
    assert LIBRARY.variant_from_code(variant.code) == variant


def test_a_sheet_of_one_bug_deals_no_other() -> None:
    assert another_bug(LIBRARY, LIBRARY.variant("llama-7b"), 1, "any") is None
