"""Layouts of encoders and of encoder-decoders: BERT and its line, ViT, CLIP's text part, T5, BART, Whisper."""

from __future__ import annotations

from collections.abc import Mapping

from app.models.layouts.blocks import SELF, Weights, fused, norms, plain, projections
from app.models.parameter_specs import (
    ALWAYS,
    ATTENTION,
    EMBEDDING,
    MLP,
    OTHER,
    OUTPUT_HEAD,
    Head,
    Layout,
    Stack,
    both,
    dims,
    layer,
    linear,
    norm,
    table,
    tensor,
    vector,
)

N_V = (dims("N")[0], dims("V")[0])
N_LABELS = (dims("N")[0], dims("labels")[0])
ONE_LABELS = (dims("1")[0], dims("labels")[0])
N_ONE = (dims("N")[0], dims("1")[0])
POOLED = frozenset({"pooler"})


def _transform(dense: str, last_norm: str, width: str = "d", *, when: str = ALWAYS) -> Weights:
    """What an encoder puts before its vocabulary: one more layer and a norm."""
    return layer(
        linear(dense, "d", width, OTHER, bias=ALWAYS, when=when),
        norm(last_norm, width, OTHER, bias=ALWAYS, when=when),
    )


def _decoder(name: str, bias: str, width: str = "d", *, when: str = ALWAYS) -> Weights:
    """The output head: its matrix and bias are the embedding and `bias` where tied, and its own where not."""
    own = f"{name}.bias" == bias  # then there is one bias, not two of which one may be the other
    return layer(
        linear(name, width, "V", OUTPUT_HEAD, bias=ALWAYS, when=both("!tied", when)),
        vector(bias, "V", OTHER, when=both("tied", when) if own else when),
    )


def _classifiers(prefix: str, pooled: Weights, flags: frozenset[str] = frozenset()) -> dict[str, Head]:
    """Classes for whole texts, for tokens, and for spans; only the first needs something pooled."""
    return {
        "ForSequenceClassification": Head(prefix, pooled, flags, logits=ONE_LABELS),
        "ForTokenClassification": Head(
            prefix, linear("classifier", "d", "labels", OTHER, bias=ALWAYS), logits=N_LABELS
        ),
        "ForQuestionAnswering": Head(prefix, linear("qa_outputs", "d", "labels", OTHER, bias=ALWAYS), logits=N_LABELS),
    }


_CLASSIFIER = linear("classifier", "d", "labels", OTHER, bias=ALWAYS)


def _embeddings(width: str, *, position_when: str = ALWAYS, type_when: str = ALWAYS) -> Weights:
    return layer(
        table("embeddings.word_embeddings", "V", width),
        table("embeddings.position_embeddings", "P", width, when=position_when),
        table("embeddings.token_type_embeddings", "T", width, when=type_when),
        norm("embeddings.LayerNorm", width, OTHER, bias=ALWAYS),
    )


_POOLER = linear("pooler.dense", "d", "d", OTHER, bias=ALWAYS, when="pooler")
_AFTER = layer(
    linear("attention.output.dense", "H*d_v", "d", ATTENTION, bias=ALWAYS),
    norms("attention.output.LayerNorm", bias=ALWAYS),
    plain("intermediate.dense output.dense"),
    norms("output.LayerNorm", bias=ALWAYS),
)


def _encoder(names: str = "query key value") -> Weights:
    q, k, v = (f"attention.self.{name}" for name in names.split())
    return layer(
        linear(q, "d", "H*d_h", ATTENTION, bias="q"),
        linear(k, "d", "G*d_h", ATTENTION, bias="k"),
        linear(v, "d", "G*d_v", ATTENTION, bias="v"),
        _AFTER,
    )


_BERT_LAYER = (Stack("encoder.layer.{i}.", "L", _encoder()),)
_BERT_MASKED = layer(
    _transform("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    _decoder("cls.predictions.decoder", "cls.predictions.bias"),
)
_NEXT_SENTENCE = linear("cls.seq_relationship", "d", "2", OTHER, bias=ALWAYS)
BERT = Layout(
    layer(_embeddings("d"), _POOLER),
    _BERT_LAYER,
    {
        "ForMaskedLM": Head("bert.", _BERT_MASKED, logits=N_V),
        "LMHeadModel": Head("bert.", _BERT_MASKED, logits=N_V),
        "ForPreTraining": Head("bert.", layer(_BERT_MASKED, _NEXT_SENTENCE), POOLED, logits=N_V),
        "ForNextSentencePrediction": Head("bert.", _NEXT_SENTENCE, POOLED, logits=(dims("1")[0], dims("2")[0])),
        "Model": Head(flags=POOLED),
        **_classifiers("bert.", _CLASSIFIER, POOLED),
    },
)


def _roberta_heads(prefix: str) -> Mapping[str, Head]:
    masked = layer(_transform("lm_head.dense", "lm_head.layer_norm"), _decoder("lm_head.decoder", "lm_head.bias"))
    whole = layer(
        linear("classifier.dense", "d", "d", OTHER, bias=ALWAYS),
        linear("classifier.out_proj", "d", "labels", OTHER, bias=ALWAYS),
    )
    return {
        "ForMaskedLM": Head(prefix, masked, logits=N_V),
        "ForCausalLM": Head(prefix, masked, logits=N_V),
        "Model": Head(flags=POOLED),
        **_classifiers(prefix, whole),
    }


ROBERTA = Layout(layer(_embeddings("d"), _POOLER), _BERT_LAYER, _roberta_heads("roberta."))
ELECTRA = Layout(
    layer(
        _embeddings("d_emb"),
        linear("embeddings_project", "d_emb", "d", OTHER, bias=ALWAYS, when="narrow_embedding"),
    ),
    _BERT_LAYER,
    {
        "ForPreTraining": Head(
            "electra.",
            layer(
                linear("discriminator_predictions.dense", "d", "d", OTHER, bias=ALWAYS),
                linear("discriminator_predictions.dense_prediction", "d", "1", OTHER, bias=ALWAYS),
            ),
            logits=N_ONE,
        ),
        "ForMaskedLM": Head(
            "electra.",
            layer(
                _transform("generator_predictions.dense", "generator_predictions.LayerNorm", "d_emb"),
                _decoder("generator_lm_head", "generator_lm_head.bias", "d_emb"),
            ),
            logits=N_V,
        ),
        "Model": Head(),
        **_classifiers(
            "electra.",
            layer(
                linear("classifier.dense", "d", "d", OTHER, bias=ALWAYS),
                linear("classifier.out_proj", "d", "labels", OTHER, bias=ALWAYS),
            ),
        ),
    },
)
DISTILBERT = Layout(
    layer(
        table("embeddings.word_embeddings", "V", "d"),
        table("embeddings.position_embeddings", "P", "d"),
        norm("embeddings.LayerNorm", "d", OTHER, bias=ALWAYS),
    ),
    (
        Stack(
            "transformer.layer.{i}.",
            "L",
            layer(
                projections("attention.", "q_lin k_lin v_lin out_lin"),
                norms("sa_layer_norm", bias=ALWAYS),
                plain("ffn.lin1 ffn.lin2"),
                norms("output_layer_norm", bias=ALWAYS),
            ),
        ),
    ),
    {
        "ForMaskedLM": Head(
            "distilbert.",
            layer(
                _transform("vocab_transform", "vocab_layer_norm"), _decoder("vocab_projector", "vocab_projector.bias")
            ),
            logits=N_V,
        ),
        "Model": Head(),
        **_classifiers("distilbert.", layer(linear("pre_classifier", "d", "d", OTHER, bias=ALWAYS), _CLASSIFIER)),
    },
)
# ALBERT stores one layer (or one for each of L_stored groups) and runs it L times (Lan et al., arXiv:1909.11942).
ALBERT = Layout(
    layer(
        _embeddings("d_emb"),
        linear("encoder.embedding_hidden_mapping_in", "d_emb", "d", OTHER, bias=ALWAYS),
        linear("pooler", "d", "d", OTHER, bias=ALWAYS, when="pooler"),
    ),
    (
        Stack(
            "encoder.albert_layer_groups.{i}.albert_layers.0.",
            "L_stored",
            layer(
                norms("full_layer_layer_norm", bias=ALWAYS),
                projections("attention.", "query key value dense"),
                norms("attention.LayerNorm", bias=ALWAYS),
                plain("ffn ffn_output"),
            ),
        ),
    ),
    {
        "ForMaskedLM": Head(
            "albert.",
            layer(
                _transform("predictions.dense", "predictions.LayerNorm", "d_emb"),
                _decoder("predictions.decoder", "predictions.bias", "d_emb"),
            ),
            logits=N_V,
        ),
        "ForPreTraining": Head(
            "albert.",
            layer(
                _transform("predictions.dense", "predictions.LayerNorm", "d_emb"),
                _decoder("predictions.decoder", "predictions.bias", "d_emb"),
                linear("sop_classifier.classifier", "d", "labels", OTHER, bias=ALWAYS),
            ),
            POOLED,
            logits=N_V,
        ),
        "Model": Head(flags=POOLED),
        **_classifiers("albert.", _CLASSIFIER, POOLED),
    },
)
MODERNBERT = Layout(
    layer(
        table("embeddings.tok_embeddings", "V", "d"),
        norm("embeddings.norm", "d", OTHER, bias="norm_bias"),
        norm("final_norm", "d", OTHER, bias="norm_bias"),
    ),
    (
        Stack(
            "layers.{i}.",
            "L",
            layer(
                norms("attn_norm", bias="norm_bias", when="!first"),
                fused("attn.", "Wqkv Wo"),
                norms("mlp_norm", bias="norm_bias"),
                linear("mlp.Wi", "d", "2*d_ff", MLP, bias="mlp_bias"),
                linear("mlp.Wo", "d_ff", "d", MLP, bias="mlp_bias"),
            ),
        ),
    ),
    {
        "ForMaskedLM": Head(
            "model.",
            layer(
                linear("head.dense", "d", "d", OTHER, bias="classifier_bias"),
                norm("head.norm", "d", OTHER, bias="norm_bias"),
                linear("decoder", "d", "V", OUTPUT_HEAD, when="!tied"),
                vector("decoder.bias", "V", OTHER, when="decoder_bias"),
            ),
            logits=N_V,
        ),
        "Model": Head(),
    },
    ALWAYS,
)
_DEBERTA_RELATIVE = table("encoder.rel_embeddings", "2*R", "d", when="relative")
_DEBERTA_EMBEDDINGS = layer(
    table("embeddings.word_embeddings", "V", "d"),
    table("embeddings.position_embeddings", "P", "d", when="positions"),
    table("embeddings.token_type_embeddings", "T", "d", when="types"),
    norm("embeddings.LayerNorm", "d", OTHER, bias=ALWAYS),
)
_DEBERTA_CLASSIFIER = layer(linear("pooler.dense", "d", "d", OTHER, bias=ALWAYS), _CLASSIFIER)
_DEBERTA_MASKED = layer(
    _transform("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", when="legacy"),
    _decoder("cls.predictions.decoder", "cls.predictions.bias", when="legacy"),
    _transform("lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm", when="!legacy"),
    vector("lm_predictions.lm_head.bias", "V", OTHER, when="!legacy"),
)
_DEBERTA_HEADS = {
    "ForMaskedLM": Head("deberta.", _DEBERTA_MASKED, logits=N_V),
    "Model": Head(),
    **_classifiers("deberta.", _DEBERTA_CLASSIFIER),
}
# Disentangled attention (He et al., arXiv:2006.03654): a table of 2R relative positions, with projections of its own.
DEBERTA = Layout(
    layer(_DEBERTA_EMBEDDINGS, _DEBERTA_RELATIVE),
    (
        Stack(
            "encoder.layer.{i}.",
            "L",
            layer(
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
    layer(
        _DEBERTA_EMBEDDINGS,
        _DEBERTA_RELATIVE,
        norm("encoder.LayerNorm", "d", OTHER, bias=ALWAYS, when="relative_norm"),
        tensor("encoder.conv.conv.weight", "d, d, K", OTHER, when="convolution"),
        vector("encoder.conv.conv.bias", "d", OTHER, when="convolution"),
        norm("encoder.conv.LayerNorm", "d", OTHER, bias=ALWAYS, when="convolution"),
    ),
    (
        Stack(
            "encoder.layer.{i}.",
            "L",
            layer(
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
    layer(
        tensor("embeddings.cls_token", "1, 1, d", OTHER),
        tensor("embeddings.position_embeddings", "1, P, d", EMBEDDING),
        tensor("embeddings.patch_embeddings.projection.weight", "d, c, p, p", OTHER),
        vector("embeddings.patch_embeddings.projection.bias", "d", OTHER),
        norm("layernorm", "d", OTHER, bias=ALWAYS),
        linear("pooler.dense", "d", "d_pool", OTHER, bias=ALWAYS, when="pooler"),
    ),
    (
        Stack(
            "layers.{i}.",
            "L",
            layer(
                projections("attention.", "q_proj k_proj v_proj o_proj"),
                norms("layernorm_before layernorm_after", bias=ALWAYS),
                plain("mlp.fc1 mlp.fc2"),
            ),
        ),
    ),
    {"ForImageClassification": Head("vit.", _CLASSIFIER, logits=ONE_LABELS), "Model": Head(flags=POOLED)},
)
CLIP_TEXT = Layout(
    layer(
        table("embeddings.token_embedding", "V", "d"),
        table("embeddings.position_embedding", "P", "d"),
        norm("final_layer_norm", "d", OTHER, bias=ALWAYS),
    ),
    (
        Stack(
            "encoder.layers.{i}.",
            "L",
            layer(
                projections(SELF, "q_proj k_proj v_proj out_proj"),
                norms("layer_norm1 layer_norm2", bias=ALWAYS),
                plain("mlp.fc1 mlp.fc2"),
            ),
        ),
    ),
    {
        "Model": Head(),
        "ModelWithProjection": Head(
            "text_model.", linear("text_projection", "d", "d_proj", OTHER), logits=(dims("1")[0], dims("d_proj")[0])
        ),
    },
)
