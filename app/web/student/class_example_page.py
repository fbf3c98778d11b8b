"""/class/A/N/example: a sheet of an activity with other numbers, where its rules allow that; nothing is stored."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response

from app.classes.sheet_actions import may_see_example
from app.classes.student_sheet import models_of
from app.web.shared.example_view import ExampleRequest, make_example_page
from app.web.shared.forms import FormDep
from app.web.shared.permissions import StudentAccess, StudentAccessDep
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.student.sheet_request import class_work

router = APIRouter(include_in_schema=False)


@router.get("/class/{activity_id:int}/{number:int}/example")
@in_threads("class")
def show_class_example(
    services: ServicesDep, access: StudentAccessDep, number: int, kind: str = "worked", seed: str = "1"
) -> Response:
    """A sheet like sheet `number`, from 1, of the activity; see `make_example_page`.

    404 if the activity has fewer sheets, and while its rules give no examples: before it opens, in an exam, and where
    there are no hints or no examples with them, until the answers are shown. Its model is none that the activity asks
    about.
    """
    return render("shared/example.html", make_example_page(_asked(services, access, number, kind, seed)))


@router.post("/class/{activity_id:int}/{number:int}/example")
@in_threads("class")
def check_class_example(
    services: ServicesDep, access: StudentAccessDep, form: FormDep, number: int, kind: str = "worked", seed: str = "1"
) -> Response:
    """The same with the marks of what was typed."""
    return render("shared/example.html", make_example_page(_asked(services, access, number, kind, seed), form))


def _asked(services: Services, access: StudentAccess, number: int, kind: str, seed: str) -> ExampleRequest:
    variant, rules = class_work(services, access, number).sheet.variant, access.rules
    if access.phase == "waiting" or not may_see_example(variant, rules):
        raise HTTPException(404)
    # Another sheet of the activity may ask the same of another model.
    requested = {key for item in access.activity.content.items for key in models_of(item)}
    return ExampleRequest(
        variant,
        {key: model for key, model in services.library.models.items() if key not in requested},
        kind,
        seed,
        access.links.sheet(number),
        lambda kind, seed: url_for(
            "show_class_example", activity_id=access.activity.id, number=number, kind=kind, seed=seed
        ),
    )
