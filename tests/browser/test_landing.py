"""The start page in a browser: what the first screen holds, and a head that is filled in on it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks
from tests.helpers.slow import one_in

SCREENS = {"phone": {"width": 360, "height": 740}, "laptop": {"width": 1280, "height": 800}}


def box_asked_for(page: Page, name: str) -> None:
    """Wait until that box is asked for, with the focus in it and on the screen."""
    box = page.locator(f'#trial input[name="{name}"]')
    expect(box).to_be_focused()
    expect(box).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("screen", SCREENS)
def test_the_first_screen_says_what_this_is_and_what_to_do(browser: Browser, shared_app: Server, screen: str) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport=SCREENS[screen])  # type: ignore[arg-type]
    page = context.new_page()
    page.goto("/")
    parts = [page.get_by_role("heading", level=1), page.locator(".lead"), page.locator("#trial svg.flow")]
    parts += [page.locator("#trial input:visible"), *page.locator(".doors a").all()]
    assert len(parts) == 8
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
      const files = performance.getEntriesByType("resource").filter(({ name }) => /italic|figtree|webp/.test(name));
      return painted && files.length >= 3 && files.every(({ startTime }) => startTime >= painted.startTime);
    }""")
    assert page.evaluate("document.fonts.check('italic 1em Libertinus Serif')")
    context.close()


@pytest.mark.slow
def test_on_a_phone_a_mismatch_is_in_the_frame(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport=SCREENS["phone"])  # type: ignore[arg-type]
    page = context.new_page()
    page.emulate_media(reduced_motion="reduce")
    page.goto("/?keys.columns=128")
    page.get_by_label("Attention scores: number of columns").fill("128")
    expect(page.locator("#trial .mismatched")).to_be_in_viewport(ratio=1)
    drawing, label = (page.locator(f"#trial {each}").bounding_box() for each in ("svg.flow", ".mismatched text"))
    assert drawing
    assert label
    assert drawing["x"] <= label["x"] <= label["x"] + label["width"] <= drawing["x"] + drawing["width"]
    assert drawing["y"] <= label["y"] <= label["y"] + label["height"] <= drawing["y"] + drawing["height"]
    assert label["height"] >= 9
    context.close()


@pytest.mark.parametrize("screen", one_in(2, SCREENS))
def test_a_visitor_fills_in_a_head_by_typing_alone(browser: Browser, shared_app: Server, screen: str) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport=SCREENS[screen])  # type: ignore[arg-type]
    page = context.new_page()
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method != "GET" else None)
    page.goto("/")
    expect(page.locator("html")).not_to_have_attribute("data-arriving", "")  # typefaces move the box
    page.get_by_label("Keys: number of columns").click()
    page.keyboard.type("4096")
    expect(page.locator("#trial .remark")).to_have_attribute("data-mark", "wrong")
    box_asked_for(page, "keys.columns")
    page.keyboard.press("Control+A")
    for name, text in {"keys.columns": "128", "scores.columns": "100", "output.columns": "4096"}.items():
        box_asked_for(page, name)
        page.keyboard.type(text)
    expect(page.locator('.doors a[href="/sheet"]')).to_be_focused()
    expect(page.locator("#trial .open")).to_have_count(0)
    assert (posts, context.cookies()) == ([], [])
    page.keyboard.press("Enter")
    expect(page.locator("#boxes")).to_be_visible()
    context.close()


def test_the_start_page_is_light_and_waits_for_stylesheets_only(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.route("**/pictures/*", lambda route: route.abort())
    page.goto("/", wait_until="networkidle")
    loaded = page.evaluate(
        "() => ['resource', 'navigation'].flatMap(kind => performance.getEntriesByType(kind)).map(one => one.toJSON())"
    )
    assert 20_000 < sum(entry["transferSize"] for entry in loaded) <= 120_000
    sheets = page.locator("link[rel=stylesheet]").evaluate_all("links => links.map(link => link.href)")
    assert {entry["name"] for entry in loaded if entry["renderBlockingStatus"] == "blocking"} == set(sheets)
    assert page.locator("img:not([loading=lazy])").count() == 0
    context.close()


@pytest.mark.slow
def test_the_start_page_is_accessible(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    for query in ("", "?keys.columns=4096", "?keys.columns=128&scores.columns=100&output.columns=4096"):
        page.goto(f"/{query}")
        assert_accessible_in_all_looks(page)
    context.close()
