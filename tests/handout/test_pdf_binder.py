"""Services bound into one PDF: every page, text and reference is what it was."""

from __future__ import annotations

import io
from typing import Any

import pikepdf
import pytest

from app.handout.document import MakeDocument, handout_documents
from app.handout.options import HandoutOptions
from app.handout.pdf_binder import MAX_DOCUMENTS, PdfBinder
from app.handout.sheet_plan import plan_sheets
from app.handout.typst_renderer import TypstRenderer
from tests.helpers.shipped import LIBRARY

RENDERER = TypstRenderer()
MISLEADING = r"Heads (1 0 R) \ (2 (3 0 R) ) 4 0 R ) ( /StructParents 5 (U1x0y0)"


def asked(**changes: Any) -> MakeDocument:
    """One part of two sheets, with some texts put in the blanks of their own."""
    options = HandoutOptions(worksheet="softmax-of-a-model", variants=True, sheets=2, layout="full")
    part = handout_documents(options, plan_sheets(LIBRARY, options), {}, "https://shapes.example.org")[0]()
    sheets = [{**sheet, **changes} for sheet in part["variants"]]
    return lambda: {**part, **changes, "variants": sheets}


@pytest.mark.parametrize("many", [1, 3])
def test_texts_that_look_like_references_stay_as_they_are(many: int) -> None:
    with pikepdf.open(io.BytesIO(RENDERER.render_handout([asked(title=MISLEADING)] * many))) as pdf:
        assert pdf.docinfo.Title == MISLEADING
        heads = [e for e in pdf.objects if isinstance(e, pikepdf.Dictionary) and e.get("/S") == "/H1"]
        assert [str(head.T) for head in heads] == [MISLEADING] * 2 * many


def test_a_bound_pdf_is_sound_and_its_pages_are_those_of_its_parts() -> None:
    alone = RENDERER.render_handout([asked()])
    bound = RENDERER.render_handout([asked()] * 3)
    with pikepdf.open(io.BytesIO(bound)) as pdf, pikepdf.open(io.BytesIO(alone)) as part:
        assert not pdf.check_pdf_syntax()
        assert len(pdf.pages) == 6
        drawn = [page.Contents.read_bytes() for page in part.pages]
        assert [page.Contents.read_bytes() for page in pdf.pages] == drawn * 3
        assert len({page.obj.objgen for page in pdf.pages}) == 6
        catalogs = [e for e in pdf.objects if isinstance(e, pikepdf.Dictionary) and e.get("/Type") == "/Catalog"]
        assert len(catalogs) == 1


def test_the_same_parts_have_the_same_bytes() -> None:
    assert RENDERER.render_handout([asked()] * 2) == RENDERER.render_handout([asked()] * 2)


def test_more_parts_than_letters_are_refused() -> None:
    part = RENDERER.render_pdf(asked())
    binder = PdfBinder()
    for _ in range(MAX_DOCUMENTS):
        binder.add(part)
    with pytest.raises(ValueError, match="at most 52"):
        binder.add(part)
