"""Witnesses of a bug that raises nothing: probes on small tensors that show what a right program never does.

Each probe gives a small grid of numbers for the buggy program and for the right one.
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
    """A probe's result: numbers in rows and columns, and the right program's numbers in the same cells."""

    probe: Probe
    cells: Grid
    expected: Grid
    sizes: Sizes


def given_numbers(
    program: CodeProgram, inputs: Sequence[tuple[str, tuple[int, ...]]], shift: int = 0
) -> dict[str, CodeTensor]:
    """A tensor for each input and parameter, with the same numbers at every call."""
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
    """Whether two results differ in shape, by more than _TOLERANCE, or in being NaN."""
    return a.shape != b.shape or bool((abs(a - b) > _TOLERANCE).any() or (a != a).any() != (b != b).any())


class Laboratory:
    """Runs lines of a program on the same small tensors, with one thing changed each time.

    `lines` are the right lines; `inputs` are the shapes of their inputs, in symbols whose `sizes` are given.
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
        """Run the lines; `changed` replaces or adds variables."""
        import numpy as np

        with np.errstate(all="ignore"):  # a repair may divide by zero
            return run(lines, {**self.sizes, **self.given, **changed})

    @cached_property
    def expected(self) -> Any:
        return self.made(self.run(self.right), self.program.output)

    def made(self, result: CodeRun, key: str) -> Any:
        """The numbers made by the line with this key, which must make exactly one variable."""
        [tensor] = result.made[self.keys.index(key)].values()
        return tensor.numbers

    def change(self, lines: Sequence[str], key: str, **changed: CodeTensor | int) -> Any:
        """The absolute change in the numbers made by the line `key` when inputs are replaced by `changed`."""
        return abs(self.made(self.run(lines, **changed), key) - self.made(self.run(lines), key))

    def changed(self, name: str, index: tuple[Any, ...]) -> CodeTensor:
        """A copy of an input or parameter in which every number x at `index` becomes 0.3 − 0.7·x."""
        tensor = self.given[name]
        assert tensor.numbers is not None  # noqa: S101 - given_numbers has made it
        numbers = tensor.numbers.copy()
        numbers[index] = numbers[index] * -0.7 + 0.3
        return CodeTensor.of_shape(tensor.shape, numbers)


def witness_of(laboratory: Laboratory, wrong: Sequence[str]) -> Witness:
    """The first probe, in the order of _PROBES, that tells the `wrong` lines from the right ones."""
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
    """The first probe's result on the right program."""
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
