"""An activity on the projector: how to join it, then how far the class is and what it misunderstands; never names."""

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

CodeSize = Literal["large", "small", ""]
CODE_SIZES: dict[str, CodeSize] = {"large": "large", "small": "small"}


@dataclass(frozen=True)
class PresentPage(ClassPage):
    """Everything that templates/teacher/present.html and _present.html show."""

    now: Annotated[datetime, Doc("The server's time, which the page's clock goes by.")]
    closes: Annotated[str, Doc("When it closes: the time, and the date if that is not today; empty for no time.")]
    query: Annotated[dict[str, str], Doc("The part of the address's query that fixes the size of the code.")]
    large_code: Annotated[bool, Doc("Whether the join code fills the page, in place of what the class does.")]
    closing: Annotated[ClosingMenu, Doc("Whether it can be closed, or that undone.")]


@dataclass(frozen=True)
class PresenterRequest:
    """Which sheet a request wants on the projector, and the join code large, small, or ("") as the page decides."""

    access: permissions.ActivityAccess
    number: int  # of the sheet, from 1; 0 where the activity has none
    code: CodeSize


def presenter_request(access: StaffActivity, sheet: str = "", code: str = "") -> PresenterRequest:
    """What a query asks for; `sheet` is the nearest number that exists, the first for any other text.

    `code` is a key of CODE_SIZES; any other text leaves the size to the page.
    """
    number = clamped_number(sheet, len(access.activity.content.items))
    return PresenterRequest(access, number, CODE_SIZES.get(code, ""))


PresenterRequestDep = Annotated[PresenterRequest, Depends(presenter_request)]


@router.get("/activities/{activity_id:int}/present")
def show_presenter(request: Request, services: ServicesDep, wanted: PresenterRequestDep) -> Response:
    """The whole page, without the site's navigation."""
    return render("teacher/present.html", _present_page(request, services, wanted))


@router.get("/activities/{activity_id:int}/present/now")
def show_presenter_now(
    request: Request, services: ServicesDep, wanted: PresenterRequestDep, seen: str = ""
) -> Response:
    """The part of the page that changes, asked for every second; 204 if that is no news to a page of version `seen`."""
    page = _present_page(request, services, wanted)
    return render("teacher/_present.html", page) if is_news(page, seen) else Response(status_code=204)


@router.post("/activities/{activity_id:int}/present/explain")
def explain_on_projector(
    request: Request, services: ServicesDep, access: EditableActivity, wanted: PresenterRequestDep, form: FormDep
) -> Response:
    """Show a misconception's explanation on every live view and projector of the activity, or remove it; 422 as
    `change_spotlight` raises it.

    htmx gets the changed part of the page; other requests are redirected to the presenter view of the same sheet.
    """
    change_spotlight(services, access.activity, wanted.number, form)
    if is_htmx(request):
        return render("teacher/_present.html", _present_page(request, services, wanted))
    return RedirectResponse(url_for("show_presenter", activity_id=access.activity.id, sheet=wanted.number), 303)


def _present_page(request: Request, services: Services, wanted: PresenterRequest) -> PresentPage:
    """The page that was asked for, with the join code as large as asked.

    Unless a size was asked for, the code is large while nobody has joined, or fewer than half of those who joined have
    begun the sheet that most have begun; but never while a misconception is explained, or once the activity is closing
    or closed. The page's version also changes with whether the activity can be closed and that undone.
    """
    shown = class_page(request, services, wanted.access, wanted.number)
    begun, joined = max((each.begun for each in shown.snapshot.sheets), default=0), len(shown.snapshot.student_ids)
    is_early = joined == 0 or 2 * begun < joined
    needs_code = is_early and not shown.spotlight and shown.phase in ("draft", "waiting", "open")
    closing = closing_menu(services.store, wanted.access.activity, wanted.access.now, _count_working(shown.snapshot))
    version = f"{shown.version}-{closing.can_close}-{closing.can_undo}"
    return PresentPage(
        **{**vars(shown), "version": version},
        now=wanted.access.now,
        closes=short_time(wanted.access.activity.closes_at, wanted.access.now, wanted.access.course.time_zone),
        query={"code": wanted.code} if wanted.code else {},
        large_code=wanted.code == "large" or (needs_code and not wanted.code),
        closing=closing,
    )


def _count_working(snapshot: LiveSnapshot) -> int:
    """How many students are typing on or have checked at least one sheet that they have not handed in."""
    everybody = (each for sheet in snapshot.sheets for each in sheet.progress.items())
    return len({student for student, progress in everybody if progress.stage in ("typing", "checked")})
