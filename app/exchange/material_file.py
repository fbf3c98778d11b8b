"""Worksheets and exit tickets as TOML files: the contents of a file, or everything wrong with it, by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.exchange.toml_text import TomlError, line_of, lines_of_settings, read_toml
from app.sheets.authoring.worksheet_settings import SettingError, check_settings
from app.sheets.exit_tickets import Ticket, check_ticket
from app.sheets.library import Library
from app.sheets.worksheet import Worksheet
from app.translation import gettext as _


class MaterialFileError(ValueError):
    """A file that is neither a worksheet nor an exit ticket; `problems` are sentences with the line and the reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class MaterialFile:
    """What a file holds: a worksheet or an exit ticket, and its settings in their usual form."""

    kind: Literal["worksheet", "ticket"]
    read: Worksheet | Ticket
    settings: Mapping[str, Any]


def decode_file(content: bytes) -> str:
    """The text of a UTF-8 file without its byte order mark; raises MaterialFileError, naming the line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = _("Line {line} is not in UTF-8: save the file in that encoding.")
        raise MaterialFileError([problem.format(line=line)]) from None


def settings_in_file(text: str) -> dict[str, Any]:
    """The settings in a file, usable or not."""
    try:
        return read_toml(text)
    except TomlError as error:
        raise MaterialFileError([str(error)]) from None


def read_material_file(key: str, text: str, library: Library) -> MaterialFile:
    """The worksheet or exit ticket in a file, under this key; `library` has the models that it may name.

    Raises MaterialFileError with every problem and its line, or only the first if the file isn't TOML.
    """
    settings = settings_in_file(text)
    if "instruction" in settings and "topic" not in settings:
        ticket, problems = check_ticket(key, settings)
        if ticket is None:
            raise MaterialFileError(_with_lines(text, problems, names_setting=True))
        return MaterialFile("ticket", ticket, ticket.settings)
    sheet, errors = check_settings(key, settings, library.models, library.wording)
    if sheet is None:
        raise MaterialFileError(_with_lines(text, [_about_imported(settings, error) for error in errors]))
    return MaterialFile("worksheet", sheet, sheet.settings)


def _about_imported(settings: Mapping[str, Any], error: SettingError) -> SettingError:
    name = settings.get(error.setting)
    if error.setting != "model" or not isinstance(name, str) or not name.startswith("cfg-"):
        return error
    problem = _("There is no imported model “{name}” here: import it under Models, and write the end of its address.")
    return SettingError(problem.format(name=name[:30]), "model")


def _with_lines(text: str, errors: Sequence[SettingError], *, names_setting: bool = False) -> list[str]:
    lines, sentences = lines_of_settings(text), list[tuple[int, str]]()
    for error in errors:
        name = ".".join(str(part + 1 if isinstance(part, int) else part) for part in error.path)
        sentence = f"{name}: {error}" if names_setting else str(error)
        line = line_of(lines, error.path)
        # A setting that is missing has no line.
        sentences.append(
            (line or 0, _("Line {line}: {sentence}").format(line=line, sentence=sentence) if line else sentence)
        )
    return [sentence for _line, sentence in sorted(sentences, key=lambda each: each[0])]
