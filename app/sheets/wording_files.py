"""Reads the wording of a language from its folder, such as worksheets/wording/en/, and checks it.

topics/KEY.toml            what only sheets on this topic say
misconceptions/GROUP.toml  the name of a group, and a table for each of its misconceptions
sheets.toml                what sheets on several topics say
glossary.toml              a table for each term
sample-course.toml         the sample course
bugs.toml                  a table for each bug in code, and what else is said about them
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from app.bugs.bank import BELIEFS, BUGS
from app.bugs.programs import PROGRAMS
from app.bugs.witnesses import Probe
from app.misconceptions.catalogue import MISCONCEPTION_GROUPS
from app.shapes.table import BlankField
from app.sheets.wording import FormsSection, SheetSection, Wording, laid_over
from app.sheets.worksheet import WorksheetError
from app.topics.registry import TOPICS
from app.translation import ENGLISH
from app.translation import gettext as _

_FILES = {"glossary": "glossary.toml", "sample-course": "sample-course.toml", "bugs": "bugs.toml"}
_FOLDERS = {"topics": "topics", "misconception-groups": "misconceptions"}
Place = tuple[str | int, ...]  # where something is in a Wording: field, key, and so on


def read_wording(folder: Path, language: str) -> Wording:
    """The wording of a language; sentences, files or a folder that it lacks are in English."""
    words = _read_folder(folder / ENGLISH, read_toml)
    if language != ENGLISH:
        translated = _read_folder(folder / language, lambda path: read_toml(path) if path.exists() else {})
        _refuse(((place, _("English has no such key")) for place in _unknown(words, translated)), language)
        words = laid_over(words, translated)
    shared = words.pop("rows", {})
    for topic in words["topics"].values():
        topic["rows"] = {key: _whole_row(row, shared.get(key, {})) for key, row in topic.get("rows", {}).items()}
    try:
        wording = Wording.model_validate(words)
    except ValidationError as error:
        _refuse(((each["loc"], each["msg"]) for each in error.errors()), language)
        raise
    _refuse(_mismatches(wording), language)
    return wording


def _read_folder(folder: Path, read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    sheets = read(folder / "sheets.toml")
    groups = {path.stem: read_toml(path) for path in sorted(folder.glob("misconceptions/*.toml"))}
    return {
        **{key: sheets.pop(key) for key in ("rows", "axes", "figures", *get_args(FormsSection)) if key in sheets},
        "sheets": sheets,
        "topics": {path.stem: read_toml(path) for path in sorted(folder.glob("topics/*.toml"))},
        "misconception-groups": {
            key: {**({"name": group.pop("name")} if "name" in group else {}), "misconceptions": group}
            for key, group in groups.items()
        },
        **{field: read(folder / name) for field, name in _FILES.items()},
    }


def _whole_row(row: Mapping[str, str], shared: Mapping[str, str]) -> Mapping[str, str]:
    """A topic's row completed by the shared row with its key: in full if it is empty, otherwise only the name.

    >>> keys = {"name": "Keys", "note": "before transposing"}
    >>> _whole_row({}, keys), _whole_row({"note": "all heads"}, keys)
    ({'name': 'Keys', 'note': 'before transposing'}, {'name': 'Keys', 'note': 'all heads'})
    """
    return {**({"name": shared["name"]} if shared else {}), **row} if row else shared


def _unknown(known: Any, words: Any, place: Place = ()) -> Iterator[Place]:
    if isinstance(words, Mapping) and isinstance(known, Mapping):
        for key, word in words.items():
            yield from _unknown(known[key], word, (*place, key)) if key in known else ((*place, key),)


def _mismatches(wording: Wording) -> Iterator[tuple[Place, str]]:
    fields = get_args(BlankField)
    yield from _differences(("topics",), wording.topics, TOPICS)
    for key, topic in wording.topics.items():
        yield from _differences(("topics", key, "rows"), set(topic.rows) - TOPICS[key].rows, ())
        yield from _differences(("topics", key, "steps"), set(topic.steps) - TOPICS[key].rows, ())
        blanks = {f"{row}.{field}" for row in ("each", *topic.rows) for field in fields}
        yield from _differences(("topics", key, "nudges"), set(topic.nudges) - blanks, ())
    yield from _differences(("misconception-groups",), wording.misconception_groups, MISCONCEPTION_GROUPS)
    for key, group in wording.misconception_groups.items():
        yield from _differences(("misconception-groups", key), group.misconceptions, MISCONCEPTION_GROUPS[key])
    yield from _differences(("sheets",), wording.sheets, get_args(SheetSection))
    yield from _differences(("axes",), wording.axes, fields)
    yield from _differences(("bugs", "programs"), wording.bugs.programs, PROGRAMS)
    yield from _differences(("bugs", "beliefs"), wording.bugs.beliefs, BELIEFS)
    yield from _differences(("bugs", "probes"), wording.bugs.probes, get_args(Probe))
    yield from _differences(("bugs", "bugs"), wording.bugs.bugs, BUGS)


def _differences(place: Place, keys: Collection[str], expected: Collection[str]) -> Iterator[tuple[Place, str]]:
    yield from (((*place, key), _("there is nothing with this key")) for key in keys if key not in expected)
    yield from (((*place, key), _("this is missing")) for key in expected if key not in keys)


def _refuse(problems: Iterator[tuple[Place, str]], language: str) -> None:
    for (field, *rest), problem in problems:
        file = _FILES.get(str(field), "sheets.toml")
        if field in _FOLDERS:
            key, *rest = rest
            file = f"{_FOLDERS[str(field)]}/{key}.toml"
        elif field not in (*_FILES, "sheets"):
            rest = [field, *rest]
        table = ".".join(str(part) for part in rest if part != "misconceptions")
        raise WorksheetError(": ".join(filter(None, (f"wording/{language}/{file}", table, problem))))


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; raises WorksheetError if it can't be opened, isn't UTF-8 or isn't TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WorksheetError(_("{file} cannot be read: {reason}").format(file=path.name, reason=reason)) from None
