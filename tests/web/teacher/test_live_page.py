"""An activity while it goes on: what the room's page shows at the next look, how little it costs, and what it hides."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.classes import live_snapshot
from app.classes.live_snapshot import LiveSnapshots
from app.grading.grade import Report, grade
from app.main import create_app
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.settings import Settings
from app.sheets.worksheet import Variant
from app.store import Activity, Course, Learner, Policies, Student, Teacher
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.classes import World
from tests.helpers.html_page import Page

SCRIPT = {"HX-Request": "true"}
NUMBERS = itertools.count(1)


class Class:
    """A course with an open activity, whoever teaches it, and a clock that moves when it is told to."""

    def __init__(self, app: FastAPI, policies: Policies | None = None) -> None:
        self.world, self.now = World(app), 1000.0
        snapshots = LiveSnapshots(lambda: self.now)
        app.state.services = replace(app.state.services, live_snapshots=snapshots)
        self.ada: Teacher = self.world.teacher(f"ada@{next(NUMBERS)}.example")
        self.course: Course = self.world.course("Transformers", self.ada)
        self.activity: Activity = self.world.activity(self.course, policies)
        self.path = f"/activities/{self.activity.id}"

    def student(self, name: str) -> tuple[Student, Learner]:
        """Somebody who came."""
        student, learner = self.world.student(self.course, name)
        self.world.services.store.classwork.arrive(self.activity.id, student.id)
        return student, learner

    def send(self, learner: Learner, what: str, answers: Mapping[str, str], version: int = 1) -> None:
        """What a student's browser does: save, check or hand-in."""
        with self.world.browser(learner=learner) as browser:
            data = {**answers, "version": str(version), "form_id": f"form-{version}-of-it"}
            done = browser.post(f"/class/{self.activity.id}/1/{what}", data=data, headers=SCRIPT)
            assert done.status_code == 200

    def look(self, seen: str = "", names: str = "") -> Any:  # a response
        """The fragment, a second later."""
        self.now += 1
        with self.world.browser(teacher=self.ada) as browser:
            return browser.get(f"{self.path}/live/now", params={"sheet": 1, "seen": seen, "names": names})

    def live(self) -> Page:
        return Page(self.look().text)


def tally(page: Page) -> dict[str, str]:
    names = [text for _, text in page.find("dt")]
    return dict(zip(names, [text for _, text in page.find("dd")], strict=True))


def seen(page: Page) -> str:
    return page.find("input", name="seen")[0][0]["value"]


def counts(page: Page, kind: str) -> dict[str, str]:
    """The number beside each bar: of rows or misconceptions, by key."""
    found = dict[str, str]()
    for attributes, text in page.find("tr"):
        if attributes.get("id", "").startswith(f"{kind}-"):
            found[attributes["id"].removeprefix(f"{kind}-")] = next(word for word in text.split() if word.isdigit())
    return found


def explain(text: str) -> list[tuple[dict[str, str], str]]:
    """The buttons that explain a misconception."""
    return [found for found in Page(text).find("button") if found[0].get("id", "").startswith("explain-")]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    made = create_app(Settings(data_dir=tmp_path_factory.mktemp("live"), database_url=""))
    with TestClient(made):
        yield made


def test_what_a_student_does_shows_at_the_next_look(database_url: str, tmp_path: Path) -> None:
    """Joined, typing, checked and handed in, each within the second; on SQLite and PostgreSQL alike."""
    made = create_app(Settings(data_dir=tmp_path, database_url=database_url))
    with TestClient(made):
        room = Class(made)
        page = room.live()
        assert tally(page) == {"joined": "0", "working": "0", "handed in": "0", "exit tickets": "0"}
        assert room.look(seen(page)).status_code == 204
        _, kims = room.student("Kim")
        _, lous = room.student("Lou")
        page = room.live()
        assert tally(page)["joined"] == "2"
        room.send(kims, "save", {"input.rows": "100", "input.columns": "4096", "queries.rows": "7"})
        changed = room.look(seen(page))
        page = Page(changed.text)
        assert (changed.status_code, tally(page)["working"]) == (200, "1")
        assert {row: counts(page, "row")[row] for row in ("input", "queries", "keys")} == {
            "input": "1", "queries": "0", "keys": "0",
        }  # fmt: skip
        room.send(kims, "check", WIDE, 2)
        page = room.live()
        assert counts(page, "misconception") == {"head-as-wide-as-model": "1"}
        assert counts(page, "row")["output"] == "1"
        room.send(lous, "hand-in", KEY, 3)
        page = room.live()
        assert (tally(page)["working"], tally(page)["handed in"]) == ("1", "1")
        assert counts(page, "row")["queries"] == "1"
        room.send(kims, "hand-in", KEY, 4)
        page = room.live()
        assert (tally(page)["handed in"], counts(page, "row")["queries"]) == ("2", "2")
        assert counts(page, "misconception") == {}
        assert room.look(seen(page)).status_code == 204


def test_a_misconception_in_a_draft_shows_before_any_check(app: FastAPI) -> None:
    """Where marks come late, the room's misconceptions are read off what stands in the boxes."""
    room = Class(app, Policies(feedback="after_close"))
    _, kims = room.student("Kim")
    room.send(kims, "save", WIDE)
    assert counts(room.live(), "misconception") == {"head-as-wide-as-model": "1"}
    room.send(kims, "save", KEY, 2)
    assert counts(room.live(), "misconception") == {}


def test_a_room_is_counted_once_a_second_and_only_what_changed_is_graded(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty looks in one second are one count; of three drafts, only the one that was saved again is graded again."""
    room, graded = Class(app), list[Mapping[str, str]]()

    def counted(variant: Variant, answers: Mapping[str, str]) -> Report:
        graded.append(answers)
        return grade(variant, answers)

    monkeypatch.setattr(live_snapshot, "grade", counted)
    learners = [room.student(name)[1] for name in ("Kim", "Lou", "Mo")]
    for learner in learners:
        room.send(learner, "save", {"input.rows": "1"})
    room.live()
    assert len(graded) == 3
    room.send(learners[1], "save", {"input.rows": "2"}, 2)
    with room.world.browser(teacher=room.ada) as browser:
        for _ in range(20):
            page = Page(browser.get(f"{room.path}/live/now").text)
        assert len(graded) == 3
        room.now += 1
        browser.get(f"{room.path}/live/now")
    assert [answers.get("input.rows") for answers in graded[3:]] == ["2"]
    assert tally(page)["working"] == "3"


def test_names_are_hidden_unless_asked_for(app: FastAPI) -> None:
    """Nothing on the page or its fragment names a student before somebody presses for it."""
    room = Class(app)
    _, kims = room.student("Kim Unlikely-Name")
    room.send(kims, "check", WIDE)
    with room.world.browser(teacher=room.ada) as browser:
        assert "Unlikely" not in browser.get(f"{room.path}/live").text
        assert "Unlikely" not in room.look().text
        shown = Page(browser.get(f"{room.path}/live?names=yes").text)
    [row] = [text for _, text in shown.find("tr") if "Unlikely" in text]
    assert row == "Kim Unlikely-Namechecked4A head is as wide as the model"


def test_a_misconception_is_explained_to_the_class_and_taken_away(app: FastAPI, library: Any) -> None:
    """One press shows it on every live view, the assistant's too, who has no such button; another takes it away."""
    room = Class(app)
    room.send(room.student("Kim")[1], "check", WIDE)
    bo = room.world.teacher(f"bo@{room.activity.id}.example", room.course, "assistant")
    explanation = library.wording.misconception("head-as-wide-as-model", "explanation")
    action = f"{room.path}/live/explain?sheet=1"
    with room.world.browser(teacher=room.ada) as ada, room.world.browser(teacher=bo) as assistant:
        assert [button["aria-pressed"] for button, _ in explain(ada.get(f"{room.path}/live").text)] == ["false"]
        assert explanation not in ada.get(f"{room.path}/live").text
        back = ada.post(action, data={"misconception": "head-as-wide-as-model"})
        assert (back.status_code, back.headers["location"]) == (303, f"{room.path}/live?sheet=1")
        assert [button["aria-pressed"] for button, _ in explain(ada.get(f"{room.path}/live").text)] == ["true"]
        theirs = assistant.get(f"{room.path}/live").text
        assert explanation in theirs
        assert "<figure" not in theirs
        assert explain(theirs) == []
        assert "Take it away" not in theirs
        drawn = ada.post(action, data={"misconception": "head-as-wide-as-model", "drawn": "yes"}, headers=SCRIPT).text
        assert drawn.count("<figure") == 2
        assert "As this idea has it" in drawn
        ada.post(action, data={"misconception": ""})
        assert explanation not in assistant.get(f"{room.path}/live").text
        assert ada.post(action, data={"misconception": "the-earth-is-flat"}).status_code == 422


@pytest.mark.parametrize("sheet", ["0", "99", "x", "-1", "1" * 400, "²"])
def test_a_sheet_that_is_not_there_is_the_nearest_one(app: FastAPI, sheet: str) -> None:
    """No number in the address breaks the page."""
    room = Class(app)
    with room.world.browser(teacher=room.ada) as browser:
        assert browser.get(f"{room.path}/live", params={"sheet": sheet}).status_code == 200
        assert browser.get(f"{room.path}/results", params={"sheet": sheet}).status_code == 200


def test_without_script_the_page_loads_itself_again_where_that_is_asked(app: FastAPI) -> None:
    """A link in noscript leads to the same page with a refresh in its head; without it there is none."""
    room = Class(app)
    with room.world.browser(teacher=room.ada) as browser:
        plain, again = browser.get(f"{room.path}/live").text, browser.get(f"{room.path}/live?reload=yes").text
    assert "reload=yes" in plain
    assert 'http-equiv="refresh"' not in plain
    assert '<meta http-equiv="refresh" content="3">' in again


def test_an_exit_ticket_alone_has_a_live_view(app: FastAPI) -> None:
    """Joined and tickets are counted, and there is no sheet to show."""
    room = Class(app)
    alone = room.world.activity(room.course, sheets=())
    with room.world.browser(teacher=room.ada) as browser:
        page = Page(browser.get(f"/activities/{alone.id}/live").text)
        assert tally(page) == {"joined": "0", "exit tickets": "0"}
        for path in ("results", "tickets", "summary", "regrade"):
            assert browser.get(f"/activities/{alone.id}/{path}").status_code == 200


def test_every_misconception_has_a_name_of_a_few_words(library: Any) -> None:
    """What stands beside a bar fits there, and no two misconceptions are called the same."""
    names = library.wording.sections["misconception-names"]
    assert set(names) == {misconception.key for misconception in MISCONCEPTIONS}
    assert len(set(names.values())) == len(names)
    assert all(8 < len(name) <= 52 for name in names.values())
