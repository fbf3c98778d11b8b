"""Parts bound into one PDF: read back by another program, every page, text and reference is what it was."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pikepdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.attention.library import load_library
from app.handout.binding import MOST_PARTS, Binder
from app.handout.content import Content, parts
from app.handout.objects import HEAD, REFERENCE, Packed, objects_of, replaced
from app.handout.options import Options
from app.handout.sheets import plan
from app.handout.typesetting import Press
from app.settings import PROJECT

LIBRARY = load_library(PROJECT / "worksheets")
PRESS = Press()
MISLEADING = r"Heads (1 0 R) \ (2 (3 0 R) ) 4 0 R ) ( /StructParents 5 (U1x0y0)"


def asked(**changes: Any) -> Callable[[], Content]:
    """One part of two sheets, with some texts put in the places of their own."""
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


def test_a_pdf_that_is_written_otherwise_is_refused() -> None:
    """Nothing is lost in silence when Typst should write its files in another way one day."""
    with pytest.raises(ValueError, match="no plain table"):
        Binder().add(PRESS.pdf([asked()]))
    with pytest.raises(ValueError, match="no plain table"):
        Binder().add(b"")


def test_more_parts_than_letters_are_refused() -> None:
    """The names of header cells begin with one letter a part."""
    part = PRESS.tagged(asked())
    binder = Binder()
    for _ in range(MOST_PARTS):
        binder.add(part)
    with pytest.raises(ValueError, match="at most 52"):
        binder.add(part)


@given(st.lists(st.tuples(st.text("()\\0 R12/<", max_size=12).map(str.encode), st.integers(1, 9)), max_size=4))
def test_references_are_replaced_wherever_they_are_no_text(written: list[tuple[bytes, int]]) -> None:
    """Any text beside a reference, with parentheses escaped, survives as a reader reads it; the reference is new."""
    escaped = [(re.sub(rb"([()\\])", rb"\\\1", text), number) for text, number in written]
    body = b"<<" + b"".join(b"/T(%b)/N %d 0 R" % pair for pair in escaped) + b">>"
    wanted = b"<<" + b"".join(b"/T(%b)/N %d 0 R" % (text, number + 40) for text, number in escaped) + b">>"
    assert replaced(body, REFERENCE, lambda found: b"%d 0 R" % (int(found[1]) + 40)) == wanted


def test_parentheses_that_match_are_one_text() -> None:
    """They may be written as they are; a reader finds the same text with a backslash before them."""
    body = b"<</T(a (3 0 R) 4 0 R)/N 3 0 R>>"
    assert replaced(body, REFERENCE, lambda _: b"9 0 R") == rb"<</T(a \(3 0 R\) 4 0 R)/N 9 0 R>>"


def test_what_is_packed_is_read_back_by_its_numbers() -> None:
    """Objects pressed together, more than one press holds, and streams that stand alone."""
    packed = Packed()
    root, info, pages, page, stream = (packed.number() for _ in range(5))
    packed.add(root, b"<</Type/Catalog/Pages %d 0 R/Many[%b]>>" % (pages, b" ".join(b"%d" % at for at in range(9))))
    packed.add(info, b"<</Title(many)>>")
    packed.add(pages, b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % page)
    packed.add(page, b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 9 9]/Resources<<>>/Contents %d 0 R>>" % (pages, stream))
    packed.add(stream, b"<</Length 7>>\nstream\n1 0 R q\nendstream")
    numbers = [packed.number() for _ in range(450)]
    for number in numbers:
        packed.add(number, b"<</Mine %d>>" % number)
    file = packed.file(root, info)
    assert file.startswith(HEAD)
    with pikepdf.open(io.BytesIO(file)) as pdf:
        assert not pdf.check_pdf_syntax()
        assert [int(pdf.get_object(number, 0).Mine) for number in numbers] == numbers
        assert pdf.pages[0].Contents.read_bytes() == b"1 0 R q"
        assert pdf.docinfo.Title == "many"


def test_every_object_that_typst_writes_is_found() -> None:
    """As many, and the same, as another program finds."""
    part = PRESS.tagged(asked())
    objects, trailer = objects_of(part)
    with pikepdf.open(io.BytesIO(part)) as pdf:
        assert len(objects) == len(pdf.objects)
        assert {at for at, body in objects.items() if b"/Type/Page/" in body} == {p.objgen[0] for p in pdf.pages}
    assert b"/Root" in trailer
