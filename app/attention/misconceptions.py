"""The catalogue of beliefs: what each makes a student write, in symbols; and which of them explains a whole sheet.

A belief is one row. Boxes that it does not name stay true, so that a sheet filled in by it is the truth with a few
boxes changed, and one belief explains all of them at once.

>>> [belief.key for belief in BELIEFS if not belief.ways]
['whole-output-projection', 'scale-by-model-width']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from .architecture import Architecture
from .chain import Values
from .dims import Dim, DimError
from .tensors import AXES, Place

if TYPE_CHECKING:  # a Variant keeps its expectations, so worksheet.py imports this module
    from .worksheet import Variant

HEADS = ("single-head", "bidirectional-head", "decode-step", "cross-attention")
LAYER = "attention-layer"
HEADS_AND_LAYER = (*HEADS, LAYER)
MATRICES, COUNT, COSTS, WALK = "layer-parameters", "parameter-count", "costs", "whole-model"


@dataclass(frozen=True)
class Way:
    """One way in which a belief fills in a sheet.

    `boxes` are changed to other sizes, `taken` symbols for others everywhere, `turned` matrices have rows and columns
    changed round (* is all of them). Beside the sheet's own symbols a size may use those of `_own_sizes`.
    """

    boxes: Mapping[str, str] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)
    turned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Belief:
    """One row of the catalogue: its key, the ways in which it shows by topic, and for which models it can be held.

    A belief without ways shows on no sheet there is: what it gets wrong is not asked.
    """

    key: str
    ways: Mapping[str, tuple[Way, ...]] = field(default_factory=dict)
    holds: Callable[[Architecture], bool] = lambda _architecture: True

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self.ways)


@dataclass(frozen=True)
class Expectation:
    """What a belief makes a student write on one sheet, where that differs from the truth."""

    belief: str
    changed: Mapping[Place, int]


@dataclass(frozen=True)
class Diagnosis:
    """The belief that explains a sheet, the sentence that points without telling, and the boxes it explains.

    `also` are further beliefs held at the same time.
    """

    key: str
    message: str
    explains: tuple[Place, ...]
    also: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        explains = [str(place) for place in self.explains]
        return {"key": self.key, "message": self.message, "explains": explains, "also": list(self.also)}


def _boxes(size: str, *places: str) -> dict[str, str]:
    return dict.fromkeys(places, size)


def _on(topics: Iterable[str], *ways: Way) -> dict[str, tuple[Way, ...]]:
    return dict.fromkeys(topics, ways)


def _mixed(boxes: dict[str, str]) -> tuple[Way, Way]:
    """Values of another width, in a context that stays true or that goes with them."""
    return (Way(boxes), Way({**boxes, "context.columns": boxes["values.columns"]}))


def _grouped(architecture: Architecture) -> bool:
    return architecture.G != architecture.H


def _rotary_alone(architecture: Architecture) -> bool:
    return architecture.rotary is not None and not architecture.position_table


_QKV = ("queries", "keys", "values")
_QKV_ROWS, _QKV_COLUMNS = ([f"{row}.{axis}" for row in _QKV] for axis in AXES)
_KV_COLUMNS = _QKV_COLUMNS[1:]
_PRODUCTS = [f"{row}.{axis}" for row in ("scores", "weights") for axis in AXES]
_PRODUCT_ROWS, _PRODUCT_COLUMNS = _PRODUCTS[::2], _PRODUCTS[1::2]
_INPUT_COLUMNS = ("input.columns", "encoded.columns")
_FLOPS = [f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")]
_CACHE = ("cache_16_bit.count", "cache_8_bit.count")
_AS_WIDE = {"d_h": "d", "d_v": "d"}
_EVEN = {"d_h": "even", "d_v": "even"}

BELIEFS: tuple[Belief, ...] = (
    Belief("head-as-wide-as-model", _on(HEADS, *_mixed(_boxes("d", *_QKV_COLUMNS)))),
    Belief(
        "heads-multiply-width",
        {
            **_on(HEADS, *_mixed(_boxes("H*d", *_QKV_COLUMNS))),
            **_on((LAYER,), Way(taken=_AS_WIDE), Way({"context.columns": "truth"}, _AS_WIDE)),
            **_on((MATRICES,), Way(taken=_AS_WIDE), Way(_boxes("truth", "W_O.rows", "W_O.count"), _AS_WIDE)),
            **_on((COUNT, COSTS), Way(taken=_AS_WIDE)),
        },
    ),
    Belief("input-sliced", _on(HEADS_AND_LAYER, Way(_boxes("d_h", *_INPUT_COLUMNS)))),
    Belief("input-repeated", _on(HEADS_AND_LAYER, Way(_boxes("H*d", *_INPUT_COLUMNS)))),
    Belief("transposed-product", _on(HEADS_AND_LAYER, Way(_boxes("d_h", *_PRODUCTS)))),
    Belief("model-wide-scores", _on(HEADS_AND_LAYER, Way(_boxes("d", *_PRODUCTS)))),
    Belief("elementwise-product", _on(HEADS_AND_LAYER, Way(_boxes("d_h", *_PRODUCT_COLUMNS)))),
    Belief("keys-already-transposed", _on(HEADS_AND_LAYER, Way(turned=("keys",)))),
    Belief("columns-are-tokens", _on((*HEADS_AND_LAYER, WALK), Way(turned=("*",)))),
    Belief("weights-for-activations", _on(HEADS_AND_LAYER, Way(_boxes("d", *_QKV_ROWS)))),
    Belief(
        "stored-layout",
        {
            **_on(HEADS_AND_LAYER, Way(_boxes("other", *_QKV_ROWS) | _boxes("d", *_QKV_COLUMNS))),
            **_on((MATRICES,), Way(turned=("*",))),
        },
    ),
    Belief(
        "no-output-projection",
        {**_on(HEADS, Way({"output.columns": "d_v"})), **_on((LAYER,), Way({"output.columns": "H*d_v"}))},
    ),
    Belief("whole-output-projection"),  # no sheet asks for one head's W_O
    Belief(
        "full-width-values",
        {**_on(HEADS, *_mixed({"values.columns": "d"})), **_on((LAYER,), Way({"values.columns": "d"}))},
    ),
    Belief("one-kv-per-query-head", _on((LAYER, MATRICES, COUNT, COSTS), Way(taken={"G": "H"})), _grouped),
    Belief("wider-kv-heads", _on(HEADS, *_mixed(_boxes("shared", *_KV_COLUMNS))), _grouped),
    Belief("all-kv-heads-in-one", _on(HEADS, *_mixed({"keys.columns": "G*d_h", "values.columns": "G*d_v"})), _grouped),
    Belief(
        "shrunken-output-projection",
        {
            **_on((MATRICES,), Way({"W_O.rows": "G*d_v", "W_O.count": "G*d_v*d"})),
            **_on(
                (COUNT,),
                Way(
                    {"attention.count": "truth + spared", "all_layers.count": "truth + L*spared"}
                    | {"total.count": "truth + L*spared"}
                ),
            ),
            **_on((COSTS,), Way({"output_flops.count": "2*N*G*d_v*d"})),
        },
        _grouped,
    ),
    Belief("width-always-divided", _on((*HEADS_AND_LAYER, MATRICES, COUNT, COSTS), Way(taken=_EVEN))),
    Belief("context-for-tokens", _on((*HEADS_AND_LAYER, WALK, COSTS), Way(taken={"N": "C", "M": "C"}))),
    Belief(
        "embedding-table-as-input",
        {**_on(HEADS_AND_LAYER, Way({"input.rows": "V"})), **_on((WALK,), Way({"embedded.rows": "V"}))},
    ),
    Belief("all-heads-stacked", _on(HEADS_AND_LAYER, Way(_boxes("H*truth", *_PRODUCT_ROWS)))),
    Belief("softmax-collapses", _on(HEADS_AND_LAYER, Way({"weights.columns": "1"}))),
    Belief("scale-by-model-width"),  # no sheet asks what the scores are divided by
    Belief(
        "decode-step-square",
        _on(
            ("decode-step",),
            Way(_boxes("N", *_PRODUCTS)),
            Way(_boxes("1", *_PRODUCTS)),
            Way(_boxes("N + 1", *_PRODUCTS)),
        ),
    ),
    Belief(
        "heads-change-parameters",
        {
            **_on((MATRICES,), Way(_boxes("H*truth", "W_Q.count", "W_K.count", "W_V.count", "W_O.count"))),
            **_on(
                (COUNT,),
                Way(
                    {"attention.count": "truth + multiplied"}
                    | _boxes("truth + L*multiplied", "all_layers.count", "total.count")
                ),
                Way({"attention.count": "truth + multiplied"}),
            ),
        },
        lambda architecture: architecture.d == architecture.H * architecture.d_h,
    ),
    Belief(
        "positions-are-parameters",
        _on((COUNT,), Way(_boxes("truth + C*d", "embedding.count", "total.count"))),
        _rotary_alone,
    ),
    Belief(
        "cache-forgets-factor",
        _on(
            (COSTS,),
            Way({_CACHE[0]: "2*H*L*N*d_h + 2*H*L*N*d_v", _CACHE[1]: "H*L*N*d_h + H*L*N*d_v"}),
            Way(_boxes("half", *_CACHE)),
            Way({_CACHE[0]: "2*H*L*N*d_h", _CACHE[1]: "H*L*N*d_h"}),
        ),
    ),
    Belief("flops-are-macs", _on((COSTS,), Way(_boxes("half", *_FLOPS)))),
    Belief(
        "tied-embedding-twice",
        _on((COUNT,), Way({"total.count": "truth + V*d"})),
        lambda architecture: architecture.tied_embeddings,
    ),
)


def expectations(variant: Variant) -> tuple[Expectation, ...]:
    """Every belief that shows on this sheet, once for each way in which its boxes differ from the truth."""
    found = list[Expectation]()
    for belief in BELIEFS:
        for way in belief.ways.get(variant.worksheet.topic, ()) if belief.holds(variant.architecture) else ():
            expectation = Expectation(belief.key, _changed(variant, way))
            if expectation.changed and expectation not in found:
                found.append(expectation)
    return tuple(found)


def _changed(variant: Variant, way: Way) -> dict[Place, int]:
    """The boxes that differ from the truth; none where the model lacks a size, or has none that is whole."""
    sizes = {**variant.sizes, **_aside(variant.architecture)}
    try:
        taken = sizes | {symbol: sizes[other] for symbol, other in way.taken.items()}
        touched = variant.blanks if way.taken else [p for p in variant.blanks if _touches(way, p)]
        written = {place: _written(variant, way, place, taken) for place in touched}
    except (DimError, KeyError):
        return {}
    return {place: size for place, size in written.items() if size != variant.key[place]}


def _touches(way: Way, place: Place) -> bool:
    return str(place) in way.boxes or place.tensor in way.turned or "*" in way.turned


def _aside(architecture: Architecture) -> dict[str, int]:
    """Sizes that only beliefs use: even shares of the width, and what an output projection of G heads would spare."""
    a = architecture
    shares = {"even": divmod(a.d, a.H), "shared": divmod(a.d, a.G)}
    whole = {symbol: share for symbol, (share, rest) in shares.items() if not rest}
    return {**whole, "spared": (a.G - a.H) * a.d * a.d_v}


def _written(variant: Variant, way: Way, place: Place, sizes: Mapping[str, int]) -> int:
    if str(place) in way.boxes:
        return Dim.parse(way.boxes[str(place)]).size({**sizes, **_own_sizes(variant, place)})
    asked = variant.topic.asked[place.tensor]
    turned = place.tensor in way.turned or "*" in way.turned
    return asked.side(_turned(place).axis if turned else place.axis).size(sizes)


def _own_sizes(variant: Variant, place: Place) -> dict[str, int]:
    """What a changed box may be made of: its truth, half of it, the other side, and attention's count times H - 1."""
    truth = variant.key[place]
    other = variant.key.get(_turned(place), truth)
    multiplied = (variant.sizes["H"] - 1) * variant.key.get(Place("attention", "count"), 0)
    return {"truth": truth, "half": truth // 2, "other": other, "multiplied": multiplied}


def _turned(place: Place) -> Place:
    """The other side of the same matrix; a count has none."""
    return place if place.axis == "count" else Place(place.tensor, "columns" if place.axis == "rows" else "rows")


def cannot_tell_apart(variant: Variant) -> tuple[tuple[str, str], ...]:
    """Beliefs that this sheet hides: each with another that fills it in alike, or with "right".

    A belief that changes a single box by no more than a slip of a digit counts as hidden too.
    """
    seen = {e.belief for e in variant.expectations if not _is_slip_alone(variant, e.changed)}
    shown = (belief.key for belief in BELIEFS if variant.worksheet.topic in belief.ways)
    hidden = [(key, "right") for key in shown if key not in seen]
    alike = [
        (one.belief, other.belief)
        for one, other in combinations(variant.expectations, 2)
        if one.changed == other.changed and one.belief != other.belief
    ]
    return (*hidden, *dict.fromkeys(alike))


def diagnose(variant: Variant, values: Values) -> Diagnosis | None:
    """The belief, or else the two, that explain the most wrong boxes and contradict the fewest right ones.

    None where nothing is wrong, where one box slipped by a digit, or where nothing explains the sheet.
    """
    wrong = {place: value for place, value in values.items() if value != variant.key[place]}
    if not wrong or _is_slip_alone(variant, wrong):
        return None
    held = [e for e in variant.expectations if any(wrong.get(place) == size for place, size in e.changed.items())]
    fits = [fit for e in held if (fit := _fit(variant, values, wrong, (e,)))]
    if not any(fit.cost == 0 for fit in fits):
        fits += [fit for pair in _pairs(held, wrong) if (fit := _fit(variant, values, wrong, pair))]
    best = min(fits, key=lambda fit: fit.rank, default=None)
    return _diagnosis(variant, best) if best else None


def believed(variant: Variant, values: Values, belief: str) -> Mapping[Place, int]:
    """A whole sheet as a belief fills it in, in the way in which these answers come nearest to it."""
    ways = [e.changed for e in variant.expectations if e.belief == belief]
    nearest = max(ways, key=lambda changed: sum(values.get(place) == size for place, size in changed.items()))
    return {**variant.key, **nearest}


def sentence(variant: Variant, belief: str, kind: str) -> str:
    """A belief's nudge, hint or explanation, as it is said on a sheet whose tokens stand as they do here."""
    turned = variant.wording.sections["beliefs"][belief].get("turned", {})
    return (
        str(turned[kind])
        if variant.worksheet.tokens_are == "columns" and turned
        else variant.wording.belief(belief, kind)
    )


def _diagnosis(variant: Variant, fit: Fit) -> Diagnosis:
    explains = tuple(place for place in variant.blanks if place in fit.explained)
    first, *others = sorted(fit.held, key=lambda e: -sum(place in fit.explained for place in e.changed))
    message = sentence(variant, first.belief, "nudge")
    return Diagnosis(first.belief, message, explains, tuple(other.belief for other in others))


@dataclass(frozen=True)
class Fit:
    """How well beliefs held at once explain a sheet: what they explain, what that costs, what they expect in vain."""

    held: tuple[Expectation, ...]
    explained: frozenset[Place]
    cost: float
    unseen: int

    @property
    def rank(self) -> tuple[float, int, int, int]:
        return (self.cost, len(self.held), -len(self.explained), self.unseen)


SLIP, CONTRADICTED, UNEXPLAINED, SECOND_BELIEF = 1.0, 1.0, 2.0, 1.5


def _fit(variant: Variant, values: Values, wrong: Values, held: tuple[Expectation, ...]) -> Fit | None:
    """None where more is left than one slip, a third of what is explained, and as many right boxes as half of it."""
    explained = frozenset(p for p, value in wrong.items() if any(e.changed.get(p) == value for e in held))
    if len(explained) == 1 and _is_slip_alone(variant, {p: wrong[p] for p in explained}):
        return None
    changed = {place for e in held for place in e.changed}
    contradicted = sum(place in values and place not in wrong for place in changed)
    left = [place for place in wrong if place not in explained]
    slipped = any(_is_slip(wrong[p], meant) for p in left for meant in _meant(variant, p, held))
    unexplained = len(left) - slipped
    if unexplained > len(explained) // 3 or contradicted > len(explained) // 2:
        return None
    cost = SLIP * slipped + CONTRADICTED * contradicted + UNEXPLAINED * unexplained + SECOND_BELIEF * (len(held) - 1)
    unseen = sum(values.get(place) != size for e in held for place, size in e.changed.items())
    return Fit(held, explained, cost, unseen)


def _pairs(held: Iterable[Expectation], wrong: Values) -> Iterator[tuple[Expectation, Expectation]]:
    """Two beliefs at once, each with a box that the other does not explain, and with more explained than not."""
    matched = [(e, {p for p, size in e.changed.items() if wrong.get(p) == size}) for e in held]
    for (one, first), (other, second) in combinations(matched, 2):
        both = first | second
        missed = [sum(p in wrong and p not in both for p in e.changed) for e in (one, other)]
        mostly = all(2 * miss < len(e.changed) for miss, e in zip(missed, (one, other), strict=True))
        if mostly and one.belief != other.belief and first - second and second - first:
            yield one, other


def _meant(variant: Variant, place: Place, held: Iterable[Expectation]) -> Iterator[int]:
    """What a box may have been meant to say: what a belief expects there, else the truth."""
    expected = [e.changed[place] for e in held if place in e.changed]
    yield from expected or [variant.key[place]]


def _is_slip_alone(variant: Variant, wrong: Values) -> bool:
    return len(wrong) == 1 and all(_is_slip(value, variant.key[place]) for place, value in wrong.items())


def _is_slip(typed: int, meant: int) -> bool:
    """Whether one digit was mistyped, left out or added, or two neighbours were changed round."""
    long, short = sorted((str(typed), str(meant)), key=len, reverse=True)
    if len(long) == len(short):
        differ = [at for at, (one, other) in enumerate(zip(long, short, strict=True)) if one != other]
        if len(differ) == 2 and differ[1] == differ[0] + 1:
            return long[differ[0]] == short[differ[1]] and long[differ[1]] == short[differ[0]]
        return len(differ) == 1
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
