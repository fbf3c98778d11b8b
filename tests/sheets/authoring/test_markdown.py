"""An author's Markdown, read into values: what is markup and what stays text, and formulas in the sheets' letters."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sheets.authoring.markdown import (
    FormulaSymbol,
    MarkdownBlock,
    MarkdownList,
    MarkdownParagraph,
    MarkdownSpan,
    check_markdown,
    read_formula_text,
    read_markdown,
)
from app.sheets.worksheet import WorksheetError
from tests.helpers.random_worksheets import HOSTILE_TEXTS


def plain_text(blocks: tuple[MarkdownBlock, ...]) -> str:
    """What can be read, without any style."""
    parts = (
        "".join(map(plain_text, block.items))
        if isinstance(block, MarkdownList)
        else "".join(span.text for span in block.spans)
        for block in blocks
    )
    return "".join(parts)


def spans(text: str) -> tuple[MarkdownSpan, ...]:
    (paragraph,) = read_markdown(text)
    assert isinstance(paragraph, MarkdownParagraph)
    return paragraph.spans


def test_emphasis_code_lists_and_breaks_are_markup() -> None:
    assert [span.text for span in spans("**a *b*** `c*d*`") if span.strong] == ["a ", "b"]
    assert [span.text for span in spans("**a *b*** `c*d*`") if span.code] == ["c*d*"]
    assert [span.text for span in spans("a  \nb\nc")] == ["a", "\n", "b", " ", "c"]
    (numbers,) = read_markdown("3. one\n4. two\n   - three")
    assert isinstance(numbers, MarkdownList)
    assert (numbers.start, len(numbers.items)) == (3, 2)
    assert isinstance(numbers.items[1][1], MarkdownList)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "[a](javascript:alert(1))", "![a](http://b/c.png)", "<https://a.b>", "# Heading",
        "&lt;b&gt;", "> quoted", "| a | b |", "~~~", "#let x = 1", "{{ 7 }}", "@label", "https://example.org",
    ],
)  # fmt: skip
def test_everything_else_stays_the_text_that_was_typed(text: str) -> None:
    assert spans(text) == (MarkdownSpan(text),)


@pytest.mark.parametrize(
    ("formula", "symbols"),
    [
        ("d/H = d_h", [("d", "", ""), ("/", "", ""), ("H", "", ""), (" = ", "", ""), ("d", "h", "")]),
        ("W'_Q", [("W′", "Q", "")]),
        ("Q·K^T", [("Q", "", ""), ("·", "", ""), ("K", "", "T")]),
        ("(A*B)ᵀ", [("(", "", ""), ("A", "", ""), ("·", "", ""), ("B", "", ""), (")", "", "T")]),
        ("d_{model}^{n+1}", [("d", "model", "n+1")]),
        ("-x, 4,096", [("−", "", ""), ("x", "", ""), (", ", "", ""), ("4,096", "", "")]),
    ],
)
def test_a_formula_is_read_in_the_letters_of_sheets(formula: str, symbols: list[tuple[str, str, str]]) -> None:
    assert read_formula_text(formula) == tuple(FormulaSymbol(*symbol) for symbol in symbols)
    assert spans(f"${formula}$")[0].formula == read_formula_text(formula)


@pytest.mark.parametrize(
    "formula", ["\\frac{1}{2}", "#x", "sqrt(", "sqrt()", "(a", "a)", "x_", "a;b", "sqrt(" * 20, "&"]
)
def test_a_formula_that_cannot_be_read_is_refused(formula: str) -> None:
    with pytest.raises(WorksheetError, match="cannot be read as a formula"):
        check_markdown(f"Before ${formula}$ after")
    assert f"${formula}$" in plain_text(read_markdown(f"Before ${formula}$ after"))


@pytest.mark.parametrize("text", ["It costs $5 and $6.", "\\$x$", "$ x $", "`$#$`", "$x\n$", "US$"])
def test_prices_and_code_are_no_formulas(text: str) -> None:
    check_markdown(text)
    assert not any(span.formula for span in spans(text))


@given(st.integers(0, 10**6))
def test_no_text_breaks_it(seed: int) -> None:
    """Any markup, cut and joined anywhere, can be read without losing a letter."""
    random = Random(seed)  # noqa: S311 - test data
    text = "".join(random.choices([*HOSTILE_TEXTS, *"*_`$\\ -1.\n()"], k=random.randint(1, 40)))
    letters = [character for character in plain_text(read_markdown(text)) if character.isalpha()]
    assert letters == [character for character in text if character.isalpha()]
