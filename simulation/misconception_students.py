"""What students with one misconception write on a sheet, by formulas written by hand from the sizes alone.

Nothing here comes from the catalogue that diagnoses, which it is there to test. `s` holds the sizes of a sheet. A
prediction may name blanks that a sheet does not ask for; they are ignored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import SimpleNamespace

from app.shapes.table import Blank
from app.sheets.variant import Variant

Sizes = SimpleNamespace
FilledSheet = dict[str, int]  # the number in each blank by its name, such as "queries.rows"
Prediction = Callable[[Sizes], FilledSheet]  # the blanks that a misconception changes


def shape(rows: int, columns: int, *keys: str) -> FilledSheet:
    """Rows and columns of each of these tensors."""
    return {f"{key}.{axis}": n for key in keys for axis, n in (("rows", rows), ("columns", columns))}


def columns(n: int, *keys: str) -> FilledSheet:
    """Columns alone, of each of these tensors."""
    return {f"{key}.columns": n for key in keys}


def rows(n: int, *keys: str) -> FilledSheet:
    """Rows alone, of each of these tensors."""
    return {f"{key}.rows": n for key in keys}


def matrix(height: int, width: int, key: str) -> FilledSheet:
    """Rows, columns and parameter count of one matrix of parameters."""
    return {**shape(height, width, key), f"{key}.count": height * width}


QKV = ("queries", "keys", "values")
SCORES = ("scores", "weights")

# One head with N tokens that ask (M in cross attention, 1 in a decode step) and K keys.
HEAD: Mapping[str, Prediction] = {
    "head-as-wide-as-model": lambda s: columns(s.d, *QKV),
    "heads-multiply-width": lambda s: columns(s.H * s.d, *QKV),
    "input-sliced": lambda s: columns(s.d_h, "input", "encoded"),
    "input-repeated": lambda s: columns(s.H * s.d, "input", "encoded"),
    "transposed-product": lambda s: shape(s.d_h, s.d_h, *SCORES),
    "model-wide-scores": lambda s: shape(s.d, s.d, *SCORES),
    "elementwise-product": lambda s: shape(s.asking, s.d_h, *SCORES),
    "keys-already-transposed": lambda s: shape(s.d_h, s.met, "keys"),
    "columns-are-tokens": lambda s: {
        **shape(s.d, s.asking, "input", "output"),
        **shape(s.d, s.met, "encoded"),
        **shape(s.d_h, s.asking, "queries", "context"),
        **shape(s.d_h, s.met, "keys", "values"),
        **shape(s.met, s.asking, *SCORES),
    },
    "weights-for-activations": lambda s: shape(s.d, s.d_h, *QKV),
    "no-output-projection": lambda s: columns(s.d_v, "output"),
    "full-width-values": lambda s: columns(s.d, "values"),
    "wider-kv-heads": lambda s: columns(s.d // s.G, "keys", "values") if s.G < s.H else {},
    "all-kv-heads-in-one": lambda s: columns(s.G * s.d_h, "keys", "values") if s.G < s.H else {},
    "width-always-divided": lambda s: columns(s.d // s.H, *QKV, "context"),
    "embedding-table-as-input": lambda s: rows(s.V, "input"),
    "all-heads-stacked": lambda s: shape(s.H * s.asking, s.met, *SCORES),
    "softmax-collapses": lambda s: columns(1, "weights"),
    "head-count-as-width": lambda s: columns(s.H, *QKV),
    "layer-for-one-head": lambda s: (
        columns(s.H * s.d_h, "queries") | columns(s.G * s.d_h, "keys", "values") if layer_is_unlike_model(s) else {}
    ),
    "projections-transposed": lambda s: shape(s.d_h, s.asking, "queries") | shape(s.d_h, s.met, "keys", "values"),
}
# Scores with the heads side by side, in their columns.
SCORES_SIDE_BY_SIDE: Mapping[str, Prediction] = {
    "all-heads-stacked": lambda s: shape(s.asking, s.H * s.met, *SCORES),
}
# Parameters in place of activations, as frameworks store them.
STORED_HEAD: Mapping[str, Prediction] = {"weights-for-activations": lambda s: shape(s.d_h, s.d, *QKV)}
ONLY_LAST: Mapping[str, Prediction] = {
    "only-last-token-asks": lambda s: rows(1, "queries", *SCORES, "context", "output"),
}
PLAIN_HEAD: Mapping[str, Prediction] = {
    **HEAD,
    **ONLY_LAST,
    "context-for-tokens": lambda s: (
        rows(s.C, "input", *QKV, "context", "output") | shape(s.C, s.C, *SCORES) if s.C else {}
    ),
}
# Values of another width, and a context that goes with them.
CARRIED: Mapping[str, Prediction] = {
    "head-as-wide-as-model": lambda s: columns(s.d, *QKV, "context"),
    "heads-multiply-width": lambda s: columns(s.H * s.d, *QKV, "context"),
    "full-width-values": lambda s: columns(s.d, "values", "context"),
    "wider-kv-heads": lambda s: columns(s.d // s.G, "keys", "values", "context") if s.G < s.H else {},
    "all-kv-heads-in-one": lambda s: columns(s.G * s.d_h, "keys", "values", "context") if s.G < s.H else {},
    "head-count-as-width": lambda s: columns(s.H, *QKV, "context"),
    "layer-for-one-head": lambda s: (
        columns(s.H * s.d_h, "queries", "context") | columns(s.G * s.d_h, "keys", "values")
        if layer_is_unlike_model(s)
        else {}
    ),
}
CROSS: Mapping[str, Prediction] = {
    **HEAD,
    **ONLY_LAST,
    "scores-transposed": lambda s: shape(s.N, s.M, *SCORES),
    "texts-swapped": lambda s: {
        **rows(s.N, "queries", "context", "output"),
        **rows(s.M, "keys", "values"),
        **shape(s.N, s.M, *SCORES),
    },
    "one-text-alone": lambda s: rows(s.M, "keys", "values") | shape(s.M, s.M, *SCORES),
    "context-for-tokens": lambda s: (
        rows(s.C, "input", "encoded", *QKV, "context", "output") | shape(s.C, s.C, *SCORES) if s.C else {}
    ),
}
CROSS_OUTPUT_RIGHT: Mapping[str, Prediction] = {
    "texts-swapped": lambda s: rows(s.N, "queries", "context") | rows(s.M, "keys", "values") | shape(s.N, s.M, *SCORES),
    "one-text-alone": lambda s: rows(s.N, "queries", "context", "output") | shape(s.N, s.N, *SCORES),
}
DECODE: Mapping[str, Prediction] = {
    **HEAD,
    "scores-transposed": lambda s: shape(s.seen, 1, *SCORES),
    "new-key-left-out": lambda s: rows(s.seen - 1, "keys", "values") | columns(s.seen - 1, *SCORES),
    "all-queries-recomputed": lambda s: rows(s.N + 1, "input", "queries", *SCORES, "context", "output"),
    "only-the-new-key": lambda s: rows(1, "keys", "values") | shape(1, 1, *SCORES),
    "context-for-tokens": lambda s: (
        rows(s.C + 1, "keys", "values") | columns(s.C + 1, *SCORES) if s.C and not s.window else {}
    ),
    "decode-step-square": lambda s: shape(s.N, s.N, *SCORES),
}
DECODE_ONES: Mapping[str, Prediction] = {"decode-step-square": lambda s: shape(1, 1, *SCORES)}
DECODE_INPUT_RIGHT: Mapping[str, Prediction] = {
    "all-queries-recomputed": lambda s: rows(s.N + 1, "queries", *SCORES, "context", "output"),
    "context-for-tokens": lambda s: rows(s.C, "keys", "values") | columns(s.C, *SCORES) if s.C else {},
}
DECODE_ALL: Mapping[str, Prediction] = {"decode-step-square": lambda s: shape(s.N + 1, s.N + 1, *SCORES)}
LAYER: Mapping[str, Prediction] = {
    **ONLY_LAST,
    "one-head-for-layer": lambda s: (
        {} if hasattr(s, "r_kv") else columns(s.d_h, "queries", "keys") | columns(s.d_v, "values", "context")
    ),
    "shrunken-output-projection": lambda s: columns(s.G * s.d_v, "context") if s.G < s.H else {},
    "wider-kv-heads": lambda s: columns(s.d // s.G, "keys", "values") if s.G < s.H else {},
    "projections-transposed": lambda s: {
        **shape(s.H * s.d_h, s.N, "queries"),
        **shape(s.G * s.d_h, s.N, "keys"),
        **shape(s.G * s.d_v, s.N, "values"),
    },
    "latent-cache-of-full-keys": lambda s: columns(s.H * (s.d_h + s.d_v), "cache") if hasattr(s, "r_kv") else {},
    "cache-without-rotary-key": lambda s: columns(s.r_kv, "cache") if hasattr(s, "r_kv") else {},
    "rotary-key-for-each-head": lambda s: columns(s.H * s.d_rope, "rotary_key") if hasattr(s, "r_kv") else {},
    "keys-without-rotary-part": lambda s: columns(s.H * (s.d_h - s.d_rope), "keys") if hasattr(s, "r_kv") else {},
    **{key: HEAD[key] for key in ("transposed-product", "model-wide-scores", "elementwise-product", "all-heads-stacked",
                                  "softmax-collapses", "embedding-table-as-input", "input-sliced", "input-repeated")},
    "heads-multiply-width": lambda s: (
        columns(s.H * s.d, "queries", "context") | columns(s.G * s.d, "keys", "values")
    ),
    "keys-already-transposed": lambda s: shape(s.G * s.d_h, s.N, "keys"),
    "columns-are-tokens": lambda s: {
        **shape(s.d, s.N, "input", "output"),
        **shape(s.H * s.d_h, s.N, "queries"),
        **shape(s.H * s.d_v, s.N, "context"),
        **shape(s.G * s.d_h, s.N, "keys"),
        **shape(s.G * s.d_v, s.N, "values"),
        **(shape(s.r_kv, s.N, "latent") | shape(s.d_rope, s.N, "rotary_key") | shape(s.r_kv + s.d_rope, s.N, "cache")
           if hasattr(s, "r_kv") else {}),
    },
    "weights-for-activations": lambda s: rows(s.d, *QKV),
    "no-output-projection": lambda s: columns(s.H * s.d_v, "output"),
    "one-kv-per-query-head": lambda s: columns(s.H * s.d_h, "keys") | columns(s.H * s.d_v, "values"),
    "width-always-divided": lambda s: (
        {} if hasattr(s, "r_kv") else
        columns(s.d, "queries", "context") | columns(s.G * (s.d // s.H), "keys", "values")
    ),
    "context-for-tokens": lambda s: (
        rows(s.C, "input", *QKV, "latent", "rotary_key", "cache", "context", "output") | shape(s.C, s.C, *SCORES)
    ) if s.C else {},
}  # fmt: skip
STORED_LAYER: Mapping[str, Prediction] = {
    "weights-for-activations": lambda s: {
        **shape(s.H * s.d_h, s.d, "queries"),
        **shape(s.G * s.d_h, s.d, "keys"),
        **shape(s.G * s.d_v, s.d, "values"),
    },
}
WIDE_HEADS_JOINED: Mapping[str, Prediction] = {
    "heads-multiply-width": lambda s: columns(s.H * s.d, "queries") | columns(s.G * s.d, "keys", "values"),
}
ROTARY_KEYS_CARRIED: Mapping[str, Prediction] = {
    "rotary-key-for-each-head": lambda s: (
        columns(s.H * s.d_rope, "rotary_key") | columns(s.r_kv + s.H * s.d_rope, "cache") if hasattr(s, "r_kv") else {}
    ),
    "keys-without-rotary-part": lambda s: (
        columns(s.H * (s.d_h - s.d_rope), "queries", "keys") if hasattr(s, "r_kv") else {}
    ),
}
MATRICES: Mapping[str, Prediction] = {
    "one-head-for-layer": lambda s: {**matrix(s.d, s.d_h, "W_Q"), **matrix(s.d, s.d_h, "W_K"),
                                     **matrix(s.d, s.d_v, "W_V"), **matrix(s.d_v, s.d, "W_O")},
    "tokens-in-weights": lambda s: {**matrix(s.N, s.H * s.d_h, "W_Q"), **matrix(s.N, s.G * s.d_h, "W_K"),
                                    **matrix(s.N, s.G * s.d_v, "W_V")},
    "context-in-weights": lambda s: matrix(s.C * s.H * s.d_v, s.d, "W_O") if s.C else {},
    "square-head-projection": lambda s: {**matrix(s.d_h, s.d_h, "W_Q"), **matrix(s.d_h, s.d_h, "W_K"),
                                         **matrix(s.d_h, s.d_v, "W_V")},
    "feed-forward-four-d": lambda s: {**matrix(s.d, 4 * s.d, "W_gate"), **matrix(s.d, 4 * s.d, "W_up"),
                                      **matrix(4 * s.d, s.d, "W_down")},
    "heads-multiply-width": lambda s: {
        **matrix(s.d, s.H * s.d, "W_Q"),
        **matrix(s.d, s.G * s.d, "W_K"),
        **matrix(s.d, s.G * s.d, "W_V"),
        **matrix(s.H * s.d, s.d, "W_O"),
    },
    "stored-layout": lambda s: {
        **shape(s.H * s.d_h, s.d, "W_Q"),
        **shape(s.G * s.d_h, s.d, "W_K", "W_V"),
        **shape(s.d, s.H * s.d_h, "W_O"),
        **shape(s.d_ff, s.d, "W_gate", "W_up"),
        **shape(s.d, s.d_ff, "W_down"),
    },
    "one-kv-per-query-head": lambda s: matrix(s.d, s.H * s.d_h, "W_K") | matrix(s.d, s.H * s.d_h, "W_V"),
    "shrunken-output-projection": lambda s: matrix(s.G * s.d_h, s.d, "W_O"),
    "width-always-divided": lambda s: {
        **matrix(s.d, s.H * (s.d // s.H), "W_Q"),
        **matrix(s.d, s.G * (s.d // s.H), "W_K"),
        **matrix(s.d, s.G * (s.d // s.H), "W_V"),
        **matrix(s.H * (s.d // s.H), s.d, "W_O"),
    },
    "heads-change-parameters": lambda s: {} if s.d != s.H * s.d_h else {
        "W_Q.count": s.H * s.d * s.H * s.d_h,
        "W_K.count": s.H * s.d * s.G * s.d_h,
        "W_V.count": s.H * s.d * s.G * s.d_h,
        "W_O.count": s.H * s.H * s.d_h * s.d,
    },
}  # fmt: skip
SQUARE_IN_ALL_HEADS: Mapping[str, Prediction] = {
    "square-head-projection": lambda s: {
        **matrix(s.d_h, s.H * s.d_h, "W_Q"),
        **matrix(s.d_h, s.G * s.d_h, "W_K"),
        **matrix(s.d_h, s.G * s.d_v, "W_V"),
    },
}
WIDE_MATRICES_JOINED: Mapping[str, Prediction] = {
    "heads-multiply-width": lambda s: (
        matrix(s.d, s.H * s.d, "W_Q") | matrix(s.d, s.G * s.d, "W_K") | matrix(s.d, s.G * s.d, "W_V")
    ),
}
WALK: Mapping[str, Prediction] = {
    "columns-are-tokens": lambda s: {
        **shape(s.d, s.N, "embedded", "attended", "residual", "fed_forward", "layer_output", "final"),
        **shape(s.d_ff, s.N, "gate", "up", "hidden"),
        **shape(s.V, s.N, "logits"),
        **shape(s.V, 1, "last_logits"),
        **(shape(s.d_rot // 2, s.N, "angles") if hasattr(s, "d_rot") else {}),
    },
    "context-for-tokens": lambda s: rows(
        s.C, "embedded", "angles", "attended", "residual", "gate", "up", "hidden", "fed_forward", "layer_output",
        "final", "logits",
    ) if s.C else {},
    "embedding-table-as-input": lambda s: rows(s.V, "embedded"),
    "only-last-token-asks": lambda s: rows(1, "logits"),
    "feed-forward-four-d": lambda s: columns(4 * s.d, "gate", "up", "hidden"),
    "gate-and-up-concatenated": lambda s: columns(2 * s.d_ff, "hidden") if s.gated else {},
    "angle-per-dimension": lambda s: columns(s.d_rot, "angles") if hasattr(s, "d_rot") else {},
    "logits-as-wide-as-model": lambda s: columns(s.d, "logits", "last_logits"),
}  # fmt: skip
ONLY_LAST_NORMED: Mapping[str, Prediction] = {"only-last-token-asks": lambda s: rows(1, "final", "logits")}


def counted(s: Sizes, attention: int, embedding: int = 0, tied: int = 0) -> FilledSheet:
    """A parameter count with another attention, a larger embedding, or the output matrix once more."""
    more = s.L * (attention - s.attention)
    layers = {"attention.count": attention, "all_layers.count": s.all_layers + more}
    whole = {"total": s.total, "used": getattr(s, "used", 0)}
    wholes = {f"{key}.count": count + more + embedding + tied for key, count in whole.items()}
    return {**layers, "embedding.count": s.embedding + embedding, **wholes}


def fed_forward(s: Sizes, feed_forward: int) -> FilledSheet:
    """A parameter count with another feed-forward block in every layer."""
    more = s.L * (feed_forward - s.feed_forward)
    layers = {"feed_forward.count": feed_forward, "all_layers.count": s.all_layers + more}
    return {
        **layers,
        **{f"{key}.count": count + more for key, count in (("total", s.total), ("used", getattr(s, "used", 0)))},
    }


def attention(s: Sizes, d_h: int, heads: int | None = None) -> int:
    """The parameters of one layer's attention, with heads so wide: matrices, biases, and norms inside the heads.

    Of so many heads, each with its own keys and values, if `heads` is given.
    """
    query_heads, kv_heads = (heads, heads) if heads else (s.H, s.G)
    widths = {"q": query_heads * d_h, "k": kv_heads * d_h, "v": kv_heads * d_h, "o": s.d}
    matrices = s.d * (2 * widths["q"] + widths["k"] + widths["v"])
    normed_heads = (query_heads + kv_heads if s.normed_as_one else 2) * s.normed
    return int(matrices + sum(widths[letter] for letter in s.biases) + normed_heads * d_h)


def is_latent(s: Sizes) -> bool:
    """Whether attention is latent attention, whose matrices no student here counts wrongly."""
    return hasattr(s, "r_kv")


COUNT: Mapping[str, Prediction] = {
    "heads-multiply-width": lambda s: {} if is_latent(s) else counted(s, attention(s, s.d)),
    "width-always-divided": lambda s: {} if is_latent(s) else counted(s, attention(s, s.d // s.H)),
    "one-head-for-layer": lambda s: (  # with sinks, who counts one head may count one sink or all of them
        {} if is_latent(s) or hasattr(s, "sinks") else counted(s, attention(s, s.d_h, heads=1))
    ),
    "context-in-weights": lambda s: counted(s, s.attention + (s.C - 1) * s.H * s.d_v * s.d) if s.C else {},
    "square-head-projection": lambda s: (
        {} if is_latent(s) else counted(s, s.attention - (s.d - s.d_h) * (s.H + 2 * s.G) * s.d_h)
    ),
    "output-projection-forgotten": lambda s: counted(s, s.attention - s.d * (s.H * s.d_v + ("o" in s.biases))),
    "gate-forgotten": lambda s: fed_forward(s, s.feed_forward - s.d * s.d_ff) if s.gated and s.plain else {},
    "feed-forward-four-d": lambda s: (
        fed_forward(s, s.feed_forward + (4 * s.d - s.d_ff) * s.d * (3 if s.gated else 2)) if s.plain else {}
    ),
    "heads-change-parameters": lambda s: counted(s, s.H * s.attention) if s.d == s.H * s.d_h else {},
    "one-kv-per-query-head": lambda s: counted(s, s.attention + 2 * (s.H - s.G) * s.d_h * (s.d + ("k" in s.biases))),
    "shrunken-output-projection": lambda s: counted(s, s.attention - s.d * s.d_h * (s.H - s.G)),
    "positions-are-parameters": lambda s: counted(s, s.attention, embedding=s.C * s.d) if s.rope_alone else {},
    "separate-head-forgotten": lambda s: (
        {}
        if s.tied or not hasattr(s, "output_head")
        else {
            "output_head.count": 0,
            "total.count": s.total - s.output_head,
            "used.count": getattr(s, "used", 0) - s.output_head,
        }
    ),
    "tied-embedding-twice": lambda s: counted(s, s.attention, tied=s.V * s.d) if s.tied else {},
}
COUNT_OF_A_LAYER: Mapping[str, Prediction] = {
    "square-head-projection": lambda s: (
        {}
        if is_latent(s)
        else counted(s, s.attention - (s.d - s.d_h) * (s.H + 2 * s.G) * s.d_h - (s.d - s.d_h) * s.H * s.d_h)
    ),
    "heads-change-parameters": lambda s: {"attention.count": s.H * s.attention} if s.d == s.H * s.d_h else {},
}
FLOPS = tuple(f"{key}_flops.count" for key in (*QKV, "scores", "context", "output", "feed_forward"))
BYTES = ("weights_16_bit.count", "weights_8_bit.count", "weights_4_bit.count")
CACHE = ("cache_16_bit.count", "cache_8_bit.count")


def times(factor: int, s: Sizes, *blanks: str) -> FilledSheet:
    """So many times the right count, in each of these blanks that the sheet has."""
    counts = {blank: getattr(s, blank.removesuffix(".count"), None) for blank in blanks}
    return {blank: factor * count for blank, count in counts.items() if count is not None}


def tensor(s: Sizes, sides: tuple[int, ...], *keys: str) -> FilledSheet:
    """All sides of each of these tensors, the batch before them where the sheet has one."""
    every = (*s.batch, *sides)
    names = ("rows", "columns") if len(every) == 2 else [f"dim{number}" for number in range(len(every))]
    return {f"{key}.{name}": side for key in keys for name, side in zip(names, every, strict=True)}


def layer_in_heads(s: Sizes, **changed: int) -> FilledSheet:
    """Every tensor of a layer whose heads are a dimension, with some of its sizes changed."""
    n, heads, kv_heads, d_h, d_v = (changed.get(name, getattr(s, name)) for name in ("N", "H", "G", "d_h", "d_v"))
    return {
        **tensor(s, (n, s.d), "input", "output"),
        **tensor(s, (n, heads * d_h), "queries"),
        **tensor(s, (n, heads, d_h), "split_queries"),
        **tensor(s, (heads, n, d_h), "queries_by_head", "repeated_keys"),
        **tensor(s, (n, kv_heads * d_h), "keys"),
        **tensor(s, (n, kv_heads, d_h), "split_keys"),
        **tensor(s, (kv_heads, n, d_h), "keys_by_head"),
        **tensor(s, (n, kv_heads * d_v), "values"),
        **tensor(s, (n, kv_heads, d_v), "split_values"),
        **tensor(s, (kv_heads, n, d_v), "values_by_head"),
        **tensor(s, (heads, n, n), *SCORES),
        **tensor(s, (heads, n, d_v), "repeated_values", "context"),
        **tensor(s, (n, heads, d_v), "context_by_token"),
        **tensor(s, (n, heads * d_v), "joined_context"),
    }


def heads_first_view(s: Sizes) -> FilledSheet:
    """Views that are to put the heads before the tokens."""
    queries, keys = tensor(s, (s.H, s.N, s.d_h), "split_queries"), tensor(s, (s.G, s.N, s.d_h), "split_keys")
    return queries | keys | tensor(s, (s.G, s.N, s.d_v), "split_values")


def tokens_first(s: Sizes) -> FilledSheet:
    """Queries, keys and values whose heads stay behind the tokens."""
    queries, keys = tensor(s, (s.N, s.H, s.d_h), "queries_by_head"), tensor(s, (s.N, s.G, s.d_h), "keys_by_head")
    return queries | keys | tensor(s, (s.N, s.G, s.d_v), "values_by_head")


def heads_to_heads(s: Sizes) -> FilledSheet:
    """For each token, scores between its heads, and a weighted sum for each head."""
    return tensor(s, (s.N, s.H, s.H), *SCORES) | tensor(s, (s.N, s.H, s.d_v), "context")


def unrepeated(s: Sizes) -> FilledSheet:
    """One score matrix and one weighted sum for each key/value head."""
    keys, scores = tensor(s, (s.G, s.N, s.d_h), "repeated_keys"), tensor(s, (s.G, s.N, s.N), *SCORES)
    return keys | scores | tensor(s, (s.G, s.N, s.d_v), "repeated_values", "context")


def merged_with_batch(s: Sizes) -> FilledSheet:
    """The heads of all inputs in the dimension of the heads, and the batch still there."""
    (b,) = s.batch
    changed = layer_in_heads(s, H=b * s.H, G=b * s.G)
    flat = ("input", "queries", "keys", "values", "joined_context", "output")
    return {name: number for name, number in changed.items() if name.partition(".")[0] not in flat}


def heads_before_batch(s: Sizes) -> FilledSheet:
    """What has its heads before its tokens has them before the batch, too."""
    by_head = ("queries_by_head", "repeated_keys", "repeated_values", *SCORES, "context")
    return {
        f"{key}.{name}": number
        for keys, heads in ((by_head, s.H), (("keys_by_head", "values_by_head"), s.G))
        for key in keys
        for name, number in (("dim0", heads), ("dim1", *s.batch))
    }


# A layer whose heads are a dimension, with a batch or without one.
DIMENSIONS: Mapping[str, Prediction] = {
    "head-as-wide-as-model": lambda s: {
        name: number
        for name, number in layer_in_heads(s, d_h=s.d, d_v=s.d).items()
        if name.partition(".")[0] not in ("queries", "keys", "values", "joined_context")
    },
    "heads-multiply-width": lambda s: layer_in_heads(s, d_h=s.d, d_v=s.d),
    "transposed-product": lambda s: tensor(s, (s.H, s.d_h, s.d_h), *SCORES),
    "model-wide-scores": lambda s: tensor(s, (s.H, s.d, s.d), *SCORES),
    "elementwise-product": lambda s: tensor(s, (s.H, s.N, s.d_h), *SCORES),
    "no-output-projection": lambda s: tensor(s, (s.N, s.H * s.d_v), "output"),
    "one-kv-per-query-head": lambda s: layer_in_heads(s, G=s.H),
    "shrunken-output-projection": lambda s: tensor(s, (s.N, s.G * s.d_v), "joined_context"),
    "width-always-divided": lambda s: layer_in_heads(s, d_h=s.d // s.H, d_v=s.d // s.H),
    "context-for-tokens": lambda s: layer_in_heads(s, N=s.C) if s.C else {},
    "softmax-collapses": lambda s: tensor(s, (s.H, s.N, 1), "weights"),
    "one-head-for-layer": lambda s: layer_in_heads(s, H=1, G=1),
    "view-heads-first": heads_first_view,
    "wrong-axes-transposed": lambda s: {
        **tensor(s, (s.N, s.d_h, s.H), "queries_by_head"),
        **tensor(s, (s.N, s.d_h, s.G), "keys_by_head"),
        **tensor(s, (s.N, s.d_v, s.G), "values_by_head"),
        **tensor(s, (s.H, s.d_v, s.N), "context_by_token"),
    },
    "heads-attend-to-heads": lambda s: tokens_first(s) | heads_to_heads(s),
    "merged-without-transpose": lambda s: tensor(s, (s.H, s.N, s.d_v), "context_by_token"),
    "repeat-forgotten": unrepeated,
}
# The same misconceptions, filled in more and less consistently.
DIMENSIONS_CARRIED: Mapping[str, Prediction] = {
    "view-heads-first": lambda s: heads_first_view(s) | tokens_first(s),
    "wrong-axes-transposed": lambda s: {
        **tensor(s, (s.d_h, s.H, s.N), "queries_by_head"),
        **tensor(s, (s.d_h, s.G, s.N), "keys_by_head"),
        **tensor(s, (s.d_v, s.G, s.N), "values_by_head"),
        **tensor(s, (s.d_v, s.N, s.H), "context_by_token"),
    },
    "heads-attend-to-heads": heads_to_heads,
    "merged-without-transpose": lambda s: {
        **tensor(s, (s.H, s.N, s.d_v), "context_by_token"),
        **tensor(s, (s.H, s.N * s.d_v), "joined_context"),
    },
    "repeat-forgotten": lambda s: {
        **unrepeated(s),
        **tensor(s, (s.N, s.G, s.d_v), "context_by_token"),
        **tensor(s, (s.N, s.G * s.d_v), "joined_context"),
    },
}
DIMENSIONS_OF_SCORES: Mapping[str, Prediction] = {
    "heads-attend-to-heads": lambda s: tensor(s, (s.N, s.H, s.H), *SCORES),
    "repeat-forgotten": lambda s: tensor(s, (s.G, s.N, s.N), *SCORES),
}
DIMENSIONS_OF_COPIES: Mapping[str, Prediction] = {
    "repeat-forgotten": lambda s: {
        **tensor(s, (s.G, s.N, s.d_h), "repeated_keys"),
        **tensor(s, (s.G, s.N, s.d_v), "repeated_values"),
    },
}
BATCH: Mapping[str, Prediction] = {
    "batch-merged-with-heads": merged_with_batch,
    "heads-before-batch": heads_before_batch,
    "tokens-across-batch": lambda s: tensor(s, (s.H, s.batch[0] * s.N, s.batch[0] * s.N), *SCORES),
}
BATCH_CARRIED: Mapping[str, Prediction] = {
    "batch-merged-with-heads": lambda s: {
        name: 1 if name.endswith(".dim0") else number for name, number in merged_with_batch(s).items()
    },
    "tokens-across-batch": lambda s: tensor(s, (s.H, s.N, s.batch[0] * s.N), *SCORES),
}
IN_DIMENSIONS = (DIMENSIONS, DIMENSIONS_CARRIED, DIMENSIONS_OF_SCORES, DIMENSIONS_OF_COPIES)

COSTS: Mapping[str, Prediction] = {
    "one-head-for-layer": lambda s: {
        "queries_flops.count": 2 * s.N * s.d * s.d_h,
        "keys_flops.count": 2 * s.N * s.d * s.d_h,
        "values_flops.count": 2 * s.N * s.d * s.d_h,
        "scores_flops.count": 2 * s.N * s.N * s.d_h,
        "context_flops.count": 2 * s.N * s.N * s.d_h,
        "output_flops.count": 2 * s.N * s.d_h * s.d,
        "cache_16_bit.count": getattr(s, "cache_16_bit", 0) // s.G,
        "cache_8_bit.count": getattr(s, "cache_8_bit", 0) // s.G,
    },
    "gate-forgotten": lambda s: {"feed_forward_flops.count": 4 * s.N * s.d * s.d_ff} if s.gated else {},
    "feed-forward-four-d": lambda s: {"feed_forward_flops.count": (6 if s.gated else 4) * s.N * s.d * 4 * s.d},
    "bits-for-bytes": lambda s: times(8, s, *BYTES, *CACHE),
    "all-layers-for-one": lambda s: times(s.L, s, *FLOPS),
    "heads-multiply-width": lambda s: {
        "queries_flops.count": 2 * s.N * s.d * s.H * s.d,
        "keys_flops.count": 2 * s.N * s.d * s.G * s.d,
        "scores_flops.count": 2 * s.H * s.N * s.N * s.d,
        "context_flops.count": 2 * s.H * s.N * s.N * s.d,
        "output_flops.count": 2 * s.N * s.d * s.H * s.d,
        "cache_16_bit.count": getattr(s, "cache_16_bit", 0) * s.d // s.d_h,
        "cache_8_bit.count": getattr(s, "cache_8_bit", 0) * s.d // s.d_h,
    },
    "width-always-divided": lambda s: {
        "queries_flops.count": 2 * s.N * s.d * s.H * (s.d // s.H),
        "keys_flops.count": 2 * s.N * s.d * s.G * (s.d // s.H),
        "scores_flops.count": 2 * s.H * s.N * s.N * (s.d // s.H),
        "context_flops.count": 2 * s.H * s.N * s.N * (s.d // s.H),
        "output_flops.count": 2 * s.N * s.d * s.H * (s.d // s.H),
        "cache_16_bit.count": 4 * s.L * s.N * s.G * (s.d // s.H),
        "cache_8_bit.count": 2 * s.L * s.N * s.G * (s.d // s.H),
    },
    "one-kv-per-query-head": lambda s: {
        "keys_flops.count": 2 * s.N * s.d * s.H * s.d_h,
        "cache_16_bit.count": 4 * s.L * s.N * s.H * s.d_h,
        "cache_8_bit.count": 2 * s.L * s.N * s.H * s.d_h,
    },
    "shrunken-output-projection": lambda s: {"output_flops.count": 2 * s.N * s.G * s.d_h * s.d},
    "context-for-tokens": lambda s: (
        {
            "queries_flops.count": 2 * s.C * s.d * s.H * s.d_h,
            "keys_flops.count": 2 * s.C * s.d * s.G * s.d_h,
            "scores_flops.count": 2 * s.H * s.C * s.C * s.d_h,
            "context_flops.count": 2 * s.H * s.C * s.C * s.d_h,
            "output_flops.count": 2 * s.C * s.d * s.H * s.d_h,
            "feed_forward_flops.count": 6 * s.C * s.d * s.d_ff,
            "cache_16_bit.count": 4 * s.L * s.C * s.G * s.d_h,
            "cache_8_bit.count": 2 * s.L * s.C * s.G * s.d_h,
        }
        if s.C
        else {}
    ),
    "cache-forgets-factor": lambda s: {
        "cache_16_bit.count": 2 * s.L * s.N * s.G * s.d_h,
        "cache_8_bit.count": s.L * s.N * s.G * s.d_h,
    },
    "flops-are-macs": lambda s: {
        "queries_flops.count": s.N * s.d * s.H * s.d_h,
        "keys_flops.count": s.N * s.d * s.G * s.d_h,
        "scores_flops.count": s.H * s.N * s.N * s.d_h,
        "context_flops.count": s.H * s.N * s.N * s.d_h,
        "output_flops.count": s.N * s.d * s.H * s.d_h,
        "feed_forward_flops.count": 3 * s.N * s.d * s.d_ff,
    },
}
# Which factor the cache forgets depends on the student: keys alone so far, both for every query head, keys for each.
CACHE_OF_KEYS_FOR_ALL_HEADS: Mapping[str, Prediction] = {
    "cache-forgets-factor": lambda s: {
        "cache_16_bit.count": 2 * s.L * s.N * s.H * s.d_h,
        "cache_8_bit.count": s.L * s.N * s.H * s.d_h,
    }
}
CACHE_FOR_ALL_HEADS: Mapping[str, Prediction] = {
    "cache-forgets-factor": lambda s: {
        "cache_16_bit.count": 4 * s.L * s.N * s.H * s.d_h,
        "cache_8_bit.count": 2 * s.L * s.N * s.H * s.d_h,
    }
}
CACHE_OF_ONE_LAYER: Mapping[str, Prediction] = {
    "cache-forgets-factor": lambda s: {
        "cache_16_bit.count": 4 * s.N * s.G * s.d_h,
        "cache_8_bit.count": 2 * s.N * s.G * s.d_h,
    },
    "one-head-for-layer": lambda s: {
        "scores_flops.count": 2 * s.N * s.N * s.d_h,
        "context_flops.count": 2 * s.N * s.N * s.d_h,
    },
    "bits-for-bytes": lambda s: times(8, s, *BYTES),
    "all-layers-for-one": lambda s: times(s.L, s, "scores_flops.count", "context_flops.count"),
}
# From scores to weights; token n of N sees n tokens if the model is causal, else all.
SOFTMAX: Mapping[str, Prediction] = {
    **{
        key: HEAD[key]
        for key in ("transposed-product", "model-wide-scores", "elementwise-product", "softmax-collapses")
    },
    "all-heads-stacked": lambda s: rows(s.H * s.N, *SCORES),
    "scale-by-model-width": lambda s: {"under_root.count": s.d},
    "context-for-tokens": lambda s: (
        shape(s.C, s.C, *SCORES, "mask")
        | {"masked.count": s.C * (s.C - 1) // 2, "last_weights.count": s.C, "weights_sum.count": s.C}
        | {"all_weights.count": s.C * (s.C + 1) // 2}
        if s.C and s.causal
        else shape(s.C, s.C, *SCORES) | seen(s.C, s.C, s.C) | {"weights_sum.count": s.C, "all_weights.count": s.C * s.C}
        if s.C
        else {}
    ),
    "mask-forgotten": lambda s: (
        seen(s.N, s.N, s.N) | {"masked.count": 0, "all_weights.count": s.N**2} if s.causal else {}
    ),
    "causal-mask-everywhere": lambda s: (
        {} if s.causal else seen(1, s.i, s.N) | {"all_weights.count": sum(range(s.N + 1))}
    ),
    "diagonal-masked": lambda s: (
        {"masked.count": sum(range(s.N + 1)), "all_weights.count": sum(range(s.N))} | seen(0, s.i - 1, s.N - 1)
        if s.causal
        else {}
    ),
    "half-of-all-masked": lambda s: (
        {"masked.count": s.N * s.N // 2, "all_weights.count": s.N * s.N // 2} if s.causal else {}
    ),
    "all-entries-masked": lambda s: {"masked.count": s.N * s.N} if s.causal else {},
    "mask-hides-earlier": lambda s: seen(s.N, s.N - s.i + 1, 1) if s.causal else {},
    "mask-per-token": lambda s: rows(1, "mask"),
    "softmax-over-all": lambda s: {"weights_sum.count": 1},
}
# The mask beside wrong scores as wrong as they are, or one more way of holding the same.
SOFTMAX_WITH_MASK: Mapping[str, Prediction] = {
    "transposed-product": lambda s: shape(s.d_h, s.d_h, *SCORES, "mask"),
    "model-wide-scores": lambda s: shape(s.d, s.d, *SCORES, "mask"),
    "elementwise-product": lambda s: columns(s.d_h, *SCORES, "mask"),
    "all-heads-stacked": lambda s: rows(s.H * s.N, *SCORES, "mask"),
    "mask-forgotten": lambda s: seen(s.N, s.N, s.N) if s.causal else {},
    "diagonal-masked": lambda s: (
        {"masked.count": sum(range(s.N + 1)), "all_weights.count": sum(range(s.N))} if s.causal else {}
    ),
    "mask-per-token": lambda s: columns(1, "mask"),
}
SOFTMAX_SIDE_BY_SIDE: Mapping[str, Prediction] = {
    "all-heads-stacked": lambda s: columns(s.H * s.N, *SCORES, "mask"),
    "mask-forgotten": lambda s: {"masked.count": 0, "all_weights.count": s.N**2} if s.causal else {},
}
SOFTMAX_MASK_ITSELF_RIGHT: Mapping[str, Prediction] = {
    "mask-forgotten": lambda s: seen(s.N, s.N, s.N) | {"all_weights.count": s.N**2} if s.causal else {},
}


def with_experts(s: Sizes, one: int, stored: int, active: int, shared_less: int = 0) -> FilledSheet:
    """A sheet on experts with so many parameters in one, and so many experts stored and active in a layer.

    Shared experts have `shared_less` parameters less.
    """
    beside = s.block_stored - s.E * s.one_expert - shared_less
    return {
        "shared_experts.count": getattr(s, "shared_experts", 0) - shared_less,
        "one_expert.count": one,
        "experts.count": stored * one,
        "chosen_experts.count": active * one,
        "block_stored.count": beside + stored * one,
        "block_active.count": beside + active * one,
        "total.count": s.rest + s.L_exp * stored * one,
        "used.count": s.rest + s.L_exp * active * one,
    }


def of_one_expert(n: int) -> FilledSheet:
    """The rows of what goes through one expert."""
    return rows(n, "expert_input", "expert_hidden", "expert_output")


EXPERTS: Mapping[str, Prediction] = {
    "all-experts-active": lambda s: {
        **columns(s.E, "chosen"),
        **of_one_expert(s.N),
        **with_experts(s, s.one_expert, s.E, s.E),
    },
    "whole-model-per-expert": lambda s: {
        "total.count": s.E * (s.rest + s.L_exp * s.one_expert),
        "used.count": s.k * (s.rest + s.L_exp * s.one_expert),
    },
    "one-expert-per-token": lambda s: {
        **columns(1, "chosen"),
        **of_one_expert(-(-s.N // s.E)),
        **with_experts(s, s.one_expert, s.E, 1),
    },
    "router-as-wide-as-expert": lambda s: (
        matrix(s.d, s.d_exp, "W_router") | columns(s.d_exp, "router_logits")
    ),
    "one-choice-for-all-tokens": lambda s: rows(1, "router_logits", "chosen") | of_one_expert(s.N),
    "experts-share-the-width": lambda s: {
        **matrix(s.d, s.d_exp // s.E, "W_gate"),
        **matrix(s.d, s.d_exp // s.E, "W_up"),
        **matrix(s.d_exp // s.E, s.d, "W_down"),
        **columns(s.d_exp // s.E, "expert_hidden"),
        **with_experts(
            s,
            s.one_expert - (s.d_exp - s.d_exp // s.E) * (3 * s.d + 2 * (s.one_expert != 3 * s.d * s.d_exp)),
            s.E,
            s.k,
            shared_less=getattr(s, "n_sh", 0) * 3 * s.d * (s.d_exp - s.d_exp // s.E),
        ),
    },
    "expert-gate-forgotten": lambda s: with_experts(s, s.one_expert - s.d * s.d_exp, s.E, s.k),
    "shared-experts-forgotten": lambda s: {
        "block_stored.count": s.block_stored - s.shared_experts,
        "block_active.count": s.block_active - s.shared_experts,
    } if hasattr(s, "shared_experts") else {},
    "stored-layout": lambda s: {
        **shape(s.E, s.d, "W_router"),
        **shape(s.d_exp, s.d, "W_gate", "W_up"),
        **shape(s.d, s.d_exp, "W_down"),
    },
    "context-for-tokens": lambda s: (
        rows(s.C, "input", "router_logits", "chosen", "output") | of_one_expert(-(-s.C * s.k // s.E)) if s.C else {}
    ),
}  # fmt: skip
EXPERTS_CHOSEN_RIGHT: Mapping[str, Prediction] = {
    "all-experts-active": lambda s: with_experts(s, s.one_expert, s.E, s.E),
    "whole-model-per-expert": lambda s: {"total.count": s.E * (s.rest + s.L_exp * s.one_expert)},
    "one-expert-per-token": lambda s: with_experts(s, s.one_expert, s.E, 1),
    "one-choice-for-all-tokens": lambda s: rows(1, "router_logits", "chosen"),
}
EXPERTS_UNEVEN: Mapping[str, Prediction] = {
    "one-expert-per-token": lambda s: of_one_expert(-(-s.N // s.E)),
}


def attention_flops(s: Sizes, tokens: int, heads: int | None = None) -> int:
    """The operations of one layer's attention for so many tokens at once, with so many key/value heads."""
    kv_heads = s.G if heads is None else heads
    return int(4 * tokens * s.d * s.d_h * (s.H + kv_heads) + 4 * s.H * s.d_h * tokens * tokens)


GROWTH: Mapping[str, Prediction] = {
    "everything-quadratic": lambda s: {"projections_doubled.count": 4, "kv_cache_doubled.count": 4},
    "everything-linear": lambda s: {"pairwise_doubled.count": 2, "score_entries_doubled.count": 2},
    "decoding-costs-a-prefill": lambda s: {"decode_flops.count": attention_flops(s, s.N + 1)},
    "flops-are-macs": lambda s: {
        "projections_flops.count": 2 * s.N * s.d * s.d_h * (s.H + s.G),
        "pairwise_flops.count": 2 * s.H * s.N * s.N * s.d_h,
        "prefill_flops.count": attention_flops(s, s.N) // 2,
        "decode_flops.count": 2 * s.d * s.d_h * (s.H + s.G) + 2 * s.H * s.d_h * (s.N + 1),
    },
    "one-kv-per-query-head": lambda s: {
        "projections_flops.count": 8 * s.N * s.d * s.d_h * s.H,
        "prefill_flops.count": attention_flops(s, s.N, heads=s.H),
        "crossing.count": 2 * s.d,
        "crossing_of_layer.count": s.crossing_of_layer + 2 * s.d - s.crossing,
        "decode_flops.count": 8 * s.d * s.d_h * s.H + 4 * s.H * s.d_h * (s.N + 1),
        "cache_of_token.count": 4 * s.H * s.d_h,
    } if hasattr(s, "crossing_of_layer") and hasattr(s, "crossing") else {},
}  # fmt: skip
GROWTH_OF_N_TOKENS: Mapping[str, Prediction] = {
    "decoding-costs-a-prefill": lambda s: {"decode_flops.count": attention_flops(s, s.N)},
}
ANGLES = ("angles", "cosines", "sines")
ROTARY: Mapping[str, Prediction] = {
    "angle-per-dimension": lambda s: columns(s.d_rot, *ANGLES) | {"layer_angles.count": s.d_rot * s.N},
    "positions-are-parameters": lambda s: shape(s.C, s.d, *ANGLES) if s.C and s.rope_alone else {},
    "angles-as-wide-as-model": lambda s: columns(s.d // 2, *ANGLES) | {"layer_angles.count": s.N * s.d // 2},
    "all-dimensions-rotated": lambda s: {
        **columns(s.d_h // 2, *ANGLES),
        "layer_angles.count": s.N * s.d_h // 2,
        "layer_rotated.count": s.N * (s.H + s.G) * s.d_h,
        "unrotated.count": 0,
    },
    "pairs-of-the-other-kind": lambda s: {"partner.count": 3 if s.partner > 3 else s.d_rot // 2 + 2},
    "values-rotated-too": lambda s: {"layer_rotated.count": s.N * (s.H + 2 * s.G) * s.d_rot},
    "angles-for-each-head": lambda s: {"layer_angles.count": s.H * s.layer_angles},
    "one-kv-per-query-head": lambda s: {"layer_rotated.count": s.N * 2 * s.H * s.d_rot},
    "columns-are-tokens": lambda s: {
        **shape(s.d_rot // 2, s.N, *ANGLES),
        **shape(s.d_h, s.N, "queries", "keys", "rotated_queries", "rotated_keys"),
    },
    "context-for-tokens": lambda s: {
        **rows(s.C, *ANGLES, "queries", "keys", "rotated_queries", "rotated_keys"),
        "layer_angles.count": s.C * s.d_rot // 2,
        "layer_rotated.count": s.C * (s.H + s.G) * s.d_rot,
    } if s.C else {},
}  # fmt: skip
# The matrices of one head and of its layer, and two products of a head's own.
HEAD_PARAMETERS: Mapping[str, Prediction] = {
    "head-as-wide-as-model": lambda s: (
        {box: n for key in ("W_Q", "W_K", "W_V", "W_O") for box, n in matrix(s.d, s.d, key).items()}
        | matrix(s.d, s.H * s.d, "layer_W_Q")
        | matrix(s.d, s.G * s.d, "layer_W_K")
        | matrix(s.H * s.d, s.d, "layer_W_O")
        | {"rank_W_QK.count": s.d, "rank_W_VO.count": s.d}
    ),
    "stored-layout": lambda s: (
        matrix(s.d_h, s.d, "W_Q")
        | matrix(s.d_h, s.d, "W_K")
        | matrix(s.d, s.d_h, "W_O")
        | matrix(s.H * s.d_h, s.d, "layer_W_Q")
        | matrix(s.G * s.d_h, s.d, "layer_W_K")
        | matrix(s.d, s.H * s.d_h, "layer_W_O")
    ),
    "whole-output-projection": lambda s: matrix(s.H * s.d_h, s.d, "W_O"),
    "one-kv-per-query-head": lambda s: matrix(s.d, s.H * s.d_h, "layer_W_K"),
    "wider-kv-heads": lambda s: matrix(s.d, s.d // s.G, "W_K") if s.G < s.H else {},
    "shrunken-output-projection": lambda s: matrix(s.G * s.d_h, s.d, "layer_W_O"),
    "width-always-divided": lambda s: (
        matrix(s.d, s.d // s.H, "W_Q")
        | matrix(s.d, s.d // s.H, "W_K")
        | matrix(s.d // s.H, s.d, "W_O")
        | matrix(s.d, s.d, "layer_W_Q")
        | matrix(s.d, s.G * (s.d // s.H), "layer_W_K")
        | matrix(s.d, s.d, "layer_W_O")
        | {"rank_W_QK.count": s.d // s.H, "rank_W_VO.count": s.d // s.H}
    ),
    "tokens-in-weights": lambda s: matrix(s.N, s.d_h, "W_Q") | matrix(s.N, s.d_h, "W_K"),
    "square-head-projection": lambda s: matrix(s.d_h, s.d_h, "W_Q") | matrix(s.d_h, s.d_h, "W_K"),
    "one-head-for-layer": lambda s: (
        matrix(s.d, s.d_h, "layer_W_Q") | matrix(s.d, s.d_h, "layer_W_K") | matrix(s.d_h, s.d, "layer_W_O")
    ),
    "layer-for-one-head": lambda s: (
        matrix(s.d, s.H * s.d_h, "W_Q") | matrix(s.d, s.G * s.d_h, "W_K") if layer_is_unlike_model(s) else {}
    ),
    "output-like-the-others": lambda s: matrix(s.d, s.d_h, "W_O"),
    "product-of-full-rank": lambda s: {"rank_W_QK.count": s.d, "rank_W_VO.count": s.d},
    "product-as-small-as-head": lambda s: shape(s.d_h, s.d_h, "W_QK", "W_VO"),
}
HEAD_PARAMETERS_WIDE: Mapping[str, Prediction] = {
    "head-as-wide-as-model": lambda s: {
        box: n for key in ("W_Q", "W_K", "W_V", "W_O") for box, n in matrix(s.d, s.d, key).items()
    },
    "layer-for-one-head": lambda s: (
        matrix(s.d, s.H * s.d_h, "W_Q") | matrix(s.d, s.G * s.d_h, "W_K") | matrix(s.H * s.d_h, s.d, "W_O")
        if layer_is_unlike_model(s)
        else {}
    ),
    "output-like-the-others": lambda s: matrix(s.d, s.d_h, "W_O") | matrix(s.d, s.H * s.d_h, "layer_W_O"),
}
# The steps to the inner dimension, which each student does right but for the one mistake.
WIDTHS: Mapping[str, Prediction] = {
    "gate-forgotten": lambda s: {"gated_parameters.count": 2 * s.d * s.d_ff},
    "feed-forward-four-d": lambda s: (
        {"width.count": 4 * s.d, "gated_parameters.count": 3 * s.d * 4 * s.d} if s.gated else {}
    ),
    "rounded-down-to-multiple": lambda s: (
        {"multiples.count": s.g // s.m, "width.count": s.g // s.m * s.m} if s.gated else {}
    ),
    "not-rounded-to-multiple": lambda s: {"width.count": s.g} if s.gated else {},
    "two-thirds-of-d": lambda s: dict.fromkeys(("two_thirds.count", "gated_width.count"), 2 * s.d // 3),
    "gate-is-half-of-up": lambda s: dict.fromkeys(("two_thirds.count", "gated_width.count"), 4 * s.d // 2),
    "one-width-for-both-blocks": lambda s: {"ungated_parameters.count": 2 * s.d * s.d_ff},
    "one-matrix-for-block": lambda s: {"block_parameters.count": 4 * s.d**2},
}
OTHER_WIDTHS: Mapping[str, Prediction] = {"one-width-for-both-blocks": lambda s: {"gated_width.count": 4 * s.d}}
PREDICTIONS: Mapping[str, tuple[Mapping[str, Prediction], ...]] = {
    "single-head": (PLAIN_HEAD, CARRIED, SCORES_SIDE_BY_SIDE, STORED_HEAD),
    "bidirectional-head": (PLAIN_HEAD, CARRIED, SCORES_SIDE_BY_SIDE, STORED_HEAD),
    "cross-attention": (CROSS, CARRIED, CROSS_OUTPUT_RIGHT, SCORES_SIDE_BY_SIDE, STORED_HEAD),
    "decode-step": (DECODE, DECODE_ONES, DECODE_ALL, DECODE_INPUT_RIGHT, CARRIED, SCORES_SIDE_BY_SIDE, STORED_HEAD),
    "scale-mask-softmax": (
        SOFTMAX,
        SOFTMAX_WITH_MASK,
        SCORES_SIDE_BY_SIDE,
        SOFTMAX_SIDE_BY_SIDE,
        SOFTMAX_MASK_ITSELF_RIGHT,
    ),
    "attention-layer": (LAYER, WIDE_HEADS_JOINED, ROTARY_KEYS_CARRIED, SCORES_SIDE_BY_SIDE, STORED_LAYER),
    "head-parameters": (HEAD_PARAMETERS, HEAD_PARAMETERS_WIDE),
    "feed-forward-width": (WIDTHS, OTHER_WIDTHS),
    "layer-parameters": (MATRICES, WIDE_MATRICES_JOINED, SQUARE_IN_ALL_HEADS),
    "three-dimensions": IN_DIMENSIONS,
    "four-dimensions": (*IN_DIMENSIONS, BATCH, BATCH_CARRIED),
    "whole-model": (WALK, ONLY_LAST_NORMED),
    "parameter-count": (COUNT, COUNT_OF_A_LAYER),
    "rotary-pairs": (ROTARY,),
    "growth": (GROWTH, GROWTH_OF_N_TOKENS),
    "experts": (EXPERTS, EXPERTS_CHOSEN_RIGHT, EXPERTS_UNEVEN),
    "costs": (COSTS, CACHE_FOR_ALL_HEADS, CACHE_OF_KEYS_FOR_ALL_HEADS, CACHE_OF_ONE_LAYER),
}


def seen(first: int, chosen: int, last: int) -> FilledSheet:
    """How many tokens the first one, token i and the last one attend to."""
    return {"first_weights.count": first, "chosen_weights.count": chosen, "last_weights.count": last}


def layer_is_unlike_model(s: Sizes) -> bool:
    """Whether a layer in place of a head looks other than heads as wide as the model."""
    return bool(s.H * s.d_h != s.d or s.G != s.H)


def right_sheet(variant: Variant) -> FilledSheet:
    """The right number of every blank."""
    return {str(blank): variant.answer(blank) for blank in variant.blanks}


def sizes(variant: Variant) -> Sizes:
    """Everything the formulas use: each symbol's value, the right number of each count, and facts of the architecture.

    `asking` is the number of tokens that ask (M in cross-attention, 1 in a decode step), `met` of those they attend to;
    `seen` is the same within a window.
    """
    architecture, own = variant.architecture, dict(variant.sizes)
    own["asking"] = {"decode-step": 1, "cross-attention": own["M"]}.get(variant.worksheet.topic, own["N"])
    own["met"] = own["N"] + (variant.worksheet.topic == "decode-step")
    counts = {
        key: variant.answer(Blank(key, "count"))
        for key, entry in variant.table.asked.items()
        if "count" in entry.fields
    }
    facts = {
        "C": architecture.C,
        "causal": architecture.causal,
        "tied": architecture.tied_embeddings,
        "biases": architecture.biases,
        "normed": architecture.qk_norm_eps is not None,
        "normed_as_one": architecture.qk_norm == "all-heads",  # not a norm that they share
        "window": architecture.window,
        "gated": architecture.gated,
        "rope_alone": architecture.rotary is not None and not architecture.has_position_table,
        "plain": not architecture.has_experts,
        "batch": (own["B"],) if variant.worksheet.topic == "four-dimensions" else (),
        "seen": variant.answer(Blank("keys", "rows")) if variant.worksheet.topic == "decode-step" else own["N"],
    }
    return Sizes(**{**counts, **own, **facts})


def misconception_sheets(variant: Variant) -> list[tuple[str, FilledSheet]]:
    """Each misconception's key with the sheet it fills in, once for each way in which it may show.

    A way that leaves the sheet right, or fills it in as an earlier way of the same misconception does, is left out.
    """
    right, s = right_sheet(variant), sizes(variant)
    sheets = list[tuple[str, FilledSheet]]()
    for group in PREDICTIONS[variant.worksheet.topic]:
        for key, predict in group.items():
            sheet = {**right, **{blank: n for blank, n in predict(s).items() if blank in right}}
            if sheet != right and (key, sheet) not in sheets:
                sheets.append((key, sheet))
    return sheets


def with_slip(sheet: FilledSheet, blank: str, chance: random.Random) -> FilledSheet:
    """The sheet with a slip in one blank: one digit mistyped, left out, doubled or swapped with the next; never 0."""
    slips = [n for n in _slips(str(sheet[blank]), chance) if n not in (0, sheet[blank])]
    return {**sheet, blank: chance.choice(slips)}


def _slips(digits: str, chance: random.Random) -> list[int]:
    """Six slips at one random digit: thrice the same wrong digit, then left out, doubled, and swapped with the next."""
    at = chance.randrange(len(digits))
    before, digit, after = digits[:at], digits[at], digits[at + 1 :]
    mistyped = [before + chance.choice([c for c in "123456789" if c != digit]) + after] * 3
    slips = [*mistyped, before + after, before + 2 * digit + after, before + after[:1] + digit + after[1:]]
    return [int(slip or 0) for slip in slips]
