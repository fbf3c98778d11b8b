"""What RoPE rotates in queries and keys, in which pairs, and how much in a layer (Su et al., arXiv:2104.09864).

>>> from app.models.read_config import read_config
>>> pythia = read_config(
...     '{"model_type": "gpt_neox", "hidden_size": 768, "num_attention_heads": 12, "rotary_pct": 0.25,'
...     ' "num_hidden_layers": 12, "vocab_size": 50304, "intermediate_size": 3072}'
... )
>>> [count.key for count in rotary_counts(pythia)]
['partner', 'unrotated', 'layer_angles', 'layer_rotated']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.operation import Apply, Rope
from app.shapes.table import Count, TensorTable, tensor
from app.topics.requirements import KNOWN_COMPUTATION, ONE_STACK, OWN_PROJECTIONS, Requirement
from app.topics.single_head import QUERIES_AND_KEYS
from app.topics.topic import FigurePlan, Topic
from app.translation import N_

# The dimension, counted from 0, whose partner a sheet asks for. With half-split pairs it is in the first half if there
# are more pairs than that; 0 and 1 would give the partners away.
ASKED_DIMENSION = 2
NEXT_DIMENSION = Expression.number(ASKED_DIMENSION + 1)
IN_SECOND_HALF = Expression.parse(f"d_rot/2 + {ASKED_DIMENSION}")


# Rotary positions (Su et al., arXiv:2104.09864) rotate d_rot numbers of a query and a key, in pairs: one angle per
# token and pair.
ROTARY_PAIRS = TensorTable(
    "rotary-pairs",
    (
        *QUERIES_AND_KEYS,
        tensor("angles", "θ", "N, d_rot/2", "hidden", hint="pairs"),
        tensor("cosines", "cos", "N, d_rot/2", "hidden", Apply("angles", "n p -> n p", "cos")),
        tensor("sines", "sin", "N, d_rot/2", "hidden", Apply("angles", "n p -> n p", "sin")),
        tensor("rotated_queries", "Q'", "N, d_h", "query", Rope("queries angles", "n h, n p -> n h")),
        tensor("rotated_keys", "K'", "N, d_h", "key", Rope("keys angles", "n h, n p -> n h")),
    ),
)


def rotates_pairs(architecture: Architecture, _tokens: int) -> bool:
    """Whether RoPE rotates an even number of a head's dimensions."""
    return architecture.rotary is not None and architecture.rotary.width > 1 and architecture.rotary.width % 2 == 0


_ROPE = Requirement(
    lambda architecture, _tokens: architecture.rotary is not None,
    N_("{model} has no rotary position embedding: choose a model that has, such as LLaMA 7B or Pythia 160M."),
)
_ROTATED_ALIKE = Requirement(
    lambda architecture, _tokens: (
        len({run.rotary.width if run.rotary and run.has_self_attention else 0 for run in architecture.runs}) <= 1
    ),
    N_("Not all layers of {model} rotate queries and keys alike: choose a model such as LLaMA 7B."),
)
_WHOLE_PAIRS = Requirement(
    rotates_pairs,
    N_("{model} rotates {number} dimensions of a head, which don’t form pairs: choose a model such as LLaMA 7B."),
    lambda architecture, _tokens: architecture.rotary.width if architecture.rotary else 0,
)


def other_partner(architecture: Architecture) -> Expression:
    """The partner of dimension 2 in the convention that the model doesn't follow."""
    adjacent = architecture.rotary is not None and architecture.rotary.adjacent_pairs
    return IN_SECOND_HALF if adjacent else NEXT_DIMENSION


def rotary_counts(architecture: Architecture) -> Iterator[Count]:
    """Yield the partner of dimension 2, a head's unrotated numbers, then one layer's angles and rotated numbers."""
    rotary = architecture.rotary
    if rotary is not None and rotary.width // 2 > ASKED_DIMENSION:
        formula = "{next-dimension}" if rotary.adjacent_pairs else "{same-place-in-second-half}"
        partner = NEXT_DIMENSION if rotary.adjacent_pairs else IN_SECOND_HALF
        yield Count("partner", partner, formula, unit="entries", hint="pair-in-description")
    if rotary is not None and rotary.width < architecture.d_h:
        unrotated = Expression.symbol("d_h") - Expression.symbol("d_rot")
        yield Count("unrotated", unrotated, "{d_h} − {d_rot}", unit="entries")
    yield Count("layer_angles", Expression.parse("N*d_rot/2"), "{N} · {d_rot}/2", unit="entries")
    rotated = Expression.parse("N*H*d_rot + N*G*d_rot")
    yield Count("layer_rotated", rotated, "{N} · ({H} + {G}) · {d_rot}", unit="entries")


TOPIC = Topic(
    "rotary-pairs",
    "layer",
    lambda architecture, _tokens: replace(ROTARY_PAIRS, counts=tuple(rotary_counts(architecture))),
    (KNOWN_COMPUTATION, ONE_STACK, OWN_PROJECTIONS, _ROPE, _ROTATED_ALIKE, _WHOLE_PAIRS),
    tables=(ROTARY_PAIRS,),
    counts="partner unrotated layer_angles layer_rotated",
    figures={
        ROTARY_PAIRS.key: (
            FigurePlan("rotated-queries", "queries", ("rotated_queries",)),
            FigurePlan("rotated-keys", "keys", ("rotated_keys",)),
        ),
    },
)
