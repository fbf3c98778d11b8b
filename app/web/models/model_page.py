"""/models/KEY: a model as it was read, each size with where it came from, and every parameter tensor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response

from app.algebra.number_text import format_number
from app.exchange.imported_models import library_with_model
from app.models.architecture import MAX_TOKENS, Architecture, SizeSource, TokensError
from app.models.parameter_count import ParameterCounts, parameter_counts, parameter_tensors
from app.models.parameter_formula import BucketSum, ParameterFormula, Summand, in_numbers, parameter_formula
from app.shapes.topics import TopicError
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import Model, WorksheetError
from app.web.practice.sheet_request import sheet_link
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

NINE = ("d", "H", "G", "d_h", "d_v", "d_ff", "V", "L", "C")


@dataclass(frozen=True)
class SizeLine:
    """One size of a model: its symbol, what it means, its value, and where that came from."""

    symbol: str
    meaning: str
    value: str
    field: str
    how: str


@dataclass(frozen=True)
class PieceLine:
    """What one bucket adds to a summand."""

    name: str
    piece: BucketSum


@dataclass(frozen=True)
class SummandLine:
    """One summand of the number of parameters, bucket by bucket, and how often it counts."""

    part: Summand
    where: str
    pieces: tuple[PieceLine, ...]


@dataclass(frozen=True)
class TensorLine:
    """One parameter tensor: its name in transformers, its axes in the orientation of x·W and as stored."""

    name: str
    symbols: str
    shape: str
    stored: str
    transposed: bool  # whether the checkpoint stores it the other way round
    count: int
    times: int


@dataclass(frozen=True)
class SheetChoice:
    """A sheet to open for this model."""

    name: str
    link: str


@dataclass(frozen=True)
class ModelPage:
    """Everything that templates/models/model.html shows."""

    model: Annotated[Model, Doc("The model, of the library or imported.")]
    sizes: Annotated[tuple[SizeLine, ...], Doc("Each size and where it came from.")]
    kinds: Annotated[tuple[str, ...], Doc("What kind of attention it is, in sentences.")]
    sheets: Annotated[tuple[SheetChoice, ...], Doc("The sheets that can be made from it.")]
    counts: Annotated[ParameterCounts, Doc("Its parameters by what they are for.")]
    total: Annotated[ParameterFormula, Doc("Its parameters as a sum of products.")]
    summands: Annotated[tuple[SummandLine, ...], Doc("The same sum, part by part.")]
    remarks: Annotated[tuple[str, ...], Doc("Equal sizes, experts, and the length of the input in that sum.")]
    heading: Annotated[str, Doc("The heading over the parameters.")]
    tensors: Annotated[tuple[TensorLine, ...], Doc("Every parameter tensor.")]


@router.get("/models/{key}")
def show_model(services: ServicesDep, key: str) -> Response:
    """One model as it was read; raises WorksheetError where there is none of that key."""
    library = library_with_model(services.library, services.store, key)
    return render("models/model.html", _model_page(library, library.model(key)))


def _model_page(library: Library, model: Model) -> ModelPage:
    """The page of a model; `library` also holds the model if it was imported."""
    wording, architecture = library.wording, model.architecture
    counts, total = parameter_counts(architecture), parameter_formula(architecture)
    return ModelPage(
        model=model,
        sizes=tuple(_size_lines(wording, architecture)),
        kinds=tuple(_kinds(wording, architecture)),
        sheets=tuple(_sheets(library, model)),
        counts=counts,
        total=total,
        summands=tuple(_summand(wording, part, total) for part in total.summands),
        remarks=tuple(_remarks(wording, architecture, counts, total)),
        heading=wording.say("parameters", "title", total=f"{counts.total:,}"),
        tensors=tuple(_tensors(architecture)),
    )


def _size_lines(wording: Wording, architecture: Architecture) -> Iterator[SizeLine]:
    """The nine sizes every model is asked for, then those that only this family has."""
    readings = {reading.symbol: reading for reading in architecture.size_sources}
    sizes = {**{symbol: reading.value for symbol, reading in readings.items()}, **architecture.all_sizes}
    for symbol in (*NINE, *(symbol for symbol in readings if symbol not in NINE)):
        meaning = wording.say("sizes", symbol)
        if symbol in readings:
            reading = readings[symbol]
            how = _how(wording, architecture, reading, sizes)
            yield SizeLine(symbol, meaning, format_number(reading.value), reading.field or "", how)
        else:
            yield SizeLine(symbol, meaning, "–", "", wording.say("readings", f"none-{symbol}"))


def _how(wording: Wording, architecture: Architecture, reading: SizeSource, sizes: Mapping[str, int]) -> str:
    """Why a size has its value where no field of the config states it; empty where one does."""
    if reading.field:
        return ""
    rule = reading.rule.removeprefix("null: ")
    values = {"family": architecture.family, "value": format_number(reading.value), "rule": rule.replace("*", "·")}
    numbers = "" if rule.startswith("default") else in_numbers(rule, sizes)
    why = wording.say("why", _why(wording, reading.symbol, rule), numbers=numbers, **values)
    if not reading.fields:
        return wording.say("readings", "follows", why=why)
    key = "null" if reading.rule.startswith("null: ") else "missing"
    return wording.say("readings", key, field=reading.fields[0], why=why)


def _why(wording: Wording, symbol: str, rule: str) -> str:
    """The key of the sentence on a rule in wording [why]: one for this symbol if there is one, else one for its kind.

    Example: 'd // H' for d_h gives 'd_h-d // H' or 'rounded', '32' gives 'number', 'H' gives 'same'.
    """
    own = f"{symbol}-share" if "/" in rule else f"{symbol}-{rule}"
    if own in wording.sections["why"]:
        return own
    if rule.startswith("default"):
        return "default"
    if "//" in rule:
        return "rounded"
    if rule.isdigit():
        return "number"
    return "same" if re.fullmatch(r"\w+", rule) else "sum"


def _kinds(wording: Wording, architecture: Architecture) -> Iterator[str]:
    """What kind of attention it is, one sentence a property; then what was read otherwise than the file says."""
    sizes = {symbol: format_number(size) for symbol, size in architecture.all_sizes.items()}
    for key, more in _properties(wording, architecture):
        yield wording.say("kinds", key, **{**sizes, **more})
    yield from architecture.notes


def _properties(wording: Wording, a: Architecture) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The keys in wording [kinds] of the sentences that hold for this model, each with the values it needs."""
    masked = "causal" if a.causal else "bidirectional"
    yield "encoder-decoder" if a.encoder_decoder else masked, {}
    yield _heads(a), {"share": a.query_heads_per_kv_head}
    yield _windows(a)
    yield _positions(a)
    which = ", ".join(wording.say("projections", letter) for letter in a.biases)
    yield ("biases" if a.biases else "biases-none"), {"which": which}
    yield from ((flag.replace("_", "-"), {}) for flag in ("qk_norm", "sinks") if flag in a.flags)
    yield ("gated" if a.gated else "ungated"), {}
    if "E" in a.all_sizes and "k" in a.all_sizes:
        yield "experts", {}
    yield _output_head(a), {}
    yield "counted-as", {"model_class": a.model_class}


def _heads(a: Architecture) -> str:
    """The sentence on key/value heads: latent, one per query head, one in all, or one for a group."""
    if "mla" in a.flags:
        return "latent"
    if a.H == a.G:
        return "heads-own"
    return "heads-one" if a.G == 1 else "heads-grouped"


def _windows(a: Architecture) -> tuple[str, Mapping[str, object]]:
    """The sentence on sliding windows: in no layer, in some or in all; with several windows, the widest."""
    runs = [run for part in a.stacks for run in part.runs]
    windows = {run.window for run in runs if run.window is not None}
    if not windows:
        return "window-none", {}
    windowed, layers = sum(run.count for run in runs if run.window), sum(run.count for run in runs)
    values = {"W": format_number(max(windows)), "n": windowed, "L": layers}
    return ("window-all" if windowed == layers else "window-some"), values


def _positions(a: Architecture) -> tuple[str, Mapping[str, object]]:
    """The sentence on positions: RoPE, a table of embeddings, or neither."""
    if a.rotary:
        return "rotary", {"width": format_number(a.rotary.width), "theta": f"{a.rotary.theta:,.0f}"}
    if a.has_position_table and a.max_tokens < MAX_TOKENS:
        return "positions-table", {"most": format_number(a.max_tokens)}
    return "positions-other", {}


def _output_head(a: Architecture) -> str:
    """The sentence on the LM head: none, tied to the embeddings, or a matrix of its own."""
    on_top = {symbol for dim in a.task_head.logits or () for symbol in dim.symbols}
    if "V" not in on_top:
        return "no-output"
    return "tied" if a.tied_embeddings else "untied"


def _sheets(library: Library, model: Model) -> Iterator[SheetChoice]:
    """One sheet for each table that this model has: that of the worksheet that fits the model best.

    Its length is the worksheet's, or the longest that the model takes.
    """
    by_table = dict[str, list[Variant]]()
    for sheet in library.worksheets.values():
        try:
            variant = library.variant(sheet.key, model.key, min(sheet.tokens, model.architecture.max_tokens))
        except (WorksheetError, TokensError, TopicError):  # this model has no such thing
            continue
        by_table.setdefault(variant.table.key, []).append(variant)
    for variants in by_table.values():
        variant = min(variants, key=lambda variant: _distance(library, variant))
        yield SheetChoice(library.wording.say("topics", variant.worksheet.topic), sheet_link(variant))


def _distance(library: Library, variant: Variant) -> tuple[bool, ...]:
    """How badly a worksheet fits the model, for comparison: ordinary worksheets first, then the model's own, then those
    written for a model with the same table, then for one of its family.
    """
    sheet, written_for = variant.worksheet, library.variant(variant.worksheet.key)
    return (
        sheet.kv_head_per_query_head or sheet.answers != "numbers" or sheet.tokens_are != "rows",
        sheet.model != variant.model.key,
        written_for.table.key != variant.table.key,
        written_for.model.architecture.family != variant.model.architecture.family,
    )


def _summand(wording: Wording, part: Summand, total: ParameterFormula) -> SummandLine:
    """A summand of the number of parameters: the layers it counts, and its buckets by name."""
    names = {"other": "decoder-other" if part.decoder else "layer-other"} if part.layers else {}
    pieces = tuple(
        PieceLine(wording.say("buckets", names.get(piece.bucket, piece.bucket)), piece) for piece in part.buckets
    )
    return SummandLine(part, _where(wording, part, total), pieces)


def _where(wording: Wording, part: Summand, total: ParameterFormula) -> str:
    """Which layers a summand counts, in words; empty for one outside the layers, such as the embeddings."""
    if not part.layers:
        return ""
    stacks = [other for other in total.summands if other.layers]
    if any(other.decoder for other in stacks):
        key = "decoder" if part.decoder else "encoder"
        key += "-one" if part.layers == 1 else ""
    elif len(stacks) == 1:
        key = "all"
    else:
        key = "one" if part.layers == 1 else "some"
    return wording.say("parameters", f"layers-{key}", n=part.layers)


def _remarks(wording: Wording, a: Architecture, counts: ParameterCounts, total: ParameterFormula) -> Iterator[str]:
    """Sentences on sizes that happen to be equal, on parameters active for one token, and on the context length."""
    if total.equalities:
        equalities = ", ".join(
            f"{each.first} = {each.second} = {format_number(each.size)}" for each in total.equalities
        )
        yield wording.say("parameters", "equalities", list=equalities)
    if counts.active != counts.total:
        sizes = {symbol: format_number(a.all_sizes[symbol]) for symbol in ("k", "E")}
        yield wording.say("parameters", "active", active=f"{counts.active:,}", **sizes)
    if total.position_products:
        key = "length-counted" if a.C else "length-counted-unstated"
    else:
        key = "length-free" if a.C else "length-unstated"
    yield wording.say("parameters", key, C=format_number(a.C or 0), products=", ".join(total.position_products))


def _tensors(architecture: Architecture) -> Iterator[TensorLine]:
    """Every parameter tensor in the order of the model: its name, symbols, shape, stored shape, count and times."""
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
