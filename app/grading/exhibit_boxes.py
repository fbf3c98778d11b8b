"""Marks the boxes of the exhibits: the shapes of decks of heads, the bytes of a KV cache, the shape of new scores.

Each is graded as a sheet with one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app.figures.exhibits.decode_steps import DecodeStep
from app.grading.grade import MarkKind, grade
from app.sheets import prose
from app.sheets.variant import Variant
from app.topics import costs, three_dimensions
from app.topics.layer_heads import BY_HEAD, LayerHeads
from app.topics.problem import Problem
from app.topics.registry import TOPICS, sizes_for
from app.translation import gettext as _

DECKS = ("queries", "keys", "scores")  # in the order in which the exhibit asks


@dataclass(frozen=True)
class AskedBoxes:
    """What was typed for one shape or number, with the mark of each box and one sentence about them.

    The sentence is empty while nothing is typed, and gives no answer away unless all boxes are right.
    """

    texts: tuple[str, ...]
    marks: tuple[MarkKind, ...]
    message: str = ""

    @property
    def is_right(self) -> bool:
        return set(self.marks) == {"right"}


@dataclass(frozen=True, kw_only=True)
class _ScoresSheet(Variant):
    """A sheet that asks only for the scores of one token of "One more token"."""

    step: DecodeStep

    @cached_property
    def problem(self) -> Problem:
        """The problem with the step's table and sizes, which may describe only some layers."""
        topic, step = self.worksheet.topic, self.step
        return Problem(topic, self.architecture, step.table, step.sizes, self.worksheet.rows)


@dataclass(frozen=True)
class _CacheSheet(Variant):
    """A sheet that asks only for the bytes of the KV cache, whatever feed-forward blocks the model has."""

    @cached_property
    def problem(self) -> Problem:
        """The problem, without the topic's requirements for other costs."""
        topic, architecture, tokens = self.worksheet.topic, self.architecture, self.tokens
        table = TOPICS[topic].build_table(architecture, tokens)
        return Problem(topic, architecture, table, sizes_for(topic, architecture, tokens, tokens), self.worksheet.rows)


def mark_deck(variant: Variant, heads: LayerHeads, key: str, texts: Sequence[str]) -> AskedBoxes:
    """Mark the sides typed for a deck of queries, keys or scores, in the order of its three dimensions."""
    architecture = replace(variant.architecture, G=heads.count("keys"))
    worksheet = replace(
        variant.worksheet, topic=three_dimensions.TOPIC.key, rows=(BY_HEAD.get(key, key),), kv_head_per_query_head=False
    )
    sheet = replace(variant, worksheet=worksheet, model=replace(variant.model, architecture=architecture))
    return _marked(sheet, texts, _right_deck(heads, key), _("Right so far: a deck has three dimensions."))


def mark_cache(variant: Variant, text: str) -> AskedBoxes:
    """Mark the bytes typed for the 16-bit KV cache of all layers; rounded ones such as 3.9 MB may be right."""
    worksheet = replace(variant.worksheet, topic=costs.TOPIC.key, rows=("cache_16_bit",))
    sheet = _CacheSheet(worksheet, variant.model, variant.tokens, variant.wording)
    right = _("Right: the keys and values of every layer, token and key/value head.")
    if prose.cached(sheet):  # the step with full windows
        right = _("Right: the keys and values of the cached tokens, in every layer and key/value head.")
    return _marked(sheet, (text,), right)


def mark_scores(variant: Variant, step: DecodeStep, texts: Sequence[str]) -> AskedBoxes:
    """Mark the rows and columns typed for the scores of a step's new token; ValueError unless there are two texts."""
    worksheet = replace(variant.worksheet, rows=("scores",))
    sheet = _ScoresSheet(worksheet, variant.model, step.cached, variant.wording, step=step)
    right = _("Right: one row for the new token’s query, and a score for each key, its own among them.")
    if step.dropped:
        right = _("Right: one row for the new token’s query, and a score for each key in the window.")
    return _marked(sheet, texts, right, _("Right so far: how long is the other side?"))


def _marked(sheet: Variant, texts: Sequence[str], right: str, so_far: str = "") -> AskedBoxes:
    report = grade(sheet, dict(zip(sheet.blanks_by_name, texts, strict=True)))
    marks = [report.marks[blank] for blank in sheet.blanks]
    kinds = tuple[MarkKind, ...]("wrong" if mark.kind == "follows" else mark.kind for mark in marks)  # no half credit
    unreadable = next((mark.message for mark in marks if mark.kind == "unreadable"), "")
    if unreadable or "wrong" in kinds:
        diagnosed = report.diagnosis.message if report.diagnosis else ""
        message = unreadable or diagnosed or marks[kinds.index("wrong")].message
    elif "empty" in kinds:
        message = "" if set(kinds) == {"empty"} else so_far
    else:
        message = right
    return AskedBoxes(tuple(texts), kinds, message)


def _right_deck(heads: LayerHeads, key: str) -> str:
    if key == "queries":
        return _("Right: heads, tokens, features.")
    if key == "scores":
        return _("Right: one score card for each query head, however many key cards there are.")
    if heads.shared_by == 1:
        return _("Right: here every query card has a key card of its own.")
    return _("Right: fewer cards than in the deck of queries. The deck of values has as many as this one.")
