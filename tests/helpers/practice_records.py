"""Records of practice for property tests: any that can be written, known keys and unknown ones."""

from __future__ import annotations

from hypothesis import strategies as st

from app.misconceptions.catalogue import MISCONCEPTION_GROUPS, MISCONCEPTIONS
from app.practice.levels import practice_levels
from app.practice.record import (
    MAX_COUNT,
    PracticeRecord,
    SheetResult,
)
from tests.helpers.shipped import LIBRARY

STARTS = st.integers(0, MAX_COUNT)
KEYS = [misconception.key for misconception in MISCONCEPTIONS]
LEVELS = [level.key for level in practice_levels(LIBRARY)]
CODES = [LIBRARY.variant(sheet).code for sheet in LIBRARY.worksheets]
results = st.builds(
    lambda code, ok, held, still_open: SheetResult(
        code, ok, () if ok else tuple(held), () if ok else tuple(still_open)
    ),
    st.sampled_from(CODES) | st.from_regex(r"\A[BCDFGHJKLMNPQRSTVWZ]{3}-[BCDFGH]{2,6}-[BCDFGH]{2}\Z"),
    st.booleans(),
    st.lists(st.sampled_from(KEYS), max_size=3, unique=True),
    st.lists(st.sampled_from(list(MISCONCEPTION_GROUPS)), max_size=9, unique=True),
)
records = st.builds(
    PracticeRecord,
    STARTS,
    STARTS,
    st.sampled_from([*LEVELS, "", "nonsense"]),
    st.booleans(),
    st.booleans(),
    st.lists(results, max_size=12).map(tuple),
    st.lists(st.sampled_from([*LEVELS, "nonsense"]), max_size=len(LEVELS), unique=True).map(tuple),
)
