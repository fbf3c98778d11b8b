"""What the live page and the presenter view share: the class at one moment, its bars, and what is explained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import HTTPException, Request

from app.classes.frozen.misconception_words import MisconceptionWords, misconception_words
from app.classes.live_snapshot import LiveSnapshot, SheetSnapshot
from app.classes.student_sheet import activity_variant, worksheet_titles
from app.figures.figure import Figure
from app.grading.explanations import explain_misconception
from app.sheets.worksheet import MAX_MISCONCEPTION_KEY
from app.store import Activity, Phase, Spotlight
from app.translation import gettext as _
from app.web.shared.forms import FormReader
from app.web.shared.permissions import ActivityAccess
from app.web.shared.services import Services
from app.web.shared.urls import public_url, url_for

# An earlier count than a page has seen comes from another process: as old as a snapshot that is shown may be, and more.
MAX_BEHIND_S = 15.0


@dataclass(frozen=True)
class MisconceptionBar:
    """A misconception that the class shows: its short name, how many students show it, and the bar in per cent."""

    key: str
    name: str
    count: int
    width: float  # of the sheets that were begun


@dataclass(frozen=True)
class SpotlightView:
    """The misconception that is explained to the class, with its drawing beside the true one where that is shown."""

    key: str
    name: str
    message: str
    can_draw: bool
    pairs: tuple[tuple[Figure, Figure], ...]  # as the misconception has it, and as it is; empty where not shown


@dataclass(frozen=True)
class ClassPage:
    """What both pages show of a class at one moment."""

    access: Annotated[ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    phase: Annotated[Phase, Doc("Whether it is a draft, waiting, open, closing or closed now.")]
    join_link: Annotated[str, Doc("The address that the QR code holds and that people may type.")]
    titles: Annotated[tuple[str, ...], Doc("The titles of its worksheets, in order.")]
    number: Annotated[int, Doc("The number of the sheet that is shown, from 1; 0 where there is none.")]
    snapshot: Annotated[LiveSnapshot, Doc("The class at this moment.")]
    sheet: Annotated[SheetSnapshot | None, Doc("The sheet that is shown; None where there is none.")]
    misconceptions: Annotated[tuple[MisconceptionBar, ...], Doc("The misconceptions shown on it, commonest first.")]
    spotlight: Annotated[SpotlightView | None, Doc("The misconception that is explained to the class, if any.")]
    version: Annotated[str, Doc("When the class was counted, and what changes with everything shown.")]


def class_page(request: Request, services: Services, access: ActivityAccess, number: int) -> ClassPage:
    """The class as it is now, usually about a second old at most, with sheet `number`, from 1.

    For a number that the activity doesn't have, such as 0, there is no sheet and no misconceptions.
    """
    activity = access.activity
    snapshot, phase = services.live_snapshots.get(services.library, services.store, activity), access.phase
    sheet = snapshot.sheets[number - 1] if 0 < number <= len(snapshot.sheets) else None
    spotlight = services.store.live.spotlight(activity.id)
    return ClassPage(
        access=access,
        phase=phase,
        join_link=public_url(request, services.settings) + url_for("show_name_form", code=activity.join_code),
        titles=worksheet_titles(activity.content),
        number=number,
        snapshot=snapshot,
        sheet=sheet,
        misconceptions=_misconception_bars(activity_words(services, activity), sheet) if sheet else (),
        spotlight=_spotlight_view(services, activity, spotlight) if spotlight else None,
        version=_version(snapshot, phase, spotlight, activity.plan.closes_at),
    )


def is_news(page: ClassPage, seen: str) -> bool:
    """Whether a browser that shows the version `seen` of a page has to be sent this one.

    That is so if it shows something else, unless it was counted earlier: the next request may have come to a process
    that counted last some seconds ago. A version from more than MAX_BEHIND_S later has the time of another clock.
    """
    counted_at, _dash, shown = page.version.partition("-")
    seen_at, _dash, seen_shown = seen.partition("-")
    behind_s = float(seen_at) - float(counted_at) if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", seen_at) else 0
    return shown != seen_shown and not 0 < behind_s <= MAX_BEHIND_S


def activity_words(services: Services, activity: Activity) -> MisconceptionWords:
    """What the activity's misconceptions are called, and how they are explained."""
    return misconception_words(services.library, services.store, activity)


def change_spotlight(services: Services, activity: Activity, number: int, form: FormReader) -> None:
    """Show the form's `misconception` for sheet `number` to the class, in place of any other; an empty one removes it.

    `drawn` 'yes' shows its drawing too. HTTPException 422 for a misconception without an explanation, or if `number` is
    0.
    """
    misconception, spotlight = form.single_line("misconception", MAX_MISCONCEPTION_KEY), None
    if misconception:
        if not number or not activity_words(services, activity).explanation(misconception):
            raise HTTPException(422, _("This sheet can’t show that misconception."))
        spotlight = Spotlight(number, misconception, form.raw("drawn") == "yes")
    services.store.live.show(activity.id, spotlight)


def _version(snapshot: LiveSnapshot, phase: Phase, spotlight: Spotlight | None, *shown: object) -> str:
    """When the class was counted, in seconds, and a text that changes with everything the page shows.

    The browser sends both back to ask for changes: see `is_news`.
    """
    explained = (spotlight.sheet_number, spotlight.misconception, spotlight.shows_drawing) if spotlight else ()
    return "-".join(map(str, (round(snapshot.taken_at.timestamp(), 3), snapshot.version, phase, *explained, *shown)))


def _misconception_bars(words: MisconceptionWords, sheet: SheetSnapshot) -> tuple[MisconceptionBar, ...]:
    """The misconceptions that the sheet's students show, the most common first.

    A bar's width is the percentage among all who have begun the sheet.
    """
    return tuple(
        MisconceptionBar(key, words.name(key), count, round(100 * count / sheet.begun, 2))
        for key, count in sheet.misconceptions
    )


def _spotlight_view(services: Services, activity: Activity, spotlight: Spotlight) -> SpotlightView | None:
    """What the class is shown about a misconception; None if its sheet or its explanation no longer exists.

    The first drawing is included if the spotlight asks for it.
    """
    words, key = activity_words(services, activity), spotlight.misconception
    if spotlight.sheet_number > len(activity.content.items) or not words.explanation(key):
        return None
    variant = activity_variant(services.library, services.store, activity, spotlight.sheet_number)
    explanation = explain_misconception(variant, key)
    message = explanation.message or words.explanation(key)  # an author's may be of another sheet
    pairs = explanation.figures[:1] if spotlight.shows_drawing else ()
    return SpotlightView(key, words.name(key), message, bool(explanation.figures), pairs)
