"""/class/N/ticket: the exit ticket of an activity, handed in once."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.ticket_answers import answer_texts, ticket_problems
from app.translation import gettext as _
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import StudentAccessDep
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.student.exit_ticket_view import TicketPage, make_ticket_page, read_ticket_form
from app.web.student.sheet_request import promised_otherwise, require_open

router = APIRouter(include_in_schema=False)


@router.get("/class/{activity_id:int}/ticket")
@in_threads("class")
def show_exit_ticket(store: StoreDep, access: StudentAccessDep) -> Response:
    """The exit ticket, or a note that it was handed in; the student counts as present."""
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=access.activity.id), 303)
    ticket_in = store.classwork.arrive(access.activity.id, access.student.id)
    return render("student/exit_ticket.html", make_ticket_page(store, access, ticket_in))


@router.post("/class/{activity_id:int}/ticket")
@in_threads("class")
def hand_in_exit_ticket(store: StoreDep, access: StudentAccessDep, form: FormDep) -> Response:
    """Store the answers that aren't blank, and redirect to the ticket; a student's second ticket stores nothing."""
    activity = access.activity
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    ticket_in = store.exit_tickets.is_handed_in(activity.id, access.student.id)
    page = make_ticket_page(store, access, ticket_in)
    typed = read_ticket_form(form, page.ticket)
    try:
        require_open(access)
    except HTTPException as closed:
        return render("student/exit_ticket.html", replace(page, typed=typed, problem=closed.detail), closed.status_code)
    if not ticket_in and promised_otherwise(form, page.promise):
        return _respond_with_new_promise(form, replace(page, typed=typed))
    if not ticket_in and (problems := ticket_problems(page.ticket, typed)):
        page = replace(page, typed=typed, problem=problems.pop(""), problems=problems)
        return render("student/exit_ticket.html", page, 422)
    store.classwork.arrive(activity.id, access.student.id)
    anonymous, answers = activity.policies.ticket_anonymous, answer_texts(page.ticket, typed)
    store.exit_tickets.hand_in(activity.id, access.student.id, answers, anonymous=anonymous)
    return RedirectResponse(url_for("show_exit_ticket", activity_id=activity.id), 303)


def _respond_with_new_promise(form: FormReader, page: TicketPage) -> Response:
    problem = _("Your teacher has changed this ticket, so nothing was handed in. Read it again before you hand it in.")
    asked = {f"answer-{question.key}" for question in page.ticket.questions}
    others = [form.multi_line(name) for name in form.names("answer-") if name not in asked]
    unasked = "\n\n".join(filter(None, others))
    return render("student/exit_ticket.html", replace(page, problem=problem, unasked=unasked), 422)
