"""Layouts of encoders and of encoder-decoders: BERT and its line, ViT, CLIP's text part, T5, BART, Whisper."""

from __future__ import annotations

from collections.abc import Mapping

from app.models.layouts.blocks import SELF, fused_qkv, mlp, norms, projections
from app.models.parameter_specs import (
    ALWAYS,
    ATTENTION,
    EMBEDDING,
    MLP,
    OTHER,
    OUTPUT_HEAD,
    Layout,
    ParameterSpecs,
    StackSpec,
    TaskHead,
    and_also,
    concat,
    embedding_table,
    linear,
    norm,
    parse_shape,
    tensor,
    vector,
)

N_V = parse_shape("N", "V")
N_LABELS = parse_shape("N", "labels")
ONE_LABELS = parse_shape("1", "labels")
N_ONE = parse_shape("N", "1")
POOLED = frozenset({"pooler"})


def _transform(dense: str, last_norm: str, width: str = "d", *, when: str = ALWAYS) -> ParameterSpecs:
    """What an encoder puts before its vocabulary: one more layer and a norm."""
    return concat(
        linear(dense, "d", width, OTHER, bias=ALWAYS, when=when),
        norm(last_norm, width, OTHER, bias=ALWAYS, when=when),
    )


def _decoder(name: str, bias: str, width: str = "d", *, when: str = ALWAYS) -> ParameterSpecs:
    """The output head: its matrix and bias are the embedding and `bias` where tied, and its own where not."""
    own = f"{name}.bias" == bias  # then there is one bias, not two of which one may be the other
    return concat(
        linear(name, width, "V", OUTPUT_HEAD, bias=ALWAYS, when=and_also("!tied", when)),
        vector(bias, "V", OTHER, when=and_also("tied", when) if own else when),
    )


def _classifiers(prefix: str, pooled: ParameterSpecs, flags: frozenset[str] = frozenset()) -> dict[str, TaskHead]:
    """Classes for whole texts, for tokens, and for spans; only the first needs something pooled."""
    return {
        "ForSequenceClassification": TaskHead(prefix, pooled, flags, logits=ONE_LABELS),
        "ForTokenClassification": TaskHead(
            prefix, linear("classifier", "d", "labels", OTHER, bias=ALWAYS), logits=N_LABELS
        ),
        "ForQuestionAnswering": TaskHead(
            prefix, linear("qa_outputs", "d", "labels", OTHER, bias=ALWAYS), logits=N_LABELS
        ),
    }


_CLASSIFIER = linear("classifier", "d", "labels", OTHER, bias=ALWAYS)


def _embeddings(width: str, *, position_when: str = ALWAYS, type_when: str = ALWAYS) -> ParameterSpecs:
    return concat(
        embedding_table("embeddings.word_embeddings", "V", width),
        embedding_table("embeddings.position_embeddings", "P", width, when=position_when),
        embedding_table("embeddings.token_type_embeddings", "T", width, when=type_when),
        norm("embeddings.LayerNorm", width, OTHER, bias=ALWAYS),
    )


_POOLER = linear("pooler.dense", "d", "d", OTHER, bias=ALWAYS, when="pooler")
_AFTER = concat(
    linear("attention.output.dense", "H*d_v", "d", ATTENTION, bias=ALWAYS),
    norms("attention.output.LayerNorm", bias=ALWAYS),
    mlp("intermediate.dense output.dense"),
    norms("output.LayerNorm", bias=ALWAYS),
)


def _encoder(names: str = "query key value") -> ParameterSpecs:
    q, k, v = (f"attention.self.{name}" for name in names.split())
    return concat(
        linear(q, "d", "H*d_h", ATTENTION, bias="q"),
        linear(k, "d", "G*d_h", ATTENTION, bias="k"),
        linear(v, "d", "G*d_v", ATTENTION, bias="v"),
        _AFTER,
    )


_BERT_LAYER = (StackSpec("encoder.layer.{i}.", "L", _encoder()),)
_BERT_MASKED = concat(
    _transform("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    _decoder("cls.predictions.decoder", "cls.predictions.bias"),
)
_NEXT_SENTENCE = linear("cls.seq_relationship", "d", "2", OTHER, bias=ALWAYS)
BERT = Layout(
    concat(_embeddings("d"), _POOLER),
    _BERT_LAYER,
    {
        "ForMaskedLM": TaskHead("bert.", _BERT_MASKED, logits=N_V),
        "LMHeadModel": TaskHead("bert.", _BERT_MASKED, logits=N_V),
        "ForPreTraining": TaskHead("bert.", concat(_BERT_MASKED, _NEXT_SENTENCE), POOLED, logits=N_V),
        "ForNextSentencePrediction": TaskHead("bert.", _NEXT_SENTENCE, POOLED, logits=parse_shape("1", "2")),
        "Model": TaskHead(flags=POOLED),
        **_classifiers("bert.", _CLASSIFIER, POOLED),
    },
)


def _roberta_heads(prefix: str) -> Mapping[str, TaskHead]:
    masked = concat(_transform("lm_head.dense", "lm_head.layer_norm"), _decoder("lm_head.decoder", "lm_head.bias"))
    whole = concat(
        linear("classifier.dense", "d", "d", OTHER, bias=ALWAYS),
        linear("classifier.out_proj", "d", "labels", OTHER, bias=ALWAYS),
    )
    return {
        "ForMaskedLM": TaskHead(prefix, masked, logits=N_V),
        "ForCausalLM": TaskHead(prefix, masked, logits=N_V),
        "Model": TaskHead(flags=POOLED),
        **_classifiers(prefix, whole),
    }


ROBERTA = Layout(concat(_embeddings("d"), _POOLER), _BERT_LAYER, _roberta_heads("roberta."))
ELECTRA = Layout(
    concat(
        _embeddings("d_emb"),
        linear("embeddings_project", "d_emb", "d", OTHER, bias=ALWAYS, when="narrow_embedding"),
    ),
    _BERT_LAYER,
    {
        "ForPreTraining": TaskHead(
            "electra.",
            concat(
                linear("discriminator_predictions.dense", "d", "d", OTHER, bias=ALWAYS),
                linear("discriminator_predictions.dense_prediction", "d", "1", OTHER, bias=ALWAYS),
            ),
            logits=N_ONE,
        ),
        "ForMaskedLM": TaskHead(
            "electra.",
            concat(
                _transform("generator_predictions.dense", "generator_predictions.LayerNorm", "d_emb"),
                _decoder("generator_lm_head", "generator_lm_head.bias", "d_emb"),
            ),
            logits=N_V,
        ),
        "Model": TaskHead(),
        **_classifiers(
            "electra.",
            concat(
                linear("classifier.dense", "d", "d", OTHER, bias=ALWAYS),
                linear("classifier.out_proj", "d", "labels", OTHER, bias=ALWAYS),
            ),
        ),
    },
)
DISTILBERT = Layout(
    concat(
        embedding_table("embeddings.word_embeddings", "V", "d"),
        embedding_table("embeddings.position_embeddings", "P", "d"),
        norm("embeddings.LayerNorm", "d", OTHER, bias=ALWAYS),
    ),
    (
        StackSpec(
            "transformer.layer.{i}.",
            "L",
            concat(
                projections("attention.", "q_lin k_lin v_lin out_lin"),
                norms("sa_layer_norm", bias=ALWAYS),
                mlp("ffn.lin1 ffn.lin2"),
                norms("output_layer_norm", bias=ALWAYS),
            ),
        ),
    ),
    {
        "ForMaskedLM": TaskHead(
            "distilbert.",
            concat(
                _transform("vocab_transform", "vocab_layer_norm"), _decoder("vocab_projector", "vocab_projector.bias")
            ),
            logits=N_V,
        ),
        "Model": TaskHead(),
        **_classifiers("distilbert.", concat(linear("pre_classifier", "d", "d", OTHER, bias=ALWAYS), _CLASSIFIER)),
    },
)
# ALBERT stores one layer (or one for each of L_stored groups) and runs it L times (Lan et al., arXiv:1909.11942).
ALBERT = Layout(
    concat(
        _embeddings("d_emb"),
        linear("encoder.embedding_hidden_mapping_in", "d_emb", "d", OTHER, bias=ALWAYS),
        linear("pooler", "d", "d", OTHER, bias=ALWAYS, when="pooler"),
    ),
    (
        StackSpec(
            "encoder.albert_layer_groups.{i}.albert_layers.0.",
            "L_stored",
            concat(
                norms("full_layer_layer_norm", bias=ALWAYS),
                projections("attention.", "query key value dense"),
                norms("attention.LayerNorm", bias=ALWAYS),
                mlp("ffn ffn_output"),
            ),
        ),
    ),
    {
        "ForMaskedLM": TaskHead(
            "albert.",
            concat(
                _transform("predictions.dense", "predictions.LayerNorm", "d_emb"),
                _decoder("predictions.decoder", "predictions.bias", "d_emb"),
            ),
            logits=N_V,
        ),
        "ForPreTraining": TaskHead(
            "albert.",
            concat(
                _transform("predictions.dense", "predictions.LayerNorm", "d_emb"),
                _decoder("predictions.decoder", "predictions.bias", "d_emb"),
                linear("sop_classifier.classifier", "d", "labels", OTHER, bias=ALWAYS),
            ),
            POOLED,
            logits=N_V,
        ),
        "Model": TaskHead(flags=POOLED),
        **_classifiers("albert.", _CLASSIFIER, POOLED),
    },
)
MODERNBERT = Layout(
    concat(
        embedding_table("embeddings.tok_embeddings", "V", "d"),
        norm("embeddings.norm", "d", OTHER, bias="norm_bias"),
        norm("final_norm", "d", OTHER, bias="norm_bias"),
    ),
    (
        StackSpec(
            "layers.{i}.",
            "L",
            concat(
                norms("attn_norm", bias="norm_bias", when="!first"),
                fused_qkv("attn.", "Wqkv Wo"),
                norms("mlp_norm", bias="norm_bias"),
                linear("mlp.Wi", "d", "2*d_ff", MLP, bias="mlp_bias"),
                linear("mlp.Wo", "d_ff", "d", MLP, bias="mlp_bias"),
            ),
        ),
    ),
    {
        "ForMaskedLM": TaskHead(
            "model.",
            concat(
                linear("head.dense", "d", "d", OTHER, bias="classifier_bias"),
                norm("head.norm", "d", OTHER, bias="norm_bias"),
                linear("decoder", "d", "V", OUTPUT_HEAD, when="!tied"),
                vector("decoder.bias", "V", OTHER, when="decoder_bias"),
            ),
            logits=N_V,
        ),
        "Model": TaskHead(),
    },
    ALWAYS,
)
_DEBERTA_RELATIVE = embedding_table("encoder.rel_embeddings", "2*R", "d", when="relative")
_DEBERTA_EMBEDDINGS = concat(
    embedding_table("embeddings.word_embeddings", "V", "d"),
    embedding_table("embeddings.position_embeddings", "P", "d", when="positions"),
    embedding_table("embeddings.token_type_embeddings", "T", "d", when="types"),
    norm("embeddings.LayerNorm", "d", OTHER, bias=ALWAYS),
)
_DEBERTA_CLASSIFIER = concat(linear("pooler.dense", "d", "d", OTHER, bias=ALWAYS), _CLASSIFIER)
_DEBERTA_MASKED = concat(
    _transform("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", when="legacy"),
    _decoder("cls.predictions.decoder", "cls.predictions.bias", when="legacy"),
    _transform("lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm", when="!legacy"),
    vector("lm_predictions.lm_head.bias", "V", OTHER, when="!legacy"),
)
_DEBERTA_HEADS = {
    "ForMaskedLM": TaskHead("deberta.", _DEBERTA_MASKED, logits=N_V),
    "Model": TaskHead(),
    **_classifiers("deberta.", _DEBERTA_CLASSIFIER),
}
# Disentangled attention (He et al., arXiv:2006.03654): a table of 2R relative positions, with projections of its own.
DEBERTA = Layout(
    concat(_DEBERTA_EMBEDDINGS, _DEBERTA_RELATIVE),
    (
        StackSpec(
            "encoder.layer.{i}.",
            "L",
            concat(
                vector("attention.self.q_bias", "H*d_h", ATTENTION),
                vector("attention.self.v_bias", "H*d_v", ATTENTION),
                linear("attention.self.in_proj", "d", "2*H*d_h + H*d_v", ATTENTION),
                linear("attention.self.pos_proj", "d", "H*d_h", OTHER, when="relative c2p"),
                linear("attention.self.pos_q_proj", "d", "H*d_h", OTHER, bias=ALWAYS, when="relative p2c"),
                _AFTER,
            ),
        ),
    ),
    _DEBERTA_HEADS,
)
DEBERTA_V2 = Layout(
    concat(
        _DEBERTA_EMBEDDINGS,
        _DEBERTA_RELATIVE,
        norm("encoder.LayerNorm", "d", OTHER, bias=ALWAYS, when="relative_norm"),
        tensor("encoder.conv.conv.weight", "d, d, K", OTHER, when="convolution"),
        vector("encoder.conv.conv.bias", "d", OTHER, when="convolution"),
        norm("encoder.conv.LayerNorm", "d", OTHER, bias=ALWAYS, when="convolution"),
    ),
    (
        StackSpec(
            "encoder.layer.{i}.",
            "L",
            concat(
                _encoder("query_proj key_proj value_proj"),
                linear(
                    "attention.self.pos_key_proj", "d", "H*d_h", OTHER, bias=ALWAYS, when="relative !shared_key c2p"
                ),
                linear(
                    "attention.self.pos_query_proj", "d", "H*d_h", OTHER, bias=ALWAYS, when="relative !shared_key p2c"
                ),
            ),
        ),
    ),
    _DEBERTA_HEADS,
)
# An image is cut into patches, and these are the tokens (Dosovitskiy et al., arXiv:2010.11929); P is their number + 1.
VIT = Layout(
    concat(
        tensor("embeddings.cls_token", "1, 1, d", OTHER),
        tensor("embeddings.position_embeddings", "1, P, d", EMBEDDING),
        tensor("embeddings.patch_embeddings.projection.weight", "d, c, p, p", OTHER),
        vector("embeddings.patch_embeddings.projection.bias", "d", OTHER),
        norm("layernorm", "d", OTHER, bias=ALWAYS),
        linear("pooler.dense", "d", "d_pool", OTHER, bias=ALWAYS, when="pooler"),
    ),
    (
        StackSpec(
            "layers.{i}.",
            "L",
            concat(
                projections("attention.", "q_proj k_proj v_proj o_proj"),
                norms("layernorm_before layernorm_after", bias=ALWAYS),
                mlp("mlp.fc1 mlp.fc2"),
            ),
        ),
    ),
    {"ForImageClassification": TaskHead("vit.", _CLASSIFIER, logits=ONE_LABELS), "Model": TaskHead(flags=POOLED)},
)
CLIP_TEXT = Layout(
    concat(
        embedding_table("embeddings.token_embedding", "V", "d"),
        embedding_table("embeddings.position_embedding", "P", "d"),
        norm("final_layer_norm", "d", OTHER, bias=ALWAYS),
    ),
    (
        StackSpec(
            "encoder.layers.{i}.",
            "L",
            concat(
                projections(SELF, "q_proj k_proj v_proj out_proj"),
                norms("layer_norm1 layer_norm2", bias=ALWAYS),
                mlp("mlp.fc1 mlp.fc2"),
            ),
        ),
    ),
    {
        "Model": TaskHead(),
        "ModelWithProjection": TaskHead(
            "text_model.",
            linear("text_projection", "d", "d_proj", OTHER),
            logits=parse_shape("1", "d_proj"),
        ),
    },
)
