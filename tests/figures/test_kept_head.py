"""The start page's head: its numbers are those of the weights, and sentences say what the numbers say."""

from __future__ import annotations

import json

import pytest

from app.checkpoints.files import smollm2_file
from app.figures.kept_head import KEPT_HEAD, kept_head
from simulation.kept_head import SENTENCE, compute


@pytest.mark.slow
@pytest.mark.skipif(smollm2_file() is None, reason="needs SmolLM2's weights")
def test_the_kept_numbers_are_those_of_the_weights() -> None:
    kept, computed = json.loads(KEPT_HEAD.read_text()), compute()
    kept_rows, rows = (
        [weight for head in each.pop("heads_of_layer") for row in head for weight in row] for each in (kept, computed)
    )
    assert kept_rows == pytest.approx(rows, abs=0.002)  # another machine rounds differently
    assert kept == computed


def test_every_row_adds_up_to_one_and_sees_no_later_key() -> None:
    head = kept_head()
    assert "".join(f" {token}" for token in head.tokens).replace(" .", ".").strip() == SENTENCE
    for weights in head.heads_of_layer:
        assert [len(row) for row in weights] == list(range(1, len(head.tokens) + 1))
        assert [sum(row) for row in weights] == pytest.approx([1.0] * len(weights), abs=0.01)
    assert head.strongest(head.query)[0] == head.tokens[head.key]


def test_words_after_the_query_are_hidden() -> None:
    words = kept_head().words(2)
    assert [word.is_hidden for word in words] == [False] * 3 + [True] * 8
    assert [word.share for word in words] == ["15\N{NO-BREAK SPACE}%", "84\N{NO-BREAK SPACE}%", *[""] * 9]
