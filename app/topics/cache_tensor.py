"""The KV cache of a layer as a tensor, what all layers cache, and attention of several new tokens to the cache.

Keys and values are laid out as in transformers: (batch, heads, tokens, features). All layers together hold (2, L, B, G,
N, d_h) numbers if keys are as long as values (Pope et al., arXiv:2211.05102).

>>> str(GROUPED_KV_CACHE.askable["cached_numbers"].expression("count"))
'B*G*L*N*d_h + B*G*L*N*d_v'
"""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.operation import Concat, Matmul, Repeat, Softmax
from app.shapes.table import PARTS_SUM, Count, FromParts, Tensor, TensorTable, tensor
from app.topics.requirements import (
    ATTENTION_OF_ONE_SHAPE,
    CACHE_IN_ALL_LAYERS,
    CACHE_OF_KEYS_AND_VALUES,
    KV_CACHE,
    ONE_NUMBER_OF_VISIBLE_KEYS,
    Requirement,
)
from app.topics.three_dimensions import without_repeat
from app.topics.topic import FigurePlan, Topic, first_free
from app.translation import N_

_NEW_TOKENS = (7, 12, 14, 17, 19)  # none is a batch size
_ENCODER_TOKENS = (70, 90, 110)
MOST_NEW_TOKENS = max(_NEW_TOKENS)


def _sizes_of_step(architecture: Architecture, tokens: int) -> dict[str, int]:
    sizes = architecture.decoder_sizes
    new = first_free(_NEW_TOKENS, tokens, {tokens, *(sizes[symbol] for symbol in ("H", "G", "d_h", "d_v", "L"))})
    if not architecture.encoder_decoder:
        return {"m": new}
    read = first_free(_ENCODER_TOKENS, tokens, {tokens, tokens + new, sizes["d_h"]})
    return {"m": new, "N_enc": architecture.fixed_tokens or min(read, architecture.max_tokens)}


def _cache_table(key: str, *appended: Tensor, cached: str, used: str, of_layer: str = "") -> TensorTable:
    in_layer = of_layer or f"{{{cached}}}"
    numbers = Expression.parse(f"L*B*G*{in_layer}*(d_h + d_v)".replace("{", "").replace("}", ""))
    formula = f"{{L}} · {{B}} · {{G}} · {in_layer} · ({{d_h}} + {{d_v}})"
    doubled = FromParts(PARTS_SUM * 2, ("cached_numbers",))
    return TensorTable(
        key,
        (
            tensor("cached_keys", "K_cache", f"B, G, {cached}, d_h", "key"),
            tensor("cached_values", "V_cache", f"B, G, {cached}, d_v", "value"),
            tensor("queries", "Q", "B, H, m, d_h", "query"),
            tensor("new_keys", "K_new", "B, G, m, d_h", "key"),
            tensor("new_values", "V_new", "B, G, m, d_v", "value"),
            *appended,
            tensor("repeated_keys", "K_rep", f"B, H, {used}, d_h", "key", Repeat("keys", "b g t e -> b h t e")),
            tensor("repeated_values", "V_rep", f"B, H, {used}, d_v", "value", Repeat("values", "b g t v -> b h t v")),
            tensor("scores", "S", f"B, H, m, {used}", "score",
                   Matmul("queries repeated_keys", "b h m e, b h t e -> b h m t")),
            tensor("weights", "A", f"B, H, m, {used}", "score", Softmax("scores", "b h m t -> b h m t", masked=True)),
            tensor("context", "C", "B, H, m, d_v", "value",
                   Matmul("weights repeated_values", "b h m t, b h t v -> b h m v")),
        ),
        counts=(
            Count("cached_numbers", numbers, formula, unit="entries"),
            Count("cache_bytes", numbers * 2, f"2 {{bytes}} · {formula}", doubled, unit="bytes"),
        ),
    )  # fmt: skip


_KEYS_APPENDED, _VALUES_APPENDED = "b g n e, b g m e -> b g t e", "b g n v, b g m v -> b g t v"
_ALL_KEPT = (
    tensor("keys", "K", "B, G, N + m, d_h", "key", Concat("cached_keys new_keys", _KEYS_APPENDED)),
    tensor("values", "V", "B, G, N + m, d_v", "value", Concat("cached_values new_values", _VALUES_APPENDED)),
)
# A full sliding window drops its oldest token and keeps W - 1 for the first new one, which sees W keys including its
# own, as in `StaticSlidingWindowLayer` of huggingface/transformers (cache_utils.py).
_LATEST_KEPT = (
    tensor("keys", "K", "B, G, W + m - 1, d_h", "key"),
    tensor("values", "V", "B, G, W + m - 1, d_v", "value"),
)

GROUPED_KV_CACHE = _cache_table("grouped-kv-cache", *_ALL_KEPT, cached="N", used="N + m")
GROUPED_WINDOWED_KV_CACHE = _cache_table("grouped-windowed-kv-cache", *_LATEST_KEPT, cached="W", used="W + m - 1")
MULTI_HEAD_KV_CACHE = without_repeat("cache-tensor", GROUPED_KV_CACHE)
WINDOWED_KV_CACHE = without_repeat("windowed-kv-cache", GROUPED_WINDOWED_KV_CACHE)

# A decoder also caches the keys and values of the encoder's tokens, once, since they stay the same while it writes.
_OF_BOTH_TEXTS = without_repeat(
    "decoder-kv-cache",
    _cache_table("grouped-decoder-kv-cache", *_ALL_KEPT, cached="N", used="N + m", of_layer="({N} + {N_enc})"),
)
DECODER_KV_CACHE = replace(
    _OF_BOTH_TEXTS,
    tensors=(
        *_OF_BOTH_TEXTS.tensors,
        tensor("cross_keys", "K_cross", "B, H, N_enc, d_h", "key"),
        tensor("cross_values", "V_cross", "B, H, N_enc, d_v", "value"),
        tensor("cross_queries", "Q_cross", "B, H, m, d_h", "query"),
        tensor("cross_scores", "S_cross", "B, H, m, N_enc", "score",
               Matmul("cross_queries cross_keys", "b h m e, b h n e -> b h m n")),
    ),
)  # fmt: skip


def _cache_of_model(architecture: Architecture, tokens: int) -> TensorTable:
    if architecture.encoder_decoder:
        return DECODER_KV_CACHE
    is_full = architecture.window is not None and tokens >= architecture.window
    if architecture.G == architecture.H:
        return WINDOWED_KV_CACHE if is_full else MULTI_HEAD_KV_CACHE
    return GROUPED_WINDOWED_KV_CACHE if is_full else GROUPED_KV_CACHE


def _places(architecture: Architecture, _tokens: int) -> int:
    chunks = (run.chunk for run in architecture.stacks[-1].attending if run.chunk)
    return min([architecture.max_decoder_tokens, *chunks])


def _longest_before(architecture: Architecture, tokens: int) -> int:
    return _places(architecture, tokens) - MOST_NEW_TOKENS


_PLACES_FOR_NEW_TOKENS = Requirement(
    lambda architecture, tokens: _longest_before(architecture, tokens) >= 1,
    N_("{model} has room for {number} tokens, too few for several new ones: choose a model such as LLaMA 7B."),
    _places,
)
_ROOM_FOR_NEW_TOKENS = Requirement(
    lambda architecture, tokens: tokens <= _longest_before(architecture, tokens),
    N_("After {tokens} tokens, {model} has no room for several new ones: choose at most {number} tokens."),
    _longest_before,
)

_APPENDED = FigurePlan("deck-cache", "cached_keys", ("keys",))
_ATTENTION = (
    FigurePlan("deck-scores", "queries", ("scores", "weights")),
    FigurePlan("deck-context", "weights", ("context",)),
)

TOPIC = Topic(
    "cache-tensor",
    "layer",
    _cache_of_model,
    (
        KV_CACHE,
        CACHE_IN_ALL_LAYERS,
        CACHE_OF_KEYS_AND_VALUES,
        ATTENTION_OF_ONE_SHAPE,
        ONE_NUMBER_OF_VISIBLE_KEYS,
        _PLACES_FOR_NEW_TOKENS,
        _ROOM_FOR_NEW_TOKENS,
    ),
    uses_decoder=True,
    masked=True,
    batched=True,
    adds_tokens=MOST_NEW_TOKENS,
    extra_sizes=_sizes_of_step,
    extra_symbols="m N_enc",
    tables=(GROUPED_KV_CACHE, MULTI_HEAD_KV_CACHE, GROUPED_WINDOWED_KV_CACHE, WINDOWED_KV_CACHE, DECODER_KV_CACHE),
    counts="cached_numbers cache_bytes",
    figures={
        GROUPED_KV_CACHE.key: (replace(_APPENDED, results=("keys", "repeated_keys")), *_ATTENTION),
        MULTI_HEAD_KV_CACHE.key: (_APPENDED, *_ATTENTION),
        GROUPED_WINDOWED_KV_CACHE.key: (FigurePlan("deck-keys-used", "keys", ("repeated_keys",)), *_ATTENTION),
        WINDOWED_KV_CACHE.key: _ATTENTION,
        DECODER_KV_CACHE.key: (
            _APPENDED,
            *_ATTENTION,
            FigurePlan("deck-cross-scores", "cross_queries", ("cross_scores",)),
        ),
    },
)
