"""Layouts of decoders with LLaMA's tensor names (Touvron et al., arXiv:2302.13971): embed_tokens, layers, norm."""

from __future__ import annotations

from app.models.layouts.blocks import (
    PRE_NORMS,
    QKVO,
    SELF,
    causal_heads,
    fused_qkv,
    gated_mlp,
    mlp,
    moe,
    norms,
    projections,
    qk_norms,
)
from app.models.parameter_specs import (
    ALWAYS,
    NEVER,
    Layout,
    ModelPart,
    ParameterSpecs,
    concat,
    embedding_table,
    experts,
    layers,
    linear,
    norm,
    tensor,
    vector,
)

SANDWICH = "post_attention_layernorm post_feedforward_layernorm"
LLAMA_ATTENTION = projections(SELF, QKVO)
NORMS_PER_HEAD = qk_norms("self_attn.q_norm self_attn.k_norm")
NORMS_OVER_HEADS = qk_norms("self_attn.q_norm self_attn.k_norm", "H*d_h G*d_h")
GATE_AND_UP_IN_ONE = concat(
    linear("mlp.gate_up_proj", "d", "2*d_ff", ModelPart.FEED_FORWARD),
    linear("mlp.down_proj", "d_ff", "d", ModelPart.FEED_FORWARD),
)


def llama_like(
    *blocks: ParameterSpecs, norm_bias: str | None = None, final_norm: ParameterSpecs | None = None, gate: str = ALWAYS
) -> Layout:
    """A causal decoder's layout: a token embedding, L layers with these blocks, a final norm, and causal heads."""
    last = norm("norm", "d", ModelPart.FINAL_NORM, bias=norm_bias) if final_norm is None else final_norm
    outside = concat(embedding_table("embed_tokens", "V", "d"), last)
    return Layout(outside, layers("layers.{i}.", *blocks), causal_heads("model.", "lm_head_bias"), gate)


LLAMA = llama_like(LLAMA_ATTENTION, gated_mlp("mlp."), norms(PRE_NORMS))
QK_NORM = llama_like(LLAMA_ATTENTION, NORMS_PER_HEAD, gated_mlp("mlp."), norms(PRE_NORMS))
GEMMA2 = llama_like(
    LLAMA_ATTENTION,
    NORMS_PER_HEAD,
    gated_mlp("mlp."),
    norms(f"{PRE_NORMS} pre_feedforward_layernorm post_feedforward_layernorm"),
)
# OLMo 2 normalizes all heads' queries together, and after attention and feed-forward instead of before.
OLMO2 = llama_like(LLAMA_ATTENTION, NORMS_OVER_HEADS, gated_mlp("mlp."), norms(SANDWICH))
OLMO = llama_like(LLAMA_ATTENTION, gated_mlp("mlp."), final_norm=())
EXAONE4 = llama_like(LLAMA_ATTENTION, NORMS_PER_HEAD, gated_mlp("mlp."), norms(SANDWICH))
COHERE = llama_like(
    LLAMA_ATTENTION,
    tensor("self_attn.q_norm.weight", "H, d_h", ModelPart.QUERY_NORM, "scale", when="qk_norm"),
    tensor("self_attn.k_norm.weight", "G, d_h", ModelPart.KEY_NORM, "scale", when="qk_norm"),
    gated_mlp("mlp."),
    norms("input_layernorm"),
)
NEMOTRON = llama_like(
    LLAMA_ATTENTION, mlp("mlp.up_proj mlp.down_proj"), norms(PRE_NORMS, bias=ALWAYS), norm_bias=ALWAYS, gate=NEVER
)
STARCODER2 = llama_like(
    LLAMA_ATTENTION, mlp("mlp.c_fc mlp.c_proj"), norms(PRE_NORMS, bias=ALWAYS), norm_bias=ALWAYS, gate=NEVER
)
STABLELM = llama_like(
    LLAMA_ATTENTION,
    # One norm for every head.
    vector("self_attn.q_layernorm.norms.{j}.weight", "d_h", ModelPart.QUERY_NORM, "scale", when="qk_norm", copies="H"),
    vector("self_attn.k_layernorm.norms.{j}.weight", "d_h", ModelPart.KEY_NORM, "scale", when="qk_norm", copies="G"),
    gated_mlp("mlp."),
    norms("input_layernorm", bias=ALWAYS),
    norms("post_attention_layernorm", bias=ALWAYS, when="!parallel"),
    norm_bias=ALWAYS,
)
GLM = llama_like(
    LLAMA_ATTENTION,
    GATE_AND_UP_IN_ONE,
    norms(PRE_NORMS),
    norms("post_self_attn_layernorm post_mlp_layernorm", when="sandwich"),
)
PHI3 = llama_like(fused_qkv(SELF, "qkv_proj o_proj"), GATE_AND_UP_IN_ONE, norms(PRE_NORMS))
PHI = llama_like(
    projections(SELF, "q_proj k_proj v_proj dense"),
    qk_norms("self_attn.q_layernorm self_attn.k_layernorm", bias=ALWAYS),
    mlp("mlp.fc1 mlp.fc2"),
    norms("input_layernorm", bias=ALWAYS),
    final_norm=norm("final_layernorm", "d", ModelPart.FINAL_NORM, bias=ALWAYS),
    gate=NEVER,
)
PERSIMMON = llama_like(
    fused_qkv(SELF, "query_key_value dense", "by-head"),
    qk_norms("self_attn.q_layernorm self_attn.k_layernorm", bias=ALWAYS),
    mlp("mlp.dense_h_to_4h mlp.dense_4h_to_h"),
    norms(PRE_NORMS, bias=ALWAYS),
    final_norm=norm("final_layernorm", "d", ModelPart.FINAL_NORM, bias=ALWAYS),
    gate=NEVER,
)

MIXTRAL = llama_like(LLAMA_ATTENTION, moe("mlp."), norms(PRE_NORMS))
PHIMOE = llama_like(LLAMA_ATTENTION, moe("mlp.", router="router"), norms(PRE_NORMS, bias=ALWAYS), norm_bias=ALWAYS)
OLMOE = llama_like(LLAMA_ATTENTION, NORMS_OVER_HEADS, moe("mlp."), norms(PRE_NORMS))
GRANITEMOE = llama_like(LLAMA_ATTENTION, moe("block_sparse_moe.", router="router"), norms(PRE_NORMS))
QWEN_MOE = llama_like(
    LLAMA_ATTENTION,
    NORMS_PER_HEAD,
    gated_mlp("mlp.", "d_dense", when="!moe"),
    moe("mlp.", "d_exp", when="moe"),
    gated_mlp("mlp.shared_expert.", "d_sh", ModelPart.SHARED_EXPERTS, when="moe shared"),
    linear("mlp.shared_expert_gate", "d", "1", ModelPart.SHARED_GATE, when="moe shared"),
    norms(PRE_NORMS),
)
# gpt-oss stores its experts in the orientation of x·W, with biases, and gives every head a sink: one more column of
# scores that takes part in the softmax and is dropped after it.
GPT_OSS = llama_like(
    LLAMA_ATTENTION,
    vector("self_attn.sinks", "H", ModelPart.SINKS),
    linear("mlp.router", "d", "E", ModelPart.ROUTER, bias=ALWAYS),
    experts("mlp.experts.gate_up_proj", "d", "2*d_ff", transposed=False),
    tensor("mlp.experts.gate_up_proj_bias", "E, 2*d_ff", ModelPart.EXPERTS, "bias"),
    experts("mlp.experts.down_proj", "d_ff", "d", transposed=False),
    tensor("mlp.experts.down_proj_bias", "E, d", ModelPart.EXPERTS, "bias"),
    norms(PRE_NORMS),
)
LLAMA4 = llama_like(
    LLAMA_ATTENTION,
    gated_mlp("feed_forward.", "d_dense", when="!moe"),
    experts("feed_forward.experts.gate_up_proj", "d", "2*d_exp", when="moe", transposed=False),
    experts("feed_forward.experts.down_proj", "d_exp", "d", when="moe", transposed=False),
    linear("feed_forward.router", "d", "E", ModelPart.ROUTER, when="moe"),
    gated_mlp("feed_forward.shared_expert.", "d_exp", ModelPart.SHARED_EXPERTS, when="moe"),
    norms(PRE_NORMS),
)
# Multi-head latent attention (DeepSeek-AI, arXiv:2405.04434): keys and values are computed from a latent of r_kv
# numbers, and one rotary key of d_rope numbers is shared by all heads: d_h = d_nope + d_rope.
MLA = concat(
    linear("self_attn.q_proj", "d", "H*d_h", ModelPart.LATENT_ATTENTION, when="!latent_queries"),
    linear("self_attn.q_a_proj", "d", "r_q", ModelPart.LATENT_ATTENTION, bias="o", when="latent_queries"),
    norm("self_attn.q_a_layernorm", "r_q", ModelPart.QUERY_NORM, when="latent_queries"),
    linear("self_attn.q_b_proj", "r_q", "H*d_h", ModelPart.LATENT_ATTENTION, when="latent_queries"),
    linear("self_attn.kv_a_proj_with_mqa", "d", "r_kv + d_rope", ModelPart.LATENT_ATTENTION, bias="o"),
    norm("self_attn.kv_a_layernorm", "r_kv", ModelPart.KEY_NORM),
    linear("self_attn.kv_b_proj", "r_kv", "H*d_nope + H*d_v", ModelPart.LATENT_ATTENTION),
    linear("self_attn.o_proj", "H*d_v", "d", ModelPart.LATENT_ATTENTION, bias="o"),
)
DEEPSEEK = llama_like(
    MLA,
    gated_mlp("mlp.", "d_dense", when="!moe"),
    moe("mlp.", "d_exp", when="moe"),
    gated_mlp("mlp.shared_experts.", "n_sh*d_exp", ModelPart.SHARED_EXPERTS, when="moe shared"),
    norms(PRE_NORMS),
)
# Llama 3.2 Vision: some layers have cross attention to the image instead of attention to the text. The embedding has
# eight more rows than there are tokens to predict.
MLLAMA = Layout(
    concat(embedding_table("embed_tokens", "V + 8", "d"), norm("norm", "d", ModelPart.FINAL_NORM)),
    layers(
        "layers.{i}.",
        projections(SELF, QKVO, when="!cross"),
        projections("cross_attn.", QKVO, ModelPart.CROSS_ATTENTION, when="cross"),
        norm("cross_attn.q_norm", "d_h", ModelPart.CROSS_ATTENTION, when="cross"),
        norm("cross_attn.k_norm", "d_h", ModelPart.CROSS_ATTENTION, when="cross"),
        tensor("cross_attn_attn_gate", "1", ModelPart.CROSS_ATTENTION, when="cross"),
        tensor("cross_attn_mlp_gate", "1", ModelPart.CROSS_ATTENTION, when="cross"),
        gated_mlp("mlp."),
        norms(PRE_NORMS),
    ),
    causal_heads("model."),
    ALWAYS,
)
