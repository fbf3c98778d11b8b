"""What an activity asks: worksheets and an exit ticket, frozen in numbered revisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# The fields of a worksheet that its right answers depend on; not `title`, `models` and `marking`.
_ANSWER_FIELDS = ("model", "topic", "tokens", "rows", "notation", "kv_head_per_query_head", "decoder_tokens",
                    "answers")  # fmt: skip
_RARE_ANSWER_FIELDS = ("edition", "chosen", "bug", "frozen_bug")  # also these, where they aren't empty


def question_name(key: str) -> str:
    """The name under which an open question's answer is stored, beside the blanks' texts: 'question.why-k'."""
    return f"question.{key}"


@dataclass(frozen=True)
class FrozenWorksheet:
    """One worksheet of an activity, with the fields of its definition at the time it was frozen."""

    worksheet: Mapping[str, Any]

    @property
    def key(self) -> str:
        return str(self.worksheet["key"])

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The teacher's choices instead of the worksheet's own: `model` (its key), `tokens` and `title`."""
        return dict(self.worksheet.get("chosen") or {})

    @property
    def title(self) -> str:
        return str(self.chosen.get("title") or self.worksheet["title"])

    @property
    def questions(self) -> Mapping[str, str]:
        """Its open questions, in order, by the names of their answers: {'question.why-k': 'Why …?'}."""
        return {question_name(each["key"]): each["text"] for each in self.worksheet.get("questions") or ()}

    @cached_property
    def sheet_key(self) -> str:
        """The key for drafts and attempts, which changes exactly when the right answers may."""
        values = [self.worksheet.get(name) for name in _ANSWER_FIELDS]
        values += [value for name in _RARE_ANSWER_FIELDS if (value := self.worksheet.get(name))]
        asked = json.dumps(values, sort_keys=True, default=list)
        return f"{str(self.worksheet['key'])[:100]}@{hashlib.sha256(asked.encode()).hexdigest()[:12]}"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all fields, under which the sheets that students were given are stored."""
        return hashlib.sha256(json.dumps(self.worksheet, sort_keys=True, default=list).encode()).hexdigest()


@dataclass(frozen=True)
class FrozenTicket:
    """An activity's exit ticket: its key and its file's settings at the time it was frozen."""

    ticket: Mapping[str, Any]

    @property
    def key(self) -> str:
        return str(self.ticket["key"])

    @property
    def title(self) -> str:
        return str(self.ticket["title"])

    @property
    def questions(self) -> dict[str, str]:
        """The text of each question by its key, in order."""
        return {str(each["key"]): str(each["text"]) for each in self.ticket["questions"]}


@dataclass(frozen=True)
class Content:
    """What students see: worksheets in order and an exit ticket, either of which may be missing.

    `models` are the models that sheets may have, by key: each one's name, about, card, config and report.
    """

    items: tuple[FrozenWorksheet, ...]
    ticket: FrozenTicket | None
    models: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything in the content."""
        return hashlib.sha256(json.dumps(self.as_json(), default=list).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [dict(item.worksheet) for item in self.items],
            "ticket": dict(self.ticket.ticket) if self.ticket else None,
            "models": {key: dict(values) for key, values in self.models.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Content:
        return cls(
            tuple(FrozenWorksheet(worksheet) for worksheet in stored["items"]),
            FrozenTicket(stored["ticket"]) if stored["ticket"] else None,
            stored["models"],
        )


def questions_asked(revisions: Mapping[int, Content]) -> dict[tuple[str, str], str]:
    """The text of every open question in these revisions, by sheet key and `question_name`."""
    asked = dict[tuple[str, str], str]()
    for _number, content in sorted(revisions.items(), reverse=True):
        for item in content.items:
            for name, text in item.questions.items():
                asked.setdefault((item.sheet_key, name), text)
    return asked
