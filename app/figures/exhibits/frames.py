"""What exhibits consist of: numbered frames, each a sentence and a drawing made of parts that move between frames.

Like figure.py, this is geometry in pixels, which templates turn into SVG. Every frame is complete: without script and
on paper they are below one another. With script one is shown at a time, and a part shared by two frames (same key)
moves between its places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class RectangleMark:
    """A rectangle; `css` are its classes."""

    x: float
    y: float
    width: float
    height: float
    css: str = ""
    tag: Literal["rect"] = "rect"


@dataclass(frozen=True)
class PathMark:
    """A line, curve or area, as SVG writes it: 'M0 0H10'."""

    path: str
    css: str = ""
    tag: Literal["path"] = "path"


@dataclass(frozen=True)
class TextMark:
    """A line of text: a symbol ("W_Q", "Kᵀ") as mathematics, or words and numbers as they are.

    `turn` is in degrees clockwise around (x, y), for slanted names above columns.
    """

    x: float
    y: float
    text: str
    css: str = ""
    anchor: Literal["start", "middle", "end"] = "start"
    turn: float = 0.0
    is_symbol: bool = False
    tag: Literal["text"] = "text"


DrawnMark = RectangleMark | PathMark | TextMark


@dataclass(frozen=True)
class Part:
    """Marks that move together, drawn from an origin at (x, y); `key` is the same in all frames with this part.

    `css` are its classes, such as a role ("query").
    """

    key: str
    marks: tuple[DrawnMark, ...]
    x: float = 0.0
    y: float = 0.0
    css: str = ""
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FrameDrawing:
    """The drawing of one frame, `alt_text` in words; all frames of an exhibit have the same size."""

    width: float
    height: float
    alt_text: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Frame:
    """One step of an exhibit: its number, from 1, its key, a sentence on what happens, and the drawing.

    `asks` is a question that may be answered in the drawing before going on.
    """

    number: int
    key: str
    sentence: str
    drawing: FrameDrawing
    asks: str = ""

    @property
    def next_number(self) -> int:
        return self.number + 1


@dataclass(frozen=True)
class Exhibit:
    """An exhibit: its key, the page's title, one sentence on what it shows, and the numbered frames."""

    key: str
    title: str
    about: str
    frames: tuple[Frame, ...]
