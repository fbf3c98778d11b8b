"""Settings as the text of a TOML file and back, with the line of each.

>>> text = write_toml({"title": "One head", "row_points": {"queries": 2}})
>>> print(text, end="")
title = "One head"
<BLANKLINE>
[row_points]
queries = 2
>>> lines_of_settings(text)[("row_points", "queries")]
4
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from app.sheets.worksheet import WorksheetError
from app.translation import gettext as _

SettingPath = tuple[str | int, ...]  # such as ("questions", 0, "text")

MAX_TOML_BYTES = 500_000  # more than a worksheet with the longest text in every field
MAX_SETTINGS = 5_000  # per file; a worksheet with the most of everything has fewer than 1,500
_MAX_DOTS = 50  # in a key or value outside of texts; no setting needs more than three
_MAX_REPEATED = 60  # characters of a line that a message quotes
_ERROR_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_STRINGS = r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'"
_KEY_PART = re.compile(rf"[ \t]*(?:([A-Za-z0-9_-]+)|({_STRINGS}))[ \t]*(\.?)", re.DOTALL)
_TOKEN = re.compile(rf"{_STRINGS}|\#[^\n]*|[\[{{]|[\]}}]|\n|[^\[\]{{}}\"'#\n]+", re.DOTALL)
_BETWEEN = re.compile(r"(?:\s|#[^\n]*)*")


class TomlError(WorksheetError):
    """A text that isn't TOML; the message says in which line and what to write there."""


def write_toml(settings: Mapping[str, Any]) -> str:
    """The settings as TOML; texts of several lines are written on several lines."""
    return tomli_w.dumps(settings, multiline_strings=True)


def read_toml(text: str) -> dict[str, Any]:
    if len(text.encode(errors="replace")) > MAX_TOML_BYTES:
        raise TomlError(_("The file has more than {most:,} bytes: make it shorter.").format(most=MAX_TOML_BYTES))
    try:
        lines_of_settings(text)  # tomllib's time grows with the square of a key's parts
        return tomllib.loads(text)
    except TomlError:
        raise
    except (ValueError, RecursionError) as error:
        raise TomlError(_toml_problem(text, str(error))) from None


def _toml_problem(text: str, error: str) -> str:
    lines = text.split("\n")
    match = _ERROR_LINE.search(error)
    number = int(match[1]) if match else len(lines)
    if not match:
        return _("Line {line}: the file ends too early. Is a closing quote or bracket missing?").format(line=number)
    problem = _("Line {line}: “{text}” is not TOML. Write “name = value”, with texts between straight quotes.")
    return problem.format(line=number, text=lines[number - 1].strip()[:_MAX_REPEATED])


def line_of(lines: Mapping[SettingPath, int], path: Sequence[str | int]) -> int | None:
    """The line of a setting, or of the nearest table around it that has one."""
    known = (tuple(path[:length]) for length in range(len(path), 0, -1))
    return next((lines[each] for each in known if each in lines), None)


def lines_of_settings(text: str) -> dict[SettingPath, int]:
    """The line, from 1, of every setting and table of a TOML text, except those inside a value.

    Raises ValueError for a key or value with more than _MAX_DOTS dots, and TomlError for more than MAX_SETTINGS.
    """
    lines, tables = dict[SettingPath, int](), Counter[SettingPath]()
    table: SettingPath = ()
    position, counted, line = _skip(text, 0), 0, 1
    while position < len(text):
        line += text.count("\n", counted, position)
        counted = position
        brackets = 2 if text.startswith("[[", position) else int(text.startswith("[", position))
        try:
            path, position = _read_key(text, position + brackets)
        except ValueError:
            break
        end = -1 if len(path) > _MAX_DOTS else position + brackets if brackets else _end_of_value(text, position + 1)
        if end < 0:
            raise ValueError(f"too many dots (at line {line}, column 1)")
        if not path:
            break
        if brackets:
            table = _in_last_tables(path, tables)
            if brackets == 2:
                tables[table] += 1
                table = (*table, tables[table] - 1)
                lines.setdefault(table[:-1], line)
            lines[table] = line
        else:
            for length in range(1, len(path) + 1):
                lines.setdefault((*table, *path[:length]), line)
        if len(lines) > MAX_SETTINGS:
            raise TomlError(_("The file has more than {most:,} settings: leave some out.").format(most=MAX_SETTINGS))
        position = _skip(text, end)
    return lines


def _skip(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def _read_key(text: str, position: int) -> tuple[SettingPath, int]:
    parts = list[str | int]()
    while part := _KEY_PART.match(text, position):
        bare, quoted, dot = part.groups()
        parts.append(bare if bare is not None else tomllib.loads(f"key = {quoted}")["key"])
        position = part.end()
        if not dot or len(parts) > _MAX_DOTS:
            break
    return tuple(parts), position


def _in_last_tables(path: SettingPath, tables: Mapping[SettingPath, int]) -> SettingPath:
    place: SettingPath = ()
    for index, part in enumerate(path):
        place = (*place, part)
        if index < len(path) - 1 and tables.get(place):
            place = (*place, tables[place] - 1)
    return place


def _end_of_value(text: str, position: int) -> int:
    depth = dots = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            break
        if token[0] == "\n" and depth == 0:
            break
        dots += token[0].count(".") if token[0][0] not in "\"'#" else 0
        if dots > _MAX_DOTS:
            return -1
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        position = token.end()
    return position
