"""A drawing is kept for whoever has typed the same into the same sheet, and for nobody else."""

from __future__ import annotations

from dataclasses import replace

from app.sheets.library import Library
from app.web.shared.sheet_form import draw_typed


def test_a_drawing_is_kept_for_equal_sheets_alone(library: Library) -> None:
    """Another number, another scale, another rule or another sheet has another drawing; the same has the very same."""
    variant = library.variant("llama-7b")
    typed = {str(blank): str(size) for blank, size in variant.key.items()} | {"keys.columns": "4096"}
    drawn = draw_typed(variant, typed, "root")
    others = (
        draw_typed(variant, typed | {"keys.rows": ""}, "root"),
        draw_typed(variant, typed, "true"),
        draw_typed(variant, typed, "root", names_sizes=False),
        draw_typed(variant, typed, "root", tells_mismatches=False),
        draw_typed(replace(variant, tokens=99), typed, "root"),
    )
    assert drawn is not None
    assert draw_typed(variant, dict(typed), "root") is drawn
    assert len({each.html for each in (drawn, *others) if each}) == 1 + len(others)
    assert len(drawn.mismatches) == 1
    assert draw_typed(variant, typed, "root", tells_mismatches=False).mismatches == ()  # type: ignore[union-attr]
