"""The tables: every tensor of every topic, its symbolic shape, and the equation that makes it.

Worksheets, answer keys, drawings and the checks around the real forward pass are read off these tables. Their
parameters are matrices as used in x·W; app/models/layouts/ has them as each family stores them, and
tests/shapes/test_layouts_agree.py compares the two. Shapes are written rows first, tokens as rows, and without a batch
dimension but for the tables that are about it.

>>> [str(length) for length in SINGLE_HEAD["scores"].shape]
['N', 'N']
>>> SINGLE_HEAD["scores"].equation.formula
'{queries} · {keys}ᵀ'
"""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.shapes.table import Equation, Tensor, TensorTable, matrix, tensor

# A matrix takes one line, and another one that says how it is made, so that a table can be read as a table.
# fmt: off

# One head: Vaswani et al., "Attention Is All You Need" (arXiv:1706.03762), section 3.2. W_O here is this head's own
# d_v rows of the layer's output projection, so that the heads' outputs add up to the layer's.
SINGLE_HEAD = TensorTable(
    "single-head",
    (
        matrix("input", "X", "N, d", "input"),
        matrix("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        matrix("W_K", "W_K", "d, d_h", "key", parameter=True),
        matrix("W_V", "W_V", "d, d_v", "value", parameter=True),
        matrix("queries", "Q", "N, d_h", "query",
               made_from="input W_Q", labels="n d, d h -> n h", formula="{input} · {W_Q}"),
        matrix("keys", "K", "N, d_h", "key",
               made_from="input W_K", labels="n d, d h -> n h", formula="{input} · {W_K}"),
        matrix("values", "V", "N, d_v", "value",
               made_from="input W_V", labels="n d, d v -> n v", formula="{input} · {W_V}"),
        matrix("scores", "S", "N, N", "score",
               made_from="queries keys", labels="n h, m h -> n m", formula="{queries} · {keys}ᵀ"),
        matrix("weights", "A", "N, N", "score",
               made_from="scores", labels="n m -> n m", formula="softmax({scaled-scores} + {mask}), {each-query}"),
        matrix("context", "C", "N, d_v", "value",
               made_from="weights values", labels="n m, m v -> n v", formula="{weights} · {values}"),
        matrix("W_O", "W_O", "d_v, d", "output", parameter=True),
        matrix("output", "O", "N, d", "output",
               made_from="context W_O", labels="n v, v d -> n d", formula="{context} · {W_O}"),
    ),
)

# A whole layer, with its heads side by side: H query heads read G key/value heads (Ainslie et al., arXiv:2305.13245).
# Scores and weights are those of one head: h*e is H heads side by side of e numbers each, g*e the same for G.
ATTENTION_LAYER = TensorTable(
    "attention-layer",
    (
        matrix("input", "X", "N, d", "input"),
        matrix("W_Q", "W_Q", "d, H*d_h", "query", parameter=True),
        matrix("W_K", "W_K", "d, G*d_h", "key", parameter=True),
        matrix("W_V", "W_V", "d, G*d_v", "value", parameter=True),
        matrix("queries", "Q", "N, H*d_h", "query",
               made_from="input W_Q", labels="n d, d q -> n q", formula="{input} · {W_Q}"),
        matrix("keys", "K", "N, G*d_h", "key",
               made_from="input W_K", labels="n d, d k -> n k", formula="{input} · {W_K}"),
        matrix("values", "V", "N, G*d_v", "value",
               made_from="input W_V", labels="n d, d v -> n v", formula="{input} · {W_V}"),
        matrix("scores", "S", "N, N", "score",
               made_from="queries keys", labels="n h*e, m g*e -> n m", formula="{queries} · {keys}ᵀ, {head-by-head}"),
        matrix("weights", "A", "N, N", "score",
               made_from="scores", labels="n m -> n m", formula="softmax({scaled-scores} + {mask}), {each-query}"),
        matrix("context", "C", "N, H*d_v", "value",
               made_from="weights values", labels="n m, m g*e -> n h*e",
               formula="{weights} · {values}, {heads-concatenated}"),
        matrix("W_O", "W_O", "H*d_v, d", "output", parameter=True),
        matrix("output", "O", "N, d", "output",
               made_from="context W_O", labels="n c, c d -> n d", formula="{context} · {W_O}"),
    ),
)

# The matrices of one layer, each in the x·W orientation: attention as above, then the feed-forward block with a gate
# (Shazeer, arXiv:2002.05202) or without one (arXiv:1706.03762, section 3.3). Norms and biases are no matrices.
_ATTENTION_PARAMETERS = tuple(tensor for tensor in ATTENTION_LAYER.tensors if tensor.parameter)
_UP_AND_DOWN = (
    matrix("W_up", "W_up", "d, d_ff", "hidden", parameter=True),
    matrix("W_down", "W_down", "d_ff, d", "hidden", parameter=True),
)
LAYER_PARAMETERS = TensorTable(
    "layer-parameters",
    (*_ATTENTION_PARAMETERS, matrix("W_gate", "W_gate", "d, d_ff", "hidden", parameter=True), *_UP_AND_DOWN),
)
PLAIN_LAYER_PARAMETERS = TensorTable("plain-layer-parameters", (*_ATTENTION_PARAMETERS, *_UP_AND_DOWN))

# The same head without a mask, as in an encoder: every token may look at every other. The values change, no shape does.
BIDIRECTIONAL_HEAD = TensorTable(
    "bidirectional-head",
    tuple(
        replace(tensor, equation=Equation(("scores",), "n m -> n m", "softmax({scaled-scores}), {each-query}"))
        if tensor.key == "weights"
        else tensor
        for tensor in SINGLE_HEAD.tensors
    ),
)

# From scores to weights in one head (arXiv:1706.03762, section 3.2): each score gets the mask's entry added, which is 0
# or −∞, before the softmax. All heads of a layer share the mask.
MASKED_SOFTMAX = TensorTable(
    "masked-softmax",
    (
        matrix("queries", "Q", "N, d_h", "query"),
        matrix("keys", "K", "N, d_h", "key"),
        SINGLE_HEAD["scores"],
        matrix("mask", "M", "N, N", "score"),
        matrix("weights", "A", "N, N", "score",
               made_from="scores mask", labels="n m, n m -> n m", adds="mask",
               formula="softmax({scaled-scores} + {mask}), {each-query}"),
    ),
)
# The same without a mask, as in an encoder.
UNMASKED_SOFTMAX = TensorTable(
    "unmasked-softmax",
    (
        MASKED_SOFTMAX["queries"],
        MASKED_SOFTMAX["keys"],
        SINGLE_HEAD["scores"],
        BIDIRECTIONAL_HEAD["weights"],
    ),
)

# The parameters of one head, and the two products of them that a head is made of: without RoPE, scores are
# x · W_Q · W_Kᵀ · xᵀ, and what a token passes on is x · W_V · W_O (Elhage et al., "A Mathematical Framework for
# Transformer Circuits", 2021). Beside them the matrices of the layer, in which heads stand next to each other, in W_O
# below each other.
HEAD_PARAMETERS = TensorTable(
    "head-parameters",
    (
        *(tensor for tensor in SINGLE_HEAD.tensors if tensor.parameter),
        *(replace(tensor, key=f"layer_{tensor.key}", letter="")
          for tensor in ATTENTION_LAYER.tensors if tensor.parameter),
        matrix("W_QK", "W_QK", "d, d", "score", parameter=True, counted=False,
               made_from="W_Q W_K", labels="d h, e h -> d e", formula="{W_Q} · {W_K}ᵀ"),
        matrix("W_VO", "W_VO", "d, d", "output", parameter=True, counted=False,
               made_from="W_V W_O", labels="d v, v e -> d e", formula="{W_V} · {W_O}"),
    ),
)

# One head while a text is being written: one new token after N whose keys and values are kept (Pope et al.,
# arXiv:2211.05102). The new row joins the N cached ones, so there are N + 1 to look at.
DECODE_STEP = TensorTable(
    "decode-step",
    (
        matrix("input", "x", "1, d", "input"),
        matrix("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        matrix("W_K", "W_K", "d, d_h", "key", parameter=True),
        matrix("W_V", "W_V", "d, d_v", "value", parameter=True),
        matrix("queries", "q", "1, d_h", "query",
               made_from="input W_Q", labels="o d, d h -> o h", formula="{input} · {W_Q}"),
        matrix("new_key", "k", "1, d_h", "key",
               made_from="input W_K", labels="o d, d h -> o h", formula="{input} · {W_K}"),
        matrix("new_value", "v", "1, d_v", "value",
               made_from="input W_V", labels="o d, d v -> o v", formula="{input} · {W_V}"),
        matrix("cached_keys", "K'", "N, d_h", "key"),
        matrix("cached_values", "V'", "N, d_v", "value"),
        matrix("keys", "K", "N + 1, d_h", "key",
               made_from="cached_keys new_key", labels="n h, o h -> m h",
               formula="[{cached_keys}; {new_key}], {row-appended}"),
        matrix("values", "V", "N + 1, d_v", "value",
               made_from="cached_values new_value", labels="n v, o v -> m v",
               formula="[{cached_values}; {new_value}], {row-appended}"),
        matrix("scores", "s", "1, N + 1", "score",
               made_from="queries keys", labels="o h, m h -> o m", formula="{queries} · {keys}ᵀ"),
        matrix("weights", "a", "1, N + 1", "score",
               made_from="scores", labels="o m -> o m", formula="softmax({scaled-scores}), {each-query}"),
        matrix("context", "c", "1, d_v", "value",
               made_from="weights values", labels="o m, m v -> o v", formula="{weights} · {values}"),
        matrix("W_O", "W_O", "d_v, d", "output", parameter=True),
        matrix("output", "o", "1, d", "output",
               made_from="context W_O", labels="o v, v d -> o d", formula="{context} · {W_O}"),
    ),
)

# The same step in a layer with a sliding window of W keys, the new one included (Beltagy et al., arXiv:2004.05150),
# once the window is full: what is older has been dropped.
WINDOWED_DECODE_STEP = TensorTable(
    "windowed-decode-step",
    (
        matrix("input", "x", "1, d", "input"),
        matrix("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        matrix("queries", "q", "1, d_h", "query",
               made_from="input W_Q", labels="o d, d h -> o h", formula="{input} · {W_Q}"),
        matrix("keys", "K", "W, d_h", "key"),
        matrix("values", "V", "W, d_v", "value"),
        matrix("scores", "s", "1, W", "score",
               made_from="queries keys", labels="o h, w h -> o w", formula="{queries} · {keys}ᵀ"),
        matrix("weights", "a", "1, W", "score",
               made_from="scores", labels="o w -> o w", formula="softmax({scaled-scores}), {each-query}"),
        matrix("context", "c", "1, d_v", "value",
               made_from="weights values", labels="o w, w v -> o v", formula="{weights} · {values}"),
        matrix("W_O", "W_O", "d_v, d", "output", parameter=True),
        matrix("output", "o", "1, d", "output",
               made_from="context W_O", labels="o v, v d -> o d", formula="{context} · {W_O}"),
    ),
)

# One head of a decoder that reads an encoder: M tokens ask, N tokens answer (arXiv:1706.03762, section 3.2.3).
CROSS_ATTENTION = TensorTable(
    "cross-attention",
    (
        matrix("input", "X", "M, d", "input"),
        matrix("encoded", "E", "N, d", "input"),
        matrix("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        matrix("W_K", "W_K", "d, d_h", "key", parameter=True),
        matrix("W_V", "W_V", "d, d_v", "value", parameter=True),
        matrix("queries", "Q", "M, d_h", "query",
               made_from="input W_Q", labels="m d, d h -> m h", formula="{input} · {W_Q}"),
        matrix("keys", "K", "N, d_h", "key",
               made_from="encoded W_K", labels="n d, d h -> n h", formula="{encoded} · {W_K}"),
        matrix("values", "V", "N, d_v", "value",
               made_from="encoded W_V", labels="n d, d v -> n v", formula="{encoded} · {W_V}"),
        matrix("scores", "S", "M, N", "score",
               made_from="queries keys", labels="m h, n h -> m n", formula="{queries} · {keys}ᵀ"),
        matrix("weights", "A", "M, N", "score",
               made_from="scores", labels="m n -> m n", formula="softmax({scaled-scores}), {each-query}"),
        matrix("context", "C", "M, d_v", "value",
               made_from="weights values", labels="m n, n v -> m v", formula="{weights} · {values}"),
        matrix("W_O", "W_O", "d_v, d", "output", parameter=True),
        matrix("output", "O", "M, d", "output",
               made_from="context W_O", labels="m v, v d -> m d", formula="{context} · {W_O}"),
    ),
)


# Latent attention (DeepSeek-AI, arXiv:2405.04434): the cache holds r_kv + d_rope numbers a token, for all heads
# together, and keys (d_h = d_nope + d_rope wide) and values are made from them. u, k and c are H heads side by side.
def _latent_attention(key: str, *queries: Tensor) -> TensorTable:
    """The table of a layer with latent attention, as in DeepSeek; the given tensors make its queries from the input."""
    return TensorTable(
        key,
        (
            matrix("input", "X", "N, d", "input"),
            matrix("W_DKV", "W_DKV", "d, r_kv", "key", parameter=True),
            matrix("W_KR", "W_KR", "d, d_rope", "key", parameter=True),
            matrix("W_UK", "W_UK", "r_kv, H*d_nope", "key", parameter=True),
            matrix("W_UV", "W_UV", "r_kv, H*d_v", "value", parameter=True),
            *queries,
            matrix("latent", "C_KV", "N, r_kv", "key",
                   made_from="input W_DKV", labels="n d, d r -> n r", formula="{input} · {W_DKV}"),
            matrix("rotary_key", "K_R", "N, d_rope", "key",
                   made_from="input W_KR", labels="n d, d p -> n p", formula="RoPE({input} · {W_KR})"),
            matrix("cache", "cache", "N, r_kv + d_rope", "key",
                   made_from="latent rotary_key", labels="n r, n p -> n a",
                   formula="[{latent}, {rotary_key}], {concatenated}"),
            matrix("plain_keys", "K_C", "N, H*d_nope", "key",
                   made_from="latent W_UK", labels="n r, r u -> n u", formula="{latent} · {W_UK}"),
            matrix("keys", "K", "N, H*d_h", "key",
                   made_from="plain_keys rotary_key", labels="n u, n p -> n k",
                   formula="[{plain_keys}, {rotary_key}], {head-by-head}"),
            matrix("values", "V", "N, H*d_v", "value",
                   made_from="latent W_UV", labels="n r, r c -> n c", formula="{latent} · {W_UV}"),
            ATTENTION_LAYER["scores"],
            ATTENTION_LAYER["weights"],
            matrix("context", "C", "N, H*d_v", "value",
                   made_from="weights values", labels="n m, m h*e -> n h*e",
                   formula="{weights} · {values}, {heads-concatenated}"),
            ATTENTION_LAYER["W_O"],
            ATTENTION_LAYER["output"],
        ),
    )


LATENT_ATTENTION = _latent_attention(
    "latent-attention",
    matrix("W_DQ", "W_DQ", "d, r_q", "query", parameter=True),
    matrix("W_UQ", "W_UQ", "r_q, H*d_h", "query", parameter=True),
    matrix("latent_queries", "C_Q", "N, r_q", "query",
           made_from="input W_DQ", labels="n d, d q -> n q", formula="{input} · {W_DQ}"),
    matrix("queries", "Q", "N, H*d_h", "query",
           made_from="latent_queries W_UQ", labels="n q, q k -> n k", formula="{latent_queries} · {W_UQ}"),
)
# The same without a latent for the queries, as in DeepSeek V2 Lite.
DIRECT_LATENT_ATTENTION = _latent_attention(
    "direct-latent-attention",
    matrix("W_Q", "W_Q", "d, H*d_h", "query", parameter=True),
    matrix("queries", "Q", "N, H*d_h", "query",
           made_from="input W_Q", labels="n d, d k -> n k", formula="{input} · {W_Q}"),
)


def _whole_model(key: str, *feed_forward: Tensor) -> TensorTable:
    """The table of a model from tokens to logits, in which one layer stands for all L.

    `feed_forward` are the tensors of the layer's feed-forward block, from normed_residual to fed_forward.
    """
    return TensorTable(
        key,
        (
            matrix("tokens", "t", "N, 1", "input"),
            matrix("embedding", "E", "V, d", "input", parameter=True),
            matrix("embedded", "X", "N, d", "input",
                   made_from="tokens embedding", labels="n i, v d -> n d", formula="{lookup}"),
            matrix("normed", "X'", "N, d", "input",
                   made_from="embedded", labels="n d -> n d", formula="{norm}({embedded})"),
            matrix("attended", "O", "N, d", "output",
                   made_from="normed", labels="n d -> n d", formula="{attention}({normed})"),
            matrix("residual", "R", "N, d", "input",
                   made_from="embedded attended", labels="n d, n d -> n d",
                   formula="{embedded} + {attended}", adds="residual"),
            matrix("normed_residual", "R'", "N, d", "input",
                   made_from="residual", labels="n d -> n d", formula="{norm}({residual})"),
            *feed_forward,
            matrix("layer_output", "Y", "N, d", "output",
                   made_from="residual fed_forward", labels="n d, n d -> n d",
                   formula="{residual} + {fed_forward}", adds="residual"),
            matrix("final", "Y'", "N, d", "output",
                   made_from="layer_output", labels="n d -> n d", formula="{norm}({layer_output})"),
            matrix("output_head", "W_out", "d, V", "output", parameter=True),
            matrix("logits", "Z", "N, V", "output",
                   made_from="final output_head", labels="n d, d v -> n v", formula="{final} · {output_head}"),
            matrix("last_logits", "z", "1, V", "output",
                   made_from="logits", labels="n v -> o v", formula="{last-row}"),
        ),
    )


# A whole model with a gated feed-forward block (Shazeer, arXiv:2002.05202), as in LLaMA.
WHOLE_MODEL = _whole_model(
    "whole-model",
    matrix("W_gate", "W_gate", "d, d_ff", "hidden", parameter=True),
    matrix("W_up", "W_up", "d, d_ff", "hidden", parameter=True),
    matrix("W_down", "W_down", "d_ff, d", "hidden", parameter=True),
    matrix("gate", "G", "N, d_ff", "hidden",
           made_from="normed_residual W_gate", labels="n d, d f -> n f", formula="{normed_residual} · {W_gate}"),
    matrix("up", "U", "N, d_ff", "hidden",
           made_from="normed_residual W_up", labels="n d, d f -> n f", formula="{normed_residual} · {W_up}"),
    matrix("hidden", "B", "N, d_ff", "hidden",
           made_from="gate up", labels="n f, n f -> n f", formula="{activation}({gate}) ⊙ {up}"),
    matrix("fed_forward", "F", "N, d", "output",
           made_from="hidden W_down", labels="n f, f d -> n d", formula="{hidden} · {W_down}"),
)
# The same with two matrices and no gate (arXiv:1706.03762, section 3.3), as in GPT-2.
PLAIN_WHOLE_MODEL = _whole_model(
    "plain-whole-model",
    matrix("W_up", "W_up", "d, d_ff", "hidden", parameter=True),
    matrix("W_down", "W_down", "d_ff, d", "hidden", parameter=True),
    matrix("up", "U", "N, d_ff", "hidden",
           made_from="normed_residual W_up", labels="n d, d f -> n f", formula="{normed_residual} · {W_up}"),
    matrix("hidden", "B", "N, d_ff", "hidden",
           made_from="up", labels="n f -> n f", formula="{activation}({up})"),
    matrix("fed_forward", "F", "N, d", "output",
           made_from="hidden W_down", labels="n f, f d -> n d", formula="{hidden} · {W_down}"),
)
# Rotary positions (Su et al., arXiv:2104.09864) rotate d_rot of a query's and a key's numbers, in pairs: one angle for
# each token and pair.
ROTARY_PAIRS = TensorTable(
    "rotary-pairs",
    (
        matrix("queries", "Q", "N, d_h", "query"),
        matrix("keys", "K", "N, d_h", "key"),
        matrix("angles", "θ", "N, d_rot/2", "hidden"),
        matrix("cosines", "cos", "N, d_rot/2", "hidden",
               made_from="angles", labels="n p -> n p", formula="cos({angles})"),
        matrix("sines", "sin", "N, d_rot/2", "hidden",
               made_from="angles", labels="n p -> n p", formula="sin({angles})"),
        matrix("rotated_queries", "Q'", "N, d_h", "query",
               made_from="queries angles", labels="n h, n p -> n h", formula="RoPE({queries}, {angles})"),
        matrix("rotated_keys", "K'", "N, d_h", "key",
               made_from="keys angles", labels="n h, n p -> n h", formula="RoPE({keys}, {angles})"),
    ),
)

# fmt: off

# All heads of a layer at once, as PyTorch code computes them: the heads are split off the features by view, become the
# first dimension by transpose, and are merged into the features again at the end. Each of the G key/value heads is
# copied for the H/G query heads that share it, as in repeat_kv of huggingface/transformers (models/llama).
GROUPED_HEADS = TensorTable(
    "grouped-heads",
    (
        matrix("input", "X", "N, d", "input"),
        matrix("W_Q", "W_Q", "d, H*d_h", "query", parameter=True),
        matrix("W_K", "W_K", "d, G*d_h", "key", parameter=True),
        matrix("W_V", "W_V", "d, G*d_v", "value", parameter=True),
        matrix("queries", "Q", "N, H*d_h", "query",
               made_from="input W_Q", labels="n d, d q -> n q", formula="{input} @ {W_Q}"),
        tensor("split_queries", "Q_view", "N, H, d_h", "query",
               made_from="queries", labels="n h*e -> n h e", formula="{queries}.view(…)"),
        tensor("queries_by_head", "Q_head", "H, N, d_h", "query",
               made_from="split_queries", labels="n h e -> h n e", formula="{split_queries}.transpose(0, 1)"),
        matrix("keys", "K", "N, G*d_h", "key",
               made_from="input W_K", labels="n d, d k -> n k", formula="{input} @ {W_K}"),
        tensor("split_keys", "K_view", "N, G, d_h", "key",
               made_from="keys", labels="n g*e -> n g e", formula="{keys}.view(…)"),
        tensor("keys_by_head", "K_head", "G, N, d_h", "key",
               made_from="split_keys", labels="n g e -> g n e", formula="{split_keys}.transpose(0, 1)"),
        tensor("repeated_keys", "K_rep", "H, N, d_h", "key",
               made_from="keys_by_head", labels="g n e -> h n e",
               formula="{keys_by_head}.repeat_interleave({H} // {G}, dim=0)"),
        matrix("values", "V", "N, G*d_v", "value",
               made_from="input W_V", labels="n d, d v -> n v", formula="{input} @ {W_V}"),
        tensor("split_values", "V_view", "N, G, d_v", "value",
               made_from="values", labels="n g*v -> n g v", formula="{values}.view(…)"),
        tensor("values_by_head", "V_head", "G, N, d_v", "value",
               made_from="split_values", labels="n g v -> g n v", formula="{split_values}.transpose(0, 1)"),
        tensor("repeated_values", "V_rep", "H, N, d_v", "value",
               made_from="values_by_head", labels="g n v -> h n v",
               formula="{values_by_head}.repeat_interleave({H} // {G}, dim=0)"),
        tensor("scores", "S", "H, N, N", "score",
               made_from="queries_by_head repeated_keys", labels="h n e, h m e -> h n m",
               formula="{queries_by_head} @ {repeated_keys}.transpose(-2, -1)"),
        tensor("weights", "A", "H, N, N", "score",
               made_from="scores", labels="h n m -> h n m", formula="softmax({scaled-scores} + {mask}, dim=-1)"),
        tensor("context", "C", "H, N, d_v", "value",
               made_from="weights repeated_values", labels="h n m, h m v -> h n v",
               formula="{weights} @ {repeated_values}"),
        tensor("context_by_token", "C_tok", "N, H, d_v", "value",
               made_from="context", labels="h n v -> n h v", formula="{context}.transpose(0, 1)"),
        matrix("joined_context", "C_cat", "N, H*d_v", "value",
               made_from="context_by_token", labels="n h v -> n h*v", formula="{context_by_token}.reshape(…)"),
        matrix("W_O", "W_O", "H*d_v, d", "output", parameter=True),
        matrix("output", "O", "N, d", "output",
               made_from="joined_context W_O", labels="n c, c d -> n d", formula="{joined_context} @ {W_O}"),
    ),
)

# fmt: on


def _with_equation(made: Tensor, operands: tuple[str, ...], labels: str, formula: str) -> Tensor:
    """The same tensor, made in another way."""
    return replace(made, equation=Equation(operands, labels, formula))


def _without_repeat(key: str, table: TensorTable) -> TensorTable:
    """The table of a model with as many key/value heads as query heads, which copies none."""
    copied = {"repeated_keys": "keys_by_head", "repeated_values": "values_by_head"}
    tensors = list[Tensor]()
    for each in table.tensors:
        made = each
        if (equation := each.equation) and copied.keys() & set(equation.operands):
            formula = equation.formula
            for copy, original in copied.items():
                formula = formula.replace(f"{{{copy}}}", f"{{{original}}}")
            operands = tuple(copied.get(operand, operand) for operand in equation.operands)
            made = _with_equation(each, operands, equation.axis_labels, formula)
        if each.key not in copied:
            tensors.append(made)
    return TensorTable(key, tuple(tensors))


def _with_batch(key: str, table: TensorTable) -> TensorTable:
    """The table with the batch dimension B before all others of each activation; parameters have none."""
    batch, tensors = Expression.symbol("B"), list[Tensor]()
    for each in table.tensors:
        made = each if each.parameter else replace(each, shape=(batch, *each.shape))
        if equation := each.equation:
            operands = zip(equation.operands, equation.operand_labels, strict=True)
            before = [labels if table[operand].parameter else ["b", *labels] for operand, labels in operands]
            labels = f"{', '.join(map(' '.join, before))} -> b {' '.join(equation.result_labels)}"
            formula = equation.formula.replace("transpose(0, 1)", "transpose(1, 2)").replace("dim=0", "dim=1")
            made = _with_equation(made, equation.operands, labels, formula)
        tensors.append(made)
    return TensorTable(key, tuple(tensors))


HEADS_AS_DIMENSION = _without_repeat("heads-as-dimension", GROUPED_HEADS)
BATCHED_GROUPED_HEADS = _with_batch("batched-grouped-heads", GROUPED_HEADS)
BATCHED_HEADS = _with_batch("batched-heads", HEADS_AS_DIMENSION)
# A mixture of experts in place of one feed-forward block (Shazeer et al., arXiv:1701.06538; Jiang et al.,
# arXiv:2401.04088, section 2.1): a router gives each token a logit for every expert, and sends it to k of the E. N
# tokens go to k experts each, so one expert gets N·k/E of them on average. Experts are gated (arXiv:2002.05202); the
# sheet counts the matrices of one of them.
EXPERTS = TensorTable(
    "experts",
    (
        matrix("input", "X", "N, d", "input"),
        matrix("W_router", "W_r", "d, E", "score", parameter=True, counted=False),
        matrix(
            "router_logits",
            "R",
            "N, E",
            "score",
            made_from="input W_router",
            labels="n d, d e -> n e",
            formula="{input} · {W_router}",
        ),
        matrix(
            "chosen", "P", "N, k", "score", made_from="router_logits", labels="n e -> n k", formula="{largest-of-each}"
        ),
        matrix("W_gate", "W_gate", "d, d_exp", "hidden", parameter=True, counted=False),
        matrix("W_up", "W_up", "d, d_exp", "hidden", parameter=True, counted=False),
        matrix("W_down", "W_down", "d_exp, d", "hidden", parameter=True, counted=False),
        matrix(
            "expert_input", "X_e", "N*k/E, d", "input", made_from="input", labels="n d -> m d", formula="{rows-sent}"
        ),
        matrix(
            "expert_hidden",
            "B_e",
            "N*k/E, d_exp",
            "hidden",
            made_from="expert_input W_up",
            labels="m d, d f -> m f",
            formula="{expert_input} · {W_up}, {gated-by} {expert_input} · {W_gate}",
        ),
        matrix(
            "expert_output",
            "Y_e",
            "N*k/E, d",
            "output",
            made_from="expert_hidden W_down",
            labels="m f, f d -> m d",
            formula="{expert_hidden} · {W_down}",
        ),
        matrix(
            "output", "O", "N, d", "output", made_from="expert_output", labels="m d -> n d", formula="{experts-added}"
        ),
    ),
    asks_parameters=True,
)
