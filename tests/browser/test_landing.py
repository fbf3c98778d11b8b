"""The start page in a browser: what the first screen holds, its words and its question."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks
from tests.helpers.slow import one_in

SCREENS = {"phone": {"width": 360, "height": 640}, "laptop": {"width": 1280, "height": 800}}


@pytest.mark.parametrize("screen", SCREENS)
def test_the_first_screen_says_what_this_is_and_what_to_do(browser: Browser, shared_app: Server, screen: str) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport=SCREENS[screen])  # type: ignore[arg-type]
    page = context.new_page()
    page.goto("/")
    parts = [page.get_by_role("heading", level=1), page.locator(".kept-head")]
    parts += page.locator("#start-question input").all()
    assert len(parts) == 4
    for part in parts:
        expect(part).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") == SCREENS[screen]["width"]
    context.close()


def test_text_is_painted_before_typefaces_and_pictures_are_asked_for(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/")
    expect(page.locator("html")).not_to_have_attribute("data-arriving", "")
    page.wait_for_function("""() => {
      const [painted] = performance.getEntriesByName("first-contentful-paint");
      const files = performance.getEntriesByType("resource").filter(({ name }) => /italic|figtree/.test(name));
      return painted && files.length >= 2 && files.every(({ startTime }) => startTime >= painted.startTime);
    }""")
    assert page.evaluate("document.fonts.check('italic 1em Libertinus Serif')")
    context.close()


@pytest.mark.parametrize("screen", one_in(2, SCREENS))
def test_a_visitor_answers_and_goes_on_by_typing_alone(browser: Browser, shared_app: Server, screen: str) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport=SCREENS[screen])  # type: ignore[arg-type]
    page = context.new_page()
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method != "GET" else None)
    page.goto("/")
    question = page.locator("#start-question")
    page.get_by_label("Rows of K transposed").click()
    page.keyboard.type("11")
    page.keyboard.press("Tab")
    page.keyboard.type("64")
    expect(question).to_have_attribute("data-verdict", "turned")
    expect(page.get_by_label("Columns of K transposed")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("11")
    page.get_by_label("Rows of K transposed").fill("64")
    expect(question).to_have_attribute("data-verdict", "right")
    assert (posts, context.cookies()) == ([], [])
    page.get_by_role("link", name="Now a whole head").press("Enter")
    expect(page.locator("#boxes")).to_be_visible()
    context.close()


def test_a_word_is_chosen_by_keyboard_and_by_touch(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/")
    told = page.locator(".tell:visible")
    expect(told).to_contain_text("“it”")
    page.get_by_role("radio", name=re.compile("^it: ")).focus()
    page.keyboard.press("ArrowDown")
    expect(told).to_contain_text("“was”")
    page.locator(".sentence:visible label").filter(has_text="sat").click()
    expect(told).to_contain_text("“sat”")
    context.close()


def test_the_start_page_is_light_and_waits_for_stylesheets_only(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.route("**/pictures/*", lambda route: route.abort())
    page.goto("/", wait_until="networkidle")
    loaded = page.evaluate(
        "() => ['resource', 'navigation'].flatMap(kind => performance.getEntriesByType(kind)).map(one => one.toJSON())"
    )
    assert 20_000 < sum(entry["transferSize"] for entry in loaded) <= 100_000
    sheets = page.locator("link[rel=stylesheet]").evaluate_all("links => links.map(link => link.href)")
    assert {entry["name"] for entry in loaded if entry["renderBlockingStatus"] == "blocking"} == set(sheets)
    assert page.locator("img:not([loading=lazy])").count() == 0
    context.close()


@pytest.mark.slow
def test_the_start_page_is_accessible(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    for query in ("", "?rows=11&columns=64", "?rows=64&columns=11", "teach", "about"):
        page.goto(f"/{query}")
        assert_accessible_in_all_looks(page)
    context.close()
