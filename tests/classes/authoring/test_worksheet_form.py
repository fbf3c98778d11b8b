"""The texts of a worksheet's form: what they mean, what is refused and where, and what the buttons do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.classes.authoring.worksheet_form import (
    EditorTexts,
    MisconceptionTexts,
    QuestionTexts,
    WorksheetFormError,
    arrange,
    complete_rows,
    read_worksheet_form,
    texts_of_worksheet,
)
from app.sheets.authoring.worksheet_settings import read_settings
from app.sheets.library import Library
from tests.helpers.random_worksheets import random_settings
from tests.helpers.shipped import LIBRARY


@given(st.integers(0, 2**32))
def test_a_worksheet_is_read_back_from_its_texts(seed: int) -> None:
    worksheet = read_settings("own-1", random_settings(LIBRARY, seed), LIBRARY.models, LIBRARY.wording)
    texts = texts_of_worksheet(LIBRARY, worksheet)
    assert read_worksheet_form(LIBRARY, "own-1", texts) == worksheet
    assert complete_rows(LIBRARY, texts) == texts


@pytest.fixture
def texts(library: Library) -> EditorTexts:
    """The form of the sheet on LLaMA 7B."""
    return texts_of_worksheet(library, library.worksheet("llama-7b"))


OWN = MisconceptionTexts("", "Side by side", "queries.columns = H*d", "How many heads?", "One head has d_h columns.")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tokens": ""}, "tokens"),
        ({"tokens": "a hundred"}, "tokens"),
        ({"tokens": "9" * 400}, "tokens"),
        ({"tokens": "99999999"}, "tokens"),
        ({"tokens_from": "20"}, "tokens_to"),
        ({"tokens_from": "20", "tokens_to": "10"}, "tokens_to"),
        ({"decoder_tokens": "5"}, "decoder_tokens"),
        ({"topic": "cross-attention"}, "model"),
        ({"topic": "nonsense"}, "topic"),
        ({"model": "nonsense"}, "model"),
        ({"notation": "nonsense"}, "notation"),
        ({"topic": "feed-forward-width", "answers": "letters"}, "answers"),
        ({"title": "x" * 201}, "title"),
        ({"introduction": "x" * 4001}, "introduction"),
        ({"introduction": "\u202eevil"}, "introduction"),
    ],
)
def test_what_cannot_be_used_is_said_beside_its_field(
    library: Library, texts: EditorTexts, fields: dict[str, str], field: str
) -> None:
    with pytest.raises(WorksheetFormError) as refused:
        read_worksheet_form(library, "own-1", complete_rows(library, texts.with_fields(**fields)))
    assert refused.value.field == field
    assert "_" not in str(refused.value)
    assert not str(refused.value)[0].islower()


@pytest.mark.parametrize(
    ("own", "field"),
    [
        (replace(OWN, name=""), "name"),
        (replace(OWN, question=""), "question"),
        (replace(OWN, explanation="x" * 4001), "explanation"),
        (replace(OWN, boxes=""), "boxes"),
        (replace(OWN, boxes="queries.columns H*d"), "boxes"),
        (replace(OWN, boxes="queries.columns = " + "H*" * 10_000 + "H"), "boxes"),
        (replace(OWN, boxes="queries.columns = 9**9**9**9"), "boxes"),
        (replace(OWN, boxes="queries.columns = __import__('os')"), "boxes"),
        (replace(OWN, boxes="nonsense.columns = H"), "boxes"),
        (replace(OWN, boxes="queries.columns = H\nqueries.columns = d"), "boxes"),
    ],
)
def test_a_misconception_is_whole_or_refused(
    library: Library, texts: EditorTexts, own: MisconceptionTexts, field: str
) -> None:
    with pytest.raises(WorksheetFormError) as refused:
        read_worksheet_form(library, "own-1", replace(texts, misconceptions=(own,)))
    assert refused.value.field == f"misconceptions.0.{field}"


def test_an_entry_without_text_is_none(library: Library, texts: EditorTexts) -> None:
    empty = replace(texts, questions=(QuestionTexts(),), misconceptions=(MisconceptionTexts(),))
    assert read_worksheet_form(library, "llama-7b", empty) == library.worksheet("llama-7b")
    with pytest.raises(WorksheetFormError) as refused:
        read_worksheet_form(library, "own-1", replace(texts, questions=(QuestionTexts("", "Why?"),) * 2))
    assert refused.value.field == "questions.1.text"


def test_what_was_reworded_keeps_its_key_and_leaves_its_old_words_free(library: Library, texts: EditorTexts) -> None:
    first = read_worksheet_form(
        library, "own-1", replace(texts, questions=(QuestionTexts("", "What is Q?"),), misconceptions=(OWN,))
    )
    shown = texts_of_worksheet(library, first)
    (question,), (own,) = shown.questions, shown.misconceptions
    questions = (QuestionTexts("", "What is Q?"), replace(question, text="Why is Q?"), QuestionTexts("", "What is Q"))
    reworded = replace(shown, questions=questions, misconceptions=(replace(own, name="Wide"), OWN))
    second = read_worksheet_form(library, "own-1", reworded)
    assert (second.questions[1].key, second.misconceptions[0].key) == (question.key, own.key)
    assert [each.text for each in second.questions] == ["What is Q?", "Why is Q?", "What is Q"]
    assert [each.name for each in second.misconceptions] == ["Wide", OWN.name]
    assert read_worksheet_form(library, "own-1", texts_of_worksheet(library, second)) == second
    for old in (question, replace(question, key="")):
        with pytest.raises(WorksheetFormError) as refused:
            read_worksheet_form(library, "own-1", replace(shown, questions=(*shown.questions, *questions[:1], old)))
        assert refused.value.field.startswith("questions.")
    with pytest.raises(WorksheetFormError):
        read_worksheet_form(library, "own-1", replace(shown, misconceptions=(own, OWN)))


def test_another_topic_has_its_own_rows_and_title(library: Library, texts: EditorTexts) -> None:
    moved = arrange(replace(texts, rows=(replace(texts.rows[0], hint="Mine"), *texts.rows[1:])), "down input")
    assert [row.key for row in moved.rows][:2] == ["queries", "input"]
    other_model = complete_rows(library, moved.with_fields(model="gpt2"))
    assert (other_model.rows, read_worksheet_form(library, "own-1", other_model).title) == (
        moved.rows,
        "One head of GPT-2",
    )
    other_topic = complete_rows(library, moved.with_fields(topic="costs"))
    assert len(other_topic.rows) > 5
    assert all(row.asked for row in other_topic.rows)


def test_rows_that_the_simplification_takes_away_are_not_offered(texts: EditorTexts, library: Library) -> None:
    changed = {"topic": "three-dimensions", "model": "qwen2.5-0.5b"}
    grouped = complete_rows(library, texts.with_fields(**changed))
    simplified = complete_rows(library, texts.with_fields(**changed, kv_head_per_query_head="yes"))
    assert "repeated_keys" in {row.key for row in grouped.rows} - {row.key for row in simplified.rows}
    assert read_worksheet_form(library, "own-1", simplified).kv_head_per_query_head


def test_buttons_change_the_texts(texts: EditorTexts) -> None:
    """They add, move and remove, and set a field; anything else changes nothing."""
    two = arrange(arrange(texts, "add-question"), "add-question")
    two = replace(two, questions=(QuestionTexts("", "first"), QuestionTexts("", "second")))
    assert [each.text for each in arrange(two, "up-question 1").questions] == ["second", "first"]
    assert [each.text for each in arrange(two, "remove-question 0").questions] == ["second"]
    assert arrange(texts, "set tokens 70").fields["tokens"] == "70"
    for action in ("up input", "up nonsense", "remove-question 9", "up-question -1", "set nonsense 1", "", "down"):
        assert arrange(texts, action) == texts
