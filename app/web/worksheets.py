"""Worksheets and exit tickets that teachers can use: the list, the page of an own one, copies, files, the editor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from pydantic import ValidationError

from app.classes.authoring.worksheet_form import (
    LINE_TEXTS,
    MARKDOWN_TEXTS,
    MISCONCEPTION_TEXTS,
    SIMPLIFIED,
    Typed,
    arrange,
    typed_worksheet,
)
from app.classes.materials import (
    OwnMaterials,
    add_material,
    library_with_models_of,
    save_material,
    settings_to_copy,
    title_of_copy,
    with_materials,
)
from app.exchange import hub
from app.exchange.changed_lines import ChangedLine, changed_lines
from app.exchange.class_list import MAX_ROSTER_BYTES, read_names
from app.exchange.imported_models import library_with_model
from app.exchange.material_file import MaterialFileError, decode_file, read_material_file, settings_in_file
from app.exchange.toml_text import write_toml
from app.figures.thumbnails import thumbnail
from app.models.architecture import TokensError
from app.models.config_fields import ConfigError
from app.names import clean_line, name_key
from app.practice.lessons import LESSONS, in_order_of_lessons, lesson_with
from app.refusal import Refusal
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.worksheet import MAX_QUESTIONS, WORKSHEETS, Worksheet, WorksheetError, stored_fields
from app.store import AuditAction, Course, Material, MaterialKind, MaterialVersion, Store, TaughtCourse, Teacher
from app.topics.registry import TOPICS
from app.topics.requirements import TopicError
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _
from app.web.shared.conflicts import Conflict, setting_differences, version_to_replace
from app.web.shared.cookies import SECRET_COOKIE, redirect_with_secret
from app.web.shared.forms import MAX_LINE, FormDep, FormReader, clean_lines, cut_page, whole_number
from app.web.shared.handout_form import MAX_TYPED_TOKENS, HandoutForm, handout_base_url
from app.web.shared.handout_jobs import start_handout
from app.web.shared.import_form import IMPORT_WAYS, import_model_by, read_import_form
from app.web.shared.model_menu import model_menu
from app.web.shared.permissions import (
    LARGEST_ID,
    EditableCourses,
    EditableMaterial,
    MaterialAccess,
    MaterialToSave,
    QueueClient,
    ReadableMaterial,
    RemovedMaterial,
    SharedMaterial,
    SignedIn,
    owner_of_new,
    queue_client,
)
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.sheet_address import FIRST_WORKSHEET
from app.web.shared.sheet_view import question_views, row_views
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import public_url, url_for
from app.web.worksheet_editor import WorksheetDraft, make_draft, render_editor
from app.web.worksheet_preview import paper_response, unpack_settings

router = APIRouter(include_in_schema=False)

PRINT_OPTIONS = ("sheets", "layout", "paper", "key", "large", "figures")

FIRST_MODEL = "llama-7b"
FIRST_TOPIC = SINGLE_HEAD.key
MAX_VERSION = 10**6  # in an address or form
MAX_FILE_STEM = 60  # characters
VERSIONS_ON_A_PAGE = 7
MAX_CHANGED_LINES = 200  # lines of one version that are shown
MAX_SHOWN_PROBLEMS = 50
LONG_TEXTS = ("model_answer", "boxes", "explanation")  # of the entries of a form, which may have several lines


# The list


@dataclass(frozen=True)
class MaterialLine:
    """A worksheet or exit ticket in the list; a material that can't be used has a problem instead of either."""

    group: str  # "mine", the id of a course, or "library"
    sheet: Worksheet | None = None
    ticket: Ticket | None = None
    material: Material | None = None
    problem: str = ""

    @property
    def title(self) -> str:
        subject = self.material or self.sheet or self.ticket
        return subject.title if subject else ""

    @property
    def kind(self) -> MaterialKind:
        if self.material:
            return self.material.kind
        return "ticket" if self.ticket else "worksheet"


@router.get("/worksheets")
def list_materials(request: Request, services: ServicesDep, teacher: SignedIn, done: str = "") -> Response:
    """One page of the teacher's readable materials and the library's, in groups, filtered by the query."""
    values = request.query_params
    query = {name: values.get(name, "").strip()[:MAX_LINE] for name in ("words", "topic", "model", "kind")}
    taught = {str(each.course.id): each for each in services.store.courses.taught_by(teacher)}
    materials = services.store.materials.readable_by(teacher)
    usable = with_materials(services.library, {}, services.store, materials)
    library = usable.library
    lines = [*_own_lines(materials, usable, taught), *_library_lines(services)]
    shown, pager = cut_page([line for line in lines if _finds(query, line, library)], values.get("page", ""))
    names = {"mine": _("Mine"), **{key: each.course.title for key, each in taught.items()}, "library": _("Library")}
    is_whole = not any(query.values()) and pager.number <= 1
    groups = dict[str, list[MaterialLine]]()
    for key in names:
        lines_of_group = [line for line in shown if line.group == key]
        is_empty_but_offered = is_whole and (key == "mine" or (key in taught and not taught[key].course.archived_at))
        if lines_of_group or is_empty_but_offered:
            groups[key] = lines_of_group
    by_lesson = _by_lesson(services.library, groups.get("library", ()))
    models = {line.sheet.model: library.model(line.sheet.model).name for line in lines if line.sheet}
    return render(
        "materials/material_list.html",
        teacher=teacher,
        query=query,
        groups=groups,
        names=names,
        taught=taught,
        by_lesson=by_lesson,
        drawing=lambda sheet: Markup(thumbnail(library.variant(sheet.key))),  # noqa: S704 - of numbers alone
        pager=pager,
        topics={topic: library.wording.topics[topic].name for topic in TOPICS},
        models=dict(sorted(models.items(), key=lambda item: item[1].casefold())),
        model_menu=model_menu(services.library, "", query["model"] or FIRST_MODEL),
        removed=services.store.materials.removed(teacher),
        was_removed=done == "removed",
    )


def _own_lines(
    materials: Sequence[Material], usable: OwnMaterials, taught: Mapping[str, TaughtCourse]
) -> Iterator[MaterialLine]:
    for group in ("mine", *taught):
        for material in materials:
            if group == str(material.course_id or "mine"):
                sheet, ticket = usable.library.worksheets.get(material.key), usable.tickets.get(material.key)
                yield MaterialLine(group, sheet, ticket, material, usable.unusable.get(material.id, ""))


def _library_lines(services: Services) -> Iterator[MaterialLine]:
    for sheet in in_order_of_lessons(services.library.worksheets.values()):
        yield MaterialLine("library", sheet)
    for ticket in services.tickets.values():
        yield MaterialLine("library", ticket=ticket)


def _finds(query: Mapping[str, str], line: MaterialLine, library: Library) -> bool:
    text, topic, models = line.title, "", tuple[str, ...]()
    if line.sheet:
        topic, models = line.sheet.topic, (line.sheet.model, *line.sheet.models)
        text += f" {library.wording.topics[topic].name} {library.model(line.sheet.model).name}"
    return (
        query["topic"] in ("", topic)
        and query["model"] in ("", *models)
        and query["kind"] in ("", line.kind)
        and all(word in name_key(text) for word in name_key(query["words"]).split())
    )


def _by_lesson(library: Library, lines: Iterable[MaterialLine]) -> dict[str, list[MaterialLine]]:
    titles = [*(_(lesson.title) for lesson in LESSONS), _("More sheets"), _("Exit tickets")]
    by_lesson: dict[str, list[MaterialLine]] = {title: [] for title in titles}
    for line in lines:
        lesson = lesson_with(library, line.sheet.key) if line.sheet else None
        by_lesson[_(lesson.title) if lesson else titles[-2] if line.sheet else titles[-1]].append(line)
    return {title: found for title, found in by_lesson.items() if found}


# The page of a material


@router.get("/worksheets/{material_id:int}")
def show_material(
    request: Request, services: ServicesDep, access: ReadableMaterial, courses: EditableCourses, done: str = ""
) -> Response:
    """A material as students would see it, its versions with their changes, and what the teacher can do with it."""
    notices = {
        "imported": _("The file is imported."),
        "restored": _("The older version is the newest again. The one before is still in the list."),
        "moved": _("It belongs to the course now."),
        "unshared": _("The link no longer works."),
        "put-back": _("It is back."),
    }
    material, store = access.material, services.store
    numbers, pager = cut_page(range(material.version, 0, -1), request.query_params.get("page", ""), VERSIONS_ON_A_PAGE)
    versions = store.materials.versions(material, numbers[-1] - 1, numbers[0])
    return render(
        "materials/material.html",
        access=access,
        zone=access.course.time_zone if access.course else "UTC",
        versions=_with_changes(versions, len(numbers)),
        pager=pager,
        courses=courses if access.course is None else (),
        link=_link_just_made(request, services, access),
        notice=notices.get(done, ""),
        **_as_students_see_it(services, material),
    )


def _link_just_made(request: Request, services: Services, access: MaterialAccess) -> str:
    token = request.cookies.get(SECRET_COOKIE, "")
    shared = services.store.materials.find_shared(token) if token and access.can_edit else None
    if shared is None or shared.id != access.material.id:
        return ""
    return public_url(request, services.settings) + url_for("show_shared_material", token=token)


def _as_students_see_it(services: Services, material: Material) -> dict[str, Any]:
    materials = with_materials(services.library, {}, services.store, [material])
    variant = materials.library.variant(material.key) if material.key in materials.library.worksheets else None
    return {
        "problem": materials.unusable.get(material.id, ""),
        "ticket": materials.tickets.get(material.key),
        "variant": variant,
        "rows": row_views(variant, {}, None) if variant else (),
        "questions": question_views(variant, {}, locked=True) if variant else (),
        "locked": True,
        "focused": "",
    }


@dataclass(frozen=True)
class VersionChanges:
    """A version, with the first of its file's lines that changed from the previous version, and how many did."""

    version: MaterialVersion
    lines: tuple[ChangedLine, ...]
    changed: int

    @property
    def left_out(self) -> int:
        return self.changed - len(self.lines)


def _with_changes(versions: Sequence[MaterialVersion], count: int) -> list[VersionChanges]:
    texts = [write_toml(version.content) for version in versions]
    shown = list[VersionChanges]()
    for version, text, before in zip(versions[:count], texts, [*texts[1:], texts[-1]], strict=False):
        changes = changed_lines(before, text)
        shown.append(VersionChanges(version, changes[:MAX_CHANGED_LINES], len(changes)))
    return shown


@router.get("/worksheets/{material_id:int}/file.toml")
def export_material(store: StoreDep, access: ReadableMaterial, version: str = "") -> Response:
    """The settings of a material as a TOML file, as in worksheets/ or worksheets/exit-tickets/."""
    number = whole_number(version, MAX_VERSION) or 0 if version else access.material.version
    saved = store.materials.version(access.material, number)
    if saved is None:
        raise HTTPException(404)
    stem = re.sub(r"[^a-z0-9]+", "-", access.material.title.lower()).strip("-")[:MAX_FILE_STEM].strip("-")
    name = f"{stem or access.material.key}{f'-{number}' if version else ''}.toml"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(write_toml(saved.content), headers=headers, media_type="application/toml")


@router.get("/worksheets/{material_id:int}/print")
def show_print_form(access: ReadableMaterial) -> Response:
    """How to print a worksheet: for a list of names, or as many sheets as wanted."""
    return _render_print_form(access, HandoutForm(key="with"))


@router.post("/worksheets/{material_id:int}/print")
@in_threads("print")
def print_material(
    request: Request, services: ServicesDep, access: ReadableMaterial, client: QueueClient, sent: FormDep
) -> Response:
    """Queue the newest version as a handout for the form's `names`, and redirect (303) to its page."""
    material, typed_names = access.material, sent.raw("names", MAX_ROSTER_BYTES + 1)
    form = HandoutForm.read({name: sent.single_line(name) for name in PRINT_OPTIONS if sent.raw(name)})
    if material.key not in with_materials(services.library, {}, services.store, [material]).library.worksheets:
        raise HTTPException(404)
    try:
        job = start_handout(
            services,
            client,
            access.teacher,
            material.title,
            form.model_copy(update={"worksheet": material.key}).to_options(()),
            read_names(typed_names) if typed_names.strip() else (),
            handout_base_url(request, services.settings),
            back=url_for("show_print_form", material_id=material.id),
            material_id=material.id,
        )
    except Refusal as error:
        return _render_print_form(access, form, typed_names, error.status, str(error))
    return RedirectResponse(url_for("show_print_job", key=job.key), 303)


def _render_print_form(
    access: MaterialAccess, form: HandoutForm, names: str = "", status: int = 200, problem: str = ""
) -> Response:
    return render("materials/print.html", status=status, access=access, form=form, names=names, problem=problem)


@router.post("/worksheets/{material_id:int}/restore")
def restore_version(store: StoreDep, access: EditableMaterial, form: FormDep) -> Response:
    """Save the settings of the form's `version` again as the newest version, with its number in the audit log."""
    number = whole_number(form.raw("version"), MAX_VERSION) or 0
    with store.transaction():
        save = store.materials.restore(access.material, number, access.teacher)
        if save is None:
            raise HTTPException(404)
        if save.has_new_version:
            store.audit_log.record(access.teacher, AuditAction.MATERIAL_RESTORED, access.material, str(number))
    return _back(access, "restored" if save.is_stored else "")


@router.post("/worksheets/{material_id:int}/move")
def move_material(store: StoreDep, access: EditableMaterial, courses: EditableCourses, form: FormDep) -> Response:
    """Move a teacher's material into the form's `course`."""
    course = next((each for each in courses if str(each.id) == form.raw("course")), None)
    if course is None or access.course is not None:
        raise HTTPException(404)
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_MOVED, access.material):
        if not store.materials.move(access.material, course):  # another request has moved it meanwhile
            raise HTTPException(404)
    return _back(access, "moved")


@router.post("/worksheets/{material_id:int}/share")
def share_material(request: Request, store: StoreDep, access: EditableMaterial) -> Response:
    """Make a link that lets any teacher signed in to this server see and copy the material.

    An earlier link stops working.
    """
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_SHARED, access.material):
        token = store.materials.share(access.material)
    address = url_for("show_material", material_id=access.material.id)
    return redirect_with_secret(request, f"{address}#share", token, address)


@router.post("/worksheets/{material_id:int}/stop-sharing")
def stop_sharing_material(store: StoreDep, access: EditableMaterial) -> Response:
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_UNSHARED, access.material):
        store.materials.stop_sharing(access.material)
    return _back(access, "unshared")


@router.post("/worksheets/{material_id:int}/remove")
def remove_material(store: StoreDep, access: EditableMaterial) -> Response:
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_REMOVED, access.material):
        store.materials.remove(access.material)
    return RedirectResponse(url_for("list_materials", done="removed"), 303)


@router.post("/worksheets/{material_id:int}/put-back")
def put_back_material(store: StoreDep, access: RemovedMaterial) -> Response:
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_PUT_BACK, access.material):
        store.materials.remove(access.material, removed=False)
    return _back(access, "put-back")


@router.get("/worksheets/shared/{token}")
def show_shared_material(services: ServicesDep, teacher: SignedIn, material: SharedMaterial, token: str) -> Response:
    """What somebody shared by a link, as students would see it, for copying."""
    shown = _as_students_see_it(services, material)
    return render("materials/shared_material.html", teacher=teacher, material=material, token=token, **shown)


def _back(access: MaterialAccess, done: str) -> Response:
    values = {"done": done} if done else {}
    return RedirectResponse(url_for("show_material", material_id=access.material.id, **values), 303)


# Imported files and copies


@router.get("/worksheets/import")
def show_import_form(teacher: SignedIn, courses: EditableCourses) -> Response:
    return render("materials/import.html", teacher=teacher, courses=courses, into="", text="", problems=())


@router.post("/worksheets/import")
def import_file(services: ServicesDep, teacher: SignedIn, courses: EditableCourses, form: FormDep) -> Response:
    """Add the material in the uploaded file or the form's `text`, and redirect (303) to its page."""
    text, owner = form.raw("text", MAX_BODY), _owner_of_copy(teacher, courses, form)
    try:
        if form.file:
            text = decode_file(form.file)
        if not text.strip():
            raise MaterialFileError([_("Choose a file, or paste its text.")])
        library = library_with_models_of(services.library, services.store, settings_in_file(text))
        read = read_material_file("imported", text, library)
    except (MaterialFileError, ConfigError) as error:
        problems = error.problems[:MAX_SHOWN_PROBLEMS] if isinstance(error, MaterialFileError) else (str(error),)
        return render(
            "materials/import.html",
            status=422,
            teacher=teacher,
            courses=courses,
            into=form.single_line("into"),
            text=text,
            problems=problems,
        )
    material = add_material(services.store, read.kind, owner, teacher, read.settings)
    return RedirectResponse(url_for("show_material", material_id=material.id, done="imported"), 303)


def _owner_of_copy(teacher: Teacher, courses: Iterable[Course], form: FormReader) -> Course | Teacher:
    into = form.single_line("into")
    owner = next((course for course in courses if str(course.id) == into), None) if into else teacher
    if owner is None:
        raise HTTPException(404)
    return owner


@router.post("/worksheets/copy")
def copy_from_library(
    services: ServicesDep,
    teacher: SignedIn,
    worksheet: str = "",
    model: str = "",
    tokens: str = "",
    decoded: str = "",
    ticket: str = "",
) -> Response:
    """Copy a `worksheet` of the library, with a `model` and lengths, or an exit `ticket`, and open its editor."""
    if original := services.tickets.get(ticket):
        return _copy(services.store, teacher, "ticket", original.settings)
    try:
        library = library_with_model(services.library, services.store, model or None)
        lengths = (whole_number(text, MAX_TYPED_TOKENS) for text in (tokens, decoded))
        settings = settings_to_copy(library, worksheet, model, *lengths)
    except (WorksheetError, TopicError, TokensError, ConfigError) as error:
        raise HTTPException(404, str(error)) from None
    return _copy(services.store, teacher, "worksheet", settings)


@router.post("/worksheets/{material_id:int}/copy")
def copy_material(store: StoreDep, access: ReadableMaterial) -> Response:
    return _copy(store, access.teacher, access.material.kind, access.material.content, access.material.title)


@router.post("/worksheets/shared/{token}/copy")
def copy_shared(store: StoreDep, teacher: SignedIn, material: SharedMaterial, token: str) -> Response:
    return _copy(store, teacher, material.kind, material.content, material.title)


def _copy(store: Store, teacher: Teacher, kind: MaterialKind, settings: Mapping[str, Any], title: str = "") -> Response:
    """Add the teacher's own copy, under a title that they don't have yet, and open its editor."""
    taken = {material.title for material in store.materials.readable_by(teacher)}
    copied = {**settings, "title": title_of_copy(title or settings["title"], taken)}
    copy = add_material(store, kind, teacher, teacher, copied)
    editor = "show_ticket_editor" if kind == "ticket" else "show_worksheet_editor"
    return RedirectResponse(url_for(editor, material_id=copy.id), 303)


# The editor of worksheets


@router.get("/worksheets/new")
def show_new_worksheet(
    services: ServicesDep, teacher: SignedIn, topic: str = FIRST_TOPIC, model: str = "", course: str = ""
) -> Response:
    """The editor with a new worksheet of every row and default settings, for the teacher or for `course`."""
    owner = owner_of_new(services, teacher, course)
    draft = make_draft(services, _new_worksheet(services.library, topic, model))
    return render_editor(services, draft, _course_of(owner))


@router.post("/worksheets")
def add_worksheet(request: Request, services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """Store a new worksheet of the form's `course` or, without one, of the teacher."""
    owner = owner_of_new(services, teacher, form.single_line("course"))
    if form.raw("arrange"):
        return _arranged(request, services, form, _course_of(owner))
    draft = make_draft(services, _typed(form), _keys(form, "imported"))
    if draft.worksheet is None or _is_unread(draft, form):
        return _refused(services, form, draft, _course_of(owner))
    material = add_material(services.store, "worksheet", owner, teacher, draft.worksheet.settings)
    return RedirectResponse(url_for("show_worksheet_editor", material_id=material.id, saved=material.version), 303)


@router.get("/worksheets/{material_id:int}/edit")
def show_worksheet_editor(services: ServicesDep, access: EditableMaterial, saved: str = "") -> Response:
    """The editor with a worksheet's newest version; an unreadable one redirects (303) to its page."""
    material = _worksheet_only(access.material)
    worksheet = _stored_worksheet(material)
    if worksheet is None:
        return RedirectResponse(url_for("show_material", material_id=material.id), 303)
    library = library_with_models_of(services.library, services.store, material.content)  # its model may be gone
    draft = make_draft(services, typed_worksheet(library, worksheet))
    just_saved = material.version if _number(saved) == material.version else 0
    return render_editor(services, draft, access.course, material.id, material.version, saved=just_saved)


@router.post("/worksheets/{material_id:int}")
def save_worksheet(request: Request, services: ServicesDep, access: MaterialToSave, form: FormDep) -> Response:
    """Save another version, with an audit entry, and redirect (303) to the editor."""
    material = _worksheet_only(access.material)
    place = (access.course, material.id, _number(form.raw("version")))
    if form.raw("arrange"):
        return _arranged(request, services, form, *place)
    draft = make_draft(services, _typed(form), _keys(form, "imported"))
    if draft.worksheet is None or _is_unread(draft, form):
        return _refused(services, form, draft, *place)
    based_on = _number(version_to_replace(form))
    save = save_material(services.store, material, based_on, draft.worksheet.settings, access.teacher)
    if save.material.removed_at:
        return render_editor(services, draft, *place, form=form, status=409, removed=True)
    if not save.is_stored:
        conflict = _conflict(save.material, draft.worksheet)
        return render_editor(services, draft, *place, form=form, status=409, conflict=conflict)
    return RedirectResponse(url_for("show_worksheet_editor", material_id=material.id, saved=save.material.version), 303)


@router.post("/worksheets/preview")
def preview_worksheet(request: Request, services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """The editor as typed, after what the pressed button asks for, with its preview."""
    course = _course_of(owner_of_new(services, teacher, form.single_line("course")))
    return _arranged(request, services, form, course, _number(form.raw("material")), _number(form.raw("version")))


@router.get("/worksheets/preview/page.svg")
@in_threads("print")
def show_worksheet_paper(services: ServicesDep, _teacher: SignedIn, client: QueueClient, sheet: str = "") -> Response:
    """The first page of a handout of the settings packed into `sheet`, as SVG; 404 if they aren't a worksheet."""
    settings = unpack_settings(sheet)
    library = library_with_models_of(services.library, services.store, settings)
    return paper_response(services, library, settings, client)


def _number(text: str) -> int:
    return whole_number(text, LARGEST_ID) or 0


def _course_of(owner: Course | Teacher) -> Course | None:
    return owner if isinstance(owner, Course) else None


def _worksheet_only(material: Material) -> Material:
    if material.kind != "worksheet":
        raise HTTPException(404)
    return material


def _stored_worksheet(material: Material) -> Worksheet | None:
    try:
        return WORKSHEETS.validate_python({**stored_fields(material.content), "key": material.key})
    except ValidationError:
        return None


def _new_worksheet(library: Library, topic: str, model: str) -> dict[str, Any]:
    sheets = (library.worksheets.get(FIRST_WORKSHEET), *library.worksheets.values())
    first = next((sheet for sheet in sheets if sheet and sheet.topic == topic), None)
    model = model or (first.model if first else "")
    usual = Worksheet("", "…", model, FIRST_TOPIC, first.tokens if first else 100, ())
    # The topic may be unknown.
    return {**typed_worksheet(library, usual), "title": "", "topic": topic, "all_rows": (), "rows_of": ""}


def _typed(form: FormReader) -> dict[str, Any]:
    all_rows, asked = _keys(form, "row"), set(_keys(form, "asked"))
    question_fields = {"key": "question_key", "text": "question", "model_answer": "question_answer"}
    return {
        **{name: form.single_line(name, MAX_BODY) for name in LINE_TEXTS},
        **{name: form.multi_line(name, MAX_BODY) for name in MARKDOWN_TEXTS},
        SIMPLIFIED: form.raw(SIMPLIFIED) == "yes",
        "models": _keys(form, "models"),
        "rows": tuple(row for row in all_rows if row in asked),
        "all_rows": all_rows,
        "rows_of": form.single_line("rows_of"),
        "row_points": {row: form.single_line(f"points.{row}", MAX_BODY) for row in all_rows},
        "row_hints": {row: form.single_line(f"hint.{row}", MAX_BODY) for row in all_rows},
        "questions": _entries(form, question_fields),
        "misconceptions": _entries(form, {name: f"misconception_{name}" for name in MISCONCEPTION_TEXTS}),
    }


def _keys(form: FormReader, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean_line(key, MAX_LINE) for key in form.all(name)))


def _entries(form: FormReader, fields: Mapping[str, str]) -> list[dict[str, str]]:
    columns = [
        [
            clean_lines(text, MAX_BODY).strip() if name in LONG_TEXTS else clean_line(text)
            for text in form.all(field, MAX_BODY)
        ]
        for name, field in fields.items()
    ]
    return [dict(zip(fields, texts, strict=True)) for texts in zip(*columns, strict=False)]


def _is_unread(draft: WorksheetDraft, form: FormReader) -> bool:
    return bool(draft.told) and draft.told != form.raw("told")


def _refused(
    services: Services,
    form: FormReader,
    draft: WorksheetDraft,
    course: Course | None,
    material_id: int = 0,
    version: int = 0,
) -> Response:
    return render_editor(
        services,
        draft,
        course,
        material_id,
        version,
        status=422,
        form=form,
        focus="problem" if draft.error else "save",
        asked_anyway=draft.error is None,
    )


def _conflict(newest: Material, typed: Worksheet) -> Conflict:
    stored = _stored_worksheet(newest)
    if stored is None:
        raise HTTPException(404)
    labels = {
        "title": _("Title"),
        "model": _("Model"),
        "topic": _("Topic"),
        "bug": _("Bug"),
        "bugs": _("Bugs to draw from"),
        "tokens": _("Tokens"),
        "rows": _("Rows"),
        "notation": _("Notation"),
        "kv_head_per_query_head": _("A key/value head for every query head"),
        "decoder_tokens": _("Decoder tokens"),
        "models": _("Models to draw from"),
        "answers": _("Students write"),
        "tokens_from": _("Tokens from"),
        "tokens_to": _("Tokens to"),
        "introduction": _("Introduction"),
        "footnote": _("Footnote"),
        "row_hints": _("Hints of rows"),
        "row_points": _("Points of rows"),
        "questions": _("Open questions"),
        "misconceptions": _("Misconceptions to look for"),
        "sentence": _("Sentence for a real head"),
        "checkpoint": _("Weights of the real head"),
        "layer": _("Layer of the real head"),
        "head": _("Head of the real head"),
    }
    found = setting_differences(labels, stored.settings, typed.settings)
    newest_page = url_for("show_worksheet_editor", material_id=newest.id)
    return Conflict(str(newest.version), found, newest_page, newest.saved_by)


# The editor's buttons


def _arranged(
    request: Request,
    services: Services,
    form: FormReader,
    course: Course | None,
    material_id: int = 0,
    version: int = 0,
) -> Response:
    action, imported = form.raw("arrange"), _keys(form, "imported")
    typed = arrange(_typed(form), action)
    focus, typed_import, problem = _focus_after(action, typed), None, ""
    verb, _dash, way = action.partition("-")
    if verb == "import" and way in IMPORT_WAYS:
        typed_import = read_import_form(form, way, "import_")
        try:
            model = import_model_by(request, services, typed_import, queue_client(request, services))
            typed, imported, typed_import = {**typed, "model": model.key}, (model.key, *imported), None
            focus = "field-model"
        except (hub.HubError, ConfigError) as error:
            problem = str(error).encode(errors="replace").decode()  # half of a surrogate pair from JSON can't be shown
    return render_editor(
        services,
        make_draft(services, typed, imported),
        course,
        material_id,
        version,
        form=form,
        focus=focus,
        typed_import=typed_import,
        import_problem=problem,
    )


def _focus_after(action: str, typed: Typed) -> str:
    """The id of the element that has the focus after a button: its field, or the button where it is now."""
    verb, _space, argument = action.partition(" ")
    act, _dash, kind = verb.partition("-")
    if verb == "set":
        return f"field-{argument.partition(' ')[0]}"
    if verb == "forget":
        return "do-add-misconception"
    if kind not in ("question", "misconception"):
        return f"do-{action.replace(' ', '-')}"
    last = len(typed[f"{kind}s"]) - 1
    if act == "add":
        return f"{kind}-{last}"
    if act == "remove":
        return f"do-add-{kind}"
    place = (whole_number(argument, MAX_QUESTIONS) or 0) + {"up": -1, "down": 1}.get(act, 0)
    return f"do-{verb}-{min(max(place, 0), max(last, 0))}"
