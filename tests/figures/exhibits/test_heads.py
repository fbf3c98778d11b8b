"""The drawings of "Deal the heads": read off the table, inside their frame, and readable with many heads."""

from __future__ import annotations

import pytest

from app.figures.exhibits.cards import CARD_HEIGHT, WIDTH
from app.figures.exhibits.dealing import Dealing
from app.figures.exhibits.frames import Exhibit, Frame, PathMark, TextMark
from app.figures.exhibits.heads import HeadsExhibit
from app.grading.exhibit_boxes import DECKS
from app.sheets.library import Library
from app.topics.attention_layer import ATTENTION_LAYER
from app.topics.layer_heads import LayerHeads, possible_kv_heads
from app.topics.registry import sizes_for
from app.topics.three_dimensions import GROUPED_THREE_DIMENSIONS
from tests.helpers.tables import with_shapes

LETTERS = {tensor.key: tensor.letter for tensor in ATTENTION_LAYER.tensors}
SIZES = {"N": 60, "d": 2048, "H": 32, "G": 8, "d_h": 64, "d_v": 64}


def drawn(heads: LayerHeads, dealt: int = 0, tried: int | None = None, known: frozenset[str] = frozenset()) -> Exhibit:
    """The frames for a visitor who is so far."""
    return HeadsExhibit(Dealing(heads, dealt, tried, known), LETTERS).exhibit()


def texts(frame: Frame) -> set[str]:
    """Everything that is written in a drawing."""
    return {mark.text for part in frame.drawing.parts for mark in part.marks if isinstance(mark, TextMark)}


def cards(frame: Frame, key: str) -> set[str]:
    """The heads of a matrix that are drawn as stripes or cards."""
    names = (part.key.removeprefix("card-") for part in frame.drawing.parts)
    return {name.partition("-")[2] for name in names if name.startswith(f"{key}-") and name[-1].isdigit()}


def test_another_table_gives_another_exhibit() -> None:
    wider = {"keys": "N, H*d_v + H*d_v", "keys_by_head": "H, N, d_v + d_v"}
    slabs, decks = drawn(LayerHeads(SIZES)).frames[:2]
    assert (len(cards(slabs, "queries")), len(cards(slabs, "keys")), len(cards(slabs, "values"))) == (32, 8, 8)
    assert "512 = 8 · 64" in texts(slabs)
    slabs, decks = drawn(
        LayerHeads(SIZES, with_shapes(GROUPED_THREE_DIMENSIONS, wider)), known=frozenset({"keys"})
    ).frames[:2]
    assert (len(cards(slabs, "keys")), len(cards(slabs, "values"))) == (32, 8)
    assert "4096 = 32 · 128" in texts(slabs)
    assert "(32, 60, 128)" in texts(decks)


def test_every_model_with_every_number_of_key_heads_stays_inside_its_frame(library: Library) -> None:
    shapes = {(model.architecture.H, model.architecture.d_h): model for model in library.models.values()}
    for model in shapes.values():
        architecture = model.architecture
        for count in possible_kv_heads(architecture.H):
            for tokens in (2, 5000) if count == architecture.G else (60,):
                heads = LayerHeads({**sizes_for("attention-layer", architecture, tokens, 1), "G": count})
                exhibit = drawn(heads, dealt=1, tried=0)
                for frame in exhibit.frames:
                    for part in frame.drawing.parts:
                        right = part.x + max((getattr(mark, "width", 0.0) for mark in part.marks), default=0.0)
                        assert 0 <= part.x <= right <= WIDTH + 1, (model.key, count, frame.key, part.key)
                        assert 0 <= part.y <= frame.drawing.height - (CARD_HEIGHT if "card" in part.css else 0)
                assert not {str(heads.deck(key)) for key in ("queries", "keys", "scores")} & texts(exhibit.frames[1])
                left_out = architecture.H > 32
                assert ("are drawn" in exhibit.frames[0].sentence) == left_out


def test_a_card_is_dealt_only_where_the_key_card_fits() -> None:
    heads = LayerHeads(SIZES)
    dealing = Dealing(heads)
    assert dealing.asked is not None
    own = dealing.asked // 4
    for tried in range(8):
        frame = drawn(heads, tried=tried).frames[2]
        assert cards(frame, "scores") == ({str(dealing.asked)} if tried == own else set())
        assert f"queries-{dealing.asked}" in {part.key for part in frame.drawing.parts}
        remark = HeadsExhibit(Dealing(heads, tried=tried), LETTERS).remark
        assert str(4 * tried) in remark
        assert str(4 * tried + 3) in remark
    everything = Dealing(heads, dealt=len(dealing.rounds))
    assert everything.asked is None
    assert len(cards(drawn(heads, dealt=9).frames[2], "scores")) == len(dealing.rounds)


@pytest.mark.parametrize("count", possible_kv_heads(128))
def test_no_label_lies_on_a_line_between_cards(count: int) -> None:
    pairs = drawn(LayerHeads({**SIZES, "N": 8000, "H": 128, "G": count}), known=frozenset(DECKS)).frames[3]
    assert len(cards(pairs, "scores")) == len(cards(pairs, "queries"))
    lines = [mark.path for part in pairs.drawing.parts for mark in part.marks if isinstance(mark, PathMark)]
    bottom = max(float(path.partition("V")[2]) for path in lines)
    [decks] = [part for part in pairs.drawing.parts if part.key == "decks"]
    shapes = [mark for mark in decks.marks if isinstance(mark, TextMark) and "(" in mark.text]
    assert len(shapes) == 3
    for mark in shapes:
        assert mark.y - 11 > bottom
        assert mark.x + 11 * 0.65 * len(mark.text) < WIDTH


@pytest.mark.parametrize(("count", "groups"), [(128, 7), (8, 8), (1, 1)])
def test_many_heads_stay_readable(count: int, groups: int) -> None:
    """Of 128 heads at most 32 stripes are drawn, including the first, the last, and the key cards that are
    asked for.
    """
    heads = LayerHeads({**SIZES, "H": 128, "G": count})
    exhibit = drawn(heads)
    assert cards(exhibit.frames[0], "queries") >= {"0", "127"}
    assert len(cards(exhibit.frames[0], "queries")) <= 32
    assert len(cards(exhibit.frames[3], "keys")) == groups
    asked = {str(heads.read_by(head)) for head in Dealing(heads).rounds}
    assert asked <= cards(exhibit.frames[2], "keys")
