"""Students join with a code and a name, come back with a resume code, and leave."""

from __future__ import annotations

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store.tables import visitors
from app.web.shared import rate_limits
from app.web.shared.rate_limits import BUCKETS, Limit
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page, text_of
from tests.helpers.school import Browser, Classroom


def add_to_roster(classroom: Classroom, *lines: str) -> None:
    """Put names with numbers on the roster."""
    entries = [(name.strip(), number.strip() or None) for name, _, number in (line.partition(",") for line in lines)]
    classroom.store.roster.add_students(classroom.course, entries)


def resume_code(browser: Browser) -> str:
    """The resume code that waits in My class."""
    return Page(browser.get("/mine").text).text("p", class_="resume-code")


def test_whoever_has_the_code_does_not_see_the_roster(classroom: Classroom) -> None:
    add_to_roster(classroom, "Kim Lee, 17", "Lou Ray, 18", *(f"Anna {chr(97 + i)}., {i}" for i in range(6)))
    path = f"/join/{classroom.open().join_code}"
    browser = classroom.school.browser()
    for typed, shown in (
        ("", []),
        ("ki", []),
        ("kim", []),
        ("anna", []),
        ("KIM L", ["Kim Lee"]),
        ("lee k", ["Kim Lee"]),
    ):
        answer = browser.get(f"{path}/names", params={"name": typed})
        assert [text for _, text in Page(answer.text).find("button")] == shown
        assert "17" not in answer.text
    page = browser.get(path).text
    assert not any(text in page for text in ("Kim Lee", "Lou Ray", "Anna", "<option"))
    assert browser.get("/join/AAAAAA/names?name=kim+l").status_code == 404


def test_classmates_are_mentioned_only_where_a_roster_has_names_to_suggest(classroom: Classroom) -> None:
    path = f"/join/{classroom.open().join_code}"

    def mentioned() -> bool:
        page = classroom.school.browser().get(path).text
        assert ("classmates" in page) == ("hx-get" in Page(page).find("input", name="name")[0][0])
        return "classmates" in page

    assert not mentioned()
    add_to_roster(classroom, "Kim Lee, 17")
    assert mentioned()
    assert classroom.school.browser().post(path, data={"name": "Kim Lee"}).status_code == 303
    assert not mentioned()


def test_names_are_not_suggested_without_end(classroom: Classroom) -> None:
    add_to_roster(classroom, "Kim Lee, 17")
    path = f"/join/{classroom.open().join_code}"
    browser, limits = classroom.school.browser(), classroom.school.services.limits
    for _ in range(int(BUCKETS["names"].size) - 1):
        limits.record_failure("names", f"testclient {classroom.course.id}")
    answers = [browser.get(f"{path}/names", params={"name": "kim l"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert ["Kim Lee" in answer.text for answer in answers] == [True, False]
    assert browser.post(path, data={"name": "Kim Lee"}).status_code == 303


def test_names_are_not_listed_by_the_form_either_once_they_are_no_longer_suggested(classroom: Classroom) -> None:
    add_to_roster(classroom, "Kim Lee, 17")
    path = f"/join/{classroom.open().join_code}"
    limits = classroom.school.services.limits
    for _ in range(int(BUCKETS["names"].size) - 1):
        limits.record_failure("names", f"testclient {classroom.course.id}")
    answers = [classroom.school.browser().post(path, data={"name": "kim"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert ["Kim Lee" in answer.text for answer in answers] == [True, False]
    page = Page(answers[1].text)
    assert "full name" in page.text("p", id="problem")
    assert page.find("input", name="name")[0][0]["value"] == "kim"
    assert page.find("button", name="new")
    assert classroom.school.browser().post(path, data={"name": "kim", "new": "yes"}).status_code == 303
    assert classroom.school.browser().post(path, data={"name": "Kim Lee"}).status_code == 303
    students = classroom.store.roster.students(classroom.course)
    assert {(student.name, student.roster_key) for student in students} == {("kim", None), ("Kim Lee", "17")}


def test_a_network_brings_only_so_many_new_names(
    app_on_each_database: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "NEW_NAMES_PER_HOUR", 2)
    classroom = Classroom(app_on_each_database, sheets=None)
    add_to_roster(classroom, "Kim Lee, 17")
    path = f"/join/{classroom.open().join_code}"
    first = classroom.school.browser()
    assert [first.post(path, data={"name": name}).status_code for name in ("Zz One", "Zz Two")] == [303, 303]
    with classroom.store.engine.connect() as connection:
        count = connection.scalar(sa.select(sa.func.count()).select_from(visitors))
        refused = classroom.school.browser().post(path, data={"name": "Zz Three"})
        assert connection.scalar(sa.select(sa.func.count()).select_from(visitors)) == count
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert Page(refused.text).find("input", name="name")[0][0]["value"] == "Zz Three"
    assert first.post(path, data={"stay": "yes"}).status_code == 303
    assert classroom.school.browser().post(path, data={"name": "Kim Lee"}).status_code == 303
    elsewhere = TestClient(app_on_each_database, client=("192.0.2.1", 1), follow_redirects=False)
    assert elsewhere.post(path, data={"name": "Zz Three"}).status_code == 303
    names = [student.name for student in classroom.store.roster.students(classroom.course) if student.joined_at]
    assert names == ["Kim Lee", "Zz One", "Zz Three", "Zz Two"]


def test_a_similar_name_is_asked_about_before_anybody_joins(classroom: Classroom) -> None:
    add_to_roster(classroom, "Kim Lee, 17", "Kim Ray, 18")
    path = f"/join/{classroom.open().join_code}"
    asked = Page(classroom.school.browser().post(path, data={"name": "Kim"}).text)
    assert {"Kim Lee", "Kim Ray"} < {text for _, text in asked.find("button")}
    assert [student for student in classroom.store.roster.students(classroom.course) if student.joined_at] == []
    for data, name in (({"suggested": "Kim Ray", "name": "Kim"}, "Kim Ray"), ({"new": "yes", "name": "Kim"}, "Kim")):
        browser = classroom.school.browser()
        browser.post(path, data=data)
        assert f"Joined as {name}." in text_of(browser.get("/mine").text)
    assert len(classroom.store.roster.students(classroom.course)) == 3


def test_two_students_of_one_name_are_asked_which_they_are(classroom: Classroom) -> None:
    add_to_roster(classroom, "Alex Smith, 1020", "Alex Smith, 1021")
    path = f"/join/{classroom.open().join_code}"
    typed = {"name": "alex smith"}
    for number in ("1021", "1020"):
        browser = classroom.school.browser()
        asked = browser.post(path, data=typed)
        assert asked.status_code == 422
        assert Page(asked.text).find("input", name="number")
        assert not {"1020", "1021"} & set(re.findall(r"\d+", asked.text))
        assert browser.post(path, data={**typed, "number": "77"}).status_code == 422
        assert browser.post(path, data={**typed, "number": number}).status_code == 303
        joined = {one.roster_key for one in classroom.store.roster.students(classroom.course) if one.joined_at}
        assert joined == ({"1021"} if number == "1021" else {"1020", "1021"})
    assert "already joined" in classroom.school.browser().post(path, data={**typed, "number": "1020"}).text


def test_a_student_picks_a_name_works_and_comes_back(classroom: Classroom) -> None:
    add_to_roster(classroom, "Kim Lee, 17", "Lou Ray, 18")
    activity = classroom.open(names_listed=True)
    first, second, third = (classroom.school.browser() for _ in range(3))
    page = Page(first.get(f"/join/{activity.join_code}").text)
    kim = next(attrs["value"] for attrs, text in page.find("option") if text == "Kim Lee")
    address = first.post(f"/join/{activity.join_code}", data={"picked": kim}).headers["location"]
    assert first.get(address).headers["location"] == f"/class/{activity.id}/1"
    code, again = (resume_code(first) for _ in range(2))
    assert code == again
    press(first, activity, "save", HALF)
    assert "Kim Lee" not in [text for _, text in Page(second.get(f"/join/{activity.join_code}").text).find("option")]
    for typed in ({"name": "kim lee"}, {"picked": kim}):
        assert second.post(f"/join/{activity.join_code}", data=typed).status_code == 422
    assert third.post("/resume", data={"code": code.lower()}).headers["location"] == "/mine"
    assert Page(third.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"
    assert "Kim Lee" in third.get("/mine").text


@pytest.mark.parametrize(("on_roster", "typed"), [("علی\u200cرضا", "علی\u200cرضا"), ("José Müller", "José Müller")])
def test_a_name_is_found_on_the_roster_however_it_is_composed(classroom: Classroom, on_roster: str, typed: str) -> None:
    add_to_roster(classroom, f"{on_roster}, 17")
    typed = unicodedata.normalize("NFD", typed)
    classroom.school.browser().post(f"/join/{classroom.open().join_code}", data={"name": typed})
    (student,) = classroom.store.roster.students(classroom.course)
    assert (student.name, student.roster_key, student.joined_at is not None) == (on_roster, "17", True)


def test_a_name_that_cannot_be_seen_joins_nobody(classroom: Classroom) -> None:
    add_to_roster(classroom, "Kim Lee, 17")
    path = f"/join/{classroom.open().join_code}"
    for name in ("\u3164", "\u2800 \u2800", "\ufe0f", "\u115f\u1160"):
        assert classroom.school.browser().post(path, data={"name": name}).status_code == 422
    assert classroom.school.browser().post(path, data={"name": "Kim\u034f L\u3164ee"}).status_code == 303
    [student] = classroom.store.roster.students(classroom.course)
    assert (student.name, student.joined_at is not None) == ("Kim Lee", True)


def test_a_name_of_ones_own_will_do(classroom: Classroom) -> None:
    activity = classroom.open()
    assert classroom.school.browser().post(f"/join/{activity.join_code}", data={"name": " "}).status_code == 422
    browser = classroom.school.browser()
    browser.post(f"/join/{activity.join_code}", data={"name": "<b>Kim</b>"})
    assert "&lt;b&gt;Kim&lt;/b&gt;" in browser.get("/mine").text
    again = classroom.school.browser().post(f"/join/{activity.join_code}", data={"name": "<B>KIM</B>"})
    assert again.status_code == 422
    assert "has already joined" in again.text


@pytest.mark.parametrize("known", [False, True], ids=["a new browser", "a browser that has practised"])
def test_joining_pressed_twice_is_one_student(app_on_each_database: FastAPI, known: bool) -> None:
    classroom = Classroom(app_on_each_database, sheets=None)
    path = f"/join/{classroom.open().join_code}"
    visitor = classroom.store.add_visitor() if known else None
    browsers = [classroom.school.browser(visitor=visitor) for _ in range(4)]
    newcomer = Page(browsers[0].get(path).text).find("input", name="form_secret")[0][0]["value"]
    with ThreadPoolExecutor(4) as pool:
        pressed = [
            pool.submit(browser.post, path, data={"form_secret": newcomer, "name": "Kim"}) for browser in browsers
        ]
    answers = [one.result() for one in pressed]
    assert [answer.status_code for answer in answers] == [303] * 4
    codes = set(map(resume_code, browsers))
    assert len(codes) == 1
    assert len({answer.cookies["attention_shapes"] for answer in answers}) == 1
    assert [student.name for student in classroom.store.roster.students(classroom.course)] == ["Kim"]
    browsers[0].post(path, data={"form_secret": newcomer, "name": "Lou"})  # the page was gone back to, by somebody else
    assert "Joined as Lou." in text_of(browsers[0].get("/mine").text)
    assert resume_code(browsers[0]) not in codes
    other = Page(browsers[0].get(path).text).find("input", name="form_secret")[0][0]["value"]
    assert other != newcomer
    assert classroom.school.browser().post(path, data={"form_secret": other, "name": "Kim"}).status_code == 422


def test_a_second_activity_of_the_course_knows_the_student(classroom: Classroom) -> None:
    classroom.open()
    other = classroom.open()
    kim, browser = classroom.join()
    assert "Continue as Kim" in browser.get(f"/join/{other.join_code}").text
    answer = browser.post(f"/join/{other.join_code}", data={"stay": "yes"})
    assert answer.headers["location"] == f"/class/{other.id}"
    assert [seen.student_id for seen in classroom.store.classwork.attendance(other.id)] == [kim.id]


def test_codes_cannot_be_guessed_quickly(classroom: Classroom) -> None:
    activity = classroom.open()
    kim, _ = classroom.join()
    codes = {"join": activity.join_code, "resume": classroom.store.roster.renew_code(kim)}
    browser, limits = classroom.school.browser(), classroom.school.services.limits
    with classroom.store.engine.connect() as connection:
        count = connection.scalar(sa.select(sa.func.count()).select_from(visitors))
    kinds: tuple[tuple[str, Limit], ...] = (("/join", "join"), ("/resume", "resume"))
    for path, kind in kinds:
        for _ in range(int(BUCKETS[kind].size) - 3):
            limits.record_failure(kind, "testclient")
        for _ in range(3):
            assert browser.post(path, data={"code": "AAAAAAAAAA"}).status_code in (404, 422)
        answer = browser.post(path, data={"code": "AAAAAAAAAA"})
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0
        with classroom.store.engine.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(visitors)) == count
        assert browser.get(f"/join/{activity.join_code}").status_code == 200
    for path, kind in kinds:
        assert browser.post(path, data={"code": codes[kind]}).status_code == 303


@pytest.mark.parametrize("code", ["", "\x00", "é" * 50, "A" * 10_000, "../..", "AAAAAA"])
def test_what_is_no_code_gets_a_sentence(classroom: Classroom, code: str) -> None:
    assert classroom.school.browser().post("/join", data={"code": code}).status_code == 404
    assert classroom.school.browser().post("/resume", data={"code": code}).status_code == 422


def test_a_freed_name_can_be_taken_again(classroom: Classroom) -> None:
    activity = classroom.open()
    kim, browser = classroom.join()
    press(browser, activity, "check", HALF)
    classroom.instructor.post(f"/courses/{classroom.course.id}/students/{kim.id}/free")
    assert browser.get(f"/class/{activity.id}/1").status_code == 404
    other = classroom.school.browser()
    other.post(f"/join/{activity.join_code}", data={"name": kim.name})
    assert Page(other.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"


def test_part_of_a_name_of_somebody_who_has_joined_makes_nobody_new_unasked(classroom: Classroom) -> None:
    activity = classroom.activity = classroom.open()
    classroom.student("Amara Sample")
    browser, roster = classroom.school.browser(), classroom.store.roster
    asked = browser.post(f"/join/{activity.join_code}", data={"name": "Amara"})
    assert asked.status_code == 422
    page = Page(asked.text)
    assert page.text("p", class_="problem")
    assert "Amara Sample" not in asked.text
    assert page.find("button", name="new")
    assert len(roster.students(classroom.course)) == 1
    joined = browser.post(f"/join/{activity.join_code}", data={"name": "Amara", "new": "yes"})
    assert joined.status_code == 303
    assert len(roster.students(classroom.course)) == 2
