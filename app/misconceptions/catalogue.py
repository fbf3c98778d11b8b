"""The catalogue of misconceptions: what each makes a student write, in symbols.

A misconception is one row; `app.misconceptions.misconception` says what a row can hold, and checks it on import.

>>> MISCONCEPTIONS[0].key
'head-as-wide-as-model'
>>> group_of("softmax-collapses")
'scores'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from app.misconceptions.misconception import Group, Misconception, Prediction
from app.models.architecture import Architecture
from app.shapes.table import MATRIX_FIELDS, Blank, BlankField, side_fields
from app.topics.experts import shared_expert_parameters
from app.topics.registry import TOPICS

HEADS = tuple(topic.key for topic in TOPICS.values() if topic.subject == "head")
HEADS_AND_LAYER = (*HEADS, "attention-layer")
HEADS_AND_SOFTMAX = (*HEADS_AND_LAYER, "scale-mask-softmax")
ALL_TOKENS_AT_ONCE = (*(topic for topic in HEADS if topic != "decode-step"), "attention-layer")


def _each(size: str, *blanks: str) -> dict[str, str]:
    """Overrides that write one size into all of these blanks."""
    return dict.fromkeys(blanks, size)


def _on(topics: str | Iterable[str], *predictions: Prediction) -> dict[str, tuple[Prediction, ...]]:
    """The same predictions for each of these topics, or for one."""
    return dict.fromkeys([topics] if isinstance(topics, str) else topics, predictions)


def _in_dimensions(*ways: Mapping[str, str]) -> dict[str, tuple[Prediction, ...]]:
    """Predictions for sheets in three dimensions and in four, one for each way of writing shapes of tensors.

    Example: {"scores": "N, H, H"} writes N, H, H, and in four dimensions B, N, H, H, where B stays right.
    """
    predictions = dict[str, tuple[Prediction, ...]]()
    for topic, before in (("three-dimensions", 0), ("four-dimensions", 1)):
        sizes = [[(key, shape.split(", ")) for key, shape in way.items()] for way in ways]
        overrides = [
            {
                str(Blank(key, field)): size
                for key, sides in way
                for field, size in zip(side_fields(before + len(sides))[before:], sides, strict=True)
            }
            for way in sizes
        ]
        predictions[topic] = tuple(map(Prediction, overrides))
    return predictions


def _with_or_without_context(overrides: dict[str, str]) -> tuple[Prediction, Prediction]:
    """Two predictions of values with another width: the context keeps its right width, or has that of the values."""
    return (Prediction(overrides), Prediction({**overrides, "context.columns": overrides["values.columns"]}))


def _on_products(size: str, *ways: tuple[BlankField, ...]) -> dict[str, tuple[Prediction, ...]]:
    """One size in these fields of scores and weights, one prediction for each way, in a head and in a layer.

    On a softmax sheet, these are followed by one more for each way, with the same fields of the mask wrong as well.

    Example: ("rows",), ("columns",) are two ways; ("rows", "columns") is one.
    """
    alone = [_each(size, *(f"{row}.{field}" for row in ("scores", "weights") for field in way)) for way in ways]
    masked = [_each(size, *(f"mask.{field}" for field in way)) for way in ways]
    with_mask = [Prediction({**sides, **mask}) for sides, mask in zip(alone, masked, strict=True)]
    predictions = [Prediction(sides) for sides in alone]
    return {**_on(HEADS_AND_LAYER, *predictions), **_on("scale-mask-softmax", *predictions, *with_mask)}


def _is_causal(architecture: Architecture) -> bool:
    """Whether a mask hides later tokens."""
    return architecture.causal


def _is_rounded_up(architecture: Architecture) -> bool:
    """Whether the rule for the inner dimension rounds it up to more than it was."""
    rule = architecture.width_rule
    return rule is not None and rule.before_rounding(architecture.d) < architecture.d_ff


def _has_grouped_queries(architecture: Architecture) -> bool:
    """Whether several query heads share a key/value head."""
    return architecture.G != architecture.H


def _is_of_grouped_queries(architecture: Architecture) -> bool:
    """Whether several query heads of the real model share a key/value head, even on a sheet with G = H."""
    return architecture.kv_heads != architecture.H


def _has_latent_attention(architecture: Architecture) -> bool:
    """Whether keys and values are computed from one latent of each token."""
    return architecture.has_latent_attention


def _has_experts(architecture: Architecture) -> bool:
    """Whether the model is a mixture of experts."""
    return architecture.has_experts


def _is_no_even_share(architecture: Architecture) -> bool:
    """Whether H heads of d_h are not d together; never for latent attention, whose heads have parts."""
    return architecture.H * architecture.d_h != architecture.d and not _has_latent_attention(architecture)


def _has_layer_unlike_model(architecture: Architecture) -> bool:
    """Whether the heads of a layer together differ from the embedding in width, for queries or for keys.

    Otherwise writing the layer's width for a head's looks just like heads as wide as the model.
    """
    return architecture.H * architecture.d_h != architecture.d or architecture.G != architecture.H


def _counted(part: str, change: str) -> dict[str, str]:
    """Overrides of a parameter count in which one layer's part changes, and all layers and the totals with it.

    `change` is a formula for one layer, such as "-d*d_ff"; the totals change by L times as much.
    """
    return {f"{part}.count": f"right + {change}", **_each(f"right + L*{change}", "all_layers.count", *_WHOLE)}


def _looks_tokens_up(architecture: Architecture) -> bool:
    """Whether the input is vectors of an embedding table: not images or audio, which are always equally long."""
    return architecture.fixed_tokens is None


def _has_context_length(architecture: Architecture) -> bool:
    """Whether the config states the longest input."""
    return architecture.C is not None


def _has_rope_alone(architecture: Architecture) -> bool:
    """Whether positions come from RoPE and from no table."""
    return architecture.rotary is not None and not architecture.has_position_table


# The blanks that rows name together, and substitutions that several rows share.
_QKV = ("queries", "keys", "values")
_QKV_ROWS, _QKV_COLUMNS = ([f"{row}.{field}" for row in _QKV] for field in MATRIX_FIELDS)
_KV_COLUMNS = _QKV_COLUMNS[1:]
_PRODUCTS = [f"{row}.{field}" for row in ("scores", "weights") for field in MATRIX_FIELDS]
_SEEN = [f"{token}_weights.count" for token in ("first", "chosen", "last")]  # how many tokens each of them attends to
_INPUT_COLUMNS = ("input.columns", "encoded.columns")
_QUERY_SIDE = ("queries.rows", "scores.rows", "weights.rows", "context.rows", "output.rows")
_KEY_SIDE = ("keys.rows", "values.rows", "scores.columns", "weights.columns")
_WEIGHTS_BYTES = ("weights_16_bit.count", "weights_8_bit.count", "weights_4_bit.count")
_FLOPS = [f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")]
_GROWING_FLOPS = [f"{key}_flops.count" for key in ("projections", "pairwise", "prefill", "decode")]
_WHOLE = ("total.count", "used.count")  # all parameters of a model, and those used for one token
_CACHE = ("cache_16_bit.count", "cache_8_bit.count")
_ANGLE_ROWS, _ANGLE_COLUMNS = ([f"{row}.{field}" for row in ("angles", "cosines", "sines")] for field in MATRIX_FIELDS)
_EXPERT_ROWS = [f"{row}.rows" for row in ("expert_input", "expert_hidden", "expert_output")]
_CHOOSING_SHAPES = ("chosen.columns", *_EXPERT_ROWS)
_CHOSEN_COUNTS = ("chosen_experts.count", "block_active.count", "used.count")
_AS_WIDE_AS_MODEL = {"d_h": "d", "d_v": "d"}
_ONE_HEAD = {"H": "1", "G": "1"}
_EVEN_SHARES = {"d_h": "d/H", "d_v": "d/H"}
# On sheets in three or four dimensions; shapes are without the batch.
_SPLIT_KV, _KV_BY_HEAD = ("split_keys", "split_values"), ("keys_by_head", "values_by_head")
_REPEATED = ("repeated_keys", "repeated_values")
_HEADS_FIRST_VIEW = {"split_queries": "H, N, d_h", "split_keys": "G, N, d_h", "split_values": "G, N, d_v"}
_TOKENS_FIRST = {"queries_by_head": "N, H, d_h", "keys_by_head": "N, G, d_h", "values_by_head": "N, G, d_v"}
_HEADS_TO_HEADS = {**_each("N, H, H", "scores", "weights"), "context": "N, H, d_v"}
_FEWER_SCORES = {**_each("G, right, right", *_REPEATED, "scores", "weights", "context")}
# The side that counts heads, with a batch: after the tokens, or right after the batch.
_QUERY_HEADS = ("split_queries.dim2", "context_by_token.dim2", *(
    f"{key}.dim1" for key in ("queries_by_head", *_REPEATED, "scores", "weights", "context")
))  # fmt: skip
_KV_HEADS = (*(f"{key}.dim2" for key in _SPLIT_KV), *(f"{key}.dim1" for key in _KV_BY_HEAD))
_HEADS_AND_BATCH = {**_each("B*H", *_QUERY_HEADS), **_each("B*G", *_KV_HEADS)}

_SQUARE_PARTS = _each("d", "W_Q.columns", "W_K.columns", "W_V.columns", "W_O.rows") | _each(
    "d*d", "W_Q.count", "W_K.count", "W_V.count", "W_O.count"
)
_LAYER_IN_QKV = {
    "W_Q.columns": "H*d_h",
    "W_K.columns": "G*d_h",
    "W_V.columns": "G*d_v",
    "W_Q.count": "d*H*d_h",
    "W_K.count": "d*G*d_h",
    "W_V.count": "d*G*d_v",
}
_LAYER_IN_W_O = {"W_O.rows": "H*d_v", "W_O.count": "H*d_v*d"}

# The keys are used in the wording, in students' records and in the API.
MISCONCEPTIONS: tuple[Misconception, ...] = (
    Misconception(
        "head-as-wide-as-model",
        "width",
        {
            **_on(HEADS, *_with_or_without_context(_each("d", *_QKV_COLUMNS))),
            **_in_dimensions(
                _each("right, right, d", "split_queries", "queries_by_head", *_SPLIT_KV, *_KV_BY_HEAD, *_REPEATED)
                | _each("right, right, d", "context", "context_by_token"),
            ),
            **_on("head-parameters", Prediction(substitutions=_AS_WIDE_AS_MODEL), Prediction(_SQUARE_PARTS)),
        },
    ),
    Misconception(
        "heads-multiply-width",
        "width",
        {
            **_on(HEADS, *_with_or_without_context(_each("H*d", *_QKV_COLUMNS))),
            **_on(
                "attention-layer",
                Prediction(substitutions=_AS_WIDE_AS_MODEL),
                Prediction({"context.columns": "right"}, _AS_WIDE_AS_MODEL),
            ),
            **_on(
                "layer-parameters",
                Prediction(substitutions=_AS_WIDE_AS_MODEL),
                Prediction(_each("right", "W_O.rows", "W_O.count"), _AS_WIDE_AS_MODEL),
            ),
            **_on(
                ("lora", "parameter-count", "costs", "three-dimensions", "four-dimensions"),
                Prediction(substitutions=_AS_WIDE_AS_MODEL),
            ),
        },
    ),
    Misconception("input-sliced", "input", _on(HEADS_AND_LAYER, Prediction(_each("d_h", *_INPUT_COLUMNS)))),
    Misconception("input-repeated", "input", _on(HEADS_AND_LAYER, Prediction(_each("H*d", *_INPUT_COLUMNS)))),
    Misconception(
        "transposed-product",
        "scores",
        {
            **_on_products("d_h", MATRIX_FIELDS),
            **_in_dimensions(_each("right, d_h, d_h", "scores", "weights")),
        },
    ),
    Misconception(
        "model-wide-scores",
        "scores",
        {**_on_products("d", MATRIX_FIELDS), **_in_dimensions(_each("right, d, d", "scores", "weights"))},
    ),
    Misconception(
        "elementwise-product",
        "scores",
        {
            **_on_products("d_h", ("columns",)),
            **_in_dimensions(_each("right, right, d_h", "scores", "weights")),
        },
    ),
    Misconception("keys-already-transposed", "tokens", _on(HEADS_AND_LAYER, Prediction(transposed=("keys",)))),
    Misconception(
        "columns-are-tokens",
        "tokens",
        _on((*HEADS_AND_LAYER, "whole-model", "rotary-pairs"), Prediction(transposed=("*",))),
    ),
    # Parameters as in the product x·W, or as frameworks store them.
    Misconception(
        "weights-for-activations",
        "tokens",
        _on(
            HEADS_AND_LAYER,
            Prediction(_each("d", *_QKV_ROWS)),
            Prediction(_each("other_side", *_QKV_ROWS) | _each("d", *_QKV_COLUMNS)),
        ),
    ),
    Misconception(
        "stored-layout",
        "tokens",
        {
            **_on(("layer-parameters", "head-parameters"), Prediction(transposed=("*",))),
            **_on("lora", Prediction(transposed=("W_Q", "lora_A", "lora_B"))),
            **_on("experts", Prediction(transposed=("W_router", "W_gate", "W_up", "W_down"))),
        },
    ),
    Misconception(
        "no-output-projection",
        "back",
        {
            **_on(HEADS, Prediction({"output.columns": "d_v"})),
            **_on("attention-layer", Prediction({"output.columns": "H*d_v"})),
            **_in_dimensions({"output": "right, H*d_v"}),
        },
    ),
    Misconception(
        "whole-output-projection",
        "back",
        _on("head-parameters", Prediction({"W_O.rows": "H*d_v", "W_O.count": "H*d_v*d"})),
        lambda architecture: architecture.H > 1,
    ),
    Misconception("full-width-values", "width", _on(HEADS, *_with_or_without_context({"values.columns": "d"}))),
    Misconception(
        "one-kv-per-query-head",
        "shared",
        _on(
            (
                "attention-layer",
                "layer-parameters",
                "head-parameters",
                "parameter-count",
                "costs",
                "three-dimensions",
                "four-dimensions",
                "rotary-pairs",
                "growth",
            ),
            Prediction(substitutions={"G": "H"}),
        ),
        _has_grouped_queries,
    ),
    Misconception(
        "wider-kv-heads",
        "shared",
        {
            **_on(HEADS, *_with_or_without_context(_each("d/kv_heads", *_KV_COLUMNS))),
            **_on("attention-layer", Prediction(_each("d/kv_heads", *_KV_COLUMNS))),
            **_on(
                "head-parameters",
                Prediction(
                    _each("d/kv_heads", "W_K.columns", "W_V.columns") | _each("d*d/kv_heads", "W_K.count", "W_V.count")
                ),
            ),
        },
        _is_of_grouped_queries,
    ),
    Misconception(
        "all-kv-heads-in-one",
        "shared",
        _on(HEADS, *_with_or_without_context({"keys.columns": "kv_heads*d_h", "values.columns": "kv_heads*d_v"})),
        _is_of_grouped_queries,
    ),
    Misconception(
        "shrunken-output-projection",
        "shared",
        {
            **_on("attention-layer", Prediction({"context.columns": "G*d_v"})),
            **_in_dimensions({"joined_context": "right, G*d_v"}),
            **_on("layer-parameters", Prediction({"W_O.rows": "G*d_v", "W_O.count": "G*d_v*d"})),
            **_on("head-parameters", Prediction({"layer_W_O.rows": "G*d_v", "layer_W_O.count": "G*d_v*d"})),
            **_on("parameter-count", Prediction(_counted("attention", "(G - H)*d*d_v"))),
            **_on("costs", Prediction({"output_flops.count": "2*N*G*d_v*d"})),
        },
        _has_grouped_queries,
    ),
    Misconception(
        "width-always-divided",
        "width",
        _on(
            (
                *HEADS_AND_LAYER,
                "layer-parameters",
                "head-parameters",
                "parameter-count",
                "costs",
                "three-dimensions",
                "four-dimensions",
            ),
            Prediction(substitutions=_EVEN_SHARES),
        ),
        _is_no_even_share,
    ),
    Misconception(
        "context-for-tokens",
        "input",
        {
            **_on(
                (
                    *HEADS_AND_SOFTMAX,
                    "whole-model",
                    "costs",
                    "three-dimensions",
                    "four-dimensions",
                    "experts",
                    "rotary-pairs",
                ),
                Prediction(substitutions={"N": "C", "M": "C"}),
            ),
            # In a decode step a cache padded to the context length is full with the new token in it.
            **_on("decode-step", Prediction(_each("C", *_KEY_SIDE)), Prediction(substitutions={"N": "C"})),
        },
        _has_context_length,
    ),
    Misconception(
        "embedding-table-as-input",
        "input",
        {
            **_on(HEADS_AND_LAYER, Prediction({"input.rows": "V"})),
            **_on("whole-model", Prediction({"embedded.rows": "V"})),
        },
        _looks_tokens_up,
    ),
    Misconception("all-heads-stacked", "scores", _on_products("H*right", ("rows",), ("columns",))),
    Misconception(
        "softmax-collapses",
        "scores",
        {
            **_on(HEADS_AND_SOFTMAX, Prediction({"weights.columns": "1"})),
            **_in_dimensions({"weights": "right, right, 1"}),
        },
    ),
    Misconception("scale-by-model-width", "scores", _on("scale-mask-softmax", Prediction({"under_root.count": "d"}))),
    Misconception(
        "decode-step-square",
        "cache",
        _on(
            "decode-step",
            Prediction(_each("N", *_PRODUCTS)),
            Prediction(_each("1", *_PRODUCTS)),
            Prediction(_each("N + 1", *_PRODUCTS)),
        ),
    ),
    Misconception(
        "heads-change-parameters",
        "parameters",
        {
            **_on("layer-parameters", Prediction(_each("H*right", "W_Q.count", "W_K.count", "W_V.count", "W_O.count"))),
            **_on(
                "parameter-count",
                Prediction(_counted("attention", "(H - 1)*attention")),
                Prediction({"attention.count": "H*right"}),
            ),
        },
        lambda architecture: architecture.d == architecture.H * architecture.d_h,
    ),
    Misconception(
        "positions-are-parameters",
        "parameters",
        {
            **_on("parameter-count", Prediction(_each("right + C*d", "embedding.count", *_WHOLE))),
            **_on("rotary-pairs", Prediction(_each("C", *_ANGLE_ROWS) | _each("d", *_ANGLE_COLUMNS))),
        },
        _has_rope_alone,
    ),
    Misconception(
        "cache-forgets-factor",
        "costs",
        _on(
            "costs",
            # Scaled from the right number, in which a sliding window counts no token that it drops.
            Prediction(_each("right*H/G", *_CACHE)),
            Prediction(_each("right/2", *_CACHE)),
            Prediction(_each("right*H/G/2", *_CACHE)),
            Prediction(_each("right/L", *_CACHE)),
        ),
    ),
    Misconception(
        "flops-are-macs",
        "costs",
        {
            **_on("costs", Prediction(_each("right/2", *_FLOPS))),
            **_on("growth", Prediction(_each("right/2", *_GROWING_FLOPS))),
        },
    ),
    Misconception(
        "tied-embedding-twice",
        "parameters",
        _on("parameter-count", Prediction(_each("right + V*d", *_WHOLE))),
        lambda architecture: architecture.tied_embeddings,
    ),
    # The LM head taken for tied, as in GPT-2, where it is a separate matrix.
    Misconception(
        "separate-head-forgotten",
        "parameters",
        _on("parameter-count", Prediction({"output_head.count": "0"} | _each("right - lm_head", *_WHOLE))),
        lambda architecture: not architecture.tied_embeddings,
    ),
    # From here on: reasoned from what each sheet makes easy to mix up, where no source is named.
    Misconception(
        # Seen in ai.stackexchange.com/q/40592: the heads of all 2048 tokens, flattened, are the rows of one matrix, and
        # LLaMA 7B has 205 billion parameters.
        "context-in-weights",
        "parameters",
        {
            **_on("layer-parameters", Prediction({"W_O.rows": "C*H*d_v", "W_O.count": "C*H*d_v*d"})),
            **_on("parameter-count", Prediction(_counted("attention", "(C - 1)*H*d_v*d"))),
        },
        _has_context_length,
    ),
    # The shape of the activation (a row for each token) written for the weights that make it.
    Misconception(
        "tokens-in-weights",
        "parameters",
        _on(
            "layer-parameters",
            Prediction(
                _each("N", "W_Q.rows", "W_K.rows", "W_V.rows")
                | {"W_Q.count": "N*H*d_h", "W_K.count": "N*G*d_h", "W_V.count": "N*G*d_v"}
            ),
        )
        | _on(
            "head-parameters",
            Prediction(
                _each("N", "W_Q.rows", "W_K.rows", "W_V.rows")
                | {"W_Q.count": "N*d_h", "W_K.count": "N*d_h", "W_V.count": "N*d_v"}
            ),
        ),
    ),
    # "The head works in d_h" taken to hold on both sides of its projection; seen in the same question as above.
    Misconception(
        "square-head-projection",
        "parameters",
        {
            **_on(
                "layer-parameters",
                Prediction(
                    _each("d_h", "W_Q.rows", "W_K.rows", "W_Q.columns", "W_K.columns", "W_V.rows")
                    | {"W_V.columns": "d_v", "W_V.count": "d_h*d_v"}
                    | _each("d_h*d_h", "W_Q.count", "W_K.count")
                ),
                Prediction(
                    _each("d_h", "W_Q.rows", "W_K.rows", "W_V.rows")
                    | {"W_Q.count": "H*d_h*d_h", "W_K.count": "G*d_h*d_h", "W_V.count": "G*d_h*d_v"}
                ),
            ),
            **_on(
                "head-parameters",
                Prediction(
                    _each("d_h", "W_Q.rows", "W_K.rows", "W_V.rows")
                    | {"W_Q.count": "d_h*d_h", "W_K.count": "d_h*d_h", "W_V.count": "d_h*d_v"}
                ),
            ),
            **_on(
                "parameter-count",
                Prediction(_counted("attention", "(d_h - d)*(H*d_h + G*d_h + G*d_v)")),
                # The formula of that question: for each head, four matrices of head_dim × head_dim.
                Prediction(
                    {"attention.count": "right + (d_h - d)*(H*d_h + G*d_h + G*d_v) + (d_v - d)*H*d_v"}
                    | _each(
                        "right + L*(d_h - d)*(H*d_h + G*d_h + G*d_v) + L*(d_v - d)*H*d_v", "all_layers.count", *_WHOLE
                    )
                ),
            ),
        },
        lambda architecture: not _has_latent_attention(architecture),
    ),
    # "Attention has Q, K and V": three matrices are counted.
    Misconception(
        "output-projection-forgotten",
        "parameters",
        _on("parameter-count", Prediction(_counted("attention", "-(H*d_v + output_biases)*d"))),
    ),
    # The block of 2017 has two matrices, and textbooks show that one.
    Misconception(
        "gate-forgotten",
        "feed-forward",
        {
            **_on("parameter-count", Prediction(_counted("feed_forward", "-d*d_ff"))),
            **_on("feed-forward-width", Prediction({"gated_parameters.count": "2*d*d_ff"})),
            **_on("costs", Prediction({"feed_forward_flops.count": "4*N*d*d_ff"})),
        },
        lambda architecture: architecture.gated and not _has_experts(architecture),
    ),
    # Four times the width, as in the Transformer of 2017, BERT and GPT-2, where this config states another.
    Misconception(
        "feed-forward-four-d",
        "feed-forward",
        {
            **_on(
                ("layer-parameters", "whole-model", "parameter-count", "costs"),
                Prediction(substitutions={"d_ff": "4*d"}),
            ),
            **_on("feed-forward-width", Prediction({"width.count": "4*d", "gated_parameters.count": "12*d*d"})),
        },
        lambda architecture: architecture.d_ff != 4 * architecture.d and not _has_experts(architecture),
    ),
    # Gate and up are stored in one matrix by several frameworks (gate_up_proj), whose result is split and multiplied.
    Misconception(
        "gate-and-up-concatenated",
        "feed-forward",
        _on("whole-model", Prediction({"hidden.columns": "2*d_ff"})),
        lambda architecture: architecture.gated,
    ),
    # Code repeats the angles so that cos and sin are as wide as the head; there is one angle for two dimensions.
    # Seen in nanochat#299.
    Misconception(
        "angle-per-dimension",
        "width",
        {
            **_on("whole-model", Prediction({"angles.columns": "d_rot"})),
            **_on("rotary-pairs", Prediction(_each("d_rot", *_ANGLE_COLUMNS) | {"layer_angles.count": "N*d_rot"})),
        },
        lambda architecture: architecture.rotary is not None,
    ),
    # The last vectors are taken for the prediction itself.
    Misconception(
        "logits-as-wide-as-model",
        "back",
        _on("whole-model", Prediction(_each("d", "logits.columns", "last_logits.columns"))),
    ),
    # The 32 of "32 heads" is the number at hand when a width is asked.
    Misconception("head-count-as-width", "width", _on(HEADS, *_with_or_without_context(_each("H", *_QKV_COLUMNS)))),
    Misconception(
        "one-head-for-layer",
        "width",
        {
            **_on(
                (
                    "attention-layer",
                    "layer-parameters",
                    "head-parameters",
                    "lora",
                    "parameter-count",
                    "three-dimensions",
                    "four-dimensions",
                ),
                Prediction(substitutions=_ONE_HEAD),
            ),
            **_on(
                "costs",
                Prediction(substitutions=_ONE_HEAD),
                Prediction({"scores_flops.count": "2*N*N*d_h", "context_flops.count": "2*N*N*d_v"}),
            ),
        },
        lambda architecture: not _has_latent_attention(architecture),
    ),
    Misconception(
        "layer-for-one-head",
        "width",
        {
            **_on(
                HEADS,
                Prediction({"queries.columns": "H*d_h", "keys.columns": "G*d_h", "values.columns": "G*d_v"}),
                Prediction(
                    {"queries.columns": "H*d_h", "keys.columns": "G*d_h", "values.columns": "G*d_v"}
                    | {"context.columns": "H*d_v"}
                ),
            ),
            **_on("head-parameters", Prediction(_LAYER_IN_QKV), Prediction(_LAYER_IN_QKV | _LAYER_IN_W_O)),
        },
        _has_layer_unlike_model,
    ),
    # "The model predicts the next token" is heard as: only the last position is computed.
    Misconception(
        "only-last-token-asks",
        "tokens",
        {
            **_on(ALL_TOKENS_AT_ONCE, Prediction(_each("1", *_QUERY_SIDE))),
            **_on("whole-model", Prediction({"logits.rows": "1"}), Prediction(_each("1", "final.rows", "logits.rows"))),
        },
    ),
    Misconception("projections-transposed", "tokens", _on(HEADS_AND_LAYER, Prediction(transposed=_QKV))),
    # In a decode step one of the two sides is 1, in cross-attention the two texts differ: KQᵀ shows where N×N hides it.
    Misconception(
        "scores-transposed",
        "scores",
        _on(("decode-step", "cross-attention"), Prediction(transposed=("scores", "weights"))),
    ),
    Misconception(
        "texts-swapped",
        "scores",
        _on(
            "cross-attention",
            Prediction(_each("N", *_QUERY_SIDE) | _each("M", *_KEY_SIDE)),
            Prediction(_each("N", *_QUERY_SIDE[:-1]) | _each("M", *_KEY_SIDE)),
        ),
    ),
    # Self-attention, of the decoder or of the encoder, in place of cross-attention.
    Misconception(
        "one-text-alone",
        "scores",
        _on("cross-attention", Prediction(_each("M", *_KEY_SIDE)), Prediction(_each("N", *_QUERY_SIDE))),
    ),
    # Off by one: the new token's key and value are left out.
    Misconception("new-key-left-out", "cache", _on("decode-step", Prediction(_each("right - 1", *_KEY_SIDE)))),
    # The cache is forgotten: every token is processed again.
    Misconception(
        "all-queries-recomputed",
        "cache",
        _on(
            "decode-step",
            Prediction(_each("N + 1", "input.rows", *_QUERY_SIDE)),
            Prediction(_each("N + 1", *_QUERY_SIDE)),
        ),
    ),
    Misconception("only-the-new-key", "cache", _on("decode-step", Prediction(_each("1", *_KEY_SIDE)))),
    # The cache of multi-head attention expected from latent attention, which exists to avoid it (arXiv:2405.04434).
    Misconception(
        "latent-cache-of-full-keys",
        "cache",
        _on("attention-layer", Prediction({"cache.columns": "H*d_h + H*d_v"})),
        _has_latent_attention,
    ),
    Misconception(
        "cache-without-rotary-key",
        "cache",
        _on("attention-layer", Prediction({"cache.columns": "r_kv"})),
        _has_latent_attention,
    ),
    Misconception(
        "rotary-key-for-each-head",
        "shared",
        _on(
            "attention-layer",
            Prediction({"rotary_key.columns": "H*d_rope"}),
            Prediction({"rotary_key.columns": "H*d_rope", "cache.columns": "r_kv + H*d_rope"}),
        ),
        _has_latent_attention,
    ),
    Misconception(
        "keys-without-rotary-part",
        "width",
        _on(
            "attention-layer",
            Prediction({"keys.columns": "H*d_nope"}),
            Prediction(_each("H*d_nope", "queries.columns", "keys.columns")),
        ),
        _has_latent_attention,
    ),
    Misconception(
        "bits-for-bytes",
        "costs",
        _on(
            "costs",
            Prediction(_each("8*right", *_WEIGHTS_BYTES, *_CACHE)),
            Prediction(_each("8*right", *_WEIGHTS_BYTES)),
        ),
    ),
    # The sheet counts one layer's operations, and the bytes of the whole model.
    Misconception(
        "all-layers-for-one",
        "costs",
        _on(
            "costs",
            Prediction(_each("L*right", *_FLOPS)),
            Prediction(_each("L*right", "scores_flops.count", "context_flops.count")),
        ),
    ),
    Misconception(
        "mask-forgotten",
        "mask",
        _on(
            "scale-mask-softmax",
            Prediction(_each("N", *_SEEN) | {"masked.count": "0", "all_weights.count": "N*N"}),
            Prediction(_each("N", *_SEEN) | {"all_weights.count": "N*N"}),
            Prediction(_each("N", *_SEEN)),
            Prediction({"masked.count": "0", "all_weights.count": "N*N"}),
        ),
        _is_causal,
    ),
    Misconception(
        "causal-mask-everywhere",
        "mask",
        _on("scale-mask-softmax", Prediction({_SEEN[0]: "1", _SEEN[1]: "i", "all_weights.count": "N*(N + 1)/2"})),
        lambda architecture: not architecture.causal,
    ),
    # "No token sees what it predicts" taken to hide the token itself.
    Misconception(
        "diagonal-masked",
        "mask",
        _on(
            "scale-mask-softmax",
            Prediction({"masked.count": "right + N", "all_weights.count": "right - N"}),
            Prediction({"masked.count": "right + N", "all_weights.count": "right - N", **_each("right - 1", *_SEEN)}),
        ),
        _is_causal,
    ),
    Misconception(
        "half-of-all-masked",
        "mask",
        _on("scale-mask-softmax", Prediction(_each("floor(N*N/2)", "masked.count", "all_weights.count"))),
        _is_causal,
    ),
    Misconception(
        "all-entries-masked", "mask", _on("scale-mask-softmax", Prediction({"masked.count": "N*N"})), _is_causal
    ),
    Misconception(
        "mask-hides-earlier",
        "mask",
        _on("scale-mask-softmax", Prediction({_SEEN[0]: "N", _SEEN[1]: "N - i + 1", _SEEN[2]: "1"})),
        _is_causal,
    ),
    # The padding mask of frameworks has one number for each token.
    Misconception(
        "mask-per-token",
        "mask",
        _on("scale-mask-softmax", Prediction({"mask.rows": "1"}), Prediction({"mask.columns": "1"})),
        _is_causal,
    ),
    Misconception("softmax-over-all", "scores", _on("scale-mask-softmax", Prediction({"weights_sum.count": "1"}))),
    # Heads and the batch as dimensions. Repeat in place of repeat_interleave (onnx/onnx#7274), and a reshape that mixes
    # tokens, give the right shapes with the wrong numbers in them: no sheet shows these.
    Misconception(
        # hyunwoongko/transformer#15, harvardnlp/annotated-transformer#17
        "view-heads-first",
        "dimensions",
        _in_dimensions(_HEADS_FIRST_VIEW, {**_HEADS_FIRST_VIEW, **_TOKENS_FIRST}),
    ),
    Misconception(
        "wrong-axes-transposed",
        "dimensions",
        _in_dimensions(
            {
                "queries_by_head": "N, d_h, H",
                "keys_by_head": "N, d_h, G",
                "values_by_head": "N, d_v, G",
                "context_by_token": "H, d_v, N",
            },
            {
                "queries_by_head": "d_h, H, N",
                "keys_by_head": "d_h, G, N",
                "values_by_head": "d_v, G, N",
                "context_by_token": "d_v, N, H",
            },
        ),
    ),
    Misconception(
        # Whether the transpose could be left out is asked in harvardnlp/annotated-transformer#118.
        "heads-attend-to-heads",
        "dimensions",
        _in_dimensions(
            {**_TOKENS_FIRST, **_HEADS_TO_HEADS},
            _HEADS_TO_HEADS,
            _each("N, H, H", "scores", "weights"),
        ),
    ),
    Misconception(
        # jsbaan/transformer-from-scratch#4
        "merged-without-transpose",
        "dimensions",
        _in_dimensions(
            {"context_by_token": "H, N, d_v"},
            {"context_by_token": "H, N, d_v", "joined_context": "H, N*d_v"},
        ),
    ),
    Misconception(
        "repeat-forgotten",
        "shared",
        _in_dimensions(
            _FEWER_SCORES,
            {**_FEWER_SCORES, "context_by_token": "right, G, right", "joined_context": "right, G*d_v"},
            _each("G, right, right", *_REPEATED),
            _each("G, right, right", "scores", "weights"),
        ),
        _has_grouped_queries,
    ),
    Misconception(
        # 649453932/Chinese-Text-Classification-Pytorch#53
        "batch-merged-with-heads",
        "dimensions",
        _on(
            "four-dimensions",
            Prediction(_HEADS_AND_BATCH),
            Prediction({**_HEADS_AND_BATCH, **{f"{name.rpartition('.')[0]}.dim0": "1" for name in _HEADS_AND_BATCH}}),
        ),
    ),
    Misconception(
        # lsdefine/attention-is-all-you-need-keras#36, gazelle93/Transformer-Various-Positional-Encoding#1
        "heads-before-batch",
        "dimensions",
        _on(
            "four-dimensions",
            Prediction(
                {
                    **{name.replace(".dim1", ".dim0"): "H" for name in _QUERY_HEADS if name.endswith(".dim1")},
                    **{name.replace(".dim1", ".dim0"): "G" for name in _KV_HEADS if name.endswith(".dim1")},
                    **{name: "B" for name in (*_QUERY_HEADS, *_KV_HEADS) if name.endswith(".dim1")},
                }
            ),
        ),
    ),
    Misconception(
        "tokens-across-batch",
        "dimensions",
        _on(
            "four-dimensions",
            Prediction(_each("B*N", "scores.dim2", "scores.dim3", "weights.dim2", "weights.dim3")),
            Prediction(_each("B*N", "scores.dim3", "weights.dim3")),
        ),
    ),
    # The experts taken for an ensemble, whose members all answer; seen in maxtext#678 and Mono-InternVL#2.
    Misconception(
        "all-experts-active",
        "experts",
        _on(
            "experts",
            Prediction(substitutions={"k": "E"}),
            Prediction(_each("right", *_CHOOSING_SHAPES), {"k": "E"}),
        ),
    ),
    # "8x7B" read as eight models of 7 billion parameters, 56 billion in all; seen in vllm#1991.
    Misconception(
        "whole-model-per-expert",
        "experts",
        _on(
            "experts",
            Prediction({"total.count": "right + (E - 1)*rest", "used.count": "right + (k - 1)*rest"}),
            Prediction({"total.count": "right + (E - 1)*rest"}),
        ),
    ),
    # The Switch Transformer (arXiv:2101.03961) sends each token to one expert; most later models to several.
    Misconception(
        "one-expert-per-token",
        "experts",
        _on(
            "experts",
            Prediction(_each("ceil(N/E)", *_EXPERT_ROWS), {"k": "1"}),
            Prediction(_each("right", *_CHOOSING_SHAPES), {"k": "1"}),
            Prediction(_each("ceil(N/E)", *_EXPERT_ROWS)),
        ),
        lambda architecture: architecture.all_sizes.get("k", 1) > 1,
    ),
    # The router taken for the first projection of the block.
    Misconception(
        "router-as-wide-as-expert",
        "experts",
        _on(
            "experts",
            Prediction(_each("d_exp", "W_router.columns", "router_logits.columns")),
        ),
    ),
    # "This question goes to the expert for history": one choice for a whole text.
    Misconception(
        "one-choice-for-all-tokens",
        "experts",
        _on(
            "experts",
            Prediction(_each("1", "router_logits.rows", "chosen.rows") | _each("N", *_EXPERT_ROWS)),
            Prediction(_each("1", "router_logits.rows", "chosen.rows")),
        ),
    ),
    # The experts taken for slices of one block of the stated width.
    Misconception(
        "experts-share-the-width", "experts", _on("experts", Prediction(substitutions={"d_exp": "floor(d_exp/E)"}))
    ),
    Misconception(
        "expert-gate-forgotten",
        "experts",
        _on(
            "experts",
            Prediction(
                {
                    "one_expert.count": "right - d*d_exp",
                    **_each("right - E*d*d_exp", "experts.count", "block_stored.count"),
                    **_each("right - k*d*d_exp", "chosen_experts.count", "block_active.count"),
                    "total.count": "right - E*L_exp*d*d_exp",
                    "used.count": "right - k*L_exp*d*d_exp",
                }
            ),
        ),
    ),
    Misconception(
        "shared-experts-forgotten",
        "experts",
        _on("experts", Prediction(_each("right - shared_experts", "block_stored.count", "block_active.count"))),
        lambda architecture: shared_expert_parameters(architecture) > 0,
    ),
    # Seen in LTX-Video#224.
    Misconception(
        "angles-as-wide-as-model",
        "rotary",
        _on("rotary-pairs", Prediction(_each("d/2", *_ANGLE_COLUMNS) | {"layer_angles.count": "N*d/2"})),
        lambda architecture: architecture.d != architecture.d_h,
    ),
    # Seen in rotary-embedding-torch#4.
    Misconception(
        "all-dimensions-rotated",
        "rotary",
        _on(
            "rotary-pairs",
            Prediction(
                _each("d_h/2", *_ANGLE_COLUMNS)
                | {"layer_angles.count": "N*d_h/2", "layer_rotated.count": "N*H*d_h + N*G*d_h", "unrotated.count": "0"}
            ),
        ),
        lambda architecture: architecture.rotary is not None and architecture.rotary.width < architecture.d_h,
    ),
    # The paper's pairs for the code's, or the code's for the paper's; seen in transformers#25199 and #40462.
    Misconception(
        "pairs-of-the-other-kind",
        "rotary",
        _on("rotary-pairs", Prediction({"partner.count": "other_partner"})),
    ),
    # Seen in mistral-inference#147.
    Misconception(
        "values-rotated-too",
        "rotary",
        _on("rotary-pairs", Prediction({"layer_rotated.count": "N*H*d_rot + 2*N*G*d_rot"})),
    ),
    Misconception(
        "angles-for-each-head",
        "rotary",
        _on("rotary-pairs", Prediction({"layer_angles.count": "N*H*d_rot/2"})),
        lambda architecture: architecture.H > 1,
    ),
    # W_O is written like the other three, from d to d_v.
    Misconception(
        "output-like-the-others",
        "back",
        _on("head-parameters", Prediction(transposed=("W_O",)), Prediction(transposed=("W_O", "layer_W_O"))),
    ),
    # A square matrix is taken to be invertible.
    Misconception(
        "product-of-full-rank",
        "parameters",
        _on("head-parameters", Prediction(_each("d", "rank_W_QK.count", "rank_W_VO.count"))),
    ),
    # The inner dimension of the product is kept in place of the outer ones.
    Misconception(
        "product-as-small-as-head",
        "parameters",
        _on(
            "head-parameters",
            Prediction(_each("d_h", "W_QK.rows", "W_QK.columns") | _each("d_v", "W_VO.rows", "W_VO.columns")),
        ),
    ),
    # "Low rank" is taken to mean that the update itself is narrow.
    Misconception(
        "rank-instead-of-width",
        "parameters",
        _on(
            "lora",
            Prediction(
                _each("r", "lora_B.columns", "query_update.columns")
                | {"lora_B.count": "r*r", "trained.count": "r*d + r*r"}
            ),
        ),
    ),
    Misconception(
        "frozen-counted-as-trained",
        "parameters",
        _on("lora", Prediction({"trained.count": "right + d*H*d_h"}), Prediction({"trained.count": "d*H*d_h"})),
    ),
    # "Attention is quadratic" taken to hold for all of it.
    Misconception(
        "everything-quadratic",
        "costs",
        _on("growth", Prediction(_each("4", "projections_doubled.count", "kv_cache_doubled.count"))),
    ),
    Misconception(
        "everything-linear",
        "costs",
        _on("growth", Prediction(_each("2", "pairwise_doubled.count", "score_entries_doubled.count"))),
    ),
    Misconception(
        "decoding-costs-a-prefill",
        "costs",
        _on(
            "growth",
            Prediction({"decode_flops.count": "prefill_of_next"}),
            Prediction({"decode_flops.count": "prefill_flops"}),
        ),
    ),
    # "A multiple of 256" is taken to be the one below.
    Misconception(
        "rounded-down-to-multiple",
        "feed-forward",
        _on("feed-forward-width", Prediction({"multiples.count": "floor(g/m)", "width.count": "right - m"})),
        _is_rounded_up,
    ),
    Misconception(
        "not-rounded-to-multiple",
        "feed-forward",
        _on("feed-forward-width", Prediction({"width.count": "g"})),
        _is_rounded_up,
    ),
    # Two thirds of d, where 8/3 of d are meant.
    Misconception(
        "two-thirds-of-d",
        "feed-forward",
        _on("feed-forward-width", Prediction(_each("floor(2*d/3)", "two_thirds.count", "gated_width.count"))),
    ),
    # Gate and up are taken for the two halves of what was one matrix.
    Misconception(
        "gate-is-half-of-up",
        "feed-forward",
        _on("feed-forward-width", Prediction(_each("2*d", "two_thirds.count", "gated_width.count"))),
    ),
    # Both blocks are given the inner dimension of this model.
    Misconception(
        "one-width-for-both-blocks",
        "feed-forward",
        _on(
            "feed-forward-width",
            Prediction({"ungated_parameters.count": "2*d*d_ff"}),
            Prediction({"gated_width.count": "4*d"}),
        ),
    ),
    Misconception(
        "one-matrix-for-block",
        "feed-forward",
        _on("feed-forward-width", Prediction({"block_parameters.count": "4*d*d"})),
        lambda architecture: not architecture.gated,
    ),
)


# Each group with the keys of its misconceptions.
MISCONCEPTION_GROUPS: Mapping[str, tuple[str, ...]] = {
    group: tuple(misconception.key for misconception in MISCONCEPTIONS if misconception.group == group)
    for group in get_args(Group)
}
_GROUP_OF = {misconception.key: misconception.group for misconception in MISCONCEPTIONS}


def group_of(misconception: str) -> str:
    """The group of a misconception, by its key; raises KeyError if there is no such misconception."""
    return _GROUP_OF[misconception]
