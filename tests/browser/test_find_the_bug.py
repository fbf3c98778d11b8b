"""Sheets about a program with a bug in a real browser: by touch, by keyboard only, without script, in two tabs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from app.sheets.library import Library
from app.sheets.variant import Variant
from simulation.lesson import AFTER_HAND_IN, open_lesson
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

ADDRESS = "/sheet?worksheet=bug-one-head"
LINE, REASON, REPAIR = ("input[name='where.choice']", "input[name='why.choice']", "[name='repair.part1']")


@pytest.fixture
def right(library: Library) -> dict[str, str]:
    """The right sheet, by box."""
    return right_texts(library.variant("bug-one-head"))


def right_texts(variant: Variant) -> dict[str, str]:
    return {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}


def chosen(page: Page, radios: str) -> str:
    return str(page.evaluate("radios => document.querySelector(`${radios}:checked`)?.value ?? ''", radios))


def fill_boxes(page: Page, right: dict[str, str], *, repair: bool) -> None:
    """Fill in the right answers in the boxes without choices: the repair's, or all others."""
    for box, text in right.items():
        if not box.endswith(".choice") and box.startswith("repair.") is repair:
            page.fill(f"input[name='{box}']", text)


def test_a_bug_is_found_and_repaired_by_touch(browser: Browser, shared_app: Server, right: dict[str, str]) -> None:
    size = {"width": 360, "height": 640}
    context = browser.new_context(base_url=shared_app.url, viewport=size, has_touch=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(ADDRESS)
    page.locator("ol.program-lines li").nth(int(right["where.choice"]) - 1).locator("label").tap()
    assert chosen(page, LINE) == right["where.choice"]
    page.locator(f"label:has({REASON}[value='{right['why.choice']}'])").tap()
    for question in page.locator("fieldset.alternatives").all():
        assert question.evaluate("each => each.getBoundingClientRect().width") > size["width"] * 0.8
    expect(page.locator(REPAIR)).to_have_count(0)
    fill_boxes(page, right, repair=False)
    page.get_by_role("button", name="Check").tap()
    expect(page.locator(f"td[data-mark='right']:has({LINE})")).to_be_visible()
    sign = page.locator(f"label:has({LINE}:checked)").evaluate("each => getComputedStyle(each, '::after').content")
    assert "✓" in sign  # beside the line that was chosen
    fill_boxes(page, right, repair=True)
    page.get_by_role("button", name="Check").tap()
    expect(page.locator(f"td[data-mark='right']:has({REPAIR})")).to_be_visible()  # with the answer to this check
    expect(page.locator("td.box:not([data-mark='right']), td.whole:not([data-mark='right'])")).to_have_count(0)
    context.close()


@pytest.mark.slow
def test_choices_in_two_tabs_merge(page: Page) -> None:
    page.goto(ADDRESS)
    page.locator("ol.program-lines label").nth(2).click()
    expect(page.locator("output.saved")).to_have_text("Saved")
    other = page.context.new_page()
    other.goto(ADDRESS)
    assert chosen(other, LINE) == "3"
    page.locator("ol.program-lines label").nth(4).click()
    expect(page.locator("output.saved")).to_have_text("Saved")
    other.locator(f"label:has({REASON}[value='2'])").click()
    expect(other.locator(f"{LINE}:checked")).to_have_value("5")
    other.reload()
    assert (chosen(other, LINE), chosen(other, REASON)) == ("5", "2")


@pytest.mark.slow
@pytest.mark.parametrize("worksheet", ["bug-one-head", "bug-or-none", "bug-layer"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(page: Page, worksheet: str) -> None:
    page.goto(f"/sheet?worksheet={worksheet}")
    assert_accessible_in_all_looks(page)
    page.locator("ol.program-lines label").nth(2).click()
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".whole[data-mark]").first).to_be_visible()
    assert_accessible_in_all_looks(page)
    hint = page.get_by_role("button", name="Hint", exact=True)
    if hint.count():
        hint.click()
        expect(page.locator(".says .hint")).to_be_visible()
        assert_accessible_in_all_looks(page)
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Show answers").click()
    expect(page.locator("tr.answer").first).to_be_visible()
    assert_accessible_in_all_looks(page)


@pytest.mark.slow
def test_the_program_stays_in_sight_of_its_questions(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(ADDRESS)
    last_reason = page.locator("fieldset.sentences label").last
    last_reason.scroll_into_view_if_needed()
    expect(page.locator("ol.program-lines li").first).to_be_in_viewport(ratio=1)
    expect(page.locator("ol.program-lines li").last).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 360, "height": 640})
    ends, begins = page.evaluate(
        "['.program', '#boxes'].map(each => document.querySelector(each).getBoundingClientRect())"
        ".map((box, at) => at ? box.top : box.bottom)"
    )
    assert ends <= begins


@pytest.mark.slow
@pytest.mark.parametrize("worksheet", ["bug-one-head", "bug-layer", "bug-decoding"])
def test_the_first_box_is_on_a_phones_first_screen_since_the_program_scrolls(page: Page, worksheet: str) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(f"/sheet?worksheet={worksheet}")
    box = page.locator("#boxes input").first.bounding_box()
    assert box
    assert box["y"] < 640
    page.locator(".program[tabindex]").focus()
    page.keyboard.press("End")
    expect(page.locator(".happened")).to_be_in_viewport()


@pytest.mark.slow
def test_a_bug_is_found_by_keyboard_alone(page: Page, right: dict[str, str]) -> None:
    page.goto(ADDRESS)
    page.locator("input[name='shape_1.rows']").focus()
    for box in right:
        if box.startswith("repair."):
            continue
        page.wait_for_function("name => document.activeElement.name === name", arg=box)
        if box.endswith(".choice"):
            options = page.locator(f"input[name='{box}']")
            values = [option.get_attribute("value") for option in options.all()]
            page.keyboard.press("Space")
            for _ in range(values.index(right[box]) - values.index(chosen(page, f"input[name='{box}']"))):
                page.keyboard.press("ArrowDown")
            assert chosen(page, f"input[name='{box}']") == right[box]
        else:
            page.keyboard.type(right[box])
        page.keyboard.press("Tab")
    page.get_by_role("button", name="Check").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".whole[data-mark='right']")).to_have_count(3)  # the line, what clashes, and why


@pytest.mark.slow
def test_a_bug_is_found_without_script(browser: Browser, shared_app: Server, right: dict[str, str]) -> None:
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(ADDRESS)
    for box in ("where.choice", "why.choice"):
        page.check(f"input[name='{box}'][value='{right[box]}']", force=True)
    fill_boxes(page, right, repair=False)
    page.get_by_role("button", name="Check").click()
    page.goto(ADDRESS)
    expect(page.locator(f"{LINE}:checked")).to_have_value(right["where.choice"])
    fill_boxes(page, right, repair=True)
    page.get_by_role("button", name="Check").click()
    expect(page.locator("td[data-mark='wrong'], td[data-mark='empty']")).to_have_count(0)
    expect(page.locator("td[data-mark='right']").first).to_be_visible()
    context.close()


@pytest.mark.slow
def test_where_no_check_shows_marks_the_repair_waits_for_a_line(browser: Browser, shared_app: Server) -> None:
    lesson = open_lesson(shared_app, "Bug in an exam", AFTER_HAND_IN, "bug-one-head")
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto(f"/join/{lesson.activity.join_code}")
    page.fill("input[name=name]", "Kim Lee")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: not address.endswith(str(lesson.activity.join_code)))
    page.goto(lesson.sheet_path)
    expect(page.locator(REPAIR)).to_be_hidden()
    page.locator("ol.program-lines label").nth(2).click()
    expect(page.locator(REPAIR)).to_be_visible()
    context.close()
