"""What is wrong by the key and right given the student's own earlier answers: worked by hand, then drawn at random."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.figures.counts import count_plans
from app.grading.grade import Report, feedback, grade
from app.models.architecture import TokensError
from app.shapes.table import WrittenPattern
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Marking
from app.topics.requirements import TopicError
from tests.helpers.answer_keys import LLAMA
from tests.helpers.shipped import LIBRARY

# In numbers; letters are in tests/sheets/test_symbols.py.
SHEETS = [
    v
    for v in map(LIBRARY.variant, LIBRARY.worksheets)
    if v.worksheet.answers == "numbers"
    and not v.problem.case  # whose questions aren't numbers, and are tested with their topic
    and not any(isinstance(row.asked, WrittenPattern) for row in v.rows)
]


def marked(variant: Variant, answers: dict[str, int]) -> Report:
    return grade(variant, {box: str(size) for box, size in answers.items()})


def kinds(report: Report, kind: str) -> set[str]:
    return {str(blank) for blank, mark in report.marks.items() if mark.kind == kind}


@pytest.mark.parametrize(
    ("marking", "credit", "score"),
    [("causes", "full credit", 13), ("boxes", "no credit", 10), ("rows", "no credit", 8)],
)
def test_what_a_follow_through_earns_is_said_beside_it(
    library: Library, marking: Marking, credit: str, score: int
) -> None:
    variant = library.variant("llama-7b")
    variant = replace(variant, worksheet=replace(variant.worksheet, marking=marking))
    wrong = {"queries.rows": 90, "keys.rows": 90, "scores.rows": 90, "scores.columns": 90}
    report = marked(variant, LLAMA | wrong)
    following = [mark for mark in report.marks.values() if mark.kind == "follows"]
    assert sorted(mark.repeats is None for mark in following) == [False, True, True]
    assert report.score == score
    for mark in following:
        assert credit in mark.message
        assert "once" not in mark.message
    assert credit in feedback(variant, variant.blanks[0], "follows")


def test_scores_follow_queries_and_keys(library: Library) -> None:
    shapes = {"queries": (90, 128), "keys": (90, 128), "scores": (90, 90)}
    answers = {
        f"{key}.{axis}": n for key, pair in shapes.items() for axis, n in zip(("rows", "columns"), pair, strict=True)
    }
    report = marked(library.variant("llama-7b"), answers)
    assert kinds(report, "wrong") == {"queries.rows"}
    assert kinds(report, "follows") == {"keys.rows", "scores.rows", "scores.columns"}
    assert kinds(report, "right") == {"queries.columns", "keys.columns"}
    assert report.score == 2 + 3
    assert repeated(report) == {"keys.rows": "queries.rows"}


def test_what_a_view_splits_and_a_reshape_merges_follows(library: Library) -> None:
    sheet = library.variant("three-dimensions-llama-7b")
    right = dict(sheet.key)
    split = {"queries.columns": 2048, "split_queries.dim2": 64, "queries_by_head.dim2": 64}
    report = marked(sheet, right | split)
    assert (kinds(report, "wrong"), kinds(report, "follows")) == (
        {"queries.columns"},
        split.keys() - {"queries.columns"},
    )
    merged = {"context.dim2": 64, "context_by_token.dim2": 64, "joined_context.columns": 2048}
    report = marked(sheet, right | merged)
    assert (kinds(report, "wrong"), kinds(report, "follows")) == ({"context.dim2"}, merged.keys() - {"context.dim2"})
    other_heads = marked(sheet, right | {"split_queries.dim1": 16, "split_queries.dim2": 256})  # 16 · 256 is 4096 too
    assert (kinds(other_heads, "wrong"), kinds(other_heads, "follows")) == (
        {"split_queries.dim1"},
        {"split_queries.dim2"},
    )


def test_keys_follow_the_cache_and_the_new_keys_that_they_are_joined_from(library: Library) -> None:
    sheet = library.variant("cache-qwen3-0.6b")  # 80 cached tokens and 7 new ones
    joined = {"keys.dim2": 80 + 1, "repeated_keys.dim2": 81, "scores.dim3": 81}
    report = marked(sheet, dict(sheet.key) | {"new_keys.dim2": 1} | joined)
    assert (kinds(report, "wrong"), kinds(report, "follows")) == ({"new_keys.dim2"}, set(joined))
    wrong_sum = marked(sheet, dict(sheet.key) | {"new_keys.dim2": 1, "keys.dim2": 82})
    assert kinds(wrong_sum, "wrong") == {"new_keys.dim2", "keys.dim2"}


def test_a_wrong_input_length_costs_one_box(library: Library) -> None:
    report = marked(library.variant("llama-7b"), {box: 90 if size == 100 else size for box, size in LLAMA.items()})
    assert kinds(report, "wrong") == {"input.rows"}
    assert len(kinds(report, "follows")) == 8
    assert (report.score, type(report.score)) == (5 + 8, int)


def test_putting_the_input_right_costs_nothing(library: Library) -> None:
    answers = {box: 90 if size == 100 else size for box, size in LLAMA.items()} | {"input.rows": 100}
    report = marked(library.variant("llama-7b"), answers)
    assert kinds(report, "wrong") == {"queries.rows"}
    assert report.score == 6 + 7


def repeated(report: Report) -> dict[str, str]:
    return {str(blank): str(mark.repeats) for blank, mark in report.marks.items() if mark.repeats}


def test_a_mistake_made_again_beside_a_right_answer_is_called_that(library: Library) -> None:
    wrong = {f"{row}.rows": 4096 for row in ("queries", "keys", "values")}
    variant = library.variant("llama-7b")
    report = marked(variant, LLAMA | wrong)
    assert repeated(report) == {"keys.rows": "queries.rows", "values.rows": "queries.rows"}
    assert all("“Queries”" in report.marks[blank].message for blank in report.marks if str(blank) in repeated(report))
    assert report.as_json()["marks"]["keys.rows"]["repeats"] == "queries.rows"  # type: ignore[index]


def test_keys_and_values_of_the_wrong_text_are_one_mistake(library: Library) -> None:
    variant = library.variant("cross-bart-base")
    key = dict(variant.key)
    report = marked(variant, key | {"keys.rows": 25, "values.rows": 25})
    assert (kinds(report, "wrong"), repeated(report)) == ({"keys.rows"}, {"values.rows": "keys.rows"})


def test_a_sum_with_one_wrong_part_does_not_follow(library: Library) -> None:
    variant = library.variant("walk-llama-3.2-1b")
    key = dict(variant.key)
    report = marked(variant, key | {"attended.columns": 64, "residual.columns": 64})
    assert repeated(report) == {"residual.columns": "attended.columns"}


def test_an_answer_does_not_follow_from_another_side(library: Library) -> None:
    report = marked(library.variant("llama-7b"), LLAMA | {"queries.rows": 90, "scores.rows": 90, "scores.columns": 90})
    assert (kinds(report, "wrong"), repeated(report)) == ({"queries.rows"}, {"scores.columns": "queries.rows"})
    assert kinds(report, "follows") == {"scores.rows", "scores.columns"}


def test_a_row_left_out_is_looked_through(library: Library) -> None:
    report = marked(library.variant("llama-7b"), LLAMA | {"weights.rows": 90, "output.rows": 90})
    assert (kinds(report, "wrong"), kinds(report, "follows")) == ({"weights.rows"}, {"output.rows"})


def test_what_could_not_be_read_or_is_empty_leads_nowhere(library: Library) -> None:
    for text in ("N", ""):
        texts = {box: str(size) for box, size in LLAMA.items()} | {"scores.rows": text, "weights.rows": "90"}
        assert kinds(grade(library.variant("llama-7b"), texts), "wrong") == {"weights.rows"}


def test_a_count_follows_from_its_rows_and_columns(library: Library) -> None:
    answers = {"W_Q.rows": 4096, "W_Q.columns": 128, "W_Q.count": 524288}
    report = marked(library.variant("matrices-llama-7b"), answers)
    assert (kinds(report, "wrong"), kinds(report, "follows")) == ({"W_Q.columns"}, {"W_Q.count"})


def counts(**amounts: int) -> dict[str, int]:
    return {f"{key}.count": n for key, n in amounts.items()}


# LLaMA 7B by hand: V·d = 32000·4096, 4·d·d, 3·d·d_ff with d_ff = 11008, two norms, 32 layers, one more norm.
LLAMA_COUNT = counts(
    embedding=131_072_000,
    attention=67_108_864,
    feed_forward=135_266_304,
    norms=8192,
    all_layers=6_476_267_520,
    final_norm=4096,
    output_head=131_072_000,
    total=6_738_415_616,
)


def test_a_total_follows_from_its_parts_as_typed(library: Library) -> None:
    short = {"attention": 3 * 4096 * 4096, "all_layers": 5_939_396_608, "total": 6_201_544_704}
    report = marked(library.variant("count-llama-7b"), LLAMA_COUNT | counts(**short))
    assert kinds(report, "wrong") == {"attention.count"}
    assert kinds(report, "follows") == {"all_layers.count", "total.count"}
    assert report.score == 5 + 2


def test_a_total_follows_from_parts_as_typed_or_right(library: Library) -> None:
    short = counts(embedding=131_072_001, total=6_738_415_617)
    variant = library.variant("count-llama-7b")
    assert kinds(marked(variant, LLAMA_COUNT | short), "follows") == {"total.count"}
    without = {box: n for box, n in (LLAMA_COUNT | short).items() if box != "final_norm.count"}
    assert kinds(marked(variant, without), "follows") == {"total.count"}
    for part in ({"norms": 8193}, {"final_norm": 1}):
        assert kinds(marked(variant, LLAMA_COUNT | short | counts(**part)), "follows") == {"total.count"}
    assert kinds(marked(variant, LLAMA_COUNT | counts(embedding=131_072_001, total=6_738_415_619)), "follows") == set()


def test_what_a_token_uses_follows_from_the_whole_model_and_one_expert_as_typed(library: Library) -> None:
    variant = library.variant("count-mixtral-8x7b")
    truth = dict(variant.key)
    short = {box: truth[box] - 409_600 for box in ("embedding.count", "total.count", "used.count")}
    report = marked(variant, truth | short)
    assert kinds(report, "wrong") == {"embedding.count"}
    assert kinds(report, "follows") == {"total.count", "used.count"}
    times = {"one_expert": 1, "experts": 8, "all_layers": 32 * 8, "total": 32 * 8, "used": 32 * 2}
    smaller = {f"{key}.count": truth[f"{key}.count"] - n * 1000 for key, n in times.items()}
    report = marked(variant, truth | smaller)
    assert kinds(report, "wrong") == {"one_expert.count"}
    assert kinds(report, "follows") == smaller.keys() - {"one_expert.count"}


def test_all_layers_follow_where_the_layers_differ_in_their_norms(library: Library) -> None:
    variant = library.variant("count-llama-7b", "modernbert-base")
    rows = ("embedding", "attention", "feed_forward", "all_norms", "all_layers", "total")
    variant = replace(variant, worksheet=replace(variant.worksheet, rows=rows))
    truth = dict(variant.key)
    times = {"attention": 1, "all_norms": 5, "all_layers": 22 + 5, "total": 22 + 5}
    wrong = {f"{key}.count": truth[f"{key}.count"] + n * 1000 for key, n in times.items()}
    report = marked(variant, truth | wrong)
    assert kinds(report, "wrong") == {"attention.count", "all_norms.count"}
    assert kinds(report, "follows") == {"all_layers.count", "total.count"}
    assert "all_layers" not in [plan.whole.key for plan in count_plans(variant) if plan.whole]


def test_a_count_follows_from_every_other_that_its_formula_names(library: Library) -> None:
    for key, model in product(library.worksheets, library.models):
        try:
            problem = library.variant(key, model).problem
        except (TopicError, TokensError):
            continue
        totals = {count.key: count.size("count", problem.sizes) for count in problem.table.counts}
        for count in problem.table.counts:
            parts = count.made_from.parts if count.made_from else ()
            assert totals.keys() & set(re.findall(r"{([\w-]+)}", count.formula)) <= set(parts)
            if count.made_from:
                asked = problem.table.askable
                amounts = {part: asked[part].size("count", problem.sizes) for part in parts if part in asked}
                assert count.made_from.number(problem.sizes, amounts) == totals[count.key]


def test_a_part_that_a_sheet_does_not_ask_is_taken_as_it_is(library: Library) -> None:
    variant = library.variant("count-llama-7b")
    rows = ("embedding", "attention", "feed_forward", "norms", "output_head", "total")
    variant = replace(variant, worksheet=replace(variant.worksheet, rows=rows))
    short = counts(attention=3 * 4096 * 4096, total=6_201_544_704)
    answers = {box: n for box, n in (LLAMA_COUNT | short).items() if box.split(".")[0] in rows}
    assert kinds(marked(variant, answers), "follows") == {"total.count"}


def test_half_as_many_bits_follow_as_half_the_bytes(library: Library) -> None:
    truth = dict(library.variant("costs-llama-7b").key)
    assert truth["cache_16_bit.count"] == 52_428_800
    wrong = counts(cache_16_bit=26_214_400, cache_8_bit=13_107_200, weights_16_bit=7, weights_8_bit=4, weights_4_bit=2)
    report = marked(library.variant("costs-llama-7b"), truth | wrong)
    assert kinds(report, "wrong") == {"cache_16_bit.count", "weights_16_bit.count"}
    assert kinds(report, "follows") == {"cache_8_bit.count", "weights_8_bit.count", "weights_4_bit.count"}


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.worksheet.key)
def test_one_number_everywhere_earns_nothing_by_following(sheet: Variant) -> None:
    for number in {1, 7, *sheet.key.values()}:
        report = marked(sheet, dict.fromkeys(sheet.blanks_by_name, number))
        assert kinds(report, "follows") == set()
        texts = (sheet.typed(blank, sheet.key[box]) for box, blank in sheet.blanks_by_name.items())
        assert report.score == sum(str(number) == text for text in texts)


@st.composite
def sheets(draw: st.DrawFn) -> tuple[Variant, dict[str, int]]:
    """A sheet filled with numbers that are true somewhere on it, or near, so that much follows and much is wrong."""
    variant = draw(st.sampled_from(SHEETS))
    near = sorted({*variant.key.values(), *(size + 1 for size in variant.key.values())})
    few = draw(st.lists(st.sampled_from(near), min_size=1, max_size=4))
    boxes = {box: st.sampled_from([*few, size]) for box, size in variant.key.items()}
    answers = draw(st.fixed_dictionaries({}, optional=boxes))
    return variant, added_up(variant, answers) if draw(st.booleans()) else answers


def added_up(variant: Variant, answers: dict[str, int]) -> dict[str, int]:
    """The same sheet with its totals worked out from the numbers in the other boxes, by hand; empty ones count as 0."""
    a = {key: answers.get(f"{key}.count", 0) for key in [blank.tensor for blank in variant.blanks]}
    a["all_layers"] = variant.sizes["L"] * sum(a.get(key, 0) for key in ("attention", "feed_forward", "norms"))
    outside = a.keys() - {"attention", "feed_forward", "norms", "total"}  # the rest is not within a layer
    a["total"] = sum(a[key] for key in outside)
    for whole, half in (("weights_16", "weights_8"), ("weights_8", "weights_4"), ("cache_16", "cache_8")):
        a[f"{half}_bit"] = (a.get(f"{whole}_bit", 0) + 1) // 2
    return answers | {box: a[box.split(".")[0]] for box in TOTALS if box in answers and a[box.split(".")[0]]}


TOTALS = {f"{key}.count" for key in ("all_layers", "total", "weights_8_bit", "weights_4_bit", "cache_8_bit")}
# Experts are added up in tests/shapes.
TOTALLED = [
    sheet
    for sheet in SHEETS
    if sheet.worksheet.topic in ("parameter-count", "costs") and "experts" not in sheet.worksheet.rows
]


@pytest.mark.parametrize("sheet", TOTALLED, ids=lambda sheet: sheet.worksheet.key)
def test_right_parts_add_up_to_the_right_totals(sheet: Variant) -> None:
    key = dict(sheet.key)
    assert added_up(sheet, key) == key


@given(st.data())
def test_a_sheet_added_up_rightly_keeps_its_totals(data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from(TOTALLED))
    key = dict(variant.key)
    parts = {box: data.draw(st.sampled_from([size, size + 1, 2 * size])) for box, size in key.items()}
    answers = added_up(variant, parts)
    report = marked(variant, answers)
    right = {answers[box] for box in key if answers[box] == key[box]}
    made = TOTALS & key.keys()
    assert not {box for box in made if right - {answers[box]}} & kinds(report, "wrong")


@given(sheets())
def test_following_never_takes_a_mark_and_never_gives_the_truth_s(filled: tuple[Variant, dict[str, int]]) -> None:
    variant, answers = filled
    report = marked(variant, answers)
    right = {str(blank) for blank, size in variant.key.items() if answers.get(str(blank)) == size}
    assert kinds(report, "right") == right
    assert not kinds(report, "follows") & right
    assert len(right) <= report.score <= len(answers)
    assert all(mark.kind == "follows" and report.marks[mark.repeats].kind != "right"
               for mark in report.marks.values() if mark.repeats)  # fmt: skip
    assert marked(variant, answers) == report


@given(sheets(), st.data())
def test_putting_an_answer_right_never_costs_marks(filled: tuple[Variant, dict[str, int]], data: st.DataObject) -> None:
    variant, answers = filled
    key = dict(variant.key)
    if wrong := sorted(box for box, size in answers.items() if size != key[box]):
        box = data.draw(st.sampled_from(wrong))
        assert marked(variant, answers | {box: key[box]}).score >= marked(variant, answers).score


@pytest.mark.slow
@given(st.data())
def test_putting_a_part_right_never_costs_more_than_its_total(data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from(TOTALLED))
    key = dict(variant.key)
    answers = added_up(variant, {box: size + data.draw(st.integers(0, 1)) for box, size in key.items()})
    score = marked(variant, answers).score
    for box in data.draw(st.permutations(sorted(key))):
        answers = answers | {box: key[box]}
        score, before = marked(variant, answers).score, score
        assert score >= before
