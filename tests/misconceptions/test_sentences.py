"""The sentences about misconceptions, on every sheet on which they can show: true of its topic, model and layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from app.misconceptions.predictions import expectations
from app.sheets import prose
from app.sheets.variant import Variant
from app.sheets.wording import MisconceptionText
from app.topics.registry import TOPICS
from tests.helpers.shipped import FIRST_OF_TOPIC, LIBRARY, MODELS

KINDS: tuple[MisconceptionText, ...] = ("nudge", "hint", "explanation")
# The first worksheet of each topic, for every model that it is true of.
VARIANTS = [
    LIBRARY.variant(sheet.key, model)
    for sheet in FIRST_OF_TOPIC.values()
    for model in MODELS
    if LIBRARY.refusal(sheet.key, model) is None
]


def sentences(variant: Variant) -> Iterator[tuple[str, str]]:
    """Each sentence on each misconception that can show on the sheet, with the misconception's key."""
    for key in {expected.misconception for expected in expectations(variant.problem)}:
        yield from ((key, prose.misconception(variant, key, kind)) for kind in KINDS)


def projects_into_one_head(variant: Variant) -> bool:
    """Whether the query projection of the sheet's table belongs to a single head."""
    return "W_Q" in variant.table.by_key and str(variant.table["W_Q"].shape[1]) == "d_h"


def leads_to_keys(variant: Variant) -> bool:
    """Whether the model has matrices from a token's vector to its keys and values."""
    return not variant.architecture.has_latent_attention


# What only some sheets may say, and whether it is true of this one.
CLAIMS: dict[str, tuple[str, Callable[[Variant], bool]]] = {
    "weights add up to one": (r"(add up|sum) to one", lambda v: not v.architecture.has_sinks),
    "each token predicts": (
        r"(?<!it should )predict",
        lambda v: v.architecture.causal or TOPICS[v.worksheet.topic].uses_decoder,
    ),
    "all tokens are attended to": (r"attends to (every|all) tokens?\b", lambda v: not v.architecture.causal),
    "the input is a text": (r"looked up|\b(a|this|the) text\b", lambda v: v.architecture.fixed_tokens is None),
    "W_Q leads into one head": (r"W_[QKV]\b.*\bhead dimension\b|W_[QKV] with W_[QKV]", projects_into_one_head),
    "there are W_K and W_V": (r"W_[KV]\b", leads_to_keys),
    "the sheet is about one head": (r"task asks for one head", lambda v: TOPICS[v.worksheet.topic].subject == "head"),
    "a vector has no position": (r"(no|without) position", lambda _v: False),  # from the second layer on, all have one
    "the sheet shows W_KR": (r"matrix that computes it", lambda v: "W_KR" in v.problem.asked),
    "the input is on the sheet": (r"input on this sheet", lambda v: "input" in v.table.by_key),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_is_made_only_where_it_is_true(claim: str) -> None:
    pattern, is_true = CLAIMS[claim]
    false = {
        (variant.worksheet.topic, variant.model.key, key)
        for variant in VARIANTS
        if not is_true(variant)
        for key, sentence in sentences(variant)
        if re.search(pattern, sentence)
    }
    assert not false
