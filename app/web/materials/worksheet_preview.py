"""The preview of a worksheet beside its editor: what students see, empty, wrong and right, the key, and the paper."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from annotated_doc import Doc
from fastapi import HTTPException, Response

from app.figures.scale import ScaleName
from app.grading.explanations import mistaken_expression
from app.grading.grade import Report, grade
from app.handout.options import HandoutOptions
from app.machine.work_queue import Client
from app.misconceptions.predictions import Expectation, expectations
from app.shapes.table import Blank
from app.sheets.authoring.worksheet_settings import check_settings
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.web.shared.services import Services
from app.web.shared.sheet_form import Drawing, draw_typed
from app.web.shared.sheet_view import QuestionView, RowView, question_views, row_views, sheet_notes
from app.web.shared.urls import url_for

PreviewView = Literal["empty", "wrong", "right", "key", "paper"]
PREVIEW_VIEWS: tuple[PreviewView, ...] = get_args(PreviewView)
PREVIEW_KEY = "own-preview"  # of the worksheet that is shown
MAX_PACKED = 30_000  # characters of an address
MAX_UNPACKED = 100_000  # bytes of settings


@dataclass(frozen=True)
class PreviewFragment:
    """Everything that templates/materials/_worksheet_preview.html shows."""

    view: Annotated[PreviewView, Doc("What is shown: the sheet empty, wrong or right, the key, or the paper.")]
    variant: Annotated[Variant, Doc("The sheet.")]
    rows: Annotated[tuple[RowView, ...], Doc("Its rows.")] = ()
    drawing: Annotated[Drawing | None, Doc("The shapes in the boxes, drawn.")] = None
    questions: Annotated[tuple[QuestionView, ...], Doc("The open questions under the rows.")] = ()
    report: Annotated[Report | None, Doc("The marks; none on an empty sheet.")] = None
    held: Annotated[str, Doc("The misconception that has filled in a wrong sheet; empty where none shows.")] = ""
    paper: Annotated[str, Doc("The address of the picture of the handout, or empty.")] = ""
    locked: Annotated[bool, Doc("Whether nothing can be typed: always.")] = True
    focused: Annotated[str, Doc("The box with the focus: none.")] = ""
    scale: Annotated[ScaleName, Doc("How lengths are drawn.")] = "root"


def make_preview(library: Library, worksheet: Worksheet, view: PreviewView) -> PreviewFragment:
    """One view of a worksheet with its default model and length; the library must hold its models.

    Raises TopicError and TokensError for a worksheet that `check_settings` has not passed.
    """
    variant = Variant(worksheet, library.model(worksheet.model), worksheet.tokens, library.wording)
    if view == "paper":
        return PreviewFragment(view, variant, paper=_paper_address(worksheet))
    answers, held = _attempt(variant, view)
    report = grade(variant, answers) if answers else None
    truth, notes = variant if view == "key" else None, sheet_notes(variant, answers, report, mismatch=True)
    return PreviewFragment(
        view,
        variant,
        rows=row_views(variant, answers, report, truth=truth, notes=notes),
        drawing=draw_typed(variant, answers, "root", explains=report is not None) if view != "key" else None,
        questions=question_views(variant, {}, locked=True),
        report=report,
        held=held,
    )


def _attempt(variant: Variant, view: PreviewView) -> tuple[Mapping[str, str], str]:
    """The texts in the boxes, by name, and the name of the misconception that produced them, "" if none did.

    "right" fills in every answer; "wrong" is the first attempt of `_wrong_attempts`. All other views, and "wrong" if no
    misconception shows, have empty boxes.
    """
    if view == "right":
        return {box: _right_text(variant, blank) for box, blank in variant.blanks_by_name.items()}, ""
    if view == "wrong":
        return next(_wrong_attempts(variant), ({}, ""))
    return {}, ""


def _right_text(variant: Variant, blank: Blank) -> str:
    """The right answer to a box, as a student would type it."""
    return variant.written_answer(blank).replace(",", "")


def _wrong_attempts(variant: Variant) -> Iterator[tuple[Mapping[str, str], str]]:
    """The sheet as each misconception that shows on it fills it in, with its name, in the order of `expectations`.

    Every other box is right. On a sheet in letters, misconceptions that its symbols cannot write are left out.
    """
    formulas = {each.key: each.boxes for each in variant.worksheet.misconceptions}
    for expected in expectations(variant.problem):
        typed = formulas.get(expected.misconception, {}) if variant.worksheet.answers == "letters" else {}
        boxes = {variant.box(blank): blank for blank in expected.wrong_answers}
        texts = {box: typed.get(box) or _wrong_text(variant, expected, blank) for box, blank in boxes.items()}
        if all(texts.values()):
            right = {box: _right_text(variant, blank) for box, blank in variant.blanks_by_name.items()}
            yield {**right, **texts}, variant.text.misconception_name(expected.misconception)


def _wrong_text(variant: Variant, expected: Expectation, blank: Blank) -> str:
    """A wrong answer as a student would type it; "" on a sheet in letters whose symbols cannot write it."""
    if variant.worksheet.answers != "letters":
        return str(expected.wrong_answers[blank])
    meaning = mistaken_expression(variant, expected, blank)
    return variant.notation.write(meaning) if meaning else ""


# The page on paper


def _paper_address(worksheet: Worksheet) -> str:
    """The address of a handout's picture with the settings in it; "" if they take more than MAX_PACKED characters.

    Settings that are not printed are left out. Nothing is stored before the author saves, so the address must hold
    them.
    """
    settings = replace(worksheet, misconceptions=(), row_hints={}).settings
    packed = base64.urlsafe_b64encode(zlib.compress(json.dumps(settings).encode(), 9)).decode().rstrip("=")
    return url_for("show_worksheet_paper", sheet=packed) if len(packed) <= MAX_PACKED else ""


def unpack_settings(packed: str) -> dict[str, Any]:
    """The settings packed into an address; raises 404 if they cannot be unpacked or are not an object."""
    try:
        data = base64.urlsafe_b64decode(packed[:MAX_PACKED] + "=" * (-len(packed) % 4))
        unpacked = zlib.decompressobj().decompress(data, MAX_UNPACKED)
        settings = json.loads(unpacked)
    except (ValueError, zlib.error, RecursionError):
        raise HTTPException(404) from None
    if not isinstance(settings, dict):
        raise HTTPException(404)
    return settings


def paper_response(services: Services, library: Library, settings: Mapping[str, Any], client: Client) -> Response:
    """The first page of a handout of these settings, as SVG; 404 if they are no valid worksheet.

    The library must hold the imported models that they name.
    """
    worksheet, _errors = check_settings(PREVIEW_KEY, settings, library.models, library.wording)
    if worksheet is None:
        raise HTTPException(404)
    alone = Library({PREVIEW_KEY: worksheet}, library.models, library.wording)
    pages = services.printer.preview(alone, HandoutOptions(PREVIEW_KEY, sheets=1, layout="full"), "", client)
    return Response(pages[0], media_type="image/svg+xml")
