"""The families of encoders and encoder-decoders: BERT and its descendants, ViT, CLIP's text part, T5, BART, Whisper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.models.families.family import (
    ALL_BIASES,
    MULTI_HEAD,
    POST_NORM,
    PRE_NORM,
    YES,
    Family,
    Flag,
    RotaryRule,
    default_sizes,
    differs_from_128,
    has_word,
    is_positive,
    names_gated_activation,
)
from app.models.layer_patterns import WindowRule, all_but_every
from app.models.layouts import encoder_decoders, encoders
from app.models.score_scale import disentangled, unscaled
from app.models.size_specs import SizeSpecs
from app.translation import N_

_BERT = Family(
    encoders.BERT,
    "BertForMaskedLM",
    {**MULTI_HEAD, "C": "max_position_embeddings = 512", "P": "= C", "T": "type_vocab_size = 2"},
    {**ALL_BIASES, "decoder": Flag("is_decoder")},
    tied=True,
    causal=False,
    kv_cache=False,
    position_rows="C",
    norm_placement=POST_NORM,
)
# RoBERTa counts positions from the padding token's id + 1, so that two rows of its table are never used.
_ROBERTA = replace(_BERT, layout=encoders.ROBERTA, model_class="RobertaForMaskedLM", unused_positions=2)
_NARROW: SizeSpecs = {**_BERT.sizes, "d_emb": "embedding_size = 128"}
_DEBERTA = replace(
    _BERT,
    layout=encoders.DEBERTA,
    model_class="DebertaForMaskedLM",
    sizes={
        **_BERT.sizes,
        "T": "types? type_vocab_size",
        "R": ("buckets? position_buckets", "spans? max_relative_positions", "= C"),
    },
    flags={
        "q v o mlp_bias": YES,
        "relative": Flag("relative_attention"),
        "positions": Flag("position_biased_input", True),
        "types": Flag("type_vocab_size", False, is_positive),
        "spans": Flag("max_relative_positions", False, is_positive),
        "c2p": Flag("pos_att_type", False, has_word("c2p")),
        "p2c": Flag("pos_att_type", False, has_word("p2c")),
        "legacy": Flag("legacy", True),
    },
    position_table_when="positions",
    position_bias={"relative": "disentangled"},
    scale=disentangled,
)
_BART = Family(
    encoder_decoders.BART,
    "BartForConditionalGeneration",
    {
        "d": "d_model hidden_size",
        "H": "encoder_attention_heads num_attention_heads",
        **MULTI_HEAD,
        "d_v": "= d_h",
        "d_ff": "encoder_ffn_dim",
        "V": "vocab_size",
        "L": "encoder_layers num_hidden_layers",
        "C": "max_position_embeddings = 1024",
        "P": "= C + 2",
        "P_dec": "= C",
        "H_dec": "decoder_attention_heads",
        "d_h_dec": "= d/H_dec",
        "d_ff_dec": "decoder_ffn_dim",
        "L_dec": "decoder_layers",
    },
    ALL_BIASES,
    tied=True,
    causal=False,
    position_rows="C",
    norm_placement=POST_NORM,
    embedding_scale="stated",
)
_T5 = Family(
    encoder_decoders.T5,
    "T5ForConditionalGeneration",
    {
        "d": "d_model hidden_size",
        "H": "num_heads num_attention_heads",
        "G": "= H",
        "d_h": "head_dim d_kv = 64",
        "d_v": "= d_h",
        "d_ff": "d_ff",
        "V": "vocab_size",
        "L": "num_layers num_hidden_layers",
        "C": "n_positions = none",
        "H_dec": "= H",
        "d_h_dec": "= d_h",
        "L_dec": "num_decoder_layers = L",
        "n_buckets": "relative_attention_num_buckets = 32",
    },
    {
        "gated": Flag("is_gated_act feed_forward_proj", False, names_gated_activation),
        "other_range": Flag("relative_attention_max_distance", False, differs_from_128),
    },
    # Checkpoints of T5 1.1, FLAN-T5 and mT5 state false and hold a separate LM head ("lm_head.weight").
    tied=True,
    causal=False,
    position_bias={"": "relative"},
    not_modelled={"other_range": N_("a relative position bias over another range than 128 tokens")},
    scale=unscaled,
    norm="RMSNorm",
)
_MT5_FLAGS = {**_T5.flags, "gated": Flag("is_gated_act feed_forward_proj", True, names_gated_activation)}

ENCODER_FAMILIES: Mapping[str, Family] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, model_class="XLMRobertaForMaskedLM"),
    "camembert": replace(_ROBERTA, model_class="CamembertForMaskedLM"),
    "distilbert": replace(
        _BERT,
        layout=encoders.DISTILBERT,
        model_class="DistilBertForMaskedLM",
        sizes={
            **_BERT.sizes,
            "d": "dim hidden_size",
            "H": "n_heads num_attention_heads",
            "L": "n_layers num_hidden_layers",
            "d_ff": "hidden_dim",
        },
    ),
    "albert": replace(
        _BERT,
        layout=encoders.ALBERT,
        model_class="AlbertForMaskedLM",
        sizes={**_NARROW, "L_stored": "num_hidden_groups = 1"},
    ),
    "electra": replace(_BERT, layout=encoders.ELECTRA, model_class="ElectraModel", sizes=_NARROW),
    "modernbert": Family(
        encoders.MODERNBERT,
        "ModernBertForMaskedLM",
        MULTI_HEAD,
        {
            "q k v o": Flag("attention_bias"),
            "mlp_bias": Flag("mlp_bias"),
            "norm_bias": Flag("norm_bias"),
            "decoder_bias": Flag("decoder_bias", True),
            "classifier_bias": Flag("classifier_bias"),
        },
        tied=True,
        causal=False,
        kv_cache=False,
        rotary=RotaryRule(
            theta="global_rope_theta",
            default_theta=160_000.0,
            local_theta="local_rope_theta",
            default_local_theta=10_000.0,
            scaled_locally=True,
        ),
        windows=WindowRule(all_but_every(3, "global_attn_every_n_layers", first=True), "local_attention", 128),
    ),
    "deberta": _DEBERTA,
    "deberta-v2": replace(
        _DEBERTA,
        layout=encoders.DEBERTA_V2,
        model_class="DebertaV2ForMaskedLM",
        sizes={**_DEBERTA.sizes, "K": "convolution? conv_kernel_size"},
        flags={
            **_DEBERTA.flags,
            "q k v o mlp_bias": YES,
            "buckets": Flag("position_buckets", False, is_positive),
            "shared_key": Flag("share_att_key"),
            "relative_norm": Flag("norm_rel_ebd", False, has_word("layer_norm")),
            "convolution": Flag("conv_kernel_size", False, is_positive),
        },
    ),
    "vit": Family(
        encoders.VIT,
        "ViTForImageClassification",
        {
            **MULTI_HEAD,
            "d_h": "head_dim = d/H",
            "V": "= none",
            "I": "image_size = 224",
            "p": "patch_size = 16",
            "c": "num_channels = 3",
            "n_side": "= I//p",
            "P": "= n_side*n_side + 1",
            "C": "= P",
            "d_pool": "pooler_output_size = d",
        },
        {"q k v": Flag("qkv_bias", True), "o mlp_bias": YES},
        causal=False,
        kv_cache=False,
        position_rows="P",
        fixed_tokens="P",
        input="image",
    ),
    "clip_text_model": Family(
        encoders.CLIP_TEXT,
        "CLIPTextModel",
        {**MULTI_HEAD, "C": "max_position_embeddings = 77", "P": "= C", "d_proj": "projection_dim = 512"},
        ALL_BIASES,
        tied=True,
        kv_cache=False,
        position_rows="C",
        text_part_defaults=default_sizes(512, 8, 2048, 49408, 12),
    ),
    "t5": _T5,
    "mt5": replace(_T5, model_class="MT5ForConditionalGeneration", flags=_MT5_FLAGS),
    "umt5": replace(_T5, model_class="UMT5ForConditionalGeneration", flags={**_MT5_FLAGS, "every_relative": YES}),
    "bart": _BART,
    "mbart": replace(
        _BART,
        model_class="MBartForConditionalGeneration",
        flags={**ALL_BIASES, "final_norms": YES},
        norm_placement=PRE_NORM,
    ),
    "whisper": replace(
        _BART,
        layout=encoder_decoders.WHISPER,
        model_class="WhisperForConditionalGeneration",
        sizes={
            **_BART.sizes,
            "C": "max_source_positions = 1500",
            "P": "= C",
            "frames": "= 2*C",
            "P_dec": "max_target_positions = 448",
            "bands": "num_mel_bins = 80",
        },
        flags={"q v o mlp_bias": YES},
        norm_placement=PRE_NORM,
        fixed_tokens="C",
        input="sound",
    ),
}
