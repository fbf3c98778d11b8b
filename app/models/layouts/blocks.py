"""The blocks that layouts share: projections, feed-forward blocks, mixtures of experts, norms, task heads.

Conditions ask for flags that the rows in app/models/families set: "q" (the query projection has a bias), "tied", "moe".
Tensor names are one text, separated by spaces.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.models.parameter_specs import (
    ALWAYS,
    FusedOrder,
    ModelPart,
    ParameterSpecs,
    TaskHead,
    and_also,
    concat,
    experts,
    linear,
    norm,
    parse_shape,
    vector,
)

SELF = "self_attn."
QKVO = "q_proj k_proj v_proj o_proj"
PRE_NORMS = "input_layernorm post_attention_layernorm"


def projections(
    prefix: str,
    names: str,
    part: ModelPart = ModelPart.ATTENTION,
    *,
    widths: tuple[str, str, str, str] = ("H*d_h", "G*d_h", "G*d_v", "H*d_v"),
    when: str = ALWAYS,
) -> ParameterSpecs:
    """Attention's four projections as separate matrices: queries, keys, values, output, in this order.

    Example: projections("self_attn.", "q_proj k_proj v_proj o_proj")
    """
    q, k, v, o = (prefix + name for name in names.split())
    q_width, k_width, v_width, o_width = widths
    return concat(
        linear(q, "d", q_width, part, bias="q", when=when),
        linear(k, "d", k_width, part, bias="k", when=when),
        linear(v, "d", v_width, part, bias="v", when=when),
        linear(o, o_width, "d", part, bias="o", when=when),
    )


def fused_qkv(prefix: str, names: str, order: FusedOrder = "by-matrix", *, conv1d: bool = False) -> ParameterSpecs:
    """Attention's projections with queries, keys and values in one matrix of H·d_h + G·d_h + G·d_v columns."""
    qkv, o = (prefix + name for name in names.split())
    return concat(
        linear(qkv, "d", "H*d_h + G*d_h + G*d_v", ModelPart.ATTENTION, bias="q", conv1d=conv1d, fused=order),
        linear(o, "H*d_v", "d", ModelPart.ATTENTION, bias="o", conv1d=conv1d),
    )


def gated_mlp(
    prefix: str, width: str = "d_ff", part: ModelPart = ModelPart.FEED_FORWARD, *, when: str = ALWAYS
) -> ParameterSpecs:
    """The gated feed-forward block of three matrices: (act(x·gate) ∘ x·up)·down (Shazeer, arXiv:2002.05202)."""
    return concat(
        linear(f"{prefix}gate_proj", "d", width, part, bias="mlp_bias", when=when),
        linear(f"{prefix}up_proj", "d", width, part, bias="mlp_bias", when=when),
        linear(f"{prefix}down_proj", width, "d", part, bias="mlp_bias", when=when),
    )


def mlp(names: str, width: str = "d_ff", *, conv1d: bool = False) -> ParameterSpecs:
    """The feed-forward block of two matrices: act(x·up)·down (Vaswani et al., arXiv:1706.03762, section 3.3)."""
    up, down = names.split()
    return concat(
        linear(up, "d", width, ModelPart.FEED_FORWARD, bias="mlp_bias", conv1d=conv1d),
        linear(down, width, "d", ModelPart.FEED_FORWARD, bias="mlp_bias", conv1d=conv1d),
    )


def moe(prefix: str, width: str = "d_ff", *, router: str = "gate", when: str = ALWAYS) -> ParameterSpecs:
    """A mixture of experts: a router, d × E, and E gated experts, stacked into two tensors as in transformers 5."""
    return concat(
        linear(prefix + router, "d", "E", ModelPart.ROUTER, when=when),
        experts(f"{prefix}experts.gate_up_proj", "d", f"2*{width}", when=when),
        experts(f"{prefix}experts.down_proj", width, "d", when=when),
    )


def norms(names: str, *, bias: str | None = None, when: str = ALWAYS) -> ParameterSpecs:
    """Normalizations as wide as the model, one per name; `bias` is the condition for a bias, None for never."""
    return concat(*(norm(name, "d", ModelPart.NORMS, bias=bias, when=when) for name in names.split()))


def qk_norms(names: str, widths: str = "d_h d_h", *, bias: str | None = None) -> ParameterSpecs:
    """Normalizations of queries and keys before the scores, under the flag qk_norm (Henry et al., arXiv:2010.04245)."""
    norms = zip(names.split(), widths.split(), (ModelPart.QUERY_NORM, ModelPart.KEY_NORM), strict=True)
    return concat(*(norm(name, width, part, bias=bias, when="qk_norm") for name, width, part in norms))


def causal_heads(prefix: str, bias: str | None = None, width: str = "d") -> Mapping[str, TaskHead]:
    """The task heads of a causal language model: an LM head (ForCausalLM or LMHeadModel), or none."""
    top = linear("lm_head", width, "V", ModelPart.OUTPUT_HEAD, when="!tied")
    if bias is not None:  # a tied LM head shares the embedding's matrix but has its own bias
        top += vector("lm_head.bias", "V", ModelPart.OUTPUT_HEAD, when=and_also("!tied", bias))
        top += vector("lm_head.bias", "V", ModelPart.OUTPUT_BIAS, when=and_also("tied", bias))
    lm_head = TaskHead(prefix, top, logits=parse_shape("N", "V"))
    return {"ForCausalLM": lm_head, "LMHeadModel": lm_head, "Model": TaskHead()}
