"""The editor of exit tickets: saved with a version, refused with a sentence, and never overwritten unnoticed."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from app.classes.materials import materials_for_course, ticket_of_material
from app.store import Material
from tests.helpers.html_page import Page
from tests.helpers.own_ticket import OWN_TICKET
from tests.helpers.school import SCRIPT, Browser, Classroom

NEW: dict[str, Any] = {
    "title": "On your way out",
    "instruction": "Tell me.",
    "anonymous": "no",
    "pick_at_least": "1",
    "question": ["__1", "__2"],
    "text.__1": "How was the pace?",
    "kind.__1": "scale",
    "first.__1": "slow",
    "last.__1": "fast",
    "required.__1": "yes",
    "text.__2": "What next?",
    "kind.__2": "choose-several",
    "options.__2": "KV cache\r\n\r\n Masks \r\n",
    "chip.__2": "Next",
    "pick_at_most": "1",
}
HOSTILE = ('"><script>alert(1)</script>', "{{ 7 * 7 }}", "'; DROP TABLE materials; --", "#strong[x]", "=1+1")


def form_of(page: Page) -> dict[str, Any]:
    """What a browser would send of the editor's form as it is: what is typed, chosen and hidden."""
    form: dict[str, Any] = {"question": [attrs["value"] for attrs, _ in page.find("input", name="question")]}
    kept = [attrs for attrs, _ in page.find("input") if "name" in attrs and attrs["name"] != "question"]
    ticked = [attrs for attrs in kept if attrs.get("type") not in ("checkbox", "radio") or "checked" in attrs]
    form |= {attrs["name"]: attrs.get("value", "") for attrs in ticked if not attrs["name"].startswith("answer-")}
    texts = [("".join(pieces), attrs) for tag, attrs, pieces in page.elements if tag == "textarea"]
    return form | {attrs["name"]: text.strip("\n") for text, attrs in texts if not attrs["name"].startswith("answer-")}


def opened(browser: Browser, address: str) -> dict[str, Any]:
    """The fields of the editor at an address, with the kinds of its questions."""
    page = Page(browser.get(address).text)
    names = [attrs["name"] for attrs, _ in page.find("select")]
    chosen = [attrs["value"] for attrs, _ in page.find("option") if "selected" in attrs]
    return form_of(page) | dict(zip(names, chosen, strict=True))


def saved(classroom: Classroom, form: dict[str, Any]) -> Material:
    """The material that a new form becomes."""
    done = classroom.instructor.post("/tickets", data=form)
    assert done.status_code == 303, done.text
    material = classroom.store.materials.find(int(done.headers["location"].split("/")[2]))
    assert material
    return material


def test_a_ticket_is_written_opened_and_changed(classroom: Classroom) -> None:
    material = saved(classroom, {**NEW, "course": str(classroom.course.id)})
    ticket = ticket_of_material(material)
    pace, following = ticket.questions
    assert (pace.kind, pace.labels, pace.required) == ("scale", ("slow", "fast"), True)
    assert (following.kind, following.options, following.required) == ("choose-several", ("KV cache", "Masks"), False)
    assert (ticket.title, ticket.pick_at_least, ticket.anonymous) == ("On your way out", 1, False)
    assert (ticket.pick_at_most, [question.chip for question in ticket.questions]) == (1, ["", "Next"])
    services, store = classroom.school.services, classroom.store
    usable = materials_for_course(services.library, services.tickets, store, classroom.course, classroom.teacher)
    assert usable.tickets[material.key] == ticket
    form = opened(classroom.instructor, f"/tickets/{material.id}/edit")
    again = classroom.instructor.post(f"/tickets/{material.id}", data=form)
    assert (again.status_code, store.materials.find(material.id)) == (303, material)  # the same isn't a new version
    form["text." + pace.key] = "And the pace?"
    assert classroom.instructor.post(f"/tickets/{material.id}", data=form).status_code == 303
    newest = store.materials.find(material.id)
    assert newest
    assert newest.version == 2
    assert ticket_of_material(newest).questions[0].text == "And the pace?"
    assert ticket_of_material(newest).questions[0].key == pace.key


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 100_000}, "title"),
        ({"instruction": "left\u202eright"}, "instruction"),
        ({"text.__1": "nul\0"}, "text-__1"),
        ({"last.__1": ""}, "last-__1"),
        ({"kind.__2": "essay"}, "kind-__2"),
        ({"options.__2": "one"}, "options-__2"),
        ({"options.__2": "\n".join(map(str, range(11)))}, "options-__2"),
        ({"pick_at_least": "two"}, "pick_at_least"),
        ({"pick_at_least": "2"}, "pick_at_least"),
        ({"pick_at_most": "few"}, "pick_at_most"),
    ],
)
def test_what_cannot_be_used_is_said_beside_its_field(classroom: Classroom, change: dict[str, str], field: str) -> None:
    back = classroom.instructor.post("/tickets", data={**NEW, **change})
    page = Page(back.text)
    [marked] = [attrs for _tag, attrs, _ in page.elements if attrs.get("aria-invalid") == "true"]
    assert (back.status_code, marked["id"], "autofocus" in marked) == (422, field, True)
    assert marked["aria-describedby"].endswith(f"problem-{field}")
    assert len(page.text("p", id=f"problem-{field}")) < 200
    assert page.find("input", value="slow")
    assert classroom.store.materials.readable_by(classroom.teacher) == ()


def test_everything_that_is_wrong_is_said_at_once(classroom: Classroom) -> None:
    wrong = {"title": "", "text.__1": "", "options.__2": "one"}
    page = Page(classroom.instructor.post("/tickets", data={**NEW, **wrong}).text)
    marked = [attrs["id"] for _tag, attrs, _ in page.elements if attrs.get("aria-invalid") == "true"]
    assert marked == ["title", "text-__1", "options-__2"]
    assert [attrs["id"] for _tag, attrs, _ in page.elements if "autofocus" in attrs] == ["title"]
    assert len({text for _, text in page.find("p", class_="problem")}) == 2  # two are empty


def test_markup_is_text_in_the_form_and_the_preview(classroom: Classroom) -> None:
    for text in HOSTILE:
        form = {
            name: text if name.startswith(("ti", "ins", "text", "fir", "la")) else value for name, value in NEW.items()
        }
        form["options.__2"] = f"{text}\nelse"
        material = saved(classroom, form)
        assert ticket_of_material(material).questions[1].options == (text, "else")
        answer = classroom.instructor.get(f"/tickets/{material.id}/edit").text
        page = Page(answer)
        assert "alert(1)" not in [script for _, script in page.find("script")]
        assert page.text("legend").startswith("Ticket")
        assert any(text in legend for _, legend in page.find("legend"))
        assert opened(classroom.instructor, f"/tickets/{material.id}/edit")["title"] == text


def test_buttons_add_move_and_remove_questions_without_saving(classroom: Classroom) -> None:
    added = Page(classroom.instructor.post("/tickets/preview", data={**NEW, "arrange": "add"}).text)
    names = [attrs["value"] for attrs, _ in added.find("input", name="question")]
    assert names == ["__1", "__2", "__3"]
    assert [attrs["id"] for _tag, attrs, _ in added.elements if "autofocus" in attrs] == ["text-__3"]
    assert {text for _, text in added.find("legend")} >= {"How was the pace? (required)", "What next?"}
    moved = Page(classroom.instructor.post("/tickets/preview", data={**NEW, "arrange": "up __2"}, headers=SCRIPT).text)
    assert [attrs["value"] for attrs, _ in moved.find("input", name="question")] == ["__2", "__1"]
    assert moved.text("button", id="do-up-__2") == "↑"
    removed = Page(classroom.instructor.post("/tickets/preview", data={**NEW, "arrange": "remove __1"}).text)
    assert [attrs["value"] for attrs, _ in removed.find("input", name="question")] == ["__2"]
    assert classroom.store.materials.readable_by(classroom.teacher) == ()


def test_of_two_who_save_the_second_is_told(classroom: Classroom) -> None:
    store, course = classroom.store, classroom.course
    lou = classroom.school.browser(teacher=classroom.school.teacher(course=course))
    material = saved(classroom, {**NEW, "course": str(course.id)})
    address, theirs = f"/tickets/{material.id}", opened(lou, f"/tickets/{material.id}/edit")
    mine = {**opened(classroom.instructor, f"{address}/edit"), "title": "Mine"}
    assert lou.post(address, data={**theirs, "title": "Theirs"}).status_code == 303
    told = classroom.instructor.post(address, data=mine)
    page = Page(told.text)
    assert told.status_code == 409
    assert {"Theirs", "Mine"} <= {text for _, text in page.find("td")}
    assert page.find("input", value="Mine", name="title")
    assert [version.content["title"] for version in store.materials.versions(material)] == ["Theirs", "On your way out"]
    [(button, _)] = page.find("button", name="overwrite")
    assert classroom.instructor.post(address, data={**mine, "overwrite": button["value"]}).status_code == 303
    assert store.materials.versions(material)[0].content["title"] == "Mine"


def test_what_was_typed_into_a_removed_ticket_is_not_lost(classroom: Classroom) -> None:
    material = saved(classroom, NEW)
    address = f"/tickets/{material.id}"
    mine = {**opened(classroom.instructor, f"{address}/edit"), "title": "Mine"}
    classroom.store.materials.remove(material)
    refused = classroom.instructor.post(address, data=mine)
    page = Page(refused.text)
    assert refused.status_code == 409
    assert "was removed" in page.text("h2", id="conflict-title")
    assert page.find("input", value="Mine", name="title")
    assert classroom.instructor.post(f"/worksheets/{material.id}/put-back").status_code == 303
    assert classroom.instructor.post(address, data=mine).status_code == 303
    assert classroom.store.materials.versions(material)[0].content["title"] == "Mine"


def test_a_ticket_is_its_owners_and_of_the_instructors_of_its_course(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    course, school = classroom.course, classroom.school
    own, shared = saved(classroom, NEW), saved(classroom, {**NEW, "course": str(course.id)})
    colleague, assistant, stranger = (
        school.browser(teacher=teacher)
        for teacher in (
            school.teacher(course=course),
            school.teacher(course=course, role="assistant"),
            school.teacher(),
        )
    )
    for browser, statuses in ((colleague, (404, 200)), (assistant, (404, 403)), (stranger, (404, 404))):
        assert tuple(browser.get(f"/tickets/{one.id}/edit").status_code for one in (own, shared)) == statuses
        assert browser.post(f"/tickets/{own.id}", data=NEW).status_code == 404
    assert stranger.post("/tickets", data={**NEW, "course": str(course.id)}).status_code == 404
    assert stranger.get(f"/tickets/new?course={course.id}").status_code == 404
    sheet = classroom.store.materials.add("worksheet", course, classroom.teacher, {"title": "Sheet"})
    assert classroom.instructor.get(f"/tickets/{sheet.id}/edit").status_code == 404
    assert OWN_TICKET.title == own.title
