"""Regrading an activity: first what would change, then the change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.activities.work import Attempt, Graded
from app.classes.frozen.offered_worksheets import offer_of
from app.classes.materials import materials_for_course
from app.classes.regrade import Basis, MarkChange
from app.classes.roster_lookup import names_with_numbers
from app.names import name_key
from app.store.regrades import Regrade
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.forms import FormDep, Pager, cut_page, whole_number
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class ScoreChange:
    """A student's counted score on one sheet, now and after the regrade, as written."""

    student_id: int
    name: str
    sheet: str  # its title
    old: str  # such as '12.5 of 14'
    new: str
    difference: str  # such as '−0.5'


@dataclass(frozen=True)
class RegradePage:
    """Everything that templates/teacher/regrade.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    attempts: Annotated[int, Doc("How many attempts there are.")]
    changed: Annotated[int, Doc("How many of them would get other marks.")]
    lines: Annotated[tuple[ScoreChange, ...], Doc("The counted scores that would change, by name: a page of them.")]
    pager: Annotated[Pager, Doc("Which page that is.")]
    fingerprint: Annotated[str, Doc("Tells these changes from any others.")]
    past: Annotated[tuple[Regrade, ...], Doc("Earlier regrades, the newest first.")]
    by: Annotated[Basis, Doc("Which worksheets mark: as students had them, or as the library has them now.")]
    corrected: Annotated[tuple[str, ...], Doc("The titles of its worksheets that the library defines otherwise now.")]
    notice: Annotated[str, Doc("The sentence about what was just done, empty for none.")] = ""


@router.get("/activities/{activity_id:int}/regrade")
def show_regrade(
    services: ServicesDep, access: StaffActivity, changed: str = "", by: str = "", page: str = ""
) -> Response:
    """What a regrade would change; nothing is changed."""
    shown = _regrade_page(services, access, "library" if by == "library" else "frozen", page)
    count = whole_number(changed, shown.attempts)
    if count is not None:
        notice = _(
            "Done: {changed} of {attempts} attempts have new marks. The earlier marks are kept with each "
            "student’s attempts."
        ).format(changed=count, attempts=shown.attempts)
        shown = replace(shown, notice=notice)
    return render("teacher/regrade.html", shown)


@router.post("/activities/{activity_id:int}/regrade")
def apply_regrade(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Regrade by the form's `by`, if that makes exactly the changes that the form showed, with an audit entry."""
    store, activity, teacher, fingerprint = services.store, access.activity, access.teacher, form.raw("changes")
    basis: Basis = "library" if form.raw("by") == "library" else "frozen"
    library = materials_for_course(services.library, services.tickets, store, access.course, teacher).library
    applied = services.regrading.apply(library, store, activity, teacher, fingerprint, basis)
    if applied is None:
        notice = _(
            "New attempts or another regrade have come in since you loaded this page. This is what would change now."
        )
        return render("teacher/regrade.html", replace(_regrade_page(services, access, basis), notice=notice), 409)
    count = len(applied.changes)
    return RedirectResponse(url_for("show_regrade", activity_id=activity.id, changed=count, by=basis), 303)


def _regrade_page(services: Services, access: permissions.ActivityAccess, by: Basis, page: str = "") -> RegradePage:
    store, activity = services.store, access.activity
    materials = materials_for_course(services.library, services.tickets, store, access.course, access.teacher)
    preview = services.regrading.preview(materials.library, store, activity, by)
    corrected = offer_of(materials.library, materials.tickets, store, activity).corrected
    titles = tuple(sheet.title for sheet in corrected)
    names = names_with_numbers(store.roster.students(access.course))
    lines = [_score_change(change, names.get(change.attempt.student_id, "")) for change in preview.score_changes]
    lines.sort(key=lambda line: (name_key(line.name), line.student_id))
    listed, pager = cut_page(lines, page)
    past = store.regrades.of_activity(activity.id)
    return RegradePage(
        access, preview.attempts, len(preview.changes), listed, pager, preview.fingerprint, past, by, titles
    )


def _score_change(change: MarkChange, name: str) -> ScoreChange:
    old, new = change.attempt, change.new.graded
    return ScoreChange(
        old.student_id, name, change.sheet_title, _score(old), _score(new), f"{change.difference:+g}".replace("-", "−")
    )


def _score(graded: Attempt | Graded) -> str:
    return _("{score:g} of {total}").format(score=graded.score, total=graded.out_of)
