"""Files that authors write: what cannot be used is named, with what to change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.settings import PROJECT
from app.shapes.table import MATRIX_FIELDS, Blank
from app.sheets.exit_tickets import Ticket, TicketQuestion, load_tickets
from app.sheets.library import load_library
from app.sheets.worksheet import WorksheetError


def copied(tmp_path: Path) -> Path:
    """The shipped models and wording, with one worksheet."""
    folder = tmp_path / "worksheets"
    for part in ("models", "wording", "exit-tickets"):
        shutil.copytree(PROJECT / "worksheets" / part, folder / part)
    shutil.copy(PROJECT / "worksheets" / "llama-7b.toml", folder)
    return folder


def test_the_eighth_row_can_be_asked_too(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    text = (folder / "llama-7b.toml").read_text(encoding="utf-8").replace('"output"]', '"context", "output"]')
    (folder / "eight.toml").write_text(text, encoding="utf-8")
    variant = load_library(folder).variant("eight")
    assert [row.key for row in variant.rows][-2:] == ["context", "output"]
    assert [variant.answer(Blank("context", field)) for field in MATRIX_FIELDS] == [100, 128]


GOOD = 'title = "T"\nmodel = "llama-7b"\ntopic = "single-head"\ntokens = 5\nrows = ["input"]\n'
SIZES = '"num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 100'
CONFIG = f'{{"model_type": "llama", "hidden_size": 64, {SIZES}}}'


def model_file(config: str, name: str = '"M"') -> str:
    return f'{{"name": {name}, "about": "a", "card": "c", "config": {config}}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", ""),
        ("", "title, model, topic, tokens and rows"),
        (GOOD.replace("title", "titel"), "titel"),
        (GOOD.replace('"T"', "5"), "title"),
        (GOOD.replace('"llama-7b"', '"nope"'), "model cannot be “nope”: use one of "),
        (GOOD.replace('"llama-7b"', '["llama-7b"]'), "model"),
        (GOOD.replace("single-head", "nope"), "topic cannot be “nope”: use one of first-steps, single-head"),
        (
            GOOD.replace("single-head", "layer-weights"),
            "topic cannot be “layer-weights”: use one of first-steps, single-head, bidirectional-head",
        ),
        (GOOD + 'notation = "nope"', "notation cannot be “nope”: use one of classic"),
        (GOOD.replace("= 5", "= 0"), "from 1 to"),
        (GOOD.replace("= 5", "= 1_000_000_000"), "from 1 to"),
        (GOOD.replace("= 5", "= 1.5"), "tokens"),
        (GOOD.replace("= 5", '= "5"'), "tokens"),
        (GOOD.replace("= 5", "= true"), "tokens"),
        (GOOD.replace('["input"]', "[]"), "rows"),
        (GOOD.replace('["input"]', '["W_Q"]'), "rows must be some of"),
        (
            GOOD.replace("single-head", "whole-model").replace('["input"]', '["tokens"]'),
            "rows must be some of embedded",
        ),
        (GOOD.replace("single-head", "cross-attention"), "no cross-attention"),
        (GOOD.replace('["input"]', '"input"'), "rows"),
        (GOOD.replace('["input"]', '[["input"]]'), "rows must be a list of texts"),
        (GOOD + 'models = ["gpt2", "gpt3"]', "model cannot be “gpt3”"),
        (GOOD + "models = [1]", "models must be a list of texts"),
        (GOOD.replace('["input"]', '["input", "input"]'), "rows must be some of"),
        (GOOD + "kv_head_per_query_head = 1", "kv_head_per_query_head"),
        (GOOD + 'key = "other"', "key"),
    ],
)
def test_a_worksheet_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    folder = copied(tmp_path)
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(WorksheetError) as refused:
        load_library(folder)
    sentence = str(refused.value)
    assert sentence.startswith("mine.toml")
    assert said in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "one JSON object with name, about, card and config"),
        ("[]", "one JSON object with name, about, card and config"),
        ("[" * 100_000, "one JSON object with name, about, card and config"),
        ('{"name": "M"}', "one JSON object with name, about, card and config"),
        (model_file(CONFIG, name="5"), "one JSON object with name, about, card and config"),
        (model_file("5"), "one JSON object"),
        (model_file('{"hidden_size": 64}'), "model_type"),
        (model_file(CONFIG.replace('"hidden_size": 64', '"hidden_size": null')), "hidden_size"),
        (model_file(CONFIG.replace("64", "-64")), "hidden_size"),
        (model_file(CONFIG.replace("64", "65")), "65"),
    ],
)
def test_a_model_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    folder = copied(tmp_path)
    (folder / "models" / "mine.json").write_text(text, encoding="utf-8")
    with pytest.raises(WorksheetError) as refused:
        load_library(folder)
    sentence = str(refused.value)
    assert sentence.startswith("models/mine.json")
    assert said in sentence
    assert "\n" not in sentence


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / "mine.toml").write_bytes(b'title = "\xff"')
    with pytest.raises(WorksheetError, match=r"^mine\.toml cannot be read"):
        load_library(folder)


def test_a_library_without_wording_is_refused(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    shutil.rmtree(folder / "wording" / "en")
    with pytest.raises(WorksheetError, match=r"^sheets\.toml cannot be read"):
        load_library(folder)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ", title: A ticket needs title, instruction and questions"),
        ('title = "T"\ninstruction = "I"\nquestions = [{key = "k"}]', ", questions.1.text: A ticket needs"),
        ("title = ", " cannot be read: "),
    ],
)
def test_an_exit_ticket_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    folder = copied(tmp_path)
    (folder / "exit-tickets" / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(WorksheetError, match=rf"^exit-tickets/mine\.toml{said}"):
        load_tickets(folder)


def test_an_exit_ticket_keeps_its_questions_in_order(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    questions = '[{key = "muddy", text = "What?"}, {key = 2, text = "Why?"}]'
    text = f'title = "T"\ninstruction = "I"\nquestions = {questions}'
    (folder / "exit-tickets" / "mine.toml").write_text(text, encoding="utf-8")
    asked = (TicketQuestion(key="muddy", text="What?"), TicketQuestion(key="2", text="Why?"))
    assert load_tickets(folder)["mine"] == Ticket(key="mine", title="T", instruction="I", questions=asked)
