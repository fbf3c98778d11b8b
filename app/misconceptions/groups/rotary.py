"""What RoPE rotates, and by which angles."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import ANGLE_COLUMNS, each, on

GROUP = (
    # Seen in LTX-Video#224.
    Misconception(
        "angles-for-all-heads",
        82,
        on(
            "rotary-pairs",
            each("d/2", *ANGLE_COLUMNS) | {"layer_angles.count": "N*d/2"},
            {"layer_angles.count": "N*H*d_rot/2"},
        ),
        lambda architecture: architecture.H > 1,
    ),
    # Seen in rotary-embedding-torch#4.
    Misconception(
        "all-dimensions-rotated",
        83,
        on(
            "rotary-pairs",
            each("d_h/2", *ANGLE_COLUMNS)
            | {"layer_angles.count": "N*d_h/2", "layer_rotated.count": "N*H*d_h + N*G*d_h", "unrotated.count": "0"},
        ),
        lambda architecture: architecture.rotary is not None and architecture.rotary.width < architecture.d_h,
    ),
    # The paper's pairs for the code's, or the code's for the paper's; seen in transformers#25199 and #40462.
    Misconception("pairs-of-the-other-kind", 84, on("rotary-pairs", {"partner.count": "other_partner"})),
    # Seen in mistral-inference#147.
    Misconception("values-rotated-too", 85, on("rotary-pairs", {"layer_rotated.count": "N*H*d_rot + 2*N*G*d_rot"})),
)
