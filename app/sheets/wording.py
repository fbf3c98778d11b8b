"""The sentences of a sheet, which stand in a TOML file, by section and key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from app.algebra.parser import Unreadable
from app.shapes.table import Blank


class FrozenSection(dict[str, Any]):
    """A section of a frozen wording. A key that it lacks is looked up in today's, as a defaultdict has a default.

    What is optional (asked for by `in` or `get`, or listed) is only what was frozen.

    >>> section = FrozenSection({"keys": "Keys"}, {"keys": "The keys", "values": "The values"})
    >>> section["keys"], section["values"], list(section), "values" in section
    ('Keys', 'The values', ['keys'], False)
    """

    def __init__(self, frozen: Mapping[str, Any], today: Mapping[str, Any]) -> None:
        super().__init__({key: _frozen_entry(entry, today.get(key)) for key, entry in frozen.items()})
        self._today = today

    def __missing__(self, key: str) -> Any:
        return self._today[key]


def _frozen_entry(entry: Any, today: Any) -> Any:
    """A sentence or list as it was frozen, or a section that lends from today's where that still is one."""
    return FrozenSection(entry, today if isinstance(today, Mapping) else {}) if isinstance(entry, Mapping) else entry


@dataclass(frozen=True)
class Wording:
    """The sentences of one language, by section and key. `today` is the wording of now, for one that was frozen."""

    sections: Mapping[str, Any] = field(repr=False)
    today: Wording | None = field(default=None, repr=False)

    @classmethod
    def frozen(cls, text: str, today: Wording) -> Wording:
        """The wording whose `text` was kept; where today's app needs a sentence that it lacks, it has today's."""
        return cls(FrozenSection(json.loads(text), today.sections), today)

    @cached_property
    def text(self) -> str:
        """All sections as JSON, from which `frozen` makes them again."""
        return json.dumps(self.sections, default=dict)

    def say(self, section: str, key: str, **words: object) -> str:
        """The sentence of that section and key with its {words} filled in; raises KeyError if there is none.

        A frozen sentence with a {word} that the app gives it no longer is replaced by today's.
        """
        try:
            return str(self.sections[section][key]).format(**words)
        except KeyError:
            if self.today is None:
                raise
            return self.today.say(section, key, **words)

    def nudge(self, topic: str, blank: Blank) -> str:
        """The sentence shown beside a wrong blank of the table: its own in this topic, else the topic's for its field.

        No nudge names rows or columns, so it is true whether tokens are rows or columns.
        """
        nudges = self.sections["nudges"][topic]
        return str(nudges.get(str(blank)) or nudges[f"each.{blank.field}"])

    def misconception(self, key: str, kind: str, tokens_are: str = "rows") -> str:
        """A misconception's "nudge", "hint" or "explanation", in the form for tokens as rows or as columns.

        Only misconceptions that speak of rows and columns have a second form.
        """
        sentences = self.sections["misconceptions"][key]
        with_columns = sentences.get("tokens-as-columns", {})
        return str(with_columns[kind] if tokens_are == "columns" and with_columns else sentences[kind])

    def misconception_name(self, key: str) -> str:
        """A misconception in a few words, such as 'Head as wide as the model'; its key where it has no name."""
        try:
            return str(self.sections["misconception-names"][key])
        except KeyError:
            return key

    def unreadable(self, answer: Unreadable) -> str:
        """Why an answer could not be read, and what to write instead."""
        return self.say("unreadable", answer.reason, detail=answer.detail, symbols=answer.symbols)
