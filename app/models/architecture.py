"""A published config.json read into one frozen Architecture, through the row of its family in families.py.

>>> read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}').d_h
64
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any

from app.models.families import Family, Rope
from app.models.layer_patterns import windows
from app.models.parameter_specs import Head, Stack, Weight, holds
from app.models.recognition import check_switches, family_of, flags_of, longest_ending, text_part
from app.models.size_specs import ConfigError, Reading, SizeReader, flag, number, shown, whole_number

__all__ = [
    "MAX_CONFIG_BYTES",
    "MAX_TOKENS",
    "Architecture",
    "ConfigError",
    "LayerRun",
    "Layers",
    "Reading",
    "Rotary",
    "TokensError",
    "architecture_from",
    "parse_config",
    "read_config",
    "whole_number",
]

MAX_CONFIG_BYTES = 1_000_000
MAX_TOKENS = 2**24


class TokensError(ValueError):
    """A number of tokens that cannot be used with this model; the message says which numbers can."""


@dataclass(frozen=True)
class Rotary:
    """Rotary position embedding (Su et al., arXiv:2104.09864): base, how many of the d_h numbers turn, and scaling.

    `scaling` is the config's own `rope_scaling` entry, empty where there is none.
    """

    theta: float
    width: int
    scaling: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class LayerRun:
    """Neighbouring layers that are alike: how many, which flags hold for them, how many keys a window leaves them."""

    count: int
    flags: frozenset[str]
    window: int | None = None


@dataclass(frozen=True)
class Layers:
    """One stack of layers, run by run: the decoder, or the encoder and then the decoder."""

    stack: Stack
    runs: tuple[LayerRun, ...]


@dataclass(frozen=True)
class Architecture:
    """The named sizes of one model, all of them counts: N is not among them, it belongs to the sheet.

    d: width of the model. H, G: query heads and key/value heads of a layer. d_h: width of a query and a key.
    d_v: width of a value. d_ff: width inside the first layer's feed-forward block (of one expert where it has experts).
    V: vocabulary, None where there is none. L: layers. C: the stated maximum length, None where the config states none;
    it limits N only where `position_table` is true. `biases` names the projections that have one (of q, k, v, o).
    `window` is the first layer's sliding window. `extra` holds the sizes that only some families have, by symbol.
    In an encoder-decoder all this is the encoder's; `decoder_symbols` has the decoder's. `model_class` is the class of
    transformers whose parameters are counted. `gated`: whether the feed-forward block has a gate (arXiv:2002.05202).
    """

    name: str
    family: str
    d: int
    H: int
    G: int
    d_h: int
    d_v: int
    d_ff: int
    V: int | None
    L: int
    C: int | None
    causal: bool
    position_table: bool
    tied_embeddings: bool
    biases: str
    qk_norm_eps: float | None
    rotary: Rotary | None
    window: int | None
    initializer_range: float
    readings: tuple[Reading, ...]
    model_class: str = ""
    cache: bool = True
    positions: int | None = None
    extra: Mapping[str, int] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    head: Head = field(default_factory=Head)
    gated: bool = False
    outside: tuple[Weight, ...] = ()
    layers: tuple[Layers, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int | None]:
        """Every size by its symbol, in reading order."""
        return {symbol: getattr(self, symbol) for symbol in ("d", "H", "G", "d_h", "d_v", "d_ff", "V", "L", "C")}

    @property
    def symbols(self) -> dict[str, int]:
        """Every size this model has, those of `extra` included, for Dim.size."""
        return {**self.extra, **{symbol: size for symbol, size in self.sizes.items() if size is not None}}

    @property
    def decoder_symbols(self) -> dict[str, int]:
        """The same for the decoder of an encoder-decoder, its heads under the names H, G, d_h and d_v."""
        sizes = self.symbols
        if not self.encoder_decoder:
            return sizes
        heads, width = sizes["H_dec"], sizes["d_h_dec"]
        return {**sizes, "H": heads, "G": heads, "d_h": width, "d_v": width, "L": sizes["L_dec"]}

    @property
    def encoder_decoder(self) -> bool:
        """Whether a decoder reads an encoder through cross attention (T5, BART, Whisper)."""
        return any(part.stack.decoder for part in self.layers)

    @property
    def query_heads_per_kv_head(self) -> int:
        """H/G: how many query heads read the same keys and values (Ainslie et al., arXiv:2305.13245)."""
        return self.H // self.G

    @property
    def max_tokens(self) -> int:
        """The longest input a sheet may ask about: the usable rows of the position table where there is one."""
        return self.positions if self.position_table and self.positions else MAX_TOKENS

    @property
    def max_decoder_tokens(self) -> int:
        """The same for the decoder of an encoder-decoder."""
        return self.extra.get("P_dec", MAX_TOKENS) if self.encoder_decoder else self.max_tokens

    def with_kv_head_per_query_head(self) -> Architecture:
        """The simplification of many courses: every query head has keys and values of its own (G = H)."""
        return replace(self, G=self.H)

    def check_tokens(self, tokens: int) -> int:
        """The number itself if a sheet can use it; raises TokensError otherwise."""
        if 1 <= tokens <= self.max_tokens:
            return tokens
        why = f": {self.name} has a table of {self.max_tokens:,} positions" if self.max_tokens < MAX_TOKENS else ""
        raise TokensError(f"Tokens must be a whole number from 1 to {self.max_tokens:,}{why}.")


def read_config(text: str | bytes, name: str = "this model") -> Architecture:
    """Read the text of a config.json; raises ConfigError, with one sentence on what to change."""
    return architecture_from(parse_config(text), name)


def parse_config(text: str | bytes) -> object:
    """The value that the text of a config.json holds; raises ConfigError for what is too long or no JSON."""
    if len(text) > MAX_CONFIG_BYTES:
        raise ConfigError(f"A config.json is at most {MAX_CONFIG_BYTES:,} bytes long; this one has {len(text):,}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError("This is not JSON: paste the whole config.json, from its first { to its last }.") from None


def architecture_from(config: object, name: str = "this model") -> Architecture:
    """Read an already parsed config.json, of a multimodal one the text part; raises ConfigError."""
    if not isinstance(config, dict):
        raise ConfigError("A config.json holds one JSON object: { … } with the model's sizes in it.")
    part, notes = text_part(config)
    model_type, family = family_of(part)
    check_switches(part)
    if isinstance(part.get("id2label"), dict):  # a classifier's file lists its labels instead of counting them
        part = {**part, "id2label": len(part["id2label"]) or None}
    return _Builder(part, family, model_type, notes).build(name)


class _Builder:
    """Puts an Architecture together: flags first, since sizes depend on them, then layers, then sizes."""

    def __init__(self, config: Mapping[str, Any], family: Family, model_type: str, notes: tuple[str, ...]) -> None:
        self.config, self.family, self.model_type = config, family, model_type
        self.is_part, self.notes = bool(notes), list(notes)
        self.model_class, self.head = self._counted_class()
        self.flags = frozenset(flags_of(config, family)) | self.head.flags | self._tied()
        self.reader = self._reader(self.flags)
        layers = self.reader.required("L")
        self.windows = windows(family.windows, config, layers)
        self.stacks = tuple(self._stack(stack) for stack in self._stacks())
        self.flags |= self._flags_of_sizes()
        self.reader = self._reader(self.flags)

    def build(self, name: str) -> Architecture:
        size = self.reader.required
        main = {symbol: size(symbol) for symbol in ("d", "H", "G", "d_h", "d_v", "d_ff")}
        self._check_heads(main["H"], main["G"])
        vocabulary, layers, longest = self.reader.size("V"), size("L"), self.reader.size("C")
        extra = self._extra_sizes()
        positions = self._positions()
        return Architecture(
            name=name,
            family=self.model_type,
            **main,
            V=vocabulary,
            L=layers,
            C=longest,
            causal=(self.family.causal or "decoder" in self.flags) and "bidirectional" not in self.flags,
            position_table=positions is not None,
            tied_embeddings="tied" in self.flags,
            biases="".join(letter for letter in "qkvo" if letter in self.flags),
            qk_norm_eps=number(self.config, "rms_norm_eps", 1e-6) if "rms_per_head" in self.flags else None,
            rotary=self._rotary(),
            window=self.windows[0],
            initializer_range=number(self.config, "initializer_range", 0.02),
            readings=tuple(self.reader.readings),
            model_class=self.model_class,
            cache=self.family.cache or "decoder" in self.flags,
            positions=positions,
            extra=extra,
            flags=self.flags,
            head=self.head,
            gated=self.family.layout.has_gate(self.flags),
            outside=self.family.layout.outside,
            layers=self.stacks,
            notes=tuple(self.notes),
        )

    def _reader(self, flags: frozenset[str]) -> SizeReader:
        specs = {symbol: (text,) if isinstance(text, str) else text for symbol, text in self.family.sizes.items()}
        defaults = self.family.part_defaults if self.is_part else {}
        return SizeReader(self.config, specs, flags, defaults, self.model_type)

    def _flags_of_sizes(self) -> frozenset[str]:
        """The flags that no field states: experts from the first layer on, embeddings narrower than the model."""
        first_moe = "moe" in self.stacks[0].runs[0].flags
        narrow = "d_emb" in self.family.sizes and self.reader.required("d_emb") != self.reader.required("d")
        return frozenset(({"first_moe"} if first_moe else set()) | ({"narrow_embedding"} if narrow else set()))

    def _stacks(self) -> Iterable[Stack]:
        return (stack for stack in self.family.layout.stacks if not (stack.decoder and self.head.without_decoder))

    def _stack(self, stack: Stack) -> Layers:
        """The layers of one stack, those alike side by side gathered into runs."""
        count = self.reader.required(stack.count)
        rows = [set[str]() for _ in range(count)]
        rows[0].add("first")
        for word, pattern in (("moe", self.family.experts), ("cross", self.family.cross_layers)):
            for flags, yes in zip(rows, pattern(self.config, count) if pattern else (), strict=False):
                flags |= {word} if yes else set()
        seen = self.windows if len(self.windows) == count else (None,) * count
        alike = groupby(zip(rows, seen, strict=True))
        runs = ((len(list(group)), flags, window) for (flags, window), group in alike)
        return Layers(stack, tuple(LayerRun(n, frozenset(flags), window) for n, flags, window in runs))

    def _extra_sizes(self) -> dict[str, int]:
        """The sizes that the tensors of this model ask for and that are not among the nine every model has."""
        weights = [w for w in (*self.family.layout.outside, *self.head.weights) if w.exists(self.flags)]
        for part in self.stacks:
            kinds = {self.flags | run.flags for run in part.runs}
            weights += [w for w in part.stack.weights if any(w.exists(flags) for flags in kinds)]
        asked = {symbol for w in weights for dim in (*w.stored, w.copies) for symbol in dim.symbols}
        asked |= {"k"} if any(w.routed for w in weights) else set()
        if any(part.stack.decoder for part in self.stacks):
            asked |= {"H_dec", "d_h_dec", "L_dec"} | ({"P_dec"} & self.family.sizes.keys())
        asked -= {"d", "H", "G", "d_h", "d_v", "d_ff", "V", "L", "C"}
        extra = {symbol: self.reader.required(symbol) for symbol in self.family.sizes if symbol in asked}
        if extra.get("k", 1) > extra.get("E", 1):
            raise ConfigError(f"A token cannot be sent to {extra['k']} of {extra['E']} experts: check the two counts.")
        return extra

    def _positions(self) -> int | None:
        """How many tokens the position table has room for; None where there is no table."""
        family = self.family
        if family.positions is None or not holds(family.positions_when, self.flags):
            return None
        rows = self.reader.required(family.positions)
        if rows <= family.unused_positions:
            raise ConfigError(f"A table of {rows} positions leaves no room for a token: check its length.")
        return rows - family.unused_positions

    def _check_heads(self, heads: int, kv_heads: int) -> None:
        if heads % kv_heads:
            raise ConfigError(f"{heads} heads cannot share {kv_heads} key/value heads evenly: check the two counts.")

    def _tied(self) -> frozenset[str]:
        rule = self.family.tied
        tied = flag(self.config, "tie_word_embeddings", rule) if isinstance(rule, bool) else rule == "always"
        return frozenset({"tied"} if tied else ())

    def _counted_class(self) -> tuple[str, Head]:
        """The class that "architectures" names where it is one we know, the family's usual one otherwise."""
        heads = self.family.layout.heads
        stated = self.config.get("architectures")
        named = stated[0] if isinstance(stated, list) and stated and isinstance(stated[0], str) else None
        ending = longest_ending(named, heads) if named and not self.is_part else None
        if named and ending:
            return named, heads[ending]
        if named and not self.is_part:
            self.notes.append(f"{shown(named)} is not counted here: {self.family.model_class} is.")
        return self.family.model_class, heads[longest_ending(self.family.model_class, heads) or next(iter(heads))]

    def _rotary(self) -> Rotary | None:
        rope = self.family.rotary
        if rope is None or not holds(rope.when, self.flags):
            return None
        return _rotary(self.config, rope, self.reader.required(rope.width))


def _rotary(config: Mapping[str, Any], rope: Rope, width: int) -> Rotary:
    # transformers 5 writes "rope_parameters", with the base inside; older files keep base and scaling apart.
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if not isinstance(scaling, dict):
        raise ConfigError('"rope_scaling" must be an object { … } or null.')
    theta = number(config, rope.theta, scaling.get("rope_theta", rope.default_theta))
    share = number(config, rope.share, scaling.get("partial_rotary_factor", rope.default_share))
    return Rotary(theta, max(1, int(width * min(share, 1.0))), MappingProxyType(scaling))
