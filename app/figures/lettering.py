"""The widths of a figure's texts, never less than in a browser, so that they can be placed without one.

Numbers and names are in Figtree, matrices' letters in Libertinus italic, all in one size however large the figure is. A
browser test measures them.
"""

from __future__ import annotations

from collections.abc import Mapping

LABEL_PX, LETTER_PX, SUBSCRIPT_PX = 12.0, 17.0, 11.0  # type sizes, as in drawing.css
LINE_PX, LETTER_LINE_PX = 14.0, 19.0  # heights of a line of a label, without and with a matrix's letter
BASELINE_PX, LETTER_BASELINE_PX = 11.0, 13.0  # from a line's top to its baseline
SPACE_PX = 4.0  # between a letter and the number after it


def _table(*groups: tuple[float, str]) -> Mapping[str, float]:
    return {character: width for width, characters in groups for character in characters}


# Widths in em; the second number of _WIDTHS is for any other lower-case or upper-case character.
_LABEL = _table(
    (0.28, " ,.:;'|!ijl"),
    (0.48, "frst()-/·"),
    (0.57, "acekvxz"),
    (0.88, "mwM≠"),
    (1.02, "W"),
    (0.64, "0123456789+?=×−"),
)
_LETTER = _table(
    (0.36, "'.,il "), (0.5, "acehorst"), (0.6, "0123456789"), (0.85, "mwNH"), (0.92, "M"), (1.08, "W"), (0.68, "fdxyu")
)
_SUBSCRIPT = _table((0.35, "'.,ijlt "), (0.5, "0123456789"), (0.85, "mwMNH"), (1.02, "W"))


def label_px(text: str) -> float:
    """The width of a number or a name: 33.3 px for "4,096"."""
    return LABEL_PX * _em(text, _LABEL, 0.62, 0.82)


def letter_px(letter: str) -> float:
    """The width of a matrix's letter with its subscript and ᵀ: W_Q, K_8ᵀ."""
    base, _, below = letter.removesuffix("ᵀ").partition("_")
    raised = SUBSCRIPT_PX * 0.7 if letter.endswith("ᵀ") else 0.0
    return LETTER_PX * _em(base, _LETTER, 0.59, 0.8) + SUBSCRIPT_PX * _em(below, _SUBSCRIPT, 0.6, 0.78) + raised


def _em(text: str, widths: Mapping[str, float], lower: float, upper: float) -> float:
    return sum(widths.get(c, lower if c.islower() else upper if c.isascii() else 1.0) for c in text)
