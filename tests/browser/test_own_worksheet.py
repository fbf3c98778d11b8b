"""A teacher's own worksheet in real browsers, from the copy to the export: what she wrote arrives everywhere."""

from __future__ import annotations

import csv
import io
import json
import re

import pypdfium2
import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible, set_up_link

pytestmark = pytest.mark.slow

CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 5632,
    "num_hidden_layers": 24,
    "vocab_size": 32000,
}
TOKENS, WIDTH, HEADS, HEAD_WIDTH = 64, 2048, 16, 128
RIGHT = {
    "input": (TOKENS, WIDTH),
    "queries": (TOKENS, HEAD_WIDTH),
    "keys": (TOKENS, HEAD_WIDTH),
    "values": (TOKENS, HEAD_WIDTH),
    "scores": (TOKENS, TOKENS),
    "weights": (TOKENS, TOKENS),
    "output": (TOKENS, WIDTH),
}
QUESTION, ANSWER, IDEA = "Why does K have this shape?", "One row for each token.", "Heads stacked below each other"
TICKET_QUESTION, OPTION = "How sure are you?", "quite sure"


def sign_up(teacher: Page, app: Server) -> None:
    """Make the first account and a course with two students."""
    teacher.goto(set_up_link(app))
    for label, text in (("E-mail", "ada@example.org"), ("Your name", "Ada"), ("Password", "a long password")):
        teacher.get_by_label(label).fill(text)
    teacher.get_by_role("button", name="Create account").click()
    teacher.get_by_label("Title").fill("Transformers")
    expect(teacher.get_by_label("Time zone")).not_to_have_value("")  # which a script fills in
    teacher.get_by_role("button", name="Create course").click()
    teacher.get_by_label("Names, one per line").fill("Kim Lee\nLou Ray")
    teacher.get_by_role("button", name="Preview").click()
    teacher.get_by_role("button", name=re.compile("^Add 2 students$")).click()
    expect(teacher.get_by_role("link", name="New activity")).to_be_visible()


def write_worksheet(teacher: Page) -> None:
    """Copy LLaMA 7B's sheet from its public page, with a model, a question and a misconception of one's own."""
    teacher.goto("/sheet")
    teacher.locator("details:has([form=copy]) > summary").first.click()
    teacher.get_by_role("button", name="Make a copy").click()
    teacher.get_by_text("Import a model").click()
    teacher.get_by_label("As text").fill(json.dumps(CONFIG))
    teacher.get_by_label("Name (optional)").fill("Our model")
    teacher.get_by_role("button", name="Import text").click()
    expect(teacher.get_by_label("Model", exact=True).locator("option:checked")).to_have_text("Our model")
    teacher.get_by_label("Tokens", exact=True).fill(str(TOKENS))
    expect(teacher.locator("#preview")).to_contain_text(f"{TOKENS} tokens")
    teacher.get_by_role("button", name="Add a question").click()
    teacher.get_by_label("Question 1", exact=True).fill(QUESTION)
    teacher.get_by_role("button", name="Add a misconception").click()
    teacher.get_by_label("Name", exact=True).fill(IDEA)
    teacher.get_by_label("Boxes and formulas").fill("queries.rows = H*N\nkeys.rows = H*N")
    teacher.get_by_label("Question to ask").fill("How many rows has one head?")
    teacher.get_by_label("Explanation").fill("Each head has one row for **each token**.")
    expect(teacher.locator("#preview")).to_contain_text(QUESTION)
    assert_accessible(teacher)
    teacher.get_by_role("button", name="Save", exact=True).click()
    expect(teacher.get_by_text("Version 2", exact=False).first).to_be_visible()


def write_ticket(teacher: Page) -> None:
    """An exit ticket with a question to be answered by a choice."""
    teacher.goto("/tickets/new")
    teacher.get_by_label("Title").fill("On your way out")
    teacher.get_by_label("Instruction").fill("Be honest.")
    teacher.get_by_label("Question 1", exact=True).fill(TICKET_QUESTION)
    teacher.get_by_label("Answered by").select_option("choose-one")
    teacher.get_by_label("Options").fill(f"{OPTION}\nnot at all")
    teacher.get_by_role("button", name="Save", exact=True).click()
    expect(teacher.get_by_role("status")).to_contain_text("Saved as version 1")


def open_activity(teacher: Page) -> str:
    """Her worksheet, then one of the library, and her ticket; the join code of the open activity."""
    teacher.goto("/courses")
    teacher.get_by_role("link", name="Transformers").click()
    teacher.get_by_role("link", name="New activity").click()
    teacher.wait_for_load_state()
    teacher.get_by_label("Title").fill("Week 3")
    teacher.locator("input[name=worksheet]:checked").uncheck()  # LLaMA 7B's, which a course begins with
    teacher.locator("#picker > summary").click()
    teacher.locator("details.topic:has(input[value^='own-']) > summary").click()
    teacher.locator("input[name=worksheet][value^='own-']").check()
    teacher.get_by_label("Find worksheets").fill("One head of Qwen2.5")
    teacher.locator("input[name=worksheet][value='qwen2.5-0.5b']").check()
    teacher.get_by_label("Find worksheets").fill("")
    teacher.locator("#exit-ticket > summary").click()
    teacher.locator("input[name=ticket][value^='own-']").check()
    teacher.get_by_role("button", name="Save", exact=True).click()
    teacher.get_by_role("button", name="Open").click()
    return teacher.locator(".band .join-code").inner_text()


def join(page: Page, code: str, name: str) -> Page:
    """Come in under a name and go to the first sheet."""
    page.goto(f"/join/{code}")
    page.get_by_label("Your name").fill(name[:5])
    page.get_by_role("button", name=name).click()
    page.wait_for_url("**/class/*/1")
    return page


def fill_in(page: Page, wrong: dict[str, int]) -> None:
    """Answer everything on the first sheet, some boxes otherwise, and hand in; then the ticket."""
    expect(page.get_by_label(QUESTION)).to_be_visible()
    for row, sides in RIGHT.items():
        for field, size in zip(("rows", "columns"), sides, strict=True):
            page.locator(f"input[name='{row}.{field}']").fill(str(wrong.get(f"{row}.{field}", size)))
    page.get_by_label(QUESTION).fill(ANSWER)
    assert_accessible(page)
    page.locator("#hand-in").click()
    expect(page.get_by_role("status").first).to_contain_text("Handed in.")


def leave_ticket(page: Page) -> None:
    """Go past the second sheet to the ticket, choose an option, and hand in."""
    page.goto(re.sub(r"/1(\?.*)?$", "/ticket", page.url))
    page.get_by_label(OPTION).check()
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("status").first).to_contain_text("Your ticket is in.")


def exported(teacher: Page, course: str, name: str) -> list[dict[str, str]]:
    """The rows of one table of the course's export."""
    response = teacher.request.get(f"{course}/exports/{name}")
    assert response.ok, response.status
    return list(csv.DictReader(io.StringIO(response.text().removeprefix("\ufeff"))))


def printed(teacher: Page, activity: str) -> str:
    """The text of the handout for the class, printed from its page."""
    teacher.goto(f"{activity}/handout")
    teacher.get_by_role("button", name=re.compile("for each student")).click()
    link = teacher.get_by_role("link", name=re.compile("PDF"))
    expect(link).to_be_visible(timeout=LONG_WAIT_MS)
    address = link.get_attribute("href")
    assert address
    pdf = pypdfium2.PdfDocument(teacher.request.get(address).body())
    return "\n".join(page.get_textpage().get_text_range() for page in pdf)


def test_what_a_teacher_wrote_arrives_everywhere(browser: Browser, own_app: Server) -> None:
    teacher = browser.new_context(base_url=own_app.url, viewport={"width": 1280, "height": 800}).new_page()
    sign_up(teacher, own_app)
    write_worksheet(teacher)
    write_ticket(teacher)
    code = open_activity(teacher)
    activity = teacher.url.partition("?")[0]
    kim, lou = (browser.new_context(base_url=own_app.url, viewport={"width": 360, "height": 740}) for _ in range(2))
    fill_in(join(kim.new_page(), code, "Kim Lee"), {"queries.rows": HEADS * TOKENS, "keys.rows": HEADS * TOKENS})
    fill_in(join(lou.new_page(), code, "Lou Ray"), {})
    teacher.goto(str(activity))
    teacher.locator("#few > summary").click()  # what went wrong for one student only
    expect(teacher.locator("#few li", has_text=IDEA)).to_be_visible()
    leave_ticket(lou.pages[0])
    teacher.goto(f"{activity}/results")
    expect(teacher.get_by_role("rowheader", name=IDEA)).to_be_visible()
    teacher.goto(f"{activity}/results/written")
    expect(teacher.get_by_text(ANSWER)).to_have_count(2)
    teacher.goto(f"{activity}/regrade")
    assert_accessible(teacher)
    teacher.goto(activity)
    teacher.get_by_role("link", name="Transformers").click()
    course = teacher.url.partition("?")[0]
    held = {row["student"]: row["misconceptions"] for row in exported(teacher, course, "attempts.csv")}
    assert held["Kim Lee"].startswith("own-")
    assert not held["Lou Ray"]
    assert {row["answer"] for row in exported(teacher, course, "written-answers.csv")} == {ANSWER}
    paper = printed(teacher, activity)
    assert "Our model" in paper
    assert QUESTION in paper
    assert TICKET_QUESTION in paper
