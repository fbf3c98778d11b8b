"""The editor of a new or stored worksheet, with a preview and the checker's findings beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from app.classes.authoring.worksheet_form import (
    LINE_FIELDS,
    MARKDOWN_FIELDS,
    SIMPLIFIED,
    EditorTexts,
    MisconceptionTexts,
    QuestionTexts,
    RowTexts,
    arrange,
    texts_of_worksheet,
)
from app.classes.materials import add_material, library_with_models_of, save_material
from app.exchange import hub
from app.models.config_fields import ConfigError
from app.names import clean_line
from app.sheets.library import Library
from app.sheets.worksheet import WORKSHEETS, Worksheet, stored_fields
from app.store import Course, Material, Teacher
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _
from app.web.materials.worksheet_editor_view import (
    EditorPlace,
    WorksheetDraft,
    WorksheetEditorPage,
    editor_page,
    make_draft,
    render_editor,
    setting_labels,
)
from app.web.materials.worksheet_preview import paper_response, unpack_settings
from app.web.shared.conflicts import Conflict, differences, version_to_replace
from app.web.shared.forms import MAX_LINE, FormDep, FormReader, clean_lines, whole_number
from app.web.shared.import_form import IMPORT_WAYS, ImportForm, empty_field, import_model_by, is_filled
from app.web.shared.permissions import (
    LARGEST_ID,
    EditableMaterial,
    MaterialToSave,
    QueueClient,
    SignedIn,
    owner_of_new,
    queue_client,
)
from app.web.shared.rate_limits import BYTES_OF_MODEL
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_address import FIRST_WORKSHEET
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for

router = APIRouter(include_in_schema=False)

Entry = TypeVar("Entry", QuestionTexts, MisconceptionTexts)
FIRST_TOPIC = SINGLE_HEAD.key
_ROW_FIELDS = ("points", "hint")
_LONG_TEXTS = ("boxes", "explanation", "model_answer")  # fields of entries that may have several lines


@router.get("/worksheets/new")
def show_new_worksheet(
    services: ServicesDep, teacher: SignedIn, topic: str = FIRST_TOPIC, model: str = "", course: str = ""
) -> Response:
    """The editor with a new worksheet of every row and default settings, for the teacher or for `course`."""
    owner = owner_of_new(services, teacher, course)
    page = editor_page(services, EditorPlace(course), make_draft(services, _new_texts(services.library, topic, model)))
    return render_editor(_with_course(page, owner))


@router.post("/worksheets")
def add_worksheet(request: Request, services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """Store a new worksheet of the form's `course` or, without one, of the teacher."""
    place = _place(form)
    owner = owner_of_new(services, teacher, place.course_id)
    if form.raw("arrange"):
        return _arranged(request, services, place, form)
    draft = make_draft(services, _form_texts(form), _keys(form, "imported"))
    if refused := _refusal(services, place, draft, form):
        return render_editor(_with_course(refused, owner), 422)
    assert draft.worksheet is not None  # noqa: S101 - it was refused otherwise
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
    draft = make_draft(services, texts_of_worksheet(library, worksheet))
    place = EditorPlace(material_id=material.id, version=material.version)
    page = editor_page(services, place, draft)
    just_saved = material.version if whole_number(saved, LARGEST_ID) == material.version else 0
    return render_editor(replace(page, course=access.course, saved=just_saved))


@router.post("/worksheets/{material_id:int}")
def save_worksheet(request: Request, services: ServicesDep, access: MaterialToSave, form: FormDep) -> Response:
    """Save another version, with an audit entry, and redirect (303) to the editor."""
    material = _worksheet_only(access.material)
    place = EditorPlace(material_id=material.id, version=whole_number(form.raw("version"), LARGEST_ID) or 0)
    if form.raw("arrange"):
        return _arranged(request, services, place, form)
    draft = make_draft(services, _form_texts(form), _keys(form, "imported"))
    if refused := _refusal(services, place, draft, form):
        return render_editor(replace(refused, course=access.course), 422)
    assert draft.worksheet is not None  # noqa: S101 - it was refused otherwise
    based_on = whole_number(version_to_replace(form), LARGEST_ID) or 0
    save = save_material(services.store, material, based_on, draft.worksheet.settings, access.teacher)
    if save.material.removed_at or not save.is_stored:
        page = replace(editor_page(services, place, draft, form.raw("view"), form.raw("held")), course=access.course)
        if save.material.removed_at:
            return render_editor(replace(page, removed=True), 409)
        return render_editor(replace(page, conflict=_conflict(save.material, draft.worksheet)), 409)
    return RedirectResponse(url_for("show_worksheet_editor", material_id=material.id, saved=save.material.version), 303)


@router.post("/worksheets/preview")
def preview_worksheet(request: Request, services: ServicesDep, _teacher: SignedIn, form: FormDep) -> Response:
    """The editor as typed, after what the pressed button asks for, with its preview."""
    return _arranged(request, services, _place(form), form)


@router.get("/worksheets/preview/page.svg")
@in_threads("print")
def show_worksheet_paper(services: ServicesDep, _teacher: SignedIn, client: QueueClient, sheet: str = "") -> Response:
    """The first page of a handout of the settings packed into `sheet`, as SVG; 404 if they aren't a worksheet."""
    settings = unpack_settings(sheet)
    library = library_with_models_of(services.library, services.store, settings)
    return paper_response(services, library, settings, client)


# From the form to a draft


def _form_texts(form: FormReader) -> EditorTexts:
    lines = {name: form.single_line(name, MAX_BODY) for name in LINE_FIELDS}
    texts = {name: form.multi_line(name, MAX_BODY) for name in MARKDOWN_FIELDS}
    asked = set(_keys(form, "asked"))
    return EditorTexts(
        {**lines, **texts, SIMPLIFIED: form.raw(SIMPLIFIED)},
        rows=tuple(
            RowTexts(key, key in asked, *(form.single_line(f"{field}.{key}", MAX_BODY) for field in _ROW_FIELDS))
            for key in _keys(form, "row")
        ),
        rows_of=form.single_line("rows_of"),
        models=_keys(form, "models"),
        questions=_entries(
            form, QuestionTexts, {"key": "question_key", "text": "question", "model_answer": "question_answer"}
        ),
        misconceptions=_entries(
            form,
            MisconceptionTexts,
            {name: f"misconception_{name}" for name in ("key", "name", "boxes", "question", "explanation")},
        ),
    )


def _keys(form: FormReader, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean_line(key, MAX_LINE) for key in form.all(name)))


def _entries(form: FormReader, make: Callable[..., Entry], names: Mapping[str, str]) -> tuple[Entry, ...]:
    columns = [
        [
            clean_lines(text, MAX_BODY).strip() if field in _LONG_TEXTS else clean_line(text)
            for text in form.all(name, MAX_BODY)
        ]
        for field, name in names.items()
    ]
    return tuple(make(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=False))


def _new_texts(library: Library, topic: str, model: str) -> EditorTexts:
    sheets = (library.worksheets.get(FIRST_WORKSHEET), *library.worksheets.values())
    first = next((sheet for sheet in sheets if sheet and sheet.topic == topic), None)
    model = model or (first.model if first else "")
    usual = Worksheet("", "…", model, FIRST_TOPIC, first.tokens if first else 100, ())
    texts = replace(texts_of_worksheet(library, usual), rows=(), rows_of="")
    return texts.with_fields(title="", topic=topic)  # which may be unknown


def _stored_worksheet(material: Material) -> Worksheet | None:
    try:
        return WORKSHEETS.validate_python({**stored_fields(material.content), "key": material.key})
    except ValidationError:
        return None


# Buttons


def _arranged(request: Request, services: Services, place: EditorPlace, form: FormReader) -> Response:
    action = form.raw("arrange")
    texts = arrange(_form_texts(form), action)
    verb, _dash, way = action.partition("-")
    if verb == "import" and way in IMPORT_WAYS:
        return _imported(request, services, place, form, texts, way)
    page = editor_page(
        services, place, make_draft(services, texts, _keys(form, "imported")), form.raw("view"), form.raw("held")
    )
    return render_editor(replace(page, focus=_focus_after(action, texts)))


def _focus_after(action: str, texts: EditorTexts) -> str:
    verb, _space, argument = action.partition(" ")
    act, _dash, kind = verb.partition("-")
    if act == "add" and kind in ("question", "misconception"):
        entries = texts.questions if kind == "question" else texts.misconceptions
        return f"{kind}-{len(entries) - 1}"
    if act == "remove":
        return f"do-add-{kind}"
    if kind in ("question", "misconception") and argument.isdecimal():
        last = len(texts.questions if kind == "question" else texts.misconceptions) - 1
        place = min(max(int(argument[:4]) + {"up": -1, "down": 1}.get(act, 0), 0), max(last, 0))
        return f"do-{verb}-{place}"
    if verb == "set":
        return f"field-{argument.partition(' ')[0]}"
    if verb == "forget":
        return "do-add-misconception"
    return f"fact-{argument}" if verb == "state" else f"do-{action.replace(' ', '-')}"


def _imported(
    request: Request, services: Services, place: EditorPlace, form: FormReader, texts: EditorTexts, way: str
) -> Response:
    typed = ImportForm(
        way,
        form.raw("import_hub"),
        form.raw("import_text", MAX_BODY),
        form.single_line("import_name"),
        form.file,
        form.file_name,
    )
    imported, problem = _keys(form, "imported"), ""
    try:
        if not is_filled(typed, way):
            problem = empty_field(way)
        else:
            services.storage.charge(client_network(request), BYTES_OF_MODEL)
            model = import_model_by(services, typed, way, queue_client(request, services))
            texts, imported, typed = texts.with_fields(model=model.key), (model.key, *imported), ImportForm()
    except (hub.HubError, ConfigError) as error:
        problem = str(error).encode(errors="replace").decode()  # half of a surrogate pair from JSON can't be shown
    page = editor_page(services, place, make_draft(services, texts, imported), form.raw("view"), form.raw("held"))
    page = replace(page, typed_import=replace(typed, file=b""), focus=f"do-import-{way}" if problem else "field-model")
    return render_editor(replace(page, field="import", problem=problem) if problem else page)


# Saving


def _refusal(
    services: Services, place: EditorPlace, draft: WorksheetDraft, form: FormReader
) -> WorksheetEditorPage | None:
    page = editor_page(services, place, draft, form.raw("view"), form.raw("held"))
    if draft.error:
        return replace(page, focus="problem")
    return replace(page, asked_anyway=True, focus="save") if page.told and page.told != form.raw("told") else None


def _with_course(page: WorksheetEditorPage, owner: Course | Teacher) -> WorksheetEditorPage:
    return replace(page, course=owner) if isinstance(owner, Course) else page


def _worksheet_only(material: Material) -> Material:
    if material.kind != "worksheet":
        raise HTTPException(404)
    return material


def _place(form: FormReader) -> EditorPlace:
    material_id = whole_number(form.raw("material"), LARGEST_ID) or 0
    return EditorPlace(form.single_line("course"), material_id, whole_number(form.raw("version"), LARGEST_ID) or 0)


def _conflict(newest: Material, typed: Worksheet) -> Conflict:
    stored = _stored_worksheet(newest)
    if stored is None:
        raise HTTPException(404)
    labels = setting_labels()
    theirs, mine = ({name: _told(each.settings.get(name)) for name in labels} for each in (stored, typed))
    newest_page = url_for("show_worksheet_editor", material_id=newest.id)
    return Conflict(str(newest.version), differences(labels, theirs, mine), newest_page, newest.saved_by)


def _told(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, dict):
        value = [f"{name}: {_told(each)}" for name, each in value.items() if name != "key"]
    return ", ".join(_told(each) for each in value) if isinstance(value, list) else str(value)
