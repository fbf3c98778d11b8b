"""A running activity for its teachers: the class's progress, student by student, and its misconceptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.frozen.misconception_words import MisconceptionWords
from app.classes.live_snapshot import LiveProgress, SheetSnapshot, Stage
from app.classes.roster_lookup import named_apart
from app.sheets.worksheet import MAX_MISCONCEPTION_KEY
from app.store import Student
from app.web.shared import permissions
from app.web.shared.forms import FormDep, clamped_number
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import url_for
from app.web.teacher.live_view import ClassPage, activity_words, change_spotlight, class_page, is_news

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class StudentProgress:
    """A student by name: their progress with the sheet, their right rows, and misconceptions by name."""

    name: str
    stage: Stage
    rows_right: int
    misconceptions: tuple[str, ...]


@dataclass(frozen=True)
class LiveView:
    """What a request wants to see of an activity: which sheet, with or without names, reloading or not."""

    access: permissions.ActivityAccess
    number: int  # the sheet's number, from 1; 0 if the activity has none
    named: bool
    reloads: bool
    sort: str = ""  # "rows": most right rows first; otherwise by name
    show: str = ""  # only students at this stage, or with this misconception; empty for everybody

    @property
    def query(self) -> dict[str, str]:
        """The query's `names`, `sort` and `show`, if set; empty without names."""
        texts = (("names", "yes"), ("sort", self.sort), ("show", self.show)) if self.named else ()
        return {name: value for name, value in texts if value}

    def includes(self, progress: LiveProgress) -> bool:
        """Whether `show` is empty, the student's stage, or one of the student's misconceptions."""
        return self.show in ("", progress.stage, *progress.misconceptions)

    @property
    def path(self) -> str:
        """The address of the page with this view."""
        reload = {"reload": "yes"} if self.reloads else {}
        return url_for("show_live", activity_id=self.access.activity.id, sheet=self.number, **self.query, **reload)


@dataclass(frozen=True)
class LivePage(ClassPage):
    """Everything that templates/teacher/live.html and _live.html show."""

    view: Annotated[LiveView, Doc("Which sheet is shown, whether with names, and of whom, and whether it reloads.")]
    students: Annotated[tuple[StudentProgress, ...], Doc("Who came and is shown, in order; nobody without names.")]


def live_view(
    access: StaffActivity, sheet: str = "", names: str = "", reload: str = "", sort: str = "", show: str = ""
) -> LiveView:
    """The view that a query asks for; `sheet` is the nearest number that exists, the first sheet for any other text."""
    number = clamped_number(sheet, len(access.activity.content.items))
    order = "rows" if sort == "rows" else ""
    return LiveView(access, number, names == "yes", reload == "yes", order, show[:MAX_MISCONCEPTION_KEY])


LiveViewDep = Annotated[LiveView, Depends(live_view)]


@router.get("/activities/{activity_id:int}/live")
def show_live(request: Request, services: ServicesDep, view: LiveViewDep) -> Response:
    """The live page of an activity, with the sheet, names and order in the query."""
    return render("teacher/live.html", _live_page(request, services, view))


@router.get("/activities/{activity_id:int}/live/now")
def show_live_now(request: Request, services: ServicesDep, view: LiveViewDep, seen: str = "") -> Response:
    """The changing part of the page, polled every second; 204 if it is no news for version `seen`."""
    page = _live_page(request, services, view)
    return render("teacher/_live.html", page) if is_news(page, seen) else Response(status_code=204)


@router.post("/activities/{activity_id:int}/live/explain")
def explain_to_class(
    request: Request, services: ServicesDep, access: EditableActivity, view: LiveViewDep, form: FormDep
) -> Response:
    """Show a misconception's explanation on the activity's live views and projectors, or remove it."""
    change_spotlight(services, access.activity, view.number, form)
    if is_htmx(request):
        return render("teacher/_live.html", _live_page(request, services, view))
    return RedirectResponse(view.path, 303)


def _live_page(request: Request, services: Services, view: LiveView) -> LivePage:
    shown, access = class_page(request, services, view.access, view.number), view.access
    students = named_apart(services.store.roster.students(access.course)) if view.named else ()
    came, words = frozenset(shown.snapshot.student_ids), activity_words(services, access.activity)
    return LivePage(
        **vars(shown),
        view=view,
        students=_listed(words, view, shown.sheet, [student for student in students if student.id in came]),
    )


def _listed(
    words: MisconceptionWords, view: LiveView, sheet: SheetSnapshot | None, students: Sequence[Student]
) -> tuple[StudentProgress, ...]:
    lines = list[StudentProgress]()
    for student in students:
        progress = sheet.progress[student.id] if sheet else LiveProgress()
        if sheet is None or view.includes(progress):
            misconceptions = tuple(map(words.name, progress.misconceptions))
            lines.append(StudentProgress(student.name, progress.stage, progress.rows_right, misconceptions))
    return tuple(sorted(lines, key=lambda line: -line.rows_right) if view.sort == "rows" else lines)
