"""Which models and numbers a bug is refused with, and what is proposed instead."""

from __future__ import annotations

from itertools import product

import pytest

from app.bugs.bank import BUGS
from app.bugs.case import bug_case
from app.bugs.sizes import BugError, small_sizes
from tests.helpers.shipped import MODELS
from tests.helpers.slow import one_in

QWEN = "qwen2.5-0.5b"  # H 14, G 2, d_h 64


@pytest.mark.parametrize(
    ("bug", "model", "tokens", "batch", "reason"),
    [
        ("keys-not-transposed", QWEN, 64, 3, "N and d_h are both 64"),
        ("heads-not-moved", QWEN, 14, 3, "N and H are both 14"),
        ("heads-not-moved", QWEN, 10, 2, "B and G are both 2"),
        ("heads-not-moved", QWEN, 10, 10, "B and N are both 10"),
        ("heads-not-moved", QWEN, 10, 1, "a batch of at least 2"),
        ("values-not-appended", QWEN, 13, 3, "H and N \\+ 1 are both 14"),
        ("rotated-before-heads-move", QWEN, 32, 3, "N and d_h/2 are both 32"),
        ("keys-not-transposed", "gpt2", 2000, 3, "1,024"),
    ],
)
def test_sizes_that_hide_a_bug_are_refused_with_a_proposal(
    bug: str, model: str, tokens: int, batch: int, reason: str
) -> None:
    with pytest.raises(BugError, match=reason) as refused:
        bug_case(BUGS[bug], MODELS[model], tokens, batch)
    proposed = refused.value.tokens or tokens, refused.value.batch or batch
    if proposed != (tokens, batch):
        bug_case(BUGS[bug], MODELS[model], *proposed)
    else:
        assert "positions" in reason or model == "gpt2"


@pytest.mark.parametrize(
    ("bug", "model", "reason"),
    [
        ("keys-tiled", "gpt2", "no such line"),
        ("stored-layout-of-keys", "gpt2", "raises nothing"),
        ("head-width-divided", "gpt2", "raises nothing"),
        ("square-stored-layout", "qwen3-4b", "isn’t silent"),
        ("mask-inverted", "bert-base", "no such line"),
        ("keys-of-the-decoder", "gpt2", "no cross-attention"),
        ("values-not-appended", "bert-base", "without a KV cache"),
        ("rotated-backwards", "gpt2", "does not rotate"),
        ("heads-not-moved", "deepseek-v3", "latent"),
        ("heads-not-moved", "t5-small", "does not divide its scores"),
    ],
)
def test_a_program_that_is_not_the_models_is_refused(bug: str, model: str, reason: str) -> None:
    with pytest.raises(BugError, match=reason):
        bug_case(BUGS[bug], MODELS[model], 10, 3)


@pytest.mark.parametrize("model", one_in(40, MODELS))
def test_every_bug_of_every_model_is_shown_or_refused_with_a_sentence(model: str) -> None:
    for bug, (tokens, batch) in product(BUGS, ((1, 1), (2, 2), (10, 3), (64, 64), (1500, 8))):
        refused = refusal(bug, model, tokens, batch)
        if refused:
            assert str(refused).endswith(".")
            again = refusal(bug, model, refused.tokens or tokens, refused.batch or batch)
            if again and " both " in str(refused) and (refused.tokens or refused.batch):
                assert " both " not in str(again)


def refusal(bug: str, model: str, tokens: int, batch: int) -> BugError | None:
    """What refuses a bug."""
    try:
        bug_case(BUGS[bug], MODELS[model], tokens, batch)
    except BugError as error:
        return error
    return None


def test_small_sizes_are_equal_where_those_of_the_model_are() -> None:
    grouped = small_sizes({"B": 3, "N": 10, "H": 14, "G": 2, "d_h": 64, "d": 896})
    assert grouped["d"] == grouped["H"] * grouped["d_h"]
    assert len({*grouped.values()}) == 6
    alone = small_sizes({"B": 3, "N": 10, "H": 32, "G": 32, "d_h": 128, "d": 2560})
    assert alone["H"] == alone["G"]
    assert alone["d"] != alone["H"] * alone["d_h"]
    assert small_sizes({"H": 8, "G": 1, "d_h": 256, "d": 2048})["G"] == 1
