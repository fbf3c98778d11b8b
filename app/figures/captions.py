"""What a figure says beside its geometry: the label and colour of an edge, the alt text, the captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.algebra.number_text import format_number
from app.figures.figures import Box, EdgeKind
from app.figures.typed_shapes import TypedShapes
from app.shapes.consistency import DimensionMismatch
from app.shapes.table import MATRIX_FIELDS, Blank
from app.shapes.topics import FigurePlan


def edge_label(shapes: TypedShapes, blank: Blank) -> str:
    """The length of a side as a sheet writes it, "?" if it is not known."""
    length = shapes.lengths.get(blank)
    return "?" if length is None else format_number(length)


def edge_kind(shapes: TypedShapes, blank: Blank) -> EdgeKind:
    """What the colour of a side says: "unknown" without a length, "mismatch" if it does not fit an earlier side.

    Else it follows the number that was typed, not the box it was typed into: "tokens", "model" or "head" if it is one
    of these sizes (the first that it equals), or "other". So a 128 has the colour of the head dimension wherever it
    stands, right or wrong, and gives no answer away.
    """
    length = shapes.lengths.get(blank)
    if length is None:
        return "unknown"
    if any(mismatch.second[0] == blank for mismatch in shapes.mismatches):
        return "mismatch"
    architecture = shapes.variant.architecture
    # Where two of these are equal, the later entry decides.
    kinds: dict[int, EdgeKind] = {architecture.d_h: "head", architecture.d: "model", shapes.variant.tokens: "tokens"}
    return kinds.get(length, "other")


def alt_text(shapes: TypedShapes, plan: FigurePlan, boxes: Sequence[Box]) -> str:
    """The figure in words, for screen readers: its title, and each matrix with its two lengths.

    Example: 'Scores. Q 100 × 128, K 100 × ?, S 100 × 100, A ? × ?.' On a sheet whose tokens are columns, the lengths
    stand the other way round.
    """
    fields = [shapes.variant.in_table_orientation(Blank("", field)).field for field in MATRIX_FIELDS]
    sizes = {box.letter: [edge_label(shapes, Blank(box.tensor, field)) for field in fields] for box in boxes}
    matrices = ", ".join(f"{letter} {' × '.join(size)}" for letter, size in sizes.items())
    return f"{shapes.variant.wording.say('drawing-titles', plan.key)}. {matrices}."


def captions(shapes: TypedShapes, plan: FigurePlan) -> Iterator[str]:
    """The sentences below a figure: one for each mismatch in it, or, if there is none, what the figure shows."""
    sheet, wording = shapes.variant.worksheet, shapes.variant.wording
    mismatches = shapes.mismatches_in(plan.results)
    if not mismatches:
        section = sheet.topic if sheet.tokens_are == "rows" else "tokens-as-columns"
        yield str(wording.sections["captions"][section][plan.key])
    for mismatch in mismatches:
        yield _mismatch_caption(shapes, mismatch)


def _mismatch_caption(shapes: TypedShapes, mismatch: DimensionMismatch) -> str:
    """Which two lengths do not fit: '128 and 4096 do not meet: columns of Q, columns of K.'

    Matrices that are added have a sentence of their own. Fields are named as on the sheet.
    """
    say = shapes.variant.wording.say
    words = dict[str, str]()
    for name, (blank, length) in (("first", mismatch.first), ("second", mismatch.second)):
        words[name] = format_number(length)
        words[f"{name}_letter"] = shapes.letter(blank.tensor).replace("_", "")
        words[f"{name}_axis"] = say("axes", shapes.variant.in_table_orientation(blank).field)
    return say("drawing", "added" if mismatch.added else "mismatch", **words)
