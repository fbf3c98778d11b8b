"""Reads the wording of a language from its folder, such as worksheets/wording/en/, and checks it.

topics/KEY.toml            what only sheets on this topic say
misconceptions/GROUP.toml  a table for each misconception: its sentences and, in English only, its formulas
sheets.toml                what sheets on several topics say
glossary.toml              a table for each term
sample-course.toml         the sample course
bugs.toml                  a table for each bug in code, and what else is said about them
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.bugs.bank import BELIEFS, BUGS
from app.bugs.programs import PROGRAMS
from app.bugs.witnesses import Probe
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.shapes.table import BlankField
from app.sheets.wording import (
    PARTS_SECTIONS,
    Forms,
    FormsSection,
    MisconceptionWording,
    Sentence,
    SheetSection,
    Wording,
    WordingPart,
    laid_over,
)
from app.sheets.worksheet import WorksheetError
from app.topics.facts import MODEL_FACTS
from app.topics.registry import TOPICS
from app.topics.topic import Topic
from app.translation import ENGLISH
from app.translation import gettext as _

# What sentences on several topics can contain in {braces} besides sizes, and what a step can besides sizes and tensors.
_WORDS_OF_PARTS = frozenset(
    {"model", "layer", "norm", "share", "local_layers", "side", "chunk", "attention_layers", "first_layer"}
)
_WORDS_OF_STEPS = frozenset({"d_h-symbol", "pairs", "each-query"})
_FILES = {"glossary": "glossary.toml", "sample-course": "sample-course.toml", "bugs": "bugs.toml"}
Place = tuple[str | int, ...]  # where something is in a Wording: field, key, and so on


def read_wording(folder: Path, language: str) -> Wording:
    """The wording of a language; sentences, files or a folder that it lacks are in English."""
    words = _read_folder(folder / ENGLISH, read_toml)
    # English files also have formulas, which app/misconceptions/catalogue.py reads and checks.
    sentences = MisconceptionWording.model_fields
    words["misconceptions"] = {
        key: {name: entry[name] for name in sentences if name in entry}
        for key, entry in words["misconceptions"].items()
    }
    if language != ENGLISH:
        translated = _read_folder(folder / language, lambda path: read_toml(path) if path.exists() else {})
        unknown = ((place, _("English has no such key")) for place in _unknown(words, translated))
        _refuse(unknown, folder, language)
        words = laid_over(words, translated)
    shared = words.pop("rows", {})
    for topic in words["topics"].values():
        topic["rows"] = {key: _whole_row(row, shared.get(key, {})) for key, row in topic.get("rows", {}).items()}
    try:
        wording = Wording.model_validate(words)
    except ValidationError as error:
        misspelt_first = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        _refuse(map(_invalid, misspelt_first), folder, language)
        raise
    _refuse(_mismatches(wording), folder, language)
    return wording


def _read_folder(folder: Path, read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    sheets = read(folder / "sheets.toml")
    groups = [read_toml(path) for path in sorted(folder.glob("misconceptions/*.toml"))]
    return {
        **{key: sheets.pop(key) for key in ("rows", "axes", "figures", *get_args(FormsSection)) if key in sheets},
        "sheets": sheets,
        "topics": {path.stem: read_toml(path) for path in sorted(folder.glob("topics/*.toml"))},
        "misconceptions": {key: entry for group in groups for key, entry in group.items()},
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


def _invalid(error: ErrorDetails) -> tuple[Place, str]:
    place, problem = error["loc"], error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        problem = _("There is no such key. Known here: {known}.").format(known=", ".join(_fields_at(place[:-1])))
    return place, problem


def _fields_at(place: Place) -> Iterator[str]:
    kind: Any = Wording
    for step in place:
        if isinstance(kind, type) and issubclass(kind, WordingPart):
            kind = next(each.annotation for each in kind.model_fields.values() if each.alias == step)
        else:
            mapping_or_tuple = get_args(kind)
            kind = mapping_or_tuple[1] if isinstance(step, str) else mapping_or_tuple[0]
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
    return (str(field.alias) for field in kind.model_fields.values())


def _mismatches(wording: Wording) -> Iterator[tuple[Place, str]]:
    fields = get_args(BlankField)
    yield from _differences(("topics",), wording.topics, TOPICS)
    for key, topic in wording.topics.items():
        yield from _unknown_keys(("topics", key, "rows"), topic.rows, TOPICS[key].rows)
        yield from _unknown_keys(("topics", key, "steps"), topic.steps, TOPICS[key].rows)
        boxes = (box.partition(".") for box in TOPICS[key].boxes if box.partition(".")[0] in topic.rows)
        asked = {f"{row if f'{row}.{field}' in topic.nudges else 'each'}.{field}" for row, _dot, field in boxes}
        yield from _differences(("topics", key, "nudges"), topic.nudges, sorted(asked))
        yield from _unknown_keys(("topics", key, "reasons"), topic.reasons, TOPICS[key].rows)
        counts = set(TOPICS[key].counts.split()) - topic.reasons.keys()
        yield from (((("topics", key, "reasons", count)), _("This is missing.")) for count in counts)
        tensors = {tensor.key for table in TOPICS[key].tables for tensor in table.tensors}
        yield from _unknown_keys(("topics", key, "row-things"), topic.row_things, tensors)
        yield from _unknown_keys(("topics", key, "symbol-names"), topic.symbol_names, TOPICS[key].symbols)
        yield from _unknown_keys(("topics", key, "stated-sizes"), topic.stated_sizes, TOPICS[key].symbols)
        yield from _mismatches_of_parts(wording, key)
        yield from _mismatches_of_sentences(wording, TOPICS[key])
    for section in PARTS_SECTIONS:
        asked = {part for topic in wording.topics.values() for part in topic.parts(section)}
        yield from _unknown_keys((section,), wording.own_forms(section), asked)
    yield from _differences(("misconceptions",), wording.misconceptions, {each.key for each in MISCONCEPTIONS})
    yield from _differences(("sheets",), wording.sheets, get_args(SheetSection))
    yield from _differences(("axes",), wording.axes, fields)
    yield from _differences(("bugs", "programs"), wording.bugs.programs, PROGRAMS)
    yield from _differences(("bugs", "beliefs"), wording.bugs.beliefs, BELIEFS)
    yield from _differences(("bugs", "probes"), wording.bugs.probes, get_args(Probe))
    yield from _differences(("bugs", "bugs"), wording.bugs.bugs, BUGS)


def _mismatches_of_parts(wording: Wording, topic: str) -> Iterator[tuple[Place, str]]:
    words = wording.topics[topic]
    for section in PARTS_SECTIONS:
        parts, known = words.parts(section), wording.forms(topic, section)
        yield from _unknown_keys(("topics", topic, section), words.own_forms(section), parts)
        for part in parts:
            if part not in known:
                problem = _("There is no part “{part}”. The parts are {known}.")
                list_of_parts = f"{section.removesuffix('s')}-parts"
                yield ("topics", topic, list_of_parts), problem.format(part=part, known=", ".join(known))


def _mismatches_of_sentences(wording: Wording, topic: Topic) -> Iterator[tuple[Place, str]]:
    """The rows, tensors, sizes and {words} that a topic's sentences name and the topic doesn't have."""
    tensors = {tensor.key for table in topic.tables for tensor in table.tensors}
    for place, sentence, words in _sentences(wording, topic, tensors):
        if unknown := sentence.words - words:
            problem = _("There is nothing to fill in for {{{word}}}. Known here: {known}.")
            yield (*place, "text"), problem.format(word=min(unknown), known=", ".join(sorted(words)))
        for condition in sentence.conditions:
            known = topic.rows if condition.fact == "asks" else tensors | topic.symbols
            if unknown := frozenset(condition.names) - known:
                problem = _("The topic “{topic}” has no “{name}”. Known here: {known}.")
                yield place, problem.format(topic=topic.key, name=min(unknown), known=", ".join(sorted(known)))
            if place[2:3] == ("title",) and not condition.is_about_model:
                facts = ", ".join(MODEL_FACTS)
                yield place, _("A title depends only on its model. Known here: {known}.").format(known=facts)


def _sentences(
    wording: Wording, topic: Topic, tensors: Collection[str]
) -> Iterator[tuple[Place, Sentence, frozenset[str]]]:
    """Every sentence in all its forms on sheets of a topic, with its place and what can be in {braces}."""
    words, nothing = wording.topics[topic.key], frozenset[str]()
    of_steps = topic.symbols.union(_WORDS_OF_STEPS, tensors, *((f"{key}.shape", f"{key}.formula") for key in tensors))
    own: list[tuple[Place, Forms, frozenset[str]]] = [
        (("title",), words.title, frozenset({"model"})),
        (("task",), words.task, nothing),
        *((("rows", key, "note"), row.note, nothing) for key, row in words.rows.items()),
        *((("steps", key, "question"), step.question, of_steps) for key, step in words.steps.items()),
        *((("steps", key, "reason"), step.reason, of_steps) for key, step in words.steps.items()),
    ]
    for place, forms, allowed in own:
        yield from ((("topics", topic.key, *place, at), form, allowed) for at, form in enumerate(forms))
    for section in PARTS_SECTIONS:
        for part, forms in wording.forms(topic.key, section).items():
            if part in words.parts(section):
                place = ("topics", topic.key, section, part) if part in words.own_forms(section) else (section, part)
                yield from (((*place, at), form, topic.symbols | _WORDS_OF_PARTS) for at, form in enumerate(forms))


def _differences(place: Place, keys: Collection[str], expected: Collection[str]) -> Iterator[tuple[Place, str]]:
    yield from _unknown_keys(place, keys, expected)
    yield from (((*place, key), _("This is missing.")) for key in expected if key not in keys)


def _unknown_keys(place: Place, keys: Collection[str], known: Collection[str]) -> Iterator[tuple[Place, str]]:
    problem = _("There is no such key. Known here: {known}.")
    yield from (((*place, key), problem.format(known=", ".join(known))) for key in keys if key not in known)


def _refuse(problems: Iterator[tuple[Place, str]], folder: Path, language: str) -> None:
    for (field, *rest), problem in problems:
        file = _FILES.get(str(field), "sheets.toml")
        if field == "topics":
            key, *rest = rest
            file = f"topics/{key}.toml"
        elif field == "misconceptions":
            file = _misconception_file(folder / language, str(rest[0]))
        elif field not in (*_FILES, "sheets"):
            rest = [field, *rest]
        line = _line(folder / language / file, rest)
        where = f"wording/{language}/{file}"
        if line:
            where = _("{file}, line {line}").format(file=where, line=line)
        table = ".".join(map(str, rest))
        raise WorksheetError(": ".join(filter(None, (where, table, problem))))


def _misconception_file(folder: Path, misconception: str) -> str:
    paths = sorted(folder.glob("misconceptions/*.toml"))
    files = (f"misconceptions/{path.name}" for path in paths if f"[{misconception}]" in path.read_text("utf-8"))
    return next(files, "misconceptions")


def _line(path: Path, place: Sequence[str | int]) -> int | None:
    """The line of a TOML file with the key at a place, or with the innermost table around it that is written."""
    table, deepest, line = list[str](), 0, None
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines() if path.is_file() else (), start=1):
        if header := re.fullmatch(r"\[(.+)\]", text):
            table = header[1].split(".")
        key = re.match(r'"?([\w.*/ +-]+?)"? *=', text)
        written = [*table, key[1]] if key else table
        depth = len(written)
        if depth > deepest and written == list(map(str, place[:depth])):
            deepest, line = depth, number
            # The forms of a sentence have a line each.
            if text.endswith("= [") and isinstance(form := next(iter(place[depth:]), None), int):
                line += 1 + form
    return line


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; raises WorksheetError if it can't be opened, isn't UTF-8 or isn't TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WorksheetError(_("{file} cannot be read: {reason}").format(file=path.name, reason=reason)) from None
