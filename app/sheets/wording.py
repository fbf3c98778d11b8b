"""The sentences of one language, from the files of a folder such as worksheets/wording/en/.

Each topic has a file (`TopicWording`), and misconceptions have some (`MisconceptionWording`); what several topics share
is in sheets.toml. Every field is checked when the files are read, see `wording_files.py`.

A sentence stands with the condition under which sheets say it, see `app.topics.facts`. Where it has several forms, they
are a list in which the first that fits is used:

    long-input = { when = "long-input", text = "The sequence is longer than the context length of {C} tokens." }
    tokens = [
      { when = "causal", text = "The input is {N} tokens; a causal mask hides later tokens." },
      "The input is {N} tokens; each of them attends to all {N}.",
    ]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from app.algebra.parser import Unreadable
from app.models.architecture import Architecture
from app.shapes.table import Blank
from app.topics.facts import Word, is_true_of_model, is_true_of_sheet, words_of_condition
from app.topics.problem import Problem
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
FormsSection = Literal["description", "assumptions", "symbol-names", "stated-sizes"]


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
    fits = (form for form in forms if not form.when or any(is_true_of_sheet(each, problem) for each in form.when))
    return next(fits, None)


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

    def own_forms(self, section: FormsSection) -> Mapping[str, Forms]:
        """The sentences of a section that are written here, in all their forms."""
        forms: Mapping[FormsSection, Mapping[str, Forms]] = {
            "description": self.description,
            "assumptions": self.assumptions,
            "symbol-names": self.symbol_names,
            "stated-sizes": self.stated_sizes,
        }
        return forms[section]


class TopicWording(SectionsOfSheets):
    """The sentences of one topic's sheets. `description_parts` and `assumption_parts` are written in this order."""

    name: str
    title: AllForms
    task: AllForms
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
        fits = (
            form
            for form in self.title
            if not form.when or any(is_true_of_model(each, architecture) for each in form.when)
        )
        return next(fits).text.format(model=name)

    def parts(self, section: PartsSection) -> tuple[str, ...]:
        """The parts of the description or of the assumptions, in order."""
        return self.description_parts if section == "description" else self.assumption_parts

    def nudge(self, blank: Blank) -> str:
        """The question next to a wrong blank: its own nudge, or the topic's for its field."""
        return self.nudges.get(str(blank)) or self.nudges[f"each.{blank.field}"]


NO_TOPIC_WORDING = TopicWording.model_construct(
    name="", title=(), task=(), description_parts=(), assumption_parts=(), rows={}, nudges={}
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
        words = self.topic(topic)
        of_topic: Mapping[TopicSection, Sentences] = {
            "axis-names": words.axis_names,
            "reasons": words.reasons,
            "row-things": words.row_things,
        }
        return {**self.sheets[section], **of_topic[section]}

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
