"""What people know and a program can't see: which field means which symbol, what tensors are for, and a few hints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# A symbol for the names that model makers give to one size. A field without a symbol keeps its own name in a table.
SYMBOLS: Mapping[str, str] = {
    "d": "hidden_size n_embd d_model dim emb_dim embed_dim",
    "H": "num_attention_heads n_head num_heads n_heads encoder_attention_heads attention_heads",
    "H_dec": "decoder_attention_heads num_decoder_attention_heads",
    "G": "num_key_value_heads num_kv_heads multi_query_group_num",
    "d_h": "head_dim d_kv kv_channels attention_head_dim attention_head_size",
    "d_v": "v_head_dim",
    "d_ff": "intermediate_size n_inner ffn_dim d_ff encoder_ffn_dim ffn_hidden_size hidden_dim",
    "d_ff_dec": "decoder_ffn_dim",
    "V": "vocab_size",
    "C": "max_position_embeddings n_positions max_source_positions seq_length max_seq_len",
    "P_dec": "max_target_positions",
    "L": "num_hidden_layers n_layer num_layers encoder_layers n_layers num_encoder_layers",
    "L_dec": "decoder_layers num_decoder_layers",
    "E": "num_experts num_local_experts n_routed_experts moe_num_experts num_routed_experts",
    "k": "num_experts_per_tok moe_k moe_topk top_k num_experts_per_token experts_per_token moe_top_k"
    " num_experts_per_topk",
    "d_exp": "moe_intermediate_size",
    "d_sh": "shared_expert_intermediate_size shared_intermediate_size moe_shared_expert_intermediate_size",
    "n_sh": "n_shared_experts num_shared_experts num_shared_expert moe_num_shared_experts",
    "r_q": "q_lora_rank",
    "r_kv": "kv_lora_rank",
    "d_nope": "qk_nope_head_dim",
    "d_rope": "qk_rope_head_dim",
    "d_emb": "embedding_size word_embed_proj_dim",
    "T": "type_vocab_size",
    "bands": "num_mel_bins",
    "n_buckets": "relative_attention_num_buckets",
    "K": "conv_kernel_size",
    "L_stored": "num_hidden_groups",
    "L_group": "inner_group_num",
    "d_pool": "pooler_output_size",
    "d_proj": "projection_dim",
}
SYMBOL_OF = {name: symbol for symbol, names in SYMBOLS.items() for name in names.split()}
# Sizes that a table states even if no tensor or head depends on them.
ALWAYS_STATED = {"d", "H", "G", "d_h", "L", "V", "C", "P_dec", "k"}

# Names of sizes that count something, which products name first: H·d_h.
COUNTS = re.compile(r"[A-Z]|k$|n_|num_|.*_num|.*_n_|.*_groups|.*_heads")

# The numbers from which a probe chooses: small, and hardly ever products or sums of each other.
_PRIMES = (17, 19, 23, 29, 31, 37, 41, 43)
CHOICES: Mapping[str, tuple[int, ...]] = {
    "d": (96, 192, 288, 480),
    "H": (4, 6, 8, 12),
    "H_dec": (4, 6, 8, 12),
    "G": (2, 3, 4, 6),
    "d_h": (16, 24, 40, 56),
    "d_v": (8, 16, 24, 48),
    "d_ff": tuple(4 * p for p in _PRIMES),
    "d_ff_dec": tuple(12 * p for p in _PRIMES),
    "V": (101, 103, 107, 109, 113, 127),
    "C": (131, 137, 139, 149),
    "L": (4, 5, 6, 7),
    "L_dec": (3, 5, 7, 9),
    "E": (4, 8, 12, 16),
    "k": (2,),
    "d_exp": tuple(8 * p for p in _PRIMES),
    "d_sh": tuple(20 * p for p in _PRIMES),
    "n_sh": (1, 2, 3),
    "r_q": (36, 44, 52, 76),
    "r_kv": (28, 60, 68, 92),
    "d_nope": (8, 16, 32, 40),
    "d_rope": (8, 12, 16, 20),
    "d_emb": (32, 64, 160),
    "T": (2, 3, 5),
    "bands": (20, 28, 44),
    "P_dec": (151, 157, 163),
    "n_buckets": (22, 26, 34),
    "K": (3, 5, 7),
    "L_stored": (1, 2, 3),
    "L_group": (1, 2, 3),
    "d_pool": (24, 40, 56),
    "d_proj": (64, 112, 208),
}

# Fields that hold no size: numbers of tokens, and fields of training, generation and other heads.
NO_SIZE = re.compile(r"_token_id$|_index$|^pretraining_tp$|^num_nextn_predict_layers$|^num_mtp_layers$|^num_labels$")
# Groups of experts that a router chooses from: no sizes, but they must divide E.
DIVISORS = {"n_group": 2, "topk_group": 1}
# Text and object fields that change no shape, scale or mask, whatever they hold.
HARMLESS = re.compile(
    r"act(ivation)?(_fn|_func|_function)?$|activation|^hidden_act|_act$|attn_implementation|^rope_|rope_scaling"
    r"|rope_parameters|quantization|_token(s)?$|dtype|problem_type|summary_|pruned_heads|task_specific|suppress_tokens|no_rope_layers"
)

# Fields whose whole numbers say which layers are of a kind.
PATTERN = re.compile(r"period|offset|interval|_step$|every|pattern|_freq$|first_k|max_window|start_index|end_index")
WINDOW = re.compile(r"window|chunk_size|local_attention$|attention_chunk")
ROTATED = re.compile(r"rotary_dim|rotary_ndims|rope_dim|rotary_emb_dim")
SCALE = re.compile(r"scal|multipl|softcap|soft_cap|logit_cap", re.IGNORECASE)

# Words for kinds of layers that classes without a list of their own may know.
LAYER_WORDS = [
    *("attention", "mamba", "hybrid", "recurrent", "linear", "full", "conv", "moe", "mlp", "dense", "sparse"),
    *("global", "local", "full_attention", "sliding_attention", "chunked_attention", "linear_attention", "shared"),
]

# What a tensor is for, by its name; the first pattern counts. The roles are those of ModelPart in app/models, and
# "mixer", "indexer" and "other". The second list is for tensors outside the layers.
LAYER_ROLES: Mapping[str, str] = {
    "sinks": r"sinks?$",
    "indexer": r"indexer",
    "relative_positions": r"relative_attention_bias|rel_pos|r_w_bias|r_r_bias|pos_(q_)?proj|pos_key|pos_query|mask_emb",
    "cross_attention": r"cross_?att|encoder_attn(?!_layer_norm)|EncDecAttention|encoder_decoder_attention",
    "query_norm": r"q_norm|q_layernorm|q_a_layernorm|query_norm|query_layernorm|q_ln|query_sub_norm",
    "key_norm": r"k_norm|k_layernorm|kv_a_layernorm|key_norm|key_layernorm|k_ln|key_sub_norm",
    "latent_attention": r"q_a_proj|q_b_proj|kv_a_proj|kv_b_proj",
    "mixer": r"temporal_block\.(linear|conv|rg)|mamba|linear_attn|(^|\.)conv|ssm|recurrent"
    r"|mixer\.(?!([qkvo]_proj|(up|down)_proj|fc\d|gate$|experts|shared_experts))|rg_lru|A_log"
    r"|(^|\.)dt_|delta|kda|time_mix|channel_mix|short_conv|\.rwkv|(^|\.)(attention|feed_forward)\.(time_|receptance)",
    "norms": r"(^|[._])(layer_?|ln|rms)?_?norm\w*$|layer_?norm|(^|\.)ln_?\w*$|LayerNorm|_ln\d?$",
    "shared_gate": r"shared_expert_gate|shared_experts_gate",
    "shared_experts": r"shared_expert|shared_mlp|residual_mlp|shared_experts",
    "experts": r"(^|\.)(\w*_)?experts?(\.|$)",
    "router": r"router|(^|\.)gate$|gate\.wg|gate\.e_score|e_score_correction_bias|(^|\.)classifier$",
    "attention": r"temporal_block|mixer\.[qkvo]_proj|(q|k|v|out)_lin$|multi_head_attention|attentions"
    r"|(^|\.)(self_attn|attn|attention|self_attention|SelfAttention|self|rel_attn|att)(\.|$)|attn",
    "feed_forward": r"mlp|feed_forward|ffn|fc1|fc2|fc_|intermediate|output\.dense|DenseReluDense|dense_h_to_4h"
    r"|dense_4h_to_h|(^|\.)(w1|w2|w3|wi|wo|up_proj|down_proj|gate_proj|gate_up_proj|ff|lin1|lin2)($|\.)",
}
OUTSIDE_ROLES: Mapping[str, str] = {
    "pooler": r"pooler",
    "output_bias": r"predictions\.bias|^decoder\.bias|(^|\.|_)lm_head\.(decoder\.)?bias|final_logits_bias"
    r"|^pred_layer\.proj\.bias|^vocab_projector\.bias",
    "output_head": r"^(generator_lm_head|decoder$|embed_out|output_projection)|predictions\.decoder|(^|\.)lm_head$"
    r"|(^|\.)lm_head\.decoder$|language_model\.lm_head|^(vocab_projector|proj_out|proj)$|^pred_layer\.proj$",
    "head_transform": r"^(cls|lm_predictions|lm_head|generator_|predictions|vocab_|mlm_|head)|\.predictions\.",
    "embedding_norm": r"(embeddings?|embed)\.?_?(LayerNorm|layer_?norm|norm)|layernorm_embedding|embeddings_layer_norm"
    r"|word_embeddings_layernorm|embed_norm|embedding_norm|emb_norm",
    "position_table": r"position_emb|embed_positions|wpe|pos_emb|positions_embed|position_enc|embed_pos|w\.weights",
    "relative_table": r"relative_attention_bias|rel_embeddings|relative",
    "convolution": r"(^|\.)conv\d$|encoder\.conv\.",
    "relative_positions": r"deberta\.encoder\.LayerNorm$",
    "type_table": r"lang_embeddings|token_type_emb|type_embeddings|segment",
    "embedding_projection": r"project_in|project_out|embedding_hidden_mapping|embed_proj|embeddings_project",
    "token_table": r"embed_tokens|wte|word_emb|token_embedding|(^|\.)shared$|tokens_embed|embed_in|tok_embeddings"
    r"|word_embedding|(^|\.)embeddings?$|embed_tokens|(^|\.)w$|input_embedding",
    "final_norm": r"norm|ln_f|(^|\.)ln|encoder\.LayerNorm$",
}


@dataclass(frozen=True)
class Hint:
    """What has to be said by hand about one model type, with its reason; rules are in the grammar of tables."""

    reason: str
    # Texts to try in a field or a list.
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Fields that every probe sets.
    given: Mapping[str, Any] = field(default_factory=dict)
    # Fields of the config from which one field at a time is changed.
    base: Mapping[str, Any] = field(default_factory=dict)
    # Fields that every probe computes from the others.
    follows: Mapping[str, Any] = field(default_factory=dict)
    # Sizes that a table needs beside its fields.
    computed: Mapping[str, str] = field(default_factory=dict)
    # Fields whose default a table demands.
    leave: tuple[str, ...] = ()
    # Numbers to try for a symbol.
    choices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # What the absence of a field means.
    rules: Mapping[str, str] = field(default_factory=dict)
    # What the absence of a list means for each layer.
    lists: Mapping[str, str] = field(default_factory=dict)
    # The list with as many words as there are layers.
    depth: str = ""
    # A field that states a list by a letter for each layer: the list, and its words by letter.
    letters: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # What scores are multiplied by.
    scale: str = ""
    # How many key/value heads there are.
    kv_heads: str = ""
    # Fields of the other parts of a multimodal file.
    outer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # A field of another part that must equal one of the text part: the part, its field, and the text part's.
    joined: tuple[str, str, str] | tuple[()] = ()
    # Fields that the class takes without declaring them.
    switches: tuple[str, ...] = ()
    # Lists taken as [[[words], times], …], and their plain names.
    nested: Mapping[str, str] = field(default_factory=dict)
    # The class checks its fields for more than its model needs.
    is_unchecked: bool = False


_T5 = Hint(
    "its text field states the activation and the gate, which may also be stated on its own",
    words={"feed_forward_proj": ("relu", "gelu", "silu", "gated-gelu", "gated-silu")},
    switches=("is_gated_act",),
    rules={"is_gated_act": "feed_forward_proj == 'gated-gelu' or feed_forward_proj == 'gated-silu'"},
)
_LFM2 = Hint(
    "its width is rounded in three steps",
    computed={
        "d_in": "up(int(block_ffn_dim_multiplier*(2*intermediate_size//3)), block_multiple_of)"
        " if block_auto_adjust_ff_dim else intermediate_size"
    },
)
HINTS: Mapping[str, Hint] = {
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5"), _T5),
    "lfm2": _LFM2,
    "aya_vision": Hint("the class rejects its own default", outer={"vision_config": {"num_attention_heads": 16}}),
    "codegen": Hint("its heads lie in four parts", choices={"H": (4, 8, 12)}),
    "falcon": Hint(
        "one field's default depends on a switch, some switches fit together only, and keys are copied before they "
        "are seen",
        follows={"parallel_attn": lambda v: bool(v.get("parallel_attn") or v.get("new_decoder_architecture"))},
        rules={"num_ln_in_parallel_attn": "2 if new_decoder_architecture else 1"},
        kv_heads="G if new_decoder_architecture else 1 if multi_query else H",
    ),
    **dict.fromkeys(
        ("deberta", "deberta-v2"),
        Hint(
            "its scores are sums of up to three products, which hide their scale, and some fields need others",
            base={"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
            scale="1/sqrt(3·{width}) if relative_attention and 'c2p' in pos_att_type and 'p2c' in pos_att_type else"
            " 1/sqrt(2·{width}) if relative_attention and ('c2p' in pos_att_type or 'p2c' in pos_att_type) else"
            " 1/sqrt({width})",
        ),
    ),
    "gpt_neo": Hint(
        "its list of layers is nested, and its scores have no scale",
        scale="1",
        nested={"attention_types": "attention_layers"},
        follows={"attention_types": lambda v: ["global"] * v["num_layers"]},
    ),
    "internlm3": Hint("its class wants both biases or none, although its model takes either", is_unchecked=True),
    "lfm2_moe": Hint(
        "its class rejects its own default",
        follows={"layer_types": lambda v: (["conv", "full_attention"] * 99)[: v["num_hidden_layers"]]},
    ),
    "cohere2_moe": Hint(
        "its dense layers have a pattern of their own",
        lists={
            "layer_types": "full_attention if i < first_k_dense_replace"
            " and (i + 1) % prefix_dense_sliding_window_pattern == 0"
            " or i >= first_k_dense_replace and (i - first_k_dense_replace + 1) % sliding_window_pattern == 0;"
            " sliding_attention"
        },
    ),
    "flint": Hint(
        "its first and last layers are an exception",
        lists={"layer_types": "full_attention if i < 2 or i % 4 == 1 or i == L - 1; sliding_attention"},
    ),
    **dict.fromkeys(
        ("glm_moe_dsa", "glm5_next_text", "mistral_large4_text"),
        Hint(
            "which layers have an indexer follows from two fields that its class doesn't declare",
            lists={
                "indexer_types": "full if max(i - index_skip_topk_offset + 1, 0) % max(index_topk_freq, 1) == 0; shared"
            },
        ),
    ),
    "hy_v4": Hint(
        "which layers have an indexer isn't a field",
        lists={"indexer_types": "full if i == 0 or (i - 1) % 4 == 0; shared"},
    ),
    **dict.fromkeys(
        ("inkling_text", "inkling2_text"),
        Hint(
            "one field decides which of two others states a width; every sixth layer has no window",
            lists={
                "layer_types": "hybrid if (i + 1) % 6 == 0; hybrid_sliding",
                "mlp_layer_types": "dense if i < dense_mlp_idx; sparse",
            },
            leave=("dense_intermediate_size", "local_layer_ids"),
            words={"layer_types": ("hybrid", "hybrid_sliding")},
            follows={
                "swa_num_attention_heads": lambda v: {4: 12, 6: 8, 8: 4, 12: 6}[v["num_attention_heads"]],
                "swa_num_key_value_heads": lambda v: {4: 3, 6: 4, 8: 2, 12: 3}[v["num_attention_heads"]],
                "swa_head_dim": lambda v: {16: 40, 24: 16, 40: 56, 56: 24}[v["head_dim"]],
                "sliding_window_size": lambda v: 4 + v["hidden_size"] // 96 % 4,
            },
            joined=("vision_config", "text_hidden_size", "hidden_size"),
        ),
    ),
    "llama4_text": Hint(
        "numbers say which layers rotate, and these have chunks",
        lists={
            "no_rope_layers": "1 if (i + 1) % no_rope_layer_interval != 0; 0",
            "layer_types": "chunked_attention if no_rope_layers[i] == '1'; full_attention",
        },
    ),
    "smollm3": Hint(
        "numbers say which layers rotate, and the others may have windows",
        lists={
            "no_rope_layers": "1 if (i + 1) % no_rope_layer_interval != 0; 0",
            "layer_types": "sliding_attention if use_sliding_window and no_rope_layers[i] == '0'; full_attention",
        },
    ),
    "granite_docling": Hint(
        "its class compares the widths of its parts", joined=("vision_config", "out_hidden_size", "hidden_size")
    ),
    "mamba2": Hint(
        "its heads are as wide as its layers",
        choices={"d_h": (8, 16, 24)},
        follows={"num_heads": lambda v: v["hidden_size"] * v["expand"] // v["head_dim"]},
    ),
    **dict.fromkeys(
        ("ultrabert", "ultravbert"),
        Hint(
            "its windows reach in both directions, and older files list them",
            leave=("attention_windows",),
            follows={"sliding_window": lambda v: 3 + v["hidden_size"] // 96 % 3},
        ),
    ),
    "neomme": Hint("a quarter of its head dimension must be four times a number", choices={"d_h": (16, 32, 48, 64)}),
    "granitemoehybrid": Hint("its models without experts state none", choices={"E": (0, 4, 8, 12)}),
    "unlimited_ocr_text": Hint(
        "its class builds layers that it can't run",
        words={"layer_types": ("reference_sliding_attention", "full_attention")},
    ),
    "squeezebert": Hint("it has one width", follows={"embedding_size": lambda v: v["hidden_size"]}),
    "convbert": Hint(
        "some of its heads are convolutions, and matrices in groups have three axes",
        leave=("num_groups",),
        computed={
            "H_own": "max(num_attention_heads // head_ratio, 1)",
            "d_own": "hidden_size // max(num_attention_heads // head_ratio, 1) // 2",
        },
    ),
    "esmc": Hint("its heads don't share keys", follows={"num_key_value_heads": lambda v: v["num_attention_heads"]}),
    "doge": Hint(
        "its router chooses rows and columns of experts, and long texts have dynamic masks",
        computed={"n_keys": "int(sqrt(num_experts))"},
        leave=("keep_window_size",),
    ),
    **dict.fromkeys(
        ("qwen2_vl_text", "qwen2_5_vl_text"),
        Hint(
            "its RoPE reads a head_dim that its heads ignore",
            follows={"head_dim": lambda v: v["hidden_size"] // v["num_attention_heads"]},
        ),
    ),
    "glm4v_moe_text": Hint(
        "it rotates half of each head",
        follows={"rope_parameters": lambda v: {**v["rope_parameters"], "partial_rotary_factor": 1.0}},
    ),
    "deepseek_v4": Hint(
        "its heads' results are projected in groups",
        computed={"d_group": "num_attention_heads * head_dim // o_groups"},
    ),
    "zamba": Hint(
        "its first layers are an exception, and it needs two layers of each kind",
        choices={"L": (13, 14, 15, 17)},
        lists={
            "layers_block_type": "linear_attention if i < 2; hybrid if i == 2;"
            " hybrid if (i - 3) % attn_layer_period == attn_layer_offset; linear_attention"
        },
    ),
    "mvp": Hint("prompts are further keys", leave=("use_prompt",)),
    "molmo2": Hint("its class reads two late layers of its images", outer={"vision_config": {"num_hidden_layers": 25}}),
    "emu3": Hint("its class needs the tokens of images", outer={"vocabulary_map": {"<|extra_200|>": 5, "<image>": 4}}),
    "nemotron_h": Hint(
        "the length of a list is the number of layers",
        depth="layers_block_type",
        letters={
            "hybrid_override_pattern": ("layers_block_type", "M=linear_attention E=moe *=full_attention -=mlp"),
        },
        lists={"layers_block_type": "linear_attention if i == 0; moe if i == 1; full_attention if i == 2; mlp"},
    ),
    "gemma3n_text": Hint("its default exceeds a probe's number of layers", given={"num_kv_shared_layers": 2}),
}
NO_HINT = Hint("")
# What the layers of a type without N×N scores compute instead.
WITHOUT_SCORES: Mapping[str, str] = {
    "mamba": "state-space layers",
    "mamba2": "state-space layers",
    "falcon_mamba": "state-space layers",
    "rwkv": "recurrent layers",
    "xlstm": "recurrent layers",
    "fnet": "Fourier transforms",
    "longformer": "attention within windows",
    "led": "attention within windows",
    "big_bird": "attention within blocks",
    "mra": "approximated attention",
    "yoso": "approximated attention",
    "nystromformer": "approximated attention",
    "reformer": "hashed attention",
    "perceiver": "attention of learned latent vectors to the tokens",
    "cpmant": "attention among the tokens and learned prompt vectors",
}


def role(name: str, in_layer: bool) -> str:
    """The role that a tensor's name suggests."""
    patterns = LAYER_ROLES if in_layer else OUTSIDE_ROLES
    return next((role for role, pattern in patterns.items() if re.search(pattern, name)), "other")
