"""/worksheets/import: a worksheet or exit ticket from an uploaded or pasted TOML file, with problems by line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.materials import add_material, library_with_models_of
from app.exchange.material_file import MaterialFileError, decode_file, read_material_file, settings_in_file
from app.models.config_fields import ConfigError
from app.store import Course, Teacher
from app.translation import gettext as _
from app.web.shared.forms import FormDep
from app.web.shared.permissions import EditableCourses, SignedIn
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_SHOWN_PROBLEMS = 50


@dataclass(frozen=True)
class ImportPage:
    """Everything that templates/materials/import.html shows."""

    teacher: Annotated[Teacher, Doc("The teacher who is signed in.")]
    courses: Annotated[tuple[Course, ...], Doc("The courses that it may be put into.")]
    into: Annotated[str, Doc("Where it goes: the id of a course, or empty for the teacher's own.")] = ""
    text: Annotated[str, Doc("The text of the file, to be corrected.")] = ""
    problems: Annotated[tuple[str, ...], Doc("What is wrong with it, by line.")] = ()


@router.get("/worksheets/import")
def show_import_form(teacher: SignedIn, courses: EditableCourses) -> Response:
    return render("materials/import.html", ImportPage(teacher, courses))


@router.post("/worksheets/import")
def import_file(services: ServicesDep, teacher: SignedIn, courses: EditableCourses, form: FormDep) -> Response:
    """Add the material in the uploaded file or the form's `text`, with an audit entry, and redirect (303) to
    its page.
    """
    page = ImportPage(teacher, courses, form.single_line("into"), form.raw("text", MAX_BODY))
    owner = next((each for each in courses if str(each.id) == page.into), None) if page.into else teacher
    if owner is None:
        raise HTTPException(404)
    try:
        if form.file:
            page = replace(page, text=decode_file(form.file))
        if not page.text.strip():
            raise MaterialFileError([_("Choose a file, or paste its text.")])
        library = library_with_models_of(services.library, services.store, settings_in_file(page.text))
        read = read_material_file("imported", page.text, library)
    except (MaterialFileError, ConfigError) as error:
        problems = error.problems[:MAX_SHOWN_PROBLEMS] if isinstance(error, MaterialFileError) else (str(error),)
        return render("materials/import.html", replace(page, problems=problems), 422)
    material = add_material(services.store, read.kind, owner, teacher, read.settings)
    return RedirectResponse(url_for("show_material", material_id=material.id, done="imported"), 303)
