"""/see/slide: any product of a topic, from two matrices apart to their result; /see/slide/embed for other sites."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from secrets import token_hex

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.algebra.number_text import format_number
from app.classes import sheet_actions
from app.figures.exhibits.axes import true_lengths
from app.figures.exhibits.frames import Exhibit
from app.figures.exhibits.products import (
    Product,
    UnmultipliableError,
    has_every_side,
    multiplied,
    products_of,
    products_on,
)
from app.figures.exhibits.slide import slide_exhibit
from app.figures.shapes import TypedShapes
from app.shapes.table import MATRIX_FIELDS, Blank
from app.sheets.formulas import write_formula
from app.sheets.library import Library
from app.sheets.reading import MAX_BOX_TEXT, Answer
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet, WorksheetError
from app.topics.registry import topic_for
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _
from app.web.exhibits.exhibit import (
    exhibit_page,
    render_exhibit,
    requested_sheet,
    worksheet_of_topic,
)
from app.web.shared.forms import whole_number
from app.web.shared.permissions import LARGEST_ID, require_practice
from app.web.shared.services import ServicesDep
from app.web.shared.sheet_address import library_for, sheet_link
from app.web.shared.urls import url_for
from app.web.sheet_in_practice import PostedPracticeSheet

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])
SLIDE_TOPIC, SLIDE_PRODUCT = SINGLE_HEAD.key, "scores"


@dataclass(frozen=True)
class SlideChoice:
    """One topic or product in a menu: 'One head', 'S = Q · Kᵀ'."""

    key: str
    text: str
    chosen: bool


@dataclass(frozen=True)
class TakeOver:
    """The form that puts a result into its boxes on the sheet: its button's text, address and hidden fields."""

    text: str
    address: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class InnerSide:
    """An inner side of the product, to be given another length: the box's name, its label and its current length."""

    box: str
    label: str
    text: str


@dataclass(frozen=True)
class BreakForm:
    """The form that shows the product with other inner sides: its two `sides`, and its hidden `fields` by name."""

    sides: tuple[InnerSide, ...]
    fields: Mapping[str, str]


@router.post("/see/slide/take")
def take_product(request: Request, context: PostedPracticeSheet) -> Response:
    """Save the posted boxes of a result on this browser's practice sheet, and redirect (303) to that sheet."""
    outcome, context = context.done(sheet_actions.save)
    response = RedirectResponse(sheet_link(context.variant), 303)
    context.remember(request, response, outcome)
    return response


@router.get("/see/slide")
@router.get("/see/slide/embed", name="show_embedded_slide")
def show_slide(request: Request, services: ServicesDep) -> Response:
    """The exhibit for the address's topic or worksheet, product, model, number of tokens and step."""
    wanted = request.query_params
    library = library_for(request, services, wanted.get("worksheet", ""))
    worksheet, problem = _worksheet(
        library, wanted.get("worksheet", ""), wanted.get("topic", ""), typed="typed" in wanted
    )
    if wanted.get("rows"):
        worksheet = _as_in_class(library, worksheet, wanted)
        library = replace(library, worksheets={**library.worksheets, worksheet.key: worksheet})
    requested = requested_sheet(request, services, worksheet, library).refused(problem)
    slide = _Slide(worksheet, requested.variant, wanted) if requested.variant else None
    query = slide.query if slide else {"topic": worksheet.topic}
    if slide:
        requested = requested.but(slide.problem, 200 if slide.is_known else 404)
    exhibit = slide.exhibit if slide else None
    page = exhibit_page(request, services, requested, exhibit, _("Slide it together"), "show_slide", query)
    page |= {
        "topics": _topics(library, worksheet.topic),
        "topic": worksheet.topic,
        "products": slide.choices if slide else (),
        "back": slide.back if slide else "",
        "take": _take_over(slide) if slide else None,
        "breaks": _break_form(slide) if slide else None,
    }
    return render_exhibit("exhibits/slide.html", page)


def _worksheet(library: Library, key: str, topic: str, *, typed: bool) -> tuple[Worksheet, str]:
    worksheet = None
    with suppress(WorksheetError):
        worksheet = library.worksheet(key)
    if worksheet and (worksheet.answers == "numbers" or typed):
        return worksheet, ""
    topic = worksheet.topic if worksheet else topic
    of_topic = worksheet_of_topic(library, topic or SLIDE_TOPIC)
    if of_topic and (topic or not key):
        return of_topic, ""
    first = worksheet_of_topic(library, SLIDE_TOPIC)
    assert first is not None  # noqa: S101 - the library has a sheet on a single head
    kind = _("There is no topic “{key}”: choose one from the list.")
    kind = kind if topic else _("There is no worksheet “{key}”: choose a topic from the list.")
    return first, kind.format(key=(topic or key)[:60])


def _as_in_class(library: Library, worksheet: Worksheet, wanted: Mapping[str, str]) -> Worksheet:
    named = library.wording.topics[worksheet.topic].rows
    rows = tuple(row for row in dict.fromkeys(wanted["rows"].split(",")) if row in named)
    return replace(worksheet, rows=rows or worksheet.rows, kv_head_per_query_head="simplified" in wanted)


def _topics(library: Library, chosen: str) -> tuple[SlideChoice, ...]:
    return tuple(
        SlideChoice(topic, library.wording.topics[topic].name, topic == chosen)
        for topic in library.topics
        if topic == chosen or _has_products(library, topic)
    )


def _has_products(library: Library, topic: str) -> bool:
    worksheet = worksheet_of_topic(library, topic)
    if worksheet is None:
        return False
    table = topic_for(topic, library.models[worksheet.model].architecture, worksheet.tokens)
    return bool(products_of(table))


@dataclass(frozen=True)
class _Slide:
    """One sheet's part of the page: a product of its table, with the model's own lengths or typed ones."""

    worksheet: Worksheet
    variant: Variant
    wanted: Mapping[str, str]  # the query

    @property
    def is_typed(self) -> bool:
        """Whether the lengths come from the sheet's boxes in the address."""
        return "typed" in self.wanted

    @cached_property
    def products(self) -> tuple[Product, ...]:
        return products_of(self.variant.table)

    @property
    def is_broken(self) -> bool:
        """Whether the lengths were typed on this page, to see what happens to the product."""
        return self.is_typed and "broken" in self.wanted

    @property
    def is_known(self) -> bool:
        """Whether the topic has the product in the address, if any."""
        return not self.wanted.get("product") or self.product is not None

    @cached_property
    def product(self) -> Product | None:
        """The topic's product whose result is the address's `product`, or None."""
        by_result = {product.result: product for product in self.products}
        requested = self.wanted.get("product", "")
        keys = [requested] if requested else [SLIDE_PRODUCT, *by_result]
        return next((by_result[key] for key in keys if key in by_result), None)

    @cached_property
    def typed(self) -> Mapping[str, str]:
        """The texts of the sheet's boxes in the address, by name, each cut to MAX_BOX_TEXT characters."""
        names = self.variant.blanks_by_name if self.is_typed else ()
        return {name: self.wanted[name][:MAX_BOX_TEXT] for name in names if self.wanted.get(name)}

    @cached_property
    def shapes(self) -> TypedShapes:
        """The sheet with its known lengths: typed ones if the address says `typed`, otherwise the model's true ones."""
        if not self.is_typed:
            shapes = TypedShapes.of(self.variant, {})
            return replace(shapes, lengths=true_lengths(shapes))
        return TypedShapes.of(self.variant, self._read).with_facts()

    @cached_property
    def _read(self) -> Mapping[Blank, Answer]:
        blanks = self.variant.blanks_by_name
        read = {blank: self.variant.read(blank, self.typed.get(box, "")) for box, blank in blanks.items()}
        return {blank: answer for blank, answer in read.items() if isinstance(answer, Answer)}

    @cached_property
    def exhibit(self) -> Exhibit | None:
        """The frames; None without a product, or if one of its sides is unknown or can't be split into heads."""
        if self.product is None or not has_every_side(self.shapes, self.product):
            return None
        return slide_exhibit(self.shapes, self.product)

    @cached_property
    def multiplied_shapes(self) -> TypedShapes | None:
        """The shapes of the multiplied matrices: the sheet's, or one head's if the product is sliced by heads."""
        try:
            return multiplied(self.shapes, self.product) if self.product else None
        except UnmultipliableError:
            return None

    @property
    def problem(self) -> str:
        """Why there is no exhibit, and what to do, as a sentence; "" if there is one."""
        if self.exhibit:
            return ""
        if not self.products:
            return _("This topic has no product of two matrices: choose another one.")
        if self.product is None:
            sentence = _("There is no product “{key}” in this topic: choose one from the list.")
            return sentence.format(key=self.wanted["product"][:60])
        try:
            multiplied(self.shapes, self.product)
        except UnmultipliableError as error:
            return str(error)
        letters = [self.variant.letters[row] for row in self._rows_to_fill_in]
        if not letters:
            return _("Your sheet does not ask for every side of this product: choose another one.")
        first, *more = letters
        sentence = _("Fill in the boxes of {first} on your sheet first: without them there is nothing to multiply.")
        if more:
            sentence = _("Fill in the boxes of {first} and {second} on your sheet first: a side is missing.")
        return sentence.format(first=first, second=more[0] if more else "")

    @cached_property
    def _rows_to_fill_in(self) -> list[str]:
        key, variant = self.variant.problem.answers, self.variant
        empty = [blank for blank in variant.blanks if blank not in self._read]
        if not self._is_known_from(key):
            return []
        rows = list(dict.fromkeys(blank.tensor for blank in empty))
        others = {row: [blank for blank in key if blank.tensor != row or blank not in empty] for row in rows}
        needed = [row for row in rows if not self._is_known_from({blank: key[blank] for blank in others[row]})]
        return needed or rows

    def _is_known_from(self, answers: Mapping[Blank, int]) -> bool:
        shapes = TypedShapes.of(self.variant, answers, shows_mismatches=False).with_facts()
        return self.product is not None and has_every_side(shapes, self.product)

    @property
    def query(self) -> dict[str, str]:
        """The query of the exhibit's steps, without the step."""
        query = {"topic": self.worksheet.topic}
        if self.is_typed or "worksheet" in self.wanted:
            query = {"worksheet": self.worksheet.key}
        if self.product:
            query["product"] = self.product.result
        passed_on = ("typed", "broken", "decoded", "activity", "number", "rows", "simplified")
        more = {name: self.wanted[name] for name in passed_on if name in self.wanted}
        return {**query, "model": self.variant.model.key, "tokens": str(self.variant.tokens), **more, **self.typed}

    @property
    def choices(self) -> tuple[SlideChoice, ...]:
        """The menu of products, with the chosen one marked: the topic's or, with typed lengths, those on the sheet."""
        variant, choices = self.variant, list[SlideChoice]()
        for each in products_on(variant) if self.is_typed else self.products:
            text = f"{variant.letters[each.result]} = {write_formula(variant, each.result)}"
            choices.append(SlideChoice(each.result, text, each == self.product))
        return tuple(choices)

    @property
    def back(self) -> str:
        """The address of the student's sheet, in a class if the address names one, otherwise in practice."""
        if not self.is_typed or self.is_broken:
            return ""
        if self.class_sheet:
            return url_for("show_class_sheet", **self.class_sheet)
        return sheet_link(self.variant)

    @property
    def class_sheet(self) -> Mapping[str, int]:
        """The ids of the class's sheet that the address leads back to, for `url_for`; {} for practice."""
        activity, number = (whole_number(self.wanted.get(name, ""), LARGEST_ID) for name in ("activity", "number"))
        return {} if activity is None or number is None else {"activity_id": activity, "number": number}


def _take_over(slide: _Slide) -> TakeOver | None:
    boxes = _result_boxes(slide)
    if not boxes or not boxes.keys() <= slide.variant.blanks_by_name.keys():
        return None
    tab = token_hex(8)  # as if another tab had edited these boxes
    if slide.class_sheet:
        address, fields = url_for("take_class_product", **slide.class_sheet), dict[str, str]()
    else:
        address = url_for("take_product")
        fields = {"decoded": slide.wanted["decoded"]} if "decoded" in slide.wanted else {}
        fields |= {"worksheet": slide.worksheet.key, "model": slide.variant.model.key}
        fields["tokens"] = str(slide.variant.tokens)
    fields["edits"] = " ".join(f"{box}:{tab}:{number}" for number, box in enumerate(boxes, 1))
    fields |= boxes
    result = next(iter(boxes)).partition(".")[0]
    text = _("Put {shape} into the boxes of {result}")
    shape = " × ".join(format_number(int(box)) if box.isdecimal() else box for box in boxes.values())
    return TakeOver(text.format(result=slide.variant.letters[result], shape=shape), address, fields)


def _break_form(slide: _Slide) -> BreakForm | None:
    product, variant = slide.product, slide.variant
    if product is None or slide.is_typed != slide.is_broken:
        return None
    boxes = {blank: box for box, blank in variant.blanks_by_name.items()}
    if not boxes.keys() >= {*product.blanks}:
        return None
    texts = {boxes[blank]: slide.typed.get(boxes[blank], str(variant.answer(blank))) for blank in product.blanks}
    _rows, *inner, _columns = product.blanks
    sides = tuple(
        InnerSide(boxes[blank], f"{variant.letters[blank.tensor]}: {variant.axis(blank)}", texts[boxes[blank]])
        for blank in inner
    )
    fields = {name: text for name, text in slide.query.items() if name not in texts and name != "topic"}
    outer = {box: text for box, text in texts.items() if box not in {side.box for side in sides}}
    return BreakForm(sides, {**fields, "worksheet": slide.worksheet.key, "typed": "1", "broken": "1", **outer})


def _result_boxes(slide: _Slide) -> dict[str, str]:
    product, shapes, table = slide.product, slide.multiplied_shapes, slide.variant.table
    if slide.is_broken:
        return {}
    fits = slide.exhibit is not None and slide.exhibit.frames[-1].key != "bounce"
    if not (fits and slide.is_typed and product and shapes):
        return {}
    result = table[product.result]
    if product.sliced and len(result.shape) == len(MATRIX_FIELDS) and {"H", "G"} & result.columns.symbols:
        return {}  # several heads side by side, while the product is one head's
    rows, _inner, _inner_rows, columns = product.blanks
    *leading, _rows, _columns = table[product.left].sides
    sides = [*((slide.shapes, blank) for blank in leading), (shapes, rows), (shapes, columns)]
    in_letters = slide.worksheet.answers == "letters"
    texts = [known.label(blank) if in_letters else str(known.lengths.get(blank, "")) for known, blank in sides]
    names = [str(side) for side in result.sides]  # boxes are named after the sides that a matrix has on the sheet
    return dict(zip(names, texts, strict=True)) if all(texts) else {}
