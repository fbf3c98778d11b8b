"""A sample course of simulated students, so that a newcomer sees what a class looks like before having one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.attention.grading import grade
from app.attention.library import Library
from app.attention.tickets import Ticket
from app.attention.worksheet import Variant, plain
from app.store import Activity, Course, Fixed, Plan, Policies, Spot, Store, Student, Teacher
from app.store.classwork import Draft
from app.web.assigned import freeze, graded

WORKSHEET, TICKET = "llama-7b", "classic"
STUDENTS = 24
# How many of them hold which belief at their first try; the others are right, but for a box that some leave empty.
HOLD = {"head-as-wide-as-model": 6, "transposed-product": 4, "no-output-projection": 3, "model-wide-scores": 2}
HALFWAY, IDLE = 3, 1  # of the open activity: so many are still typing, and so many have only come in


def make_sample(library: Library, tickets: Mapping[str, Ticket], store: Store, teacher: Teacher) -> Course:
    """A course with a closed activity and an open one, both full of simulated work, and exit tickets."""
    words = library.wording.sections["sample"]
    course = store.courses.add(words["course"], "UTC", teacher, sample=True)
    names = (words["student"].format(number=number) for number in range(1, STUDENTS + 1))
    students = [store.courses.enrol(course, name)[0] for name in names]
    content = freeze(library, [WORKSHEET], tickets.get(TICKET))
    for title, state in ((words["first"], "closed"), (words["second"], "open")):
        plan = Plan(title, datetime.now(UTC).date(), Policies())
        activity = store.activities.add(course, plan, content)
        store.activities.set_state(activity, "open")
        _simulate(library, store, activity, students, finished=state == "closed")
        if state == "closed":
            store.activities.set_state(activity, "closed")
    return course


def _simulate(library: Library, store: Store, activity: Activity, students: list[Student], *, finished: bool) -> None:
    """Let each student come, and all but the slow ones work, hand in and write a ticket."""
    variant, held = library.variant(WORKSHEET), [belief for belief, count in HOLD.items() for _ in range(count)]
    slow = 0 if finished else HALFWAY + IDLE
    for number, student in enumerate(students):
        store.classwork.arrive(activity.id, student.id)
        spot = Spot(student.id, activity.id, activity.revision, 0, activity.content.items[0].sheet)
        answers = _answers(variant, held[number] if number < len(held) else "", number)
        if number < len(students) - slow:
            _work(store, spot, variant, answers, number)
            _write_ticket(library.wording.sections["sample"], store, activity, student, number)
        elif number < len(students) - IDLE:
            half = {place: text if place < "output" else "" for place, text in answers.items()}
            store.classwork.save(spot, Draft(half, 1, _fixed(variant)))


def _work(store: Store, spot: Spot, variant: Variant, answers: dict[str, str], number: int) -> None:
    """A first check, and for two of three whom it tells something a second one that is right; the last is handed in."""
    right = _answers(variant, "", 0)
    turns = [answers, right] if answers != right and number % 3 else [answers]
    for turn, typed in enumerate(turns):
        result = graded(grade(variant, typed))
        draft = Draft(typed, turn + 1, _fixed(variant))
        store.classwork.record(spot, f"sample-{turn}-{spot.activity_id}", draft, result, handed_in=typed is turns[-1])


def _write_ticket(words: Mapping[str, Any], store: Store, activity: Activity, student: Student, number: int) -> None:
    """One line on each of two questions, in turn through what the wording offers."""
    if activity.content.ticket is None:
        return
    lines = [(key, words["tickets"][key]) for key, _ in activity.content.ticket.questions if words["tickets"].get(key)]
    chosen = [lines[number % len(lines)], lines[(number + 1) % len(lines)]] if lines else []
    answers = {key: said[number // 2 % len(said)] for key, said in chosen}
    form = f"sample {activity.id} {student.id}"
    store.classwork.hand_in_ticket(activity.id, student.id, form, answers, anonymous=True)


def _answers(variant: Variant, belief: str, number: int) -> dict[str, str]:
    """What somebody with this belief writes; without one it is right, but for the last box of every fourth."""
    believed = next((found.changed for found in variant.expectations if found.belief == belief), {})
    answers = {str(place): plain(believed.get(place, size)) for place, size in variant.key.items()}
    if not belief and number % 4 == 3:
        answers[str(variant.blanks[-1])] = ""
    return answers


def _fixed(variant: Variant) -> Fixed:
    return Fixed(variant.model.key, variant.tokens, variant.worksheet.decoder_tokens)
