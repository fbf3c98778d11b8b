"""/models/KEY: a model as it was read, each size with where it came from, and every parameter tensor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Response

from app.algebra.number_text import format_number
from app.exchange.imported_models import library_with_model
from app.figures.parameter_bar import BarGroup, BarPiece, parameter_bar
from app.models.architecture import MAX_TOKENS, Architecture, LayerRun, SizeSource, TokensError
from app.models.parameter_count import ParameterCounts, parameter_counts, parameter_tensors
from app.models.parameter_formula import ParameterFormula, Summand, in_brackets, in_numbers, parameter_formula
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import Model, WorksheetError
from app.topics.requirements import TopicError
from app.web.practice.sheet_request import sheet_link
from app.web.shared.permissions import require_practice
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

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
    """What one bucket adds to a summand: its name, its piece of the bar, and itself as it stands in the formula.

    `total` is how many parameters it is in all layers, `share` that as a part of the model.
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
    """What one colour of the bar stands for, and how much of the model it is."""

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
    transposed: bool  # whether it is stored the other way round
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
    kinds: Annotated[tuple[str, ...], Doc("How it computes, one sentence a property.")]
    sheets: Annotated[tuple[SheetChoice, ...], Doc("The sheets that can be made from it.")]
    counts: Annotated[ParameterCounts, Doc("Its parameters by what they are for.")]
    total: Annotated[ParameterFormula, Doc("Its parameters as a sum of products.")]
    summands: Annotated[tuple[SummandLine, ...], Doc("The same sum, part by part.")]
    legend: Annotated[tuple[LegendLine, ...], Doc("The colours of the bar.")]
    active_share: Annotated[str, Doc("How much of the model one token uses, as a part of the whole.")]
    remarks: Annotated[tuple[str, ...], Doc("Equal sizes, experts, and the length of the input in that sum.")]
    heading: Annotated[str, Doc("The heading over the parameters.")]
    tensors: Annotated[tuple[TensorLine, ...], Doc("Every parameter tensor.")]


@router.get("/models/{key}")
def show_model(services: ServicesDep, key: str) -> Response:
    """One model as it was read; raises WorksheetError where there is none of that key."""
    library = library_with_model(services.library, services.store, key)
    return render("models/model.html", _model_page(library, library.model(key)))


def _model_page(library: Library, model: Model) -> ModelPage:
    """The page of a model: sizes and their sources, kind of attention, sheets, parameters as a sum and tensor by
    tensor.

    `library` must hold the model, imported or not.
    """
    wording, architecture = library.wording, model.architecture
    counts, total = parameter_counts(architecture), parameter_formula(architecture)
    summands = tuple(_summand_lines(wording, total))
    return ModelPage(
        model=model,
        sizes=tuple(_size_lines(wording, architecture)),
        kinds=tuple(_kind_sentences(wording, architecture)),
        sheets=tuple(_sheet_choices(library, model)),
        counts=counts,
        total=total,
        summands=summands,
        legend=tuple(_legend_lines(summands, counts.total)),
        active_share=_share(counts.active, counts.total),
        remarks=tuple(_count_remarks(wording, architecture, counts, total)),
        heading=wording.say("parameters", "title"),
        tensors=tuple(_tensor_lines(architecture)),
    )


def _size_lines(wording: Wording, architecture: Architecture) -> Iterator[SizeLine]:
    """The nine sizes every model is asked for, then those that only this family has, each with its source.

    One of the nine that the model lacks has a dash and a sentence on why.
    """
    readings = {reading.symbol: reading for reading in architecture.size_sources}
    sizes = {**{symbol: reading.value for symbol, reading in readings.items()}, **architecture.all_sizes}
    for symbol in (*NINE, *(symbol for symbol in readings if symbol not in NINE)):
        meaning = wording.say("sizes", symbol)
        if symbol in readings:
            reading = readings[symbol]
            how = _unstated_reason(wording, architecture, reading, sizes)
            yield SizeLine(symbol, meaning, format_number(reading.value), reading.field or "", how)
        else:
            yield SizeLine(symbol, meaning, "–", "", wording.say("readings", f"none-{symbol}"))


def _unstated_reason(
    wording: Wording, architecture: Architecture, reading: SizeSource, sizes: Mapping[str, int]
) -> str:
    """The sentence on why a size has its value where no field of the config states it; empty where one does.

    It names the field that is missing or null, if there is one for this size, and writes the rule out in numbers, which
    it takes from `sizes` by symbol.

    Example: '“head_dim” is not stated, so it is d/H = 4096/32.'
    """
    if reading.field:
        return ""
    rule = reading.rule
    values = {"family": architecture.family, "value": format_number(reading.value), "rule": rule.replace("*", "·")}
    numbers = "" if reading.is_default else in_numbers(rule, sizes)
    why = wording.say("why", _why_key(wording, reading), numbers=numbers, **values)
    if not reading.fields:
        return wording.say("readings", "follows", why=why)
    key = "null" if reading.is_null else "missing"
    return wording.say("readings", key, field=reading.fields[0], why=why)


def _why_key(wording: Wording, reading: SizeSource) -> str:
    """The key of the sentence on a rule in wording [why]: one for this symbol if there is one, else one for its kind.

    Example: 'd // H' for d_h gives 'd_h-d // H' or 'rounded', '32' gives 'number', 'H' gives 'same'.
    """
    symbol, rule = reading.symbol, reading.rule
    if reading.is_default:
        return "default"
    of_size = f"{symbol}-share" if "/" in rule else f"{symbol}-{rule}"
    if of_size in wording.sections["why"]:
        return of_size
    if "//" in rule:
        return "rounded"
    if rule.isdigit():
        return "number"
    return "same" if re.fullmatch(r"\w+", rule) else "sum"


def _kind_sentences(wording: Wording, architecture: Architecture) -> Iterator[str]:
    """What kind of attention it is, one sentence a property; then the notes on what was read otherwise than stated."""
    sizes = {symbol: format_number(size) for symbol, size in architecture.all_sizes.items()}
    for key, more in _property_keys(wording, architecture):
        yield wording.say("kinds", key, **{**sizes, **more})
    yield from architecture.notes


def _property_keys(wording: Wording, a: Architecture) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The keys in wording [kinds] of the sentences that hold for this model, each with the values it needs.

    In this order: mask, key/value heads, windows, positions, the scores, biases, QK norm, sinks, norms, gate, experts,
    LM head, model class, and what is not modelled. Properties that only some models have are left out in the others.
    """
    masked = "causal" if a.causal else "bidirectional"
    yield "encoder-decoder" if a.encoder_decoder else masked, {}
    yield _kv_heads_key(a), {"share": a.query_heads_per_kv_head}
    yield _window_key(a)
    yield from _position_keys(a)
    yield from _score_keys(a)
    which = ", ".join(wording.say("projections", letter) for letter in a.biases)
    yield ("biases" if a.biases else "biases-none"), {"which": which}
    yield from ((key, {}) for key, has in (("qk-norm", a.qk_norm), ("sinks", a.has_sinks)) if has)
    yield f"norm-{a.norm_placement}", {"norm": a.norm}
    yield ("gated" if a.gated else "ungated"), {}
    yield from _expert_keys(a)
    yield _lm_head_key(a), {}
    yield "counted-as", {"model_class": a.model_class}
    yield from (("not-modelled", {"part": part}) for part in a.not_modelled)


def _kv_heads_key(a: Architecture) -> str:
    """The key of the sentence on key/value heads: latent, one per query head, one in all, or one for a group."""
    if a.has_latent_attention:
        return "latent"
    if a.H == a.G:
        return "heads-own"
    return "heads-one" if a.G == 1 else "heads-grouped"


def _window_key(a: Architecture) -> tuple[str, Mapping[str, object]]:
    """The key of the sentence on sliding windows or chunks, in no layer, in some or in all, and its values.

    They are the window, the widest of several, or the chunk; how many layers have one; and how many layers there are. A
    window that no input within the context length exceeds hides nothing.
    """
    limits = [run.window or run.chunk for run in a.runs for _ in range(run.count)]
    limited = [limit for limit in limits if limit is not None]
    if not limited:
        return "window-none", {}
    values: dict[str, object] = {"n": len(limited), "L": len(limits), "W": format_number(max(limited))}
    if any(run.chunk for run in a.runs):
        return "chunks", {**values, "chunk": values["W"]}
    if a.C is not None and min(limited) >= a.C:
        return "window-beyond", values
    if not a.causal:
        return "window-centred", {**values, "side": format_number((max(limited) - 1) // 2)}
    return ("window-all" if len(limited) == len(limits) else "window-some"), values


def _position_keys(a: Architecture) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The keys of the sentences on positions, with their values: RoPE, else a table shorter than MAX_TOKENS, else
    others.

    "positions-other" is left out if scores have a bias, which gets its own sentence. A fixed number of tokens comes
    last.
    """
    with_rotary = [run for run in a.runs if run.rotary]
    if with_rotary:
        yield from _rotary_keys(a, with_rotary)
    elif a.has_position_table and a.max_tokens < MAX_TOKENS:
        yield "positions-table", {"most": format_number(a.max_tokens)}
    elif not a.position_bias:
        yield "positions-other", {}
    if a.position_bias:
        yield f"positions-{a.position_bias}", {}
    if a.fixed_tokens is not None:
        # Whisper's encoder begins with a convolution of stride 2; a frame is 10 ms (arXiv:2212.04356, section 2.2).
        frames = 2 * a.fixed_tokens
        words = {"n": format_number(a.fixed_tokens), "frames": format_number(frames), "seconds": f"{frames / 100:g}"}
        yield f"fixed-tokens-{a.input}", words


def _rotary_keys(a: Architecture, with_rotary: Sequence[LayerRun]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The keys of the sentences on RoPE, each with its values.

    First "rotary-all" or "rotary-part", by width, with the base of layers without a window; then "rotary-local" if
    layers with a window have another base, and "rotary-some-layers" if some layers have no RoPE.
    """
    common = next((run.rotary for run in with_rotary if not run.window), with_rotary[0].rotary)
    local = next((run.rotary for run in with_rotary if run.window), common)
    if common is None or local is None:
        return
    values = {"width": format_number(common.width), "theta": f"{common.theta:,.0f}"}
    yield ("rotary-all" if common.width == a.d_h else "rotary-part"), values
    if local.theta != common.theta:
        yield "rotary-local", {"theta": f"{local.theta:,.0f}"}
    layers, rotating = (sum(run.count for run in runs) for runs in (a.runs, with_rotary))
    if rotating < layers:
        yield "rotary-some-layers", {"n": layers - rotating, "L": layers}


def _score_keys(a: Architecture) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The keys of the sentences on the scores, with their values: what they are multiplied by, and a cap."""
    scale = a.score_scale
    words = {"factor": f"{scale.factor:.4g}", "field": scale.field, "number": f"{scale.number:.4g}"}
    yield f"scale-{scale.kind}", words
    if a.score_softcap is not None:
        yield "softcap", {"cap": f"{a.score_softcap:g}"}


def _expert_keys(a: Architecture) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The key of the sentence on experts, with its values; none for a model without."""
    if not a.has_experts:
        return
    counts = {"n": sum(kind.layers for kind in a.kinds if kind.has_experts), "L": sum(kind.layers for kind in a.kinds)}
    yield f"experts{_shared_experts(a)}", counts


def _shared_experts(a: Architecture) -> str:
    """The end of a key for the experts that every token uses: "" for none, "-one-shared" or "-shared" for several."""
    if not any("shared_experts" in kind.rows for kind in a.kinds):
        return ""
    return "-one-shared" if a.all_sizes.get("n_sh", 1) == 1 else "-shared"


def _lm_head_key(a: Architecture) -> str:
    """The key of the sentence on the LM head: none over the vocabulary, tied to the embeddings, or its own matrix."""
    if not a.has_lm_head:
        return "no-output"
    return "tied" if a.tied_embeddings else "untied"


def _sheet_choices(library: Library, model: Model) -> Iterator[SheetChoice]:
    """One sheet for each table that this model has: that of the worksheet that fits the model best (`_misfit`).

    Among equals, the first in the library. Its length is the worksheet's, or the longest that the model takes if that
    is shorter. Worksheets that cannot be made from this model are left out.
    """
    by_table = dict[str, list[Variant]]()
    for sheet in library.worksheets.values():
        try:
            variant = library.variant(sheet.key, model.key)
        except (WorksheetError, TokensError, TopicError):  # this model has no such thing
            continue
        by_table.setdefault(variant.table.key, []).append(variant)
    for variants in by_table.values():
        variant = min(variants, key=lambda variant: _misfit(library, variant))
        yield SheetChoice(library.wording.topics[variant.worksheet.topic].name, sheet_link(variant))


def _misfit(library: Library, variant: Variant) -> tuple[bool, ...]:
    """How badly a sheet's worksheet fits its model: of two, the one with the smaller tuple fits better.

    A worksheet with special conventions fits worst: symbols, tokens as columns, or G = H. After that it fits better if
    it was written for this model, then for one with the same table, then for one of the same family.
    """
    sheet, written_for = variant.worksheet, library.variant(variant.worksheet.key)
    return (
        sheet.kv_head_per_query_head or sheet.answers != "numbers" or sheet.tokens_are != "rows",
        sheet.model != variant.model.key,
        written_for.table.key != variant.table.key,
        written_for.model.architecture.family != variant.model.architecture.family,
    )


def _summand_lines(wording: Wording, total: ParameterFormula) -> Iterator[SummandLine]:
    """The summands of the number of parameters in its order: their layers in words, and their buckets by name."""
    for number, (part, group) in enumerate(zip(total.summands, parameter_bar(total), strict=True)):
        pieces = tuple(_piece_line(wording, f"{number}-", part, piece, total.total) for piece in group.pieces)
        where, has_room = _layers_text(wording, part, total), part.total * 5 >= total.total
        yield SummandLine(part, where, group, has_room, _share(part.total, total.total), pieces)


def _piece_line(wording: Wording, prefix: str, part: Summand, piece: BarPiece, whole: int) -> PieceLine:
    """One bucket of a summand; "other" is named after where it is: in a layer, a decoder's, or outside the layers."""
    bucket = piece.bucket
    names = {"other": "decoder-other" if part.decoder else "layer-other"} if part.layers else {}
    total = bucket.count * (part.layers or 1)
    return PieceLine(
        key=f"{prefix}{bucket.bucket}",
        name=wording.say("buckets", names.get(bucket.bucket, bucket.bucket)),
        piece=piece,
        symbols=in_brackets(bucket.symbols, len(part.buckets)),
        numbers=in_brackets(bucket.numbers, len(part.buckets)),
        total=total,
        share=_share(total, whole),
    )


def _legend_lines(summands: Sequence[SummandLine], whole: int) -> Iterator[LegendLine]:
    """The buckets of all summands by name, in the order of the bar, those of the same name together."""
    pieces = [piece for summand in summands for piece in summand.pieces]
    for name in dict.fromkeys(piece.name for piece in pieces):
        alike = [piece for piece in pieces if piece.name == name]
        yield LegendLine(alike[0].piece.bucket.bucket, name, _share(sum(piece.total for piece in alike), whole))


def _share(count: int, total: int) -> str:
    """A part of the whole: "31.9%", and "< 0.1%" for what would be rounded to nothing."""
    return f"{count / total:.1%}" if count * 1000 >= total else "< 0.1%"


def _layers_text(wording: Wording, part: Summand, total: ParameterFormula) -> str:
    """Which layers a summand counts, and how many, in words; empty for one outside the layers, such as the embeddings.

    They are the encoder's or decoder's where the model has both; else all layers, or some where they differ.
    """
    if not part.layers:
        return ""
    stacks = [other for other in total.summands if other.layers]
    if any(other.decoder for other in stacks):
        stack = "decoder" if part.decoder else "encoder"
        key = f"{stack}-one" if part.layers == 1 else stack
    elif len(stacks) == 1:
        key = "all"
    else:
        key = "one" if part.layers == 1 else "some"
    return wording.say("parameters", f"layers-{key}", n=part.layers)


def _count_remarks(
    wording: Wording, a: Architecture, counts: ParameterCounts, total: ParameterFormula
) -> Iterator[str]:
    """Sentences on the number of parameters: sizes that happen to be equal, those active for one token, the length.

    The first two stand only where there are such; the last, on whether the longest input counts in the sum, always.
    """
    if total.equalities:
        equalities = ", ".join(
            f"{each.first} = {each.second} = {format_number(each.size)}" for each in total.equalities
        )
        yield wording.say("parameters", "equalities", list=equalities)
    if counts.active != counts.total:
        sizes = {symbol: format_number(size) for symbol, size in a.all_sizes.items()}
        yield wording.say("parameters", f"active{_shared_experts(a)}", active=f"{counts.active:,}", **sizes)
        if not a.tied_embeddings:
            yield wording.say("parameters", "active-embedding", rest=f"{counts.active - counts.embedding:,}")
    if tables := total.position_products:
        texts = [wording.say("parameters", "rows", product=each, n=format_number(tables[each])) for each in tables]
        products = reduce(lambda before, after: wording.say("inventory", "and", before=before, after=after), texts)
        yield wording.say("parameters", "length-counted", products=products)
    else:
        yield wording.say("parameters", "length-free" if a.C else "length-unstated", C=format_number(a.C or 0))


def _tensor_lines(architecture: Architecture) -> Iterator[TensorLine]:
    """Every parameter tensor in the order of the model, those of a layer once, with how many layers have them.

    The symbols and the shape are those of x·W, 'd × (H·d_h + G·d_h)', beside the shape as stored and how many numbers
    that is; a sum that is one of several axes stands in parentheses.
    """
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
