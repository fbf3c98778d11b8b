"""The wording file and the code fit together: every sentence is used, and every sentence that is used is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from app.misconceptions.catalogue import MISCONCEPTIONS
from app.settings import PROJECT
from app.shapes import tables
from app.shapes.table import TensorTable
from app.shapes.topics import TOPICS
from app.sheets.library import Library
from tests.helpers.source_code import app_modules, package_of

# Sections whose keys come from the code's own tables: topics, the topics' rows, or misconceptions.
BY_TOPIC = ("titles", "topics", "tasks", "description-parts", "assumption-parts", "rows", "nudges")
BY_MISCONCEPTION = ("misconceptions", "misconception-names")


@cache
def quoted_in_templates() -> set[str]:
    """Every key in quotes in a template."""
    texts = [path.read_text(encoding="utf-8") for path in (PROJECT / "templates").rglob("*.html")]
    return {key for text in texts for key in re.findall(r"(?<=[\"'])[\w.:-]+(?=[\"'])", text)}


@cache
def constants_in_code() -> set[str]:
    """Every text that stands in the code as it is."""
    return {node.value for tree in app_modules().values() for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)}  # fmt: skip


@cache
def formats_in_code() -> re.Pattern[str]:
    """What fits every text that an f-string of the code may become."""
    return re.compile("|".join(sorted({each for tree in app_modules().values() for each in formats(tree)})))


def table_texts() -> Iterator[str]:
    """Every text in the modules of the tables."""
    for name, tree in app_modules().items():
        if package_of(name) == "shapes":
            yield from (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def formats(tree: ast.AST) -> Iterator[str]:
    """A pattern of each f-string of a module that may be looked up, with gaps for its values.

    An f-string that begins and ends with a value and has no word of its own is left out: it would match everything.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "" for part in node.values]
            if any(re.search(r"[a-z]", part) for part in parts):
                yield "".join(re.escape(part) or r"[\w-]+" for part in parts).split(":")[0]  # "key:detail"


def said_with_literals(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(section, key) of every call of `say` in a module that has both as texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            section, key = node.args[:2]
            if name == "say" and isinstance(section, ast.Constant) and isinstance(key, ast.Constant):
                yield str(section.value), str(key.value)


def looked_up(section: str, wording: Mapping[str, Any]) -> Sequence[str]:
    """The keys that the code's tables look up in a section, beside those that are written in the code."""
    if section in BY_TOPIC:
        return tuple(TOPICS)
    if section in BY_MISCONCEPTION:
        return tuple(each.key for each in MISCONCEPTIONS)
    parts = {"description": "description-parts", "assumptions": "assumption-parts"}
    if section in parts:
        return [part for topic in wording[parts[section]].values() for part in topic]
    if section == "why":  # of one size, "d_h-share": its symbol and a rule
        return [key for key in wording[section] if key.split("-")[0] in wording["sizes"]]
    if section == "axis-names":  # lengths of the tables' matrices
        named = [table for table in vars(tables).values() if isinstance(table, TensorTable)]
        return [str(length) for table in named for tensor in table.tensors for length in tensor.shape]
    if section == "formulas":  # phrases, which the tables name in braces
        return [name for text in table_texts() for name in re.findall(r"\{([\w-]+)\}", text)]
    return ()


def written(key: str) -> bool:
    """Whether the code has that key as a text or as an f-string that fits, or a template has it in quotes."""
    return key in constants_in_code() or key in quoted_in_templates() or bool(formats_in_code().fullmatch(key))


def test_every_sentence_is_used(library: Library) -> None:
    """Its section is written in the code, and its key too unless it is in a table of the code."""
    sections = library.wording.sections
    assert [section for section in sections if not written(section)] == []
    phrases = [name for words in sections["formulas"].values() for name in re.findall(r"\{([\w-]+)\}", str(words))]
    unused = [
        f"{section}.{key}"
        for section, words in sections.items()
        for key in words
        if key not in (*looked_up(section, sections), *phrases) and not written(key)
    ]
    assert unused == []


def test_every_sentence_that_the_code_names_is_there(library: Library) -> None:
    """Each call of `say` with a section and a key written out finds its sentence."""
    said = {pair for tree in app_modules().values() for pair in said_with_literals(tree)}
    assert len(said) > 20
    sections = library.wording.sections
    assert [(section, key) for section, key in sorted(said) if key not in sections.get(section, {})] == []
