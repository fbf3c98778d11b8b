"""The sentences on a model's page: what its sizes mean, how it computes, and its number of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from app.algebra.number_text import format_number
from app.models.architecture import MAX_TOKENS, Architecture, LayerRun, SizeSource
from app.models.parameter_count import ParameterCounts
from app.models.parameter_formula import ParameterFormula, Summand, in_numbers
from app.models.parameter_specs import Bucket
from app.models.table import is_by_hand
from app.translation import gettext as _


def size_meanings() -> dict[str, str]:
    """The meanings of the symbols in a model's sizes, by symbol."""
    return {
        "d": _("embedding dimension"),
        "H": _("query heads per layer"),
        "G": _("key/value heads per layer"),
        "d_h": _("head dimension of queries and keys"),
        "d_v": _("head dimension of values"),
        "d_ff": _("inner dimension of the feed-forward block"),
        "V": _("vocabulary size"),
        "L": _("layers"),
        "C": _("context length: the longest input, in tokens"),
        "P": _("rows of the position table"),
        "P_dec": _("positions in the decoder"),
        "H_dec": _("heads per decoder layer"),
        "d_h_dec": _("head dimension in the decoder"),
        "d_ff_dec": _("inner dimension of the decoder’s feed-forward block"),
        "L_dec": _("decoder layers"),
        "L_stored": _("layers with parameters of their own; all others reuse them"),
        "L_group": _("layers one after the other in each group of parameters"),
        "E": _("experts per layer"),
        "k": _("experts per token"),
        "d_exp": _("inner dimension of one expert"),
        "d_sh": _("inner dimension of the shared expert"),
        "d_dense": _("inner dimension of the feed-forward block in layers without experts"),
        "n_sh": _("shared experts, used for every token"),
        "d_nope": _("dimensions of a key that come from the latent"),
        "d_rope": _("dimensions of a key that RoPE rotates"),
        "r_q": _("dimension of the latent for queries"),
        "r_kv": _("dimension of the latent for keys and values"),
        "d_rot": _("dimensions of a query and a key that RoPE rotates"),
        "d_emb": _("dimension of the token embedding"),
        "d_proj": _("dimension in which texts and images are compared"),
        "d_pool": _("dimension of the pooled output"),
        "T": _("token types"),
        "R": _("relative distances in each direction"),
        "n_buckets": _("buckets of relative distances"),
        "K": _("kernel size of the convolution"),
        "I": _("height and width of the image, in pixels"),
        "p": _("height and width of a patch, in pixels"),
        "c": _("colour channels"),
        "n_side": _("patches along one side of the image"),
        "frames": _("frames of sound that the encoder reads"),
        "bands": _("mel frequency bins"),
        "labels": _("classes of the classifier"),
    }


def reason_for_none(symbol: str) -> str:
    """Why a model has no size of this symbol, or its config doesn't state it."""
    if symbol == "V":
        return _("No vocabulary: this model does not read text.")
    if symbol == "C":
        return _("The config states no context length.")
    return _("This model has no such size.")


def unstated_reason(architecture: Architecture, reading: SizeSource, sizes: Mapping[str, int]) -> str:
    """Why a size has its value if no config field states it; "" if one does.

    Example: '“head_dim” is not stated, so it is d/H = 4096/32.'
    """
    if reading.field:
        return ""
    rule = reading.rule
    values = {"family": architecture.family, "value": format_number(reading.value), "rule": rule.replace("*", "·")}
    numbers = "" if reading.is_default else in_numbers(rule, sizes)
    why = _rule_in_words(reading).format(numbers=numbers, **values)
    if not reading.fields:
        return _("Derived: {why}.").format(why=why)
    sentence = _("“{field}” is not stated, so it is {why}.")
    if reading.is_null:
        sentence = _("“{field}” is null, so it is {why}.")
    return sentence.format(field=reading.fields[0], why=why)


def _rule_in_words(reading: SizeSource) -> str:
    of_size = {
        ("G", "H"): _("equal to the number of query heads"),
        ("G", "1"): _("1: all query heads share one key/value head"),
        ("H_dec", "H"): _("equal to the encoder’s"),
        ("L_dec", "L"): _("equal to the encoder’s"),
        ("d_v", "d_h"): _("equal to the head dimension of keys"),
        ("P", "C"): _("one row per position"),
    }
    symbol, rule = reading.symbol, reading.rule
    if words := of_size.get((symbol, rule)):
        return words
    if reading.is_default or rule.isdigit():
        return _("{value}, the default of {family}")
    if "//" in rule and symbol not in ("d_h", "d_h_dec"):
        return _("{rule} = {numbers}, rounded down")
    return _("equal to {rule}") if re.fullmatch(r"\w+", rule) else _("{rule} = {numbers}")


def property_sentences(a: Architecture) -> Iterator[str]:
    """Yield how a model computes, one or more sentences per property."""
    if a.attention_problem:
        yield a.attention_problem
    else:
        yield from _attention_sentences(a)
    if a.norm_placement:
        yield {
            "pre": _("{norm} before attention and before the feed-forward block (pre-norm)."),
            "post": _("{norm} after each residual addition (post-norm)."),
            "output": _(
                "{norm} on the output of attention and of the feed-forward block, before the residual addition."
            ),
            "sandwich": _("{norm} before and after attention, and before and after the feed-forward block."),
            "parallel": _(
                "Attention and the feed-forward block run in parallel: both read the layer’s input after a norm "
                "({norm}), and both results are added to the input."
            ),
        }[a.norm_placement].format(norm=a.norm)
    if a.gated:
        yield _("Gated feed-forward block: three matrices (gate, up and down).")
    elif not a.layer_problem and any("feed_forward" in kind.rows for kind in a.kinds):
        yield _("Feed-forward block without a gate: two matrices.")
    yield from _expert_sentences(a)
    if not a.has_lm_head:
        yield _("There is no LM head.")
    elif a.tied_embeddings:
        yield _("Tied embeddings: the LM head reuses the token embedding, which is counted once.")
    else:
        yield _("The LM head is a matrix of its own, separate from the token embedding.")
    counted = _("Parameters are counted for {model_class} in transformers.")
    if is_by_hand(a.family):
        counted = _("Parameters are counted for {model_class}, whose code is published outside transformers.")
    yield counted.format(model_class=a.model_class)
    if a.shapes_only:
        yield _("Not known here: where this model has its norms, and how it encodes positions.")
    left_out = _("This model also has {part}. Sheets leave that out, and the model is not run in PyTorch.")
    yield from (left_out.format(part=part) for part in a.not_modelled)


def _attention_sentences(a: Architecture) -> Iterator[str]:
    if a.is_hybrid:
        sentence = _(
            "{n} of the {L} layers have attention with N×N scores, the first of them being layer {first}. The other "
            "layers mix tokens in another way. Sheets about attention are about that first one."
        )
        layers = a.attention_layers
        yield sentence.format(n=len(layers), L=a.L, first=layers[0] + 1)
    elif a.has_mixers:
        yield _("Beside attention, layers also mix tokens in another way, which sheets leave out.")
    if a.encoder_decoder:
        yield _(
            "The encoder attends in both directions. The decoder is causal, and its cross-attention reads the "
            "encoder’s output."
        )
    elif a.causal:
        yield _("Causal self-attention: a token attends to itself and to earlier tokens.")
    else:
        yield _("Bidirectional self-attention: a token attends to earlier and later tokens.")
    yield _kv_heads_sentence(a).format(share=a.query_heads_per_kv_head, **_size_texts(a))
    yield _window_sentence(a)
    if not a.shapes_only:
        yield from _position_sentences(a)
    yield from _score_sentences(a)
    if a.biases:
        names = {"q": _("queries"), "k": _("keys"), "v": _("values"), "o": _("output")}
        which = ", ".join(names[letter] for letter in a.biases)
        yield _("Attention projections with a bias: {which}.").format(which=which)
    else:
        yield _("No biases in the attention projections.")
    if a.qk_norm:
        yield _("QK norm: queries and keys are normalized before the scores.")
    if a.has_sinks:
        yield _("Attention sinks: each head has one more score, which takes part in the softmax and is then dropped.")


def _size_texts(a: Architecture) -> dict[str, str]:
    return {symbol: format_number(size) for symbol, size in a.all_sizes.items()}


def _kv_heads_sentence(a: Architecture) -> str:
    if a.has_latent_attention:
        return _(
            "Multi-head latent attention: the keys and values of all {H} heads are computed from a latent of {r_kv} "
            "dimensions per token. A key has {d_h} dimensions, a value {d_v}."
        )
    if a.H == a.G:
        return _("Multi-head attention: each of the {H} query heads has a key/value head of its own.")
    if a.G == 1:
        return _("Multi-query attention: all {H} query heads share one key/value head.")
    return _("Grouped-query attention: {H} query heads share {G} key/value heads, {share} query heads each.")


def _window_sentence(a: Architecture) -> str:
    runs = [run for stack in a.stacks for run in stack.attending]
    limits = [run.window or run.chunk for run in runs for _layer in range(run.count)]
    limited = [limit for limit in limits if limit is not None]
    if not limited:
        return _("No sliding window: attention covers the whole input.")
    widest = max(limited)
    if any(run.chunk for run in a.runs):
        sentence = _(
            "Chunked attention in {n} of {L} layers: the input is cut into chunks of {W} tokens, and a token attends "
            "within its own chunk."
        )
    elif a.C is not None and min(limited) >= a.C:
        sentence = _(
            "The config states a sliding window of {W} tokens, but the context length is {C}: within that, attention "
            "covers the whole input."
        )
    elif not a.causal:
        sentence = _(
            "Sliding window in {n} of {L} layers: there, a token attends to at most {side} tokens on each side."
        )
    elif len(limited) == len(limits):
        sentence = _("Sliding window: in every layer, a token attends to the last {W} tokens only, itself included.")
    else:
        sentence = _(
            "Sliding window in {n} of {L} layers: there, a token attends to the last {W} tokens only, itself included."
        )
    values = {"W": format_number(widest), "C": format_number(a.C or 0), "side": format_number((widest - 1) // 2)}
    return sentence.format(n=len(limited), L=len(limits), **values)


def _position_sentences(a: Architecture) -> Iterator[str]:
    with_rotary = [run for run in a.runs if run.rotary]
    if with_rotary:
        yield from _rotary_sentences(a, with_rotary)
    elif a.has_position_table and a.max_tokens < MAX_TOKENS:
        sentence = _(
            "Learned or fixed positions: a table has one vector per position, so an input has at most {most} tokens."
        )
        yield sentence.format(most=format_number(a.max_tokens))
    elif not a.position_bias:
        yield _("Sinusoidal positions: computed for any length, without parameters.")
    if a.position_bias:
        yield {
            "relative": _(
                "Relative position bias: distances of query and key are sorted into {n_buckets} buckets, and a learned "
                "number for each head and bucket is added to the scores."
            ),
            "alibi": _(
                "ALiBi: a penalty that grows with the distance between query and key is added to the scores. It has no "
                "parameters."
            ),
            "disentangled": _(
                "Disentangled attention: embeddings of the distance between query and key contribute to the scores."
            ),
        }[a.position_bias].format(**_size_texts(a))
    if a.fixed_tokens is not None:
        # Whisper's encoder begins with a convolution of stride 2; a frame is 10 ms (arXiv:2212.04356, section 2.2).
        frames = 2 * a.fixed_tokens
        yield {
            "text": _("Every input has exactly {n} tokens."),
            "image": _("Every image becomes exactly {n} tokens: its patches and one class token."),
            "sound": _(
                "The encoder always reads {frames} frames ({seconds} seconds of sound). Convolutions turn them into "
                "{n} positions. Shorter recordings are padded."
            ),
        }[a.input].format(n=format_number(a.fixed_tokens), frames=format_number(frames), seconds=f"{frames / 100:g}")


def _rotary_sentences(a: Architecture, with_rotary: Sequence[LayerRun]) -> Iterator[str]:
    common = next((run.rotary for run in with_rotary if not run.window), with_rotary[0].rotary)
    local = next((run.rotary for run in with_rotary if run.window), common)
    if common is None or local is None:
        return
    if common.width == a.d_h:
        sentence = _(
            "RoPE rotates all {width} dimensions of each query and key head (base {theta}); it has no parameters."
        )
    else:
        sentence = _(
            "RoPE rotates {width} of the {d_h} dimensions of each query and key head (base {theta}); it has no "
            "parameters."
        )
    width, d_h = format_number(common.width), format_number(a.d_h)
    yield sentence.format(width=width, d_h=d_h, theta=f"{common.theta:,.0f}")
    if local.theta != common.theta:
        yield _("Layers with a sliding window have a RoPE base of their own, {theta}.").format(
            theta=f"{local.theta:,.0f}"
        )
    layers, rotating = (sum(run.count for run in runs) for runs in (a.runs, with_rotary))
    if rotating < layers:
        yield _("{n} of {L} layers have no RoPE.").format(n=layers - rotating, L=layers)


def _score_sentences(a: Architecture) -> Iterator[str]:
    scale = a.score_scale
    sentence = {
        "inverse-sqrt": _("Scores are divided by √d_h = √{d_h} before the softmax."),
        "none": _("Scores are not scaled before the softmax."),
        "stated": _("Scores are multiplied by {factor} before the softmax, as “{field}” says, instead of 1/√d_h."),
        "root": _("Scores are divided by √{number} before the softmax, not by √d_h, because of “{field}”."),
        "yarn": _(
            "Scores are divided by √d_h = √{d_h} before the softmax and multiplied by {number}, YaRN’s constant for "
            "long inputs (computed from “{field}”): by {factor} in all."
        ),
    }[scale.kind]
    numbers = {"factor": f"{scale.factor:.4g}", "number": f"{scale.number:.4g}", "d_h": format_number(a.d_h)}
    yield sentence.format(field=scale.field, **numbers)
    if a.score_softcap is not None:
        capped = _("Scores are softcapped at {cap}: a score s becomes {cap}·tanh(s/{cap}).")
        yield capped.format(cap=f"{a.score_softcap:g}")


def _expert_sentences(a: Architecture) -> Iterator[str]:
    if not a.has_experts:
        return
    shared = _shared_experts(a)
    if shared == 0:
        sentence = _("Mixture of experts in {n} of {L} layers: a router sends each token to {k} of {E} experts.")
    elif shared == 1:
        sentence = _(
            "Mixture of experts in {n} of {L} layers: a router sends each token to {k} of {E} experts, and every token "
            "also uses one shared expert."
        )
    else:
        sentence = _(
            "Mixture of experts in {n} of {L} layers: a router sends each token to {k} of {E} experts, and every token "
            "also uses {n_sh} shared experts."
        )
    counts = {"n": sum(kind.layers for kind in a.kinds if kind.has_experts), "L": sum(kind.layers for kind in a.kinds)}
    yield sentence.format(**{**_size_texts(a), **counts})


def _shared_experts(a: Architecture) -> int:
    has_shared = any("shared_experts" in kind.rows for kind in a.kinds)
    return a.all_sizes.get("n_sh", 1) if has_shared else 0


def bucket_name(bucket: Bucket, part: Summand) -> str:
    """The name of a bucket; "other" depends on its place: a decoder's layer, another layer, outside the layers."""
    if bucket == "other" and part.layers:
        return _("Cross-attention and other") if part.decoder else _("Other")
    names: dict[Bucket, str] = {
        "embedding": _("Embeddings"),
        "output_head": _("LM head"),
        "other": _("Outside the layers"),
        "attention": _("Attention"),
        "attention_norms": _("Norms inside attention"),
        "mlp": _("Feed-forward"),
        "norms": _("Norms"),
    }
    return names[bucket]


def layers_text(part: Summand, total: ParameterFormula) -> str:
    """Which layers a summand counts, and how many, in words; "" for a summand outside the layers, such as the
    embeddings.
    """
    if not part.layers:
        return ""
    one, stacks = part.layers == 1, [other for other in total.summands if other.layers]
    if not any(other.decoder for other in stacks):
        if len(stacks) == 1:
            text = _("Each of the {n} layers")
        else:
            text = _("One layer of this kind") if one else _("Each of {n} layers of this kind")
    elif part.decoder:
        text = _("One decoder layer") if one else _("Each of {n} decoder layers")
    else:
        text = _("One encoder layer") if one else _("Each of {n} encoder layers")
    return text.format(n=part.layers)


def count_remarks(a: Architecture, counts: ParameterCounts, total: ParameterFormula) -> Iterator[str]:
    """Yield sentences on the number of parameters: equal sizes, active parameters, the length of inputs."""
    if total.equalities:
        equalities = ", ".join(
            f"{each.first} = {each.second} = {format_number(each.size)}" for each in total.equalities
        )
        yield _("In this model {list}.").format(list=equalities)
    if counts.active != counts.total:
        yield _active_sentence(a).format(active=f"{counts.active:,}", **_size_texts(a))
        if not a.tied_embeddings:
            sentence = _(
                "That includes the whole embedding table, of which a token reads one row; without the table it is "
                "{rest}."
            )
            yield sentence.format(rest=f"{counts.active - counts.embedding:,}")
    if tables := total.position_products:
        rows, both = _("{product} ({n} rows)"), _("{first} and {second}")
        products = (rows.format(product=each, n=format_number(tables[each])) for each in tables)
        listed = reduce(lambda first, second: both.format(first=first, second=second), products)
        yield _("The maximum input length affects only {products}: the position embeddings.").format(products=listed)
    elif a.C:
        sentence = _("The context length (C = {C}) is not a factor: a longer input needs no more parameters.")
        yield sentence.format(C=format_number(a.C))
    else:
        yield _("The length of the input is not a factor: a longer input needs no more parameters.")


def _active_sentence(a: Architecture) -> str:
    shared = _shared_experts(a)
    if shared == 0:
        return _(
            "One token uses {active} of these parameters: {k} of the {E} experts in each MoE layer, and everything "
            "else."
        )
    if shared == 1:
        return _(
            "One token uses {active} of these parameters: in each MoE layer {k} of the {E} routed experts and the "
            "shared one, and everything else."
        )
    return _(
        "One token uses {active} of these parameters: in each MoE layer {k} of the {E} routed experts and the {n_sh} "
        "shared ones, and everything else."
    )
