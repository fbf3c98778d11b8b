"""The scores of heads, on heads that were made to do one thing, and against plain loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from app.checkpoints.sources import open_checkpoint
from app.forward.head_scores import PATTERNS, Pattern, best_heads, head_scores, pattern_definitions, pattern_names
from app.forward.real_head import run_real_head

TEXT = [5, 6, 7, 5, 6, 7, 8]  # 5 6 7 comes twice


def scores_of(weights: np.ndarray, ids: list[int]) -> dict[Pattern, float]:
    return {score.pattern: score.value for score in head_scores(weights, ids, 0)}


def pointing(target: Callable[[int], int], size: int = len(TEXT)) -> np.ndarray:
    """A layer of one head in which token i puts all its weight on token target(i)."""
    weights = np.zeros((1, size, size), np.float32)
    for query in range(size):
        weights[0, query, target(query)] = 1
    return weights


@pytest.mark.parametrize(
    ("target", "pattern"),
    [
        (lambda i: max(i - 1, 0), "previous"),
        (lambda i: i, "itself"),
        (lambda _i: 0, "first"),
        (lambda i: {3: 1, 4: 2, 5: 3}.get(i, 0), "repeats"),
        (lambda i: 1 if i == 6 else 0, "back"),
    ],
)
def test_a_head_made_for_a_pattern_has_the_score_one_in_it(target: Callable[[int], int], pattern: Pattern) -> None:
    scores = scores_of(pointing(target), TEXT)
    assert scores[pattern] == 1
    assert all(value == 0 for other, value in scores.items() if other not in (pattern, "first", "itself"))


def test_the_first_token_is_nobodys_previous_one() -> None:
    assert scores_of(pointing(lambda _i: 0), TEXT)["previous"] == 0


def loops(matrix: np.ndarray, ids: list[int]) -> Iterator[tuple[Pattern, float]]:
    size = len(ids)
    yield "previous", float(np.mean([matrix[i, i - 1] for i in range(2, size)]))
    repeats = {i: [j + 1 for j in range(i - 1) if ids[j] == ids[i]] for i in range(size)}
    yield "repeats", float(np.mean([sum(matrix[i, j] for j in keys) for i, keys in repeats.items() if keys]))
    yield "back", max(matrix[i, j] for i in range(size) for j in range(1, i - 1) if j not in repeats[i])
    yield "itself", float(np.mean([matrix[i, i] for i in range(1, size)]))
    yield "first", float(np.mean([matrix[i, 0] for i in range(1, size)]))


def test_scores_are_those_of_plain_loops() -> None:
    ids = [1, 2, 1, 1, 3, 2, 4, 1]
    drawn = np.tril(np.random.default_rng(0).random((3, 8, 8)))
    weights = (drawn / drawn.sum(-1, keepdims=True)).astype(np.float16)
    scores = head_scores(weights, ids, 7)
    for head in range(3):
        expected = dict(loops(weights[head].astype(np.float64), ids))
        assert {each.pattern: each.value for each in scores if each.head == head} == pytest.approx(expected, rel=1e-3)
    best = best_heads(scores, "back", 3)
    assert [each.value for each in best] == sorted((each.value for each in best), reverse=True)
    assert all(each.layer == 7 and each.value == weights[each.head, each.query, each.key] for each in best)


@pytest.mark.parametrize(
    ("ids", "missing"),
    [([1, 2, 3, 4], {"repeats"}), ([1, 2, 3], {"repeats", "back"}), ([1, 2], {"repeats", "back", "previous"}),
     ([1, 1], {"repeats", "back", "previous"}), ([1], set(PATTERNS))],
)  # fmt: skip
def test_a_text_without_room_for_a_pattern_has_no_score_for_it(ids: list[int], missing: set[Pattern]) -> None:
    size = len(ids)
    assert set(PATTERNS) - set(scores_of(np.ones((2, size, size)) / size, ids)) == missing


def test_every_pattern_has_a_name_and_a_definition() -> None:
    assert list(pattern_names()) == list(pattern_definitions()) == list(PATTERNS)


@pytest.mark.slow
def test_heads_that_others_have_found_are_found_in_smollm2() -> None:
    text = "The cat sat on the mat because it was tired. The cat sat on the mat because it was warm."
    scores = run_real_head(open_checkpoint("smollm2", []), text, layer=17, head=5).head_scores
    assert {(score.layer, score.head) for score in scores} == {
        (layer, head) for layer in range(18) for head in range(9)
    }
    expected: dict[Pattern, tuple[int, int, float]] = {
        "previous": (16, 0, 0.78),
        "repeats": (17, 5, 0.68),
        "back": (13, 8, 0.98),
        "itself": (11, 6, 0.74),
    }
    for pattern, (layer, head, value) in expected.items():
        best = best_heads(scores, pattern, 1)[0]
        assert (best.layer, best.head) == (layer, head)
        assert best.value == pytest.approx(value, abs=0.01)
