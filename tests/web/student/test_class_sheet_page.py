"""A student's sheet in an activity: saved, checked, handed in, and marked when the activity's rules say so."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.activities.activity import GRACE, SETTLING_TIME
from app.classes.auto_submit import AutoSubmitter
from app.grading.grade import grade
from app.store import Activity, Plan, Policies
from app.web.shared.fair_limiter import FairLimiter
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF, attempts_in, press
from tests.helpers.clock import Clock, end_activity
from tests.helpers.html_page import Page, kept_in
from tests.helpers.running_activity import counted_statements
from tests.helpers.school import SCRIPT, Browser, Classroom


def can_type(page: Page) -> bool:
    """Whether the sheet on a page is kept while it is typed in."""
    return any("data-keep" in attributes for attributes, _ in page.find("form"))


def test_a_sheet_is_saved_checked_and_handed_in(classroom: Classroom) -> None:
    activity = classroom.open()
    kim, browser = classroom.join()
    assert "<svg" in press(browser, activity, "save", HALF).text
    assert attempts_in(classroom, activity) == []
    assert can_type(Page(browser.get(f"/class/{activity.id}/1").text))
    page = Page(press(browser, activity, "check", HALF).text)
    assert page.text("p", class_="result") == "1 of 14 right · 12 empty. Look again: Q"
    assert page.marks()["queries.columns"] == "wrong"
    assert attempts_in(classroom, activity) == [(False, 1)]
    press(browser, activity, "hand-in", HALF)
    assert attempts_in(classroom, activity) == [(True, 1)]
    press(browser, activity, "hand-in", KEY)
    assert attempts_in(classroom, activity) == [(True, 1), (True, 14)]
    [first, _] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert first.marks["queries.columns"] == "wrong"
    assert (first.student_id, first.sheet_number) == (kim.id, 1)
    assert (first.variant.model, first.variant.tokens) == ("llama-7b", 100)


def test_misconceptions_are_kept_with_the_attempt(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    wide = {**KEY, "queries.columns": "4096", "keys.columns": "4096", "values.columns": "4096"}
    page = Page(press(browser, activity, "check", wide).text)
    [kept] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert len(kept.misconceptions) >= 1
    assert page.text("p", class_="diagnosis")


@pytest.mark.parametrize("what", ["check", "hand-in"])
def test_a_request_that_is_sent_again_stores_once(classroom: Classroom, what: str) -> None:
    activity = classroom.open(max_attempts=2)
    _, browser = classroom.join()
    for _ in range(3):
        assert press(browser, activity, what, HALF, form_id="one-form-of-a-page").status_code == 200
    assert len(attempts_in(classroom, activity)) == 1
    press(browser, activity, what, KEY, form_id="one-form-of-a-page")
    assert len(attempts_in(classroom, activity)) == 2


def test_attempts_are_limited(classroom: Classroom) -> None:
    """After two attempts the third is refused with a sentence, the boxes are locked, and the last can be handed in."""
    activity = classroom.open(max_attempts=2)
    _, browser = classroom.join()
    assert "1 attempt left" in press(browser, activity, "check", HALF).text
    page = Page(press(browser, activity, "check", {**HALF, "keys.rows": "100"}).text)
    assert all("readonly" in attrs for attrs, _ in page.find("input") if "data-blank" in attrs)
    assert [text for _, text in page.find("button")].count("Check") == 0
    third = Page(press(browser, activity, "check", KEY).text)
    assert third.text("p", class_="result").startswith("You have no attempts left.")
    press(browser, activity, "hand-in", KEY)
    assert attempts_in(classroom, activity) == [(False, 1), (True, 2)]


def test_hints_are_given_where_the_activity_has_them(classroom: Classroom) -> None:
    _, browser = classroom.join()
    wide = {**KEY, "queries.columns": "4096", "keys.columns": "4096", "values.columns": "4096"}
    activity, without = classroom.open(max_attempts=3), classroom.open(hints=False)
    assert press(browser, activity, "hint", wide).status_code == 409
    for one in (activity, without):
        page = Page(press(browser, one, "check", wide).text)
        assert ("Hint" in [text for _, text in page.find("button")]) == (one is activity)
    assert press(browser, without, "hint", wide).status_code == 409
    page = Page(press(browser, activity, "hint", wide, hint="3").text)
    assert page.text("p", class_="hint")
    assert len(page.find("td", class_="hinted")) == 3
    assert len(attempts_in(classroom, activity)) == 1


def test_without_hints_a_drawing_says_nothing_of_what_does_not_fit(classroom: Classroom) -> None:
    policies = Policies(hints=False, feedback="after_close")
    activity = classroom.school.activity(classroom.course, policies, ("decode-gpt2",))
    _, browser = classroom.join()
    typed = {"output.rows": "1", "output.columns": "769", "queries.columns": "64", "keys.columns": "65"}
    saved = press(browser, activity, "save", typed).text
    assert "<figure" in saved
    assert not re.search("≠|mismatch|needed", saved)
    classroom.store.activities.change(activity, replace(activity.plan, policies=replace(policies, hints=True)))
    assert "769 ≠ 768" in press(browser, activity, "save", typed).text


@pytest.mark.parametrize(
    ("policies", "while_open"), [({}, 1), ({"hints": False}, 0), ({"exam": True}, 0), ({"feedback": "after_close"}, 0)]
)
def test_a_right_row_says_why_where_hints_are_given(
    classroom: Classroom, policies: dict[str, Any], while_open: int
) -> None:
    activity = classroom.open(**policies)
    _, browser = classroom.join()
    half = {**HALF, "scores.rows": "100", "scores.columns": "100"}
    press(browser, activity, "hand-in", half)
    assert len(Page(browser.get(f"/class/{activity.id}/1").text).find("details", class_="why")) == while_open
    end_activity(classroom.store, activity.id)
    assert len(Page(browser.get(f"/class/{activity.id}/1").text).find("p", class_="why")) == 7


def test_under_exam_conditions_nothing_helps_until_the_activity_closes(classroom: Classroom) -> None:
    activity = classroom.open(exam=True, run="before")
    _, browser = classroom.join()
    wide = {**KEY, "queries.columns": "4096", "keys.columns": "4096", "values.columns": "4096"}
    assert "<figure" not in press(browser, activity, "save", wide).text
    checked = press(browser, activity, "check", wide).text
    page, nudges = Page(checked), classroom.school.services.library.wording.topics["single-head"].nudges.values()
    assert "11 of 14" in page.text("p", class_="result")
    assert not [sentence for sentence in nudges if sentence in checked]
    assert (page.find("p", class_="diagnosis"), page.find("aside", class_="drawing")) == ([], [])
    assert not {"Hint", "Run this head"} & {text for _, text in page.find("button")}
    assert press(browser, activity, "hint", wide).status_code == 409
    assert press(browser, activity, "run", wide).status_code == 409
    classroom.school.end(activity)
    closed = Page(browser.get(f"/class/{activity.id}/1").text)
    assert closed.find("p", class_="diagnosis")
    assert closed.find("aside", class_="drawing")


@pytest.mark.parametrize("hints", [True, False])
def test_what_does_not_fit_is_said_where_there_are_hints(classroom: Classroom, hints: bool) -> None:
    activity = classroom.open(hints=hints)
    _, browser = classroom.join()
    for what in ("save", "check"):
        answer = Page(press(browser, activity, what, {**KEY, "keys.columns": "4096"}).text)
        assert bool(answer.find("p", class_="mismatch")) == hints
    classroom.school.end(activity)
    assert Page(browser.get(f"/class/{activity.id}/1").text).find("p", class_="mismatch")


def test_two_pages_merge_box_by_box(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    press(browser, activity, "save", {"keys.rows": "7"}, edits="keys.rows:pageone1:1")
    sent = {**HALF, "edits": "input.rows:pagetwo2:1 queries.columns:pagetwo2:2"}
    form = opened_form(browser, activity)
    kept = kept_in(browser.post(f"/class/{activity.id}/1/check", data={**form, **sent}, headers=SCRIPT).text)
    assert {box: text for box, text in kept["answers"].items() if text} == {
        "input.rows": "100", "queries.columns": "4096", "keys.rows": "7",
    }  # fmt: skip
    assert kept["tab_versions"] == {"pagetwo2": 2}
    [attempt] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert attempt.answers["keys.rows"] == "7"
    end_activity(classroom.store, activity.id)
    refused = browser.post(f"/class/{activity.id}/1/save", data=sent)
    assert (refused.status_code, refused.headers["x-refused"]) == (409, "closed")


@pytest.mark.parametrize("what", ["check", "hand-in"])
def test_a_box_mended_on_one_device_counts_where_the_other_hands_in(classroom: Classroom, what: str) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    typed = {**KEY, "keys.rows": "7"}
    press(browser, activity, "save", typed, edits=" ".join(f"{box}:laptop01:{i}" for i, box in enumerate(KEY, 1)))
    press(browser, activity, "save", {"keys.rows": KEY["keys.rows"]}, edits="keys.rows:phone001:1")
    for _ in range(2):
        page = Page(press(browser, activity, what, typed, edits="", form_id="as-good-as-any").text)
    assert attempts_in(classroom, activity) == [(what == "hand-in", 14)]
    assert page.find("input", name="keys.rows")[0][0]["value"] == KEY["keys.rows"]


def test_handing_in_while_a_check_is_under_way_hands_in(classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    checks = [{**KEY, "form_id": "one-and-the-same"}]

    def grade_later(*asked: Any) -> Any:
        while checks:
            assert browser.post(f"/class/{activity.id}/1/check", data=checks.pop()).status_code == 303
        return grade(*asked)

    monkeypatch.setattr("app.classes.sheet_actions.grade", grade_later)
    press(browser, activity, "hand-in", KEY, form_id="one-and-the-same")
    assert attempts_in(classroom, activity) == [(True, 14)]


def test_a_closed_sheet_shows_the_answers_that_count(classroom: Classroom) -> None:
    activity = classroom.open(auto_submit=False)
    _, browser = classroom.join()
    press(browser, activity, "hand-in", KEY)
    press(browser, activity, "save", {"keys.rows": "7"}, edits="keys.rows:pageone1:1")
    address = f"/class/{activity.id}/1"
    assert Page(browser.get(address).text).find("input", name="keys.rows")[0][0]["value"] == "7"
    end_activity(classroom.store, activity.id)
    closed = Page(browser.get(address).text)
    assert closed.find("input", name="keys.rows")[0][0]["value"] == KEY["keys.rows"]
    assert set(closed.marks().values()) == {"right"}


def test_a_form_says_which_sheet_it_was_sent_from(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    [sheet] = Page(browser.get(f"/class/{activity.id}/1").text).find("input", name="sheet")
    sent = {"keys.rows": "none before", "input.rows": sheet[0]["value"], "keys.columns": "llama@9", "scores.rows": "\0"}
    asked = list[int]()
    for number, (box, name) in enumerate(sent.items()):
        edits = f"{box}:pageone1:{number + 1}"
        with counted_statements(classroom.store) as statements:
            saved = press(browser, activity, "save", {box: "7"}, form_id="as-good-as-any", sheet=name, edits=edits)
        asked.append(len(statements))
    typed = {box: text for box, text in kept_in(saved.text)["answers"].items() if text}
    assert typed == dict.fromkeys(sent, "7")
    assert asked[2:] == [asked[1] + 1, asked[1] + 1]


@pytest.mark.parametrize(
    ("feedback", "checked", "handed_in", "closed"),
    [
        ("immediate", "wrong", "wrong", "wrong"),
        ("after_hand_in", None, "wrong", "wrong"),
    ],
)
def test_marks_are_shown_when_the_rules_say(
    classroom: Classroom, feedback: str, checked: str | None, handed_in: str | None, closed: str | None
) -> None:
    activity = classroom.open(feedback=feedback)
    _, browser = classroom.join()

    def visible_marks() -> tuple[str | None, bool]:
        page = Page(browser.get(f"/class/{activity.id}/1").text)
        return page.marks().get("queries.columns"), "1 of 14" in browser.get("/mine").text

    refused = press(browser, activity, "check", HALF).status_code == 409
    assert refused == (feedback != "immediate")
    assert visible_marks() == (checked, checked is not None)
    press(browser, activity, "hand-in", HALF)
    assert visible_marks() == (handed_in, handed_in is not None)
    classroom.school.end(activity)
    assert visible_marks() == (closed, closed is not None)


@pytest.mark.parametrize(
    ("feedback", "run", "at_first", "handed_in"),
    [
        ("immediate", "after", False, True),
        ("after_close", "before", True, True),
    ],
)
def test_a_run_which_shows_the_answers_needs_marks_that_may_be_seen(
    classroom: Classroom, feedback: str, run: str, at_first: bool, handed_in: bool
) -> None:
    activity = classroom.open(feedback=feedback, run=run)
    _, browser = classroom.join()

    def can_run() -> bool:
        offered = Page(browser.get(f"/class/{activity.id}/1").text).find("button", id="start-run")
        assert press(browser, activity, "run", HALF).status_code == (303 if offered else 409)
        return bool(offered)

    assert can_run() == at_first
    press(browser, activity, "hand-in", HALF)
    assert can_run() == handed_in
    classroom.school.end(activity)
    assert can_run()


@pytest.mark.parametrize("feedback", ["immediate", "after_hand_in", "after_close"])
def test_a_drawing_tells_no_right_number_from_a_wrong_one_before_marks_are_shown(
    classroom: Classroom, feedback: str
) -> None:
    activity = classroom.open(feedback=feedback)
    _, browser = classroom.join()

    def drawn(number: str) -> str:
        figures = press(browser, activity, "save", {"queries.columns": number}).text
        assert f">{number}<" in figures
        alone = figures.replace(f">{number}<", ">number<").replace(f'"{number}"', '"number"')
        return re.sub(r"-?[\d.]+", "0", alone)  # wherever a bracket is: a wider matrix has it at the other end

    drawings = [drawn(number) for number in ("128", "127", "129")]
    assert drawings[1] == drawings[2]
    assert (drawings[0] == drawings[1]) == (feedback != "immediate")
    classroom.school.end(activity)
    closed = Page(browser.get(f"/class/{activity.id}/1").text)
    assert closed.find("aside", class_="drawing")


def test_answers_come_after_closing_and_not_before(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    press(browser, activity, "hand-in", HALF)
    assert not Page(browser.get(f"/class/{activity.id}/1").text).find("tr", class_="answer")
    classroom.school.end(activity)
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    assert len(page.find("tr", class_="answer")) == 7
    assert not can_type(page)


def test_the_activity_decides_what_a_mistake_costs(classroom: Classroom) -> None:
    carried = {blank: "50" if text == "100" else text for blank, text in KEY.items()}
    scores = list[float]()
    for number, marking in enumerate(("causes", "boxes", "rows")):
        activity = classroom.open(marking=marking)
        _, browser = classroom.join(f"S{number}")
        press(browser, activity, "hand-in", carried)
        scores.append(attempts_in(classroom, activity)[0][1])
    assert scores == [13, 5, 0]


@pytest.mark.parametrize("by_button", [True, False])
def test_what_was_on_its_way_is_auto_submitted_before_anything_is_shown(
    classroom: Classroom, clock: Clock, by_button: bool
) -> None:
    activities = [classroom.open(feedback=feedback) for feedback in ("immediate", "after_close")]
    (_, browser), (_, late) = classroom.join(), classroom.join("Late")
    for activity in activities:
        if by_button:
            classroom.instructor.post(f"/activities/{activity.id}/close")
        classroom.store.activities.close(activity, clock.now)  # as the button does, by the clock of this test
    at_once, _ = activities
    clock.pass_seconds(29)
    for activity in activities:
        assert press(browser, activity, "save", HALF).status_code == 200
        answered = Page(press(browser, activity, "hand-in", HALF).text)
        for page in (answered, Page(browser.get(f"/class/{activity.id}/1").text)):
            assert not can_type(page)
            assert not page.find("tr", class_="answer")
            assert bool(page.marks()) == (activity is at_once)
    assert press(browser, at_once, "check", HALF).status_code == 200
    assert browser.post(f"/class/{at_once.id}/ticket", data={"answer-muddiest": "x"}).status_code == 303
    stored = [attempts_in(classroom, activity) for activity in activities]
    clock.pass_seconds(10)
    for activity in activities:
        statuses = {press(browser, activity, what, KEY).status_code for what in ("save", "check", "hand-in")}
        assert statuses == {409}
        page = Page(browser.get(f"/class/{activity.id}/1").text)
        assert (len(page.find("tr", class_="answer")), page.marks()["queries.columns"]) == (7, "wrong")
    assert late.post(f"/class/{at_once.id}/ticket", data={"answer-muddiest": "x"}).status_code == 409
    assert stored == [attempts_in(classroom, activity) for activity in activities]


def test_work_that_waits_for_its_turn_is_stored_before_drafts_are_submitted_or_not_at_all(
    classroom: Classroom, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    activity, closes = classroom.open(), clock.now
    _, browser = classroom.join()
    form, enter = opened_form(browser, activity), FairLimiter.__aenter__
    classroom.store.activities.close(activity, closes)

    async def enter_late(limiter: FairLimiter) -> None:
        await enter(limiter)
        if limiter is classroom.school.services.threads["class"]:
            clock.pass_seconds(20)

    monkeypatch.setattr(FairLimiter, "__aenter__", enter_late)
    clock.pass_seconds(5)
    browser.post(f"/class/{activity.id}/1/hand-in", data={**form, **HALF})
    [attempt] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert attempt.created_at <= closes + GRACE + SETTLING_TIME


def test_extra_time_and_the_late_window_keep_a_page_open_longer(classroom: Classroom, clock: Clock) -> None:
    activity = classroom.open(feedback="after_close", late_minutes=5)
    (kim, of_kim), (_, of_lee) = classroom.join("Kim"), classroom.join("Lee")
    classroom.store.activities.close(activity, clock.now)
    classroom.store.activities.set_extra_time(classroom.school.reload(activity), kim.id, 10)

    def open_pages() -> list[bool]:
        pages = [Page(browser.get(f"/class/{activity.id}/1").text) for browser in (of_kim, of_lee)]
        return [can_type(page) for page in pages]

    clock.pass_minutes(4)
    assert open_pages() == [True, True]
    assert {press(browser, activity, "hand-in", HALF).status_code for browser in (of_kim, of_lee)} == {200}
    clock.pass_minutes(4)
    assert open_pages() == [True, False]
    assert press(of_lee, activity, "hand-in", KEY).status_code == 409
    assert not Page(of_lee.get(f"/class/{activity.id}/1").text).find("tr", class_="answer")
    kept = classroom.store.classwork.attempts_of_activity(activity.id)
    assert [(attempt.student_id == kim.id, attempt.late) for attempt in kept] == [(True, False), (False, True)]
    clock.pass_minutes(8)
    pages = [Page(browser.get(f"/class/{activity.id}/1").text) for browser in (of_kim, of_lee)]
    assert [len(page.find("tr", class_="answer")) for page in pages] == [7, 7]


def test_each_student_may_have_numbers_of_their_own(classroom: Classroom) -> None:
    activity = classroom.open(variants="per_student")
    lengths = list[str]()
    for number in range(5):
        _, browser = classroom.join(f"S{number}")
        pages = [Page(browser.get(f"/class/{activity.id}/1").text) for _ in range(2)]
        [one, two] = [page.find("input", name="tokens")[0][0]["value"] for page in pages]
        assert one == two
        lengths.append(one)
        right = {blank: text if text != "100" else one for blank, text in KEY.items()}
        assert "All 14 are right" in press(browser, activity, "hand-in", right).text
    assert len(set(lengths)) >= 2
    kept = classroom.store.classwork.attempts_of_activity(activity.id)
    assert [str(found.variant.tokens) for found in kept] == lengths


def test_both_lengths_of_a_cross_attention_sheet_are_a_students_own(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, Policies("per_student"), ("cross-bart-base",), "")
    for number in range(4):
        _, browser = classroom.join(f"S{number}")
        text = Page(browser.get(f"/class/{activity.id}/1").text).text("details", id="about")
        said = re.search(r"sequence of length ([\d,]+); the decoder’s sequence has length ([\d,]+)", text)
        assert said
        answers = {"queries.rows": said[2], "keys.rows": said[1]}
        marks = Page(press(browser, activity, "check", answers).text).marks()
        assert (marks["queries.rows"], marks["keys.rows"]) == ("right", "right")
        kept = classroom.store.classwork.attempts_of_activity(activity.id)[-1]
        assert (str(kept.variant.decoder_tokens), str(kept.variant.tokens)) == (said[2], said[1])


def test_a_student_sees_their_own_work_alone(classroom: Classroom) -> None:
    activity = classroom.open()
    _, kim = classroom.join("Kim")
    _, lou = classroom.join("Lou")
    press(kim, activity, "save", {**HALF, "keys.rows": "31337"})
    for path in (f"/class/{activity.id}/1", f"/class/{activity.id}", "/mine"):
        assert "31337" not in lou.get(path).text
        assert "Kim" not in lou.get(path).text


def test_without_script_the_forms_work(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    assert press(browser, activity, "check", HALF).text.startswith("<!doctype html>")
    browser.headers["HX-Request"] = "true"
    assert press(browser, activity, "check", KEY, form_id="another-form").text.startswith("<form")


def blue_buttons(text: str) -> list[str]:
    """The labels of the buttons of a sheet that are not plain: what the page wants to be pressed now."""
    page = Page(text)
    buttons = [(attrs, label) for attrs, label in page.find("button", type="submit") if attrs.get("id")]
    links = page.find("a", class_="button")
    return [label for attrs, label in (*buttons, *links) if not {"plain", "text"} & {*attrs.get("class", "").split()}]


def test_one_button_leads_through_the_activity(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course)
    _, browser = classroom.join()
    first, second = f"/class/{activity.id}/1", f"/class/{activity.id}/2"
    assert blue_buttons(browser.get(first).text) == ["Check"]
    assert blue_buttons(press(browser, activity, "check", HALF).text) == ["Check"]
    assert blue_buttons(press(browser, activity, "check", KEY).text) == ["Hand in"]
    handed_in = press(browser, activity, "hand-in", KEY).text
    assert blue_buttons(handed_in) == ["Next sheet"]
    browser.post(f"{second}/hand-in", data={"queries.rows": "1"})
    assert blue_buttons(browser.get(second).text) == ["Next: exit ticket"]
    browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": "why?"})
    assert blue_buttons(browser.get(second).text) == ["Look back"]


def test_where_marks_come_later_the_button_is_hand_in(classroom: Classroom) -> None:
    activity = classroom.open(feedback="after_close")
    _, browser = classroom.join()
    assert blue_buttons(browser.get(f"/class/{activity.id}/1").text) == ["Hand in"]
    assert blue_buttons(press(browser, activity, "hand-in", HALF).text) == ["Next: exit ticket"]


@pytest.mark.parametrize("script", [True, False])
def test_empty_boxes_are_asked_about(classroom: Classroom, script: bool) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    browser.headers.update(SCRIPT if script else {})
    [(button, _)] = Page(browser.get(f"/class/{activity.id}/1").text).find("button", name="empty")
    assert (button["id"], button["value"]) == ("hand-in", "ask")
    asked = press(browser, activity, "hand-in", HALF, empty="ask")
    assert "12 boxes are empty" in Page(asked.text).text("p", class_="result")
    assert (asked.status_code, blue_buttons(asked.text)) == (200, ["Hand in anyway"])
    assert attempts_in(classroom, activity) == []
    assert Page(browser.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"
    press(browser, activity, "hand-in", HALF)  # what "Hand in anyway" sends
    assert attempts_in(classroom, activity) == [(True, 1)]
    press(browser, activity, "hand-in", KEY, empty="ask")
    assert attempts_in(classroom, activity)[1:] == [(True, 14)]


def opened_form(browser: Browser, activity: Activity) -> dict[str, str]:
    """The hidden fields of the first sheet as a browser that opens it now has them."""
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    return {attrs["name"]: attrs["value"] for attrs, _ in page.find("input", type="hidden")}


@pytest.mark.parametrize(
    ("verb", "change", "said"),
    [
        ("check", {"feedback": "after_close"}, "after the activity closes"),
        ("hand-in", {"exam": True}, "Exam conditions"),
    ],
)
def test_rules_that_change_under_an_open_page_are_told_first(
    classroom: Classroom, verb: str, change: dict[str, Any], said: str
) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    form = opened_form(browser, activity)
    policies = replace(activity.policies, **change)
    classroom.store.activities.change(activity, replace(activity.plan, policies=policies))
    path = f"/class/{activity.id}/1/{verb}"
    for headers in (None, SCRIPT):
        back = browser.post(path, data={**form, **HALF, "version": "7"}, headers=headers, follow_redirects=True)
        assert said in Page(back.text).text("p", class_="result")
        assert Page(back.text).boxes()["queries.columns"] == "4096"
    assert attempts_in(classroom, activity) == []
    assert Page(browser.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"
    browser.post(path.replace("check", "hand-in"), data={**opened_form(browser, activity), **HALF})
    assert attempts_in(classroom, activity) == [(True, 1)]


def test_each_button_leads_to_an_address_that_says_the_same_on_reload(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    seen = []
    for verb, more in (("check", {}), ("hint", {"hint": "2"}), ("hand-in", {"empty": "ask"}), ("hand-in", {})):
        form = opened_form(browser, activity)
        response = browser.post(f"/class/{activity.id}/1/{verb}", data={**form, **HALF, **more})
        assert response.status_code == 303
        pages = [Page(browser.get(response.headers["location"]).text) for _ in range(2)]
        assert pages[0].text("p", class_="result") == pages[1].text("p", class_="result")
        seen.append((verb, "hint" in response.headers["location"], len(attempts_in(classroom, activity))))
        assert any("autofocus" in attrs for attrs, _ in pages[0].find("input")) == (verb in ("check", "hint"))
        assert bool(pages[0].find("p", class_="hint")) == (verb == "hint")
        assert bool(pages[0].find("button", id="hand-in-anyway")) == bool(more.get("empty"))
    assert seen == [("check", False, 1), ("hint", True, 1), ("hand-in", False, 1), ("hand-in", False, 1)]
    assert browser.get(f"/class/{activity.id}/1?result=no-such&hint=9").status_code == 200


def test_an_address_cannot_claim_what_was_not_done(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    page = Page(browser.get(f"/class/{activity.id}/1?result=handed-in&hint=2").text)
    assert (page.text("p", class_="result"), page.find("p", class_="hint")) == ("", [])


def test_rules_that_touch_no_promise_interrupt_nobody(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    form = opened_form(browser, activity)
    plan = replace(activity.plan, title="Renamed", policies=replace(activity.policies, hints=False))
    classroom.store.activities.change(activity, plan)
    browser.post(f"/class/{activity.id}/1/check", data={**form, **HALF})
    assert attempts_in(classroom, activity) == [(False, 1)]


def test_without_script_a_refused_press_gives_back_what_was_typed(classroom: Classroom, clock: Clock) -> None:
    activity = end_activity(classroom.store, classroom.open().id)
    _, browser = classroom.join()
    clock.pass_minutes(1)
    form = opened_form(browser, activity)
    for verb in ("check", "hand-in"):
        back = browser.post(f"/class/{activity.id}/1/{verb}", data={**form, **HALF})
        assert (back.status_code, Page(back.text).boxes()["queries.columns"]) == (409, "4096")
        said = Page(back.text).text("p", class_="result")
        assert "isn’t open" in said
        assert "was handed in" not in said  # which is untrue of a student who had handed in before
        refused = browser.post(f"/class/{activity.id}/1/{verb}", data={**form, **HALF}, headers=SCRIPT)
        assert (refused.status_code, refused.headers["x-refused"]) == (409, "closed")
    assert attempts_in(classroom, activity) == []


def test_before_it_opens_a_refused_press_shows_no_sheet(classroom: Classroom) -> None:
    opens = datetime.now(UTC) + timedelta(hours=1)
    activity = classroom.school.activity(classroom.course, plan=Plan("Soon", opens_at=opens))
    _, browser = classroom.join()
    for verb in ("save", "check", "hand-in", "hint"):
        early = browser.post(f"/class/{activity.id}/1/{verb}", data=HALF)
        assert (early.status_code, Page(early.text).boxes()) == (409, {})


def test_a_drawing_that_is_kept_follows_the_rules_of_its_activity(classroom: Classroom) -> None:
    named, hidden = classroom.open(feedback="immediate"), classroom.open(feedback="after_hand_in")
    _, browser = classroom.join()

    def drawn(activity: Activity) -> str:
        form = {**HALF, "edits": "input.rows:pageone1:1"}
        return str(browser.post(f"/class/{activity.id}/1/save", data=form, headers=SCRIPT).text).partition("<svg")[2]

    assert drawn(named) != drawn(hidden)
    assert drawn(named) == drawn(named)
    plan = Plan("Exam", None, Policies(feedback="after_close", exam=True))
    assert "<figure" in drawn(named)
    classroom.store.activities.change(named, plan)
    assert "<figure" not in drawn(named)


@pytest.mark.parametrize("policies", [{}, {"max_attempts": 3}], ids=["any number", "three attempts"])
def test_a_check_takes_four_statements(
    classroom: Classroom, policies: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    activity = classroom.open(**policies)
    _, browser = classroom.join()
    press(browser, activity, "save", {"keys.rows": "7"}, edits="keys.rows:pageone1:1")
    form = opened_form(browser, activity)
    data = {**form, **HALF, "edits": "input.rows:pageone1:2 queries.columns:pageone1:3"}
    monkeypatch.setattr(AutoSubmitter, "settle_all", lambda _submitter: None)  # what has ended is not counted
    with counted_statements(classroom.store) as statements:
        assert browser.post(f"/class/{activity.id}/1/check", data=data, headers=SCRIPT).status_code == 200
    frame = ("BEGIN", "SAVEPOINT", "RELEASE")
    assert len([each for each in statements if not each.startswith(frame)]) == 4, statements
    assert attempts_in(classroom, activity) == [(False, 1)]
