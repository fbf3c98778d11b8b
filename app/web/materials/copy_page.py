"""Copying a worksheet or an exit ticket from the library, a course or a shared link: the new title and place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.materials import add_material, settings_to_copy, title_of_copy
from app.exchange.imported_models import library_with_model
from app.models.architecture import TokensError
from app.models.config_fields import ConfigError
from app.names import clean_line
from app.sheets.worksheet import WorksheetError
from app.store import Course, MaterialKind, Store, Teacher
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.web.shared.forms import MAX_LINE, FormDep, FormReader, whole_number
from app.web.shared.handout_form import MAX_TYPED_TOKENS
from app.web.shared.permissions import EditableCourses, ReadableMaterial, SharedMaterial, SignedIn
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Original:
    """What is copied: its kind and settings, where the page's form is sent, and what it sends along."""

    kind: MaterialKind
    settings: Mapping[str, Any]
    address: str
    values: Mapping[str, str]

    @property
    def title(self) -> str:
        return clean_line(str(self.settings.get("title", "")), MAX_LINE)

    @property
    def questions(self) -> tuple[str, ...]:
        asked = self.settings.get("questions") if self.kind == "ticket" else ()
        return tuple(str(each.get("text", "")) for each in asked or () if isinstance(each, dict))


@dataclass(frozen=True)
class CopyPage:
    """Everything that templates/materials/copy.html shows."""

    teacher: Annotated[Teacher, Doc("The teacher who is signed in.")]
    original: Annotated[Original, Doc("What is copied, and where the form is sent.")]
    title: Annotated[str, Doc("The title of the copy, as proposed or typed.")]
    courses: Annotated[tuple[Course, ...], Doc("The courses that the copy may be put into.")]
    into: Annotated[str, Doc("Where the copy goes: the id of a course, or empty for the teacher's own.")] = ""
    problem: Annotated[str, Doc("The sentence about the title, empty where there is none.")] = ""


@router.get("/worksheets/copy")
def show_copy_form(request: Request, services: ServicesDep, teacher: SignedIn, courses: EditableCourses) -> Response:
    """The form for copying the library's `ticket` in the query, or its `worksheet` with `model` and lengths."""
    return _show_form(services.store, teacher, courses, _original_in_library(services, dict(request.query_params)))


@router.post("/worksheets/copy")
def copy_from_library(services: ServicesDep, teacher: SignedIn, courses: EditableCourses, form: FormDep) -> Response:
    """Copy a worksheet or exit ticket of the library, named in the form as in `show_copy_form`."""
    names = ("worksheet", "model", "tokens", "decoded", "ticket")
    original = _original_in_library(services, {name: form.single_line(name) for name in names})
    return _copy(services.store, teacher, courses, original, form)


@router.get("/worksheets/{material_id:int}/copy")
def show_material_copy_form(store: StoreDep, access: ReadableMaterial, courses: EditableCourses) -> Response:
    """The form for copying a stored material that the teacher may read."""
    address = url_for("copy_material", material_id=access.material.id)
    original = Original(access.material.kind, access.material.content, address, {})
    return _show_form(store, access.teacher, courses, original)


@router.post("/worksheets/{material_id:int}/copy")
def copy_material(store: StoreDep, access: ReadableMaterial, courses: EditableCourses, form: FormDep) -> Response:
    """Copy a stored material in its newest version."""
    address = url_for("copy_material", material_id=access.material.id)
    original = Original(access.material.kind, access.material.content, address, {})
    return _copy(store, access.teacher, courses, original, form)


@router.get("/worksheets/shared/{token}/copy")
def show_shared_copy_form(
    store: StoreDep, teacher: SignedIn, material: SharedMaterial, courses: EditableCourses, token: str
) -> Response:
    """The form for copying what somebody shared by a link."""
    original = Original(material.kind, material.content, url_for("copy_shared", token=token), {})
    return _show_form(store, teacher, courses, original)


@router.post("/worksheets/shared/{token}/copy")
def copy_shared(
    store: StoreDep, teacher: SignedIn, material: SharedMaterial, courses: EditableCourses, form: FormDep, token: str
) -> Response:
    """Copy the newest version of what somebody shared by a link."""
    original = Original(material.kind, material.content, url_for("copy_shared", token=token), {})
    return _copy(store, teacher, courses, original, form)


def _original_in_library(services: Services, values: Mapping[str, str]) -> Original:
    address, named = url_for("copy_from_library"), {name: text for name, text in values.items() if text}
    if ticket := services.tickets.get(values.get("ticket", "")):
        return Original("ticket", ticket.settings, address, {"ticket": ticket.key})
    try:
        library = library_with_model(services.library, services.store, named.get("model"))
        lengths = (whole_number(named.get(name, ""), MAX_TYPED_TOKENS) for name in ("tokens", "decoded"))
        settings = settings_to_copy(library, named.get("worksheet", ""), named.get("model", ""), *lengths)
    except (WorksheetError, TopicError, TokensError, ConfigError) as error:
        raise HTTPException(404, str(error)) from None
    return Original("worksheet", settings, address, named)


def _show_form(store: Store, teacher: Teacher, courses: tuple[Course, ...], original: Original) -> Response:
    title = title_of_copy(original.title, {material.title for material in store.materials.readable_by(teacher)})
    return render("materials/copy.html", CopyPage(teacher, original, title, courses))


def _copy(
    store: Store, teacher: Teacher, courses: tuple[Course, ...], original: Original, form: FormReader
) -> Response:
    title, into = form.single_line("title"), form.single_line("into")
    owner = next((course for course in courses if str(course.id) == into), None) if into else teacher
    if owner is None:
        raise HTTPException(404)
    if not title:
        page = CopyPage(teacher, original, title, courses, into, _("Type a title."))
        return render("materials/copy.html", page, 422)
    copy = add_material(store, original.kind, owner, teacher, {**original.settings, "title": title})
    editor = "show_ticket_editor" if copy.kind == "ticket" else "show_worksheet_editor"
    return RedirectResponse(url_for(editor, material_id=copy.id), 303)
