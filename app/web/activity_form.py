"""The form of an activity: adding one to a course, and changing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_form import (
    STORED_FIELDS,
    TEXT_FIELDS,
    ActivityFormError,
    field_labels,
    form_in_words,
    new_activity,
    read_activity_form,
    typed_activity,
    typed_sheet,
)
from app.classes.frozen.offered_worksheets import Offer, offer_of
from app.classes.materials import OwnMaterials, materials_for_course
from app.classes.promises import rule_in_words
from app.classes.student_sheet import give_sheets
from app.exchange.imported_models import library_with_model
from app.grading.mistaken_sheets import ExampleSheet, example_sheets
from app.models.architecture import TokensError
from app.practice.lessons import LESSONS, in_order_of_lessons
from app.sheets.code_text import gives_line_away
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.worksheet import Worksheet, WorksheetError, key_in, library_key
from app.store import Activity, AuditAction, Content, Plan, Store, Teacher
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.web.shared.conflicts import Conflict, differences, may_save, version_of
from app.web.shared.forms import FormDep, FormReader, whole_number
from app.web.shared.model_menu import AnswerChoice, ModelMenu, answer_choice, model_menu
from app.web.shared.permissions import CourseAccess, EditableActivity, EditableCourse
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_address import FIRST_WORKSHEET
from app.web.shared.sheet_view import length_remark
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_IMPORTED = 20  # imported models in the menus of one form
MAX_REMARKED = 10**9  # tokens
# What the form holds besides the activity's fields.
NOT_STORED = {
    "imported": (),  # keys of imported models in the menus
    "import": "",  # the address of one to be added
    "search": "",
    "corrected": (),  # keys of worksheets to update to their current definition
    "new_ticket": "",
    "reopens": "",  # "yes" where it was said that the times open a closed activity again
    "version": "",  # the activity's when the form was opened
}


@router.get("/courses/{course_id:int}/activities/new")
def show_new_activity_form(services: ServicesDep, access: EditableCourse, worksheet: str = "") -> Response:
    """A new activity's form with default policies, the library's first exit ticket, and a course's first worksheet."""
    typed = new_activity(services.tickets, access.course.time_zone)
    if not worksheet and not services.store.activities.of_course(access.course):
        worksheet = FIRST_WORKSHEET
    if sheet := _materials(services, access).library.find_worksheet(worksheet):
        typed |= {"title": sheet.title, "worksheet": [typed_sheet(sheet.key)]}
    return _render_form(services, access, None, typed)


@router.post("/courses/{course_id:int}/activities")
def add_activity(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Add an activity as a draft, which only the staff sees, and redirect to its overview."""
    typed = _typed(form)
    if _only_arranges(form):
        return _arranged(services, access, None, typed, form)
    try:
        materials = _materials(services, access)
        offer = Offer(_with_models(services, materials.library, typed), materials.tickets)
        plan, content = read_activity_form(offer, access.course.time_zone, typed)
    except ActivityFormError as error:
        return _render_form(services, access, None, typed, status=422, problem=str(error), field=error.field)
    with services.store.transaction():
        activity = services.store.activities.add(access.course, plan, content)
        services.store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CREATED, activity)
    return RedirectResponse(url_for("show_activity", activity_id=activity.id), 303)


@router.get("/activities/{activity_id:int}/edit")
def show_activity_form(services: ServicesDep, access: EditableActivity) -> Response:
    return _render_form(services, access, access.activity, _stored(access, access.activity))


@router.post("/activities/{activity_id:int}")
def change_activity(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Save the form, and redirect to the overview; 409 as typed if somebody else has saved another version."""
    activity, typed, store = access.activity, _typed(form), services.store
    if _only_arranges(form):
        return _arranged(services, access, activity, typed, form)
    usable = _materials(services, access)
    taken = {"corrections": typed["corrected"], "new_ticket": typed["new_ticket"] == "yes"}
    offer = offer_of(usable.library, usable.tickets, store, activity, **taken)
    offer = replace(offer, library=_with_models(services, offer.library, typed))
    try:
        plan, content = read_activity_form(offer, access.course.time_zone, typed)
        with store.transaction():
            newest = store.activities.locked(activity)
            if newest is None:
                raise HTTPException(404)
            stored = _stored(access, newest)
            # The content was made from `activity`, so even a revision of this very moment is a newer version.
            is_newest = may_save(form, _version(stored), _version(typed)) and newest.revision == activity.revision
            if is_newest:
                plan = _with_exact_times(plan, newest.plan, typed, stored)
                if _rule(plan) != _rule(newest.plan) and store.grades.count_attempts(newest.id):
                    raise ActivityFormError("marking", _("Students have marks: change this by regrading."))
                if typed["reopens"] != "yes":
                    _check_reopening(newest, plan, store.now())
                revision = _save(store, access.teacher, newest, plan, content)
                give_sheets(services.library, store, replace(newest, content=content))
    except ActivityFormError as error:
        return _render_form(services, access, activity, typed, status=422, problem=str(error), field=error.field)
    if not is_newest:
        conflict = _conflict(newest, stored, typed, offer)
        return _render_form(services, access, newest, typed, status=409, conflict=conflict)
    done = "revised" if revision != activity.revision else "saved"
    return RedirectResponse(url_for("show_activity", activity_id=activity.id, done=done), 303)


def _save(store: Store, teacher: Teacher, activity: Activity, plan: Plan, content: Content) -> int:
    store.activities.change(activity, plan)
    revision = store.activities.revise(activity, content)
    is_new = revision != activity.revision
    store.audit_log.record(teacher, AuditAction.ACTIVITY_REVISED if is_new else AuditAction.ACTIVITY_SAVED, activity)
    return revision


def _rule(plan: Plan) -> tuple[str, str]:
    return plan.policies.marking, plan.policies.counting


def _stored(access: CourseAccess, activity: Activity) -> dict[str, Any]:
    return typed_activity(activity.plan, activity.content, access.course.time_zone)


def _version(typed: Mapping[str, Any]) -> str:
    return version_of({name: typed[name] for name in STORED_FIELDS})


def _conflict(newest: Activity, stored: Mapping[str, Any], typed: Mapping[str, Any], offer: Offer) -> Conflict:
    titles = {key: sheet.title for key, sheet in offer.library.worksheets.items()}
    titles |= {key: ticket.title for key, ticket in offer.tickets.items()}
    found = differences(field_labels(), form_in_words(stored, titles), form_in_words(typed, titles))
    return Conflict(_version(stored), found, url_for("show_activity_form", activity_id=newest.id))


def _check_reopening(activity: Activity, plan: Plan, now: datetime) -> None:
    if not activity.is_reopened_as(activity.changed(now, plan=plan), now):
        return
    sentences = [_("This activity has closed, and these times open it again.")]
    if activity.content.items:
        sentences.append(_("Students have seen the answers. Work from now on is marked as late."))
    raise ActivityFormError("reopens", " ".join(sentences))


def _with_exact_times(plan: Plan, before: Plan, typed: Mapping[str, Any], stored: Mapping[str, Any]) -> Plan:
    # A field has no seconds, which Close sets, and can't tell apart the two hours when clocks go back.
    if typed["opens"] == stored["opens"]:
        plan = replace(plan, opens_at=before.opens_at)
    if typed["closes"] == stored["closes"]:
        plan = replace(plan, closes_at=before.closes_at)
    return plan


# From the request to what was typed


def _typed(form: FormReader) -> dict[str, Any]:
    return {
        **{name: form.single_line(name) for name in TEXT_FIELDS},
        "worksheet": [_typed_sheet(form, key) for key in form.all("worksheet") if key],
        **{name: form.single_line(name) for name in ("import", "search", "new_ticket", "reopens", "version")},
        "imported": tuple(dict.fromkeys(form.all("imported")))[:MAX_IMPORTED],
        "corrected": form.all("corrected"),
    }


def _typed_sheet(form: FormReader, key: str) -> dict[str, str]:
    answers = form.raw(f"answers.{key}")
    chosen = key_in(key, "symbols" if answers == "symbols" else "numbers") if answers else key
    return typed_sheet(chosen, form.single_line(f"model.{key}"), form.single_line(f"tokens.{key}"))


def _only_arranges(form: FormReader) -> bool:
    searched = form.raw("by") == "enter" and form.single_line("search") != form.single_line("searched")
    return bool(form.raw("arrange")) or searched


def _arranged(
    services: Services, access: CourseAccess, activity: Activity | None, typed: Mapping[str, Any], form: FormReader
) -> Response:
    action, _space, shown_key = form.raw("arrange").partition(" ")
    key = _typed_sheet(form, shown_key)["key"]
    model = typed["import"].rstrip("/").rpartition("/")[2]
    imported = tuple(dict.fromkeys((*typed["imported"], model) if model else typed["imported"]))[:MAX_IMPORTED]
    known = tuple(each for each in imported if services.store.find_model(each))
    typed = {
        **typed,
        "worksheet": _moved(typed["worksheet"], key, {"up": -1, "down": 1}.get(action, 0)),
        "imported": known,
        "import": "" if model in known else typed["import"],
    }
    problem = ""
    if action == "import" and model not in known:
        problem = _("There is no imported model at “{text}”: import it under Models, then copy its address here.")
        if services.store.find_model(model):
            problem = _("The menus have {most} imported models, and no room for another one.")
        problem = problem.format(text=typed["import"][:60], most=MAX_IMPORTED)
    field, moved = "import" if problem else "", key if action in ("up", "down") else ""
    return _render_form(services, access, activity, typed, problem=problem, field=field, moved=moved)


def _moved(sheets: list[dict[str, str]], key: str, steps: int) -> list[dict[str, str]]:
    order, place = list(sheets), next((index for index, sheet in enumerate(sheets) if sheet["key"] == key), None)
    if place is not None and 0 <= place + steps < len(order):
        order.insert(place + steps, order.pop(place))
    return order


def _materials(services: Services, access: CourseAccess) -> OwnMaterials:
    return materials_for_course(services.library, services.tickets, services.store, access.course, access.teacher)


def _with_models(
    services: Services, library: Library, typed: Mapping[str, Any], imported: Iterable[str] = ()
) -> Library:
    for key in (*(sheet["model"] for sheet in typed["worksheet"]), *imported):
        library = library_with_model(library, services.store, key)
    return library


# The page


@dataclass(frozen=True)
class FormChoice:
    """A worksheet or an exit ticket to choose; the page's script searches its `words`."""

    subject: Worksheet | Ticket
    words: str
    link: str  # to look at it; empty for a library ticket, and for what only the activity still has
    is_found: bool  # by the search, if there is one


@dataclass(frozen=True)
class ChosenSheet:
    """A worksheet of the activity with its fields as typed, and what the form says about it."""

    typed: Mapping[str, str]
    worksheet: Worksheet
    title: str
    default_model: str
    menu: ModelMenu
    answers: AnswerChoice | None
    link: str  # to look at it as it is now; empty if only the activity still has it
    remark: str  # on its length
    gives_line_away: bool  # in an exam, its repair would reveal which line is wrong
    has_newer: bool  # its definition has changed since students got it


def _render_form(
    services: Services,
    access: CourseAccess,
    activity: Activity | None,
    typed: Mapping[str, Any],
    *,
    status: int = 200,
    problem: str = "",
    field: str = "",
    moved: str = "",
    conflict: Conflict | None = None,
) -> Response:
    typed = {**NOT_STORED, **typed}
    materials = _materials(services, access)
    offer = offer_of(materials.library, materials.tickets, services.store, activity)
    library = _with_models(services, offer.library, typed, typed["imported"])
    phase = activity.phase(services.store.now()) if activity else "draft"
    corrected = {sheet.key for sheet in offer.corrected} if phase != "draft" else set()
    chosen = [
        _chosen_sheet(library, sheet, _sheet_link(materials, sheet), sheet["key"] in corrected)
        for sheet in typed["worksheet"]
        if library.find_worksheet(sheet["key"])
    ]
    worksheets = _worksheet_groups(library, materials, access, typed)
    has_attempts = activity is not None and services.store.grades.count_attempts(activity.id) > 0
    ticket_key = activity.content.ticket.key if activity and activity.content.ticket else ""
    return render(
        "teacher/activity_form.html",
        status=status,
        access=access,
        activity=activity,
        phase=phase,
        typed=typed,
        version=typed["version"] or (_version(_stored(access, activity)) if activity else ""),
        has_attempts=has_attempts,
        examples=_marking_examples(library, typed),
        rule=rule_in_words(activity.policies) if activity else "",
        chosen=chosen,
        worksheets=worksheets,
        found=[choice for choices in worksheets.values() for choice in choices if choice.is_found],
        tickets=_ticket_groups(offer, materials, access, typed),
        headings=_headings(),
        ticket=offer.tickets.get(typed["ticket"]),
        has_newer_ticket=phase != "draft" and offer.ticket_corrected and typed["ticket"] == ticket_key,
        unusable=_unusable(services, access, materials),
        practice_is_open=services.settings.practice,
        conflict=conflict,
        moved=_place_in_words(chosen, moved),
        problem=problem,
        field=field,
    )


def _marking_examples(library: Library, typed: Mapping[str, Any]) -> list[ExampleSheet]:
    """Example sheets of the first worksheet; empty if it can't be made of what is typed."""
    for sheet in typed["worksheet"][:1]:
        try:
            tokens = whole_number(sheet["tokens"], MAX_REMARKED) if sheet["tokens"] else None
            return example_sheets(library.variant(sheet["key"], sheet["model"] or None, tokens))
        except (WorksheetError, TokensError, TopicError):
            pass  # problems are reported once the form is saved
    return []


def _place_in_words(chosen: list[ChosenSheet], key: str) -> str:
    for number, sheet in enumerate(chosen, start=1):
        if sheet.typed["key"] == key:
            sentence = _("{title} is number {number} of {count}.")
            return sentence.format(title=sheet.title, number=number, count=len(chosen))
    return ""


def _headings() -> dict[str, str]:
    lessons = {lesson.key: _(lesson.title) for lesson in LESSONS}
    return {"course": _("This course’s worksheets"), "mine": _("My worksheets"), **lessons, "more": _("More sheets")}


def _worksheet_groups(
    library: Library, materials: OwnMaterials, access: CourseAccess, typed: Mapping[str, Any]
) -> dict[str, list[FormChoice]]:
    headings, chosen = _headings(), {sheet["key"] for sheet in typed["worksheet"]}
    groups: dict[str, list[FormChoice]] = {group: [] for group in headings}
    for sheet in in_order_of_lessons(library.worksheets.values()):
        if sheet.key in chosen or sheet.key != library_key(sheet.key):
            continue
        lesson = next((lesson.key for lesson in LESSONS if sheet.key in lesson.worksheets), "more")
        group = _owner(materials, access, sheet.key) or lesson
        topic, model = library.wording.topics[sheet.topic].name, library.model(sheet.model).name
        words = f"{sheet.title} {topic} {model} {headings[group]}"
        link = _sheet_link(materials, typed_sheet(sheet.key))
        groups[group].append(FormChoice(sheet, words, link, _finds(typed["search"], words)))
    return {group: choices for group, choices in groups.items() if choices}


def _ticket_groups(
    offer: Offer, materials: OwnMaterials, access: CourseAccess, typed: Mapping[str, Any]
) -> dict[str, list[FormChoice]]:
    headings = {"": "", "course": _("This course’s exit tickets"), "mine": _("My exit tickets")}
    groups: dict[str, list[FormChoice]] = {heading: [] for heading in headings.values()}
    for ticket in offer.tickets.values():
        heading = headings[_owner(materials, access, ticket.key)]
        words = f"{ticket.title} {heading}"
        is_found = ticket.key == typed["ticket"] or _finds(typed["search"], words)
        material = materials.by_key.get(ticket.key)
        link = url_for("show_material", material_id=material.id) if material else ""
        groups[heading].append(FormChoice(ticket, words, link, is_found))
    return {heading: choices for heading, choices in groups.items() if choices}


def _owner(materials: OwnMaterials, access: CourseAccess, key: str) -> Literal["course", "mine", ""]:
    material = materials.by_key.get(key)
    if material is None:
        return ""
    return "course" if material.course_id == access.course.id else "mine"


def _finds(search: str, words: str) -> bool:
    return all(word in words.casefold() for word in search.casefold().split())


def _unusable(services: Services, access: CourseAccess, own: OwnMaterials) -> tuple[str, ...]:
    if not own.unusable:
        return ()
    materials = services.store.materials.usable_in(access.course, access.teacher)
    sentence = _("“{title}” can’t be used: {reason}")
    return tuple(
        sentence.format(title=material.title, reason=own.unusable[material.id])
        for material in materials
        if material.id in own.unusable
    )


def _sheet_link(materials: OwnMaterials, sheet: Mapping[str, str]) -> str:
    if material := materials.by_key.get(sheet["key"]):
        return url_for("show_material", material_id=material.id)
    chosen = {name: sheet[name] for name in ("model", "tokens")} if sheet["model"] or sheet["tokens"] else {}
    is_there = materials.library.find_worksheet(sheet["key"])
    return url_for("show_sheet", worksheet=sheet["key"], **chosen) if is_there else ""


def _chosen_sheet(library: Library, typed: Mapping[str, str], link: str, has_newer: bool) -> ChosenSheet:
    sheet, model = library.worksheet(typed["key"]), typed["model"]
    fits = model in library.models and library.refusal(sheet.key, model) is None
    try:
        tokens = whole_number(typed["tokens"], MAX_REMARKED) if typed["tokens"] else None
        remark = length_remark(library.variant(sheet.key, model or None, tokens))
    except (WorksheetError, TokensError, TopicError):
        remark = ""  # problems are reported once the form is saved
    return ChosenSheet(
        typed,
        sheet,
        title=library.variant(sheet.key, model).title if fits else sheet.title,
        default_model=library.model(sheet.model).name,
        menu=model_menu(library, sheet.key, model),
        answers=answer_choice(library, sheet.key, model),
        link=link,
        remark=remark,
        gives_line_away=gives_line_away(sheet),
        has_newer=has_newer,
    )
