"""Worksheets with random valid settings, for testing what holds for any worksheet."""

from __future__ import annotations

from random import Random
from typing import Any

from app.models.architecture import TokensError
from app.shapes.table import symbol_fields
from app.sheets.authoring.worksheet_settings import check_settings, possible_rows
from app.sheets.library import Library
from app.sheets.notation import NOTATIONS
from app.sheets.worksheet import MAX_MISCONCEPTION_BOXES
from app.topics.registry import check_topic_tokens, topic_for
from app.topics.requirements import TopicError
from tests.helpers.every_family import bug_shown

# Markup of every kind that a page, paper or table could misread; none of it is an error.
HOSTILE_TEXTS = (
    "<script>alert(1)</script>", "#eval(\"1\") $x$ `raw` @here", "=HYPERLINK(\"a\")", "\\\"\"\"'''",
    "{model} {nope} {{ 7 }}", "Größe 键 ‏مرحبا 🎓", "Why does $K$ have this shape?",
    "[x](javascript:alert(1)) ![i](http://a/b.png)", "-", "100 %",
)  # fmt: skip


def random_settings(library: Library, seed: int) -> dict[str, Any]:
    """Settings of a worksheet as its file would have them, the same for the same seed."""
    random = Random(seed)  # noqa: S311 - test data
    settings = _random_subject(library, random)
    architecture = library.models[settings["model"]].architecture
    table = topic_for(settings["topic"], architecture, settings["tokens"])
    possible = possible_rows(settings["topic"], architecture, settings["tokens"], library.wording)
    rows = [row for row in possible if row in table.askable]
    asked = random.sample(rows, random.randint(1, len(rows)))
    boxes = [f"{row}.{field}" for row in asked for field in symbol_fields(table.askable[row])]
    settings["bug"] = bug_shown(table)
    optional: dict[str, Any] = {
        "notation": random.choice(list(NOTATIONS)),
        "answers": random.choice(("numbers", "letters")),
        "models": [settings["model"]],
        "tokens_from": max(1, settings["tokens"] - random.randint(0, 20)),
        "tokens_to": settings["tokens"],
        "row_hints": {row: text_of(random) for row in random.sample(asked, random.randint(1, len(asked)))},
        "row_points": {asked[0]: random.randint(1, 10), **{row: random.randint(0, 10) for row in asked[1:]}},
        "questions": [
            {"text": f"{number} {text_of(random)}", "model_answer": f"{number} *rows*\n\n$d_h$"}
            for number in range(random.randint(1, 10))
        ],
        "misconceptions": [
            _misconception(random, number, boxes) for number in range(random.randint(1, 10) if boxes else 0)
        ],
        **{name: paragraphs(random) for name in ("introduction", "footnote")},
    }
    dropped = set(random.sample(list(optional), random.randint(0, len(optional))))
    both = {"tokens_from", "tokens_to"}
    if dropped & both or library.models[settings["model"]].architecture.fixed_tokens:
        dropped |= both
    chosen = {name: value for name, value in optional.items() if name not in dropped}
    whole = {**settings, "title": text_of(random), "rows": asked, **chosen}
    _worksheet, errors = check_settings("mine", whole, library.models, library.wording)
    # Symbols can't express every answer: a rounded one, or the partner of a dimension.
    return {**whole, "answers": "numbers"} if any(error.setting in ("answers", "models") for error in errors) else whole


def text_of(random: Random) -> str:
    """One line of text."""
    return " ".join(random.choices(HOSTILE_TEXTS, k=random.randint(1, 3)))


def paragraphs(random: Random) -> str:
    """Several lines of text."""
    return "\n\n".join(text_of(random) for _ in range(random.randint(1, 3)))


def _random_subject(library: Library, random: Random) -> dict[str, Any]:
    while True:
        sheet, model = random.choice(list(library.worksheets.values())), random.choice(list(library.models.values()))
        tokens = model.architecture.fixed_tokens or random.randint(2, 300)
        try:
            library.variant(sheet.key, model.key, tokens)
            check_topic_tokens(sheet.topic, model.architecture, tokens)
        except (TopicError, TokensError):
            continue
        return {"topic": sheet.topic, "model": model.key, "tokens": tokens}


def _misconception(random: Random, number: int, boxes: list[str]) -> dict[str, Any]:
    chosen = random.sample(boxes, random.randint(1, min(len(boxes), MAX_MISCONCEPTION_BOXES)))
    return {
        "name": f"{number} {text_of(random)}"[:80].rstrip(),
        "boxes": {box: random.choice(("H*d", "d_h + d", "2*d")) for box in chosen},
        "question": text_of(random),
        "explanation": paragraphs(random),
    }
