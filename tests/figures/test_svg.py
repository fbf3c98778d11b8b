"""A figure as SVG holds every text as it is written, whatever characters an author or a student has used."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from app.figures.geometry import Rect
from app.figures.sheet_figures import draw_figures
from app.figures.svg import figure_svg
from tests.helpers.shipped import LIBRARY

HOSTILE = """</text><script>"'&amp;\u00a0</script>"""


def test_texts_stand_in_svg_as_they_are_written() -> None:
    variant = LIBRARY.variant("llama-7b")
    *_, figure = draw_figures(variant, variant.problem.answers)
    edges = tuple(replace(edge, name=HOSTILE, label=HOSTILE, shown="label") for edge in figure.edges)
    boxes = tuple(replace(box, letter=HOSTILE, rect=Rect(0.0, 0.0, 9999.0, 99.0)) for box in figure.boxes)
    svg = ElementTree.fromstring(figure_svg(replace(figure, edges=edges, boxes=boxes, alt_text=HOSTILE)))  # noqa: S314
    written = ["".join(text.itertext()) for text in svg.findall("g/text")]
    letters = [text for text in written if text.removesuffix("T") == HOSTILE]
    assert svg.get("aria-label") == HOSTILE
    assert len(letters) >= len(boxes) + len(edges)  # each edge's name; a label may follow a letter
    assert {group.get("data-size") for group in svg.findall("g[@data-blank]")} == {HOSTILE}
    assert not svg.findall(".//script")
