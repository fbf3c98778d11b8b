"""The form of an activity: what it makes and changes, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app.exchange.imported_models import import_config
from tests.helpers.activity_form import FORM
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": " "}, "Enter a title"),
        ({"worksheet": [], "ticket": ""}, "at least one worksheet or an exit ticket"),
        ({"worksheet": ["nonsense"]}, "There is no worksheet “nonsense”"),
        ({"worksheet": ["llama-7b", "llama-7b"]}, "once"),
        ({"max_attempts": "0"}, "a whole number of attempts from 1 to 99"),
        ({"max_attempts": "many"}, "a whole number of attempts"),
        ({"follow_share": "101"}, "from 0 to 100"),
        ({"feedback": "never"}, "“feedback”"),
        ({"day": "tomorrow"}, "“tomorrow” is not a date"),
        ({"opens": "soon"}, "“soon” is not a date and time"),
        ({"opens": "2026-03-31T10:00", "closes": "2026-03-31T10:00"}, "must be after"),
        ({"closes": "0001-01-01T00:00"}, "is not a date and time"),
    ],
)
def test_a_form_that_cannot_be_used_comes_back(classroom: Classroom, change: dict[str, Any], sentence: str) -> None:
    """422, one sentence, and everything typed still there; nothing is made."""
    answer = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data={**FORM, **change})
    assert answer.status_code == 422
    page = Page(answer.text)
    assert sentence in page.text("p", class_="problem")
    assert page.find("input", name="day")[0][0]["value"] == change.get("day", "2026-03-31")
    assert classroom.store.activities.of_course(classroom.course) == ()


def test_times_are_those_of_the_course(classroom: Classroom) -> None:
    """Ten o'clock in Berlin on the last day of March is eight in UTC, and the form shows ten again."""
    form = {**FORM, "opens": "2026-03-31T10:00", "closes": "2026-03-31T11:30"}
    made = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form)
    [activity] = classroom.store.activities.of_course(classroom.course)
    assert activity.plan.opens_at == datetime(2026, 3, 31, 8, 0, tzinfo=UTC)
    page = Page(classroom.instructor.get(f"{made.headers['location']}/edit").text)
    assert page.find("input", name="opens")[0][0]["value"] == "2026-03-31T10:00"


def test_a_later_edit_makes_a_new_revision(classroom: Classroom) -> None:
    """Another worksheet is seen from then on, and what was answered stays; a new title alone is no revision."""
    activity = classroom.open()
    _, kim = classroom.join()
    press(kim, activity, "check", HALF)
    classroom.instructor.post(f"/activities/{activity.id}", data={**FORM, "title": "Week 4"})
    assert classroom.school.reload(activity).revision == 1
    classroom.instructor.post(f"/activities/{activity.id}", data={**FORM, "worksheet": ["qwen2.5-0.5b"]})
    assert classroom.school.reload(activity).revision == 2
    assert "Qwen2.5" in Page(kim.get(f"/class/{activity.id}/1").text).text("h1")
    [kept] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (kept.revision, kept.answers["queries.columns"]) == (1, "4096")
    classroom.instructor.post(f"/activities/{activity.id}", data=FORM)
    assert Page(kim.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"


def chosen_order(text: str) -> list[str]:
    """The worksheets of the activity on its form, in order."""
    return [attrs["value"] for attrs, _ in Page(text).find("input", name="worksheet") if "checked" in attrs]


def test_worksheets_are_put_in_order_without_saving(classroom: Classroom) -> None:
    """The buttons show the form again with everything typed in it."""
    address = f"/courses/{classroom.course.id}/activities"
    sheets = {**FORM, "title": "", "worksheet": ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"], "tokens.decode-gpt2": "12"}
    for button, order in (
        ("add", ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"]),
        ("up decode-gpt2", ["llama-7b", "decode-gpt2", "qwen2.5-0.5b"]),
        ("down llama-7b", ["qwen2.5-0.5b", "llama-7b", "decode-gpt2"]),
        ("up llama-7b", ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"]),
        ("up nonsense", ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"]),
    ):
        answer = classroom.instructor.post(address, data={**sheets, "arrange": button})
        assert (answer.status_code, chosen_order(answer.text)) == (200, order), button
        assert Page(answer.text).find("input", name="tokens.decode-gpt2")[0][0]["value"] == "12"
    assert classroom.store.activities.of_course(classroom.course) == ()


def test_students_get_the_model_and_the_length_that_were_chosen(classroom: Classroom) -> None:
    """Also an imported model, found by its address; the answers are graded by it, and the overview names it."""
    config = {"model_type": "llama", "hidden_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2,
              "intermediate_size": 200, "vocab_size": 500, "max_position_embeddings": 512}  # fmt: skip
    imported = import_config(classroom.store, classroom.school.library.wording, config, "pasted", "Our tiny model")
    address = f"/courses/{classroom.course.id}/activities"
    form = {**FORM, "arrange": "import", "import": f"http://testserver/models/{imported.key}/"}
    offered = Page(classroom.instructor.post(address, data=form).text)
    assert "Our tiny model" in offered.text("select", name="model.llama-7b")
    classroom.instructor.post(address, data={**FORM, "model.llama-7b": imported.key, "tokens.llama-7b": "7"})
    [activity] = classroom.store.activities.of_course(classroom.course)
    classroom.instructor.post(f"/activities/{activity.id}/open")
    _, kim = classroom.join()
    page = Page(kim.get(f"/class/{activity.id}/1").text)
    assert "Our tiny model" in page.text("h1")
    answers = {"queries.rows": "7", "queries.columns": "24", "output.rows": "7", "output.columns": "96"}
    press(kim, activity, "check", answers)
    marks = Page(kim.get(f"/class/{activity.id}/1").text).marks()
    assert {marks[box] for box in answers} == {"right"}
    again = Page(classroom.instructor.get(f"/activities/{activity.id}/edit").text)
    assert again.find("input", name="tokens.llama-7b")[0][0]["value"] == "7"
    assert "Our tiny model" in classroom.instructor.get(f"/activities/{activity.id}").text


@pytest.mark.parametrize("text", ["nonsense", "/models/cfg-00000000000000000000"])
def test_an_imported_model_that_is_not_there_is_said(classroom: Classroom, text: str) -> None:
    """Beside the field, and the form is as it was."""
    form = {**FORM, "arrange": "import", "import": text}
    answer = Page(classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form).text)
    assert "no imported model" in answer.text("p", class_="problem")
