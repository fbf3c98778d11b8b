"""The record of practice as it comes back from a browser: read as it was written, or refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.practice.record import (
    PracticeRecord,
    RecordError,
    SheetResult,
    read_record,
    write_record,
    write_within,
)
from app.practice.scheduler import next_sheet
from tests.helpers.practice_records import CODES, KEYS, STARTS, records
from tests.helpers.shipped import LIBRARY


@given(records)
def test_a_record_is_read_as_it_was_written(record: PracticeRecord) -> None:
    assert read_record(write_record(record)) == record


def test_a_record_that_is_too_long_without_results_is_still_written() -> None:
    forged = PracticeRecord(1, results=(SheetResult(CODES[0], right=True),) * 3, passed=("é" * 60, "è" * 60))
    tries = iter(range(10))

    def write(record: PracticeRecord) -> str:
        next(tries)
        return write_record(record)

    assert write_within(forged, 100, write) == write_record(replace(forged, results=()))


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(CODES + KEYS),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


@given(
    st.text()
    | garbage.map(json.dumps)
    | st.tuples(STARTS, STARTS, garbage, st.booleans(), st.booleans(), garbage, garbage).map(json.dumps)
)
def test_a_forged_record_is_refused_in_words_or_gives_a_sheet(text: str) -> None:
    try:
        record = read_record(text)
    except RecordError as error:
        record, sentence = PracticeRecord(0), str(error)
    else:
        sentence = "."
    assert sentence.endswith(".")
    assert next_sheet(LIBRARY, record).variant.blanks


@pytest.mark.parametrize(
    "text", ["[" * 5000, "1" * 20_000, '[1,0,"",false,false,[1e999],[]]', '[true,0,"",false,false,[],[]]']
)
def test_a_record_beyond_all_bounds_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        read_record(text)
