"""/see/heads: a layer's heads as cards, dealt by the visitor; marking happens here, and the address keeps the state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fastapi import APIRouter, Depends, Request, Response

from app.algebra.number_text import format_number
from app.exchange.imported_models import library_with_model
from app.figures.exhibits.dealing import Dealing
from app.figures.exhibits.heads import HeadsExhibit
from app.grading.exhibit_boxes import DECKS, AskedBoxes, mark_cache, mark_deck
from app.sheets import prose
from app.sheets.library import Library
from app.sheets.reading import MAX_BOX_TEXT
from app.sheets.variant import Variant
from app.topics import three_dimensions
from app.topics.layer_heads import CACHE_OF_ALL_LAYERS, SEVERAL_HEADS, LayerHeads, cache_bytes, possible_kv_heads
from app.topics.requirements import TopicError, require, unmet
from app.translation import gettext as _
from app.web.exhibits.exhibit import (
    LAYER_WORKSHEET,
    RequestedSheet,
    exhibit_page,
    render_exhibit,
    requested_sheet,
    worksheet_of_topic,
)
from app.web.shared.forms import whole_number
from app.web.shared.model_menu import model_menu
from app.web.shared.permissions import require_practice
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_address import FIRST_WORKSHEET
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])
MAX_HEADS = 99_999  # larger numbers in an address are ignored


@dataclass(frozen=True)
class GroupChoice:
    """A number of key/value heads that can be chosen."""

    count: int
    is_own: bool  # the model's own number
    is_chosen: bool
    columns: int  # K's; V has as many unless its heads have another width
    parameters: int  # W_K and W_V of one layer
    cache: int | None  # bytes; None if they aren't shown


@dataclass(frozen=True)
class HeadsTable:
    """What is around the frames: the numbers of key/value heads, the current card, and the boxes with marks."""

    model: str
    choices: tuple[GroupChoice, ...]
    cache_remark: str
    drawing: HeadsExhibit
    decks: Mapping[str, AskedBoxes]
    of_cache: AskedBoxes | None

    @property
    def chosen(self) -> GroupChoice:
        """The number of key/value heads that is drawn."""
        return next(choice for choice in self.choices if choice.is_chosen)

    @property
    def kind(self) -> str:
        """What the drawn layer is called."""
        if self.drawing.heads.shared_by == 1:
            return "multi-head"
        return "multi-query" if self.chosen.count == 1 else "grouped"


@router.get("/see/heads")
@router.get("/see/heads/embed", name="show_embedded_heads")
def show_heads(request: Request, services: ServicesDep) -> Response:
    """The exhibit for the address's model, lengths, dealt cards and step."""
    worksheet = services.library.worksheet(LAYER_WORKSHEET)
    requested = _with_heads(requested_sheet(request, services, worksheet), services)
    exhibit, table, query = None, None, dict[str, str]()
    if variant := requested.variant:
        table = _table(variant, request.query_params)
        exhibit = table.drawing.exhibit()
        query = {"model": variant.model.key, "tokens": str(variant.tokens), "groups": str(table.chosen.count)}
        requested = requested.but(_groups_problem(variant, request.query_params.get("groups")))
    page = exhibit_page(request, services, requested, exhibit, _("Deal the heads"), "show_heads", query)
    if exhibit and "alone" in request.query_params:  # the script asks for one frame while a slider moves
        frame = replace(exhibit, frames=(exhibit.frames[page["step"] - 1],))
        page |= {"exhibit": frame, "embedded": True}  # nothing around it
    sheet = _sheet_address(services.library, requested.variant) if requested.variant else ""
    return render_exhibit("exhibits/heads.html", page | {"table": table, "sheet": sheet})


def _groups_problem(variant: Variant, groups: str | None) -> str:
    possible = possible_kv_heads(variant.architecture.H)
    if groups is None or whole_number(groups, MAX_HEADS) in possible:
        return ""
    sentence = _("{heads} query heads cannot share “{groups}” key/value heads evenly: choose one of {possible}.")
    heads = format_number(variant.architecture.H)
    return sentence.format(heads=heads, groups=groups[:20], possible=", ".join(map(format_number, possible)))


def _sheet_address(library: Library, variant: Variant) -> str:
    worksheet = worksheet_of_topic(library, three_dimensions.TOPIC.key)
    query = {"model": variant.model.key, "tokens": variant.tokens}
    return url_for("show_sheet", worksheet=worksheet.key, **query) if worksheet else ""


def _with_heads(requested: RequestedSheet, services: Services) -> RequestedSheet:
    key = requested.variant.model.key if requested.variant else ""
    menu = model_menu(
        library_with_model(services.library, services.store, key), FIRST_WORKSHEET, requested.model_menu.chosen
    )
    requested = replace(requested, model_menu=menu)
    try:
        if requested.variant:
            require(SEVERAL_HEADS, requested.variant.architecture, requested.variant.tokens)
    except TopicError as error:
        return requested.refused(str(error), error.status)
    return requested


def _table(variant: Variant, typed: Mapping[str, str]) -> HeadsTable:
    architecture = variant.architecture
    possible = possible_kv_heads(architecture.H)
    wanted = whole_number(typed.get("groups", ""), MAX_HEADS)
    heads = _heads_of(variant, wanted if wanted in possible else architecture.G)
    decks = {key: mark_deck(variant, heads, key, _box_texts(typed, key)) for key in DECKS}
    known = frozenset(key for key, boxes in decks.items() if boxes.is_right)
    tried = whole_number(typed.get("key", ""), MAX_HEADS)
    tried = tried if tried in range(heads.count("keys")) else None
    dealing = Dealing(heads, whole_number(typed.get("dealt", ""), MAX_HEADS) or 0, tried, known)
    why_none = unmet(CACHE_OF_ALL_LAYERS, architecture, variant.tokens) or ""
    of_cache = None if why_none else mark_cache(variant, typed.get("cache", "")[:MAX_BOX_TEXT])
    shows_default = of_cache is not None and of_cache.is_right
    return HeadsTable(
        model=variant.model.name,
        choices=tuple(_choice(variant, count, heads, shows_default, not why_none) for count in possible),
        cache_remark=why_none or prose.cached(variant),
        drawing=HeadsExhibit(dealing, variant.letters),
        decks=decks,
        of_cache=of_cache,
    )


def _heads_of(variant: Variant, count: int) -> LayerHeads:
    return LayerHeads({**variant.sizes, "G": count})


def _choice(variant: Variant, count: int, chosen: LayerHeads, shows_default: bool, has_cache: bool) -> GroupChoice:
    heads, architecture = _heads_of(variant, count), variant.architecture
    is_own = count == architecture.G
    shown = has_cache and (shows_default or not is_own)
    return GroupChoice(
        count=count,
        is_own=is_own,
        is_chosen=count == chosen.count("keys"),
        columns=heads.slab("keys")[1],
        parameters=sum(math.prod(heads.slab(key)) for key in ("W_K", "W_V")),
        cache=cache_bytes(architecture, variant.tokens, heads.sizes) if shown else None,
    )


def _box_texts(typed: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(typed.get(f"{key}.dim{side}", "")[:MAX_BOX_TEXT] for side in range(3))
