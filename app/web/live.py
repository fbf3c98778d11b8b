"""Running a class: one page for the teacher, and the projector, which shows no names and never changes by itself."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.activity import MAX_MINUTES, Projection, ProjectorView
from app.classes.closing_menu import can_close, can_undo_close
from app.classes.frozen.frozen_library import worksheet_of
from app.classes.frozen.misconception_words import MisconceptionWords, misconception_words
from app.classes.illustrations import Illustration
from app.classes.live_snapshot import LiveProgress, LiveSnapshot, SheetSnapshot
from app.classes.promises import rule_in_words
from app.classes.roster_lookup import named_apart
from app.classes.student_sheet import activity_variant, worksheet_titles
from app.sheets.code_text import gives_line_away
from app.sheets.worksheet import MAX_MISCONCEPTION_KEY
from app.store import Activity, AuditAction, Student
from app.store.exit_tickets import SHOWN_FROM
from app.translation import gettext as _
from app.web.shared.activity_steps import short_time
from app.web.shared.forms import FormDep, clamped_number, whole_number
from app.web.shared.permissions import ActivityAccess, EditableActivity, StaffActivity, editable_courses
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import public_address, url_for

router = APIRouter(include_in_schema=False)

# An older count than the page has shown comes from another process; this exceeds the greatest age of a shown snapshot.
MAX_BEHIND_S = 15.0
EXPLAINED_FROM = 2  # students; rarer misconceptions are folded away

StudentLine = tuple[Student, LiveProgress]


# The page to run a class


@dataclass(frozen=True)
class RunView:
    """What a request wants to see: which sheet, who, and which misconception is explained."""

    number: int  # the sheet's number, from 1; 0 if the activity has none
    named: bool
    by_name: bool  # or else those first who need help
    explained: str  # the key of a misconception, or ""

    @property
    def query(self) -> dict[str, str]:
        texts = {
            "sheet": str(self.number) if self.number > 1 else "",
            "names": "" if self.named else "no",
            "by": "name" if self.by_name else "",
            "explain": self.explained,
        }
        return {name: text for name, text in texts.items() if text}

    def address(self, activity: Activity, **changes: Any) -> str:
        """The page with another view."""
        return url_for("show_activity", activity_id=activity.id, **replace(self, **changes).query)


def run_view(access: StaffActivity, sheet: str = "", names: str = "", by: str = "", explain: str = "") -> RunView:
    """The view that a query asks for; `sheet` is the nearest number that exists, the first sheet for any other text."""
    number = clamped_number(sheet, len(access.activity.content.items))
    return RunView(number, names != "no", by == "name", explain[:MAX_MISCONCEPTION_KEY])


RunViewDep = Annotated[RunView, Depends(run_view)]


@router.get("/activities/{activity_id:int}")
def show_activity(
    request: Request, services: ServicesDep, access: StaffActivity, view: RunViewDep, done: str = ""
) -> Response:
    """The page to run an activity, which brings itself up to date."""
    notices = {
        "saved": _("Saved."),
        "revised": _("Saved. Students see the new version from now on; earlier answers stay as they are."),
        "too-late": _("It was too late to undo that: the activity has closed, or its times were changed."),
    }
    return _render_activity(request, services, access, view, notice=notices.get(done, ""))


def _render_activity(
    request: Request, services: Services, access: ActivityAccess, view: RunView, status: int = 200, **shown: str
) -> Response:
    """The page, with what was typed as `extra_student` and `extra_minutes` if that has a `problem`."""
    activity, store = access.activity, services.store
    roster = store.roster.students(access.course) if access.can_edit else ()
    extra = store.activities.extra_times(activity.id) if access.can_edit else {}
    courses = editable_courses(services, access.teacher) if access.role == "instructor" else ()
    # If students can check freely, the marks of a check also reveal which line is wrong.
    items = () if activity.policies.checks_freely else activity.content.items
    typed = {"problem": "", "extra_student": "", "extra_minutes": "", "notice": "", **shown}
    return render(
        "teacher/activity.html",
        status=status,
        **_run_names(request, services, access, view),
        rule=rule_in_words(activity.policies),
        telling=[item.title for item in items if gives_line_away(worksheet_of(item))],
        roster=roster,
        extra_time=[(student, extra[student.id]) for student in roster if student.id in extra],
        courses=sorted(courses, key=lambda course: course.id != access.course.id),
        **typed,
    )


@router.get("/activities/{activity_id:int}/now")
def show_activity_now(
    request: Request, services: ServicesDep, access: StaffActivity, view: RunViewDep, seen: str = ""
) -> Response:
    """The changing part of the page, polled every second; 204 if it is no news for version `seen`."""
    names = _class_names(request, services, access)
    if not _is_news(names["version"], seen):
        return Response(status_code=204)
    return render("teacher/_activity.html", **_run_names(request, services, access, view))


@router.post("/activities/{activity_id:int}/extra-time")
def give_extra_time(
    request: Request, services: ServicesDep, access: EditableActivity, view: RunViewDep, form: FormDep
) -> Response:
    typed, chosen = form.single_line("minutes"), form.single_line("student")
    minutes = whole_number(typed, MAX_MINUTES)
    students = {str(student.id): student for student in services.store.roster.students(access.course)}
    student = students.get(chosen)
    if minutes is None or student is None:
        problem = _("Choose a student, and enter a whole number of minutes up to {most}; 0 takes extra time away.")
        problem = problem.format(most=MAX_MINUTES)
        shown = {"problem": problem, "extra_student": chosen, "extra_minutes": typed}
        return _render_activity(request, services, access, view, 422, **shown)
    detail = f"activity {access.activity.id}: {minutes} min"
    with services.store.audit_log.recording(access.teacher, AuditAction.EXTRA_TIME_SET, student, detail):
        services.store.activities.set_extra_time(access.activity, student.id, minutes)
    return RedirectResponse(url_for("show_activity", activity_id=access.activity.id) + "#extra-time", 303)


def _run_names(request: Request, services: Services, access: ActivityAccess, view: RunView) -> dict[str, Any]:
    names, activity, store = _class_names(request, services, access), access.activity, services.store
    snapshot: LiveSnapshot = names["snapshot"]
    sheet = snapshot.sheets[view.number - 1] if snapshot.sheets else None
    shown = sheet.misconceptions if sheet else ()
    explained = next((key for key, _count in shown if key == view.explained), "")
    return {
        **names,
        "view": view,
        "sheet": sheet,
        "common": [(key, count) for key, count in shown if count >= EXPLAINED_FROM],
        "rare": [(key, count) for key, count in shown if count < EXPLAINED_FROM],
        "explained": _illustration(services, names["words"], activity, view.number, explained),
        "students": _student_lines(services, access, snapshot, sheet, view),
        "working": store.classwork.count_working(activity.id, [item.sheet_key for item in activity.content.items]),
        "waiting": store.exit_tickets.waiting(activity),
        "shown_from": SHOWN_FROM,
    }


def _student_lines(
    services: Services, access: ActivityAccess, snapshot: LiveSnapshot, sheet: SheetSnapshot | None, view: RunView
) -> list[StudentLine]:
    came = frozenset(snapshot.student_ids)
    students = [each for each in named_apart(services.store.roster.students(access.course)) if each.id in came]
    lines = [(student, sheet.progress[student.id]) for student in students] if sheet else []
    return lines if view.by_name else sorted(lines, key=lambda line: _need_of_help(line[1]))


def _need_of_help(progress: LiveProgress) -> tuple[bool, int, int]:
    """The smaller, the more help is needed: unfinished with few right rows and many misconceptions."""
    is_done = progress.stage in ("handed-in", "auto-submitted")
    return is_done, progress.rows_right, -len(progress.misconceptions)


# The projector


@router.get("/activities/{activity_id:int}/projector")
def show_projector(request: Request, services: ServicesDep, access: StaffActivity, view: str = "") -> Response:
    """The page without the site's navigation; `view` is for a browser that may not change the projector."""
    return render("teacher/projector.html", **_projector_names(request, services, access, view))


@router.get("/activities/{activity_id:int}/projector/now")
def show_projector_now(
    request: Request, services: ServicesDep, access: StaffActivity, view: str = "", seen: str = ""
) -> Response:
    """The changing part of the page, polled every second; 204 if it is no news for version `seen`."""
    names = _class_names(request, services, access)
    if not _is_news(names["version"], seen):
        return Response(status_code=204)
    return render("teacher/_projector.html", **_projector_names(request, services, access, view))


@router.post("/activities/{activity_id:int}/projector")
def change_projector(
    request: Request, services: ServicesDep, access: EditableActivity, view: RunViewDep, form: FormDep
) -> Response:
    """Show the form's `view` on every projector, with its `sheet` and `misconception` if it has them."""
    before = services.store.activities.projection(access.activity.id)
    chosen = _chosen_view(form.raw("view"))
    number = clamped_number(form.raw("sheet") or str(before.sheet_number), len(access.activity.content.items))
    misconception = form.single_line("misconception", MAX_MISCONCEPTION_KEY)
    if chosen is None or (misconception and not _words(services, access.activity).explanation(misconception)):
        raise HTTPException(422, _("This sheet can’t show that misconception."))
    if not misconception and number == before.sheet_number:
        misconception = before.misconception
    if chosen == "explain" and not misconception:
        misconception = _commonest(services, access.activity, number)
    services.store.activities.set_projection(access.activity.id, Projection(chosen, number, misconception))
    on_projector = form.raw("from") == "projector"
    if not is_htmx(request):
        here = url_for("show_projector", activity_id=access.activity.id)
        return RedirectResponse(here if on_projector else view.address(access.activity), 303)
    if on_projector:
        return render("teacher/_projector.html", **_projector_names(request, services, access, ""))
    return render("teacher/_activity.html", **_run_names(request, services, access, view))


def _commonest(services: Services, activity: Activity, number: int) -> str:
    """The commonest misconception on a sheet now, which stays on the projector when another becomes commoner."""
    snapshot = services.live_snapshots.get(services.library, services.store, activity)
    shown = snapshot.sheets[number - 1].misconceptions if snapshot.sheets else ()
    return next((key for key, _count in shown), "")


def _chosen_view(text: str) -> ProjectorView | None:
    return next((known for known in get_args(ProjectorView) if known == text), None)


def _projector_names(request: Request, services: Services, access: ActivityAccess, view: str) -> dict[str, Any]:
    names, activity = _class_names(request, services, access), access.activity
    projection, snapshot = names["projection"], names["snapshot"]
    if not access.can_edit and (own := _chosen_view(view)):
        projection = replace(projection, view=own)
    number = clamped_number(str(projection.sheet_number), len(activity.content.items))
    sheet = snapshot.sheets[number - 1] if snapshot.sheets else None
    is_explained = projection.view == "explain"
    return {
        **names,
        "now": access.now,
        "closes": short_time(activity.closes_at, access.now, access.course.time_zone),
        "projection": projection,
        "number": number,
        "title": names["titles"][number - 1] if len(names["titles"]) > 1 else "",
        "sheet": sheet,
        "explained": _illustration(services, names["words"], activity, number, projection.misconception)
        if is_explained
        else None,
        "working": _count_working(snapshot),
    }


def _count_working(snapshot: LiveSnapshot) -> int:
    everybody = (each for sheet in snapshot.sheets for each in sheet.progress.items())
    return len({student for student, progress in everybody if progress.stage in ("typing", "checked")})


# Both


def _class_names(request: Request, services: Services, access: ActivityAccess) -> dict[str, Any]:
    """What both pages show of a class, usually at most a second old."""
    activity, phase, now, store = access.activity, access.phase, access.now, services.store
    snapshot = services.live_snapshots.get(services.library, store, activity)
    projection = store.activities.projection(activity.id)
    closable, undoable = can_close(activity, now), can_undo_close(store, activity)
    shown = (phase, projection, activity.plan.closes_at, closable, undoable, snapshot.tickets)
    return {
        "access": access,
        "phase": phase,
        "address": public_address(request, services.settings),
        "titles": worksheet_titles(activity.content),
        "snapshot": snapshot,
        "words": _words(services, activity),
        "projection": projection,
        "can_close": closable,
        "can_undo": undoable,
        "version": f"{snapshot.taken_at.timestamp():.3f}-{snapshot.version}-{_digest(shown)}",
    }


def _digest(shown: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


def _is_news(version: str, seen: str) -> bool:
    """Whether a browser with version `seen` needs this one: it differs and isn't slightly older."""
    counted_at, _dash, shown = version.partition("-")
    seen_at, _dash, seen_shown = seen.partition("-")
    behind_s = float(seen_at) - float(counted_at) if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", seen_at) else 0
    return shown != seen_shown and not 0 < behind_s <= MAX_BEHIND_S


def _words(services: Services, activity: Activity) -> MisconceptionWords:
    return misconception_words(services.library, services.store, activity)


def _illustration(
    services: Services, words: MisconceptionWords, activity: Activity, number: int, key: str
) -> Illustration | None:
    if not key or not words.explanation(key) or not number:
        return None
    variant = activity_variant(services.library, services.store, activity, number)
    content = activity.content
    sheet_key = content.items[number - 1].sheet_key
    return services.illustrations.get(services.library, words, content, sheet_key, variant, key)
