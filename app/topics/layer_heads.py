"""The heads of an attention layer: how many each tensor holds side by side, and the sizes of one.

>>> heads = LayerHeads({"N": 60, "d": 2048, "H": 32, "G": 8, "d_h": 64, "d_v": 64})
>>> heads.deck("queries"), heads.deck("keys"), heads.deck("scores")
((32, 60, 64), (8, 60, 64), (32, 60, 60))
>>> heads.read_by(9)  # query heads 8 to 11 read the same keys and values
2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.models.architecture import Architecture
from app.shapes.table import TensorTable
from app.topics.costs import BYTES_PER_NUMBER, cached_numbers
from app.topics.requirements import (
    CACHE_OF_KEYS_AND_VALUES,
    CACHE_OF_KNOWN_LENGTH,
    KV_CACHE,
    MORE_THAN_ONE_HEAD,
    PLAIN_HEAD,
    Requirement,
)
from app.topics.three_dimensions import GROUPED_THREE_DIMENSIONS
from app.translation import N_

# The keys in GROUPED_THREE_DIMENSIONS of tensors that a layer also has with its heads side by side.
BY_HEAD = {key: f"{key}_by_head" for key in ("queries", "keys", "values")}


@dataclass(frozen=True)
class LayerHeads:
    """A layer with a size for each symbol: slabs and decks of heads, as in the table.

    A slab is a whole matrix with its heads next to each other: (N, H·d_h).
    """

    sizes: Mapping[str, int]
    table: TensorTable = GROUPED_THREE_DIMENSIONS

    def slab(self, key: str) -> tuple[int, int]:
        """(rows, columns) of a whole matrix with its heads next to each other; the context is joined."""
        rows, columns = self._shape("joined_context" if key == "context" else key)
        return (rows, columns)

    def deck(self, key: str) -> tuple[int, int, int]:
        """(heads, rows, columns): the number of cards in a tensor's deck, and the sides of one card."""
        heads, rows, columns = self._shape(BY_HEAD.get(key, key))
        return (heads, rows, columns)

    def _shape(self, key: str) -> tuple[int, ...]:
        return tuple(length.size(self.sizes) for length in self.table[key].shape)

    def count(self, key: str) -> int:
        """How many heads a tensor has: the cards in its deck."""
        return self.deck(key)[0]

    @property
    def shared_by(self) -> int:
        return self.count("queries") // self.count("keys")

    def read_by(self, query_head: int) -> int:
        """The key/value head that a query head reads: neighbours share one, in the order of `repeat_interleave`."""
        return query_head // self.shared_by

    def readers_of(self, key_head: int) -> range:
        """The query heads that read a key/value head."""
        return range(key_head * self.shared_by, (key_head + 1) * self.shared_by)


# What a layer needs for its heads to be shown as cards.
SEVERAL_HEADS = (*PLAIN_HEAD, MORE_THAN_ONE_HEAD)
# The requirements under which a model's KV cache follows from one number of key/value heads.
CACHE_OF_ALL_LAYERS = (
    Requirement(
        lambda architecture, _tokens: not architecture.encoder_decoder,
        N_("These are the heads of an encoder layer of {model}: only its decoder has a KV cache."),
    ),
    KV_CACHE,
    CACHE_OF_KEYS_AND_VALUES,
    CACHE_OF_KNOWN_LENGTH,
    Requirement(
        lambda architecture, _tokens: len({kind.rows.get("attention") for kind in architecture.stacks[0].kinds}) == 1,
        N_("Layers of {model} differ in their attention, and so in what they cache."),
    ),
)


def possible_kv_heads(query_heads: int) -> tuple[int, ...]:
    """The numbers of key/value heads that `query_heads` query heads can share evenly, in ascending order."""
    return tuple(count for count in range(1, query_heads + 1) if query_heads % count == 0)


def cache_bytes(architecture: Architecture, tokens: int, sizes: Mapping[str, int]) -> int:
    """The bytes of all layers' KV cache after `tokens` tokens, at 16 bits per number."""
    return (cached_numbers(architecture, tokens) * BYTES_PER_NUMBER["16"]).size(sizes)
