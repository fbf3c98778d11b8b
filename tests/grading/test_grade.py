"""Texts typed into boxes become marks; the keys here are worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.grading.grade import AnswersError, grade, with_kept_marks
from app.shapes.table import Blank
from app.sheets.authoring.worksheet_settings import read_settings
from app.sheets.library import Library
from app.web.shared.sheet_form import draw_typed
from tests.helpers.answer_keys import KEYS, LLAMA, boxes
from tests.helpers.own_sheets import own_sheet
from tests.helpers.random_worksheets import random_settings
from tests.helpers.shipped import LIBRARY


@pytest.mark.parametrize("sheet", KEYS)
def test_the_key_worked_out_by_hand_is_all_right(library: Library, sheet: str) -> None:
    report = grade(library.variant(sheet), {box: str(size) for box, size in boxes(sheet).items()})
    assert (report.score, report.out_of, report.empty, report.has_readable_answer) == (14, 14, 0, True)
    assert {mark.kind for mark in report.marks.values()} == {"right"}
    assert {mark.message for mark in report.marks.values()} == {""}


@pytest.mark.parametrize("sheet", KEYS)
def test_one_off_is_wrong_in_every_box(library: Library, sheet: str) -> None:
    report = grade(library.variant(sheet), {box: str(size + 1) for box, size in boxes(sheet).items()})
    assert report.score == 0
    assert {mark.kind for mark in report.marks.values()} == {"wrong"}
    assert all(mark.message and not any(c.isdigit() for c in mark.message) for mark in report.marks.values())


@pytest.mark.parametrize("worksheet", LIBRARY.worksheets)
def test_a_count_of_zero_is_wrong_and_never_unreadable(worksheet: str) -> None:
    variant = LIBRARY.variant(worksheet)
    counts = [blank for blank in variant.blanks if blank.field == "count"]
    right = {str(blank): variant.written_answer(blank) for blank in variant.blanks}
    for zeros in ([each] for each in counts) if len(counts) < 2 else (counts, *([each] for each in counts)):
        answers = right | {str(blank): "0" for blank in zeros}
        report = grade(variant, answers)
        assert {report.marks[blank].kind for blank in zeros if variant.answer(blank)} <= {"wrong", "follows"}
        assert {report.marks[blank].read_as for blank in zeros} == {0}
        assert draw_typed(variant, answers) or not draw_typed(variant, right)


def test_rows_and_columns_are_two_boxes(library: Library) -> None:
    report = grade(library.variant("llama-7b"), {"queries.rows": "128", "queries.columns": "100"})
    assert {str(blank): mark.kind for blank, mark in report.marks.items() if mark.kind != "empty"} == {
        "queries.rows": "wrong",
        "queries.columns": "follows",
    }


@pytest.mark.parametrize(
    ("text", "kind", "read_as"),
    [
        ("4096/32", "right", 128),
        ("１２８", "right", 128),
        ("127", "wrong", 127),
        ("4,096", "wrong", 4096),
        ("about 128", "unreadable", None),
        ("128.0", "right", 128),
        ("128.5", "unreadable", None),
        ("__import__('os')", "unreadable", None),
        ("9**9**9", "unreadable", None),
        ("1/0", "unreadable", None),
        ("7" * 10_000, "unreadable", None),
        ("0", "unreadable", None),
        ("", "empty", None),
        ("  ", "empty", None),
    ],
)
def test_each_kind_of_mark(library: Library, text: str, kind: str, read_as: int | None) -> None:
    """The columns of the queries are 128; the text is kept as typed, and only what is not right gets a sentence."""
    mark = grade(library.variant("llama-7b"), {"queries.columns": text}).marks[Blank("queries", "columns")]
    assert (mark.kind, mark.read_as, mark.text) == (kind, read_as, text)
    assert bool(mark.message) == (kind in ("wrong", "unreadable"))


def test_a_box_left_out_is_empty(library: Library) -> None:
    report = grade(library.variant("llama-7b"), {})
    assert (report.score, report.out_of, report.empty, report.has_readable_answer) == (0, 14, 14, False)


def test_what_cannot_be_read_is_no_attempt(library: Library) -> None:
    variant = library.variant("llama-7b")
    assert not grade(variant, {"queries.rows": "L", "keys.rows": "?"}).has_readable_answer
    assert grade(variant, {"queries.rows": "L", "keys.rows": "3"}).has_readable_answer


@pytest.mark.parametrize(
    "box", ["queries", "queries.row", "context.rows", "W_Q.rows", "", "Queries.rows", "x" * 10_000]
)
def test_a_box_that_is_not_on_the_sheet_is_refused(library: Library, box: str) -> None:
    with pytest.raises(AnswersError, match=r"is not a box of this sheet. Its boxes: input\.columns") as refused:
        grade(library.variant("llama-7b"), {box: "1"})
    assert len(str(refused.value)) < 500


def test_the_report_as_json_has_the_promised_shape(library: Library) -> None:
    variant = library.variant("llama-7b")
    report = grade(variant, {"queries.rows": "100", "queries.columns": "4096"}).as_json()
    assert set(report) == {"score", "out_of", "marks", "causes", "first_mismatch", "diagnosis"}
    assert (report["score"], report["out_of"], report["first_mismatch"]) == (1, 14, None)
    marks = report["marks"]
    assert isinstance(marks, dict)
    assert list(marks) == list(LLAMA)
    assert marks["queries.rows"] == {"mark": "right", "read_as": 100, "message": "", "repeats": None}
    assert marks["queries.columns"]["mark"] == "wrong"
    assert marks["keys.rows"] == {"mark": "empty", "read_as": None, "message": "", "repeats": None}


@given(st.dictionaries(st.sampled_from(sorted(LLAMA)), st.text(max_size=40)))
def test_no_texts_make_grading_fail(texts: dict[str, str]) -> None:
    report = grade(LIBRARY.variant("llama-7b"), texts)
    assert {str(blank): mark.text for blank, mark in report.marks.items()} == {box: texts.get(box, "") for box in LLAMA}


KINDS = st.sampled_from(["right", "wrong", "unreadable", "empty", "left out"])


@given(st.fixed_dictionaries(dict.fromkeys(LLAMA, KINDS)))
def test_the_score_counts_the_boxes_that_are_right(wanted: dict[str, str]) -> None:
    texts = {
        box: {"right": f"{2 * LLAMA[box]}/2", "wrong": str(3 * LLAMA[box] + at), "unreadable": "ñ²", "empty": " "}[kind]
        for at, (box, kind) in enumerate(wanted.items())
        if kind != "left out"
    }
    report = grade(LIBRARY.variant("llama-7b"), texts)
    marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
    assert marks == {box: "empty" if kind == "left out" else kind for box, kind in wanted.items()}
    assert report.score == list(wanted.values()).count("right")
    assert report.empty == sum(kind in ("empty", "left out") for kind in wanted.values())


def test_marks_that_were_given_stand(library: Library) -> None:
    sheet = library.variant("llama-7b")
    report = grade(sheet, {"input.rows": "100", "keys.columns": "4096", "values.columns": "?"})
    given = {str(blank): mark.kind for blank, mark in report.marks.items()}
    assert with_kept_marks(sheet, report, given) is report
    kept = {"input.rows": "wrong", "keys.columns": "right", "values.columns": "follows", "queries.rows": "nonsense"}
    changed = with_kept_marks(sheet, report, kept)
    marks = {str(blank): (mark.kind, mark.message, mark.text) for blank, mark in changed.marks.items()}
    nudge = grade(sheet, {"input.rows": "7"}).marks[Blank("input", "rows")].message
    assert marks["input.rows"] == ("wrong", nudge, "100")
    assert marks["keys.columns"] == ("right", "", "4096")
    assert marks["values.columns"][0] == "follows"
    assert (changed.score, changed.out_of, changed.diagnosis, changed.first_mismatch) == (2, 3, None, None)


def test_rows_may_have_points_of_their_own(library: Library) -> None:
    variant = own_sheet(library, rows=["input", "keys", "scores"], row_points={"keys": 3, "input": 0})
    right = {box: str(number) for box, number in variant.key.items()}
    report = grade(variant, right)
    assert (report.score, report.out_of, report.boxes, variant.best_score) == (8, 8, 6, 8)
    report = grade(variant, {**right, "keys.rows": "90", "scores.columns": "90", "input.rows": ""})
    assert report.marks[variant.blanks_by_name["scores.columns"]].kind == "follows"
    assert (report.score, report.right, report.complete) == (5, 3, False)
    report = grade(variant, {**right, "keys.rows": "90", "scores.columns": "90", "input.rows": "90"})
    assert [(str(m.costs), list(map(str, m.others))) for m in report.causes] == [
        ("keys.rows", ["input.rows", "scores.columns"])
    ]
    assert grade(library.variant("llama-7b"), {}).out_of == len(library.variant("llama-7b").blanks)


@given(seed=st.integers(0, 10**6))
def test_whatever_an_author_sets_the_own_key_is_all_right(seed: int) -> None:
    worksheet = read_settings("mine", random_settings(LIBRARY, seed), LIBRARY.models, LIBRARY.wording)
    library = replace(LIBRARY, worksheets={"mine": worksheet})
    assume(not library.refusal("mine", worksheet.model))  # letters, for answers that symbols cannot say
    variant = library.variant("mine")
    report = grade(variant, {str(blank): variant.written_answer(blank) for blank in variant.blanks})
    assert report.complete
    assert report.score == report.out_of == variant.best_score > 0
    assert (report.diagnosis, report.first_mismatch) == (None, None)
