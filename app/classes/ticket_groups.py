"""Groups exit-ticket answers: how often each choice was made, and free texts that say the same.

'The KV cache.' and 'the kv-cache' are one idea, told twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.classes.ticket_answers import chosen_in
from app.sheets.exit_tickets import SCALE_POINTS, TicketQuestion
from app.store import TicketAnswer

_UNSAID = re.compile(r"[\s.,;:!?…'\"’‘“”„«»()]+|(?<=[^\W\d_])[-‐–—](?=[^\W\d_])")


@dataclass(frozen=True)
class TicketGroup:
    """Answers to one question that differ at most in case, spaces and punctuation; all or none are hidden."""

    answers: tuple[TicketAnswer, ...]

    @property
    def id(self) -> str:
        """The first answer's id, which names the group on pages."""
        return self.answers[0].id

    @property
    def question(self) -> str:
        return self.answers[0].question

    @property
    def text(self) -> str:
        """The answer in its most frequent spelling."""
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

    def writers(self, names: Mapping[int, str]) -> list[str]:
        """The names of the students who gave these answers, by student id in `names`; none if anonymous."""
        return _names_of(self.answers, names)


@dataclass(frozen=True)
class ChoiceCount:
    """An option or a point of a scale, with the answers that chose it, and the number of answers to its question.

    `label` belongs to a point at the end of a scale.
    """

    text: str
    label: str
    answers: tuple[TicketAnswer, ...]
    of: int

    @property
    def percent(self) -> float:
        """Its share of the answers to the question, in per cent; 0 without any."""
        return 100 * len(self.answers) / max(self.of, 1)

    def writers(self, names: Mapping[int, str]) -> list[str]:
        """The names of the students who made this choice, by student id in `names`; none if anonymous."""
        return _names_of(self.answers, names)


def choice_counts(question: TicketQuestion, answers: Iterable[TicketAnswer]) -> tuple[ChoiceCount, ...]:
    """Each choice of a question with the answers that chose it, in the question's order; none for free text."""
    chosen = [(answer, chosen_in(question, answer.text)) for answer in answers if answer.question == question.key]
    valid = [(answer, choices) for answer, choices in chosen if choices]
    labels = dict(zip((SCALE_POINTS[0], SCALE_POINTS[-1]), question.labels, strict=False))
    counts = list[ChoiceCount]()
    for choice in question.choices:
        chosen_by = tuple(answer for answer, choices in valid if choice in choices)
        counts.append(ChoiceCount(choice, labels.get(choice, ""), chosen_by, len(valid)))
    return tuple(counts)


def written_answers(
    questions: Mapping[str, TicketQuestion], answers: Iterable[TicketAnswer]
) -> tuple[TicketAnswer, ...]:
    """The answers to show as written text, in the given order: free texts and choices no longer offered."""
    return tuple(
        answer
        for answer in answers
        if answer.question not in questions or not chosen_in(questions[answer.question], answer.text)
    )


def group_answers(answers: Iterable[TicketAnswer]) -> tuple[TicketGroup, ...]:
    """The answers to each question, grouped without regard to case, spaces and punctuation."""
    groups = dict[tuple[str, str, bool], list[TicketAnswer]]()
    for answer in answers:
        groups.setdefault((answer.question, _folded(answer.text), answer.hidden), []).append(answer)
    whole = [TicketGroup(tuple(group)) for group in groups.values()]
    return tuple(sorted(whole, key=lambda group: (not group.starred, -len(group.answers))))


def _names_of(answers: Iterable[TicketAnswer], names: Mapping[int, str]) -> list[str]:
    known = (names.get(answer.student_id or 0, "") for answer in answers)
    return sorted(name for name in known if name)


def _folded(text: str) -> str:
    return _UNSAID.sub("", text.casefold()) or text.strip()
