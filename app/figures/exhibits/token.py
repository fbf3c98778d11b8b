"""One more token: its key and value join the cached rows, its one query gets one line of scores.

Every token has one row, in the cache and among the scores, so that the lines form the triangle of the causal mask:

                                        The capital of …
        The   ┌────┐ ┌────┐             ┌┐
    capital   │ K' │ │ V' │             └┘┐
         of   └────┘ └────┘             └┴┘┐
     France   [ k  ] [ v  ] [ q  ]      [  s  ]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.algebra.number_text import format_number
from app.figures.exhibits.axes import DECODER_WORDS, ENCODER_WORDS
from app.figures.exhibits.decode_steps import DecodeStep, decode_steps
from app.figures.exhibits.frames import Exhibit, Frame, FrameDrawing, Part, PathMark, RectangleMark, TextMark
from app.figures.lettering import label_px
from app.sheets.variant import Variant
from app.translation import gettext as _
from app.translation import ngettext

_ROW_PX, _GAP_PX = 16.0, 2.0  # a row's height, and the gap between two
_PITCH_PX = _ROW_PX + _GAP_PX
_CELL_PX = 14.0  # the width of one score
_MATRIX_PX = 44.0  # the least width of K, V and q
_BETWEEN_PX = 10.0  # between two matrices
_TEXT_PX = 7.0  # between a name and its row
_LETTER_PX = 24.0  # the line of the letters above the matrices
_LINE_PX = 15.0  # between the two lines of a shape
_MARGIN_PX = 4.0
_SHAPE_SCALE = 13 / 12  # type size of shapes relative to names, as in exhibits.css


def token_exhibit(variant: Variant) -> Exhibit:
    """The exhibit for the model and the number of cached tokens of a decode-step sheet."""
    steps = steps_of(variant)
    grid = _Grid.of(variant, steps)
    frames = list[Frame]()
    for number, (step, following) in enumerate(zip(steps, (*steps[1:], None), strict=True), 1):
        drawing = FrameDrawing(grid.width, grid.height, _alt_text(grid, step), tuple(_parts(grid, step)))
        question = _question(grid, step, following)
        frames.append(Frame(number, f"token-{step.tokens}", _sentence(grid, step), drawing, question))
    about = _("With a KV cache, each new token adds one row to K and V and has one query. Its scores are one row.")
    return Exhibit("token", _("One more token"), about, tuple(frames))


def steps_of(variant: Variant) -> tuple[DecodeStep, ...]:
    return decode_steps(variant.architecture, variant.tokens, len(ENCODER_WORDS))


@dataclass(frozen=True)
class _Row:
    """A row of the picture: its label, and the tokens that it represents, counted from 0."""

    label: str
    tokens: range


def _rows(words: Sequence[str], step: DecodeStep) -> list[_Row]:
    rows = [_Row(word, range(index, index + 1)) for index, word in enumerate(words[: step.tokens])]
    between = range(len(words), step.cached)
    if between:
        rows.append(_Row("⋯" if len(between) > 1 else format_number(between[0] + 1), between))
    if step.cached >= len(words):
        rows.append(_Row(format_number(step.tokens), range(step.cached, step.tokens)))
    return rows


@dataclass(frozen=True)
class _Grid:
    """The places of rows and columns, the same in all frames."""

    variant: Variant
    words: tuple[str, ...]
    rows: int
    matrix_px: float
    left: float
    top: float

    @classmethod
    def of(cls, variant: Variant, steps: Sequence[DecodeStep]) -> _Grid:
        """A grid with room for all frames: for the most rows and for the longest words and shapes."""
        words = DECODER_WORDS if variant.architecture.encoder_decoder else ENCODER_WORDS
        rows = [_rows(words, step) for step in steps]
        labels = [label_px(row.label) for each in rows for row in each]
        shapes = [label_px(text) for step in steps for key in ("keys", "values") for text in _shape_lines(step, key)]
        return cls(
            variant,
            words,
            max(map(len, rows)),
            max(_MATRIX_PX, _SHAPE_SCALE * max(shapes) + 4 - _BETWEEN_PX),
            _MARGIN_PX + max(labels) + _TEXT_PX,
            max(labels) + 2 * _TEXT_PX + _LETTER_PX,
        )

    @cached_property
    def columns(self) -> dict[str, float]:
        """The left ends of K, V, q and the scores."""
        pitch = self.matrix_px + _BETWEEN_PX
        return {key: self.left + index * pitch for index, key in enumerate(("keys", "values", "queries", "scores"))}

    @property
    def width(self) -> float:
        return self.columns["scores"] + max(self.rows * _CELL_PX, 3 * _MATRIX_PX / 2) + _MARGIN_PX

    @property
    def height(self) -> float:
        """The height of the picture, with the shapes below the rows."""
        return self.bottom + 2 * _LINE_PX + _MARGIN_PX

    @property
    def bottom(self) -> float:
        return self.top + self.rows * _PITCH_PX

    def y(self, row: int) -> float:
        return self.top + row * _PITCH_PX

    def letter(self, step: DecodeStep, key: str) -> str:
        """The letter of a matrix in the sheet's notation."""
        return self.variant.notation.letter(key, step.table[key].letter)


def _shape_lines(step: DecodeStep, key: str, *, anew: bool = False) -> tuple[str, str]:
    rows, columns = step.shape(key, anew=anew)
    return format_number(rows), f"× {format_number(columns)}"


# The picture


def _parts(grid: _Grid, step: DecodeStep) -> Iterator[Part]:
    rows = _rows(grid.words, step)
    yield _room(grid)
    yield from _names(grid, rows)
    for index, row in enumerate(rows):
        yield from _row_parts(grid, step, rows, index, row)
    yield _letters(grid, step)
    yield _shapes(grid, step, anew=False)
    yield _shapes(grid, step, anew=True)


def _room(grid: _Grid) -> Part:
    height = grid.rows * _PITCH_PX - _GAP_PX
    widths = {"keys": grid.matrix_px, "values": grid.matrix_px, "scores": grid.rows * _CELL_PX - 1}
    places = tuple(RectangleMark(grid.columns[key], grid.top, width, height, "room") for key, width in widths.items())
    return Part("room", places)


def _names(grid: _Grid, rows: Sequence[_Row]) -> Iterator[Part]:
    for index, row in enumerate(rows):
        x, y = grid.columns["scores"] + (index + 0.5) * _CELL_PX + 4, grid.top - _TEXT_PX
        css = "tokens axis" + " now" * (index == len(rows) - 1)
        at_row = TextMark(grid.left - _TEXT_PX, grid.y(index) + _ROW_PX / 2 + 4, row.label, css, "end")
        yield Part(f"name-{_key(row)}", (at_row, TextMark(x, y, row.label, css, turn=-90)))


def _key(row: _Row) -> str:
    return f"{row.tokens[0]}" if len(row.tokens) == 1 else "between"


def _row_parts(grid: _Grid, step: DecodeStep, rows: Sequence[_Row], index: int, row: _Row) -> Iterator[Part]:
    is_new, is_dropped = index == len(rows) - 1, row.tokens[-1] < step.dropped
    state = "new" if is_new else "dropped" if is_dropped else "kept"
    y = grid.y(index)
    start = {"from": f"0 {grid.bottom + _PITCH_PX - y:.0f}"} if is_new else {}
    for letter, key in (("k", "keys"), ("v", "values")):
        css = f"{step.table[key].role} {state}"
        body = RectangleMark(0.0, 0.0, grid.matrix_px, _ROW_PX, "row")
        yield Part(f"{letter}-{_key(row)}", (body,), grid.columns[key], y, css, start)
    query = RectangleMark(0.0, 0.0, grid.matrix_px, _ROW_PX, "row")
    role = step.table["queries"].role
    yield Part(f"q-{_key(row)}", (query,), grid.columns["queries"], y, f"{role} {'new' if is_new else 'gone'}")
    line = PathMark(_cells(step, rows, index), "row")
    role = step.table["scores"].role
    css = f"{role} {'new' if is_new else 'kept'}"
    yield Part(f"s-{_key(row)}", (line, _hidden(grid, rows, index)), grid.columns["scores"], y, css, start)


def _cells(step: DecodeStep, rows: Sequence[_Row], index: int) -> str:
    cells, window = list[str](), step.keys if step.dropped else step.tokens
    asking = rows[index].tokens
    for column, row in enumerate(rows[: index + 1]):
        visible = [row.tokens[-1] > token - window for token in (asking[0], asking[-1])]
        if any(visible):
            height = _ROW_PX if all(visible) else _ROW_PX / 2
            cells.append(f"M{column * _CELL_PX:g} 0h{_CELL_PX - 1:g}v{height:g}h-{_CELL_PX - 1:g}z")
    return "".join(cells)


def _hidden(grid: _Grid, rows: Sequence[_Row], index: int) -> RectangleMark:
    x = (index + 1) * _CELL_PX
    return RectangleMark(x, 0.0, max(0.0, grid.rows * _CELL_PX - 1 - x), _ROW_PX, "later")


def _letters(grid: _Grid, step: DecodeStep) -> Part:
    middle = {key: x + grid.matrix_px / 2 for key, x in grid.columns.items()}
    places = {key: (middle[key], grid.top - _TEXT_PX - 6) for key in ("keys", "values", "queries")}
    places["scores"] = (grid.columns["scores"] + grid.rows * _CELL_PX / 2, _LETTER_PX / 2)
    marks = (
        TextMark(x, y, grid.letter(step, key), "letter", "middle", is_symbol=True) for key, (x, y) in places.items()
    )
    return Part("letters", tuple(marks))


def _shapes(grid: _Grid, step: DecodeStep, *, anew: bool) -> Part:
    marks, y = list[TextMark](), grid.bottom + _LINE_PX - 2
    for key in ("keys", "values", "queries"):
        x = grid.columns[key] + grid.matrix_px / 2
        lines = zip(_shape_lines(step, key, anew=anew), ("tokens size", "head size"), (y, y + _LINE_PX), strict=True)
        marks += [TextMark(x, line_y, text, css, "middle") for text, css, line_y in lines]
    line = " ".join(_shape_lines(step, "scores", anew=anew))
    marks.append(TextMark(grid.columns["scores"] + grid.rows * _CELL_PX / 2, y, line, "tokens size", "middle"))
    return Part("shapes-anew" if anew else "shapes", tuple(marks), css="gone" if anew else "cached")


# The sentences


def _alt_text(grid: _Grid, step: DecodeStep) -> str:
    keys = ("keys", "values", "queries", "scores")
    return ", ".join(f"{grid.letter(step, key)} {' '.join(_shape_lines(step, key))}" for key in keys) + "."


def _sentence(grid: _Grid, step: DecodeStep) -> str:
    words = {
        "word": _rows(grid.words, step)[-1].label,
        "cached": format_number(step.cached),
        "tokens": format_number(step.tokens),
        "keys": format_number(step.keys),
        "dropped": format_number(step.dropped),
        "layers": step.layers[0],
        "all_layers": step.layers[1],
        **{f"{key}_letter": grid.letter(step, key) for key in ("keys", "values", "queries")},
    }
    return _form(grid, step).format(**words)


def _form(grid: _Grid, step: DecodeStep) -> str:
    if step.layers[0]:
        return _(
            "In {layers} of the {all_layers} layers the window of {keys} keys is full now: token {tokens} pushes the "
            "oldest row out of {keys_letter} and {values_letter}, and its line of scores is no longer than the last. "
            "The other layers keep all rows."
        )
    if step.dropped:
        return _(
            "The window of {keys} keys is full: each new token pushes the oldest row out of {keys_letter} and "
            "{values_letter}. Token {tokens} again gets {keys} scores, and no longer attends to the beginning of the "
            "text."
        )
    if step.cached >= len(grid.words):
        return _(
            "And so on, a row of each matrix for each token. Token {tokens} finds {cached} rows cached: its scores are "
            "one row of {keys}. Together these rows form a triangle. Where all tokens are computed at once, a causal "
            "mask hides the hatched part."
        )
    if step.cached:
        return ngettext(
            "“{word}” adds one row to {keys_letter} and one to {values_letter}, which had one row each. Its query "
            "{queries_letter} is one row too, compared with {keys} keys: one row of {keys} scores.",
            "“{word}” adds one row to {keys_letter} and one to {values_letter}, which had {cached} rows each. Its "
            "query {queries_letter} is one row too, compared with {keys} keys: one row of {keys} scores.",
            step.cached,
        )
    return _(
        "“{word}” is the first token, so nothing is cached yet. Its key and its value are the first rows of "
        "{keys_letter} and {values_letter}, and its query {queries_letter} is compared with one key: its own."
    )


def _question(grid: _Grid, step: DecodeStep, following: DecodeStep | None) -> str:
    if following is None:
        return ""
    if following.dropped and not step.dropped:
        full = _("After {cached} tokens, the window is full. What is the shape of the next token’s scores?")
        if following.layers[0]:
            full = _("After {cached} tokens, the window of some layers is full. What is the shape of the scores there?")
        return full.format(cached=format_number(following.cached))
    if following.cached > len(grid.words) and step.cached < len(grid.words):
        cached = format_number(following.cached)
        return _("What is the shape of the scores after {cached} cached tokens?").format(cached=cached)
    if following.cached == 3:
        return _("What is the shape of the next token’s scores?")
    return ""
