"""Broadcasting: how sides of 1 make masks, positions, scales and cosines fit, and what grows unnoticed.

Sides are compared from the right; a side that is 1 or missing is repeated (NumPy's rule, which PyTorch shares). Every
operand is written with as many sides as the result has.
"""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.models.parameter_specs import ModelPart
from app.shapes.operation import BroadcastAdd, BroadcastMultiply, Matmul, Unsqueeze, View
from app.shapes.table import TensorTable, tensor
from app.topics.requirements import PLAIN_HEAD
from app.topics.topic import FigurePlan, Topic

_PADDING = (
    tensor("scores", "S", "B, H, N, N", "score"),
    tensor("padding", "P'", "B, N", "score"),
    tensor("padding_mask", "P", "B, 1, 1, N", "score", Unsqueeze("padding", "b n -> b 1 1 n")),
    tensor("masked_scores", "S'", "B, H, N, N", "score",
           BroadcastAdd("scores padding_mask", "b h n m, b 1 1 m -> b h n m")),
)  # fmt: skip
_CAUSAL = (
    tensor("causal", "M'", "N, N", "score"),
    tensor("causal_mask", "M", "1, 1, N, N", "score", Unsqueeze("causal", "n m -> 1 1 n m")),
    tensor("both_masks", "M_P", "B, 1, N, N", "score",
           BroadcastAdd("padding_mask causal_mask", "b 1 1 m, 1 1 n m -> b 1 n m")),
)  # fmt: skip
_POSITIONS = (
    tensor("embedded", "E", "B, N, d", "input"),
    tensor("positions", "p'", "N, d", "input"),
    tensor("positions_of_batch", "p", "1, N, d", "input", Unsqueeze("positions", "n d -> 1 n d")),
    tensor("positioned", "X", "B, N, d", "input", BroadcastAdd("embedded positions_of_batch", "b n d, 1 n d -> b n d")),
)
_SCALE = (
    tensor("normed", "X_n", "B, N, d", "hidden"),
    tensor("norm_scale", "γ", "1, 1, d", "hidden"),
    tensor("scaled", "Y", "B, N, d", "hidden", BroadcastMultiply("normed norm_scale", "b n d, 1 1 d -> b n d")),
)
# The cosines of RoPE, which code keeps twice, for both numbers of a pair; the sines have the same shapes.
_COSINES = (
    tensor("cosines", "cos", "N, d_rot", "hidden"),
    tensor("rotary_by_head", "Q_H", "B, H, N, d_rot", "query"),
    tensor("cosines_heads_first", "cos_H", "1, 1, N, d_rot", "hidden", Unsqueeze("cosines", "n p -> 1 1 n p")),
    tensor("turned_by_head", "R_H", "B, H, N, d_rot", "query",
           BroadcastMultiply("rotary_by_head cosines_heads_first", "b h n p, 1 1 n p -> b h n p")),
    tensor("rotary_by_token", "Q_N", "B, N, H, d_rot", "query"),
    tensor("cosines_tokens_first", "cos_N", "1, N, 1, d_rot", "hidden", Unsqueeze("cosines", "n p -> 1 n 1 p")),
    tensor("turned_by_token", "R_N", "B, N, H, d_rot", "query",
           BroadcastMultiply("rotary_by_token cosines_tokens_first", "b n h p, 1 n 1 p -> b n h p")),
)  # fmt: skip
# For one input of the batch, since a sheet has boxes for four sides at most.
_GROUPS = (
    tensor("queries_of_input", "Q", "H, N, d_h", "query"),
    tensor("grouped_queries", "Q_G", "G, H/G, N, d_h", "query", View("queries_of_input", "(g r) n e -> g r n e")),
    tensor("keys_of_input", "K", "G, N, d_h", "key"),
    tensor("grouped_keys", "K_G", "G, 1, N, d_h", "key", Unsqueeze("keys_of_input", "g n e -> g 1 n e")),
    tensor("grouped_scores", "S_G", "G, H/G, N, N", "score",
           Matmul("grouped_queries grouped_keys", "g r n e, g 1 m e -> g r n m")),
)  # fmt: skip
# A list of N numbers plus a column of them: no error, and N times as many numbers.
_GROWN = (
    tensor("number_row", "a", "1, N", "hidden"),
    tensor("number_column", "b", "N, 1", "hidden"),
    tensor("grown", "c", "N, N", "hidden", BroadcastMultiply("number_row number_column", "1 m, n 1 -> n m")),
)

BROADCASTING = TensorTable("broadcasting", (*_PADDING, *_CAUSAL, *_POSITIONS, *_SCALE, *_COSINES, *_GROUPS, *_GROWN))


def _adds_positions(architecture: Architecture) -> bool:
    tables = [spec for spec in architecture.base_parameters if spec.part == ModelPart.POSITION_TABLE]
    return architecture.has_position_table and any(str(spec.in_out_shape[-1]) == "d" for spec in tables)


def _has_scale(architecture: Architecture) -> bool:
    specs = [spec for kind in architecture.kinds for spec in kind.rows.get("norms", ())]
    return any(spec.kind == "scale" and spec.in_out_shape == (Expression.symbol("d"),) for spec in specs)


def _broadcasting_table(architecture: Architecture, _tokens: int) -> TensorTable:
    reads_text = architecture.input == "text"
    parts = {
        _PADDING: reads_text,
        _CAUSAL: reads_text and architecture.causal,
        _POSITIONS: _adds_positions(architecture),
        _SCALE: _has_scale(architecture),
        _COSINES: architecture.rotary is not None,
        _GROUPS: architecture.G < architecture.H,
        _GROWN: True,
    }
    return replace(BROADCASTING, tensors=tuple(each for part, has in parts.items() if has for each in part))


TOPIC = Topic(
    "broadcasting",
    "layer",
    _broadcasting_table,
    PLAIN_HEAD,
    batched=True,
    tables=(BROADCASTING,),
    figures={
        BROADCASTING.key: (
            FigurePlan("masked", "scores", ("masked_scores",)),
            FigurePlan("both-masks", "padding_mask", ("both_masks",)),
            FigurePlan("positioned", "embedded", ("positioned",)),
            FigurePlan("scaled", "normed", ("scaled",)),
            FigurePlan("turned-by-head", "rotary_by_head", ("turned_by_head",)),
            FigurePlan("turned-by-token", "rotary_by_token", ("turned_by_token",)),
            FigurePlan("grouped", "grouped_queries", ("grouped_scores",)),
            FigurePlan("grown", "number_row", ("grown",)),
        ),
    },
)
