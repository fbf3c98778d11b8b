"""What commands share: adding them to the parser, reading input, refusing it in one line, printing."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pydantic import ValidationError

from app.models.read_config import MAX_CONFIG_BYTES
from app.settings import PROJECT, Settings
from app.sheets.library import Library, load_library, load_models
from app.sheets.worksheet import Model
from app.translation import gettext as _
from app.translation import language

MAX_DIGITS = 18  # of a typed number


class InputError(ValueError):
    """Typed input that can't be used; the message is one line that says what to change."""


def refuse(sentence: str) -> NoReturn:
    """End the process with status 2 and this sentence, on one line, on standard error."""
    print(f"attention-shapes: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(2)


class Parser(argparse.ArgumentParser):
    """A parser that refuses arguments in one line, without argparse's usage text."""

    def error(self, message: str) -> NoReturn:
        """End the process with status 2 and one line about the wrong arguments."""
        refuse(_("{problem} (see {program} --help)").format(problem=message, program=self.prog))


class Commands:
    """The commands of the program, to which each module adds its commands."""

    def __init__(self, subparsers: argparse._SubParsersAction[Parser]) -> None:
        self._subparsers = subparsers

    def add(
        self, name: str, run: Callable[[argparse.Namespace], None], help_: str, *, printable: bool = True
    ) -> argparse.ArgumentParser:
        """Add a command that `main` carries out by calling `run` with the parsed arguments; return its parser."""
        added = self._subparsers.add_parser(name, help=help_, description=help_)
        added.set_defaults(run=run)
        if printable:
            added.add_argument("--json", action="store_true", help=_("print JSON instead of a table"))
        return added


def variable(name: str) -> str:
    """A setting's environment variable: "port" is ATTENTION_SHAPES_PORT."""
    return "DATABASE_URL" if name.lower() == "database_url" else f"ATTENTION_SHAPES_{name.upper()}"


def open_library(folder: Path = PROJECT / "worksheets") -> Library:
    """Read the worksheets, models and wording of a folder, by default the app's; raises WorksheetError."""
    return load_library(folder, language())


def open_models() -> dict[str, Model]:
    """Read the app's models, by key, without its worksheets and wording; raises WorksheetError."""
    return load_models(PROJECT / "worksheets", language())


def whole_number(text: str, option: str) -> int:
    """The number in a text of 1 to MAX_DIGITS ASCII digits ("007" is 7); any other text raises InputError."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        problem = _("{option} must be a whole number of at most {most} digits, not “{text}”.")
        raise InputError(problem.format(option=option, most=MAX_DIGITS, text=text[:30]))
    return int(text)


def optional_whole_number(text: str | None, option: str) -> int | None:
    """The number of an option, None if it wasn't typed; raises InputError as `whole_number` does."""
    return None if text is None else whole_number(text, option)


def read_file(path: Path) -> bytes:
    """The first MAX_CONFIG_BYTES + 1 bytes of a file; raises InputError for an unreadable one."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(_("{file} cannot be read: {reason}.").format(file=str(path)[:60], reason=reason)) from None


def write_file(path: str, data: bytes) -> None:
    """Write a file, or standard output for "-"; raises InputError if it can't be written."""
    try:
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            Path(path).write_bytes(data)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(_("{file} cannot be written: {reason}.").format(file=path[:60], reason=reason)) from None


def print_json(value: object) -> None:
    """Print a value as one line of JSON, with non-ASCII text as it is."""
    print(json.dumps(value, ensure_ascii=False))


def print_table(rows: Sequence[Sequence[object]]) -> None:
    """Print rows as left-aligned columns, two spaces apart."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    for row in texts:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def read_settings() -> Settings:
    """The environment's settings; raises InputError naming the first unusable variable."""
    fields = [name.upper() for name in Settings.model_fields]
    for name in os.environ:
        setting = re.fullmatch("ATTENTION_?SHAPES?_?(.*)", name.upper())
        if setting and name.upper() not in map(variable, fields):
            nearest = variable(difflib.get_close_matches(setting[1], fields, 1, 0)[0])
            raise InputError(_("{name} is not a setting. Did you mean {nearest}?").format(name=name, nearest=nearest))
    try:
        return Settings()
    except ValidationError as error:
        from app.web.shared.errors import problem_in_words  # which loads FastAPI

        first = error.errors()[0]
        raise InputError(f"{variable(str(first['loc'][0]))}: {problem_in_words(first)}.") from None
