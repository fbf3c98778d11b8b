"""Small drawings for lists: matrices without anything that can be read."""

from __future__ import annotations

import re

from app.figures.thumbnails import thumbnail
from app.sheets.library import Library


def test_every_sheet_has_a_drawing_without_numbers(library: Library) -> None:
    for key, sheet in library.worksheets.items():
        drawn = thumbnail(library.variant(key))
        assert drawn.startswith("<svg"), key
        assert ("<rect" in drawn) != bool(sheet.bug), key
        assert "<text" not in drawn


def test_everything_is_inside_the_frame(library: Library) -> None:
    drawn = thumbnail(library.variant("llama-7b"))
    x, y, width, height = map(float, re.search(r'viewBox="([^"]*)"', drawn)[1].split())  # type: ignore[index]
    for left, top, across, down in re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"/>', drawn):
        assert x <= float(left)
        assert float(left) + float(across) <= x + width + 1
        assert y <= float(top)
        assert float(top) + float(down) <= y + height + 1
