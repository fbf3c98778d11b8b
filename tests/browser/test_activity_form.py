"""The form of an activity in a real browser: its worksheets are put in order by pointer, finger and keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.settings import PROJECT
from app.sheets.library import load_library
from app.store import Store
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import Lesson, open_lesson
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible_in_all_looks

SHEETS = ("llama-7b", "qwen2.5-0.5b", "decode-gpt2")


def expect_order(page: Page, *keys: str) -> None:
    """Wait until the worksheets are in this order."""
    for place, key in enumerate(keys):
        expect(page.locator(".chosen-sheets > li").nth(place)).to_have_id(f"sheet-{key}")


def centre(line: Locator) -> tuple[float, float]:
    """Where the grip of a worksheet is."""
    box = line.locator(".grip").bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def add_own_worksheet(lesson: Lesson) -> str:
    """Give the course a worksheet of its own, a copy of LLaMA 7B's and the only one of its group; returns its key."""
    store, library = Store(lesson.server.database, lesson.server.folder), load_library(PROJECT / "worksheets")
    course, teacher = store.courses.find(lesson.activity.course_id), store.people.find_session(lesson.session)
    assert course
    assert teacher
    material = store.materials.add("worksheet", course, teacher, library.worksheets["llama-7b"].settings)
    store.close()
    return material.key


@pytest.mark.parametrize(
    "ticked",
    [
        pytest.param(("own", "llama-7b"), id="the only one of a group, and one of another group"),
        pytest.param(("own",), id="the only one of a group", marks=pytest.mark.slow),
        pytest.param(
            ("bidirectional-bert-base", "bidirectional-vit-base", "bidirectional-whisper-tiny"),
            id="all of a group",
            marks=pytest.mark.slow,
        ),
        pytest.param(("llama-7b", "qwen2.5-0.5b"), id="not all of a group", marks=pytest.mark.slow),
    ],
)
def test_an_activity_has_the_worksheets_that_were_ticked(
    browser: Browser, shared_app: Server, ticked: tuple[str, ...]
) -> None:
    lesson = open_lesson(shared_app, f"Ticked {'-'.join(ticked).replace('.', '-')}")
    own = add_own_worksheet(lesson)
    keys = {own if key == "own" else key for key in ticked}
    context = browser.new_context(base_url=shared_app.url)
    context.add_cookies([{"name": TEACHER_COOKIE, "value": lesson.session, "url": shared_app.url}])
    page = context.new_page()
    page.goto(f"/courses/{lesson.activity.course_id}/activities/new")
    page.get_by_label("Title").fill("Ticked")
    for group in page.locator("details.topic").all():
        group.evaluate("group => { group.open = true; }")
    for key in keys:
        page.locator(f"input[name=worksheet][value='{key}']").check()
    page.locator("#arrange-add").click()
    expect(page.locator(".chosen-sheets > li")).to_have_count(len(keys))
    boxes = page.locator("input[name=worksheet]:checked")
    assert {box.get_attribute("value") for box in boxes.all()} == keys
    expect(page.locator("details.topic:not([open])")).to_have_count(0)
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/activities/*")
    page.goto(f"{page.url}/edit")
    assert {box.get_attribute("value") for box in boxes.all()} == keys
    context.close()


@pytest.mark.slow
def test_worksheets_are_put_in_order(browser: Browser, shared_app: Server) -> None:
    lesson = open_lesson(shared_app, "Arranging")
    context = browser.new_context(base_url=shared_app.url, has_touch=True)
    context.add_cookies([{"name": TEACHER_COOKIE, "value": lesson.session, "url": shared_app.url}])
    page = context.new_page()
    page.goto(f"/activities/{lesson.activity.id}/edit")
    page.locator("#picker > summary").click()
    page.get_by_role("searchbox").fill("one head qwen2.5 0.5b")
    expect(page.locator("input[value='decode-gpt2']")).to_be_hidden()
    page.locator("input[value='qwen2.5-0.5b']").check()
    page.get_by_role("searchbox").fill("DECODING gpt-2")
    page.locator("input[value='decode-gpt2']").check()
    page.locator("#arrange-add").click()
    expect_order(page, *SHEETS)
    assert_accessible_in_all_looks(page)
    page.set_viewport_size({"width": 1280, "height": 900})

    lines = page.locator(".chosen-sheets > li")
    lines.first.scroll_into_view_if_needed()
    page.mouse.move(*centre(lines.nth(2)))
    page.mouse.down()
    page.mouse.move(centre(lines.nth(2))[0], centre(lines.nth(0))[1] - 20, steps=8)
    page.mouse.up()
    expect_order(page, "decode-gpt2", "llama-7b", "qwen2.5-0.5b")
    expect(lines.first.get_by_role("button", name="up")).to_be_disabled()

    finger = context.new_cdp_session(page)
    x, y = centre(lines.first)
    below = centre(lines.nth(1))[1] + 30
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 6):
        point = {"x": x, "y": y + (below - y) * step / 5}
        finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect_order(page, "llama-7b", "decode-gpt2", "qwen2.5-0.5b")

    down = lines.first.get_by_role("button", name="down")
    down.press("Enter")
    expect_order(page, "decode-gpt2", "llama-7b", "qwen2.5-0.5b")
    expect(page.locator("#arrange-down-llama-7b")).to_be_focused()
    page.keyboard.press("Enter")
    expect_order(page, "decode-gpt2", "qwen2.5-0.5b", "llama-7b")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("decod", exact=False).first).to_be_visible()
    page.goto(f"/activities/{lesson.activity.id}/edit")
    expect_order(page, "decode-gpt2", "qwen2.5-0.5b", "llama-7b")
    context.close()


@pytest.mark.slow
def test_from_a_copied_worksheet_to_a_handout_and_an_open_activity(browser: Browser, shared_app: Server) -> None:
    lesson = open_lesson(shared_app, "Fifteen clicks")
    context = browser.new_context(base_url=shared_app.url, accept_downloads=True)
    context.set_default_timeout(LONG_WAIT_MS)  # handouts are made
    context.add_cookies([{"name": TEACHER_COOKIE, "value": lesson.session, "url": shared_app.url}])
    page, clicks = context.new_page(), list[str]()

    def click(target: Locator) -> None:
        clicks.append(str(target))
        target.click()

    page.goto("/worksheets")
    click(page.get_by_role("button", name="Make a copy of One head of LLaMA 7B"))
    click(page.get_by_role("button", name="Save").first)
    click(page.get_by_role("link", name="Use or print it"))
    material = page.url
    click(page.get_by_role("link", name="Print"))
    page.get_by_label("Names, one per line").fill("Ada Lovelace\nKim Lee\nLou Ray")
    click(page.get_by_role("button", name="Create PDF"))
    with page.expect_download() as sheet:
        click(page.get_by_role("link", name="Download"))
    assert sheet.value.suggested_filename.endswith(".pdf")
    assert len(clicks) <= 9, clicks
    page = context.new_page()
    page.goto(material)
    click(page.get_by_role("link", name="Use in an activity"))
    expect(page.get_by_label("Title")).not_to_have_value("")
    expect(page.locator("#rules")).not_to_have_attribute("open", "")
    click(page.get_by_role("button", name="Save"))
    click(page.get_by_role("button", name="Open"))
    expect(page.locator(".phase")).to_have_text("Open")
    click(page.get_by_role("link", name="Print"))
    click(page.get_by_role("button", name="Create"))
    with page.expect_download() as handout:
        click(page.get_by_role("link", name="Download"))
    assert handout.value.suggested_filename.endswith(".pdf")
    assert len(clicks) <= 14, clicks
    context.close()
