"""Taking a course home, putting it away and deleting it in a real browser, by keyboard; axe finds nothing."""

from __future__ import annotations

import csv
import zipfile

import pytest
from playwright.sync_api import Browser, expect

from app.store import Store
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

pytestmark = pytest.mark.slow


def test_a_sample_course_is_taken_home_put_away_and_deleted(browser: Browser, shared_app: Server) -> None:
    store = Store(shared_app.database, shared_app.folder)
    ada = store.people.add_teacher("exporter@example.org", "Ada")
    assert ada
    token = store.people.open_session(ada)
    context = browser.new_context(base_url=shared_app.url)
    context.add_cookies([{"name": "attention_shapes_teacher", "value": token, "url": shared_app.url}])
    page = context.new_page()
    page.goto("/courses")
    page.get_by_role("button", name="Create a sample course").click()
    page.get_by_role("link", name="Export and archive").click()
    assert_accessible_in_all_looks(page)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="All attempts").click()
    with waiting.value.path().open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) > 100
    with page.expect_download() as waiting:
        page.get_by_role("link", name="The whole course").press("Enter")
    assert "README.txt" in zipfile.ZipFile(waiting.value.path()).namelist()
    page.reload()
    expect(page.get_by_role("table")).to_contain_text("exported course.zip")
    page.get_by_role("button", name="Archive this course").press("Enter")
    page.get_by_text("Archived", exact=True).click()
    assert_accessible_in_all_looks(page)
    page.get_by_role("link", name="Sample course").click()
    page.get_by_role("link", name="Restore").click()
    page.get_by_role("button", name="Restore").press("Enter")
    page.get_by_role("link", name="Export and archive").click()
    page.get_by_text("Delete this course …").click()
    page.get_by_label("Title", exact=True).fill("Sample")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("nothing was deleted")
    assert page.get_by_label("Title", exact=True).input_value() == "Sample"
    assert_accessible_in_all_looks(page)
    page.get_by_label("Title", exact=True).fill("Sample course: attention, shape by shape")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your courses")
    assert store.courses.taught_by(ada) == ()
    store.close()
    context.close()
