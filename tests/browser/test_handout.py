"""Handouts and paper in a real browser: pages follow the options, the keyboard is enough, script is not needed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible_in_all_looks, wait_until
from tests.helpers.printed import read_pdf
from tests.helpers.shipped import LIBRARY

pytestmark = pytest.mark.slow


def test_the_pages_follow_the_options(page: Page) -> None:
    page.goto("/handout")
    expect(page.locator(".sheets img")).to_have_count(1)
    page.get_by_label("full pages", exact=True).check()
    expect(page.locator(".sheets img")).to_have_count(2)
    page.get_by_text("More options").click()
    page.get_by_label("Course").fill("Zürich & Söhne")
    expect(page.get_by_role("link", name="Download PDF")).to_have_attribute(
        "href", "/handout.pdf?worksheet=llama-7b&course=Z%C3%BCrich+%26+S%C3%B6hne&layout=full"
    )
    expect(page).to_have_url(re.compile(r"&layout=full$"))
    wait_until(page, "[...document.querySelectorAll('.sheets img')].every(img => img.complete && img.naturalWidth > 0)")
    page.reload()
    expect(page.get_by_label("Course")).to_have_value("Zürich & Söhne")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download PDF").click()
    assert download.value.suggested_filename == "llama-7b.pdf"


def test_the_decoders_length_is_asked_for_where_there_is_a_decoder(page: Page) -> None:
    page.goto("/handout")
    page.get_by_text("More options").click()
    field = page.get_by_label("Decoder tokens")
    expect(field).to_be_hidden()
    page.get_by_label("Worksheet").select_option("cross-bart-base")
    field.fill("9")
    expect(page).to_have_url(re.compile("decoded=9"))
    field.fill("")
    expect(page).not_to_have_url(re.compile("decoded"))
    page.get_by_label("Worksheet").select_option("llama-7b")
    expect(field).to_be_hidden()


def test_an_option_that_cannot_be_used_is_told_at_its_field(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/handout")
    field = page.get_by_label("Number of sheets")
    field.fill("many")
    expect(page.locator("#sheets-problem")).to_contain_text("“many”")
    assert "sheets-problem" in (field.get_attribute("aria-describedby") or "")
    below = page.locator("#sheets-problem").bounding_box()
    own = field.bounding_box()
    assert below
    assert own
    assert 0 <= below["y"] - own["y"] - own["height"] < 20
    field.fill("3")
    expect(page.locator("#sheets-problem")).to_be_empty()
    expect(page.locator(".sum")).to_have_text("3 sheets.")
    context.close()


def test_a_class_list_is_made_with_progress(page: Page) -> None:
    page.goto("/handout")
    page.get_by_text("Print names on the sheets").click()
    page.get_by_label("Names", exact=True).fill("\n".join(f"Student {at}" for at in range(90)))
    page.get_by_role("button", name="Create a sheet for each name").click()
    with page.expect_download(timeout=LONG_WAIT_MS) as download:
        page.get_by_role("link", name="Download PDF").click(timeout=LONG_WAIT_MS)
    assert download.value.path().read_bytes().startswith(b"%PDF")


def test_paper_is_typed_back_in_with_the_keyboard_alone(page: Page) -> None:
    variant = LIBRARY.variant("llama-7b")
    page.goto("/marking")
    expect(page.get_by_label("Sheet code")).to_be_focused()
    page.keyboard.type(variant.code.lower())
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name or number").first).to_be_focused()
    for text in ("Ada", *map(str, variant.key.values()), "Bo", "100"):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.type("-")
    page.keyboard.press("Enter")
    expect(page.locator(".marked").get_by_role("row", name="Ada")).to_contain_text("14 of 14")
    expect(page.locator(".marked").get_by_role("row", name="Bo")).to_contain_text("1 of 14")


def test_axe_finds_nothing_and_nothing_is_too_wide(browser: Browser, shared_app: Server) -> None:
    variant = LIBRARY.variant("llama-7b")
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    for address in ("/handout?back=classic", "/handout?sheets=none", "/marking", f"/marking?code={variant.code}"):
        page.goto(address)
        assert_accessible_in_all_looks(page)
    page.get_by_text("Paste lines instead").click()
    assert_accessible_in_all_looks(page)
    page.get_by_label("Lines", exact=True).fill("Ada: 100 4096 100 4096 100 4096 100 4096 ?")
    page.get_by_role("button", name="Grade").click()
    expect(page.locator(".marked")).to_be_visible()
    assert_accessible_in_all_looks(page)
    page.goto("/handout")
    page.get_by_text("Print names on the sheets").click()
    page.get_by_label("Names", exact=True).fill("y" * 90)
    page.get_by_role("button", name="Create a sheet for each name").click()
    expect(page.get_by_role("alert")).to_contain_text("at most 80")
    assert_accessible_in_all_looks(page)
    context.close()


def test_a_handout_is_made_without_script(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/handout")
    page.get_by_label("full pages", exact=True).check()
    page.get_by_role("button", name="Update preview").click()
    expect(page.locator(".sheets img")).to_have_count(2)
    page.get_by_text("Print names on the sheets").click()
    page.get_by_label("Names", exact=True).fill("Ada\nBo")
    page.get_by_role("button", name="Create a sheet for each name").click()
    expect(page.get_by_role("link", name="Download PDF")).to_be_visible(timeout=LONG_WAIT_MS)
    context.close()


def test_a_sheet_of_one_head_prints_on_one_page_with_its_drawing(page: Page) -> None:
    for worksheet in ("llama-7b", "qwen2.5-0.5b"):
        page.goto(f"/sheet?worksheet={worksheet}")
        for paper in ("Letter", "A4"):
            assert len(read_pdf(page.pdf(format=paper))) == 1
