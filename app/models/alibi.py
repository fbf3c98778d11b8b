"""ALiBi's slopes (Press et al., arXiv:2108.12409): each head adds -slope · distance to a score.

With a power of two of heads, head i of H has 2^(-8(i+1)/H). Families differ for other numbers of heads; each function
follows its family's module in transformers.

>>> slopes_from_powers(2), slopes_from_powers(3)
((0.0625, 0.00390625), (0.0625, 0.00390625, 0.25))
"""

from __future__ import annotations

from collections.abc import Callable

STRENGTH = 8  # the exponent of the last slope's inverse
# A family's slopes, first head to last, by its number of heads.
AlibiSlopes = Callable[[int], tuple[float, ...]]


def slopes_from_powers(heads: int) -> tuple[float, ...]:
    """BLOOM and Falcon: the slopes of the largest power of two up to `heads`, then every other slope of twice
    as many.
    """
    below = 2 ** (heads.bit_length() - 1)
    return _powers(below) + _powers(2 * below)[::2][: heads - below]


def slopes_of_larger_power(heads: int) -> tuple[float, ...]:
    """MPT: every other slope of the next larger power of two, starting with the second, then the others."""
    below = 2 ** (heads.bit_length() - 1)
    if below == heads:
        return _powers(heads)
    above = _powers(2 * below)
    return (above[1::2] + above[::2])[:heads]


def _powers(count: int) -> tuple[float, ...]:
    return tuple(2.0 ** (-STRENGTH * (i + 1) / count) for i in range(count))
