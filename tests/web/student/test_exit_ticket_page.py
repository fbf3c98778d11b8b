"""A student's exit ticket: handed in once, with or without a name."""

from __future__ import annotations

import pytest

from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


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
    [kept] = classroom.store.exit_tickets.answers(activity.id)
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
