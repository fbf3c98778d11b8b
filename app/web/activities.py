"""An activity: opening and closing; copies, deletion, regrading, printing."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import segno
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.activity import MAX_MINUTES, Policies, PoliciesError
from app.classes.closing_menu import close_undoably, undo_last_close
from app.classes.course_settings import duplicate_activity
from app.classes.frozen.offered_worksheets import content_to_open, offer_of
from app.classes.materials import materials_for_course
from app.classes.promises import rule_in_words
from app.classes.regrade import Basis, CountedChange
from app.classes.roster_lookup import names_with_numbers
from app.classes.student_sheet import give_sheets, worksheet_titles
from app.handout.options import MAX_PRINTED_LINE_LENGTH, NO_BACK, HandoutError
from app.names import name_key
from app.store import AuditAction, Store, Student
from app.translation import gettext as _
from app.web.shared.forms import FormDep, cut_page, whole_number
from app.web.shared.handout_form import HandoutForm, handout_base_url
from app.web.shared.handout_jobs import printable_tickets, start_handout
from app.web.shared.permissions import (
    LARGEST_ID,
    ActivityAccess,
    EditableActivity,
    InstructorActivity,
    QueueClient,
    StaffActivity,
    require_editable_course,
)
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.templating import long_date, render
from app.web.shared.threads import in_threads
from app.web.shared.urls import public_address, url_for

router = APIRouter(include_in_schema=False)

# The options in a class's handout form: sheets, names and lengths come from the activity.
CLASS_OPTIONS = ("sheets", "course", "date", "layout", "paper", "back", "key", "large", "figures")


@router.post("/activities/{activity_id:int}/open")
def open_activity(services: ServicesDep, access: EditableActivity) -> Response:
    """Open the activity from any state; students come in from its opening time on."""
    store = services.store
    materials = materials_for_course(services.library, services.tickets, store, access.course, access.teacher)
    with store.audit_log.recording(access.teacher, AuditAction.ACTIVITY_OPENED, access.activity):
        activity, now = store.activities.locked(access.activity), store.now()
        if activity is None:
            raise HTTPException(404)
        store.activities.revise(activity, content_to_open(materials.library, materials.tickets, store, activity))
        if activity.plan.closes_at and replace(activity, state="open").phase(now) in ("closing", "closed"):
            store.activities.change(activity, replace(activity.plan, closes_at=None))
        store.activities.set_state(activity, "open")
        if opened := store.activities.find(activity.id):
            give_sheets(materials.library, store, opened)
    return RedirectResponse(url_for("show_activity", activity_id=activity.id), 303)


@router.post("/activities/{activity_id:int}/close")
def close_activity(store: StoreDep, access: EditableActivity, form: FormDep) -> Response:
    """Set the closing time to `minutes` from now or, if that is 0 or empty, a few seconds (UNDO_TIME)."""
    typed = form.raw("minutes")
    minutes = whole_number(typed, MAX_MINUTES) if typed else 0
    if minutes is None:
        problem = _(
            "The activity was not closed. Go back and choose when to close it, at most {most:,} minutes from now."
        )
        raise HTTPException(422, problem.format(most=MAX_MINUTES))
    with store.transaction():
        if close_undoably(store, access.activity, minutes):
            store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CLOSED, access.activity)
    return RedirectResponse(url_for("show_activity", activity_id=access.activity.id), 303)


@router.post("/activities/{activity_id:int}/undo-close")
def undo_close(store: StoreDep, access: EditableActivity) -> Response:
    """Restore the times from before Close was pressed (once or repeatedly)."""
    with store.transaction():
        undone = undo_last_close(store, access.activity)
        if undone:
            store.audit_log.record(access.teacher, AuditAction.CLOSE_UNDONE, access.activity)
    query = {} if undone else {"done": "too-late"}
    return RedirectResponse(url_for("show_activity", activity_id=access.activity.id, **query), 303)


@router.get("/activities/{activity_id:int}/qr.svg")
def draw_qr_code(request: Request, services: ServicesDep, access: StaffActivity) -> Response:
    """The QR code of the activity's join address; 404 for an address that students' phones couldn't open."""
    address = public_address(request, services.settings)
    if address.is_local:
        raise HTTPException(404)
    svg, path = io.BytesIO(), url_for("show_name_form", code=access.activity.join_code)
    code = segno.make(address.url + path, error="m", micro=False)
    code.save(svg, kind="svg", border=2, dark="#000", light="#fff", omitsize=True)
    return Response(svg.getvalue(), media_type="image/svg+xml")


# Copies and deletion


@router.post("/activities/{activity_id:int}/duplicate")
def duplicate(services: ServicesDep, access: InstructorActivity, form: FormDep) -> Response:
    """Add a draft with the same content and rules, without times, to a course, and redirect to its form."""
    store, typed = services.store, form.raw("course")
    course_id = (whole_number(typed, LARGEST_ID) or 0) if typed else access.course.id
    course = require_editable_course(services, access.teacher, course_id).course
    title = access.activity.plan.title
    if course.id == access.course.id:
        title = _("{title} (copy)").format(title=title)
    with store.transaction():
        copy = duplicate_activity(store, access.activity, course, title)
        store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CREATED, copy)
    return RedirectResponse(url_for("show_activity_form", activity_id=copy.id), 303)


@router.get("/activities/{activity_id:int}/delete")
def show_delete_activity(store: StoreDep, access: EditableActivity) -> Response:
    return _render_deletion(store, access)


@router.post("/activities/{activity_id:int}/delete")
def delete_activity(store: StoreDep, access: EditableActivity, form: FormDep) -> Response:
    """Delete the activity for good, with all work in it, if its title was typed."""
    title = " ".join(access.activity.plan.title.split())
    typed = form.single_line("title")
    if typed != title:
        problem = _("That isn’t the title of this activity, so nothing was deleted. Type it exactly as shown above.")
        return _render_deletion(store, access, 422, typed, problem)
    with store.audit_log.recording(access.teacher, AuditAction.ACTIVITY_DELETED, access.course, title):
        store.activities.delete(access.activity)
    return RedirectResponse(url_for("show_course", course_id=access.course.id, done="activity-deleted"), 303)


def _render_deletion(
    store: Store, access: ActivityAccess, status: int = 200, typed: str = "", problem: str = ""
) -> Response:
    came = store.classwork.attendance(access.activity.id)
    return render(
        "teacher/delete_activity.html",
        status=status,
        access=access,
        students=len(came),
        attempts=store.grades.count_attempts(access.activity.id),
        tickets=sum(each.ticket_in for each in came),
        typed=typed,
        problem=problem,
    )


# Regrading


@router.get("/activities/{activity_id:int}/regrade")
def show_regrade(
    services: ServicesDep,
    access: StaffActivity,
    changed: str = "",
    by: str = "",
    marking: str = "",
    counting: str = "",
    page: str = "",
) -> Response:
    """What a regrade would change; nothing is changed. An unknown rule means the activity's."""
    policies = _with_rule(access.activity.policies, marking, counting)
    return _render_regrade(services, access, _basis(by), policies, page=page, changed=changed)


@router.post("/activities/{activity_id:int}/regrade")
def apply_regrade(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Regrade by the form's `by` and rule, if that makes exactly the changes that the form showed."""
    store, activity, teacher, fingerprint = services.store, access.activity, access.teacher, form.raw("changes")
    basis, policies = _basis(form.raw("by")), _with_rule(activity.policies, form.raw("marking"), form.raw("counting"))
    library = materials_for_course(services.library, services.tickets, store, access.course, teacher).library
    applied = services.regrading.apply(library, store, activity, teacher, fingerprint, basis, policies)
    if applied is None:
        notice = _(
            "New attempts or another regrade have come in since you loaded this page. This is what would change now."
        )
        return _render_regrade(services, access, basis, policies, 409, notice=notice)
    count = len(applied.changes)
    return RedirectResponse(url_for("show_regrade", activity_id=activity.id, changed=count, by=basis), 303)


def _basis(by: str) -> Basis:
    return "library" if by == "library" else "frozen"


def _with_rule(policies: Policies, marking: str, counting: str) -> Policies:
    try:
        return Policies.checked(
            **{**vars(policies), "marking": marking or policies.marking, "counting": counting or policies.counting}
        )
    except PoliciesError:
        return policies


def _render_regrade(
    services: Services,
    access: ActivityAccess,
    by: Basis,
    policies: Policies,
    status: int = 200,
    *,
    page: str = "",
    changed: str = "",
    notice: str = "",
) -> Response:
    store, activity = services.store, access.activity
    materials = materials_for_course(services.library, services.tickets, store, access.course, access.teacher)
    preview = services.regrading.preview(materials.library, store, activity, by, policies)
    count = whole_number(changed, preview.attempts)
    if count is not None:
        notice = _(
            "Done: {changed} of {attempts} attempts have new marks. The earlier marks are kept with each "
            "student’s attempts."
        ).format(changed=count, attempts=preview.attempts)
    names = names_with_numbers(store.roster.students(access.course))
    changes, pager = cut_page(_by_name(preview.score_changes, names), page)
    return render(
        "teacher/regrade.html",
        status=status,
        access=access,
        by=by,
        preview=preview,
        changes=changes,
        names=names,
        pager=pager,
        past=store.regrades.of_activity(activity.id),
        corrected=offer_of(materials.library, materials.tickets, store, activity).corrected,
        rule=rule_in_words(activity.policies),
        new_rule=rule_in_words(policies) if policies != activity.policies else "",
        notice=notice,
    )


def _by_name(changes: Sequence[CountedChange], names: Mapping[int, str]) -> list[CountedChange]:
    def place(change: CountedChange) -> tuple[str, int]:
        student_id = change.before.student_id
        return name_key(names.get(student_id, "")), student_id

    return sorted(changes, key=place)


# A sheet for each student of the course, with the numbers they have on the screen


@router.get("/activities/{activity_id:int}/handout")
def show_class_handout(services: ServicesDep, access: StaffActivity) -> Response:
    """The form for sheet 1, filled in with the activity's course, day and exit ticket."""
    ticket, day = access.activity.content.ticket, access.activity.plan.day
    form = HandoutForm(
        course=access.course.title[:MAX_PRINTED_LINE_LENGTH],
        date=long_date(day) if day else "",
        back=ticket.key if ticket else NO_BACK,
    )
    return _render_handout(services, access, services.store.roster.students(access.course), "1", form)


@router.post("/activities/{activity_id:int}/handout")
@in_threads("print")
def print_for_class(
    request: Request, services: ServicesDep, access: StaffActivity, client: QueueClient, sent: FormDep
) -> Response:
    """Queue a handout that only this teacher may see, and redirect to its page."""
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
        return _render_handout(services, access, students, number, form, error.status, str(error))
    return RedirectResponse(url_for("show_print_job", key=job.key), 303)


def _render_handout(
    services: Services,
    access: ActivityAccess,
    students: Sequence[Student],
    number: str,
    form: HandoutForm,
    status: int = 200,
    problem: str = "",
) -> Response:
    return render(
        "teacher/print_class.html",
        status=status,
        access=access,
        sheets=worksheet_titles(access.activity.content),
        number=number,
        students=len(students),
        tickets=printable_tickets(services, access.activity).values(),
        form=form,
        problem=problem,
    )
