"""Messages, shapes and repairs against the installed torch, which the app doesn't need for them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch

from app.algebra.expression import Expression
from app.bugs.bank import BUGS
from app.bugs.case import BugCase, bug_case, laboratory_for
from app.bugs.programs import PROGRAMS
from app.bugs.sizes import BugError, sizes_of
from app.bugs.tensors import CodeTensor, TensorError
from tests.helpers.attention_by_hand import output_by_hand
from tests.helpers.bug_in_torch import outcome_in_torch, torch_line
from tests.helpers.shipped import MODELS
from tests.helpers.slow import one_in

QUICK_MODELS = ("qwen2.5-0.5b", "bart-base")
NUMBERS = ((10, 3), (7, 5), (100, 2), (33, 4))  # tokens and batch


@cache
def cases(model: str, numbers: Sequence[tuple[int, int]]) -> list[BugCase]:
    """Every bug that can be shown with this model, with all of these numbers of tokens and inputs."""
    found = []
    for bug, (tokens, batch) in product(BUGS, numbers):
        try:
            found.append(bug_case(BUGS[bug], MODELS[model], tokens, batch))
        except BugError as error:
            if error.tokens or error.batch:
                with suppress(BugError):  # the model's
                    found.append(bug_case(BUGS[bug], MODELS[model], error.tokens or tokens, error.batch or batch))
    return found


@pytest.mark.parametrize("call", ["view(0, -1)", "reshape(-1, 0)", "split([])", "split([], 1)", "view(3, 0)"])
def test_a_tensor_without_elements_is_cut_as_torch_cuts_it(call: str) -> None:
    def result(tensor: Any) -> object:
        try:
            made = eval(f"tensor.{call}", {"tensor": tensor})  # noqa: S307 - one of the calls above
        except (RuntimeError, TensorError) as error:
            return str(error)
        return [tuple(part.shape) for part in (made if isinstance(made, tuple) else (made,))]

    assert result(CodeTensor.of_shape((0, 3))) == result(torch.empty(0, 3))


@pytest.mark.parametrize(
    ("model", "numbers"),
    [
        *((model, NUMBERS[:1]) for model in QUICK_MODELS),
        *(pytest.param(model, NUMBERS, marks=pytest.mark.slow) for model in MODELS),
    ],
)
def test_message_exception_line_and_shapes_are_those_of_torch(model: str, numbers: Sequence[tuple[int, int]]) -> None:
    for case in cases(model, numbers):
        made, error, message, line = outcome_in_torch(case)
        assert (case.error, case.message, case.raises_at) == (error, message, line), case.bug.key
        for traced in case.trace:
            shape = tuple(side.size(case.sizes) for side in traced.shape)
            assert (traced.name, shape) in made[traced.line - 1], case.bug.key
        if case.clash:
            numbers_shown = {side.size(case.sizes) for side in case.clash}
            assert len(numbers_shown) == 2, case.bug.key


# The structures that a small program can have: shared heads or not, one of them, d = H·d_h or not, causal or not.
STRUCTURES = ("qwen2.5-0.5b", "qwen3-4b", "gpt2", "bert-base", "bart-base", "vit-base", "whisper-tiny")


def small_in_torch(model: str, program: str) -> tuple[Any, dict[str, Any], tuple[str, ...], str]:
    """Small tensors of a program, the same in torch, its right lines, and its kind of mask."""
    architecture = MODELS[model]
    right = PROGRAMS[program]
    lines = right.lines_for(architecture)
    laboratory = laboratory_for(right, architecture, sizes_of(right, architecture, 10, 3))
    given = {
        name: torch.from_numpy(tensor.numbers.copy())
        for name, tensor in laboratory.given.items()
        if tensor.numbers is not None
    }
    mask = next((line.condition for line in lines if line.condition in ("causal", "padded")), "")
    return laboratory, {**laboratory.sizes, **given}, tuple(line.code for line in lines), mask


def programs_of(model: str) -> list[str]:
    """The programs that the bank can show with a model."""
    return sorted({case.program.key for case in cases(model, NUMBERS[:1])})


def last_of(lines: Sequence[str], variables: Mapping[str, Any]) -> Any:
    """The output of lines in torch."""
    values = dict(variables)
    for line in lines:
        names = torch_line(line, values)
    return values[names[0]]


@pytest.mark.parametrize("model", one_in(3, STRUCTURES))
def test_right_programs_and_repairs_compute_the_formula(model: str) -> None:
    for program in programs_of(model):
        laboratory, variables, lines, mask = small_in_torch(model, program)
        expected = output_by_hand(program, variables, laboratory.sizes, mask)
        in_app = torch.from_numpy(laboratory.made(laboratory.run(lines), PROGRAMS[program].output))
        for output in (last_of(lines, variables), in_app):
            assert torch.allclose(output, expected, rtol=0, atol=1e-12), program
        for case in (each for each in cases(model, NUMBERS[:1]) if each.program.key == program and each.repair):
            assert case.repair is not None
            repaired = filled_in(case, case.repair.example)
            assert torch.allclose(last_of(repaired, variables), expected, rtol=0, atol=1e-12), case.bug.key
            assert case.repair_works(case.repair.example), case.bug.key
            if not case.raises_at:
                wrong = last_of(case.lines, variables)
                assert wrong.shape != expected.shape or not torch.allclose(wrong, expected, atol=1e-6), case.bug.key


def filled_in(case: BugCase, filled: Sequence[str | int]) -> list[str]:
    """The lines of a case with its repair filled in, as somebody would write it in Python."""
    assert case.repair is not None
    texts = ["H // G" if text == "H/G" else str(text) for text in filled]
    pieces = zip(texts, case.repair.parts[1:], strict=True)
    line = case.repair.parts[0] + "".join(text + part for text, part in pieces)
    return [*case.lines[: case.wrong_line - 1], line, *case.lines[case.wrong_line :]]


def sizes_in(case: BugCase, filled: Sequence[str | int]) -> list[str]:
    """What a filling has in the blanks of sizes."""
    assert case.repair is not None
    return [str(text) for blank, text in zip(case.repair.blanks, filled, strict=True) if blank.kind == "size"]


def random_filling(case: BugCase, draw: random.Random) -> list[str | int]:
    """A filling of a case's repair, mostly with what could be meant."""
    assert case.repair is not None
    meant = ["H*d_h", "G*d_h", "H/G", "B*N", "N + 1", "0", "1", "-1", "2*d_h", "10**9", *case.sizes]
    symbols = [text for text in meant if Expression.parse(text.replace("**", "^")).symbols <= case.sizes.keys()]
    filled: list[str | int] = []
    for blank, example in zip(case.repair.blanks, case.repair.example, strict=True):
        if draw.random() < 0.5:
            filled.append(int(example) if blank.kind == "dimension" else example)
        elif blank.kind == "word":
            filled.append(draw.choice(blank.words))
        elif blank.kind == "dimension":
            filled.append(draw.randint(-6, 6))
        else:
            filled.append(draw.choice([*symbols, *map(str, case.sizes.values())]))
    return filled


@pytest.mark.parametrize(
    ("model", "fillings"),
    [("qwen2.5-0.5b", 2), *(pytest.param(model, 60, marks=pytest.mark.slow) for model in STRUCTURES)],
)
def test_app_and_torch_agree_on_random_fillings(model: str, fillings: int) -> None:
    draw = random.Random(7)  # noqa: S311 - no secret
    for case in (each for each in cases(model, NUMBERS[:1]) if each.repair):
        laboratory, variables, _lines, _mask = small_in_torch(model, case.program.key)
        expected = torch.from_numpy(laboratory.expected)
        for _ in range(fillings):
            filled = random_filling(case, draw)
            lines = filled_in(case, filled)
            result, message, output = laboratory.run(lines), "", None
            try:
                output = last_of(lines, variables)
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                message = str(error)
            works = case.repair_works(filled)
            if result.error and result.error.name == "MemoryError":  # the app has a limit where torch has none
                assert not works
                continue
            assert str(result.error or "") == message, lines
            is_right = False
            if output is not None:
                [tensor] = result.made[-1].values()
                assert tensor.numbers is not None
                assert torch.allclose(torch.from_numpy(tensor.numbers), output, rtol=0, atol=1e-9, equal_nan=True)
                is_right = output.shape == expected.shape and torch.allclose(output, expected, rtol=0, atol=1e-9)
            # A number is one of the model's, and may be right by chance on small tensors.
            if not any(re.search(r"\d", text) for text in sizes_in(case, filled) if text != "-1"):
                assert works == is_right, lines
