"""What the live page and the presenter view share: the class at one moment, its bars, and the explanation shown."""

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
from app.web.shared.urls import PublicAddress, public_address

# An older count than the page has shown comes from another process; this exceeds the greatest age of a shown snapshot.
MAX_BEHIND_S = 15.0


@dataclass(frozen=True)
class MisconceptionBar:
    """A misconception in the class: its short name, how many students show it, and the bar's width."""

    key: str
    name: str
    count: int
    width: float  # the percentage of those who have begun the sheet


@dataclass(frozen=True)
class SpotlightView:
    """The misconception explained to the class, with its drawing next to the true one if that is shown."""

    key: str
    name: str
    message: str
    can_draw: bool
    pairs: tuple[tuple[Figure, Figure], ...]  # with the misconception, and right; empty if not shown


@dataclass(frozen=True)
class ClassPage:
    """What both pages show of a class at one moment."""

    access: Annotated[ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    phase: Annotated[Phase, Doc("Whether it is a draft, waiting, open, closing or closed now.")]
    address: Annotated[PublicAddress, Doc("Where students reach the app.")]
    titles: Annotated[tuple[str, ...], Doc("The titles of its worksheets, in order.")]
    number: Annotated[int, Doc("The number of the sheet that is shown, from 1; 0 where there is none.")]
    snapshot: Annotated[LiveSnapshot, Doc("The class at this moment.")]
    sheet: Annotated[SheetSnapshot | None, Doc("The sheet that is shown; None where there is none.")]
    misconceptions: Annotated[tuple[MisconceptionBar, ...], Doc("The misconceptions shown on it, commonest first.")]
    spotlight: Annotated[SpotlightView | None, Doc("The misconception that is explained to the class, if any.")]
    version: Annotated[str, Doc("When the class was counted, and what changes with everything shown.")]


def class_page(request: Request, services: Services, access: ActivityAccess, number: int) -> ClassPage:
    """The class, usually at most a second old, with sheet `number`, from 1: its misconceptions and the explanation."""
    activity = access.activity
    snapshot, phase = services.live_snapshots.get(services.library, services.store, activity), access.phase
    sheet = snapshot.sheets[number - 1] if 0 < number <= len(snapshot.sheets) else None
    spotlight, words = services.store.activities.spotlight(activity.id), activity_words(services, activity)
    return ClassPage(
        access=access,
        phase=phase,
        address=public_address(request, services.settings),
        titles=worksheet_titles(activity.content),
        number=number,
        snapshot=snapshot,
        sheet=sheet,
        misconceptions=tuple(
            MisconceptionBar(key, words.name(key), count, round(100 * count / sheet.begun, 2))
            for key, count in sheet.misconceptions
        )
        if sheet
        else (),
        spotlight=_spotlight_view(services, activity, spotlight) if spotlight else None,
        version=_version(snapshot, phase, spotlight, activity.plan.closes_at),
    )


def is_news(page: ClassPage, seen: str) -> bool:
    """Whether a browser with version `seen` of a page needs this page: it differs and isn't slightly older."""
    counted_at, _dash, shown = page.version.partition("-")
    seen_at, _dash, seen_shown = seen.partition("-")
    behind_s = float(seen_at) - float(counted_at) if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", seen_at) else 0
    return shown != seen_shown and not 0 < behind_s <= MAX_BEHIND_S


def activity_words(services: Services, activity: Activity) -> MisconceptionWords:
    """The names and explanations of the activity's misconceptions, by its newest revision."""
    return misconception_words(services.library, services.store, activity)


def change_spotlight(services: Services, activity: Activity, number: int, form: FormReader) -> None:
    """Show the class the form's `misconception` for sheet `number`, from 1; an empty one removes it."""
    misconception, spotlight = form.single_line("misconception", MAX_MISCONCEPTION_KEY), None
    if misconception:
        if not number or not activity_words(services, activity).explanation(misconception):
            raise HTTPException(422, _("This sheet can’t show that misconception."))
        spotlight = Spotlight(number, misconception, form.raw("drawn") == "yes")
    services.store.activities.set_spotlight(activity.id, spotlight)


def _version(snapshot: LiveSnapshot, phase: Phase, spotlight: Spotlight | None, *shown: object) -> str:
    explained = (spotlight.sheet_number, spotlight.misconception, spotlight.shows_drawing) if spotlight else ()
    return "-".join(map(str, (round(snapshot.taken_at.timestamp(), 3), snapshot.version, phase, *explained, *shown)))


def _spotlight_view(services: Services, activity: Activity, spotlight: Spotlight) -> SpotlightView | None:
    words, key = activity_words(services, activity), spotlight.misconception
    if spotlight.sheet_number > len(activity.content.items) or not words.explanation(key):
        return None
    variant = activity_variant(services.library, services.store, activity, spotlight.sheet_number)
    explanation = explain_misconception(variant, key)
    message = explanation.message or words.explanation(key)  # an author's may belong to another sheet
    pairs = explanation.figures[:1] if spotlight.shows_drawing else ()
    return SpotlightView(key, words.name(key), message, bool(explanation.figures), pairs)
