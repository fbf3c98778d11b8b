"""The options of a handout, as chosen on the page or in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from app.names import clean_line
from app.refusal import Refusal
from app.translation import gettext as _

SheetLayout = Literal["half", "pair", "full"]
Paper = Literal["letter", "a4"]
PrintedFigures = Literal["none", "aid", "blank"]
PrintedKey = Literal["none", "with", "only"]
LAYOUTS: tuple[SheetLayout, ...] = get_args(SheetLayout)
PAPERS: tuple[Paper, ...] = get_args(Paper)
FIGURES: tuple[PrintedFigures, ...] = get_args(PrintedFigures)
KEYS: tuple[PrintedKey, ...] = get_args(PrintedKey)
NO_BACK = "none"
MAX_PRINTED_LINE_LENGTH = 120  # characters of a course or a date
MAX_SHEETS = 5_000
MAX_HANDOUT_SEED = 10**9


class HandoutError(Refusal):
    """A handout, or a line of paper answers, that can't be used; the message says what to change.

    `field` is the form's field at fault, or "".
    """

    def __init__(self, sentence: str, field: str = "", *, reason: str = "refused") -> None:
        super().__init__(sentence)
        self.field, self.reason = field, reason


@dataclass(frozen=True)
class HandoutOptions:
    """All options of a handout except the names. The same options and names give the same bytes."""

    worksheet: str = "llama-7b"
    model: str = ""  # "" means the worksheet's model
    tokens: int | None = None
    decoder_tokens: int | None = None
    course: str = ""
    date: str = ""
    sheets: int = 2
    variants: bool = False
    seed: int = 0
    layout: SheetLayout = "half"
    paper: Paper = "letter"
    back: str = NO_BACK
    key: PrintedKey = "none"
    large: bool = False
    figures: PrintedFigures = "none"
    anonymous_back: bool = False

    def __post_init__(self) -> None:
        _check_choice("layout", self.layout, LAYOUTS)
        _check_choice("paper", self.paper, PAPERS)
        _check_choice("figures", self.figures, FIGURES)
        _check_choice("key", self.key, KEYS)
        if not 1 <= self.sheets <= MAX_SHEETS:
            problem = _("Choose a number of sheets from 1 to {most:,}, not {number:,}.")
            raise HandoutError(problem.format(most=MAX_SHEETS, number=self.sheets), "sheets")
        if not 0 <= self.seed <= MAX_HANDOUT_SEED:
            problem = _("Choose a seed from 0 to {most:,}, not {number:,}.")
            raise HandoutError(problem.format(most=MAX_HANDOUT_SEED, number=self.seed), "seed")
        if self.variants and self.has_fixed_length:
            sentence = _("Versions differ in number of tokens: leave “Tokens” empty, or print one version.")
            raise HandoutError(sentence, "tokens")

    @property
    def printed_layout(self) -> SheetLayout:
        """The layout to print in: large print needs the whole page."""
        return "full" if self.large else self.layout

    @property
    def has_fixed_length(self) -> bool:
        """Whether everyone gets the same length, because one was asked for."""
        return (self.tokens, self.decoder_tokens) != (None, None)

    def check_back(self, tickets: Mapping[str, object]) -> HandoutOptions:
        """Return these options, or raise HandoutError if `back` is neither NO_BACK nor a key of `tickets`."""
        _check_choice("back", self.back, (NO_BACK, *tickets))
        return self


def _check_choice(name: str, chosen: str, choices: Sequence[str]) -> None:
    if chosen not in choices:
        problem = _("“{chosen}” is not an option for “{name}”: choose one of {choices}.")
        raise HandoutError(problem.format(name=name, chosen=chosen[:40], choices=", ".join(choices)))


def printable_line(text: str, *, field: str = "") -> str:
    r"""The text cleaned by `clean_line`; raises HandoutError if it is longer than MAX_PRINTED_LINE_LENGTH.

    Example:
        printable_line("COS\n597\x07")  # "COS 597"
    """
    line = clean_line(text)
    if len(line) > MAX_PRINTED_LINE_LENGTH:
        problem = _("“{start}…” has {length:,} characters: shorten it to {most} at most, so that it fits on one line.")
        raise HandoutError(problem.format(start=line[:30], length=len(line), most=MAX_PRINTED_LINE_LENGTH), field)
    return line
