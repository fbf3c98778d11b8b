"""The projector: join code, progress or an explanation, as chosen; no names, no answers, never by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from fastapi import FastAPI

from app.classes.student_sheet import freeze
from app.store import Policies
from app.web.shared.templating import local_time
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.clock import Clock
from tests.helpers.html_page import Page
from tests.helpers.school import TWO_SHEETS, Classroom


class ProjectedClassroom(Classroom):
    """A classroom whose projector is looked at anew each time."""

    def look(self) -> Page:
        """The fragment that the projector asks for."""
        self.school.services.live_snapshots.expire(self.activity.id)
        response = self.instructor.get(f"{self.path}/projector/now")
        assert response.status_code == 200
        return Page(response.text)

    def choose(self, view: str, **form: str) -> int:
        """Press the button of a view."""
        return self.instructor.post(f"{self.path}/projector", data={"view": view, **form}).status_code


def shown_view(page: Page) -> str:
    """The class of the only section, without "wall-"."""
    [name] = [attributes["class"] for attributes, _ in page.find("section")]
    return name.removeprefix("wall-")


def test_only_the_teacher_changes_what_is_shown(app: FastAPI, clock: Clock) -> None:
    classroom = ProjectedClassroom(app)
    assert shown_view(classroom.look()) == "join"
    kim = classroom.student("Kim")
    classroom.send(kim, "save", {"input.rows": "1"})
    page = classroom.look()
    assert shown_view(page) == "join"
    assert "1 joined" in page.text("p", class_="wall-count")
    assert "1 working" in page.text("button", id="view-progress")
    for view in ("progress", "explain", "join", "progress"):
        assert classroom.choose(view) == 303
        page = classroom.look()
        assert shown_view(page) == view
        assert [text for _, text in page.find("b", class_="join-code")] == [classroom.activity.join_code]
        [pressed] = [found["value"] for found, _ in page.find("button") if found.get("aria-pressed") == "true"]
        assert pressed == view
    classroom.student("Lou")
    classroom.send(kim, "hand-in", {"input.rows": "1"})
    assert shown_view(classroom.look()) == "progress"
    classroom.instructor.post(f"{classroom.path}/close")
    clock.pass_minutes(2)
    page = classroom.look()
    assert shown_view(page) == "progress"
    assert page.find("b", class_="join-code") == page.find("img") == []


def test_it_shows_no_name_and_no_navigation_and_explains_without_the_sheets_numbers(app: FastAPI) -> None:
    classroom = ProjectedClassroom(app, Policies(feedback="after_close"))
    classroom.send(classroom.student("Kim Unlikely-Name"), "save", WIDE)
    classroom.student("Lou")
    for view in ("join", "progress", "explain"):
        classroom.choose(view)
        text = classroom.get(f"{classroom.path}/projector")
        assert "Unlikely" not in text
        assert Page(text).find("nav", class_="pages") == []
    explained = classroom.look().text("section", class_="wall-explain")
    assert "LLaMA 7B" not in explained
    assert not {"4096", "128"} & set(explained.replace(",", "").split())
    assert classroom.choose("explain", misconception="the-earth-is-flat") == 422
    assert classroom.choose("somewhere") == 422


def test_what_is_explained_stays_when_another_mistake_becomes_commoner(app: FastAPI) -> None:
    classroom = ProjectedClassroom(app)
    classroom.send(classroom.student("Kim"), "check", WIDE)
    classroom.look()
    assert classroom.choose("explain") == 303
    explained = classroom.look().text("h2", id="explained")
    other = {**KEY, "scores.rows": "128", "scores.columns": "128", "weights.rows": "128", "weights.columns": "128"}
    for name in ("Lou", "Max"):
        classroom.send(classroom.student(name), "check", other)
    assert classroom.look().text("h2", id="explained") == explained
    snapshot = classroom.school.services.live_snapshots.get(
        classroom.school.library, classroom.store, classroom.activity
    )
    assert max(count for _key, count in snapshot.sheets[0].misconceptions) == 2  # the other one


def test_nothing_is_explained_before_somebody_chooses_it(app: FastAPI) -> None:
    classroom = ProjectedClassroom(app)
    assert classroom.choose("explain") == 303
    before = classroom.look().text("section", class_="wall-explain")
    classroom.send(classroom.student("Kim"), "check", WIDE)
    classroom.school.services.live_snapshots.expire(classroom.activity.id)
    assert classroom.look().text("section", class_="wall-explain") == before
    assert classroom.choose("explain") == 303
    assert classroom.look().text("h2", id="explained") not in before


def test_a_sheet_just_added_to_an_activity_has_its_view_at_once(app: FastAPI) -> None:
    classroom = ProjectedClassroom(app)
    classroom.page()
    content = freeze(classroom.school.library, TWO_SHEETS, None)
    classroom.store.activities.revise(classroom.activity, content)
    assert classroom.get(f"{classroom.path}?sheet=2")
    assert classroom.choose("progress", sheet="2") == 303
    assert classroom.get(f"{classroom.path}/projector")


def test_an_assistant_chooses_a_view_without_changing_the_projector(app: FastAPI) -> None:
    classroom = ProjectedClassroom(app)
    bo = classroom.school.teacher("bo@example.org", classroom.course, "assistant")
    with classroom.school.browser(teacher=bo) as assistant:
        assert shown_view(Page(assistant.get(f"{classroom.path}/projector?view=progress").text)) == "progress"
        assert assistant.post(f"{classroom.path}/projector", data={"view": "explain"}).status_code in (403, 404)
    assert shown_view(classroom.look()) == "join"


def closing_forms(page: Page) -> list[str]:
    """What can be done about closing on a page: the last part of the addresses of its forms."""
    actions = [form["action"].rpartition("/")[2] for form, _ in page.find("form")]
    return [action for action in actions if action in ("close", "undo-close")]


def test_closing_asks_and_can_be_undone(app: FastAPI, clock: Clock) -> None:
    classroom = ProjectedClassroom(app)
    classroom.send(classroom.student("Kim"), "save", {"input.rows": "1"})

    def counted() -> list[str]:
        classroom.school.services.live_snapshots.expire(classroom.activity.id)
        return [text for _, text in classroom.page().find("dt")]

    assert "1 student" in classroom.page().text("p", id="working")
    with classroom.instructor as browser:
        for action in ("close", "undo-close"):
            assert action in closing_forms(classroom.page())
            assert browser.post(f"{classroom.path}/{action}").headers["location"] == classroom.path
            clock.pass_seconds(5)
            assert classroom.page().text("p", class_="phase").startswith("Open")
        assert closing_forms(classroom.page()) == ["close"]
        assert "working" in counted()
        browser.post(f"{classroom.path}/close")
        clock.pass_seconds(10)
        assert closing_forms(classroom.page()) == []
        assert "working" not in counted()
        assert "not handed in" in counted()
        late = browser.post(f"{classroom.path}/undo-close")
    assert "done=too-late" in late.headers["location"]
    assert "too late" in classroom.page("?done=too-late").text("p", class_="done")


def test_a_closing_time_on_another_day_has_its_date(app: FastAPI, clock: Clock) -> None:
    classroom, closes = ProjectedClassroom(app), clock.now + timedelta(days=2)
    classroom.store.activities.change(classroom.activity, replace(classroom.activity.plan, closes_at=closes))
    assert local_time(closes, classroom.course.time_zone) in classroom.look().text("p", class_="phase")
