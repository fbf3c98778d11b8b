"""Exit tickets as the instructor reads them: searched, starred and hidden."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from fastapi import FastAPI

from app.classes.ticket_groups import TicketGroup, group_answers
from app.store import Policies, TicketAnswer
from app.web.teacher import exit_tickets_page
from tests.helpers.anonymous_tickets import close_and_mix
from tests.helpers.answer_keys import WIDE
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom, classroom_with_tickets, table_rows
from tests.helpers.running_activity import counted_statements
from tests.helpers.school import SCRIPT


def answer_texts(page: Page) -> list[str]:
    return sorted(text for _, text in page.find("p") if text.startswith(("Why", "The output", "a rude", "★", "Mo is")))


def test_exit_tickets_are_searched_starred_and_hidden(app: FastAPI) -> None:
    classroom = classroom_with_tickets(app, anonymous=True)
    page = classroom.page("/tickets")
    assert answer_texts(page) == ["Mo is curious", "The output PROJECTION", "Why √d?", "a rude word"]
    assert "Kim" not in str(answer_texts(page))
    assert answer_texts(classroom.page("/tickets?q=projection+OUT")) == ["The output PROJECTION"]
    assert answer_texts(classroom.page("/tickets?q=%25")) == []
    kept = {one.text: one.id for one in classroom.store.exit_tickets.answers(classroom.activity.id)}
    with classroom.instructor as browser:
        for text, mark in (("Why √d?", "starred"), ("a rude word", "hidden"), ("Why √d?", "follow_up")):
            address = f"{classroom.path}/tickets/{kept[text]}"
            done = browser.post(f"{address}?q=x", data={"mark": mark, "on": "yes"})
            assert (done.status_code, done.headers["location"]) == (303, f"{classroom.path}/tickets?q=x")
            assert browser.post(address, data={"mark": "student_id", "on": "yes"}).status_code == 404
    assert answer_texts(classroom.page("/tickets")) == [
        "Mo is curious",
        "The output PROJECTION",
        "★Starred: Why √d? follow up",
    ]
    assert answer_texts(classroom.page("/tickets?show=hidden")) == ["a rude word"]
    assert answer_texts(classroom.page("/tickets?show=follow_up")) == answer_texts(
        classroom.page("/tickets?show=starred")
    )
    with classroom.instructor as browser:
        left = browser.post(f"{classroom.path}/tickets/{kept['Why √d?']}", data={"mark": "starred", "on": "no"},
                            headers={"HX-Request": "true"})  # fmt: skip
    assert "★" not in left.text


def test_another_activitys_answer_cannot_be_marked_through_ones_own(app: FastAPI) -> None:
    theirs, mine = classroom_with_tickets(app, anonymous=True), MarkedClassroom(app)
    [answer, *_] = theirs.school.store.exit_tickets.answers(theirs.activity.id)
    with mine.school.browser(teacher=mine.teacher) as browser:
        data = {"mark": "hidden", "on": "yes"}
        assert browser.post(f"{mine.path}/tickets/{answer.id}", data=data).status_code == 404
    assert not any(one.hidden for one in theirs.school.store.exit_tickets.answers(theirs.activity.id))


def test_an_answer_that_goes_meanwhile_is_not_shown_as_marked(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    classroom = classroom_with_tickets(app, anonymous=False)
    [answer, *_] = classroom.store.exit_tickets.answers(classroom.activity.id)

    def read_late(answers: Iterable[TicketAnswer]) -> tuple[TicketGroup, ...]:
        for student in classroom.store.roster.students(classroom.course):
            classroom.store.roster.remove_student(student)
        return group_answers(answers)

    monkeypatch.setattr(exit_tickets_page, "group_answers", read_late)
    data = {"mark": "starred", "on": "yes"}
    address = f"{classroom.path}/tickets/{answer.id}"
    assert classroom.instructor.post(address, data=data, headers={"HX-Request": "true"}).status_code == 404


def test_named_tickets_say_whose_they_are(app: FastAPI) -> None:
    assert "Why √d? Kim" in answer_texts(classroom_with_tickets(app, anonymous=False).page("/tickets"))


def test_muddy_points_stand_beside_misconceptions(app: FastAPI) -> None:
    classroom = classroom_with_tickets(app, anonymous=True)
    classroom.hand_in(classroom.student("Ned"), WIDE)
    page = classroom.page("/tickets")
    assert ["Head as wide as the model", "1"] in table_rows(page)
    assert page.text("h2", id="q-muddiest").endswith("3")


def test_the_teacher_is_told_what_is_held_back_and_where_few_handed_in(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=True))
    for name in ("Kim", "Lou", "Mo"):
        student = classroom.student(name)
        hand_in = classroom.store.exit_tickets.hand_in
        hand_in(classroom.activity.id, student.id, name, {"muddiest": f"Why {name}?"}, anonymous=True)
    page = classroom.page("/tickets")
    assert (answer_texts(page), page.text("p", class_="remark")[:1]) == ([], "3")
    assert "No exit tickets yet" not in str(page.find("p"))
    close_and_mix(classroom.store, classroom.activity)
    page = classroom.page("/tickets")
    assert answer_texts(page) == ["Why Kim?", "Why Lou?", "Why Mo?"]
    assert "3" in page.text("p", class_="remark")
    assert len(page.find("p", class_="remark")) == 1


def test_what_is_held_back_after_reopening_is_said_with_the_reason(app: FastAPI) -> None:
    classroom = classroom_with_tickets(app, anonymous=True)
    store, activity, shown = classroom.store, classroom.activity, answer_texts(classroom.page("/tickets"))
    assert len(shown) == 4
    store.activities.change(activity, activity.plan)
    store.exit_tickets.hand_in(activity.id, classroom.student("Zoe").id, "z", {"muddiest": "Why Zoe?"}, anonymous=True)
    for is_closed in (False, True):
        if is_closed:
            close_and_mix(store, activity)
        page = classroom.page("/tickets")
        held, few = (text for _, text in page.find("p", class_="remark"))
        assert (answer_texts(page), held[:1], few[:6]) == (shown, "1", "Only 3")
        assert "after others had been shown" in held
        assert held in [text for _, text in classroom.page("/summary").find("p", class_="remark")]
        exports = Page(classroom.get(f"/courses/{classroom.course.id}/exports"))
        assert "1 anonymous ticket" in exports.text("ul", class_="files")


def test_answers_that_say_the_same_stand_together_and_are_starred_together(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=False))
    texts = ("The KV cache.", "the kv-cache", "the KV  cache!", "Why √d?", "why d")
    for number, text in enumerate(texts):
        student = classroom.student(f"S{number}")
        answers = {"muddiest": text}
        classroom.store.exit_tickets.hand_in(
            classroom.activity.id, student.id, f"same {classroom.activity.id} {number}", answers, anonymous=False
        )
    lines = [text for _, text in classroom.page("/tickets").find("li") if "√" in text or "why" in text or "×" in text]
    assert len(lines) == 3
    [same] = [text for text in lines if "×3" in text]
    assert "S0, S1, S2" in same
    by_text = {answer.text: answer.id for answer in classroom.store.exit_tickets.answers(classroom.activity.id)}
    with classroom.instructor as browser:
        address = f"{classroom.path}/tickets/{by_text['the kv-cache']}"
        assert browser.post(address, data={"mark": "starred", "on": "yes"}).status_code == 303
    starred = {answer.text for answer in classroom.store.exit_tickets.answers(classroom.activity.id) if answer.starred}
    assert starred == set(texts[:3])
    assert len(classroom.page("/summary").find("blockquote")) == 1


def test_a_star_costs_one_line_however_many_answers_there_are(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=False))
    store, activity = classroom.store, classroom.activity
    sizes, counts = list[int](), list[int]()
    for number in range(150):
        answers = {"muddiest": f"A thought of its own, number {number}"}
        student = classroom.student(f"S{number}")
        store.exit_tickets.hand_in(activity.id, student.id, f"{activity.id} x {number}", answers, anonymous=False)
        if number in (0, 149):
            address = f"{classroom.path}/tickets/{store.exit_tickets.answers(activity.id)[0].id}"
            with classroom.instructor as browser, counted_statements(store) as statements:
                starred = browser.post(address, data={"mark": "starred", "on": "yes"}, headers=SCRIPT)
            sizes.append(len(starred.content))
            counts.append(len(statements))
            assert "★" in starred.text
            assert Page(starred.text).elements[0][0] == "li"
    assert max(sizes) < 3000
    assert counts[0] == counts[1]
    assert len(classroom.page("/tickets").find("ul", class_="ticket-answers")) == 1
    stars = [classroom.page(f"/tickets?page={page}").find("input", value="starred") for page in (1, 2)]
    assert [len(on_page) for on_page in stars] == [100, 50]
