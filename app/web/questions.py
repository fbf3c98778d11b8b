"""/questions: a worksheet as questions for a learning platform, for teachers."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.classes.materials import with_materials
from app.quizzes.formats import FORMATS
from app.quizzes.quiz import MAX_VERSIONS, QuizError, draw_versions
from app.refusal import Refusal
from app.sheets.library import Library
from app.store import Teacher
from app.translation import gettext as _
from app.web.shared.forms import whole_number
from app.web.shared.handout_form import file_response
from app.web.shared.model_menu import model_menu
from app.web.shared.permissions import SignedIn
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads

router = APIRouter(include_in_schema=False)

MAX_TYPED = 60  # characters of a field
_USUAL = {"worksheet": "llama-7b", "model": "", "format": "moodle", "versions": "20"}


@router.get("/questions")
def show_question_form(request: Request, services: ServicesDep, teacher: SignedIn) -> Response:
    """The worksheet, its model, the format and the number of versions."""
    return _form(services, teacher, _typed(request))


@router.get("/questions/file")
@in_threads("print")
def download_questions(request: Request, services: ServicesDep, teacher: SignedIn) -> Response:
    """Send the file; anything that can't be exported shows the form again with the reason."""
    typed, library = _typed(request), _library(services, teacher)
    chosen = FORMATS.get(typed["format"])
    try:
        if chosen is None:
            raise QuizError(_("Choose one of the formats."))
        versions = whole_number(typed["versions"], MAX_VERSIONS, lowest=1) or 0
        quizzes = draw_versions(library, typed["worksheet"], typed["model"] or None, None, versions, seed=0)
    except Refusal as error:
        return _form(services, teacher, typed, str(error), error.status)
    return file_response(chosen.write(quizzes), quizzes[0].title, chosen.ending, chosen.media_type)


def _typed(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, usual)[:MAX_TYPED] for name, usual in _USUAL.items()}


def _library(services: Services, teacher: Teacher) -> Library:
    return with_materials(services.library, {}, services.store, services.store.materials.readable_by(teacher)).library


def _form(
    services: Services, teacher: Teacher, typed: dict[str, str], problem: str = "", status: int = 200
) -> Response:
    library = _library(services, teacher)
    sheets = [sheet for sheet in library.worksheets.values() if not sheet.in_letters]
    return render(
        "handouts/questions.html",
        status=status,
        typed=typed,
        problem=problem,
        formats=FORMATS,
        max_versions=MAX_VERSIONS,
        worksheets={
            library.wording.topics[topic].name: [sheet for sheet in sheets if sheet.topic == topic]
            for topic in library.topics
        },
        model_menu=model_menu(library, typed["worksheet"], typed["model"]),
    )
