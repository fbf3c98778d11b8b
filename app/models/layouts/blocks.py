"""The pieces that layouts share: projections, feed-forward blocks, mixtures of experts, norms, model classes.

Flags such as "q" (the query projection has a bias), "tied" or "moe" are set by the rows of families.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.models.parameter_specs import (
    ALWAYS,
    ATTENTION,
    ATTENTION_NORMS,
    MLP,
    NORMS,
    OTHER,
    OUTPUT_HEAD,
    Head,
    Weight,
    both,
    dims,
    experts,
    layer,
    linear,
    norm,
    vector,
)

Weights = tuple[Weight, ...]
SELF = "self_attn."
QKVO = "q_proj k_proj v_proj o_proj"
PRE_NORMS = "input_layernorm post_attention_layernorm"


def projections(prefix: str, names: str, bucket: str = "", *, when: str = ALWAYS) -> Weights:
    """Queries, keys, values and output, each with a matrix of its own; `names` in this order."""
    q, k, v, o = (prefix + name for name in names.split())
    kind = OTHER if bucket else ATTENTION
    return layer(
        linear(q, "d", "H*d_h", kind, bias="q", when=when),
        linear(k, "d", "G*d_h", kind, bias="k", when=when),
        linear(v, "d", "G*d_v", kind, bias="v", when=when),
        linear(o, "H*d_v", "d", kind, bias="o", when=when),
    )


def fused(prefix: str, names: str, *, conv1d: bool = False) -> Weights:
    """Queries, keys and values in one stored matrix, and the output; the heads are the same as in `projections`."""
    qkv, o = (prefix + name for name in names.split())
    return layer(
        linear(qkv, "d", "H*d_h + G*d_h + G*d_v", ATTENTION, bias="q", conv1d=conv1d),
        linear(o, "H*d_v", "d", ATTENTION, bias="o", conv1d=conv1d),
    )


def gated(
    prefix: str, width: str = "d_ff", *, names: str = "gate_proj up_proj down_proj", when: str = ALWAYS
) -> Weights:
    """The gated feed-forward block: (act(x·gate) ∘ x·up)·down (Shazeer, arXiv:2002.05202)."""
    gate, up, down = (prefix + name for name in names.split())
    return layer(
        linear(gate, "d", width, MLP, bias="mlp_bias", when=when),
        linear(up, "d", width, MLP, bias="mlp_bias", when=when),
        linear(down, width, "d", MLP, bias="mlp_bias", when=when),
    )


def plain(names: str, width: str = "d_ff", *, conv1d: bool = False, when: str = ALWAYS) -> Weights:
    """The feed-forward block of two matrices: act(x·up)·down (Vaswani et al., arXiv:1706.03762, section 3.3)."""
    up, down = names.split()
    return layer(
        linear(up, "d", width, MLP, bias="mlp_bias", conv1d=conv1d, when=when),
        linear(down, width, "d", MLP, bias="mlp_bias", conv1d=conv1d, when=when),
    )


def mixture(prefix: str, width: str = "d_ff", *, router: str = "gate", when: str = ALWAYS) -> Weights:
    """A router and E gated experts, their matrices stacked as transformers 5 stores them."""
    return layer(
        linear(prefix + router, "d", "E", MLP, when=when),
        experts(f"{prefix}experts.gate_up_proj", "d", f"2*{width}", when=when),
        experts(f"{prefix}experts.down_proj", width, "d", when=when),
    )


def norms(names: str, *, bias: str | None = None, when: str = ALWAYS) -> Weights:
    return layer(*(norm(name, "d", NORMS, bias=bias, when=when) for name in names.split()))


def qk_norms(names: str, widths: str = "d_h d_h", *, bias: str | None = None) -> Weights:
    """Normalization of queries and keys before the scores (Henry et al., arXiv:2010.04245)."""
    pairs = zip(names.split(), widths.split(), strict=True)
    return layer(*(norm(name, width, ATTENTION_NORMS, bias=bias, when="qk_norm") for name, width in pairs))


def causal_heads(prefix: str, bias: str | None = None, width: str = "d") -> Mapping[str, Head]:
    """The classes of a language model: with the vocabulary on top, with a classifier, or bare."""
    n, v, one, labels = dims("N", "V", "1", "labels")
    top = linear("lm_head", width, "V", OUTPUT_HEAD, when="!tied")
    if bias is not None:  # the matrix can be the embedding's, the bias cannot
        top += vector("lm_head.bias", "V", OUTPUT_HEAD, when=both("!tied", bias))
        top += vector("lm_head.bias", "V", OTHER, when=both("tied", bias))
    head = Head(prefix, top, logits=(n, v))
    score = Head(prefix, linear("score", "d", "labels", OTHER), logits=(one, labels))
    return {"ForCausalLM": head, "LMHeadModel": head, "ForSequenceClassification": score, "Model": Head()}
