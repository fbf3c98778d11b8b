"""Imported files: the results of good ones, and the messages about all others."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from app.classes.materials import settings_to_copy
from app.exchange.toml_text import write_toml
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom

TICKET = 'title = "Bye"\ninstruction = "Pick."\n[[questions]]\nkey = "q"\ntext = "Why?"\n'


def test_a_file_that_was_downloaded_is_imported_again(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    add, browser = classroom.store.materials.add, classroom.instructor
    settings = settings_to_copy(classroom.school.library, "llama-7b")
    original = add("worksheet", classroom.teacher, classroom.teacher, settings)
    file = browser.get(f"/worksheets/{original.id}/file.toml").content
    into = {"into": str(classroom.course.id)}
    assert browser.post("/worksheets/import", data=into, files={"file": ("a.toml", file)}).status_code == 303
    [imported] = classroom.store.materials.of_course(classroom.course)
    assert (imported.kind, imported.content) == ("worksheet", original.content)
    assert browser.post("/worksheets/import", data={"text": TICKET}).status_code == 303
    mine = (each for each in classroom.store.materials.readable_by(classroom.teacher) if each.teacher_id)
    assert [each.kind for each in mine] == ["ticket", "worksheet"]


@pytest.mark.parametrize(
    "text",
    ["", "tokens 100", TICKET.replace("Why?", ""), "a = " + "[" * 900, "<script>alert(1)</script>", "x" * 600_000,
     TICKET.replace("Why?", "\u202e"), TICKET.replace("Why?", "\\u0000"), '"../../etc/passwd" = 1'],
    ids=["nothing", "no TOML", "no text", "deep", "script", "long", "turned round", "NUL", "path"],
)  # fmt: skip
def test_what_cannot_be_imported_comes_back_with_a_reason(app: FastAPI, text: str) -> None:
    classroom = Classroom(app, sheets=None)
    refused = classroom.instructor.post("/worksheets/import", data={"text": text})
    assert refused.status_code == 422
    page = Page(refused.text)
    assert len(page.text("div", id="problems")) > 20
    assert "<script>alert" not in refused.text
    assert page.find("textarea")[0][1] == " ".join(text.split())
    assert classroom.store.materials.readable_by(classroom.teacher) == ()


def test_an_uploaded_file_can_be_corrected_on_the_page(app: FastAPI) -> None:
    classroom, upload = Classroom(app, sheets=None), b'[[questions]]\ntext = "1"'
    refused = classroom.instructor.post("/worksheets/import", files={"file": ("a.toml", upload)})
    assert Page(refused.text).find("textarea")[0][1] == '[[questions]] text = "1"'
    latin = 'title = "Büro"'.encode("latin-1")
    assert classroom.instructor.post("/worksheets/import", files={"file": ("a", latin)}).status_code == 422


def test_a_setting_of_the_worksheet_is_told_by_its_line(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    text = write_toml({**settings_to_copy(classroom.school.library, "llama-7b"), "tokens": -1})
    refused = classroom.instructor.post("/worksheets/import", data={"text": text})
    line = text.split("\n").index("tokens = -1") + 1
    assert Page(refused.text).text("li").startswith(f"Line {line}:")
