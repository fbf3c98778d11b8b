"""The preview of a worksheet beside its editor: what students see, empty, wrong and right, the key, and the paper."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from fastapi import HTTPException, Response

from app.grading.grade import grade
from app.grading.mistaken_sheets import misconception_names, mistaken_texts, right_texts
from app.handout.options import HandoutOptions
from app.machine.work_queue import Client
from app.sheets.authoring.worksheet_settings import check_settings
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.web.shared.services import Services
from app.web.shared.sheet_form import draw_typed
from app.web.shared.sheet_view import question_views, row_views, sheet_notes
from app.web.shared.urls import url_for

PreviewView = Literal["empty", "wrong", "right", "key", "paper"]
PREVIEW_VIEWS: tuple[PreviewView, ...] = get_args(PreviewView)
PREVIEW_KEY = "own-preview"  # the worksheet that is shown
MAX_PACKED = 30_000  # characters of an address
MAX_UNPACKED = 100_000  # bytes of settings


def preview_of(library: Library, worksheet: Worksheet, view: PreviewView, held: str = "") -> dict[str, Any]:
    """What _worksheet_preview.html shows of a worksheet with its default model and length.

    `held` is the key of the misconception that fills in a wrong sheet. The library must contain the worksheet's
    models.
    """
    variant = Variant(worksheet, library.model(worksheet.model), worksheet.tokens, library.wording)
    if view == "paper":
        return {"view": view, "variant": variant, "paper": _paper_address(worksheet)}
    mistaken = mistaken_texts(variant) if view == "wrong" else {}
    held = held if held in mistaken else next(iter(mistaken), "")
    answers = mistaken.get(held, {}) if view == "wrong" else right_texts(variant) if view == "right" else {}
    report = grade(variant, answers) if answers else None
    truth, notes = variant if view == "key" else None, sheet_notes(variant, answers, report, mismatch=True)
    return {
        "view": view,
        "variant": variant,
        "rows": row_views(variant, answers, report, truth=truth, notes=notes),
        "drawing": draw_typed(variant, answers, explains=report is not None) if view != "key" else None,
        "questions": question_views(variant, {}, locked=True),
        "report": report,
        "misconceptions": misconception_names(variant) if view == "wrong" else {},
        "held": held,
        "locked": True,
        "focused": "",
    }


# The page on paper


def _paper_address(worksheet: Worksheet) -> str:
    settings = replace(worksheet, misconceptions=(), row_hints={}).settings
    packed = base64.urlsafe_b64encode(zlib.compress(json.dumps(settings).encode(), 9)).decode().rstrip("=")
    return url_for("show_worksheet_paper", sheet=packed) if len(packed) <= MAX_PACKED else ""


def unpack_settings(packed: str) -> dict[str, Any]:
    """The settings packed into an address as compressed JSON in Base64, unchecked; 404 if it isn't a JSON object."""
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
    """The first page of a handout with one full-page sheet of these settings, as SVG; 404 if they are invalid.

    Raises what `HandoutPrinter.preview` raises.
    """
    worksheet, _errors = check_settings(PREVIEW_KEY, settings, library.models, library.wording)
    if worksheet is None:
        raise HTTPException(404)
    alone = Library({PREVIEW_KEY: worksheet}, library.models, library.wording)
    pages = services.printer.preview(alone, HandoutOptions(PREVIEW_KEY, sheets=1, layout="full"), "", client)
    return Response(pages[0], media_type="image/svg+xml")
