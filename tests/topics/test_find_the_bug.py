"""Sheets about a program with a bug: what they ask, how simulated students are marked, and what is refused."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from app.bugs.bank import BUGS
from app.grading.grade import grade
from app.grading.hints import HINT_LEVELS, write_hint
from app.sheets import prose
from app.sheets.authoring.worksheet_settings import check_settings
from app.sheets.code_text import answer_in_words, code_shown, option_text
from app.sheets.reasons import row_reason
from app.sheets.variant import Variant
from app.sheets.worksheet import Answers
from app.topics.find_the_bug import NOTHING_WRONG, ROWS, BugTable
from app.topics.registry import TOPICS, refusal
from app.topics.requirements import TopicError
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

MODELS = ("qwen2.5-0.5b", "gpt2", "bert-base")
# The wrong reasons that state a misconception. A student who chooses another one, such as the reason of another bug,
# says nothing false about attention that the catalogue has a sentence for.
MISCONCEPTION_OF_REASON = {
    "softmax-drops-dimension": "softmax-collapses",
    "head-needs-all-features": "head-as-wide-as-model",
    "decode-makes-all-scores": "all-queries-recomputed",
}
SHEET = LIBRARY.worksheets["bug-layer"]


@cache
def sheet_of(bug: str, model: str = "qwen2.5-0.5b", answers: Answers = "numbers") -> Variant | None:
    """A sheet with all rows about a bug; None if the model doesn't show it."""
    worksheet = replace(SHEET, key="mine", bug=bug, rows=ROWS, answers=answers)
    library = replace(LIBRARY, worksheets={"mine": worksheet})
    try:
        return library.variant("mine", model)
    except TopicError:
        return None


@cache
def sheets() -> list[Variant]:
    """A sheet in numbers and one in letters for each bug that its model shows."""
    kinds: tuple[tuple[str, Answers], ...] = (("qwen2.5-0.5b", "numbers"), ("gpt2", "letters"))
    return [sheet for bug in BUGS for model, answers in kinds if (sheet := sheet_of(bug, model, answers))]


def right_texts(variant: Variant) -> dict[str, str]:
    """The sheet as somebody types it who finds everything."""
    return {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}


def scored(variant: Variant, **changed: str) -> tuple[float, Counter[str]]:
    """What the right sheet loses with a box changed, `where_choice` for where.choice, and how many are not right."""
    answers = right_texts(variant) | {name.replace("_choice", ".choice"): text for name, text in changed.items()}
    report = grade(variant, answers)
    return report.out_of - report.score, Counter(m.kind for m in report.marks.values() if m.kind != "right")


def test_every_bug_is_shown_by_some_model() -> None:
    assert {bug for bug in BUGS if any(sheet_of(bug, model) for model in LIBRARY.models)} == set(BUGS)


def test_a_right_sheet_earns_all_and_its_reasons_are_true() -> None:
    for variant in sheets():
        assert grade(variant, right_texts(variant)).complete
        case, table = variant.problem.case, variant.table
        assert case
        assert isinstance(table, BugTable)
        reasons = {row.key: row_reason(variant, row.key).text for row in variant.rows}
        assert (str(case.wrong_line) in reasons["where"]) is bool(case.wrong_line)
        assert all(reasons.values())
        made_by = {row: table.line_of(row) for row in reasons if table.line_of(row)}
        assert all(case.lines[line - 1] in reasons[row] for row, line in made_by.items())
        code = code_shown(variant)
        assert code
        assert bool(code.error) != bool(code.witness)  # a program stops, or shows something
        assert ("Read the message" in prose.task(variant)) is bool(code.error)


def test_each_question_costs_what_it_is_worth() -> None:
    for variant in sheets():
        right = right_texts(variant)
        for line in map(str, variant.table.askable["where"].options):  # type: ignore[union-attr]
            assert scored(variant, where_choice=line) == (0, {}) if line == right["where.choice"] else (1, {"wrong": 1})
        table = variant.table
        assert isinstance(table, BugTable)
        for place, reason in enumerate(table.reasons, start=1):
            report = grade(variant, {**right, "why.choice": str(place)})
            if reason == table.right_reason:
                assert report.complete
            else:
                assert report.out_of - report.score == 1
                assert (report.diagnosis and report.diagnosis.key) == MISCONCEPTION_OF_REASON.get(reason)
        if "clash" in variant.problem.asked:
            swapped = {"clash.part1": right["clash.part2"], "clash.part2": right["clash.part1"]}
            assert grade(variant, right | swapped).complete
            assert grade(variant, {**right, "clash.part1": right["clash.part2"]}).score == variant.best_score - 1
        if "repair" in variant.problem.asked:
            parts = [box for box in right if box.startswith("repair.")]
            wrong = {**right, parts[-1]: "7" if right[parts[-1]].lstrip("-").isdigit() else right[parts[0]]}
            emptied = {**right, parts[-1]: ""}
            if len(parts) > 1:
                assert grade(variant, emptied).score == variant.best_score - 2
                assert grade(variant, emptied).marks[variant.blanks_by_name[parts[0]]].kind == "unreadable"
            if wrong != right:
                assert grade(variant, wrong).score == variant.best_score - 2


def test_a_repair_counts_by_what_it_does() -> None:
    variant = sheet_of("layer-keys-not-transposed")
    assert variant
    right = right_texts(variant)
    for first, second in (("-2", "-1"), ("−1", "−2"), ("2", "3"), ("3", "-2")):
        assert grade(variant, {**right, "repair.part1": first, "repair.part2": second}).complete
    for first, second in (("1", "2"), ("-1", "-1"), ("9", "3")):
        assert grade(variant, {**right, "repair.part1": first, "repair.part2": second}).score == variant.best_score - 2
    split = sheet_of("heads-split-by-view")
    assert split
    typed = dict(zip((f"repair.part{n}" for n in range(1, 7)), ("B", "10", "-1", "896/14", "-2", "1"), strict=True))
    assert grade(split, right_texts(split) | typed).complete


@pytest.mark.parametrize("bug", ["heads-not-moved", "heads-split-by-view", "nothing-wrong-in-layer"])
def test_a_sheet_goes_to_another_process_and_stays_the_same(bug: str) -> None:
    variant = sheet_of(bug)
    assert variant
    right = right_texts(variant)
    again = pickle.loads(pickle.dumps(variant))  # noqa: S301 - our own
    assert code_shown(again) == code_shown(variant)
    assert right_texts(again) == right
    assert grade(again, right).complete


def test_an_unreadable_choice_is_not_wrong() -> None:
    variant = sheet_of("keys-not-transposed")
    assert variant
    assert scored(variant, where_choice="fourth") == (1, {"unreadable": 1})
    report = grade(variant, {**right_texts(variant), "repair.part1": "rows"})
    assert {report.marks[variant.blanks_by_name[f"repair.part{n}"]].kind for n in (1, 2)} == {"unreadable"}


def test_hints_follow_the_procedure_and_tell_no_answer() -> None:
    for variant in sheets():
        right = right_texts(variant)
        for row in variant.rows:
            wrong = {**right, **dict.fromkeys(map(str, row.blanks), "")}
            for level in HINT_LEVELS:
                hint = write_hint(variant, grade(variant, wrong), level)
                assert hint
                if row.key in ("where", "why"):
                    assert answer_in_words(variant, row.key) not in hint.message


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.startswith("nothing-wrong")])
def test_a_sheet_without_a_bug_never_says_that_there_is_one(bug: str) -> None:
    variant = next(filter(None, (sheet_of(bug, model) for model in LIBRARY.models)))
    right, said = right_texts(variant), [prose.task(variant)]
    for row in ("where", "why"):
        wrong = "2" if right[f"{row}.choice"] == "1" else "1"
        report = grade(variant, {**right, f"{row}.choice": wrong})
        said += [mark.message for mark in report.marks.values()]
        said += [hint.message for level in HINT_LEVELS if (hint := write_hint(variant, report, level))]
    assumes_a_bug = "the wrong line|the line that is wrong|at which line|which is the first line|that line|until one"
    assert not re.search(assumes_a_bug, " ".join(said), re.IGNORECASE)


def test_the_place_of_the_right_reason_says_nothing() -> None:
    places = Counter[int]()
    for bug, model in product(BUGS, MODELS[:2]):
        if variant := sheet_of(bug, model):
            places[variant.key["why.choice"]] += 1
            assert len({option_text(variant, "why", number) for number in range(1, 5)}) == 4
    assert set(places) == {1, 2, 3, 4}
    assert max(places.values()) < 2 * min(places.values())


def test_that_nothing_is_wrong_can_always_be_chosen() -> None:
    for variant in filter(None, map(sheet_of, BUGS)):
        assert isinstance(variant.table, BugTable)
        assert NOTHING_WRONG in variant.table.reasons


@pytest.mark.parametrize("changed", [{"topic": "single-head"}, {"bug": "no-such-bug"}])
def test_what_a_worksheet_about_a_bug_cannot_be_is_refused(changed: Mapping[str, str]) -> None:
    settings = {**SHEET.settings, "answers": "numbers", **changed}
    worksheet, errors = check_settings("mine", settings, LIBRARY.models, LIBRARY.wording)
    assert worksheet is None
    assert errors


def test_the_topic_names_every_row_of_its_sheets() -> None:
    boxes = {
        box
        for bug, model in product(BUGS, MODELS)
        if (variant := sheet_of(bug, model))
        for box in variant.blanks_by_name
    }
    assert boxes <= TOPICS["find-the-bug"].boxes


def test_no_points_tell_whether_there_is_a_bug() -> None:
    for key in ("bug-one-head", "bug-or-none"):
        rows = {row.key: row.points_in_words for row in LIBRARY.variant(key).rows}
        assert all(rows.values())
        assert rows["where"] == rows["why"]


@pytest.mark.parametrize(("bug", "tokens"), [("heads-not-moved", 64), ("values-not-appended", 13), ("keys-tiled", 1)])
def test_a_number_that_hides_the_bug_is_refused_with_one_that_shows_it(bug: str, tokens: int) -> None:
    worksheet = replace(SHEET, key="mine", bug=bug, rows=ROWS, answers="numbers")
    library = replace(LIBRARY, worksheets={"mine": worksheet})
    with pytest.raises(TopicError) as refused:
        library.variant("mine", tokens=tokens)
    proposed = refused.value.tokens
    assert proposed is not None
    assert f" {proposed} tokens" in str(refused.value)
    assert library.variant("mine", tokens=proposed).tokens == proposed


@pytest.mark.parametrize("model", one_in(5, LIBRARY.models))
def test_a_model_shows_a_bug_at_the_proposed_length_or_at_none(model: str) -> None:
    architecture = LIBRARY.models[model].architecture
    for tokens in (1, 10, 64, 5000):
        reason = refusal("find-the-bug", architecture, tokens)
        if reason and "choose a model" not in reason:
            [proposed] = re.findall(r"choose ([\d,]+) tokens", reason)
            assert refusal("find-the-bug", architecture, int(proposed.replace(",", ""))) is None
