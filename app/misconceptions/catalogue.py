"""The catalogue of misconceptions: what each makes a student write, in symbols; and which of them explains a whole
sheet.

A misconception is one row. Boxes that it does not name stay true, so that a sheet filled in by it is the truth with a
few boxes changed, and one misconception explains all of them at once.

>>> [misconception.key for misconception in MISCONCEPTIONS if not misconception.ways]
['whole-output-projection', 'scale-by-model-width']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from app.algebra.expression import Expression, ExpressionError
from app.models.architecture import Architecture
from app.shapes.consistency import Values
from app.shapes.table import MATRIX_FIELDS, Blank

if TYPE_CHECKING:  # a Variant keeps its expectations, so worksheet.py imports this module
    from app.sheets.worksheet import Variant

HEADS = ("single-head", "bidirectional-head", "decode-step", "cross-attention")
LAYER = "attention-layer"
HEADS_AND_LAYER = (*HEADS, LAYER)
MATRICES, COUNT, COSTS, WALK = "layer-parameters", "parameter-count", "costs", "whole-model"


@dataclass(frozen=True)
class Way:
    """One way in which a misconception fills in a sheet.

    `boxes` are changed to other sizes, `taken` symbols for others everywhere; or `turned` matrices have rows and
    columns changed round (* is all of them). Beside the sheet's own symbols a size may use those of `_own_sizes`.
    """

    boxes: Mapping[str, str] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)
    turned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Misconception:
    """One row of the catalogue: its key, the ways in which it shows by topic, and for which models it can be held.

    A misconception without ways shows on no sheet there is: what it gets wrong is not asked.
    """

    key: str
    ways: Mapping[str, tuple[Way, ...]] = field(default_factory=dict)
    holds: Callable[[Architecture], bool] = lambda _architecture: True

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self.ways)


@dataclass(frozen=True)
class Expectation:
    """What a misconception makes a student write on one sheet, where that differs from the truth; and what it turns
    round.
    """

    misconception: str
    changed: Mapping[Blank, int]
    turned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """The misconception that explains a sheet, the sentence that points without telling, and the boxes it explains.

    `also` are further misconceptions held at the same time.
    """

    key: str
    message: str
    explains: tuple[Blank, ...]
    also: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        explains = [str(blank) for blank in self.explains]
        return {"key": self.key, "message": self.message, "explains": explains, "also": list(self.also)}


def _boxes(size: str, *blanks: str) -> dict[str, str]:
    return dict.fromkeys(blanks, size)


def _on(topics: Iterable[str], *ways: Way) -> dict[str, tuple[Way, ...]]:
    return dict.fromkeys(topics, ways)


def _mixed(boxes: dict[str, str]) -> tuple[Way, Way]:
    """Values of another width, in a context that stays true or that goes with them."""
    return (Way(boxes), Way({**boxes, "context.columns": boxes["values.columns"]}))


def _grouped(architecture: Architecture) -> bool:
    return architecture.G != architecture.H


def _rotary_alone(architecture: Architecture) -> bool:
    return architecture.rotary is not None and not architecture.has_position_table


_QKV = ("queries", "keys", "values")
_QKV_ROWS, _QKV_COLUMNS = ([f"{row}.{axis}" for row in _QKV] for axis in MATRIX_FIELDS)
_KV_COLUMNS = _QKV_COLUMNS[1:]
_PRODUCTS = [f"{row}.{axis}" for row in ("scores", "weights") for axis in MATRIX_FIELDS]
_PRODUCT_ROWS, _PRODUCT_COLUMNS = _PRODUCTS[::2], _PRODUCTS[1::2]
_INPUT_COLUMNS = ("input.columns", "encoded.columns")
_FLOPS = [f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")]
_CACHE = ("cache_16_bit.count", "cache_8_bit.count")
_AS_WIDE = {"d_h": "d", "d_v": "d"}
_EVEN = {"d_h": "even", "d_v": "even"}

MISCONCEPTIONS: tuple[Misconception, ...] = (
    Misconception("head-as-wide-as-model", _on(HEADS, *_mixed(_boxes("d", *_QKV_COLUMNS)))),
    Misconception(
        "heads-multiply-width",
        {
            **_on(HEADS, *_mixed(_boxes("H*d", *_QKV_COLUMNS))),
            **_on((LAYER,), Way(taken=_AS_WIDE), Way({"context.columns": "truth"}, _AS_WIDE)),
            **_on((MATRICES,), Way(taken=_AS_WIDE), Way(_boxes("truth", "W_O.rows", "W_O.count"), _AS_WIDE)),
            **_on((COUNT, COSTS), Way(taken=_AS_WIDE)),
        },
    ),
    Misconception("input-sliced", _on(HEADS_AND_LAYER, Way(_boxes("d_h", *_INPUT_COLUMNS)))),
    Misconception("input-repeated", _on(HEADS_AND_LAYER, Way(_boxes("H*d", *_INPUT_COLUMNS)))),
    Misconception("transposed-product", _on(HEADS_AND_LAYER, Way(_boxes("d_h", *_PRODUCTS)))),
    Misconception("model-wide-scores", _on(HEADS_AND_LAYER, Way(_boxes("d", *_PRODUCTS)))),
    Misconception("elementwise-product", _on(HEADS_AND_LAYER, Way(_boxes("d_h", *_PRODUCT_COLUMNS)))),
    Misconception("keys-already-transposed", _on(HEADS_AND_LAYER, Way(turned=("keys",)))),
    Misconception("columns-are-tokens", _on((*HEADS_AND_LAYER, WALK), Way(turned=("*",)))),
    Misconception("weights-for-activations", _on(HEADS_AND_LAYER, Way(_boxes("d", *_QKV_ROWS)))),
    Misconception(
        "stored-layout",
        {
            **_on(HEADS_AND_LAYER, Way(_boxes("other", *_QKV_ROWS) | _boxes("d", *_QKV_COLUMNS))),
            **_on((MATRICES,), Way(turned=("*",))),
        },
    ),
    Misconception(
        "no-output-projection",
        {**_on(HEADS, Way({"output.columns": "d_v"})), **_on((LAYER,), Way({"output.columns": "H*d_v"}))},
    ),
    Misconception("whole-output-projection"),  # no sheet asks for one head's W_O
    Misconception(
        "full-width-values",
        {**_on(HEADS, *_mixed({"values.columns": "d"})), **_on((LAYER,), Way({"values.columns": "d"}))},
    ),
    Misconception("one-kv-per-query-head", _on((LAYER, MATRICES, COUNT, COSTS), Way(taken={"G": "H"})), _grouped),
    Misconception("wider-kv-heads", _on(HEADS, *_mixed(_boxes("shared", *_KV_COLUMNS))), _grouped),
    Misconception(
        "all-kv-heads-in-one", _on(HEADS, *_mixed({"keys.columns": "G*d_h", "values.columns": "G*d_v"})), _grouped
    ),
    Misconception(
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
    Misconception("width-always-divided", _on((*HEADS_AND_LAYER, MATRICES, COUNT, COSTS), Way(taken=_EVEN))),
    Misconception("context-for-tokens", _on((*HEADS_AND_LAYER, WALK, COSTS), Way(taken={"N": "C", "M": "C"}))),
    Misconception(
        "embedding-table-as-input",
        {**_on(HEADS_AND_LAYER, Way({"input.rows": "V"})), **_on((WALK,), Way({"embedded.rows": "V"}))},
    ),
    Misconception("all-heads-stacked", _on(HEADS_AND_LAYER, Way(_boxes("H*truth", *_PRODUCT_ROWS)))),
    Misconception("softmax-collapses", _on(HEADS_AND_LAYER, Way({"weights.columns": "1"}))),
    Misconception("scale-by-model-width"),  # no sheet asks what the scores are divided by
    Misconception(
        "decode-step-square",
        _on(
            ("decode-step",),
            Way(_boxes("N", *_PRODUCTS)),
            Way(_boxes("1", *_PRODUCTS)),
            Way(_boxes("N + 1", *_PRODUCTS)),
        ),
    ),
    Misconception(
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
    Misconception(
        "positions-are-parameters",
        _on((COUNT,), Way(_boxes("truth + C*d", "embedding.count", "total.count"))),
        _rotary_alone,
    ),
    Misconception(
        "cache-forgets-factor",
        _on(
            (COSTS,),
            Way({_CACHE[0]: "2*H*L*N*d_h + 2*H*L*N*d_v", _CACHE[1]: "H*L*N*d_h + H*L*N*d_v"}),
            Way(_boxes("half", *_CACHE)),
            Way({_CACHE[0]: "2*H*L*N*d_h", _CACHE[1]: "H*L*N*d_h"}),
        ),
    ),
    Misconception("flops-are-macs", _on((COSTS,), Way(_boxes("half", *_FLOPS)))),
    Misconception(
        "tied-embedding-twice",
        _on((COUNT,), Way({"total.count": "truth + V*d"})),
        lambda architecture: architecture.tied_embeddings,
    ),
)


def expectations(variant: Variant) -> tuple[Expectation, ...]:
    """Every misconception that shows on this sheet, once for each way in which its boxes differ from the truth."""
    sizes = variant.sizes | _aside(variant.architecture)
    held = (b for b in MISCONCEPTIONS if variant.worksheet.topic in b.ways and b.holds(variant.architecture))
    return tuple(expectation for misconception in held for expectation in _expected(variant, misconception, sizes))


def _expected(variant: Variant, misconception: Misconception, sizes: dict[str, int]) -> list[Expectation]:
    found = list[Expectation]()
    for way in misconception.ways[variant.worksheet.topic]:
        changed = _changed(variant, way, sizes)
        if changed and all(other.changed != changed for other in found):
            found.append(Expectation(misconception.key, changed, way.turned))
    return found


def _changed(variant: Variant, way: Way, sizes: dict[str, int]) -> dict[Blank, int]:
    """The boxes that differ from the truth; none where the model lacks a size, or has none that is whole."""
    try:
        taken = sizes | {symbol: sizes[other] for symbol, other in way.taken.items()}
        written = {blank: _written(variant, way, blank, taken) for blank in _touched(variant, way)}
    except (ExpressionError, KeyError):
        return {}
    return {blank: size for blank, size in written.items() if size != variant.key[blank]}


def _touched(variant: Variant, way: Way) -> Iterable[Blank]:
    """The boxes that a way may change, in the table's own blanks."""
    if "*" in way.turned:
        return variant.blanks
    turned = [blank for blank in variant.blanks if blank.tensor in way.turned] if way.turned else ()
    asked = variant.table.asked
    taken = [p for p in variant.blanks if way.taken.keys() & asked[p.tensor].dim(p.field).symbols] if way.taken else ()
    return (*turned, *taken, *(variant.blanks_by_name[box] for box in way.boxes if box in variant.blanks_by_name))


def _aside(architecture: Architecture) -> dict[str, int]:
    """Sizes that only misconceptions use: even shares of the width, and what an output projection of G heads would
    spare.
    """
    a = architecture
    shares = {"even": divmod(a.d, a.H), "shared": divmod(a.d, a.G)}
    whole = {symbol: share for symbol, (share, rest) in shares.items() if not rest}
    return {**whole, "spared": (a.G - a.H) * a.d * a.d_v}


def _written(variant: Variant, way: Way, blank: Blank, sizes: Mapping[str, int]) -> int:
    if text := way.boxes.get(str(blank)):
        size = Expression.parse(text)
        return size.size(sizes if size.symbols <= sizes.keys() else {**sizes, **_own_sizes(variant, blank)})
    if way.turned:
        return variant.key[blank.transposed]
    return variant.table.asked[blank.tensor].dim(blank.field).size(sizes)


def _own_sizes(variant: Variant, blank: Blank) -> dict[str, int]:
    """What a changed box may be made of: its truth, half of it, the other side, and attention's count times H - 1."""
    truth = variant.key[blank]
    other = variant.key.get(blank.transposed, truth)
    multiplied = (variant.sizes["H"] - 1) * variant.key.get(Blank("attention", "count"), 0)
    return {"truth": truth, "half": truth // 2, "other": other, "multiplied": multiplied}


def cannot_tell_apart(variant: Variant) -> tuple[tuple[str, str], ...]:
    """Misconceptions that this sheet hides: each with another that fills it in alike, or with "right".

    A misconception that changes a single box by no more than a slip of a digit counts as hidden too.
    """
    seen = {e.misconception for e in variant.expectations if not _is_slip_alone(variant, e.changed)}
    shown = (misconception.key for misconception in MISCONCEPTIONS if variant.worksheet.topic in misconception.ways)
    hidden = [(key, "right") for key in shown if key not in seen]
    alike = [
        (one.misconception, other.misconception)
        for one, other in combinations(variant.expectations, 2)
        if one.changed == other.changed and one.misconception != other.misconception
    ]
    return (*hidden, *dict.fromkeys(alike))


def diagnose(variant: Variant, values: Values) -> Diagnosis | None:
    """The misconception, or else the two, that explain the most wrong boxes and contradict the fewest right ones.

    None where nothing is wrong, where one box slipped by a digit, or where nothing explains the sheet.
    """
    wrong = {blank: value for blank, value in values.items() if value != variant.key[blank]}
    if not wrong or _is_slip_alone(variant, wrong):
        return None
    fits = [*_fits_alone(variant, values, wrong)]
    if not any(fit.cost == 0 for fit in fits):
        fits += _fits_of_two(variant, values, wrong)
        fits += _fits_turned(variant, values)
    best = min(fits, key=lambda fit: fit.rank, default=None)
    return _diagnosis(variant, best) if best else None


def believed(variant: Variant, values: Values, misconception: str) -> Mapping[Blank, int]:
    """A whole sheet as a misconception fills it in, in the way in which these answers come nearest to it."""
    ways = [e.changed for e in variant.expectations if e.misconception == misconception]
    nearest = max(ways, key=lambda changed: sum(values.get(blank) == size for blank, size in changed.items()))
    return {**variant.key, **nearest}


def sentence(variant: Variant, misconception: str, kind: str) -> str:
    """A misconception's nudge, hint or explanation, as it is said on a sheet whose tokens stand as they do here."""
    turned = variant.wording.sections["misconceptions"][misconception].get("turned", {})
    return (
        str(turned[kind])
        if variant.worksheet.tokens_are == "columns" and turned
        else variant.wording.misconception(misconception, kind)
    )


def _diagnosis(variant: Variant, fit: Fit) -> Diagnosis:
    explains = tuple(blank for blank in variant.blanks if blank in fit.explained)
    first, *others = sorted(fit.held, key=lambda e: -sum(blank in fit.explained for blank in e.changed))
    message = sentence(variant, first.misconception, "nudge")
    return Diagnosis(first.misconception, message, explains, tuple(other.misconception for other in others))


@dataclass(frozen=True)
class Fit:
    """How well misconceptions held at once explain a sheet: what they explain, what that costs, what they expect in
    vain.
    """

    held: tuple[Expectation, ...]
    explained: frozenset[Blank]
    cost: float
    unseen: int

    @property
    def rank(self) -> tuple[float, int, int, int]:
        return (self.cost, len(self.held), -len(self.explained), self.unseen)


# What a fit costs for each. Two misconceptions that leave nothing open are likelier than one that expects a box in
# vain.
SLIP, SECOND_MISCONCEPTION, CONTRADICTED, UNEXPLAINED = 1.0, 1.5, 1.6, 2.0


def _fits_alone(variant: Variant, values: Values, wrong: Values) -> Iterator[Fit]:
    for e in variant.expectations:
        if explained := _seen(e, wrong):
            yield from _fit(variant, values, wrong, (e,), explained)


def _fits_of_two(variant: Variant, values: Values, wrong: Values) -> Iterator[Fit]:
    """Two misconceptions at once, each with a box that the other does not explain, and with more explained than not."""
    held = [(e, seen) for e in variant.expectations if (seen := _seen(e, wrong))]
    for (one, first), (other, second) in combinations(held, 2):
        if one.misconception == other.misconception or first <= second or second <= first:
            continue
        explained = first.union(second, _worked_out(variant, wrong, one, other))
        missed = [sum(blank in wrong and blank not in explained for blank in e.changed) for e in (one, other)]
        if 2 * missed[0] < len(one.changed) and 2 * missed[1] < len(other.changed):
            yield from _fit(variant, values, wrong, (one, other), explained)


def _fits_turned(variant: Variant, values: Values) -> Iterator[Fit]:
    """A misconception that turns matrices round, and another that explains the sheet once they are turned back."""
    for turning in (e for e in variant.expectations if e.turned):
        meant = {blank: blank.transposed if _turns(turning, blank) else blank for blank in values}
        moved = {blank for blank in values if values.get(meant[blank]) != values[blank]}
        back = {meant[blank]: value for blank, value in values.items()}
        wrong = {blank: value for blank, value in back.items() if value != variant.key[blank]}
        for fit in _fits_alone(variant, back, wrong) if moved else ():
            (other,) = fit.held
            known = {blank for blank in values if meant[blank] not in wrong or meant[blank] in fit.explained}
            explained = frozenset(blank for blank in known if values[blank] != variant.key[blank])
            mostly = 2 * len(moved - known) < len(moved) and explained - _seen(other, values)
            if mostly and other.misconception != turning.misconception:
                yield Fit((turning, other), explained, fit.cost + SECOND_MISCONCEPTION, fit.unseen)


def _turns(turning: Expectation, blank: Blank) -> bool:
    return blank.tensor in turning.turned or "*" in turning.turned


def _seen(expectation: Expectation, wrong: Values) -> frozenset[Blank]:
    """The boxes that say what a misconception expects there."""
    return frozenset(blank for blank, size in expectation.changed.items() if wrong.get(blank) == size)


def _worked_out(variant: Variant, wrong: Values, one: Expectation, other: Expectation) -> Iterator[Blank]:
    """Amounts worked out with both misconceptions: the errors of a sum added up, or the factors of a product
    multiplied.
    """
    for blank in one.changed.keys() & other.changed.keys() & wrong.keys():
        truth, first, second = variant.key[blank], one.changed[blank], other.changed[blank]
        if blank.field == "count" and wrong[blank] in (first + second - truth, first * second // truth):
            yield blank


def _fit(
    variant: Variant, values: Values, wrong: Values, held: tuple[Expectation, ...], explained: frozenset[Blank]
) -> Iterator[Fit]:
    """Nothing where more is left than one slip, a third of what is explained, and as many right boxes as half of it."""
    if len(explained) == 1 and _is_slip_alone(variant, {p: wrong[p] for p in explained}):
        return
    changed = {blank for e in held for blank in e.changed}
    contradicted = sum(blank in values and blank not in wrong for blank in changed)
    left = [blank for blank in wrong if blank not in explained]
    if len(left) - 1 > len(explained) // 3 or contradicted > len(explained) // 2:
        return
    slipped = any(_is_slip(wrong[p], meant) for p in left for meant in _meant(variant, p, held))
    unexplained = len(left) - slipped
    if unexplained > len(explained) // 3:
        return
    cost = (
        SLIP * slipped
        + CONTRADICTED * contradicted
        + UNEXPLAINED * unexplained
        + SECOND_MISCONCEPTION * (len(held) - 1)
    )
    unseen = sum(values.get(blank) != size for e in held for blank, size in e.changed.items())
    yield Fit(held, explained, cost, unseen)


def _meant(variant: Variant, blank: Blank, held: Iterable[Expectation]) -> Iterator[int]:
    """What a box may have been meant to say: what a misconception expects there, else the truth."""
    expected = [e.changed[blank] for e in held if blank in e.changed]
    yield from expected or [variant.key[blank]]


def _is_slip_alone(variant: Variant, wrong: Values) -> bool:
    return len(wrong) == 1 and all(_is_slip(value, variant.key[blank]) for blank, value in wrong.items())


def _is_slip(typed: int, meant: int) -> bool:
    """Whether one digit was mistyped, left out or added, or two neighbours were changed round.

    A zero that then came first is gone: 96 for 4096.
    """
    short, long = sorted((typed, meant))
    digits, width = str(long), len(str(long))
    return _is_alike(str(short).zfill(width), digits) or any(
        digits[:at] + digits[at + 1 :] == str(short).zfill(width - 1) for at in range(width)
    )


def _is_alike(one: str, other: str) -> bool:
    """Whether all digits but one are the same, or two neighbours are changed round."""
    differ = [at for at, (first, second) in enumerate(zip(one, other, strict=True)) if first != second]
    if len(differ) == 2 and differ[1] == differ[0] + 1:
        return one[differ[0]] == other[differ[1]] and one[differ[1]] == other[differ[0]]
    return len(differ) == 1
