"""The beliefs of the catalogue, grouped into the few ideas that a learner can call by name.

Every belief belongs to exactly one idea; the names that people read stand in the wording.

>>> idea_of("softmax-collapses")
'scores'
"""

from __future__ import annotations

from collections.abc import Mapping

# In the order in which they are met.
IDEAS: Mapping[str, tuple[str, ...]] = {
    "input": ("input-sliced", "input-repeated", "embedding-table-as-input", "context-for-tokens"),
    "width": ("head-as-wide-as-model", "heads-multiply-width", "full-width-values", "width-always-divided"),
    "tokens": ("columns-are-tokens", "keys-already-transposed", "weights-for-activations", "stored-layout"),
    "scores": (
        "transposed-product",
        "model-wide-scores",
        "elementwise-product",
        "all-heads-stacked",
        "softmax-collapses",
        "scale-by-model-width",
    ),
    "back": ("no-output-projection", "whole-output-projection"),
    "shared": ("one-kv-per-query-head", "wider-kv-heads", "all-kv-heads-in-one", "shrunken-output-projection"),
    "cache": ("decode-step-square",),
    "parameters": ("heads-change-parameters", "positions-are-parameters", "tied-embedding-twice"),
    "costs": ("flops-are-macs", "cache-forgets-factor"),
}

_IDEA_OF = {belief: idea for idea, beliefs in IDEAS.items() for belief in beliefs}


def idea_of(belief: str) -> str:
    """The key of the idea that a belief belongs to; raises KeyError for what is no belief."""
    return _IDEA_OF[belief]
