"""The editor of a new or stored exit ticket, with a preview beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.authoring.ticket_form import (
    QUESTION_KINDS,
    arranged_ticket,
    draft_ticket,
    field_of_error,
    ticket_settings,
    typed_ticket,
)
from app.classes.materials import add_material, save_material, ticket_of_material
from app.sheets.authoring.worksheet_settings import SettingError
from app.sheets.exit_tickets import (
    MAX_INSTRUCTION,
    MAX_LABEL,
    MAX_OPTIONS,
    MAX_QUESTION_TEXT,
    MAX_TICKET_QUESTIONS,
    MAX_TITLE,
    check_ticket,
    picking_rule,
)
from app.store import Course, Material, Teacher
from app.translation import gettext as _
from app.web.shared.conflicts import Conflict, setting_differences, version_to_replace
from app.web.shared.forms import MAX_TEXT, FormDep, FormReader, whole_number
from app.web.shared.permissions import LARGEST_ID, EditableMaterial, MaterialToSave, SignedIn, owner_of_new
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

LIMITS = {
    "title": MAX_TITLE,
    "instruction": MAX_INSTRUCTION,
    "question": MAX_QUESTION_TEXT,
    "label": MAX_LABEL,
    "options": MAX_OPTIONS,
    "questions": MAX_TICKET_QUESTIONS,
}


@router.get("/tickets/new")
def show_new_ticket(services: ServicesDep, teacher: SignedIn, course: str = "") -> Response:
    return _render_editor(typed_ticket(), owner_of_new(services, teacher, course))


@router.post("/tickets")
def add_ticket(services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """Store a new ticket of the form's `course` or, without one, of the teacher."""
    typed, owner = _typed(form), owner_of_new(services, teacher, form.raw("course"))
    ticket, errors = check_ticket("", ticket_settings(typed))
    if ticket is None:
        return _render_editor(typed, owner, status=422, **_problems(typed, errors))
    material = add_material(services.store, "ticket", owner, teacher, ticket.settings)
    return RedirectResponse(url_for("show_ticket_editor", material_id=material.id, done="saved"), 303)


@router.get("/tickets/{material_id:int}/edit")
def show_ticket_editor(access: EditableMaterial, done: str = "") -> Response:
    """The editor with the newest version of a ticket; an unreadable one redirects (303) to its page."""
    material = _ticket_only(access.material)
    try:
        ticket = ticket_of_material(material)
    except SettingError:
        return RedirectResponse(url_for("show_material", material_id=material.id), 303)
    return _render_editor(typed_ticket(ticket), access.course, material.id, material.version, saved=done == "saved")


@router.post("/tickets/{material_id:int}")
def save_ticket(services: ServicesDep, access: MaterialToSave, form: FormDep) -> Response:
    """Save what was typed as a new version, with an audit entry, and redirect (303) to the editor."""
    material, typed = _ticket_only(access.material), _typed(form)
    place = (access.course, material.id, _number(form.raw("version")))
    ticket, errors = check_ticket("", ticket_settings(typed))
    if ticket is None:
        return _render_editor(typed, *place, status=422, **_problems(typed, errors))
    based_on = _number(version_to_replace(form))
    save = save_material(services.store, material, based_on, ticket.settings, access.teacher)
    if save.material.removed_at:
        return _render_editor(typed, *place, status=409, removed=True)
    if not save.is_stored:
        return _render_editor(typed, *place, status=409, conflict=_conflict(save.material, ticket.settings))
    return RedirectResponse(url_for("show_ticket_editor", material_id=material.id, done="saved"), 303)


@router.post("/tickets/preview")
def preview_ticket_form(services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """The editor with its preview, as typed, after the change that the form's `arrange` names."""
    typed, focus = arranged_ticket(_typed(form), form.raw("arrange"))
    owner = owner_of_new(services, teacher, form.raw("course"))
    return _render_editor(typed, owner, _number(form.raw("material")), _number(form.raw("version")), focus=focus)


def _number(text: str) -> int:
    return whole_number(text, LARGEST_ID) or 0


def _ticket_only(material: Material) -> Material:
    if material.kind != "ticket":
        raise HTTPException(404)
    return material


def _typed(form: FormReader) -> dict[str, Any]:
    return {
        "title": form.raw("title", MAX_TEXT),
        "instruction": form.raw("instruction", MAX_TEXT),
        "questions": [
            {
                "key": key,
                "text": form.raw(f"text.{key}", MAX_BODY),
                "kind": form.raw(f"kind.{key}"),
                "options": form.raw(f"options.{key}", MAX_BODY).splitlines(),
                "labels": [form.raw(f"{end}.{key}", MAX_TEXT) for end in ("first", "last")],
                "required": form.raw(f"required.{key}") == "yes",
                "chip": form.raw(f"chip.{key}", MAX_TEXT).strip(),
            }
            for key in form.all("question")
        ],
        "pick_at_least": form.raw("pick_at_least", MAX_TEXT).strip(),
        "pick_at_most": form.raw("pick_at_most", MAX_TEXT).strip(),
        "anonymous": form.raw("anonymous") != "no",
    }


def _problems(typed: Mapping[str, Any], errors: Sequence[SettingError]) -> dict[str, Any]:
    problems = dict[str, str]()
    for error in errors:
        problems.setdefault(field_of_error(typed, error), str(error))
    return {"problems": problems, "focus": next(iter(problems)).replace(".", "-", 1)}


def _conflict(newest: Material, typed: Mapping[str, Any]) -> Conflict:
    labels = {
        "title": _("Title"),
        "instruction": _("Instruction"),
        "questions": _("Questions"),
        "pick_at_least": _("Optional questions that students must answer, at least"),
        "pick_at_most": _("Optional questions that students may answer, at most"),
        "anonymous": _("Anonymous"),
    }
    theirs = ticket_of_material(newest).settings
    newest_page = url_for("show_ticket_editor", material_id=newest.id)
    return Conflict(str(newest.version), setting_differences(labels, theirs, typed), newest_page, newest.saved_by)


def _render_editor(
    typed: Mapping[str, Any],
    owner: Course | Teacher | None,
    material_id: int = 0,
    version: int = 0,
    *,
    status: int = 200,
    problems: Mapping[str, str] | None = None,
    focus: str = "",
    saved: bool = False,
    conflict: Conflict | None = None,
    removed: bool = False,
) -> Response:
    ticket = draft_ticket(typed)
    return render(
        "materials/ticket_editor.html",
        status=status,
        typed=typed,
        ticket=ticket,
        rule=picking_rule(ticket),
        kinds=QUESTION_KINDS,
        limits=LIMITS,
        material_id=material_id,
        course=owner if isinstance(owner, Course) else None,
        version=version,
        problems=problems or {},
        focus=focus,
        saved=saved,
        conflict=conflict,
        removed=removed,
    )
