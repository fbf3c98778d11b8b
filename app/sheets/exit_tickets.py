"""Exit tickets: `exit-tickets/*.toml` beside the worksheets, each with questions of which students pick a couple."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.sheets.worksheet import WorksheetError


@dataclass(frozen=True)
class Ticket:
    """An exit ticket: its title, what to do, and key and text of each question."""

    key: str
    title: str
    instruction: str
    questions: tuple[tuple[str, str], ...]


def load_tickets(folder: Path) -> Mapping[str, Ticket]:
    """Every exit ticket of a folder of worksheets, by key; raises WorksheetError naming a file that cannot be used."""
    return {path.stem: _ticket(path) for path in sorted(folder.glob("exit-tickets/*.toml"))}


def _ticket(path: Path) -> Ticket:
    try:
        entry = tomllib.loads(path.read_text(encoding="utf-8"))
        questions = tuple((str(question["key"]), str(question["text"])) for question in entry["questions"])
        return Ticket(path.stem, str(entry["title"]), str(entry["instruction"]), questions)
    except (OSError, ValueError, KeyError, TypeError):
        file = f"exit-tickets/{path.name}"
        raise WorksheetError(f"{file} needs title, instruction and questions with key and text.") from None
