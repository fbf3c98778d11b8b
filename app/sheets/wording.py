"""The sentences of one language, from the files of a folder such as worksheets/wording/en/.

topics/KEY.toml            what only sheets on this topic say (`TopicWording`)
misconceptions/GROUP.toml  a table for each misconception: its sentences and, in English only, its formulas
sheets.toml                what sheets on several topics say
glossary.toml              a table for each term
sample-course.toml         the sample course
bugs.toml                  a table for each bug in code, and what else is said about them

Every field is checked when the files are read (`read_wording`): a mistake is an error that names file and line.

A sentence stands with the condition under which sheets say it, see `app.topics.facts`. Where it has several forms, they
are a list in which the first that fits is used:

    long-input = { when = "long-input", text = "The sequence is longer than the context length of {C} tokens." }
    tokens = [
      { when = "causal", text = "The input is {N} tokens; a causal mask hides later tokens." },
      "The input is {N} tokens; each of them attends to all {N}.",
    ]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)
from pydantic_core import ErrorDetails

from app.algebra.parser import Unreadable
from app.bugs.bank import BELIEFS, BUGS
from app.bugs.programs import PROGRAMS
from app.bugs.witnesses import Probe
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.models.architecture import Architecture
from app.shapes.table import Blank, BlankField
from app.sheets.worksheet import WorksheetError
from app.topics.facts import MODEL_FACTS, Word, is_true_of_model, is_true_of_sheet, words_of_condition
from app.topics.problem import Problem
from app.topics.registry import TOPICS
from app.topics.topic import Topic
from app.translation import ENGLISH
from app.translation import gettext as _

Sentences = Mapping[str, str]
MisconceptionText = Literal["nudge", "hint", "explanation"]
SheetSection = Literal[
    "inventory", "answers", "layer-names", "footnotes", "marks", "losses", "credit", "near-misses", "chain", "hints",
    "relations", "formulas", "unreadable", "drawing", "axis-names", "captions", "reasons", "row-things",
]  # fmt: skip
TopicSection = Literal["axis-names", "reasons", "row-things"]
PartsSection = Literal["description", "assumptions"]
PARTS_SECTIONS: tuple[PartsSection, ...] = ("description", "assumptions")
FormsSection = Literal["description", "assumptions", "symbol_names", "stated_sizes", "ruler"]


class WordingPart(BaseModel):
    """Sentences that belong together; in a file, the names of its fields have hyphens."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", "-"))


class Sentence(WordingPart):
    """One form of a sentence, for sheets of which one of the conditions in `when` is true, or for all.

    `states` are symbols whose sizes it states in other words than {symbol}. An aside is a sentence of a description
    that no row needs; `aside` can also be the condition under which it is one.
    """

    when: Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)] = ()
    text: str
    states: str = ""
    aside: bool | str = False

    @field_validator("when", "aside")
    @classmethod
    def _names_facts(cls, given: Any) -> Any:
        for condition in given if isinstance(given, tuple) else [given]:
            if isinstance(condition, str):
                words_of_condition(condition)
        return given

    @field_validator("text")
    @classmethod
    def _can_be_filled_in(cls, text: str) -> str:
        words_of(text)
        return text

    @property
    def conditions(self) -> Iterable[Word]:
        """Every word of the sentence's conditions."""
        conditions = (*self.when, *([self.aside] if isinstance(self.aside, str) else []))
        return (word for condition in conditions for word in words_of_condition(condition))

    @property
    def words(self) -> frozenset[str]:
        """What is in {braces} in the text."""
        return words_of(self.text)

    @property
    def symbols(self) -> frozenset[str]:
        return self.words.union(self.states.split())

    def fits(self, is_true: Callable[[str], bool]) -> bool:
        """Whether it has no condition, or one that is true."""
        return not self.when or any(map(is_true, self.when))

    def is_aside(self, problem: Problem) -> bool:
        return is_true_of_sheet(self.aside, problem) if isinstance(self.aside, str) else self.aside


def _as_forms(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [{"text": form} if isinstance(form, str) else form for form in given]
    return _as_forms([given])


def _in_reach(forms: tuple[Sentence, ...]) -> tuple[Sentence, ...]:
    if not all(form.when for form in forms[:-1]):
        raise ValueError(_("Only the last form can do without `when`: those after it would never be used."))
    return forms


def _fit_always(forms: tuple[Sentence, ...]) -> tuple[Sentence, ...]:
    if not forms or forms[-1].when:
        raise ValueError(_("The last form must do without `when`, for all sheets that no other form fits."))
    return forms


# The forms of a sentence that some sheets don't have: in a file a text, a table, or a list of these.
Forms = Annotated[tuple[Sentence, ...], BeforeValidator(_as_forms), AfterValidator(_in_reach)]
# The forms of a sentence that every sheet has.
AllForms = Annotated[Forms, AfterValidator(_fit_always)]


def fitting(forms: Iterable[Sentence], problem: Problem) -> Sentence | None:
    """The first form that fits a sheet, or None."""
    return next((form for form in forms if form.fits(lambda condition: is_true_of_sheet(condition, problem))), None)


def fitting_text(forms: Iterable[Sentence], problem: Problem) -> str:
    """The text of the first form that fits a sheet, or ""."""
    form = fitting(forms, problem)
    return form.text if form else ""


class RowWording(WordingPart):
    """A row's name, its name in hints if it asks for a count, and the note below it."""

    name: str
    box: str = ""
    note: Forms = ()


class StepWording(WordingPart):
    """The question that asks for a row of a sheet in steps and, once it is right, the `why` with its reason."""

    question: AllForms
    why: str
    reason: AllForms


class FigureWording(WordingPart):
    """What a figure is about, for screen readers, and the caption below it."""

    title: str
    caption: str


class SectionsOfSheets(WordingPart):
    """Sentences of one topic or of several, by the part of a description or of assumptions, or by symbol."""

    description: Mapping[str, Forms] = Field({}, repr=False)
    assumptions: Mapping[str, Forms] = Field({}, repr=False)
    symbol_names: Mapping[str, AllForms] = Field({}, repr=False)
    stated_sizes: Mapping[str, AllForms] = Field({}, repr=False)
    ruler: Mapping[str, Forms] = Field({}, repr=False)

    def own_forms(self, section: FormsSection) -> Mapping[str, Forms]:
        """The sentences of a section that are written here, in all their forms."""
        forms: Mapping[str, Forms] = getattr(self, section)
        return forms


class TopicWording(SectionsOfSheets):
    """The sentences of one topic's sheets. `description_parts` and `assumption_parts` are written in this order."""

    name: str
    title: AllForms
    task: AllForms
    how: Forms = ()
    run_title: str = ""
    run_button: str = ""
    description_parts: tuple[str, ...]
    assumption_parts: tuple[str, ...]
    rows: Mapping[str, RowWording]
    steps: Mapping[str, StepWording] = {}
    nudges: Sentences
    axis_names: Sentences = {}
    reasons: Sentences = {}
    row_things: Sentences = {}
    code: Sentences = {}
    figures: Mapping[str, FigureWording] = {}

    def title_for(self, name: str, architecture: Architecture) -> str:
        """The title for the model called `name`, "One head of LLaMA 7B"."""
        title = next(form for form in self.title if form.fits(lambda each: is_true_of_model(each, architecture)))
        return title.text.format(model=name)

    def parts(self, section: PartsSection) -> tuple[str, ...]:
        """The parts of the description or of the assumptions, in order."""
        return self.description_parts if section == "description" else self.assumption_parts

    def nudge(self, blank: Blank) -> str:
        """The question next to a wrong blank: its own nudge, or the topic's for its field."""
        return self.nudges.get(str(blank)) or self.nudges[f"each.{blank.field}"]


NO_TOPIC_WORDING = TopicWording.model_construct(
    name="", title=(), task=(), how=(), description_parts=(), assumption_parts=(), rows={}, nudges={}
)


class MisconceptionWording(WordingPart):
    """A misconception in a few words, such as 'Head as wide as the model', and its sentences.

    They are a question that points to the mistake, a hint that says what to compare, and the explanation afterwards.
    """

    name: str
    nudge: str
    hint: str
    explanation: str


class AxisWording(WordingPart):
    """A field as sheets name it ("rows"), one of these ("row"), its size ("number of rows"), and a length in words.

    Dimensions and counts have no "one".
    """

    name: str
    one: str = ""
    size: str
    length: str = ""
    length_one: str = ""


class GlossaryEntry(WordingPart):
    """A term: `words` are its names in sentences, `elsewhere` those in code and papers.

    `letter` is a matrix's, and `size` a key of the section "symbol-names".
    """

    term: str
    letter: str = ""
    size: str = ""
    text: str
    elsewhere: tuple[str, ...]
    words: tuple[str, ...]


class SampleCourseWording(WordingPart):
    """The sample course: its title, its lessons' titles, its students, and their exit-ticket answers, by key."""

    course: str
    yesterday: str
    today: str
    names: tuple[str, ...]
    tickets: Mapping[str, tuple[str, ...]]


class BugWording(WordingPart):
    """A bug in code in a few words, the claim that is its reason, and the explanation afterwards."""

    name: str
    reason: str
    explanation: str


class ProbeWording(WordingPart):
    """What a probe of code shows, and what it would show for right code."""

    shows: str
    right: str


class BankWording(WordingPart):
    """The sentences about code with a bug: `programs` are names, `beliefs` wrong reasons, all by key."""

    programs: Sentences
    beliefs: Sentences
    probes: Mapping[str, ProbeWording]
    bugs: Mapping[str, BugWording]

    def reason(self, key: str) -> str:
        """A bug's reason, or a belief; raises KeyError for an unknown key."""
        return self.bugs[key].reason if key in self.bugs else self.beliefs[key]


class Wording(SectionsOfSheets):
    """The sentences of one language; compared by identity, so that it can be the key of a cache.

    `sheets` are sections of sentences by key, with their {words} not filled in.
    """

    topics: Mapping[str, TopicWording] = Field(repr=False)
    misconceptions: Mapping[str, MisconceptionWording] = Field(repr=False)
    sheets: Mapping[str, Sentences] = Field(repr=False)
    axes: Mapping[str, AxisWording] = Field(repr=False)
    figures: Mapping[str, FigureWording] = Field(repr=False)
    glossary: Mapping[str, GlossaryEntry] = Field(repr=False)
    sample_course: SampleCourseWording = Field(repr=False)
    bugs: BankWording = Field(repr=False)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def say(self, section: SheetSection, key: str, **words: object) -> str:
        """The sentence of that section and key with its {words} filled in; raises KeyError if there is none."""
        return self.sheets[section][key].format(**words)

    def topic(self, key: str) -> TopicWording:
        """The wording of a topic, or one without sentences."""
        return self.topics.get(key, NO_TOPIC_WORDING)

    def topic_section(self, topic: str, section: TopicSection) -> Sentences:
        """A section's sentences by key: the general ones, replaced and extended by the topic's."""
        return {**self.sheets[section], **getattr(self.topic(topic), section.replace("-", "_"))}

    def forms(self, topic: str, section: FormsSection) -> Mapping[str, Forms]:
        """The shared sentences of a section, replaced and extended by the topic's, in all their forms."""
        return {**self.own_forms(section), **self.topic(topic).own_forms(section)}

    def usual_size_name(self, symbol: str) -> str:
        """What a symbol means on most sheets: the last form of its name."""
        return self.symbol_names[symbol][-1].text

    def axis_name(self, topic: str, size: str) -> str:
        """What a side's length counts on a topic's sheets, by its size, or ""."""
        return self.topic_section(topic, "axis-names").get(size, "")

    def figure(self, topic: str, key: str) -> FigureWording:
        """The title and caption of a figure: the topic's or the general ones."""
        return self.topic(topic).figures.get(key) or self.figures[key]

    def misconception(self, key: str, kind: MisconceptionText) -> str:
        """One text of the misconception with this key."""
        return str(getattr(self.misconceptions[key], kind))

    def misconception_name(self, key: str) -> str:
        """A misconception in a few words, such as 'Head as wide as the model'; raises KeyError for an unknown one."""
        return self.misconceptions[key].name

    def unreadable(self, answer: Unreadable) -> str:
        """Why an answer couldn't be read, and what to write instead."""
        return self.say("unreadable", answer.reason, detail=answer.detail, symbols=answer.symbols)


def laid_over(below: Any, above: Any) -> Any:
    """Nested sentences of `above` merged over those of `below`.

    >>> laid_over({"a": "{d} rows", "b": {"c": "no", "d": "yes"}}, {"a": "{N} Zeilen", "b": {"c": "nein"}})
    {'a': '{d} rows', 'b': {'c': 'nein', 'd': 'yes'}}
    """
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        both = {key: laid_over(each, above[key]) if key in above else each for key, each in below.items()}
        return {**above, **both}
    if isinstance(below, str) and isinstance(above, str) and below:
        return above if words_of(above) <= words_of(below) else below
    return above


def words_of(sentence: str) -> frozenset[str]:
    """The {words} of a sentence, such as "d" and "H" of "{d}/{H}"."""
    return frozenset(name for _text, name, _spec, _conversion in Formatter().parse(sentence) if name)


# Reading and checking the files

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
    fields = ("rows", "axes", "figures", *(each.alias for each in SectionsOfSheets.model_fields.values()))
    groups = [read_toml(path) for path in sorted(folder.glob("misconceptions/*.toml"))]
    return {
        **{key: sheets.pop(key) for key in fields if key in sheets},
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
        figures = TOPICS[key].figure_keys - wording.figures.keys() - topic.figures.keys()
        yield from ((("topics", key, "figures", each), _("This is missing.")) for each in sorted(figures))
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
        (("how",), words.how, nothing),
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
