"""Exit tickets: `exit-tickets/*.toml` beside the worksheets, each with questions of which students pick a couple."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from app.sheets.worksheet import WorksheetError
from app.translation import gettext as _


@dataclass(frozen=True)
class Ticket:
    """An exit ticket: its title, what to do, and (key, text) of each question."""

    key: str
    title: str
    instruction: str
    questions: tuple[tuple[str, str], ...]


class QuestionEntry(BaseModel):
    """One question of a ticket file."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    key: str
    text: str


class TicketFile(BaseModel):
    """What a ticket file holds."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    title: str
    instruction: str
    questions: list[QuestionEntry]


def load_tickets(folder: Path) -> Mapping[str, Ticket]:
    """Every exit ticket of a folder of worksheets, by key; raises WorksheetError that names an unusable file."""
    return {path.stem: _read_ticket(path) for path in sorted(folder.glob("exit-tickets/*.toml"))}


def _read_ticket(path: Path) -> Ticket:
    """The Ticket of a TOML file, whose name without .toml is its key; titles and texts that are numbers become texts.

    Raises WorksheetError that names the file if it cannot be read, is not TOML, or lacks a setting.
    """
    try:
        file = TicketFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        problem = _("exit-tickets/{file} needs title, instruction and questions with key and text.")
        raise WorksheetError(problem.format(file=path.name)) from None
    return Ticket(path.stem, file.title, file.instruction, tuple((q.key, q.text) for q in file.questions))
