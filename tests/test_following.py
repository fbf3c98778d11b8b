"""What is wrong by the key and right given the student's own earlier answers: worked by hand, then drawn at random."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.attention.grading import Report, grade
from app.attention.library import Library, load_library
from app.attention.worksheet import Variant, WorksheetError
from app.settings import PROJECT
from tests.test_grading import LLAMA

LIBRARY = load_library(PROJECT / "worksheets")
# In numbers, with tokens as rows; letters and turned sheets are in test_letters.py.
SHEETS = [v for v in map(LIBRARY.variant, LIBRARY.worksheets) if v.worksheet.answers == "numbers" and v.standing is v]


def marked(variant: Variant, answers: dict[str, int]) -> Report:
    return grade(variant, {box: str(size) for box, size in answers.items()})


def kinds(report: Report, kind: str) -> set[str]:
    return {str(place) for place, mark in report.marks.items() if mark.kind == kind}


def test_scores_follow_queries_and_keys(library: Library) -> None:
    """Queries and keys of 90 × 128 give scores of 90 × 90; neither follows from the other."""
    shapes = {"queries": (90, 128), "keys": (90, 128), "scores": (90, 90)}
    answers = {
        f"{key}.{axis}": n for key, pair in shapes.items() for axis, n in zip(("rows", "columns"), pair, strict=True)
    }
    report = marked(library.variant("llama-7b"), answers)
    assert kinds(report, "wrong") == {"queries.rows", "keys.rows"}
    assert kinds(report, "follows") == {"scores.rows", "scores.columns"}
    assert kinds(report, "right") == {"queries.columns", "keys.columns"}
    assert report.score == 2 + 2 * 0.5
    assert {mark.message for mark in report.marks.values() if mark.kind == "follows"} == {
        "Right, given your earlier answers."
    }


def test_a_wrong_input_length_costs_one_box(library: Library) -> None:
    """90 tokens instead of 100, from the input to the output: nine sides have N, the first is wrong, eight follow."""
    report = marked(library.variant("llama-7b"), {box: 90 if size == 100 else size for box, size in LLAMA.items()})
    assert kinds(report, "wrong") == {"input.rows"}
    assert len(kinds(report, "follows")) == 8
    assert (report.score, type(report.score)) == (5 + 4, int)


def test_putting_the_input_right_costs_nothing(library: Library) -> None:
    """The same sheet with the right input: the queries are the first mistake, and keys and values make it no second."""
    answers = {box: 90 if size == 100 else size for box, size in LLAMA.items()} | {"input.rows": 100}
    report = marked(library.variant("llama-7b"), answers)
    assert kinds(report, "wrong") == {"queries.rows"}
    assert report.score == 6 + 7 * 0.5


def test_an_answer_does_not_follow_from_another_side(library: Library) -> None:
    """Queries of 90 rows and keys of the right 100: scores 90 × 90 follow in their rows, and not in their columns."""
    report = marked(library.variant("llama-7b"), LLAMA | {"queries.rows": 90, "scores.rows": 90, "scores.columns": 90})
    assert kinds(report, "wrong") == {"queries.rows", "scores.columns"}
    assert kinds(report, "follows") == {"scores.rows"}


def test_a_row_left_out_is_looked_through(library: Library) -> None:
    """The classic sheet asks no context; an output of 90 rows follows from weights of 90 rows through it."""
    report = marked(library.variant("llama-7b"), LLAMA | {"weights.rows": 90, "output.rows": 90})
    assert (kinds(report, "wrong"), kinds(report, "follows")) == ({"weights.rows"}, {"output.rows"})


def test_what_could_not_be_read_or_is_empty_leads_nowhere(library: Library) -> None:
    """Weights of 90 rows after scores whose rows are letters, or empty, are wrong."""
    for text in ("N", ""):
        texts = {box: str(size) for box, size in LLAMA.items()} | {"scores.rows": text, "weights.rows": "90"}
        assert kinds(grade(library.variant("llama-7b"), texts), "wrong") == {"weights.rows"}


def test_a_count_follows_from_its_rows_and_columns(library: Library) -> None:
    """W_Q as 4096 × 128 holds 524288 numbers: the columns are wrong, the count is right given them."""
    answers = {"W_Q.rows": 4096, "W_Q.columns": 128, "W_Q.count": 524288}
    report = marked(library.variant("matrices-llama-7b"), answers)
    assert (kinds(report, "wrong"), kinds(report, "follows")) == ({"W_Q.columns"}, {"W_Q.count"})


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.worksheet.key)
def test_one_number_everywhere_earns_nothing_by_following(sheet: Variant) -> None:
    """All ones, all seven, or any number of the sheet in every box: right where it is right, and nothing follows."""
    for number in {1, 7, *sheet.key.values()}:
        report = marked(sheet, dict.fromkeys(map(str, sheet.blanks), number))
        assert kinds(report, "follows") == set()
        assert report.score == sum(number == size for size in sheet.key.values())


@pytest.mark.parametrize(("share", "score"), [(0.0, 5), (0.25, 7), (1.0, 13), (0.1, 5.8)])
def test_a_worksheet_sets_what_following_is_worth(library: Library, share: float, score: float) -> None:
    """Five right and eight following boxes at the worksheet's share; whole where it can be."""
    variant = library.variant("llama-7b")
    variant = replace(variant, worksheet=replace(variant.worksheet, follow_share=share))
    report = marked(variant, {box: 90 if size == 100 else size for box, size in LLAMA.items()})
    assert (report.score, type(report.score)) == (score, type(score))


RANGE, TYPE = "from 0 to 1", "must be a number"


@pytest.mark.parametrize(
    ("setting", "said"), [("2", RANGE), ("-0.1", RANGE), ("nan", RANGE), ('"half"', TYPE), ("true", TYPE)]
)
def test_a_share_that_is_none_is_refused(tmp_path: Path, setting: str, said: str) -> None:
    """A sentence with the file, the setting and what it may be."""
    for part in ("models", "wording"):
        (tmp_path / part).symlink_to(PROJECT / "worksheets" / part)
    sheet = (PROJECT / "worksheets" / "llama-7b.toml").read_text(encoding="utf-8")
    (tmp_path / "own.toml").write_text(f"{sheet}\nfollow_share = {setting}\n", encoding="utf-8")
    with pytest.raises(WorksheetError, match=rf"own\.toml: follow_share .*{said}"):
        load_library(tmp_path)


@st.composite
def sheets(draw: st.DrawFn) -> tuple[Variant, dict[str, int]]:
    """A sheet filled with numbers that are true somewhere on it, or near, so that much follows and much is wrong."""
    variant = draw(st.sampled_from(SHEETS))
    near = sorted({*variant.key.values(), *(size + 1 for size in variant.key.values())})
    few = draw(st.lists(st.sampled_from(near), min_size=1, max_size=4))
    boxes = {str(place): st.sampled_from([*few, size]) for place, size in variant.key.items()}
    return variant, draw(st.fixed_dictionaries({}, optional=boxes))


@settings(max_examples=300, deadline=None)
@given(sheets())
def test_following_never_takes_a_mark_and_never_gives_the_truth_s(filled: tuple[Variant, dict[str, int]]) -> None:
    """A right box stays right; a box that follows is wrong by the key; the score lies between truth and all boxes."""
    variant, answers = filled
    report = marked(variant, answers)
    right = {str(place) for place, size in variant.key.items() if answers.get(str(place)) == size}
    assert kinds(report, "right") == right
    assert not kinds(report, "follows") & right
    assert len(right) <= report.score <= len(answers)
    assert marked(variant, answers) == report


@settings(max_examples=300, deadline=None)
@given(sheets(), st.data())
def test_putting_an_answer_right_never_costs_marks(filled: tuple[Variant, dict[str, int]], data: st.DataObject) -> None:
    """Whatever else is on the sheet, a wrong answer replaced by the right one does not lower the score."""
    variant, answers = filled
    key = {str(place): size for place, size in variant.key.items()}
    if wrong := sorted(box for box, size in answers.items() if size != key[box]):
        box = data.draw(st.sampled_from(wrong))
        assert marked(variant, answers | {box: key[box]}).score >= marked(variant, answers).score
