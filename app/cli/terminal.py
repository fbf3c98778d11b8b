"""What the verbs share: how they are added, what is read and printed, and input that is refused in one line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pydantic import ValidationError

from app.models.read_config import MAX_CONFIG_BYTES
from app.settings import PROJECT, Settings
from app.sheets.library import Library, load_library


class InputError(ValueError):
    """Something typed in the terminal that cannot be used; one line that says what to change."""


def refuse(sentence: str) -> NoReturn:
    """End with 2 and one line on standard error."""
    print(f"attention-shapes: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(2)


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one line."""

    def error(self, message: str) -> NoReturn:
        refuse(f"{message} (see {self.prog} --help)")


class Verbs:
    """The verbs of the program; each group adds its own."""

    def __init__(self, verbs: argparse._SubParsersAction[Parser]) -> None:
        self._verbs = verbs

    def add(
        self, name: str, run: Callable[[argparse.Namespace], None], help_: str, *, printable: bool = True
    ) -> argparse.ArgumentParser:
        """A verb's parser; what is `printable` has a table, or with --json a line of JSON."""
        added = self._verbs.add_parser(name, help=help_, description=help_)
        added.set_defaults(run=run)
        if printable:
            added.add_argument("--json", action="store_true", help="print JSON instead of a table")
        return added


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return "DATABASE_URL" if name.lower() == "database_url" else f"ATTENTION_SHAPES_{name.upper()}"


def open_library(folder: Path = PROJECT / "worksheets") -> Library:
    """The worksheets of a folder, the app's own unless one is named; raises WorksheetError."""
    return load_library(folder)


def whole(text: str, what: str) -> int:
    """A number typed for `what`; raises InputError where it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InputError(f"{what} must be a whole number in digits, not “{text[:30]}”.")
    return int(text)


def whole_or_none(text: str | None, what: str) -> int | None:
    """The same where nothing may be typed."""
    return None if text is None else whole(text, what)


def read_file(path: Path) -> bytes:
    """What is in a file, as far as it can be of use; raises InputError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{str(path)[:60]} cannot be read: {reason}.") from None


def print_json(value: object) -> None:
    """One line, in any script."""
    print(json.dumps(value, ensure_ascii=False))


def print_table(rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as the widest of their cells."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    for row in texts:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def read_settings() -> Settings:
    """The settings of the environment; raises InputError that names the first one that cannot be."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{variable(str(first['loc'][0]))}: {reason}.") from None
