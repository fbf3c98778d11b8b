"""Large handouts as jobs: what is queued, and how it is made when its turn comes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial

from app.classes.frozen.frozen_library import frozen_ticket
from app.classes.materials import with_materials
from app.classes.roster_lookup import names_with_numbers
from app.classes.student_sheet import activity_variant, student_sheet
from app.exchange.imported_models import library_with_model
from app.handout.handout_printer import MAX_DOWNLOAD_SHEETS, PrinterBusyError
from app.handout.options import HandoutError, HandoutOptions
from app.handout.print_child import MakeSheets
from app.handout.sheet_plan import HandoutSheet, plan_sheets
from app.jobs.jobs import Task
from app.machine.work_queue import Client
from app.sheets.exit_tickets import Ticket
from app.store import Activity, Teacher
from app.store.jobs import Job, JobLimits, JobRefusedError, no_worker
from app.translation import gettext as _
from app.web.shared.services import Services

HANDOUT_LIMITS = JobLimits(total=20, visitors=12, visitor=3, member=6, visitor_hourly=30, member_hourly=120)


def start_handout(
    services: Services,
    client: Client,
    teacher: Teacher | None,
    title: str,
    options: HandoutOptions,
    names: Sequence[str],
    base_url: str,
    *,
    back: str = "",
    activity_sheet: tuple[int, int] | None = None,
    material_id: int | None = None,
    along: Callable[[], object] = lambda: None,
) -> Job:
    """Queue a handout, and return its job, with a note about letters that no font has.

    The worksheet is the library's, or that of `activity_sheet` or `material_id`.
    `along` stores what belongs to the handout in the same transaction.
    """
    sheets = len(names) or options.sheets
    if teacher is None and sheets > MAX_DOWNLOAD_SHEETS:
        problem = _("More than {most} sheets at a time are for teachers: sign in first, or print fewer sheets.")
        raise HandoutError(problem.format(most=MAX_DOWNLOAD_SHEETS))
    note = services.printer.missing_letters(options, names, client)
    about = {"title": title, "sheets": sheets, "back": back, "note": note}
    arguments = {"options": asdict(options), "base_url": base_url, "activity_sheet": activity_sheet,
                 "material_id": material_id, "names": [] if activity_sheet else list(names)}  # fmt: skip
    key, teacher_id = secrets.token_urlsafe(18), teacher.id if teacher else None
    try:
        return services.jobs.submit("handout", client, key, about, arguments, teacher_id=teacher_id, along=along)
    except JobRefusedError as refusal:
        sentences = {
            "full": "",
            "no-worker": no_worker(),
            "yours": _("Several of your handouts are being made: wait for one, or cancel one."),
            "hourly": _("You have created many handouts within an hour: try again in an hour."),
        }
        raise PrinterBusyError(sentences[refusal.reason]) from None


def make_handout(services: Services, task: Task) -> bytes:
    """The PDF of a queued handout; progress is reported to `task`, whose `check` can end the work.

    Raises HandoutError if its activity or worksheet is gone, another ValueError if the sheets can no longer be made.
    """
    arguments = task.arguments
    options, tickets = HandoutOptions(**arguments["options"]), services.tickets
    make_sheets: MakeSheets
    if arguments["activity_sheet"]:
        activity_id, sheet_number = arguments["activity_sheet"]
        activity = services.store.activities.find(activity_id)
        if activity is None:
            raise HandoutError(_("This activity has been deleted."))
        sheets = _class_sheets(services, activity, sheet_number, options.sheets, task.check)
        make_sheets, tickets = partial(tuple, sheets), printable_tickets(services, activity)
    else:
        library = library_with_model(services.library, services.store, options.model)
        if arguments["material_id"]:
            material = services.store.materials.find(arguments["material_id"])
            if material is None:
                raise HandoutError(_("This worksheet has been removed."))
            library = with_materials(services.library, {}, services.store, [material]).library
        make_sheets = partial(plan_sheets, library, options, arguments["names"])
    return services.printer.print_large(options, make_sheets, arguments["base_url"], tickets, task.report, task.check)


def printable_tickets(services: Services, activity: Activity) -> Mapping[str, Ticket]:
    """The exit tickets that can be printed: those in files, and the activity's own as frozen."""
    own = frozen_ticket(activity.content)
    return {**services.tickets, **({own.key: own} if own else {})}


def _class_sheets(
    services: Services, activity: Activity, sheet_number: int, count: int, check: Callable[[], None]
) -> list[HandoutSheet]:
    course = services.store.courses.find(activity.course_id)
    students = services.store.roster.students(course) if course else ()
    if not students:
        return [HandoutSheet(activity_variant(services.library, services.store, activity, sheet_number))] * count
    sheets, names = list[HandoutSheet](), names_with_numbers(students)
    for student in students:
        variant = student_sheet(services.library, services.store, activity, student, sheet_number).variant
        sheets.append(HandoutSheet(variant, names[student.id]))
        check()
        time.sleep(0)  # saves of this process go first
    return sheets
