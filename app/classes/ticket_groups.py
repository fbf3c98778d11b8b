"""Exit-ticket answers that say the same, put together: 'The KV cache.' and 'the kv-cache' are one idea, told twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from app.store import TicketAnswer

_UNSAID = re.compile(r"[\s.,;:!?…'\"’‘“”„«»()]+|(?<=[^\W\d_])[-‐–—](?=[^\W\d_])")


@dataclass(frozen=True)
class TicketGroup:
    """Answers to one question that differ at most in case, spaces and punctuation; all of them are hidden, or none."""

    answers: tuple[TicketAnswer, ...]

    @property
    def id(self) -> str:
        """The id of the first answer, which stands for all."""
        return self.answers[0].id

    @property
    def question(self) -> str:
        return self.answers[0].question

    @property
    def text(self) -> str:
        """The answer in the spelling that most students used."""
        return Counter(answer.text for answer in self.answers).most_common(1)[0][0]

    @property
    def starred(self) -> bool:
        return any(answer.starred for answer in self.answers)

    @property
    def follow_up(self) -> bool:
        return any(answer.follow_up for answer in self.answers)

    @property
    def hidden(self) -> bool:
        return self.answers[0].hidden


def group_answers(answers: Iterable[TicketAnswer]) -> tuple[TicketGroup, ...]:
    """The answers in groups that say the same: starred groups first, then those of most answers, else as they come."""
    groups = dict[tuple[str, str, bool], list[TicketAnswer]]()
    for answer in answers:
        groups.setdefault((answer.question, _folded(answer.text), answer.hidden), []).append(answer)
    whole = [TicketGroup(tuple(group)) for group in groups.values()]
    return tuple(sorted(whole, key=lambda group: (not group.starred, -len(group.answers))))


def _folded(text: str) -> str:
    """What an answer says, apart from case, spaces and punctuation; signs of mathematics stay.

    Example: 'Why √d?' gives 'why√d'; '?' stays '?', since nothing else is left.
    """
    return _UNSAID.sub("", text.casefold()) or text.strip()
