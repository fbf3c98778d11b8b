"""Hints go further with every level and never tell: simulated students on every shipped worksheet."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading.grade import Report, grade
from app.grading.hints import (
    HINT_LEVELS,
    Hint,
    box_hint,
    boxes_to_check,
    next_hint_level,
    relation_sentence,
    write_hint,
)
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.misconceptions.predictions import expectations
from app.models.architecture import TokensError
from app.shapes.table import MATRIX_FIELDS, Blank, Count, Joint, OneOf, symbol_fields
from app.sheets.answers import box_unit
from app.sheets.library import Library
from app.sheets.reasons import row_reason
from app.sheets.variant import Variant
from app.sheets.worksheet import Answers
from app.topics.requirements import TopicError
from simulation.misconception_students import FilledSheet, misconception_sheets
from tests.helpers.answer_keys import LLAMA
from tests.helpers.own_sheets import own_sheet
from tests.helpers.shipped import FIRST_OF_TOPIC, IN_SYMBOLS, LIBRARY, MODELS, UNLIKE_MODELS
from tests.helpers.slow import one_in

SHEETS = list(map(LIBRARY.variant, (*LIBRARY.worksheets, *IN_SYMBOLS)))
FEW_MODELS = ("llama-7b", "mistral-7b", "deepseek-v2-lite", "t5-small")
ON_EACH_SHEET = pytest.mark.parametrize("sheet", one_in(8, SHEETS), ids=lambda sheet: sheet.worksheet.key)
# What each number of the sheet in letters is in its letters: T tokens, h heads; what is not here is some other product.
LETTERS = {
    100: "T",
    4096: "d",
    128: "d_h",
    32 * 4096: "h*d",
    3200: "h*T",
    1: "d/d",
    32000: "320*T",
    2048: "16*d_h",
    32: "h",
}


def texts(variant: Variant, boxes: FilledSheet) -> dict[str, str]:
    """A sheet as its student writes it: transposed if its tokens are columns, in letters if those are asked."""
    on_sheet = {str(blank): boxes[str(blank)] for blank in variant.blanks if str(blank) in boxes}
    if variant.worksheet.answers == "numbers":
        return {box: str(n) for box, n in on_sheet.items()}
    return {box: in_letters(variant, variant.blanks_by_name[box], n) for box, n in on_sheet.items()}


def in_letters(variant: Variant, blank: Blank, size: int) -> str:
    """A number in the letters of a sheet: as it is right, or as a share of d."""
    if variant.worksheet.key == "llama-7b~symbols":
        return LETTERS[size]
    if size == variant.answer(blank):
        return variant.notation.write(variant.expression(blank))
    return f"{size}/{variant.architecture.d}*{variant.notation.symbol('d')}"


def misconception_reports(variant: Variant) -> Iterator[tuple[str, Report]]:
    """Each misconception that shows on the sheet, with the report on the sheet it fills in: by hand, then by the
    catalogue.
    """
    for key, boxes in misconception_sheets(variant):
        yield key, grade(variant, texts(variant, boxes))
    for expectation in expectations(variant.problem):
        boxes = {str(blank): size for blank, size in {**variant.problem.answers, **expectation.wrong_answers}.items()}
        yield expectation.misconception, grade(variant, texts(variant, boxes))


def numbers(sentence: str) -> set[int]:
    """Every number in a sentence, its groups of digits joined; not the names of dimensions, as in transpose(0, 1)."""
    without_names = re.sub(r"\bdim[ =]-?\d\b|\btranspose\([^)]*\)", "", sentence)
    joined = re.sub(r"(?<=\d)[,.'’_\s](?=\d{3})", "", without_names)
    return {int(number) for number in re.findall(r"\d+", joined)}


def tells(variant: Variant, sentence: str) -> bool:
    """Whether a sentence has the right number of any box, or on a sheet in letters a right expression."""
    sizes = [b for b in variant.blanks if b.field in symbol_fields(variant.table.askable[b.tensor])]
    written = {
        variant.notation.write(variant.expression(blank))
        for blank in sizes
        if variant.expression(blank).symbols or box_unit(variant.problem, blank) != "index"  # dim 2 is a box as well
    }
    unnamed = without_rows(variant, sentence)
    in_letters = {word.strip(".,:;()") for word in unnamed.split()} if variant.worksheet.answers == "letters" else set()
    return bool(numbers(unnamed) & set(variant.key.values()) or in_letters & written)


def without_rows(variant: Variant, sentence: str) -> str:
    """A sentence without the names of rows and dimensions, which are on the sheet: “KV cache at 16 bits”, dim 1."""
    unnamed = reduce(lambda text, row: text.replace(f"“{row.name}”", ""), variant.rows, sentence)
    return re.sub(r"\bdim \d", "dim", unnamed)


def hinted(variant: Variant, report: Report) -> list[Hint]:
    hints = [write_hint(variant, report, level) for level in HINT_LEVELS]
    assert None not in hints
    return [hint for hint in hints if hint]


@ON_EACH_SHEET
def test_no_hint_and_no_nudge_tells_a_right_number(sheet: Variant) -> None:
    reports = list(misconception_reports(sheet))
    on_topic = {each.key for each in MISCONCEPTIONS if sheet.worksheet.topic in each.topics}
    assert sheet.problem.case or on_topic >= {key for key, _ in reports}
    assert reports or sheet.problem.case  # most reasons for a bug aren't misconceptions
    for key, report in reports:
        hints = [hint.message for hint in hinted(sheet, report)]
        assert not [sentence for sentence in hints if numbers(without_rows(sheet, sentence))], key
        nudges = [mark.message for mark in report.marks.values() if mark.kind in ("wrong", "follows")]
        diagnosed = [report.diagnosis.message] if report.diagnosis else []
        assert not [sentence for sentence in (*hints, *nudges, *diagnosed) if tells(sheet, sentence)], key


def test_what_tells_is_found(library: Library) -> None:
    """The check above sees a right number in each way of writing it, and a right letter."""
    vocabulary = library.variant("walk-llama-3.2-1b", "gpt2")
    assert all(tells(vocabulary, f"It has {text} columns.") for text in ("50257", "50,257", "50 257", "50’257"))
    assert not tells(vocabulary, "It has 50258 columns.")
    assert tells(library.variant("llama-7b~symbols"), "It is as wide as d_model.")


def sheets_of(topic: str, models: Iterable[str], answers: Answers) -> Iterator[Variant]:
    """The sheet with every row of a topic, for each of the models that have it."""
    worksheet = FIRST_OF_TOPIC[topic]
    named = LIBRARY.wording.topics[topic].rows
    for model in models:
        if LIBRARY.refusal(worksheet.key, model) is None:
            shipped = LIBRARY.variant(worksheet.key, model)
            rows = tuple(key for key in shipped.table.askable if key in named)
            changed = replace(worksheet, rows=rows, answers=answers)
            yield replace(shipped, worksheet=changed)


def every_relation() -> Iterator[tuple[Variant, Blank, str]]:
    """The sentence on how to get the number in a box, for every box of every topic, model and notation."""
    for topic, answers in product(FIRST_OF_TOPIC, get_args(Answers)):
        for variant in sheets_of(topic, MODELS, answers):
            yield from ((variant, blank, relation_sentence(variant, blank)) for blank in variant.blanks)


def test_what_a_hint_says_of_a_box_is_true_of_its_sheet() -> None:
    constants = dict[tuple[str, Blank], set[int]]()
    for variant, blank, relation in every_relation():
        assert not re.search(r"\b(for|need) ?[.,]|\bis given\b|stays the same", relation), (variant.code, relation)
        if "depends neither on the length of the input" in relation:
            longer = variant.problem.table.askable[blank.tensor].expression(blank.field)
            assert longer.size({}) == variant.answer(blank)
            constants.setdefault((variant.worksheet.topic, blank), set()).add(variant.answer(blank))
    assert constants
    assert all(len(numbers) == 1 for numbers in constants.values()), constants


def facts(message: str) -> set[str]:
    """The sentences of a hint but the first, which says where to look."""
    return {re.sub(r"^.*?”: ", "", sentence) for sentence in re.split(r"(?<=[.?])\s", message)[1:]}


@pytest.mark.parametrize("topic", FIRST_OF_TOPIC)
@pytest.mark.parametrize("answers", get_args(Answers))
@pytest.mark.parametrize(
    "models", [FEW_MODELS, pytest.param(UNLIKE_MODELS, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_no_hint_on_a_box_repeats_another(topic: str, answers: Answers, models: Collection[str]) -> None:
    for variant in sheets_of(topic, models, answers):
        report = grade(variant, {})
        for blank in variant.blanks:
            messages = [box_hint(variant, report, blank, (blank,), level).message for level in HINT_LEVELS]
            said = list(map(facts, messages))
            assert not said[0] & said[1] | said[0] & said[2] | said[1] & said[2], messages
            assert said[1], messages
            assert said[2], messages
            assert not tells(variant, messages[2]), messages


@ON_EACH_SHEET
def test_what_the_last_hint_says_of_a_count_is_true_of_its_formula(sheet: Variant) -> None:
    report = grade(sheet, {})
    for blank in (blank for blank in sheet.blanks if blank.field == "count"):
        message = boxes_to_check(sheet, report, (blank,)).message
        assert not re.search(r"[-−]\d", message), message
        expression = sheet.symbols.canonical(sheet.expression(blank))
        if "for a single token first" in message:
            assert {term.symbols.count("N") for term in expression.terms} == {1}
        if "by hand for three tokens" in message:  # nobody works out a model's FLOPs by hand
            counted = sheet.table.sized(blank.tensor)
            is_index = isinstance(counted, Count) and counted.unit == "index"
            assert is_index or expression.symbols <= {"N", "i"}
        if "single product" in message:
            assert len(expression.terms) == 1
        if "a single one of" in message:
            assert str(expression) in expression.symbols


@ON_EACH_SHEET
def test_each_level_says_something_else(sheet: Variant) -> None:
    for _key, report in misconception_reports(sheet):
        hints = hinted(sheet, report)
        assert [hint.level for hint in hints] == [1, 2, 3]
        assert len({hint.message for hint in hints}) == 3
        if report.diagnosis:
            assert hints[0].message == report.diagnosis.message
            assert hints[1].message != hints[0].message
            followed = [b for b in report.diagnosis.explains if report.marks[b].kind == "follows"]
            worked_out = {b for b in followed if not report.marks[b].repeats}
            assert set(hints[2].blanks) == set(report.diagnosis.explains) - worked_out


def test_every_misconception_has_a_hint_of_its_own(library: Library) -> None:
    found = {
        misconception.key: library.wording.misconception(misconception.key, "hint") for misconception in MISCONCEPTIONS
    }
    assert len(set(found.values())) == len(MISCONCEPTIONS)
    assert not [key for key, sentence in found.items() if re.search(r"\d", sentence) or sentence[-1] not in ".?"]
    assert not [key for key, sentence in found.items() if sentence == library.wording.misconception(key, "nudge")]


def hint_messages(variant: Variant, answers: Mapping[str, object]) -> list[str]:
    report = grade(variant, {box: str(size) for box, size in answers.items()})
    return [hint.message for hint in hinted(variant, report)]


def test_hints_on_a_misconception(library: Library) -> None:
    """Without the projection back: can it be added, what comes between, and which two sides must be equal."""
    variant = library.variant("llama-7b")
    assert hint_messages(variant, LLAMA | {"output.columns": 128}) == [
        library.wording.misconception("no-output-projection", "nudge"),
        library.wording.misconception("no-output-projection", "hint"),
        "Look again at “Output of this head” (columns). The number of columns of “Output of this head” must equal the "
        "number of columns of “Input to this head”.",
    ]


def test_a_hint_leaves_out_what_follows(library: Library) -> None:
    variant = library.variant("llama-7b")
    look = hint_messages(variant, LLAMA | {"scores.columns": 128, "weights.columns": 128})[2]
    assert look.startswith("Look again at “Attention scores” (columns). ")
    assert look.endswith("The number of columns of “Attention scores” must equal the number of rows of “Keys”.")


def hints_of(variant: Variant, answers: Mapping[str, object]) -> list[Hint]:
    return hinted(variant, grade(variant, {box: str(size) for box, size in answers.items()}))


def test_hints_where_nothing_explains_the_sheet(library: Library) -> None:
    variant = library.variant("llama-7b")
    hints = hints_of(variant, LLAMA | {"scores.columns": 77, "values.rows": 31})
    assert [list(map(str, hint.blanks)) for hint in hints] == [
        ["values.rows"],
        ["values.rows"],
        ["values.rows", "scores.columns"],
    ]
    assert "W_V" in hints[1].message
    assert "“Input to this head”" not in hints[1].message  # what it must equal is for the last level
    assert "“Input to this head”" in hints[2].message


ROWS = [box for box, size in LLAMA.items() if size == 100]


@pytest.mark.parametrize(
    ("sheet", "wrong"),
    [
        ("llama-7b", dict.fromkeys(ROWS, 101)),
        ("llama-7b", {"queries.columns": 129, "keys.columns": 129, "values.columns": 129}),
        ("llama-7b", {"input.columns": 777}),
        ("decode-gpt2", {f"{box}.{field}": 85 for box, field in
                         [("keys", "rows"), ("values", "rows"), ("scores", "columns"), ("weights", "columns")]}),
        ("cross-bart-base", {"input.rows": 26}),
    ],
)  # fmt: skip
def test_no_hint_asks_to_compare_boxes_that_agree_already(sheet: str, wrong: dict[str, int]) -> None:
    variant = LIBRARY.variant(sheet)
    answers = dict(variant.key) | wrong
    report = grade(variant, {box: str(size) for box, size in answers.items()})
    names = {row.key: row.name for row in variant.rows}
    for hint in hinted(variant, report):
        _, _, equal = hint.message.partition(" must equal ")
        named = {key for key, name in names.items() if f"“{name}”" in equal}
        assert all(report.marks[b].kind == "right" for b in variant.blanks if b.tensor in named and b.field in equal)


@pytest.mark.parametrize(
    ("sheet", "box", "size"),
    [
        ("llama-7b", "queries.columns", "head dimension"),
        ("llama-7b", "values.columns", "the head dimension"),
        ("llama-7b", "input.columns", "embedding dimension"),
        ("llama-7b", "input.rows", "number of tokens"),
        ("cross-bart-base", "input.rows", "number of decoder tokens"),
        ("cross-bart-base", "encoded.rows", "number of encoder tokens"),
        ("llama-7b~symbols", "queries.columns", "head dimension"),
        ("walk-llama-3.2-1b", "logits.columns", "size of the vocabulary"),
        ("costs-llama-7b", "scores_flops.count", "head dimension"),
        ("layer-mistral-7b", "keys.columns", "key/value heads"),
    ],
)
def test_a_size_that_no_other_row_decides_is_pointed_to_the_description(sheet: str, box: str, size: str) -> None:
    variant = LIBRARY.variant(sheet)
    report = grade(variant, {box: "d*d" if variant.worksheet.answers == "letters" else "7777"})
    hint = write_hint(variant, report, 2)
    assert hint is not None
    assert (size in hint.message, list(map(str, hint.blanks))) == (True, [box])


def test_no_second_hint_is_a_tautology_or_only_names_what_is_counted() -> None:
    empty = re.compile(r"” = (?:(?:matrix|matrices|tables|scale parameters|biases)(?: \+ |\.))+$")
    for sheet in SHEETS:
        for blank in sheet.blanks:
            hint = relation_sentence(sheet, blank)
            if equation := re.match(r"(\S+) = (\S+?)[:.] ", hint):
                assert equation[1] != equation[2], hint
            assert not empty.search(hint), hint
            assert "no size changes" not in hint


def test_only_a_step_of_decoding_has_a_side_of_one_for_its_token() -> None:
    scale, token = LIBRARY.variant("broadcasting-gpt2"), LIBRARY.variant("decode-gpt2")
    token = replace(token, worksheet=replace(token.worksheet, rows=("input", "queries")))
    for variant, box, is_step in ((scale, "norm_scale.dim0", False), (token, "input.rows", True)):
        hint = write_hint(variant, grade(variant, {box: "7777"}), 2)
        assert hint is not None
        assert ("in this step" in hint.message) is is_step


@ON_EACH_SHEET
def test_only_what_is_elementwise_is_called_so(sheet: Variant) -> None:
    for blank in sheet.blanks:
        if blank.tensor in ("hidden", "mask") or isinstance(sheet.table.askable[blank.tensor], OneOf | Joint):
            continue
        report = grade(sheet, {str(blank): "d*d*d" if sheet.worksheet.answers == "letters" else "7777"})
        assert not [hint for hint in hinted(sheet, report) if re.search("entry by entry|elementwise", hint.message)]


def test_an_unfinished_sheet_is_led_on(library: Library) -> None:
    variant = library.variant("llama-7b")
    report = grade(variant, {"input.rows": "100", "input.columns": "wide"})
    assert str(hinted(variant, report)[0].blanks[0]) == "input.columns"
    assert str(hinted(variant, grade(variant, {"input.rows": "100"}))[0].blanks[0]) == "input.columns"


def test_a_right_and_an_empty_sheet_get_no_hint(library: Library) -> None:
    variant = library.variant("llama-7b")
    for answers in ({box: str(n) for box, n in LLAMA.items()}, {}, {"input.rows": "some"}):
        assert [write_hint(variant, grade(variant, answers), level) for level in HINT_LEVELS] == [None, None, None]


def all_sheets() -> Iterator[Variant]:
    """Every worksheet in numbers, made from every model that has its topic."""
    for sheet in SHEETS:
        for model in LIBRARY.models if sheet.worksheet.answers == "numbers" else ():
            with suppress(TokensError, TopicError):
                yield LIBRARY.variant(sheet.worksheet.key, model)


MADE = list(all_sheets())


def boxes_to_equal(variant: Variant, message: str) -> list[Blank]:
    """The boxes that a hint says another one must equal: their rows' names are unlike on these sheets."""
    boxes = {f"the number of {field} of “{row.name}”": f"{row.key}.{field}" for row in variant.rows
             for field in MATRIX_FIELDS}  # fmt: skip
    return [variant.blanks_by_name[box] for name, box in boxes.items() if name in message.partition(" must equal ")[2]]


@given(st.data())
def test_whatever_is_typed_no_hint_tells(data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from(MADE))
    sizes = st.sampled_from(sorted({*map(str, variant.key.values()), "1", "31", "what?"}))
    report = grade(variant, data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(variant.blanks_by_name, sizes))))
    for found in (write_hint(variant, report, level) for level in HINT_LEVELS):
        assert (found is None) == (not report.has_readable_answer or report.right == report.out_of)
        assert found is None or not tells(variant, found.message)
        assert found is None or not numbers(without_rows(variant, found.message))
        assert found is None or set(found.blanks) <= set(variant.blanks)
        for box in boxes_to_equal(variant, found.message if found else ""):
            assert report.marks[box].kind == "right"


def test_the_worksheets_own_hint_comes_first() -> None:
    variant = own_sheet(LIBRARY, row_hints={"keys": "Think of a dictionary."})
    right = {box: str(number) for box, number in variant.key.items()}
    for answers, level in (({**right, "keys.columns": "5"}, 1), ({**right, "values.columns": "5"}, 2)):
        report = grade(variant, answers)
        assert next_hint_level(variant, report, None) == level
        hint = write_hint(variant, report, 1)
        assert hint is not None
        assert (hint.message == "Think of a dictionary.") == (level == 1)
        assert next_hint_level(variant, report, hint) == 2


def test_the_third_hint_names_the_boxes_and_the_structure(library: Library) -> None:
    variant = library.variant("llama-7b")
    structure = row_reason(variant, "queries").text.partition(": ")[2]
    for filled, goes_on in (({}, structure), ({"input.rows": "100"}, "“Input to this head”")):
        report = grade(variant, {"queries.rows": "77", "queries.columns": "55", **filled})
        assert report.diagnosis is None
        hint = write_hint(variant, report, 3)
        assert hint
        assert "“Queries” (rows and columns)" in hint.message
        assert goes_on in hint.message
        assert (structure in hint.message) == (not filled)
