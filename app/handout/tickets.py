"""Exit tickets: the questions on the back of a sheet, from files that instructors write."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .options import HandoutError

FIELDS = ("title", "advice", "questions")
MOST_QUESTIONS = 12


@dataclass(frozen=True)
class Ticket:
    """An exit ticket: its key, its title, how many questions to pick and how, and the questions."""

    key: str
    title: str
    advice: str
    questions: tuple[str, ...]


def load_tickets(folder: Path) -> Mapping[str, Ticket]:
    """Every `*.toml` of the folder by its name, exit-ticket first; raises HandoutError naming a file it cannot use."""
    paths = sorted(folder.glob("*.toml"), key=lambda path: (path.stem != "exit-ticket", path.stem))
    return {path.stem: _ticket(path) for path in paths}


def _ticket(path: Path) -> Ticket:
    try:
        entry = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HandoutError(f"{path.name} cannot be read: {error}") from None
    _check(entry, path.name)
    return Ticket(path.stem, entry["title"], entry["advice"], tuple(entry["questions"]))


def _check(entry: Mapping[str, Any], file: str) -> None:
    unknown = [key for key in entry if key not in FIELDS]
    if unknown:
        raise HandoutError(f"{file}: there is no setting “{unknown[0]}”; there are: {', '.join(FIELDS)}.")
    for key in ("title", "advice"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise HandoutError(f"{file}: {key} must be a text.")
    questions = entry.get("questions")
    if not isinstance(questions, list) or not questions or not all(isinstance(q, str) and q.strip() for q in questions):
        raise HandoutError(f"{file}: questions must be a list of texts.")
    if len(questions) > MOST_QUESTIONS:
        raise HandoutError(f"{file}: at most {MOST_QUESTIONS} questions fit on the back of a sheet.")
