"""What a handout is to be, as an instructor says it on the page or in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LAYOUTS = ("half", "pair", "full")
PAPERS = ("letter", "a4")
FIGURES = ("none", "aid", "blank")
KEYS = ("none", "with", "only")
NO_BACK = "none"
LONGEST_LINE = 120  # characters of a course or a date
MOST_SHEETS = 5_000
LARGEST_SEED = 10**9


class HandoutError(ValueError):
    """A handout that cannot be made as asked; one sentence that says what to change."""


@dataclass(frozen=True)
class Options:
    """One handout: which sheet, for how many, on what paper. The same options give the same bytes.

    `copies` of one sheet, or `variants` (versions that differ in their sizes), are wanted where there is no roster;
    with a roster everyone gets a version of their own, or with `same` the one sheet. `back` names an exit ticket.
    """

    worksheet: str = "llama-7b"
    model: str = ""
    tokens: int | None = None
    decoder_tokens: int | None = None
    course: str = ""
    date: str = ""
    copies: int = 2
    variants: int = 0
    same: bool = False
    seed: int = 0
    layout: str = "half"
    paper: str = "letter"
    back: str = NO_BACK
    key: str = "none"
    large: bool = False
    figures: str = "none"

    @property
    def panels(self) -> str:
        """The layout as it will be: large print needs a full page."""
        return "full" if self.large else self.layout

    @property
    def fixed(self) -> bool:
        """Whether a length is asked for, which leaves one sheet for everyone."""
        return (self.tokens, self.decoder_tokens) != (None, None)

    def checked(self, tickets: Mapping[str, object]) -> Options:
        """These options if every one of them can be used; raises HandoutError about the first that cannot."""
        for name, chosen, there_are in (
            ("layout", self.layout, LAYOUTS),
            ("paper", self.paper, PAPERS),
            ("figures", self.figures, FIGURES),
            ("key", self.key, KEYS),
            ("back", self.back, (NO_BACK, *tickets)),
        ):
            if chosen not in there_are:
                raise HandoutError(f"There is no {name} “{chosen[:40]}”; there are: {', '.join(there_are)}.")
        self._check_numbers()
        if self.variants and self.fixed:
            raise HandoutError("Versions differ in their number of tokens: leave it out, or ask for copies.")
        return self

    def _check_numbers(self) -> None:
        for name, number, least, most in (
            ("copies", self.copies, 1, MOST_SHEETS),
            ("variants", self.variants, 0, MOST_SHEETS),
            ("seed", self.seed, 0, LARGEST_SEED),
        ):
            if not least <= number <= most:
                raise HandoutError(f"The number of {name} must be from {least} to {most:,}, not {number:,}.")


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """A course, a date or a name as one line of characters that can be printed; raises HandoutError if too long."""
    kept = " ".join("".join(char if _shown(char) else " " for char in text).split())
    if len(kept) > longest:
        raise HandoutError(f"“{kept[:30]}…” is {len(kept):,} characters long; at most {longest} fit on a line.")
    return kept


_JOINERS = "\u200c\u200d"  # they shape letters in names of some scripts


def _shown(char: str) -> bool:
    return char.isprintable() or char in _JOINERS
