"""Operations, bytes, and how they grow."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import WHOLE_CACHE, each, on
from app.models.architecture import Architecture
from app.topics.model_costs import BYTES_IN_TRAINING

_WEIGHTS_BYTES = ("weights_16_bit.count", "weights_8_bit.count", "weights_4_bit.count")
_FLOPS = [f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")]
_GROWING_FLOPS = [f"{key}_flops.count" for key in ("projections", "pairwise", "prefill", "decode")]
_CACHE = ("cache_16_bit.count", "cache_8_bit.count")
_MODEL_FLOPS = [
    f"{key}_flops.count" for key in ("rule", "token", "products", "attention", "prefill", "decode", "training")
]
_TRAINING_BYTES = [f"{key}.count" for key in ("weights_16_bit", *BYTES_IN_TRAINING, "training_bytes")]


def _multiplied(entries: str) -> dict[str, str]:
    change = f"({entries} - multiplied)"
    times = {"token_flops": "2", "products_flops": "2*N", "prefill_flops": "2*N", "decode_flops": "2"}
    worked_out = {f"{key}.count": f"right + {factor}*{change}" for key, factor in times.items()}
    return {"multiplied.count": entries, **worked_out, "training_flops.count": f"right + 6*N*{change}"}


def _has_long_latents(architecture: Architecture) -> bool:
    a = architecture
    if not a.has_latent_attention:
        return False
    cached = a.extra["r_kv"] + a.extra["d_rope"]
    return a.extra["r_kv"] > max(a.d_h, a.d_v) and 2 * cached <= a.H * (a.d_h + a.d_v)


GROUP = (
    Misconception(
        "cache-forgets-factor",
        28,
        on(
            "costs",
            # Scaled from the right number, in which a sliding window counts no token that it drops.
            each("right*H/G", *_CACHE),
            each("right/2", *_CACHE),
            each("right*H/G/2", *_CACHE),
            each("right/L", *_CACHE),
        )
        | on("cache-tensor", each("right/2", *WHOLE_CACHE), each("right/L", *WHOLE_CACHE)),
    ),
    Misconception(
        "flops-are-macs",
        29,
        on("costs", each("right/2", *_FLOPS))
        | on("growth", each("right/2", *_GROWING_FLOPS))
        | on(
            "model-costs",
            each("right/2", *_MODEL_FLOPS, "rule_excess.count", "training_rule.count"),
            each("right/2", *(box for box in _MODEL_FLOPS if box != "rule_flops.count")),
        ),
    ),
    Misconception(
        "bits-for-bytes",
        56,
        on("costs", each("8*right", *_WEIGHTS_BYTES, *_CACHE), each("8*right", *_WEIGHTS_BYTES))
        | on("cache-tensor", {"cache_bytes.count": "8*right"})
        | on("model-costs", each("8*right", *_TRAINING_BYTES)),
    ),
    # The sheet counts one layer's operations, and the bytes of the whole model.
    Misconception(
        "all-layers-for-one",
        57,
        on("costs", each("L*right", *_FLOPS), each("L*right", "scores_flops.count", "context_flops.count")),
    ),
    # "Attention is quadratic" taken to hold for all of it.
    Misconception(
        "everything-quadratic", 92, on("growth", each("4", "projections_doubled.count", "kv_cache_doubled.count"))
    ),
    Misconception(
        "everything-linear", 93, on("growth", each("2", "pairwise_doubled.count", "score_entries_doubled.count"))
    ),
    Misconception(
        "decoding-costs-a-prefill",
        94,
        on("growth model-costs", {"decode_flops.count": "prefill_of_next"}, {"decode_flops.count": "prefill_flops"}),
    ),
    # The rule of thumb taken for the exact number: a row that is looked up, a scale and a bias for products.
    Misconception(
        "every-parameter-multiplied",
        156,
        on(
            "model-costs",
            _multiplied("rule_flops/2"),
            {"training_flops.count": "3*N*rule_flops"},  # 6·N·P
            {"outside_multiplied.count": "right + V*d", **_multiplied("multiplied + V*d")},  # the embedding, looked up
        ),
    ),
    # The embedding is looked up, so it is left out; and so is its second use, or the matrix in its place.
    Misconception(
        "unembedding-forgotten",
        157,
        on(
            "model-costs",
            {"outside_multiplied.count": "0", **_multiplied("layers_multiplied")},
            _multiplied("layers_multiplied"),
        ),
    ),
    # What attention does among tokens has no parameters, so the rules of thumb leave it out.
    Misconception(
        "only-parameters-cost",
        158,
        on(
            "model-costs",
            {
                "prefill_flops.count": "products_flops",
                "decode_flops.count": "token_flops",
                "training_flops.count": "3*products_flops",
            },
            {"decode_flops.count": "token_flops"},
        ),
    ),
    # As if the cache held the keys and values of every head.
    Misconception(
        "keys-in-a-latent-cache",
        198,
        on("model-costs", {"decode_flops.count": "token_flops + 2*L*H*(N + 1)*(d_h + d_v)"}),
        _has_long_latents,
    ),
    Misconception(
        "backward-costs-a-forward",
        159,
        on("model-costs", {"training_rule.count": "2*N*rule_flops", "training_flops.count": "2*prefill_flops"}),
    ),
    Misconception("optimizer-forgotten", 160, on("model-costs", {"training_bytes.count": "4*params"})),
    Misconception(
        "optimizer-in-16-bits",
        145,
        on(
            "model-costs",
            each("right/2", "master_bytes.count", "moments_bytes.count") | {"training_bytes.count": "10*params"},
        ),
    ),
    # Each token taken to read the weights again, or a decoding step to use them for all tokens.
    Misconception("weights-read-for-each-token", 146, on("model-costs", {"prefill_intensity.count": "1"})),
    Misconception("decoding-reuses-weights", 147, on("model-costs", {"decode_intensity.count": "N"})),
)
