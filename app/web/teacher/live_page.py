"""An activity while it goes on, for the projector and for whoever teaches: the way in, who is how far, what is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.live_snapshot import LiveProgress, LiveSnapshot, SheetSnapshot, Stage
from app.classes.student_sheet import own_variant, worksheet_titles
from app.figures.figures import Figure
from app.grading.explanations import explain_misconception
from app.store import Phase, Spotlight
from app.web.shared import permissions
from app.web.shared.forms import FormDep
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import public_url

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class MisconceptionBar:
    """A misconception that is held in the room, in a few words, by how many, with its bar."""

    key: str
    name: str
    count: int
    width: float


@dataclass(frozen=True)
class Explained:
    """The misconception that is explained to the class, and the picture of it beside the truth where that is shown."""

    key: str
    name: str
    message: str
    can_draw: bool
    pairs: tuple[tuple[Figure, Figure], ...]


@dataclass(frozen=True)
class Person:
    """A student by name: how far they are, how many rows are right, and what they believe."""

    id: int
    name: str
    stage: Stage
    right: int
    misconceptions: tuple[str, ...]


@dataclass(frozen=True)
class LivePage:
    """Everything that templates/teacher/live.html and its fragment show."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who looks at it in which role.")]
    phase: Annotated[Phase, Doc("What it is at this moment.")]
    join_link: Annotated[str, Doc("The address behind the picture, as people would type it.")]
    titles: Annotated[tuple[str, ...], Doc("What the worksheets are called.")]
    number: Annotated[int, Doc("Which of them is looked at, from 1; 0 where there is none.")]
    snapshot: Annotated[LiveSnapshot, Doc("Who came, and how many exit tickets are in.")]
    sheet: Annotated[SheetSnapshot | None, Doc("The sheet that is looked at; none where there is none.")]
    misconceptions: Annotated[tuple[MisconceptionBar, ...], Doc("What is believed, the commonest first.")]
    explained: Annotated[Explained | None, Doc("The misconception that is explained to the class.")]
    named: Annotated[bool, Doc("Whether names were asked for.")]
    people: Annotated[tuple[Person, ...], Doc("Everybody who came, by name; nobody unless names were asked for.")]
    reloads: Annotated[bool, Doc("Whether the page loads itself again, for browsers without script.")]
    seen: Annotated[str, Doc("Changes whenever anything that is shown does.")] = ""


@dataclass(frozen=True)
class Look:
    """What somebody asks of the live view: which sheet, with names or without, and whether it loads itself again."""

    access: permissions.ActivityAccess
    number: int
    named: bool
    reloads: bool

    @property
    def address(self) -> str:
        path = f"/activities/{self.access.activity.id}/live?sheet={self.number}"
        return f"{path}{'&names=yes' if self.named else ''}{'&reload=yes' if self.reloads else ''}"


def look_at(access: StaffActivity, sheet: str = "", names: str = "", reload: str = "") -> Look:
    """The first sheet unless another one is asked for."""
    count = len(access.activity.content.items)
    number = int(sheet) if sheet.isascii() and sheet.isdigit() and len(sheet) < 4 else 1
    return Look(access, min(max(number, 1), count), names == "yes", reload == "yes")


Looked = Annotated[Look, Depends(look_at)]


@router.get("/activities/{activity_id:int}/live")
def show_live(request: Request, services: ServicesDep, look: Looked) -> Response:
    """The whole page."""
    return render("teacher/live.html", _page(request, services, look))


@router.get("/activities/{activity_id:int}/live/now")
def show_now(request: Request, services: ServicesDep, look: Looked, seen: str = "") -> Response:
    """What has changed since; 204 where nothing has."""
    page = _page(request, services, look)
    return Response(status_code=204) if page.seen == seen else render("teacher/_live.html", page)


@router.post("/activities/{activity_id:int}/live/explain")
def explain(request: Request, services: ServicesDep, access: EditableActivity, look: Looked, form: FormDep) -> Response:
    """Explain a misconception to the class, or take the explanation away, on every live view of the activity."""
    misconception = form.single_line("misconception", 80)
    if misconception:
        if not look.number or misconception not in services.library.wording.sections["misconceptions"]:
            raise HTTPException(422, services.library.wording.say("live", "no-misconception-there"))
        spotlight = Spotlight(look.number, misconception, form.raw("drawn") == "yes")
        services.store.live.show(access.activity.id, spotlight)
    else:
        services.store.live.show(access.activity.id, None)
    if "hx-request" in request.headers:
        return render("teacher/_live.html", _page(request, services, look))
    return RedirectResponse(look.address, 303)


def _page(request: Request, services: Services, look: Look) -> LivePage:
    access, activity = look.access, look.access.activity
    snapshot = services.live_snapshots.get(services.library, services.store, activity)
    sheet = snapshot.sheets[look.number - 1] if 0 < look.number <= len(snapshot.sheets) else None
    spotlight = services.store.live.spotlight(activity.id)
    return LivePage(
        access=access,
        phase=activity.phase(),
        join_link=f"{public_url(request, services.settings)}/join/{activity.join_code}",
        titles=worksheet_titles(activity.content),
        number=look.number,
        snapshot=snapshot,
        sheet=sheet,
        misconceptions=_misconception_bars(services, sheet) if sheet else (),
        explained=_explained(services, access, spotlight) if spotlight else None,
        named=look.named,
        people=_people(services, access, snapshot, sheet) if look.named else (),
        reloads=look.reloads,
        seen=_version(snapshot, activity.phase(), spotlight),
    )


def _version(snapshot: LiveSnapshot, phase: Phase, spotlight: Spotlight | None) -> str:
    """What the page sends back to ask whether anything has changed: it changes with everything that the page shows."""
    shown = f"{spotlight.sheet_number}-{spotlight.misconception}-{spotlight.shows_drawing}" if spotlight else ""
    return f"{snapshot.version}-{phase}-{shown}"


def _misconception_bars(services: Services, sheet: SheetSnapshot) -> tuple[MisconceptionBar, ...]:
    names = services.library.wording.sections["misconception-names"]
    return tuple(
        MisconceptionBar(key, names.get(key, key), count, round(100 * count / sheet.begun, 2))
        for key, count in sheet.misconceptions
    )


def _people(
    services: Services, access: permissions.ActivityAccess, snapshot: LiveSnapshot, sheet: SheetSnapshot | None
) -> tuple[Person, ...]:
    came, names = set(snapshot.student_ids), services.library.wording.sections["misconception-names"]
    people = list[Person]()
    for student in services.store.courses.students(access.course):
        if student.id in came:
            progress = sheet.progress[student.id] if sheet else LiveProgress()
            misconceptions = tuple(names.get(key, key) for key in progress.misconceptions)
            people.append(Person(student.id, student.name, progress.stage, progress.rows_right, misconceptions))
    return tuple(people)


def _explained(services: Services, access: permissions.ActivityAccess, light: Spotlight) -> Explained | None:
    words = services.library.wording
    if (
        light.sheet_number > len(access.activity.content.items)
        or light.misconception not in words.sections["misconceptions"]
    ):
        return None
    variant = own_variant(services.library, services.store, access.activity, light.sheet_number)
    found = explain_misconception(variant, light.misconception)
    name = words.sections["misconception-names"].get(light.misconception, light.misconception)
    return Explained(
        light.misconception, name, found.message, bool(found.figures), found.figures[:1] if light.shows_drawing else ()
    )
