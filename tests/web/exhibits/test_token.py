"""One more token: its page, what each step costs, and which models it refuses."""

from __future__ import annotations

from starlette.testclient import TestClient

from tests.helpers.html_page import Page


def test_each_step_says_what_it_costs_with_a_cache_and_without(client: TestClient) -> None:
    page = Page(client.get("/see/token?model=llama-7b&tokens=100").text)
    assert len(page.find("li", class_="frame")) == len(page.find("table", class_="costs")) == 7
    with_cache = 4 * 2 * 4096 * 4096 + 2 * 2 * 101 * 4096
    assert f"{with_cache:,}" in page.find("tr", class_="cached")[-1][1]
    assert f"{101 * with_cache:,}" in page.find("tr", class_="anew")[-1][1]


def test_it_leads_to_the_sheet_about_the_same_step(client: TestClient) -> None:
    page = Page(client.get("/see/token?model=gpt2&tokens=30").text)
    (link,) = (attributes["href"] for attributes, _ in page.find("a") if "/sheet?" in attributes["href"])
    assert {"model=gpt2", "tokens=30"} <= set(link.split("?")[1].split("&"))
    assert client.get(link).status_code == 200


def test_models_without_a_cache_of_keys_and_values_get_the_reason_of_the_topic(client: TestClient) -> None:
    for model in ("bert-base", "vit-base", "deepseek-v3"):
        answer = client.get(f"/see/token?model={model}")
        assert answer.status_code == 422
        page = Page(answer.text)
        assert page.find("p", role="alert")[0][1]
        assert not page.find("li", class_="frame")
    embedded = client.get("/see/token/embed?model=bert-base")
    assert Page(embedded.text).find("p", role="alert")
    assert "frame-ancestors *" in embedded.headers["Content-Security-Policy"]


def test_what_is_asked_about_the_next_token_can_be_answered(client: TestClient) -> None:
    address = "/see/token?model=llama-3.2-1b&tokens=99"
    forms = Page(client.get(address).text).find("form", method="get")
    steps = [attributes["id"].removeprefix("ask-") for attributes, _ in forms if "id" in attributes]
    assert len(steps) == 2
    for columns, mark in (("100", "right"), ("99", "wrong")):
        page = Page(client.get(f"{address}&step={steps[-1]}&rows=1&columns={columns}").text)
        boxes = [attributes for attributes, _ in page.find("span", class_="box")]
        assert [box["data-mark"] for box in boxes if "data-mark" in box] == ["right", mark]
        assert page.text("p", id=f"ask-{steps[-1]}-says", data_mark=mark)
    assert not Page(client.get(f"{address}&step={steps[0]}").text).text("p", id=f"ask-{steps[-1]}-says")
