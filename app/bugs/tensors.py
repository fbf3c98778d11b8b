"""A tensor with the torch methods that the programs use: shapes, strides and, optionally, numbers.

It follows torch's rules and error messages, so that sheets and marks don't need torch. Without numbers, real models'
sizes cost nothing. tests/bugs/ compares it with torch.

>>> q = CodeTensor.of_shape((3, 10, 896))
>>> q.view(3, 10, 14, 64).transpose(1, 2).shape
(3, 14, 10, 64)
>>> q.view(3, 10, 14, 32)
Traceback (most recent call last):
app.bugs.tensors.TensorError: shape '[3, 10, 14, 32]' is invalid for input of size 26880
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partialmethod
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from app.algebra.expression import DividedBySumError, Expression

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_NUMBERS = 100_000  # the most numbers that a tensor may have: 0.8 MB
MAX_PARTS = 1000  # the most parts that a tensor may be split into
_DIMENSIONS_DIFFER = "Tensors must have same number of dimensions: got {} and {}"
_CANNOT_MULTIPLY = "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})"
Shape = tuple[int, ...]
Index = tuple[int | slice | EllipsisType | None, ...]


class TensorError(Exception):
    """What torch would raise: the exception's name and message, and the two sizes that clash, if any."""

    def __init__(self, message: str, clash: tuple[int, int] | None = None, name: str = "RuntimeError") -> None:
        self.clash = clash
        self.name = name
        super().__init__(message)


class SymbolicLength(int):
    """A length that knows how it is written in symbols.

    >>> H, G = SymbolicLength(14, Expression.symbol("H")), SymbolicLength(2, Expression.symbol("G"))
    >>> H // G, str((H // G).expression), str((H * 64).expression)
    (7, 'H/G', '64*H')
    """

    expression: Expression

    def __new__(cls, number: int, expression: Expression) -> SymbolicLength:
        side = super().__new__(cls, number)
        side.expression = expression
        return side

    def __reduce__(self) -> tuple[type[SymbolicLength], tuple[int, Expression]]:
        return SymbolicLength, (int(self), self.expression)

    def __add__(self, other: int) -> SymbolicLength:
        return SymbolicLength(int(self) + int(other), self.expression + expression_of(other))

    def __mul__(self, other: int) -> SymbolicLength:
        return SymbolicLength(int(self) * int(other), self.expression * expression_of(other))

    def __floordiv__(self, other: int) -> SymbolicLength:
        """The quotient, rounded down; its expression is a number if it can't be written in symbols."""
        quotient, rest = divmod(int(self), int(other))
        try:
            expression = expression_of(quotient) if rest else self.expression / expression_of(other)
        except DividedBySumError:
            expression = expression_of(quotient)
        return SymbolicLength(quotient, expression)

    __radd__, __rmul__ = __add__, __mul__


def expression_of(size: int) -> Expression:
    """A length as an expression: in symbols if it is a SymbolicLength."""
    return size.expression if isinstance(size, SymbolicLength) else Expression.number(int(size))


def numbers_in(shape: Sequence[int]) -> int:
    return math.prod(shape, start=1)


@dataclass(frozen=True, eq=False)
class CodeTensor:
    """A tensor: its shape, its strides, and its numbers, if there are any."""

    shape: Shape
    strides: Shape
    numbers: NDArray[Any] | None = None

    @staticmethod
    def of_shape(shape: Sequence[int], numbers: NDArray[Any] | None = None) -> CodeTensor:
        """A tensor whose numbers lie in memory in the order of its shape."""
        return CodeTensor(tuple(shape), contiguous_strides(shape), numbers)

    @property
    def dim(self) -> int:
        return len(self.shape)

    # Another order of the dimensions

    @property
    def T(self) -> CodeTensor:
        return self.permute(*reversed(range(self.dim)))

    @property
    def mT(self) -> CodeTensor:
        """The last two dimensions exchanged; raises TensorError for fewer than two."""
        if self.dim < 2:
            raise TensorError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
        return self.transpose(-2, -1)

    def transpose(self, first: int, second: int) -> CodeTensor:
        """A view with two dimensions exchanged, where −1 is the last; raises TensorError for an unknown dimension."""
        order = list(range(self.dim))
        a, b = place(first, self.dim), place(second, self.dim)
        order[a], order[b] = order[b], order[a]
        return self.permute(*order)

    def permute(self, *order: int) -> CodeTensor:
        """A view with the dimensions in this order, where −1 is the last.

        Raises TensorError, in torch's words, unless each dimension is named exactly once.
        """
        if len(order) != self.dim:
            raise TensorError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                f"desired ordering of dimensions i.e. input.dim() = {self.dim} is not equal to len(dims) = {len(order)}"
            )
        places = [place(dim, self.dim) for dim in order]
        if len(set(places)) < self.dim:
            raise TensorError("permute(): duplicate dims are not allowed.")
        return self._arranged(
            [self.shape[at] for at in places], [self.strides[at] for at in places], lambda x: x.transpose(places)
        )

    # Another cut of the same numbers

    def view(self, *shape: int) -> CodeTensor:
        """A view in another shape, with the numbers in the same order; a length of −1 is inferred.

        Raises TensorError, in torch's words, if the lengths don't fit or the numbers would have to be copied.
        """
        lengths = self._inferred(shape)
        strides = viewed_strides(self.shape, self.strides, lengths)
        if strides is None:
            raise TensorError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                "two contiguous subspaces). Use .reshape(...) instead."
            )
        return self._arranged(lengths, strides, lambda x: x.reshape(lengths))

    def reshape(self, *shape: int) -> CodeTensor:
        """The numbers in the same order in another shape, copied where `view` would refuse."""
        lengths = self._inferred(shape)
        strides = viewed_strides(self.shape, self.strides, lengths) or contiguous_strides(lengths)
        return self._arranged(lengths, strides, lambda x: x.reshape(lengths))

    def _inferred(self, shape: Sequence[int]) -> Shape:
        total, product = numbers_in(self.shape), 1
        for length in shape:
            if length < -1:
                raise TensorError(f"invalid shape dimension {length}")
            product = product * length if length >= 0 else product
        unknown = [at for at, length in enumerate(shape) if length == -1]
        if len(unknown) > 1:
            raise TensorError("only one dimension can be inferred")
        if unknown and product == total == 0:
            raise TensorError(
                f"cannot reshape tensor of 0 elements into shape {_written(shape)} because the unspecified dimension "
                "size -1 can be any value and is ambiguous"
            )
        if product != total and not (unknown and product > 0 and total % product == 0):
            raise TensorError(f"shape '{_written(shape)}' is invalid for input of size {int(total)}", (product, total))
        return tuple(total // product if length == -1 else length for length in shape)

    def unsqueeze(self, dim: int) -> CodeTensor:
        """The tensor with a dimension of length 1 inserted here."""
        at = place(dim, self.dim + 1)
        return self[(*[slice(None)] * at, None)]

    def __getitem__(self, index: Index) -> CodeTensor:
        taken = sum(isinstance(part, int | slice) for part in index)
        if taken > self.dim:
            raise TensorError(f"too many indices for tensor of dimension {self.dim}", name="IndexError")
        shape, strides, at = list[int](), list[int](), 0
        for part in index:
            if part is None:
                shape.append(1)
                strides.append(1)
            elif part is Ellipsis:
                rest = self.dim - taken
                shape += self.shape[at : at + rest]
                strides += self.strides[at : at + rest]
                at += rest
            elif isinstance(part, slice):
                start, stop, step = part.indices(self.shape[at])
                length = len(range(start, stop, step))
                keeps_symbols = isinstance(part.stop, SymbolicLength) and part.stop == length
                shape.append(self.shape[at] if length == self.shape[at] else part.stop if keeps_symbols else length)
                strides.append(self.strides[at] * step)
                at += 1
            else:
                if not -self.shape[at] <= part < self.shape[at]:
                    raise TensorError(
                        f"index {part} is out of bounds for dimension {at} with size {self.shape[at]}",
                        name="IndexError",
                    )
                at += 1
        return self._arranged([*shape, *self.shape[at:]], [*strides, *self.strides[at:]], lambda x: x[index])

    def split(self, lengths: int | Sequence[int], dim: int = 0) -> tuple[CodeTensor, ...]:
        """Parts along `dim`, of these lengths or all of one length (the last may be shorter)."""
        at = place(dim, self.dim)
        length = self.shape[at]
        if isinstance(lengths, int):
            if lengths <= 0:
                raise TensorError(f"split expects split_size be non-negative, but got split_size={lengths}")
            if length > lengths * MAX_PARTS:
                raise TensorError("too many parts", name="MemoryError")
            lengths = [min(lengths, length - start) for start in range(0, length, lengths)]
        elif min(lengths, default=0) < 0:
            raise TensorError(
                "split_with_sizes expects split_sizes have only non-negative entries, but got "
                f"split_sizes={_written(lengths)}"
            )
        elif sum(lengths) != length:
            raise TensorError(
                f"split_with_sizes expects split_sizes to sum exactly to {int(length)} (input tensor's size at "
                f"dimension {dim}), but got split_sizes={_written(lengths)}",
                (sum(lengths), length),
            )
        return tuple(self._parts(lengths, at))

    def _parts(self, lengths: Sequence[int], at: int) -> Iterator[CodeTensor]:
        start = 0
        for length in lengths:
            index = (*[slice(None)] * at, slice(start, start + length))
            part = self[index]
            yield CodeTensor((*part.shape[:at], length, *part.shape[at + 1 :]), part.strides, part.numbers)
            start += length

    def chunk(self, parts: int, dim: int = 0) -> tuple[CodeTensor, ...]:
        """At most `parts` parts along `dim`, of equal length; the last may be shorter.

        Raises TensorError for `parts` below 1 or above MAX_PARTS, and for a dimension that doesn't exist or has length
        0.
        """
        if parts < 1:
            raise TensorError("chunk expects `chunks` to be greater than 0, got: " + str(parts))
        length = self.shape[place(dim, self.dim)]
        return self.split(length // parts if length % parts == 0 else -(-int(length) // parts), dim)

    # Copies

    def repeat(self, *times: int) -> CodeTensor:
        """The tensor tiled this many times along each dimension; extra counts add dimensions in front."""
        if len(times) < self.dim:
            raise TensorError(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
            )
        if min(times, default=0) < 0:
            raise TensorError("Trying to create tensor with negative dimension")
        shape = (1,) * (len(times) - self.dim) + self.shape
        lengths = [length * count for length, count in zip(shape, times, strict=True)]
        return self._made(lengths, lambda: _numpy().tile(self._array, times))

    def repeat_interleave(self, times: int, dim: int) -> CodeTensor:
        """A copy with each slice of a dimension repeated `times` times: a, a, b, b, not a, b, a, b.

        Raises TensorError for a negative number, an unknown dimension, or more than MAX_NUMBERS numbers.
        """
        at = place(dim, self.dim)
        if times < 0:
            raise TensorError("Repeats must be non-negative")
        shape = [length * times if each == at else length for each, length in enumerate(self.shape)]
        return self._made(shape, lambda: self._array.repeat(times, axis=at))

    # Arithmetic

    def __matmul__(self, other: CodeTensor) -> CodeTensor:
        """The matrix product over the last two dimensions; earlier dimensions are broadcast."""
        a, b = self.shape, other.shape
        if min(len(a), len(b)) < 2:
            raise TensorError("products of vectors are not needed here")
        if len(b) == 2 and (len(a) == 2 or self._leading_dimensions_fold()):
            if a[-1] != b[0]:
                raise TensorError(
                    _CANNOT_MULTIPLY.format(int(numbers_in(a[:-1])), int(a[-1]), int(b[0]), int(b[1])),
                    (a[-1], b[0]),
                )
            shape: Shape = (*a[:-1], b[1])
        else:
            batch = broadcast(a[:-2], b[:-2])
            if a[-1] != b[-2]:
                count = int(numbers_in(batch))
                raise TensorError(
                    f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {int(a[-1])}] "
                    f"but got: [{count}, {int(b[-2])}].",
                    (a[-1], b[-2]),
                )
            shape = (*batch, a[-2], b[-1])
        return self._made(shape, lambda: self._array @ other._array)

    def _leading_dimensions_fold(self) -> bool:
        return all(self.strides[at] == self.strides[at + 1] * self.shape[at + 1] for at in range(self.dim - 2))

    def _elementwise(self, operation: Callable[[Any, Any], Any], other: CodeTensor | float) -> CodeTensor:
        if not isinstance(other, CodeTensor):
            return self._made(self.shape, lambda: operation(self._array, other), self)
        shape = broadcast(self.shape, other.shape)
        like = next((each for each in (self, other) if each.dim == len(shape)), self)
        return self._made(shape, lambda: operation(self._array, other._array), like)

    __add__ = partialmethod(_elementwise, operator.add)
    __sub__ = partialmethod(_elementwise, operator.sub)
    __mul__ = partialmethod(_elementwise, operator.mul)
    __truediv__ = partialmethod(_elementwise, operator.truediv)
    __gt__ = partialmethod(_elementwise, operator.gt)
    __ge__ = partialmethod(_elementwise, operator.ge)
    __lt__ = partialmethod(_elementwise, operator.lt)
    __le__ = partialmethod(_elementwise, operator.le)

    def __invert__(self) -> CodeTensor:
        return self._made(self.shape, lambda: ~self._array, self)

    def softmax(self, dim: int) -> CodeTensor:
        """The softmax along one dimension, NaN where every entry is −∞; raises TensorError for an unknown dimension."""
        at = place(dim, self.dim)

        def weights() -> NDArray[Any]:
            np = _numpy()
            powers = np.exp(self._array - self._array.max(axis=at, keepdims=True))
            return powers / powers.sum(axis=at, keepdims=True)  # type: ignore[no-any-return]

        return self._made(self.shape, weights)

    def masked_fill(self, mask: CodeTensor, value: float) -> CodeTensor:
        """The tensor with `value` where the mask is true."""
        shape = broadcast(mask.shape, self.shape)
        return self._made(shape, lambda: _numpy().where(mask._array, value, self._array), self)

    # How results are made

    @property
    def _array(self) -> NDArray[Any]:
        assert self.numbers is not None  # noqa: S101 - asked for only where there are numbers
        return self.numbers

    def _arranged(
        self, shape: Sequence[int], strides: Sequence[int], arrange: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> CodeTensor:
        return CodeTensor(tuple(shape), tuple(strides), None if self.numbers is None else arrange(self.numbers))

    def _made(
        self, shape: Sequence[int], make: Callable[[], NDArray[Any]], like: CodeTensor | None = None
    ) -> CodeTensor:
        strides = contiguous_strides(shape)
        if like is not None and like.dim == len(shape):
            strides = strides_in_order_of(like.strides, shape)
        if self.numbers is None:
            return CodeTensor(tuple(shape), strides)
        if numbers_in(shape) > MAX_NUMBERS:
            raise TensorError("too many numbers", name="MemoryError")
        return CodeTensor(tuple(shape), strides, make())


def cat(tensors: Sequence[CodeTensor], dim: int = 0) -> CodeTensor:
    """The tensors joined along dimension `dim`."""
    first = tensors[0]
    at = place(dim, first.dim)
    for number, each in enumerate(tensors):
        if each.dim != first.dim:
            raise TensorError(_DIMENSIONS_DIFFER.format(first.dim, each.dim))
        for other, (expected, size) in enumerate(zip(first.shape, each.shape, strict=True)):
            if other != at and expected != size:
                raise TensorError(
                    f"Sizes of tensors must match except in dimension {at}. Expected size {int(expected)} but got size "
                    f"{int(size)} for tensor number {number} in the list.",
                    (expected, size),
                )
    length = sum((each.shape[at] for each in tensors[1:]), first.shape[at])
    shape = (*first.shape[:at], length, *first.shape[at + 1 :])
    return first._made(shape, lambda: _numpy().concatenate([each._array for each in tensors], axis=at))


def scaled_dot_product_attention(
    query: CodeTensor,
    key: CodeTensor,
    value: CodeTensor,
    attn_mask: CodeTensor | None = None,
    *,
    is_causal: bool = False,
) -> CodeTensor:
    """softmax(query · keyᵀ / √d_h) · value, where d_h is the last length of `query`.

    Raises TensorError for lengths that don't fit and for a mask that can't be broadcast to the scores.
    """
    scores: CodeTensor = query @ key.mT
    if attn_mask is not None and (shape := broadcast(scores.shape, attn_mask.shape)) != scores.shape:
        written = _written(scores.shape), _written(shape)
        raise TensorError("output with shape {} doesn't match the broadcast shape {}".format(*written))
    if attn_mask is None and is_causal and scores.numbers is not None:
        attn_mask = CodeTensor.of_shape(scores.shape[-2:], _numpy().tri(*map(int, scores.shape[-2:]), dtype=bool))
    scores = scores / float(query.shape[-1]) ** 0.5
    scores = scores if attn_mask is None else scores.masked_fill(~attn_mask, float("-inf"))
    weights: CodeTensor = scores.softmax(-1)
    return weights @ value


def _written(lengths: Sequence[int]) -> str:
    return f"[{', '.join(str(int(length)) for length in lengths)}]"


def place(dim: int, dimensions: int) -> int:
    """The dimension counted from 0, where −1 is the last.

    Raises TensorError, named "IndexError" as in torch, if it doesn't exist.
    """
    if not -dimensions <= dim < dimensions:
        raise TensorError(
            f"Dimension out of range (expected to be in range of [{-dimensions}, {dimensions - 1}], but got {dim})",
            name="IndexError",
        )
    return int(dim) % dimensions


def broadcast(a: Shape, b: Shape) -> Shape:
    """The common shape of two broadcast shapes.

    Raises TensorError, in torch's words, for the last dimension that doesn't fit.

    >>> broadcast((10, 10), (3, 14, 10, 1))
    (3, 14, 10, 10)
    """
    dimensions = max(len(a), len(b))
    of_a, of_b = (1,) * (dimensions - len(a)) + a, (1,) * (dimensions - len(b)) + b
    for at in reversed(range(dimensions)):
        if of_a[at] != of_b[at] and 1 not in (of_a[at], of_b[at]):
            raise TensorError(
                f"The size of tensor a ({int(of_a[at])}) must match the size of tensor b ({int(of_b[at])}) "
                f"at non-singleton dimension {at}",
                (of_a[at], of_b[at]),
            )
    return tuple(y if x == 1 else x for x, y in zip(of_a, of_b, strict=True))


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """The strides of numbers that lie in memory in the order of the shape; a length of 0 counts as 1.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(numbers_in([max(int(length), 1) for length in shape[at + 1 :]]) for at in range(len(shape)))


def strides_in_order_of(strides: Sequence[int], shape: Sequence[int]) -> Shape:
    """Strides without gaps for this shape, keeping the order of the dimensions in memory."""
    order = sorted(range(len(shape)), key=lambda at: -strides[at])
    dense = contiguous_strides([shape[at] for at in order])
    by_place = dict(zip(order, dense, strict=True))
    return tuple(by_place[at] for at in range(len(shape)))


def viewed_strides(old_shape: Sequence[int], old_strides: Sequence[int], shape: Sequence[int]) -> Shape | None:
    """Strides of a view with this shape; None if the numbers would have to be copied or don't fill the shape."""
    if not old_shape or 0 in old_shape:
        return contiguous_strides(shape)
    strides, at = [0] * len(shape), len(shape) - 1
    step, numbers, viewed = old_strides[-1], 1, 1
    for old in reversed(range(len(old_shape))):
        numbers *= int(old_shape[old])
        if old and (old_shape[old - 1] == 1 or old_strides[old - 1] == numbers * step):
            continue  # this dimension continues the previous one in memory
        while at >= 0 and (viewed < numbers or shape[at] == 1):
            strides[at] = viewed * step
            viewed *= int(shape[at])
            at -= 1
        if viewed != numbers:
            return None
        if old:
            step, numbers, viewed = old_strides[old - 1], 1, 1
    return tuple(strides) if at == -1 else None


def _numpy() -> Any:
    import numpy

    return numpy
