"""A drawing is cached for the same texts in the same sheet, and nothing else; edits are read fast."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.datastructures import FormData

from app.sheets.library import Library
from app.store import Edit
from app.web.shared.forms import FormReader
from app.web.shared.sheet_form import draw_typed, read_edits
from tests.helpers.processor_time import processor_time_s


def test_a_drawing_is_kept_for_equal_sheets_alone(library: Library) -> None:
    variant = library.variant("llama-7b")
    typed = {box: str(size) for box, size in variant.key.items()} | {"keys.columns": "4096"}
    drawn = draw_typed(variant, typed)
    others = (
        draw_typed(variant, typed | {"keys.rows": ""}),
        draw_typed(variant, typed, names_sizes=False),
        draw_typed(variant, typed, shows_mismatches=False),
        draw_typed(replace(variant, tokens=99), typed),
    )
    assert drawn is not None
    assert draw_typed(variant, dict(typed)) is drawn
    assert len({each.html for each in (drawn, *others) if each}) == 1 + len(others)
    assert len(drawn.mismatches) == 2  # with Q, and with W_K
    assert draw_typed(variant, typed, shows_mismatches=False).mismatches == ()  # type: ignore[union-attr]


@pytest.mark.parametrize("piece", ["a", "a:", "a.b:aaaaaaaa", ":", "a:aaaaaaaa:1", "queries.rows:k3x9v2aa:1 "])
def test_a_long_list_of_edits_takes_no_time(library: Library, piece: str) -> None:
    form = FormReader(FormData([("edits", piece * 40_000)]))
    assert processor_time_s(lambda: read_edits(form, library.variant("llama-7b"))) < 0.5


def test_every_box_of_a_page_can_have_a_stamp(library: Library) -> None:
    variant = library.variant("llama-7b")
    edits = " ".join(f"{blank}:{'p' * 40}:999999999" for blank in variant.blanks)
    read = read_edits(FormReader(FormData([("edits", edits)])), variant)
    assert read == {str(blank): Edit("p" * 40, 999_999_999) for blank in variant.blanks}
