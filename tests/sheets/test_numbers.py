"""What a student may type into a box, and what is read from it; nothing typed is ever evaluated."""

from __future__ import annotations

import sys
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.algebra.parser import MAX_VALUE, Unreadable
from app.names import without_unseen
from app.sheets.answers import MAX_NUMBER_TEXT, read_number, rounding_margin

TIMES, OVER, MINUS = "*×·⋅∗xX", "/÷⁄∕", "-−–"
SEPARATORS = [",", " ", "'", "’", "_", "\u00a0", "\u2009", "\u202f"]
ZEROS = "0０٠۰०๐𝟎"  # ASCII, full-width, Arabic-Indic, Persian, Devanagari, Thai, mathematical bold
# Isolated signs, digits of many scripts, and characters that other readers stumbled over.
STRANGE = "0123456789+-*/()=.,'’_ ²³½①Ⅳ一٣３×÷−–xXeE\u2009\u202f\u0000\ud800\ufdfa\u200b\u0301\U0001d7ce"


@given(st.one_of(st.text(max_size=130), st.text(STRANGE, max_size=130), st.text("0123456789+-*/()= ", max_size=130)))
@example("(" * 100)
@example("-" * 100)
@example("1+" * 50)
@example("9" * 100)
@example("\ud800")
@example("1\u00005")
@example("/" + "1" * 99)
def test_any_text_is_a_size_or_empty_or_unreadable(text: str) -> None:
    value = read_number(text)
    if isinstance(value, int):
        assert 1 <= value <= MAX_VALUE
    elif value is None:
        assert not without_unseen(text).strip()
    else:
        assert isinstance(value, Unreadable)
        assert value.reason


def spelled(number: int, zero: str, separator: str) -> str:
    """A number in the digits of a script, its thousands set apart (plain where it has no thousands)."""
    text = f"{number:,}".replace(",", separator)
    return "".join(chr(ord(zero) + int(c)) if c.isdecimal() else c for c in text)


@st.composite
def written_numbers(draw: st.DrawFn) -> tuple[str, int]:
    number = draw(st.integers(0, 10**7))
    return spelled(number, draw(st.sampled_from(ZEROS)), draw(st.sampled_from([*SEPARATORS, ""]))), number


@st.composite
def written_sums(draw: st.DrawFn, depth: int = 2) -> tuple[str, Fraction]:
    """A text and what it comes to, by Python's own fractions; quotients by zero are left out."""
    if depth == 0 or draw(st.booleans()):
        text, number = draw(written_numbers())
        return text, Fraction(number)
    (first, a), (second, b) = draw(written_sums(depth=depth - 1)), draw(written_sums(depth=depth - 1))
    gap = draw(st.sampled_from(["", " "]))
    kinds = [("+", a + b), (draw(st.sampled_from(MINUS)), a - b), (draw(st.sampled_from(TIMES)), a * b)]
    if b:
        kinds.append((draw(st.sampled_from(OVER)), a / b))
    sign, value = draw(st.sampled_from(kinds))
    return f"({first}){gap}{sign}{gap}({second})", value


@given(written_sums())
def test_sums_in_any_spelling_come_to_what_fractions_say(sum_: tuple[str, Fraction]) -> None:
    text, value = sum_
    answer = read_number(text)
    if len(text) > MAX_NUMBER_TEXT:
        assert answer == Unreadable("too-long")
    elif isinstance(answer, Unreadable) and answer.reason == "too-large":
        assert value.denominator > 10**5 or abs(value) > 10**5  # some step on the way left the bounds
    elif value.denominator != 1:
        assert isinstance(answer, Unreadable)
        assert answer.reason == "not-whole"
    elif value < 1:
        assert isinstance(answer, Unreadable)
        assert answer.reason == "below-one"
    else:
        assert answer == value


@pytest.mark.parametrize("text", ["0", "00", "3-3", "0/7", "0 FLOPs"])
def test_a_count_may_be_zero_and_a_side_may_not(text: str) -> None:
    assert read_number(text, unit="operations") == 0
    number = text.removesuffix(" FLOPs")
    assert [read_number(number, unit="side"), read_number(number)] == [Unreadable("below-one", "0")] * 2
    assert read_number("3 - 5", unit="entries") == Unreadable("below-zero", "-2")
    assert [read_number("3 - 5", unit="side"), read_number("3 - 5")] == [Unreadable("below-one", "-2")] * 2


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("128", 128),
        ("  128\t", 128),
        ("0128", 128),
        ("4096/32", 128),
        ("32*128", 4096),
        ("32 × 128", 4096),
        ("32x128", 4096),
        ("32·128", 4096),
        ("1,000", 1000),
        ("4 096", 4096),
        ("4\u2009096", 4096),
        ("4\u202f096", 4096),
        ("4\u00a0096", 4096),
        ("4'096", 4096),
        ("4_096", 4096),
        ("131,072", 131_072),
        ("1,048,576", 1_048_576),
        ("４０９６", 4096),
        ("４，０９６", 4096),
        ("٤٠٩٦", 4096),
        ("𝟏𝟎𝟎", 100),
        ("4096÷32", 128),
        ("4096⁄32", 128),
        ("4096/32 = 128", 128),
        ("128 = 4096/32 = 2*64", 128),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("12/4/3", 1),
        ("20-5-4", 11),
        ("1/3*3", 1),
        ("-3*-4", 12),
        ("4096/32*2", 256),
        ("1" + "0" * 40, 10**40),
        ("4096^2", 16_777_216),
        ("4096²", 16_777_216),
        ("4096**2", 16_777_216),
        ("2^12", 4096),
        ("2¹²", 4096),
        ("2*3^2", 18),
        ("(2+1)^2", 9),
        ("1e2", 100),
        ("128.0", 128),
        ("0.5*256", 128),
        ("6.7e9", 6_700_000_000),
        ("6.738415616e9", 6_738_415_616),
        ("4k", 4000),
        ("4K", 4000),
        ("4Ki", 4096),
        ("1.5M", 1_500_000),
        ("2Gi", 2**31),
        ("=128", 128),
        ("= 128", 128),
        ("+128", 128),
        ("2(3+4)", 14),
        ("(2)(3)", 6),
        ("\u200b4096", 4096),
        ("128\u200e", 128),
        ("\u2066100\u2069", 100),
        ("4\u00ad096", 4096),
        ("\ufeff1,000\u2060\u202c", 1000),
    ],
)
def test_what_students_write_is_read(text: str, size: int) -> None:
    assert read_number(text) == size


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u2009", "\u00a0\u3000", "\u200b", "\x00\ufeff"])
def test_a_blank_box_is_empty(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        ("9**9**9", "exponent", ""),
        ("9^100", "exponent", ""),
        ("9^(2)", "exponent", ""),
        ("9^0.5", "exponent", ""),
        ("9^", "exponent", ""),
        ("__import__('os')", "sign", "_"),
        ("about 100", "letters", "about"),
        ("N", "letters", "N"),
        ("1e", "letters", "e"),
        ("1e-3", "not-whole", "0.001"),
        ("4096.0004", "not-whole", "4,096.0004"),
        ("-2/3", "not-whole", "-0.67"),
        (f"1/{10**47}", "not-whole", f"0.{1:047}"),
        ("1e999", "too-large", ""),
        ("1/0", "division-by-zero", ""),
        ("5/(3-3)", "division-by-zero", ""),
        ("1" * 101, "too-long", ""),
        ("9" * 10_000, "too-long", ""),
        ("(" * 10_000, "too-long", ""),
        ("9" * 49, "too-large", ""),
        ("99^99", "too-large", ""),
        ("1.5", "not-whole", "1.50"),
        ("1.", "decimal", "."),
        ("4.096", "decimal-or-thousands", "4.096"),
        ("1,00", "decimal", ","),
        ("100,4096", "two-numbers", ""),
        ("100, 128", "two-numbers", ""),
        ("100; 128", "two-numbers", ""),
        ("½", "special-digit", "½"),
        ("①", "special-digit", "①"),
        ("100 4096", "two-numbers", ""),
        ("100 × ", "incomplete", ""),
        ("(100", "incomplete", ""),
        ("100)", "incomplete", ""),
        ("=", "incomplete", ""),
        ("100=", "incomplete", ""),
        ("128/2(3+1)", "divisor", ""),
        ("4 GB", "letters", "GB"),
        ("4096/32 = 129", "sides-differ", ""),
        ("100/3", "not-whole", "33.33"),
        ("0", "below-one", "0"),
        ("-3", "below-one", "-3"),
        ("3-5", "below-one", "-2"),
        ("\ud800", "sign", "?"),
        ("100;", "sign", ";"),
        ("100%", "sign", "%"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, reason: str, detail: str) -> None:
    assert read_number(text) == Unreadable(reason, detail)


@pytest.mark.parametrize(
    "text", ["__import__('os')", "9**9**9", "eval('1')", "lambda: 1", "exit()", "[x for x in (1,)]"]
)
def test_nothing_typed_is_run(text: str) -> None:
    """Reading calls none of the functions that run, import or open things, and loads no module."""
    read_number("warm 1/0")
    before, called = set(sys.modules), set[object]()
    sys.setprofile(lambda _frame, event, called_function: called.add(called_function) if event == "c_call" else None)
    try:
        read_number(text)
    finally:
        sys.setprofile(None)
    assert called
    assert called.isdisjoint({eval, exec, compile, open, __import__})
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "9" * 100, "9*" * 49 + "9", "1/" * 49 + "7", "(" * 50 + "1" + ")" * 49, "-" * 99 + "1", "1 " * 50,
     "1,111" * 20, "9" * 10_000, "1/97+" * 19 + "1/89"],
)  # fmt: skip
def test_reading_costs_a_bounded_number_of_steps(text: str) -> None:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        read_number(text)
    finally:
        sys.setprofile(None)
    assert calls < 5_000


def test_every_decimal_digit_of_unicode_is_that_digit() -> None:
    digits = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isdecimal()]
    assert len(digits) > 600
    assert {c: read_number(f"1{c}") for c in digits} == {c: 10 + unicodedata.decimal(c) for c in digits}


@pytest.mark.parametrize(
    ("text", "margin"),
    [
        ("13.5 GB", 50_000_000),
        ("13 GB", 50_000_000),
        ("13.48 GB", 5_000_000),
        ("0.5 GB", 500_000),
        ("0.05 GB", 50_000),
        ("0.00052 TB", 500_000),
        ("0 TB", 0),
        ("0.0 GB", 0),
    ],
)
def test_a_number_with_a_prefix_is_rounded_at_its_third_digit_at_most(text: str, margin: int) -> None:
    assert rounding_margin(text, "bytes") == margin
