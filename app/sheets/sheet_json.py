"""A sheet as the JSON object that API and terminal print."""

from __future__ import annotations

from typing import Any

from app.misconceptions.predictions import cannot_tell_apart
from app.shapes.table import Joint, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.code_text import code_shown, option_text
from app.sheets.variant import Row, Variant
from app.topics.registry import TOPICS


def variant_json(variant: Variant) -> dict[str, Any]:
    """A sheet without its answers: code, keys, tokens, prose, rows, and misconceptions that it can't distinguish."""
    sheet = variant.worksheet
    return {
        "code": variant.code,
        "worksheet": sheet.key,
        "model": variant.model.key,
        "topic": sheet.topic,
        "tokens": variant.tokens,
        "decoder_tokens": variant.sizes["M"] if TOPICS[sheet.topic].reads_two_texts else None,
        "title": variant.title,
        "description": prose.description(variant),
        "task": prose.task(variant),
        "program": _program_json(variant),
        "assumptions": list(prose.assumptions(variant)),
        "footnote": prose.footnote(variant),
        "introduction": sheet.introduction,
        "own_footnote": sheet.footnote,
        "rows": [_row_json(variant, row) for row in variant.rows if not row.opens_late],
        "questions": [question.text for question in sheet.questions],
        "cannot_tell_apart": [[key, other or "right"] for key, other in cannot_tell_apart(variant.problem)],
    }


def opened_rows(variant: Variant) -> list[dict[str, Any]]:
    """The rows that `variant_json` leaves out, which come with the report of a checked sheet."""
    return [_row_json(variant, row) for row in variant.rows if row.opens_late]


def _row_json(variant: Variant, row: Row) -> dict[str, Any]:
    asked = variant.table.askable[row.key]
    options = asked.options if isinstance(asked, OneOf) and not isinstance(asked, WrittenPattern) else ()
    boxes = list(map(str, row.blanks))
    parts = zip(boxes, asked.parts, strict=True) if isinstance(asked, Joint) else ()
    points = 1 if row.points is None else row.points
    return {
        "key": row.key, "letter": row.letter, "name": row.name, "note": row.note, "code": row.code,
        "boxes": boxes, "points": points,
        "options": {str(number): option_text(variant, row.key, number) for number in options},
        "between": asked.between if isinstance(asked, Joint) else (),
        "words": {box: part.words for box, part in parts if part.words},
    }  # fmt: skip


def _program_json(variant: Variant) -> dict[str, Any] | None:
    if (code := code_shown(variant)) is None:
        return None
    witness = code.witness and {"caption": code.witness.caption, "cells": code.witness.cells}
    given = dict(code.given)
    return {"lines": code.lines, "given": given, "stops": code.stops, "error": code.error,
            "witness": witness}  # fmt: skip
