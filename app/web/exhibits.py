"""/see: the exhibits, shown step by step, with or without script, and in other sites' pages under …/embed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from markupsafe import Markup

from app.algebra.number_text import format_number
from app.exchange.imported_models import library_with_model
from app.figures.kept_head import kept_head
from app.figures.steps import (
    ExhibitStep,
    Product,
    dealt,
    heads_steps,
    product_steps,
    products_of,
    shown_products,
    token_rows,
    token_steps,
    true_answers,
)
from app.models.architecture import TokensError
from app.refusal import Refusal
from app.sheets import prose
from app.sheets.answers import MAX_BOX_TEXT, Answer
from app.sheets.library import Library
from app.sheets.prose import formula_pieces
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet, WorksheetError
from app.topics.decode_step import DECODE_STEP
from app.topics.layer_heads import CACHE_OF_ALL_LAYERS, SEVERAL_HEADS, LayerHeads, cache_bytes, possible_kv_heads
from app.topics.registry import topic_for
from app.topics.requirements import require, unmet
from app.topics.single_head import SINGLE_HEAD
from app.topics.three_dimensions import TOPIC as THREE_DIMENSIONS
from app.translation import gettext as _
from app.web.shared.forms import whole_number
from app.web.shared.model_menu import ModelMenu, model_menu
from app.web.shared.permissions import LARGEST_ID, require_practice
from app.web.shared.request_guard import EMBEDDED_HEADERS
from app.web.shared.services import LibraryDep, Services, ServicesDep
from app.web.shared.sheet_address import FIRST_WORKSHEET, find_variant, library_for, sheet_link
from app.web.shared.templating import render
from app.web.shared.urls import public_url, url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])
MAX_HEADS = 99_999  # larger numbers in an address are ignored
FIRST_PRODUCT = "scores"


@router.get("/see")
def list_exhibits(library: LibraryDep) -> Response:
    slide, heads, token = (
        _example(library, topic) for topic in (SINGLE_HEAD.key, THREE_DIMENSIONS.key, DECODE_STEP.key)
    )
    [met] = [step for step in product_steps(slide, true_answers(slide)) if step.part == FIRST_PRODUCT and step.question]
    figures = {
        "show_slide": met.figures()[0],
        "show_heads": heads_steps(heads)[2].figures()[0],
        "show_token": token_steps(token)[3][0].figures()[0],
    }
    head = kept_head()
    small = Markup(head.small_heads[head.head])  # noqa: S704 - of numbers alone
    return render("exhibits/see.html", figures=figures, picture=head, small_head=small)


def _example(library: Library, topic: str) -> Variant:
    worksheet = _worksheet_of_topic(library, topic)
    assert worksheet is not None  # noqa: S101 - the library has a sheet on each of these topics
    return library.variant(worksheet.key)


def _worksheet_of_topic(library: Library, topic: str) -> Worksheet | None:
    first = library.worksheets.get(FIRST_WORKSHEET)
    fitting = (
        sheet
        for sheet in (*([first] if first else []), *library.worksheets.values())
        if (sheet.topic, sheet.answers) == (topic, "numbers") and not sheet.kv_head_per_query_head
    )
    return next(fitting, None)


@dataclass
class _Request:
    """The sheet that an address asks for, or a sentence on why there is none."""

    variant: Variant | None
    menu: ModelMenu
    tokens: str
    problem: str = ""
    status: int = 200
    length_is_wrong: bool = False

    def refuse(self, problem: str, status: int = 422) -> None:
        if not self.problem:
            self.problem, self.status = problem, status


def _requested(request: Request, services: Services, worksheet: Worksheet, library: Library) -> _Request:
    model, tokens = request.query_params.get("model", ""), request.query_params.get("tokens")
    variant, refused = None, None
    try:
        library = library_with_model(library, services.store, model)
        variant = find_variant(library, worksheet.key, model, tokens or None, request.query_params.get("decoded", ""))
    except Refusal as error:
        refused = error
    chosen = variant.model.key if variant else model if model in library.models else worksheet.model
    shown = str(variant.tokens) if variant else tokens or str(worksheet.tokens)
    requested = _Request(variant, model_menu(library, worksheet.key, chosen), shown)
    if refused:
        requested.refuse(str(refused), refused.status)
        requested.length_is_wrong = isinstance(refused, TokensError)
    return requested


def _page(
    request: Request,
    services: Services,
    requested: _Request,
    steps: Sequence[ExhibitStep],
    query: Mapping[str, str],
    *,
    first: int = 1,
    sheet: str = "",
    inner: Mapping[str, Mapping[str, tuple[str, str]]] | None = None,
    **more: Any,
) -> Response:
    """One step of an exhibit; `first` is shown if the address names none."""
    route = request.scope["route"].name
    text = request.query_params.get("step", str(first))
    number = whole_number(text, 999) or 0
    if steps and not 1 <= number <= len(steps):
        sentence = _("There is no step “{step}” here: choose one from 1 to {steps}.")
        requested.refuse(sentence.format(step=text[:20], steps=len(steps)))
        number = first
    page = route.replace("show_embedded_", "show_")
    response = render(
        "exhibits/exhibit.html",
        kind=page.removeprefix("show_"),
        title={
            "show_slide": _("Slide it together"),
            "show_heads": _("Deal the heads"),
            "show_token": _("One more token"),
        }[page],
        status=requested.status,
        requested=requested,
        chooser={"tokens": requested.tokens, "length_is_wrong": requested.length_is_wrong},
        model_menu=requested.menu,
        steps=steps,
        number=number,
        before=max(number - 1, 1),
        after=min(number + 1, max(len(steps), 1)),
        step=steps[number - 1] if steps else None,
        address=lambda step: url_for(route, **{**query, "step": step}),
        here=url_for(route),
        whole=url_for(page, **query),
        embedded=route != page,
        embedding=public_url(request, services.settings) + url_for(page.replace("show_", "show_embedded_"), **query),
        query=query,
        sheet=sheet,
        inner=inner,
        symbols=_symbols(requested.variant) if requested.variant else (),
        **more,
    )
    if route != page:
        response.headers.update(EMBEDDED_HEADERS)
    return response


def _symbols(variant: Variant) -> tuple[str, ...]:
    return (*variant.typeset_letters, *(f"{letter}ᵀ" for letter in variant.typeset_letters))


# Slide it together


@router.get("/see/slide")
@router.get("/see/slide/embed", name="show_embedded_slide")
def show_slide(request: Request, services: ServicesDep) -> Response:
    """The products of a topic or worksheet, with the model's lengths, or with typed ones if the address has them."""
    wanted = request.query_params
    library = library_for(request, services, wanted.get("worksheet", ""))
    worksheet, problem = _worksheet(library, wanted)
    if rows := wanted.get("rows", ""):
        worksheet = _with_rows(library, worksheet, rows.split(","), simplified="simplified" in wanted)
        library = replace(library, worksheets={**library.worksheets, worksheet.key: worksheet})
    requested = _requested(request, services, worksheet, library)
    variant = requested.variant
    if problem:
        requested.refuse(problem, 404)
        variant = None
    steps, query, products, first = list[ExhibitStep](), {"topic": worksheet.topic}, tuple[Product, ...](), 1
    if variant:
        typed = {name: wanted[name][:MAX_BOX_TEXT] for name in variant.blanks_by_name if wanted.get(name)}
        blanks = variant.blanks_by_name.items()
        read = {blank: variant.read(blank, typed[name]) for name, blank in blanks if name in typed}
        answers = {blank: answer for blank, answer in read.items() if isinstance(answer, Answer)}
        steps = [*product_steps(variant, answers if "typed" in wanted else {**true_answers(variant), **answers})]
        products = shown_products(variant)
        first = _first_step(requested, steps, products, wanted.get("product", ""), variant)
        steps = [] if requested.problem else steps
        kept = ("typed", "decoded", "activity", "number", "rows", "simplified")
        own = "typed" in wanted or "worksheet" in wanted
        query = {"worksheet": worksheet.key} if own else {"topic": worksheet.topic}
        query |= {"model": variant.model.key, "tokens": str(variant.tokens)}
        query |= {name: wanted[name] for name in kept if name in wanted} | typed
    starts = dict[str, int]()  # the first step of each product
    for number, step in enumerate(steps, 1):
        starts.setdefault(step.part, number)
    back = _back(variant, wanted) if variant and "typed" in wanted else ""
    return _page(
        request, services, requested, steps, query, first=first, back=back,
        sheet=back or (sheet_link(variant) if variant else ""),
        topics=[(key, library.wording.topics[key].name) for key in library.topics if _has_products(library, key)],
        topic=worksheet.topic,
        formulas={key: (variant.letters[key], formula_pieces(variant, key)) for key in starts} if variant else {},
        starts=starts,
        inner=_inner_sides(variant, products) if variant and "typed" not in wanted else {},
    )  # fmt: skip


def _worksheet(library: Library, wanted: Mapping[str, str]) -> tuple[Worksheet, str]:
    key, topic = wanted.get("worksheet", ""), wanted.get("topic", "")
    with suppress(WorksheetError):
        return library.worksheet(key), ""
    if (found := _worksheet_of_topic(library, topic or SINGLE_HEAD.key)) and (topic or not key):
        return found, ""
    first = _example(library, SINGLE_HEAD.key).worksheet
    kind = _("There is no worksheet “{key}”: choose a topic from the list.")
    kind = _("There is no topic “{key}”: choose one from the list.") if topic else kind
    return first, kind.format(key=(topic or key)[:60])


def _with_rows(library: Library, worksheet: Worksheet, rows: Sequence[str], *, simplified: bool) -> Worksheet:
    named = library.wording.topics[worksheet.topic].rows
    kept = tuple(row for row in dict.fromkeys(rows) if row in named)
    return replace(worksheet, rows=kept or worksheet.rows, kv_head_per_query_head=simplified)


def _first_step(
    requested: _Request, steps: Sequence[ExhibitStep], products: Sequence[Product], wanted: str, variant: Variant
) -> int:
    parts = [step.part for step in steps]
    if not products:
        requested.refuse(_("No figure of this topic has a product of two matrices: choose another one."), 200)
    elif wanted and wanted not in {product.result for product in products}:
        sentence = _("There is no product “{key}” in this topic: choose one from the list.")
        requested.refuse(sentence.format(key=wanted[:60]), 404)
    elif wanted not in parts and (wanted or not parts):
        product = next((product for product in products if product.result == wanted), products[0])
        sentence = _("Fill in {left} and {right} on your sheet first: a side is missing.")
        letters = variant.letters
        requested.refuse(sentence.format(left=letters[product.left], right=letters[product.right]), 200)
    return parts.index(wanted or FIRST_PRODUCT) + 1 if (wanted or FIRST_PRODUCT) in parts else 1


def _has_products(library: Library, topic: str) -> bool:
    worksheet = _worksheet_of_topic(library, topic)
    if worksheet is None:
        return False
    table = topic_for(topic, library.models[worksheet.model].architecture, worksheet.tokens)
    return bool(products_of(table))


def _inner_sides(variant: Variant, products: Sequence[Product]) -> dict[str, dict[str, tuple[str, str]]]:
    """For each product, the boxes of its inner sides with labels and right answers, if the sheet has both."""
    names = {blank: name for name, blank in variant.blanks_by_name.items()}
    inner = {product.result: product.sides(variant.table)[1:3] for product in products}
    return {
        result: {
            names[side]: (f"{variant.letters[side.tensor]}: {variant.axis(side)}", variant.written_answer(side))
            for side in sides
        }
        for result, sides in inner.items()
        if all(side in names for side in sides)
    }


def _back(variant: Variant, wanted: Mapping[str, str]) -> str:
    activity, number = (whole_number(wanted.get(name, ""), LARGEST_ID) for name in ("activity", "number"))
    if activity is None or number is None:
        return sheet_link(variant)
    return url_for("show_class_sheet", activity_id=activity, number=number)


# Deal the heads


@dataclass(frozen=True)
class GroupChoice:
    """A possible number of key/value heads, with what it costs; the cache in bytes, if known."""

    count: int
    columns: int
    parameters: int
    cache: int | None


@router.get("/see/heads")
@router.get("/see/heads/embed", name="show_embedded_heads")
def show_heads(request: Request, services: ServicesDep) -> Response:
    """A layer's heads as decks, with the model's number of key/value heads or another one."""
    library, wanted = services.library, request.query_params
    worksheet = _example(library, THREE_DIMENSIONS.key).worksheet
    requested = _requested(request, services, worksheet, library)
    variant, steps = requested.variant, tuple[ExhibitStep, ...]()
    query, more = dict[str, str](), dict[str, Any]()
    if variant:
        try:
            require(SEVERAL_HEADS, variant.architecture, variant.tokens)
        except Refusal as error:
            requested.refuse(str(error), error.status)
            variant = requested.variant = None
    if variant:
        own, possible = variant.architecture.G, possible_kv_heads(variant.architecture.H)
        groups = whole_number(wanted.get("groups", str(own)), MAX_HEADS)
        if groups not in possible:
            sentence = _(
                "{heads} query heads cannot share “{groups}” key/value heads evenly: choose one of {possible}."
            )
            listed = ", ".join(map(format_number, possible))
            query_heads = format_number(variant.architecture.H)
            requested.refuse(sentence.format(heads=query_heads, groups=wanted["groups"][:20], possible=listed))
            groups = own
        dealt_out = _with_groups(variant, groups)
        heads, steps = LayerHeads(dealt_out.sizes), heads_steps(dealt_out)
        tried = whole_number(wanted.get("key", ""), MAX_HEADS)
        query = {"model": variant.model.key, "tokens": str(variant.tokens), "groups": str(groups)}
        more = {
            "heads": heads,
            "own": own,
            "tried": tried,
            "reply": dealt(heads, tried) if tried is not None and tried < groups else "",
            "choices": [_choice(variant, count) for count in possible],
            "remark": unmet(CACHE_OF_ALL_LAYERS, variant.architecture, variant.tokens) or prose.cached(variant),
            "sheet": sheet_link(variant),
        }
    return _page(request, services, requested, steps, query, **more)


def _with_groups(variant: Variant, count: int) -> Variant:
    architecture = replace(variant.architecture, G=count)
    return replace(variant, model=replace(variant.model, architecture=architecture))


def _choice(variant: Variant, count: int) -> GroupChoice:
    heads, architecture = LayerHeads({**variant.sizes, "G": count}), variant.architecture
    has_cache = unmet(CACHE_OF_ALL_LAYERS, architecture, variant.tokens) is None
    return GroupChoice(
        count=count,
        columns=heads.slab("keys")[1],
        parameters=sum(math.prod(heads.slab(key)) for key in ("W_K", "W_V")),
        cache=cache_bytes(architecture, variant.tokens, heads.sizes) if has_cache else None,
    )


# One more token


@router.get("/see/token")
@router.get("/see/token/embed", name="show_embedded_token")
def show_token(request: Request, services: ServicesDep) -> Response:
    """A KV cache that grows by a row with each token, and what that saves."""
    worksheet = _example(services.library, DECODE_STEP.key).worksheet
    requested = _requested(request, services, worksheet, services.library)
    variant, steps = requested.variant, tuple[ExhibitStep, ...]()
    query, more = dict[str, str](), dict[str, Any]()
    if variant:
        both = token_steps(variant)
        steps = tuple(step for step, _token in both)
        tokens = {step.part: token for step, token in both}
        query = {"model": variant.model.key, "tokens": str(variant.tokens)}
        letters = {
            name: both[0][1].table[key].letter
            for name, key in (("K", "keys"), ("V", "values"), ("q", "queries"), ("s", "scores"))
        }
        more = {
            "rows": {part: token_rows(token) for part, token in tokens.items()},
            "costs": {part: token.costs for part, token in tokens.items()},
            "letters": letters,
            "sizes": variant.sizes,
            "sheet": sheet_link(variant),
        }
    return _page(request, services, requested, steps, query, **more)
