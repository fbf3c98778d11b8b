"""Layouts of encoder-decoders: T5, BART, Whisper. Their decoders read the encoder through cross attention.

The decoder's own sizes are L_dec, d_ff_dec, and H_dec heads of d_h_dec; its tensors are counted after the encoder's.
"""

from __future__ import annotations

from app.models.layouts.blocks import SELF, mlp, norms
from app.models.parameter_specs import (
    ALWAYS,
    ATTENTION,
    MLP,
    OTHER,
    OUTPUT_HEAD,
    Bucket,
    Layout,
    ParameterSpecs,
    StackSpec,
    TaskHead,
    concat,
    embedding_table,
    linear,
    norm,
    parse_shape,
    tensor,
    vector,
)

M_V = parse_shape("M", "V")


def _attention(names: str, inner: str, bucket: Bucket = ATTENTION) -> ParameterSpecs:
    q, k, v, o = names.split()
    return concat(
        linear(q, "d", inner, bucket, bias="q"),
        linear(k, "d", inner, bucket, bias="k"),
        linear(v, "d", inner, bucket, bias="v"),
        linear(o, inner, "d", bucket, bias="o"),
    )


def _t5_feed_forward(name: str) -> ParameterSpecs:
    return concat(
        linear(f"{name}.wi", "d", "d_ff", MLP, when="!gated"),
        linear(f"{name}.wi_0", "d", "d_ff", MLP, when="gated"),
        linear(f"{name}.wi_1", "d", "d_ff", MLP, when="gated"),
        linear(f"{name}.wo", "d_ff", "d", MLP),
    )


def _t5_self_attention() -> ParameterSpecs:
    names = " ".join(f"layer.0.SelfAttention.{name}" for name in "qkvo")
    # The table of relative positions stands in the first layer and serves all (Raffel et al., arXiv:1910.10683).
    return concat(
        _attention(names, "H*d_h"),
        embedding_table("layer.0.SelfAttention.relative_attention_bias", "B", "H", OTHER, when="first !every_relative"),
        embedding_table("layer.0.SelfAttention.relative_attention_bias", "B", "H", OTHER, when="every_relative"),
    )


_T5_ENCODER = StackSpec(
    "encoder.block.{i}.",
    "L",
    concat(
        _t5_self_attention(),
        norms("layer.0.layer_norm layer.1.layer_norm"),
        _t5_feed_forward("layer.1.DenseReluDense"),
    ),
)
_T5_DECODER = StackSpec(
    "decoder.block.{i}.",
    "L_dec",
    concat(
        _t5_self_attention(),
        _attention(" ".join(f"layer.1.EncDecAttention.{name}" for name in "qkvo"), "H*d_h", OTHER),
        norms("layer.0.layer_norm layer.1.layer_norm layer.2.layer_norm"),
        _t5_feed_forward("layer.2.DenseReluDense"),
    ),
    decoder=True,
)
T5 = Layout(
    concat(
        embedding_table("shared", "V", "d"),
        norm("encoder.final_layer_norm", "d", OTHER),
        norm("decoder.final_layer_norm", "d", OTHER, when="!encoder_only"),
    ),
    (_T5_ENCODER, _T5_DECODER),
    {
        "ForConditionalGeneration": TaskHead(logits=M_V),
        "EncoderModel": TaskHead(flags=frozenset({"encoder_only"}), without_decoder=True),
        "Model": TaskHead(),
    },
    "gated",
)


def _bart_stack(side: str, count: str, inner: str, width: str) -> StackSpec:
    """BART's layer; the decoder's has cross attention between its two blocks (Lewis et al., arXiv:1910.13461)."""
    names = "q_proj k_proj v_proj out_proj"
    cross = concat(
        _attention(" ".join(f"encoder_attn.{name}" for name in names.split()), inner, OTHER),
        norms("encoder_attn_layer_norm", bias=ALWAYS),
    )
    weights = concat(
        _attention(" ".join(SELF + name for name in names.split()), inner),
        norms("self_attn_layer_norm", bias=ALWAYS),
        cross if side == "decoder" else (),
        mlp("fc1 fc2", width),
        norms("final_layer_norm", bias=ALWAYS),
    )
    return StackSpec(f"{side}.layers.{{i}}.", count, weights, decoder=side == "decoder")


_BART_STACKS = (
    _bart_stack("encoder", "L", "H*d_h", "d_ff"),
    _bart_stack("decoder", "L_dec", "H_dec*d_h_dec", "d_ff_dec"),
)


def _sides(name: str, *, when: str = ALWAYS) -> ParameterSpecs:
    return concat(*(norm(f"{side}.{name}", "d", OTHER, bias=ALWAYS, when=when) for side in ("encoder", "decoder")))


BART = Layout(
    concat(
        embedding_table("shared", "V", "d"),
        embedding_table("encoder.embed_tokens", "V", "d", when="!tied"),
        embedding_table("decoder.embed_tokens", "V", "d", when="!tied"),
        embedding_table("encoder.embed_positions", "P", "d"),
        embedding_table("decoder.embed_positions", "P", "d"),
        _sides("layernorm_embedding"),
        _sides("layer_norm", when="final_norms"),
    ),
    _BART_STACKS,
    {
        "ForConditionalGeneration": TaskHead(
            "model.", linear("lm_head", "d", "V", OUTPUT_HEAD, when="!tied"), logits=M_V
        ),
        "Model": TaskHead(),
    },
)
# Whisper hears 80 or 128 mel bands through two convolutions (Radford et al., arXiv:2212.04356).
WHISPER = Layout(
    concat(
        tensor("encoder.conv1.weight", "d, bands, 3", OTHER),
        vector("encoder.conv1.bias", "d", OTHER),
        tensor("encoder.conv2.weight", "d, d, 3", OTHER),
        vector("encoder.conv2.bias", "d", OTHER),
        embedding_table("encoder.embed_positions", "P", "d"),
        embedding_table("decoder.embed_tokens", "V", "d"),
        embedding_table("decoder.embed_positions", "P_dec", "d"),
        _sides("layer_norm"),
    ),
    _BART_STACKS,
    {
        "ForConditionalGeneration": TaskHead(
            "model.", linear("proj_out", "d", "V", OUTPUT_HEAD, when="!tied"), logits=M_V
        ),
        "Model": TaskHead(),
    },
)
