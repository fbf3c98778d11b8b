"""What is refused, and where the language model stands in a multimodal file."""

from __future__ import annotations

from collections.abc import Mapping

_STATE_SPACE = "state-space layers"
_RECURRENT = "recurrent layers"
_LINEAR = "linear attention"
_SPARSE = "attention to a part of the tokens"
# Families whose layers, or some of them, have no N×N scores: named and refused.
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "codestral_mamba", "hyena", "s4"), _STATE_SPACE),
    **dict.fromkeys(
        ("jamba", "zamba", "zamba2", "bamba", "falcon_h1", "nemotron_h", "granitemoehybrid", "hymba", "phi4flash"),
        _STATE_SPACE,
    ),
    **dict.fromkeys(("rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm", "recurrent_gemma"), _RECURRENT),
    **dict.fromkeys(("retnet", "minimax", "kimi_linear", "olmo_hybrid", "bailing_hybrid"), _LINEAR),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), _LINEAR),
    **dict.fromkeys(("lfm2", "lfm2_moe", "lfm2-vl", "lfm2_vl"), "convolutions"),
    **dict.fromkeys(("longformer", "led", "big_bird", "bigbird_pegasus", "longt5", "reformer"), _SPARSE),
    **dict.fromkeys(("fnet", "nystromformer", "yoso", "mra", "perceiver", "funnel"), "another mixing of tokens"),
}
# Switches that add tensors to a family which its layout does not have: only these values are read.
ONLY: Mapping[str, tuple[object, ...]] = {
    "add_cross_attention": (None, False),
    "inner_group_num": (None, 1),
    "talking_head": (None, False),
}
# In which part of a multimodal file the language model stands, and of which family it is where the part does not say.
TEXT_PARTS = ("text_config", "language_config", "llm_config", "thinker_config")
PART_FAMILIES: Mapping[str, str] = {
    "clip": "clip_text_model",
    "gemma3": "gemma3_text",
    "idefics2": "mistral",
    "idefics3": "llama",
    "llama4": "llama4_text",
    "llava": "llama",
    "llava_next": "llama",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "paligemma": "gemma",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "smolvlm": "llama",
    "video_llava": "llama",
    "vipllava": "llama",
}
