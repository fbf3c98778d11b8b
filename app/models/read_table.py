"""Builds the Architecture of a config by its family's table in data/families.

A table knows shapes, numbers of heads, masks and scales. It doesn't know where a model has its norms or how it encodes
positions, so nothing is said of those (`shapes_only`). What sheets about attention or about whole layers can't be true
of is found here, with the sentence that refuses them.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from app.algebra.expression import Expression, ExpressionError
from app.models.alibi import slopes_from_powers, slopes_of_larger_power
from app.models.architecture import (
    MAIN_SYMBOLS,
    Architecture,
    LayerRun,
    LayerStack,
    ModelNote,
    NormKind,
    NormPlacement,
    PositionBias,
    QKNorm,
    Rotary,
    SizeSource,
)
from app.models.computation import RotaryRule, computation_of
from app.models.config_fields import Config, ConfigError, check_whole_number, read_bool, read_positive_number
from app.models.grammar import Rule, RuleError, parse_rule
from app.models.parameter_specs import (
    HEAD_PARTS,
    FusedOrder,
    ModelPart,
    ParameterSpec,
    ParameterSpecs,
    StackSpec,
    TaskHead,
    number_of_parameters,
    parse_shape,
)
from app.models.score_scale import SCALE_RULES, ScoreScale, rope_settings
from app.models.table import AttentionLine, FamilyTable, Limit, TableStack, TableTensor
from app.models.table_values import TableValues
from app.models.whole_file import check_names_of_sizes
from app.models.width_rules import META_RULES, WidthRule, width_rule
from app.translation import N_
from app.translation import gettext as _

# Class names that end in one of these give scores over the vocabulary at every position.
_LM_CLASSES = ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration")
_QUERIES_TO_OUTPUT = "qkvo"
_BIASES_OF_FUSED = (".q_bias", ".v_bias")  # DeBERTa
# Parts of an attention module that sheets leave out, by a pattern in the tensor's name. Any other part that isn't a
# projection or a norm of queries and keys keeps the model off sheets about attention.
_GATE = N_("a gate on the output of attention")
_LEFT_OUT: Mapping[str, str] = {
    r"(^|[._])(g|gate)(_proj|_bias)?(\.|$)": _GATE,
    r"sub_norm|inner_attn_ln": N_("a norm inside attention"),
}
_PADDED_ROWS = 2
_SEPARATE_HEAD = ParameterSpec(
    "lm_head.weight", parse_shape("d", "V"), parse_shape("V", "d"), ModelPart.OUTPUT_HEAD, "matrix"
)
# What a scale can depend on: widths, and fields that are there for it.
_OF_SCALES = re.compile(r"d|H|d_h|d_nope|d_rope|H_dec|.*(scal|multipl).*")
_SQUARE_ROOT = re.compile(r"1/sqrt\((.*)\)")


@dataclass(frozen=True)
class _Layer:
    """One layer of a stack: its tensors, and its line on attention with what a token sees there."""

    parameters: ParameterSpecs
    line: AttentionLine | None
    window: int | None
    chunk: int | None
    rotary: Rotary | None = None


# Each stack of layers that a config has, with its layers.
_Stacks = Sequence[tuple[TableStack, list[_Layer]]]


@dataclass(frozen=True)
class _Task:
    """What a class has beside its layers, and the shape of its logits."""

    head_parameters: ParameterSpecs
    base_parameters: ParameterSpecs
    has_logits: bool
    logits: tuple[Expression, ...] | None
    is_tied: bool


@dataclass(frozen=True)
class _Heads:
    """Heads per layer and their widths: query heads, key/value heads, keys and values."""

    H: int = 0
    G: int = 0
    d_h: int = 0
    d_v: int = 0


def read_table(
    table: FamilyTable, config: Config, name: str, model_type: str, model_class: str, notes: tuple[ModelNote, ...]
) -> Architecture:
    """The Architecture, called `name`, of a config whose family has this table; raises ConfigError."""
    if not computation_of(model_type).is_known:
        check_names_of_sizes(config, table, model_type)
    return _Reader(table, config, name, model_type, model_class).architecture(notes)


class _Reader:
    def __init__(self, table: FamilyTable, config: Config, name: str, model_type: str, model_class: str) -> None:
        self.table, self.name, self.model_type, self.model_class = table, name, model_type, model_class
        self.values = TableValues(table, config, model_type)
        self.computation = computation_of(model_type)

    def architecture(self, notes: tuple[ModelNote, ...]) -> Architecture:
        computation, values = self.computation, self.values
        stacks: _Stacks = [(stack, layers) for stack in self._stacks_in_order() if (layers := self._layers(stack))]
        outside = self._existing(self.table.outside) + self._separate_head()
        self._check_axes((*outside, *_tensors_of(_layers_of(stacks))))
        if not stacks:
            raise ConfigError(_("This model has no layers: check their number."))
        first = _first_with_scores(stacks)
        heads = self._heads(first.line) if first and first.line else _Heads()
        d = self._size("d") or self._width_of_embedding(outside)
        attention = _Attention(self, first, heads, d, stacks)
        causal = self._is_causal(stacks)
        task = self._task(outside)
        if computation.is_known:
            stacks = [(stack, self._in_symbols_of_heads(layers, d)) for stack, layers in stacks]
            stacks = self._with_rotary(stacks, heads)
            first = _first_with_scores(stacks)
        in_layers = _tensors_of(_layers_of(stacks))
        d_ff, dense_width = self._inner_widths(stacks)
        of_encoder = [
            layer for stack, layers in stacks for layer in layers if stack.name not in self._decoders_of_class
        ]
        feed_forward = _FeedForward(self, of_encoder, d, dense_width)
        position_bias = self._position_bias(first)
        slopes = slopes_of_larger_power if computation.has_larger_alibi_slopes else slopes_from_powers
        norm_placement: NormPlacement = ""
        if computation.norm_placement:
            norm_placement = values.by_rule(computation.norm_placement)
        has_rms = attention.qk_norm not in ("", "layer-norm")
        architecture = Architecture(
            name=self.name,
            family=self.model_type,
            d=d,
            H=heads.H,
            G=heads.G,
            d_h=heads.d_h,
            d_v=heads.d_v,
            d_ff=d_ff,
            V=self._size("V"),
            L=self._size("L") or len(stacks[0][1]),
            C=self._size("C"),
            causal=causal,
            tied_embeddings=task.is_tied,
            biases=attention.biases,
            qk_norm=attention.qk_norm,
            qk_norm_eps=read_positive_number(values.config, "rms_norm_eps", 1e-6) if has_rms else None,
            rotary=first.rotary if first else None,
            window=first.window if first else None,
            chunk=first.chunk if first else None,
            initializer_range=read_positive_number(values.config, "initializer_range", 0.02),
            usable_positions=self._position_rows(outside),
            fixed_tokens=self._size(computation.fixed_tokens) if computation.fixed_tokens else None,
            input=computation.input,
            score_scale=attention.scale,
            score_softcap=self._softcap(first),
            position_bias=position_bias,
            alibi_slopes=slopes(heads.H) if position_bias == "alibi" else (),
            norm=computation.norm if computation.is_known else _kind_of_norm(stacks, outside),
            norm_placement=norm_placement,
            has_final_norm=norm_placement != "post" and not values.holds(computation.has_no_final_norm),
            embedding_scale=computation.embedding_scale,
            scales_residuals=computation.scales_residuals,
            scales_queries=values.holds(computation.scales_queries),
            not_modelled=tuple(self._left_out(attention)),
            shapes_only=not computation.is_known,
            attention_problem=attention.problem,
            layer_problem=attention.layer_problem
            or feed_forward.problem
            or self._problem_of_attention_alone(first)
            or self._expert_problem(in_layers),
            model_class=self.model_class,
            has_kv_cache=self._has_cache(decodes=causal or bool(self._decoders_of_class), has_logits=task.has_logits),
            extra=self._extra_sizes((*outside, *in_layers), stacks, attends=heads.H > 0),
            size_sources=(),
            task_head=TaskHead("" if self._is_bare else self.table.prefix, task.head_parameters, logits=task.logits),
            gated=feed_forward.gated,
            width_rule=self._width_rule(d, d_ff) if feed_forward.gated else None,
            base_parameters=task.base_parameters,
            head_parameters=task.head_parameters,
            stacks=tuple(self._layer_stack(stack, layers) for stack, layers in stacks),
            notes=notes,
        )
        return replace(architecture, size_sources=self._size_sources(architecture, first, heads))

    def _is_causal(self, stacks: _Stacks) -> bool:
        first = _first_with_scores(stacks)
        if not (first and first.line and first.line.mask == "causal"):
            return False
        if read_bool(self.values.config, "is_causal", True) or self._ignores_is_causal:
            return True
        if any(layer.window for layer in _layers_of(stacks)):
            raise ConfigError(_('"is_causal" is false in a model with sliding windows, which is not supported.'))
        return False

    def _task(self, outside: ParameterSpecs) -> _Task:
        head_parameters = tuple(spec for spec in outside if spec.part in HEAD_PARTS)
        heads_of_table = any(tensor.spec.part == ModelPart.OUTPUT_HEAD for tensor in self.table.outside)
        has_logits = not self._is_bare and (heads_of_table or self.model_class.endswith(_LM_CLASSES))
        logits = None
        if has_logits and "V" in self.table.sizes:
            logits = parse_shape("M" if self._decoders_of_class else "N", "V")
        for spec in head_parameters:
            if spec.part == ModelPart.TASK_HEAD and spec.kind == "matrix":
                logits = (*parse_shape("1"), spec.in_out_shape[-1])
        return _Task(
            head_parameters=head_parameters,
            base_parameters=tuple(spec for spec in outside if spec.part not in HEAD_PARTS),
            has_logits=has_logits,
            logits=logits,
            is_tied=has_logits and not any(spec.kind == "matrix" and "V" in spec.symbols for spec in outside),
        )

    def _inner_widths(self, stacks: _Stacks) -> tuple[int, int]:
        """d_ff, and the width of layers without experts."""
        if "d_dense" in self.table.other_names:
            d_ff, dense = self._inner_width(stacks) or 0, self.values["d_dense"]
            return d_ff, dense or d_ff
        d_ff = self._size("d_ff") or self._inner_width(stacks) or 0
        return d_ff, d_ff

    def _position_bias(self, first: _Layer | None) -> PositionBias:
        if self._has_alibi(first):
            return "alibi"
        bias: PositionBias = self.values.by_rule(self.computation.position_bias)
        return bias

    def _left_out(self, attention: _Attention) -> Iterator[str]:
        yield from map(_, attention.left_out)
        yield from (_(each.noun) for each in self.computation.omissions if self.values.holds(each.when))
        if attention.qk_norm == "layer-norm":
            yield _("LayerNorm on queries and keys")

    def _size_sources(self, architecture: Architecture, first: _Layer | None, heads: _Heads) -> tuple[SizeSource, ...]:
        """Where each size that sheets show comes from."""
        sources, d_ff = self._sources_of_heads(first, heads) | self.values.sources, architecture.d_ff
        if "d_dense" in self.table.other_names:
            names = self.table.other_names.items()
            sources |= {name: replace(sources[symbol], symbol=name) for name, symbol in names if symbol in sources}
            is_dense = d_ff == self.values["d_dense"]
            sources["d_ff"] = SizeSource("d_ff", d_ff, None, "d_dense" if is_dense else "d_exp")
        shown = {*architecture.all_sizes, *MAIN_SYMBOLS}
        known = (*MAIN_SYMBOLS, *self.table.sizes, *self.table.other_names, "H_dec", "d_h_dec", "P_dec")
        return tuple(sources[symbol] for symbol in dict.fromkeys(known) if symbol in sources and symbol in shown)

    @property
    def _is_bare(self) -> bool:
        return self.model_class in (self.table.base, self.table.encoder)

    @property
    def _ignores_is_causal(self) -> bool:
        return self.computation.ignores_is_causal or not self.computation.is_known

    def _has_cache(self, *, decodes: bool, has_logits: bool) -> bool:
        return decodes and (not self.computation.has_no_cache if self.computation.is_known else has_logits)

    def _width_rule(self, d: int, d_ff: int) -> WidthRule | None:
        return width_rule(META_RULES if self.computation.has_widths_of_meta else {}, self._size("L") or 0, d, d_ff)

    def _sources_of_heads(self, first: _Layer | None, heads: _Heads) -> dict[str, SizeSource]:
        # A size without a field, such as G in a model without shared keys, has the rule of the attention line.
        if first is None or first.line is None:
            return {}
        line = first.line
        rules = {"H": line.heads.text, "G": line.kv_heads.text, "d_h": line.d_h.text, "d_v": line.d_v.text}
        if rules["d_v"] == rules["d_h"]:
            rules["d_v"] = "d_h"
        found = {
            symbol: SizeSource(symbol, getattr(heads, symbol), None, rule.replace("·", "*"))
            for symbol, rule in rules.items()
            if rule != symbol
        }
        cross = next((line for line in self.table.attention if line.stack in self._decoders), None)
        if cross:
            of_decoder = {"H_dec": cross.heads, "d_h_dec": cross.d_h}
            found |= {
                symbol: SizeSource(symbol, self.values.whole(rule), None, rule.text)
                for symbol, rule in of_decoder.items()
                if rule.text != symbol
            }
            if "P_dec" not in self.table.sizes and self._size("C"):
                found["P_dec"] = SizeSource("P_dec", self._size("C") or 0, None, "C")
        return found

    # Layers

    @cached_property
    def _decoders(self) -> frozenset[str]:
        """The names of stacks that read another stack through cross-attention."""
        of_encoders = {line.stack for line in self.table.attention if line.mask == "all"}
        return frozenset(
            line.stack for line in self.table.attention if line.mask == "cross" and of_encoders - {line.stack}
        )

    @property
    def _decoders_of_class(self) -> frozenset[str]:
        return frozenset() if self.model_class == self.table.encoder else self._decoders

    def _stacks_in_order(self) -> list[TableStack]:
        attending = {line.stack for line in self.table.attention if line.mask != "cross"}
        stacks = [stack for stack in self.table.stacks if self.values.all_hold(stack.when)]
        if self.model_class == self.table.encoder:
            stacks = [stack for stack in stacks if stack.name not in self._decoders]
        return sorted(stacks, key=lambda stack: (stack.name in self._decoders, stack.name not in attending))

    def _layers(self, stack: TableStack) -> list[_Layer]:
        count = self.values.layers_of(stack.count)
        lines = [line for line in self.table.attention if line.stack == stack.name and line.mask != "cross"]
        of_model = [tensor for tensor in stack.tensors if self._is_in_class(tensor)]
        conditions = list(dict.fromkeys(rule for tensor in of_model for rule in tensor.when))
        always = {rule: self.values.all_hold((rule,)) for rule in conditions if not rule.of_layer}
        of_layer = [rule for rule in conditions if rule.of_layer]
        alike = dict[tuple[bool, ...], ParameterSpecs]()
        layers = list[_Layer]()
        for i in range(count):
            holds = tuple(self.values.holds(rule, i) for rule in of_layer)
            if holds not in alike:
                true = always | dict(zip(of_layer, holds, strict=True))
                specs = (tensor.spec for tensor in of_model if all(true[rule] for rule in tensor.when))
                alike[holds] = tuple(spec for spec in specs if self._holds_something(spec))
            line = next((line for line in lines if self.values.all_hold(line.when, i)), None)
            window = self._limit(line.window, i) if line else None
            chunk = self._limit(line.chunk, i) if line else None
            layers.append(_Layer(alike[holds], line, window, chunk))
        return layers

    def _limit(self, limit: Limit | None, layer: int) -> int | None:
        if limit is None or not self.values.all_hold(limit.when, layer):
            return None
        length = self.values.by_rule(limit.length, layer)
        return length if isinstance(length, int) and length > 0 else None

    def _layer_stack(self, stack: TableStack, layers: Sequence[_Layer]) -> LayerStack:
        in_order = groupby(layers, key=lambda layer: (layer.parameters, layer.window, layer.chunk, layer.rotary))
        runs = tuple(LayerRun(len(list(alike)), *kind) for kind, alike in in_order)
        order = {tensor.spec.name: number for number, tensor in enumerate(stack.tensors)}
        parameters = tuple(sorted(_tensors_of(layers), key=lambda spec: order[spec.name]))
        is_decoder = stack.name in self._decoders
        count = "L_dec" if is_decoder else "L" if len(layers) == self._size("L") else stack.count.text
        spec = StackSpec(f"{stack.name}.{{i}}.", count, parameters, is_decoder)
        return LayerStack(spec, runs)

    # Positions, and attention's projections in the symbols that sheets have for them

    def _with_rotary(self, stacks: _Stacks, heads: _Heads) -> list[tuple[TableStack, list[_Layer]]]:
        rule = self.computation.rotary
        if rule is None:
            return list(stacks)
        rotary = local = self._rotary(rule, heads, is_local=False)
        if rule.local_theta is not None:
            local = self._rotary(rule, heads, is_local=True)

        def of_layer(layer: _Layer, number: int, *, has_windows: bool) -> _Layer:
            rotates = self.values.holds(rule.when, number)
            if rule.only_windowed and has_windows:
                rotates = layer.window is not None
            return replace(layer, rotary=(local if layer.window else rotary) if rotates else None)

        return [
            (stack, [of_layer(each, i, has_windows=any(one.window for one in layers)) for i, each in enumerate(layers)])
            for stack, layers in stacks
        ]

    def _rotary(self, rule: RotaryRule, heads: _Heads, *, is_local: bool) -> Rotary:
        # transformers 5 writes "rope_parameters" with the base inside; a file with two kinds of layers has one such
        # object per kind. Older files keep base and scaling apart.
        config, settings = self.values.config, rope_settings(self.values.config)
        of_kind = settings.get("sliding_attention" if is_local else "full_attention")
        if isinstance(of_kind, dict):
            settings = of_kind
        elif is_local and not rule.scaled_locally:
            settings = {}
        field, default = (rule.local_theta_field, rule.local_theta) if is_local else (rule.theta_field, rule.theta)
        theta = read_positive_number(settings, "rope_theta", read_positive_number(config, field, default))
        width = rule.width.value(ChainMap({"d_h": heads.d_h}, self.values))
        if rule.share is not None:
            stated = read_positive_number(config, rule.share_field, rule.share)
            share = read_positive_number(settings, "partial_rotary_factor", stated)
            width = max(1, int(width * min(share, 1.0)))
        adjacent = self.values.holds(rule.adjacent)
        return Rotary(theta, check_whole_number(width, rule.width.text), settings, adjacent)

    def _in_symbols_of_heads(self, layers: Sequence[_Layer], d: int) -> list[_Layer]:
        named = {
            layer.parameters: self._named(layer.parameters, layer.line, d)
            for layer in {layer.parameters: layer for layer in layers}.values()
            if layer.line
        }
        return [replace(layer, parameters=named.get(layer.parameters, layer.parameters)) for layer in layers]

    def _named(self, specs: ParameterSpecs, line: AttentionLine, d: int) -> ParameterSpecs:
        if any(spec.part == ModelPart.LATENT_ATTENTION for spec in specs):
            return self._latent_in_symbols(specs, line)
        return self._projections_in_symbols(specs, line, d)

    def _projections_in_symbols(self, specs: ParameterSpecs, line: AttentionLine, d: int) -> ParameterSpecs:
        """Attention's projections as sheets write them: d × H·d_h where the table has d × d."""
        heads = self._heads(line)
        H, G, d_h, d_v = "H", "G", "d_h", "d_v"
        if self._decoders:  # both stacks have as many key/value heads as query heads
            H, d_h = ("H_dec", "d_h_dec") if line.heads.text == "H_dec" else (H, d_h)
            G, d_v = H, d_h
        sides = [f"{H}*{d_h}", f"{G}*{d_h}", f"{G}*{d_v}", f"{H}*{d_v}"]
        separate = [("d", sides[0]), ("d", sides[1]), ("d", sides[2]), (sides[3], "d")]
        fused = [("d", " + ".join(sides[:3])), separate[-1]]
        sizes = {"d": d, H: heads.H, G: heads.G, d_h: heads.d_h, d_v: heads.d_v}
        changed = dict[ParameterSpec, ParameterSpec]()
        for part in (ModelPart.ATTENTION, ModelPart.CROSS_ATTENTION):
            of_part = [spec for spec in specs if spec.part == part]
            matrices = [spec for spec in of_part if spec.kind == "matrix"]
            wanted = separate if len(matrices) == len(separate) else fused if len(matrices) == len(fused) else []
            shapes = [parse_shape(*sides) for sides in wanted]
            if any(
                tuple(axis.size(sizes) for axis in shape) != self._shape(spec)
                for spec, shape in zip(matrices, shapes, strict=bool(shapes))
            ):
                continue
            for spec, shape in zip(matrices, shapes, strict=bool(shapes)):
                order = self.computation.fused if wanted is fused and shape is shapes[0] else ""
                changed[spec] = self._restated(spec, shape, order)
                bias = next((b for b in of_part if b.name == f"{spec.name.removesuffix('weight')}bias"), None)
                if bias:
                    changed[bias] = self._restated(bias, shape[1:])
        across = self.computation.qk_norm == "all-heads"
        for spec in specs:
            heads_of_norm = {ModelPart.QUERY_NORM: H, ModelPart.KEY_NORM: G}.get(spec.part)
            if heads_of_norm and len(spec.in_out_shape) == 1:
                (width,) = parse_shape(f"{heads_of_norm}*{d_h}" if across else d_h)
                if width.size(sizes) == self._shape(spec)[0]:
                    changed[spec] = self._restated(spec, (width,))
        return tuple(changed.get(spec, spec) for spec in specs)

    def _latent_in_symbols(self, specs: ParameterSpecs, line: AttentionLine) -> ParameterSpecs:
        queries = parse_rule(f"({line.heads.text})·({line.d_h.text})").expression()
        shown = Expression.parse("H*d_h")
        return tuple(
            self._restated(spec, tuple(shown if axis == queries else axis for axis in spec.in_out_shape))
            if queries in spec.in_out_shape
            else spec
            for spec in specs
        )

    def _restated(self, spec: ParameterSpec, in_out: tuple[Expression, ...], fused: FusedOrder = "") -> ParameterSpec:
        # Layers are alike if their tensors are the same objects.
        restated = self.table.restated
        if (spec, in_out) not in restated:
            stored = in_out if spec.is_conv1d or spec.is_vector else in_out[::-1]
            restated[spec, in_out] = replace(spec, in_out_shape=in_out, stored_shape=stored, fused=fused)
        return restated[spec, in_out]

    def _shape(self, spec: ParameterSpec) -> tuple[int, ...]:
        return tuple(self._axis(axis, spec.name) for axis in spec.in_out_shape)

    # Tensors

    def _existing(self, tensors: Sequence[TableTensor]) -> ParameterSpecs:
        existing = (
            tensor.spec for tensor in tensors if self._is_in_class(tensor) and self.values.all_hold(tensor.when)
        )
        return tuple(spec for spec in existing if self._holds_something(spec))

    def _separate_head(self) -> ParameterSpecs:
        is_tied = read_bool(self.values.config, "tie_word_embeddings", default=True)
        if is_tied or not self.computation.may_have_separate_head:
            return ()
        return (_SEPARATE_HEAD,) if self.model_class in self.table.classes else ()

    def _is_in_class(self, tensor: TableTensor) -> bool:
        if self._is_bare and tensor.spec.part in HEAD_PARTS:
            return False
        if self.model_class == self.table.encoder and tensor.spec.name.startswith("decoder."):
            return False
        return not tensor.classes or self.model_class in tensor.classes

    def _holds_something(self, spec: ParameterSpec) -> bool:
        # A size of 0, such as the number of shared experts, leaves a tensor of no numbers.
        zeros = {symbol for symbol in spec.symbols & self.table.may_be_zero if self.values[symbol] == 0}
        return not zeros or self._axis(spec.count, spec.name) > 0

    def _check_axes(self, specs: Sequence[ParameterSpec]) -> None:
        for spec in specs:
            for axis in (*spec.stored_shape, spec.copies):
                if self._axis(axis, spec.name) < 1:
                    raise self._impossible(spec.name, axis)

    def _axis(self, axis: Expression, tensor: str) -> int:
        sizes = {symbol: self.values[symbol] for symbol in axis.symbols}
        missing = next((symbol for symbol, size in sizes.items() if size is None), None)
        if missing:
            line = self.table.sizes[self.table.other_names.get(missing, missing)]
            problem = _('The tensor {tensor} of this model needs "{field}": add it.')
            raise ConfigError(problem.format(tensor=tensor, field=line.fields[0] if line.fields else missing))
        try:
            return axis.size(sizes)
        except (ExpressionError, ZeroDivisionError):
            raise self._impossible(tensor, axis) from None

    def _impossible(self, tensor: str, axis: Expression) -> ConfigError:
        names = {name for symbol in axis.symbols for name in parse_rule(symbol).names}
        lines = (self.table.sizes[name] for name in sorted(names) if name in self.table.sizes)
        fields = ", ".join(f'"{line.fields[0]}"' for line in lines if line.fields)
        problem = _("With these sizes, {axis} is not a possible side of the tensor {tensor}: check {fields}.")
        return ConfigError(problem.format(axis=str(axis).replace("*", "·"), tensor=tensor, fields=fields))

    # Sizes

    def _size(self, symbol: str) -> int | None:
        size: int | None = self.values[symbol] if symbol in self.table.sizes else None
        return size

    def _heads(self, line: AttentionLine) -> _Heads:
        rules = (line.heads, line.kv_heads, line.d_h, line.d_v)
        heads = _Heads(*(self.values.whole(rule) for rule in rules))
        if not all((heads.H, heads.G, heads.d_h, heads.d_v)) or heads.H % heads.G:
            problem = _("{H} query heads cannot share {G} key/value heads evenly: check the two counts.")
            raise ConfigError(problem.format(H=heads.H, G=heads.G))
        return heads

    def _inner_width(self, stacks: _Stacks) -> int | None:
        parts = (ModelPart.FEED_FORWARD, ModelPart.EXPERTS)
        for _stack, layers in stacks:
            matrices = [s for s in layers[0].parameters if s.part in parts and s.kind == "matrix"]
            if matrices:
                return self._axis(matrices[-1].in_out_shape[-2], matrices[-1].name)
        return None

    def _extra_sizes(self, specs: ParameterSpecs, stacks: _Stacks, *, attends: bool) -> dict[str, int]:
        symbols = frozenset[str]().union(*(spec.symbols for spec in specs))
        if any(spec.routed for spec in specs):
            symbols |= {"k", "E"} & self.table.sizes.keys()
        rounded = sorted(symbol for symbol in symbols if not symbol.isidentifier())
        in_order = (*self.table.sizes, *self.table.other_names, *rounded)
        main = {*MAIN_SYMBOLS} if attends else {*MAIN_SYMBOLS} - {"H", "G", "d_h", "d_v"}
        extra = {symbol: self.values[symbol] for symbol in in_order if symbol in symbols - main}
        extra |= {symbol: self.values.whole(rule) for symbol, rule in self.computation.further_sizes.items()}
        extra |= self._latent_sizes()
        extra |= self._decoder_sizes(stacks)
        if extra.get("k", 1) > extra.get("E", 1):
            problem = _("A token cannot be sent to {k} of {E} experts: check the two counts.")
            raise ConfigError(problem.format(k=extra["k"], E=extra["E"]))
        return extra

    def _problem_of_attention_alone(self, layer: _Layer | None) -> str:
        if layer is None or any(spec.part in (ModelPart.FEED_FORWARD, ModelPart.EXPERTS) for spec in layer.parameters):
            return ""
        problem = _("In {model}, a layer with attention has no feed-forward block: choose a model such as LLaMA 7B.")
        return problem.format(model=self.name)

    def _expert_problem(self, specs: ParameterSpecs) -> str:
        has_experts = any(spec.routed for spec in specs)
        if not has_experts or {"k", "E"} <= self.table.sizes.keys():
            return ""
        problem = _("How many experts a token uses in {model} is not known here: choose a model such as Mixtral 8x7B.")
        return problem.format(model=self.name)

    def _latent_sizes(self) -> dict[str, int]:
        found = {symbol: self._size(symbol) for symbol in ("r_q", "r_kv", "d_nope", "d_rope")}
        return {symbol: size for symbol, size in found.items() if size}

    def _decoder_sizes(self, stacks: _Stacks) -> dict[str, int]:
        lines = [line for line in self.table.attention if line.stack in self._decoders]
        if not lines or self.model_class == self.table.encoder:
            return {}
        heads = self._heads(next(line for line in lines if line.mask == "cross"))
        layers = next(layers for stack, layers in stacks if stack.name in self._decoders)
        rows = self._size("P_dec") or self._size("C")
        return {
            "H_dec": heads.H,
            "d_h_dec": heads.d_h,
            "L_dec": len(layers),
            **({"P_dec": rows} if rows else {}),
        }

    def _width_of_embedding(self, outside: ParameterSpecs) -> int:
        tables = [spec for spec in outside if spec.part == ModelPart.TOKEN_TABLE]
        if not tables:
            problem = _("The embedding dimension of “{type}” is not known here: choose a model of another type.")
            raise ConfigError(problem.format(type=self.model_type))
        return self._axis(tables[0].in_out_shape[-1], tables[0].name)

    def _position_rows(self, outside: ParameterSpecs) -> int | None:
        if self.computation.fixed_tokens:
            return self._size(self.computation.fixed_tokens)
        rows = [
            self._axis(spec.stored_shape[0], spec.name)
            for spec in outside
            if spec.part == ModelPart.POSITION_TABLE and len(spec.stored_shape) == 2
        ]
        stated = self._size("C")
        if not rows:
            return None
        usable = min([*rows, *([stated] if stated else [])])
        return usable - _PADDED_ROWS if self.computation.counts_from_padding and usable == rows[0] else usable

    def _has_alibi(self, first: _Layer | None) -> bool:
        alibi = first.line.alibi if first and first.line else None
        return alibi is not None and self.values.all_hold(alibi)

    def _softcap(self, first: _Layer | None) -> float | None:
        rule = first.line.softcap if first and first.line else None
        cap: float | None = None if rule is None else self.values.by_rule(rule)
        return cap or None


class _Attention:
    """What sheets can say of the attention of the first layer that has N×N scores."""

    def __init__(
        self,
        reader: _Reader,
        first: _Layer | None,
        heads: _Heads,
        d: int,
        stacks: _Stacks,
    ) -> None:
        self.reader, self.heads, self.d = reader, heads, d
        self.line = first.line if first else None
        self.specs = first.parameters if first else ()
        self.layers = [layer for _stack, layers in stacks[:1] for layer in layers]
        self.decoders = [layer for stack, layers in stacks if stack.name in reader._decoders for layer in layers]
        self.left_out = list[str]()
        self.layer_problem = ""
        self.scale = ScoreScale("inverse-sqrt", heads.d_h**-0.5 if heads.d_h else 1.0)
        self.problem = "".join(list(self._problems())[:1])

    @property
    def _matrices(self) -> ParameterSpecs:
        of_attention = (s for s in self.specs if s.part == ModelPart.ATTENTION and s.kind == "matrix")
        return tuple(spec for spec in of_attention if spec not in self._gates)

    @cached_property
    def _gates(self) -> ParameterSpecs:
        parts = (ModelPart.ATTENTION, ModelPart.LATENT_ATTENTION)
        matrices = (spec for spec in self.specs if spec.part in parts and spec.kind == "matrix")
        return tuple(spec for spec in matrices if any(re.search(pattern, spec.name) for pattern in _LEFT_OUT))

    @property
    def is_latent(self) -> bool:
        return any(spec.part == ModelPart.LATENT_ATTENTION for spec in self.specs)

    @property
    def biases(self) -> str:
        biased = {spec.name.removesuffix("bias") for spec in self.specs if spec.name.endswith(".bias")}
        if self.is_latent:
            latent = (s.name for s in self.specs if s.part == ModelPart.LATENT_ATTENTION and s.kind == "bias")
            return "o" if any(latent) else ""
        has_bias = [spec.name.removesuffix("weight") in biased for spec in self._matrices]
        if len(has_bias) == len(_QUERIES_TO_OUTPUT):
            return "".join(letter for letter, has in zip(_QUERIES_TO_OUTPUT, has_bias, strict=True) if has)
        of_fused = [letter for letter, name in zip("qv", _BIASES_OF_FUSED, strict=True) if self._has_tensor(name)]
        if len(has_bias) != 2:
            return ""
        return ("qkv" * has_bias[0] or "".join(of_fused)) + "o" * has_bias[-1]

    def _has_tensor(self, ending: str) -> bool:
        return any(spec.name.endswith(ending) for spec in self.specs)

    @property
    def qk_norm(self) -> QKNorm:
        norms = [spec for spec in self.specs if spec.part == ModelPart.QUERY_NORM]
        computation = self.reader.computation
        if computation.qk_norm == "after-rope":
            return "after-rope" if self.reader.values["use_qk_norm"] else ""
        if self.is_latent or not norms:
            return ""
        if computation.is_known:
            return computation.qk_norm
        return (
            "per-head" if self.reader._axis(norms[0].stored_shape[-1], norms[0].name) == self.heads.d_h else "all-heads"
        )

    def _problems(self) -> Iterator[str]:
        """Yield the sentences that refuse sheets about attention."""
        model = self.reader.name
        if self.reader.computation.is_sparse:
            problem = _(
                "In long inputs, a token of {model} attends to a part of the others: choose a model with attention to "
                "all, such as GPT-2."
            )
            yield problem.format(model=model)
        if self.line is None:
            kind = self.reader.table.without_attention
            if kind:
                problem = _(
                    "No layer of {model} computes N×N scores: its layers are {layers}. Choose a model with attention, "
                    "such as GPT-2."
                )
                yield problem.format(model=model, layers=kind)
            else:
                problem = _("What the heads of {model} compute is not known here. Choose another model, such as GPT-2.")
                yield problem.format(model=model)
            return
        for odd in self._odd_parts():
            problem = _(
                "Attention in {model} has a part that no sheet shows, {part}: choose another model, such as GPT-2."
            )
            yield problem.format(model=model, part=odd)
        for odd in self._odd_latent_parts() if self.is_latent else self._odd_projections():
            problem = _(
                "{model} computes queries, keys and values by other matrices than sheets show ({part}): choose another "
                "model, such as GPT-2."
            )
            yield problem.format(model=model, part=odd)
        yield from self._scale_problems(self.line.scale)
        lines = {layer.line for layer in self.layers if layer.line}
        if len({self.reader._heads(line) for line in lines}) > 1:
            problem = _("The layers of {model} differ in their heads: choose a model with alike layers, such as GPT-2.")
            yield problem.format(model=model)
        if len({line.mask for line in lines}) > 1:
            problem = _("The layers of {model} differ in their mask: choose a model with alike layers, such as GPT-2.")
            yield problem.format(model=model)

    def _odd_parts(self) -> Iterator[str]:
        """Yield the names of tensors in the attention module that sheets have no place for."""
        assert self.line is not None  # noqa: S101 - the caller has looked
        module, known = self.line.module, {ModelPart.ATTENTION, ModelPart.LATENT_ATTENTION, ModelPart.QUERY_NORM}
        known |= {ModelPart.KEY_NORM, ModelPart.SINKS, ModelPart.RELATIVE_POSITIONS}
        for gate in self._gates:
            self._leave_out(_GATE, gate.name)
        projections = {spec.name.removesuffix("weight") for spec in self.specs if spec.kind == "matrix"}
        for spec in self.specs:
            is_after = "output" in spec.name or self.reader.computation.is_known
            is_known = spec.part in known or (spec.part == ModelPart.NORMS and is_after)
            if spec.part == ModelPart.ATTENTION and spec.kind != "matrix":
                is_known = spec.name.removesuffix("bias") in projections or spec.name.endswith(_BIASES_OF_FUSED)
            if not is_known and (spec.name.startswith(f"{module}.") or spec.part == ModelPart.INDEXER):
                noun = next((noun for pattern, noun in _LEFT_OUT.items() if re.search(pattern, spec.name)), "")
                if noun:
                    self._leave_out(noun, spec.name)
                else:
                    yield spec.name
        of_positions = any(spec.part == ModelPart.RELATIVE_POSITIONS for spec in _tensors_of(self.layers))
        if of_positions and not self.reader.computation.is_known:
            noun = N_("scores for relative positions")
            self._leave_out(noun, _(noun))

    def _leave_out(self, noun: str, part: str) -> None:
        if noun not in self.left_out:
            self.left_out.append(noun)
        problem = _(
            "The attention of {model} has more than sheets about parameters ask for ({part}): choose another model, "
            "such as LLaMA 7B."
        )
        self.layer_problem = self.layer_problem or problem.format(model=self.reader.name, part=part)

    def _odd_projections(self) -> Iterator[str]:
        d, heads, shape = self.d, self.heads, self.reader._shape
        matrices = self._matrices
        queries, keys, values = heads.H * heads.d_h, heads.G * heads.d_h, heads.G * heads.d_v
        separate = [(d, queries), (d, keys), (d, values), (heads.H * heads.d_v, d)]
        if len(matrices) == 4:
            for spec, wanted in zip(matrices, separate, strict=True):
                is_queries = wanted == separate[0] and spec is matrices[0]
                if is_queries and shape(spec) == (d, 2 * queries):  # Qwen 3 Next: the other half is a gate
                    self._leave_out(_GATE, spec.name)
                elif shape(spec) != wanted:
                    yield spec.name
        elif len(matrices) == 2:
            for spec, wanted in zip(matrices, [(d, queries + keys + values), separate[-1]], strict=True):
                if shape(spec) != wanted:
                    yield spec.name
        else:
            yield matrices[0].name if matrices else self.reader.table.attention[0].module

    def _odd_latent_parts(self) -> Iterator[str]:
        parts = (ModelPart.LATENT_ATTENTION, ModelPart.ATTENTION)
        latent = [spec for spec in self.specs if spec.part in parts and spec not in self._gates]
        sizes = {symbol: self.reader._size(symbol) for symbol in ("r_q", "r_kv", "d_nope", "d_rope", "d_v")}
        if any(sizes[symbol] is None for symbol in ("r_kv", "d_nope", "d_rope", "d_v")):
            yield latent[0].name
            return
        r_q, r_kv, d_nope, d_rope, d_v = (size or 0 for size in sizes.values())
        d, H = self.d, self.heads.H
        queries = [(d, r_q), (r_q, H * (d_nope + d_rope))] if r_q else [(d, H * (d_nope + d_rope))]
        wanted = [*queries, (d, r_kv + d_rope), (r_kv, H * (d_nope + d_v)), (H * d_v, d)]
        shape = self.reader._shape
        shapes = [shape(spec) for spec in latent if spec.kind == "matrix"]
        if sorted(shapes) != sorted(wanted):
            yield next((s.name for s in latent if s.kind == "matrix" and shape(s) not in wanted), latent[0].name)
        elif self.heads.d_h != d_nope + d_rope:
            yield latent[0].name

    def _scale_problems(self, rule: Rule | None) -> Iterator[str]:
        computation = self.reader.computation
        if computation.scale:
            self.scale = SCALE_RULES[computation.scale](self.reader.values.config, self.heads.d_h)
            return
        if rope_settings(self.reader.values.config).get("mscale_all_dim"):  # of DeepSeek's kin, with YaRN
            problem = _(
                'What {model} multiplies its scores by is not known here with "mscale_all_dim": choose another model, '
                "such as GPT-2."
            )
            yield problem.format(model=self.reader.name)
        if rule is None or not all(map(_OF_SCALES.fullmatch, rule.names)):
            yield self._unknown_scale()
            return
        names = ChainMap({"H": self.heads.H, "G": self.heads.G, "d_h": self.heads.d_h}, self.reader.values)
        try:
            factor = rule.value(names)
        except RuleError:
            raise self.reader.values.no_value(rule) from None
        usual = self.heads.d_h**-0.5
        table = self.reader.table
        unnamed = {symbol for symbol, line in table.sizes.items() if symbol in line.fields}  # by the field's own name
        fields = [field for field in sorted(rule.names) if field in table.numbers or field in unnamed]
        if isinstance(factor, bool) or (not isinstance(factor, int | float) and not hasattr(factor, "numerator")):
            factor = None
        if factor is None:
            yield self._unknown_scale()
        elif abs(float(factor) - usual) < 1e-9:
            self.scale = ScoreScale("inverse-sqrt", usual)
        elif factor == 1 and rule.text not in fields:
            self.scale = ScoreScale("none", 1.0)
        elif len(fields) != 1:
            yield self._unknown_scale()
        elif root := _SQUARE_ROOT.fullmatch(rule.text):
            number = float(self.reader.values[root[1]]) if root[1] == fields[0] else float(factor) ** -2
            self.scale = ScoreScale("root", float(factor), fields[0], number)
        else:
            self.scale = ScoreScale("stated", float(factor), fields[0])

    def _unknown_scale(self) -> str:
        problem = _("What {model} multiplies its scores by is not known here: choose another model, such as GPT-2.")
        return problem.format(model=self.reader.name)


class _FeedForward:
    """Whether the layers have ordinary feed-forward blocks: two matrices, or three with a gate, of inner width d_ff."""

    def __init__(self, reader: _Reader, layers: Sequence[_Layer], d: int, d_ff: int) -> None:
        self.reader = reader
        self.gated = False
        self.problem = ""
        for parameters in dict.fromkeys(layer.parameters for layer in layers):
            specs = [s for s in parameters if s.part == ModelPart.FEED_FORWARD and s.kind == "matrix"]
            if not specs:
                continue
            numbers = reader._axis(number_of_parameters(specs), specs[0].name)
            is_gated, is_plain = numbers == 3 * d * d_ff, numbers == 2 * d * d_ff
            self.gated = self.gated or is_gated
            if not is_gated and not is_plain:
                problem = _(
                    "The feed-forward block of {model} is not made of two or three matrices of {d} × {d_ff} numbers: "
                    "choose another model, such as LLaMA 7B."
                )
                self.problem = problem.format(model=reader.name, d=f"{d:,}", d_ff=f"{d_ff:,}")
        if not self.problem and not self.gated:
            experts = [spec for spec in _tensors_of(layers) if spec.part == ModelPart.EXPERTS]
            self.gated = any("gate" in spec.name for spec in experts)


def _tensors_of(layers: Sequence[_Layer]) -> ParameterSpecs:
    alike = dict.fromkeys(layer.parameters for layer in layers)
    return tuple(dict.fromkeys(spec for parameters in alike for spec in parameters))


def _layers_of(stacks: _Stacks) -> list[_Layer]:
    return [layer for _stack, layers in stacks for layer in layers]


def _first_with_scores(stacks: _Stacks) -> _Layer | None:
    return next((layer for layer in _layers_of(stacks) if layer.line), None)


def _kind_of_norm(stacks: _Stacks, outside: Sequence[ParameterSpec]) -> NormKind:
    # A norm with a bias is a LayerNorm; one without may be of either kind.
    in_layers = (spec for _stack, layers in stacks for layer in layers[:1] for spec in layer.parameters)
    norms = [spec for spec in (*in_layers, *outside) if "NORM" in spec.part.name]
    return "LayerNorm" if any(spec.kind == "bias" for spec in norms) else "norm"
