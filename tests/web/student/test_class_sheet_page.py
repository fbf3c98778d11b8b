"""A class: instructors make activities, students come in, work, hand in, and see what the rules let them see."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store import Activity, Plan, Policies, Student
from app.store.tables import attempts, drafts
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.rate_limits import BUCKETS, Limit
from tests.helpers.answer_keys import KEY
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.html_page import Page
from tests.helpers.runs import finished_run
from tests.helpers.school import Classroom, School

HALF = {**dict.fromkeys(KEY, ""), "input.rows": "100", "queries.columns": "4096"}
FORM = {
    "title": "Week 3", "worksheet": ["llama-7b"], "ticket": "classic", "ticket_anonymous": "yes", "variants": "same",
    "feedback": "at_once", "run": "after", "follow_share": "50", "tries": "", "hints": "yes", "opens": "", "closes": "",
    "day": "2026-03-31",
}  # fmt: skip


@pytest.fixture
def classroom(app: FastAPI) -> Classroom:
    """A course without an activity, in an app that has counted no wrong guesses yet."""
    School(app).services.limits.forget()
    return Classroom(app, sheets=None)


def send(browser: TestClient, activity: Activity, what: str, answers: dict[str, str], **more: str) -> Any:
    """A press of a button on the first sheet; the form's id is taken from the page unless one is given."""
    address = f"/class/{activity.id}/1"
    form_id = more.pop("form_id", None) or Page(browser.get(address).text).find("input", name="form_id")[0][0]["value"]
    return browser.post(f"{address}/{what}", data={**answers, "form_id": form_id, "version": "7", **more})


def tries(classroom: Classroom, activity: Activity) -> list[tuple[bool, float]]:
    return [(found.handed_in, found.score) for found in classroom.store.classwork.tries_of_activity(activity.id)]


# Making an activity


def test_an_activity_is_made_opened_and_closed(classroom: Classroom) -> None:
    """The form makes a draft; opening lets students in with the code and its picture; closing ends it."""
    made = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=FORM)
    page = Page(classroom.instructor.get(made.headers["location"]).text)
    assert page.text("h1") == "Week 3"
    assert "Draft" in page.text("p", class_="phase")
    code = page.text("p", class_="code")
    assert re.fullmatch(r"[A-Z]{6}", code)
    student = classroom.school.browser()
    assert student.post("/join", data={"code": code}).status_code == 404
    classroom.instructor.post(f"{made.headers['location']}/open")
    assert student.post("/join", data={"code": code.lower()}).headers["location"] == f"/join/{code}"
    picture = classroom.instructor.get(f"{made.headers['location']}/qr.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "<svg" in picture.text
    assert "<script" not in picture.text
    classroom.instructor.post(f"{made.headers['location']}/close")
    assert Page(classroom.instructor.get(made.headers["location"]).text).text("p", class_="phase") == "Closed"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": " "}, "A title is needed"),
        ({"worksheet": [], "ticket": ""}, "at least one worksheet, or an exit ticket"),
        ({"worksheet": ["nonsense"]}, "There is no worksheet “nonsense”"),
        ({"worksheet": ["llama-7b", "llama-7b"]}, "once"),
        ({"tries": "0"}, "Tries: a whole number from 1 to 99"),
        ({"tries": "many"}, "Tries: a whole number"),
        ({"follow_share": "101"}, "from 0 to 100"),
        ({"feedback": "never"}, "“feedback”"),
        ({"day": "tomorrow"}, "“tomorrow” is no day"),
        ({"opens": "soon"}, "“soon” is no time"),
        ({"opens": "2026-03-31T10:00", "closes": "2026-03-31T10:00"}, "must come after"),
        ({"closes": "0001-01-01T00:00"}, "is no time"),
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
    send(kim, activity, "check", HALF)
    classroom.instructor.post(f"/activities/{activity.id}", data={**FORM, "title": "Week 4"})
    assert classroom.school.reload(activity).revision == 1
    classroom.instructor.post(f"/activities/{activity.id}", data={**FORM, "worksheet": ["qwen2.5-0.5b"]})
    assert classroom.school.reload(activity).revision == 2
    assert "Qwen2.5" in Page(kim.get(f"/class/{activity.id}/1").text).text("h1")
    [kept] = classroom.store.classwork.tries_of_activity(activity.id)
    assert (kept.revision, kept.answers["queries.columns"]) == (1, "4096")
    classroom.instructor.post(f"/activities/{activity.id}", data=FORM)
    assert Page(kim.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"


# Coming in


def test_a_student_picks_a_name_works_and_comes_back(classroom: Classroom) -> None:
    """From the roster; the resume code, shown once, opens the same work in another browser; the name is taken then."""
    classroom.instructor.post(f"/courses/{classroom.course.id}/students", data={"roster": "Kim Lee, 17\nLou Ray, 18"})
    activity = classroom.open()
    first, second, third = (classroom.school.browser() for _ in range(3))
    page = Page(first.get(f"/join/{activity.join_code}").text)
    kim = next(attrs["value"] for attrs, text in page.find("option") if text == "Kim Lee")
    joined = Page(first.post(f"/join/{activity.join_code}", data={"student": kim}).text)
    assert joined.text("h1") == "You are in, Kim Lee"
    code = joined.text("p", class_="code")
    send(first, activity, "save", HALF)
    assert "Kim Lee" not in [text for _, text in Page(second.get(f"/join/{activity.join_code}").text).find("option")]
    for typed in ({"name": "kim lee"}, {"student": kim}):
        assert second.post(f"/join/{activity.join_code}", data=typed).status_code == 422
    assert third.post("/resume", data={"code": code.lower()}).headers["location"] == "/mine"
    assert Page(third.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"
    assert "Kim Lee" in third.get("/mine").text


def test_a_name_of_ones_own_will_do(classroom: Classroom) -> None:
    """Without a roster any name joins, once; without a name nobody does; markup stays text."""
    activity = classroom.open()
    assert classroom.school.browser().post(f"/join/{activity.join_code}", data={"name": " "}).status_code == 422
    answer = classroom.school.browser().post(f"/join/{activity.join_code}", data={"name": "<b>Kim</b>"})
    assert "&lt;b&gt;Kim&lt;/b&gt;" in answer.text
    again = classroom.school.browser().post(f"/join/{activity.join_code}", data={"name": "<B>KIM</B>"})
    assert again.status_code == 422
    assert "has joined already" in again.text


@pytest.mark.parametrize("known", [False, True], ids=["a new browser", "a browser that has practised"])
def test_joining_pressed_twice_is_one_student(app_on_each_database: FastAPI, known: bool) -> None:
    """Four times the same form at the same moment: one student, one code, one browser; another form is another Kim."""
    classroom = Classroom(app_on_each_database, sheets=None)
    path = f"/join/{classroom.open().join_code}"
    learner = classroom.store.add_learner() if known else None
    browsers = [classroom.school.browser(learner=learner) for _ in range(4)]
    newcomer = Page(browsers[0].get(path).text).find("input", name="form_secret")[0][0]["value"]
    with ThreadPoolExecutor(4) as pool:
        pressed = [
            pool.submit(browser.post, path, data={"form_secret": newcomer, "name": "Kim"}) for browser in browsers
        ]
    answers = [one.result() for one in pressed]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({Page(answer.text).text("p", class_="code") for answer in answers}) == 1
    assert len({answer.cookies["attention_shapes"] for answer in answers}) == 1
    assert [student.name for student in classroom.store.courses.students(classroom.course)] == ["Kim"]
    back = browsers[0].post(path, data={"form_secret": newcomer, "name": "Lou"})
    assert Page(back.text).text("h1") == "You are in, Lou"  # the page was gone back to, by somebody else
    assert Page(back.text).text("p", class_="code") != Page(answers[0].text).text("p", class_="code")
    other = Page(browsers[0].get(path).text).find("input", name="form_secret")[0][0]["value"]
    assert other != newcomer
    assert classroom.school.browser().post(path, data={"form_secret": other, "name": "Kim"}).status_code == 422


def test_a_second_activity_of_the_course_knows_the_student(classroom: Classroom) -> None:
    """Its code offers to go on under the same name."""
    classroom.open()
    other = classroom.open()
    kim, browser = classroom.join()
    assert "Go on as Kim" in browser.get(f"/join/{other.join_code}").text
    answer = browser.post(f"/join/{other.join_code}", data={"stay": "yes"})
    assert answer.headers["location"] == f"/class/{other.id}"
    assert [seen.student_id for seen in classroom.store.classwork.attendance(other.id)] == [kim.id]


def test_codes_cannot_be_guessed_quickly(classroom: Classroom) -> None:
    """After three hundred wrong join or resume codes of one address, all but three sent before, it has to wait: 429."""
    browser, limits = classroom.school.browser(), classroom.school.services.limits
    kinds: tuple[tuple[str, Limit], ...] = (("/join", "join"), ("/resume", "resume"))
    for path, kind in kinds:
        for _ in range(int(BUCKETS[kind].size) - 3):
            limits.record_failure(kind, "testclient")
        for _ in range(3):
            assert browser.post(path, data={"code": "AAAAAAAAAA"}).status_code in (404, 422)
        answer = browser.post(path, data={"code": "AAAAAAAAAA"})
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("code", ["", "\x00", "é" * 50, "A" * 10_000, "../..", "AAAAAA"])
def test_what_is_no_code_gets_a_sentence(classroom: Classroom, code: str) -> None:
    """Never more than that."""
    assert classroom.school.browser().post("/join", data={"code": code}).status_code == 404
    assert classroom.school.browser().post("/resume", data={"code": code}).status_code == 422


def test_a_freed_name_can_be_taken_again(classroom: Classroom) -> None:
    """The instructor frees it: the browser that sat there is out, and another can pick it, with the work."""
    activity = classroom.open()
    kim, browser = classroom.join()
    send(browser, activity, "check", HALF)
    classroom.instructor.post(f"/courses/{classroom.course.id}/students/{kim.id}/free")
    assert browser.get(f"/class/{activity.id}/1").status_code == 404
    other = classroom.school.browser()
    other.post(f"/join/{activity.join_code}", data={"student": str(kim.id)})
    assert Page(other.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"


def test_somebody_can_leave_a_browser(classroom: Classroom) -> None:
    """Afterwards it knows nobody, and the work is still the student's."""
    activity = classroom.open()
    kim, browser = classroom.join()
    send(browser, activity, "save", HALF)
    browser.post(f"/mine/{kim.id}/leave")
    assert "have not joined" in browser.get("/mine").text
    assert classroom.store.courses.find_student(kim.id) == kim


# Working


def test_a_sheet_is_saved_checked_and_handed_in(classroom: Classroom) -> None:
    """Save keeps what was typed; check marks it; hand in of the same answers makes that try the one handed in."""
    activity = classroom.open()
    kim, browser = classroom.join()
    assert "<svg" in send(browser, activity, "save", HALF).text
    assert tries(classroom, activity) == []
    page = Page(send(browser, activity, "check", HALF).text)
    assert page.text("p", class_="result") == "1 of 14 boxes are right, 12 still empty."
    assert page.marks()["queries.columns"] == "wrong"
    assert tries(classroom, activity) == [(False, 1)]
    send(browser, activity, "hand-in", HALF)
    assert tries(classroom, activity) == [(True, 1)]
    send(browser, activity, "hand-in", KEY)
    assert tries(classroom, activity) == [(True, 1), (True, 14)]
    [first, _] = classroom.store.classwork.tries_of_activity(activity.id)
    assert first.marks["queries.columns"] == "wrong"
    assert (first.student_id, first.item, first.variant.model, first.variant.tokens) == (kim.id, 0, "llama-7b", 100)


def test_misconceptions_are_kept_with_the_try(classroom: Classroom) -> None:
    """Queries, keys and values as wide as the model: the misconception that explains the sheet is stored by its key."""
    activity = classroom.open()
    _, browser = classroom.join()
    wide = {**KEY, "queries.columns": "4096", "keys.columns": "4096", "values.columns": "4096"}
    page = Page(send(browser, activity, "check", wide).text)
    [kept] = classroom.store.classwork.tries_of_activity(activity.id)
    assert len(kept.misconceptions) >= 1
    assert page.text("p", class_="diagnosis")


@pytest.mark.parametrize("what", ["check", "hand-in"])
def test_a_request_that_is_sent_again_stores_once(classroom: Classroom, what: str) -> None:
    """The same form three times is one try; the same form with other answers is another."""
    activity = classroom.open(tries=2)
    _, browser = classroom.join()
    for _ in range(3):
        assert send(browser, activity, what, HALF, form_id="one-form-of-a-page").status_code == 200
    assert len(tries(classroom, activity)) == 1
    send(browser, activity, what, KEY, form_id="one-form-of-a-page")
    assert len(tries(classroom, activity)) == 2


def test_tries_are_limited(classroom: Classroom) -> None:
    """Of two tries the third is refused with a sentence, the boxes are locked, and the last can be handed in."""
    activity = classroom.open(tries=2)
    _, browser = classroom.join()
    assert "One try left" in send(browser, activity, "check", HALF).text
    page = Page(send(browser, activity, "check", {**HALF, "keys.rows": "100"}).text)
    assert all("readonly" in attrs for attrs, _ in page.find("input") if "data-blank" in attrs)
    assert [text for _, text in page.find("button")].count("Check") == 0
    third = Page(send(browser, activity, "check", KEY).text)
    assert third.text("p", class_="result").startswith("There is no try left.")
    send(browser, activity, "hand-in", KEY)
    assert tries(classroom, activity) == [(False, 1), (True, 2)]


def test_hints_are_given_where_the_activity_has_them(classroom: Classroom) -> None:
    """On what was checked, without costing a try; 409 before a check, and where there are none."""
    _, browser = classroom.join()
    wide = {**KEY, "queries.columns": "4096", "keys.columns": "4096", "values.columns": "4096"}
    activity, without = classroom.open(tries=3), classroom.open(hints=False)
    assert send(browser, activity, "hint", wide).status_code == 409
    for one in (activity, without):
        page = Page(send(browser, one, "check", wide).text)
        assert ("Hint" in [text for _, text in page.find("button")]) == (one is activity)
    assert send(browser, without, "hint", wide).status_code == 409
    page = Page(send(browser, activity, "hint", wide, hint="3").text)
    assert page.text("p", class_="hint")
    assert len(page.find("td", class_="hinted")) == 3
    assert len(tries(classroom, activity)) == 1


def test_nothing_typed_is_no_try(classroom: Classroom) -> None:
    """Check of an empty sheet says so and costs nothing."""
    activity = classroom.open(tries=1)
    _, browser = classroom.join()
    answer = send(browser, activity, "check", dict.fromkeys(KEY, ""))
    assert "nothing to mark yet" in answer.text
    assert tries(classroom, activity) == []


def test_an_older_save_does_not_cover_a_newer_one(classroom: Classroom) -> None:
    """A save held up on the way, with an older clock, changes nothing."""
    activity = classroom.open()
    _, browser = classroom.join()
    send(browser, activity, "save", {**HALF, "keys.rows": "new"}, version="9")
    send(browser, activity, "save", {**HALF, "keys.rows": "old"}, version="8")
    assert Page(browser.get(f"/class/{activity.id}/1").text).boxes()["keys.rows"] == "new"


@pytest.mark.parametrize(
    ("feedback", "checked", "handed_in", "closed"),
    [
        ("at_once", "wrong", "wrong", "wrong"),
        ("after_hand_in", None, "wrong", "wrong"),
        ("after_close", None, None, "wrong"),
    ],
)
def test_marks_are_shown_when_the_rules_say(
    classroom: Classroom, feedback: str, checked: str | None, handed_in: str | None, closed: str | None
) -> None:
    """After a check, after handing in, after closing: the mark of a wrong box, or none; "your work" agrees."""
    activity = classroom.open(feedback=feedback)
    _, browser = classroom.join()

    def seen() -> tuple[str | None, bool]:
        page = Page(browser.get(f"/class/{activity.id}/1").text)
        return page.marks().get("queries.columns"), "1 of 14" in browser.get("/mine").text

    refused = send(browser, activity, "check", HALF).status_code == 409
    assert refused == (feedback != "at_once")
    assert seen() == (checked, checked is not None)
    send(browser, activity, "hand-in", HALF)
    assert seen() == (handed_in, handed_in is not None)
    classroom.instructor.post(f"/activities/{activity.id}/close")
    assert seen() == (closed, closed is not None)


def test_answers_come_after_closing_and_not_before(classroom: Classroom) -> None:
    """The page holds no right number of a box that was not typed, until the activity has closed."""
    activity = classroom.open()
    _, browser = classroom.join()
    send(browser, activity, "hand-in", HALF)
    assert not Page(browser.get(f"/class/{activity.id}/1").text).find("tr", class_="answer")
    classroom.instructor.post(f"/activities/{activity.id}/close")
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    assert len(page.find("tr", class_="answer")) == 7
    assert not page.find("form", data_keep="")


def test_what_follows_is_worth_the_share_of_the_activity(classroom: Classroom) -> None:
    """One mistake carried through the sheet: with a share of nothing and of all, the score differs by those boxes."""
    carried = {blank: "50" if text == "100" else text for blank, text in KEY.items()}
    scores = list[float]()
    for number, share in enumerate((0.0, 1.0)):
        activity = classroom.open(follow_share=share)
        _, browser = classroom.join(f"S{number}")
        send(browser, activity, "hand-in", carried)
        scores.append(tries(classroom, activity)[0][1])
    assert scores[1] > scores[0]


def test_a_closed_activity_takes_nothing_in(classroom: Classroom) -> None:
    """409 with a sentence for save, check, hand in and ticket, half a minute after its closing time and no sooner."""
    activity = classroom.open()
    _, browser = classroom.join()

    def statuses() -> set[int]:
        found = {send(browser, activity, what, HALF).status_code for what in ("save", "check", "hand-in")}
        return found | {browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": "x"}).status_code}

    store = classroom.store.activities
    store.change(activity, replace(activity.plan, closes_at=datetime.now(UTC) - timedelta(seconds=5)))
    assert statuses() == {200, 303}
    store.change(activity, replace(activity.plan, closes_at=datetime.now(UTC) - timedelta(seconds=40)))
    before = len(tries(classroom, activity))
    assert {send(browser, activity, what, KEY).status_code for what in ("save", "check", "hand-in")} == {409}
    _, late = classroom.join("Late")
    assert late.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": "x"}).status_code == 409
    assert len(tries(classroom, activity)) == before


def test_before_its_time_an_activity_waits(classroom: Classroom) -> None:
    """Students may join, and are told when it opens; the sheet is not shown."""
    opens = datetime.now(UTC) + timedelta(hours=1)
    activity = classroom.school.activity(classroom.course, None, ("llama-7b",), "classic", Plan("Soon", opens_at=opens))
    _, browser = classroom.join()
    assert "It opens" in browser.get(f"/class/{activity.id}").text
    assert browser.get(f"/class/{activity.id}/1").headers["location"] == f"/class/{activity.id}"
    assert send(browser, activity, "save", HALF, form_id="x" * 10).status_code == 409


def test_each_student_may_have_numbers_of_their_own(classroom: Classroom) -> None:
    """Five students have two lengths at least, each always the same, and a sheet is marked by its own."""
    activity = classroom.open(variants="per_student")
    lengths = list[str]()
    for number in range(5):
        _, browser = classroom.join(f"S{number}")
        pages = [Page(browser.get(f"/class/{activity.id}/1").text) for _ in range(2)]
        [one, two] = [page.find("input", name="tokens")[0][0]["value"] for page in pages]
        assert one == two
        lengths.append(one)
        right = {blank: text if text != "100" else one for blank, text in KEY.items()}
        assert "All 14 boxes are right." in send(browser, activity, "hand-in", right).text
    assert len(set(lengths)) >= 2
    kept = classroom.store.classwork.tries_of_activity(activity.id)
    assert [str(found.variant.tokens) for found in kept] == lengths


def test_both_lengths_of_a_cross_attention_sheet_are_a_students_own(classroom: Classroom) -> None:
    """Queries have a row for each token of the decoder, keys one for each of the encoder, as the page says them."""
    activity = classroom.school.activity(classroom.course, Policies("per_student"), ("cross-t5-small",), "")
    for number in range(4):
        _, browser = classroom.join(f"S{number}")
        text = Page(browser.get(f"/class/{activity.id}/1").text).text("div", class_="intro")
        said = re.search(r"encoder has turned ([\d,]+) tokens into vectors. The decoder has ([\d,]+) tokens", text)
        assert said
        answers = {"queries.rows": said[2], "keys.rows": said[1]}
        marks = Page(send(browser, activity, "check", answers).text).marks()
        assert (marks["queries.rows"], marks["keys.rows"]) == ("right", "right")
        kept = classroom.store.classwork.tries_of_activity(activity.id)[-1]
        assert (str(kept.variant.decoder_tokens), str(kept.variant.tokens)) == (said[2], said[1])


def test_a_student_sees_their_own_work_alone(classroom: Classroom) -> None:
    """Two students of one activity: neither page holds what the other typed."""
    activity = classroom.open()
    _, kim = classroom.join("Kim")
    _, lou = classroom.join("Lou")
    send(kim, activity, "save", {**HALF, "keys.rows": "31337"})
    for path in (f"/class/{activity.id}/1", f"/class/{activity.id}", "/mine"):
        assert "31337" not in lou.get(path).text
        assert "Kim" not in lou.get(path).text


def test_without_script_the_forms_work(classroom: Classroom) -> None:
    """A plain form gets the whole page, a script the sheet alone."""
    activity = classroom.open()
    _, browser = classroom.join()
    assert send(browser, activity, "check", HALF).text.startswith("<!doctype html>")
    browser.headers["HX-Request"] = "true"
    assert send(browser, activity, "check", KEY, form_id="another-form").text.startswith("<form")


# The exit ticket


@pytest.mark.parametrize("anonymous", [True, False])
def test_an_exit_ticket_is_handed_in_once(classroom: Classroom, anonymous: bool) -> None:
    """The page says whether names are kept; what is kept agrees; a second one, or the same again, changes nothing."""
    activity = classroom.open(ticket_anonymous=anonymous)
    kim, browser = classroom.join()
    page = Page(browser.get(f"/class/{activity.id}/ticket").text)
    assert ("Anonymous" in page.text("p", class_="remark")) == anonymous
    assert ("Kim" in page.text("p", class_="remark")) != anonymous
    assert len(page.find("textarea")) == 5
    form_id = page.find("input", name="form_id")[0][0]["value"]
    empty = browser.post(f"/class/{activity.id}/ticket", data={"form_id": form_id, "answer-muddiest": " "})
    assert (empty.status_code, "at least one answer" in empty.text) == (422, True)
    for text in ("why √d?", "why √d?", "another"):
        answer = browser.post(f"/class/{activity.id}/ticket", data={"form_id": form_id, "answer-muddiest": text})
        assert answer.status_code == 303
    [kept] = classroom.store.classwork.tickets(activity.id)
    assert (kept.question, kept.text, kept.student_id) == ("muddiest", "why √d?", None if anonymous else kim.id)
    assert "Handed in" in browser.get(f"/class/{activity.id}/ticket").text


def test_an_activity_can_be_an_exit_ticket_alone(classroom: Classroom) -> None:
    """Then it opens with the ticket; one without a ticket has none."""
    alone = classroom.school.activity(classroom.course, sheets=())
    without = classroom.school.activity(classroom.course, sheets=("llama-7b",), ticket="")
    _, browser = classroom.join()
    assert browser.get(f"/class/{alone.id}").headers["location"] == f"/class/{alone.id}/ticket"
    assert browser.get(f"/class/{alone.id}/1").status_code == 404
    assert browser.get(f"/class/{without.id}").headers["location"] == f"/class/{without.id}/1"
    assert browser.get(f"/class/{without.id}/ticket").status_code == 404


# Running the head from a sheet of the class


@pytest.fixture
def kim(client: TestClient) -> tuple[School, TestClient, Student]:
    """A student in an app that loads no torch."""
    school = School(client.app)  # type: ignore[arg-type]  # it is the app itself
    course = school.course("Transformers", school.teacher("ada@example.org"))
    student, learner = school.student(course, "Kim")
    client.cookies.set(VISITOR_COOKIE, learner.token)
    return school, client, student


def test_a_head_is_run_from_class_as_the_rules_say_and_is_no_practice(
    kim: tuple[School, TestClient, Student], runner: FakeRunner
) -> None:
    """After a try there: a run beside what is typed, which is kept as a draft of the class; it leads back there."""
    school, browser, student = kim
    course = school.store.courses.find(student.course_id)
    assert course
    activity = school.activity(course, Policies(run="after", feedback="at_once"), ("llama-7b",))
    sheet = f"/class/{activity.id}/1"
    refused = browser.post(f"{sheet}/run", data=HALF)
    assert refused.status_code == 409
    assert "after a try of your own" in refused.text
    assert "start-run" not in browser.get(sheet).text
    send(browser, activity, "check", HALF)
    button = Page(browser.get(sheet).text).find("button", id="start-run")[0][0]
    assert button["formaction"] == button["hx-post"] == f"{sheet}/run"
    text = finished_run(browser, {**HALF, "queries.rows": "99", "version": "8"}, button["hx-post"])
    again = finished_run(browser, {"device": "meta"}, Page(text).find("form")[0][0]["action"])
    for shown in (text, again):
        assert f'href="{sheet}"' in shown
        assert "/sheet?" not in shown
        assert "99" in next(row for _, row in Page(shown).find("tr") if row.startswith("QQueries"))
    assert len(runner.calls) == 2
    assert Page(browser.get(sheet).text).find("input", name="queries.rows")[0][0]["value"] == "99"
    assert len(school.store.classwork.tries_of_activity(activity.id)) == 1
    with school.store.engine.connect() as connection:
        for table in (attempts, drafts):
            assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0


def test_where_a_head_may_be_run_before_a_try_something_must_be_written(
    kim: tuple[School, TestClient, Student], runner: FakeRunner
) -> None:
    """An empty sheet is not given away, and neither is one that has not opened; a first number is enough."""
    school, browser, student = kim
    course = school.store.courses.find(student.course_id)
    assert course
    activity = school.activity(course, Policies(run="before"), ("llama-7b",))
    sheet = f"/class/{activity.id}/1"
    assert "Write what you expect in at least one row first" in browser.post(f"{sheet}/run", data={}).text
    assert runner.calls == []
    finished_run(browser, HALF, f"{sheet}/run")
    later = Plan("Week 4", None, Policies(run="before"), datetime.now(UTC) + timedelta(hours=1))
    waiting = school.activity(course, sheets=("llama-7b",), plan=later)
    assert browser.post(f"/class/{waiting.id}/1/run", data=HALF).status_code == 409
    assert len(runner.calls) == 1
