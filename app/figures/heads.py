"""One head of a layer: it is pulled out of the matrices that hold all heads next to each other, and multiplied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.algebra.expression import Expression
from app.figures.geometry import Rect
from app.figures.parts import Box, Edge, EdgeSide, Pulled, Sketch
from app.figures.pen import Pen
from app.figures.scale import MatrixSizes
from app.figures.words import head_label
from app.shapes.consistency import DimensionMismatch
from app.shapes.operation import Matmul, Repeat
from app.shapes.table import Tensor, TensorTable
from app.topics.topic import FigurePlan

PULLED_PX = 30.0  # between a right operand and the matrix that its head is pulled out of
_HEAD = "/head"  # ends the key of a head that is drawn as a matrix of its own


def whole_of(key: str) -> str:
    """The key of the matrix that a head is pulled out of, or of a matrix itself."""
    return key.removesuffix(_HEAD)


def with_heads(pen: Pen, plan: FigurePlan, product: Matmul) -> tuple[Pen, FigurePlan]:
    """The pen and the plan for a product of single heads, each a matrix with a key of its own."""
    shapes, result = pen.shapes, plan.results[0]
    keys = (*product.operands, result)
    heads = {key: f"{key}{_HEAD}" for key in keys if shapes.heads(key)}
    left, right, made = (heads.get(key, key) for key in keys)
    pattern = "n h, m h -> n m" if product.is_transposed else "n m, m h -> n h"
    table = TensorTable(shapes.table.key, tuple(_with_heads(pen, heads, made, Matmul(f"{left} {right}", pattern))))
    lengths, compared, labels = dict(shapes.lengths), dict(shapes.compared), dict(pen.sides)
    for key, head in heads.items():
        (rows, _columns), (head_rows, head_columns) = shapes.table[key].sides, table[head].sides
        if rows in lengths:
            lengths[head_rows], compared[head_rows] = lengths[rows], compared[rows]
        labels |= {head_rows: pen.label(rows), head_columns: head_label(shapes, key)}
        if width := shapes.head_width(key):
            lengths[head_columns] = max(1, round(width))
            compared[head_columns] = int(width * shapes.variant.sizes["H"] * shapes.variant.sizes["G"])
    of_right = dict(zip(shapes.table[product.operands[1]].sides, table[right].sides, strict=True))
    differing = [
        replace(each, left=of_right.get(each.left, each.left), right=of_right.get(each.right, each.right))
        for each in shapes.mismatches
    ]
    inner = table[right].sides[-1], table[made].sides[-1]
    if made in heads.values() and compared.keys() >= {*inner} and compared[inner[0]] != compared[inner[1]]:
        differing.append(DimensionMismatch(made, *inner))
    of_heads = replace(
        shapes, table=table, lengths=lengths, compared=compared, mismatches=tuple(differing) * shapes.shows_mismatches
    )
    results = tuple(key for key in (left, made, *plan.results) if key != plan.left)
    return (
        replace(pen, shapes=of_heads, sizes=MatrixSizes(of_heads, pen.sizes.scale), sides=labels),
        replace(plan, results=tuple(dict.fromkeys(results))),
    )


def _with_heads(pen: Pen, heads: dict[str, str], made: str, product: Matmul) -> Iterator[Tensor]:
    for tensor in pen.shapes.table.tensors:
        if tensor.key not in heads:
            yield replace(tensor, made_by=product) if tensor.key == made else tensor
            continue
        symbol = next(symbol for symbol in ("H", "G") if symbol in tensor.columns.symbols)
        shape = (tensor.rows, tensor.columns / Expression.symbol(symbol))
        head = Tensor(heads[tensor.key], pen.shapes.head_letter(tensor.key), shape, tensor.role)
        if head.key == made:
            yield replace(head, made_by=product)
            yield replace(tensor, made_by=Repeat(made, "n e -> n (h e)"))
        else:
            yield tensor
            yield head


def with_wholes(pen: Pen, sketch: Sketch) -> Sketch:
    """The sketch of a product of heads with the matrices that they are pulled out of."""
    boxes, edges, pulled = list[Box](), list[Edge](), list[Pulled]()
    names = {edge.name for edge in sketch.edges}
    matrices = [box for box in sketch.boxes if not box.tensor.endswith(_HEAD)]
    wholes = {box.tensor: _with_last_head(pen, box) for box in matrices if pen.shapes.heads(box.tensor)}
    for box in sketch.boxes:
        key = whole_of(box.tensor)
        if key == box.tensor:
            boxes.append(wholes.get(key, box))
            continue
        boxes.append(replace(box, tensor=key))
        if key in wholes and wholes[key].rect.x < box.rect.x:
            pulled.append(pulled_out(wholes[key], box))
        elif key not in wholes:
            whole = _above(pen, box, key)
            boxes.append(whole)
            pulled.append(pulled_out(whole, box))
            side = pen.sides_of(key).columns
            at: EdgeSide = "right" if whole.transposed else "top"
            is_named = pen.label(side)[2] not in names
            edges.append(pen.edge(side, at, whole, letter=pen.outside_letter(whole), is_named=is_named))
    edges += (_of_whole(pen, edge) for edge in sketch.edges)
    return replace(sketch, boxes=tuple(boxes), edges=tuple(edges), pulled=tuple(pulled))


def _of_whole(pen: Pen, edge: Edge) -> Edge:
    if edge.blank is None or not edge.blank.tensor.endswith(_HEAD):
        return edge
    rows = pen.sides_of(whole_of(edge.blank.tensor)).rows
    return replace(edge, blank=rows if edge.blank.field == rows.field else None)


def _above(pen: Pen, head: Box, key: str) -> Box:
    width, height = pen.sizes.size(key)
    if head.transposed:
        width, height = height, width
    rect = Rect(head.rect.right - width, head.rect.y - PULLED_PX - height, width, height)
    return _with_last_head(pen, pen.with_inside(replace(head, tensor=key, letter=pen.shapes.letter(key), rect=rect)))


def _with_last_head(pen: Pen, whole: Box) -> Box:
    (x, y, width, height), heads = whole.rect, pen.shapes.heads(whole.tensor)
    if whole.transposed:
        return replace(whole, part=Rect(x, y + height - height / heads, width, height / heads))
    return replace(whole, part=Rect(x + width - width / heads, y, width / heads, height))


def pulled_out(whole: Box, head: Box) -> Pulled:
    """The band from a head's place in a matrix to the head itself, to the right or below."""
    assert whole.part is not None  # noqa: S101 - the head's place
    part, rect = whole.part, head.rect
    near, far = ((part.right, part.y), (part.right, part.bottom)), ((rect.x, rect.y), (rect.x, rect.bottom))
    if rect.x < whole.rect.right:
        near, far = ((part.x, part.bottom), (part.right, part.bottom)), ((rect.x, rect.y), (rect.right, rect.y))
    return Pulled((near[0], *far, near[1]), head.products)
