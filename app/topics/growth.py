"""What grows with N in one layer: products that grow linearly, products that grow with N², and where they are equal.

Projections take O(N·d²) operations, scores and weighted sums O(N²·d) (Vaswani et al., arXiv:1706.03762, table 1).

>>> from app.models.read_config import read_config
>>> llama = read_config(
...     '{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,'
...     ' "vocab_size": 32000, "intermediate_size": 11008}'
... )
>>> tokens = crossing(llama, with_feed_forward=False)
>>> str(tokens), tokens.size(llama.all_sizes)
('G*d/H + d', 8192)
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable
from app.topics.costs import BYTES_PER_NUMBER, CACHED_OF_TOKEN, layer_costs
from app.topics.decode_costs import step_flops
from app.topics.decode_step import DECODE_STEP
from app.topics.requirements import PLAIN_LAYERS, SCORES_OF_QUERIES_AND_KEYS, Requirement
from app.topics.topic import Growth, Topic
from app.translation import N_

PROJECTIONS = ("queries_flops", "keys_flops", "values_flops", "output_flops")
PAIRWISE = ("scores_flops", "context_flops")
# The factor of growth when the tokens double, by what is asked: operations of projections and of the feed-forward
# block, of scores and weighted sums; entries of the score matrices; numbers in the KV cache.
WHEN_DOUBLED = {"projections": 2, "pairwise": 4, "score_entries": 4, "kv_cache": 2}


_ATTENTION_TO_ALL = Requirement(
    lambda architecture, _tokens: not any(run.window or run.chunk for run in architecture.runs),
    N_(
        "Layers of {model} attend to a window of the tokens, so their scores do not grow with the square of them: "
        "choose a model that attends to all tokens in every layer, such as LLaMA 7B."
    ),
)


def crossing(architecture: Architecture, *, with_feed_forward: bool) -> Expression:
    """The number of tokens, in symbols, at which products with N² take as many operations as products with N."""
    tokens = Expression.parse("d + G*d/H")
    if with_feed_forward:
        matrices = 3 if architecture.gated else 2
        tokens += Expression.parse("d*d_ff/H/d_h") * Fraction(matrices, 2)
    return tokens


def growth_counts(architecture: Architecture, _tokens: int) -> Iterator[Count]:
    """Yield operations with N, with N² and with both; where the two are equal; factors for 2·N tokens; one
    more token.
    """
    costs = {count.key: count.total for count in layer_costs(architecture.gated)}
    projections, pairwise = (sum((costs[key] for key in keys), ZERO) for keys in (PROJECTIONS, PAIRWISE))
    yield Count("projections_flops", projections, "{each-projection}", unit="operations")
    yield Count("pairwise_flops", pairwise, "{scores-and-sums}", unit="operations")
    both = FromParts(PARTS_SUM, ("projections_flops", "pairwise_flops"))
    formula = "{projections_flops} + {pairwise_flops}"
    yield Count("prefill_flops", projections + pairwise, formula, both, unit="operations")
    for key, with_feed_forward in (("crossing", False), ("crossing_of_layer", True)):
        tokens = crossing(architecture, with_feed_forward=with_feed_forward)
        if tokens.value(architecture.all_sizes).denominator == 1:
            yield Count(key, tokens, "{with-N-over-with-square}", unit="entries")
    has_cache = architecture.has_kv_cache
    for key, factor in WHEN_DOUBLED.items():
        if has_cache or key != "kv_cache":
            yield Count(f"{key}_doubled", Expression.number(factor), "{factor}", unit="entries", hint="as-quotient")
    if has_cache:
        yield Count("decode_flops", step_flops(DECODE_STEP), "{one-token-of-each}", unit="operations")
        cached = CACHED_OF_TOKEN * BYTES_PER_NUMBER["16"]
        yield Count("cache_of_token", cached, "2 {bytes} · {G} · ({d_h} + {d_v})", unit="bytes")


TOPIC = Topic(
    "growth",
    "counts",
    lambda architecture, tokens: TensorTable("growth", counts=tuple(growth_counts(architecture, tokens))),
    (*PLAIN_LAYERS, SCORES_OF_QUERIES_AND_KEYS, _ATTENTION_TO_ALL),
    growth=Growth(linear="projections_flops", squared="pairwise_flops", crossing="crossing"),
    counts="projections_flops pairwise_flops prefill_flops crossing crossing_of_layer projections_doubled "
    "pairwise_doubled score_entries_doubled kv_cache_doubled decode_flops cache_of_token",
)
