"""Right and wrong lines done by numpy: the same shapes, and the numbers where the sheet says they are."""

from __future__ import annotations

import numpy as np

from app.models.architecture import Architecture
from app.topics.registry import refusal, sizes_for, topic_for
from tests.helpers.every_family import possible
from tests.helpers.shipped import MODELS

TOPIC = "same-shapes"
TOKENS = 10


def check(a: Architecture, tokens: int) -> None:
    """Every count of the model's sheet, found by doing what its line says."""
    table, sizes = topic_for(TOPIC, a, tokens), sizes_for(TOPIC, a, tokens, tokens)
    key, shapes = {count.key: count.size("count", sizes) for count in table.counts}, table.shapes(sizes)
    i, j, f = sizes["i"], sizes["j"], sizes["f"]
    # Every entry of q is its column, or its token, or its head.
    heads = np.repeat(np.arange(a.H), a.d_h)
    q = np.arange(tokens)[:, None] * a.H * a.d_h + np.arange(a.H * a.d_h)
    assert q.shape == shapes["queries"]
    split = q.reshape(tokens, a.H, a.d_h)
    assert np.flatnonzero(q[i] == split[i, j, f]) == [key["view_column"]], a.name
    right, wrong = split.transpose(1, 0, 2), q.reshape(a.H, tokens, a.d_h)
    assert right.shape == wrong.shape == shapes["queries_by_head"] == shapes["viewed_queries"]
    token, column = divmod(int(wrong[j, i, 0]), a.H * a.d_h)
    assert (token, heads[column]) == (key["viewed_token"], key["viewed_head"]), a.name
    assert (token, heads[column]) != (i, j), a.name  # or the twin would be right there
    assert int(right[j, i, 0]) == i * a.H * a.d_h + j * a.d_h
    if a.causal:
        scores = np.random.default_rng(0).normal(size=(tokens, tokens))
        hidden = np.triu(np.ones((tokens, tokens), dtype=bool), 1)
        weights = np.exp(np.where(hidden, -np.inf, scores))
        weights /= weights.sum(axis=-1, keepdims=True)
        assert weights.shape == weights.T.shape
        assert np.count_nonzero(weights[i]) == key["seen_keys"]
        assert np.count_nonzero(weights.T[i]) == key["turned_weights"]
        assert np.count_nonzero(~np.tril(np.ones((tokens, tokens), dtype=bool))[i]) == key["reversed_keys"]
        assert len({key["seen_keys"], key["turned_weights"], key["reversed_keys"]}) == 3
    else:
        assert "seen_keys" not in key


def test_what_each_line_makes_is_what_numpy_makes() -> None:
    for a in possible(TOPIC):
        check(a, TOKENS)
    for a in MODELS.values():
        for tokens in (a.fixed_tokens,) if a.fixed_tokens else (5, 20, 33):
            if refusal(TOPIC, a, tokens) is None:
                check(a, tokens)


def test_the_weights_of_a_query_sum_to_one_along_the_dimension_of_the_key() -> None:
    table, sizes = topic_for(TOPIC, MODELS["gpt2"], TOKENS), sizes_for(TOPIC, MODELS["gpt2"], TOKENS, TOKENS)
    heads, _n, _m = table.shapes(sizes)["weights"]
    for key, shape in (("softmax_dim", (heads, 7, 5)), ("softmax_dim_batched", (2, heads, 7, 5))):
        queries = np.exp(np.random.default_rng(1).normal(size=shape))
        dim = table.askable[key].size("count", sizes)
        weights = queries / queries.sum(axis=dim, keepdims=True)
        of_one_query = weights[(0,) * (len(shape) - 1)]  # all keys of the first query
        assert np.isclose(of_one_query.sum(), 1)
        assert [at for at in range(len(shape)) if np.allclose(weights.sum(axis=at), 1)] == [dim]


def test_windows_that_hide_more_and_short_texts_are_refused() -> None:
    assert "4,096" in (refusal(TOPIC, MODELS["mistral-7b"], 5000) or "")
    assert refusal(TOPIC, MODELS["mistral-7b"], 4096) is None
    assert "at least 5" in (refusal(TOPIC, MODELS["gpt2"], 4) or "")
