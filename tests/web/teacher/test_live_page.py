"""An activity while it goes on: what the live view shows at the next look, how little it costs, and what it hides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI

from app.classes import live_snapshot
from app.classes.live_snapshot import LiveSnapshots
from app.classes.student_sheet import freeze
from app.grading.grade import Report, grade
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.sheets.variant import Variant
from app.store import Policies, Projection
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.html_page import Page
from tests.helpers.school import SCRIPT, TWO_SHEETS, Classroom


class WatchedClassroom(Classroom):
    """A classroom whose live snapshots use a clock that only moves on request."""

    def __init__(self, app: FastAPI, policies: Policies | None = None) -> None:
        super().__init__(app, policies, TWO_SHEETS)
        self.now = 1000.0
        snapshots = LiveSnapshots(lambda: self.now, start=lambda work: work())
        app.state.services = replace(app.state.services, live_snapshots=snapshots)

    def look(self, seen: str = "", names: str = "") -> Any:  # a response
        """The fragment that the page polls, a second later."""
        self.now += 1
        return self.instructor.get(f"{self.path}/now", params={"sheet": 1, "seen": seen, "names": names})

    def live(self) -> Page:
        """The same, which must have changed."""
        return Page(self.look().text)


def tally(page: Page) -> dict[str, str]:
    names = [text for _, text in page.find("dt")]
    return dict(zip(names, [text for _, text in page.find("dd")], strict=True))


def seen_value(page: Page) -> str:
    return page.find("input", name="seen")[0][0]["value"]


def counts(page: Page, kind: str) -> dict[str, str]:
    """The number beside each bar: of rows or misconceptions, by key."""
    found = dict[str, str]()
    for attributes, text in page.find("li"):
        if attributes.get("id", "").startswith(f"{kind}-"):
            found[attributes["id"].removeprefix(f"{kind}-")] = next(word for word in text.split() if word.isdigit())
    return found


def test_what_a_student_does_shows_at_the_next_look(app_on_each_database: FastAPI) -> None:
    classroom = WatchedClassroom(app_on_each_database)
    page = classroom.live()
    assert tally(page) == {"joined": "0", "working": "0", "handed in": "0"}
    assert classroom.look(seen_value(page)).status_code == 204
    kim = classroom.student("Kim")
    lou = classroom.student("Lou")
    page = classroom.live()
    assert tally(page)["joined"] == "2"
    classroom.send(kim, "save", {"input.rows": "100", "input.columns": "4096", "queries.rows": "7"})
    changed = classroom.look(seen_value(page))
    page = Page(changed.text)
    assert (changed.status_code, tally(page)["working"]) == (200, "1")
    assert {row: counts(page, "row")[row] for row in ("input", "queries", "keys")} == {
        "input": "1", "queries": "0", "keys": "0",
    }  # fmt: skip
    classroom.send(kim, "check", WIDE, 2)
    page = classroom.live()
    assert counts(page, "misconception") == {"head-as-wide-as-model": "1"}
    assert counts(page, "row")["output"] == "1"
    classroom.send(lou, "hand-in", KEY, 3)
    page = classroom.live()
    assert (tally(page)["working"], tally(page)["handed in"]) == ("1", "1")
    assert counts(page, "row")["queries"] == "1"
    classroom.send(kim, "hand-in", KEY, 4)
    page = classroom.live()
    assert (tally(page)["handed in"], counts(page, "row")["queries"]) == ("2", "2")
    assert counts(page, "misconception") == {}
    assert classroom.look(seen_value(page)).status_code == 204


def test_a_misconception_in_a_draft_shows_before_any_check(app: FastAPI) -> None:
    classroom = WatchedClassroom(app, Policies(feedback="after_close"))
    kim = classroom.student("Kim")
    classroom.send(kim, "save", WIDE)
    assert counts(classroom.live(), "misconception") == {"head-as-wide-as-model": "1"}
    classroom.send(kim, "save", KEY, 2)
    assert counts(classroom.live(), "misconception") == {}


def test_a_room_is_counted_once_a_second_and_only_what_changed_is_graded(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    classroom, graded = WatchedClassroom(app), list[Mapping[str, str]]()

    def counted(variant: Variant, answers: Mapping[str, str]) -> Report:
        graded.append(answers)
        return grade(variant, answers)

    monkeypatch.setattr(live_snapshot, "grade", counted)
    students = [classroom.student(name) for name in ("Kim", "Lou", "Mo")]
    for student in students:
        classroom.send(student, "save", {"input.rows": "1"})
    classroom.live()
    assert len(graded) == 3
    classroom.send(students[1], "save", {"input.rows": "2"}, 2)
    with classroom.instructor as browser:
        for _ in range(20):
            page = Page(browser.get(f"{classroom.path}/now").text)
        assert len(graded) == 3
        classroom.now += 1
        browser.get(f"{classroom.path}/now")
    assert [answers.get("input.rows") for answers in graded[3:]] == ["2"]
    assert tally(page)["working"] == "3"


def test_the_version_changes_with_whatever_is_shown_and_with_nothing_else(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    kim = classroom.student("Kim")
    classroom.send(kim, "check", WIDE)
    store, activity = classroom.store, classroom.activity
    version = seen_value(classroom.live())
    assert classroom.look(version).status_code == 204
    services = classroom.school.services
    app.state.services = replace(services, live_snapshots=LiveSnapshots())  # as another worker would have them
    assert classroom.look(version).status_code == 204
    app.state.services = services
    content = freeze(classroom.school.library, ("llama-7b", "qwen2.5-0.5b", "layer-mistral-7b"), None)
    explained = Projection("explain", 1, "head-as-wide-as-model")
    for change in (
        lambda: store.activities.revise(activity, content),
        lambda: store.activities.set_projection(activity.id, explained),
        lambda: store.activities.set_projection(activity.id, replace(explained, view="progress")),
        lambda: store.activities.close(activity, activity.plan.closes_at),
        lambda: store.regrades.apply(activity.id, classroom.teacher.id, {}),
    ):
        change()
        changed = classroom.look(version)
        assert changed.status_code == 200
        version = seen_value(Page(changed.text))
        assert classroom.look(version).status_code == 204


def people(page: Page) -> list[str]:
    """The lines of the students, in order."""
    return [text for _, text in page.find("li") if re.match(r"(Kim|Lou|Mo|Nan) ", text)]


def test_students_who_need_help_come_first_and_names_can_be_hidden(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    for name, action, answers in (
        ("Lou", "hand-in", WIDE),
        ("Kim", "check", KEY),
        ("Mo", "check", WIDE),
        ("Nan", "save", {"input.rows": "100", "input.columns": "4096"}),
    ):
        classroom.send(classroom.student(name), action, answers)

    def look(query: str = "") -> Page:
        classroom.now += 1
        return Page(classroom.get(classroom.path + query))

    lines = people(look())
    assert [line.split()[0] for line in lines] == ["Nan", "Mo", "Kim", "Lou"]
    assert "Head as wide as the model" in lines[1]
    assert [line.split()[0] for line in people(look("?by=name"))] == ["Kim", "Lou", "Mo", "Nan"]
    assert people(look("?names=no")) == []
    assert people(Page(classroom.look(names="no").text)) == []


def test_what_one_student_gets_wrong_is_folded_away(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    classroom.send(classroom.student("Kim"), "check", WIDE)
    assert "Head as wide as the model" in classroom.live().text("details", id="few")
    classroom.send(classroom.student("Lou"), "check", WIDE)
    page = classroom.live()
    assert page.find("details", id="few") == []
    assert counts(page, "misconception") == {"head-as-wide-as-model": "2"}


def test_a_misconception_is_explained_on_the_page_and_shown_on_the_projector(app: FastAPI, library: Any) -> None:
    classroom = WatchedClassroom(app)
    for name in ("Kim", "Lou"):
        classroom.send(classroom.student(name), "check", WIDE)
    bo = classroom.school.teacher(f"bo@{classroom.activity.id}.example", classroom.course, "assistant")
    explanation = library.wording.misconception("head-as-wide-as-model", "explanation")
    opened = f"{classroom.path}?explain=head-as-wide-as-model"
    with classroom.instructor as ada, classroom.school.browser(teacher=bo) as assistant:
        assert explanation not in ada.get(classroom.path).text
        for browser in (ada, assistant):
            shown = browser.get(opened).text
            assert explanation in shown
            assert shown.count("<figure") == 2
        assert "Show it on the projector" in ada.get(opened).text
        assert "Show it on the projector" not in assistant.get(opened).text
        form = {"view": "explain", "misconception": "head-as-wide-as-model"}
        back = ada.post(f"{classroom.path}/projector?explain=head-as-wide-as-model", data=form)
        assert (back.status_code, back.headers["location"]) == (303, opened)
        assert (
            explanation
            in ada.post(f"{classroom.path}/projector", data={**form, "from": "projector"}, headers=SCRIPT).text
        )
        assert explanation in assistant.get(f"{classroom.path}/projector").text


def test_exit_tickets_that_are_held_back_are_counted(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    assert "No exit tickets" in classroom.live().text("p", class_="tickets")
    store = classroom.store
    for name in ("Kim", "Lou", "Mo"):
        student = classroom.student(name)
        store.exit_tickets.hand_in(classroom.activity.id, student.id, {"muddiest": "Why?"}, anonymous=True)
    assert "3 tickets are in" in classroom.live().text("p", class_="tickets")


@pytest.mark.parametrize("sheet", ["0", "99", "x", "-1", "1" * 400, "²"])
def test_a_sheet_that_is_not_there_is_the_nearest_one(app: FastAPI, sheet: str) -> None:
    classroom = WatchedClassroom(app)
    with classroom.instructor as browser:
        assert browser.get(f"{classroom.path}", params={"sheet": sheet}).status_code == 200
        assert browser.get(f"{classroom.path}/results", params={"sheet": sheet}).status_code == 200


def test_an_exit_ticket_alone_has_a_live_view(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    alone = classroom.school.activity(classroom.course, sheets=())
    with classroom.instructor as browser:
        page = Page(browser.get(f"/activities/{alone.id}").text)
        assert (tally(page)["joined"], "working" in tally(page)) == ("0", False)
        for path in ("results", "tickets", "summary", "regrade"):
            assert browser.get(f"/activities/{alone.id}/{path}").status_code == 200


def test_every_misconception_has_a_name_of_a_few_words(library: Any) -> None:
    names = {key: words.name for key, words in library.wording.misconceptions.items()}
    assert set(names) == {misconception.key for misconception in MISCONCEPTIONS}
    assert len(set(names.values())) == len(names)
    assert all(8 < len(name) <= 52 for name in names.values())
