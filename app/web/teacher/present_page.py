"""An activity on the projector: how to join it, or the class's progress and misconceptions; never names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.closing_menu import ClosingMenu, closing_menu
from app.classes.live_snapshot import LiveSnapshot
from app.web.shared import permissions
from app.web.shared.activity_steps import short_time
from app.web.shared.forms import FormDep, clamped_number
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import url_for
from app.web.teacher.live_view import ClassPage, change_spotlight, class_page, is_news

router = APIRouter(include_in_schema=False)

PresenterView = Literal["code", "progress"]


@dataclass(frozen=True)
class PresentPage(ClassPage):
    """Everything that templates/teacher/present.html and _present.html show."""

    now: Annotated[datetime, Doc("The server's time, which the page's clock goes by.")]
    closes: Annotated[str, Doc("When it closes: the time, and the date if that is not today; empty for no time.")]
    view: Annotated[PresenterView, Doc("What fills the page, until the teacher chooses the other one.")]
    closing: Annotated[ClosingMenu, Doc("Whether it can be closed, or that undone.")]


@dataclass(frozen=True)
class PresenterRequest:
    """What a request wants on the projector: the progress of one sheet, or the join code."""

    access: permissions.ActivityAccess
    number: int  # the sheet's number, from 1; 0 if the activity has none
    view: PresenterView


def presenter_request(access: StaffActivity, sheet: str = "", view: str = "") -> PresenterRequest:
    """What a query asks for; `sheet` is the nearest number that exists, the first for any other text."""
    number = clamped_number(sheet, len(access.activity.content.items))
    return PresenterRequest(access, number, "progress" if view == "progress" else "code")


PresenterRequestDep = Annotated[PresenterRequest, Depends(presenter_request)]


@router.get("/activities/{activity_id:int}/present")
def show_presenter(request: Request, services: ServicesDep, wanted: PresenterRequestDep) -> Response:
    """The whole page, without the site's navigation."""
    return render("teacher/present.html", _present_page(request, services, wanted))


@router.get("/activities/{activity_id:int}/present/now")
def show_presenter_now(
    request: Request, services: ServicesDep, wanted: PresenterRequestDep, seen: str = ""
) -> Response:
    """The changing part of the page, polled every second; 204 if it is no news for version `seen`."""
    page = _present_page(request, services, wanted)
    return render("teacher/_present.html", page) if is_news(page, seen) else Response(status_code=204)


@router.post("/activities/{activity_id:int}/present/explain")
def explain_on_projector(
    request: Request, services: ServicesDep, access: EditableActivity, wanted: PresenterRequestDep, form: FormDep
) -> Response:
    """Show a misconception's explanation on the activity's live views and projectors, or remove it."""
    change_spotlight(services, access.activity, wanted.number, form)
    if is_htmx(request):
        return render("teacher/_present.html", _present_page(request, services, wanted))
    path = url_for("show_presenter", activity_id=access.activity.id, sheet=wanted.number, view=wanted.view)
    return RedirectResponse(path, 303)


def _present_page(request: Request, services: Services, wanted: PresenterRequest) -> PresentPage:
    shown = class_page(request, services, wanted.access, wanted.number)
    closing = closing_menu(services.store, wanted.access.activity, wanted.access.now, _count_working(shown.snapshot))
    version = f"{shown.version}-{closing.can_close}-{closing.can_undo}"
    return PresentPage(
        **{**vars(shown), "version": version},
        now=wanted.access.now,
        closes=short_time(wanted.access.activity.closes_at, wanted.access.now, wanted.access.course.time_zone),
        view=wanted.view,
        closing=closing,
    )


def _count_working(snapshot: LiveSnapshot) -> int:
    everybody = (each for sheet in snapshot.sheets for each in sheet.progress.items())
    return len({student for student, progress in everybody if progress.stage in ("typing", "checked")})
