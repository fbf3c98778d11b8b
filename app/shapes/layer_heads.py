"""The heads of an attention layer: how many stand side by side in each of its tensors, and what one of them measures.

>>> from app.shapes.tables import ATTENTION_LAYER
>>> heads = LayerHeads(ATTENTION_LAYER, {"N": 60, "d": 2048, "H": 32, "G": 8, "d_h": 64, "d_v": 64})
>>> heads.deck("queries"), heads.deck("keys"), heads.deck("scores")
((32, 60, 64), (8, 60, 64), (32, 60, 60))
>>> heads.read_by(9)  # query heads 8 to 11 read the same keys and values
2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.costs import cached_numbers, memory_costs
from app.shapes.parameter_parts import layer_kinds
from app.shapes.requirements import (
    Requirement,
    TopicError,
    all_of,
    require_cache_of_known_length,
    require_kv_cache,
    require_own_projections,
    require_scores_of_queries_and_keys,
)
from app.shapes.table import TensorTable
from app.translation import gettext as _

HEAD_SYMBOLS = ("H", "G")


@dataclass(frozen=True)
class LayerHeads:
    """A layer's table with a size for each symbol: slabs as the table has them, and the decks of heads they split into.

    A slab is a whole matrix, heads side by side: (N, H·d_h). A deck is the same with one card for each head:
    (H, N, d_h), as PyTorch prints it after `view` and `transpose`.
    """

    table: TensorTable
    sizes: Mapping[str, int]

    def slab(self, key: str) -> tuple[int, int]:
        """(rows, columns) of a whole matrix."""
        tensor = self.table[key]
        return (tensor.rows.size(self.sizes), tensor.columns.size(self.sizes))

    def deck(self, key: str) -> tuple[int, int, int]:
        """(heads, rows, columns): how many cards a tensor is dealt into, and the sides of one of them."""
        tensor, symbol = self.table[key], self.symbol(key)
        columns = tensor.columns / Expression.symbol(symbol) if symbol in tensor.columns.symbols else tensor.columns
        return (self.sizes[symbol], tensor.rows.size(self.sizes), columns.size(self.sizes))

    def count(self, key: str) -> int:
        """How many heads a tensor has."""
        return self.sizes[self.symbol(key)]

    def symbol(self, key: str) -> str:
        """H for a tensor of query heads, G for one of key/value heads.

        One that is made head by head, as scores are, has as many as its first operand. Raises KeyError for a tensor
        without heads.
        """
        tensor = self.table[key]
        own = next((symbol for symbol in HEAD_SYMBOLS if symbol in tensor.columns.symbols), None)
        if own:
            return own
        equation = tensor.equation
        if equation and (len(equation.operands) == 1 or "*" in equation.operand_labels[0][1]):
            return self.symbol(equation.operands[0])
        raise KeyError(f"{key} is not made of heads")

    @property
    def shared_by(self) -> int:
        """How many query heads read the same keys and values."""
        return self.count("queries") // self.count("keys")

    def read_by(self, query_head: int) -> int:
        """The key/value head that a query head reads: neighbours share one, as `repeat_interleave` repeats them."""
        return query_head // self.shared_by

    def readers_of(self, key_head: int) -> range:
        """The query heads that read a key/value head."""
        return range(key_head * self.shared_by, (key_head + 1) * self.shared_by)


def require_several_heads(architecture: Architecture, tokens: int) -> None:
    """Refuse a layer with one head, which cannot be split."""
    if architecture.H == 1:
        message = _("{model} has one attention head: choose a model with several, such as GPT-2.")
        raise TopicError(message.format(model=architecture.name))


require_heads: Requirement = all_of(require_own_projections, require_scores_of_queries_and_keys, require_several_heads)


def possible_kv_heads(query_heads: int) -> tuple[int, ...]:
    """The numbers of key/value heads that so many query heads can share evenly: the divisors, from 1 up."""
    return tuple(count for count in range(1, query_heads + 1) if query_heads % count == 0)


def cache_refusal(architecture: Architecture, tokens: int) -> str | None:
    """Why one number of key/value heads does not give the bytes of a model's KV cache; None if it does."""
    if architecture.encoder_decoder:
        message = _("These are the heads of an encoder layer of {model}: only its decoder has a KV cache.")
        return message.format(model=architecture.name)
    try:
        all_of(require_kv_cache, require_cache_of_known_length)(architecture, tokens)
    except TopicError as error:
        return str(error)
    if len({kind.parts.get("attention") for kind in layer_kinds(architecture.stacks[0])}) > 1:
        return _("Layers of {model} differ in their attention, and so in what they cache.").format(
            model=architecture.name
        )
    return None


def cache_bytes(architecture: Architecture, tokens: int, sizes: Mapping[str, int]) -> int:
    """The bytes of the KV cache of all layers after so many tokens, at 16 bits a number, with these sizes."""
    cached = memory_costs(cached_numbers(architecture, tokens))
    return next(count.total.size(sizes) for count in cached if count.key == "cache_16_bit")
