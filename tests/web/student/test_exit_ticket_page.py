"""A student's exit ticket: handed in once, with or without a name."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import Any

import pytest

from app.classes.student_sheet import freeze
from app.sheets.exit_tickets import TicketQuestion
from app.store import Activity
from tests.helpers.closed_activity import close_activity
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import table_rows
from tests.helpers.own_ticket import ANSWERS, OWN_TICKET, open_own_ticket
from tests.helpers.school import Browser, Classroom


@pytest.mark.parametrize("anonymous", [True, False])
def test_an_exit_ticket_is_handed_in_once(classroom: Classroom, anonymous: bool) -> None:
    activity = classroom.open(ticket_anonymous=anonymous)
    kim, browser = classroom.join()
    page = Page(browser.get(f"/class/{activity.id}/ticket").text)
    assert ("Anonymous" in page.text("p", class_="remark")) == anonymous
    assert ("Kim" in page.text("p", class_="remark")) != anonymous
    assert len(page.find("textarea")) == 5
    empty = browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": " "})
    assert (empty.status_code, "at least one question" in empty.text) == (422, True)
    for text in ("why √d?", "why √d?", "another"):
        answer = browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": text})
        assert answer.status_code == 303
    assert "ticket is in" in Page(browser.get(f"/class/{activity.id}/ticket").text).text("div", role="status")
    exit_tickets = classroom.store.exit_tickets
    assert exit_tickets.waiting(activity) == anonymous
    [kept] = exit_tickets.answers(close_activity(classroom.store, activity))
    assert (kept.question, kept.text, kept.student_id) == ("muddiest", "why √d?", None if anonymous else kim.id)


def test_an_activity_can_be_an_exit_ticket_alone(classroom: Classroom) -> None:
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
    activity = classroom.open(ticket_anonymous=True)
    kim, browser = classroom.join()
    form = {**ticket_form(browser, activity), "pick": ["", "muddiest"], "answer-muddiest": "why √d?"}
    named = replace(activity.policies, ticket_anonymous=False)
    classroom.store.activities.change(activity, replace(activity.plan, policies=named))
    back = browser.post(f"/class/{activity.id}/ticket", data=form)
    page = Page(back.text)
    assert back.status_code == 422
    assert "Kim" in page.text("p", class_="remark")
    assert "why √d?" in back.text
    assert classroom.store.exit_tickets.answers(activity) == ()
    fresh = {attrs["name"]: attrs["value"] for attrs, _ in page.find("input", type="hidden")}
    assert browser.post(f"/class/{activity.id}/ticket", data={**form, **fresh, "pick": form["pick"]}).status_code == 303
    [kept] = classroom.store.exit_tickets.answers(activity)
    assert kept.student_id == kim.id


def test_an_answer_to_a_question_that_is_no_longer_asked_comes_back(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    form = {**ticket_form(browser, activity), "pick": ["", "muddiest"], "answer-muddiest": "why √d?"}
    ticket = classroom.school.services.tickets["classic"]
    other = ticket.model_copy(update={"questions": (TicketQuestion(key="else", text="Anything else?"),)})
    content = freeze(classroom.school.library, ("llama-7b",), other)
    classroom.store.activities.revise(activity, content)
    back = browser.post(f"/class/{activity.id}/ticket", data=form)
    assert (back.status_code, Page(back.text).text("blockquote")) == (422, "why √d?")
    assert classroom.store.exit_tickets.answers(activity) == ()


def test_after_the_ticket_there_is_a_way_on(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course)
    _, browser = classroom.join()
    browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": "why?"})
    page = browser.get(f"/class/{activity.id}/ticket").text
    left = re.search(r'<ul class="bare left-to-do">.*?</ul>', page, re.DOTALL)
    assert left
    assert [attrs["href"] for attrs, _ in Page(left[0]).find("a")] == [f"/class/{activity.id}/{i}" for i in (1, 2)]


@pytest.mark.parametrize("anonymous", [True, False])
def test_every_kind_of_question_is_handed_in_and_counted(classroom: Classroom, anonymous: bool) -> None:
    activity = open_own_ticket(classroom, anonymous=anonymous)
    for name, answers in (("Kim", ANSWERS), ("Lou", {**ANSWERS, "answer-pace": "5", "answer-clear": "Queries; keys"})):
        browser = classroom.join(name)[1]
        done = browser.post(f"/class/{activity.id}/ticket", data={**ticket_form(browser, activity), **answers})
        assert done.status_code == 303
    closed = close_activity(classroom.store, activity)
    stored = {(answer.question, answer.text) for answer in classroom.store.exit_tickets.answers(closed)}
    assert {("pace", "4"), ("next", "Masks"), ("clear", "Heads, all of them\n<b>Values</b>")} <= stored
    page = classroom.page("/tickets")
    counts = {row[0].split(" too")[0]: row[1] for row in table_rows(page) if len(row) == 2 and " of " in row[1]}
    assert (counts["Masks"], counts["KV cache"]) == ("2 of 2", "0 of 2")
    assert (["Kim, Lou"] in table_rows(page)) != anonymous
    assert page.text("ul", class_="ticket-answers").startswith("Because of d_h.")
    rows = list(csv.DictReader(io.StringIO(classroom.get(f"/courses/{classroom.course.id}/exports/exit-tickets.csv"))))
    several = {row["answer"] for row in rows if row["question"] == "What is clear now?"}
    assert several == {"Heads, all of them\n<b>Values</b>", "Queries; keys"}
    assert {row["student"] for row in rows} == ({""} if anonymous else {"Kim", "Lou"})


@pytest.mark.parametrize(
    ("changes", "marked"),
    [
        ({"answer-next": None}, ["next"]),
        ({"answer-next": ""}, ["next"]),
        ({"answer-next": "Something else"}, ["next"]),
        ({"answer-next": ["KV cache", "Masks"]}, ["next"]),
        ({"answer-pace": "6", "answer-clear": ["Queries; keys", "x" * 200_000]}, ["pace", "clear"]),
        ({"answer-pace": "", "answer-clear": [], "answer-why": "kept \u202e"}, []),
    ],
)
def test_answers_that_do_not_suffice_come_back_as_typed(
    classroom: Classroom, changes: dict[str, Any], marked: list[str]
) -> None:
    activity = open_own_ticket(classroom)
    _, browser = classroom.join()
    answers = {name: value for name, value in {**ANSWERS, **changes}.items() if value is not None}
    back = browser.post(f"/class/{activity.id}/ticket", data={**ticket_form(browser, activity), **answers})
    page = Page(back.text)
    problems = [attrs["id"] for attrs, _ in page.find("p", class_="problem")]
    assert (back.status_code, problems) == (422, ["problem", *(f"problem-{key}" for key in marked)])
    described = {attrs.get("aria-describedby") for tag, attrs, _ in page.elements if tag in ("textarea", "fieldset")}
    assert {f"problem-{key}" for key in marked} <= described
    assert page.text("textarea").startswith("kept" if "answer-why" in changes else "Because")
    chosen = {attrs["value"] for attrs, _ in page.find("input") if "checked" in attrs}
    assert chosen == {
        value
        for answer in answers.values()
        for value in ([answer] if isinstance(answer, str) else answer)
        if any(value in question.choices for question in OWN_TICKET.questions)
    }
    assert not classroom.store.exit_tickets.is_handed_in(
        activity.id, classroom.store.roster.students(classroom.course)[0].id
    )


def test_a_question_that_changes_its_kind_keeps_earlier_answers(classroom: Classroom) -> None:
    activity = open_own_ticket(classroom)
    _, browser = classroom.join()
    browser.post(f"/class/{activity.id}/ticket", data={**ticket_form(browser, activity), **ANSWERS})
    asked = OWN_TICKET.questions
    changed = asked[1].model_copy(update={"options": ("KV cache", "RoPE")})
    other = OWN_TICKET.model_copy(update={"questions": (changed, *asked[2:])})
    classroom.store.activities.revise(activity, freeze(classroom.school.library, (), other))
    page = classroom.page("/tickets")
    lines = {text.split(" Kim")[0] for _, text in page.find("ul", class_="ticket-answers")}
    assert lines == {"Masks", "Because of d_h."}
    assert ["4", "1 of 1"] in table_rows(page)


def test_only_what_is_picked_is_handed_in(classroom: Classroom) -> None:
    activity = classroom.open()
    kim, browser = classroom.join()
    page = Page(browser.get(f"/class/{activity.id}/ticket").text)
    picks = [attrs["value"] for attrs, _ in page.find("input", type="checkbox")]
    assert picks == [question.key for question in classroom.school.services.tickets["classic"].questions]
    texts = {f"answer-{key}": f"about {key}" for key in picks}
    too_many = browser.post(f"/class/{activity.id}/ticket", data={**texts, "pick": ["", *picks[:3]]})
    assert (too_many.status_code, "at most 2" in too_many.text) == (422, True)
    chosen = {attrs["value"] for attrs, _ in Page(too_many.text).find("input", type="checkbox") if "checked" in attrs}
    assert chosen == set(picks[:3])
    assert all(text in too_many.text for text in texts.values())  # also those of chips that aren't picked any more
    nothing = browser.post(f"/class/{activity.id}/ticket", data={**texts, "pick": ""})
    assert nothing.status_code == 422
    assert not classroom.store.exit_tickets.is_handed_in(activity.id, kim.id)
    browser.post(f"/class/{activity.id}/ticket", data={**texts, "pick": ["", *picks[3:]]})
    kept = classroom.store.exit_tickets.answers(close_activity(classroom.store, activity))
    assert {answer.question for answer in kept} == set(picks[3:])
