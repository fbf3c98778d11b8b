"""Lines of answers from paper: how they are taken apart, and which are refused."""

from __future__ import annotations

import pytest

from app.grading.grade import AnswersError
from app.grading.mistaken_sheets import right_texts
from app.grading.paper import MAX_PAPER_LINE_LENGTH, blank_order, mark_line, mark_lines, numbered_lines, split_name
from app.shapes.table import Joint, OneOf, WrittenPattern
from app.sheets.code_text import option_text
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.web.shared.request_guard import MAX_PAPER
from tests.helpers.own_sheets import own_sheet
from tests.helpers.processor_time import processor_time_s
from tests.helpers.shipped import LIBRARY


@pytest.mark.parametrize(
    ("line", "name", "answers"),
    [("Kim: 1 2", "Kim", " 1 2"), ("Kim： 1", "Kim", " 1"), ("1 2", "", "1 2"), ("Kim: a:b", "Kim", " a:b")],
)
def test_the_first_colon_ends_the_name(line: str, name: str, answers: str) -> None:
    assert split_name(line) == (name, answers)


def test_blank_lines_are_counted_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbered_lines("a\r\n \rb\n\n") == ((1, "a"), (3, "b"))
    monkeypatch.setattr("app.grading.paper.MAX_PAPER_LINES", 2)
    with pytest.raises(AnswersError, match="At most 2"):
        numbered_lines("a\nb\nc")


def test_missing_answers_are_empty_and_surplus_ones_are_refused(library: Library) -> None:
    variant = library.variant("llama-7b")
    [paper] = mark_lines(variant, "  Kim\t Lee : 100 - 7")
    assert paper.name == "Kim Lee"
    assert paper.texts == ("100", "", "7", *[""] * (len(variant.blanks) - 3))
    assert [mark.kind for mark in paper.report.marks.values()][:3] == ["right", "empty", "wrong"]
    for answers in ("1 " * (len(variant.blanks) + 1), "1" * MAX_PAPER_LINE_LENGTH):
        with pytest.raises(AnswersError, match="Line 7"):
            mark_line(variant, "Kim", answers, 7)
    with pytest.raises(AnswersError, match="characters"):
        mark_line(variant, "K" * 121, "1", 1)


def test_a_line_of_thousands_of_answers_is_refused_at_once(library: Library) -> None:
    variant = library.variant("llama-7b")

    def mark() -> None:
        with pytest.raises(AnswersError, match="Line 1"):
            mark_lines(variant, "1 " * (MAX_PAPER // 2))

    assert processor_time_s(mark) < 1


def test_a_line_without_a_name_may_begin_with_an_answer_in_quotes(library: Library) -> None:
    [paper] = mark_lines(library.variant("llama-7b~symbols"), '"2 * T" 4')
    assert paper.texts[:2] == ("2 * T", "4")
    with pytest.raises(AnswersError, match="Noor"):
        mark_lines(library.variant("llama-7b~symbols"), '"Noor Ali" 4')


def test_blanks_are_typed_row_by_row(library: Library) -> None:
    order = blank_order(library.variant("llama-7b"))
    assert order[:2] == ({"row": "X", "axis": "rows"}, {"row": "X", "axis": "columns"})
    assert len(order) == 14


@pytest.mark.parametrize(
    "variant",
    [own_sheet(LIBRARY, "bug-layer", bug="keys-and-values-swapped", model="gpt2", models=()),
     own_sheet(LIBRARY, "bug-layer", bug="keys-tiled", models=()), LIBRARY.variant("index-gpt2", "llama-3.2-1b")],
)  # fmt: skip
def test_an_option_may_be_typed_as_it_is_printed(variant: Variant) -> None:
    right, typed = right_texts(variant), dict[str, str]()
    for box, blank in variant.blanks_by_name.items():
        asked = variant.table.askable[blank.tensor]
        is_choice = isinstance(asked, OneOf) and not isinstance(asked, WrittenPattern)
        is_word = isinstance(asked, Joint) and asked.part(blank.field).kind == "word"
        text = option_text(variant, blank.tensor, int(right[box])) if is_choice else right[box]
        typed[box] = text if is_choice or is_word or " " not in text else f'"{text}"'
    assert any(" " in text for text in typed.values())
    [plain] = mark_lines(variant, f"Kim: {' '.join(typed.values())}")
    in_quotes = (text if '"' in text else f'"{text}"' for text in typed.values())
    [quoted] = mark_lines(variant, f"Kim: {' '.join(in_quotes)}")
    assert plain.texts == quoted.texts == tuple(right.values())
    assert plain.report.complete
