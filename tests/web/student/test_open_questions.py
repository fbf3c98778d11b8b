"""Questions that a student answers in words: saved and handed in with the sheet, and never marked."""

from __future__ import annotations

import pytest

from app.activities.activity import Activity
from app.classes.auto_submit import AutoSubmitter
from app.grading.grade import AnswersError, grade
from app.store import Store
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF, attempts_in, press
from tests.helpers.html_page import Page, kept_in
from tests.helpers.open_questions import TWO_HEADS, WHY_K, asking, open_with_questions
from tests.helpers.school import SCRIPT, Browser, Classroom


def written(browser: Browser, activity: Activity) -> dict[str, str]:
    """The text under each question on the page of the sheet."""
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    return {attrs["name"]: text for attrs, text in page.find("textarea")}


def can_write(browser: Browser, activity: Activity) -> bool:
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    return not any("readonly" in attrs for attrs, _ in page.find("textarea"))


def last_answers(store: Store, activity: Activity) -> dict[str, str]:
    return dict(store.classwork.attempts_of_activity(activity.id)[-1].answers)


def test_two_devices_keep_what_is_written_beside_what_is_typed(classroom: Classroom) -> None:
    activity = open_with_questions(classroom)
    _, browser = classroom.join()
    where = f"/class/{activity.id}/1/save"
    phone = {WHY_K: "One row per token,\r\n‮one column\tper feature.\x00 ", "edits": f"{WHY_K}:phone0001:1"}
    laptop = {"queries.rows": "100", WHY_K: "stale", "edits": "queries.rows:laptop0001:1"}
    saved = kept_in(browser.post(where, data=phone, headers=SCRIPT).text)
    assert saved["answers"][WHY_K] == "One row per token,\none column per feature. "
    both = kept_in(browser.post(where, data=laptop, headers=SCRIPT).text)["answers"]
    assert (both["queries.rows"], both[WHY_K]) == ("100", saved["answers"][WHY_K])
    late = {WHY_K: "an older text that comes late", "edits": f"{WHY_K}:phone0001:1"}
    assert kept_in(browser.post(where, data=late, headers=SCRIPT).text)["answers"][WHY_K] == saved["answers"][WHY_K]
    long = {TWO_HEADS: "x" * 2500, "edits": f"{TWO_HEADS}:phone0001:2 question.no-such:phone0001:3"}
    assert len(kept_in(browser.post(where, data=long, headers=SCRIPT).text)["answers"][TWO_HEADS]) == 2000


@pytest.mark.parametrize("exam", [False, True])
def test_an_answer_is_handed_in_and_not_marked(classroom: Classroom, exam: bool) -> None:
    activity = open_with_questions(classroom, exam=exam)
    _, browser = classroom.join()
    said = "<textarea> & “K”\n\n= N × d_h"
    page = Page(press(browser, activity, "check", {**HALF, WHY_K: said}).text)
    assert not [name for name in page.marks() if name.startswith("question")]
    press(browser, activity, "hand-in", {**KEY, WHY_K: said})
    assert attempts_in(classroom, activity) == [(False, 1), (True, 14)]
    [_, attempt] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (attempt.answers[WHY_K], attempt.out_of, set(attempt.marks)) == (said, 14, set(KEY))
    assert written(browser, activity)[WHY_K] == " ".join(said.split())
    classroom.school.end(activity)
    assert written(browser, activity)[WHY_K] == " ".join(said.split())
    assert not can_write(browser, activity)
    variant = asking(classroom.school.library).variant("llama-7b")
    with pytest.raises(AnswersError):
        grade(variant, {WHY_K: said})
    library = classroom.school.library
    assert "question" not in {row for key in library.worksheets for row in library.variant(key).table.askable}


def test_an_answer_after_the_last_check_is_not_lost(classroom: Classroom) -> None:
    activity = open_with_questions(classroom, max_attempts=1)
    _, browser = classroom.join()
    press(browser, activity, "check", HALF)
    assert can_write(browser, activity)
    press(browser, activity, "save", {**HALF, WHY_K: "saved", "edits": f"{WHY_K}:phone0001:1"})
    assert last_answers(classroom.store, activity)[WHY_K] == "saved"
    press(browser, activity, "hand-in", {**HALF, WHY_K: "handed in"})
    assert attempts_in(classroom, activity) == [(True, 1)]
    assert last_answers(classroom.store, activity)[WHY_K] == "handed in"
    assert written(browser, activity)[WHY_K] == "handed in"
    assert not can_write(browser, activity)
    press(browser, activity, "save", {**HALF, WHY_K: "too late", "edits": f"{WHY_K}:phone0001:2"})
    assert last_answers(classroom.store, activity)[WHY_K] == "handed in"


def test_handing_in_what_was_checked_brings_the_answer_along(classroom: Classroom) -> None:
    activity = open_with_questions(classroom)
    _, browser = classroom.join()
    press(browser, activity, "check", KEY)
    press(browser, activity, "hand-in", {**KEY, WHY_K: "Because."})
    assert attempts_in(classroom, activity) == [(True, 14)]
    assert last_answers(classroom.store, activity)[WHY_K] == "Because."


def test_an_answer_alone_is_auto_submitted_when_the_activity_closes(classroom: Classroom) -> None:
    activity = open_with_questions(classroom)
    for name, said in {"Kim": "It is one head.", "Lou": " \n ", "Mia": ""}.items():
        _, browser = classroom.join(name)
        press(browser, activity, "save", {**dict.fromkeys(KEY, ""), WHY_K: said})
    assert classroom.get(f"/activities/{activity.id}")
    ended = classroom.school.end(activity)
    AutoSubmitter(classroom.school.library, classroom.store).settle(ended)
    [attempt] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (attempt.auto_submitted, attempt.score, attempt.answers[WHY_K]) == (True, 0, "It is one head.")
    assert classroom.get(f"/activities/{activity.id}/regrade")
