"""A sheet as a misconception fills it in is diagnosed as that misconception, in numbers and in letters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.grading.grade import grade
from app.grading.mistaken_sheets import example_sheets, misconception_names, mistaken_texts, right_texts
from app.misconceptions.predictions import cannot_tell_apart
from app.sheets.worksheet import AuthorMisconception
from simulation.misconception_students import misconception_sheets
from tests.helpers.own_sheets import own_sheet
from tests.helpers.shipped import LIBRARY


@pytest.mark.parametrize(
    ("bug", "model"),
    [("keys-and-values-swapped", "gpt2"), ("keys-tiled", "qwen2.5-0.5b"), ("padding-inverted", "bart-base")],
)
def test_a_line_of_code_with_commas_is_repaired_by_its_right_texts(bug: str, model: str) -> None:
    variant = own_sheet(LIBRARY, "bug-layer", bug=bug, model=model, models=())
    assert grade(variant, right_texts(variant)).complete


@pytest.mark.parametrize("key", ["llama-7b", "decode-phi-3-mini-4k", "llama-7b~symbols"])
def test_what_a_misconception_writes_is_diagnosed_as_it(key: str) -> None:
    variant = LIBRARY.variant(key)
    assert grade(variant, right_texts(variant)).complete
    alike = {key for pair in cannot_tell_apart(variant.problem) for key in pair}
    sheets = mistaken_texts(variant)
    assert len(sheets) > 3
    assert misconception_names(variant).keys() == sheets.keys()
    for misconception, texts in sheets.items():
        assert texts.keys() == variant.blanks_by_name.keys()
        report = grade(variant, texts)
        assert not report.complete
        if misconception not in alike:
            assert report.diagnosis
            assert report.diagnosis.key == misconception


def test_numbers_are_those_of_the_first_way_of_holding_it() -> None:
    variant = LIBRARY.variant("llama-7b")
    first = dict(reversed(misconception_sheets(variant)))
    assert mistaken_texts(variant) == {
        key: {box: str(size) for box, size in sheet.items()} for key, sheet in first.items()
    }


def test_an_authors_misconception_is_written_as_its_author_wrote_it() -> None:
    shipped = LIBRARY.variant("llama-7b~symbols")
    own = AuthorMisconception("Twice", {"queries.columns": "2*T - T"}, "How wide?", "As a head.", key="own-twice")
    variant = replace(shipped, worksheet=replace(shipped.worksheet, misconceptions=(own,)))
    assert mistaken_texts(variant)["own-twice"]["queries.columns"] == "2*T - T"


@pytest.mark.parametrize("key", sorted(LIBRARY.worksheets))
def test_example_sheets_show_what_distinguishes_the_markings(key: str) -> None:
    variant = LIBRARY.variant(key)
    first, *mistaken = example_sheets(variant)
    assert (first.kind, first.wrong, set(first.scores.values())) == ("right", 0, {variant.best_score})
    assert mistaken[0].kind == "slip"
    assert mistaken[0].wrong == 1
    for example in mistaken:
        assert variant.best_score > example.scores["causes"] >= example.scores["boxes"] >= example.scores["rows"]
    assert any(each.scores["causes"] > each.scores["boxes"] for each in mistaken) or variant.problem.case
    assert len({each.kind for each in mistaken}) == len(mistaken) >= 3


def test_a_student_who_reads_ninety_tokens_gets_ninety_everywhere() -> None:
    examples = {each.kind: each for each in example_sheets(LIBRARY.variant("llama-7b"))}
    assert examples["followed"].wrong == 9
    assert examples["followed"].scores == {"causes": 13, "boxes": 5, "rows": 0}
    assert examples["two"].scores["causes"] == 12
