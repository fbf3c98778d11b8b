"""The worksheet editor in a browser: the preview follows what is typed, by keyboard only, wide and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from app.sheets.library import Library
from app.store import Store
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import add_teacher
from simulation.server import Server
from tests.helpers.browser import assert_accessible

pytestmark = pytest.mark.slow

SIZES = {"desk": (1280, 900), "phone": (360, 740)}


@pytest.fixture(params=SIZES)
def editor(browser: Browser, shared_app: Server, library: Library, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The editor of a teacher's copy of the sheet on LLaMA 7B, on a desk and on a phone."""
    store = Store(shared_app.database, shared_app.folder)
    teacher = add_teacher(store, f"{request.node.name}@example.org", "Ada")
    settings = library.worksheet("llama-7b").settings
    material = store.materials.add("worksheet", teacher, teacher, settings)
    session = store.people.open_session(teacher)
    store.close()
    width, height = SIZES[request.param]
    context = browser.new_context(base_url=shared_app.url, viewport={"width": width, "height": height})
    context.add_cookies([{"name": TEACHER_COOKIE, "value": session, "url": shared_app.url}])
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"/worksheets/{material.id}/edit")
    yield page
    context.close()
    assert problems == []


def test_a_sheet_is_changed_by_keyboard_alone(editor: Page) -> None:
    shown, state = editor.locator("#shown"), editor.get_by_role("status")
    editor.get_by_label("Model", exact=True).focus()
    editor.keyboard.type("Mistral 7B")
    expect(shown.get_by_role("heading", level=1)).to_have_text("One head of Mistral 7B")

    tokens = editor.get_by_label("Tokens", exact=True)
    tokens.focus()
    editor.keyboard.press("Control+A")
    editor.keyboard.type("128")
    expect(shown).to_contain_text("128 tokens")
    expect(tokens).to_be_focused()
    expect(state).to_contain_text(re.compile("finds"))

    editor.get_by_role("button", name=re.compile("tokens would tell them apart")).focus()
    editor.keyboard.press("Enter")
    expect(tokens).not_to_have_value("128")
    expect(tokens).to_be_focused()

    editor.get_by_role("button", name="Move Queries up").focus()
    editor.keyboard.press("Enter")
    expect(shown.get_by_role("rowheader").first).to_contain_text("Queries")
    expect(editor.get_by_role("button", name="Move Queries up")).to_be_focused()

    editor.get_by_role("button", name="Add a question").focus()
    editor.keyboard.press("Enter")
    expect(editor.get_by_role("textbox", name="Question 1")).to_be_focused()
    editor.keyboard.type("Why does K have this shape?")
    expect(shown.get_by_label("Why does K have this shape?")).to_be_disabled()

    editor.locator("#view-empty").focus()
    editor.keyboard.press("ArrowRight")
    expect(shown.locator(".held")).to_be_visible()
    assert_accessible(editor)

    editor.get_by_role("button", name="Save").last.focus()
    editor.keyboard.press("Enter")
    editor.wait_for_url("**/edit?saved=2")
    expect(state).to_contain_text("version 2")
    expect(tokens).not_to_have_value("128")
    expect(editor.get_by_role("textbox", name="Question 1")).to_have_value("Why does K have this shape?")


def test_what_cannot_be_used_leaves_the_last_preview(editor: Page) -> None:
    tokens, shown = editor.get_by_label("Tokens", exact=True), editor.locator("#shown")
    tokens.fill("many")
    expect(tokens).to_have_attribute("aria-invalid", "true")
    expect(editor.locator("#problem")).to_contain_text("many")
    expect(shown.get_by_role("heading", level=1)).to_have_text("One head of LLaMA 7B")
    tokens.press_sequentially("7", delay=20)
    expect(tokens).to_have_value("many7")
    tokens.fill("70")
    expect(shown).to_contain_text("70 tokens")
    expect(tokens).not_to_have_attribute("aria-invalid", "true")


def test_save_covers_no_field_that_has_the_focus(editor: Page) -> None:
    editor.get_by_role("button", name="Add a misconception").click()
    expect(editor.get_by_label("Boxes and formulas")).to_be_visible()
    fields = editor.locator("#editor .form :is(input:not([type=hidden]), textarea, select):visible")
    overlaps = """field => {
      const bar = document.querySelector(".editor .save").getBoundingClientRect();
      const { top, bottom, height } = field.getBoundingClientRect();
      return height < bar.top && bottom > bar.top - 3 && top < bar.bottom;
    }"""
    for field in fields.all():
        field.evaluate("""field => {
          const bar = document.querySelector(".editor .save").getBoundingClientRect();
          scrollBy({ top: field.getBoundingClientRect().top - bar.top + 10, behavior: "instant" });
          field.focus({ preventScroll: true });
        }""")
        assert not field.evaluate(overlaps), field.get_attribute("name")
