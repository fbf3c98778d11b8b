"""The preview of an activity: what its students see, under its rules, with nothing stored."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from app.misconceptions.predictions import expectations
from app.store import Activity, Policies, Store
from app.store.tables import metadata
from tests.helpers.activity_form import FORM
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF, press
from tests.helpers.clock import end_activity
from tests.helpers.html_page import Page
from tests.helpers.school import SCRIPT, Classroom
from tests.helpers.shipped import LIBRARY

WIDE = {**KEY, "queries.columns": "4096", "keys.columns": "4096", "values.columns": "4096"}
ONE_ATTEMPT: dict[str, Any] = {"max_attempts": 1, "hints": False}
LATER: dict[str, Any] = {"feedback": "after_hand_in"}


def rows_in_tables(store: Store) -> dict[str, int]:
    """How many rows every table of the database has."""
    with store.engine.connect() as connection:
        count = sa.func.count
        return {
            table.name: connection.execute(sa.select(count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }


def preview(classroom: Classroom, activity: Activity, *presses: tuple[str, dict[str, str]]) -> Page:
    """The first sheet of the preview after these buttons, each pressed with these texts in the boxes."""
    address = f"/activities/{activity.id}/preview/1"
    page = Page(classroom.get(address))
    for what, texts in presses:
        carried = dict.fromkeys(("carried",), "") | {
            attributes["name"]: attributes["value"] for attributes, _ in page.find("input", name="carried")
        }
        response = classroom.instructor.post(f"{address}/{what}", data={**texts, **carried})
        assert response.status_code == 200, response.text
        page = Page(response.text)
    return page


def shown(page: Page) -> dict[str, Any]:
    """What a page says of a sheet: its boxes, marks, sentences and buttons, and whether it draws."""
    sentences = [page.find("p", class_=name) for name in ("diagnosis", "result", "below", "hint")]
    buttons = {attributes["id"] for attributes, _ in page.find("button", type="submit") if "id" in attributes}
    return {
        "boxes": page.boxes(),
        "marks": page.marks(),
        "locked": [attributes["name"] for attributes, _ in page.find("input") if "readonly" in attributes],
        "sentences": [[text for _, text in found] for found in sentences],
        "buttons": buttons - {"start-run"},  # a run would be stored
        "drawn": len(page.find("figure")),
    }


@pytest.mark.parametrize(
    ("policies", "presses"),
    [
        ({}, [("check", WIDE), ("hint", WIDE), ("check", KEY)]),
        (ONE_ATTEMPT, [("check", HALF)]),
        (LATER, [("hand-in", HALF)]),
        ({"feedback": "after_close", "exam": True}, [("hand-in", KEY)]),
    ],
    ids=["checked and hinted", "one attempt", "marks later", "exam"],
)
def test_the_preview_shows_what_a_student_gets(
    classroom: Classroom, policies: dict[str, Any], presses: list[tuple[str, dict[str, str]]]
) -> None:
    activity = classroom.open(**policies)
    before = rows_in_tables(classroom.store)
    previewed = [shown(preview(classroom, activity, *presses[:count])) for count in range(1, len(presses) + 1)]
    closed = shown(preview(classroom, activity, *presses, ("closed", presses[-1][1])))
    assert rows_in_tables(classroom.store) == before
    _, browser = classroom.join()
    for (what, texts), view in zip(presses, previewed, strict=True):
        assert shown(Page(press(browser, activity, what, texts).text)) == view
    end_activity(classroom.store, activity.id)
    assert shown(Page(browser.get(f"/class/{activity.id}/1").text)) == closed


@pytest.mark.parametrize("policies", [{}, LATER], ids=["checked", "marks later"])
def test_a_misconception_fills_the_sheet_in(classroom: Classroom, policies: dict[str, Any]) -> None:
    activity = classroom.open(**policies)
    page = preview(classroom, activity)
    offered = {attributes["value"] for attributes, _ in page.find("option") if attributes["value"]}
    shown = {each.misconception for each in expectations(LIBRARY.variant("llama-7b").problem)}
    assert offered == shown
    page = preview(classroom, activity, ("fill", {"misconception": "head-as-wide-as-model"}))
    assert page.boxes() == WIDE
    assert bool(page.find("p", class_="diagnosis")) == (not policies)
    [chosen] = [attributes["value"] for attributes, _ in page.find("option") if "selected" in attributes]
    assert chosen == "head-as-wide-as-model"
    unknown = preview(classroom, activity, ("fill", {**KEY, "misconception": "none"}))
    assert unknown.boxes() == KEY


def test_an_example_leads_back_to_the_preview(classroom: Classroom) -> None:
    activity = classroom.open()
    address = f"/activities/{activity.id}/preview/1"
    [link] = [a["href"] for a, _ in preview(classroom, activity).find("a") if "/example" in a["href"]]
    example = Page(classroom.get(link))
    assert example.boxes() != KEY
    assert [a["href"] for a, _ in example.find("a") if a["href"].startswith(f"{address}?")]
    assert classroom.instructor.post(f"{address}/example?kind=faded", data={}).status_code == 200
    exam = classroom.open(feedback="after_close", exam=True)
    assert not [a for a, _ in preview(classroom, exam).find("a") if "/example" in a["href"]]
    assert classroom.instructor.get(f"/activities/{exam.id}/preview/1/example").status_code == 404


def test_all_of_an_activity_can_be_looked_at(classroom: Classroom) -> None:
    school = classroom.school
    activity = school.activity(classroom.course)
    school.store.activities.set_state(activity, "draft")
    before = rows_in_tables(classroom.store)
    first = classroom.instructor.get(f"/activities/{activity.id}/preview").headers["location"]
    assert first.partition("?")[0] == f"/activities/{activity.id}/preview/1"
    steps = [attributes for attributes, _ in Page(classroom.get(first)).find("a") if "data-state" in attributes]
    links = [attributes["href"] for attributes in steps]
    assert [link.partition("?")[0].rpartition("/")[2] for link in links] == ["1", "2", "ticket"]
    for link in links:
        page = Page(classroom.get(link))
        assert page.find("aside", class_="preview-bar")
        assert "data-keep" not in str(page.find("form"))
    ticket = f"/activities/{activity.id}/preview/ticket"
    question = page_of(classroom, ticket).find("textarea")[0][0]["name"]
    handed_in = classroom.instructor.post(ticket, data={question: "Why is K not square?"})
    assert Page(handed_in.text).find("div", class_="done")
    drawing = classroom.instructor.post(f"/activities/{activity.id}/preview/1/save", data=HALF, headers=SCRIPT)
    assert "<svg" in drawing.text
    assert rows_in_tables(classroom.store) == before


def page_of(classroom: Classroom, address: str) -> Page:
    """A page as the instructor gets it."""
    return Page(classroom.get(address))


def test_individual_numbers_are_those_of_a_made_up_student(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, Policies(variants="per_student"))
    address = f"/activities/{activity.id}/preview/1"
    numbers = {
        page_of(classroom, f"{address}?example={example}").find("input", name="tokens")[0][0]["value"]
        for example in (1, 1, 2, 3, 4)
    }
    assert 1 < len(numbers) <= 4
    assert page_of(classroom, address).find("a", href=f"{address}?example=2")
    assert not page_of(classroom, f"/activities/{classroom.open().id}/preview/1").find("a", href="?example=2")


@pytest.mark.parametrize("carried", ["[", "7", '[["x"]]', '[[{"queries.rows": 3, "no": 1}, 1]]', "[" * 5000])
def test_what_a_form_cannot_have_carried_is_left_out(classroom: Classroom, carried: str) -> None:
    activity = classroom.open()
    response = classroom.instructor.post(
        f"/activities/{activity.id}/preview/1/check", data={**HALF, "carried": carried}, headers=SCRIPT
    )
    assert response.status_code == 200
    assert Page(response.text).marks()["queries.columns"] == "wrong"
    assert classroom.instructor.post(f"/activities/{activity.id}/preview/1/nothing").status_code == 404


def test_an_own_worksheet_is_previewed_as_it_is_now(classroom: Classroom) -> None:
    misconception = {"name": "Doubled", "boxes": {"queries.columns": "2*d_h"}, "question": "Two heads?",
                     "explanation": "One head has $d_h$ columns."}  # fmt: skip
    content = {"title": "Ours", "topic": "single-head", "model": "llama-7b", "tokens": 40, "rows": ["queries", "keys"]}
    own = classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, content)
    classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data={**FORM, "worksheet": [own.key]})
    [activity] = classroom.store.activities.of_course(classroom.course)
    newer = {
        **content,
        "tokens": 41,
        "questions": [{"key": "why", "text": "Why so?"}],
        "misconceptions": [misconception],
    }
    classroom.store.materials.save(own, 1, newer, classroom.teacher)
    typed = {"queries.rows": "41", "queries.columns": "256", "keys.rows": "41", "keys.columns": "128"}
    page = preview(classroom, activity, ("check", {**typed, "question.why": "Because."}))
    assert (page.marks()["queries.rows"], page.marks()["queries.columns"]) == ("right", "wrong")
    assert "Two heads?" in page.text("p", class_="diagnosis")
    assert page.text("textarea", name="question.why") == "Because."
