"""Marks by meaning on sheets in letters, and counts that may be rounded: key, follow-through and diagnosis agree."""

from __future__ import annotations

import pytest

from app.grading.grade import Report, grade, near_miss
from app.sheets import prose
from app.sheets.answers import Answer
from app.sheets.library import Library
from app.sheets.variant import Variant


def filled(variant: Variant, changes: dict[str, str]) -> Report:
    """The report on the sheet's own key with some boxes changed."""
    return grade(variant, {**{box: str(number) for box, number in variant.key.items()}, **changes})


def kinds(report: Report) -> dict[str, str]:
    """The kind of mark of every box that is not right."""
    return {str(blank): mark.kind for blank, mark in report.marks.items() if mark.kind != "right"}


@pytest.mark.parametrize(
    ("worksheet", "box", "text", "missed"),
    [
        ("count-llama-7b", "total.count", "6.74e9", "close"),  # 6,738,415,616
        ("count-llama-7b", "total.count", "6,738,000,000", "close"),
        ("count-llama-7b", "total.count", "7e9", None),  # one digit isn't a close enough rounding
        ("count-llama-7b", "total.count", "6.9e9", None),
        ("count-llama-7b", "total.count", "6738415617", None),
        ("costs-llama-7b", "weights_16_bit.count", "13.5e9", "close-or-rounded"),  # 13,476,831,232
        ("costs-llama-7b", "weights_16_bit.count", "13 GB", "close-or-rounded"),
        ("costs-llama-7b", "weights_16_bit.count", "12.6 GB", "binary"),  # it is 12.55 GiB
        ("costs-llama-7b", "cache_8_bit.count", "25 MB", "binary"),  # 26,214,400
        ("costs-llama-7b", "cache_8_bit.count", "26 MiB", None),
        ("costs-llama-7b", "queries_flops.count", "3.4 GFLOPs", "close-or-rounded"),
        ("llama-7b", "input.columns", "4k", "prefix"),
        ("llama-7b", "input.columns", "4100", None),  # a length is never rounded
        ("llama-7b~symbols", "input.columns", "2*d", None),
    ],
)
def test_a_number_that_just_misses_is_told_apart(
    library: Library, worksheet: str, box: str, text: str, missed: str | None
) -> None:
    variant = library.variant(worksheet)
    blank = variant.blanks_by_name[box]
    typed = variant.read(blank, text)
    assert isinstance(typed, Answer)
    assert near_miss(variant, blank, typed, text) == missed
    mark = grade(variant, {box: text}).marks[blank]
    assert mark.kind == "wrong"
    assert (prose.nudge(variant, blank) in mark.message) == (missed in (None, "prefix"))
    if missed == "prefix":
        assert f"“{text}”" in mark.message
        assert "4000" in mark.message


def test_marks_in_letters_do_not_depend_on_a_coincidence_of_the_number_of_tokens(library: Library) -> None:
    for changes in (
        {"values.columns": "N", "output.columns": "N"},
        {"queries.rows": "d_h", "scores.rows": "d_h"},
        {"keys.rows": "d_h", "values.rows": "d_h"},
    ):
        reports = []
        for tokens in (100, 128):
            variant = library.variant("llama-7b~symbols", None, tokens)
            right = {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}
            reports.append(grade(variant, {**right, **changes}))
        assert reports[0].score == reports[1].score
        assert kinds(reports[0]) == kinds(reports[1])
        assert reports[0].first_mismatch == reports[1].first_mismatch
        assert reports[0].diagnosis == reports[1].diagnosis


def test_a_mismatch_on_a_sheet_in_letters_is_said_in_letters(library: Library) -> None:
    variant = library.variant("llama-7b~symbols")
    report = grade(variant, {"queries.columns": "d_h", "keys.columns": "T"})
    assert report.first_mismatch is not None
    assert not any(char.isdigit() for char in report.first_mismatch.message)
    assert "columns" in report.first_mismatch.message


def test_follow_through_and_diagnosis_take_rounded_counts_too(library: Library) -> None:
    variant = library.variant("costs-llama-7b")
    halves = filled(variant, {"weights_16_bit.count": "27.0 GB", "weights_8_bit.count": "13.5 GB"})
    assert kinds(halves) == {"weights_16_bit.count": "wrong", "weights_8_bit.count": "follows"}
    names = ("queries", "keys", "values", "scores", "context", "output", "feed_forward")
    operations = {f"{name}_flops.count": variant for name in names}
    macs = {str(b): f"{n // 2 / 1e9:.4g} GFLOPs" for b, n in variant.key.items() if str(b) in operations}
    report = filled(variant, macs)
    assert report.diagnosis is not None
    assert report.diagnosis.key == "flops-are-macs"


def test_a_sheet_says_that_bytes_may_be_rounded(library: Library) -> None:
    counting, costs = library.variant("count-llama-7b"), library.variant("costs-llama-7b")
    assert "GB" in prose.task(costs)
    assert "GB" not in prose.task(counting)


@pytest.mark.parametrize(("typed", "near"), [("d", "coincidence"), ("H*d_v", None), ("d_h", None)])
def test_a_formula_that_comes_to_the_right_number_by_chance_is_told_so(
    library: Library, typed: str, near: str | None
) -> None:
    variant = library.variant("latent-deepseek-v2-lite~symbols")
    blank = variant.blanks_by_name["values.columns"]
    mark = filled(variant, {"values.columns": typed}).marks[blank]
    sentence = variant.wording.sheets["near-misses"]["coincidence"].format(text=typed)
    assert (sentence in mark.message) == (near is not None)
    assert (mark.kind == "right") == (typed == "H*d_v")
