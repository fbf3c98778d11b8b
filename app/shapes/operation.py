"""Operations: how a tensor is made from its operands.

An operation names its operands and their axes in einops' syntax. It knows how it is written on a sheet and in PyTorch,
what it does to lengths, what it costs and how it is drawn, so that nothing needs to read a formula.

>>> scores = Matmul("queries keys", "n h, m h -> n m")
>>> scores.formula(), scores.code()
('{queries} · {keys}ᵀ', '{queries} @ {keys}.T')
>>> Transpose("split_queries", "n h e -> h n e").code()
'{split_queries}.transpose(0, 1)'
>>> Matmul("queries keys", "n h, m h")
Traceback (most recent call last):
ValueError: Matmul(queries keys) cannot be 'n h, m h': it names the sides of each operand and of the result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import ClassVar, Literal, Self

from app.algebra.expression import Expression

# Which sentence of a hint says what an operation does to lengths.
Relation = Literal[
    "product", "made", "same-shape", "unsqueeze", "broadcast", "by-pattern", "view", "transpose", "repeat_interleave",
    "reshape",
]  # fmt: skip
ONE_SIDE = "1"  # a side of length 1 in a pattern
_AXIS = re.compile(rf"\([a-z]+(?: [a-z]+)+\)|[a-z]+|{ONE_SIDE}")


def axes_in(side: str) -> tuple[str, ...]:
    """The axes in one side of a tensor: ('h', 'e') for '(h e)', ('n',) for 'n'."""
    return tuple(side.strip("()").split())


@cache
def _sides(pattern: str) -> tuple[tuple[str, ...], ...]:
    groups = pattern.replace(" -> ", ", ").split(", ")
    sides = tuple(tuple(_AXIS.findall(group)) for group in groups)
    is_pattern = pattern.count(" -> ") == 1 and ", " not in pattern.partition(" -> ")[2]
    return sides if is_pattern and [" ".join(each) for each in sides] == groups else ()


def _flat(sides: Iterable[str]) -> tuple[str, ...]:
    return tuple(axis for side in sides for axis in axes_in(side))


@dataclass(frozen=True)
class Operation:
    """How a tensor is made: `of` has the keys of its operands, `pattern` the axes of the operands and of the result."""

    of: str
    pattern: str

    call: ClassVar[str] = ""  # the method or function that PyTorch calls
    sign: ClassVar[str] = ""  # drawn before the second operand
    arrow: ClassVar[str] = "→"  # drawn before the result
    broadcasts: ClassVar[bool] = False  # whether an operand's sides of 1 are repeated to match the other operand
    fixed_relation: ClassVar[Relation | None] = None  # the value of `relation`, if it is the same for every pattern

    def __post_init__(self) -> None:
        name = f"{type(self).__name__}({self.of})"
        if len(_sides(self.pattern)) != len(self.operands) + 1:
            raise ValueError(
                f"{name} cannot be '{self.pattern}': it names the sides of each operand and of the result."
            )
        if not self._fits():
            raise ValueError(f"{name} cannot be '{self.pattern}'. {(self.__doc__ or '').splitlines()[0]}")

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(self.of.split())

    @property
    def operand_sides(self) -> tuple[tuple[str, ...], ...]:
        """The sides of each operand: (('n', 'd'), ('d', 'h')) for 'n d, d h -> n h'."""
        return _sides(self.pattern)[:-1]

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of the result: ('n', 'h') for 'n d, d h -> n h'."""
        return _sides(self.pattern)[-1]

    @property
    def is_by_head(self) -> bool:
        """Whether it is computed separately in each head, where heads are next to each other in one side of a
        matrix.
        """
        return False

    @property
    def is_transposed(self) -> bool:
        """Whether the right operand is transposed, as Kᵀ in Q · Kᵀ."""
        return False

    @property
    def keeps_shape(self) -> bool:
        """Whether the result and every operand have the same sides."""
        return all(sides == self.sides for sides in self.operand_sides)

    @property
    def shows_pattern(self) -> bool:
        """Whether its line of code contains the pattern, which the sheet then shows even where it asks for the
        result.
        """
        return False

    @property
    def relation(self) -> Relation:
        """What a hint says about the lengths: `fixed_relation`, "same-shape" or "made"."""
        return self.fixed_relation or ("same-shape" if self.keeps_shape else "made")

    @property
    def adds(self) -> Literal["", "mask", "residual", "summand"]:
        """What kind of second operand is added to the first, if any."""
        return ""

    @property
    def signs(self) -> str:
        """The signs that a drawing puts before each further operand and before the result."""
        return (self.sign or " ") * (len(self.operands) - 1) + self.arrow

    def formula(self) -> str:
        """The result written as mathematics."""
        return self.code()

    def code(self, shape: str = "…") -> str:
        """The operation as a line of PyTorch."""
        return f"{{{self.of}}}.{self.call}({shape})"

    def with_axis(self, axis: str, operands: Collection[str]) -> Self:
        """The same operation with `axis` first in the result and in the `operands`.

        Raises ValueError if the operation can't have that pattern, such as an addition in which one operand lacks the
        axis.
        """
        groups = [
            f"{axis} " * (key in operands) + " ".join(s)
            for key, s in zip(self.operands, self.operand_sides, strict=True)
        ]
        return replace(self, pattern=f"{', '.join(groups)} -> {axis} {' '.join(self.sides)}")

    def with_operands(self, keys: Mapping[str, str]) -> Self:
        """The same operation on other tensors: `keys` maps old operand keys to new ones."""
        return replace(self, of=" ".join(keys.get(key, key) for key in self.operands))

    def _fits(self) -> bool:
        return bool(self.operands)


class _Elementwise(Operation):
    """An operation that keeps the shape of all its operands."""

    def _fits(self) -> bool:
        return self.keeps_shape


@dataclass(frozen=True)
class Matmul(Operation):
    """A matrix product; a side that holds several heads gives one product per head.

    The product may be `rotated` by RoPE, or `gated_by` the product of the left operand and another matrix.
    """

    rotated: bool = False
    gated_by: str = ""

    fixed_relation = "product"

    @property
    def is_transposed(self) -> bool:  # a matrix that isn't transposed is summed over its first side
        return _flat(self.operand_sides[1])[-1] not in _flat(self.sides)

    @property
    def is_by_head(self) -> bool:
        return "(" in self.pattern

    @property
    def is_plain(self) -> bool:
        """Whether the product is the result, without rotation or gate."""
        return not self.rotated and not self.gated_by

    def formula(self) -> str:
        """'{input} · {W_Q}', with ᵀ after a transposed right operand."""
        left, *rights = self.of.split() + ([self.gated_by] if self.gated_by else [])
        products = (f"{{{left}}} · {{{right}}}{'ᵀ' if self.is_transposed else ''}" for right in rights)
        text = ", {gated-by} ".join(products)
        if self.rotated:
            return f"RoPE({text})"
        in_result = any("(" in side for side in self.sides)
        by_head = ", {heads-concatenated}" if in_result else ", {head-by-head}" if self.is_by_head else ""
        return text + by_head

    def code(self, shape: str = "…") -> str:
        left, right = self.operands
        transposed = ".T" if len(self.sides) == 2 else ".transpose(-2, -1)"
        return f"{{{left}}} @ {{{right}}}{transposed if self.is_transposed else ''}"

    def flops(self, lengths: Mapping[str, Expression]) -> Expression:
        """The number of multiplications and additions: 2·n·d·h for 'n d, d h -> n h'."""
        axes = {*_flat(self.operand_sides[0]), *_flat(self.operand_sides[1])}
        return prod((lengths[axis] for axis in axes), start=Expression.number(2))

    def _fits(self) -> bool:
        if len(self.operands) != 2:
            return False
        left, right = (set(_flat(sides)) for sides in self.operand_sides)
        heads = {axes_in(side)[0] for sides in self.operand_sides for side in sides if "(" in side}
        summed = (left & right) - set(_flat(self.sides)) - heads
        return len(summed) == 1 and set(_flat(self.sides)) <= left | right | {"h"}


class _ByPattern(Operation):
    """An operation that code writes as a call with the pattern."""

    fixed_relation = "by-pattern"

    @property
    def shows_pattern(self) -> bool:
        return True

    def code(self, shape: str = "…") -> str:
        return _call(self.call, self.operands, self.pattern)


@dataclass(frozen=True)
class Einsum(_ByPattern):
    """Products of entries, summed over every axis that the result does not have: 'b h q e, b h k e -> b h q k'."""

    call = "einsum"

    def _fits(self) -> bool:
        return {*self.sides} <= {side for sides in self.operand_sides for side in sides} and "(" not in self.pattern


@dataclass(frozen=True)
class Rearrange(_ByPattern):
    """The axes of one tensor in another order, split or merged: 'b n (h e) -> b h n e'."""

    call = "rearrange"

    def _fits(self) -> bool:
        return len(self.operands) == 1 and sorted(_flat(self.sides)) == sorted(_flat(self.operand_sides[0]))


@dataclass(frozen=True)
class Add(_Elementwise):
    """The second operand is added to the first, elementwise."""

    sign, arrow = "+", "="

    @property
    def adds(self) -> Literal["summand", "residual"]:
        return "summand"

    def code(self, shape: str = "…") -> str:
        return " + ".join(f"{{{key}}}" for key in self.operands)


@dataclass(frozen=True)
class Residual(Add):
    """A residual connection: a block's output is added to its input."""

    @property
    def adds(self) -> Literal["residual"]:
        return "residual"


@dataclass(frozen=True)
class Gate(_Elementwise):
    """The first operand through the activation function, times the second one, elementwise."""

    sign, arrow = "⊙", "="

    def formula(self) -> str:
        return self.code().replace("*", "⊙")

    def code(self, shape: str = "…") -> str:
        gate, up = self.operands
        return f"{{activation}}({{{gate}}}) * {{{up}}}"


@dataclass(frozen=True)
class BroadcastAdd(Operation):
    """Operands of different shapes added elementwise: sides are aligned from the right, and a side of 1 is
    broadcast.
    """

    sign, arrow = "+", "="
    broadcasts = True
    fixed_relation = "broadcast"

    def code(self, shape: str = "…") -> str:
        return f" {self.sign} ".join(f"{{{key}}}" for key in self.operands)

    def _fits(self) -> bool:
        places = [sides[::-1] for sides in self.operand_sides]
        at_place = [{sides[at] for sides in places if at < len(sides)} for at in range(max(map(len, places)))]
        return len(places) == 2 and [{*sides} - {ONE_SIDE} or {*sides} for sides in at_place] == [
            {side} for side in self.sides[::-1]
        ]


@dataclass(frozen=True)
class BroadcastMultiply(BroadcastAdd):
    """Operands of different shapes multiplied elementwise; sides are aligned and broadcast as in BroadcastAdd."""

    sign = "⊙"

    def code(self, shape: str = "…") -> str:
        return super().code(shape).replace(self.sign, "*")


@dataclass(frozen=True)
class Apply(_Elementwise):
    """A function that keeps the shape: a norm, the activation function, a whole block. It may be named by a phrase."""

    function: str

    def code(self, shape: str = "…") -> str:
        return f"{self.function}({{{self.of}}})"


@dataclass(frozen=True)
class Softmax(_Elementwise):
    """The softmax of a query's scores, which are scaled, perhaps capped, and get a position bias and a mask. A
    second operand is the mask.
    """

    masked: bool = False
    scale: str = "inverse-sqrt"
    capped: bool = False
    position_bias: bool = False
    sink: bool = False
    of_one_text: bool = True

    call = "softmax"
    sign = "+"

    @property
    def adds(self) -> Literal["", "mask"]:
        return "mask" if len(self.operands) > 1 else ""

    def formula(self) -> str:
        return f"softmax({self._scores}), {{each-query}}" + ", {with-sink}" * self.sink

    def code(self, shape: str = "…") -> str:
        return f"softmax({self._scores}, dim=-1)" + ", {with-sink}" * self.sink

    @property
    def _scores(self) -> str:
        by_scale = {"none": "{scores}", "inverse-sqrt": "{scaled-scores}", "yarn": "{score-scale} · {scaled-scores}"}
        scores = by_scale.get(self.scale, "{score-scale} · {scores}")
        scores = f"{{softcap}}({scores})" if self.capped else scores
        scores = f"{scores} + {{position-bias}}" if self.position_bias else scores
        return f"{scores} + {{mask}}" if self.masked else scores


@dataclass(frozen=True)
class Rope(Operation):
    """RoPE: the first operand with its pairs of numbers rotated by the angles, the second."""

    def code(self, shape: str = "…") -> str:
        rotated, angles = self.operands
        return f"RoPE({{{rotated}}}, {{{angles}}})"

    def _fits(self) -> bool:
        return self.operand_sides[0] == self.sides


@dataclass(frozen=True)
class Concat(Operation):
    """The second operand next to or below the first one; where sides hold several heads, next to each of them."""

    sign, arrow = "|", "="

    @property
    def is_by_head(self) -> bool:
        return "(" in self.pattern

    @property
    def appends_row(self) -> bool:
        """Whether the second operand is appended as a row, as a new token's key is appended to the cache."""
        return self.sides[-1] == self.operand_sides[0][-1]

    @property
    def joins_columns(self) -> bool:
        """Whether the second operand goes next to the whole first one, rather than next to each head."""
        return not self.appends_row and not self.is_by_head

    def formula(self) -> str:
        text = "row-appended" if self.appends_row else "head-by-head" if self.is_by_head else "concatenated"
        sign = ";" if self.appends_row else ","
        return f"[{f'{sign} '.join(f'{{{key}}}' for key in self.operands)}], {{{text}}}"

    def code(self, shape: str = "…") -> str:
        return f"cat(({', '.join(f'{{{key}}}' for key in self.operands)}), dim={-2 if self.appends_row else -1})"

    def _fits(self) -> bool:
        new = [side for side in self.sides if side not in self.operand_sides[0]]
        return len(self.operands) == 2 and len(new) == 1


@dataclass(frozen=True)
class View(Operation):
    """One side split into several: 'n (h e) -> n h e'."""

    call = "view"
    fixed_relation = "view"

    def _fits(self) -> bool:
        return len(self.operands) == 1 and self.sides == _flat(self.operand_sides[0]) != self.operand_sides[0]


@dataclass(frozen=True)
class WrongView(Operation):
    """A view that names dimensions in another order than memory: 'n (h e) -> h n e'.

    No number moves, so the shape is as after a transpose, but tokens and heads are mixed.
    """

    call = "view"

    def _fits(self) -> bool:
        axes = _flat(self.operand_sides[0])
        return len(self.operands) == 1 and self.sides != axes and sorted(self.sides) == sorted(axes)


@dataclass(frozen=True)
class Unsqueeze(Operation):
    """Sides of length 1 inserted between the others: 'b n -> b 1 1 n'."""

    call = "view"
    fixed_relation = "unsqueeze"

    def _fits(self) -> bool:
        others = tuple(side for side in self.sides if side != ONE_SIDE)
        return len(self.operands) == 1 and others == self.operand_sides[0] != self.sides


@dataclass(frozen=True)
class Reshape(Operation):
    """Several sides merged into one: 'n h e -> n (h e)'."""

    call = "reshape"
    fixed_relation = "reshape"

    def _fits(self) -> bool:
        return len(self.operands) == 1 and self.operand_sides[0] == _flat(self.sides) != self.sides


@dataclass(frozen=True)
class Transpose(Operation):
    """Two sides exchanged: 'n h e -> h n e'."""

    call = "transpose"
    fixed_relation = "transpose"

    def formula(self) -> str:
        """A matrix as '{keys}ᵀ'; a tensor with more sides as code."""
        return f"{{{self.of}}}ᵀ" if len(self.sides) == 2 else self.code()

    def code(self, shape: str = "…") -> str:
        return f"{{{self.of}}}.transpose({', '.join(map(str, _places(self)))})"

    def _fits(self) -> bool:
        return (
            len(self.operands) == 1 and len(_places(self)) == 2 and sorted(self.sides) == sorted(self.operand_sides[0])
        )


@dataclass(frozen=True)
class Repeat(Operation):
    """Every key/value head copied for the query heads that share it: 'g n e -> h n e', or 'g n e -> (g r) n e' with
    einops.
    """

    call = "repeat_interleave"
    fixed_relation = "repeat_interleave"

    @property
    def shows_pattern(self) -> bool:
        return "(" in self.pattern

    def code(self, shape: str = "…") -> str:
        if self.shows_pattern:
            return _call("repeat", self.operands, self.pattern)
        return f"{{{self.of}}}.repeat_interleave({{H}} // {{G}}, dim={_places(self)[0]})"

    def _fits(self) -> bool:
        return len(self.operands) == 1 and len(_places(self)) == 1 and len(self.sides) == len(self.operand_sides[0])


def _call(function: str, operands: Iterable[str], pattern: str) -> str:
    return f'{function}({", ".join(f"{{{key}}}" for key in operands)}, "{pattern}")'


def _places(operation: Operation) -> list[int]:
    return [at for at, side in enumerate(operation.operand_sides[0]) if (side,) != operation.sides[at : at + 1]]


@dataclass(frozen=True)
class Lookup(Operation):
    """The tokens' rows of an embedding table, perhaps scaled by √d, perhaps with rows of a position table added."""

    scaled: bool = False
    position_table: bool = False

    def formula(self) -> str:
        return f"{'√{d} · ' if self.scaled else ''}{{lookup}}{' + {position-rows}' if self.position_table else ''}"

    def code(self, shape: str = "…") -> str:
        tokens, table = self.operands
        ids = f"{{{tokens}}}.squeeze()" if len(self.sides) == 2 else f"{{{tokens}}}"
        return f"{{{table}}}[{ids}]"


@dataclass(frozen=True)
class LastRow(Operation):
    """Only the last row: 'n v -> o v'."""

    def formula(self) -> str:
        return "{last-row}"

    def code(self, shape: str = "…") -> str:
        return f"{{{self.of}}}[-1:]"


@dataclass(frozen=True)
class Slice(Operation):
    """One side without its first or last entry: 'b n v -> b s v'."""

    drops: Literal["first", "last"] = "last"

    def code(self, shape: str = "…") -> str:
        kept = "1:" if self.drops == "first" else ":-1"
        return f"{{{self.of}}}[{':, ' * _places(self)[0]}{kept}]"

    def _fits(self) -> bool:
        return len(self.operands) == 1 and len(_places(self)) == 1 and len(self.sides) == len(self.operand_sides[0])


@dataclass(frozen=True)
class First(Operation):
    """The first entry along one side, which disappears: 'b n d -> b d'."""

    def code(self, shape: str = "…") -> str:
        return f"{{{self.of}}}[{':, ' * _places(self)[0]}0]"

    def _fits(self) -> bool:
        sides = self.operand_sides[0]
        return any(self.sides == sides[:at] + sides[at + 1 :] for at in range(len(sides)))


@dataclass(frozen=True)
class Convolve(Operation):
    """The kernel, the second operand, moved along the last sides of the first: 'b c t, d c k -> b d s'."""

    stride: str = "1"
    padding: int = 0
    activated: bool = False

    def code(self, shape: str = "…") -> str:
        """A call of conv1d or conv2d, by the number of sides."""
        given, kernel = self.operands
        text = f"{{activation}}({{{given}}})" if self.activated else f"{{{given}}}"
        text += f", {{{kernel}}}" + f", stride={self.stride}" * (self.stride != "1")
        return f"conv{len(self.sides) - 2}d({text}{f', padding={self.padding}' * bool(self.padding)})"

    def _fits(self) -> bool:
        if len(self.operands) != 2:
            return False
        given, kernel = self.operand_sides
        sides = len(given) == len(kernel) == len(self.sides) > 2
        return sides and given[1] == kernel[1] and self.sides[:2] == (given[0], kernel[0])


@dataclass(frozen=True)
class LargestWeights(Operation):
    """The weights of the k experts that a router chooses for each token: 'n e -> n k'."""

    def formula(self) -> str:
        return "{largest-of-each}"

    def code(self, shape: str = "…") -> str:
        return f"softmax({{{self.of}}}, dim=-1).topk({{k}}).values"


@dataclass(frozen=True)
class SelectRows(Operation):
    """The rows of the tokens that a router sends to one expert: 'n d -> m d'."""

    def formula(self) -> str:
        return "{rows-sent}"

    def code(self, shape: str = "…") -> str:
        return f"{{{self.of}}}[sent]"


@dataclass(frozen=True)
class AddExperts(Operation):
    """For each token, the weighted sum of its experts' outputs, written for one expert: 'm d -> n d'."""

    def formula(self) -> str:
        return "{outputs-added}" if self.keeps_shape else "{experts-added}"

    def code(self, shape: str = "…") -> str:
        return f"zeros({shape}).index_add(0, sent, {{{self.of}}})"
