"""/questions: a worksheet, or an activity's, as questions for a learning platform, for teachers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from app.classes.frozen.frozen_library import library_of
from app.classes.materials import with_materials
from app.classes.student_sheet import choice_of
from app.quizzes.formats import FORMATS
from app.quizzes.quiz import MAX_VERSIONS, QuizError, draw_versions
from app.refusal import Refusal
from app.sheets.library import Library
from app.store import Activity, Teacher
from app.translation import gettext as _
from app.web.shared.forms import whole_number
from app.web.shared.handout_form import file_response
from app.web.shared.model_menu import model_menu
from app.web.shared.permissions import ActivityAccess, SignedIn, StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_TYPED = 60  # characters of a field
_USUAL = {"worksheet": "llama-7b", "model": "", "format": "moodle", "versions": "20"}


@router.get("/questions")
def show_question_form(request: Request, services: ServicesDep, teacher: SignedIn) -> Response:
    """The worksheet, its model, the format and the number of versions."""
    return _form(_readable(services, teacher), _typed(request))


@router.get("/questions/file")
@in_threads("print")
def download_questions(request: Request, services: ServicesDep, teacher: SignedIn) -> Response:
    """Send the file; anything that can't be exported shows the form again with the reason."""
    return _file(_readable(services, teacher), _typed(request))


@router.get("/activities/{activity_id:int}/questions")
def show_activity_questions(request: Request, services: ServicesDep, access: StaffActivity) -> Response:
    """The same for the worksheets and models of an activity, as they were frozen."""
    choice = _given(services, access)
    return _form(choice, _typed(request, worksheet=next(iter(choice.models), "")))


@router.get("/activities/{activity_id:int}/questions/file")
@in_threads("print")
def download_activity_questions(request: Request, services: ServicesDep, access: StaffActivity) -> Response:
    """Send the file of an activity's worksheet, or show the form again with the reason."""
    choice = _given(services, access)
    return _file(choice, _typed(request, worksheet=next(iter(choice.models), "")))


@dataclass(frozen=True)
class _Choice:
    """The worksheets to choose from, each with the key of its model ('' for the worksheet's own)."""

    library: Library
    models: Mapping[str, str]
    address: str  # of the file
    activity: Activity | None = None


def _readable(services: Services, teacher: Teacher) -> _Choice:
    store = services.store
    library = with_materials(services.library, {}, store, store.materials.readable_by(teacher)).library
    return _Choice(library, dict.fromkeys(library.worksheets, ""), url_for("download_questions"))


def _given(services: Services, access: ActivityAccess) -> _Choice:
    activity = access.activity
    choices = map(choice_of, activity.content.items)
    address = url_for("download_activity_questions", activity_id=activity.id)
    library = library_of(services.library, activity.content)
    return _Choice(library, {choice.key: choice.model for choice in choices}, address, activity)


def _typed(request: Request, **usual: str) -> dict[str, str]:
    return {name: request.query_params.get(name, value)[:MAX_TYPED] for name, value in (_USUAL | usual).items()}


def _file(choice: _Choice, typed: dict[str, str]) -> Response:
    chosen = FORMATS.get(typed["format"])
    worksheet = typed["worksheet"] or next(iter(choice.models), "")
    model = typed["model"] or choice.models.get(worksheet)
    try:
        if chosen is None:
            raise QuizError(_("Choose one of the formats."))
        versions = whole_number(typed["versions"], MAX_VERSIONS, lowest=1) or 0
        quizzes = draw_versions(choice.library, worksheet, model or None, None, versions, seed=0)
    except Refusal as error:
        return _form(choice, typed, str(error), error.status)
    return file_response(chosen.write(quizzes), quizzes[0].title, chosen.ending, chosen.media_type)


def _form(choice: _Choice, typed: dict[str, str], problem: str = "", status: int = 200) -> Response:
    library = choice.library
    sheets = [sheet for key in choice.models if not (sheet := library.worksheet(key)).in_letters]
    return render(
        "handouts/questions.html",
        status=status,
        address=choice.address,
        activity=choice.activity,
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
