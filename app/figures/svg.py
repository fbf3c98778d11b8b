"""A figure as SVG.

It is written here rather than in a template: a class that types needs hundreds of drawings per second, with some eight
hundred numbers each, and Jinja takes ten times as long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from app.figures.geometry import Polygon, Rect
from app.figures.parts import HOOK_PX, Arc, Box, Edge, Figure, MismatchBracket, Sign

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"})


def figure_svg(figure: Figure) -> str:
    """The matrices of a figure with all their labels, without captions, as one SVG element."""
    return "".join(_elements(figure))


def _elements(figure: Figure) -> Iterator[str]:
    x, y, width, height = (f"{number:.1f}" for number in figure.frame)
    flow = figure.flow
    states = flow.states if flow else {}
    frames = (
        f' class="flow" data-frames="{json.dumps(flow.frames, sort_keys=True).translate(_ESCAPED)}"' if flow else ""
    )
    yield (
        f'<svg viewBox="{x} {y} {width} {height}" width="{width}" height="{height}" '
        f'role="img"{frames} aria-label="{figure.alt_text.translate(_ESCAPED)}">'
    )
    if flow:
        yield from (f'<rect class="lane" {_at(lane)} rx="4"/>' for lane in flow.lanes)
    for arc in figure.arcs:
        classes = "arc" + " mismatch" * arc.mismatch + " open" * arc.is_open
        yield f'<path class="{classes} {states.get(arc.products, "")}"{_product(arc.products)} d="{_arc_path(arc)}"/>'
    yield from (
        f'<path class="pulled"{_product(each.products)} d="{_areas([each.corners])}"/>' for each in figure.pulled
    )
    yield from (_matrix(each, states.get(each.products, "")) for each in figure.boxes)
    yield from (f'<rect class="needed" {_at(outline)}/>' for outline in figure.outlines)
    yield from (_sign(each, states.get(each.products, "")) for each in figure.signs)
    yield from (_edge(each, states.get(each.products, "")) for each in figure.edges)
    yield from (_bracket(each, states.get(each.products, "")) for each in figure.brackets)
    if flow:
        yield from (_axis(products, axis) for products, axis in flow.axis_labels)
    yield from (f'<path class="break" d="{_areas(box.gaps)}"/>' for box in figure.boxes if box.gaps)
    yield "</svg>"


def escaped(text: str) -> str:
    """A text with SVG's special characters replaced, for text and attributes."""
    return text.translate(_ESCAPED)


def _at(rect: Rect) -> str:
    x, y, width, height = rect
    return f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'


def _from(x: float, y: float) -> str:
    return f'x="{x:.1f}" y="{y:.1f}"'


def _areas(polygons: Iterable[Polygon]) -> str:
    return " ".join([f"{_line(polygon)} Z" for polygon in polygons])


def _lines(lines: Sequence[Polygon]) -> str:
    (x1, y1), (x2, y2) = lines[0]
    along = f"l{x2 - x1:.1f} {y2 - y1:.1f}"
    return " ".join([f"M{x:.1f} {y:.1f} {along}" for (x, y), _end in lines])


def _line(points: Iterable[tuple[float, float]]) -> str:
    return "M" + " L".join([f"{x:.1f} {y:.1f}" for x, y in points])


def _product(products: str) -> str:
    return f' data-product="{products}"' if products else ""


def _matrix(box: Box, state: str) -> str:
    classes, at = f"{box.role}{' open' * box.incomplete}{' whole' if box.part else ''}", _at(box.rect)
    cards = box.card_polygons if box.cards else ()
    parts = [
        f'<g class="matrix {classes} {state}" data-tensor="{box.tensor}"{_product(box.products)}>',
        f'<path class="cards" d="{_areas(cards)}"/>' if cards else "",
        f'<path class="groups" d="{_areas(cards[at] for at in box.odd_cards)}"/>' if box.odd_cards else "",
        f"<rect {at}/>",
        f'<path class="groups" d="{_areas(box.groups)}"/>' if box.groups else "",
        f'<rect class="part" {_at(box.part)}/>' if box.part else "",
        f'<path class="rules" d="{_lines(box.rules)}"/>' if box.strips not in (-1, 0, 1) else "",
        f'<rect class="over" fill="url(#hatch)" {at}/>' if box.hatched else "",
        f'<path class="over" fill="url(#mask)" d="{_areas(box.masked)}"/>' if box.masked else "",
        f'<text class="letter" {_from(*box.rect.centre)}>{svg_symbol(box.symbol)}</text>' if box.letter_fits else "",
        "</g>",
    ]
    return "".join(parts)


def _sign(sign: Sign, state: str) -> str:
    place, classes = _from(*sign.at), f'{state}"{_product(sign.products)}'
    words = (f'<text class="words {classes} {_from(sign.at.x, y)}>{escaped(line)}</text>' for y, line in sign.lines)
    return "".join((*words, f'<text class="sign {classes} {place}>{escaped(sign.text)}</text>'))


def _edge(edge: Edge, state: str) -> str:
    shows = f" shows-{edge.shown}" if edge.shown != "label" else ""
    classes = f"{edge.kind} {edge.anchor}{'' if edge.label else ' bare'}{shows}{' given' * edge.given} {state}"
    blank = f' data-blank="{edge.blank}"' if edge.blank else ""
    (x1, y1), (x2, y2) = edge.start, edge.end
    size = escaped(edge.label) or "?"
    return (
        f'<g class="edge {classes}"{_product(edge.products)}{blank} data-size="{size}">'
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        f"{_number(edge) if edge.shown in ('label', 'letter') else ''}{_name(edge)}</g>"
    )


def _number(edge: Edge) -> str:
    written = f'<tspan class="letter">{svg_symbol(edge.letter)}</tspan> ' if edge.letter else ""
    if edge.shown == "label":
        back = ' dy="6"' if edge.letter.endswith("ᵀ") else ' dy="-4"' if "_" in edge.letter else ""
        written += f"<tspan{back}>{svg_expression(edge.label)}</tspan>"
    return f"<text {_from(*edge.label_at)}>{written}</text>"


def _name(edge: Edge) -> str:
    return f'<text class="name" {_from(edge.label_at.x, edge.name_y)}>{escaped(edge.name)}</text>' if edge.name else ""


def _arc_path(arc: Arc) -> str:
    (x1, y1), (x2, y2) = arc.start, arc.end
    return f"M{x1:.1f} {y1:.1f} A{abs(x2 - x1):.1f} {abs(y2 - y1):.1f} 0 0 {int(arc.clockwise)} {x2:.1f} {y2:.1f}"


def _bracket(each: MismatchBracket, state: str) -> str:
    hook = (HOOK_PX * each.toward.x, HOOK_PX * each.toward.y)
    path = _line((each.start.moved(*hook), each.start, each.end, each.end.moved(*hook)))
    text = f"<text {_from(*each.label_at)}>{svg_expression(each.text)}</text>"
    return f'<g class="mismatched {state}"{_product(each.products)}><path d="{path}"/>{text}</g>'


def _axis(products: str, axis: Edge) -> str:
    text = f"<text {_from(*axis.label_at)}>{svg_expression(axis.label)}</text>"
    return f'<g class="edge here {axis.kind} {axis.anchor}" data-product="{products}">{text}{_name(axis)}</g>'


def svg_symbol(text: str) -> str:
    """One symbol for an SVG text: the h of 'd_h' as a lowered <tspan>, the ᵀ of 'K_8ᵀ' as a raised T."""
    base, _, below = text.removesuffix("ᵀ").partition("_")
    tail = f'<tspan class="sub" dy="4">{escaped(below)}</tspan>' if below else ""
    if text.endswith("ᵀ"):
        tail += f'<tspan class="sup" dy="{-10 if below else -6}">T</tspan>'
    return escaped(base) + tail


def svg_expression(text: str) -> str:
    """A number or a product of symbols for an SVG text: 'h·d_h' with italic symbols and the h lowered."""
    written, lowered = "", False
    for piece in filter(None, re.split(r"([A-Za-z]\w*)", text)):
        is_symbol = piece[0].isalpha()
        base, _, below = piece.partition("_") if is_symbol else (piece, "", "")
        attributes = (' class="symbol"' if is_symbol else "") + (' dy="-4"' if lowered else "")
        written += f"<tspan{attributes}>{escaped(base)}</tspan>" if attributes else escaped(piece)
        written += f'<tspan class="sub" dx="1.5" dy="4">{escaped(below)}</tspan>' if below else ""
        lowered = bool(below)
    return written
