"""The model types that are refused, until a table of data/families has them."""

from __future__ import annotations

from collections.abc import Mapping

from app.translation import N_

_STATE_SPACE = N_("state-space layers")
_RECURRENT = N_("recurrent layers")
_LINEAR = N_("linear attention")
_SPARSE = N_("attention to a part of the tokens")
# What all or some layers of a refused family have instead of N×N scores.
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "codestral_mamba", "hyena", "s4"), _STATE_SPACE),
    **dict.fromkeys(
        ("jamba", "zamba", "zamba2", "bamba", "falcon_h1", "nemotron_h", "granitemoehybrid", "hymba", "phi4flash"),
        _STATE_SPACE,
    ),
    **dict.fromkeys(("rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm", "recurrent_gemma"), _RECURRENT),
    **dict.fromkeys(("retnet", "minimax", "kimi_linear", "olmo_hybrid", "bailing_hybrid"), _LINEAR),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), _LINEAR),
    **dict.fromkeys(("lfm2", "lfm2_moe", "lfm2-vl", "lfm2_vl"), N_("convolutions")),
    **dict.fromkeys(("longformer", "led", "big_bird", "bigbird_pegasus", "longt5", "reformer"), _SPARSE),
    **dict.fromkeys(
        ("fnet", "nystromformer", "yoso", "mra", "perceiver", "funnel"), N_("another way of mixing tokens")
    ),
}
