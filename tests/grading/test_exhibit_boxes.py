"""Marks of the boxes of "Deal the heads", with any number of key/value heads, and "One more token", for all models."""

from __future__ import annotations

import re

import pytest

from app.figures.exhibits.token import steps_of
from app.grading.exhibit_boxes import DECKS, AskedBoxes, mark_cache, mark_deck, mark_scores
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.topics.layer_heads import CACHE_OF_ALL_LAYERS, SEVERAL_HEADS, LayerHeads, cache_bytes, possible_kv_heads
from app.topics.requirements import TopicError, require, unmet
from app.web.exhibits.exhibit import LAYER_WORKSHEET


def layers(library: Library) -> list[Variant]:
    """A sheet on a layer of each model that the exhibit shows."""
    variants = (library.variant(LAYER_WORKSHEET, model) for model in library.models)
    return [variant for variant in variants if has_heads(variant)]


def has_heads(variant: Variant) -> bool:
    """Whether the exhibit shows a model."""
    try:
        require(SEVERAL_HEADS, variant.architecture, variant.tokens)
    except TopicError:
        return False
    return True


def marked(library: Library, key: str, *typed: object) -> AskedBoxes:
    """The marks and sentence for a deck of Llama 3.2 1B: 32 query heads and 8 key/value heads of 64, over 60 tokens."""
    variant = library.variant(LAYER_WORKSHEET, "llama-3.2-1b", 60)
    return mark_deck(variant, LayerHeads(variant.sizes), key, [str(text) for text in typed])


def test_the_true_deck_is_right_and_no_other_sentence_tells_it(library: Library) -> None:
    for variant in layers(library):
        counts = possible_kv_heads(variant.architecture.H)
        for count in {counts[0], counts[-1], counts[len(counts) // 2], variant.architecture.G}:
            heads = LayerHeads({**variant.sizes, "G": count})
            for key in DECKS:
                true = heads.deck(key)
                assert mark_deck(variant, heads, key, list(map(str, true))).is_right
                wrong = [[*true[:at], 1_000_003, *true[at + 1 :]] for at in range(3)]
                wrong += [[true[1], true[0], true[2]], [true[0], true[1], true[0] * true[2]]]
                for sides in (each for each in wrong if tuple(each) != true):
                    boxes = mark_deck(variant, heads, key, list(map(str, sides)))
                    assert "wrong" in boxes.marks
                    assert set(boxes.marks) <= {"right", "wrong"}
                    assert boxes.message
                    assert not re.search(r"\d", boxes.message)


def test_a_mistake_that_the_catalogue_knows_is_named(library: Library) -> None:
    nudges = {entry.nudge for entry in library.wording.misconceptions.values()}
    assert marked(library, "keys", 32, 60, 64).message in nudges
    assert marked(library, "scores", 8, 60, 60).message in nudges
    assert marked(library, "keys", 32, 60, 64).message != marked(library, "scores", 8, 60, 60).message


def test_symbols_may_be_typed_and_boxes_left_empty(library: Library) -> None:
    assert marked(library, "queries", "H", "N", "2^6").is_right
    assert marked(library, "queries", "", "", "") == AskedBoxes(("", "", ""), ("empty", "empty", "empty"))
    assert marked(library, "queries", "32", "60 64", "").marks == ("right", "unreadable", "empty")
    assert marked(library, "queries", "32", "60", "").message


def test_bytes_may_be_rounded_and_mistakes_are_named(library: Library) -> None:
    variant = library.variant(LAYER_WORKSHEET, "llama-3.2-1b", 60)
    for text in ("1,966,080", "1.97 MB", "1920 KiB"):
        assert mark_cache(variant, text).is_right
    wrong = [mark_cache(variant, text) for text in ("983040", "15728640", "5", "1.9 cats")]
    assert [boxes.marks[0] for boxes in wrong] == ["wrong", "wrong", "wrong", "unreadable"]
    assert len({boxes.message for boxes in wrong}) == len(wrong)
    assert mark_cache(variant, "") == AskedBoxes(("",), ("empty",))


@pytest.mark.parametrize("tokens", [60, 200])
def test_the_bytes_of_every_model_that_are_asked_for_are_right(library: Library, tokens: int) -> None:
    for model in library.models:
        try:
            variant = library.variant(LAYER_WORKSHEET, model, tokens)
        except ValueError:  # a model of another length
            continue
        if has_heads(variant) and unmet(CACHE_OF_ALL_LAYERS, variant.architecture, tokens) is None:
            true = cache_bytes(variant.architecture, tokens, variant.sizes)
            assert mark_cache(variant, str(true)).is_right
            assert mark_cache(variant, str(true + 1)).marks == ("wrong",)


def test_the_scores_of_every_step_are_right_and_no_other_sentence_tells_them(library: Library) -> None:
    lengths = set[int]()
    for model in library.models:
        if library.refusal("decode-gpt2", model) is not None:
            continue
        variant = library.variant("decode-gpt2", model, 100)
        for step in steps_of(variant):
            window = variant.architecture.window if not step.layers[0] else step.keys
            keys = min(step.cached + 1, window or step.cached + 1)
            lengths.add(keys)
            assert mark_scores(variant, step, ("1", str(keys))).is_right
            for sides in ((step.tokens + 1, keys + 1), (keys + 1, 1), (1, keys + 7)):
                boxes = mark_scores(variant, step, list(map(str, sides)))
                assert "wrong" in boxes.marks
                assert boxes.message
                assert not re.search(r"\d", boxes.message)
            assert mark_scores(variant, step, ("1", "")).marks == ("right", "empty")
            assert mark_scores(variant, step, ("", "")).message == ""
    assert {1, 4, 101, 4096} <= lengths
