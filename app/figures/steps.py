"""Exhibits: what a sheet's own drawing shows step by step, each step with a sentence.

A product takes two steps: its operands meet, then the result appears. Where the inner sides differ, the first step
shows the mismatch, and there is no second one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.figures.parts import Figure
from app.figures.shapes import Answers, TypedShapes
from app.figures.sheet_figures import draw_figures, draw_product, product_plan
from app.figures.words import head_label
from app.shapes.operation import Matmul
from app.shapes.table import MATRIX_FIELDS, Blank, TensorTable, side_fields
from app.sheets.answers import Answer
from app.sheets.variant import Variant
from app.topics.decode_steps import DecodeStep, decode_steps
from app.topics.layer_heads import LayerHeads
from app.translation import gettext as _
from app.translation import ngettext

WORDS = ("The", "capital", "of", "France", "is")  # the first tokens of "One more token"
DECODER_WORDS = ("Die", "Hauptstadt", "von", "Frankreich", "ist")


@dataclass(frozen=True)
class ExhibitStep:
    """One step: the product or stage it belongs to, its sentence, a question, and what draws it."""

    part: str
    sentence: str
    figures: Callable[[], tuple[Figure, ...]] = tuple
    question: str = ""


def true_answers(variant: Variant) -> dict[Blank, Answer]:
    """The model's length of every side in a sheet's table, whether asked or not."""
    lengths = {side: tensor.expression(side.field) for tensor in variant.table.tensors for side in tensor.sides}
    if variant.architecture.d_v == variant.architecture.d_h:
        alike = {"d_v": Expression.symbol("d_h")}
        lengths = {side: length.substitute(alike) for side, length in lengths.items()}
    in_symbols = variant.worksheet.in_letters
    return {
        side: Answer(length.size(variant.sizes), length if in_symbols else None) for side, length in lengths.items()
    }


# Slide it together


@dataclass(frozen=True)
class Product:
    """One product of a table: result = left · right; by_head: heads side by side are multiplied one by one."""

    result: str
    left: str
    right: str
    is_transposed: bool
    by_head: bool

    def sides(self, table: TensorTable) -> tuple[Blank, Blank, Blank, Blank]:
        """The left operand's rows and columns as multiplied, then the right one's: the last two sides of each."""
        left, right = (
            [Blank(key, field) for field in side_fields(len(table[key].shape))[-2:]] for key in (self.left, self.right)
        )
        if self.is_transposed:
            right.reverse()
        return left[0], left[1], right[0], right[1]


def products_of(table: TensorTable) -> tuple[Product, ...]:
    """The products of a table in the order of computation."""
    products = list[Product]()
    for tensor in table.tensors:
        made_by = tensor.made_by
        if isinstance(made_by, Matmul) and made_by.is_plain:
            left, right = made_by.operands
            products.append(Product(tensor.key, left, right, made_by.is_transposed, made_by.is_by_head))
    return tuple(products)


def shown_products(variant: Variant) -> tuple[Product, ...]:
    """The products of a sheet that one of its figures draws."""
    return tuple(each for each in products_of(variant.table) if product_plan(variant, each.left, each.result))


def known_products(variant: Variant, answers: Answers) -> Iterator[Product]:
    """Yield the products whose operands' sides are all known from `answers`."""
    shapes = TypedShapes.of(variant, answers).with_facts()
    for product in shown_products(variant):
        if shapes.is_complete(product.left) and shapes.is_complete(product.right):
            yield product


def product_steps(variant: Variant, answers: Answers) -> Iterator[ExhibitStep]:
    """Yield the steps of each product whose operands are known from `answers`, in the order of computation."""
    shapes = TypedShapes.of(variant, answers).with_facts()
    known = {blank: Answer(length, shapes.meanings.get(blank)) for blank, length in shapes.lengths.items()}
    seen = set[str]()
    for product in known_products(variant, answers):
        drawn = _DrawnProduct(variant, product, known, frozenset(seen))
        yield drawn.met()
        if drawn.fits:
            yield drawn.appeared()
        seen |= {product.left, product.right, product.result}


@dataclass(frozen=True)
class _DrawnProduct:
    """One product with the sheet's known lengths; `seen` are the tensors of earlier products."""

    variant: Variant
    product: Product
    known: Mapping[Blank, Answer]
    seen: frozenset[str]

    @cached_property
    def operands(self) -> TypedShapes:
        return TypedShapes.of(self.variant, self._of(self.product.left, self.product.right))

    @cached_property
    def sides(self) -> tuple[Blank, Blank, Blank, Blank]:
        return self.product.sides(self.operands.table)

    @cached_property
    def fits(self) -> bool:
        """Whether the operands can be multiplied: all inner sides are equal, and so are the numbers of heads."""
        shapes, result = self.operands, self.product.result
        parts = [part for part in shapes.part_mismatches if part.result == result]
        differ = not self.product.by_head and shapes.differ(*self.sides[1:3])
        return not (differ or parts or shapes.mismatches_in((result,)))

    @property
    def _has_decks(self) -> bool:
        return len(self.operands.table[self.product.result].shape) > len(MATRIX_FIELDS)

    def met(self) -> ExhibitStep:
        sizes = _("{left} is {rows} × {columns}, {right} is {inner} × {right_columns}.")
        if self.product.is_transposed:
            sizes = _("{left} is {rows} × {columns}. {turned}, turned, is {right}: {inner} × {right_columns}.")
        verdict = _("Not all the sides that meet are equal: they can’t be multiplied.")
        if self.fits:
            verdict = _("The inner sides meet, {columns} = {inner}: they can be multiplied.")
        elif self._has_decks and not self.operands.differ(*self.sides[1:3]):
            verdict = _("The inner sides are equal, but the decks don’t match card for card: they can’t be multiplied.")
        question = self._say(_("What shape is {result}?")) if self.fits else ""
        sentence = " ".join(map(self._say, (sizes, verdict)))
        return ExhibitStep(self.product.result, sentence, partial(self._figures, {}), question)

    def appeared(self) -> ExhibitStep:
        outer = _("The inner sides are gone. The outer sides are the shape of {result}: {rows} × {right_columns}.")
        each = _("Each number in it is one row of {left} times one column of {right}: {columns} products, added up.")
        if self.operands.lengths[self.sides[1]] == 1:
            each = _("Each number in it is one number of {left} times one of {right}.")
        sentence = " ".join(map(self._say, (outer, each, *self._repeated())))
        return ExhibitStep(self.product.result, sentence, partial(self._figures, self._result()))

    def _repeated(self) -> Iterator[str]:
        if self.product.by_head:
            split = (self.product.left, self.product.result)
            heads = next(self.operands.heads_label(key) for key in split if self.operands.heads(key))
            yield _("Each of the {heads} heads has such a product of its own.").replace("{heads}", heads)
        elif self._has_decks:
            yield _("Each card of the deck has such a product of its own.")

    def _say(self, sentence: str) -> str:
        letters = {key: self.operands.letter(getattr(self.product, key)) for key in ("left", "right", "result")}
        letters |= {"turned": letters["right"], "right": letters["right"] + "ᵀ" * self.product.is_transposed}
        lengths = zip(("rows", "columns", "inner", "right_columns"), map(self._label, self.sides), strict=True)
        return sentence.format(**letters, **dict(lengths))

    def _label(self, side: Blank) -> str:
        if self.product.by_head and side.field == "columns" and self.operands.heads(side.tensor):
            return head_label(self.operands, side.tensor)[0]
        return self.operands.label(side)

    def _of(self, *tensors: str) -> dict[Blank, Answer]:
        return {blank: answer for blank, answer in self.known.items() if blank.tensor in tensors}

    def _result(self) -> dict[Blank, Answer]:
        # What follows from the operands, whatever was typed for the result.
        table, (rows, _inner, _inner_rows, columns) = self.operands.table, self.sides
        result = table[self.product.result]
        *leading, last_rows, last_columns = result.sides
        sides = dict(zip(leading, table[self.product.left].sides, strict=False))
        sides |= {last_rows: rows, last_columns: columns}
        if self.operands.heads(result.key) and self.product.by_head:
            del sides[last_columns]  # its heads are side by side again
        return self._of(result.key) | {side: self.known[operand] for side, operand in sides.items()}

    def _figures(self, result: Answers) -> tuple[Figure, ...]:
        """The product by itself and, if the sheet draws a flow, its place there."""
        product = self.product
        plan = product_plan(self.variant, product.left, product.result)
        assert plan is not None  # noqa: S101 - only products that a figure draws have steps
        alone = draw_product(self.variant, {**self._of(product.left, product.right), **result}, plan)
        if result:
            inner = self.sides[1:3]
            edges = (replace(edge, given=edge.given or edge.blank in inner) for edge in alone.edges)
            alone = replace(alone, edges=tuple(edges))
        known = self._of(product.left, product.right, *self.seen)
        whole = draw_figures(self.variant, {**known, **result})
        # A figure of few matrices would only repeat the product.
        flows = [
            each for each in whole if product.result in each.tensors and len(each.tensors) > 2 * len(alone.tensors)
        ]
        mapped = (_working_on(product.result, each, self.seen) for each in flows[-1:])
        # Captions and mismatches are below the product by itself.
        places = (replace(each, captions=(), mismatches=()) for each in mapped)
        return (_working_on(product.result, alone), *places)


def _working_on(product: str, figure: Figure, done: Collection[str] = ()) -> Figure:
    states = figure.states(product, done.__contains__)
    return replace(figure, flow=figure.flow and replace(figure.flow, states=states))


# Deal the heads


def heads_steps(variant: Variant) -> tuple[ExhibitStep, ...]:
    """The steps of a sheet on all heads in three dimensions."""
    heads, answers = LayerHeads(variant.sizes), true_answers(variant)
    figures = {figure.key: figure for figure in draw_figures(variant, answers)}

    def drawn(*keys: str) -> Callable[[], tuple[Figure, ...]]:
        return partial(tuple, [figures[key] for key in keys if key in figures])

    counts = {"H": heads.count("queries"), "G": heads.count("keys"), "share": heads.shared_by}
    keys = {"Q": "queries", "K": "keys", "V": "values", "S": "scores", "C": "context", "O": "output"}
    words = {name: variant.letters[key] for name, key in keys.items()}
    words |= {name: format_number(count) for name, count in counts.items()}
    words |= {"rows": format_number(variant.tokens), "columns": format_number(heads.deck("queries")[2])}
    words |= {"wide": format_number(heads.slab("queries")[1]), "asked": str(asked_head(heads))}
    split = _("{Q} is one matrix, {rows} × {wide}: {H} heads of {columns} side by side.")
    split += " " + _(
        "Split and transposed, it is a deck of {H} cards, one head each. {K} and {V} are decks of {G} cards."
    )
    deal = _("{H} query heads share {G} key/value heads, evenly and in order, counted from 0.")
    if heads.shared_by == 1:
        deal = _("Each of the {H} query heads has a key/value head of its own, counted from 0.")
    paired = _("Each query head has met the key head of its group, and each pair makes scores of its own.")
    paired += " " + _("So {S} has {H} cards, {rows} × {rows} each, however few key heads there are.")
    join = _("The weights of each query head times the values of its group are one card of {C}.")
    join += " " + _("Side by side, the {H} cards are one matrix again, which makes {O}.")
    fewer = _("With fewer key/value heads, {K} and {V} get narrower, and so does the cache. {Q}, {S} and {C} stay.")
    steps = (
        ExhibitStep("split", split, drawn("deck-queries", "deck-keys")),
        ExhibitStep("deal", deal, question=_("Which key head does query head {asked} read?")),
        ExhibitStep("pairs", paired, drawn("deck-scores")),
        ExhibitStep("join", join, drawn("deck-context", "deck-merged", "deck-output")),
        ExhibitStep("fewer", fewer),
    )
    texts = ((step.sentence.format(**words), step.question.format(**words)) for step in steps)
    return tuple(replace(step, sentence=said, question=asked) for step, (said, asked) in zip(steps, texts, strict=True))


def asked_head(heads: LayerHeads) -> int:
    """The query head that the step asks about: in the middle of the second group, if there is one."""
    return min(heads.count("queries") - 1, heads.shared_by + heads.shared_by // 2)


def dealt(heads: LayerHeads, key_head: int) -> str:
    """The reply to a chosen key head: whether the query head that was asked about reads it."""
    readers, asked = heads.readers_of(key_head), asked_head(heads)
    if asked in readers:
        sentence = ngettext(
            "Right: it has key head {key} to itself.", "Right: query heads {first} to {last} share it.", len(readers)
        )
    else:
        sentence = ngettext(
            "No: key head {key} is read by query head {first}.",
            "No: key head {key} is shared by query heads {first} to {last}.",
            len(readers),
        )
    return sentence.format(key=key_head, first=readers[0], last=readers[-1])


# One more token


@dataclass(frozen=True)
class TokenRow:
    """The row of a token: "kept" in the cache, "dropped" or "new", and which tokens up to itself it attends to."""

    label: str
    state: str
    scores: tuple[bool, ...]


def token_rows(step: DecodeStep) -> tuple[TokenRow, ...]:
    """The rows of a decode step's tokens; "⋯" stands for those between the first words and the new one."""
    words = WORDS if not step.architecture.encoder_decoder else DECODER_WORDS
    rows = [(word, index, index) for index, word in enumerate(words[: step.tokens])]
    if step.cached > len(words):
        rows.append(("⋯", len(words), step.cached - 1))
    if step.cached >= len(words):
        rows.append((format_number(step.tokens), step.cached, step.cached))
    window = step.keys if step.dropped else step.tokens

    def row(label: str, last: int) -> TokenRow:
        state = "new" if last == step.cached else "dropped" if last < step.dropped else "kept"
        return TokenRow(label, state, tuple(end > last - window for _label, _first, end in rows if end <= last))

    return tuple(row(label, last) for label, _first, last in rows)


def token_steps(variant: Variant) -> tuple[tuple[ExhibitStep, DecodeStep], ...]:
    """A step for each token of a decode-step sheet's exhibit, with its sizes and costs."""
    return tuple(
        (
            ExhibitStep(f"token-{step.tokens}", _token_sentence(variant, step), partial(_token_figures, variant, step)),
            step,
        )
        for step in decode_steps(variant.architecture, variant.tokens, len(WORDS))
    )


def _token_figures(variant: Variant, step: DecodeStep) -> tuple[Figure, ...]:
    model = replace(variant.model, architecture=step.architecture)
    sheet = replace(variant, model=model, tokens=step.cached)
    plan = product_plan(sheet, "queries", "scores")
    return (_working_on("scores", draw_product(sheet, true_answers(sheet), plan)),) if plan else ()


def _token_sentence(variant: Variant, step: DecodeStep) -> str:
    letters = {name: step.table[key].letter for name, key in (("K", "keys"), ("V", "values"), ("q", "queries"))}
    numbers = {name: format_number(getattr(step, name)) for name in ("cached", "tokens", "keys")}
    layers, all_layers = step.layers
    if layers:
        sentence = _(
            "In {layers} of the {all_layers} layers, the window of {keys} keys is full: token {tokens} pushes the "
            "oldest row out of {K} and {V}. The other layers keep all rows."
        )
    elif step.dropped:
        sentence = _(
            "The window of {keys} keys is full: each new token pushes the oldest row out of {K} and {V}, and again "
            "gets {keys} scores."
        )
    elif step.cached:
        sentence = ngettext(
            "{cached} row of {K} and {V} is cached. The new token adds a row to each, and has one query {q}: one row "
            "of {keys} scores.",
            "{cached} rows of {K} and {V} are cached. The new token adds a row to each, and has one query {q}: one row "
            "of {keys} scores.",
            step.cached,
        )
    else:
        sentence = _("Nothing is cached yet. The first token’s key and value are the first rows of {K} and {V}.")
    return sentence.format(**letters, **numbers, layers=layers, all_layers=all_layers)
