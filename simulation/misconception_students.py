"""What students with one misconception write on a sheet, by formulas written by hand from the sizes alone.

Nothing here comes from the catalogue that diagnoses, which it is there to test. `s` holds the sizes of a sheet. A
prediction may name blanks that a sheet does not ask for; they are ignored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import SimpleNamespace

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
    "stored-layout": lambda s: shape(s.d_h, s.d, *QKV),
    "no-output-projection": lambda s: columns(s.d_v, "output"),
    "full-width-values": lambda s: columns(s.d, "values"),
    "wider-kv-heads": lambda s: columns(s.d // s.G, "keys", "values"),
    "all-kv-heads-in-one": lambda s: columns(s.G * s.d_h, "keys", "values") if s.G < s.H else {},
    "width-always-divided": lambda s: columns(s.d // s.H, *QKV, "context"),
    "embedding-table-as-input": lambda s: rows(s.V, "input"),
    "all-heads-stacked": lambda s: shape(s.H * s.asking, s.met, *SCORES),
    "softmax-collapses": lambda s: columns(1, "weights"),
}
PLAIN_HEAD: Mapping[str, Prediction] = {
    **HEAD,
    "context-for-tokens": lambda s: (
        rows(s.C, "input", *QKV, "context", "output") | shape(s.C, s.C, *SCORES) if s.C else {}
    ),
}
# Values of another width, and a context that goes with them.
CARRIED: Mapping[str, Prediction] = {
    "head-as-wide-as-model": lambda s: columns(s.d, *QKV, "context"),
    "heads-multiply-width": lambda s: columns(s.H * s.d, *QKV, "context"),
    "full-width-values": lambda s: columns(s.d, "values", "context"),
    "wider-kv-heads": lambda s: columns(s.d // s.G, "keys", "values", "context"),
    "all-kv-heads-in-one": lambda s: columns(s.G * s.d_h, "keys", "values", "context") if s.G < s.H else {},
}
CROSS: Mapping[str, Prediction] = {
    **HEAD,
    "context-for-tokens": lambda s: (
        rows(s.C, "input", "encoded", *QKV, "context", "output") | shape(s.C, s.C, *SCORES) if s.C else {}
    ),
}
DECODE: Mapping[str, Prediction] = {
    **HEAD,
    "context-for-tokens": lambda s: (
        rows(s.C + 1, "keys", "values") | columns(s.C + 1, *SCORES) if s.C and not s.window else {}
    ),
    "decode-step-square": lambda s: shape(s.N, s.N, *SCORES),
}
DECODE_ONES: Mapping[str, Prediction] = {"decode-step-square": lambda s: shape(1, 1, *SCORES)}
DECODE_ALL: Mapping[str, Prediction] = {"decode-step-square": lambda s: shape(s.N + 1, s.N + 1, *SCORES)}
LAYER: Mapping[str, Prediction] = {
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
    "stored-layout": lambda s: {
        **shape(s.H * s.d_h, s.d, "queries"),
        **shape(s.G * s.d_h, s.d, "keys"),
        **shape(s.G * s.d_v, s.d, "values"),
    },
    "no-output-projection": lambda s: columns(s.H * s.d_v, "output"),
    "full-width-values": lambda s: columns(s.d, "values"),
    "one-kv-per-query-head": lambda s: columns(s.H * s.d_h, "keys") | columns(s.H * s.d_v, "values"),
    "width-always-divided": lambda s: (
        columns(s.d, "queries", "context") | columns(s.G * (s.d // s.H), "keys", "values")
    ),
    "context-for-tokens": lambda s: (
        rows(s.C, "input", *QKV, "latent", "rotary_key", "cache", "context", "output") | shape(s.C, s.C, *SCORES)
    ) if s.C else {},
}  # fmt: skip
WIDE_HEADS_JOINED: Mapping[str, Prediction] = {
    "heads-multiply-width": lambda s: columns(s.H * s.d, "queries") | columns(s.G * s.d, "keys", "values"),
}
MATRICES: Mapping[str, Prediction] = {
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
    "heads-change-parameters": lambda s: {
        "W_Q.count": s.H * s.d * s.H * s.d_h,
        "W_K.count": s.H * s.d * s.G * s.d_h,
        "W_V.count": s.H * s.d * s.G * s.d_h,
        "W_O.count": s.H * s.H * s.d_h * s.d,
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
        **(shape(s.pairs, s.N, "angles") if hasattr(s, "pairs") else {}),
    },
    "context-for-tokens": lambda s: rows(
        s.C, "embedded", "angles", "attended", "residual", "gate", "up", "hidden", "fed_forward", "layer_output",
        "final", "logits",
    ) if s.C else {},
    "embedding-table-as-input": lambda s: rows(s.V, "embedded"),
}  # fmt: skip


def counted(s: Sizes, attention: int, embedding: int = 0, tied: int = 0) -> FilledSheet:
    """A parameter count with another attention, a larger embedding, or the output matrix once more."""
    more = s.L * (attention - s.attention)
    layers = {"attention.count": attention, "all_layers.count": s.all_layers + more}
    whole = {"total": s.total, "used": getattr(s, "used", 0)}
    wholes = {f"{key}.count": count + more + embedding + tied for key, count in whole.items()}
    return {**layers, "embedding.count": s.embedding + embedding, **wholes}


def attention(s: Sizes, d_h: int) -> int:
    """The parameters of one layer's attention, with heads so wide: matrices, biases, and norms inside the heads."""
    widths = {"q": s.H * d_h, "k": s.G * d_h, "v": s.G * d_h, "o": s.d}
    matrices = s.d * (2 * widths["q"] + widths["k"] + widths["v"])
    return int(matrices + sum(widths[letter] for letter in s.biases) + 2 * d_h * s.normed)


def is_latent(s: Sizes) -> bool:
    """Whether attention is latent attention, whose matrices no student here counts wrongly."""
    return hasattr(s, "r_kv")


COUNT: Mapping[str, Prediction] = {
    "heads-multiply-width": lambda s: {} if is_latent(s) else counted(s, attention(s, s.d)),
    "width-always-divided": lambda s: {} if is_latent(s) else counted(s, attention(s, s.d // s.H)),
    "heads-change-parameters": lambda s: counted(s, s.H * s.attention) if s.d == s.H * s.d_h else {},
    "one-kv-per-query-head": lambda s: counted(s, s.attention + 2 * (s.H - s.G) * s.d_h * (s.d + ("k" in s.biases))),
    "shrunken-output-projection": lambda s: counted(s, s.attention - s.d * s.d_h * (s.H - s.G)),
    "positions-are-parameters": lambda s: counted(s, s.attention, embedding=s.C * s.d),
    "tied-embedding-twice": lambda s: counted(s, s.attention, tied=s.V * s.d) if s.tied else {},
}
COUNT_OF_A_LAYER: Mapping[str, Prediction] = {
    "heads-change-parameters": lambda s: {"attention.count": s.H * s.attention} if s.d == s.H * s.d_h else {},
}
COSTS: Mapping[str, Prediction] = {
    "heads-multiply-width": lambda s: {
        "queries_flops.count": 2 * s.N * s.d * s.H * s.d,
        "keys_flops.count": 2 * s.N * s.d * s.G * s.d,
        "scores_flops.count": 2 * s.H * s.N * s.N * s.d,
        "context_flops.count": 2 * s.H * s.N * s.N * s.d,
        "output_flops.count": 2 * s.N * s.d * s.H * s.d,
        "cache_16_bit.count": 2 * 2 * s.L * s.N * s.G * s.d,
        "cache_8_bit.count": 2 * s.L * s.N * s.G * s.d,
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
PREDICTIONS: Mapping[str, tuple[Mapping[str, Prediction], ...]] = {
    "single-head": (PLAIN_HEAD, CARRIED),
    "bidirectional-head": (PLAIN_HEAD, CARRIED),
    "cross-attention": (CROSS, CARRIED),
    "decode-step": (DECODE, DECODE_ONES, DECODE_ALL, CARRIED),
    "attention-layer": (LAYER, WIDE_HEADS_JOINED),
    "layer-parameters": (MATRICES, WIDE_MATRICES_JOINED),
    "whole-model": (WALK,),
    "parameter-count": (COUNT, COUNT_OF_A_LAYER),
    "costs": (COSTS, CACHE_FOR_ALL_HEADS, CACHE_OF_KEYS_FOR_ALL_HEADS),
}


def right_sheet(variant: Variant) -> FilledSheet:
    """The right number of every blank."""
    return {str(blank): variant.answer(blank) for blank in variant.blanks}


def sizes(variant: Variant) -> Sizes:
    """Everything the formulas use: each symbol's value, each count's right number, and facts of the architecture.

    `asking` is the number of tokens that ask (M in cross-attention, 1 in a decode step), `met` of those they attend to.
    """
    architecture, own = variant.architecture, dict(variant.sizes)
    own["asking"] = {"decode-step": 1, "cross-attention": own["M"]}.get(variant.worksheet.topic, own["N"])
    own["met"] = own["N"] + (variant.worksheet.topic == "decode-step")
    counts = {box.removesuffix(".count"): n for box, n in right_sheet(variant).items() if box.endswith(".count")}
    facts = {
        "C": architecture.C,
        "tied": architecture.tied_embeddings,
        "biases": architecture.biases,
        "normed": architecture.qk_norm_eps is not None,
        "window": architecture.window,
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
