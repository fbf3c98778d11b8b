"""A real head's stages as its page shows them: open, asked, or still ahead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from app.checkpoints.checkpoint import StoredPart, StoredTensor
from app.classes.sheet_work import PracticeWork
from app.figures.heat_map import decimal
from app.forward.real_head import RealHead
from app.grading.grade import Report, grade
from app.grading.hints import HintLevel, next_hint_level, write_hint
from app.sheets.head_stages import HeadStage, StageKey, hidden_by_tokens, sizes_like
from app.sheets.variant import Row, Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import Model
from app.store import Store
from app.topics.single_head import SINGLE_HEAD
from app.topics.stored_weights import FIRST_PARAMETER
from app.translation import gettext as _
from app.web.shared.sheet_view import Note, RowView, first_to_fix, reason_note, row_views, sheet_notes

# The run's tensors in symbols, by key.
SHAPES_OF_RUN = {"mask": SINGLE_HEAD["scores"].shape, **{each.key: each.shape for each in SINGLE_HEAD.tensors}}
ALL_STAGES = "all"  # in an address, instead of the keys of skipped stages
FIRST_ROWS, FIRST_COLUMNS = 8, 4  # the part of a matrix whose numbers are shown


@dataclass(frozen=True)
class ShapeLine:
    """One row of an open stage: what it asked, the answer in symbols and numbers, torch's shape, and why.

    `observed` is empty for what isn't a tensor of the run.
    """

    row: Row
    symbols: str
    numbers: str
    observed: str
    reason: Note


@dataclass(frozen=True)
class NumberTable:
    """The first rows and columns of a matrix of the run: its letter, its name, and a row per token.

    `row_count` and `column_count` are the whole matrix's.
    """

    letter: str
    name: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # token, its numbers
    row_count: int
    column_count: int

    @property
    def is_cut(self) -> bool:
        """Whether columns are left out."""
        return self.column_count > FIRST_COLUMNS


@dataclass(frozen=True)
class PartLine:
    """One parameter in the file, and this head's part of it: rows, columns or entries `first` to `last`.

    Both are included and count from 0; `total` is how many the tensor has.
    """

    part: StoredPart
    whole: bool  # this head's part is the whole tensor
    axis: Literal["rows", "columns", "entries"]
    first: int
    last: int
    total: int
    is_square: bool  # its shape doesn't show whether it is transposed
    notes: tuple[str, ...]

    @property
    def shape(self) -> str:
        """The stored shape as PyTorch prints it."""
        return str(self.part.stored.shape)


@dataclass(frozen=True)
class StageView:
    """One stage on the page, with its number, from 1."""

    number: int
    key: StageKey
    title: str
    state: Literal["open", "asked", "ahead"]
    variant: Variant | None = None
    lines: tuple[ShapeLine, ...] = ()
    tables: tuple[NumberTable, ...] = ()
    rows: tuple[RowView, ...] = ()
    report: Report | None = None
    notes: tuple[Note, ...] = ()
    next_hint: HintLevel | None = None
    focused: str = ""


@dataclass(frozen=True)
class Coincidences:
    """What this number of tokens can't show: sizes that equal it, and misconceptions that stay hidden."""

    sizes: tuple[str, ...]
    hidden: tuple[str, ...]


def stage_views(
    real_head: RealHead,
    stages: Collection[HeadStage],
    store: Store,
    visitor_token: str,
    skipped: Collection[str],
    *,
    hint: HintLevel | None,
    is_checked: bool,
) -> tuple[StageView, ...]:
    """The stages in order: open up to the first that is neither right nor skipped, which is asked; the rest
    are ahead.
    """
    views, is_ahead = list[StageView](), False
    for number, stage in enumerate(stages, start=1):
        variant = stage.variant
        if is_ahead:
            views.append(StageView(number, stage.key, stage.title, "ahead"))
            continue
        was_skipped = stage.key in skipped or ALL_STAGES in skipped
        work = (
            PracticeWork.find(store, visitor_token, variant) if variant and visitor_token and not was_skipped else None
        )
        answers = work.draft.answers if work and work.draft else {}
        report = grade(variant, answers) if variant and any(answers.values()) else None
        if variant is None or was_skipped or (report and report.complete):
            lines, tables = tuple(_lines(real_head, variant)), tuple(_tables(real_head, stage.key))
            views.append(StageView(number, stage.key, stage.title, "open", variant, lines, tables))
            continue
        hinted = write_hint(variant, report, hint) if report and hint else None
        pointed_at = hinted.blanks if hinted else ()
        notes = sheet_notes(variant, answers, report, hinted, mismatch=True)
        rows = row_views(variant, answers, report, pointed_at=pointed_at, notes=notes, explains=True)
        asked = StageView(
            number,
            stage.key,
            stage.title,
            "asked",
            variant,
            rows=tuple(_as_in_file(real_head, view) for view in rows),
            report=report,
            notes=notes,
            next_hint=next_hint_level(variant, report, hinted),
            focused=(first_to_fix(rows) or rows[0].boxes[0].name) if is_checked else "",
        )
        views.append(asked)
        is_ahead = True
    return tuple(views)


def _as_in_file(real_head: RealHead, view: RowView) -> RowView:
    stored = _stored_tensor(real_head, view.row.key)
    return replace(view, row=replace(view.row, note=stored.name)) if stored else view


def _stored_tensor(real_head: RealHead, row: str) -> StoredTensor | None:
    parameter = FIRST_PARAMETER.get(row)
    return next((part.stored for part in real_head.parts if part.variable == parameter), None)


def coincidences(model: Model, wording: Wording, variant: Variant) -> Coincidences:
    """What this sheet's number of tokens hides on the sheet of a whole head."""
    names = (wording.misconception_name(key) for key in hidden_by_tokens(model, wording, variant.tokens))
    return Coincidences(sizes_like(variant), tuple(names))


def part_lines(real_head: RealHead) -> tuple[PartLine, ...]:
    """Every parameter of the head, in the order of the run, with its place in the file's tensor and its notes."""
    meanings = {
        "permuted": _("GGUF stores the rows of each head in another order, which is undone."),
        "fused": _("One tensor holds queries, keys and values."),
        "shared": _("Several query heads read this key/value head."),
        "plus-one": _("1 is added to the stored numbers."),
    }
    lines = []
    for part in real_head.parts:
        shape = part.stored.shape
        total = shape[part.dim] if shape else 1
        line = PartLine(
            part,
            whole=part.length == total,
            axis="entries" if len(shape) < 2 else "columns" if part.dim else "rows",
            first=part.start,
            last=part.start + part.length - 1,
            total=total,
            is_square=len(shape) == 2 and shape[0] == shape[1],
            notes=tuple(meanings[word] for word in part.notes),
        )
        lines.append(line)
    return tuple(lines)


def _lines(real_head: RealHead, variant: Variant | None) -> Iterator[ShapeLine]:
    if variant is None:
        return
    for row in variant.rows:
        sides = [variant.notation.write(variant.expression(blank)) for blank in row.blanks]
        symbols = " × ".join(f"({side})" if " + " in side and len(sides) > 1 else side for side in sides)
        numbers = " × ".join(variant.written_answer(blank, in_symbols=False) for blank in row.blanks)
        symbols = "" if symbols == numbers else symbols  # a number that is the same in every model
        reason = reason_note(variant, row, works_out=True)
        yield ShapeLine(row, symbols, numbers, _observed(real_head, variant, row), reason)


def _observed(real_head: RealHead, variant: Variant, row: Row) -> str:
    arrays = {**real_head.arrays, "mask": real_head.mask}
    if row.key in arrays and variant.table[row.key].shape == SHAPES_OF_RUN.get(row.key):
        return str(arrays[row.key].shape)
    stored = _stored_tensor(real_head, row.key)
    return str(stored.shape) if stored else ""


# The arrays whose first numbers an open stage shows, with their letters.
_SHOWN: Mapping[StageKey, tuple[tuple[str, str], ...]] = {
    "input": (("embeddings", ""), ("input", "X")),
    "projections": (("values", "V"),),
    "rope": (("queries", "Q"), ("keys", "K")),
    "context": (("context", "C"), ("output", "O")),
}


def _tables(real_head: RealHead, key: StageKey) -> Iterator[NumberTable]:
    architecture = real_head.architecture
    embeddings = _("What the first layer receives: a row of the embedding for each token")
    if architecture.embedding_scale:
        embeddings = _("What the first layer receives: for each token its row of the embedding, scaled by the model")
    elif architecture.usable_positions is not None:
        embeddings = _(
            "What the first layer receives: for each token its row of the embedding, plus its position’s row"
        )
    names = {
        "embeddings": embeddings,
        "input": _("Input of this head, after the layer’s norm"),
        "queries": _("Queries"),
        "keys": _("Keys"),
        "values": _("Values"),
        "context": _("Context"),
        "output": _("Output"),
    }
    shown = _SHOWN.get(key, ())
    if key == "projections" and not architecture.rotary:
        shown = (*_SHOWN["rope"], *shown)
    for array, letter in shown:
        matrix = real_head.arrays[array]
        rows = tuple(
            (token.text, tuple(decimal(number, 3) for number in numbers[:FIRST_COLUMNS]))
            for token, numbers in zip(real_head.tokens[:FIRST_ROWS], matrix, strict=False)
        )
        yield NumberTable(letter, names[array], rows, *matrix.shape)
