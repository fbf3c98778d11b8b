"""Layouts of encoders: BERT and its descendants, ModernBERT, DeBERTa, ViT, and the text part of CLIP."""

from __future__ import annotations

from app.models.layouts.blocks import SELF, fused_qkv, mlp, norms, projections
from app.models.parameter_specs import (
    ALWAYS,
    Layout,
    ModelPart,
    ParameterSpecs,
    TaskHead,
    and_also,
    concat,
    embedding_table,
    layers,
    linear,
    norm,
    parse_shape,
    tensor,
    vector,
)

N_V = parse_shape("N", "V")
ONE_LABELS = parse_shape("1", "labels")
POOLED = frozenset({"pooler"})
_CLASSIFIER = linear("classifier", "d", "labels", ModelPart.TASK_HEAD, bias=ALWAYS)


def _transform(dense: str, last_norm: str, width: str = "d", *, when: str = ALWAYS) -> ParameterSpecs:
    return concat(
        linear(dense, "d", width, ModelPart.HEAD_TRANSFORM, bias=ALWAYS, when=when),
        norm(last_norm, width, ModelPart.HEAD_TRANSFORM, bias=ALWAYS, when=when),
    )


def _output_head(name: str, bias: str, width: str = "d", *, when: str = ALWAYS) -> ParameterSpecs:
    is_heads_bias = f"{name}.bias" == bias
    return concat(
        linear(name, width, "V", ModelPart.OUTPUT_HEAD, bias=ALWAYS, when=and_also("!tied", when)),
        vector(bias, "V", ModelPart.OUTPUT_BIAS, when=and_also("tied", when) if is_heads_bias else when),
    )


def _embeddings(width: str, *, position_when: str = ALWAYS, type_when: str = ALWAYS) -> ParameterSpecs:
    return concat(
        embedding_table("embeddings.word_embeddings", "V", width),
        embedding_table("embeddings.position_embeddings", "P", width, ModelPart.POSITION_TABLE, when=position_when),
        embedding_table("embeddings.token_type_embeddings", "T", width, ModelPart.TYPE_TABLE, when=type_when),
        norm("embeddings.LayerNorm", width, ModelPart.EMBEDDING_NORM, bias=ALWAYS),
    )


_POOLER = linear("pooler.dense", "d", "d", ModelPart.POOLER, bias=ALWAYS, when="pooler")
_AFTER_PROJECTIONS = concat(
    linear("attention.output.dense", "H*d_v", "d", ModelPart.ATTENTION, bias=ALWAYS),
    norms("attention.output.LayerNorm", bias=ALWAYS),
    mlp("intermediate.dense output.dense"),
    norms("output.LayerNorm", bias=ALWAYS),
)


def _bert_layer(names: str = "query key value") -> ParameterSpecs:
    q, k, v = (f"attention.self.{name}" for name in names.split())
    return concat(
        linear(q, "d", "H*d_h", ModelPart.ATTENTION, bias="q"),
        linear(k, "d", "G*d_h", ModelPart.ATTENTION, bias="k"),
        linear(v, "d", "G*d_v", ModelPart.ATTENTION, bias="v"),
        _AFTER_PROJECTIONS,
    )


_BERT_STACKS = layers("encoder.layer.{i}.", _bert_layer())
_BERT_MASKED = concat(
    _transform("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    _output_head("cls.predictions.decoder", "cls.predictions.bias"),
)
BERT = Layout(
    concat(_embeddings("d"), _POOLER),
    _BERT_STACKS,
    {
        "ForMaskedLM": TaskHead("bert.", _BERT_MASKED, logits=N_V),
        "LMHeadModel": TaskHead("bert.", _BERT_MASKED, logits=N_V),
        "Model": TaskHead(flags=POOLED),
    },
)


_ROBERTA_MASKED = concat(
    _transform("lm_head.dense", "lm_head.layer_norm"), _output_head("lm_head.decoder", "lm_head.bias")
)
ROBERTA = Layout(
    concat(_embeddings("d"), _POOLER),
    _BERT_STACKS,
    {
        "ForMaskedLM": TaskHead("roberta.", _ROBERTA_MASKED, logits=N_V),
        "ForCausalLM": TaskHead("roberta.", _ROBERTA_MASKED, logits=N_V),
        "Model": TaskHead(flags=POOLED),
    },
)
ELECTRA = Layout(
    concat(
        _embeddings("d_emb"),
        linear(
            "embeddings_project", "d_emb", "d", ModelPart.EMBEDDING_PROJECTION, bias=ALWAYS, when="narrow_embedding"
        ),
    ),
    _BERT_STACKS,
    {
        "ForMaskedLM": TaskHead(
            "electra.",
            concat(
                _transform("generator_predictions.dense", "generator_predictions.LayerNorm", "d_emb"),
                _output_head("generator_lm_head", "generator_lm_head.bias", "d_emb"),
            ),
            logits=N_V,
        ),
        "Model": TaskHead(),
    },
)
DISTILBERT = Layout(
    concat(
        embedding_table("embeddings.word_embeddings", "V", "d"),
        embedding_table("embeddings.position_embeddings", "P", "d", ModelPart.POSITION_TABLE),
        norm("embeddings.LayerNorm", "d", ModelPart.EMBEDDING_NORM, bias=ALWAYS),
    ),
    layers(
        "transformer.layer.{i}.",
        projections("attention.", "q_lin k_lin v_lin out_lin"),
        norms("sa_layer_norm", bias=ALWAYS),
        mlp("ffn.lin1 ffn.lin2"),
        norms("output_layer_norm", bias=ALWAYS),
    ),
    {
        "ForMaskedLM": TaskHead(
            "distilbert.",
            concat(
                _transform("vocab_transform", "vocab_layer_norm"),
                _output_head("vocab_projector", "vocab_projector.bias"),
            ),
            logits=N_V,
        ),
        "Model": TaskHead(),
    },
)
# ALBERT stores one layer (or one for each of L_stored groups) and runs it L times (Lan et al., arXiv:1909.11942).
ALBERT = Layout(
    concat(
        _embeddings("d_emb"),
        linear("encoder.embedding_hidden_mapping_in", "d_emb", "d", ModelPart.EMBEDDING_PROJECTION, bias=ALWAYS),
        linear("pooler", "d", "d", ModelPart.POOLER, bias=ALWAYS, when="pooler"),
    ),
    layers(
        "encoder.albert_layer_groups.{i}.albert_layers.0.",
        norms("full_layer_layer_norm", bias=ALWAYS),
        projections("attention.", "query key value dense"),
        norms("attention.LayerNorm", bias=ALWAYS),
        mlp("ffn ffn_output"),
        count="L_stored",
    ),
    {
        "ForMaskedLM": TaskHead(
            "albert.",
            concat(
                _transform("predictions.dense", "predictions.LayerNorm", "d_emb"),
                _output_head("predictions.decoder", "predictions.bias", "d_emb"),
            ),
            logits=N_V,
        ),
        "Model": TaskHead(flags=POOLED),
    },
)
MODERNBERT = Layout(
    concat(
        embedding_table("embeddings.tok_embeddings", "V", "d"),
        norm("embeddings.norm", "d", ModelPart.EMBEDDING_NORM, bias="norm_bias"),
        norm("final_norm", "d", ModelPart.FINAL_NORM, bias="norm_bias"),
    ),
    layers(
        "layers.{i}.",
        norms("attn_norm", bias="norm_bias", when="!first"),
        fused_qkv("attn.", "Wqkv Wo"),
        norms("mlp_norm", bias="norm_bias"),
        linear("mlp.Wi", "d", "2*d_ff", ModelPart.FEED_FORWARD, bias="mlp_bias"),
        linear("mlp.Wo", "d_ff", "d", ModelPart.FEED_FORWARD, bias="mlp_bias"),
    ),
    {
        "ForMaskedLM": TaskHead(
            "model.",
            concat(
                linear("head.dense", "d", "d", ModelPart.HEAD_TRANSFORM, bias="classifier_bias"),
                norm("head.norm", "d", ModelPart.HEAD_TRANSFORM, bias="norm_bias"),
                linear("decoder", "d", "V", ModelPart.OUTPUT_HEAD, when="!tied"),
                vector("decoder.bias", "V", ModelPart.OUTPUT_BIAS, when="decoder_bias"),
            ),
            logits=N_V,
        ),
        "Model": TaskHead(),
    },
    ALWAYS,
)
_DEBERTA_RELATIVE = embedding_table("encoder.rel_embeddings", "2*R", "d", ModelPart.RELATIVE_TABLE, when="relative")
_DEBERTA_EMBEDDINGS = _embeddings("d", position_when="positions", type_when="types")
_DEBERTA_MASKED = concat(
    _transform("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", when="legacy"),
    _output_head("cls.predictions.decoder", "cls.predictions.bias", when="legacy"),
    _transform("lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm", when="!legacy"),
    vector("lm_predictions.lm_head.bias", "V", ModelPart.OUTPUT_BIAS, when="!legacy"),
)
_DEBERTA_HEADS = {
    "ForMaskedLM": TaskHead("deberta.", _DEBERTA_MASKED, logits=N_V),
    "Model": TaskHead(),
}
# Disentangled attention (He et al., arXiv:2006.03654): 2R relative positions in a table, with separate projections.
DEBERTA = Layout(
    concat(_DEBERTA_EMBEDDINGS, _DEBERTA_RELATIVE),
    layers(
        "encoder.layer.{i}.",
        vector("attention.self.q_bias", "H*d_h", ModelPart.ATTENTION),
        vector("attention.self.v_bias", "H*d_v", ModelPart.ATTENTION),
        linear("attention.self.in_proj", "d", "2*H*d_h + H*d_v", ModelPart.ATTENTION, fused="by-head"),
        linear("attention.self.pos_proj", "d", "H*d_h", ModelPart.RELATIVE_POSITIONS, when="relative c2p"),
        linear(
            "attention.self.pos_q_proj", "d", "H*d_h", ModelPart.RELATIVE_POSITIONS, bias=ALWAYS, when="relative p2c"
        ),
        _AFTER_PROJECTIONS,
    ),
    _DEBERTA_HEADS,
)
DEBERTA_V2 = Layout(
    concat(
        _DEBERTA_EMBEDDINGS,
        _DEBERTA_RELATIVE,
        norm("encoder.LayerNorm", "d", ModelPart.RELATIVE_POSITIONS, bias=ALWAYS, when="relative_norm"),
        tensor("encoder.conv.conv.weight", "d, d, K", ModelPart.CONVOLUTION, when="convolution"),
        vector("encoder.conv.conv.bias", "d", ModelPart.CONVOLUTION, when="convolution"),
        norm("encoder.conv.LayerNorm", "d", ModelPart.CONVOLUTION, bias=ALWAYS, when="convolution"),
    ),
    layers(
        "encoder.layer.{i}.",
        _bert_layer("query_proj key_proj value_proj"),
        *(
            linear(f"attention.self.{name}", "d", "H*d_h", ModelPart.RELATIVE_POSITIONS, bias=ALWAYS, when=when)
            for name, when in (
                ("pos_key_proj", "relative !shared_key c2p"),
                ("pos_query_proj", "relative !shared_key p2c"),
            )
        ),
    ),
    _DEBERTA_HEADS,
)
# The tokens are an image's patches and one class token (Dosovitskiy et al., arXiv:2010.11929): P in total.
VIT = Layout(
    concat(
        tensor("embeddings.cls_token", "1, 1, d", ModelPart.PATCHES),
        tensor("embeddings.position_embeddings", "1, P, d", ModelPart.POSITION_TABLE, "table"),
        tensor("embeddings.patch_embeddings.projection.weight", "d, c, p, p", ModelPart.PATCHES),
        vector("embeddings.patch_embeddings.projection.bias", "d", ModelPart.PATCHES),
        norm("layernorm", "d", ModelPart.FINAL_NORM, bias=ALWAYS),
        linear("pooler.dense", "d", "d_pool", ModelPart.POOLER, bias=ALWAYS, when="pooler"),
    ),
    layers(
        "layers.{i}.",
        projections("attention.", "q_proj k_proj v_proj o_proj"),
        norms("layernorm_before layernorm_after", bias=ALWAYS),
        mlp("mlp.fc1 mlp.fc2"),
    ),
    {"ForImageClassification": TaskHead("vit.", _CLASSIFIER, logits=ONE_LABELS), "Model": TaskHead(flags=POOLED)},
)
CLIP_TEXT = Layout(
    concat(
        embedding_table("embeddings.token_embedding", "V", "d"),
        embedding_table("embeddings.position_embedding", "P", "d", ModelPart.POSITION_TABLE),
        norm("final_layer_norm", "d", ModelPart.FINAL_NORM, bias=ALWAYS),
    ),
    layers(
        "encoder.layers.{i}.",
        projections(SELF, "q_proj k_proj v_proj out_proj"),
        norms("layer_norm1 layer_norm2", bias=ALWAYS),
        mlp("mlp.fc1 mlp.fc2"),
    ),
    {
        "Model": TaskHead(),
        "ModelWithProjection": TaskHead(
            "text_model.",
            linear("text_projection", "d", "d_proj", ModelPart.TASK_HEAD),
            logits=parse_shape("1", "d_proj"),
        ),
    },
)
