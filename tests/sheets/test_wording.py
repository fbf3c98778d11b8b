"""The wording and the code fit together: every sentence that is asked for is there, and every other one is found."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import pytest

from app.bugs.bank import BUGS
from app.figures.count_bars import KINDS_OF_COUNTS
from app.figures.glossary_drawings import GLOSSARY_DRAWINGS
from app.grading.compare import NearMiss
from app.models.architecture import NormKind
from app.models.families import FAMILIES
from app.settings import PROJECT
from app.shapes.operation import Relation
from app.shapes.table import Blank, Tensor, TensorTable
from app.sheets.library import Library
from app.sheets.reasons import sentence_of
from app.sheets.sheet_text import sentence_forms
from app.sheets.wording import MisconceptionText, SheetSection, Wording, WordingPart
from app.sheets.wording_files import read_wording
from app.sheets.worksheet import WorksheetError
from app.topics.registry import FIGURE_PLANS, TOPICS, topic_for
from app.topics.requirements import TopicError
from tests.helpers.asked_sentences import asked_keys, constructed_keys
from tests.helpers.families_cases import every_architecture
from tests.helpers.shipped import LIBRARY
from tests.helpers.source_code import app_modules

SectionOfParts = Literal["description", "assumptions"]
SECTIONS_OF_PARTS: tuple[SectionOfParts, ...] = get_args(SectionOfParts)
FOLDER = PROJECT / "worksheets" / "wording"
SYMBOLS = frozenset[str]().union(*(topic.symbols - topic.rows for topic in TOPICS.values()))
# Under which keys sheets name sizes: by their symbols, or as a description calls them otherwise.
SIZE_KEYS = SYMBOLS | {"N-encoder", "N-processed", "d-of-layers", "heads", "d_h-of-keys"}
SIZES = frozenset(symbol for family in FAMILIES.values() for symbol in family.sizes)


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


def hints_of_rows() -> set[str]:
    """The keys of the hints that tensors and counts have for themselves."""
    tables = set[TensorTable]().union(*map(tables_of, TOPICS))
    of_tensors = {tensor.hint for table in tables for tensor in table.tensors}
    return (of_tensors | {count.hint for table in tables for count in table.counts}) - {""}


def reasons_of_operations() -> set[str]:
    """The keys of the reasons of all tensors that an operation makes and a sheet can ask for."""
    tables = set[TensorTable]().union(*map(tables_of, TOPICS))
    entries = (entry for table in tables for entry in table.askable.values() if isinstance(entry, Tensor))
    return {sentence_of(each.made_by, len(each.shape) > 2) for each in entries if each.made_by}


def known_keys(wording: Wording) -> Mapping[str, Collection[str]]:
    """The keys of expressions that the code doesn't reveal; see `Keys`."""
    known: dict[str, Collection[str]] = {
        "words: mismatch.kind": ("heads", "undivided", "joined"),
        "grade: made_by.adds": ("mask", "residual", "summand"),
        "grade: near_miss(variant, blank, typed, text)": get_args(NearMiss),
        "grade: ('misconception' if name else 'mistake') + ('-one' if count == 1 else '')": (
            *("misconception", "misconception-one"),
            *("mistake", "mistake-one"),
        ),
        "hints: operation.relation": get_args(Relation),
        **dict.fromkeys(("hints: entry.hint", "hints: count.hint"), hints_of_rows()),
        "reasons: key": wording.sheets["reasons"].keys() & set[str]().union(*(topic.rows for topic in TOPICS.values())),
        "reasons: sentence_of(operation, is_batched)": reasons_of_operations(),
        "parameter_inventory: _TABLES[spec.part]": ("token-embedding", "position-table", "type-table"),
        "parameter_inventory: a.norm": get_args(NormKind),
        "parameter_inventory: letter": "qkvo",
        "parameter_inventory: _number_of_norms(rest)": "1234",
        "parameter_inventory: _number_of_norms(first[0])": "1",
        "parameter_inventory: f'{key}-{biases}'": [
            *(f"lm-head-tied-{biases}" for biases in range(2)), *(f"lm-head-untied-{biases}" for biases in range(3)),
        ],
        "parser: reason": (),  # a CannotReadError's, below
        "sheet_text: sentence_forms(self.problem)['cached'].items()": ("cached-window", "cached-some-windows"),
    }  # fmt: skip
    known["parameter_sentences: fact.key"] = constructed_keys("app.shapes.parameter_inventory", known, "Fact")
    known["wording: answer.reason"] = set[str]().union(
        *(constructed_keys(name, known, "Unreadable", "CannotReadError") for name in app_modules()
          if name.startswith(("app.algebra", "app.shapes", "app.sheets")))
    )  # fmt: skip
    return known


def forms_of_parts() -> Mapping[str, set[str]]:
    """The keys of the sentences of each part of a description or of assumptions that has several."""
    forms = sentence_forms(LIBRARY.variant("llama-7b").problem)
    return {part: {*keys} - {""} for part, keys in forms.items()}


def parts_asked(wording: Wording, topic: str, section: SectionOfParts) -> set[str]:
    """The keys of the sentences that a description, or assumptions, on a topic can have."""
    words, forms = wording.topics[topic], forms_of_parts()
    parts = words.description_parts if section == "description" else words.assumption_parts
    return set[str]().union(*(forms.get(part, {part}) for part in parts))


def figures_asked(topic: str) -> set[str]:
    """The keys of the figures that some model's sheet on a topic has."""
    plans = {plan.key for table in tables_of(topic) for plan in FIGURE_PLANS.get(table.key, ())}
    counts = [count.made_from for table in tables_of(topic) for count in table.counts]
    plans |= {"parts"} if any(total and "parts" in total.formula.symbols for total in counts) else set()
    _ending, *kinds = KINDS_OF_COUNTS.get(TOPICS[topic].bars, ("",))
    return plans | {*kinds, *(["growth"] if topic == "growth" else [])}


def sizes_asked(topic: str) -> set[str]:
    """The sizes that the sides of the tensors of a topic have."""
    sides = {str(side) for table in tables_of(topic) for tensor in table.tensors for side in tensor.shape}
    plot = {"growth-tokens", "growth-operations", "projections-flops", "pairwise-flops"}
    return sides | (plot if topic == "growth" else set())


def unused_or_missing(wording: Wording) -> Iterator[str]:
    """Every sentence that nothing asks for, and every one that is asked for and not there, by its place."""
    asked = asked_keys(known_keys(wording))
    for section in SECTIONS_OF_PARTS:
        asked[section] |= set[str]().union(*(parts_asked(wording, topic, section) for topic in TOPICS))
        own = {key for topic in TOPICS for key in wording.topics[topic].model_dump()[section]}
        asked[section] -= own - wording.sheets[section].keys()
    asked["formulas"] |= phrases_asked(wording)
    optional = {
        **dict.fromkeys(("symbol-names", "stated-sizes"), SIZE_KEYS),
        "axis-names": set[str]().union(*map(sizes_asked, TOPICS)),
        "row-things": {key for topic in TOPICS for table in tables_of(topic) for key in table.by_key},
    }
    for name, sentences in wording.sheets.items():
        asked[name] |= sentences.keys() & optional.get(name, set())
        yield from (f"{name}.{key}" for key in asked[name] ^ sentences.keys())
    for topic, words in wording.topics.items():
        for section in SECTIONS_OF_PARTS:
            needed, sentences = parts_asked(wording, topic, section), wording.topic_section(topic, section)
            written = words.description if section == "description" else words.assumptions
            yield from (f"{topic}.{section}.{key}" for key in (needed - sentences.keys()) | (written.keys() - needed))
        for names_of, names in (("symbol-names", words.symbol_names), ("stated-sizes", words.stated_sizes)):
            yield from (f"{topic}.{names_of}.{symbol}" for symbol in names.keys() - TOPICS[topic].symbols)
        yield from (f"{topic}.axis-names.{size}" for size in words.axis_names.keys() - sizes_asked(topic))
        counts = {f"{topic}.reasons.{count.key}" for table in tables_of(topic) for count in table.counts}
        yield from counts - {f"{topic}.reasons.{key}" for key in words.reasons}
        yield from (f"{topic}.reasons.{key}" for key in words.reasons.keys() - TOPICS[topic].rows)
        tensors = {key for table in tables_of(topic) for key in table.by_key}
        yield from (f"{topic}.row-things.{key}" for key in words.row_things.keys() - tensors)
        figures = figures_asked(topic)
        missing = figures - words.figures.keys() - wording.figures.keys()
        yield from (f"{topic}.figures.{key}" for key in missing | (words.figures.keys() - figures))
        asked_rows = {key: row for table in tables_of(topic) for key, row in table.askable.items()}
        yield from (f"{topic}.rows.{key}" for key in words.rows.keys() - asked_rows.keys())
        rows = {(key, row.fields) for table in tables_of(topic) for key, row in table.askable.items()}
        blanks = [Blank(key, side) for key, sides in rows if key in words.rows for side in sides]
        nudges = {str(blank) if str(blank) in words.nudges else f"each.{blank.field}" for blank in blanks}
        yield from (f"{topic}.nudges.{key}" for key in nudges ^ words.nudges.keys())
    shown = [key for topic in TOPICS for key in figures_asked(topic)]
    yield from (f"figures.{key}" for key in wording.figures if shown.count(key) < 2)
    yield from (f"glossary.{key}" for key in wording.glossary.keys() ^ GLOSSARY_DRAWINGS.keys())


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


REFUSED = [
    ("topics/costs.toml", "name =", "nome =", "name"),
    ("topics/costs.toml", "queries_flops =", "querys_flops =", "rows.querys_flops"),
    ("topics/costs.toml", '"queries_flops.count" =', '"queries_flops.colum" =', "nudges.queries_flops.colum"),
    ("topics/single-head.toml", "[nudges]", "[nudgs]", "nudges"),
    ("topics/single-head.toml", "queries = {}", 'queries = { noet = "all" }', "rows.queries.noet"),
    ("misconceptions/mask.toml", "hint =", "hnt =", "mask-forgotten.hint"),
    ("misconceptions/mask.toml", "[mask-forgotten]", "[mask-forgoten]", "mask-forgoten"),
    ("sheets.toml", "[hints]", "[hint]", "hint"),
    ("sheets.toml", "length-one =", "lenght-one =", "axes.rows.lenght-one"),
    ("glossary.toml", "term =", "trem =", "shape.term"),
    ("sample-course.toml", "course =", "curse =", "course"),
    ("bugs.toml", "[bugs.mask-inverted]", "[bugs.mask-turned]", "bugs.mask-turned"),
    ("bugs.toml", "spread]", "scatter]", "probes.scatter"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "before", "after", "place"), REFUSED)
def test_a_misspelled_key_is_refused_with_its_place(
    folder: Path, file: str, before: str, after: str, place: str
) -> None:
    change(folder / "en" / file, before, after)
    with pytest.raises(WorksheetError) as refused:
        read_wording(folder, "en")
    assert str(refused.value).startswith(f"wording/en/{file}: {place}")


@pytest.mark.parametrize("file", ["topics/costs.toml", "misconceptions/mask.toml", "sheets.toml"])
def test_a_missing_file_is_refused(folder: Path, file: str) -> None:
    (folder / "en" / file).unlink()
    with pytest.raises(WorksheetError, match=f"^(wording/en/)?{file}"):
        read_wording(folder, "en")


UNUSED = [
    ("topics/costs.toml", "[nudges]", '[axis-names]\nQ = "queries"\n\n[nudges]', "costs.axis-names.Q"),
    ("topics/costs.toml", "[description]", '[description]\nno-part = "Nothing."', "costs.description.no-part"),
    ("topics/costs.toml", "[nudges]", '[nudges]\n"each.rows" = "How many?"', "costs.nudges.each.rows"),
    ("topics/costs.toml", "[reasons]", '[reasons]\nno-row = "Nothing."', "costs.reasons.no-row"),
    ("topics/costs.toml", "[reasons]", '[row-things]\nno-tensor = "thing"\n\n[reasons]', "costs.row-things.no-tensor"),
    ("topics/costs.toml", "[nudges]", '[figures.flow-2]\ntitle = "A"\ncaption = "B"\n[nudges]', "costs.figures.flow-2"),
    *(
        ("sheets.toml", f"\n[{section}]\n", f'\n[{section}]\nnothing-asks = "Nothing."\n', f"{section}.nothing-asks")
        for section in get_args(SheetSection)
    ),
    ("glossary.toml", "[token]", '[bit]\nterm = "A"\ntext = "B"\nelsewhere = []\nwords = []\n[token]', "glossary.bit"),
]  # fmt: skip


@pytest.mark.slow
def test_a_sentence_that_nothing_asks_for_is_found(folder: Path) -> None:
    for file, before, after, _place in UNUSED:
        change(folder / "en" / file, before, after)
    assert {*unused_or_missing(read_wording(folder, "en"))} == {place for *_, place in UNUSED}


@pytest.mark.slow
def test_a_sentence_that_is_missing_is_found(folder: Path) -> None:
    gone = set[str]()
    sheets = folder / "en" / "sheets.toml"
    for section in get_args(SheetSection):
        text = sheets.read_text(encoding="utf-8")
        match = re.search(rf'\n\[{section}\]\n(\S+) = "[^\n]*"\n', text)
        assert match, section
        sheets.write_text(text.replace(match[0], f"\n[{section}]\n"), encoding="utf-8")
        gone.add(f"{section}.{match[1]}")
    for file, sentence in (
        ("costs.toml", r'"queries_flops.count" = [^\n]*\n'),
        ("costs.toml", r"\nwork = [^\n]*"),
        ("decode-step.toml", r"\n\[figures.new-token\]\n[^\n]*\n[^\n]*"),
    ):
        path = folder / "en" / "topics" / file
        text, count = re.subn(sentence, "", path.read_text(encoding="utf-8"))
        assert count == 1
        path.write_text(text, encoding="utf-8")
    gone |= {"costs.nudges.each.count", "costs.description.work", "decode-step.figures.new-token"}
    optional = {"symbol-names", "stated-sizes", "axis-names", "row-things"}
    found = {*unused_or_missing(read_wording(folder, "en"))}
    assert {each for each in gone if each.partition(".")[0] not in optional} - found == set()


def test_a_language_shows_english_where_it_has_no_sentence(folder: Path) -> None:
    german = folder / "de"
    (german / "topics").mkdir(parents=True)
    (german / "sheets.toml").write_text('[axes.rows]\nname = "Zeilen"\nlength = "{n} Zeilen"\n', encoding="utf-8")
    (german / "topics" / "costs.toml").write_text('name = "Kosten"\n', encoding="utf-8")
    words = read_wording(folder, "de")
    assert (words.topics["costs"].name, words.topics["growth"].name) == ("Kosten", "What grows with what")
    assert (words.axes["rows"].name, words.axes["rows"].length) == ("Zeilen", "{length} rows")
    (german / "topics" / "costs.toml").write_text('nmae = "Kosten"\n', encoding="utf-8")
    with pytest.raises(WorksheetError, match=r"^wording/de/topics/costs.toml: nmae: "):
        read_wording(folder, "de")


def test_what_is_said_about_bugs_is_true_of_pictures_and_sound() -> None:
    words = LIBRARY.wording.bugs
    said = [*words.programs.values(), *words.beliefs.values(), *(each.shows for each in words.probes.values())]
    said += [text for bug in words.bugs.values() for text in (bug.name, bug.reason, bug.explanation)]
    assert [text for text in said if re.search(r"\btexts?\b", text, re.IGNORECASE)] == []
