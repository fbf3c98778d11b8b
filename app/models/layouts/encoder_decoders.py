"""Layouts of encoder-decoders: T5, BART, Whisper. Their decoders read the encoder through cross attention.

A decoder has its own sizes: L_dec layers, an inner width of d_ff_dec, and H_dec heads of d_h_dec. Its tensors come
after the encoder's; the tensors of its cross attention count as "other".
"""

from __future__ import annotations

from app.models.layouts.blocks import SELF, mlp, norms, projections
from app.models.parameter_specs import (
    ALWAYS,
    Layout,
    ModelPart,
    ParameterSpecs,
    TaskHead,
    concat,
    embedding_table,
    layers,
    linear,
    norm,
    parse_shape,
    tensor,
    vector,
)

M_V = parse_shape("M", "V")
_LM_HEAD = linear("lm_head", "d", "V", ModelPart.OUTPUT_HEAD, when="!tied")
_T5_NAMES = "q k v o"
_BART_NAMES = "q_proj k_proj v_proj out_proj"
# Queries, keys, values and the output projection's input have the same width: these models have G = H and d_v = d_h.
_ENCODER_WIDTHS = ("H*d_h",) * 4
_DECODER_WIDTHS = ("H_dec*d_h_dec",) * 4


def _t5_feed_forward(name: str) -> ParameterSpecs:
    return concat(
        linear(f"{name}.wi", "d", "d_ff", ModelPart.FEED_FORWARD, when="!gated"),
        linear(f"{name}.wi_0", "d", "d_ff", ModelPart.FEED_FORWARD, when="gated"),
        linear(f"{name}.wi_1", "d", "d_ff", ModelPart.FEED_FORWARD, when="gated"),
        linear(f"{name}.wo", "d_ff", "d", ModelPart.FEED_FORWARD),
    )


# The first layer has the table of relative positions for all layers (Raffel et al., arXiv:1910.10683), except in UMT5,
# where each layer has one.
_T5_BUCKETS = ("layer.0.SelfAttention.relative_attention_bias", "n_buckets", "H", ModelPart.RELATIVE_POSITIONS)
_T5_SELF_ATTENTION = concat(
    projections("layer.0.SelfAttention.", _T5_NAMES, widths=_ENCODER_WIDTHS),
    embedding_table(*_T5_BUCKETS, when="first !every_relative"),
    embedding_table(*_T5_BUCKETS, when="every_relative"),
)
_T5_ENCODER = layers(
    "encoder.block.{i}.",
    _T5_SELF_ATTENTION,
    norms("layer.0.layer_norm layer.1.layer_norm"),
    _t5_feed_forward("layer.1.DenseReluDense"),
)
_T5_DECODER = layers(
    "decoder.block.{i}.",
    _T5_SELF_ATTENTION,
    projections("layer.1.EncDecAttention.", _T5_NAMES, ModelPart.CROSS_ATTENTION, widths=_ENCODER_WIDTHS),
    norms("layer.0.layer_norm layer.1.layer_norm layer.2.layer_norm"),
    _t5_feed_forward("layer.2.DenseReluDense"),
    count="L_dec",
    decoder=True,
)
T5 = Layout(
    concat(
        embedding_table("shared", "V", "d"),
        norm("encoder.final_layer_norm", "d", ModelPart.FINAL_NORM),
        norm("decoder.final_layer_norm", "d", ModelPart.FINAL_NORM, when="!encoder_only"),
    ),
    _T5_ENCODER + _T5_DECODER,
    {
        "ForConditionalGeneration": TaskHead("", _LM_HEAD, logits=M_V),
        "EncoderModel": TaskHead(flags=frozenset({"encoder_only"}), without_decoder=True),
        "Model": TaskHead(),
    },
    "gated",
)


# A layer of BART; the decoder's has cross attention between its two blocks (Lewis et al., arXiv:1910.13461).
_BART_ENCODER = layers(
    "encoder.layers.{i}.",
    projections(SELF, _BART_NAMES, widths=_ENCODER_WIDTHS),
    norms("self_attn_layer_norm", bias=ALWAYS),
    mlp("fc1 fc2", "d_ff"),
    norms("final_layer_norm", bias=ALWAYS),
)
_BART_DECODER = layers(
    "decoder.layers.{i}.",
    projections(SELF, _BART_NAMES, widths=_DECODER_WIDTHS),
    norms("self_attn_layer_norm", bias=ALWAYS),
    projections("encoder_attn.", _BART_NAMES, ModelPart.CROSS_ATTENTION, widths=_DECODER_WIDTHS),
    norms("encoder_attn_layer_norm", bias=ALWAYS),
    mlp("fc1 fc2", "d_ff_dec"),
    norms("final_layer_norm", bias=ALWAYS),
    count="L_dec",
    decoder=True,
)


def _in_both_parts(name: str, part: ModelPart, *, when: str = ALWAYS) -> ParameterSpecs:
    return concat(*(norm(f"{stack}.{name}", "d", part, bias=ALWAYS, when=when) for stack in ("encoder", "decoder")))


BART = Layout(
    concat(
        embedding_table("shared", "V", "d"),
        embedding_table("encoder.embed_tokens", "V", "d", when="!tied"),
        embedding_table("decoder.embed_tokens", "V", "d", when="!tied"),
        embedding_table("encoder.embed_positions", "P", "d", ModelPart.POSITION_TABLE),
        embedding_table("decoder.embed_positions", "P", "d", ModelPart.POSITION_TABLE),
        _in_both_parts("layernorm_embedding", ModelPart.EMBEDDING_NORM),
        _in_both_parts("layer_norm", ModelPart.FINAL_NORM, when="final_norms"),
    ),
    _BART_ENCODER + _BART_DECODER,
    {"ForConditionalGeneration": TaskHead("model.", _LM_HEAD, logits=M_V), "Model": TaskHead()},
)
# Whisper hears 80 or 128 mel bins through two convolutions (Radford et al., arXiv:2212.04356).
WHISPER = Layout(
    concat(
        tensor("encoder.conv1.weight", "d, bands, 3", ModelPart.CONVOLUTION),
        vector("encoder.conv1.bias", "d", ModelPart.CONVOLUTION),
        tensor("encoder.conv2.weight", "d, d, 3", ModelPart.CONVOLUTION),
        vector("encoder.conv2.bias", "d", ModelPart.CONVOLUTION),
        embedding_table("encoder.embed_positions", "P", "d", ModelPart.POSITION_TABLE),
        embedding_table("decoder.embed_tokens", "V", "d"),
        embedding_table("decoder.embed_positions", "P_dec", "d", ModelPart.POSITION_TABLE),
        _in_both_parts("layer_norm", ModelPart.FINAL_NORM),
    ),
    _BART_ENCODER + _BART_DECODER,
    {
        "ForConditionalGeneration": TaskHead(
            "model.", linear("proj_out", "d", "V", ModelPart.OUTPUT_HEAD, when="!tied"), logits=M_V
        ),
        "Model": TaskHead(),
    },
)
