"""Marking again after a worksheet or a share was corrected: first what would change, then the change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from zoneinfo import ZoneInfo

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_results import corrected_variant, frozen_item
from app.classes.student_sheet import definition_key, stored_marks
from app.grading.grade import grade
from app.sheets.variant import Variant
from app.store import AuditAction, ClassAttempt, Content, Graded, NewMarks, VariantSizes
from app.web.shared import permissions
from app.web.shared.forms import FormDep
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Change:
    """An attempt that would get other marks, and the sheet key of the definition that would give them."""

    one: ClassAttempt
    new: Graded
    marked_by: str

    @property
    def difference(self) -> float:
        return round(self.new.score - self.one.score, 6)


@dataclass(frozen=True)
class ChangeLine:
    """A student's counted score on one sheet, as it is and as it would be."""

    name: str
    student_id: int
    sheet: str
    old: str
    new: str
    difference: str


@dataclass(frozen=True)
class Past:
    """A regrade that was done."""

    at: str
    by: str
    changed: int


@dataclass(frozen=True)
class RegradePage:
    """Everything that templates/teacher/regrade.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who looks at it in which role.")]
    attempts: Annotated[int, Doc("How many attempts there are.")]
    changed: Annotated[int, Doc("How many of them would get other marks.")]
    lines: Annotated[tuple[ChangeLine, ...], Doc("Whose counted score would change, by name.")]
    mark: Annotated[str, Doc("What tells these changes from any others.")]
    past: Annotated[tuple[Past, ...], Doc("The regrades there were, the newest first.")]
    notice: Annotated[str, Doc("What was just done, or nothing.")] = ""


@router.get("/activities/{activity_id:int}/regrade")
def show_regrade(services: ServicesDep, access: StaffActivity, changed: str = "") -> Response:
    """What would change; nothing does."""
    page = _page(services, access)
    count = int(changed) if changed.isascii() and changed.isdigit() and len(changed) < 7 else -1
    words = services.library.wording
    notice = words.say("live", "regraded", changed=count, attempts=page.attempts) if 0 <= count <= page.attempts else ""
    return render("teacher/regrade.html", replace(page, notice=notice))


@router.post("/activities/{activity_id:int}/regrade")
def regrade(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Change what was shown, if it is still what would change; otherwise show it anew."""
    found = _changes(services, access, services.store.classwork.attempts_of_activity(access.activity.id))
    if form.raw("changes") != _mark(found):
        page = _page(services, access)
        moved = services.library.wording.say("live", "regrade-moved")
        return render("teacher/regrade.html", replace(page, notice=moved), 409)
    if found:
        new = {change.one.id: NewMarks(change.new, change.marked_by) for change in found}
        services.store.regrades.apply(access.activity.id, access.teacher.id, new)
        services.store.audit_log.record(access.teacher, AuditAction.ATTEMPTS_REGRADED, access.activity, str(len(new)))
    return RedirectResponse(f"/activities/{access.activity.id}/regrade?changed={len(found)}", 303)


def _page(services: Services, access: permissions.ActivityAccess) -> RegradePage:
    attempts = services.store.classwork.attempts_of_activity(access.activity.id)
    found = _changes(services, access, attempts)
    revisions = services.store.activities.revisions(access.activity)
    counted = {(one.student_id, one.sheet_key): one.id for one in attempts}
    names = {student.id: student.name for student in services.store.courses.students(access.course)}
    lines = [
        _line(revisions, change, names.get(change.one.student_id, ""))
        for change in found
        if counted[change.one.student_id, change.one.sheet_key] == change.one.id
        and (change.difference or change.one.out_of != change.new.out_of)
    ]
    zone = ZoneInfo(access.course.time_zone)
    past = tuple(
        Past(done.at.astimezone(zone).strftime("%d %B %Y, %H:%M").lstrip("0"), done.by, done.changed)
        for done in services.store.regrades.of_activity(access.activity.id)
    )
    lines.sort(key=lambda line: (line.name.casefold(), line.student_id))
    return RegradePage(access, len(attempts), len(found), tuple(lines), _mark(found), past)


def _line(revisions: Mapping[int, Content], change: Change, name: str) -> ChangeLine:
    one, new = change.one, change.new
    item = frozen_item(revisions, one)
    title = str(item.worksheet["title"]) if item else one.sheet_key
    difference = f"{change.difference:+g}".replace("-", "−")
    old, now = f"{one.score:g} of {one.out_of}", f"{new.score:g} of {new.out_of}"
    return ChangeLine(name, one.student_id, title, old, now, difference)


def _changes(
    services: Services, access: permissions.ActivityAccess, attempts: Sequence[ClassAttempt]
) -> tuple[Change, ...]:
    """Every attempt that would get other marks, by its number."""
    revisions = services.store.activities.revisions(access.activity)
    variants = dict[tuple[int, int, VariantSizes], Variant | None]()
    found = list[Change]()
    for one in attempts:
        blank = (one.revision, one.sheet_number, one.variant)
        if blank not in variants:
            item = frozen_item(revisions, one)
            variants[blank] = (
                corrected_variant(services.library, services.store, access.activity, item, one.variant)
                if item
                else None
            )
        variant = variants[blank]
        if variant and (new := _marked_again(variant, one)) != Graded(
            one.marks, one.misconceptions, one.score, one.out_of
        ):
            found.append(Change(one, new, definition_key(variant.worksheet)))
    return tuple(found)


def _marked_again(variant: Variant, one: ClassAttempt) -> Graded:
    boxes = {str(blank) for blank in variant.blanks}
    return stored_marks(grade(variant, {box: text for box, text in one.answers.items() if box in boxes}))


def _mark(found: Sequence[Change]) -> str:
    text = repr([(change.one.id, change.one.score, sorted(change.new.marks.items()), change.new.score,
                  change.new.misconceptions) for change in found])  # fmt: skip
    return hashlib.sha256(text.encode()).hexdigest()[:32]
