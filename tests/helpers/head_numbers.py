"""A head with random queries and keys, computed in numpy, for tests of its pictures."""

from __future__ import annotations

import numpy as np

from app.figures.heat_map import HeadNumbers
from app.models.score_scale import ScoreScale


def made_head(tokens: int, width: int, seed: int = 0) -> HeadNumbers:
    """A causal head of that many tokens and that head dimension; token 0 is "t0", the others "␣t1", "␣t2" …"""
    random = np.random.default_rng(seed)
    queries, keys = (random.normal(size=(2, tokens, width)) * 2).astype(np.float32)
    scores = (queries @ keys.T / np.float32(width**0.5)).astype(np.float32)
    mask = np.tril(np.ones((tokens, tokens), bool))
    shares = np.where(mask, np.exp(scores - scores.max(axis=1, keepdims=True), dtype=np.float64), 0)
    weights = (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
    names = ("t0", *(f"␣t{index}" for index in range(1, tokens)))
    scale = ScoreScale("inverse-sqrt", width**-0.5)
    return HeadNumbers("A model, layer 1, head 2", queries, keys, scores, weights, mask, names, names, scale)
