"""Witnesses of a bug that raises nothing: a probe on small tensors that shows what a right program never does.

Each probe gives a small grid of numbers, once of the program with the bug and once of the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from zlib import crc32

from app.bugs.programs import CodeLine, CodeProgram, Shape
from app.bugs.running import CodeRun, run
from app.bugs.tensors import CodeTensor

Probe = Literal[
    "row-sums", "last-token", "first-query-head", "first-key-head", "new-token", "spread", "shift", "formula"
]
Grid = tuple[tuple[float, ...], ...]
Sizes = Mapping[str, int]
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Witness:
    """What a probe shows: numbers in rows and columns, and the same cells of the right program."""

    probe: Probe
    cells: Grid
    expected: Grid
    sizes: Sizes


def given_numbers(
    program: CodeProgram, inputs: Sequence[tuple[str, tuple[int, ...]]], shift: int = 0
) -> dict[str, CodeTensor]:
    """A tensor by name for each input and parameter, in its given shape and with the same numbers at every call."""
    import numpy as np

    given = dict[str, CodeTensor]()
    for name, shape in inputs:
        if name == "position":
            numbers: Any = np.arange(shape[0]) + shift
        elif name in ("cos", "sin"):
            angles = (np.arange(shape[0]) + shift)[:, None] * 100.0 ** (-np.arange(shape[1]) / shape[1])
            numbers = np.cos(angles) if name == "cos" else np.sin(angles)
        elif name == "mask":
            numbers = np.tri(*shape, dtype=bool)
        elif name == "padding":
            numbers = np.arange(shape[1]) >= shape[1] - np.arange(shape[0])[:, None]
        else:
            numbers = np.random.default_rng(crc32(name.encode())).standard_normal(shape)
            if name.startswith("W"):
                numbers = numbers / shape[-1 if program.stored else 0] ** 0.5
        given[name] = CodeTensor.of_shape(shape, numbers)
    return given


def differ(a: Any, b: Any) -> bool:
    """Whether two results are of another shape, differ in a number by more than _TOLERANCE, or only one has a NaN."""
    return a.shape != b.shape or bool((abs(a - b) > _TOLERANCE).any() or (a != a).any() != (b != b).any())


class Laboratory:
    """Runs lines of a program on the same small tensors again and again, with something changed each time. `lines`
    are the right ones, `inputs` the shapes of what they are given, in symbols that have `sizes`.
    """

    def __init__(
        self, program: CodeProgram, lines: Sequence[CodeLine], inputs: Sequence[tuple[str, Shape]], sizes: Sizes
    ) -> None:
        self.program = program
        self.keys = tuple(line.key for line in lines)
        self.right = tuple(line.code for line in lines)
        self.sizes = dict(sizes)
        self.inputs = [(name, tuple(side.size(sizes) for side in shape)) for name, shape in inputs]
        self.given = given_numbers(program, self.inputs)

    def run(self, lines: Sequence[str], **changed: CodeTensor | int) -> CodeRun:
        """Run the lines on the small tensors; `changed` replaces inputs, parameters or sizes, or adds variables."""
        import numpy as np

        with np.errstate(all="ignore"):  # a repair may divide by zero
            return run(lines, {**self.sizes, **self.given, **changed})

    @cached_property
    def expected(self) -> Any:
        """The numbers of the right output."""
        return self.made(self.run(self.right), self.program.output)

    def made(self, result: CodeRun, key: str) -> Any:
        """The numbers that the line with this key has made; the line may make no more than one variable."""
        [tensor] = result.made[self.keys.index(key)].values()
        return tensor.numbers

    def change(self, lines: Sequence[str], key: str, **changed: CodeTensor | int) -> Any:
        """How much each number that the line `key` makes differs if inputs are replaced by `changed`, without sign."""
        return abs(self.made(self.run(lines, **changed), key) - self.made(self.run(lines), key))

    def changed(self, name: str, index: tuple[Any, ...]) -> CodeTensor:
        """A copy of an input or parameter in which every number x at `index` is replaced by 0.3 − 0.7·x."""
        tensor = self.given[name]
        assert tensor.numbers is not None  # noqa: S101 - given_numbers has made it
        numbers = tensor.numbers.copy()
        numbers[index] = numbers[index] * -0.7 + 0.3
        return CodeTensor.of_shape(tensor.shape, numbers)


def witness_of(laboratory: Laboratory, wrong: Sequence[str]) -> Witness:
    """The first probe whose cells differ between the lines `wrong` and the right ones, in the order of _PROBES."""
    wrong_line = next(key for key, a, b in zip(laboratory.keys, laboratory.right, wrong, strict=True) if a != b)
    for probe, cells_of in _PROBES.items():
        if probe == "spread" and wrong_line != laboratory.program.scores:
            continue
        expected, cells = cells_of(laboratory, laboratory.right), cells_of(laboratory, wrong)
        if expected is None or cells is None or str(expected) == str(cells):
            continue
        if probe == "spread" and 0.8 < cells[0][0] / expected[0][0] < 1.2:
            continue
        return Witness(probe, cells, expected, laboratory.sizes)
    change = abs(laboratory.made(laboratory.run(wrong), laboratory.program.output) - laboratory.expected)
    rows = change.max(axis=(1, 3) if change.ndim == 4 else -1).reshape(-1, change.shape[-2])
    cells = _where_changed(rows)
    return Witness("formula", cells, tuple(tuple(0.0 for _ in row) for row in cells), laboratory.sizes)


def healthy_witness(laboratory: Laboratory) -> Witness:
    """What the first probe that gives cells shows of a right program, which is also what is expected of it."""
    shown = ((probe, cells_of(laboratory, laboratory.right)) for probe, cells_of in _PROBES.items())
    probe, cells = next((probe, cells) for probe, cells in shown if cells)
    return Witness(probe, cells, cells, laboratory.sizes)


def _where_changed(rows: Any) -> Grid:
    return tuple(tuple(float(not each <= _TOLERANCE) for each in row) for row in rows)


def _row_sums(laboratory: Laboratory, lines: Sequence[str]) -> Grid | None:
    if not laboratory.program.weights:
        return None
    weights = laboratory.made(laboratory.run(lines), laboratory.program.weights)
    sums = (weights[None, None] if weights.ndim == 2 else weights)[:, 0].sum(axis=-1)
    return tuple(tuple(round(float(each), 2) + 0.0 for each in row) for row in sums)


def _last_token(laboratory: Laboratory, lines: Sequence[str]) -> Grid | None:
    if laboratory.program.decodes or laboratory.program.two_texts or laboratory.program.output != "O":
        return None
    has_batch = "B" in laboratory.sizes
    last = laboratory.changed("X", (0, -1) if has_batch else (-1,))
    change = laboratory.change(lines, "O", X=last).max(axis=-1)
    return _where_changed(change if has_batch else change[None])


def _first_head(parameter: str) -> Callable[[Laboratory, Sequence[str]], Grid | None]:
    def changed_heads(laboratory: Laboratory, lines: Sequence[str]) -> Grid | None:
        if "H" not in laboratory.sizes or parameter not in laboratory.given or not laboratory.program.weights:
            return None
        first = laboratory.changed(parameter, (slice(0, laboratory.sizes["d_h"]),))
        change = laboratory.change(lines, laboratory.program.weights, **{parameter: first})
        return _where_changed([change.max(axis=(0, 2, 3))])

    return changed_heads


def _new_token(laboratory: Laboratory, lines: Sequence[str]) -> Grid | None:
    if not laboratory.program.decodes:
        return None
    change = laboratory.change(lines, laboratory.program.output, x=laboratory.changed("x", (0,)))
    return _where_changed([change.max(axis=(1, 2))])


def _spread(laboratory: Laboratory, lines: Sequence[str]) -> Grid | None:
    if laboratory.program.decodes:
        return None
    scores = laboratory.made(laboratory.run(lines), laboratory.program.scores)
    return ((round(float(scores.std()), 2),),)


def _shift(laboratory: Laboratory, lines: Sequence[str]) -> Grid | None:
    if "cos" not in laboratory.given:
        return None
    angles = [(name, shape) for name, shape in laboratory.inputs if name in ("cos", "sin")]
    shifted = given_numbers(laboratory.program, angles, shift=1)
    return _where_changed(laboratory.change(lines, laboratory.program.scores, **shifted)[0, 0])


_PROBES: Mapping[Probe, Callable[[Laboratory, Sequence[str]], Grid | None]] = {
    "row-sums": _row_sums,
    "last-token": _last_token,
    "first-query-head": _first_head("W_Q"),
    "first-key-head": _first_head("W_K"),
    "new-token": _new_token,
    "spread": _spread,
    "shift": _shift,
}
