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


# The packages that name a section's keys where they do not name the section: they hand them on to those that do.
KEYS_FROM: Mapping[str, tuple[str, ...]] = {
    "inventory": ("shapes",), "symbol-names": ("models", "shapes"), "counted-things": ("models", "shapes"),
    "stated-sizes": ("models", "shapes"), "lengths": ("shapes",), "length-one": ("shapes",), "axes": ("shapes",),
    "axis-lengths": ("shapes",), "relations": ("shapes", "figures"), "unreadable": ("algebra",),
    "axis-names": ("figures", "shapes"), "run-titles": ("shapes",), "run-buttons": ("shapes",),
    "run-notes": ("forward",), "sizes": ("models",), "misconception-groups": ("misconceptions",),
    "glossary": ("figures",), "chain": ("shapes",),
}  # fmt: skip
# Keys that are put together from values alone, or from names with an underscore for a hyphen.
PUT_TOGETHER: Mapping[str, tuple[str, ...]] = {
    "inventory": (
        "head-transform", "lm-head-tied-0", "lm-head-tied-1", "lm-head-untied-0", "lm-head-untied-1",
        "lm-head-untied-2",
    ),
    "relations": ("view", "reshape", "repeat_interleave"),  # calls in the formulas of the tables
    "formulas": ("matrix",),
    "axis-names": ("projections-flops", "pairwise-flops"),
    "kinds": ("qk-norm",),
}  # fmt: skip


@cache
def texts_of(package: str) -> set[str]:
    """Every text in a package that stands in the code as it is."""
    return {node.value for name, tree in app_modules().items() if package_of(name) == package
            for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}  # fmt: skip


@cache
def formats_of(package: str) -> re.Pattern[str]:
    """What fits every text that an f-string of a package may become."""
    patterns = {each for name, tree in app_modules().items() if package_of(name) == package for each in formats(tree)}
    return re.compile("|".join(sorted(patterns)) or "(?!)")


def is_used(section: str, key: str) -> bool:
    """Whether a package that names the section, or hands it its keys, has the key as a text or a fitting f-string.

    Or a template has both in quotes.
    """
    packages = {package_of(name) for name in app_modules()}
    naming = {package for package in packages if section in texts_of(package)} | {*KEYS_FROM.get(section, ())}
    in_code = any(key in texts_of(package) or formats_of(package).fullmatch(key) for package in naming)
    return in_code or {section, key} <= quoted_in_templates() or key in PUT_TOGETHER.get(section, ())


def table_texts() -> Iterator[str]:
    """Every text in the modules of the tables."""
    for name, tree in app_modules().items():
        if package_of(name) == "shapes":
            yield from (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def formats(tree: ast.AST) -> Iterator[str]:
    """A pattern of each f-string of a module that may be looked up, with gaps for its values.

    Of "key:detail" only the key counts. What has no word of its own is left out: it would match everything.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values]
            key = "".join(parts).split(":")[0]
            if re.search(r"[a-z]", key):
                yield r"[\w-]+".join(map(re.escape, key.split("\0")))


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


def test_a_sentence_that_nothing_says_is_found() -> None:
    """Though another section has a key of the name, or some text in another package is the same."""
    unused = [
        ("inventory", "division-by-zero"),
        ("kinds", "unstated"),
        ("lint", "answers-bold"),
        ("no-section", "title"),
    ]
    assert [pair for pair in unused if is_used(*pair)] == []
    assert is_used("lint", "unstated")


def test_every_sentence_is_used(library: Library) -> None:
    """By a package that names its section or hands it its keys, unless its key is in a table of the code."""
    sections = library.wording.sections
    phrases = [name for words in sections["formulas"].values() for name in re.findall(r"\{([\w-]+)\}", str(words))]
    unused = [
        f"{section}.{key}"
        for section, words in sections.items()
        for key in words
        if key not in (*looked_up(section, sections), *phrases) and not is_used(section, key)
    ]
    assert unused == []


def test_every_sentence_that_the_code_names_is_there(library: Library) -> None:
    """Each call of `say` with a section and a key written out finds its sentence."""
    said = {pair for tree in app_modules().values() for pair in said_with_literals(tree)}
    assert len(said) > 20
    sections = library.wording.sections
    assert [(section, key) for section, key in sorted(said) if key not in sections.get(section, {})] == []
