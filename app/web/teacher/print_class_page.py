"""Handouts of an activity: a sheet for each student of the course, with the numbers they have on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.student_sheet import student_sheet, worksheet_titles
from app.handout.options import LONGEST_LINE, HandoutError, Options
from app.handout.sheets import Sheet
from app.sheets.exit_tickets import Ticket
from app.store import Activity, AuditAction, Student
from app.web.handouts.print_jobs import Printing, PrintingBusy, Wish, address_of, printing_of
from app.web.shared import permissions
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

Print = Annotated[Printing, Depends(printing_of)]


@dataclass(frozen=True)
class ClassHandoutPage:
    """Everything that templates/teacher/print_class.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who prints.")]
    sheets: Annotated[tuple[str, ...], Doc("What its worksheets are called.")]
    number: Annotated[str, Doc("Which of them is printed, from 1.")]
    students: Annotated[int, Doc("How many students the course has.")]
    tickets: Annotated[tuple[Ticket, ...], Doc("The exit tickets that can stand on the back.")]
    wish: Annotated[Wish, Doc("The options as chosen and typed.")]
    problem: Annotated[str, Doc("The sentence about what cannot be used, or nothing.")] = ""


@router.get("/activities/{activity_id:int}/handout")
def show_form(services: ServicesDep, access: StaffActivity, printing: Print) -> Response:
    """What there is to choose."""
    ticket = access.activity.content.ticket
    back = ticket.key if ticket and ticket.key in printing.tickets else "none"
    day = access.activity.plan.day
    wish = Wish(course=access.course.title[:LONGEST_LINE], date=f"{day:%d %B %Y}".lstrip("0") if day else "", back=back)
    return render("teacher/print_class.html", _page(services, access, printing, "1", wish))


@router.post("/activities/{activity_id:int}/handout")
def make(request: Request, services: ServicesDep, access: StaffActivity, printing: Print, form: FormDep) -> Response:
    """Begin the handout and go to its progress; or say what cannot be used."""
    number, wish = form.single_line("sheet", 9) or "1", _wish(form)
    page = _page(services, access, printing, number, wish)
    try:
        at = _number(access.activity, number)
        options = _options(printing, access.activity, at, wish)
        students = services.store.courses.students(access.course)
        if not students:
            raise HandoutError(services.library.wording.say("paper", "no-students"))
        names = [student.name for student in students]
        made = partial(_sheets, services, access.activity, students, at)
        address = address_of(request, services.settings.address)
        job = printing.begin(page.sheets[at], options, names, address, made, access.teacher.id)
    except HandoutError as error:
        status = 503 if isinstance(error, PrintingBusy) else 422
        return render("teacher/print_class.html", replace(page, problem=str(error)), status)
    services.store.audit_log.record(access.teacher, AuditAction.HANDOUT_CREATED, access.activity)
    return RedirectResponse(f"/handout/jobs/{job.key}", 303)


def _sheets(services: Services, activity: Activity, students: Sequence[Student], at: int) -> list[Sheet]:
    """A sheet for each student: the very one that stands on their screen."""
    return [
        Sheet(student_sheet(services.library, services.store, activity, student, at + 1).variant, student.name)
        for student in students
    ]


def _wish(form: FormReader) -> Wish:
    names = ("course", "date", "layout", "paper", "back", "key", "large", "figures")
    return Wish.read({name: form.single_line(name) for name in names if form.raw(name)})


def _options(printing: Printing, activity: Activity, at: int, wish: Wish) -> Options:
    key = str(activity.content.items[at].worksheet["key"])
    return replace(wish, worksheet=key).options(printing.tickets)


def _number(activity: Activity, number: str) -> int:
    """Which worksheet, from 0; raises HandoutError where the activity has no such sheet."""
    digits = number.isascii() and number.isdigit() and len(number) < 4
    if digits and 1 <= int(number) <= len(activity.content.items):
        return int(number) - 1
    raise HandoutError(f"There is no sheet “{number}” in this activity: choose one of its worksheets.")


def _page(
    services: Services, access: permissions.ActivityAccess, printing: Printing, number: str, wish: Wish
) -> ClassHandoutPage:
    count = len(services.store.courses.students(access.course))
    sheets, tickets = worksheet_titles(access.activity.content), tuple(printing.tickets.values())
    return ClassHandoutPage(access, sheets, number, count, tickets, wish)
