"""A sheet about a program with a bug in a class: chosen, saved, checked, handed in, watched, and closed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.bugs.bank import BUGS
from app.classes.live_snapshot import LiveSnapshots
from app.sheets.code_text import option_label
from app.store import Policies
from tests.helpers.class_sheet import press
from tests.helpers.clock import end_activity
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.shipped import LIBRARY

VARIANT = LIBRARY.variant("bug-one-head")
RIGHT = {box: VARIANT.written_answer(blank) for box, blank in VARIANT.blanks_by_name.items()}
REPAIR = {box for box in RIGHT if box.startswith("repair.")}


def chosen(page: Page, name: str) -> list[str]:
    """The radio buttons of a choice that are chosen."""
    return [attributes["value"] for attributes, _ in page.find("input", name=name) if "checked" in attributes]


def repair_boxes(page: Page) -> set[str]:
    """The boxes of the repair on the page."""
    return {attributes["name"] for attributes, _ in page.find("input") if attributes.get("name", "") in REPAIR}


def test_a_choice_is_saved_marked_and_locked(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, None, ("bug-one-head",))
    _, browser = classroom.join()
    address = f"/class/{activity.id}/1"
    assert repair_boxes(Page(browser.get(address).text)) == set()
    press(browser, activity, "save", {**dict.fromkeys(RIGHT, ""), "where.choice": "5"})
    assert chosen(Page(browser.get(address).text), "where.choice") == ["5"]
    page = Page(press(browser, activity, "check", {**RIGHT, **dict.fromkeys(REPAIR, ""), "where.choice": "5"}).text)
    assert repair_boxes(page) == REPAIR
    assert page.marks()["where.choice"] == "wrong"
    press(browser, activity, "hand-in", RIGHT)
    end_activity(classroom.store, activity.id)
    closed = Page(browser.get(address).text)
    radios = [attributes for attributes, _ in closed.find("input", name="where.choice")]
    assert ["disabled" in each for each in radios] == ["checked" not in each for each in radios]


@pytest.mark.parametrize(
    ("policies", "opens_at_once"),
    [(Policies(), False), (Policies(max_attempts=1), True), (Policies(feedback="after_close"), True)],
)
def test_a_repair_that_no_check_can_open_is_on_the_page_and_the_teacher_is_told(
    classroom: Classroom, policies: Policies, opens_at_once: bool
) -> None:
    activity = classroom.school.activity(classroom.course, policies, ("bug-one-head", "llama-7b"))
    _, browser = classroom.join()
    assert repair_boxes(Page(browser.get(f"/class/{activity.id}/1").text)) == (REPAIR if opens_at_once else set())
    told = Page(classroom.get(f"/activities/{activity.id}")).find("p", class_="about-repair")
    assert len(told) == opens_at_once


def test_a_class_is_seen_to_suspect_lines(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, None, ("bug-one-head",))
    for name, line, what in (("Kim", "5", "save"), ("Noor", "5", "check"), ("Ana", "4", "check"), ("Bo", "", "check")):
        _, browser = classroom.join(name)
        press(browser, activity, what, {**RIGHT, "where.choice": line})
    snapshot = LiveSnapshots().get(LIBRARY, classroom.store, activity)
    bars = {bar.row.key: bar for bar in snapshot.sheets[0].rows}
    assert [(text.split(":")[0], count) for text, count in bars["where"].chosen] == [("4", 1), ("5", 2)]
    assert (bars["where"].right, bars["where"].wrong, bars["where"].open) == (1, 2, 1)
    assert bars["repair"].chosen == ()
    results = Page(classroom.get(f"/activities/{activity.id}/results"))
    [wrong] = [text for _, text in results.find("tr") if text.startswith("Which line is wrong?")]
    assert option_label(VARIANT, "where", 5) in wrong or option_label(VARIANT, "where", 4) in wrong
    assert "Which line is wrong?" in [text for _, text in results.find("th", class_="mark")]


def test_each_student_keeps_the_bug_that_was_dealt(classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    policies = Policies(variants="per_student")
    activity = classroom.school.activity(classroom.course, policies, ("bug-or-none",))
    dealt = dict[str, str]()
    for number in range(6):
        _, browser = classroom.join(f"Student {number}")
        page = Page(browser.get(f"/class/{activity.id}/1").text)
        program = page.text("ol", class_="program-lines")
        press(browser, activity, "check", {"where.choice": "1", "why.choice": "1"})
        assert Page(browser.get(f"/class/{activity.id}/1").text).text("ol", class_="program-lines") == program
        dealt[str(number)] = program
    assert len(set(dealt.values())) > 3
    for tab in ("", "/projector", "/results", "/summary"):
        assert classroom.get(f"/activities/{activity.id}{tab}")
    changed = {key: replace(bug, line="", wrong="", beliefs=bug.beliefs) for key, bug in BUGS.items()}
    for key, bug in changed.items():
        monkeypatch.setitem(BUGS, key, bug)
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    assert page.text("ol", class_="program-lines") == dealt["5"]
