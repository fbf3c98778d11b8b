"""The numbers of a head in words, against numpy written here and for models with other scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from app.figures.head_readout import (
    NAMED_KEYS,
    SHOWN_TERMS,
    alt_text,
    cell_texts,
    first_token_sentences,
    key_labels,
    number_rows,
    query_labels,
    read_row,
    reduction_sentence,
    row_queries,
    row_sentence,
    stage_sentences,
    telling_row,
)
from app.figures.heat_map import HeadNumbers, percent_text, stages
from app.models.score_scale import ScoreScale
from tests.helpers.head_numbers import made_head


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def with_weights(rows: Sequence[Sequence[float]], tokens: tuple[str, ...]) -> HeadNumbers:
    """A causal head with these weights for these tokens."""
    return replace(made_head(len(rows), 4), weights=np.array(rows, np.float32), query_tokens=tokens, key_tokens=tokens)


def test_a_dot_product_is_told_term_by_term() -> None:
    head = made_head(6, 16)
    for cell in read_row(head, 4).cells:
        q, k = head.queries[4].astype(np.float64), head.keys[cell.key].astype(np.float64)
        terms = q * k
        order = np.argsort(-np.abs(terms))[:SHOWN_TERMS]
        assert [term.feature - 1 for term in cell.terms] == order.tolist()
        for term in cell.terms:
            at = term.feature - 1
            assert [number(term.query), number(term.key)] == pytest.approx([q[at], k[at]], abs=0.0051)
            assert number(term.product) == pytest.approx(terms[at], abs=0.0051)
        assert cell.rest_count == 16 - SHOWN_TERMS
        assert number(cell.rest) == pytest.approx(terms.sum() - terms[order].sum(), abs=0.0051)
        assert number(cell.product) == pytest.approx(terms.sum(), abs=0.0051)
        assert number(cell.steps[0][1]) == pytest.approx(terms.sum() / 4, abs=0.0051)
        assert cell.is_hidden == (cell.key > 4)
        assert cell.steps[-2][1] == ("−∞" if cell.key > 4 else cell.score)
        assert cell.steps[-1][1] == percent_text(float(head.weights[4, cell.key]))


@pytest.mark.parametrize(
    ("scale", "factor_text"),
    [
        (ScoreScale("inverse-sqrt", 8**-0.5), "√8"),
        (ScoreScale("root", 1 / 12, "query_pre_attn_scalar", 144.0), "√144"),
        (ScoreScale("stated", 0.0156, "attention_multiplier"), "0.0156"),
        (ScoreScale("yarn", 1.2 * 8**-0.5, "rope_scaling.mscale_all_dim", 1.2), "1.2"),
    ],
)
def test_the_scale_is_the_models(scale: ScoreScale, factor_text: str) -> None:
    plain = made_head(5, 8)
    head = replace(plain, scale=scale, scores=(plain.products * scale.factor).astype(np.float32))
    text, value = read_row(head, 3).cells[2].steps[0]
    assert factor_text in text
    assert number(value) == pytest.approx(float(head.products[3, 2]) * scale.factor, abs=0.0051)
    assert factor_text in " ".join(stage_sentences(head, "scaled"))


def test_position_bias_and_softcap_are_steps_of_their_own() -> None:
    plain = made_head(5, 8)
    bias = np.random.default_rng(1).normal(size=(5, 5)).astype(np.float32)
    t5 = replace(plain, scale=ScoreScale("none", 1.0), scores=plain.products + bias, has_bias=True)
    steps = read_row(t5, 4).cells[1].steps
    assert len(steps) == 3
    assert number(steps[0][1]) == pytest.approx(float(plain.products[4, 1] + bias[4, 1]), abs=0.0051)
    capped = replace(plain, softcap=3.0, scores=(3 * np.tanh(plain.scores / 3)).astype(np.float32))
    scaled, cap, *_others = read_row(capped, 4).cells[1].steps
    assert number(scaled[1]) == pytest.approx(float(plain.scores[4, 1]), abs=0.0051)
    assert number(cap[1]) == pytest.approx(3 * math.tanh(float(plain.scores[4, 1]) / 3), abs=0.0051)
    assert stages(t5) == stages(capped) == ("products", "scaled", "masked", "weights")
    assert len(stage_sentences(plain, "scaled")) > len(stage_sentences(capped, "scaled"))  # no longer by one factor


def test_a_row_says_what_it_attends_to_and_never_why() -> None:
    head = with_weights(
        [[1, 0, 0, 0], [0.4, 0.6, 0, 0], [0.05, 0.93, 0.02, 0], [0.12, 0.2, 0.61, 0.07]], ("the", "␣cat", "␣the", "␣it")
    )
    words = [row_sentence(head, query).replace("\u00a0", " ") for query in range(4)]
    assert words[3].index("“the (3)” 61 %") < words[3].index("“cat” 20 %") < words[3].index("“the (1)” 12 %")
    assert "7 %" in words[3]
    assert "“cat” 93 %" in words[2]
    assert "“the (1)” 5 %" not in words[2]
    assert not any("because" in sentence for sentence in words)


def test_a_row_spread_evenly_names_one_key() -> None:
    even = np.tril(np.ones((40, 40)))
    head = replace(made_head(40, 4), weights=(even / even.sum(1, keepdims=True)).astype(np.float32))
    assert row_sentence(head, 39).count("“") == 2
    assert row_sentence(head, 7).count("“") == 1 + NAMED_KEYS


def test_a_learned_sink_is_named_where_a_row_adds_up_to_less() -> None:
    head = made_head(4, 4)
    sunk = replace(head, weights=head.weights * np.float32(0.7))
    assert "30\u00a0%" in row_sentence(sunk, 3)
    assert row_sentence(sunk, 3).endswith("no token.")
    assert stage_sentences(sunk, "weights") != stage_sentences(head, "weights")


def test_the_first_tokens_share_is_explained_where_it_is_large() -> None:
    resting = [[1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0.9, 0, 0.1, 0], [0.9, 0, 0, 0.1]]
    assert len(first_token_sentences(with_weights(resting, ("a", "b", "c", "d")))) == 2
    assert len(first_token_sentences(with_weights([[1, 0], [0.5, 0.5]], ("a", "b")))) == 1
    assert len(first_token_sentences(with_weights([[1, 0], [0.6, 0.4]], ("a", "b")))) == 1
    decode = with_weights(resting, ("a", "b", "c", "d")).last_row()
    assert first_token_sentences(decode)[0] != first_token_sentences(with_weights(resting, ("a", "b", "c", "d")))[0]
    identity = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert len(first_token_sentences(with_weights(identity, ("a", "b", "c")))) == 1
    assert first_token_sentences(made_head(1, 4)) == ()


def test_the_picture_begins_with_a_row_that_says_something() -> None:
    few, many = [0.05, 0.95, 0, 0, 0, 0], [0.02, 0.02, 0.9, 0.02, 0.02, 0.02]
    head = with_weights(
        [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], few, [0.9, 0, 0, 0.1, 0, 0], [0, 0, 0, 0, 1, 0], many], tuple("abcdef")
    )
    assert telling_row(head) == (5, 2)
    assert telling_row(with_weights([[1, 0], [0.7, 0.3]], ("a", "b"))) == (1, 0)
    assert telling_row(made_head(1, 4)) == (0, 0)
    row = row_sentence(head, 4)
    assert "itself" in row
    assert row.count("“") == 1


def test_a_reduced_picture_leads_to_rows_and_keys_of_the_text() -> None:
    head = made_head(100, 4)
    row = read_row(head, 70)
    assert row.row == 70 // 3
    assert len(row.cells) == 34 == len(key_labels(head))
    for column, cell in enumerate(row.cells):
        square = head.weights[70, 3 * column : 3 * column + 3]
        assert head.weights[70, cell.key] == square.max()
        assert cell.first_key == 3 * column <= cell.key
    assert all(start <= query < start + 3 for start, query in zip(range(0, 100, 3), row_queries(head), strict=True))
    assert query_labels(head)[1] == "t3 … t5"
    assert query_labels(head)[-1] == "t99"
    assert "3 × 3" in reduction_sentence(head)
    assert reduction_sentence(made_head(48, 4)) == ""
    assert "×" not in reduction_sentence(head.last_row())


def test_masked_cells_say_so() -> None:
    """They have no number, in a stage that hides them; before it they do."""
    head = made_head(4, 4)
    assert [line.count("") for line in cell_texts(head, "masked")] == [3, 2, 1, 0]
    assert all(all(line) for line in cell_texts(head, "scaled"))
    causal, free = (stage_sentences(each, "masked") for each in (head, replace(head, mask=np.ones((4, 4), bool))))
    assert causal != free == stage_sentences(head.last_row(), "masked")


def test_the_table_of_numbers_comes_back_as_it_was() -> None:
    head = made_head(5, 4)
    heading, *rows = number_rows(head)
    columns = {name: [row[at] for row in rows] for at, name in enumerate(heading)}
    for name, array in (("product", head.products), ("score", head.scores), ("weight", head.weights)):
        assert (np.array(columns[name]).astype(np.float32).reshape(5, 5) == array).all()
    assert (np.array(columns["visible"]).reshape(5, 5) == head.mask).all()
    assert columns["key_token"][:5] == list(head.key_tokens)
    assert [row[0] for row in number_rows(head.last_row())][1:] == [5] * 5


def test_every_picture_says_what_it_shows() -> None:
    head = made_head(5, 4)
    texts = [alt_text(head, stage) for stage in (*stages(head), "rest")]
    assert len(set(texts)) == 5
    assert all(text.startswith("A model, layer 1, head 2") and "5 queries" in text for text in texts)


def test_a_row_there_is_not_is_an_error() -> None:
    for query in (-1, 3):
        with pytest.raises(IndexError):
            read_row(made_head(3, 4), query)
