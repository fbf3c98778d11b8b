"""The checker's remarks on a worksheet in the editor; each proposal fixes its remark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.classes.authoring.remarks import remarks_on
from app.classes.authoring.worksheet_form import arrange, read_worksheet_form, typed_worksheet
from app.sheets.library import Library
from app.sheets.worksheet import AuthorMisconception


def own(key: str, boxes: Mapping[str, str]) -> tuple[AuthorMisconception, ...]:
    """One misconception that writes into these boxes."""
    return (AuthorMisconception(key.title(), boxes, "Really?", "No.", key=f"own-{key}"),)


WIDE = {f"{row}.columns": "d" for row in ("queries", "keys", "values")}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens": 128}, "N and d_h are both 128"),
        ({"misconceptions": own("wide", WIDE)}, "“Wide”"),
        ({"misconceptions": own("right", {"queries.columns": "d_h"})}, "“Right”"),
    ],
)
def test_a_proposal_mends_what_it_stands_beside(library: Library, changes: dict[str, Any], said: str) -> None:
    sheet = replace(library.worksheet("llama-7b"), **changes)
    remarks = [remark for remark in remarks_on(library, sheet) if remark.matters]
    assert any(said in remark.message for remark in remarks)
    texts = typed_worksheet(library, sheet)
    for proposal in (proposal for remark in remarks for proposal in remark.proposals):
        texts = arrange(texts, proposal.action)
    mended = read_worksheet_form(library, sheet.key, texts)
    assert [remark for remark in remarks_on(library, mended) if remark.matters] == []


def test_no_remark_on_a_shipped_sheet_matters(library: Library) -> None:
    for sheet in library.worksheets.values():
        assert not any(remark.matters for remark in remarks_on(library, sheet)), sheet.key
