"""Slide it together: a product as a gesture, from two separate matrices to the result, for any product of a table.

The right operand is above the place of the result and the left one comes from below. Where they meet at the corner, the
left one's inner side (its columns) swings up to the right one's (its rows). Equal sides close and disappear, and the
outer sides become the result's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from app.algebra.number_text import format_measured, format_number
from app.figures.exhibits.axes import true_lengths
from app.figures.exhibits.frames import Exhibit, Frame, FrameDrawing
from app.figures.exhibits.product_layout import TRAVEL_PX, ProductLayout
from app.figures.exhibits.products import Product, multiplied, slices
from app.figures.mask import is_causal, shared_limits
from app.figures.shapes import TypedShapes
from app.figures.words import mask_captions
from app.shapes.operation import Softmax
from app.shapes.table import Tensor
from app.translation import gettext as _
from app.translation import ngettext


class SlideStep(NamedTuple):
    """A frame without its number."""

    key: str
    sentence: str
    drawing: FrameDrawing
    asks: str = ""


def slide_exhibit(shapes: TypedShapes, product: Product) -> Exhibit:
    """The frames of a product whose four lengths are known; UnmultipliableError unless they give a single head."""
    product_frames = _ProductFrames(multiplied(shapes, product), product, *slices(shapes, product))
    frames = tuple(Frame(number, *step) for number, step in enumerate(product_frames.steps(), 1))
    return Exhibit("slide", _("Slide it together"), product_frames.about, frames)


@dataclass(frozen=True)
class _ProductFrames:
    """The sentences of one product, each with its drawing; for the slices see `slices`."""

    shapes: TypedShapes
    product: Product
    slice_name: str
    slices: int

    @cached_property
    def layout(self) -> ProductLayout:
        return ProductLayout(self.shapes, self.product)

    @property
    def about(self) -> str:
        """The product in letters, the model's name and, on a sheet in numbers, the number of tokens."""
        sentence = _("{result} = {left} · {right} in {model}, with {tokens} tokens.")
        variant = self.shapes.variant
        if self.layout.in_letters:
            sentence = _("{result} = {left} · {right} in {model}.")
        about = sentence.format(**self.layout.letters, model=variant.model.name, tokens=format_number(variant.tokens))
        more = {
            "": "",
            "head": _("This is one of {count} heads: each has such a product of its own."),
            "text": _("This is one of {count} texts in the batch: each has such a product of its own."),
            "head of a text": _("This is one head of one text: there are {count} such products."),
        }[self.slice_name]
        return f"{about} {more}".strip().format(count=format_number(self.slices))

    def steps(self) -> Iterator[SlideStep]:
        """Yield every frame in order: "apart" first, and "bounce" last if the inner sides differ."""
        layout = self.layout
        label = _("Move {left} up to {right}").format(**layout.letters)
        moving = layout.left("apart", {"moves": f"{-TRAVEL_PX:g}", "label": label})
        apart = _("{left} is {rows} × {columns}, {right} is {inner} × {right_columns}. Move {left} up to {right}.")
        yield SlideStep("apart", self._say(apart), layout.drawing(layout.right("apart"), moving))
        if not layout.fits:
            drawing = layout.drawing(layout.right("met"), layout.left("bounced"), *layout.swung(), layout.overhang())
            yield SlideStep("bounce", self._overhang_sentence(), drawing)
            return
        meet = _("{columns} meets {inner}: the inner sides are equal, so {left} and {right} can be multiplied.")
        drawing = layout.drawing(layout.right("met"), layout.left("met"), *layout.swung(), layout.equal_label())
        yield SlideStep("meet", self._say(meet), drawing)
        left = _("The inner sides disappear. The outer sides become those of {result}: {rows} × {right_columns}.")
        yield SlideStep("result", self._say(left), self._with_result())
        yield from self._cell_steps()
        yield from self._softmax_steps()

    def _say(self, sentence: str, **more: object) -> str:
        names = ("rows", "columns", "inner", "right_columns")
        lengths = {name: axis.text for name, axis in zip(names, self.layout.axes, strict=True)}
        return sentence.format(**{**self.layout.letters, **lengths, **more})

    def _overhang_sentence(self) -> str:
        if self.layout.in_letters:
            different = _(
                "The inner sides are {left}’s columns, {columns}, and {right}’s rows, {inner}: they are not the same. "
                "{left} bounces off."
            )
            return self._say(different)
        sentence = _(
            "The inner sides are {left}’s columns, {columns}, and {right}’s rows, {inner}: {overhang} left over. "
            "{left} bounces off."
        )
        columns, rows = self.layout.axes[1].length, self.layout.axes[2].length
        return self._say(sentence, overhang=format_number(abs(columns - rows)))

    def _with_result(self, how: str = "", letter: str | None = None) -> FrameDrawing:
        layout = self.layout
        operands = (layout.right("pencil"), layout.left("pencil"))
        return layout.drawing(*operands, layout.result(how, letter), *layout.outer_sides())

    # One cell

    def _cell_steps(self) -> Iterator[SlideStep]:
        layout = self.layout
        axes = (layout.rows, layout.columns)
        row, column = (axis.spoken_name(at) for axis, at in zip(axes, layout.cell, strict=True))
        data = {
            "cells": f"{len(layout.rows.cell_names)} {len(layout.columns.cell_names)}",
            "asked": "{} {}".format(*layout.cell),
            "rows": "|".join(map(layout.rows.spoken_name, range(len(layout.rows.cell_names)))),
            "columns": "|".join(map(layout.columns.spoken_name, range(len(layout.columns.cell_names)))),
            "name": _("row %(row)s, column %(column)s"),
            "wrong": self._wrong_cell(),
        }
        operands = (layout.right("pencil"), layout.left("pencil"))
        empty = layout.result("empty", "", data)
        result = _("Each cell of {result} belongs to one row of {left} and one column of {right}.")
        drawing = layout.drawing(*operands, empty, *layout.outer_sides())
        yield SlideStep("ask", self._say(result), drawing, self._question(row, column))
        filled = ngettext(
            "From {named_row} and {named_column}: {columns} product makes one number.",
            "From {named_row} and {named_column}: {columns} products, added up, make one number.",
            layout.axes[1].length,
        )
        filled = self._say(filled, **self._named(row, column))
        operands = (layout.right("pencil", letter=""), layout.left("pencil", letter=""))
        drawing = layout.drawing(*operands, layout.result("empty", ""), *layout.strips(), *layout.outer_sides())
        yield SlideStep("cell", filled, drawing)
        every = _("Every row meets every column: {result} has {rows} · {right_columns} = {cells} numbers.")
        if layout.in_letters:
            every = _("Every row meets every column: {result} has {rows} · {right_columns} numbers.")
        cells = format_number(layout.rows.length * layout.columns.length)
        yield SlideStep("all", self._say(every, cells=cells), self._with_result("full"))

    @property
    def _weights(self) -> Tensor | None:
        return self.shapes.table.by_key.get("weights") if self.layout.product.result == "scores" else None

    def _question(self, row: str, column: str) -> str:
        if self._asks_words:
            return _("In which cell does {row} ask {column}?").format(row=row, column=column)
        named = self.layout.rows.kind == "tokens" and not row.isdecimal() and column.isdecimal()
        if self._weights is None and named:
            return _("Which cell holds entry {column} of the vector for {row}?").format(row=row, column=column)
        return self._say(_("Which cell comes from {named_row} and {named_column}?"), **self._named(row, column))

    def _named(self, row: str, column: str) -> Mapping[str, str]:
        of_row = _("row {row} of {left}") if row.isdecimal() else _("the row of {left} for {row}")
        named = column.isdecimal()
        of_column = _("column {column} of {right}") if named else _("the column of {right} for {column}")
        return {"named_row": self._say(of_row, row=row), "named_column": self._say(of_column, column=column)}

    @property
    def _asks_words(self) -> bool:
        axes = zip((self.layout.rows, self.layout.columns), self.layout.cell, strict=True)
        return self._weights is not None and not any(axis.cell_names[cell].isdecimal() for axis, cell in axes)

    def _wrong_cell(self) -> str:
        if self._asks_words:
            return _("There %(row)s asks %(column)s. Rows ask, columns are asked.")
        return _("That is row %(row)s, column %(column)s.")

    # From scores to weights

    def _softmax_steps(self) -> Iterator[SlideStep]:
        weights = self._weights
        if weights is None or not self._is_as_square_as_in_the_model():
            return
        if scale := self._scale_sentence():
            yield SlideStep("scale", scale, self._with_result("full"))
        if self._hides_any():
            yield SlideStep("mask", self._mask_sentence(), self._masked("−∞", None, "masked"))
        letter = f"{self.shapes.letter(weights.key)}{'_1' if self.product.sliced else ''}"
        row = self.layout.rows.spoken_name(self.layout.cell[0])
        row = _("token {number}").format(number=row) if row.isdecimal() else row
        sentence = self._say(self._softmax_sentence(), row=row, weights=letter)
        yield SlideStep("softmax", sentence, self._masked("0", letter, "sums"))

    def _softmax_sentence(self) -> str:
        if self.layout.has_sink:
            return _(
                "Softmax, row by row: the weights that {row} gives to the tokens it attends to and the attention "
                "sink’s share add up to 1. The sink’s share is dropped. The result is {weights}, each row of which "
                "adds up to less than 1."
            )
        return _(
            "Softmax, row by row: the weights that {row} gives to the tokens it attends to add up to 1. "
            "The result is {weights}."
        )

    def _is_as_square_as_in_the_model(self) -> bool:
        truth = true_lengths(self.shapes)
        rows, columns = (self.layout.product.blanks[at] for at in (0, 3))
        return truth[rows] != truth[columns] or self.layout.rows.length == self.layout.columns.length

    def _scale_sentence(self) -> str:
        architecture = self.shapes.variant.architecture
        d_h, symbol = self.shapes.variant.sizes["d_h"], self.shapes.variant.notation.symbol("d_h")
        scale = architecture.score_scale
        divided = _("Each score is divided by √{symbol}.")
        if self.layout.axes[1].length == d_h and not self.layout.in_letters:
            divided = _("Each score is divided by √{symbol} = √{d_h} {root}, so that scores don’t grow with {symbol}.")
        sentence = {
            "inverse-sqrt": divided,
            "yarn": f"{divided} {_('YaRN, for long inputs, also multiplies it by {number}.')}",
            "root": _("Each score is divided by √{number}."),
            "stated": _("Each score is multiplied by {factor}, as the config of this model says."),
            "none": "",
        }[scale.kind]
        numbers = {"factor": f"{scale.factor:.4g}", "number": f"{scale.number:.4g}"}
        sentences = [sentence.format(symbol=symbol, d_h=d_h, root=_root(d_h), **numbers)] if sentence else []
        if architecture.score_softcap:
            sentences.append(
                _("A tanh keeps it between −{cap} and {cap}.").format(cap=f"{architecture.score_softcap:g}")
            )
        softmax = self.shapes.variant.table["weights"].made_by
        if isinstance(softmax, Softmax) and softmax.position_bias:
            sentences.append(_("A bias for the distance between the two tokens is added."))
        return " ".join((*sentences, _("The shape stays the same."))) if sentences else ""

    def _is_hidden(self, row: int, column: int) -> bool:
        reach, chunk = shared_limits(self.shapes)
        too_far = reach is not None and abs(row - column) >= reach
        return (is_causal(self.shapes) and column > row) or too_far or bool(chunk and row // chunk != column // chunk)

    def _hides_any(self) -> bool:
        rows, columns = len(self.layout.rows.names), len(self.layout.columns.names)
        return any(self._is_hidden(row, column) for row in range(rows) for column in range(columns))

    def _mask_sentence(self) -> str:
        if is_causal(self.shapes):
            sentence = _("A token can’t attend to later ones, so their scores are set to −∞.")
        else:
            sentence = _("A token can’t attend to ones too far away, so their scores are set to −∞.")
        further = {
            "window": _("A sliding window also hides tokens too far back."),
            "chunk": _("Tokens of other chunks are hidden too."),
            "some-layers": _("In some layers, distant tokens are hidden too."),
        }
        rows = self.shapes.table["weights"].rows.size(self.shapes.variant.sizes)
        return " ".join((sentence, *(further[key] for key in mask_captions(self.shapes, rows) if key in further)))

    def _masked(self, text: str, letter: str | None, how: str) -> FrameDrawing:
        layout = self.layout
        parts = (layout.right("pencil"), layout.left("pencil"), layout.result(how, letter))
        return layout.drawing(*parts, layout.hidden(self._is_hidden, text), *layout.outer_sides())


def _root(number: int) -> str:
    root = math.isqrt(number)
    return f"= {root}" if root * root == number else f"≈ {format_measured(math.sqrt(number))}"
