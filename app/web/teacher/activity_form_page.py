"""The form of an activity: adding one to a course, and changing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_form import (
    FIELD_NAMES,
    ActivityFormError,
    ActivityTexts,
    WorksheetTexts,
    empty_texts,
    read_activity_form,
    texts_of,
)
from app.classes.frozen.offered_worksheets import Offer, complete_revisions, offer_of
from app.exchange.imported_models import library_with_model
from app.sheets.library import Library
from app.store import Activity, AuditAction, Phase, Plan
from app.translation import gettext as _
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.model_menu import ModelMenu, model_menu
from app.web.shared.permissions import CourseAccess, EditableActivity, EditableCourse
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_IMPORTED = 20  # imported models in the menus of one form


@dataclass(frozen=True)
class FormChoice:
    """A worksheet or an exit ticket to choose."""

    key: str
    title: str
    chosen: bool


@dataclass(frozen=True)
class WorksheetView:
    """A worksheet of the activity: what its fields hold, the models it can have, and what it has without a choice."""

    texts: WorksheetTexts
    title: str
    menu: ModelMenu
    own_model: str
    own_tokens: int
    has_preview: bool  # False for a worksheet that only the activity has still


@dataclass(frozen=True)
class ActivityFormPage:
    """Everything that templates/teacher/activity_form.html shows."""

    access: Annotated[CourseAccess, Doc("The course, and the teacher.")]
    activity: Annotated[Activity | None, Doc("The activity to be changed; None for a new one.")]
    phase: Annotated[Phase, Doc("Whether the activity is a draft, waiting, open or closed now.")]
    typed: Annotated[Mapping[str, str], Doc("The text of each field, by the field's name.")]
    chosen: Annotated[tuple[WorksheetView, ...], Doc("The worksheets of the activity, in order.")]
    worksheets: Annotated[Mapping[str, tuple[FormChoice, ...]], Doc("The worksheets that can be added, by topic.")]
    imported: Annotated[tuple[str, ...], Doc("The keys of imported models that the menus offer.")]
    tickets: Annotated[tuple[FormChoice, ...], Doc("The exit tickets to choose from.")]
    corrected: Annotated[tuple[str, ...], Doc("The titles of worksheets that students have in an earlier form.")]
    problem: Annotated[str, Doc("The sentence about what cannot be used, empty where there is none.")] = ""
    field: Annotated[str, Doc("The name of the field that the problem is about.")] = ""


@router.get("/courses/{course_id:int}/activities/new")
def show_new_activity_form(services: ServicesDep, access: EditableCourse) -> Response:
    """The form with the default policies and no worksheet."""
    texts = empty_texts(tuple(services.tickets), access.course.time_zone)
    return render("teacher/activity_form.html", _activity_form_page(services, access, None, texts))


@router.post("/courses/{course_id:int}/activities")
def add_activity(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Add an activity as a draft, which only the staff sees, and go to it.

    422 with the form as typed, and a sentence beside the first field that cannot be used.
    """
    texts, course = _form_texts(form), access.course
    if form.raw("arrange"):
        return _arrange_form(services, access, None, texts, form)
    try:
        offer = Offer(_with_models(services, services.library, texts), services.tickets)
        plan, content = read_activity_form(offer, services.library.wording, course.time_zone, texts)
    except ActivityFormError as error:
        return _refuse_form(services, access, None, texts, error)
    activity = services.store.activities.add(course, plan, content)
    services.store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CREATED, activity)
    return RedirectResponse(url_for("show_activity", activity_id=activity.id), 303)


@router.get("/activities/{activity_id:int}/edit")
def show_activity_form(services: ServicesDep, access: EditableActivity) -> Response:
    """The form filled in with the activity as it is."""
    texts = texts_of(access.activity.plan, access.activity.content, access.course.time_zone)
    return render("teacher/activity_form.html", _activity_form_page(services, access, access.activity, texts))


@router.post("/activities/{activity_id:int}")
def change_activity(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Save the form and go to the activity; 422 with the form as typed where a field cannot be used.

    Other worksheets or another exit ticket make a new revision, unless the activity is still a draft; so do worksheets
    that were corrected, where the form asks for them. What students answered before stays with the revision they saw.
    """
    texts, store, wording = _form_texts(form), services.store, services.library.wording
    if form.raw("arrange"):
        return _arrange_form(services, access, access.activity, texts, form)
    activity = complete_revisions(services.library, store, access.activity)
    corrected = form.raw("corrected") == "yes"
    offer = offer_of(services.library, services.tickets, store, activity, take_corrections=corrected)
    offer = replace(offer, library=_with_models(services, offer.library, texts))
    try:
        plan, content = read_activity_form(offer, wording, access.course.time_zone, texts)
    except ActivityFormError as error:
        return _refuse_form(services, access, activity, texts, error)
    store.activities.change(activity, _with_seconds(plan, activity.plan))
    revision = store.activities.revise(activity, content)
    is_new = revision != activity.revision
    action = AuditAction.ACTIVITY_REVISED if is_new else AuditAction.ACTIVITY_SAVED
    store.audit_log.record(access.teacher, action, activity)
    done = "revised" if is_new else "saved"
    return RedirectResponse(url_for("show_activity", activity_id=activity.id, done=done), 303)


def _form_texts(form: FormReader) -> ActivityTexts:
    """The fields of a form as single lines, without a per cent sign, and the ticked worksheets with theirs."""
    fields = {name: form.single_line(name) for name in FIELD_NAMES}
    fields["follow_share"] = fields["follow_share"].removesuffix("%").strip()
    sheets = tuple(
        WorksheetTexts(key, form.single_line(f"model.{key}"), form.single_line(f"tokens.{key}"))
        for key in form.all("worksheet")
        if key
    )
    return ActivityTexts(fields, sheets)


def _with_models(services: Services, library: Library, texts: ActivityTexts, imported: Sequence[str] = ()) -> Library:
    """The library with the imported models that the worksheets have, and these ones."""
    for key in (*(sheet.model for sheet in texts.worksheets), *imported):
        library = library_with_model(library, services.store, key)
    return library


def _arrange_form(
    services: Services, access: CourseAccess, activity: Activity | None, texts: ActivityTexts, form: FormReader
) -> Response:
    """The form as typed, after what the pressed button asks for; nothing is saved.

    That is "up KEY", "down KEY", "add", or "import": the address or the key of an imported model, for all menus.
    """
    action, _space, key = form.raw("arrange").partition(" ")
    texts = _moved(texts, key, {"up": -1, "down": 1}.get(action, 0))
    typed = form.single_line("import").rstrip("/").rpartition("/")[2]
    imported = tuple(dict.fromkeys((*form.all("imported"), typed) if typed else form.all("imported")))
    known = tuple(each for each in imported[:MAX_IMPORTED] if services.store.find_model(each))
    page = _activity_form_page(services, access, activity, texts, known)
    if action == "import" and typed not in known:
        problem = _("There is no imported model at “{text}”: import it under Models, then copy its address here.")
        page = replace(page, problem=problem.format(text=form.single_line("import")[:60]), field="import")
    return render("teacher/activity_form.html", page)


def _moved(texts: ActivityTexts, key: str, steps: int) -> ActivityTexts:
    """The texts with one worksheet so many places further down."""
    sheets = list(texts.worksheets)
    place = next((index for index, sheet in enumerate(sheets) if sheet.key == key), None)
    if place is None or not 0 <= place + steps < len(sheets):
        return texts
    sheets.insert(place + steps, sheets.pop(place))
    return replace(texts, worksheets=tuple(sheets))


def _with_seconds(typed: Plan, stored: Plan) -> Plan:
    """The plan that was typed, with the stored times where they were left: the form shows them without seconds."""

    def exact(typed: datetime | None, stored: datetime | None) -> datetime | None:
        return stored if stored and typed == stored.replace(second=0, microsecond=0) else typed

    opens_at, closes_at = exact(typed.opens_at, stored.opens_at), exact(typed.closes_at, stored.closes_at)
    return replace(typed, opens_at=opens_at, closes_at=closes_at)


def _refuse_form(
    services: Services, access: CourseAccess, activity: Activity | None, texts: ActivityTexts, error: ActivityFormError
) -> Response:
    """The form with 422: everything typed still in it, and the error's sentence beside its field."""
    page = replace(_activity_form_page(services, access, activity, texts), problem=str(error), field=error.field)
    return render("teacher/activity_form.html", page, 422)


def _activity_form_page(
    services: Services,
    access: CourseAccess,
    activity: Activity | None,
    texts: ActivityTexts,
    imported: tuple[str, ...] = (),
) -> ActivityFormPage:
    """The form filled in with these texts, with every other worksheet, by topic, and every exit ticket to choose from.

    `activity` is None for a new one; `imported` are the keys of imported models that the menus offer.
    """
    offer = offer_of(services.library, services.tickets, services.store, activity)
    library = _with_models(services, offer.library, texts, imported)
    worksheets = {
        library.wording.say("topics", topic): tuple(
            FormChoice(sheet.key, sheet.title, chosen=False)
            for sheet in library.worksheets.values()
            if sheet.topic == topic and sheet.key not in texts.keys
        )
        for topic in library.topics
    }
    known = [sheet for sheet in texts.worksheets if sheet.key in library.worksheets]
    chosen = tuple(_worksheet_view(library, sheet, sheet.key in services.library.worksheets) for sheet in known)
    ticket_key = texts.fields["ticket"]
    tickets = tuple(FormChoice(t.key, t.title, t.key == ticket_key) for t in offer.tickets.values())
    phase = activity.phase() if activity else "draft"
    corrected = offer.corrected if phase != "draft" else ()
    return ActivityFormPage(access, activity, phase, texts.fields, chosen, worksheets, imported, tickets, corrected)


def _worksheet_view(library: Library, texts: WorksheetTexts, has_preview: bool) -> WorksheetView:
    """A worksheet as the form shows it."""
    sheet = library.worksheets[texts.key]
    fits = texts.model in library.models and library.refusal(sheet.key, texts.model) is None
    title = library.variant(sheet.key, texts.model).title if fits else sheet.title
    menu = model_menu(library, sheet.key, texts.model)
    return WorksheetView(texts, title, menu, library.model(sheet.model).name, sheet.tokens, has_preview)
