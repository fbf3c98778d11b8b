"""Any config and any worksheet: a sheet, or a refusal that says what to choose; never an error of ours."""

from __future__ import annotations

from html import unescape

import pytest
from starlette.testclient import TestClient

from app.sheets.library import Library
from tests.helpers.families_cases import CASES
from tests.helpers.html_page import Page
from tests.helpers.model_imports import imported

pytestmark = pytest.mark.slow

WORKSHEETS_PER_FAMILY = 4  # other ones for each family, so that all are tried with many


def test_no_worksheet_fails_with_any_family(client: TestClient, library: Library) -> None:
    worksheets, refused = list(library.worksheets), 0
    for number, case in enumerate(CASES):
        config, name = list(case.configs())[number % 2]  # first values of all settings, or last ones
        key = imported(client, {**config, "architectures": [name]})
        for sheet in (worksheets * 2)[number % len(worksheets) :][:WORKSHEETS_PER_FAMILY]:
            page = client.get("/sheet", params={"worksheet": sheet, "model": key})
            answer = client.get(f"/api/v1/worksheets/{sheet}", params={"model": key})
            assert page.status_code == answer.status_code, (case.model_type, sheet)
            assert answer.status_code in (200, 422), (case.model_type, sheet)
            if answer.status_code == 422:
                refused += 1
                assert answer.json()["detail"] in unescape(page.text)
                assert client.post("/sheet/check", data={"worksheet": sheet, "model": key}).status_code == 422
    assert 0 < refused < len(CASES) * WORKSHEETS_PER_FAMILY


def test_the_menu_offers_what_is_possible(client: TestClient, library: Library) -> None:
    for worksheet in ("cross-bart-base", "decode-gpt2", "count-llama-7b"):
        text = client.get("/sheet", params={"worksheet": worksheet}).text
        menu = text.partition('<select name="model"')[2].partition("</select>")[0]
        offered = {attrs["value"] for attrs, _ in Page(menu).find("option")}
        assert offered == {key for key in library.models if not library.refusal(worksheet, key)}
        for key in offered:
            assert client.get("/sheet", params={"worksheet": worksheet, "model": key}).status_code == 200


@pytest.mark.parametrize(
    ("worksheet", "model"), [("decode-gpt2", "bert-base"), ("walk-llama-3.2-1b", "deepseek-v2-lite")]
)
def test_a_link_to_an_impossible_pair_leads_on(client: TestClient, worksheet: str, model: str) -> None:
    answer = client.get("/sheet", params={"worksheet": worksheet, "model": model})
    assert answer.status_code == 422
    links = [attrs["href"] for attrs, _ in Page(answer.text).find("a") if "href" in attrs]
    assert f"/models/{model}" in links
    (own,) = [link for link in links if link.startswith(f"/sheet?worksheet={worksheet}")]
    assert client.get(own).status_code == 200


def test_a_length_that_a_model_cannot_take_is_replaced(client: TestClient) -> None:
    answer = client.get("/sheet?worksheet=llama-7b&model=bert-base&tokens=600")
    assert answer.status_code == 422
    links = [attrs["href"] for attrs, _ in Page(answer.text).find("a") if "model=bert-base" in attrs.get("href", "")]
    assert [client.get(link).status_code for link in links] == [200]
