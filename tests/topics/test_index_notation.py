"""Index notation: its patterns against torch's products, views and copies; what is typed, marked, hinted and told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from einops import EinopsError, rearrange, repeat

from app.grading.grade import grade
from app.grading.hints import HINT_LEVELS, write_hint
from app.grading.paper import mark_lines
from app.models.architecture import Architecture
from app.shapes.table import OTHER_PATTERN, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.code_text import option_text
from app.sheets.lint import findings_on
from app.sheets.variant import Variant
from app.topics.registry import refusal, topic_for
from app.web.api import variant_json
from tests.helpers.every_family import TOKENS, possible
from tests.helpers.shipped import LIBRARY, MODELS

GPT2 = LIBRARY.variant("index-gpt2")
SHEETS = [
    GPT2,
    LIBRARY.variant("index-gpt2", "llama-3.2-1b"),
    LIBRARY.variant("index-gpt2~symbols", "mistral-7b"),
]
B, H, G, T, E, D = 2, 6, 3, 5, 4, 7
Operands = tuple[torch.Tensor, ...]


def random(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(len(sizes)), dtype=torch.float64)


def steps() -> Mapping[str, tuple[Operands, torch.Tensor]]:
    """For each question, the operands and what attention code without index notation makes of them."""
    tokens, matrix, queries, keys = random(B, T, D), random(D, H * E), random(B, T, H * E), random(B, H, T, E) + 1
    by_head, weights, context = random(B, H, T, E), random(B, H, T, T), random(B, H, T, E)
    shared, grouped, of_group = random(B, G, T, E), random(G, H // G, T, E), random(G, T, E)
    return {
        "projection_pattern": ((tokens, matrix), tokens @ matrix),
        "split_pattern": ((queries,), queries.view(B, T, H, E).transpose(1, 2)),
        "scores_pattern": ((by_head, keys), by_head @ keys.mT),
        "sums_pattern": ((weights, keys), weights @ keys),
        "merge_pattern": ((context,), context.transpose(1, 2).reshape(B, T, H * E)),
        "repeat_pattern": ((shared,), shared.repeat_interleave(H // G, dim=1)),
        "grouped_pattern": ((grouped, of_group), grouped @ of_group[:, None].mT),
    }


def computed(question: WrittenPattern, pattern: str, operands: Operands) -> torch.Tensor | None:
    """The call's result with this pattern and these operands; None if it raises."""
    lengths = {"split": {"h": H}, "merge": {}, "repeat": {"r": H // G}}.get(question.key.partition("_")[0], {})
    try:
        if question.call.startswith("einsum"):
            return torch.einsum(pattern, *operands)
        function = rearrange if question.call.startswith("rearrange") else repeat
        return function(operands[0], pattern, **lengths)
    except (RuntimeError, EinopsError):
        return None


def patterns_of(architecture: Architecture) -> dict[str, WrittenPattern]:
    questions = topic_for("index-notation", architecture, TOKENS).questions
    return {each.key: each for each in questions if isinstance(each, WrittenPattern)}


def test_the_right_pattern_computes_what_the_step_does_and_no_other_does() -> None:
    seen = {question for a in possible("index-notation") for question in patterns_of(a).values()}
    assert {question.key for question in seen} == steps().keys()
    for question in seen:
        operands, expected = steps()[question.key]
        right, *wrong = (computed(question, pattern, operands) for pattern in question.texts)
        assert right is not None
        assert torch.allclose(right, expected), question.key
        for pattern, made in zip(question.texts[1:], wrong, strict=True):
            assert made is None or made.shape != expected.shape or not torch.allclose(made, expected), pattern
        assert [question.number_of(pattern) for pattern in question.texts] == list(question.options)


def test_the_axes_that_are_summed_over_are_those_that_torch_sums() -> None:
    lengths = {"b": 2, "h": 3, "q": 5, "k": 7, "n": 11, "e": 13}
    for question in topic_for("index-notation", MODELS["llama-3.2-1b"], TOKENS).questions:
        if not isinstance(question, WrittenPattern) and isinstance(question, OneOf):
            pattern = question.call.split('"')[1]
            operands = [
                torch.ones([lengths[axis] for axis in each.split()]) for each in pattern.partition("->")[0].split(",")
            ]
            summed = question.texts[question.right - 1].split(", ")
            product = torch.prod(torch.tensor([lengths[axis] for axis in summed]))
            assert set(torch.einsum(pattern, *operands).flatten().tolist()) == {float(product)}


@pytest.mark.parametrize(
    ("model", "tokens", "why"),
    [("deepseek-v2-lite", 50, "latent"), ("gpt2", 1, "single query")],
)
def test_a_model_that_does_not_fit_is_refused_with_a_reason(model: str, tokens: int, why: str) -> None:
    assert why in (refusal("index-notation", MODELS[model], tokens) or "")


def test_groups_are_asked_about_only_where_there_are_several() -> None:
    assert "grouped_pattern" not in patterns_of(MODELS["gpt2"])
    assert {"grouped_pattern", "repeat_pattern"} <= patterns_of(MODELS["llama-3.2-1b"]).keys()
    for a in possible("index-notation"):
        assert ("grouped_pattern" in patterns_of(a)) is (1 < a.G < a.H)


def right_texts(variant: Variant) -> dict[str, str]:
    return {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}


@pytest.mark.parametrize("variant", SHEETS, ids=lambda variant: variant.worksheet.key)
def test_a_right_sheet_is_right_in_any_names_and_says_nothing_before(variant: Variant) -> None:
    right = right_texts(variant)
    assert grade(variant, right).complete
    asked = {box: text for box, text in right.items() if box.endswith("_pattern.choice")}
    swapped = {box: text.translate(str.maketrans("bhqke", "xyzwv")) for box, text in asked.items()}
    assert grade(variant, {**right, **swapped}).complete
    assert not [text for text in asked.values() if text in str(variant_json(variant))]
    for level in HINT_LEVELS:
        for box, text in asked.items():
            wrong = {**right, box: "a b, c d -> a d" if "," in text else "a b -> b a"}
            hint = write_hint(variant, grade(variant, wrong), level)
            assert hint is not None
            assert text not in hint.message


def test_a_wrong_pattern_is_told_its_own_misconception_and_an_odd_one_is_unreadable() -> None:
    right = right_texts(GPT2)
    typed = {
        "scores_pattern.choice": "bhnd,bhnd->bhnn",
        "merge_pattern.choice": "b h n d -> b n (d h)",
        "sums_pattern.choice": "bhqk,bhkd->bhqk",
        "projection_pattern.choice": "bnd df bnf",
    }
    report = grade(GPT2, {**right, **typed})
    marks = {str(blank): mark for blank, mark in report.marks.items() if str(blank) in typed}
    assert marks["scores_pattern.choice"].message == prose.misconception(GPT2, "one-name-for-two-axes", "nudge")
    assert marks["merge_pattern.choice"].message == prose.misconception(GPT2, "group-order-swapped", "nudge")
    assert marks["sums_pattern.choice"].kind == "wrong"
    assert marks["sums_pattern.choice"].read_as == OTHER_PATTERN
    assert marks["projection_pattern.choice"].kind == "unreadable"
    assert option_text(GPT2, "sums_pattern", OTHER_PATTERN) not in ("", *right.values())


def test_patterns_on_paper_are_typed_in_quotes_or_without_spaces() -> None:
    texts = [f'"{text}"' if " " in text else text for text in right_texts(GPT2).values()]
    [paper] = mark_lines(GPT2, f"Ada: {' '.join(texts)}")
    assert paper.report.complete
    texts[-3] = "bhqe,bhke->bhqk"
    [paper] = mark_lines(GPT2, " ".join(texts))
    assert paper.report.complete


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (("scores", "scores_pattern"), 1),
        (("queries", "summed_in_scores", "projection_pattern", "scores_pattern"), 2),
        (("own_scores", "keys_by_head", "scores_pattern", "split_pattern", "merge_pattern"), 0),
    ],
)
def test_a_row_that_shows_the_pattern_another_asks_for_is_reported(rows: tuple[str, ...], count: int) -> None:
    sheet = replace(GPT2.worksheet, key="mine", rows=rows)
    library = replace(LIBRARY, worksheets={"mine": sheet})
    kinds = [finding.kind for finding in findings_on(library.variant("mine"))]
    assert kinds.count("gives-away") == count
