"""The length in pixels of every length, and the size of every matrix, on a sheet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from app.figures.shapes import TypedShapes
from app.shapes.operation import Matmul
from app.shapes.table import Blank, Tensor
from app.sheets.variant import Variant
from app.topics.topic import FigurePlan

Size = tuple[float, float]  # width, height

MAX_SIDE_PX = 200.0  # the longest length on the sheet
MAX_GIVEN_PX = 100.0  # the same where a question gives matrices, which a flow later starts with
UNKNOWN_SIDE_PX = 34.0  # a length not typed yet
MIN_SIDE_PX = 7.0  # any length, so that it can be seen next to its coloured edge
MIN_SHORTENED_RATIO = 4  # how many times everything else the longest length must be to be shortened
MAX_FIGURE_PX = 520.0  # width of a figure, which is never shown smaller: the room next to a sheet on a laptop
MAX_LANE_PX = 318.0  # width of the matrices of a lane
DECK_STEP_PX, DECK_TEXTS_PX = 145.0, 65.0  # width of labels and signs: in a step from deck to deck, in a batch
UNKNOWN_DECK_PX = 24.0  # a deck's length that isn't typed yet


@dataclass(frozen=True)
class Scale:
    """How long a length is drawn: proportional to its square root, which keeps 128 visible next to 4096."""

    px_per_unit: float
    shortened: int | None = None

    @classmethod
    def fitting(cls, shapes: TypedShapes, plans: tuple[FigurePlan, ...]) -> Scale:
        """The largest scale on which no side exceeds MAX_SIDE_PX and no figure of `plans` exceeds its room."""
        if not shapes.given and not any(map(shapes.is_asked, shapes.lengths)):
            return cls(MIN_SIDE_PX)  # the scale of an empty drawing depends on no length
        lengths = {*_stated_lengths(shapes.variant).values(), *shapes.lengths.values()}
        has_logits = any("V" in tensor.columns.symbols for tensor in shapes.table.tensors)
        longest = max(lengths, default=1)
        longest_other = max(lengths - {longest}, default=1)
        far_longer = has_logits and longest > MIN_SHORTENED_RATIO * longest_other
        scale = cls(
            (MAX_GIVEN_PX if shapes.given else MAX_SIDE_PX) / math.sqrt(longest_other if far_longer else longest),
            longest if far_longer else None,
        )
        sizes = MatrixSizes(shapes, scale)
        shrunk = (sizes.content_room(plan) / max(sizes.content_width(plan), 1.0) for plan in plans)
        return replace(scale, px_per_unit=scale.px_per_unit * min(1.0, *shrunk, 1.0))

    def px(self, length: int | Fraction | None) -> float:
        """The pixels of a length: `px_per_unit` times its square root, and MIN_SIDE_PX at least."""
        if length is None:
            return UNKNOWN_SIDE_PX
        if length == self.shortened:
            return MAX_SIDE_PX
        return max(MIN_SIDE_PX, self.px_per_unit * math.sqrt(length))

    def lengthens(self, length: int | Fraction | None) -> bool:
        """Whether a length is drawn longer than to scale, so that it is visible."""
        return length is not None and self.px_per_unit * math.sqrt(length) < MIN_SIDE_PX


@dataclass(frozen=True)
class MatrixSizes:
    """The size in px of every matrix of a sheet, on one scale."""

    shapes: TypedShapes
    scale: Scale

    def _px(self, blank: Blank) -> float:
        return self.scale.px(self.shapes.lengths.get(blank))

    def size(self, tensor: str) -> Size:
        """The width (of the columns) and height (of the rows) of a matrix in px, or of a tensor's last two sides."""
        rows, columns = self.shapes.table[tensor].sides[-2:]
        return (self._px(columns), self._px(rows))

    def lengthens(self, tensor: str) -> bool:
        """Whether a side of a matrix is drawn longer than to scale."""
        return any(self.scale.lengthens(self.shapes.lengths.get(side)) for side in self.shapes.table[tensor].sides)

    def head_size(self, tensor: str) -> Size:
        """Width and height in px of one head of a matrix that holds several."""
        return (self.scale.px(self.shapes.head_width(tensor)), self._px(Blank(tensor, "rows")))

    def operand_above(self, result: str) -> Tensor | None:
        """The right operand of the product that makes a result, if it is one."""
        made_by = self.shapes.table[result].made_by
        return self.shapes.table[made_by.operands[1]] if isinstance(made_by, Matmul) else None

    def added_to(self, result: str) -> tuple[str, ...]:
        """The further operands of a result that isn't a product, which are drawn with a sign before each."""
        made_by = self.shapes.table[result].made_by
        return made_by.operands[1:] if made_by and made_by.sign and not isinstance(made_by, Matmul) else ()

    def is_drawn_transposed(self, result: str) -> bool:
        """Whether the right operand is drawn transposed, as Kᵀ in Q·Kᵀ: its columns are summed over."""
        made_by = self.shapes.table[result].made_by
        return made_by is not None and made_by.is_transposed

    def size_above(self, result: str) -> Size:
        """Width and height of the right operand as drawn above a result; (0, 0) without one."""
        operand = self.operand_above(result)
        if operand is None:
            return (0.0, 0.0)
        width, height = self.size(operand.key)
        return (height, width) if self.is_drawn_transposed(result) else (width, height)

    def size_needed(self, result: str) -> Size:
        """Width and height that a result would need to be added to the input; (0, 0) if it fits."""
        needed = {
            mismatch.right: mismatch.left
            for mismatch in self.shapes.mismatches
            if mismatch.added and mismatch.at == result
        }
        rows, columns = self.shapes.table[result].sides[-2:]
        if not needed.keys() & {rows, columns}:
            return (0.0, 0.0)
        return (self._px(needed.get(columns, columns)), self._px(needed.get(rows, rows)))

    def column_width(self, result: str) -> float:
        """The width of a result's column: the widest of the result, its right operand and its outline."""
        return max(self.size(result)[0], self.size_above(result)[0], self.size_needed(result)[0])

    def _deck_width(self, tensor: str) -> float:
        *behind, _rows, columns = self.shapes.table[tensor].sides
        lengths = self.shapes.lengths
        return sum(self.scale.px(lengths[s]) if s in lengths else UNKNOWN_DECK_PX for s in (columns, *behind))

    def content_width(self, plan: FigurePlan) -> float:
        """The width in px of a figure's matrices, without the space around and between them."""
        added = [key for result in plan.results for key in self.added_to(result)]
        if self.shapes.table.has_more_sides:
            return sum(map(self._deck_width, (*plan.tensors, *added)))
        if product := self.shapes.product_by_head(plan):
            of_heads = (product.operands[0], *product.operands[1:], plan.results[0])
            heads = sum(self.head_size(key)[0] for key in of_heads[::2] if self.shapes.heads(key))
            return heads + sum(map(self.column_width, plan.results)) + self.size(plan.left)[0]
        stated = _stated_lengths(self.shapes.variant)
        model, tokens = (self.scale.px(stated[symbol]) if symbol in stated else 0.0 for symbol in ("d", "N"))
        columns = sum(self.size(key)[0] for key in (plan.left, *added)) + sum(map(self.column_width, plan.results))
        return max(columns, 2.4 * model + 2 * tokens)  # the same at every step of filling in a head

    def content_room(self, plan: FigurePlan) -> float:
        """The room for a figure's matrices, without labels and space."""
        if not self.shapes.table.has_more_sides:
            return MAX_LANE_PX
        is_batched = len(self.shapes.table[plan.left].sides) > 2 and len(plan.results) > 1
        steps = len(plan.results) + sum(len(self.added_to(key)) for key in plan.results)
        return max(120.0, MAX_FIGURE_PX + 75 - DECK_STEP_PX * steps - DECK_TEXTS_PX * is_batched)


def _stated_lengths(variant: Variant) -> dict[str, int]:
    return {"N": variant.tokens, "d": variant.architecture.d}
