"""A running activity for its teachers: the live page, and the presenter view for the projector, which has no names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.closing_menu import can_close, can_undo_close
from app.classes.frozen.misconception_words import MisconceptionWords, misconception_words
from app.classes.live_snapshot import LiveProgress, LiveSnapshot, SheetSnapshot
from app.classes.roster_lookup import named_apart
from app.classes.student_sheet import activity_variant, worksheet_titles
from app.figures.parts import Figure
from app.grading.explain import explain_misconception
from app.sheets.worksheet import MAX_MISCONCEPTION_KEY
from app.store import Activity, Phase, Spotlight, Student
from app.translation import gettext as _
from app.web.shared.activity_steps import short_time
from app.web.shared.forms import FormDep, FormReader, clamped_number
from app.web.shared.permissions import ActivityAccess, EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import public_address, url_for

router = APIRouter(include_in_schema=False)

# An older count than the page has shown comes from another process; this exceeds the greatest age of a shown snapshot.
MAX_BEHIND_S = 15.0


@dataclass(frozen=True)
class LiveView:
    """What a request wants to see: which sheet, with or without names, of whom, and whether the page reloads."""

    number: int  # the sheet's number, from 1; 0 if the activity has none
    named: bool
    reloads: bool
    sort: str = ""  # "rows": most right rows first; otherwise by name
    show: str = ""  # only students at this stage, or with this misconception; empty for everybody

    @property
    def query(self) -> dict[str, str]:
        texts = (("names", "yes"), ("sort", self.sort), ("show", self.show)) if self.named else ()
        return {name: value for name, value in texts if value}

    def listed(self, sheet: SheetSnapshot | None, students: Sequence[Student]) -> list[tuple[Student, LiveProgress]]:
        """The students to show, in order, with their progress."""
        lines = [(student, sheet.progress[student.id] if sheet else LiveProgress()) for student in students]
        shown = [
            (student, progress)
            for student, progress in lines
            if sheet is None or self.show in ("", progress.stage, *progress.misconceptions)
        ]
        return sorted(shown, key=lambda line: -line[1].rows_right) if self.sort == "rows" else shown


def live_view(
    access: StaffActivity, sheet: str = "", names: str = "", reload: str = "", sort: str = "", show: str = ""
) -> LiveView:
    """The view that a query asks for; `sheet` is the nearest number that exists, the first sheet for any other text."""
    number = clamped_number(sheet, len(access.activity.content.items))
    order = "rows" if sort == "rows" else ""
    return LiveView(number, names == "yes", reload == "yes", order, show[:MAX_MISCONCEPTION_KEY])


LiveViewDep = Annotated[LiveView, Depends(live_view)]


@router.get("/activities/{activity_id:int}/live")
def show_live(request: Request, services: ServicesDep, access: StaffActivity, view: LiveViewDep) -> Response:
    return render("teacher/live.html", **_live_names(request, services, access, view))


@router.get("/activities/{activity_id:int}/live/now")
def show_live_now(
    request: Request, services: ServicesDep, access: StaffActivity, view: LiveViewDep, seen: str = ""
) -> Response:
    """The changing part of the page, polled every second; 204 if it is no news for version `seen`."""
    return _render_news("teacher/_live.html", seen, _live_names(request, services, access, view))


@router.post("/activities/{activity_id:int}/live/explain")
def explain_to_class(
    request: Request, services: ServicesDep, access: EditableActivity, view: LiveViewDep, form: FormDep
) -> Response:
    """Show a misconception's explanation on the activity's live views and projectors, or remove it."""
    _change_spotlight(services, access.activity, view.number, form)
    if is_htmx(request):
        return render("teacher/_live.html", **_live_names(request, services, access, view))
    query = view.query | ({"reload": "yes"} if view.reloads else {})
    return RedirectResponse(url_for("show_live", activity_id=access.activity.id, sheet=view.number, **query), 303)


def _live_names(request: Request, services: Services, access: ActivityAccess, view: LiveView) -> dict[str, Any]:
    names = _class_names(request, services, access, view.number)
    students = named_apart(services.store.roster.students(access.course)) if view.named else ()
    came = frozenset(names["snapshot"].student_ids)
    listed = view.listed(names["sheet"], [student for student in students if student.id in came])
    return {**names, "view": view, "students": listed}


# The presenter view


@router.get("/activities/{activity_id:int}/present")
def show_presenter(
    request: Request, services: ServicesDep, access: StaffActivity, sheet: str = "", view: str = ""
) -> Response:
    """The whole page, without the site's navigation; `view` is "progress" or else the join code."""
    return render("teacher/present.html", **_presenter_names(request, services, access, sheet, view))


@router.get("/activities/{activity_id:int}/present/now")
def show_presenter_now(
    request: Request, services: ServicesDep, access: StaffActivity, sheet: str = "", view: str = "", seen: str = ""
) -> Response:
    """The changing part of the page, polled every second; 204 if it is no news for version `seen`."""
    return _render_news("teacher/_present.html", seen, _presenter_names(request, services, access, sheet, view))


@router.post("/activities/{activity_id:int}/present/explain")
def explain_on_projector(
    request: Request,
    services: ServicesDep,
    access: EditableActivity,
    form: FormDep,
    sheet: str = "",
    view: str = "",
) -> Response:
    """Show a misconception's explanation on the activity's live views and projectors, or remove it."""
    number = clamped_number(sheet, len(access.activity.content.items))
    _change_spotlight(services, access.activity, number, form)
    names = _presenter_names(request, services, access, sheet, view)
    if is_htmx(request):
        return render("teacher/_present.html", **names)
    path = url_for("show_presenter", activity_id=access.activity.id, sheet=number, view=names["view"])
    return RedirectResponse(path, 303)


def _presenter_names(
    request: Request, services: Services, access: ActivityAccess, sheet: str, view: str
) -> dict[str, Any]:
    activity, now = access.activity, access.now
    names = _class_names(request, services, access, clamped_number(sheet, len(activity.content.items)))
    closable, undoable = can_close(activity, now), can_undo_close(services.store, activity)
    return {
        **names,
        "version": f"{names['version']}-{closable}-{undoable}",
        "now": now,
        "closes": short_time(activity.closes_at, now, access.course.time_zone),
        "view": "progress" if view == "progress" else "code",
        "working": _count_working(names["snapshot"]),
        "can_close": closable,
        "can_undo": undoable,
    }


def _count_working(snapshot: LiveSnapshot) -> int:
    everybody = (each for sheet in snapshot.sheets for each in sheet.progress.items())
    return len({student for student, progress in everybody if progress.stage in ("typing", "checked")})


# Both


@dataclass(frozen=True)
class Explained:
    """The misconception explained to the class, with its drawing next to the true one if that is shown."""

    key: str
    name: str
    message: str
    can_draw: bool
    pairs: tuple[tuple[Figure, Figure], ...]  # with the misconception, and right; empty if not shown


def _class_names(request: Request, services: Services, access: ActivityAccess, number: int) -> dict[str, Any]:
    """What both pages show of a class, usually at most a second old, with sheet `number`, from 1."""
    activity, phase = access.activity, access.phase
    snapshot = services.live_snapshots.get(services.library, services.store, activity)
    sheet = snapshot.sheets[number - 1] if 0 < number <= len(snapshot.sheets) else None
    spotlight = services.store.activities.spotlight(activity.id)
    words = misconception_words(services.library, services.store, activity)
    return {
        "access": access,
        "phase": phase,
        "address": public_address(request, services.settings),
        "titles": worksheet_titles(activity.content),
        "number": number,
        "snapshot": snapshot,
        "sheet": sheet,
        "words": words,
        "spotlight": _explained(services, words, activity, spotlight) if spotlight else None,
        "version": _version(snapshot, phase, spotlight, activity.plan.closes_at),
    }


def _version(snapshot: LiveSnapshot, phase: Phase, spotlight: Spotlight | None, *shown: object) -> str:
    """When the class was counted, and what changes with everything shown."""
    explained = (spotlight.sheet_number, spotlight.misconception, spotlight.shows_drawing) if spotlight else ()
    return "-".join(map(str, (round(snapshot.taken_at.timestamp(), 3), snapshot.version, phase, *explained, *shown)))


def _render_news(template: str, seen: str, names: dict[str, Any]) -> Response:
    """The template, if a browser with version `seen` of it needs this: it differs and isn't slightly older."""
    counted_at, _dash, shown = names["version"].partition("-")
    seen_at, _dash, seen_shown = seen.partition("-")
    behind_s = float(seen_at) - float(counted_at) if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", seen_at) else 0
    is_news = shown != seen_shown and not 0 < behind_s <= MAX_BEHIND_S
    return render(template, **names) if is_news else Response(status_code=204)


def _change_spotlight(services: Services, activity: Activity, number: int, form: FormReader) -> None:
    """Show the class the form's `misconception` for sheet `number`, from 1; an empty one removes it."""
    misconception, spotlight = form.single_line("misconception", MAX_MISCONCEPTION_KEY), None
    if misconception:
        words = misconception_words(services.library, services.store, activity)
        if not number or not words.explanation(misconception):
            raise HTTPException(422, _("This sheet can’t show that misconception."))
        spotlight = Spotlight(number, misconception, form.raw("drawn") == "yes")
    services.store.activities.set_spotlight(activity.id, spotlight)


def _explained(
    services: Services, words: MisconceptionWords, activity: Activity, spotlight: Spotlight
) -> Explained | None:
    key = spotlight.misconception
    if spotlight.sheet_number > len(activity.content.items) or not words.explanation(key):
        return None
    variant = activity_variant(services.library, services.store, activity, spotlight.sheet_number)
    explanation = explain_misconception(variant, key)
    message = explanation.message or words.explanation(key)  # an author's may belong to another sheet
    pairs = explanation.figures[:1] if spotlight.shows_drawing else ()
    return Explained(key, words.name(key), message, bool(explanation.figures), pairs)
