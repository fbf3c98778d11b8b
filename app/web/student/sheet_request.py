"""A sheet of an activity as a request names it, and what was typed into its form."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from app.classes.student_sheet import StudentSheet, student_sheet
from app.figures.scale import ScaleName
from app.store.classwork import ClassDraft
from app.web.practice.sheet_request import MAX_KEPT, read_scale, read_version
from app.web.shared import permissions
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.services import ServicesDep
from app.web.shared.urls import url_for


@dataclass(frozen=True)
class Sheet:
    """A student's sheet in an activity, with the answers that a form sent."""

    access: permissions.StudentAccess
    number: int
    assigned: StudentSheet
    sent: ClassDraft
    scale: ScaleName
    client_id: str

    @property
    def action(self) -> str:
        return url_for("show_class_sheet", activity_id=self.access.activity.id, number=self.number + 1)


def sheet_at(
    request: Request, services: ServicesDep, activity_id: int, number: int
) -> tuple[permissions.StudentAccess, int, StudentSheet]:
    """The sheet of that number, from 1; raises 404 where the activity has fewer."""
    access = permissions.require_student(request, services, activity_id)
    if not 1 <= number <= len(access.activity.content.items):
        raise HTTPException(404)
    return access, number - 1, student_sheet(services.library, services.store, access.activity, access.student, number)


AtSheet = Annotated[tuple[permissions.StudentAccess, int, StudentSheet], Depends(sheet_at)]


def posted(request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int) -> Sheet:
    """The sheet that a form was sent from, with its boxes as typed."""
    access, number, found = sheet_at(request, services, activity_id, number)
    answers = {str(blank): form.raw(str(blank))[:MAX_KEPT] for blank in found.variant.blanks}
    draft = ClassDraft(answers, read_version(form.raw("version")), found.sizes)
    return Sheet(access, number, found, draft, read_scale(form.raw("scale")), client_id(form, answers))


Posted = Annotated[Sheet, Depends(posted)]


def form_id(form: FormReader) -> str:
    """The id that came with the form; one of our own where it is none."""
    found = form.raw("form_id")
    return found if re.fullmatch(r"[\w-]{8,40}", found, re.ASCII) else secrets.token_urlsafe(16)


def client_id(form: FormReader, answers: Mapping[str, str]) -> str:
    """The same for a request that is sent again, another one once anything else stands in the boxes."""
    text = json.dumps(answers, sort_keys=True)
    return f"{form_id(form)}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
