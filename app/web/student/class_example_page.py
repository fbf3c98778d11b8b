"""/class/A/N/example: an activity's sheet with other numbers, if its rules allow that; nothing is stored."""

from __future__ import annotations

from fastapi import APIRouter, Response

from app.web.shared.example_view import ExampleRequest, make_example_page
from app.web.shared.forms import FormDep
from app.web.shared.permissions import StudentAccess, StudentAccessDep
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.student.class_sheet_view import class_example
from app.web.student.sheet_request import class_work

router = APIRouter(include_in_schema=False)


@router.get("/class/{activity_id:int}/{number:int}/example")
@in_threads("class")
def show_class_example(
    services: ServicesDep, access: StudentAccessDep, number: int, kind: str = "worked", seed: str = "1"
) -> Response:
    """A sheet like sheet `number`, from 1, of the activity."""
    return render("shared/example.html", make_example_page(_asked(services, access, number, kind, seed)))


@router.post("/class/{activity_id:int}/{number:int}/example")
@in_threads("class")
def check_class_example(
    services: ServicesDep, access: StudentAccessDep, form: FormDep, number: int, kind: str = "worked", seed: str = "1"
) -> Response:
    """A sheet like sheet `number` with the marks of what was typed on it; 404 as for `show_class_example`."""
    return render("shared/example.html", make_example_page(_asked(services, access, number, kind, seed), form))


def _asked(services: Services, access: StudentAccess, number: int, kind: str, seed: str) -> ExampleRequest:
    return class_example(services, access, class_work(services, access, number).sheet.variant, number, kind, seed)
