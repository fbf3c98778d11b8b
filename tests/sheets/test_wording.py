"""The wording and the code fit together: what files say is checked as they are read, and every sentence is used."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from app.bugs.bank import BUGS
from app.figures.glossary_drawings import GLOSSARY_DRAWINGS
from app.settings import PROJECT
from app.shapes.table import Tensor, TensorTable
from app.sheets.library import Library
from app.sheets.reasons import sentence_of
from app.sheets.wording import MisconceptionText, SheetSection, Wording, WordingPart, read_wording
from app.sheets.worksheet import WorksheetError
from app.topics.registry import FIGURE_PLANS, TOPICS, topic_for
from app.topics.requirements import TopicError
from tests.helpers.families_cases import every_architecture
from tests.helpers.shipped import LIBRARY
from tests.helpers.source_code import app_modules, written_name

FOLDER = PROJECT / "worksheets" / "wording"
SYMBOLS = frozenset[str]().union(*(topic.symbols - topic.rows for topic in TOPICS.values()))


@cache
def tables_of(topic: str) -> frozenset[TensorTable]:
    """The tables that a topic has for models of all families and those shipped, with few tokens and many."""
    tables = set[TensorTable]()
    shipped = [model.architecture for model in LIBRARY.models.values()]
    for architecture in shipped if TOPICS[topic].bugs else [*every_architecture(), *shipped]:
        for tokens in (40, 5000):
            with suppress(TopicError):
                tables.add(topic_for(topic, architecture, architecture.fixed_tokens or tokens))
    for bug, model in product(TOPICS[topic].bugs, ("qwen2.5-0.5b", "gpt2", "bart-base")):
        with suppress(TopicError):
            tables.add(topic_for(topic, LIBRARY.models[model].architecture, 10, BUGS[bug]))
    return frozenset(tables)


def phrases_asked(wording: Wording) -> set[str]:
    """The names in braces in all tables' formulas and phrases that aren't a tensor, count or size."""
    names, phrases = set[str](), wording.sheets["formulas"].items()
    for table in set[TensorTable]().union(*map(tables_of, TOPICS)):
        made = [tensor.made_by for tensor in table.tensors if tensor.made_by]
        formulas = [operation.formula() for operation in made]
        asked = {name for text in (*formulas, *(count.formula for count in table.counts)) for name in braces(text)}
        asked |= {name for key, text in phrases if key in asked for name in braces(text)}
        names |= asked - {"norm", *SYMBOLS, *table.by_key, *table.askable}
    return names


def braces(text: str) -> list[str]:
    return re.findall(r"\{([\w-]+)\}", text)


def figures_asked(topic: str) -> set[str]:
    """The keys of the figures that some model's sheet on a topic has."""
    plans = {plan.key for table in tables_of(topic) for plan in FIGURE_PLANS.get(table.key, ())}
    counts = [count.made_from for table in tables_of(topic) for count in table.counts]
    plans |= {"parts"} if any(total and "parts" in total.formula.symbols for total in counts) else set()
    plans |= {figure.key for figure in TOPICS[topic].count_figures}
    return plans | ({"growth"} if TOPICS[topic].growth else set())


def sizes_asked(topic: str) -> set[str]:
    """The sizes that the sides of the tensors of a topic have."""
    sides = {str(side) for table in tables_of(topic) for tensor in table.tensors for side in tensor.shape}
    plot = {"growth-tokens", "growth-operations", "projections-flops", "pairwise-flops"}
    return sides | (plot if TOPICS[topic].growth else set())


def reasons_of_operations() -> set[str]:
    """The keys of the reasons of all tensors that an operation makes and a sheet can ask for."""
    tables = set[TensorTable]().union(*map(tables_of, TOPICS))
    entries = (entry for table in tables for entry in table.askable.values() if isinstance(entry, Tensor))
    return {sentence_of(each.made_by, len(each.shape) > 2) for each in entries if each.made_by}


def is_in_the_code(key: str, strings: frozenset[str]) -> bool:
    """Whether the code has this key as a string, or its beginning before the last hyphen or with it."""
    stem = key.rpartition("-")[0]
    return not strings.isdisjoint({key, stem, f"{stem}-", f"{key.partition('-')[0]}-"} - {"", "-"})


def strings_in_the_code() -> frozenset[str]:
    nodes = (node for tree in app_modules().values() for node in ast.walk(tree))
    return frozenset(str(node.value) for node in nodes if isinstance(node, ast.Constant))


def unused_or_missing(wording: Wording) -> Iterator[str]:
    """Every sentence that nothing asks for, and every one that is asked for and not there, by its place."""
    strings = strings_in_the_code()
    tensors = {tensor.key for topic in TOPICS.values() for table in topic.tables for tensor in table.tensors}
    rows = tensors.union(*(topic.rows for topic in TOPICS.values()))
    made = {"formulas": phrases_asked(wording), "reasons": reasons_of_operations() | rows, "row-things": rows}
    made["axis-names"] = set[str]().union(*map(sizes_asked, TOPICS))
    for section, sentences in wording.sheets.items():
        unused = (key for key in sentences if key not in made.get(section, ()) and not is_in_the_code(key, strings))
        yield from (f"{section}.{key}" for key in unused)
    for section, key in keys_said():
        if key not in wording.sheets[section]:
            yield f"{section}.{key}"
    yield from (f"reasons.{key}" for key in reasons_of_operations() - wording.sheets["reasons"].keys())
    yield from (f"formulas.{key}" for key in phrases_asked(wording) - wording.sheets["formulas"].keys())
    for topic, words in wording.topics.items():
        yield from (f"{topic}.axis-names.{size}" for size in words.axis_names.keys() - sizes_asked(topic))
        figures = figures_asked(topic)
        missing = figures - words.figures.keys() - wording.figures.keys()
        yield from (f"{topic}.figures.{key}" for key in missing | (words.figures.keys() - figures))
    shown = [key for topic in TOPICS for key in figures_asked(topic)]
    yield from (f"figures.{key}" for key in wording.figures if shown.count(key) < 2)
    yield from (f"glossary.{key}" for key in wording.glossary.keys() ^ GLOSSARY_DRAWINGS.keys())


def keys_said() -> Iterator[tuple[SheetSection, str]]:
    """The section and key of every sentence that the code names in so many words: say("marks", "follows")."""
    for node in (node for tree in app_modules().values() for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and written_name(node.func).endswith(".wording.say"):
            match node.args:
                case [ast.Constant(value=section), ast.Constant(value=key), *_]:
                    yield section, key  # type: ignore[misc]


@pytest.mark.slow
def test_every_sentence_is_asked_for_and_every_one_that_is_asked_for_is_there(library: Library) -> None:
    assert [*unused_or_missing(library.wording)] == []


def test_every_field_of_a_wording_is_read() -> None:
    read = {node.attr for tree in app_modules().values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    parts = [each for part in WordingPart.__subclasses__() for each in (part, *part.__subclasses__())]
    fields = {field for part in parts for field in part.model_fields}
    assert len(fields) > 30
    assert fields - read - set(get_args(MisconceptionText)) == set()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the wording's folder, to change."""
    shutil.copytree(FOLDER / "en", tmp_path / "en")
    return tmp_path


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(before) >= 1, (path, before)
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


# A file, what is changed in it, where the mistake is, and a word that the message lists as allowed.
REFUSED = [
    ("topics/costs.toml", "name =", "nome =", "nome", "name"),
    ("topics/costs.toml", 'name = "FLOPs', 'nmae = ""\nname = "FLOPs', "nmae", "run-title"),
    ("topics/costs.toml", "queries_flops =", "querys_flops =", "rows.querys_flops", "scores_flops"),
    (
        "topics/costs.toml",
        '"queries_flops.count" =',
        '"queries_flops.colum" =',
        "nudges.queries_flops.colum",
        "each.count",
    ),
    ("topics/costs.toml", "[nudges]", '[nudges]\n"each.rows" = "?"', "nudges.each.rows", "queries_flops.count"),
    ("topics/costs.toml", "[reasons]", '[reasons]\nno-row = "?"', "reasons.no-row", "queries_flops"),
    ("topics/costs.toml", "[reasons]", '[row-things]\nqueries = "?"\n[reasons]', "row-things.queries", ""),
    ("topics/costs.toml", "[nudges]", '[symbol-names]\nQ = "?"\n[nudges]', "symbol-names.Q", "params"),
    ("topics/single-head.toml", "[nudges]", "[nudgs]", "nudgs", "nudges"),
    ("topics/single-head.toml", "queries = {}", 'queries = { noet = "all" }', "rows.queries.noet", "note"),
    ("topics/decode-step.toml", 'when = "window"', 'when = "windw"', "description.dropped.0.when", "window"),
    ("topics/decode-step.toml", 'when = "window"', 'when = "window, causal"', "description.dropped.0.when", "asks"),
    ("topics/decode-step.toml", 'when = "window"', 'wehn = "window"', "description.dropped.0.wehn", "when"),
    ("topics/decode-step.toml", '"dropped",', '"droped",', "description.dropped", "long-input"),
    ("topics/decode-step.toml", '"sinks", "step"', '"sink", "step"', "description-parts", "sinks"),
    ("topics/decode-step.toml", '{ when = "one-token", states', "{ states", "description.step", ""),
    ("topics/decode-step.toml", "the last {W} tokens", "the last {w} tokens", "description.dropped.0.text", "W"),
    ("topics/decode-step.toml", "the last {W} tokens", "the last {W tokens", "description.dropped.0.text", ""),
    ("topics/costs.toml", 'when = "kv-cache"', 'when = "asks(query_flops)"', "description.work.0", "queries_flops"),
    ("topics/costs.toml", 'when = "kv-cache"', 'when = "has(d_fff)"', "description.work.0", "d_ff"),
    ("topics/costs.toml", "title =", 'title = { when = "causal", text = "?" } #', "title", ""),
    ("topics/single-head.toml", 'when = "encoder-decoder"', 'when = "one-token"', "title.0", "encoder-decoder"),
    ("topics/first-steps.toml", "{weights.formula}", "{weight.formula}", "steps.weights.question.0.text", "weights"),
    ("sheets.toml", "[hints]", "[hint]", "hint", "hints"),
    ("sheets.toml", "length-one =", "lenght-one =", "axes.rows.lenght-one", "length-one"),
    ("sheets.toml", 'when = "softcap"', 'when = "softcaps"', "description.softcap.0.when", "softcap"),
    ("sheets.toml", "[description]", '[description]\nno-part = "?"', "description.no-part", "width"),
    ("glossary.toml", "term =", "trem =", "shape.trem", "term"),
    ("sample-course.toml", "course =", "curse =", "curse", "course"),
    ("bugs.toml", "[bugs.mask-inverted]", "[bugs.mask-turned]", "bugs.mask-turned", "mask-inverted"),
    ("bugs.toml", "spread]", "scatter]", "probes.scatter", "spread"),
]


@pytest.mark.parametrize(("file", "before", "after", "place", "allowed"), REFUSED)
def test_a_mistake_is_refused_with_its_place_and_what_is_allowed(
    folder: Path, file: str, before: str, after: str, place: str, allowed: str
) -> None:
    change(folder / "en" / file, before, after)
    with pytest.raises(WorksheetError) as refused:
        read_wording(folder, "en")
    message = str(refused.value)
    assert re.match(rf"wording/en/{re.escape(file)}(, line \d+)?: {re.escape(place)}: ", message), message
    assert allowed in message.partition(f"{place}: ")[2]


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("topics/decode-step.toml", 'when = "window"', 'when = "windw"'),
        ("topics/costs.toml", 'when = "kv-cache"', 'when = "kv-cash"'),  # in a list of forms
        ("topics/single-head.toml", "queries = {}", 'queries = { noet = "all" }'),
        ("topics/first-steps.toml", "{weights.formula}", "{weight.formula}"),
        ("sheets.toml", "lm-head", "ml-head"),
        ("bugs.toml", "[bugs.mask-inverted]", "[bugs.mask-turned]"),
    ],
)
def test_a_mistake_is_refused_with_its_line(folder: Path, file: str, before: str, after: str) -> None:
    path = folder / "en" / file
    change(path, before, after)
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if after in text)
    with pytest.raises(WorksheetError, match=f"{file}, line {line}: "):
        read_wording(folder, "en")


@pytest.mark.parametrize("file", ["topics/costs.toml", "sheets.toml"])
def test_a_missing_file_is_refused(folder: Path, file: str) -> None:
    (folder / "en" / file).unlink()
    with pytest.raises(WorksheetError, match=f"^(wording/en/)?{file}"):
        read_wording(folder, "en")


@pytest.mark.slow
def test_a_sentence_that_nothing_asks_for_or_that_is_missing_is_found(folder: Path) -> None:
    sheets, costs = folder / "en" / "sheets.toml", folder / "en" / "topics" / "costs.toml"
    for section in get_args(SheetSection):
        change(sheets, f"\n[{section}]\n", f'\n[{section}]\nsuperfluous-sentence = "Nothing."\n')
    change(costs, "[nudges]", '[figures.flow-2]\ntitle = "A"\ncaption = "B"\n[nudges]')
    change(costs, "[nudges]", '[axis-names]\nQ = "queries"\n\n[nudges]')
    for sentence in ("incomplete", "scaled-scores", "Matmul"):
        change(sheets, f"\n{sentence} = ", f"\nnothing-{sentence} = ")
    found = {*unused_or_missing(read_wording(folder, "en"))}
    assert {f"{section}.superfluous-sentence" for section in get_args(SheetSection)} <= found
    assert {"costs.figures.flow-2", "costs.axis-names.Q"} <= found
    assert {"marks.incomplete", "formulas.scaled-scores", "reasons.Matmul"} <= found


def test_a_language_shows_english_where_it_has_no_sentence(folder: Path) -> None:
    german = folder / "de"
    (german / "topics").mkdir(parents=True)
    (german / "sheets.toml").write_text('[axes.rows]\nname = "Zeilen"\nlength = "{n} Zeilen"\n', encoding="utf-8")
    (german / "topics" / "costs.toml").write_text('name = "Kosten"\n', encoding="utf-8")
    words = read_wording(folder, "de")
    assert (words.topics["costs"].name, words.topics["growth"].name) == ("Kosten", "What grows with what")
    assert (words.axes["rows"].name, words.axes["rows"].length) == ("Zeilen", "{length} rows")
    (german / "topics" / "costs.toml").write_text('nmae = "Kosten"\n', encoding="utf-8")
    with pytest.raises(WorksheetError, match=r"^wording/de/topics/costs.toml, line 1: nmae: "):
        read_wording(folder, "de")


def test_what_is_said_about_bugs_is_true_of_pictures_and_sound() -> None:
    words = LIBRARY.wording.bugs
    said = [*words.programs.values(), *words.beliefs.values(), *(each.shows for each in words.probes.values())]
    said += [text for bug in words.bugs.values() for text in (bug.name, bug.reason, bug.explanation)]
    assert [text for text in said if re.search(r"\btexts?\b", text, re.IGNORECASE)] == []
