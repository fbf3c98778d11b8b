"""What every form with a sheet sends: the texts of the boxes, their version, how to draw them, and a hint's level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from app.figures.scale import ScaleName
from app.grading.hints import HINT_LEVELS, HintLevel
from app.sheets.variant import Variant
from app.web.shared.forms import FormReader, whole_number

MAX_BOX_TEXT = 10_000  # characters of one box that are stored
MAX_VERSION = 10**16 - 1  # browsers send milliseconds since 1970


def read_answers(form: FormReader, variant: Variant) -> Mapping[str, str]:
    """The text of every box of the sheet by its blank, as typed and cut to a length; empty where none was sent.

    Example: {'queries.rows': '100', 'queries.columns': ''}
    """
    return {str(blank): form.raw(str(blank))[:MAX_BOX_TEXT] for blank in variant.blanks}


def read_version(form: FormReader) -> int:
    """The browser's clock when the texts were typed; 0, the oldest, where the form says no whole number."""
    return whole_number(form.raw("version"), MAX_VERSION) or 0


def read_scale(text: str) -> ScaleName:
    """How to draw lengths, 'root' or 'true'; 'root' for any other text."""
    return cast(ScaleName, text) if text in ("root", "true") else "root"


def read_hint_level(form: FormReader) -> HintLevel:
    """How far the hint goes that was asked for; the first level where the form says none that exists."""
    return next((level for level in HINT_LEVELS if str(level) == form.raw("hint")), HINT_LEVELS[0])
