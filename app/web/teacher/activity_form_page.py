"""The form of an activity: adding one to a course, and changing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_form import (
    FIELD_NAMES,
    ActivityFormError,
    ActivityTexts,
    WorksheetTexts,
    empty_texts,
    field_labels,
    read_activity_form,
    texts_in_words,
    texts_of,
)
from app.classes.frozen.offered_worksheets import Offer, offer_of
from app.classes.materials import OwnMaterials, materials_for_course
from app.exchange.imported_models import library_with_model
from app.models.architecture import TokensError
from app.sheets.code_text import gives_line_away
from app.sheets.library import Library
from app.sheets.worksheet import WorksheetError, key_in, library_key
from app.store import Activity, AuditAction, Content, Phase, Plan, Store, Teacher
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.web.shared.conflicts import Conflict, differences, may_save, version_of
from app.web.shared.forms import FormDep, FormReader, whole_number
from app.web.shared.model_menu import AnswerChoice, ModelMenu, answer_choice, model_menu
from app.web.shared.permissions import CourseAccess, EditableActivity, EditableCourse
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_view import length_remark
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_IMPORTED = 20  # imported models in the menus of one form
MAX_REMARKED = 10**9  # tokens


@dataclass(frozen=True)
class FormChoice:
    """A worksheet or an exit ticket to choose; `words` are searched."""

    key: str
    title: str
    words: str
    link: str  # to look at it; empty for a library ticket, and for what only the activity still has
    chosen: bool = False
    is_found: bool = True  # by the search, if there is one
    is_anonymous: bool | None = None  # the ticket's own setting


@dataclass(frozen=True)
class ChoiceGroup:
    """The worksheets or exit tickets under one heading, which is empty for the library's tickets."""

    key: str  # "course", "mine", "library", or a topic's key
    heading: str
    entries: tuple[FormChoice, ...]

    @property
    def is_found(self) -> bool:
        return any(entry.is_found for entry in self.entries)


@dataclass(frozen=True)
class WorksheetView:
    """A worksheet of the activity: its fields, the possible models, and its values without a choice."""

    texts: WorksheetTexts
    title: str
    menu: ModelMenu
    answers: AnswerChoice | None
    default_model: str
    default_tokens: int
    link: str  # to look at it as it is now; empty if only the activity still has it
    remark: str  # on its length
    gives_line_away: bool  # in an exam, its repair would reveal which line is wrong
    has_newer: bool  # its definition has changed since students got it
    takes_newer: bool  # and students are to get the current one


@dataclass(frozen=True)
class ActivityFormPage:
    """Everything that templates/teacher/activity_form.html shows."""

    access: Annotated[CourseAccess, Doc("The course, and the teacher.")]
    activity: Annotated[Activity | None, Doc("The activity to be changed; None for a new one.")]
    phase: Annotated[Phase, Doc("Whether the activity is a draft, waiting, open or closed now.")]
    typed: Annotated[Mapping[str, str], Doc("The text of each field, by the field's name.")]
    version: Annotated[str, Doc("The version of the activity that the form was opened with.")]
    chosen: Annotated[tuple[WorksheetView, ...], Doc("The worksheets of the activity, in order.")]
    worksheets: Annotated[tuple[ChoiceGroup, ...], Doc("The worksheets that can be added: own ones, then by topic.")]
    imported: Annotated[tuple[str, ...], Doc("The keys of imported models that the menus offer.")]
    tickets: Annotated[tuple[ChoiceGroup, ...], Doc("The exit tickets to choose from: the library's, then own ones.")]
    ticket_title: Annotated[str, Doc("The title of the chosen exit ticket, empty for none.")]
    new_ticket: Annotated[str, Doc("'offered' where the exit ticket has a newer version, 'taken' if it is used.")]
    unusable: Annotated[tuple[str, ...], Doc("Why own worksheets and tickets cannot be chosen, a sentence each.")]
    practice_is_open: Annotated[bool, Doc("Whether students can practise on this server.")]
    conflict: Annotated[Conflict | None, Doc("A newer version that somebody else saved.")] = None
    reopens: Annotated[bool, Doc("Whether it was said that the times open a closed activity again.")] = False
    search: Annotated[str, Doc("What the lists are narrowed to.")] = ""
    moved: Annotated[str, Doc("The sentence about a worksheet that was just moved, empty for none.")] = ""
    problem: Annotated[str, Doc("The sentence about what cannot be used, empty where there is none.")] = ""
    field: Annotated[str, Doc("The name of the field that the problem is about.")] = ""
    import_text: Annotated[str, Doc("The address of an imported model as typed, if it was not added.")] = ""


@dataclass(frozen=True)
class FormState:
    """What a form holds besides its fields; none of it is stored with the activity."""

    imported: tuple[str, ...] = ()  # keys of imported models in the menus
    search: str = ""
    corrections: tuple[str, ...] = ()  # keys of worksheets to update to their current definition
    new_ticket: bool = False
    reopens: bool = False  # the times would reopen a closed activity
    version: str = ""  # the activity's version when the form was opened


NEW_FORM = FormState()


@router.get("/courses/{course_id:int}/activities/new")
def show_new_activity_form(services: ServicesDep, access: EditableCourse, worksheet: str = "") -> Response:
    """A new activity's form with default policies and the library's first exit ticket."""
    texts = empty_texts(tuple(services.tickets), access.course.time_zone)
    if sheet := _materials(services, access).library.find_worksheet(worksheet):
        fields = {**texts.fields, "title": sheet.title}
        texts = replace(texts, fields=fields, worksheets=(WorksheetTexts(sheet.key),))
    return render("teacher/activity_form.html", _activity_form_page(services, access, None, texts))


@router.post("/courses/{course_id:int}/activities")
def add_activity(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Add an activity as a draft, which only the staff sees, with an audit entry, and redirect to its overview."""
    texts = _form_texts(form)
    if _only_arranges(form):
        return _arrange_form(services, access, None, texts, form)
    try:
        materials = _materials(services, access)
        offer = Offer(_with_models(services, materials.library, texts), materials.tickets)
        plan, content = read_activity_form(offer, access.course.time_zone, texts)
    except ActivityFormError as error:
        return _refused_form(services, access, None, texts, form, error)
    with services.store.transaction():
        activity = services.store.activities.add(access.course, plan, content)
        services.store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CREATED, activity)
    return RedirectResponse(url_for("show_activity", activity_id=activity.id), 303)


@router.get("/activities/{activity_id:int}/edit")
def show_activity_form(services: ServicesDep, access: EditableActivity) -> Response:
    """The form filled in with the activity as it is."""
    texts = texts_of(access.activity.plan, access.activity.content, access.course.time_zone)
    return render("teacher/activity_form.html", _activity_form_page(services, access, access.activity, texts))


@router.post("/activities/{activity_id:int}")
def change_activity(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Save the form, and redirect to the overview; 409 as typed if somebody else has saved another version."""
    activity, texts, state, store = access.activity, _form_texts(form), _form_state(form), services.store
    if _only_arranges(form):
        return _arrange_form(services, access, activity, texts, form)
    usable = _materials(services, access)
    offer = offer_of(
        usable.library, usable.tickets, store, activity, corrections=state.corrections, new_ticket=state.new_ticket
    )
    offer = replace(offer, library=_with_models(services, offer.library, texts))
    try:
        plan, content = read_activity_form(offer, access.course.time_zone, texts)
        with store.transaction():
            newest = store.activities.locked(activity)
            if newest is None:
                raise HTTPException(404)
            # The content was made from `activity`, so even a revision of this very moment is a newer version.
            may = may_save(form, _version(access, newest), _version_of(texts))
            is_newest = may and newest.revision == activity.revision
            if is_newest:
                plan = _with_exact_times(plan, texts, newest, access.course.time_zone)
                _check_reopening(newest, plan, state, store.now())
                revision = _save(store, access.teacher, newest, plan, content)
    except ActivityFormError as error:
        return _refused_form(services, access, activity, texts, form, error)
    if not is_newest:
        return _conflicting_form(services, access, newest, texts, offer, state)
    done = "revised" if revision != activity.revision else "saved"
    return RedirectResponse(url_for("show_activity", activity_id=activity.id, done=done), 303)


def _save(store: Store, teacher: Teacher, activity: Activity, plan: Plan, content: Content) -> int:
    store.activities.change(activity, plan)
    revision = store.activities.revise(activity, content)
    is_new = revision != activity.revision
    store.audit_log.record(teacher, AuditAction.ACTIVITY_REVISED if is_new else AuditAction.ACTIVITY_SAVED, activity)
    return revision


def _version(access: CourseAccess, activity: Activity) -> str:
    return _version_of(texts_of(activity.plan, activity.content, access.course.time_zone))


def _version_of(texts: ActivityTexts) -> str:
    return version_of(dict(texts.fields), [astuple(sheet) for sheet in texts.worksheets])


def _conflicting_form(
    services: Services, access: CourseAccess, newest: Activity, texts: ActivityTexts, offer: Offer, state: FormState
) -> Response:
    stored = texts_of(newest.plan, newest.content, access.course.time_zone)
    titles = {key: sheet.title for key, sheet in offer.library.worksheets.items()}
    titles |= {key: ticket.title for key, ticket in offer.tickets.items()}
    told = (texts_in_words(each, titles) for each in (stored, texts))
    newest_page = url_for("show_activity_form", activity_id=newest.id)
    conflict = Conflict(_version(access, newest), differences(field_labels(), *told), newest_page)
    page = replace(_activity_form_page(services, access, newest, texts, state), conflict=conflict)
    return render("teacher/activity_form.html", page, 409)


def _check_reopening(activity: Activity, plan: Plan, state: FormState, now: datetime) -> None:
    if state.reopens or not activity.is_reopened_as(activity.changed(now, plan=plan), now):
        return
    sentences = [_("This activity has closed, and these times open it again.")]
    if activity.content.items:
        sentences.append(
            _("Since it closed, students can see the answers. What they do from now on is marked as late.")
        )
    raise ActivityFormError("reopens", " ".join(sentences))


def _with_exact_times(plan: Plan, texts: ActivityTexts, activity: Activity, time_zone: str) -> Plan:
    # A field has no seconds, which Close sets, and can't tell apart the two hours when clocks go back.
    stored = texts_of(activity.plan, activity.content, time_zone)
    times = {"opens": activity.plan.opens_at, "closes": activity.plan.closes_at}
    unchanged: dict[str, Any] = {f"{name}_at": time for name, time in times.items()
                            if texts.fields[name] == stored.fields[name]}  # fmt: skip
    return replace(plan, **unchanged)


def _form_texts(form: FormReader) -> ActivityTexts:
    fields = {name: form.single_line(name) for name in FIELD_NAMES}
    fields["follow_share"] = fields["follow_share"].removesuffix("%").strip()
    sheets = tuple(_worksheet_texts(form, key) for key in form.all("worksheet") if key)
    return ActivityTexts(fields, sheets)


def _worksheet_texts(form: FormReader, key: str) -> WorksheetTexts:
    answers = form.raw(f"answers.{key}")
    chosen = key_in(key, "symbols" if answers == "symbols" else "numbers") if answers else key
    return WorksheetTexts(chosen, form.single_line(f"model.{key}"), form.single_line(f"tokens.{key}"))


def _form_state(form: FormReader) -> FormState:
    return FormState(
        tuple(dict.fromkeys(form.all("imported")))[:MAX_IMPORTED],
        form.single_line("search"),
        corrections=form.all("corrected"),
        new_ticket=form.raw("new_ticket") == "yes",
        reopens=form.raw("reopens") == "yes",
        version=form.raw("version"),
    )


def _only_arranges(form: FormReader) -> bool:
    searched = form.raw("by") == "enter" and form.single_line("search") != form.single_line("searched")
    return bool(form.raw("arrange")) or searched


def _materials(services: Services, access: CourseAccess) -> OwnMaterials:
    return materials_for_course(services.library, services.tickets, services.store, access.course, access.teacher)


def _with_models(services: Services, library: Library, texts: ActivityTexts, imported: Sequence[str] = ()) -> Library:
    for key in (*(sheet.model for sheet in texts.worksheets), *imported):
        library = library_with_model(library, services.store, key)
    return library


def _refused_form(
    services: Services,
    access: CourseAccess,
    activity: Activity | None,
    texts: ActivityTexts,
    form: FormReader,
    error: ActivityFormError,
) -> Response:
    page = _activity_form_page(services, access, activity, texts, _form_state(form))
    page = replace(page, problem=str(error), field=error.field, import_text=form.single_line("import"))
    return render("teacher/activity_form.html", page, 422)


def _arrange_form(
    services: Services, access: CourseAccess, activity: Activity | None, texts: ActivityTexts, form: FormReader
) -> Response:
    action, _space, shown_key = form.raw("arrange").partition(" ")
    key = _worksheet_texts(form, shown_key).key
    texts, import_text = _moved(texts, key, {"up": -1, "down": 1}.get(action, 0)), form.single_line("import")
    typed = import_text.rstrip("/").rpartition("/")[2]
    state = _form_state(form)
    imported = tuple(dict.fromkeys((*state.imported, typed) if typed else state.imported))[:MAX_IMPORTED]
    known = tuple(each for each in imported if services.store.find_model(each))
    page = _activity_form_page(services, access, activity, texts, replace(state, imported=known))
    if action in ("up", "down"):
        page = replace(page, moved=_place_in_words(page, key))
    if typed not in known:
        page = replace(page, import_text=import_text)
    if typed not in known and action == "import":
        problem = _("There is no imported model at “{text}”: import it under Models, then copy its address here.")
        if services.store.find_model(typed):
            problem = _("The menus have {most} imported models, and no room for another one.")
        page = replace(page, problem=problem.format(text=import_text[:60], most=MAX_IMPORTED), field="import")
    return render("teacher/activity_form.html", page)


def _moved(texts: ActivityTexts, key: str, steps: int) -> ActivityTexts:
    sheets = list(texts.worksheets)
    place = next((index for index, sheet in enumerate(sheets) if sheet.key == key), None)
    if place is None or not 0 <= place + steps < len(sheets):
        return texts
    sheets.insert(place + steps, sheets.pop(place))
    return replace(texts, worksheets=tuple(sheets))


def _place_in_words(page: ActivityFormPage, key: str) -> str:
    places = [(number, sheet.title) for number, sheet in enumerate(page.chosen, start=1) if sheet.texts.key == key]
    sentence = _("{title} is number {number} of {count}.")
    return "".join(sentence.format(title=title, number=number, count=len(page.chosen)) for number, title in places)


def _activity_form_page(
    services: Services,
    access: CourseAccess,
    activity: Activity | None,
    texts: ActivityTexts,
    state: FormState = NEW_FORM,
) -> ActivityFormPage:
    materials = _materials(services, access)
    offer = offer_of(materials.library, materials.tickets, services.store, activity)
    library = _with_models(services, offer.library, texts, state.imported)
    phase = activity.phase(services.store.now()) if activity else "draft"
    corrected = {sheet.key for sheet in offer.corrected} if phase != "draft" else set()
    chosen = tuple(
        _worksheet_view(library, sheet, _sheet_link(materials, sheet.key, sheet), sheet.key in corrected, state)
        for sheet in texts.worksheets
        if library.find_worksheet(sheet.key)
    )
    ticket_key = activity.content.ticket.key if activity and activity.content.ticket else ""
    newer = phase != "draft" and offer.ticket_corrected and texts.fields["ticket"] == ticket_key
    return ActivityFormPage(
        access=access,
        activity=activity,
        phase=phase,
        typed=texts.fields,
        version=state.version or (_version(access, activity) if activity else ""),
        chosen=chosen,
        worksheets=_worksheet_groups(library, materials, access, texts, state),
        imported=state.imported,
        tickets=_ticket_groups(offer, materials, access, texts, state),
        ticket_title=next((each.title for each in offer.tickets.values() if each.key == texts.fields["ticket"]), ""),
        new_ticket=("taken" if state.new_ticket else "offered") if newer else "",
        unusable=_unusable(services, access, materials),
        practice_is_open=services.settings.practice,
        reopens=state.reopens,
        search=state.search,
    )


def _worksheet_groups(
    library: Library, materials: OwnMaterials, access: CourseAccess, texts: ActivityTexts, state: FormState
) -> tuple[ChoiceGroup, ...]:
    topics = {topic: library.wording.topics[topic].name for topic in library.topics}
    headings = {"course": _("This course’s worksheets"), "mine": _("My worksheets"), **topics}
    groups: dict[str, list[FormChoice]] = {group: [] for group in headings}
    for sheet in library.worksheets.values():
        if sheet.key in texts.keys or sheet.key != library_key(sheet.key):
            continue
        group = _owner(materials, access, sheet.key) or sheet.topic
        words = f"{sheet.title} {topics[sheet.topic]} {library.model(sheet.model).name} {headings[group]}"
        link, is_found = _sheet_link(materials, sheet.key), _finds(state.search, words)
        groups[group].append(FormChoice(sheet.key, sheet.title, words, link, is_found=is_found))
    return tuple(ChoiceGroup(group, headings[group], tuple(entries)) for group, entries in groups.items() if entries)


def _ticket_groups(
    offer: Offer, materials: OwnMaterials, access: CourseAccess, texts: ActivityTexts, state: FormState
) -> tuple[ChoiceGroup, ...]:
    headings = {"library": "", "course": _("This course’s exit tickets"), "mine": _("My exit tickets")}
    groups: dict[str, list[FormChoice]] = {group: [] for group in headings}
    for ticket in offer.tickets.values():
        group, chosen = _owner(materials, access, ticket.key) or "library", ticket.key == texts.fields["ticket"]
        words = f"{ticket.title} {headings[group]}"
        is_found = chosen or _finds(state.search, words)
        material = materials.by_key.get(ticket.key)
        link = url_for("show_material", material_id=material.id) if material else ""
        choice = FormChoice(ticket.key, ticket.title, words, link, chosen, is_found, ticket.anonymous)
        groups[group].append(choice)
    return tuple(ChoiceGroup(group, headings[group], tuple(entries)) for group, entries in groups.items() if entries)


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


def _sheet_link(materials: OwnMaterials, key: str, texts: WorksheetTexts | None = None) -> str:
    if material := materials.by_key.get(key):
        return url_for("show_material", material_id=material.id)
    chosen = {"model": texts.model, "tokens": texts.tokens} if texts and (texts.model or texts.tokens) else {}
    return url_for("show_sheet", worksheet=key, **chosen) if materials.library.find_worksheet(key) else ""


def _worksheet_view(
    library: Library, texts: WorksheetTexts, link: str, has_newer: bool, state: FormState
) -> WorksheetView:
    sheet = library.worksheet(texts.key)
    fits = texts.model in library.models and library.refusal(sheet.key, texts.model) is None
    title = library.variant(sheet.key, texts.model).title if fits else sheet.title
    menu = model_menu(library, sheet.key, texts.model)
    answers = answer_choice(library, sheet.key, texts.model)
    try:
        tokens = whole_number(texts.tokens, MAX_REMARKED) if texts.tokens else None
        remark = length_remark(library.variant(sheet.key, texts.model or None, tokens))
    except (WorksheetError, TokensError, TopicError):
        remark = ""  # problems are reported once the form is saved
    default_model, takes_newer = library.model(sheet.model).name, has_newer and texts.key in state.corrections
    gives_away = gives_line_away(sheet)
    return WorksheetView(
        texts, title, menu, answers, default_model, sheet.tokens, link, remark, gives_away, has_newer, takes_newer
    )
