"""The sample course: simulated students who hold misconceptions of the catalogue, try, hand in and write exit tickets.

It is the same each time: who holds what, who puts it right and who is not done yet follows from their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from app.classes.student_sheet import freeze, graded
from app.grading.grade import grade
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.worksheet import Variant
from app.store import Activity, Answers, Course, Fixed, Plan, Policies, State, Store, Teacher
from app.store.samples import Simulated, SimulatedTry

YESTERDAY, TODAY = ("llama-7b", "qwen2.5-0.5b-grouped"), ("layer-mistral-7b",)
# How many hold the first misconception that shows on a sheet, the second, and so on; the others have it right.
HOLDERS = (7, 5, 3, 2, 1, 1, 1)
HERE, TRIED, TICKETS = 26, 18, 24  # of thirty: who has come today, who has tried, who left a ticket yesterday


def make_sample(library: Library, tickets: Mapping[str, Ticket], store: Store, teacher: Teacher) -> Course:
    """A course plainly called a sample, with a lesson of yesterday and one that is going on; an older one is kept."""
    words = library.wording.sections["sample"]
    known = next((taught.course for taught in store.courses.taught_by(teacher) if taught.course.sample), None)
    if known:
        return known
    course = store.courses.add(words["course"], _zone(store, teacher), teacher, sample=True)
    at = datetime.now(UTC).replace(microsecond=0)
    ticket, before = tickets.get("classic"), at - timedelta(days=1)
    plans: tuple[tuple[Plan, Sequence[str], State], ...] = (
        (Plan(words["yesterday"], before.date()), YESTERDAY, "closed"),
        (Plan(words["today"], at.date(), Policies(ticket_anonymous=False)), TODAY, "open"),
    )
    made = list[Activity]()
    for plan, sheets, state in plans:
        activity = store.activities.add(course, plan, freeze(library, sheets, ticket))
        store.activities.set_state(activity, state)
        made.append(activity)
    came = (*_past(library, words, made[0], before), *_going_on(library, made[1], at - timedelta(minutes=12)))
    store.samples.fill(course, words["names"], came)
    return course


def _zone(store: Store, teacher: Teacher) -> str:
    taught = store.courses.taught_by(teacher)
    return taught[0].course.time_zone if taught else "UTC"


def _past(library: Library, words: Mapping[str, Any], activity: Activity, begin: datetime) -> Iterator[Simulated]:
    """Everybody tried each sheet, two in three put it right afterwards, and all handed in."""
    for student in range(len(words["names"])):
        tries = list[SimulatedTry]()
        for item, key in enumerate(YESTERDAY):
            variant, at = library.variant(key), begin + timedelta(minutes=6 + 15 * item, seconds=11 * student)
            first = _filled(variant, student + item)
            again = student % 3 != 0
            tries.append(_try(variant, item, first, at, handed_in=not again))
            if again:
                tries.append(_try(variant, item, _filled(variant, None), at + timedelta(minutes=4), handed_in=True))
        ticket = _ticket(words["tickets"], student) if student < TICKETS else {}
        yield Simulated(student, activity, begin + timedelta(seconds=5 * student), tries, (), ticket)


def _going_on(library: Library, activity: Activity, begin: datetime) -> Iterator[Simulated]:
    """Some have handed in, some have tried, some are still typing, and a few have not come."""
    variant = library.variant(TODAY[0])
    for student in range(HERE):
        filled, arrived = _filled(variant, student), begin + timedelta(seconds=4 * student)
        if student < TRIED:
            tried = _try(variant, 0, filled, arrived + timedelta(minutes=7), handed_in=student % 2 == 0)
            yield Simulated(student, activity, arrived, (tried,))
        else:
            half = dict(list(filled.items())[: len(filled) * (student - TRIED + 2) // 10])
            yield Simulated(student, activity, arrived, (), ((0, _fixed(variant), half),))


def _filled(variant: Variant, student: int | None) -> dict[str, str]:
    """The sheet as a student fills it in: by the misconception of their place, or right."""
    truth = dict(variant.key)
    if student is not None and (misconception := _misconception(variant, student)):
        truth |= misconception
    return {str(blank): str(number) for blank, number in truth.items()}


def _misconception(variant: Variant, student: int) -> Mapping[Any, int] | None:
    """What the student's misconception changes on a sheet: the holders of the first come first, then those of the
    second.
    """
    shown = list({e.misconception: e.changed for e in reversed(variant.expectations)}.values())[::-1]
    holders = [number for number, count in enumerate(HOLDERS) for _ in range(count)]
    blank = 7 * student % 30  # so that neighbours on the roster do not believe the same
    return shown[holders[blank]] if blank < len(holders) and holders[blank] < len(shown) else None


def _try(variant: Variant, item: int, answers: Answers, at: datetime, *, handed_in: bool) -> SimulatedTry:
    return SimulatedTry(item, _fixed(variant), answers, graded(grade(variant, answers)), at, handed_in)


def _fixed(variant: Variant) -> Fixed:
    return Fixed(variant.model.key, variant.tokens, variant.worksheet.decoder_tokens)


def _ticket(texts: Mapping[str, Sequence[str]], student: int) -> dict[str, str]:
    """A couple of questions, answered."""
    keys = tuple(texts)
    chosen = {keys[student % len(keys)], keys[(student + 2) % len(keys)]}
    return {key: texts[key][student % len(texts[key])] for key in keys if key in chosen}
