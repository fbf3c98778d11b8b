"""The misconceptions of the catalogue, grouped into the few ideas that a learner can call by name.

Every misconception belongs to exactly one idea; the names that people read stand in the wording.

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

_IDEA_OF = {misconception: idea for idea, misconceptions in IDEAS.items() for misconception in misconceptions}


def idea_of(misconception: str) -> str:
    """The key of the idea that a misconception belongs to; raises KeyError for what is no misconception."""
    return _IDEA_OF[misconception]
