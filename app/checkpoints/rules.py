"""The families whose weights can be read and run, with what computing needs beyond their rows.

A family that is missing here is refused by name, and so is a config field in neither COMMON_FIELDS nor the family's
`fields`: an unexamined field may change what the model computes. Defaults are those of the family's config class in
transformers 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Activation = Literal["silu", "gelu", "gelu_tanh", "relu"]
# transformers' names for the functions between the matrices of a feed-forward block.
ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


@dataclass(frozen=True)
class CheckpointRule:
    """How a family's models compute beyond what an Architecture says, and which config fields are known.

    `norm_eps` and `activation` are a config field and its default; `ignored` are fields that transformers doesn't read.
    """

    norm_eps: tuple[str, float] = ("rms_norm_eps", 1e-6)
    activation: tuple[str, str] = ("hidden_act", "silu")
    norm_offset: float = 0.0
    logit_softcap: float | None = None
    fields: str = ""
    ignored: frozenset[str] = frozenset()
    fixed: Mapping[str, object] = field(default_factory=dict)
    buffers: tuple[str, ...] = (".rotary_emb.inv_freq",)
    renamed: Mapping[str, str] = field(default_factory=dict)


# Read by build_architecture, or without influence on the numbers: training, generation, provenance.
COMMON_FIELDS = """
    model_type architectures hidden_size intermediate_size num_attention_heads num_hidden_layers num_key_value_heads
    head_dim vocab_size max_position_embeddings tie_word_embeddings rope_theta rope_scaling rope_parameters
    sliding_window
    _name_or_path _commit_hash name_or_path auto_map transformers_version torch_dtype dtype use_cache
    cache_implementation bos_token_id eos_token_id pad_token_id unk_token_id sep_token_id decoder_start_token_id
    initializer_range attention_dropout hidden_dropout classifier_dropout attn_pdrop embd_pdrop resid_pdrop
    task_specific_params id2label label2id num_labels problem_type return_dict output_attentions output_hidden_states
    chunk_size_feed_forward language license is_llama_config transformers.js_config unsloth_version unsloth_fixed
    do_sample max_length min_length max_new_tokens temperature top_k top_p repetition_penalty torchscript
"""
# Fields that must be absent, null or this value in every family.
COMMON_FIXED: Mapping[str, object] = {
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "pretraining_tp": 1,
    "pruned_heads": {},
    "quantization_config": None,
    "rope_interleaved": False,
    "tie_encoder_decoder": False,
    "use_bidirectional_attention": False,
    "use_mrope": False,
}
# What "rope_scaling" or "rope_parameters" may contain, by its type.
_ANY_SCALING = "rope_type type rope_theta original_max_position_embeddings"
ROPE_FIELDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(f"{_ANY_SCALING} {numbers}".split())
    for kind, numbers in {
        "default": "",
        "linear": "factor",
        "dynamic": "factor",
        "llama3": "factor low_freq_factor high_freq_factor",
        "yarn": "factor attention_factor beta_fast beta_slow mscale mscale_all_dim truncate",
        "longrope": "factor attention_factor long_factor short_factor",
        "su": "factor attention_factor long_factor short_factor",
    }.items()
}

ROTARY_SHARE = "partial_rotary_factor"
_ROTATED_WHOLE, _ONE_KIND_OF_LAYER = frozenset({ROTARY_SHARE}), frozenset({"layer_types"})
_QWEN = CheckpointRule(
    fields="use_sliding_window max_window_layers layer_types", ignored=_ROTATED_WHOLE, fixed={"attention_bias": False}
)
CHECKPOINT_RULES: Mapping[str, CheckpointRule] = {
    "llama": CheckpointRule(
        fields="attention_bias mlp_bias max_sequence_length", ignored=_ROTATED_WHOLE | _ONE_KIND_OF_LAYER
    ),
    # A file with "layer_types" is refused: transformers reads it as Mistral or as Ministral, depending on the class.
    "mistral": CheckpointRule(ignored=_ROTATED_WHOLE, fixed={"attention_bias": False}),
    "qwen2": _QWEN,
    "qwen3": CheckpointRule(fields=f"{_QWEN.fields} attention_bias", ignored=_ROTATED_WHOLE),
    "gemma2": CheckpointRule(
        activation=("hidden_activation", "gelu_pytorch_tanh"),
        norm_offset=1.0,
        logit_softcap=30.0,
        fields="attention_bias query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping hidden_act "
        "layer_types",
        ignored=_ROTATED_WHOLE,
    ),
    "phi3": CheckpointRule(
        norm_eps=("rms_norm_eps", 1e-5),
        fields="original_max_position_embeddings partial_rotary_factor",
        ignored=_ONE_KIND_OF_LAYER,
        fixed={"attention_bias": False},
    ),
    "gpt2": CheckpointRule(
        norm_eps=("layer_norm_epsilon", 1e-5),
        activation=("activation_function", "gelu_new"),
        fields="n_embd n_head n_layer n_inner n_positions n_ctx scale_attn_weights scale_attn_by_inverse_layer_idx "
        "reorder_and_upcast_attn summary_activation summary_first_dropout summary_proj_to_labels summary_type "
        "summary_use_proj gradient_checkpointing predict_special_tokens n_special _num_labels output_past",
        ignored=_ONE_KIND_OF_LAYER,
        buffers=(".attn.bias", ".attn.masked_bias"),
    ),
    "gpt_neox": CheckpointRule(
        norm_eps=("layer_norm_eps", 1e-5),
        activation=("hidden_act", "gelu"),
        fields="rotary_pct rotary_emb_base use_parallel_residual attention_bias partial_rotary_factor is_decoder",
        ignored=_ONE_KIND_OF_LAYER,
        buffers=(".attention.bias", ".attention.masked_bias", ".attention.rotary_emb.inv_freq"),
        renamed={"lm_head.weight": "embed_out.weight"},
    ),
}


# The families whose GGUF files can be read, by `general.architecture`, which is also their model_type. The value says
# whether llama.cpp's converter permutes them: it reorders the rows of W_Q and W_K in each head so that two numbers that
# RoPE rotates together are neighbours.
GGUF_FAMILIES: Mapping[str, bool] = {"llama": True, "qwen2": False, "qwen3": False}


@dataclass(frozen=True)
class PreTokenizer:
    """How a text is split before the merges of byte-level BPE. `expression` finds the pieces; "" means GPT-2's."""

    expression: str = ""
    single_digits: bool = False
    composes: bool = False
    whole_words: bool = False
    begins: bool = False


_QWEN2_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# The value of `tokenizer.ggml.model` for byte-level BPE; the kinds of it, by `tokenizer.ggml.pre`.
BYTE_LEVEL = "gpt2"
PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {
    "gpt-2": PreTokenizer(),
    "smollm": PreTokenizer(single_digits=True),
    "qwen2": PreTokenizer(_QWEN2_PIECES, composes=True),
    "llama-bpe": PreTokenizer(_QWEN2_PIECES.replace(r"|\p{N}|", r"|\p{N}{1,3}|"), whole_words=True, begins=True),
}
