"""A sheet as the JSON object that API and terminal print."""

from __future__ import annotations

from typing import Any

from app.misconceptions.predictions import cannot_tell_apart
from app.sheets.variant import Row, Variant
from app.topics.registry import TOPICS


def variant_json(variant: Variant) -> dict[str, Any]:
    """A sheet without its answers: code, keys, tokens, prose, rows, and misconceptions that it cannot distinguish.

    "decoder_tokens" is None unless the topic reads two texts; "cannot_tell_apart" holds pairs of keys, "right" for the
    right sheet; "introduction", "own_assumptions" and "own_footnote" are the author's Markdown; "questions" are
    answered in words.
    """
    sheet = variant.worksheet
    return {
        "code": variant.code,
        "worksheet": sheet.key,
        "model": variant.model.key,
        "topic": sheet.topic,
        "tokens": variant.tokens,
        "decoder_tokens": variant.sizes["M"] if TOPICS[sheet.topic].reads_two_texts else None,
        "title": variant.title,
        "description": variant.text.description,
        "task": variant.text.task,
        "assumptions": list(variant.text.assumptions),
        "footnote": variant.text.footnote,
        "introduction": sheet.introduction,
        "own_assumptions": sheet.own_assumptions,
        "own_footnote": sheet.footnote,
        "rows": [_row_json(variant, row) for row in variant.rows],
        "questions": [question.text for question in sheet.questions],
        "cannot_tell_apart": [[key, other or "right"] for key, other in cannot_tell_apart(variant.problem)],
    }


def _row_json(variant: Variant, row: Row) -> dict[str, Any]:
    """One row, with the names of its boxes, ["queries.rows", "queries.columns"], and its points, by default 1."""
    boxes = list(map(variant.box, row.blanks))
    points = 1 if row.points is None else row.points
    return {
        "key": row.key, "letter": row.letter, "name": row.name, "note": row.note, "boxes": boxes, "points": points,
    }  # fmt: skip
