"""Which field of a multimodal config.json describes the language model, and that model's family."""

from __future__ import annotations

from collections.abc import Mapping

# The fields whose object describes the language model; the first one in the config is read.
TEXT_PART_FIELDS = ("text_config", "language_config", "llm_config", "thinker_config")
# The text part's model_type by the whole file's, for files whose text part states none.
TEXT_PART_FAMILIES: Mapping[str, str] = {
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
