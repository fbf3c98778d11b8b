"""A bug in the program of a model: where it is, what happens, and which repairs count."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from itertools import islice, product

import pytest

from app.algebra.expression import Expression
from app.bugs.bank import BUGS
from app.bugs.case import BugCase, bug_case, laboratory_for
from app.bugs.sizes import BugError
from app.bugs.witnesses import differ
from tests.helpers.shipped import MODELS

QWEN = MODELS["qwen2.5-0.5b"]


def cases_of(model: str) -> Iterator[BugCase]:
    """Every bug that can be shown with a model."""
    for bug in BUGS:
        try:
            yield bug_case(BUGS[bug], MODELS[model], 10, 3)
        except BugError:
            continue


def some_fillings(case: BugCase) -> Iterator[str]:
    """The line of a repair filled with its words, with dimensions and with sizes."""
    assert case.repair is not None
    choices = [
        blank.words
        if blank.kind == "word"
        else ("-2", "-1", "0", "1", "2")
        if blank.kind == "dimension"
        else tuple(case.sizes)[:3]
        for blank in case.repair.blanks
    ]
    with_example = [(text, *(each for each in choice if each != text)) for text, choice in
                    zip(case.repair.example, choices, strict=True)]  # fmt: skip
    for texts in product(*with_example):
        pieces = zip(("H // G" if text == "H/G" else text for text in texts), case.repair.parts[1:], strict=True)
        yield case.repair.parts[0] + "".join(text + part for text, part in pieces)


def test_repairs_count_by_effect() -> None:
    """Other dimensions that do the same, and numbers of the model, are right; what does something else is wrong."""
    case = bug_case(BUGS["layer-keys-not-transposed"], QWEN, 10, 3)
    assert [case.repair_works(pair) for pair in ([-1, -2], [2, 3], [3, -2], [1, 2], [2, 2], [4, 1])] == [True] * 3 + [
        False
    ] * 3
    case = bug_case(BUGS["heads-split-by-view"], QWEN, 10, 3)
    assert case.repair_works([3, 10, 14, 64, 2, 1])
    assert case.repair_works(["B", "N", "H", -1, 1, 2])
    assert not case.repair_works([3, 14, 10, 64, 1, 2])
    assert not case.repair_works(["B", "H", "N", "d_h", 0, 0])
    assert not case.repair_works(["B", "N", "H", "10**9999", 1, 2])


MODELS_TRIED = ("qwen2.5-0.5b", "qwen3-4b", "gpt2", "bert-base", "bart-base", "vit-base", "whisper-tiny")


@pytest.mark.parametrize(
    ("model", "ways"),
    [("qwen2.5-0.5b", 4), *(pytest.param(model, 400, marks=pytest.mark.slow) for model in MODELS_TRIED)],
)
def test_no_other_line_repairs_a_bug(model: str, ways: int) -> None:
    shown = list(cases_of(model))
    for case in shown:
        laboratory = laboratory_for(case.program, MODELS[model], case.sizes)
        others = [each for each in shown if each.program is case.program and each.repair and case.repair]
        for other in others:
            if other.wrong_line == case.wrong_line:
                continue
            for line in {other.lines[other.wrong_line - 1], *islice(some_fillings(other), ways)}:
                lines = [*case.lines]
                lines[other.wrong_line - 1] = line
                result = laboratory.run(lines)
                if not result.error:
                    output = laboratory.made(result, case.program.output)
                    assert differ(output, laboratory.expected), (case.bug.key, line)


def test_hostile_fillings_are_refused_quickly() -> None:
    typed: list[str | Expression | int] = [
        "10^99",
        10**12,
        -(10**12),
        "N^99",
        "H/0",
        "d/H/7",
        "__import__",
        "",
        "1" * 50,
        "X",
        "d_h*(",
        0,
        "0*N",
        "-1",
    ]
    tracemalloc.start()
    began = time.process_time()
    tries = 0
    shown = {
        case.repair.parts: case for case in cases_of("qwen2.5-0.5b") if case.repair and len(case.repair.blanks) > 1
    }
    for case in [*shown.values()][::9]:
        for text in typed:
            assert case.repair is not None
            filled: list[str | Expression | int] = [
                blank.words[-1] if blank.words else text for blank in case.repair.blanks
            ]
            case.repair_works(filled)
            for place in range(len(filled)):
                case.repair_works([*case.repair.example[:place], text, *case.repair.example[place + 1 :]])
                tries += 1
    assert time.process_time() - began < 0.05 * tries
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_a_filling_of_the_wrong_kind_is_none() -> None:
    case = bug_case(BUGS["view-after-transpose"], QWEN, 10, 3)
    assert case.repair_works([".transpose(1, 2).reshape"])
    assert not any(case.repair_works(filled) for filled in ([], [".flatten"], [1], [".transpose(1, 2).reshape", "B"]))
    case = bug_case(BUGS["layer-keys-not-transposed"], QWEN, 10, 3)
    assert not case.repair_works(["N", "d_h"])


def test_nothing_wrong_has_neither_message_nor_repair() -> None:
    case = bug_case(BUGS["nothing-wrong-in-layer"], QWEN, 10, 3)
    assert (case.wrong_line, case.raises_at, case.error, case.message, case.witness, case.repair) == (
        0,
        0,
        "",
        "",
        None,
        None,
    )
    assert not case.repair_works([])


def test_the_clash_is_in_symbols_and_the_trace_stops_before_the_error() -> None:
    case = bug_case(BUGS["values-not-appended"], QWEN, 10, 3)
    assert case.clash == (Expression.parse("N + 1"), Expression.parse("N"))
    assert (case.wrong_line, case.raises_at) == (5, 10)
    assert max(traced.line for traced in case.trace) < 10
    assert {traced.line for traced in case.trace} >= {5}
    assert case.trace[0].shape == tuple(map(Expression.parse, ("B", "H", "1", "d_h")))
