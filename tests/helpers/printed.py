"""What is on a printed page, read back from the PDF by another program: words, blanks, boxes, QR codes."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw
import zxingcpp


@dataclass(frozen=True)
class Glyph:
    """One printed character, in points from the upper left corner of its page."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    size: float


class Printed:
    """One page as a person or a scanner sees it."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self.width, self.height = page.get_size()

    @cached_property
    def text(self) -> str:
        """All readable text, in reading order, with one space between words."""
        found = self._page.get_textpage().get_text_range()
        return " ".join(unicodedata.normalize("NFKC", found.replace("\ufffe", "-")).split())

    @cached_property
    def glyphs(self) -> list[Glyph]:
        """Every character that leaves ink."""
        textpage = self._page.get_textpage()
        found = []
        for at in range(textpage.count_chars()):
            char = chr(raw.FPDFText_GetUnicode(textpage, at))
            if char.isspace() or not char.isprintable():
                continue
            left, bottom, right, top = textpage.get_charbox(at)
            size = raw.FPDFText_GetFontSize(textpage, at)
            found.append(Glyph(char, left, self.height - top, right, self.height - bottom, size))
        return found

    @cached_property
    def boxes(self) -> list[tuple[float, float, float, float]]:
        """Every outline large enough to write in: left, top, right, bottom, in points from the upper left."""
        found = []
        for item in self._page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=4):
            left, bottom, right, top = item.get_bounds()
            stroke, fill = ctypes.c_int(), ctypes.c_int()
            raw.FPDFPath_GetDrawMode(item, fill, stroke)
            if stroke.value and not fill.value and right - left > 30 and 15 < top - bottom < 60:
                found.append((left, self.height - top, right, self.height - bottom))
        return found

    def picture(self, scale: float = 1.0) -> np.ndarray:
        """The page as an array of grey values (height, width), with `scale` pixels per point."""
        return np.asarray(self._page.render(scale=scale, grayscale=True).to_numpy()).squeeze()

    @property
    def codes(self) -> list[str]:
        """What a phone reads from the QR codes."""
        return [code.text for code in zxingcpp.read_barcodes(self.picture(3.0))]

    def where(self, words: str) -> tuple[float, float]:
        """The upper left corner, in points, of the first place with these words; spaces are ignored."""
        written = "".join(glyph.text for glyph in self.glyphs)
        at = written.index(words.replace(" ", ""))
        return (self.glyphs[at].left, self.glyphs[at].top)


def read_pdf(pdf: bytes) -> list[Printed]:
    """Read every page of a PDF."""
    return [Printed(page) for page in pdfium.PdfDocument(pdf)]


def numbers(text: str) -> set[str]:
    """Every whole number in a text, without thousands separators."""
    return {number.replace(",", "") for number in re.findall(r"\d[\d,]*\d|\d", text)}
