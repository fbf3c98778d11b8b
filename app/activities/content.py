"""What an activity asks: worksheets and an exit ticket, frozen in numbered revisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

# The fields of a worksheet that its right answers depend on; `title`, `models` and `follow_share` are none of them.
_QUESTION_FIELDS = ("model", "topic", "tokens", "rows", "notation", "kv_head_per_query_head", "decoder_tokens",
                    "answers")  # fmt: skip
_RARE_QUESTION_FIELDS = ("edition", "chosen", "bug", "frozen_bug")  # the same, where there is anything


def question_name(key: str) -> str:
    """What the answer to an open question is stored under, next to the texts of the blanks: 'question.why-k'."""
    return f"question.{key}"


@dataclass(frozen=True)
class FrozenWorksheet:
    """One worksheet of an activity, with the fields of its definition as they were when it was frozen."""

    worksheet: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The worksheet's key in the library."""
        return str(self.worksheet["key"])

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What the teacher chose in place of the worksheet's own: its `model` by key, its `tokens`, and the `title`."""
        return dict(self.worksheet.get("chosen") or {})

    @property
    def title(self) -> str:
        """The title that everybody reads."""
        return str(self.chosen.get("title") or self.worksheet["title"])

    @property
    def questions(self) -> Mapping[str, str]:
        """Its open questions, in order, by what their answers are stored under: {'question.why-k': 'Why …?'}."""
        return {question_name(each["key"]): each["text"] for each in self.worksheet.get("questions") or ()}

    @cached_property
    def sheet_key(self) -> str:
        """What drafts and attempts are stored under: it changes exactly when the questions change."""
        # "rows" is what a former setting was on nearly all sheets: without it, stored work would not be found.
        values = [*(self.worksheet.get(name) for name in _QUESTION_FIELDS), "rows"]
        values += [value for name in _RARE_QUESTION_FIELDS if (value := self.worksheet.get(name))]
        questions = json.dumps(values, sort_keys=True, default=list)
        return f"{str(self.worksheet['key'])[:100]}@{hashlib.sha256(questions.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class FrozenTicket:
    """The exit ticket of an activity: its key and the settings of its file as they were when it was frozen."""

    ticket: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The ticket's key among the exit tickets."""
        return str(self.ticket["key"])

    @property
    def title(self) -> str:
        """The heading above its questions."""
        return str(self.ticket["title"])

    @property
    def questions(self) -> dict[str, str]:
        """The text of each question by its key, in order."""
        return {str(each["key"]): str(each["text"]) for each in self.ticket["questions"]}


@dataclass(frozen=True)
class Snapshot:
    """A text that revisions and runs name by its hash: the sections of a wording, or a model with its config."""

    kind: Literal["wording", "model"]
    content: str

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the content, in hex."""
        return hashlib.sha256(self.content.encode()).hexdigest()


@dataclass(frozen=True)
class Content:
    """What students see: worksheets in order and an exit ticket, either of which may be missing."""

    items: tuple[FrozenWorksheet, ...]
    ticket: FrozenTicket | None
    wording: str
    models: Mapping[str, str] = field(default_factory=dict)
    snapshots: tuple[Snapshot, ...] = field(default=(), compare=False, repr=False)

    @property
    def named(self) -> tuple[str, ...]:
        """The hashes of the snapshots that it names."""
        return tuple({self.wording, *self.models.values()})

    @cached_property
    def fingerprint(self) -> str:
        """Tells this content from any other: a hash of everything in it."""
        return hashlib.sha256(json.dumps(self.as_json(), default=list).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The content as JSON values: "items", "ticket", "wording" and "models", without its `snapshots`."""
        return {
            "items": [dict(item.worksheet) for item in self.items],
            "ticket": dict(self.ticket.ticket) if self.ticket else None,
            "wording": self.wording,
            "models": dict(self.models),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Content:
        """The content that `as_json` turned into JSON values, without snapshots; "models" is empty if it is missing."""
        return cls(
            tuple(FrozenWorksheet(worksheet) for worksheet in stored["items"]),
            FrozenTicket(stored["ticket"]) if stored["ticket"] else None,
            stored["wording"],
            stored.get("models", {}),
        )


def questions_asked(revisions: Mapping[int, Content]) -> dict[tuple[str, str], str]:
    """The text of every open question on the worksheets of these revisions, by sheet key and `question_name`."""
    asked = dict[tuple[str, str], str]()
    for _number, content in sorted(revisions.items(), reverse=True):
        for item in content.items:
            for name, text in item.questions.items():
                asked.setdefault((item.sheet_key, name), text)
    return asked
