"""What rows of several groups share: topics, blanks and predictions."""

from __future__ import annotations

from collections.abc import Mapping

from app.misconceptions.misconception import Prediction
from app.models.architecture import Architecture
from app.shapes.table import MATRIX_FIELDS, Blank, side_fields
from app.topics.registry import TOPICS

# Topics, separated by spaces.
HEADS = " ".join(topic.key for topic in TOPICS.values() if topic.subject == "head")
HEADS_AND_LAYER = f"{HEADS} attention-layer"
HEADS_AND_SOFTMAX = f"{HEADS_AND_LAYER} scale-mask-softmax"
SPLIT_HEADS = "three-dimensions four-dimensions"


def each(size: str, *blanks: str) -> dict[str, str]:
    """Overrides that write one size into all of these blanks."""
    return dict.fromkeys(blanks, size)


def on(topics: str, *ways: Prediction | Mapping[str, str]) -> dict[str, tuple[Prediction, ...]]:
    """The same predictions for each of these space-separated topics; a mapping is a prediction's overrides."""
    predictions = tuple(way if isinstance(way, Prediction) else Prediction(way) for way in ways)
    return dict.fromkeys(topics.split(), predictions)


def in_first_steps(size: str, *blanks: str) -> dict[str, tuple[Prediction, ...]]:
    """Predictions for first steps: one size in all of these blanks or, as they come one at a time, in one of them."""
    return on("first-steps", each(size, *blanks), *({blank: size} for blank in blanks))


def in_dimensions(*ways: Mapping[str, str]) -> dict[str, tuple[Prediction, ...]]:
    """Predictions for the topics "three-dimensions" and "four-dimensions", one for each way of writing shapes of
    tensors.
    """
    return {
        topic: tuple(Prediction(all_sides(before, **way)) for way in ways)
        for before, topic in enumerate(SPLIT_HEADS.split())
    }


def all_sides(before: int = 0, /, **shapes: str) -> dict[str, str]:
    """Overrides of the sides of tensors, by key, each with its shape as text: padding_mask="B, N, 1, 1"."""
    sides = {key: shape.split(", ") for key, shape in shapes.items()}
    return {
        str(Blank(key, field)): size
        for key, sizes in sides.items()
        for field, size in zip(side_fields(before + len(sizes))[before:], sizes, strict=True)
    }


def with_or_without_context(overrides: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Two ways of giving values another width: the context keeps its right width, or takes the values'."""
    return (overrides, {**overrides, "context.columns": overrides["values.columns"]})


def counted(part: str, change: str) -> dict[str, str]:
    """Overrides of a count: `change` ("-d*d_ff") in one layer's `part`, and L times as much in the totals."""
    return {f"{part}.count": f"right + {change}", **each(f"right + L*{change}", "all_layers.count", *WHOLE)}


def has_context_length(architecture: Architecture) -> bool:
    return architecture.C is not None


# The blanks that rows name together, and substitutions that several rows share.
QKV = ("queries", "keys", "values")
QKV_ROWS, QKV_COLUMNS = ([f"{row}.{field}" for row in QKV] for field in MATRIX_FIELDS)
QUERY_SIDE = ("queries.rows", "scores.rows", "weights.rows", "context.rows", "output.rows")
KEY_SIDE = ("keys.rows", "values.rows", "scores.columns", "weights.columns")
WHOLE_CACHE = ("cached_numbers.count", "cache_bytes.count")  # for all layers and texts
WHOLE = ("total.count", "used.count")  # all parameters of a model, and those used for one token
# The operations of one layer.
LAYER_FLOPS = [
    f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")
]
ANGLE_ROWS, ANGLE_COLUMNS = ([f"{row}.{field}" for row in ("angles", "cosines", "sines")] for field in MATRIX_FIELDS)
# How long a query is in first steps.
FIRST_QUERIES = ("token_query.columns", "transposed_key.rows", "queries.columns", "all_queries.columns")
# On sheets in three or four dimensions; shapes are without the batch.
SPLIT_KV, KV_BY_HEAD = ("split_keys", "split_values"), ("keys_by_head", "values_by_head")
REPEATED = ("repeated_keys", "repeated_values")
