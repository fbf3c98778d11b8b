"""Services bound into one PDF: every page, text and reference is what it was."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pikepdf
import pytest

from app.handout.binding import MOST_PARTS, Binder
from app.handout.content import Content, parts
from app.handout.options import Options
from app.handout.sheets import plan
from app.handout.typesetting import Press
from app.settings import PROJECT
from app.sheets.library import load_library

LIBRARY = load_library(PROJECT / "worksheets")
PRESS = Press()
MISLEADING = r"Heads (1 0 R) \ (2 (3 0 R) ) 4 0 R ) ( /StructParents 5 (U1x0y0)"


def asked(**changes: Any) -> Callable[[], Content]:
    """One part of two sheets, with some texts put in the blanks of their own."""
    options = Options(worksheet="head-of-a-model", variants=2, layout="full")
    part = parts(options, plan(LIBRARY, options), {}, "https://shapes.example.org")[0]()
    sheets = [{**sheet, **changes} for sheet in part["variants"]]
    return lambda: {**part, **changes, "variants": sheets}


@pytest.mark.parametrize("many", [1, 3])
def test_texts_that_look_like_references_stay_as_they_are(many: int) -> None:
    """A title may hold parentheses, backslashes and what would lead to an object elsewhere."""
    with pikepdf.open(io.BytesIO(PRESS.pdf([asked(title=MISLEADING)] * many))) as pdf:
        assert pdf.docinfo.Title == MISLEADING
        heads = [e for e in pdf.objects if isinstance(e, pikepdf.Dictionary) and e.get("/S") == "/H1"]
        assert [str(head.T) for head in heads] == [MISLEADING] * 2 * many


def test_a_bound_pdf_is_sound_and_its_pages_are_those_of_its_parts() -> None:
    """Another program finds nothing wrong in it, each page once, and on it what was drawn in the part."""
    alone = PRESS.pdf([asked()])
    with pikepdf.open(io.BytesIO(PRESS.pdf([asked()] * 3))) as pdf, pikepdf.open(io.BytesIO(alone)) as part:
        assert not pdf.check_pdf_syntax()
        assert len(pdf.pages) == 6
        drawn = [page.Contents.read_bytes() for page in part.pages]
        assert [page.Contents.read_bytes() for page in pdf.pages] == drawn * 3
        assert len({page.obj.objgen for page in pdf.pages}) == 6
        catalogs = [e for e in pdf.objects if isinstance(e, pikepdf.Dictionary) and e.get("/Type") == "/Catalog"]
        assert len(catalogs) == 1


def test_the_same_parts_have_the_same_bytes() -> None:
    """Nothing of the moment goes into a file."""
    assert PRESS.pdf([asked()] * 2) == PRESS.pdf([asked()] * 2)


def test_more_parts_than_letters_are_refused() -> None:
    """The names of header cells begin with one letter a part."""
    part = PRESS.tagged(asked())
    binder = Binder()
    for _ in range(MOST_PARTS):
        binder.add(part)
    with pytest.raises(ValueError, match="at most 52"):
        binder.add(part)
