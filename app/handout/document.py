"""The data that templates/print/handout.typ typesets: one JSON object of texts, numbers and geometry, never markup."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from app.figures.parts import Figure
from app.figures.shapes import Answers
from app.figures.sheet_figures import draw_figures
from app.figures.svg import figure_svg
from app.handout.answer_key import key_rows, used_sizes
from app.handout.name_language import language_of
from app.handout.options import HandoutOptions, PrintedFigures, printable_line
from app.handout.pdf_binder import MAX_DOCUMENTS
from app.handout.sheet_plan import HandoutSheet
from app.handout.symbol_pieces import Piece, split_expression, split_sentence
from app.shapes.table import DIMENSIONS, PARTS, Joint, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.authoring.markdown import (
    FormulaNode,
    FormulaRoot,
    MarkdownBlock,
    MarkdownList,
    MarkdownSpan,
    read_markdown,
)
from app.sheets.code_text import code_shown, option_text, rows_in_vain
from app.sheets.exit_tickets import SCALE_POINTS, Ticket, picking_rule
from app.sheets.prose import step_of
from app.sheets.variant import Row, Variant
from app.topics.registry import TOPICS
from app.translation import gettext as _
from app.translation import language

TypstData = dict[str, Any]  # a JSON object for the template
MakeDocument = Callable[[], TypstData]
_NameData = dict[str, str | None]  # a name with the language and region it is typeset in
_NamesByCode = Mapping[str, Sequence[_NameData]]
T = TypeVar("T")

_LONG_WORD = re.compile(r"\S{31,}")
IN_PLACE_OF_NUMBERS: Mapping[PrintedFigures, str] = {"aid": "", "blank": "___"}  # nothing, or a line to write on
SPAN_LENGTH = 150  # how many characters of an author's text are kept together on a page
SHEETS_PER_DOCUMENT = 100  # sheets, or keys, that are typeset at once; more would need more memory
_NO_ROW: TypstData = {"letter": [], "note": "", "points": "", "fields": [], "signs": []}


def handout_documents(
    options: HandoutOptions, sheets: Sequence[HandoutSheet], tickets: Mapping[str, Ticket], base_url: str = ""
) -> list[MakeDocument]:
    """The documents of a handout: the sheets, one table of all answers, then the keys.

    Raises HandoutError immediately if the course or date is too long.
    """
    variants = tuple({sheet.variant.code: sheet.variant for sheet in sheets}.values())
    document = partial(_document, options, base_url, _header(options, variants, tickets))
    documents: list[MakeDocument] = []
    if options.key != "only":
        documents += [partial(document, sheets=chunk) for chunk in _chunks(sheets)]
    if options.key != "none":
        names = _names_by_code(sheets)
        if len(variants) > 1:
            documents.append(partial(document, table=variants, names=names))
        documents += [partial(document, keys=chunk, names=names) for chunk in _chunks(variants)]
    return documents


def font_check_document(names: Sequence[str], course: str) -> TypstData:
    """A document of these names and the course, typeset only to find letters that no font has."""
    texts = [_name_data(text) for text in dict.fromkeys((*names, course)) if text]
    header = {"title": "–", "course": "", "date": "", "layout": "full", "paper": "a4", "large": False}
    nothing: TypstData = {"figures": "none", "back": None, "variants": [], "sheets": [], "table": None, "keys": []}
    return {"lang": language(), "labels": _labels(), **header, **nothing, "font-check": texts}


def _chunks(items: Sequence[T]) -> list[Sequence[T]]:
    size = max(SHEETS_PER_DOCUMENT, 2 * len(items) // (MAX_DOCUMENTS - 2) + 1)  # sheets and keys share MAX_DOCUMENTS
    return [items[start : start + size] for start in range(0, len(items), size)]


def _header(options: HandoutOptions, variants: Sequence[Variant], tickets: Mapping[str, Ticket]) -> TypstData:
    ticket, first = tickets.get(options.back), variants[0]
    shared_title = len({variant.title for variant in variants}) == 1
    return {
        "lang": language(),
        "labels": _labels(),
        "title": first.title if shared_title else first.wording.topics[first.worksheet.topic].name,
        "course": printable_line(options.course, field="course"),
        "date": printable_line(options.date, field="date"),
        "layout": options.printed_layout,
        "paper": options.paper,
        "large": options.large,
        "figures": options.figures,
        "back": _back(ticket, options) if ticket else None,
    }


def _labels() -> dict[str, str]:
    return {
        "name": _("Name"),
        "continued": _("(continued)"),
        "matrix": _("Matrix"),
        "tensor": _("Tensor"),
        "quantity": _("Quantity"),
        "rows": _("Rows"),
        "columns": _("Columns"),
        **{f"dim{number}": _("dim {number}").format(number=number) for number in range(len(DIMENSIONS))},
        "count": _("Count"),
        "choice": _("Choice"),
        **{part: _("box {number}").format(number=number) for number, part in enumerate(PARTS, start=1)},
        "parameters": _("Parameters"),
        "sheet": _("Sheet"),
        "page": _("page {number} of {count}"),
        "back": _("back"),
        "required": _("(required)"),
        "own-words": _("In your own words (not graded)"),
        "report": _("See the technical report:"),
        "key": _("Answer key: {title}"),
        "wrong": _("Likely wrong answers, and the misconceptions behind them"),
        "qr": _("QR code that opens {link}"),
    }


def _back(ticket: Ticket, options: HandoutOptions) -> TypstData:
    questions = [{"text": question.text, "kind": question.kind, "options": question.options, "labels": question.labels,
                  "points": SCALE_POINTS, "required": question.required} for question in ticket.questions]  # fmt: skip
    advice = " ".join(filter(None, (ticket.instruction, picking_rule(ticket))))
    return {"title": ticket.title, "advice": advice, "questions": questions, "anonymous": options.anonymous_back}


def _document(
    options: HandoutOptions,
    base_url: str,
    header: TypstData,
    sheets: Sequence[HandoutSheet] = (),
    table: Sequence[Variant] = (),
    keys: Sequence[Variant] = (),
    names: _NamesByCode = MappingProxyType({}),
) -> TypstData:
    variants = {sheet.variant.code: sheet.variant for sheet in sheets}
    indexes = {code: index for index, code in enumerate(variants)}
    return {
        **header,
        "variants": _with_panel_models([_variant(variant, options, base_url) for variant in variants.values()]),
        "sheets": [
            {"variant": indexes[sheet.variant.code], "name": _name_data(sheet.name) if sheet.name else None}
            for sheet in sheets
        ],
        "table": _answer_table(table, names) if table else None,
        "keys": [_key_page(variant, options, names) for variant in keys],
        "font-check": [],
    }


def _with_panel_models(variants: list[TypstData]) -> list[TypstData]:
    model: dict[str, int] = {}
    frames: dict[str, list[tuple[float, float]]] = {}
    shared = ("title", "about", "footnote", "questions", "rows", "program")
    kinds = [json.dumps([*(v[name] for name in shared), len(v["figures"])]) for v in variants]
    lengths = [len(v["description"]) + len(v["link"]) / 1000 for v in variants]
    for index, kind in enumerate(kinds):
        if kind not in model or lengths[index] > lengths[model[kind]]:
            model[kind] = index
        sizes = [(figure["width"], figure["height"]) for figure in variants[index]["figures"]]
        largest = zip(sizes, frames.get(kind, sizes), strict=True)
        frames[kind] = [(max(a[0], b[0]), max(a[1], b[1])) for a, b in largest]
    return [
        {**variant, "panel-model": model[kind], "frames": frames[kind]}
        for variant, kind in zip(variants, kinds, strict=True)
    ]


def _names_by_code(sheets: Sequence[HandoutSheet]) -> _NamesByCode:
    names: dict[str, list[_NameData]] = {}
    for sheet in sheets:
        if sheet.name:
            names.setdefault(sheet.variant.code, []).append(_name_data(sheet.name))
    return names


def _name_data(name: str) -> _NameData:
    language, region = language_of(name)
    return {"text": name, "lang": language, "region": region}


def _variant(variant: Variant, options: HandoutOptions, base_url: str) -> TypstData:
    link = f"{base_url.rstrip('/')}/v/{variant.code}" if base_url and not variant.worksheet.is_own else ""
    return {
        "code": variant.code,
        "link": link,
        "qr": _qr_svg(link) if link else None,
        "title": _with_breaks(variant.title),
        "about": variant.model.about,
        "card": variant.model.card,
        "description": prose.description(variant),
        "task": _task(variant),
        "assumptions": prose.assumptions(variant),
        "footnote": prose.footnote(variant),
        "report": prose.report(variant),
        "questions": [_with_breaks(question.text) for question in variant.worksheet.questions],
        "introduction": _markdown(variant.worksheet.introduction),
        "own-footnote": _markdown(variant.worksheet.footnote),
        "program": _program(variant),
        "fields": variant.fields or ("count",),
        **_rows(variant, asks=True),
        "figures": [_figure(figure) for figure in _drawn_figures(variant, {}, options)],
    }


def _markdown(text: str) -> list[TypstData]:
    return [_block(block) for block in read_markdown(text)]


def _block(block: MarkdownBlock) -> TypstData:
    if isinstance(block, MarkdownList):
        return {"items": [[_block(each) for each in item] for item in block.items], "start": block.start}
    return {"spans": [_span(part) for span in block.spans for part in _breakable(span)]}


def _with_breaks(text: str) -> str:
    return _LONG_WORD.sub(lambda word: re.sub(".{12}", "\\g<0>\u200b", word[0]), text)


def _breakable(span: MarkdownSpan) -> list[MarkdownSpan]:
    span = replace(span, text=_with_breaks(span.text))
    if span.formula or len(span.text) <= SPAN_LENGTH:
        return [span]
    pieces = re.findall(rf".{{1,{SPAN_LENGTH}}}(?:\s+|$)|.{{1,{SPAN_LENGTH}}}", span.text, re.DOTALL)
    return [replace(span, text=piece) for piece in pieces]


def _span(span: MarkdownSpan) -> TypstData:
    style = {"strong": span.strong, "emphasis": span.emphasis, "code": span.code}
    return {**style, "text": span.text, "formula": [_formula_piece(node) for node in span.formula]}


def _formula_piece(node: FormulaNode) -> TypstData:
    if isinstance(node, FormulaRoot):
        return {"root": [_formula_piece(each) for each in node.under]}
    return {"base": node.base, "below": node.below, "above": node.above, "letter": node.is_letter}


def _drawn_figures(variant: Variant, answers: Answers, options: HandoutOptions) -> tuple[Figure, ...]:
    if options.figures == "none" or (TOPICS[variant.worksheet.topic].in_steps and not answers):
        return ()
    # Given parameters would take half a page more where nothing is filled in.
    instead = None if answers else IN_PLACE_OF_NUMBERS[options.figures]
    drawn = draw_figures(variant, answers, names_sizes=bool(answers), in_place_of_numbers=instead)
    figures = (figure for figure in drawn if not figure.is_chart)
    return tuple(figure for figure in figures if figure.key not in ("deck-projection", "deck-output"))


def _rows(variant: Variant, *, asks: bool = False) -> TypstData:
    rows = [_row(variant, row, asks=asks) for row in variant.rows]
    for joint in rows_in_vain(variant) if asks else ():
        points = variant.worksheet.row_points.get(joint.key, joint.points)
        row = Row(joint.key, "", variant.row_name(joint.key), "", joint, points)
        rows.append({**_NO_ROW, "name": row.name, "points": row.points_in_words, "asks": _asks()})
    return {"rows": rows, "letter-width": max((_width_in_em(row["letter"]) for row in rows), default=0)}


def _row(variant: Variant, row: Row, *, asks: bool) -> TypstData:
    names: TypstData = {"name": _with_breaks(row.name), "note": ", ".join(filter(None, (row.code, row.note)))}
    if asks and (step := step_of(variant, row.key)):
        # leaves out articles
        symbols = frozenset({*variant.letters.values(), *variant.symbols.written}) - {"A", "a"}
        names = {"name": split_sentence(step.question, symbols), "note": ""}
    if row.is_question:
        asked = _asks(variant, row) if asks else None
        return {"letter": [], **names, "points": row.points_in_words, "fields": ["count"], "signs": [], "asks": asked}
    boxes = {"fields": list(map(variant.column_of, row.blanks)), "signs": variant.signs(row), "asks": None}
    return {"letter": split_expression(row.letter), **names, "points": row.points_in_words, **boxes}


def _asks(variant: Variant | None = None, row: Row | None = None) -> TypstData:
    asked = row.asked if row else None
    if variant and row and isinstance(asked, OneOf) and not isinstance(asked, WrittenPattern):
        is_line = row.offers == "lines"
        texts = [(number, option_text(variant, row.key, number)) for number in asked.options]
        options = [f"{number}\u2002{text}" if not is_line or not number else str(number) for number, text in texts]
        options = [*options[1:], options[0]] if is_line else options
        return {"options": options, "short": is_line or bool(asked.texts), "boxes": 0, "line": False}
    boxes = len(asked.parts) if isinstance(asked, Joint) and not asked.is_code else 0
    return {"options": [], "short": False, "boxes": boxes, "line": not boxes}


def _program(variant: Variant) -> TypstData | None:
    if (code := code_shown(variant)) is None:
        return None
    stops = _("Line {line} stops the program:").format(line=code.stops)
    happened = {"stops": stops if code.error else code.witness.caption if code.witness else "", "happened": code.error}
    return {"given": code.given, "lines": code.lines, **happened, "cells": code.witness.cells if code.witness else ()}


def _task(variant: Variant) -> list[Piece]:
    if not variant.worksheet.in_letters:
        return [prose.task(variant)]
    symbols = frozenset(variant.symbols.written) - {"a"}  # "a" is the article
    return split_sentence(prose.task(variant), symbols)


def _width_in_em(pieces: Sequence[Piece]) -> float:
    return sum(0.9 * len(piece["base"]) + 0.46 * len(piece["below"]) for piece in pieces if isinstance(piece, dict))


def _qr_svg(link: str) -> str:
    import segno  # not at the top of the file, so that the app starts without it

    svg = io.BytesIO()
    # A fixed mask: trying all eight takes as long as typesetting the sheet, and phones read any of them.
    segno.make(link, error="m", micro=False, mask=4).save(svg, "svg", xmldecl=False, nl=False, border=4, omitsize=True)
    return svg.getvalue().decode()


def _figure(figure: Figure) -> TypstData:
    _x, _y, width, height = figure.frame
    return {"title": figure.alt_text, "width": width, "height": height, "svg": figure_svg(figure)}


def _key_page(variant: Variant, options: HandoutOptions, names: _NamesByCode) -> TypstData:
    return {
        "code": variant.code,
        "title": variant.title,
        "fields": variant.fields or ("count",),
        **_rows(variant),
        "names": names.get(variant.code, []),
        "sizes": used_sizes(variant),
        "figures": [_figure(figure) for figure in _drawn_figures(variant, variant.problem.answers, options)],
        "answers": key_rows(variant),
        "questions": [
            {"text": _with_breaks(question.text), "answer": _markdown(question.model_answer)}
            for question in variant.worksheet.questions
            if question.model_answer
        ],
    }


def _answer_table(variants: Sequence[Variant], names: _NamesByCode) -> TypstData:
    rows = _rows_of_all(variants)
    columns = [
        {
            "letter": split_expression(row.letter) or [row.name],
            "field": variants[0].column_of(blank),
            "first": blank == row.blanks[0],
        }
        for row in rows
        for blank in row.blanks
    ]
    blanks = [blank for row in rows for blank in row.blanks]
    lines = [
        {
            "code": v.code,
            "names": names.get(v.code, []),
            "numbers": [v.written_answer(blank) if blank in v.problem.answers else "–" for blank in blanks],
        }
        for v in variants
    ]
    return {"columns": columns, "lines": lines, "widest": _widest_line(lines)}


def _widest_line(lines: Sequence[TypstData]) -> TypstData:
    return {
        "code": max((line["code"] for line in lines), key=len),
        "names": max((line["names"] for line in lines), key=lambda names: sum(len(name["text"]) for name in names)),
        "numbers": [max(numbers, key=len) for numbers in zip(*(line["numbers"] for line in lines), strict=True)],
    }


def _rows_of_all(variants: Sequence[Variant]) -> list[Row]:
    rows: list[Row] = []
    for variant in variants:
        place = 0
        for row in variant.rows:
            keys = [other.key for other in rows]
            if row.key in keys:
                place = keys.index(row.key)
            else:
                rows.insert(place, row)
            place += 1
    return rows
