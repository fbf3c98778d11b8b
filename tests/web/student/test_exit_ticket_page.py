"""A student's exit ticket: handed in once, with or without a name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.classes.student_sheet import freeze
from app.store import Activity
from tests.helpers.anonymous_tickets import close_and_mix
from tests.helpers.html_page import Page
from tests.helpers.school import Browser, Classroom


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
    assert (empty.status_code, "at least one question" in empty.text) == (422, True)
    for text in ("why √d?", "why √d?", "another"):
        answer = browser.post(f"/class/{activity.id}/ticket", data={"form_id": form_id, "answer-muddiest": text})
        assert answer.status_code == 303
    assert "Handed in" in browser.get(f"/class/{activity.id}/ticket").text
    exit_tickets = classroom.store.exit_tickets
    assert exit_tickets.held(activity.id).waiting == anonymous
    close_and_mix(classroom.store, activity)
    [kept] = exit_tickets.answers(activity.id)
    assert (kept.question, kept.text, kept.student_id) == ("muddiest", "why √d?", None if anonymous else kim.id)


def test_an_activity_can_be_an_exit_ticket_alone(classroom: Classroom) -> None:
    """Then it opens with the ticket; one without a ticket has none."""
    alone = classroom.school.activity(classroom.course, sheets=())
    without = classroom.school.activity(classroom.course, sheets=("llama-7b",), ticket="")
    _, browser = classroom.join()
    assert browser.get(f"/class/{alone.id}").headers["location"] == f"/class/{alone.id}/ticket"
    assert browser.get(f"/class/{alone.id}/1").status_code == 404
    assert browser.get(f"/class/{without.id}").headers["location"] == f"/class/{without.id}/1"
    assert browser.get(f"/class/{without.id}/ticket").status_code == 404


def ticket_form(browser: Browser, activity: Activity) -> dict[str, str]:
    """The hidden fields of the ticket as a browser that opens it now has them."""
    page = Page(browser.get(f"/class/{activity.id}/ticket").text)
    return {attrs["name"]: attrs["value"] for attrs, _ in page.find("input", type="hidden")}


def test_anonymity_that_was_promised_is_not_taken_away(classroom: Classroom) -> None:
    """The rule changes with the form open: it comes back as typed, says so, and only the second press stores a name."""
    activity = classroom.open(ticket_anonymous=True)
    kim, browser = classroom.join()
    form = {**ticket_form(browser, activity), "answer-muddiest": "why √d?"}
    named = replace(activity.policies, ticket_anonymous=False)
    classroom.store.activities.change(activity, replace(activity.plan, policies=named))
    back = browser.post(f"/class/{activity.id}/ticket", data=form)
    page = Page(back.text)
    assert back.status_code == 422
    assert "Kim" in page.text("p", class_="remark")
    assert "why √d?" in back.text
    assert classroom.store.exit_tickets.answers(activity.id) == ()
    fresh = {attrs["name"]: attrs["value"] for attrs, _ in page.find("input", type="hidden")}
    assert browser.post(f"/class/{activity.id}/ticket", data={**form, **fresh}).status_code == 303
    [kept] = classroom.store.exit_tickets.answers(activity.id)
    assert kept.student_id == kim.id


def test_an_answer_to_a_question_that_is_no_longer_asked_comes_back(classroom: Classroom) -> None:
    """The instructor chose another ticket meanwhile: what was written is on the page, to copy; nothing is stored."""
    activity = classroom.open()
    _, browser = classroom.join()
    form = {**ticket_form(browser, activity), "answer-muddiest": "why √d?"}
    ticket = classroom.school.services.tickets["classic"]
    other = replace(ticket, questions=(("else", "Anything else?"),))
    content = freeze(classroom.school.library, ("llama-7b",), other)
    classroom.store.activities.revise(activity, content)
    back = browser.post(f"/class/{activity.id}/ticket", data=form)
    assert (back.status_code, Page(back.text).text("blockquote")) == (422, "why √d?")
    assert classroom.store.exit_tickets.answers(activity.id) == ()


def test_after_the_ticket_there_is_a_way_on(classroom: Classroom) -> None:
    """To the first sheet that is not handed in, and to the student's work; a page without a next step is a dead end."""
    activity = classroom.school.activity(classroom.course)
    _, browser = classroom.join()
    browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": "why?"})
    links = [
        attrs["href"] for attrs, _ in Page(browser.get(f"/class/{activity.id}/ticket").text).find("a", class_="button")
    ]
    assert links[:2] == [f"/class/{activity.id}/1", "/mine"]
