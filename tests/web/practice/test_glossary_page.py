"""The glossary's page, and the links to it from the sheets of practice and of a class."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from app.sheets import prose
from app.sheets.library import Library
from app.web.glossary import glossary_terms, shared_letters
from tests.helpers.html_page import Page


def test_every_term_has_a_place_a_short_text_and_a_drawing(client: TestClient, library: Library) -> None:
    page = Page(client.get("/glossary").text)
    for term in glossary_terms(library.wording):
        assert len(page.find("div", id=term.key)) == 1
        assert len(page.find("a", href=f"#{term.key}")) == 2  # among all terms at the top, and at its place
        assert 1 <= len(re.findall(r"[.](?: |$)", term.text)) <= 4, term.text
    assert len(page.find("svg", **{"aria-hidden": "true"})) > len(glossary_terms(library.wording))


def test_symbols_are_those_of_sheets_in_the_default_notation(client: TestClient, library: Library) -> None:
    terms = {term.key: term for term in glossary_terms(library.wording)}
    symbols = [term.symbol for term in terms.values() if term.symbol]
    assert len(set(symbols)) == len(symbols)
    sheet = library.variant("layer-mistral-7b")
    assert sheet.worksheet.notation == "classic"
    sizes = {"token": "N", "embedding-dimension": "d", "head": "H", "head-dimension": "d_h"}
    sizes |= {"grouped-query-attention": "G"}
    assert {key: terms[key].symbol for key in sizes} == {key: sheet.notation.symbol(own) for key, own in sizes.items()}
    letters = {"query": "queries", "key": "keys", "value": "values", "scores": "scores"}
    assert {key: terms[key].symbol for key in letters} == {key: sheet.letters[own] for key, own in letters.items()}
    page = client.get("/glossary").text
    assert all(terms[key].symbol_name in page for key in ("token", "head", "grouped-query-attention"))


def test_a_letter_with_two_meanings_is_listed_and_has_one_on_each_sheet(client: TestClient, library: Library) -> None:
    listed = dict(shared_letters(library.wording))
    assert set(listed["V"]) == {"Values", "vocabulary size"}
    for key in library.worksheets:
        variant = library.variant(key)
        letters = {row.letter for row in variant.rows} - {""}
        used = frozenset[str]().union(*(variant.expression(blank).symbols for blank in variant.blanks))
        assert not letters & set(map(variant.notation.symbol, used)), key
    page = Page(client.get("/glossary").text)
    for letter, meanings in listed.items():
        assert any(text.startswith(f"{letter}:") and meanings[0] in text for _, text in page.find("li")), letter


@pytest.mark.parametrize("sheet", ["llama-7b", "walk-llama-3.2-1b", "costs-llama-7b", "latent-deepseek-v2-lite"])
def test_a_sheet_links_each_of_its_terms_once(client: TestClient, library: Library, sheet: str) -> None:
    text = client.get(f"/sheet?worksheet={sheet}").text
    page, variant = Page(text), library.variant(sheet)
    links = [attributes for attributes, _ in page.find("a", class_="term")]
    addresses = [link["href"] for link in links]
    assert len(addresses) >= 5
    assert len(addresses) == len(set(addresses))
    keys = {term.key for term in glossary_terms(library.wording)}
    assert {address.partition("#")[2] for address in addresses} <= keys
    assert all(link["target"] == "_blank" for link in links)
    assert prose.task(variant) in " ".join(words for _, words in page.find("p"))


def test_a_glossary_link_is_not_on_paper(client: TestClient) -> None:
    assert 'class="term"' not in client.get("/handout?worksheet=llama-7b").text
