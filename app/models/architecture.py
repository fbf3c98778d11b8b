"""One model as frozen values: its named sizes, its layers and its parameter tensors in symbols.

`app.models.read_config` builds an Architecture from a published config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from app.models.parameter_specs import ModelPart, ParameterSpecs, Row, StackSpec, TaskHead, by_row
from app.models.score_scale import ScoreScale
from app.models.width_rules import WidthRule
from app.refusal import Refusal
from app.translation import gettext as _

MAX_TOKENS = 2**24
MAIN_SYMBOLS = ("d", "H", "G", "d_h", "d_v", "d_ff", "V", "L", "C")

# What each head adds to the scores by the distance of query and key: nothing, a learned number per head and distance
# (T5, arXiv:1910.10683), a fixed slope per head (ALiBi, arXiv:2108.12409), or further products with embeddings of the
# distance (DeBERTa, arXiv:2006.03654).
PositionBias = Literal["", "relative", "alibi", "disentangled"]
NormKind = Literal["RMSNorm", "LayerNorm", "norm"]  # "norm": of either kind
# The norm of queries and keys before the scores: none, an RMSNorm in each head (Qwen 3) or across all heads (OLMo 2),
# one in each head after RoPE without a gain (Llama 4), or a LayerNorm (Phi).
QKNorm = Literal["", "per-head", "all-heads", "after-rope", "layer-norm"]
# What embeddings are multiplied by before the first layer: nothing, √d (Gemma, arXiv:2403.08295), or a constant that a
# field of the config states or switches on (Granite, XGLM, BART).
EmbeddingScale = Literal["", "root-d", "stated"]
# What the tokens of the input, or the encoder's tokens, are made from.
InputKind = Literal["text", "image", "sound"]
# Where a layer normalizes, x being what the layer receives and f its attention or feed-forward block:
#   pre       x + f(norm(x))            GPT-2, LLaMA
#   post      norm(x + f(x))            BERT, the original Transformer
#   output    x + norm(f(x))            OLMo 2
#   sandwich  x + norm(f(norm(x)))      Gemma 2
#   parallel  x + attention(norm(x)) + feed_forward(norm(x)), with one norm or two: GPT-J, GPT-NeoX, Cohere
# and "" if that isn't known.
NormPlacement = Literal["", "pre", "post", "output", "sandwich", "parallel"]


class TokensError(Refusal):
    """A number of tokens that this model can't take."""


@dataclass(frozen=True)
class SizeSource:
    """Where a size of an Architecture comes from: a config field, a rule, or a default.

    `field` is the config field that stated the value, or None.
    """

    symbol: str
    value: int
    field: str | None
    rule: str = ""
    is_null: bool = False
    fields: tuple[str, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether it is the family's default, stated by neither a field nor a rule."""
        return self.field is None and not self.rule


@dataclass(frozen=True)
class Rotary:
    """Rotary position embedding (RoPE; Su et al., arXiv:2104.09864)."""

    theta: float
    width: int
    scaling: Mapping[str, Any] = field(default_factory=dict)
    adjacent_pairs: bool = False


@dataclass(frozen=True)
class LayerRun:
    """Neighbouring layers that are alike: `count` of them, each with the tensors in `parameters`."""

    count: int
    parameters: ParameterSpecs = ()
    window: int | None = None
    chunk: int | None = None
    rotary: Rotary | None = None

    @property
    def has_self_attention(self) -> bool:
        """Whether tokens attend to each other in these layers; some of Llama 3.2 Vision's only see the image."""
        return any(spec.part.row == "attention" for spec in self.parameters)


@dataclass(frozen=True)
class LayerStack:
    """The layers of one stack from first to last, grouped into runs; an encoder-decoder has two stacks."""

    spec: StackSpec
    runs: tuple[LayerRun, ...]

    @property
    def attending(self) -> tuple[LayerRun, ...]:
        """The runs of layers in which tokens attend to each other."""
        return tuple(run for run in self.runs if run.has_self_attention)

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """The different sets of tensors that its layers have, each with its number of layers."""
        layers = dict[ParameterSpecs, int]()
        for run in self.runs:
            layers[run.parameters] = layers.get(run.parameters, 0) + run.count
        return tuple(LayerKind(count, parameters) for parameters, count in layers.items())


@dataclass(frozen=True)
class LayerKind:
    """Layers of a stack with the same tensors: how many they are, and one layer's tensors."""

    layers: int
    parameters: ParameterSpecs

    @cached_property
    def rows(self) -> Mapping[Row, ParameterSpecs]:
        """One layer's tensors by the row of a parameter-count sheet that counts them."""
        return by_row(self.parameters)

    @property
    def has_experts(self) -> bool:
        """Whether the feed-forward block of these layers is a mixture of experts."""
        return "experts" in self.rows


@dataclass(frozen=True)
class ModelNote:
    """A remark on how a config was read, written in the language of whoever reads it."""

    message: str
    words: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return _(self.message).format(**dict(self.words))


def model_note(message: str, **words: str) -> ModelNote:
    """A remark whose message is marked with N_."""
    return ModelNote(message, tuple(words.items()))


@dataclass(frozen=True)
class Architecture:
    """One model: its sizes by symbol, its kind of attention, and its parameters. d is the embedding dimension."""

    name: str
    family: str
    d: int
    H: int
    G: int
    d_h: int
    d_v: int
    d_ff: int
    V: int | None
    L: int
    C: int | None
    causal: bool
    tied_embeddings: bool
    biases: str
    qk_norm_eps: float | None
    rotary: Rotary | None
    window: int | None
    initializer_range: float
    size_sources: tuple[SizeSource, ...]
    score_scale: ScoreScale
    model_class: str = ""
    has_kv_cache: bool = True
    has_final_norm: bool = True
    input: InputKind = "text"
    embedding_scale: EmbeddingScale = ""
    scales_residuals: bool = False
    scales_queries: bool = False
    qk_norm: QKNorm = ""
    usable_positions: int | None = None
    fixed_tokens: int | None = None
    chunk: int | None = None
    score_softcap: float | None = None
    position_bias: PositionBias = ""
    alibi_slopes: tuple[float, ...] = ()
    norm: NormKind = "RMSNorm"
    norm_placement: NormPlacement = "pre"
    not_modelled: tuple[str, ...] = ()
    extra: Mapping[str, int] = field(default_factory=dict)
    task_head: TaskHead = field(default_factory=TaskHead)
    gated: bool = False
    width_rule: WidthRule | None = None
    base_parameters: ParameterSpecs = ()
    head_parameters: ParameterSpecs = ()
    stacks: tuple[LayerStack, ...] = ()
    notes: tuple[ModelNote, ...] = ()
    real_G: int | None = None
    # Of a model read by a table of data/families: its norms' places and its positions aren't known, and these two
    # sentences say why there is no sheet about its attention, or about the parameters of a whole layer.
    shapes_only: bool = False
    attention_problem: str = ""
    layer_problem: str = ""

    @cached_property
    def has_mixers(self) -> bool:
        """Whether layers have blocks that mix tokens without N×N scores, such as state spaces."""
        return any(spec.part == ModelPart.MIXER for kind in self.kinds for spec in kind.parameters)

    @property
    def sizes(self) -> dict[str, int | None]:
        """The nine sizes that every model is asked for (d, H, G, d_h, d_v, d_ff, V, L, C), None if it hasn’t one."""
        return {symbol: getattr(self, symbol) or None for symbol in MAIN_SYMBOLS}

    @property
    def all_sizes(self) -> dict[str, int]:
        """Every size that this model has, by symbol: those in `extra`, then the nine."""
        return {**self.extra, **{symbol: size for symbol, size in self.sizes.items() if size is not None}}

    @property
    def decoder_sizes(self) -> dict[str, int]:
        """Every size that the decoder has; `all_sizes` if there is no separate decoder."""
        sizes = self.all_sizes
        if not self.encoder_decoder:
            return sizes
        heads, width = sizes["H_dec"], sizes["d_h_dec"]
        decoder = {"H": heads, "G": heads, "d_h": width, "d_v": width, "L": sizes["L_dec"]}
        return {**sizes, **decoder, "d_ff": sizes.get("d_ff_dec", sizes["d_ff"])}

    @property
    def attention_matrices(self) -> ParameterSpecs:
        """The matrices of the first self-attention, without biases or norms; () without self-attention."""
        kinds = self.stacks[0].kinds if self.stacks else ()
        specs = next((kind.rows["attention"] for kind in kinds if "attention" in kind.rows), ())
        return tuple(spec for spec in specs if not spec.is_vector)

    @cached_property
    def attention_layers(self) -> tuple[int, ...]:
        """The layers of the first stack in which tokens attend to each other, from 0."""
        runs = self.stacks[0].runs if self.stacks else ()
        attending = [run.has_self_attention for run in runs for _layer in range(run.count)]
        return tuple(layer for layer, attends in enumerate(attending) if attends)

    @property
    def is_hybrid(self) -> bool:
        """Whether only some of its layers have attention, and the others another way to mix tokens."""
        return self.shapes_only and 0 < len(self.attention_layers) < self.L

    @cached_property
    def encoder_decoder(self) -> bool:
        """Whether a decoder reads an encoder through cross attention (T5, BART, Whisper)."""
        return any(stack.spec.decoder for stack in self.stacks)

    @cached_property
    def runs(self) -> tuple[LayerRun, ...]:
        """The runs of layers of all stacks, the encoder's first."""
        return tuple(run for stack in self.stacks for run in stack.runs)

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """The kinds of layers of all stacks, the encoder's first."""
        return tuple(kind for stack in self.stacks for kind in stack.kinds)

    @property
    def has_latent_attention(self) -> bool:
        """Whether keys and values are made from a latent of r_kv numbers (DeepSeek)."""
        return "r_kv" in self.extra

    @property
    def has_latent_queries(self) -> bool:
        """Whether queries are also made from a latent, of r_q numbers."""
        return "r_q" in self.extra

    @property
    def has_experts(self) -> bool:
        return "E" in self.extra and "k" in self.extra

    @cached_property
    def has_sinks(self) -> bool:
        """Whether each head has an attention sink: a learned score that takes part in the softmax (gpt-oss)."""
        return any("sinks" in kind.rows for kind in self.kinds)

    @property
    def has_lm_head(self) -> bool:
        """Whether the task head gives scores over the vocabulary, with its own matrix or the embedding's."""
        return any("V" in dim.symbols for dim in self.task_head.logits or ())

    @property
    def outside_parameters(self) -> ParameterSpecs:
        """The tensors outside the layers, each once: the base model's, then the task head's."""
        return self.base_parameters + self.head_parameters

    @cached_property
    def outside_rows(self) -> Mapping[Row, ParameterSpecs]:
        """The tensors outside the layers by the row of a parameter-count sheet that counts them."""
        return by_row(self.outside_parameters)

    @property
    def query_heads_per_kv_head(self) -> int:
        """H/G: how many query heads read the same keys and values (Ainslie et al., arXiv:2305.13245)."""
        return self.H // self.G if self.G else 0

    @property
    def has_position_table(self) -> bool:
        """Whether positions are rows of a table, which limits the length of the input."""
        return self.usable_positions is not None

    @property
    def max_tokens(self) -> int:
        """The longest input a sheet may ask about: the usable rows of the position table, or MAX_TOKENS."""
        return self.usable_positions or MAX_TOKENS

    @property
    def max_decoder_tokens(self) -> int:
        """The longest text the decoder may write: P_dec, the rows of its position table, or MAX_TOKENS."""
        return self.extra.get("P_dec", MAX_TOKENS) if self.encoder_decoder else self.max_tokens

    def reach_of(self, window: int) -> int:
        """How many tokens a window reaches in one direction, the query included: 65 for a centred window of 129."""
        return window if self.causal else (window + 1) // 2

    def as_multi_head(self) -> Architecture:
        """A copy in which every query head has its own keys and values (G = H), as simpler courses teach it."""
        return replace(self, G=self.H, real_G=self.kv_heads)

    @property
    def kv_heads(self) -> int:
        """The real model's key/value heads, even in the copy that `as_multi_head` makes."""
        return self.G if self.real_G is None else self.real_G

    def check_tokens(self, tokens: int) -> int:
        """Return `tokens` if the model takes that many; otherwise raise TokensError."""
        if self.fixed_tokens is not None and tokens != self.fixed_tokens:
            problem = _("{model} always reads exactly {count:,} tokens: choose {count:,}.")
            raise TokensError(problem.format(model=self.name, count=self.fixed_tokens))
        if 1 <= tokens <= self.max_tokens:
            return tokens
        problem = _("Tokens must be a whole number from 1 to {most:,}.")
        if self.max_tokens < MAX_TOKENS:
            problem = _("Tokens must be a whole number from 1 to {most:,}: {model} has a table of {most:,} positions.")
        raise TokensError(problem.format(most=self.max_tokens, model=self.name))
