"""The editor of a new or stored exit ticket, with a preview beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.authoring.ticket_form import (
    QUESTION_KINDS,
    QuestionFields,
    TicketTexts,
    arranged_ticket,
    draft_ticket,
    field_of_error,
    texts_of_ticket,
    ticket_lines,
    ticket_settings,
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
    QuestionKind,
    Ticket,
    check_ticket,
    picking_rule,
)
from app.store import Course, Material, Teacher
from app.translation import gettext as _
from app.web.shared.conflicts import Conflict, Difference, version_to_replace
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


@dataclass(frozen=True)
class TicketEditorPage:
    """Everything that templates/materials/ticket_editor.html shows."""

    texts: Annotated[TicketTexts, Doc("What the fields hold.")]
    ticket: Annotated[Ticket, Doc("What students would see of it.")]
    rule: Annotated[str, Doc("How many questions they would have to answer; empty where that is open.")]
    kinds: Annotated[Mapping[QuestionKind, str], Doc("The names of the kinds of questions.")]
    limits: Annotated[Mapping[str, int], Doc("How many characters and lines the fields may hold.")]
    material_id: Annotated[int, Doc("The ticket that is edited; 0 for a new one.")] = 0
    course: Annotated[Course | None, Doc("The course that it belongs to; None where it is the teacher's own.")] = None
    version: Annotated[int, Doc("The version that the form was opened with; 0 for a new ticket.")] = 0
    problems: Annotated[Mapping[str, str], Doc("What cannot be used, by the name of the field.")] = field(
        default_factory=dict
    )
    focus: Annotated[str, Doc("The id of the field that gets the focus; empty for none.")] = ""
    saved: Annotated[bool, Doc("Whether it has just been saved.")] = False
    conflict: Annotated[Conflict | None, Doc("A newer version that somebody else saved.")] = None
    removed: Annotated[bool, Doc("Whether somebody removed the ticket meanwhile, so that nothing was saved.")] = False


@router.get("/tickets/new")
def show_new_ticket(services: ServicesDep, teacher: SignedIn, course: str = "") -> Response:
    """The editor with an empty ticket, for the teacher or for `course`, which `owner_of_new` may refuse."""
    owner = owner_of_new(services, teacher, course)
    return _render_editor(replace(_editor_page(TicketTexts()), course=_course_of(owner)))


@router.post("/tickets")
def add_ticket(services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """Store a new ticket of the form's `course` or, without one, of the teacher."""
    texts, owner = _form_texts(form), owner_of_new(services, teacher, form.raw("course"))
    ticket, errors = check_ticket("", ticket_settings(texts))
    if ticket is None:
        return _refuse(replace(_editor_page(texts), course=_course_of(owner)), errors)
    material = add_material(services.store, "ticket", owner, teacher, ticket.settings)
    return RedirectResponse(url_for("show_ticket_editor", material_id=material.id, done="saved"), 303)


@router.get("/tickets/{material_id:int}/edit")
def show_ticket_editor(access: EditableMaterial, done: str = "") -> Response:
    """The editor with the newest version of a ticket; 404 for a worksheet."""
    material = _ticket_only(access.material)
    try:
        ticket = ticket_of_material(material)
    except SettingError:
        return RedirectResponse(url_for("show_material", material_id=material.id), 303)
    page = _editor_page(texts_of_ticket(ticket), material, access.course)
    return _render_editor(replace(page, saved=done == "saved"))


@router.post("/tickets/{material_id:int}")
def save_ticket(services: ServicesDep, access: MaterialToSave, form: FormDep) -> Response:
    """Save what was typed as a new version, with an audit entry, and redirect (303) to the editor."""
    material, texts = _ticket_only(access.material), _form_texts(form)
    version = whole_number(form.raw("version"), LARGEST_ID) or 0
    page = replace(_editor_page(texts, material, access.course), version=version)
    ticket, errors = check_ticket("", ticket_settings(texts))
    if ticket is None:
        return _refuse(page, errors)
    based_on = whole_number(version_to_replace(form), LARGEST_ID) or 0
    save = save_material(services.store, material, based_on, ticket.settings, access.teacher)
    if save.material.removed_at:
        return _render_editor(replace(page, removed=True), 409)
    if not save.is_stored:
        return _render_editor(replace(page, conflict=_conflict(save.material, ticket)), 409)
    return RedirectResponse(url_for("show_ticket_editor", material_id=material.id, done="saved"), 303)


@router.post("/tickets/preview")
def preview_ticket_form(services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """The editor with its preview, as typed, after the change that the form's `arrange` names: see
    `arranged_ticket`.
    """
    texts, focus = arranged_ticket(_form_texts(form), form.raw("arrange"))
    owner = owner_of_new(services, teacher, form.raw("course"))
    material_id, version = (whole_number(form.raw(name), LARGEST_ID) or 0 for name in ("material", "version"))
    page = replace(_editor_page(texts), course=_course_of(owner), focus=focus)
    return _render_editor(replace(page, material_id=material_id, version=version))


def _course_of(owner: Course | Teacher) -> Course | None:
    return owner if isinstance(owner, Course) else None


def _ticket_only(material: Material) -> Material:
    if material.kind != "ticket":
        raise HTTPException(404)
    return material


def _form_texts(form: FormReader) -> TicketTexts:
    questions = tuple(
        QuestionFields(
            name,
            form.raw(f"text.{name}", MAX_BODY),
            form.raw(f"kind.{name}"),
            form.raw(f"options.{name}", MAX_BODY).replace("\r\n", "\n"),
            form.raw(f"first.{name}", MAX_TEXT),
            form.raw(f"last.{name}", MAX_TEXT),
            required=form.raw(f"required.{name}") == "yes",
        )
        for name in form.all("question")
    )
    title, instruction, pick = (form.raw(name, MAX_TEXT) for name in ("title", "instruction", "pick_at_least"))
    return TicketTexts(title, instruction, pick.strip(), form.raw("anonymous") != "no", questions)


def _conflict(newest: Material, ticket: Ticket) -> Conflict:
    theirs, typed = ticket_lines(ticket_of_material(newest)), ticket_lines(ticket)
    only_theirs, only_typed = ([line for line in a if line not in b] for a, b in ((theirs, typed), (typed, theirs)))
    difference = Difference(_("Exit ticket"), "\n".join(only_theirs), "\n".join(only_typed))
    newest_page = url_for("show_ticket_editor", material_id=newest.id)
    return Conflict(str(newest.version), (difference,), newest_page, newest.saved_by)


def _editor_page(
    texts: TicketTexts, material: Material | None = None, course: Course | None = None
) -> TicketEditorPage:
    ticket = draft_ticket(texts)
    place = (material.id, course, material.version) if material else (0, course, 0)
    return TicketEditorPage(texts, ticket, picking_rule(ticket), QUESTION_KINDS, LIMITS, *place)


def _refuse(page: TicketEditorPage, errors: Sequence[SettingError]) -> Response:
    problems = dict[str, str]()
    for error in errors:
        problems.setdefault(field_of_error(page.texts, error), str(error))
    first = next(iter(problems)).replace(".", "-", 1)
    return _render_editor(replace(page, problems=problems, focus=first), 422)


def _render_editor(page: TicketEditorPage, status: int = 200) -> Response:
    return render("materials/ticket_editor.html", page, status)
