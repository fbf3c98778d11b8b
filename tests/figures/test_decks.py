"""Decks of cards: a tensor with three sides or four is drawn as typed, and breaks where torch could not go on."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.algebra.number_text import format_number
from app.figures.geometry import Rect
from app.figures.parts import Box, Figure
from app.figures.sheet_figures import draw_figures
from app.shapes.table import Blank
from app.sheets.answers import Answer
from app.sheets.variant import Variant
from app.topics.requirements import TopicError
from tests.helpers.own_sheets import own_sheet
from tests.helpers.rectangles import touch
from tests.helpers.shipped import LIBRARY
from tests.helpers.tables import with_shapes

ROWS = (
    *("queries", "split_queries", "queries_by_head", "keys", "split_keys", "keys_by_head", "repeated_keys", "scores"),
    *("context", "context_by_token", "joined_context", "output"),
)
GROUPED = own_sheet(  # 14 query heads share 2 key/value heads
    LIBRARY, "three-dimensions-llama-7b", model="qwen2.5-0.5b", tokens=50, rows=ROWS
)
BATCHED = own_sheet(LIBRARY, "four-dimensions-gpt2", model="qwen3-0.6b", tokens=80, rows=ROWS)
SHEETS = [GROUPED, BATCHED, LIBRARY.variant("three-dimensions-llama-7b"), LIBRARY.variant("four-dimensions-gpt2")]


@given(st.integers(0, 2**32), st.sampled_from(SHEETS), st.booleans())
def test_nothing_that_is_written_at_decks_is_covered(seed: int, sheet: Variant, filled: bool) -> None:
    chance = Random(seed)  # noqa: S311 - so that it can be repeated
    answers = {blank: sheet.answer(blank) for blank in sheet.blanks} if filled else {}
    sizes = (1, 2, 7, 64, 128, 4096, 99_999, 1_000_000, *(chance.randint(1, 1_000_000) for _ in range(8)))
    count = chance.randrange(6 if filled else 2 * len(sheet.blanks))
    answers |= {chance.choice(sheet.blanks): chance.choice(sizes) for _ in range(count)}
    for figure in draw_figures(sheet, answers):
        texts = [edge.text_box for edge in figure.edges if edge.text_height]
        texts += [each.text_box for each in figure.brackets] + [sign.text_box for sign in figure.signs]
        lines = [each.bracket_box for each in figure.brackets]
        lines += [Rect(x - 0.6, y - 0.6, 1.2, 1.2) for arc in figure.arcs for x, y in arc.points]
        decks = [box.card_rects for box in figure.boxes]
        cards = [card for deck in decks for card in deck]
        assert not any(touch(a, b) for a, b in combinations(texts, 2))
        assert not any(touch(a, b) for first, second in combinations(decks, 2) for a in first for b in second)
        assert not any(touch(text, other) for text in texts for other in (*cards, *lines))
        assert all(map(figure.frame.holds, (*texts, *cards, *lines)))
        assert bool(figure.brackets) == bool(figure.mismatches)


def heads_can_be_computed(shapes: dict[str, tuple[int, ...]], width: int) -> bool:
    """Whether torch gets from queries and keys of these shapes to the output, by way of all the others."""
    made = {key: torch.empty(shape, device="meta") for key, shape in shapes.items()}
    heads = -3  # the side of the heads once they are split off, with a batch or without
    try:
        for whole, split in (("queries", "split_queries"), ("keys", "split_keys")):
            if whole in made:
                assert made[whole].view(made[split].shape).shape[:heads] == made[whole].shape[:-2]
                assert made[whole].shape[-2] == made[split].shape[heads]
        for split, by_head in (("split_queries", "queries_by_head"), ("split_keys", "keys_by_head")):
            assert made[split].transpose(-3, -2).shape == made[by_head].shape
        kept = [made[key].movedim(heads, 0).shape[1:] for key in ("keys_by_head", "repeated_keys")]
        assert kept[0] == kept[1]
        assert made["queries_by_head"].shape[:-2] == made["repeated_keys"].shape[:-2] == made["context"].shape[:-2]
        scores = made["queries_by_head"] @ made["repeated_keys"].transpose(-2, -1)
        assert scores.shape == made["scores"].shape
        assert made["scores"].shape[:-1] == made["context"].shape[:-1]
        assert made["context"].transpose(-3, -2).shape == made["context_by_token"].shape
        tokens = made["context_by_token"].shape[:-2]
        assert (
            made["context_by_token"].reshape(*tokens, made["joined_context"].shape[-1]).shape
            == made["joined_context"].shape
        )
        return made["joined_context"].shape[:-1] == made["output"].shape[:-1] and made["output"].shape[-1] == width
    except (AssertionError, RuntimeError):
        return False


@given(st.integers(0, 2**32), st.sampled_from([GROUPED, BATCHED]))
def test_decks_break_exactly_where_torch_cannot_go_on(seed: int, sheet: Variant) -> None:
    chance = Random(seed)  # noqa: S311 - so that it can be repeated
    values = {blank: sheet.answer(blank) for blank in sheet.blanks}
    sizes = [*values.values(), 7, 96]
    values |= {chance.choice(sheet.blanks): chance.choice(sizes) for _ in range(chance.randrange(4))}
    shapes = {row.key: tuple(values[blank] for blank in row.blanks) for row in sheet.rows}
    drawn = any(figure.mismatches for figure in draw_figures(sheet, values))
    assert drawn != heads_can_be_computed(shapes, sheet.architecture.d), shapes


def deck(figures: tuple[Figure, ...], key: str) -> Box:
    """The first deck of a tensor."""
    return next(box for figure in figures for box in figure.boxes if box.tensor == key)


def test_every_tensor_of_a_sheet_is_drawn_with_all_of_its_sides() -> None:
    drawn = 0
    for worksheet in (sheet.worksheet.key for sheet in SHEETS):
        for model in LIBRARY.models:
            try:
                variant = LIBRARY.variant(worksheet, model)
                figures = draw_figures(variant, variant.problem.answers)
            except (TopicError, ValueError):
                continue
            labels = {(edge.blank, edge.label) for figure in figures for edge in figure.edges}
            assert labels >= {(blank, format_number(variant.answer(blank))) for blank in variant.blanks}
            names = {edge.name for figure in figures for edge in figure.edges}
            assert names >= {"tokens", "heads", "features", *(["inputs"] if "four" in worksheet else [])}
            drawn += 1
    assert drawn > 20


def test_repeated_keys_are_a_deck_of_as_many_cards_as_queries() -> None:
    figures = draw_figures(GROUPED, GROUPED.problem.answers)
    keys, repeated, queries = (deck(figures, key) for key in ("keys_by_head", "repeated_keys", "queries_by_head"))
    assert len(keys.card_rects) == 2
    assert repeated.depth == pytest.approx(queries.depth)
    assert repeated.rect[2:] == keys.rect[2:] == queries.rect[2:]


def test_keys_that_were_not_repeated_break_on_the_queries_cards() -> None:
    wrong = {**GROUPED.problem.answers, Blank("repeated_keys", "dim0"): 2}
    (scores,) = (figure for figure in draw_figures(GROUPED, wrong) if figure.key == "deck-scores")
    assert [each.text for each in scores.brackets] == ["14 ≠ 2"]
    (mismatch,) = scores.mismatches
    assert "Q_head" in mismatch.sentence
    assert "K_rep" in mismatch.sentence


def test_a_batch_is_as_many_decks_behind_one_another() -> None:
    sheet = LIBRARY.variant("four-dimensions-gpt2")
    of_one, of_many = (
        deck(draw_figures(sheet, {**sheet.problem.answers, Blank("queries_by_head", "dim0"): texts}), "queries_by_head")
        for texts in (1, 6)
    )
    assert len(of_many.card_rects) == 3 * len(of_one.card_rects)


def test_a_side_that_the_table_changes_changes_the_drawing() -> None:
    variant = LIBRARY.variant("three-dimensions-llama-7b", "qwen2.5-0.5b", tokens=50)
    before = deck(draw_figures(variant, variant.problem.answers), "queries_by_head")
    changed = replace(variant.problem, table=with_shapes(variant.table, {"queries_by_head": "N, H, d_h"}))
    other = replace(variant)
    other.__dict__["problem"] = changed  # where the property keeps it
    after = deck(draw_figures(other, changed.answers), "queries_by_head")
    assert after.rect.height < before.rect.height
    assert after.depth > before.depth


def test_merged_heads_in_letters_fit_by_what_they_mean() -> None:
    sheet = replace(GROUPED.worksheet, answers="letters", model="")
    variant = replace(GROUPED, worksheet=replace(sheet, model=GROUPED.worksheet.model))
    written = {"queries.rows": "N", "queries.columns": "H*d_h"}
    written |= {"split_queries.dim0": "N", "split_queries.dim1": "H", "split_queries.dim2": "d_h"}
    for columns, fits in (("H*d_h", True), ("d_h", False)):
        typed = {
            variant.blanks_by_name[name]: variant.read(variant.blanks_by_name[name], text)
            for name, text in {**written, "queries.columns": columns}.items()
        }
        figures = draw_figures(variant, {blank: each for blank, each in typed.items() if isinstance(each, Answer)})
        assert any(figure.mismatches for figure in figures) != fits
