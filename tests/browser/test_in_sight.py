"""What a sheet says is where the eye is: on every screen, by raw taps and clicks, with nothing scrolled by a test."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.sheets.library import Library
from app.store import Store
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, unreachable, wait_until
from tests.helpers.running_activity import RunningActivity
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in
from tests.helpers.stored_class import enrol_student

PHONES = ((360, 640), (360, 740), (390, 844), (412, 915), (768, 1024))
DESKS = ((1280, 800), (1920, 1080))
# An element is in sight if nothing lies on its middle and its corners, all of which are in the window.
IN_SIGHT = """element => {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const points = [[left + 3, top + 3], [right - 3, top + 3], [left + 3, bottom - 3], [right - 3, bottom - 3],
    [(left + right) / 2, (top + bottom) / 2]];
  return top >= 0 && bottom <= innerHeight && points.every(([x, y]) => {
    const hit = document.elementFromPoint(x, y);
    return hit !== null && (element.contains(hit) || hit.contains(element));
  });
}"""
# Notes each text that a live region gets from now on, except for one that must keep quiet.
NOTE_ANNOUNCEMENTS = """
window.announced = [];
addEventListener("DOMContentLoaded", () => {
  const live = "[role=status], [role=alert], output, [aria-live]:not([aria-live=off])";
  new MutationObserver(changes => {
    for (const { target } of changes) {
      const region = (target.nodeType === 1 ? target : target.parentElement)?.closest(live);
      if (region && region.getAttribute("aria-live") !== "off" && region.textContent.trim()) {
        announced.push(region.textContent.trim());
      }
    }
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
});
"""


def box(name: str) -> str:
    return f"input[name='{name}']"


def assert_in_sight(element: Locator) -> None:
    """Wait until it is: the page may still be moving."""
    problem = f"{element} is not in sight at {element.page.viewport_size}"
    wait_until(element.page, lambda: element.evaluate(IN_SIGHT), problem)


def press(element: Locator, *, touch: bool) -> None:
    """Tap or click where an element is, which must be in sight: playwright itself would scroll to it."""
    assert_in_sight(element)
    bounds = element.bounding_box()
    assert bounds
    x, y = bounds["x"] + bounds["width"] / 2, bounds["y"] + bounds["height"] / 2
    if touch:
        element.page.touchscreen.tap(x, y)
    else:
        element.page.mouse.click(x, y)


def fill_in(page: Page, answers: dict[str, str]) -> None:
    """Type into boxes without moving the page or the focus."""
    for name, text in answers.items():
        page.locator(box(name)).evaluate(
            "(box, text) => { box.value = text; box.dispatchEvent(new InputEvent('input', { bubbles: true })); }", text
        )
    if page.locator("#work[data-keep]").count():  # a preview keeps nothing
        expect(page.locator("output.saved")).to_have_attribute("data-state", "saved")


def wide_heads(worksheet: str, tokens: int) -> dict[str, str]:
    """The sheet of a student who thinks that a head's queries, keys and values are as wide as the embedding."""
    sheet = LIBRARY.variant(worksheet, tokens=tokens)
    write = sheet.notation.write if sheet.worksheet.answers == "letters" else str
    answers = {
        str(blank): write(sheet.expression(blank)) if sheet.worksheet.answers == "letters" else str(sheet.answer(blank))
        for blank in sheet.blanks
    }
    return answers | {f"{row}.columns": answers["input.columns"] for row in ("queries", "keys", "values")}


def assert_all_said_in_sight(page: Page, *, touch: bool) -> None:
    """Check, then every hint: each sentence is in sight once, below its row, and so is the box it is about."""
    press(page.locator("#check"), touch=touch)
    expect(page.locator(".says .diagnosis")).to_have_count(1)
    first = page.locator("[aria-invalid=true]").first
    for element in (page.locator(".says .diagnosis"), first):
        assert_in_sight(element)
    assert page.locator(".keys").count() == 0 or page.locator(".keys").is_hidden()
    while page.locator("#hint").count():
        before = page.locator(".hint-aloud").inner_text()
        press(page.locator("#hint"), touch=touch)
        expect(page.locator(".hint-aloud")).not_to_have_text(before)
        for element in (page.locator(".says .hint"), first):
            assert_in_sight(element)
    if touch:
        assert page.locator(".dock").evaluate("dock => dock.offsetHeight / innerHeight") < 0.2
    press(first, touch=touch)
    expect(first).to_be_focused()
    page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(done), 50))")  # it is laid out anew
    assert_in_sight(first)


@pytest.mark.parametrize(("width", "height"), one_in(len(PHONES), PHONES))
@pytest.mark.parametrize("worksheet", one_in(2, ["llama-7b", "llama-7b~symbols"]))
def test_on_a_phone_all_that_is_said_and_the_box_are_in_sight(
    browser: Browser, shared_app: Server, worksheet: str, width: int, height: int
) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": width, "height": height}, has_touch=True, is_mobile=True,
        reduced_motion="reduce",
    )  # fmt: skip
    page = context.new_page()
    page.goto(f"/sheet?worksheet={worksheet}&tokens=61")
    press(page.locator("input[data-blank]").first, touch=True)
    expect(page.locator("body.typing")).to_have_count(1)
    assert_in_sight(page.locator("input[data-blank]:focus"))
    fill_in(page, wide_heads(worksheet, 61))
    assert_in_sight(page.locator("input[data-blank]:focus"))  # the drawing has grown
    assert_all_said_in_sight(page, touch=True)
    expect(page.locator("body.typing")).to_have_count(1)
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), one_in(2, DESKS))
def test_on_a_desk_all_that_is_said_and_the_box_are_in_sight(
    browser: Browser, shared_app: Server, width: int, height: int
) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto("/sheet?tokens=71")
    fill_in(page, wide_heads("llama-7b", 71))
    assert_all_said_in_sight(page, touch=False)
    context.close()


@pytest.mark.slow
def test_in_a_class_and_its_preview_too_below_the_time_that_is_left(
    browser: Browser, shared_app: Server, library: Library
) -> None:
    store = Store(shared_app.database, shared_app.folder)
    running = RunningActivity(library, store)
    _student, visitor, _code = enrol_student(store, running.course)
    ends = replace(running.activity.plan, closes_at=datetime.now(UTC) + timedelta(minutes=5))
    store.activities.change(running.activity, ends)
    session = store.people.open_session(running.teacher)
    store.close()
    for cookie, token, address in (
        (VISITOR_COOKIE, visitor.token, f"/class/{running.activity.id}/1"),
        (TEACHER_COOKIE, session, f"/activities/{running.activity.id}/preview/1"),
    ):
        context = browser.new_context(
            base_url=shared_app.url,
            viewport={"width": 360, "height": 640},
            has_touch=True,
            is_mobile=True,
            reduced_motion="reduce",
        )
        context.add_cookies([{"name": cookie, "value": token, "url": shared_app.url}])
        page = context.new_page()
        page.goto(address)
        press(page.locator("input[data-blank]").first, touch=True)
        expect(page.locator("body.typing")).to_have_count(1)
        assert_in_sight(page.locator("input[data-blank]:focus"))
        fill_in(page, wide_heads("llama-7b", 100))
        assert_all_said_in_sight(page, touch=True)
        if cookie == VISITOR_COOKIE:
            expect(page.locator(".closing b")).not_to_be_empty()
            assert_in_sight(page.locator(".closing b"))
        page.locator(box("keys.columns")).fill("128")
        expect(page.locator(".stale-score")).to_be_visible()
        context.close()


def test_without_script_the_diagnosis_is_in_sight(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": 360, "height": 640}, java_script_enabled=False
    )
    page = context.new_page()
    page.goto("/sheet?tokens=81")
    for name, text in wide_heads("llama-7b", 81).items():
        page.fill(box(name), text)
    page.locator("#check").click()
    page.wait_for_url("**checked=1*")
    expect(page.locator(box("queries.columns"))).to_be_focused()
    assert_in_sight(page.locator(".says .diagnosis"))
    page.locator("#hint").click()
    page.wait_for_url("**hint=2*")
    expect(page.locator(box("queries.columns"))).to_be_focused()
    assert_in_sight(page.locator(".says .hint"))
    context.close()


@pytest.mark.slow
def test_only_what_goes_wrong_is_read_out_while_a_sheet_is_typed(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.add_init_script(NOTE_ANNOUNCEMENTS)
    page.goto("/sheet?tokens=82")
    answers = wide_heads("llama-7b", 82)
    for name, text in answers.items():
        page.locator(box(name)).focus()
        page.keyboard.type(text)
        page.keyboard.press("Tab")
        with page.expect_response("**/save"):
            pass
    expect(page.locator("output.saved")).to_have_text("Saved")
    assert page.evaluate("announced") == []
    with unreachable(page, "**/save"):
        for name in list(answers)[:3]:
            page.locator(box(name)).focus()
            page.keyboard.type("1")
            expect(page.locator("output.saved")).to_have_attribute("data-state", "waiting")
        said = page.evaluate("announced")
        assert said == [page.locator("output.saved").inner_text()]
    expect(page.locator("output.saved")).to_have_text("Saved", timeout=LONG_WAIT_MS)
    assert page.evaluate("announced") == said
    context.close()


@pytest.mark.slow
def test_a_score_is_that_of_the_last_check_once_a_box_is_changed(page: Page) -> None:
    page.goto("/sheet?tokens=83")
    fill_in(page, wide_heads("llama-7b", 83))
    page.locator("#check").click()
    queries = page.locator(box("queries.columns"))  # the first box of the mistake, which costs it
    expect(queries).to_have_attribute("aria-invalid", "true")
    diagnosis = page.locator(".says .diagnosis").inner_text()
    expect(queries).to_have_accessible_description(f"Queries, columns: look again. {diagnosis}")
    score, stale = page.locator(".fresh-score"), page.locator(".stale-score")
    expect(score).to_be_visible()
    expect(stale).to_be_hidden()
    queries.fill("128")
    for _ in range(2):
        expect(queries).not_to_have_attribute("aria-invalid", "true")
        expect(stale).to_contain_text("11 of 14")
        expect(stale).to_be_visible()
        expect(score).to_be_hidden()
        expect(page.locator("output.saved")).to_have_text("Saved")
        page.reload()
    page.locator("#check").click()
    expect(score).to_contain_text("12 of 14")
    expect(stale).to_be_hidden()


@pytest.mark.slow
def test_the_drawing_on_a_phone_says_what_does_not_fit_of_the_box(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto("/sheet?tokens=84")
    sheet = {"queries.rows": "84", "queries.columns": "128", "keys.rows": "84", "keys.columns": "4096"}
    fill_in(page, sheet | {"scores.rows": "77", "scores.columns": "84", "input.rows": "84"})
    said = page.locator(".figures .mismatch:visible")
    for name, numbers in {"keys.columns": ("128", "4096"), "scores.rows": ("84", "77")}.items():
        page.locator(box(name)).tap()
        expect(said).to_have_count(1)
        for number in numbers:
            expect(said).to_contain_text(number)
    context.close()
