"""One model's page: where its sizes come from, its tensors and its total."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.models.model_sentences import count_remarks, property_sentences
from app.models.parameter_count import parameter_counts, parameters_json
from app.models.parameter_formula import parameter_formula
from app.sheets.library import Library
from tests.helpers.families_cases import CASES
from tests.helpers.html_page import text_of
from tests.helpers.model_imports import paste


def test_where_each_size_came_from_is_told(client: TestClient) -> None:
    assert "4096 hidden_size" in text_of(client.get("/models/llama-7b").text)


def test_the_total_stands_as_its_sum(client: TestClient) -> None:
    page = text_of(client.get("/models/llama-7b").text)
    assert "= V·d + L·(4·d·d + 3·d·dff + 2·d) + d + V·d" in page
    assert "= 32,000·4096 + 32·(4·4096·4096 + 3·4096·11,008 + 2·4096) + 4096 + 32,000·4096" in page


def test_every_term_has_its_piece_of_the_bar_and_its_row(client: TestClient, library: Library) -> None:
    for key, model in library.models.items():
        page = client.get(f"/models/{key}").text
        terms = re.findall(r'<span class="term" data-piece="([^"]+)"', page)
        assert terms == re.findall(r'<g\s+data-piece="([^"]+)"', page), key
        assert set(terms) == set(re.findall(r'<tr data-piece="([^"]+)"', page)), key
        symbols = text_of(page).partition("= ")[2].partition(" =")[0]
        assert symbols == parameter_formula(model.architecture).symbols.replace("_", ""), key


def test_the_sentences_on_a_model_stand_on_its_page(client: TestClient, library: Library) -> None:
    for key in ("gpt2", "deepseek-v2-lite"):
        a, page = library.model(key).architecture, text_of(client.get(f"/models/{key}").text)
        remarks = count_remarks(a, parameter_counts(a), parameter_formula(a))
        for sentence in (*property_sentences(a), *remarks):
            assert sentence.replace("_", "") in page.replace("_", "")


def test_every_tensor_stands_on_the_page(client: TestClient, library: Library) -> None:
    for key, model in library.models.items():
        page = client.get(f"/models/{key}").text
        for tensor in parameters_json(model.architecture)["tensors"]:
            assert f"<code>{tensor['name']}</code>" in page, (key, tensor["name"])


def test_a_model_that_is_not_there_is_a_404(client: TestClient) -> None:
    for key in ("nothing", "cfg-" + "0" * 20, "cfg-1", "%00", "a" * 500):
        answer = client.get(f"/models/{key}")
        assert answer.status_code == 404
        assert "There is no model" in answer.text


@pytest.mark.slow
def test_every_family_has_a_page(client: TestClient) -> None:
    for case in CASES:
        for which in (0, -1):
            config = case.config({name: values[which] for name, values in case.settings.items()})
            page = paste(client, config)
            assert (page.status_code, page.url.path[:8]) == (200, "/models/"), case.model_type
            assert f"<code>{case.model_type}</code>" in page.text


DATA = Path(__file__).parents[2] / "data"
RECORDS: list[dict[str, Any]] = [
    record
    for name in ("transformers_shapes.json", "published_totals.json")
    for record in json.loads((DATA / name).read_text(encoding="utf-8"))
]


@pytest.mark.slow
def test_every_known_config_has_a_page_and_links_to_sheets_that_open(client: TestClient) -> None:
    for number, record in enumerate(RECORDS):
        page = paste(client, record["config"])
        assert (page.status_code, page.url.path[:8]) == (200, "/models/"), record["name"]
        links = re.findall(r'href="(/sheet?[^"]*)"', page.text.partition('class="read"')[0])
        for link in links[number % 4 :: 4]:
            assert client.get(link.replace("&amp;", "&")).status_code == 200, (record["name"], link)
