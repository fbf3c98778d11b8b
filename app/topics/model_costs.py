"""The costs of a whole model: operations per token, for a prefill, for decoding and in training, and bytes in training.

The rule of thumb is 2·P operations per token and 6·P in training, for P parameters (Kaplan et al., arXiv:2001.08361,
section 2.1). The exact numbers count all matrix products: an embedding is looked up, norms and biases aren't products,
a tied embedding is multiplied after all, and attention pairs tokens with tokens.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config(
...     '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_head": 12, "n_layer": 12,'
...     ' "vocab_size": 50257}'
... )
>>> str(_in_layers(gpt2)), str(_outside_layers(gpt2))
('G*L*d*d_h + G*L*d*d_v + H*L*d*d_h + H*L*d*d_v + 2*L*d*d_ff', 'V*d')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture
from app.models.parameter_count import parameter_counts
from app.models.parameter_specs import ModelPart, ParameterSpec
from app.shapes.parameter_inventory import Fact, parameter_inventory
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable
from app.topics.costs import HEADS_COMPUTING, memory_costs, product_flops
from app.topics.decode_step import decode_step_table
from app.topics.requirements import (
    KV_CACHE,
    NAMED_PARTS,
    NEXT_TOKEN,
    NO_MIXERS,
    ONE_NUMBER_OF_VISIBLE_KEYS,
    ONE_STACK,
    ROOM_FOR_ONE_MORE,
    SCORES_OF_QUERIES_AND_KEYS,
)
from app.topics.single_head import SINGLE_HEAD
from app.topics.topic import Topic

_PAIRWISE = ("scores", "context")  # attention's products without parameters
# Bytes per parameter that mixed-precision training keeps besides the 16-bit weights (Rajbhandari et al.,
# arXiv:1910.02054, section 3.1): 16-bit gradients and, in 32 bits, a copy of the weights and Adam's two moments.
BYTES_IN_TRAINING = {"gradients_bytes": 2, "master_bytes": 4, "moments_bytes": 8}


def model_costs(architecture: Architecture, tokens: int) -> Iterator[Count]:
    """Yield the parameters that a token is multiplied by, then operations, operations per byte, and bytes in
    training.
    """
    in_layers, outside = _in_layers(architecture), _outside_layers(architecture)
    multiplied = in_layers + outside
    yield Count("layers_multiplied", in_layers, "{matrices-of-layers}", unit="entries")
    yield Count("outside_multiplied", outside, "{matrices-outside-layers}", unit="entries")
    formula = "{layers_multiplied} + {outside_multiplied}"
    both = FromParts(PARTS_SUM, ("layers_multiplied", "outside_multiplied"))
    yield Count("multiplied", multiplied, formula, both, unit="entries")
    yield from _of_one_token(architecture, multiplied)
    yield from _of_many_tokens(architecture, tokens, multiplied)
    # Every 2-byte weight that is read is multiplied and added once per token.
    intensities = {"decode_intensity": Expression.number(1), "prefill_intensity": Expression.symbol("N")}
    for key, per_byte in intensities.items():
        if key == "decode_intensity" or not architecture.has_experts:
            yield Count(key, per_byte, "{operations-per-byte}", unit="entries", hint="as-quotient")
    yield from _in_training()


def _of_one_token(architecture: Architecture, multiplied: Expression) -> Iterator[Count]:
    word = "active-parameters" if architecture.has_experts else "parameters"
    rule = _parameters(architecture) * 2
    yield Count("rule_flops", rule, f"2 · {{{word}}}", unit="operations")
    exactly = FromParts(PARTS_SUM * 2, ("multiplied",))
    yield Count("token_flops", multiplied * 2, "2 · {multiplied}", exactly, unit="operations")
    excess = rule - multiplied * 2
    if excess.size({**architecture.all_sizes, **parameter_sizes(architecture)}):
        made_from = FromParts(Expression.parse("rule_flops - token_flops"), ("rule_flops", "token_flops"))
        yield Count("rule_excess", excess, "{rule_flops} − {token_flops}", made_from, unit="operations")


def _parameters(architecture: Architecture) -> Expression:
    return Expression.symbol("active" if architecture.has_experts else "params")


def _of_many_tokens(architecture: Architecture, tokens: int, multiplied: Expression) -> Iterator[Count]:
    tokens_once = FromParts(Expression.parse("N*parts"), ("token_flops",))
    products = Expression.parse("2*N") * multiplied
    yield Count("products_flops", products, "{N} · {token_flops}", tokens_once, unit="operations")
    pairs = _pairwise_flops(SINGLE_HEAD)
    formula = "2 · {L} · {H} · {N} · {N} · ({d_h} + {d_v})"
    yield Count("attention_flops", pairs, formula, unit="operations")
    both = FromParts(PARTS_SUM, ("products_flops", "attention_flops"))
    formula = "{products_flops} + {attention_flops}"
    yield Count("prefill_flops", products + pairs, formula, both, unit="operations")
    step = decode_step_table(architecture, tokens)
    assert step is not None  # noqa: S101 - `requires` has refused models without a cache, and too many tokens
    pairs_of_new, seen, width = _pairwise_flops(step), step["keys"].rows, "({d_h} + {d_v})"
    if architecture.has_latent_attention:
        # W_UK is multiplied by the query, and W_UV by the weighted sum; both are between latent vectors, and no key or
        # value is made (DeepSeek-AI, arXiv:2405.04434, section 2.1.2).
        pairs_of_new = Expression.parse("2*L*H*d_rope + 4*L*H*r_kv") * seen
        width = "(2 · {r_kv} + {d_rope})"
    made_from = FromParts(PARTS_SUM + pairs_of_new, ("token_flops",))
    seen_text = "({N} + 1)" if seen.symbols == {"N"} else f"{{{seen}}}"
    formula = f"{{token_flops}} + 2 · {{L}} · {{H}} · {seen_text} · {width}"
    yield Count("decode_flops", multiplied * 2 + pairs_of_new, formula, made_from, unit="operations")
    rule = FromParts(Expression.parse("3*N*parts"), ("rule_flops",))
    total = Expression.parse("6*N") * _parameters(architecture)
    yield Count("training_rule", total, "3 · {N} · {rule_flops}", rule, unit="operations")
    backward = FromParts(PARTS_SUM * 3, ("prefill_flops",))
    yield Count("training_flops", (products + pairs) * 3, "3 · {prefill_flops}", backward, unit="operations")


def _in_training() -> Iterator[Count]:
    weights = memory_costs(None)[0]
    yield weights
    total = weights.total
    for key, size in BYTES_IN_TRAINING.items():
        numbers = Expression.parse("params") * size
        factors = f"{size} {{bytes}}" if size < 8 else f"2 · {size // 2} {{bytes}}"
        yield Count(key, numbers, f"{factors} · {{parameters}}", unit="bytes")
        total += numbers
    keys = (weights.key, *BYTES_IN_TRAINING)
    formula = " + ".join(f"{{{key}}}" for key in keys)
    yield Count("training_bytes", total, formula, FromParts(PARTS_SUM, keys), unit="bytes")


def _pairwise_flops(table: TensorTable) -> Expression:
    products = (Expression.symbol(HEADS_COMPUTING[key]) * product_flops(table, key) for key in _PAIRWISE)
    return Expression.symbol("L") * sum(products, ZERO)


def _in_layers(architecture: Architecture) -> Expression:
    kinds, chosen, total = architecture.stacks[0].kinds, {"E": Expression.symbol("k")}, ZERO
    for kind in kinds:
        layers = Expression.symbol("L") if len(kinds) == 1 else Expression.number(kind.layers)
        for spec in _matrices(kind.parameters):
            total += layers * (spec.count.substitute(chosen) if spec.routed else spec.count)
    return total


def _outside_layers(architecture: Architecture) -> Expression:
    specs = architecture.outside_parameters
    tied = (spec for spec in specs if architecture.tied_embeddings and spec.part == ModelPart.TOKEN_TABLE)
    return sum((spec.count for spec in (*_matrices(specs), *tied)), ZERO)


def _matrices(specs: Iterable[ParameterSpec]) -> Iterator[ParameterSpec]:
    return (spec for spec in specs if spec.kind == "matrix")


def parameter_sizes(architecture: Architecture) -> Mapping[str, int]:
    """The number of all parameters, `params`, and with experts also the number that one token uses, `active`."""
    counts = parameter_counts(architecture)
    return {"params": counts.total, **({"active": counts.active} if architecture.has_experts else {})}


def _matrices_of_model(architecture: Architecture) -> Iterator[Fact]:
    left_out = ("norms-", "final-norm", "qk-norms", "latent-norm", "embedding-norm", "sinks")
    for fact in parameter_inventory(architecture):
        if not fact.key.startswith(left_out) and not fact.key.endswith(("-biases", "one-bias")):
            yield fact


TOPIC = Topic(
    "model-costs",
    "counts",
    lambda architecture, tokens: TensorTable("model-costs", counts=tuple(model_costs(architecture, tokens))),
    (
        ONE_STACK,
        NO_MIXERS,
        NEXT_TOKEN,
        KV_CACHE,
        SCORES_OF_QUERIES_AND_KEYS,
        NAMED_PARTS,
        ROOM_FOR_ONE_MORE,
        ONE_NUMBER_OF_VISIBLE_KEYS,
    ),
    inventory=_matrices_of_model,
    extra_sizes=lambda architecture, _tokens: parameter_sizes(architecture),
    extra_symbols="params active",
    counts="layers_multiplied outside_multiplied multiplied rule_flops token_flops rule_excess products_flops "
    "attention_flops prefill_flops decode_flops training_rule training_flops decode_intensity prefill_intensity "
    "weights_16_bit gradients_bytes master_bytes moments_bytes training_bytes",
)
