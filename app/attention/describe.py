"""An Architecture and a number of tokens as the one JSON object that terminal and tests read."""

from __future__ import annotations

from .architecture import Architecture
from .tensors import ATTENTION_LAYER, SINGLE_HEAD, Topic

LAYER_KEYS = ("queries", "keys", "values", "output")


def shapes(architecture: Architecture, tokens: int) -> dict[str, object]:
    """Shapes of one head and of the whole layer, as [rows, columns]; raises TokensError."""
    sizes = {"N": architecture.check_tokens(tokens), **architecture.sizes}
    known = {symbol: size for symbol, size in sizes.items() if size is not None}
    layer = _activations(ATTENTION_LAYER, known)
    return {
        "model": architecture.name,
        "family": architecture.family,
        "tokens": tokens,
        "sizes": architecture.sizes,
        "causal": architecture.causal,
        "tied_embeddings": architecture.tied_embeddings,
        "head": _activations(SINGLE_HEAD, known),
        "layer": {key: layer[key] for key in LAYER_KEYS},
    }


def _activations(topic: Topic, sizes: dict[str, int]) -> dict[str, list[int]]:
    return {t.key: [t.rows.size(sizes), t.columns.size(sizes)] for t in topic.activations}
