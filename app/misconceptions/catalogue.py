"""The catalogue of misconceptions: what each makes a student write, in symbols.

A misconception is one row. A blank that the row doesn't mention keeps its right number, so a sheet filled in by a
misconception is the right sheet with a few blanks changed.

>>> [misconception.key for misconception in MISCONCEPTIONS if not misconception.predictions]
['whole-output-projection', 'scale-by-model-width']
>>> group_of("softmax-collapses")
'scores'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from app.models.architecture import Architecture
from app.shapes.problem import Problem
from app.shapes.table import MATRIX_FIELDS, Blank
from app.shapes.topics import TOPICS

# Topics by the names that the rows use for them.
HEADS = tuple(topic.key for topic in TOPICS.values() if topic.subject == "head")
LAYER, MATRICES, COUNT, COSTS, WALK = "attention-layer", "layer-parameters", "parameter-count", "costs", "whole-model"
HEADS_AND_LAYER = (*HEADS, LAYER)


@dataclass(frozen=True)
class Prediction:
    """One way in which a misconception fills in a sheet; either `transposed`, or `overrides` and `substitutions`.

    `overrides` give blanks, by name, another size: {"scores.columns": "d_h"}. `substitutions` put one symbol in place
    of another in every other blank: {"G": "H"}. `transposed` are the tensors whose rows and columns change places, "*"
    for all of them. A size may use the symbols of the sheet, and those of MODEL_SYMBOLS and BLANK_SYMBOLS.
    """

    overrides: Mapping[str, str] = field(default_factory=dict)
    substitutions: Mapping[str, str] = field(default_factory=dict)
    transposed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Misconception:
    """One row of the catalogue: its key, its group, what it predicts on the sheets of each topic, and for which models.

    Without predictions it shows on no sheet: what it gets wrong is not asked.
    """

    key: str
    group: str
    predictions: Mapping[str, tuple[Prediction, ...]] = field(default_factory=dict)
    applies_to: Callable[[Architecture], bool] = lambda _architecture: True

    @property
    def topics(self) -> tuple[str, ...]:
        """The keys of the topics on whose sheets it can show."""
        return tuple(self.predictions)


# Symbols that a prediction may use besides those of the sheet. Of the model, as a whole number or None: d/H, each query
# head's even share of the embedding dimension; d/G, each key/value head's; and the parameters that W_O would have less
# (a number below zero) with G heads in place of H.
MODEL_SYMBOLS: Mapping[str, Callable[[Architecture], int | None]] = {
    "d_per_head": lambda a: None if a.d % a.H else a.d // a.H,
    "d_per_kv_head": lambda a: None if a.d % a.G else a.d // a.G,
    "W_O_change": lambda a: (a.G - a.H) * a.d * a.d_v,
}
# Of the blank that is written into: its right number; half of that, rounded down; the right number of the other side of
# the same matrix; and H - 1 times the count of all attention parameters, zero on a sheet that has no such count.
BLANK_SYMBOLS: Mapping[str, Callable[[Problem, Blank], int]] = {
    "right": lambda problem, blank: problem.key[blank],
    "half": lambda problem, blank: problem.key[blank] // 2,
    "other_side": lambda problem, blank: problem.key.get(blank.transposed, problem.key[blank]),
    "other_heads": lambda problem, _blank: (problem.sizes["H"] - 1) * problem.key.get(Blank("attention", "count"), 0),
}


def _each(size: str, *blanks: str) -> dict[str, str]:
    """Overrides that write one size into all of these blanks."""
    return dict.fromkeys(blanks, size)


def _on(topics: Iterable[str], *predictions: Prediction) -> dict[str, tuple[Prediction, ...]]:
    """The same predictions for each of these topics."""
    return dict.fromkeys(topics, predictions)


def _with_or_without_context(overrides: dict[str, str]) -> tuple[Prediction, Prediction]:
    """Two predictions of values with another width: the context keeps its right width, or has that of the values."""
    return (Prediction(overrides), Prediction({**overrides, "context.columns": overrides["values.columns"]}))


def _has_grouped_queries(architecture: Architecture) -> bool:
    """Whether several query heads share a key/value head."""
    return architecture.G != architecture.H


def _has_rope_alone(architecture: Architecture) -> bool:
    """Whether positions come from RoPE and from no table."""
    return architecture.rotary is not None and not architecture.has_position_table


# The blanks that rows name together, and substitutions that several rows share.
_QKV = ("queries", "keys", "values")
_QKV_ROWS, _QKV_COLUMNS = ([f"{row}.{field}" for row in _QKV] for field in MATRIX_FIELDS)
_KV_COLUMNS = _QKV_COLUMNS[1:]
_PRODUCTS = [f"{row}.{field}" for row in ("scores", "weights") for field in MATRIX_FIELDS]
_PRODUCT_ROWS, _PRODUCT_COLUMNS = _PRODUCTS[::2], _PRODUCTS[1::2]
_INPUT_COLUMNS = ("input.columns", "encoded.columns")
_FLOPS = [f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")]
_WHOLE = ("total.count", "used.count")  # all parameters of a model, and those used for one token
_CACHE = ("cache_16_bit.count", "cache_8_bit.count")
_AS_WIDE_AS_MODEL = {"d_h": "d", "d_v": "d"}
_EVEN_SHARES = {"d_h": "d_per_head", "d_v": "d_per_head"}

# The keys stand in the wording, in students' records and in the API.
MISCONCEPTIONS: tuple[Misconception, ...] = (
    Misconception("head-as-wide-as-model", "width", _on(HEADS, *_with_or_without_context(_each("d", *_QKV_COLUMNS)))),
    Misconception(
        "heads-multiply-width",
        "width",
        {
            **_on(HEADS, *_with_or_without_context(_each("H*d", *_QKV_COLUMNS))),
            **_on(
                (LAYER,),
                Prediction(substitutions=_AS_WIDE_AS_MODEL),
                Prediction({"context.columns": "right"}, _AS_WIDE_AS_MODEL),
            ),
            **_on(
                (MATRICES,),
                Prediction(substitutions=_AS_WIDE_AS_MODEL),
                Prediction(_each("right", "W_O.rows", "W_O.count"), _AS_WIDE_AS_MODEL),
            ),
            **_on((COUNT, COSTS), Prediction(substitutions=_AS_WIDE_AS_MODEL)),
        },
    ),
    Misconception("input-sliced", "input", _on(HEADS_AND_LAYER, Prediction(_each("d_h", *_INPUT_COLUMNS)))),
    Misconception("input-repeated", "input", _on(HEADS_AND_LAYER, Prediction(_each("H*d", *_INPUT_COLUMNS)))),
    Misconception("transposed-product", "scores", _on(HEADS_AND_LAYER, Prediction(_each("d_h", *_PRODUCTS)))),
    Misconception("model-wide-scores", "scores", _on(HEADS_AND_LAYER, Prediction(_each("d", *_PRODUCTS)))),
    Misconception("elementwise-product", "scores", _on(HEADS_AND_LAYER, Prediction(_each("d_h", *_PRODUCT_COLUMNS)))),
    Misconception("keys-already-transposed", "tokens", _on(HEADS_AND_LAYER, Prediction(transposed=("keys",)))),
    Misconception("columns-are-tokens", "tokens", _on((*HEADS_AND_LAYER, WALK), Prediction(transposed=("*",)))),
    Misconception("weights-for-activations", "tokens", _on(HEADS_AND_LAYER, Prediction(_each("d", *_QKV_ROWS)))),
    Misconception(
        "stored-layout",
        "tokens",
        {
            **_on(HEADS_AND_LAYER, Prediction(_each("other_side", *_QKV_ROWS) | _each("d", *_QKV_COLUMNS))),
            **_on((MATRICES,), Prediction(transposed=("*",))),
        },
    ),
    Misconception(
        "no-output-projection",
        "back",
        {**_on(HEADS, Prediction({"output.columns": "d_v"})), **_on((LAYER,), Prediction({"output.columns": "H*d_v"}))},
    ),
    Misconception("whole-output-projection", "back"),  # no sheet asks for one head's W_O
    Misconception(
        "full-width-values",
        "width",
        {
            **_on(HEADS, *_with_or_without_context({"values.columns": "d"})),
            **_on((LAYER,), Prediction({"values.columns": "d"})),
        },
    ),
    Misconception(
        "one-kv-per-query-head",
        "shared",
        _on((LAYER, MATRICES, COUNT, COSTS), Prediction(substitutions={"G": "H"})),
        _has_grouped_queries,
    ),
    Misconception(
        "wider-kv-heads",
        "shared",
        _on(HEADS, *_with_or_without_context(_each("d_per_kv_head", *_KV_COLUMNS))),
        _has_grouped_queries,
    ),
    Misconception(
        "all-kv-heads-in-one",
        "shared",
        _on(HEADS, *_with_or_without_context({"keys.columns": "G*d_h", "values.columns": "G*d_v"})),
        _has_grouped_queries,
    ),
    Misconception(
        "shrunken-output-projection",
        "shared",
        {
            **_on((MATRICES,), Prediction({"W_O.rows": "G*d_v", "W_O.count": "G*d_v*d"})),
            **_on(
                (COUNT,),
                Prediction(
                    {"attention.count": "right + W_O_change", "all_layers.count": "right + L*W_O_change"}
                    | _each("right + L*W_O_change", *_WHOLE)
                ),
            ),
            **_on((COSTS,), Prediction({"output_flops.count": "2*N*G*d_v*d"})),
        },
        _has_grouped_queries,
    ),
    Misconception(
        "width-always-divided",
        "width",
        _on((*HEADS_AND_LAYER, MATRICES, COUNT, COSTS), Prediction(substitutions=_EVEN_SHARES)),
    ),
    Misconception(
        "context-for-tokens",
        "input",
        _on((*HEADS_AND_LAYER, WALK, COSTS), Prediction(substitutions={"N": "C", "M": "C"})),
    ),
    Misconception(
        "embedding-table-as-input",
        "input",
        {**_on(HEADS_AND_LAYER, Prediction({"input.rows": "V"})), **_on((WALK,), Prediction({"embedded.rows": "V"}))},
    ),
    Misconception("all-heads-stacked", "scores", _on(HEADS_AND_LAYER, Prediction(_each("H*right", *_PRODUCT_ROWS)))),
    Misconception("softmax-collapses", "scores", _on(HEADS_AND_LAYER, Prediction({"weights.columns": "1"}))),
    Misconception("scale-by-model-width", "scores"),  # no sheet asks what the scores are divided by
    Misconception(
        "decode-step-square",
        "cache",
        _on(
            ("decode-step",),
            Prediction(_each("N", *_PRODUCTS)),
            Prediction(_each("1", *_PRODUCTS)),
            Prediction(_each("N + 1", *_PRODUCTS)),
        ),
    ),
    Misconception(
        "heads-change-parameters",
        "parameters",
        {
            **_on((MATRICES,), Prediction(_each("H*right", "W_Q.count", "W_K.count", "W_V.count", "W_O.count"))),
            **_on(
                (COUNT,),
                Prediction(
                    {"attention.count": "right + other_heads"}
                    | _each("right + L*other_heads", "all_layers.count", *_WHOLE)
                ),
                Prediction({"attention.count": "right + other_heads"}),
            ),
        },
        lambda architecture: architecture.d == architecture.H * architecture.d_h,
    ),
    Misconception(
        "positions-are-parameters",
        "parameters",
        _on((COUNT,), Prediction(_each("right + C*d", "embedding.count", *_WHOLE))),
        _has_rope_alone,
    ),
    Misconception(
        "cache-forgets-factor",
        "costs",
        _on(
            (COSTS,),
            Prediction({_CACHE[0]: "2*H*L*N*d_h + 2*H*L*N*d_v", _CACHE[1]: "H*L*N*d_h + H*L*N*d_v"}),
            Prediction(_each("half", *_CACHE)),
            Prediction({_CACHE[0]: "2*H*L*N*d_h", _CACHE[1]: "H*L*N*d_h"}),
        ),
    ),
    Misconception("flops-are-macs", "costs", _on((COSTS,), Prediction(_each("half", *_FLOPS)))),
    Misconception(
        "tied-embedding-twice",
        "parameters",
        _on((COUNT,), Prediction(_each("right + V*d", *_WHOLE))),
        lambda architecture: architecture.tied_embeddings,
    ),
)


# The groups that students see by name, in the order in which they are met; each with the keys of its misconceptions.
MISCONCEPTION_GROUPS: Mapping[str, tuple[str, ...]] = {
    group: tuple(misconception.key for misconception in MISCONCEPTIONS if misconception.group == group)
    for group in ("input", "width", "tokens", "scores", "back", "shared", "cache", "parameters", "costs")
}
_GROUP_OF = {misconception.key: misconception.group for misconception in MISCONCEPTIONS}


def group_of(misconception: str) -> str:
    """The group of a misconception, by its key; raises KeyError if there is no such misconception."""
    return _GROUP_OF[misconception]
