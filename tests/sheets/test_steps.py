"""The sentences of first steps: for every family, true of its numbers and not giving away what they ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from app.grading.grade import grade
from app.shapes.table import Blank
from app.sheets.prose import StepSentences, step_of
from app.sheets.variant import Row, Variant
from app.sheets.worksheet import Model
from app.topics.registry import TOPICS
from tests.helpers.every_family import TOKENS, possible
from tests.helpers.shipped import LIBRARY

SHEET = LIBRARY.worksheets["first-steps"]
SHAPE = re.compile(r"([\d,]+)\u00a0×\u00a0([\d,]+)")


@cache
def sheets() -> tuple[Variant, ...]:
    """First steps of every family's models that they are true of."""
    return tuple(
        Variant(SHEET, Model(a.family, a.name, "", "", a, ""), TOKENS, LIBRARY.wording) for a in possible("first-steps")
    )


def steps(variant: Variant) -> Iterator[tuple[Row, StepSentences]]:
    """The rows with their sentences."""
    for row in variant.rows:
        step = step_of(variant, row.key)
        assert step, row.key
        yield row, step


def whole(text: str) -> int:
    return int(text.replace(",", ""))


def test_only_topics_in_steps_have_steps_and_these_for_all_that_is_asked() -> None:
    assert {key for key, topic in TOPICS.items() if topic.in_steps} == {"first-steps"}
    assert {key for key, words in LIBRARY.wording.topics.items() if words.steps} == {"first-steps"}
    for variant in sheets():
        a, keys = variant.architecture, [row.key for row, _ in steps(variant)]
        assert ("masked" in keys) <= a.causal
        assert ("under_root" in keys) == (a.score_scale.kind in ("inverse-sqrt", "yarn"))
        assert set(SHEET.rows) - {"masked", "under_root"} <= set(keys)


def test_no_question_states_a_shape_that_any_question_asks_for() -> None:
    for variant in sheets():
        asked = {tuple(variant.key[str(blank)] for blank in row.blanks) for row in variant.rows}
        for _row, step in steps(variant):
            stated = {tuple(map(whole, found)) for found in SHAPE.findall(step.question)}
            assert not asked & stated, (variant.architecture.name, step.question)


def test_every_product_of_a_question_has_the_shapes_that_are_stated() -> None:
    for variant in sheets():
        known, multiplied = dict[str, tuple[int, ...]](), list[str]()
        known[variant.letters["input"]] = (4, variant.sizes["d"])
        for row, step in steps(variant):
            for sentence in (step.question, step.reason):
                for letter, rows, columns in re.findall(rf"(\w+)(?: \(|: | = [^:?]*: ){SHAPE.pattern}", sentence):
                    known[letter] = (whole(rows), whole(columns))
            if found := re.search(r"shape of (?:[\w ’]* )?(\w+) = (\w+)\u00a0·\u00a0(\w+)\?", step.question):
                result, *factors = found.groups()
                for made, one, two in re.findall(r"are (\w+) = (\w+)\u00a0·\u00a0(\w+)", step.question):
                    known[made] = (np.zeros(known[one]) @ np.zeros(known[two])).shape
                known |= {f"{key}ᵀ": shape[::-1] for key, shape in known.items() if f"{key}ᵀ" in factors}
                if row.key.startswith("all_"):  # its operands have the length of the input, which no shape states
                    continue
                left, right = (np.zeros(known[factor]) for factor in factors)
                truth = tuple(variant.key[str(blank)] for blank in row.blanks)
                assert (left @ right).shape == truth, step.question
                known[result] = truth
                multiplied.append(row.key)
            elif row.fields != ("count",):
                known[row.letter] = (variant.key[f"{row.key}.rows"], variant.key[f"{row.key}.columns"])
        assert multiplied == ["token_query", "token_score", "queries", "scores", "context", "output"]


def test_every_number_of_a_sentence_is_one_of_the_model() -> None:
    for variant in sheets():
        sizes = {variant.sizes[symbol] for symbol in ("N", "d", "d_h", "d_v", "H")}
        for row, step in steps(variant):
            for sentence in (step.question, step.why, step.reason):
                numbers = set(map(whole, re.findall(r"(?<![\w.])\d[\d,]*", sentence)))
                assert numbers <= {*sizes, TOKENS**2, 0, 1, 2, 3, 4}, sentence
                assert not re.search(r"[{}]", sentence), (row.key, sentence)


def test_the_mask_hides_what_the_reason_counts() -> None:
    above = np.triu(np.ones((4, 4)), 1)
    variant = LIBRARY.variant("first-steps")
    assert variant.key["masked.count"] == above.sum()
    step = step_of(variant, "masked")
    assert step
    assert " + ".join(f"{hidden:g}" for hidden in above.sum(axis=1)) in step.reason


def test_a_window_of_two_tokens_leaves_the_mask_out() -> None:
    a = next(each for each in possible("first-steps") if each.causal and any(run.window for run in each.runs))
    stacks = tuple(
        replace(stack, runs=tuple(replace(run, window=2 if run.window else None) for run in stack.runs))
        for stack in a.stacks
    )
    table = TOPICS["first-steps"].build_table(replace(a, stacks=stacks), TOKENS)
    assert "masked" not in table.askable


def test_an_untransposed_key_is_compared_by_what_the_product_needs() -> None:
    variant = LIBRARY.variant("first-steps")
    boxes = {
        f"{row}.{side}": n
        for row in ("token_query", "transposed_key")
        for side, n in (("rows", "1"), ("columns", "128"))
    }
    report = grade(variant, boxes)
    assert report.first_mismatch
    sides = report.first_mismatch.left, report.first_mismatch.right
    assert sides == (Blank("token_query", "columns"), Blank("transposed_key", "rows"))
    beside = report.marks[Blank("transposed_key", "columns")].message
    assert beside == variant.wording.say("marks", "repeats-beside")


def test_weights_beside_a_sink_add_up_to_one_with_it_alone() -> None:
    for variant in sheets():
        step = step_of(variant, "weights")
        assert step
        assert ("add up to 1" in step.question) == (not variant.architecture.has_sinks)
        assert ("sink" in step.reason) == variant.architecture.has_sinks


def test_the_scores_of_random_vectors_are_as_large_as_the_reason_says() -> None:
    chance = np.random.default_rng(1)
    for width in (16, 64, 256):
        q, k = chance.standard_normal((2, 4000, width))
        scores = (q * k).sum(axis=1)
        assert abs(scores.std() / width**0.5 - 1) < 0.05
