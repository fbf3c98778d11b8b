"""The catalogue of misconceptions, read from worksheets/wording/en/misconceptions/; every name in it is checked.

An entry has a misconception's sentences and, in its tables `on`, what a student who holds it writes on the sheets of
some topics, in symbols (docs/file-formats.md). Whatever the tables don't mention stays right.

>>> MISCONCEPTIONS[0].key, MISCONCEPTIONS[0].topics[:2]
('head-as-wide-as-model', ('first-steps', 'single-head'))
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.algebra.expression import ExpressionError, Formula
from app.misconceptions.symbols import FORMULA_SYMBOLS
from app.models.architecture import Architecture
from app.shapes.table import DIMENSIONS, MATRIX_FIELDS
from app.topics.facts import MODEL_FACTS, ConditionError, is_true_of_model, words_of_condition
from app.topics.registry import TOPICS
from app.topics.topic import Topic

FOLDER = Path(__file__).parents[2] / "worksheets" / "wording" / "en"
RIGHT = Formula.parse("right")


class CatalogueError(ValueError):
    """A mistake in the catalogue, with its file and line."""


@dataclass(frozen=True)
class Prediction:
    """One way in which a misconception fills in a sheet: either `transposed`, or `overrides` and `substitutions`.

    `overrides` give boxes, by name, another size; `substitutions` give symbols another meaning. If `compared` is
    set, at least that many typed matrices must be transposed, or not, as predicted.
    """

    overrides: Mapping[str, Formula] = field(default_factory=dict)
    substitutions: Mapping[str, Formula] = field(default_factory=dict)
    transposed: tuple[str, ...] = ()
    compared: int = 0


@dataclass(frozen=True)
class Misconception:
    """One entry of the catalogue: its predictions for each topic, and the condition that a model must fulfil."""

    key: str
    number: int
    predictions: Mapping[str, tuple[Prediction, ...]]
    condition: str = ""

    @property
    def topics(self) -> tuple[str, ...]:
        """The keys of the topics where it can show."""
        return tuple(self.predictions)

    def applies_to(self, architecture: Architecture) -> bool:
        return is_true_of_model(self.condition, architecture)


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=lambda name: name.replace("_", "-"))


class _On(_Checked):
    """A table `on`; each of its other keys names boxes, and has the formula written into them, one or one per way."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | list[str]]

    topics: str
    symbols: dict[str, str] = {}
    transposed: str | list[str] = ""
    compared: int = 0
    also_alone: bool = False

    @property
    def boxes(self) -> Mapping[str, str | list[str]]:
        return self.__pydantic_extra__


_Sentence = Annotated[str, Field(min_length=1)]


class _Entry(_Checked):
    number: int
    name: _Sentence
    nudge: _Sentence
    hint: _Sentence
    explanation: _Sentence
    when: str = ""
    on: Annotated[list[_On], Field(min_length=1)]


class _Sets(_Checked):
    """Names for several topics, and for several boxes or rows, which every entry may use."""

    topics: dict[str, str]
    boxes: dict[str, str]


_Model = TypeVar("_Model", bound=BaseModel)


class _File:
    """A TOML file of the catalogue, which finds the line of what is wrong in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
            self.contents = tomllib.loads(self.text)
        except (OSError, ValueError) as error:
            raise CatalogueError(f"{path}: {error}") from None

    def read(self, model: type[_Model], values: Any, entry: str = "") -> _Model:
        try:
            return model.model_validate(values)
        except ValidationError as error:
            problem = error.errors()[0]
            words = [place for place in problem["loc"] if isinstance(place, str) and place not in ("str", "list[str]")]
            word = "" if problem["type"] == "missing" else words[-1]
            table = next((place for place in problem["loc"] if isinstance(place, int)), None)
            allowed = ", ".join(str(each.alias) for each in model.model_fields.values())
            self.refuse(f"“{'.'.join(words)}”: {problem['msg']}. Allowed: {allowed}.", word, entry, table)

    def check(self, kind: str, words: Iterable[str], known: Collection[str], *place: Any) -> None:
        for word in words:
            if word not in known:
                self.refuse(f"there is no {kind} “{word}”. Allowed: {', '.join(sorted(known))}.", word, *place)

    def refuse(self, problem: str, word: str, entry: str = "", table: int | None = None) -> NoReturn:
        """Raise an error with the first line that has this word in the entry, or in its table `on` of that index."""
        lines = self.text.splitlines()
        starts = [at for at, line in enumerate(lines) if line == f"[{entry}]"]
        if table is not None:
            starts = [at for at, line in enumerate(lines) if line == f"[[{entry}.on]]"][table:]
        start = starts[0] if starts else 0
        whole = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        found = next((at for at, line in enumerate(lines[start:], start) if whole.search(line)), start)
        raise CatalogueError(f"{self.path}, line {found + 1}: {entry and entry + ': '}{problem}")


def read_catalogue(folder: Path = FOLDER) -> tuple[Misconception, ...]:
    """Every misconception of the files in this folder, in ascending order of their numbers; raises CatalogueError."""
    file = _File(folder / "misconceptions.toml")
    sets = file.read(_Sets, file.contents)
    boxes = frozenset[str]().union(*(topic.boxes | topic.rows for topic in TOPICS.values()))
    file.check("topic", chain.from_iterable(topics.split() for topics in sets.topics.values()), TOPICS)
    file.check("row or box", chain.from_iterable(names.split() for names in sets.boxes.values()), boxes)
    found = dict[int, Misconception]()
    for path in sorted(folder.glob("misconceptions/*.toml")):
        file = _File(path)
        for key in file.contents:
            misconception = _EntryReader(file, key, sets).read()
            if other := next((each for each in found.values() if each.key == key), found.get(misconception.number)):
                problem = f"“{other.key}” has the same key or number. The next free number is {max(found) + 1}."
                file.refuse(problem, key, key)
            found[misconception.number] = misconception
    return tuple(found[number] for number in sorted(found))


class _EntryReader:
    """Reads one entry; `table` is the index of the table `on` that is being read, for errors."""

    def __init__(self, file: _File, key: str, sets: _Sets) -> None:
        self.file, self.key, self.sets = file, key, sets
        self.table: int | None = None

    def read(self) -> Misconception:
        entry = self.file.read(_Entry, self.file.contents[self.key], self.key)
        try:
            self._check("fact of models", (word.fact for word in words_of_condition(entry.when)), MODEL_FACTS)
        except ConditionError as error:
            self._refuse(str(error), "when")
        predictions = dict[str, tuple[Prediction, ...]]()
        for self.table, on in enumerate(entry.on):
            self._check("topic", on.topics.split(), TOPICS.keys() | self.sets.topics.keys())
            topics = _words(on.topics, self.sets.topics)
            self._check_names(on, [TOPICS[topic] for topic in topics])
            for topic in topics:
                predictions[topic] = (*predictions.get(topic, ()), *self._predictions(on, TOPICS[topic]))
        return Misconception(self.key, entry.number, predictions, entry.when)

    def _check(self, kind: str, words: Iterable[str], known: Collection[str]) -> None:
        self.file.check(kind, words, known, self.key, self.table)

    def _refuse(self, problem: str, word: str) -> NoReturn:
        self.file.refuse(problem, word, self.key, self.table)

    def _check_names(self, on: _On, topics: Sequence[Topic]) -> None:
        boxes = frozenset[str]().union(*(topic.boxes for topic in topics))
        rows = {box.partition(".")[0] for box in boxes}
        sets = {name for name, words in self.sets.boxes.items() if not (boxes | rows).isdisjoint(words.split())}
        self._check("row, box or set", chain.from_iterable(names.split() for names in on.boxes), boxes | rows | sets)
        self._check("row", " ".join(_listed(on.transposed)).split(), rows | {"*"})
        symbols = FORMULA_SYMBOLS.keys() | frozenset[str]().union(*(topic.symbols for topic in topics))
        self._check("symbol", on.symbols, symbols)
        written = chain.from_iterable(map(_listed, on.boxes.values()))
        for text in (*on.symbols.values(), *chain.from_iterable(sizes.split(", ") for sizes in written)):
            try:
                self._check("symbol", sorted(Formula.parse(text).expression.symbols), symbols)
            except ExpressionError as error:
                self._refuse(f"{error}.", text)

    def _predictions(self, on: _On, topic: Topic) -> Iterator[Prediction]:
        symbols = {symbol: Formula.parse(meaning) for symbol, meaning in on.symbols.items()}
        columns = [_listed(ways) for ways in (on.transposed, *on.boxes.values())]
        numbers = {len(ways) for ways in columns} - {1}
        if len(numbers) > 1:
            self._refuse("the lists differ in length: each has one formula per way.", "[")
        for way in range(max(numbers, default=1)):
            transposed, *written = (ways[way if len(ways) > 1 else 0] for ways in columns)
            overrides = dict[str, Formula]()
            for names, text in zip(on.boxes, written, strict=True):
                if text != "right" or symbols:  # what stays right is written only where symbols have another meaning
                    overrides |= self._overrides(names, text.split(", "), topic)
            yield Prediction(overrides, symbols, tuple(transposed.split()), on.compared)
            for row in dict.fromkeys(box.partition(".")[0] for box in overrides if on.also_alone):
                yield Prediction({box: size for box, size in overrides.items() if box.startswith(f"{row}.")})

    def _overrides(self, names: str, sizes: Sequence[str], topic: Topic) -> Iterator[tuple[str, Formula]]:
        """Sizes for the boxes that these names mean on a topic; a row means the last of its sides, as many as sizes."""
        for name in _words(names, self.sets.boxes):
            boxes = _sides(topic.key).get(name, (name,))
            if sizes != ["right"] and (len(sizes) > len(boxes) or len(sizes) == 1 < len(boxes)):
                self._refuse(f"“{name}” gets {len(sizes)} of its sizes on {topic.key}: {', '.join(boxes)}.", name)
            if topic.boxes.issuperset(boxes):
                yield from zip(boxes[-len(sizes) :], map(Formula.parse, sizes), strict=True)


def _listed(ways: str | list[str]) -> list[str]:
    return [ways] if isinstance(ways, str) else ways


def _words(text: str, sets: Mapping[str, str]) -> list[str]:
    return [word for name in text.split() for word in sets.get(name, name).split()]


@cache
def _sides(key: str) -> Mapping[str, tuple[str, ...]]:
    """The boxes that a row stands for on a topic: the sides of a tensor, or the only box of a count or a question."""
    topic, sides = TOPICS[key], dict[str, tuple[str, ...]]()
    for row in topic.rows:
        boxes = [f"{row}.{side}" for side in (*MATRIX_FIELDS, *DIMENSIONS) if f"{row}.{side}" in topic.boxes]
        sides[row] = tuple(boxes or sorted(box for box in topic.boxes if box.startswith(f"{row}.")))
    return sides


# The keys are used in the wording, in students' records and in the API.
MISCONCEPTIONS = read_catalogue()
