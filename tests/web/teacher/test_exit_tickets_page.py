"""Exit tickets as the instructor reads them: searched, starred and hidden."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.classes.course_files import CSV_FILES
from app.classes.ticket_groups import TicketGroup, group_answers
from app.store import Policies, TicketAnswer
from app.store.exit_tickets import SHOWN_FROM
from app.store.tables import ticket_answers
from app.web import exit_tickets
from app.web.export import ZIP_FILE
from tests.helpers.answer_keys import WIDE
from tests.helpers.closed_activity import close_activity
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
    kept = {one.text: one.id for one in classroom.store.exit_tickets.answers(classroom.activity)}
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
    [answer, *_] = theirs.school.store.exit_tickets.answers(theirs.activity)
    with mine.school.browser(teacher=mine.teacher) as browser:
        data = {"mark": "hidden", "on": "yes"}
        assert browser.post(f"{mine.path}/tickets/{answer.id}", data=data).status_code == 404
    assert not any(one.hidden for one in theirs.school.store.exit_tickets.answers(theirs.activity))


def test_an_answer_that_goes_meanwhile_is_not_shown_as_marked(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    classroom = classroom_with_tickets(app, anonymous=False)
    [answer, *_] = classroom.store.exit_tickets.answers(classroom.activity)

    def read_late(answers: Iterable[TicketAnswer]) -> tuple[TicketGroup, ...]:
        for student in classroom.store.roster.students(classroom.course):
            classroom.store.roster.remove_student(student)
        return group_answers(answers)

    monkeypatch.setattr(exit_tickets, "group_answers", read_late)
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


def with_anonymous_tickets(app: FastAPI, count: int) -> MarkedClassroom:
    """A classroom with an open activity, in which so many students wrote that they are SECRET."""
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=True))
    for number in range(count):
        hand_in_secret(classroom, number)
    return classroom


def hand_in_secret(classroom: MarkedClassroom, number: int) -> None:
    student = classroom.student(f"S{number}")
    answers = {"muddiest": f"SECRET {number}"}
    classroom.store.exit_tickets.hand_in(classroom.activity.id, student.id, answers, anonymous=True)


def star_all(classroom: MarkedClassroom) -> None:
    """Star every answer, as nobody could who cannot read them, so that the summary shows them if anything does."""
    with classroom.store.engine.begin() as connection:
        connection.execute(sa.update(ticket_answers).values(starred=True))


def addresses(app: FastAPI, classroom: MarkedClassroom) -> Iterator[tuple[str, str]]:
    """Each page and file of the activity and its course: the path of its route or the file's name, and the address."""
    [student, *_] = classroom.store.roster.students(classroom.course)
    values = {
        "activity_id": classroom.activity.id,
        "course_id": classroom.course.id,
        "student_id": student.id,
        "number": 1,
    }
    for route in app.routes:
        if not isinstance(route, APIRoute) or "GET" not in (route.methods or ()):
            continue
        names = route.param_convertors.keys()
        for file_name in (*CSV_FILES, ZIP_FILE) if "file_name" in names else ("",):
            filled = {name: value for name, value in {**values, "file_name": file_name}.items() if name in names}
            if filled.keys() == names and {"activity_id", "course_id"} & names:
                yield file_name or route.path, app.url_path_for(route.name, **filled)


def pages_with_secrets(app: FastAPI, classroom: MarkedClassroom) -> set[str]:
    """The pages and files that give an answer away to a teacher."""
    found, visited = set[str](), 0
    for name, address in addresses(app, classroom):
        content, visited = classroom.instructor.get(address).content, visited + 1
        if name == ZIP_FILE:
            archive = zipfile.ZipFile(io.BytesIO(content))
            content = b"".join(map(archive.read, archive.namelist()))
        if b"SECRET" in content:
            found.add(name)
    assert visited > 20
    return found


SHOWING = {
    "/activities/{activity_id:int}/tickets",
    "/activities/{activity_id:int}/summary",
    "exit-tickets.csv",
    ZIP_FILE,
}


def test_four_anonymous_tickets_are_on_no_page_and_in_no_file_until_the_fifth(app: FastAPI) -> None:
    classroom = with_anonymous_tickets(app, 4)
    star_all(classroom)
    assert pages_with_secrets(app, classroom) == set()
    with classroom.store.engine.connect() as connection:
        [answer_id, *_] = connection.scalars(sa.select(ticket_answers.c.id).where(ticket_answers.c.text == "SECRET 0"))
    data = {"mark": "hidden", "on": "yes"}
    assert classroom.instructor.post(f"{classroom.path}/tickets/{answer_id}", data=data).status_code == 404
    hand_in_secret(classroom, 4)
    star_all(classroom)
    assert pages_with_secrets(app, classroom) == SHOWING


def test_three_anonymous_tickets_are_shown_once_the_activity_is_closed(app: FastAPI) -> None:
    classroom = with_anonymous_tickets(app, 3)
    assert "SECRET" not in classroom.page("/tickets").text("main")
    close_activity(classroom.store, classroom.activity)
    assert "SECRET" in classroom.page("/tickets").text("main")


def test_the_teacher_is_told_how_many_are_in_and_when_they_are_shown(app: FastAPI) -> None:
    classroom = with_anonymous_tickets(app, 3)
    for path in ("/tickets", "/summary"):
        [(_, told)] = classroom.page(path).find("p", class_="remark")
        assert told.startswith("3 ")
        assert str(SHOWN_FROM) in told
    soft = {text for _, text in classroom.page("/tickets").find("p", class_="soft")}
    assert not soft & {"No exit tickets yet.", "No answers."}


def test_answers_that_say_the_same_stand_together_and_are_starred_together(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=False))
    texts = ("The KV cache.", "the kv-cache", "the KV  cache!", "Why √d?", "why d")
    for number, text in enumerate(texts):
        student = classroom.student(f"S{number}")
        answers = {"muddiest": text}
        classroom.store.exit_tickets.hand_in(classroom.activity.id, student.id, answers, anonymous=False)
    lines = [text for _, text in classroom.page("/tickets").find("li") if "√" in text or "why" in text or "×" in text]
    assert len(lines) == 3
    [same] = [text for text in lines if "×3" in text]
    assert "S0, S1, S2" in same
    by_text = {answer.text: answer.id for answer in classroom.store.exit_tickets.answers(classroom.activity)}
    with classroom.instructor as browser:
        address = f"{classroom.path}/tickets/{by_text['the kv-cache']}"
        assert browser.post(address, data={"mark": "starred", "on": "yes"}).status_code == 303
    starred = {answer.text for answer in classroom.store.exit_tickets.answers(classroom.activity) if answer.starred}
    assert starred == set(texts[:3])
    assert len(classroom.page("/summary").find("blockquote")) == 1


def test_a_star_costs_one_line_however_many_answers_there_are(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=False))
    store, activity = classroom.store, classroom.activity
    sizes, counts = list[int](), list[int]()
    for number in range(150):
        answers = {"muddiest": f"A thought of its own, number {number}"}
        student = classroom.student(f"S{number}")
        store.exit_tickets.hand_in(activity.id, student.id, answers, anonymous=False)
        if number in (0, 149):
            address = f"{classroom.path}/tickets/{store.exit_tickets.answers(activity)[0].id}"
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
