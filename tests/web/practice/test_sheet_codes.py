"""A code from paper, typed or scanned, opens its sheet, and the sheet shows its code."""

from __future__ import annotations

import html
import re

import pytest
from starlette.testclient import TestClient

from app.sheets import prose
from app.sheets.library import Library
from tests.helpers.html_page import Page
from tests.helpers.slow import one_in


def test_the_address_of_an_old_sheet_leads_to_the_one_in_its_place(client: TestClient) -> None:
    old = client.get("/sheet?worksheet=letters-layer-mistral-7b&tokens=7", follow_redirects=False)
    assert old.status_code == 303
    assert old.headers["location"] == "/sheet?worksheet=layer-mistral-7b~symbols&tokens=7"
    old = client.get("/sheet?worksheet=cross-t5-small", follow_redirects=False)
    assert client.get(old.headers["location"]).status_code == 200
    assert "model=t5-small" in old.headers["location"]


@pytest.mark.parametrize("address", ["/v/{code}", "/v?code={code}"])
@pytest.mark.parametrize("sheet", ["llama-7b", "cross-bart-base", "llama-7b~symbols"])
def test_a_code_opens_its_sheet(client: TestClient, library: Library, sheet: str, address: str) -> None:
    variant = library.seeded(sheet, 3)
    page = client.get(address.format(code=variant.code.lower().replace("-", "")))
    assert page.status_code == 200
    assert prose.description(variant) in html.unescape(re.sub(r"<a class=\"term\"[^>]*>|</a>", "", page.text))
    assert variant.code in page.text


def test_what_is_typed_into_a_drawn_sheet_is_kept_and_marked(client: TestClient, library: Library) -> None:
    variant = library.seeded("cross-bart-base", 3)
    sizes = {"worksheet": "cross-bart-base", "model": "bart-base", "tokens": str(variant.tokens),
             "decoded": str(variant.decoder_tokens)}  # fmt: skip
    answers = {"queries.rows": str(variant.decoder_tokens), "output.rows": "12"}
    page = client.post("/sheet/check", data={**sizes, **answers}).text
    assert "1 of 18 right" in page
    assert Page(client.get(f"/v/{variant.code}").text).boxes()["queries.rows"] == str(variant.decoder_tokens)
    assert Page(client.get("/sheet?worksheet=cross-bart-base").text).boxes()["queries.rows"] == ""


@pytest.mark.parametrize("code", ["BHR-KQ-RN", "nonsense", "<b>", "ü" * 900])
def test_a_code_that_opens_nothing_can_be_mended(client: TestClient, code: str) -> None:
    page = client.get("/v", params={"code": code})
    assert page.status_code == 404
    assert 'class="problem" id="code-problem" role="alert">' in page.text
    assert f'value="{html.escape(code[:60])}"' in page.text


@pytest.mark.parametrize("part", one_in(4, ["~", "~0", "~127", "~-1", "~abc", "~٣", "~5~3", "~9999999999"]))
def test_a_part_that_a_worksheet_lacks_leads_to_the_whole_one(client: TestClient, part: str) -> None:
    query = {"worksheet": f"llama-7b{part}"}
    page = client.get("/sheet", params=query)
    assert Page(page.text).text("p", role="alert").endswith("Open the whole worksheet instead: “llama-7b”.")
    assert 'href="/sheet?worksheet=llama-7b&amp;' in page.text
    others = (
        client.get(f"/api/v1/worksheets/llama-7b{part}"),
        client.post("/api/v1/variants", json={**query, "seed": 1}),
        client.post("/sheet/check", data=query),
        client.get("/handout.pdf", params=query),
    )
    assert [response.status_code for response in (page, *others)] == [404] * 5


def test_a_part_keeps_its_worksheet_in_the_forms_around_it(client: TestClient) -> None:
    refused = client.get("/sheet", params={"worksheet": "llama-7b~5", "tokens": "none"})
    assert refused.status_code == 422
    assert [attributes["value"] for attributes in chosen(refused.text)] == ["llama-7b"]
    printed = client.get("/handout", params={"worksheet": "llama-7b~5"})
    assert {"value": "llama-7b~5", "selected": ""} in chosen(printed.text)


def chosen(page: str) -> list[dict[str, str]]:
    """The attributes of the options that are chosen on a page."""
    return [attributes for tag, attributes, _ in Page(page).elements if tag == "option" and "selected" in attributes]


def test_no_decoder_length_out_of_range_is_taken(client: TestClient) -> None:
    for query in ("worksheet=cross-bart-base&decoded=0", "worksheet=cross-bart-base&decoded=x", "decoded=5"):
        page = client.get(f"/sheet?{query}")
        assert page.status_code == 422
        assert "ecoder tokens" in page.text
