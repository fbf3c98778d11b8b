"""What a mask hides, and its shape."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import each, on
from app.models.architecture import Architecture


def _is_causal(architecture: Architecture) -> bool:
    return architecture.causal


_SEEN = [f"{token}_weights.count" for token in ("first", "chosen", "last")]  # how many tokens each of them attends to
_SEEN_BY_I, _SEEN_REVERSED = "seen_keys.count", "reversed_keys.count"

GROUP = (
    Misconception(
        "mask-forgotten",
        58,
        on(
            "scale-mask-softmax",
            each("N", *_SEEN) | {"masked.count": "0", "all_weights.count": "N*N"},
            each("N", *_SEEN) | {"all_weights.count": "N*N"},
            each("N", *_SEEN),
            {"masked.count": "0", "all_weights.count": "N*N"},
        )
        | on("same-shapes", {_SEEN_BY_I: "N"}),
        _is_causal,
    ),
    Misconception(
        "causal-mask-everywhere",
        59,
        on("scale-mask-softmax", {_SEEN[0]: "1", _SEEN[1]: "i", "all_weights.count": "N*(N + 1)/2"}),
        lambda architecture: not architecture.causal,
    ),
    # "No token sees what it predicts" is taken to hide the token itself.
    Misconception(
        "diagonal-masked",
        60,
        on(
            "scale-mask-softmax",
            {"masked.count": "right + N", "all_weights.count": "right - N"},
            {"masked.count": "right + N", "all_weights.count": "right - N", **each("right - 1", *_SEEN)},
        )
        | on("first-steps", {"masked.count": "right + 4"})
        | on(
            "same-shapes", {"seen_keys.count": "i", "reversed_keys.count": "N - i", "turned_weights.count": "N - i - 1"}
        ),
        _is_causal,
    ),
    Misconception(
        "half-of-all-masked",
        61,
        on("scale-mask-softmax", each("floor(N*N/2)", "masked.count", "all_weights.count"))
        | on("first-steps", {"masked.count": "8"}),
        _is_causal,
    ),
    Misconception(
        "mask-hides-earlier",
        63,
        on("scale-mask-softmax", {_SEEN[0]: "N", _SEEN[1]: "N - i + 1", _SEEN[2]: "1"})
        | on("same-shapes", {_SEEN_BY_I: "N - i", _SEEN_REVERSED: "i", "turned_weights.count": "i + 1"}),
        _is_causal,
    ),
    Misconception("weights-turned-alike", 141, on("same-shapes", {"turned_weights.count": "i + 1"}), _is_causal),
)
