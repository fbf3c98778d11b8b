"""Operations, bytes, and how they grow."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import LAYER_FLOPS, WHOLE_CACHE, each, on
from app.topics.model_costs import BYTES_IN_TRAINING

_WEIGHTS_BYTES = ("weights_16_bit.count", "weights_8_bit.count", "weights_4_bit.count")
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


GROUP = (
    Misconception(
        "cache-forgets-factor",
        28,
        on(
            "costs",
            # Scaled from the right number; a sliding window doesn't count the tokens that it drops.
            each("right*H/G", *_CACHE),
            each("right/2", *_CACHE),
            each("right*H/G/2", *_CACHE),
            each("right/L", *_CACHE),
        )
        | on("cache-tensor", *(each(size, *WHOLE_CACHE) for size in ("right/2", "right/L", "right/B"))),
    ),
    Misconception(
        "flops-are-macs",
        29,
        on("costs", each("right/2", *LAYER_FLOPS))
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
    # "Attention is quadratic" is taken to hold for all of it, or for none of it.
    Misconception(
        "everything-grows-alike",
        92,
        on(
            "growth",
            each("4", "projections_doubled.count", "kv_cache_doubled.count"),
            each("2", "pairwise_doubled.count", "score_entries_doubled.count"),
        ),
    ),
    Misconception(
        "decoding-costs-a-prefill",
        94,
        on("growth model-costs", {"decode_flops.count": "prefill_of_next"}, {"decode_flops.count": "prefill_flops"}),
    ),
    # The rule of thumb is taken for the exact number: a looked-up row, a scale and a bias count as products.
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
    Misconception(
        "backward-costs-a-forward",
        159,
        on("model-costs", {"training_rule.count": "2*N*rule_flops", "training_flops.count": "2*prefill_flops"}),
    ),
    Misconception("optimizer-forgotten", 160, on("model-costs", {"training_bytes.count": "4*params"})),
)
