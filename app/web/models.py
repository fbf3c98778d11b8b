"""Models: the list, importing one, and a model's page: where each size came from, and every parameter tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.algebra.number_text import format_number
from app.exchange import hub
from app.exchange.imported_models import library_with_model
from app.figures.parameter_bar import BarGroup, BarPiece, parameter_bar
from app.models.architecture import Architecture
from app.models.config_fields import ConfigError
from app.models.model_sentences import (
    bucket_name,
    count_remarks,
    layers_text,
    property_sentences,
    reason_for_none,
    size_meanings,
    unstated_reason,
)
from app.models.parameter_count import parameter_counts, parameter_tensors
from app.models.parameter_formula import ParameterFormula, Summand, in_brackets, parameter_formula
from app.models.recognition import known_types
from app.names import clean_line
from app.refusal import Refusal
from app.sheets.library import Library
from app.sheets.model_search import MAX_FOUND, Found, find_models
from app.sheets.variant import Variant
from app.sheets.worksheet import Model
from app.translation import gettext as _
from app.web.shared.forms import FormDep
from app.web.shared.import_form import IMPORT_WAYS, ImportForm, import_model_by, read_import_form
from app.web.shared.permissions import QueueClient, require_practice
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_address import sheet_link
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

MAX_MODEL_SEARCH_LENGTH = 60
NINE = ("d", "H", "G", "d_h", "d_v", "d_ff", "V", "L", "C")


# The list


@dataclass(frozen=True)
class ModelLine:
    """One model in the list, with the numbers that the list can be sorted by."""

    model: Model
    numbers: Mapping[str, int]

    @property
    def sizes(self) -> tuple[str, ...]:
        """d, H, G, d_h, and L of each stack."""
        architecture = self.model.architecture
        layers = [architecture.L, *([architecture.all_sizes["L_dec"]] if architecture.encoder_decoder else [])]
        sizes = [architecture.sizes[symbol] for symbol in ("d", "H", "G", "d_h")]
        shown = ["–" if size is None else format_number(size) for size in sizes]
        return (*shown, " + ".join(map(format_number, layers)))


@router.get("/models")
def list_models(services: ServicesDep, sort: str = "", q: str = "") -> Response:
    """The models of the library or what a search finds, and the form to import one more."""
    return _model_list(services, sort=sort, search=clean_line(q, MAX_MODEL_SEARCH_LENGTH))


@router.post("/models")
@in_threads("hub")
def import_model(request: Request, services: ServicesDep, client: QueueClient, form: FormDep) -> Response:
    """Import one model and redirect (303) to its page; on failure, show the form with the reason by the field."""
    typed = read_import_form(form, form.raw("way"))
    filled = [way for way in IMPORT_WAYS if typed.is_filled(way)]
    if typed.way == "hub" and len(filled) == 1:  # Enter presses the first button
        typed = replace(typed, way=filled[0])
    try:
        return RedirectResponse(url_for("show_model", key=import_model_by(request, services, typed, client).key), 303)
    except (hub.HubError, ConfigError) as error:
        problem = str(error).encode(errors="replace").decode()  # half of a surrogate pair from JSON can't be shown
        return _model_list(services, error.status, typed=typed, problems={typed.way: problem})


def _model_list(
    services: Services,
    status: int = 200,
    *,
    sort: str = "",
    search: str = "",
    typed: ImportForm | None = None,
    problems: Mapping[str, str] | None = None,
) -> Response:
    lines = [ModelLine(model, _numbers(model.architecture)) for model in services.library.models.values()]
    sort = sort if sort in lines[0].numbers else ""
    if sort:
        lines.sort(key=lambda line: -line.numbers[sort])
    return render(
        "models/model_list.html",
        status=status,
        lines=lines,
        share_of_bar=_logarithmic([line.numbers["parameters"] for line in lines]),
        sort=sort,
        search=search,
        max_search_length=MAX_MODEL_SEARCH_LENGTH,
        found=_found(services, search) if search else None,
        types=len(known_types()),
        typed=replace(typed or ImportForm(), file=b""),
        problems={way: (problems or {}).get(way, "") for way in IMPORT_WAYS},
        hub_host=hub.hub_host() if services.settings.hub else "",
        hub_off=str(hub.HubError("off")),
    )


def _numbers(architecture: Architecture) -> dict[str, int]:
    sizes = {symbol: architecture.sizes[symbol] or 0 for symbol in ("d", "H", "G", "d_h")}
    layers = architecture.L + architecture.all_sizes.get("L_dec", 0)
    return sizes | {"L": layers, "parameters": parameter_counts(architecture).total}


def _found(services: Services, search: str) -> Found:
    imported = services.store.hub_models(search.split(), MAX_FOUND)
    return find_models(services.library.models.values(), imported, search)


def _logarithmic(totals: Sequence[int]) -> Mapping[int, float]:
    """How long the bar of each number is, in per cent of the longest."""
    longest = math.log(2 * max(totals) / min(totals))
    return {total: 100 * math.log(2 * total / min(totals)) / longest for total in totals}


# A model's page


@dataclass(frozen=True)
class SizeLine:
    """One size of a model: its symbol, its meaning, its value, and where it came from."""

    symbol: str
    meaning: str
    value: str
    field: str
    how: str


@dataclass(frozen=True)
class PieceLine:
    """What one bucket adds to a summand: its name, its piece of the bar, and its term in the formula.

    `total` is its number of parameters in all layers, `share` its part of the model.
    """

    key: str
    name: str
    piece: BarPiece
    symbols: str
    numbers: str
    total: int
    share: str


@dataclass(frozen=True)
class SummandLine:
    """One summand of the number of parameters, bucket by bucket, and how often it counts."""

    part: Summand
    where: str
    group: BarGroup
    has_room: bool  # for a label at its place in the bar
    share: str
    pieces: tuple[PieceLine, ...]


@dataclass(frozen=True)
class LegendLine:
    """What one colour of the bar means, and how much of the model it is."""

    bucket: str
    name: str
    share: str


@dataclass(frozen=True)
class TensorLine:
    """One parameter tensor: its name in transformers, its axes in the orientation of x·W and as stored."""

    name: str
    symbols: str
    shape: str
    stored: str
    transposed: bool  # whether it is stored transposed
    count: int
    times: int


@router.get("/models/{key}")
def show_model(services: ServicesDep, key: str) -> Response:
    library = library_with_model(services.library, services.store, key)
    model = library.model(key)
    architecture = model.architecture
    counts, total = parameter_counts(architecture), parameter_formula(architecture)
    summands = tuple(_summand_lines(total))
    return render(
        "models/model.html",
        model=model,
        sizes=tuple(_size_lines(architecture)),
        kinds=(*property_sentences(architecture), *map(str, architecture.notes)),
        sheets=tuple(_sheet_choices(library, model)),
        counts=counts,
        total=total,
        summands=summands,
        legend=tuple(_legend_lines(summands, counts.total)),
        active_share=_share(counts.active, counts.total),
        remarks=tuple(count_remarks(architecture, counts, total)),
        tensors=tuple(_tensor_lines(architecture)),
    )


def _size_lines(architecture: Architecture) -> Iterator[SizeLine]:
    readings = {reading.symbol: reading for reading in architecture.size_sources}
    sizes = {**{symbol: reading.value for symbol, reading in readings.items()}, **architecture.all_sizes}
    meanings = size_meanings()
    for symbol in (*NINE, *(symbol for symbol in readings if symbol not in NINE)):
        if reading := readings.get(symbol):
            how = unstated_reason(architecture, reading, sizes)
            meaning = meanings.get(symbol) or _("as the config’s field of this name says")
            yield SizeLine(symbol, meaning, format_number(reading.value), reading.field or "", how)
        else:
            yield SizeLine(symbol, meanings[symbol], "–", "", reason_for_none(symbol))


def _sheet_choices(library: Library, model: Model) -> Iterator[tuple[str, str]]:
    by_table = dict[str, list[Variant]]()
    for sheet in library.worksheets.values():
        try:
            variant = library.variant(sheet.key, model.key)
        except Refusal:  # the model doesn't have it
            continue
        by_table.setdefault(variant.table.key, []).append(variant)
    for variants in by_table.values():
        variant = min(variants, key=lambda variant: _misfit(library, variant))
        yield library.wording.topics[variant.worksheet.topic].name, sheet_link(variant)


def _misfit(library: Library, variant: Variant) -> tuple[bool, ...]:
    sheet, written_for = variant.worksheet, library.variant(variant.worksheet.key)
    return (
        sheet.kv_head_per_query_head or sheet.in_letters,
        sheet.model != variant.model.key,
        written_for.table.key != variant.table.key,
        written_for.model.architecture.family != variant.model.architecture.family,
    )


def _summand_lines(total: ParameterFormula) -> Iterator[SummandLine]:
    for number, (part, group) in enumerate(zip(total.summands, parameter_bar(total), strict=True)):
        layers, buckets = part.layers or 1, len(part.buckets)
        pieces = tuple(
            PieceLine(
                key=f"{number}-{piece.bucket.bucket}",
                name=bucket_name(piece.bucket.bucket, part),
                piece=piece,
                symbols=in_brackets(piece.bucket.symbols, buckets),
                numbers=in_brackets(piece.bucket.numbers, buckets),
                total=piece.bucket.count * layers,
                share=_share(piece.bucket.count * layers, total.total),
            )
            for piece in group.pieces
        )
        where, has_room = layers_text(part, total), part.total * 5 >= total.total
        yield SummandLine(part, where, group, has_room, _share(part.total, total.total), pieces)


def _legend_lines(summands: Sequence[SummandLine], whole: int) -> Iterator[LegendLine]:
    pieces = [piece for summand in summands for piece in summand.pieces]
    for name in dict.fromkeys(piece.name for piece in pieces):
        alike = [piece for piece in pieces if piece.name == name]
        yield LegendLine(alike[0].piece.bucket.bucket, name, _share(sum(piece.total for piece in alike), whole))


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if count * 1000 >= total else "< 0.1%"


def _tensor_lines(architecture: Architecture) -> Iterator[TensorLine]:
    for parameter in parameter_tensors(architecture):
        spec = parameter.spec
        flow = [str(dim).replace("*", "·") for dim in spec.in_out_shape]
        yield TensorLine(
            parameter.name,
            " × ".join(f"({dim})" if "+" in dim and len(flow) > 1 else dim for dim in flow),
            " × ".join(map(format_number, parameter.in_out_shape)),
            " × ".join(map(format_number, parameter.stored_shape)),
            parameter.in_out_shape != parameter.stored_shape or spec.in_out_shape != spec.stored_shape,
            parameter.count,
            parameter.instances,
        )
