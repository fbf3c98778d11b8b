"""One head's attention as a heat map, from Q·Kᵀ to the weights: each stage's numbers, drawing, SVG and PNG.

Weights go from the colour of the paper to one hue, scores from one hue through the paper to another. Cells differ in
the opacity of their hue, so that luminance changes steadily on light and dark paper.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from app.figures.geometry import LABEL_PX, Rect, label_px
from app.figures.svg import escaped
from app.models.score_scale import ScoreScale
from app.translation import gettext as _

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

StageKey = Literal["products", "scaled", "masked", "weights", "rest"]
Hue = Literal["plus", "minus"]
Screen = Literal["", "desk", "phone"]

MOST_CELLS = 48  # rows and columns of a picture
MOST_SMALL_CELLS = 24  # in a small multiple
HEAT_LEVELS, SMALL_LEVELS = 24, 8
LARGEST_CELL_PX, PLOT_PX = 34.0, 528.0
GUTTER_PX = 104.0  # the most room for the tokens at the sides
NARROWEST_PX = 300.0  # a whole drawing, with room for the colour key
PHONE_PX, PHONE_LABEL_PX = 320.0, 10.5  # how wide a drawing is on a phone, and how large its labels are there
RAMP_STEPS, RAMP_PX = 6, 11.0
# The colours of a file, and of a page in light colours; css/heads.css repeats them, and has the dark pages' colours.
LIGHT_PAPER, LIGHT_INK, LIGHT_SOFT = "#fbfaf6", "#1d1c1a", "#625e57"
HUES: Mapping[Hue, str] = {"plus": "#46247f", "minus": "#a34e06"}
PNG_SCALE = 2
LAST_LATIN = 0x180  # up to here Pillow's font has the letters


@dataclass(frozen=True)
class HeadNumbers:
    """The numbers behind one head's pictures: M queries of N keys, as float32 arrays."""

    name: str
    queries: np.ndarray
    keys: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    mask: np.ndarray
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    scale: ScoreScale
    softcap: float | None = None
    has_bias: bool = False
    first_query: int = 0

    @cached_property
    def products(self) -> np.ndarray:
        """Q·Kᵀ, (M, N)."""
        products: np.ndarray = self.queries @ self.keys.T
        return products

    def last_row(self) -> HeadNumbers:
        """Only the last query, (1, N), with all keys and its place in the text: what a decode step computes."""
        rows = {"queries": self.queries, "scores": self.scores, "weights": self.weights, "mask": self.mask}
        last: dict[str, Any] = {name: numbers[-1:] for name, numbers in rows.items()}
        first_query = self.first_query + len(self.queries) - 1
        return replace(self, **last, query_tokens=self.query_tokens[-1:], first_query=first_query)


@dataclass(frozen=True)
class Cells:
    """The cells of a picture: means over squares of `side` rows and columns, fewer at the right and lower end."""

    values: np.ndarray
    hidden: np.ndarray
    row_starts: range
    column_starts: range

    @property
    def side(self) -> int:
        """How many columns (and, with more than one row, rows) a cell stands for."""
        return self.column_starts.step

    @property
    def largest(self) -> float:
        """The largest absolute value, at the end of the colours; 1 if all are 0."""
        import numpy as np

        return float(np.abs(self.values).max()) or 1.0


class Label(NamedTuple):
    """A text of a drawing, which begins or `ends` at x, y; if `turned`, it runs upwards. `screen` "" means every
    screen.
    """

    x: float
    y: float
    text: str
    size: float = LABEL_PX
    screen: Screen = ""
    ends: bool = False
    turned: bool = False
    soft: bool = False


@dataclass(frozen=True)
class HeatDrawing:
    """A heat map with its axes and its colour key, in px.

    areas: rectangles by hue and level, from 1 to HEAT_LEVELS. masked: hatched rectangles. plot: the cells' outline.
    """

    width: float
    height: float
    plot: Rect
    areas: Mapping[tuple[Hue, int], Sequence[Rect]]
    masked: Sequence[Rect]
    labels: Sequence[Label]


def stages(numbers: HeadNumbers) -> tuple[StageKey, ...]:
    """The stages that a head goes through, without "scaled" if nothing is scaled."""
    is_scaled = numbers.scale.kind != "none" or numbers.softcap is not None or numbers.has_bias
    return ("products", "scaled", "masked", "weights") if is_scaled else ("products", "masked", "weights")


def stage_numbers(numbers: HeadNumbers, stage: StageKey) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a stage, and which of them are hidden (bool): both (M, N), or (M, N - 1) for "rest"."""
    import numpy as np

    hidden = ~numbers.mask
    match stage:
        case "products":
            return numbers.products, np.zeros_like(hidden)
        case "scaled":
            return numbers.scores, np.zeros_like(hidden)
        case "masked":
            return numbers.scores, hidden
        case "weights":
            return numbers.weights, hidden
        case "rest":
            rest = numbers.weights[:, 1:]
            sums = rest.sum(axis=1, keepdims=True)
            return np.divide(rest, sums, out=np.zeros_like(rest), where=sums > 0), hidden[:, 1:]


def cells(values: np.ndarray, hidden: np.ndarray, most: int = MOST_CELLS) -> Cells:
    """The numbers as at most `most` × `most` means over squares, with each cell's first row and column."""
    import numpy as np

    rows, columns = values.shape
    side = max(1, math.ceil(max(rows, columns) / most))
    starts = range(0, rows, side), range(0, columns, side)
    if side == 1:
        return Cells(np.where(hidden, 0, values).astype(np.float64), hidden, *starts)

    def sums(numbers: np.ndarray) -> np.ndarray:
        bands = np.add.reduceat(numbers.astype(np.float64), list(starts[0]), axis=0)
        return np.add.reduceat(bands, list(starts[1]), axis=1)

    counts = sums(~hidden)
    means = np.divide(sums(np.where(hidden, 0, values)), counts, out=np.zeros_like(counts), where=counts > 0)
    return Cells(means, counts == 0, *starts)


def first_token_share(numbers: HeadNumbers) -> tuple[float, float] | None:
    """The mean weight on the first key over all later queries, and what it would be if each row were even."""
    import numpy as np

    later = np.arange(len(numbers.mask)) + numbers.first_query > 0
    if not later.any() or not numbers.mask[:, 0].all():
        return None
    even = 1 / numbers.mask[later].sum(axis=1)
    return float(numbers.weights[later, 0].mean()), float(even.mean())


def draw_stage(numbers: HeadNumbers, stage: StageKey) -> HeatDrawing:
    """Draw a stage as a heat map, queries from top to bottom and keys from left to right."""
    drawn = cells(*stage_numbers(numbers, stage))
    key_tokens = numbers.key_tokens[1:] if stage == "rest" else numbers.key_tokens
    is_share = stage in ("weights", "rest")
    rows, columns = len(drawn.row_starts), len(drawn.column_starts)
    width = min(LARGEST_CELL_PX, PLOT_PX / columns)
    height = width if rows > 1 else max(width, 24.0)
    row_labels = {row: numbers.query_tokens[start] for row, start in enumerate(drawn.row_starts)}
    column_labels = {column: key_tokens[start] for column, start in enumerate(drawn.column_starts)}
    # Labels for phones are larger, and get some room for that.
    room = 1.0 if columns * width + GUTTER_PX < PHONE_PX * 1.3 else 1.35
    left = max(_gutter(row_labels, height, room), room * label_px(_("queries")) + 8)
    above = _gutter(column_labels, width, room)
    whole = max(NARROWEST_PX, left + columns * width + 8)
    phone = PHONE_LABEL_PX * whole / PHONE_PX
    sizes: tuple[tuple[Screen, float], ...] = (("", LABEL_PX),)
    if phone > LABEL_PX + 1:
        sizes = (("desk", LABEL_PX), ("phone", phone))
    top = above + max(LABEL_PX, phone) + 8
    plot = Rect(left, top, columns * width, rows * height)
    areas, masked = _areas(drawn, plot, HEAT_LEVELS, signed=not is_share)
    labels = list[Label]()
    for screen, size in sizes:
        for row in range(0, rows, _label_step(size, height)):
            middle = plot.y + (row + 0.5) * height + size * 0.36
            labels.append(Label(left - 6, middle, _fitting(row_labels[row], left - 8, size), size, screen, ends=True))
        for column in range(0, columns, _label_step(size, width)):
            middle = plot.x + (column + 0.5) * width + size * 0.36
            token = _fitting(column_labels[column], above - 4, size)
            labels.append(Label(middle, top - 6, token, size, screen, turned=True))
        labels.append(Label(left - 6, top - 6, _("queries"), size, screen, ends=True, soft=True))
        labels.append(Label(plot.right, size, _("keys"), size, screen, ends=True, soft=True))
    bottom = _add_ramp(drawn, plot.bottom + 14, sizes, areas, masked, labels, is_share=is_share)
    return HeatDrawing(whole, bottom, plot, areas, masked, labels)


def heat_svg(drawing: HeatDrawing, alt_text: str, key: str, *, for_file: bool = False) -> str:
    """A drawing as an <svg> image named by `alt_text`; `key` keeps its ids apart from others'."""
    width, height = f"{drawing.width:.0f}", f"{drawing.height:.0f}"
    space = ' xmlns="http://www.w3.org/2000/svg" font-family="Figtree, sans-serif"' if for_file else ""
    parts = [
        f'<svg{space} class="heat" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escaped(alt_text)}">',
        f'<rect width="{width}" height="{height}" fill="{LIGHT_PAPER}"/>' if for_file else "",
        f'<pattern id="masked-{key}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<path class="soft" fill="none" stroke="{LIGHT_SOFT}" stroke-opacity=".45" d="M0 0v6"/></pattern>',
    ]
    for (hue, level), rects in sorted(drawing.areas.items()):
        opacity = f"{level / HEAT_LEVELS:.3f}".lstrip("0")
        path = "".join(_rect_path(rect) for rect in rects)
        parts.append(f'<path class="{hue}" fill="{HUES[hue]}" fill-opacity="{opacity}" d="{path}"/>')
    if drawing.masked:
        path = "".join(_rect_path(rect) for rect in drawing.masked)
        parts.append(f'<path fill="url(#masked-{key})" d="{path}"/>')
    x, y, plot_width, plot_height = (f"{number:.1f}" for number in drawing.plot)
    parts.append(
        f'<rect class="frame" fill="none" stroke="{LIGHT_SOFT}" stroke-opacity=".6" x="{x}" y="{y}" '
        f'width="{plot_width}" height="{plot_height}"/>'
    )
    parts += [_text(label) for label in drawing.labels if not (for_file and label.screen == "phone")]
    return "".join((*parts, "</svg>"))


def heat_png(drawing: HeatDrawing) -> bytes:
    """A drawing as a PNG in light colours, twice as large as the SVG, without labels for phones."""
    from PIL import Image, ImageDraw

    size = (math.ceil(drawing.width * PNG_SCALE), math.ceil(drawing.height * PNG_SCALE))
    image = Image.new("RGB", size, LIGHT_PAPER)
    pen = ImageDraw.Draw(image)
    for (hue, level), rects in drawing.areas.items():
        for rect in rects:
            pen.rectangle(_pixels(rect), fill=mixed(HUES[hue], level / HEAT_LEVELS))
    for rect in drawing.masked:
        left, top, right, bottom = _pixels(rect)
        for start in range(left - (bottom - top), right, 6 * PNG_SCALE):
            low, high = max(left, start), min(right, start + bottom - top)
            pen.line([(low, top + low - start), (high, top + high - start)], fill=mixed(LIGHT_SOFT, 0.45))
    pen.rectangle(_pixels(drawing.plot), outline=LIGHT_SOFT)
    for label in drawing.labels:
        if label.screen != "phone":
            _write(image, label)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def mixed(colour: str, opacity: float) -> str:
    """A colour on light paper at an opacity between 0 and 1, as '#rrggbb'."""
    pairs = ((int(LIGHT_PAPER[at : at + 2], 16), int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(under + (over - under) * opacity):02x}" for under, over in pairs)


def small_svg(weights: np.ndarray) -> str:
    """One head's weights, (N, N) of any float type, as a small picture without axes, for a link that names it."""
    import numpy as np

    drawn = cells(weights.astype(np.float32), np.zeros(weights.shape, bool), MOST_SMALL_CELLS)
    rows, columns = drawn.values.shape
    largest = 1.0 if drawn.side == 1 else drawn.largest
    areas, _masked = _areas(drawn, Rect(0, 0, columns, rows), SMALL_LEVELS, signed=False, largest=largest)
    paths = "".join(
        f'<path class="plus" fill-opacity="{level / SMALL_LEVELS:.3f}" d="{"".join(map(_rect_path, rects))}"/>'
        for (_hue, level), rects in sorted(areas.items())
    )
    return (
        f'<svg class="heat small" viewBox="0 0 {columns} {rows}" aria-hidden="true">{paths}'
        f'<rect class="frame" fill="none" width="{columns}" height="{rows}"/></svg>'
    )


def decimal(value: float, places: int) -> str:
    """A number with `places` decimals and a typographic minus sign: '−0.53'; never '−0.00'."""
    text = f"{abs(value):.{places}f}"
    return f"−{text}" if value < 0 and any(digit in "123456789" for digit in text) else text


def percent_text(share: float) -> str:
    """A share in percent with spaces that don't break: '61 %', '0.4 %', '< 0.1 %' or '0 %'."""
    hundredths = 100 * share
    if 0 < hundredths < 0.1:
        return "<\u00a00.1\u00a0%"
    return f"{hundredths:.{0 if hundredths >= 0.95 or hundredths == 0 else 1}f}\u00a0%"


def places_for(largest: float) -> int:
    """The decimals for numbers up to `largest`: 2 from 1 on; otherwise three significant digits, at most 8."""
    return 2 if largest >= 1 else min(8, 2 - math.floor(math.log10(largest)))


def _areas(
    drawn: Cells, plot: Rect, levels: int, *, signed: bool, largest: float | None = None
) -> tuple[dict[tuple[Hue, int], list[Rect]], list[Rect]]:
    import numpy as np

    rows, columns = drawn.values.shape
    width, height = plot.width / columns, plot.height / rows
    level = np.rint(drawn.values / (largest or drawn.largest) * levels).astype(int)
    level = np.where(drawn.hidden, levels + 1, level if signed else np.maximum(level, 0))
    areas, masked = dict[tuple[Hue, int], list[Rect]](), list[Rect]()
    for row, line in enumerate(level):
        ends = [*(np.flatnonzero(np.diff(line)) + 1).tolist(), columns]
        for start, end in zip([0, *ends], ends, strict=False):
            rect = Rect(plot.x + start * width, plot.y + row * height, (end - start) * width, height)
            if line[start] == levels + 1:
                masked.append(rect)
            elif line[start]:
                areas.setdefault(("plus" if line[start] > 0 else "minus", abs(int(line[start]))), []).append(rect)
    return areas, masked


def _add_ramp(
    drawn: Cells,
    top: float,
    sizes: Sequence[tuple[Screen, float]],
    areas: dict[tuple[Hue, int], list[Rect]],
    masked: list[Rect],
    labels: list[Label],
    *,
    is_share: bool,
) -> float:
    places = places_for(drawn.largest)
    high = percent_text(drawn.largest) if is_share else decimal(drawn.largest, places)
    low = percent_text(0) if is_share else decimal(-drawn.largest, places)
    steps = [step / RAMP_STEPS for step in range(1 if is_share else -RAMP_STEPS, RAMP_STEPS + 1)]
    size = max(size for _screen, size in sizes)
    left = label_px(low) * size / LABEL_PX + 12
    for number, share in enumerate(steps):
        level = round(share * HEAT_LEVELS)
        if level:
            rect = Rect(left + number * RAMP_PX, top, RAMP_PX, RAMP_PX * 1.2)
            areas.setdefault(("plus" if level > 0 else "minus", abs(level)), []).append(rect)
    right = left + len(steps) * RAMP_PX
    swatch = right + label_px(high) * size / LABEL_PX + 26
    if drawn.hidden.any():
        masked.append(Rect(swatch, top, RAMP_PX * 2, RAMP_PX * 1.2))
    for screen, each in sizes:
        base = top + RAMP_PX * 0.6 + each * 0.36
        labels.append(Label(left - 6, base, low, each, screen, ends=True))
        labels.append(Label(right + 6, base, high, each, screen))
        if drawn.hidden.any():
            labels.append(Label(swatch + RAMP_PX * 2 + 6, base, _("masked"), each, screen))
    return top + max(RAMP_PX * 1.2, size) + 6


def _label_step(size: float, cell: float) -> int:
    return math.ceil(size * 1.15 / cell)


def _gutter(labels: Mapping[int, str], cell: float, room: float) -> float:
    written = (text for index, text in labels.items() if index % _label_step(LABEL_PX, cell) == 0)
    return min(GUTTER_PX, room * max(map(label_px, written))) + 8


def _fitting(token: str, room: float, size: float) -> str:
    room *= LABEL_PX / size
    if label_px(token) <= room:
        return token
    while token and label_px(token + "…") > room:
        token = token[:-1]
    return token + "…"


def _rect_path(rect: Rect) -> str:
    x, y, width, height = (f"{number:.2f}".rstrip("0").rstrip(".") for number in rect)
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _text(label: Label) -> str:
    at = f'x="{label.x:.1f}" y="{label.y:.1f}"'
    if label.turned:
        at = f'transform="translate({label.x:.1f} {label.y:.1f})rotate(-90)"'
    classes = " ".join(filter(None, (label.screen, "soft" * label.soft)))
    named = f' class="{classes}"' if classes else ""
    anchor = ' text-anchor="end"' if label.ends else ""
    colour = LIGHT_SOFT if label.soft else LIGHT_INK
    return f'<text{named} {at} font-size="{label.size:.1f}" fill="{colour}"{anchor}>{escaped(label.text)}</text>'


def _pixels(rect: Rect) -> tuple[int, int, int, int]:
    left, top, right, bottom = (round(each * PNG_SCALE) for each in (rect.x, rect.y, rect.right, rect.bottom))
    return left, top, right - 1, bottom - 1


def _write(image: Image.Image, label: Label) -> None:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(label.size * PNG_SCALE)
    text = label.text.replace("−", "-")
    text = text if all(ord(each) < LAST_LATIN or each == "…" for each in text) else "#"
    x, y = round(label.x * PNG_SCALE), round(label.y * PNG_SCALE)
    colour = LIGHT_SOFT if label.soft else LIGHT_INK
    if not label.turned:
        ImageDraw.Draw(image).text((x, y), text, colour, font, anchor="rs" if label.ends else "ls")
        return
    rise = round(label.size * PNG_SCALE)  # at least the letters' height above the baseline
    strip = Image.new("L", (math.ceil(font.getlength(text)) + 2, 2 * rise))
    ImageDraw.Draw(strip).text((0, rise), text, 255, font, anchor="ls")
    turned = strip.rotate(90, expand=True)
    image.paste(colour, (x - rise, y - turned.height), turned)
