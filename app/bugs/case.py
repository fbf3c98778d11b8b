"""A bug in the program of one model: code, message or witness, shapes, and whether a repair works.

Torch isn't needed: shapes and messages follow from the model's sizes, and numbers are computed on small tensors.

>>> from app.bugs.bank import BUGS
>>> from app.models.read_config import read_config
>>> qwen = read_config('{"model_type": "qwen2", "hidden_size": 896, "num_attention_heads": 14, "vocab_size": 151936,'
...     '"num_key_value_heads": 2, "intermediate_size": 4864, "num_hidden_layers": 24}')
>>> case = bug_case(BUGS["layer-keys-not-transposed"], qwen, tokens=10, batch=3)
>>> case.raises_at, case.message
(6, 'Expected size for first two dimensions of batch2 tensor to be: [42, 64] but got: [42, 10].')
>>> case.repair_works([2, 3]), case.repair_works([1, 2])
(True, False)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, product
from typing import Any

from app.algebra.expression import Expression, ExpressionError
from app.bugs.bank import Bug, RepairForm
from app.bugs.programs import CodeLine, CodeProgram, Shape, for_model
from app.bugs.running import CodeRun, run
from app.bugs.sizes import BugError, check_sizes, first_possible, sizes_of, small_sizes, with_proposal, written_as
from app.bugs.tensors import CodeTensor, SymbolicLength, expression_of
from app.bugs.witnesses import Laboratory, Witness, differ, witness_of
from app.models.architecture import Architecture
from app.translation import gettext as _

REASONS_ASKED = 4
TRACED_LINES = 4
_MOST_WAYS = 64  # ways of reading a filling's numbers as sizes
_MOST_SIZE = 10**12  # larger numbers aren't meant as sizes


@dataclass(frozen=True)
class TracedShape:
    """The shape of variable `name` after a line, counted from 1, as the buggy code computes it."""

    line: int
    name: str
    shape: Shape


@dataclass(frozen=True)
class BugCase:
    """A bug in the program of one model, with everything that a sheet asks and shows.

    `inputs` are the shapes of the code's inputs, including those that only the repair needs.
    """

    bug: Bug
    program: CodeProgram
    lines: tuple[str, ...]
    inputs: tuple[tuple[str, Shape], ...]
    sizes: Mapping[str, int]
    trace: tuple[TracedShape, ...]
    wrong_line: int
    raises_at: int
    error: str
    message: str
    clash: tuple[Expression, Expression] | None
    witness: Witness | None
    repair: RepairForm | None
    reasons: tuple[str, ...]
    _output_shape: tuple[int, ...] = field(repr=False)
    _architecture: Architecture = field(repr=False)

    def repair_works(self, filled: Sequence[str | Expression | int]) -> bool:
        """Whether the program is right once the wrong line's blanks are filled in like this."""
        if self.repair is None or len(filled) != len(self.repair.blanks):
            return False
        texts, values = list[str](), dict[str, int | Expression]()
        for number, (blank, text) in enumerate(zip(self.repair.blanks, filled, strict=True)):
            if blank.kind == "word":
                if text not in blank.words:
                    return False
                texts.append(str(text))
            else:
                value = _size(text)
                if value is None or (blank.kind == "dimension" and isinstance(value, Expression)):
                    return False
                texts.append(f"blank_{number}")
                values[f"blank_{number}"] = value
        return self._computes_the_same(self.repair.filled_with(texts), values)

    def _computes_the_same(self, line: str, values: Mapping[str, int | Expression]) -> bool:
        lines = (*self.lines[: self.wrong_line - 1], line, *self.lines[self.wrong_line :])
        in_model = {name: _whole(value, self.sizes) for name, value in values.items()}
        if None in in_model.values():
            return False
        result = _shapes(self.program, self._architecture, self.sizes, lines, in_model)
        if result.error or _last_shape(result) != self._output_shape:
            return False
        laboratory = laboratory_for(self.program, self._architecture, self.sizes)
        output = self.program.output
        for small in self._small_values(values, laboratory.sizes):
            outcome = laboratory.run(lines, **small)
            if not outcome.error and not differ(laboratory.made(outcome, output), laboratory.expected):
                return True
        return False

    def _small_values(
        self, values: Mapping[str, int | Expression], small: Mapping[str, int]
    ) -> Iterator[dict[str, int]]:
        kinds = {f"blank_{at}": blank.kind for at, blank in enumerate(self.repair.blanks)} if self.repair else {}
        by_number = written_as(tuple(self.sizes.items()))
        ways = list[list[int]]()
        for name, value in values.items():
            if isinstance(value, Expression):
                sizes = [_whole(value, small)]
            else:
                expressions = by_number.get(value, ()) if kinds[name] == "size" else ()
                sizes = [*(_whole(each, small) for each in expressions), value]
            ways.append([size for size in dict.fromkeys(sizes) if size is not None])
        for chosen in islice(product(*ways), _MOST_WAYS):
            yield dict(zip(values, chosen, strict=True))


def _size(text: str | Expression | int) -> int | Expression | None:
    if isinstance(text, int):
        return text if abs(text) <= _MOST_SIZE else None
    try:
        expression = Expression.parse(text) if isinstance(text, str) else text
        value = expression.value({}) if not expression.symbols else None
    except (ExpressionError, ZeroDivisionError):
        return None
    if value is None:
        return expression
    return int(value) if value.denominator == 1 and abs(value) <= _MOST_SIZE else None


def _whole(value: int | Expression, sizes: Mapping[str, int]) -> int | None:
    if isinstance(value, int):
        return value
    try:
        number = value.size(sizes)
    except (ExpressionError, ZeroDivisionError):
        return None
    return number if abs(number) <= _MOST_SIZE else None


def _shapes(
    program: CodeProgram,
    architecture: Architecture,
    sizes: Mapping[str, int],
    lines: Sequence[str],
    named: Mapping[str, Any] | None = None,
) -> CodeRun:
    lengths: Callable[[int, Expression], int] = SymbolicLength if named is None else lambda size, _expression: size
    symbols = {symbol: lengths(size, Expression.symbol(symbol)) for symbol, size in sizes.items()}
    given = {
        name: CodeTensor.of_shape([lengths(side.size(sizes), side) for side in shape])
        for name, shape in program.inputs_for(architecture, " ".join(program.given))
    }
    return run(lines, {**symbols, **given, **(named or {})})


def _last_shape(result: CodeRun) -> tuple[int, ...]:
    [tensor] = result.made[-1].values()
    return tensor.shape


def laboratory_for(program: CodeProgram, architecture: Architecture, sizes: Mapping[str, int]) -> Laboratory:
    """Small tensors for the program of a model with these sizes; models with the same program share them."""
    inputs = program.inputs_for(architecture, " ".join(program.given))
    return _laboratory(program, program.lines_for(architecture), inputs, tuple(small_sizes(sizes).items()))


@lru_cache(64)
def _laboratory(
    program: CodeProgram,
    lines: tuple[CodeLine, ...],
    inputs: tuple[tuple[str, Shape], ...],
    sizes: tuple[tuple[str, int], ...],
) -> Laboratory:
    return Laboratory(program, lines, inputs, dict(sizes))


def bug_case(bug: Bug, architecture: Architecture, tokens: int, batch: int) -> BugCase:
    """A bug in the program of a model that reads `batch` inputs of `tokens` tokens, cached ones in a decode step."""
    program = bug.program
    _check_model(program, architecture, tokens, batch)
    check_sizes(program, architecture, tokens, batch)
    sizes = sizes_of(program, architecture, tokens, batch)
    code = program.lines_for(architecture)
    keys, right_lines = [line.key for line in code], tuple(line.code for line in code)
    if bug.line and bug.line not in keys:
        raise BugError(
            _("The program of {model} has no such line: choose another bug.").format(model=architecture.name)
        )
    wrong_line = keys.index(bug.line) + 1 if bug.line else 0
    wrong = for_model(bug.wrong, architecture)
    lines = tuple(wrong if number == wrong_line else line for number, line in enumerate(right_lines, 1))
    right = _shapes(program, architecture, sizes, right_lines)
    result = _shapes(program, architecture, sizes, lines)
    _check_outcome(bug, architecture, result)
    error = result.error
    return BugCase(
        bug=bug,
        program=program,
        lines=lines,
        inputs=program.inputs_for(architecture, " ".join((*lines, *right_lines))),
        sizes=sizes,
        trace=_trace(program, keys, result, wrong_line),
        wrong_line=wrong_line,
        raises_at=result.raised_at,
        error=error.name if error else "",
        message=str(error) if error else "",
        clash=(expression_of(error.clash[0]), expression_of(error.clash[1])) if error and error.clash else None,
        witness=_witness(program, architecture, sizes, lines) if wrong_line and not error else None,
        repair=_repair(bug, architecture) if wrong_line else None,
        reasons=_reasons(bug, keys),
        _output_shape=_last_shape(right),
        _architecture=architecture,
    )


def _check_model(program: CodeProgram, architecture: Architecture, tokens: int, batch: int) -> None:
    name = architecture.name
    if architecture.has_latent_attention or architecture.d_v != architecture.d_h:
        raise BugError(_("{model} makes keys and values from a latent, unlike this code.").format(model=name))
    if architecture.score_scale.kind != "inverse-sqrt":
        raise BugError(_("{model} does not divide its scores by √d_h, unlike this code.").format(model=name))
    if architecture.position_bias == "disentangled":
        raise BugError(_("{model} adds further products to its scores, unlike this code.").format(model=name))
    if program.two_texts and not architecture.encoder_decoder:
        raise BugError(_("{model} has no cross-attention: choose an encoder-decoder model.").format(model=name))
    if program.decodes and not architecture.has_kv_cache:
        raise BugError(_("{model} is used without a KV cache: choose a model that has one.").format(model=name))
    rotary = architecture.rotary
    if program.rotary and (rotary is None or rotary.width != architecture.d_h or rotary.adjacent_pairs):
        raise BugError(_("{model} does not rotate its queries and keys as this code does.").format(model=name))
    seen = min(run.window or run.chunk or tokens + 1 for run in architecture.stacks[0].attending[:1])
    if tokens + program.decodes > seen and not program.two_texts:
        proposed = first_possible(program, architecture, range(seen - program.decodes, 1, -1), batch)
        reason = _("Beyond {seen:,} tokens, {model} hides more than this code.").format(seen=seen, model=name)
        raise BugError(with_proposal(reason, proposed), proposed)


def _check_outcome(bug: Bug, architecture: Architecture, result: CodeRun) -> None:
    if bug.line and bug.loud and not result.raised_at:
        reason = _("With the sizes of {model}, this bug raises nothing: choose another model.")
        raise BugError(reason.format(model=architecture.name))
    if result.raised_at and not (bug.line and bug.loud):
        reason = _("With the sizes of {model}, this bug isn’t silent: choose another model.")
        raise BugError(reason.format(model=architecture.name))


def _witness(
    program: CodeProgram, architecture: Architecture, sizes: Mapping[str, int], wrong: Sequence[str]
) -> Witness:
    laboratory = laboratory_for(program, architecture, sizes)
    if not differ(laboratory.made(laboratory.run(wrong), program.output), laboratory.expected):
        reason = _("In {model}, this line computes the same as the right one: choose another model.")
        raise BugError(reason.format(model=architecture.name))
    return witness_of(laboratory, wrong)


def _trace(program: CodeProgram, keys: Sequence[str], result: CodeRun, wrong_line: int) -> tuple[TracedShape, ...]:
    made = {
        number: next(iter(names.items()))
        for number, names in enumerate(result.made, 1)
        if keys[number - 1] in program.traced or number == wrong_line
    }
    asked = sorted(made)[-TRACED_LINES:]
    if wrong_line in made and wrong_line not in asked:
        asked[0] = wrong_line
    return tuple(TracedShape(at, made[at][0], tuple(map(expression_of, made[at][1].shape))) for at in asked)


def _repair(bug: Bug, architecture: Architecture) -> RepairForm:
    parts, example = (
        tuple(for_model(text, architecture) for text in texts) for texts in (bug.repair.parts, bug.repair.example)
    )
    return replace(bug.repair, parts=parts, example=example)


def _reasons(bug: Bug, keys: Sequence[str]) -> tuple[str, ...]:
    others = [key for key, line in bug.others if line in keys and line != bug.line]
    return (bug.key, *[*bug.beliefs, *others][: REASONS_ASKED - 1])
