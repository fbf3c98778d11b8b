"""The tables: every tensor of every topic, its symbolic shape, and the operation that makes it.

Worksheets, answer keys, drawings and the checks around the real forward pass are read off these tables. Their
parameters are matrices as used in x·W; app/models/layouts/ has them as each family stores them, and
tests/shapes/test_layouts_agree.py compares the two. Shapes are written rows first, tokens as rows, and without a batch
dimension but for the tables that are about it.

>>> [str(length) for length in SINGLE_HEAD["scores"].shape]
['N', 'N']
>>> SINGLE_HEAD.formula("scores")
'{queries} · {keys}ᵀ'
"""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.shapes.operation import (
    Add,
    AddExperts,
    Apply,
    Concat,
    Gate,
    LargestWeights,
    LastRow,
    Lookup,
    Matmul,
    Repeat,
    Reshape,
    Rope,
    SelectRows,
    Softmax,
    Transpose,
    View,
)
from app.shapes.table import Tensor, TensorTable, learned, tensor

# Each tensor takes one line, so that a table can be read as a table.
# fmt: off

# One head: Vaswani et al., "Attention Is All You Need" (arXiv:1706.03762), section 3.2. W_O here is this head's own
# d_v rows of the layer's output projection, so that the heads' outputs add up to the layer's.
_INPUT = tensor("input", "X", "N, d", "input")
_HEAD_PROJECTIONS = (
    learned("W_Q", "d, d_h", "query"),
    learned("W_K", "d, d_h", "key"),
    learned("W_V", "d, d_v", "value"),
)
_HEAD_W_O = learned("W_O", "d_v, d", "output")
SINGLE_HEAD = TensorTable(
    "single-head",
    (
        _INPUT,
        *_HEAD_PROJECTIONS,
        tensor("queries", "Q", "N, d_h", "query", Matmul("input W_Q", "n d, d h -> n h")),
        tensor("keys", "K", "N, d_h", "key", Matmul("input W_K", "n d, d h -> n h")),
        tensor("values", "V", "N, d_v", "value", Matmul("input W_V", "n d, d v -> n v")),
        tensor("scores", "S", "N, N", "score", Matmul("queries keys", "n h, m h -> n m")),
        tensor("weights", "A", "N, N", "score", Softmax("scores", "n m -> n m", masked=True)),
        tensor("context", "C", "N, d_v", "value", Matmul("weights values", "n m, m v -> n v")),
        _HEAD_W_O,
        tensor("output", "O", "N, d", "output", Matmul("context W_O", "n v, v d -> n d")),
    ),
)

# A whole layer, with its heads side by side: H query heads read G key/value heads (Ainslie et al., arXiv:2305.13245).
# Scores and weights are those of one head: (h e) is H heads side by side of e numbers each, (g e) the same for G.
_LAYER_PROJECTIONS = (
    learned("W_Q", "d, H*d_h", "query"),
    learned("W_K", "d, G*d_h", "key"),
    learned("W_V", "d, G*d_v", "value"),
)
_LAYER_W_O = learned("W_O", "H*d_v, d", "output")
ATTENTION_LAYER = TensorTable(
    "attention-layer",
    (
        _INPUT,
        *_LAYER_PROJECTIONS,
        tensor("queries", "Q", "N, H*d_h", "query", Matmul("input W_Q", "n d, d q -> n q")),
        tensor("keys", "K", "N, G*d_h", "key", Matmul("input W_K", "n d, d k -> n k")),
        tensor("values", "V", "N, G*d_v", "value", Matmul("input W_V", "n d, d v -> n v")),
        tensor("scores", "S", "N, N", "score", Matmul("queries keys", "n (h e), m (g e) -> n m")),
        SINGLE_HEAD["weights"],
        tensor("context", "C", "N, H*d_v", "value", Matmul("weights values", "n m, m (g e) -> n (h e)")),
        _LAYER_W_O,
        tensor("output", "O", "N, d", "output", Matmul("context W_O", "n c, c d -> n d")),
    ),
)

# The matrices of one layer, each in the x·W orientation: attention as above, then the feed-forward block with a gate
# (Shazeer, arXiv:2002.05202) or without one (arXiv:1706.03762, section 3.3). Norms and biases are no matrices.
_W_GATE = learned("W_gate", "d, d_ff", "hidden")
_UP_AND_DOWN = (learned("W_up", "d, d_ff", "hidden"), learned("W_down", "d_ff, d", "hidden"))
_LAYER_ATTENTION = (*_LAYER_PROJECTIONS, _LAYER_W_O)
LAYER_PARAMETERS = TensorTable("layer-parameters", (*_LAYER_ATTENTION, _W_GATE, *_UP_AND_DOWN))
PLAIN_LAYER_PARAMETERS = TensorTable("plain-layer-parameters", (*_LAYER_ATTENTION, *_UP_AND_DOWN))

# The same head without a mask, as in an encoder: every token may look at every other. The values change, no shape does.
_UNMASKED_WEIGHTS = tensor("weights", "A", "N, N", "score", Softmax("scores", "n m -> n m"))
BIDIRECTIONAL_HEAD = TensorTable(
    "bidirectional-head", tuple(_UNMASKED_WEIGHTS if t.key == "weights" else t for t in SINGLE_HEAD.tensors)
)

# From scores to weights in one head (arXiv:1706.03762, section 3.2): each score gets the mask's entry added, which is 0
# or −∞, before the softmax. All heads of a layer share the mask.
_GIVEN_QUERIES_AND_KEYS = (tensor("queries", "Q", "N, d_h", "query"), tensor("keys", "K", "N, d_h", "key"))
MASKED_SOFTMAX = TensorTable(
    "masked-softmax",
    (
        *_GIVEN_QUERIES_AND_KEYS,
        SINGLE_HEAD["scores"],
        tensor("mask", "M", "N, N", "score"),
        tensor("weights", "A", "N, N", "score", Softmax("scores mask", "n m, n m -> n m", masked=True)),
    ),
)
# The same without a mask, as in an encoder.
UNMASKED_SOFTMAX = TensorTable("unmasked-softmax", (*_GIVEN_QUERIES_AND_KEYS, SINGLE_HEAD["scores"], _UNMASKED_WEIGHTS))

# The parameters of one head, and the two products of them that a head is made of: without RoPE, scores are
# x · W_Q · W_Kᵀ · xᵀ, and what a token passes on is x · W_V · W_O (Elhage et al., "A Mathematical Framework for
# Transformer Circuits", 2021). Beside them the matrices of the layer, in which heads stand next to each other, in W_O
# below each other.
HEAD_PARAMETERS = TensorTable(
    "head-parameters",
    (
        *_HEAD_PROJECTIONS,
        _HEAD_W_O,
        *(replace(tensor, key=f"layer_{tensor.key}", letter="") for tensor in _LAYER_ATTENTION),
        replace(learned("W_QK", "d, d", "score", counted=False), made_by=Matmul("W_Q W_K", "d h, e h -> d e")),
        replace(learned("W_VO", "d, d", "output", counted=False), made_by=Matmul("W_V W_O", "d v, v e -> d e")),
    ),
)

# One head while a text is being written: one new token after N whose keys and values are kept (Pope et al.,
# arXiv:2211.05102). The new row joins the N cached ones, so there are N + 1 to look at.
_NEW_TOKEN = tensor("input", "x", "1, d", "input")
_NEW_QUERY = tensor("queries", "q", "1, d_h", "query", Matmul("input W_Q", "o d, d h -> o h"))
_FROM_CONTEXT = (
    tensor("context", "c", "1, d_v", "value", Matmul("weights values", "o m, m v -> o v")),
    _HEAD_W_O,
    tensor("output", "o", "1, d", "output", Matmul("context W_O", "o v, v d -> o d")),
)
DECODE_STEP = TensorTable(
    "decode-step",
    (
        _NEW_TOKEN,
        *_HEAD_PROJECTIONS,
        _NEW_QUERY,
        tensor("new_key", "k", "1, d_h", "key", Matmul("input W_K", "o d, d h -> o h")),
        tensor("new_value", "v", "1, d_v", "value", Matmul("input W_V", "o d, d v -> o v")),
        tensor("cached_keys", "K'", "N, d_h", "key"),
        tensor("cached_values", "V'", "N, d_v", "value"),
        tensor("keys", "K", "N + 1, d_h", "key", Concat("cached_keys new_key", "n h, o h -> m h")),
        tensor("values", "V", "N + 1, d_v", "value", Concat("cached_values new_value", "n v, o v -> m v")),
        tensor("scores", "s", "1, N + 1", "score", Matmul("queries keys", "o h, m h -> o m")),
        tensor("weights", "a", "1, N + 1", "score", Softmax("scores", "o m -> o m")),
        *_FROM_CONTEXT,
    ),
)

# The same step in a layer with a sliding window of W keys, the new one included (Beltagy et al., arXiv:2004.05150),
# once the window is full: what is older has been dropped.
WINDOWED_DECODE_STEP = TensorTable(
    "windowed-decode-step",
    (
        _NEW_TOKEN,
        _HEAD_PROJECTIONS[0],
        _NEW_QUERY,
        tensor("keys", "K", "W, d_h", "key"),
        tensor("values", "V", "W, d_v", "value"),
        tensor("scores", "s", "1, W", "score", Matmul("queries keys", "o h, m h -> o m")),
        tensor("weights", "a", "1, W", "score", Softmax("scores", "o m -> o m")),
        *_FROM_CONTEXT,
    ),
)

# One head of a decoder that reads an encoder: M tokens ask, N tokens answer (arXiv:1706.03762, section 3.2.3).
CROSS_ATTENTION = TensorTable(
    "cross-attention",
    (
        tensor("input", "X", "M, d", "input"),
        tensor("encoded", "E", "N, d", "input"),
        *_HEAD_PROJECTIONS,
        tensor("queries", "Q", "M, d_h", "query", Matmul("input W_Q", "m d, d h -> m h")),
        tensor("keys", "K", "N, d_h", "key", Matmul("encoded W_K", "n d, d h -> n h")),
        tensor("values", "V", "N, d_v", "value", Matmul("encoded W_V", "n d, d v -> n v")),
        tensor("scores", "S", "M, N", "score", Matmul("queries keys", "m h, n h -> m n")),
        tensor("weights", "A", "M, N", "score", Softmax("scores", "m n -> m n", of_one_text=False)),
        tensor("context", "C", "M, d_v", "value", Matmul("weights values", "m n, n v -> m v")),
        _HEAD_W_O,
        tensor("output", "O", "M, d", "output", Matmul("context W_O", "m v, v d -> m d")),
    ),
)


# Latent attention (DeepSeek-AI, arXiv:2405.04434): the cache holds r_kv + d_rope numbers a token, for all heads
# together, and keys (d_h = d_nope + d_rope wide) and values are made from them.
def _latent_attention(key: str, *queries: Tensor) -> TensorTable:
    """The table of a layer with latent attention, as in DeepSeek; the given tensors make its queries from the input."""
    return TensorTable(
        key,
        (
            _INPUT,
            learned("W_DKV", "d, r_kv", "key"),
            learned("W_KR", "d, d_rope", "key"),
            learned("W_UK", "r_kv, H*d_nope", "key"),
            learned("W_UV", "r_kv, H*d_v", "value"),
            *queries,
            tensor("latent", "C_KV", "N, r_kv", "key", Matmul("input W_DKV", "n d, d r -> n r")),
            tensor("rotary_key", "K_R", "N, d_rope", "key", Matmul("input W_KR", "n d, d p -> n p", rotated=True)),
            tensor("cache", "cache", "N, r_kv + d_rope", "key", Concat("latent rotary_key", "n r, n p -> n a")),
            tensor("plain_keys", "K_C", "N, H*d_nope", "key", Matmul("latent W_UK", "n r, r u -> n u")),
            tensor("keys", "K", "N, H*d_h", "key", Concat("plain_keys rotary_key", "n (h u), n p -> n (h k)")),
            tensor("values", "V", "N, H*d_v", "value", Matmul("latent W_UV", "n r, r c -> n c")),
            ATTENTION_LAYER["scores"],
            ATTENTION_LAYER["weights"],
            tensor("context", "C", "N, H*d_v", "value", Matmul("weights values", "n m, m (h e) -> n (h e)")),
            _LAYER_W_O,
            ATTENTION_LAYER["output"],
        ),
    )


LATENT_ATTENTION = _latent_attention(
    "latent-attention",
    learned("W_DQ", "d, r_q", "query"),
    learned("W_UQ", "r_q, H*d_h", "query"),
    tensor("latent_queries", "C_Q", "N, r_q", "query", Matmul("input W_DQ", "n d, d q -> n q")),
    tensor("queries", "Q", "N, H*d_h", "query", Matmul("latent_queries W_UQ", "n q, q k -> n k")),
)
# The same without a latent for the queries, as in DeepSeek V2 Lite.
DIRECT_LATENT_ATTENTION = _latent_attention(
    "direct-latent-attention", _LAYER_PROJECTIONS[0], ATTENTION_LAYER["queries"]
)


def _whole_model(key: str, *feed_forward: Tensor) -> TensorTable:
    """The table of a model from tokens to logits, in which one layer stands for all L.

    `feed_forward` are the tensors of the layer's feed-forward block, from normed_residual to fed_forward.
    """
    return TensorTable(
        key,
        (
            tensor("tokens", "t", "N, 1", "input"),
            learned("embedding", "V, d", "input", letter="E"),
            tensor("embedded", "X", "N, d", "input", Lookup("tokens embedding", "n i, v d -> n d")),
            tensor("normed", "X'", "N, d", "input", Apply("embedded", "n d -> n d", "{norm}")),
            tensor("attended", "O", "N, d", "output", Apply("normed", "n d -> n d", "{attention}")),
            tensor("residual", "R", "N, d", "input", Add("embedded attended", "n d, n d -> n d")),
            tensor("normed_residual", "R'", "N, d", "input", Apply("residual", "n d -> n d", "{norm}")),
            *feed_forward,
            tensor("layer_output", "Y", "N, d", "output", Add("residual fed_forward", "n d, n d -> n d")),
            tensor("final", "Y'", "N, d", "output", Apply("layer_output", "n d -> n d", "{norm}")),
            learned("output_head", "d, V", "output", letter="W_out"),
            tensor("logits", "Z", "N, V", "output", Matmul("final output_head", "n d, d v -> n v")),
            tensor("last_logits", "z", "1, V", "output", LastRow("logits", "n v -> o v")),
        ),
    )


# A whole model with a gated feed-forward block (Shazeer, arXiv:2002.05202), as in LLaMA.
_UP = tensor("up", "U", "N, d_ff", "hidden", Matmul("normed_residual W_up", "n d, d f -> n f"))
_DOWN = tensor("fed_forward", "F", "N, d", "output", Matmul("hidden W_down", "n f, f d -> n d"))
WHOLE_MODEL = _whole_model(
    "whole-model",
    _W_GATE,
    *_UP_AND_DOWN,
    tensor("gate", "G", "N, d_ff", "hidden", Matmul("normed_residual W_gate", "n d, d f -> n f")),
    _UP,
    tensor("hidden", "B", "N, d_ff", "hidden", Gate("gate up", "n f, n f -> n f")),
    _DOWN,
)
# The same with two matrices and no gate (arXiv:1706.03762, section 3.3), as in GPT-2.
PLAIN_WHOLE_MODEL = _whole_model(
    "plain-whole-model",
    *_UP_AND_DOWN,
    _UP,
    tensor("hidden", "B", "N, d_ff", "hidden", Apply("up", "n f -> n f", "{activation}")),
    _DOWN,
)

# Rotary positions (Su et al., arXiv:2104.09864) rotate d_rot of a query's and a key's numbers, in pairs: one angle for
# each token and pair.
ROTARY_PAIRS = TensorTable(
    "rotary-pairs",
    (
        *_GIVEN_QUERIES_AND_KEYS,
        tensor("angles", "θ", "N, d_rot/2", "hidden", hint="pairs"),
        tensor("cosines", "cos", "N, d_rot/2", "hidden", Apply("angles", "n p -> n p", "cos")),
        tensor("sines", "sin", "N, d_rot/2", "hidden", Apply("angles", "n p -> n p", "sin")),
        tensor("rotated_queries", "Q'", "N, d_h", "query", Rope("queries angles", "n h, n p -> n h")),
        tensor("rotated_keys", "K'", "N, d_h", "key", Rope("keys angles", "n h, n p -> n h")),
    ),
)

# All heads of a layer at once, as PyTorch code computes them: the heads are split off the features by view, become the
# first dimension by transpose, and are merged into the features again at the end. Each of the G key/value heads is
# copied for the H/G query heads that share it, as in repeat_kv of huggingface/transformers (models/llama).
GROUPED_HEADS = TensorTable(
    "grouped-heads",
    (
        _INPUT,
        *_LAYER_PROJECTIONS,
        ATTENTION_LAYER["queries"],
        tensor("split_queries", "Q_view", "N, H, d_h", "query", View("queries", "n (h e) -> n h e")),
        tensor("queries_by_head", "Q_head", "H, N, d_h", "query", Transpose("split_queries", "n h e -> h n e")),
        ATTENTION_LAYER["keys"],
        tensor("split_keys", "K_view", "N, G, d_h", "key", View("keys", "n (g e) -> n g e")),
        tensor("keys_by_head", "K_head", "G, N, d_h", "key", Transpose("split_keys", "n g e -> g n e")),
        tensor("repeated_keys", "K_rep", "H, N, d_h", "key", Repeat("keys_by_head", "g n e -> h n e")),
        ATTENTION_LAYER["values"],
        tensor("split_values", "V_view", "N, G, d_v", "value", View("values", "n (g v) -> n g v")),
        tensor("values_by_head", "V_head", "G, N, d_v", "value", Transpose("split_values", "n g v -> g n v")),
        tensor("repeated_values", "V_rep", "H, N, d_v", "value", Repeat("values_by_head", "g n v -> h n v")),
        tensor("scores", "S", "H, N, N", "score", Matmul("queries_by_head repeated_keys", "h n e, h m e -> h n m")),
        tensor("weights", "A", "H, N, N", "score", Softmax("scores", "h n m -> h n m", masked=True)),
        tensor("context", "C", "H, N, d_v", "value", Matmul("weights repeated_values", "h n m, h m v -> h n v")),
        tensor("context_by_token", "C_tok", "N, H, d_v", "value", Transpose("context", "h n v -> n h v")),
        tensor("joined_context", "C_cat", "N, H*d_v", "value", Reshape("context_by_token", "n h v -> n (h v)")),
        _LAYER_W_O,
        tensor("output", "O", "N, d", "output", Matmul("joined_context W_O", "n c, c d -> n d")),
    ),
)
# fmt: on


def _without_repeat(key: str, table: TensorTable) -> TensorTable:
    """The table of a model with as many key/value heads as query heads, which copies none."""
    original = {t.key: t.made_by.of for t in table.tensors if isinstance(t.made_by, Repeat)}
    kept = (tensor for tensor in table.tensors if tensor.key not in original)
    tensors = (replace(t, made_by=t.made_by.with_operands(original)) if t.made_by else t for t in kept)
    return TensorTable(key, tuple(tensors), alike=("G", "H"))


def _with_batch(key: str, table: TensorTable) -> TensorTable:
    """The table with the batch dimension B before all others of each activation; parameters have none."""
    batch, activations = Expression.symbol("B"), {tensor.key for tensor in table.activations}

    def batched(each: Tensor) -> Tensor:
        made_by = each.made_by.with_axis("b", activations) if each.made_by else None
        return replace(each, shape=(batch, *each.shape), made_by=made_by)

    return replace(table, key=key, tensors=tuple(t if t.parameter else batched(t) for t in table.tensors))


HEADS_AS_DIMENSION = _without_repeat("heads-as-dimension", GROUPED_HEADS)
BATCHED_GROUPED_HEADS = _with_batch("batched-grouped-heads", GROUPED_HEADS)
BATCHED_HEADS = _with_batch("batched-heads", HEADS_AS_DIMENSION)

# A mixture of experts in place of one feed-forward block (Shazeer et al., arXiv:1701.06538; Jiang et al.,
# arXiv:2401.04088, section 2.1): a router gives each token a logit for every expert, and sends it to k of the E. N
# tokens go to k experts each, so one expert gets N·k/E of them on average. Experts are gated (arXiv:2002.05202); the
# sheet counts the matrices of one of them.
# fmt: off
EXPERTS = TensorTable(
    "experts",
    (
        _INPUT,
        learned("W_router", "d, E", "score", counted=False, letter="W_r"),
        tensor("router_logits", "R", "N, E", "score", Matmul("input W_router", "n d, d e -> n e")),
        tensor("chosen", "P", "N, k", "score", LargestWeights("router_logits", "n e -> n k")),
        learned("W_gate", "d, d_exp", "hidden", counted=False),
        learned("W_up", "d, d_exp", "hidden", counted=False),
        learned("W_down", "d_exp, d", "hidden", counted=False),
        tensor("expert_input", "X_e", "N*k/E, d", "input", SelectRows("input", "n d -> m d")),
        tensor("expert_hidden", "B_e", "N*k/E, d_exp", "hidden",
               Matmul("expert_input W_up", "m d, d f -> m f", gated_by="W_gate")),
        tensor("expert_output", "Y_e", "N*k/E, d", "output", Matmul("expert_hidden W_down", "m f, f d -> m d")),
        tensor("output", "O", "N, d", "output", AddExperts("expert_output", "m d -> n d")),
    ),
    asks_parameters=True,
)
# fmt: on
