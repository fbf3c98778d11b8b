"""The presenter view: the way in, or how far the class is; no names, and closing from there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from fastapi import FastAPI

from app.store import Policies
from app.web.shared.templating import local_time
from tests.helpers.answer_keys import WIDE
from tests.helpers.clock import Clock
from tests.helpers.html_page import Page
from tests.helpers.school import SCRIPT, Classroom


class ProjectedClassroom(Classroom):
    """A classroom whose presenter view is looked at anew each time."""

    def look(self, **query: str) -> Page:
        """The fragment that the projector asks for."""
        self.school.services.live_snapshots.expire(self.activity.id)
        response = self.instructor.get(f"{self.path}/present/now", params=query)
        assert response.status_code == 200
        return Page(response.text)


def shows_code(page: Page) -> bool:
    """Whether the way in fills the page, and nothing is shown of what students do."""
    assert page.find("section", class_="present-join") == [] or page.find("section", class_="board") == []
    return page.find("section", class_="present-join") != []


def test_only_the_teacher_switches_between_join_code_and_progress(app: FastAPI, clock: Clock) -> None:
    classroom = ProjectedClassroom(app)
    fixed = {"code": dict[str, str](), "progress": {"view": "progress"}}

    def stays() -> list[Page]:
        pages = [classroom.look(**query) for query in fixed.values()]
        assert [shows_code(page) for page in pages] == [True, False]
        return pages

    stays()
    kim = classroom.student("Kim")
    classroom.send(kim, "save", {"input.rows": "1"})
    code, progress = stays()
    assert "1 student" in code.text("p", class_="present-count")
    assert "1 working" in code.text("a", id="switch")
    assert classroom.activity.join_code in progress.text("p", class_="join-chip")
    for page, other in ((code, "progress"), (progress, "code")):
        [(link, _)] = page.find("a", id="switch")
        assert shows_code(Page(classroom.get(link["href"]))) == (other == "code")
    classroom.student("Lou")
    classroom.send(kim, "hand-in", {"input.rows": "1"})
    stays()
    classroom.instructor.post(f"{classroom.path}/close")
    clock.pass_minutes(2)
    code, _ = stays()
    assert code.find("p", class_="join-code") == code.find("img") == []


def test_the_projector_shows_no_name_and_no_navigation_and_explains(app: FastAPI) -> None:
    classroom = ProjectedClassroom(app, Policies(feedback="after_close"))
    classroom.send(classroom.student("Kim Unlikely-Name"), "save", WIDE)
    classroom.student("Lou")
    text = classroom.get(f"{classroom.path}/present?names=yes")
    assert "Unlikely" not in text
    assert Page(text).find("nav", class_="pages") == []
    page = classroom.look(view="progress")
    assert "1 of 1" in page.text("tr", id="misconception-head-as-wide-as-model")
    with classroom.instructor as browser:
        address = f"{classroom.path}/present/explain?sheet=1"
        shown = browser.post(address, data={"misconception": "head-as-wide-as-model"}, headers=SCRIPT)
        assert shown.status_code == 200
        assert browser.post(address, data={"misconception": "the-earth-is-flat"}).status_code == 422
        explanation = Page(shown.text).text("section", class_="explained")
        assert explanation == Page(browser.get(f"{classroom.path}/live").text).text("section", class_="explained")


def closing_forms(page: Page) -> list[str]:
    """What can be done about closing on a page: the last part of the addresses of its forms."""
    actions = [form["action"].rpartition("/")[2] for form, _ in page.find("form")]
    return [action for action in actions if action in ("close", "undo-close")]


def tally(page: Page) -> list[str]:
    """What the students are counted by."""
    return [text for _, text in page.find("dt")]


def test_closing_on_the_projector_asks_and_can_be_undone_there(app: FastAPI, clock: Clock) -> None:
    classroom = ProjectedClassroom(app)
    classroom.send(classroom.student("Kim"), "save", {"input.rows": "1"})
    page = classroom.look(view="progress")
    menu, overview = page.find("details", id="close"), classroom.page().find("details", id="close")
    assert menu == overview
    assert "1 student" in page.text("p", id="working")
    with classroom.instructor as browser:
        for action in ("close", "undo-close"):
            [_] = [each for each in closing_forms(page) if each == action]
            pressed = browser.post(f"{classroom.path}/{action}", data={"back": "progress"})
            assert pressed.headers["location"] == f"{classroom.path}/present?view=progress"
            clock.pass_seconds(5)
            page = classroom.look(view="progress")
            assert page.text("p", class_="phase").startswith("Open")
        assert closing_forms(page) == ["close"]
        assert "working" in tally(page)
        browser.post(f"{classroom.path}/close", data={"back": "progress"})
        clock.pass_seconds(10)
        page = classroom.look(view="progress")
        assert page.text("p", class_="phase").startswith("Closed")
        assert closing_forms(page) == []
        assert "working" not in tally(page)
        assert "not handed in" in tally(page)
        late = browser.post(f"{classroom.path}/undo-close")
    assert "done=too-late" in late.headers["location"]
    assert "too late" in classroom.page("?done=too-late").text("p", class_="done")


def test_a_closing_time_on_another_day_has_its_date(app: FastAPI, clock: Clock) -> None:
    classroom, closes = ProjectedClassroom(app), clock.now + timedelta(days=2)
    classroom.store.activities.change(classroom.activity, replace(classroom.activity.plan, closes_at=closes))
    assert local_time(closes, classroom.course.time_zone) in classroom.look().text("p", class_="phase")
