"""The sentences of a sheet in steps: the question that asks for a row and, once it is right, the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from string import Formatter

from app.algebra.number_text import format_number
from app.shapes.table import Blank
from app.sheets.formulas import write_formula
from app.sheets.variant import Variant
from app.sheets.wording import fitting_text

_NO_BREAK = "\u00a0"  # a non-breaking space


@dataclass(frozen=True)
class StepSentences:
    """A step's question and, once it is answered, a follow-up question with the reason; both give the answer away."""

    question: str
    why: str
    reason: str


@dataclass(frozen=True)
class _Matrix:
    """A matrix in a sentence: {queries} is its letter; {queries.shape} and {queries.formula} work as well."""

    letter: str
    shape: str
    formula: str

    def __str__(self) -> str:
        return self.letter


def step_of(variant: Variant, row: str) -> StepSentences | None:
    """The step that asks for a row, in the sheet's letters and with the model's numbers, or None."""
    if variant.frozen:
        said = variant.frozen.row(row)
        return StepSentences(**said["step"]) if said and said["step"] else None
    wording = variant.topic_wording.steps.get(row)
    if wording is None:
        return None
    sizes = {symbol: format_number(size) for symbol, size in variant.sizes.items()}
    matrices = {tensor.key: _matrix(variant, tensor.key) for tensor in variant.table.tensors}
    words = {
        **sizes,
        **matrices,
        "d_h-symbol": variant.notation.symbol("d_h"),
        "pairs": format_number(variant.tokens**2),
        "each-query": variant.wording.say("formulas", "each-query"),
    }
    question, reason = (fitting_text(forms, variant.problem) for forms in (wording.question, wording.reason))
    return StepSentences(*(sentence.format_map(words) for sentence in (question, wording.why, reason)))


def rows_so_far(variant: Variant, filled_in: Collection[Blank], step: str = "") -> tuple[str, ...]:
    """The rows of a sheet in steps up to the one being asked: `step`, or the first with an empty box."""
    rows = list[str]()
    for row in variant.rows:
        rows.append(row.key)
        if row.key == step or (not step and not all(blank in filled_in for blank in row.blanks)):
            break
    return tuple(rows)


def given_matrices(variant: Variant, rows: Collection[str]) -> Iterator[str]:
    """Yield the inputs and parameters in these rows' questions that the sheet doesn't ask for."""
    for row in rows:
        if wording := variant.topic_wording.steps.get(row):
            question = fitting_text(wording.question, variant.problem)
            names = (name or "" for _text, name, _spec, _conversion in Formatter().parse(question))
            named = {name.removesuffix(".shape") for name in names} & variant.table.by_key.keys()
            yield from (key for key in named - {*variant.worksheet.rows} if variant.table[key].made_by is None)


def _matrix(variant: Variant, key: str) -> _Matrix:
    lengths = (format_number(side.size(variant.sizes)) for side in variant.table[key].shape)
    shape = " × ".join(lengths).replace(" ", _NO_BREAK)
    return _Matrix(variant.letters[key], shape, write_formula(variant, key).replace(" · ", f"{_NO_BREAK}·{_NO_BREAK}"))
