"""The moment a sheet is all right, in a real browser with real torch: arcs, PyTorch's word, one step that is next."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from playwright.sync_api import Browser, Page, expect

from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Policies, Store
from app.web.shared.cookies import VISITOR_COOKIE
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS
from tests.helpers.running_activity import RunningActivity
from tests.helpers.slow import one_in
from tests.helpers.stored_class import enrol_student

RUNS = re.compile(r"/runs/?$|/run$")


def right(variant: Variant) -> dict[str, str]:
    return {str(blank): str(variant.answer(blank)) for blank in variant.blanks}


def check(page: Page, answers: Mapping[str, str], button: str = "Check") -> None:
    for box, text in answers.items():
        page.fill(f'input[name="{box}"]', text)
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator(".result")).not_to_be_empty()


# Notes of every part of a drawing that is animated which drawing it is in, how far it is from the upper left corner,
# and when its movement ends, in ms after the sheet was right.
NOTE_PARTS = """
window.parts = [];
const animate = Element.prototype.animate;
Element.prototype.animate = function (frames, options) {
  const figure = [...document.querySelectorAll(".figures svg")].indexOf(this.closest(".figures svg"));
  const { left, top } = this.getBoundingClientRect();
  parts.push([figure, this.matches(".arc, .matrix"), left + top, options.delay + options.duration]);
  return animate.call(this, frames, options);
};
"""


def played(page: Page) -> list[float]:
    """When the movement of each part of the last drawing ended since this was last asked, from the input on, or []."""
    parts = page.evaluate("window.parts.splice(0)")
    assert all(is_part for _figure, is_part, _far, _end in parts)
    last = max((figure for figure, *_rest in parts), default=0)
    return [end for figure, _is_part, _far, end in sorted(parts, key=lambda part: part[2]) if figure == last]


def primary_buttons(page: Page) -> list[str]:
    return page.locator("#work :is(button, a.button):not(.plain):not(.text)").filter(visible=True).all_inner_texts()


def joined(page: Page, app: Server, library: Library, policies: Policies) -> Variant:
    """A new class with one sheet, open, and this page at that sheet, as a student's."""
    page.add_init_script(NOTE_PARTS)
    store = Store(app.database, app.folder)
    running = RunningActivity(library, store, policies=policies)
    _student, visitor, _code = enrol_student(store, running.course)
    page.context.add_cookies([{"name": VISITOR_COOKIE, "value": visitor.token, "url": app.url}])
    page.goto(f"/class/{running.activity.id}/1")
    store.close()
    return library.variant("llama-7b")


@pytest.mark.slow
def test_practice_answers_the_moment_it_is_right(page: Page, library: Library) -> None:
    page.add_init_script(NOTE_PARTS)
    runs: list[str] = []
    page.on("request", lambda request: runs.append(request.url) if RUNS.search(request.url) else None)
    page.goto("/sheet")
    variant = library.variant("llama-7b")
    truth, width = right(variant), str(variant.problem.sizes["d"])
    check(page, truth | {f"{row}.columns": width for row in ("queries", "keys", "values")})
    expect(page.locator("[data-mark=wrong] input").first).to_be_visible()
    assert (played(page), primary_buttons(page), runs) == ([], ["Check"], [])

    check(page, truth)
    expect(page.locator("[data-all-right]")).to_be_visible()
    ends = played(page)
    assert len(ends) > 2
    assert ends == sorted(ends)
    assert max(ends) <= 1200
    expect(page.locator("#next")).to_be_focused()
    assert len(primary_buttons(page)) == 1
    expect(page.get_by_role("button", name="Show answers")).to_have_count(0)
    expect(page.get_by_role("heading", name="What went wrong")).to_be_visible()

    agreement = page.locator("#agreement")
    expect(agreement).to_contain_text("PyTorch agrees", timeout=LONG_WAIT_MS)
    expect(agreement).to_contain_text(f"({truth['output.rows']}, {truth['output.columns']})")
    agreement.get_by_role("link").click()
    expect(page.locator("#run")).to_be_focused()
    expect(page.locator("table.compared .same")).to_have_count(len(truth))
    expect(page.locator("table.compared .differs")).to_have_count(0)
    page.fill("input[name='queries.rows']", "1")
    expect(page.get_by_role("button", name="Check")).to_be_visible()
    check(page, truth)
    page.reload()
    expect(agreement).to_contain_text("PyTorch agrees")
    assert len(runs) == 1


@pytest.mark.slow
def test_on_a_phone_the_whole_drawing_comes_into_view(browser: Browser, shared_app: Server, library: Library) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": 360, "height": 740}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto("/sheet")
    check(page, right(library.variant("llama-7b")))
    expect(page.locator("#next")).to_be_focused()
    expect(page.locator(".figures .matrix:not(.on)")).to_have_count(0)
    for matrix in page.locator(".figures .matrix").all():
        expect(matrix).to_be_in_viewport(ratio=0.99)
    context.close()


@pytest.mark.slow
def test_nothing_moves_for_those_who_want_it_still(browser: Browser, shared_app: Server, library: Library) -> None:
    context = browser.new_context(base_url=shared_app.url, reduced_motion="reduce")
    page = context.new_page()
    page.add_init_script(NOTE_PARTS)
    page.goto("/sheet")
    check(page, right(library.variant("llama-7b")))
    expect(page.locator("#next")).to_be_focused()
    assert played(page) == []
    expect(page.locator("#agreement")).to_contain_text("(100, 4096)", timeout=LONG_WAIT_MS)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("worksheet=(?!llama-7b&)"))
    context.close()


@pytest.mark.parametrize("answer", one_in(3, [204, 429, 503]))
def test_a_run_that_is_refused_leaves_the_sheet_as_it_is(
    browser: Browser, shared_app: Server, library: Library, answer: int
) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.route(RUNS, lambda route: route.fulfill(status=answer, body=""))
    page.goto("/sheet?worksheet=llama-7b&tokens=64")
    truth = right(library.variant("llama-7b", tokens=64))
    with page.expect_response(RUNS):
        check(page, truth)
    expect(page.locator(".result")).to_have_text("✓ All 14 are right")
    expect(page.locator("#agreement")).to_be_empty()
    page.fill("input[name='queries.rows']", "1")
    expect(page.locator(".saved")).to_have_text("Saved")
    context.close()


@pytest.mark.slow
def test_a_class_that_shows_marks_has_the_same_moment(page: Page, shared_app: Server, library: Library) -> None:
    truth = right(joined(page, shared_app, library, Policies()))
    check(page, truth | {f"{row}.columns": "4096" for row in ("queries", "keys", "values")})
    check(page, truth)
    expect(page.get_by_role("button", name="Hand in")).to_be_focused()
    assert played(page)
    assert primary_buttons(page) == ["Hand in"]
    expect(page.get_by_role("heading", name="What went wrong")).to_be_visible()
    expect(page.locator("#agreement")).to_contain_text("O is (100, 4096)", timeout=LONG_WAIT_MS)
    page.get_by_role("button", name="Hand in").click()
    expect(page.locator("#next")).to_be_visible()
    assert len(primary_buttons(page)) == 1
    expect(page.locator("#agreement")).to_contain_text("PyTorch agrees")


@pytest.mark.slow
@pytest.mark.parametrize("policies", [Policies(feedback="after_close"), Policies(exam=True)])
def test_a_class_that_keeps_its_marks_gives_nothing_away(
    page: Page, shared_app: Server, library: Library, policies: Policies
) -> None:
    truth = right(joined(page, shared_app, library, policies))
    if policies.feedback == "immediate":  # an exam shows which boxes are right, but helps with nothing
        check(page, truth)
    check(page, truth, "Hand in")
    expect(page.locator("#next")).to_be_visible()
    assert played(page) == []
    for sign in ("#agreement", ".explanation", "#start-run"):
        expect(page.locator(sign)).to_have_count(0)
