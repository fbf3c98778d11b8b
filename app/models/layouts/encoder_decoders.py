"""Layouts of encoder-decoders: T5, BART, Whisper. Their decoders read the encoder through cross attention.

The decoder's own sizes are L_dec, d_ff_dec, and H_dec heads of d_h_dec; its tensors are counted after the encoder's.
"""

from __future__ import annotations

from app.models.layouts.blocks import SELF, Weights, norms, plain
from app.models.parameter_specs import (
    ALWAYS,
    ATTENTION,
    MLP,
    OTHER,
    OUTPUT_HEAD,
    Bucket,
    Head,
    Layout,
    Stack,
    dims,
    layer,
    linear,
    norm,
    table,
    tensor,
    vector,
)

M_V = (dims("M")[0], dims("V")[0])


def _attention(names: str, inner: str, bucket: Bucket = ATTENTION) -> Weights:
    q, k, v, o = names.split()
    return layer(
        linear(q, "d", inner, bucket, bias="q"),
        linear(k, "d", inner, bucket, bias="k"),
        linear(v, "d", inner, bucket, bias="v"),
        linear(o, inner, "d", bucket, bias="o"),
    )


def _t5_feed_forward(name: str) -> Weights:
    return layer(
        linear(f"{name}.wi", "d", "d_ff", MLP, when="!gated"),
        linear(f"{name}.wi_0", "d", "d_ff", MLP, when="gated"),
        linear(f"{name}.wi_1", "d", "d_ff", MLP, when="gated"),
        linear(f"{name}.wo", "d_ff", "d", MLP),
    )


def _t5_self_attention() -> Weights:
    names = " ".join(f"layer.0.SelfAttention.{name}" for name in "qkvo")
    # The table of relative positions stands in the first layer and serves all (Raffel et al., arXiv:1910.10683).
    return layer(
        _attention(names, "H*d_h"),
        table("layer.0.SelfAttention.relative_attention_bias", "B", "H", OTHER, when="first !every_relative"),
        table("layer.0.SelfAttention.relative_attention_bias", "B", "H", OTHER, when="every_relative"),
    )


_T5_ENCODER = Stack(
    "encoder.block.{i}.",
    "L",
    layer(
        _t5_self_attention(),
        norms("layer.0.layer_norm layer.1.layer_norm"),
        _t5_feed_forward("layer.1.DenseReluDense"),
    ),
)
_T5_DECODER = Stack(
    "decoder.block.{i}.",
    "L_dec",
    layer(
        _t5_self_attention(),
        _attention(" ".join(f"layer.1.EncDecAttention.{name}" for name in "qkvo"), "H*d_h", OTHER),
        norms("layer.0.layer_norm layer.1.layer_norm layer.2.layer_norm"),
        _t5_feed_forward("layer.2.DenseReluDense"),
    ),
    decoder=True,
)
T5 = Layout(
    layer(
        table("shared", "V", "d"),
        norm("encoder.final_layer_norm", "d", OTHER),
        norm("decoder.final_layer_norm", "d", OTHER, when="!encoder_only"),
    ),
    (_T5_ENCODER, _T5_DECODER),
    {
        "ForConditionalGeneration": Head(logits=M_V),
        "EncoderModel": Head(flags=frozenset({"encoder_only"}), without_decoder=True),
        "Model": Head(),
    },
    "gated",
)


def _bart_stack(side: str, count: str, inner: str, width: str) -> Stack:
    """BART's layer; the decoder's has cross attention between its two blocks (Lewis et al., arXiv:1910.13461)."""
    names = "q_proj k_proj v_proj out_proj"
    cross = layer(
        _attention(" ".join(f"encoder_attn.{name}" for name in names.split()), inner, OTHER),
        norms("encoder_attn_layer_norm", bias=ALWAYS),
    )
    weights = layer(
        _attention(" ".join(SELF + name for name in names.split()), inner),
        norms("self_attn_layer_norm", bias=ALWAYS),
        cross if side == "decoder" else (),
        plain("fc1 fc2", width),
        norms("final_layer_norm", bias=ALWAYS),
    )
    return Stack(f"{side}.layers.{{i}}.", count, weights, decoder=side == "decoder")


_BART_STACKS = (
    _bart_stack("encoder", "L", "H*d_h", "d_ff"),
    _bart_stack("decoder", "L_dec", "H_dec*d_h_dec", "d_ff_dec"),
)


def _sides(name: str, *, when: str = ALWAYS) -> Weights:
    return layer(*(norm(f"{side}.{name}", "d", OTHER, bias=ALWAYS, when=when) for side in ("encoder", "decoder")))


BART = Layout(
    layer(
        table("shared", "V", "d"),
        table("encoder.embed_tokens", "V", "d", when="!tied"),
        table("decoder.embed_tokens", "V", "d", when="!tied"),
        table("encoder.embed_positions", "P", "d"),
        table("decoder.embed_positions", "P", "d"),
        _sides("layernorm_embedding"),
        _sides("layer_norm", when="final_norms"),
    ),
    _BART_STACKS,
    {
        "ForConditionalGeneration": Head("model.", linear("lm_head", "d", "V", OUTPUT_HEAD, when="!tied"), logits=M_V),
        "Model": Head(),
    },
)
# Whisper hears 80 or 128 mel bands through two convolutions (Radford et al., arXiv:2212.04356).
WHISPER = Layout(
    layer(
        tensor("encoder.conv1.weight", "d, bands, 3", OTHER),
        vector("encoder.conv1.bias", "d", OTHER),
        tensor("encoder.conv2.weight", "d, d, 3", OTHER),
        vector("encoder.conv2.bias", "d", OTHER),
        table("encoder.embed_positions", "P", "d"),
        table("decoder.embed_tokens", "V", "d"),
        table("decoder.embed_positions", "P_dec", "d"),
        _sides("layer_norm"),
    ),
    _BART_STACKS,
    {
        "ForConditionalGeneration": Head("model.", linear("proj_out", "d", "V", OUTPUT_HEAD, when="!tied"), logits=M_V),
        "Model": Head(),
    },
)
