"""/activities/N/handout: print a sheet for each student of the course, with the numbers they have on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.roster_lookup import names_with_numbers
from app.classes.student_sheet import worksheet_titles
from app.handout.options import MAX_PRINTED_LINE_LENGTH, NO_BACK, HandoutError
from app.sheets.exit_tickets import Ticket
from app.store import AuditAction, Student
from app.translation import gettext as _
from app.web.shared.errors import status_of
from app.web.shared.forms import FormDep, whole_number
from app.web.shared.handout_form import HandoutForm, handout_base_url
from app.web.shared.handout_jobs import printable_tickets, start_handout
from app.web.shared.permissions import ActivityAccess, QueueClient, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import long_date, render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

# The options in a class's form: sheets, names and lengths come from the activity.
CLASS_OPTIONS = ("sheets", "course", "date", "layout", "paper", "back", "key", "large", "figures")


@dataclass(frozen=True)
class PrintClassPage:
    """The variables of templates/teacher/print_class.html."""

    access: Annotated[ActivityAccess, Doc("The activity, its course, and who prints.")]
    sheets: Annotated[tuple[str, ...], Doc("The titles of its worksheets.")]
    number: Annotated[str, Doc("Which of them is printed, from 1, as chosen.")]
    students: Annotated[int, Doc("How many students the course has.")]
    tickets: Annotated[tuple[Ticket, ...], Doc("The exit tickets that can be on the back.")]
    form: Annotated[HandoutForm, Doc("The options as chosen and typed.")]
    problem: Annotated[str, Doc("Which option cannot be used and why, or empty.")] = ""


@router.get("/activities/{activity_id:int}/handout")
def show_class_handout(services: ServicesDep, access: StaffActivity) -> Response:
    """The form for sheet 1, filled in with the activity's course, day and exit ticket."""
    ticket, day = access.activity.content.ticket, access.activity.plan.day
    form = HandoutForm(
        course=access.course.title[:MAX_PRINTED_LINE_LENGTH],
        date=long_date(day) if day else "",
        back=ticket.key if ticket else NO_BACK,
    )
    students = services.store.roster.students(access.course)
    return render("teacher/print_class.html", _print_class_page(services, access, students, "1", form))


@router.post("/activities/{activity_id:int}/handout")
@in_threads("print")
def print_for_class(
    request: Request, services: ServicesDep, access: StaffActivity, client: QueueClient, sent: FormDep
) -> Response:
    """Queue a handout that only this teacher may see, with an audit entry, and redirect to its page."""
    number = sent.single_line("sheet", 9) or "1"
    form = HandoutForm.read({name: sent.single_line(name) for name in CLASS_OPTIONS if sent.raw(name)})
    activity, students, log = access.activity, services.store.roster.students(access.course), services.store.audit_log
    try:
        sheet_number = whole_number(number, len(activity.content.items), lowest=1)
        if sheet_number is None:
            sentence = _("There is no sheet “{text}” in this activity. Choose one of its worksheets.")
            raise HandoutError(sentence.format(text=number))
        form_of_sheet = form.model_copy(update={"worksheet": activity.content.items[sheet_number - 1].key})
        options = form_of_sheet.to_options(printable_tickets(services, activity))
        job = start_handout(
            services,
            client,
            access.teacher,
            worksheet_titles(activity.content)[sheet_number - 1],
            replace(options, anonymous_back=activity.policies.ticket_anonymous),
            list(names_with_numbers(students).values()),
            handout_base_url(request, services.settings),
            back=url_for("show_class_handout", activity_id=activity.id),
            activity_sheet=(activity.id, sheet_number),
            along=partial(log.record, access.teacher, AuditAction.HANDOUT_CREATED, activity),
        )
    except HandoutError as error:
        page = replace(_print_class_page(services, access, students, number, form), problem=str(error))
        return render("teacher/print_class.html", page, status_of(error))
    return RedirectResponse(url_for("show_print_job", key=job.key), 303)


def _print_class_page(
    services: Services, access: ActivityAccess, students: Sequence[Student], number: str, form: HandoutForm
) -> PrintClassPage:
    return PrintClassPage(
        access=access,
        sheets=worksheet_titles(access.activity.content),
        number=number,
        students=len(students),
        tickets=tuple(printable_tickets(services, access.activity).values()),
        form=form,
    )
