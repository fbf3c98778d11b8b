"""Activities: made, changed, opened and closed, with the code and the picture that let students in."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import segno
from annotated_doc import Doc
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.student_sheet import freeze, worksheet_titles
from app.sheets.worksheet import WorksheetError
from app.store import Activity, AuditAction, Content, Course, Phase, Plan, Policies, PoliciesError
from app.store.activities import MAX_ATTEMPTS_ALLOWED
from app.web.shared import permissions
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import EditableActivity, EditableCourse, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import public_url

router = APIRouter(include_in_schema=False)

TIMES = ("opens", "closes")


@dataclass(frozen=True)
class FormEntry:
    """A worksheet or an exit ticket to choose, with the name of the group it stands in."""

    key: str
    name: str
    group: str
    chosen: bool


@dataclass(frozen=True)
class ActivityFormPage:
    """Everything that templates/teacher/activity_form.html shows."""

    course: Annotated[Course, Doc("The course.")]
    activity: Annotated[Activity | None, Doc("The activity that is changed, none for a new one.")]
    phase: Annotated[Phase, Doc("What the activity is at this moment.")]
    typed: Annotated[Mapping[str, str], Doc("What stands in the fields, by name.")]
    worksheets: Annotated[Mapping[str, tuple[FormEntry, ...]], Doc("The worksheets to choose from, by topic.")]
    tickets: Annotated[tuple[FormEntry, ...], Doc("The exit tickets to choose from.")]
    problem: Annotated[str, Doc("What cannot be used, or nothing.")] = ""
    field: Annotated[str, Doc("The field that the problem is about, or nothing.")] = ""


@dataclass(frozen=True)
class ActivityPage:
    """Everything that templates/teacher/activity.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who looks at it in which role.")]
    phase: Annotated[Phase, Doc("What it is at this moment.")]
    join_link: Annotated[str, Doc("The address behind the picture, as people would type it.")]
    sheets: Annotated[tuple[str, ...], Doc("What its worksheets are called.")]
    opens: Annotated[str, Doc("When it opens, in the course's time zone, or nothing.")]
    closes: Annotated[str, Doc("When it closes, in the course's time zone, or nothing.")]
    arrived: Annotated[int, Doc("How many students have come.")]
    notice: Annotated[str, Doc("What was just done, or nothing.")] = ""


class FormError(ValueError):
    """A field that cannot be used: its name, and a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@router.get("/courses/{course_id:int}/activities/new")
def new_activity(services: ServicesDep, access: EditableCourse) -> Response:
    """An empty form."""
    chosen = _chosen(Plan(""), Content((), None, ""), access.course)
    typed = {**chosen[0], "ticket": next(iter(services.tickets), "")}
    return render("teacher/activity_form.html", _form_page(services, access.course, None, typed, ()))


@router.post("/courses/{course_id:int}/activities")
def add_activity(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """A draft, which nobody but the staff sees."""
    try:
        plan, content = _read(services, form, access.course)
    except FormError as error:
        return _again(services, access.course, None, form, error)
    made = services.store.activities.add(access.course, plan, content)
    services.store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CREATED, made)
    return RedirectResponse(f"/activities/{made.id}", 303)


@router.get("/activities/{activity_id:int}")
def show_activity(request: Request, services: ServicesDep, access: StaffActivity, done: str = "") -> Response:
    """The activity: the way in, what is in it, and its rules."""
    notice = services.library.wording.say("class", done) if done in ("saved", "revised") else ""
    return render("teacher/activity.html", _activity_page(request, services, access, notice))


@router.get("/activities/{activity_id:int}/edit")
def edit_activity(services: ServicesDep, access: EditableActivity) -> Response:
    """The form as it was left."""
    typed, keys = _chosen(access.activity.plan, access.activity.content, access.course)
    return render("teacher/activity_form.html", _form_page(services, access.course, access.activity, typed, keys))


@router.post("/activities/{activity_id:int}")
def change_activity(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Keep the form; other worksheets or questions make a new revision once students have seen the old one."""
    try:
        plan, content = _read(services, form, access.course)
    except FormError as error:
        return _again(services, access.course, access.activity, form, error)
    content = _as_seen(access.activity, content)
    services.store.activities.change(access.activity, plan)
    revision = services.store.activities.revise(access.activity, content)
    done = "revised" if revision != access.activity.revision else "saved"
    action = AuditAction.ACTIVITY_REVISED if done == "revised" else AuditAction.ACTIVITY_SAVED
    services.store.audit_log.record(access.teacher, action, access.activity)
    return RedirectResponse(f"/activities/{access.activity.id}?done={done}", 303)


@router.post("/activities/{activity_id:int}/open")
def open_activity(services: ServicesDep, access: EditableActivity) -> Response:
    """Let students in, and freeze what they see; a closing time that is over is taken away."""
    activity, at = access.activity, datetime.now(UTC)
    if activity.state == "draft":
        keys = [str(item.worksheet["key"]) for item in activity.content.items]
        ticket = services.tickets.get(activity.content.ticket.key) if activity.content.ticket else None
        services.store.activities.revise(activity, freeze(services.library, keys, ticket))
    if activity.plan.closes_at and activity.plan.closes_at <= at:
        services.store.activities.change(activity, replace(activity.plan, closes_at=None))
    services.store.activities.set_state(activity, "open")
    services.store.audit_log.record(access.teacher, AuditAction.ACTIVITY_OPENED, activity)
    return RedirectResponse(f"/activities/{activity.id}", 303)


@router.post("/activities/{activity_id:int}/close")
def close_activity(services: ServicesDep, access: EditableActivity) -> Response:
    """Take nothing more in; what is there stays, and it can be opened again."""
    if access.activity.state == "open":
        services.store.activities.set_state(access.activity, "closed")
        services.store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CLOSED, access.activity)
    return RedirectResponse(f"/activities/{access.activity.id}", 303)


@router.get("/activities/{activity_id:int}/qr.svg")
def qr_code(request: Request, services: ServicesDep, access: StaffActivity) -> Response:
    """The address to join at, as a picture for a telephone."""
    picture = io.BytesIO()
    link = f"{public_url(request, services.settings)}/join/{access.activity.join_code}"
    code = segno.make(link, error="m", micro=False)
    code.save(picture, kind="svg", border=2, dark="#000", light="#fff", omitsize=True)
    headers = {"Cache-Control": "private, max-age=300"}
    return Response(picture.getvalue(), media_type="image/svg+xml", headers=headers)


def _activity_page(
    request: Request, services: Services, access: permissions.ActivityAccess, notice: str
) -> ActivityPage:
    activity, zone = access.activity, ZoneInfo(access.course.time_zone)
    shown = {
        name: at.astimezone(zone).strftime("%A %d %B %Y, %H:%M").replace(" 0", " ") if at else ""
        for name, at in zip(TIMES, (activity.plan.opens_at, activity.plan.closes_at), strict=True)
    }
    link = f"{public_url(request, services.settings)}/join/{activity.join_code}"
    arrived = len(services.store.classwork.attendance(activity.id))
    return ActivityPage(
        access,
        activity.phase(),
        link,
        worksheet_titles(activity.content),
        shown["opens"],
        shown["closes"],
        arrived,
        notice,
    )


# The form


def _read(services: Services, form: FormReader, course: Course) -> tuple[Plan, Content]:
    """What the form says; raises FormError."""
    words = services.library.wording
    title = form.single_line("title")
    if not title:
        raise FormError("title", words.say("class", "no-title"))
    opens, closes = (_time(services, form, name, course) for name in TIMES)
    if opens and closes and closes <= opens:
        raise FormError("closes", words.say("class", "closes-early"))
    plan = Plan(title, _day(services, form), _policies(services, form), opens, closes)
    return plan, _content(services, form)


def _content(services: Services, form: FormReader) -> Content:
    words, keys = services.library.wording, [key for key in form.all("worksheet") if key]
    ticket = services.tickets.get(form.single_line("ticket"))
    if not keys and not ticket:
        raise FormError("worksheet", words.say("class", "nothing-in-it"))
    if len(keys) != len(set(keys)):
        raise FormError("worksheet", words.say("class", "same-sheet-twice"))
    try:
        return freeze(services.library, keys, ticket)
    except WorksheetError:
        missing = next(key for key in keys if key not in services.library.worksheets)
        raise FormError("worksheet", words.say("class", "no-such-sheet", sheet=missing[:60])) from None


def _policies(services: Services, form: FormReader) -> Policies:
    words = services.library.wording
    attempts, share = (
        form.single_line("max_attempts", 20),
        form.single_line("follow_share", 20).removesuffix("%").strip(),
    )
    if attempts and not (attempts.isascii() and attempts.isdigit() and 1 <= int(attempts) <= MAX_ATTEMPTS_ALLOWED):
        raise FormError("max_attempts", words.say("class", "max-attempts-range", most=MAX_ATTEMPTS_ALLOWED))
    if not (share.isascii() and share.isdigit() and int(share) <= 100):
        raise FormError("follow_share", words.say("class", "share-range"))
    said: dict[str, Any] = {name: form.single_line(name) for name in ("variants", "feedback", "run")}
    said |= {name: form.single_line(name) == "yes" for name in ("hints", "ticket_anonymous")}
    try:
        return Policies(**said, max_attempts=int(attempts or 0), follow_share=int(share) / 100)
    except PoliciesError as error:
        raise FormError(str(error), words.say("class", "no-policy", field=error)) from None


def _time(services: Services, form: FormReader, name: str, course: Course) -> datetime | None:
    """A time as the course's clocks show it."""
    text = form.single_line(name, 40)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(course.time_zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise FormError(name, services.library.wording.say("class", "no-time", text=text)) from None


def _day(services: Services, form: FormReader) -> date | None:
    text = form.single_line("day", 40)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise FormError("day", services.library.wording.say("class", "no-day", text=text)) from None


def _as_seen(activity: Activity, content: Content) -> Content:
    """The same content where nothing that students see has changed but the wording of the rest of the app."""
    same = replace(content, wording=activity.content.wording) == activity.content
    return activity.content if same else content


def _chosen(plan: Plan, content: Content, course: Course) -> tuple[dict[str, str], tuple[str, ...]]:
    """What stands in the fields of a plan, and the keys of its worksheets."""
    zone, policies = ZoneInfo(course.time_zone), plan.policies
    times = {
        name: at.astimezone(zone).strftime("%Y-%m-%dT%H:%M") if at else ""
        for name, at in zip(TIMES, (plan.opens_at, plan.closes_at), strict=True)
    }
    typed = {
        "title": plan.title, "day": plan.day.isoformat() if plan.day else "", **times, "variants": policies.variants,
        "feedback": policies.feedback, "run": policies.run, "max_attempts": str(policies.max_attempts or ""),
        "follow_share": f"{policies.follow_share * 100:.0f}", "hints": "yes" if policies.hints else "",
        "ticket_anonymous": "yes" if policies.ticket_anonymous else "no",
        "ticket": content.ticket.key if content.ticket else "",
    }  # fmt: skip
    return typed, tuple(str(item.worksheet["key"]) for item in content.items)


def _again(
    services: Services, course: Course, activity: Activity | None, form: FormReader, error: FormError
) -> Response:
    """The form once more with everything typed still there."""
    names = _chosen(Plan(""), Content((), None, ""), course)[0]
    typed = {name: form.single_line(name) for name in names}
    page = _form_page(services, course, activity, typed, form.all("worksheet"))
    return render("teacher/activity_form.html", replace(page, problem=str(error), field=error.field), 422)


def _form_page(
    services: Services, course: Course, activity: Activity | None, typed: Mapping[str, str], keys: tuple[str, ...]
) -> ActivityFormPage:
    words, library = services.library.wording, services.library
    groups = {
        words.say("topics", topic): tuple(
            FormEntry(sheet.key, sheet.title, topic, sheet.key in keys)
            for sheet in library.worksheets.values()
            if sheet.topic == topic
        )
        for topic in library.topics
    }
    tickets = tuple(FormEntry(t.key, t.title, "", t.key == typed["ticket"]) for t in services.tickets.values())
    return ActivityFormPage(course, activity, activity.phase() if activity else "draft", typed, groups, tickets)
