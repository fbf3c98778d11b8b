"""A sheet on a phone, by touch and without scrolling by hand; and on a desktop, by keyboard only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, wait_until
from tests.helpers.shipped import LIBRARY

# Whether a finger on the middle of an element would reach it: it is in the window, whole, and nothing lies above it.
REACHABLE = """element => {
    const {left, right, top, bottom} = element.getBoundingClientRect();
    const reached = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight && element.contains(reached);
}"""


@pytest.fixture
def phone(browser: Browser, shared_app: Server) -> Iterator[Page]:
    """A touch screen of 360 × 740."""
    context = browser.new_context(
        base_url=shared_app.url,
        viewport={"width": 360, "height": 740},
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert problems == []


def bounds(element: Locator) -> tuple[float, float, float, float]:
    """Left, top, width and height of an element in the window."""
    box = element.bounding_box()
    assert box
    return box["x"], box["y"], box["width"], box["height"]


def assert_reachable(target: Locator) -> None:
    """Wait until a finger would reach it: the page may still be moving."""
    wait_until(target.page, lambda: target.evaluate(REACHABLE), f"{target} cannot be reached")


def tap(target: Locator) -> None:
    """Tap what is in sight, and fail otherwise: playwright itself would scroll to it."""
    expect(target).to_have_count(1)
    assert_reachable(target)
    x, y, width, height = bounds(target)
    target.page.touchscreen.tap(x + width / 2, y + height / 2)


def type_by_keys(page: Page, text: str) -> None:
    """Type into the box that has the focus by the page's own keys."""
    for character in text:
        tap(page.locator(f".keys [data-key='{character}']"))


def assert_typing_in_sight(page: Page) -> None:
    """The box with the focus, its sentence, and the drawing of its row can be seen, once the page has moved."""
    box = page.locator("input[data-blank]:focus")
    assert_reachable(box)
    sentence = page.locator(f"[id='{box.get_attribute('aria-describedby')}']")
    if sentence.inner_text().strip():
        assert_reachable(sentence)
    picture = page.locator(".figures figure.current svg, .figures svg[data-frames]").filter(visible=True).first

    def is_above_the_bar() -> bool:
        _left, top, width, height = bounds(picture)
        return top >= 0 and top + height <= bounds(page.locator(".dock"))[1] + 1 and min(width, height) >= 60

    wait_until(page, is_above_the_bar, "the drawing is not in sight")


def answers_of(page: Page) -> dict[str, str]:
    """The right answers of the sheet on this page, by box, in its order."""
    worksheet, model, tokens = (
        page.locator(f"#work input[name='{name}']").get_attribute("value") for name in ("worksheet", "model", "tokens")
    )
    sheet = LIBRARY.variant(str(worksheet), str(model), int(str(tokens)))
    return {str(blank): str(sheet.answer(blank)) for blank in sheet.blanks}


def test_a_sheet_on_a_phone_is_filled_in_mended_and_left_by_touch_alone(phone: Page) -> None:
    phone.goto("/sheet")
    right = answers_of(phone)
    wrong = {"queries.columns": "4096", "values.columns": "4096/8", "output.columns": "128"}
    assert len(right) == 14
    assert phone.evaluate("scrollY") == 0  # the head of the page is in sight
    tap(phone.locator("input[data-blank]").first)
    for box, answer in right.items():
        expect(phone.locator(f"input[name='{box}']")).to_be_focused()
        assert_typing_in_sight(phone)
        type_by_keys(phone, wrong.get(box, answer))
        expect(phone.locator(f"input[name='{box}']")).to_have_value(wrong.get(box, answer))
        tap(phone.locator(".keys .next"))
    expect(phone.locator("#check")).to_be_focused()
    tap(phone.locator("#check"))
    expect(phone.get_by_role("status").first).to_contain_text("11 of 14")
    expect(phone.locator(".keys")).to_be_hidden()  # until a box is touched, the sentences have the room
    first = phone.locator("input[name='queries.columns']")
    assert_reachable(first)
    assert_reachable(phone.locator(f"[id='{first.get_attribute('aria-describedby')}']"))
    tap(phone.locator(".result a").first)
    for box in wrong:
        expect(phone.locator(f"input[name='{box}']")).to_be_focused()
        assert_typing_in_sight(phone)
        type_by_keys(phone, right[box])  # what was wrong is selected, and replaced
        expect(phone.locator(f"input[name='{box}']")).to_have_value(right[box])
        tap(phone.locator(".keys .next"))
    tap(phone.locator("#check"))
    expect(phone.get_by_role("status").first).to_contain_text("✓ All 14 are right")
    expect(phone.locator(".keys")).to_be_hidden()
    # The head has run, in the background.
    expect(phone.locator("#agreement .agrees")).to_be_visible(timeout=LONG_WAIT_MS)
    assert_reachable(phone.locator("#agreement"))
    with phone.expect_navigation():
        tap(phone.locator("#next"))
    assert all(box.input_value() == "" for box in phone.locator("input[data-blank]").all())
    assert phone.evaluate("scrollY") == 0


@pytest.mark.slow
def test_keys_type_at_the_caret_and_bring_the_system_keyboard_when_asked(phone: Page) -> None:
    phone.goto("/sheet")
    box = phone.locator("input[name='queries.columns']")
    box.tap()
    assert box.get_attribute("inputmode") == "none"
    type_by_keys(phone, "4096")
    box.evaluate("box => box.setSelectionRange(1, 3)")
    type_by_keys(phone, "8/")
    expect(box).to_have_value("48/6")
    box.evaluate("box => box.setSelectionRange(0, 0)")
    tap(phone.get_by_role("button", name="Delete", exact=True))
    expect(box).to_have_value("48/6")
    expect(phone.locator("output.saved")).to_have_text("Saved")
    tap(phone.get_by_role("button", name="System keyboard"))
    expect(box).to_be_focused()
    assert box.get_attribute("inputmode") != "none"
    tap(phone.get_by_role("button", name="System keyboard"))
    assert box.get_attribute("inputmode") == "none"


@pytest.mark.slow
def test_a_tap_selects_a_wrong_answer_so_that_typing_replaces_it(phone: Page) -> None:
    phone.goto("/sheet?tokens=91")
    selected = "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    for name, number in (("input.columns", "4096"), ("queries.columns", "16")):
        phone.locator(f"input[name='{name}']").fill(number)
    phone.locator("#check").tap()
    wrong, right = (phone.locator(f"input[name='{name}']") for name in ("queries.columns", "input.columns"))
    expect(wrong).to_have_attribute("aria-invalid", "true")
    tap(wrong)
    expect(wrong).to_be_focused()
    assert wrong.evaluate(selected) == "16"
    phone.wait_for_timeout(1000)  # two quick taps on the same place are a double tap, by which browsers select a word
    tap(wrong)
    assert wrong.evaluate(selected) == ""
    phone.locator("h1").tap()
    wrong.tap()
    type_by_keys(phone, "128")
    expect(wrong).to_have_value("128")
    right.tap()
    assert right.evaluate(selected) == ""


@pytest.mark.slow
def test_numbers_that_the_sheet_gives_are_keys_so_that_a_box_takes_two_taps(phone: Page) -> None:
    phone.set_viewport_size({"width": 360, "height": 640})
    phone.goto("/sheet")
    assert_reachable(phone.locator("input[data-blank]").first)
    right = answers_of(phone)
    tap(phone.locator("input[data-blank]").first)
    for box, answer in right.items():
        assert_typing_in_sight(phone)
        tap(phone.locator(f".stated [data-key='{answer}']"))
        expect(phone.locator(f"input[name='{box}']")).to_have_value(answer)
        if box != list(right)[-1]:
            tap(phone.locator(".keys .next"))
    taps = 1 + len(right) + len(right) - 1
    assert taps == 28
    tap(phone.locator("#check"))
    expect(phone.get_by_role("status").first).to_contain_text("✓ All 14 are right")


def test_a_stated_number_takes_the_place_of_the_digits_before_it(phone: Page) -> None:
    phone.goto("/sheet")
    box = phone.locator("input[name='queries.columns']")
    box.tap()
    type_by_keys(phone, "4")
    for key, value in (("4096", "4096"), ("/", "4096/"), ("128", "4096/128"), ("32", "4096/32")):
        tap(phone.locator(f".keys [data-key='{key}']"))
        expect(box).to_have_value(value)


def test_the_symbols_that_a_sheet_explains_are_keys(phone: Page) -> None:
    phone.goto("/sheet?worksheet=llama-7b~symbols")
    box = phone.locator("input[data-blank]").first
    box.tap()
    for key in ("2", "*", "d_head"):
        tap(phone.locator(f".keys [data-key='{key}']"))
    expect(box).to_have_value("2*d_head")
    tap(phone.get_by_role("button", name="System keyboard"))
    assert box.get_attribute("inputmode") != "none"


def test_what_is_above_and_below_a_sheet_is_as_large_as_a_finger(phone: Page) -> None:
    phone.goto("/sheet")
    for control in phone.locator(".where :is(select, [name=tokens]), .dock .buttons :is(button, a)").all():
        assert bounds(control)[3] >= 44, control
    for control in phone.locator(".where .either label, a.to-class").all():  # they reach beyond what is seen
        x, y, width, height = bounds(control)
        for edge in (y + height / 2 - 21, y + height / 2 + 21):
            is_hit = "(at, control) => control.contains(document.elementFromPoint(at[0], at[1]))"
            assert control.evaluate(f"(control, at) => ({is_hit})(at, control)", [x + width / 2, edge]), control


def test_a_mouse_brings_no_keys(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator("input[data-blank]").first.click()
    expect(page.locator(".keys")).to_be_hidden()
    assert page.locator("input[data-blank]").first.get_attribute("inputmode") != "none"


def test_the_first_box_is_near_and_the_focus_is_never_lost(page: Page) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('[data-blank]')"):
            break
    right = answers_of(page)
    wrong = {"queries.columns": "4096", "values.columns": "4096"}
    for box, answer in right.items():
        expect(page.locator(f"input[name='{box}']")).to_be_focused()
        page.keyboard.type(wrong.get(box, answer))
        page.keyboard.press("Tab")
        while page.evaluate("document.activeElement.matches('.rows a')"):
            page.keyboard.press("Tab")
    expect(page.locator("#check")).to_be_focused()  # nothing comes between the last box and Check
    page.keyboard.press("Enter")
    expect(page.locator("input[name='queries.columns']")).to_be_focused()
    while page.locator("#hint").count():
        page.locator("#hint").focus()
        page.keyboard.press("Enter")
        wait_until(page, "!document.querySelector('.htmx-request')")
        assert page.evaluate("document.activeElement.closest('#work') !== null")
    page.locator("#more > summary").click()
    page.locator("#answers").focus()
    page.keyboard.press("Enter")
    expect(page.locator("tr.answer")).to_have_count(7)
    assert page.evaluate("document.activeElement.closest('#work') !== null")


def test_the_step_of_the_row_in_focus_is_shown_alone_and_a_break_where_it_is(phone: Page) -> None:
    phone.goto("/sheet?worksheet=three-dimensions-llama-7b&model=qwen2.5-0.5b")
    shown = phone.locator(".figures figure:visible")
    box = "input[name='{}']".format
    phone.locator(box("repeated_keys.dim0")).focus()
    expect(shown).to_have_attribute("data-tensors", "keys split_keys keys_by_head repeated_keys")
    phone.locator(box("repeated_keys.dim0")).fill("2")
    phone.locator(box("queries_by_head.dim0")).fill("14")
    expect(shown.locator(".mismatched")).to_have_count(1)
    expect(shown.locator(".mismatched")).to_contain_text("14 ≠ 2")
