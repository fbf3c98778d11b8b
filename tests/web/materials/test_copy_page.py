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


def copied(classroom: Classroom, address: str, **form: str) -> Material:
    """The copy that comes of opening the form and pressing its button, with some fields changed."""
    page = Page(classroom.get(address))
    [action] = [attrs["action"] for attrs, _ in page.find("form") if attrs["action"].endswith("/copy")]
    fields = {attrs["name"]: attrs["value"] for attrs, _ in page.find("input")}
    location = classroom.instructor.post(action, data={**fields, **form}).headers["location"]
    material = classroom.store.materials.find(int(location.split("/")[2].partition("?")[0]))
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


def test_a_copy_goes_into_a_course_under_a_new_title(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    ours = copied(classroom, "/worksheets/copy?ticket=classic", into=str(classroom.course.id), title=" Go\thome ")
    assert (ours.kind, ours.course_id, ours.title) == ("ticket", classroom.course.id, "Go home")
    again = copied(classroom, f"/worksheets/{ours.id}/copy")
    assert (again.title, again.content["questions"]) == ("Go home 2", ours.content["questions"])
    other = classroom.school.course("Not ours", classroom.school.teacher())
    form = {"title": "T", "into": str(other.id)}
    assert classroom.instructor.post(f"/worksheets/{ours.id}/copy", data=form).status_code == 404


def test_titles_of_copies_are_told_apart() -> None:
    long = "x" * 200
    assert title_of_copy(long, {long}) == "x" * 196 + " 2"


def test_the_public_page_of_a_sheet_offers_a_copy_to_teachers(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    address = "/sheet?worksheet=llama-7b&model=gpt2&tokens=9"
    assert "/worksheets/copy" not in classroom.school.browser().get(address).text
    [link] = [a["href"] for a, _ in Page(classroom.get(address)).find("a") if a["href"].startswith("/worksheets/copy")]
    copy = copied(classroom, link)
    assert (copy.model, copy.content["tokens"]) == ("gpt2", 9)
    with classroom.school.browser() as outdated:
        outdated.cookies.set(TEACHER_COOKIE, "of an ended session")
        assert outdated.get(link).status_code == 303
