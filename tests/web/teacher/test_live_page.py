"""An activity while it goes on: what the live view shows at the next look, how little it costs, and what it hides."""

from __future__ import annotations

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
from app.store import Policies, Spotlight
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
        """The fragment that the live view polls, a second later."""
        self.now += 1
        return self.instructor.get(f"{self.path}/live/now", params={"sheet": 1, "seen": seen, "names": names})

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
    for attributes, text in page.find("tr"):
        if attributes.get("id", "").startswith(f"{kind}-"):
            found[attributes["id"].removeprefix(f"{kind}-")] = next(word for word in text.split() if word.isdigit())
    return found


def explain(text: str) -> list[tuple[dict[str, str], str]]:
    """The buttons that explain a misconception."""
    return [found for found in Page(text).find("button") if found[0].get("id", "").startswith("explain-")]


def test_what_a_student_does_shows_at_the_next_look(app_on_each_database: FastAPI) -> None:
    classroom = WatchedClassroom(app_on_each_database)
    page = classroom.live()
    assert tally(page) == {"joined": "0", "working": "0", "handed in": "0", "exit tickets": "0"}
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
            page = Page(browser.get(f"{classroom.path}/live/now").text)
        assert len(graded) == 3
        classroom.now += 1
        browser.get(f"{classroom.path}/live/now")
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
    explained = Spotlight(1, "head-as-wide-as-model", False)
    for change in (
        lambda: store.activities.revise(activity, content),
        lambda: store.activities.set_spotlight(activity.id, explained),
        lambda: store.activities.set_spotlight(activity.id, replace(explained, shows_drawing=True)),
        lambda: store.activities.close(activity, activity.plan.closes_at),
        lambda: store.regrades.apply(activity.id, classroom.teacher.id, {}),
    ):
        change()
        changed = classroom.look(version)
        assert changed.status_code == 200
        version = seen_value(Page(changed.text))
        assert classroom.look(version).status_code == 204


def test_names_are_hidden_unless_asked_for(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    kim = classroom.student("Kim Unlikely-Name")
    classroom.send(kim, "check", WIDE)
    with classroom.instructor as browser:
        assert "Unlikely" not in browser.get(f"{classroom.path}/live").text
        assert "Unlikely" not in classroom.look().text
        shown = Page(browser.get(f"{classroom.path}/live?names=yes").text)
    [row] = [text for _, text in shown.find("tr") if "Unlikely" in text]
    assert row == "Kim Unlikely-Name checked 4 Head as wide as the model"


def test_students_are_sorted_by_rows_and_filtered_by_stage_and_misconception(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    for name, answers in (("Kim", WIDE), ("Lou", KEY)):
        classroom.send(classroom.student(name), "check", answers)
    classroom.student("Mo")

    def names(query: str) -> list[str]:
        classroom.now += 1
        page = Page(classroom.get(f"{classroom.path}/live?names=yes{query}"))
        return [text for _, text in page.find("th", scope="row") if text in ("Kim", "Lou", "Mo")]

    assert names("") == ["Kim", "Lou", "Mo"]
    assert names("&sort=rows") == ["Lou", "Kim", "Mo"]
    assert names("&show=nothing") == ["Mo"]
    assert names("&show=head-as-wide-as-model") == ["Kim"]
    assert names("&show=typing") == []


def test_a_misconception_is_explained_to_the_class_and_taken_away(app: FastAPI, library: Any) -> None:
    classroom = WatchedClassroom(app)
    classroom.send(classroom.student("Kim"), "check", WIDE)
    bo = classroom.school.teacher(f"bo@{classroom.activity.id}.example", classroom.course, "assistant")
    explanation = library.wording.misconception("head-as-wide-as-model", "explanation")
    action = f"{classroom.path}/live/explain?sheet=1"
    with classroom.instructor as ada, classroom.school.browser(teacher=bo) as assistant:
        assert [button["aria-pressed"] for button, _ in explain(ada.get(f"{classroom.path}/live").text)] == ["false"]
        assert explanation not in ada.get(f"{classroom.path}/live").text
        back = ada.post(action, data={"misconception": "head-as-wide-as-model"})
        assert (back.status_code, back.headers["location"]) == (303, f"{classroom.path}/live?sheet=1")
        assert [button["aria-pressed"] for button, _ in explain(ada.get(f"{classroom.path}/live").text)] == ["true"]
        theirs = assistant.get(f"{classroom.path}/live").text
        assert explanation in theirs
        assert "<figure" not in theirs
        assert explain(theirs) == []
        assert "Hide" not in theirs
        drawn = ada.post(action, data={"misconception": "head-as-wide-as-model", "drawn": "yes"}, headers=SCRIPT).text
        assert drawn.count("<figure") == 2
        assert "If that were so" in drawn
        ada.post(action, data={"misconception": ""})
        assert explanation not in assistant.get(f"{classroom.path}/live").text
        assert ada.post(action, data={"misconception": "the-earth-is-flat"}).status_code == 422


@pytest.mark.parametrize("sheet", ["0", "99", "x", "-1", "1" * 400, "²"])
def test_a_sheet_that_is_not_there_is_the_nearest_one(app: FastAPI, sheet: str) -> None:
    classroom = WatchedClassroom(app)
    with classroom.instructor as browser:
        assert browser.get(f"{classroom.path}/live", params={"sheet": sheet}).status_code == 200
        assert browser.get(f"{classroom.path}/results", params={"sheet": sheet}).status_code == 200


def test_without_script_the_page_loads_itself_again_where_that_is_asked(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    with classroom.instructor as browser:
        plain, again = browser.get(f"{classroom.path}/live").text, browser.get(f"{classroom.path}/live?reload=yes").text
    assert "reload=yes" in plain
    assert 'http-equiv="refresh"' not in plain
    assert '<meta http-equiv="refresh" content="3">' in again


def test_an_exit_ticket_alone_has_a_live_view(app: FastAPI) -> None:
    classroom = WatchedClassroom(app)
    alone = classroom.school.activity(classroom.course, sheets=())
    with classroom.instructor as browser:
        page = Page(browser.get(f"/activities/{alone.id}/live").text)
        assert tally(page) == {"joined": "0", "exit tickets": "0"}
        for path in ("results", "tickets", "summary", "regrade"):
            assert browser.get(f"/activities/{alone.id}/{path}").status_code == 200


def test_every_misconception_has_a_name_of_a_few_words(library: Any) -> None:
    names = {key: words.name for key, words in library.wording.misconceptions.items()}
    assert set(names) == {misconception.key for misconception in MISCONCEPTIONS}
    assert len(set(names.values())) == len(names)
    assert all(8 < len(name) <= 52 for name in names.values())
