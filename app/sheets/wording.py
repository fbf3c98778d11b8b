"""The sentences of a sheet, which stand in a TOML file, by section and key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.algebra.parser import Unreadable
from app.shapes.table import Blank


@dataclass(frozen=True)
class Wording:
    """The sentences of one language, by section and key."""

    sections: Mapping[str, Any] = field(repr=False)

    def say(self, section: str, key: str, **words: object) -> str:
        """The sentence of that section and key with its {words} filled in; raises KeyError if there is none."""
        return str(self.sections[section][key]).format(**words)

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

    def unreadable(self, answer: Unreadable) -> str:
        """Why an answer could not be read, and what to write instead."""
        return self.say("unreadable", answer.reason, detail=answer.detail, symbols=answer.symbols)
