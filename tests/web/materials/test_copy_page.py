"""Copies of worksheets and exit tickets: of what, under which title, and where they go."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from app.classes.materials import library_with_materials, title_of_copy
from app.store import Material
from app.web.shared.cookies import TEACHER_COOKIE
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom

CONFIG = {"model_type": "llama", "hidden_size": 96, "num_attention_heads": 6, "num_hidden_layers": 2,
          "intermediate_size": 256, "vocab_size": 500}  # fmt: skip


def copied(classroom: Classroom, address: str) -> Material:
    """The copy that a press of the button makes, whose editor it opens."""
    location = classroom.instructor.post(address).headers["location"]
    assert location.endswith("/edit")
    material = classroom.store.materials.find(int(location.split("/")[2]))
    assert material
    return material


@pytest.mark.parametrize("with_model", ["", "gpt2", "imported"])
def test_every_sheet_of_the_library_can_be_copied_as_it_is_shown(app: FastAPI, with_model: str) -> None:
    classroom = Classroom(app, sheets=None)
    store, library = classroom.store, classroom.school.library
    model = store.keep_model("Small", CONFIG, "pasted").key if with_model == "imported" else with_model
    key = "llama-7b" if with_model else "cross-bart-base"
    copy = copied(classroom, f"/worksheets/copy?worksheet={key}&model={model}&tokens={'7' if model else ''}")
    own = library_with_materials(library, store, [copy])
    sheet, original = own.variant(copy.key), own.variant(key, model or None, 7 if model else None)
    assert sheet.key == original.key
    assert sheet.title == original.title
    assert copy.teacher_id == classroom.teacher.id


def test_a_copy_is_its_makers_under_a_title_of_its_own(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    mine = copied(classroom, "/worksheets/copy?ticket=classic")
    assert (mine.kind, mine.teacher_id) == ("ticket", classroom.teacher.id)
    again = copied(classroom, f"/worksheets/{mine.id}/copy")
    assert again.title == f"{mine.title} 2"
    assert again.content["questions"] == mine.content["questions"]
    classroom.store.materials.move(again, classroom.course)
    bo = classroom.school.teacher("bo@example.org", classroom.course)
    with classroom.school.browser(teacher=bo) as browser:
        location = browser.post(f"/worksheets/{again.id}/copy").headers["location"]
    theirs = classroom.store.materials.find(int(location.split("/")[2]))
    assert theirs
    assert (theirs.teacher_id, theirs.course_id) == (bo.id, None)


def test_titles_of_copies_are_told_apart() -> None:
    long = "x" * 200
    assert title_of_copy(long, {long}) == "x" * 196 + " 2"


def test_the_public_page_of_a_sheet_offers_a_copy_to_teachers(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    address = "/sheet?worksheet=llama-7b&model=gpt2&tokens=9"
    assert "/worksheets/copy" not in classroom.school.browser().get(address).text
    [(form, _)] = Page(classroom.get(address)).find("form", id="copy")
    link = form["action"]
    copy = copied(classroom, link)
    assert (copy.model, copy.content["tokens"]) == ("gpt2", 9)
    with classroom.school.browser() as outdated:
        outdated.cookies.set(TEACHER_COOKIE, "of an ended session")
        assert outdated.post(link).status_code == 401
