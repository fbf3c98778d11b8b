"""What a record keeps: sheets that are done, and what was mixed up, which comes back until it was right three times."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading.grade import grade
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.practice.record import (
    MAX_CARDS,
    MAX_DONE,
    WAITS,
    Card,
    PracticeRecord,
    RecordError,
    distinguishable_misconceptions,
    read_record,
    write_record,
)
from app.sheets.variant import Variant
from simulation.misconception_students import misconception_sheets, right_sheet
from tests.helpers.shipped import LIBRARY

HEAD = LIBRARY.variant("llama-7b")
WIDE = "head-as-wide-as-model"


def finished(record: PracticeRecord, variant: Variant, misconception: str = "") -> PracticeRecord:
    """The record after a sheet, filled in by a misconception first if one is named, and then right."""
    right, held = right_sheet(variant), dict(misconception_sheets(variant))
    if misconception:
        report = grade(variant, {box: str(size) for box, size in held[misconception].items()})
        record = record.after_check(variant, report, first_time_right=False)
    report = grade(variant, {box: str(size) for box, size in right.items()})
    return record.after_check(variant, report, first_time_right=True)


def other_head(number: int) -> Variant:
    return LIBRARY.variant("llama-7b", tokens=20 + number)


def test_a_sheet_that_is_right_is_done_whatever_its_numbers() -> None:
    record = finished(finished(PracticeRecord(), LIBRARY.variant("llama-7b", "gpt2")), HEAD)
    assert (record.done, record.cards, record.finished) == (("llama-7b",), (), 2)


def test_part_of_a_sheet_is_not_the_sheet() -> None:
    part = LIBRARY.variant(LIBRARY.worksheets["llama-7b"].cut_to(("queries", "keys")).key)
    assert finished(PracticeRecord(), part).done == ()


def test_the_last_sheet_done_is_the_last() -> None:
    record = finished(finished(finished(PracticeRecord(), HEAD), LIBRARY.variant("decode-gpt2")), HEAD)
    assert record.done == ("decode-gpt2", "llama-7b")


def test_a_mistake_comes_back_at_once_then_later_and_then_no_more() -> None:
    record = finished(PracticeRecord(), HEAD, WIDE)
    assert [card.misconception for card in record.due] == [WIDE]
    for times, wait in enumerate((*WAITS[1:], None), start=1):
        record = finished(record, other_head(times))
        if wait is None:
            assert record.cards == ()
            return
        assert [(card.times_right, card.due) for card in record.cards] == [(times, record.finished + wait)]
        for _ in range(wait):
            assert record.due == ()
            record = finished(record, other_head(times))
        assert [card.misconception for card in record.due] == [WIDE]


def test_a_mistake_made_again_begins_anew() -> None:
    record = finished(finished(PracticeRecord(), HEAD, WIDE), other_head(1))
    again = finished(record, other_head(2), WIDE)
    assert [(card.misconception, card.times_right) for card in again.due] == [(WIDE, 0)]
    assert again.due[0].code == other_head(2).code


def test_correcting_the_sheet_itself_or_one_that_cannot_show_the_mistake_proves_nothing() -> None:
    record = finished(PracticeRecord(), HEAD, WIDE)
    cannot = LIBRARY.variant("growth-llama-7b")
    assert WIDE not in distinguishable_misconceptions(cannot)
    assert finished(finished(record, HEAD), cannot).cards == record.cards


def test_first_steps_expect_mistakes() -> None:
    variant = LIBRARY.variant("first-steps")
    misconception = next(key for key, _ in misconception_sheets(variant))
    assert finished(PracticeRecord(), variant, misconception).cards == ()


KEYS = [misconception.key for misconception in MISCONCEPTIONS]
CARDS = st.builds(Card, st.sampled_from(KEYS), st.just("BHR-HH-SV"), st.integers(0, 2), st.integers(0, 99))
RECORDS = st.builds(
    PracticeRecord,
    st.lists(st.sampled_from(list(LIBRARY.worksheets)), unique=True, max_size=MAX_DONE).map(tuple),
    st.lists(CARDS, max_size=MAX_CARDS, unique_by=lambda card: card.misconception).map(tuple),
    st.integers(0, 10**6),
)


@given(RECORDS)
def test_a_record_is_read_back_as_it_was_written(record: PracticeRecord) -> None:
    assert read_record(LIBRARY, write_record(record)) == record


def test_what_is_not_known_any_more_is_left_out() -> None:
    text = json.dumps([["gone"], [["no-such-mistake", "BHR-HH-SV", 0, 0], [WIDE, "BHR-HH-SV", 9, 0]], 3])
    assert read_record(LIBRARY, text) == PracticeRecord(("gone",), (), 3)


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1,2]", "[[],[],-1]", "[[],[[1,2,3,4]],0]", "[" * 20_000])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        read_record(LIBRARY, text)


def test_a_record_of_levels_is_carried_over() -> None:
    decode, whole = LIBRARY.variant("decode-gpt2").code, LIBRARY.variant("qwen2.5-0.5b").code
    costs, head = LIBRARY.variant("costs-llama-7b").code, LIBRARY.variant("llama-7b").code
    results = [[head, [WIDE], []], [costs, ["cube"], ["counting"]], decode, whole]
    text = json.dumps([7, 2, "bidirectional-head", False, False, results, ["first-steps", "three-dimensions"]])
    record = read_record(LIBRARY, text)
    assert record.done == ("first-steps", "three-dimensions-llama-7b", "decode-gpt2", "qwen2.5-0.5b")
    assert record.cards == ()  # one head was right since, and the other mistake isn't known
    text = json.dumps([7, 2, "", False, False, [decode, [head, [WIDE], []], "BBB-BB-BB"], []])
    assert read_record(LIBRARY, text).cards == (Card(WIDE, head),)
