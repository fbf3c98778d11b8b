"""An open checkpoint: its tensors as stored, and as a run uses them, in float32 as x·W.

Only what is asked for is read. Names, stored shapes and where a head's slices begin follow the type's table
(`data/families`) and the sheet about stored weights (`app/topics/stored_weights.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import ConfigDict

from app.checkpoints.rules import ACTIVATIONS, CHECKPOINT_RULES, Activation
from app.models.architecture import Architecture
from app.models.config_fields import read_positive_number
from app.models.parameter_specs import ModelPart, ParameterSpec, ParameterSpecs
from app.topics.stored_weights import head_slices
from app.translation import gettext as _

if TYPE_CHECKING:
    import torch

ALL = slice(None)
CheckpointKind = Literal["safetensors", "gguf"]
# What is special about a stored part: its rows are reordered, it lies in one tensor with others, several heads read it,
# and 1 is added to its numbers.
PartNote = Literal["permuted", "fused", "shared", "plus-one"]


class CheckpointError(Exception):
    """A checkpoint that can't be opened, read or run, or a text without tokens; str() is the sentence to show."""


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as stored in the file: its shape in numpy's order, and its dtype as the file calls it ("Q4_1")."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Token:
    """A token: its id, its bytes, and how a page shows it, with spaces and odd bytes made visible.

    The bytes of one token need not be whole characters; as JSON they are hexadecimal.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")

    id: int
    text: str
    raw: bytes
    is_special: bool


@dataclass(frozen=True)
class StoredPart:
    """One parameter of a head: the stored tensor that contains it, and the slice for torch.narrow.

    `variable` is its name in the program ("W_Q", "b_K").
    """

    variable: str
    stored: StoredTensor
    dim: int
    start: int
    length: int
    is_turned: bool = False
    notes: tuple[PartNote, ...] = ()


@dataclass(frozen=True)
class NormWeights:
    """A normalization's scale, with Gemma's 1 already added, and its bias, None for RMSNorm; each (d,)."""

    scale: torch.Tensor
    bias: torch.Tensor | None


@dataclass(frozen=True)
class HeadWeights:
    """The parameters of one query head, its key/value head and the norm before them, by variable, in float32."""

    parts: tuple[StoredPart, ...]
    tensors: Mapping[str, torch.Tensor]

    @property
    def norm(self) -> NormWeights:
        return NormWeights(self.tensors["g_X"], self.tensors.get("b_X"))


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """Every parameter of a layer in float32; matrices in the orientation of x·W, heads side by side.

    None for what the layer doesn't have.
    """

    W_Q: torch.Tensor  # (d, H·d_h)
    W_K: torch.Tensor  # (d, G·d_h)
    W_V: torch.Tensor  # (d, G·d_v)
    W_O: torch.Tensor  # (H·d_v, d)
    b_Q: torch.Tensor | None = None  # (H·d_h,)
    b_K: torch.Tensor | None = None  # (G·d_h,)
    b_V: torch.Tensor | None = None  # (G·d_v,)
    b_O: torch.Tensor | None = None  # (d,)
    g_Q: torch.Tensor | None = None  # (d_h,)
    g_K: torch.Tensor | None = None  # (d_h,)
    attention_norm: NormWeights
    after_attention_norm: NormWeights | None = None
    mlp_norm: NormWeights
    after_mlp_norm: NormWeights | None = None
    W_gate: torch.Tensor | None = None  # (d, d_ff)
    W_up: torch.Tensor  # (d, d_ff)
    W_down: torch.Tensor  # (d_ff, d)
    b_gate: torch.Tensor | None = None  # (d_ff,)
    b_up: torch.Tensor | None = None  # (d_ff,)
    b_down: torch.Tensor | None = None  # (d,)


class TensorFile(Protocol):
    """The tensors of one checkpoint, in one file or several."""

    @property
    def kind(self) -> CheckpointKind: ...

    @property
    def names(self) -> Collection[str]:
        """The names of all tensors."""

    @property
    def is_quantized(self) -> bool:
        """Whether any tensor has fewer than 16 bits per number."""

    def name_of(self, tensor: str) -> str:
        """The file's name for a tensor of the family's layout."""

    def is_permuted(self, name: str) -> bool:
        """Whether the rows of each head are stored in another order, which `read` undoes."""

    def stored(self, name: str) -> StoredTensor:
        """Name, shape and dtype of a tensor."""

    def read(self, name: str, rows: slice, columns: slice) -> torch.Tensor:
        """Rows and columns of a one- or two-axis tensor as a copy in float32."""


class Checkpoint:
    """An open file or folder of weights, from `app.checkpoints.files.open_checkpoint`.

    `name` is for people; `revision` changes whenever the files do.
    """

    def __init__(
        self,
        *,
        name: str,
        revision: str,
        config: Mapping[str, Any],
        architecture: Architecture,
        file: TensorFile,
        tokenize: Callable[[str], tuple[Token, ...]],
    ) -> None:
        self.name, self.revision, self.config, self.architecture = name, revision, config, architecture
        self.kind, self.is_quantized = file.kind, file.is_quantized
        self._file, self._tokenize = file, tokenize
        self._rule = CHECKPOINT_RULES[architecture.family]

    # How it computes, besides what the architecture says

    @property
    def norm_eps(self) -> float:
        """The epsilon of the layers' norms and the final norm."""
        return read_positive_number(self.config, *self._rule.norm_eps)

    @property
    def activation(self) -> Activation:
        """The activation function of the feed-forward blocks."""
        field, default = self._rule.activation
        return ACTIVATIONS[self.config.get(field) or default]

    @property
    def embedding_factor(self) -> float:
        """The factor of token embeddings before the first layer: √d in Gemma, otherwise 1."""
        return math.sqrt(self.architecture.d) if self.architecture.embedding_scale == "root-d" else 1.0

    @property
    def logit_softcap(self) -> float | None:
        """The c of c·tanh(logits/c), or None if logits aren't capped."""
        default = self._rule.logit_softcap
        cap = self.config.get("final_logit_softcapping", default) if default is not None else None
        return None if cap is None else float(cap)

    # Tensors as they are stored

    def tensor(self, name: str, rows: slice = ALL, columns: slice = ALL) -> torch.Tensor:
        """Rows and columns (by default all) of a tensor by its name in the file, in float32, as stored (not
        transposed).

        Raises CheckpointError for an unknown name and for an unreadable number format.
        """
        if name not in self._file.names:
            raise CheckpointError(_("{checkpoint} has no tensor “{name}”.").format(checkpoint=self.name, name=name))
        return self._file.read(name, rows, columns)

    # Tensors as they are used

    def layer_weights(self, layer: int) -> LayerWeights:
        """Every parameter of one layer, counted from 0, by its role, as a run uses it."""
        specs = self._layer_specs(layer)
        tensors = dict(self._attention_tensors(layer, specs)) | self._feed_forward_tensors(layer, specs)
        norms = [self._norm(norm, layer) for norm in _norm_specs(specs)]
        is_sandwich = self.architecture.norm_placement == "sandwich"
        return LayerWeights(
            **tensors,
            attention_norm=norms[0],
            after_attention_norm=norms[1] if is_sandwich else None,
            mlp_norm=norms[2 if is_sandwich else 1],
            after_mlp_norm=norms[3] if is_sandwich else None,
        )

    def head_weights(self, layer: int, head: int) -> HeadWeights:
        """The parameters of one query head, its key/value head and the norm before them, and where they are stored."""
        if not 0 <= head < self.architecture.H:
            problem = _("{checkpoint} has heads 0 to {last} in each layer.")
            raise CheckpointError(problem.format(checkpoint=self.name, last=self.architecture.H - 1))
        parts = tuple(self._head_parts(layer, head))
        return HeadWeights(parts, {part.variable: self._used(part) for part in parts})

    def embedding_rows(self, ids: Sequence[int]) -> torch.Tensor:
        """The rows (N, d) of the token embedding for these ids, before the multiplication by `embedding_factor`.

        Raises CheckpointError if the table is missing, has another shape, or can't be read.
        """
        import torch

        [table] = self._outside(ModelPart.TOKEN_TABLE)
        name = self._stored(table, None).name
        rows = {token: self.tensor(name, slice(token, token + 1)) for token in set(ids)}
        return torch.cat([rows[token] for token in ids])

    def position_rows(self, count: int) -> torch.Tensor | None:
        """The first rows (count, d) of the position table, None for a model without one."""
        tables = self._outside(ModelPart.POSITION_TABLE)
        return self.tensor(self._stored(tables[0], None).name, slice(0, count)) if tables else None

    def final_norm(self) -> NormWeights:
        """The norm after the last layer."""
        return self._norm(self._outside(ModelPart.FINAL_NORM), None)

    def output_rows(self, rows: slice = ALL) -> torch.Tensor:
        """Rows (by default all) of the LM head's stored matrix, one per token: (V, d)."""
        part = ModelPart.TOKEN_TABLE if self.architecture.tied_embeddings else ModelPart.OUTPUT_HEAD
        [matrix] = self._outside(part)
        return self.tensor(self._stored(matrix, None).name, rows)

    def tokens(self, text: str) -> tuple[Token, ...]:
        """The text's tokens, with the special tokens that the model's tokenizer adds."""
        return self._tokenize(text)

    def _outside(self, part: ModelPart) -> ParameterSpecs:
        return tuple(spec for spec in self.architecture.outside_parameters if spec.part == part)

    def _layer_specs(self, layer: int) -> ParameterSpecs:
        last = self.architecture.L - 1
        if not 0 <= layer <= last:
            raise CheckpointError(_("{checkpoint} has layers 0 to {last}.").format(checkpoint=self.name, last=last))
        for run in self.architecture.runs:
            if layer < run.count:
                return run.parameters
            layer -= run.count
        raise AssertionError

    def _stored(self, spec: ParameterSpec, layer: int | None) -> StoredTensor:
        prefix = "" if layer is None else self.architecture.stacks[0].spec.name.format(i=layer)
        name = self._file.name_of(prefix + spec.name)
        if name not in self._file.names:
            raise CheckpointError(_("{checkpoint} has no tensor “{name}”.").format(checkpoint=self.name, name=name))
        stored = self._file.stored(name)
        expected = tuple(dim.size(self.architecture.all_sizes) for dim in spec.stored_shape)
        if stored.shape != expected:
            problem = _("In {checkpoint}, “{name}” has the shape {shape}, but by its config it should have {expected}.")
            shapes = {"shape": stored.shape, "expected": expected}
            raise CheckpointError(problem.format(checkpoint=self.name, name=name, **shapes))
        return stored

    def _head_parts(self, layer: int, head: int) -> Iterator[StoredPart]:
        a, specs = self.architecture, self._layer_specs(layer)
        slices, biases = head_slices(a, head), list[StoredPart]()
        for letters, matrix, bias in _projections(specs):
            stored, is_turned = self._stored(matrix, layer), matrix.stored_shape != matrix.in_out_shape
            for letter in letters:
                at = slices[letter]
                holds: dict[PartNote, bool] = {
                    "permuted": self._file.is_permuted(stored.name),
                    "fused": len(letters) > 1,
                    "shared": a.query_heads_per_kv_head > 1 and letter in "KV",
                }
                notes = tuple(note for note, is_true in holds.items() if is_true)
                yield StoredPart(f"W_{letter}", stored, at.dim, at.start, at.length, is_turned, notes)
                if bias is not None:
                    stored_bias = self._stored(bias, layer)
                    start, length = (0, stored_bias.shape[0]) if letter == "O" else (at.start, at.length)
                    biases.append(StoredPart(f"b_{letter}", stored_bias, 0, start, length, notes=notes))
        yield from biases
        for letter, part in (("Q", ModelPart.QUERY_NORM), ("K", ModelPart.KEY_NORM)):
            for spec in (spec for spec in specs if spec.part == part):
                yield StoredPart(f"g_{letter}", self._stored(spec, layer), 0, 0, a.d_h)
        notes = ("plus-one",) if self._rule.norm_offset else ()
        for variable, spec in zip(("g_X", "b_X"), _norm_specs(specs)[0], strict=False):
            yield StoredPart(variable, self._stored(spec, layer), 0, 0, a.d, notes=notes)

    def _used(self, part: StoredPart) -> torch.Tensor:
        cut = slice(part.start, part.start + part.length)
        rows, columns = (cut, ALL) if part.dim == 0 else (ALL, cut)
        values = self.tensor(part.stored.name, rows, columns)
        if "plus-one" in part.notes:
            values = values + self._rule.norm_offset
        return values.T.contiguous() if part.is_turned else values

    def _read(self, spec: ParameterSpec, layer: int | None) -> torch.Tensor:
        values = self.tensor(self._stored(spec, layer).name)
        return values.T.contiguous() if spec.kind == "matrix" and spec.stored_shape != spec.in_out_shape else values

    def _attention_tensors(self, layer: int, specs: ParameterSpecs) -> Iterator[tuple[str, torch.Tensor]]:
        import torch

        a = self.architecture
        for letters, matrix, bias in _projections(specs):
            for symbol, spec in (("W", matrix), ("b", bias)):
                if spec is None:
                    continue
                values = self._read(spec, layer)
                if len(letters) == 1:
                    yield f"{symbol}_{letters}", values
                    continue
                slices = [head_slices(a, head) for head in range(a.H)]
                for letter in letters:
                    of_letter = [at[letter] for at in slices[:: 1 if letter == "Q" else a.query_heads_per_kv_head]]
                    pieces = [values.narrow(-1, at.start, at.length) for at in of_letter]
                    yield f"{symbol}_{letter}", torch.cat(pieces, -1)
        for letter, part in (("Q", ModelPart.QUERY_NORM), ("K", ModelPart.KEY_NORM)):
            for spec in (spec for spec in specs if spec.part == part):
                yield f"g_{letter}", self._read(spec, layer)

    def _feed_forward_tensors(self, layer: int, specs: ParameterSpecs) -> dict[str, torch.Tensor]:
        block = [spec for spec in specs if spec.part == ModelPart.FEED_FORWARD]
        *before, down = (spec.name.removesuffix("weight") for spec in block if spec.kind == "matrix")
        names = ["gate", "up"] if self.architecture.gated or len(before) == 2 else ["up"]
        tensors = {}
        for spec in block:
            symbol, end = ("W", "weight") if spec.kind == "matrix" else ("b", "bias")
            place = [*before, down].index(spec.name.removesuffix(end))
            values = self._read(spec, layer)
            if place == len(before):
                tensors[f"{symbol}_down"] = values
            elif len(before) == 1 < len(names):  # gate and up in one matrix, gate first
                tensors[f"{symbol}_gate"], tensors[f"{symbol}_up"] = values.chunk(2, -1)
            else:
                tensors[f"{symbol}_{names[place]}"] = values
        return tensors

    def _norm(self, specs: Sequence[ParameterSpec], layer: int | None) -> NormWeights:
        scale, *bias = (self._read(spec, layer) for spec in specs)
        return NormWeights(scale + self._rule.norm_offset, bias[0] if bias else None)


def _projections(specs: ParameterSpecs) -> Iterator[tuple[str, ParameterSpec, ParameterSpec | None]]:
    attention = [spec for spec in specs if spec.part == ModelPart.ATTENTION]
    matrices = [spec for spec in attention if spec.kind == "matrix"]
    for letters, matrix in zip(("QKV", "O") if matrices[0].fused else "QKVO", matrices, strict=True):
        bias = matrix.name.removesuffix("weight") + "bias"
        yield letters, matrix, next((spec for spec in attention if spec.name == bias), None)


def _norm_specs(specs: ParameterSpecs) -> list[list[ParameterSpec]]:
    norms: list[list[ParameterSpec]] = []
    for spec in (spec for spec in specs if spec.part == ModelPart.NORMS):
        if spec.kind == "scale":
            norms.append([spec])
        else:
            norms[-1].append(spec)
    return norms
