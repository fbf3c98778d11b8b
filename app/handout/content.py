"""A handout as the one JSON object that templates/print/handout.typ sets: texts, numbers and geometry, never markup."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from app.figures.draw import draw_figures
from app.figures.figures import Arc, Box, Edge, Figure
from app.sheets.exit_tickets import Ticket
from app.sheets.worksheet import Row, Variant

from .binding import MOST_PARTS
from .keys import answer_text, given_sizes, key_rows
from .languages import language_of
from .mathematics import Piece, Pieces
from .options import Options, one_line
from .sheets import Sheet

Content = dict[str, Any]
Named = dict[str, str | None]
Names = Mapping[str, Sequence[Named]]
T = TypeVar("T")

PART = 100  # sheets, or keys, that are set at once: more take more memory


def parts(
    options: Options, sheets: Sequence[Sheet], tickets: Mapping[str, Ticket], address: str = ""
) -> list[Callable[[], Content]]:
    """The parts of a handout in their order, each made when it is its turn: sheets, the table of keys, the keys.

    `address` is where the app can be reached, empty to print codes alone.
    """
    variants = {sheet.variant.code: sheet.variant for sheet in sheets}
    said = _said(options, sheets[0].variant, tickets)
    whole = partial(_part, options, address, said)
    made: list[Callable[[], Content]] = []
    if options.key != "only":
        made += [partial(whole, sheets=some) for some in _chunks(sheets)]
    if options.key != "none":
        named = _names(sheets)
        if len(variants) > 1:
            made.append(partial(whole, table=tuple(variants.values()), names=named))
        made += [partial(whole, keys=some, names=named) for some in _chunks(tuple(variants.values()))]
    return made


_NOTHING: Content = {"variants": [], "sheets": [], "table": None, "keys": []}


def trial(names: Sequence[str], course: str) -> Content:
    """A part that holds nothing but these texts, to try whether every letter can be set."""
    tried = [_named(name) for name in dict.fromkeys((*names, course)) if name]
    page = {"lang": "en", "title": "–", "course": "", "date": "", "layout": "full", "paper": "a4", "large": False}
    return {**page, "figures": "none", "back": None, **_NOTHING, "tried": tried}


def _chunks(things: Sequence[T]) -> list[Sequence[T]]:
    size = max(PART, 2 * len(things) // (MOST_PARTS - 2) + 1)  # sheets and keys together fill all parts at most
    return [things[at : at + size] for at in range(0, len(things), size)]


def _said(options: Options, first: Variant, tickets: Mapping[str, Ticket]) -> Content:
    """What is the same in every part."""
    ticket = tickets.get(options.back)
    return {
        "lang": "en",
        "title": first.title,
        "course": one_line(options.course),
        "date": one_line(options.date),
        "layout": options.panels,
        "paper": options.paper,
        "large": options.large,
        "figures": options.figures,
        "back": _back(ticket) if ticket else None,
    }


def _back(ticket: Ticket) -> Content:
    return {"title": ticket.title, "advice": ticket.instruction, "questions": [text for _, text in ticket.questions]}


def _part(
    options: Options,
    address: str,
    said: Content,
    sheets: Sequence[Sheet] = (),
    table: Sequence[Variant] = (),
    keys: Sequence[Variant] = (),
    names: Names = MappingProxyType({}),
) -> Content:
    variants = {sheet.variant.code: sheet.variant for sheet in sheets}
    order = {code: at for at, code in enumerate(variants)}
    return {
        **said,
        "variants": _cut_alike([_variant(variant, options, address) for variant in variants.values()]),
        "sheets": [_entry(sheet, order) for sheet in sheets],
        "table": _table(table, names) if table else None,
        "keys": [_key(variant, names) for variant in keys],
        "tried": [],
    }


def _cut_alike(variants: list[Content]) -> list[Content]:
    """Each variant with the number of the one it is cut like: the longest of those that differ in numbers alone."""
    longest: dict[str, int] = {}
    kinds = [json.dumps([v["title"], v["about"], v["footnote"], v["rows"], v["figures"]]) for v in variants]
    lengths = [len(v["description"]) + len(v["link"]) / 1000 for v in variants]
    for at, kind in enumerate(kinds):
        if kind not in longest or lengths[at] > lengths[longest[kind]]:
            longest[kind] = at
    return [{**variant, "like": longest[kind]} for variant, kind in zip(variants, kinds, strict=True)]


def _names(sheets: Sequence[Sheet]) -> Names:
    """Who has which variant."""
    found: dict[str, list[Named]] = {}
    for sheet in sheets:
        if sheet.name:
            found.setdefault(sheet.variant.code, []).append(_named(sheet.name))
    return found


def _entry(sheet: Sheet, order: Mapping[str, int]) -> Content:
    return {"variant": order[sheet.variant.code], "name": _named(sheet.name) if sheet.name else None}


def _named(name: str) -> Named:
    language, region = language_of(name)
    return {"text": name, "lang": language, "region": region}


def _variant(variant: Variant, options: Options, address: str) -> Content:
    pieces = Pieces(variant.worksheet.notation)
    link = f"{address.rstrip('/')}/v/{variant.code}" if address else ""
    return {
        "code": variant.code,
        "link": link,
        "qr": _qr(link) if link else None,
        "title": variant.title,
        "about": variant.model.about,
        "card": variant.model.card,
        "description": variant.description,
        "task": _task(variant, pieces),
        "assumptions": variant.assumptions,
        "footnote": variant.footnote,
        "axes": variant.fields,
        **_rows(variant, pieces),
        "figures": []
        if options.figures == "none"
        else [_figure(figure, pieces) for figure in draw_figures(variant, variant.key)],
    }


def _rows(variant: Variant, pieces: Pieces) -> Content:
    rows = [_row(row, pieces) for row in variant.rows]
    return {"rows": rows, "letter-width": max((_width(row["letter"]) for row in rows), default=0)}


def _row(row: Row, pieces: Pieces) -> Content:
    return {"letter": pieces.symbols(row.letter), "name": row.name, "note": row.note, "axes": row.fields}


def _task(variant: Variant, pieces: Pieces) -> list[Piece]:
    """What is to be written; where letters are asked for, they are set as letters."""
    if variant.worksheet.answers != "letters":
        return [variant.task]
    return pieces.sentence(variant.task, frozenset(variant.notation.symbols.get(s, s) for s in variant.sizes) - {"a"})


def _width(letter: Sequence[Piece]) -> float:
    """How wide the letters of a sheet are at most, in em, so that all names begin at one line."""
    widths = (0.6 * len(p["code"]) if "code" in p else 0.9 * len(p["base"]) + 0.46 * len(p["below"])
              for p in letter if isinstance(p, dict))  # fmt: skip
    return sum(widths)


def _qr(link: str) -> str:
    import segno  # where a code is drawn, so that the app starts without it

    # One mask for all: the best of eight would take as long to find as the sheet to set, and is read no better.
    return str(segno.make(link, error="m", micro=False, mask=4).svg_inline(border=4, omitsize=True))


def _figure(figure: Figure, pieces: Pieces) -> Content:
    return {
        "title": figure.alt_text,
        "width": figure.width,
        "height": figure.height,
        "boxes": [_box(box, pieces) for box in figure.boxes],
        "edges": [_edge(edge) for edge in figure.edges],
        "arcs": [_arc(arc) for arc in figure.arcs],
    }


def _box(box: Box, pieces: Pieces) -> Content:
    letter = pieces.symbols(box.letter) if box.letter_fits else None
    if letter and box.transposed:
        letter = [*letter, {"base": "", "below": "", "above": "T"}]
    masked = box.masked_triangle if box.masked else None
    sides = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
    return {**sides, "hatched": box.hatched, "letter": letter, "masked": masked}


def _edge(edge: Edge) -> dict[str, float | str]:
    side = "bottom" if edge.side == "under" else edge.side
    return {"x": (edge.x1 + edge.x2) / 2, "y": (edge.y1 + edge.y2) / 2, "side": side}


def _arc(arc: Arc) -> dict[str, float]:
    """A quarter of a circle by its ends and the corner that it bends towards."""
    (x1, y1), (x2, y2) = arc.start, arc.end
    around_start = ((x2 - x1) * (y2 - y1) > 0) == arc.clockwise
    corner = (x2, y1) if around_start else (x1, y2)
    return {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "cx": corner[0], "cy": corner[1]}


def _key(variant: Variant, names: Names) -> Content:
    pieces = Pieces(variant.worksheet.notation)
    return {
        "code": variant.code,
        "title": variant.title,
        "axes": variant.fields,
        **_rows(variant, pieces),
        "names": names.get(variant.code, []),
        "sizes": given_sizes(variant),
        "answers": key_rows(variant),
    }


def _table(variants: Sequence[Variant], names: Names) -> Content:
    """One line a variant with nothing but its numbers, for marking by hand."""
    pieces = Pieces(variants[0].worksheet.notation)
    columns = [
        {"letter": pieces.symbols(row.letter) or [row.name], "axis": blank.field, "first": blank is row.blanks[0]}
        for row in variants[0].rows
        for blank in row.blanks
    ]
    lines = [
        {"code": v.code, "names": names.get(v.code, []), "numbers": [answer_text(v, blank) for blank in v.blanks]}
        for v in variants
    ]
    return {"columns": columns, "lines": lines}
