"""Marks of the boxes of "Deal the heads", for every model and every number of key/value heads it could have."""

from __future__ import annotations

import re

from app.grading.deck_boxes import DECKS, mark_cache, mark_deck
from app.shapes.layer_heads import CacheBytes, LayerHeads, possible_kv_heads
from app.shapes.topics import sizes_for
from app.sheets.library import Library

SIZES = {"N": 60, "d": 2048, "H": 32, "G": 8, "d_h": 64, "d_v": 64}


def marked(library: Library, key: str, *typed: object, **sizes: int) -> tuple[tuple[str, ...], str]:
    """The marks and the sentence for a deck of Llama 3.2 1B."""
    heads = LayerHeads({**SIZES, **sizes})
    boxes = mark_deck(heads, key, [str(text) for text in typed], {"N": 60, "H": heads.sizes["H"]}, library.wording)
    return boxes.marks, boxes.message


def test_the_true_deck_is_right_and_no_other_sentence_tells_it(library: Library) -> None:
    """Each side wrong alone, the slab's own width, and the order before transpose: a sentence without a digit."""
    for model in library.models.values():
        architecture = model.architecture
        for count in possible_kv_heads(architecture.H):
            heads = LayerHeads({**sizes_for("attention-layer", architecture, 61, 61), "G": count})
            for key in DECKS:
                true = heads.deck(key)
                assert mark_deck(heads, key, [str(side) for side in true], {}, library.wording).is_right
                wrong = [[*true[:at], 1_000_003, *true[at + 1 :]] for at in range(3)]
                wrong += [[true[1], true[0], true[2]], [true[0], true[1], true[0] * true[2]]]
                for sides in (each for each in wrong if tuple(each) != true):
                    boxes = mark_deck(heads, key, list(map(str, sides)), {}, library.wording)
                    assert "wrong" in boxes.marks
                    assert boxes.message
                    assert not re.search(r"\d", boxes.message)


def test_slips_are_told_apart(library: Library) -> None:
    """Tokens before heads, query heads for key heads, the slab's width, features left in the scores; each its own."""
    slips = {
        "transpose": marked(library, "queries", 60, 32, 64),
        "whole matrix": marked(library, "queries", 32, 60, 2048),
        "shared": marked(library, "keys", 32, 60, 64),
        "score card of its own": marked(library, "scores", 8, 60, 60),
        "summed over": marked(library, "scores", 32, 60, 64),
    }
    for words, (_marks, message) in slips.items():
        assert words in message
    assert len({message for _marks, message in slips.values()}) == len(slips)
    assert marked(library, "queries", "H", "N", "2^6")[0] == ("right", "right", "right")
    assert marked(library, "queries", "", "", "") == (("empty", "empty", "empty"), "")
    assert marked(library, "queries", "32", "60 64", "")[0] == ("right", "unreadable", "empty")


def test_bytes_may_be_rounded_and_slips_are_named(library: Library) -> None:
    """1,966,080 bytes are 1.97 MB; with query heads 4 times, without values half, one layer a sixteenth, in bits 8."""
    heads, cache = LayerHeads(SIZES), CacheBytes(1_966_080, frozenset({122_880}), 1_966_080)

    def sentence(text: str) -> str:
        boxes = mark_cache(heads, text, cache, library.wording)
        assert boxes.marks == ("right",) or boxes.message
        return "right" if boxes.is_right else boxes.message

    assert sentence("1,966,080") == sentence("1.97 MB") == sentence("1920 KiB") == "right"
    wrong = [sentence(text) for text in ("7864320", "983040", "122880", "15728640", "5", "1.9 cats")]
    assert len(set(wrong)) == len(wrong)
    assert "right" not in wrong
    assert mark_cache(heads, "", cache, library.wording).marks == ("empty",)


def test_what_full_windows_drop_is_not_asked_to_be_multiplied(library: Library) -> None:
    """gpt-oss after 200 tokens: 12 layers keep 128 and 12 keep 200, each 2·8·64 numbers at 2 bytes a token."""
    heads = LayerHeads({**SIZES, "N": 200, "H": 64})
    of_token = 2 * 8 * 64 * 2
    in_windows, in_others = of_token * 128, of_token * 200
    cache = CacheBytes(12 * (in_windows + in_others), frozenset({in_windows, in_others}), 24 * in_others)

    def sentence(bytes_: int) -> str:
        return mark_cache(heads, str(bytes_), cache, library.wording).message

    assert "one layer" in sentence(in_windows)
    assert "one layer" in sentence(in_others)
    assert "one layer" not in sentence(cache.all_layers // 24)
    assert "sliding window" in sentence(24 * in_others)
    assert "layers, the tokens" not in sentence(7)
    assert "cached tokens" in sentence(7)
    assert "cached tokens" in sentence(cache.all_layers)
