"""What a sheet's form sends in practice, in a class and in a preview, and what a save answers, including a drawing."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from markupsafe import Markup

from app.classes.sheet_actions import SentSheet
from app.figures.sheet_figures import draw_figures
from app.grading.hints import HINT_LEVELS, HintLevel
from app.sheets.answers import MAX_BOX_TEXT
from app.sheets.variant import Variant
from app.store import Draft, Edit, question_name
from app.topics.problem import Problem
from app.translation import language
from app.web.shared.forms import FormReader
from app.web.shared.sheet_view import readable_answers
from app.web.shared.templating import render_text

MAX_NUMBER = 10**9  # for the edits of one tab
MAX_ANSWER = 2_000  # characters of an answer to an open question
MAX_DRAWINGS = 256  # cached drawings, about 22 kB each
MAX_EDIT = 160  # characters of one `edits` field: a box, a tab and a number
_EDIT = re.compile(r"([\w.-]{1,100}):([a-z0-9]{8,40}):([0-9]{1,10})", re.ASCII)


def read_sheet(form: FormReader, variant: Variant, promise: str | None = None) -> SentSheet:
    """Everything that a sheet's form sends; `promise` is what its page would promise now."""
    answers = read_answers(form, variant)
    # The same for a form that is sent twice with the same answers: its page's id and a hash of the answers.
    hashed = hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:16]
    return SentSheet(
        answers,
        read_edits(form, variant),
        request_id=f"{_read_form_id(form)}.{hashed}",
        rules_changed=promise is not None and promised_otherwise(form, promise),
        asks_about_empty=form.raw("empty") == "ask",
    )


def promised_otherwise(form: FormReader, promise: str) -> bool:
    """Whether the form's page promised something other than `promise`; False if it promised nothing."""
    return form.optional("promise") not in (None, promise)


def read_answers(form: FormReader, variant: Variant) -> Mapping[str, str]:
    """The text of every box and every open question of a sheet, by name; "" if none was sent.

    Example: {'queries.rows': '100', 'queries.columns': '', 'question.why-k': 'It has one row per token.'}
    """
    boxes = {box: form.raw(box, MAX_BOX_TEXT) for box in variant.blanks_by_name}
    return boxes | {name: form.typed_lines(name, MAX_ANSWER) for name in _question_names(variant)}


def _question_names(variant: Variant) -> tuple[str, ...]:
    return tuple(question_name(question.key) for question in variant.worksheet.questions)


def read_edits(form: FormReader, variant: Variant) -> dict[str, Edit] | None:
    """The boxes and answers that are new in the tab, by name, each with its tab and number.

    Example: 'keys.rows:k3x9v2aa:17 keys.columns:k3x9v2aa:18'
    """
    edits, names = dict[str, Edit](), {*variant.blanks_by_name, *_question_names(variant)}
    text = form.optional("edits", MAX_EDIT * len(names))
    if text is None:
        return None
    for edit in map(_EDIT.fullmatch, text.split()):
        if edit and edit[1] in names and int(edit[3]) <= MAX_NUMBER:
            edits[edit[1]] = Edit(edit[2], int(edit[3]))
    return edits


def _read_form_id(form: FormReader) -> str:
    text = form.raw("form_id")  # different on each page that was loaded
    return text if re.fullmatch(r"[\w-]{8,40}", text, re.ASCII) else secrets.token_urlsafe(16)


def saved_json(stored: Draft | None, edits: Mapping[str, Edit] | None = None) -> str:
    """The stored draft as JSON for the script of the tab that sent `edits`."""
    saved: dict[str, object] = {"version": stored.version if stored else 0}
    if stored:
        tabs = {edit.tab for edit in (edits or {}).values()}
        versions = {tab: stored.tab_versions.get(tab, 0) for tab in tabs}
        saved |= {"answers": dict(stored.answers), "tab_versions": versions}
    return json.dumps(saved, separators=(",", ":"))


def read_hint_level(text: str) -> HintLevel:
    """The requested hint level, '1' to '3'; the first for any other text."""
    return next((level for level in HINT_LEVELS if str(level) == text), HINT_LEVELS[0])


@dataclass(frozen=True)
class Drawing:
    """A drawing of what was typed into a sheet, as HTML, and its mismatches."""

    html: Markup
    mismatches: tuple[str, ...]


@dataclass(frozen=True)
class _Drawn:
    """A sheet as it is drawn; equal ones have the same drawing."""

    problem: Problem  # compared by identity: every sheet has its own
    texts: tuple[str, ...]
    names_sizes: bool
    shows_mismatches: bool
    step: str
    language: str
    variant: Variant = field(compare=False)


def draw_typed(
    variant: Variant,
    answers: Mapping[str, str],
    *,
    explains: bool = False,
    names_sizes: bool = True,
    shows_mismatches: bool = True,
    step: str = "",
) -> Drawing | None:
    """The drawing of a sheet with the typed sizes, by box name; None if it has no figure."""
    texts = tuple(answers.get(box, "") for box in variant.blanks_by_name)
    drawn = _Drawn(variant.problem, texts, names_sizes, shows_mismatches, step, language(), variant)
    return _write(drawn, explains=explains)


@lru_cache(MAX_DRAWINGS)
def _write(drawn: _Drawn, *, explains: bool) -> Drawing | None:
    variant = drawn.variant
    typed = readable_answers(variant, dict(zip(variant.blanks_by_name, drawn.texts, strict=True)))
    figures = draw_figures(
        variant,
        typed,
        names_sizes=drawn.names_sizes,
        shows_mismatches=drawn.shows_mismatches,
        step=drawn.step,
    )
    if not figures:
        return None
    html = render_text("shared/_figures.html", figures=figures, explains=explains)
    return Drawing(html, tuple(each.sentence for figure in figures for each in figure.mismatches))
