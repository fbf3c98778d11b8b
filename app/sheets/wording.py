"""The sentences of one language, from the files of a folder such as worksheets/wording/en/.

Each topic has a file (`TopicWording`), and misconceptions have some (`MisconceptionWording`); what several topics share
is in sheets.toml. Every field is checked when the files are read, see `wording_files.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.algebra.parser import Unreadable
from app.models.architecture import Architecture
from app.shapes.table import Blank

Sentences = Mapping[str, str]
MisconceptionText = Literal["nudge", "hint", "explanation"]
SheetSection = Literal[
    "description", "inventory", "answers", "layer-names", "symbol-names", "assumptions", "footnotes",
    "marks", "losses", "credit", "near-misses", "chain", "hints", "relations", "stated-sizes", "formulas",
    "unreadable", "drawing", "axis-names", "captions", "reasons", "row-things",
]  # fmt: skip
TopicSection = Literal[
    "description", "assumptions", "symbol-names", "stated-sizes", "axis-names", "reasons", "row-things"
]


class WordingPart(BaseModel):
    """Sentences that belong together; in a file, the names of its fields have hyphens."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", "-"))


class RowWording(WordingPart):
    """A row's name, and the note below it, which some rows have in another form for some models."""

    name: str
    box: str = ""
    note: str = ""
    note_if_grouped: str = ""
    note_if_sink: str = ""
    note_if_patches: str = ""
    note_if_projected: str = ""

    def note_for(self, architecture: Architecture, sizes: Mapping[str, int]) -> str:
        """The note for a model: the first fitting, non-empty one of grouped, sink, patches and projected, or `note`."""
        forms = (
            (self.note_if_grouped, architecture.G < architecture.H),
            (self.note_if_sink, architecture.has_sinks),
            (self.note_if_patches, "p" in sizes),
            (self.note_if_projected, sizes.get("d_emb", sizes["d"]) != sizes["d"]),
        )
        return next((note for note, fits in forms if fits and note), self.note)


class StepWording(WordingPart):
    """The question that asks for a row of a sheet in steps and, once it is right, the `why` with its reason.

    Models with attention sinks, or whose heads split the embedding dimension, have other sentences.
    """

    question: str
    why: str
    reason: str
    question_if_sink: str = ""
    reason_if_sink: str = ""
    reason_if_split: str = ""

    def for_model(self, architecture: Architecture) -> tuple[str, str, str]:
        """The question, the why and the reason, in the form that fits the model."""
        question, reason = self.question, self.reason
        if architecture.H > 1 and architecture.H * architecture.d_h == architecture.d:
            reason = self.reason_if_split or reason
        if architecture.has_sinks:
            question, reason = self.question_if_sink or question, self.reason_if_sink or reason
        return question, self.why, reason


class FigureWording(WordingPart):
    """What a figure is about, for screen readers, and the caption below it."""

    title: str
    caption: str


class TopicWording(WordingPart):
    """The sentences of one topic's sheets. `description_parts` and `assumption_parts` are written in this order."""

    name: str
    title: str
    title_of_encoder: str = ""
    title_of_image: str = ""
    task: str
    task_compared: str = ""
    task_stopped: str = ""
    run_title: str = ""
    run_button: str = ""
    description_parts: tuple[str, ...]
    assumption_parts: tuple[str, ...]
    description: Sentences = {}
    assumptions: Sentences = {}
    rows: Mapping[str, RowWording]
    steps: Mapping[str, StepWording] = {}
    nudges: Sentences
    symbol_names: Sentences = {}
    stated_sizes: Sentences = {}
    axis_names: Sentences = {}
    reasons: Sentences = {}
    row_things: Sentences = {}
    code: Sentences = {}
    figures: Mapping[str, FigureWording] = {}

    def title_for(self, name: str, architecture: Architecture) -> str:
        """The title for the model called `name`, "One head of LLaMA 7B"."""
        of_image = architecture.input == "image" and self.title_of_image
        title = of_image or (architecture.encoder_decoder and self.title_of_encoder) or self.title
        return title.format(model=name)

    def nudge(self, blank: Blank) -> str:
        """The question next to a wrong blank: its own nudge, or the topic's for its field."""
        return self.nudges.get(str(blank)) or self.nudges[f"each.{blank.field}"]


NO_TOPIC_WORDING = TopicWording.model_construct(
    name="", title="", task="", description_parts=(), assumption_parts=(), rows={}, nudges={}
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


class Wording(WordingPart):
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
            "description": words.description,
            "assumptions": words.assumptions,
            "symbol-names": words.symbol_names,
            "stated-sizes": words.stated_sizes,
            "axis-names": words.axis_names,
            "reasons": words.reasons,
            "row-things": words.row_things,
        }
        return {**self.sheets[section], **of_topic[section]}

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
