"""What may be shown and done on a sheet at one moment, by an activity's policies and times or in practice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.activities.activity import Activity, Phase, Policies


@dataclass(frozen=True)
class Rules:
    """The rules of a sheet at one moment. `accepts`: whether work that arrives at that moment counts."""

    policies: Policies
    phase: Phase
    accepts: bool
    is_writable: bool
    is_late: bool
    in_practice: bool = False

    @classmethod
    def of(cls, activity: Activity, at: datetime) -> Rules:
        """The rules of an activity at the time `at`, for the student whose extra time it has."""
        return cls(
            activity.policies,
            activity.phase(at),
            accepts=activity.accepts(at),
            is_writable=activity.is_writable(at),
            is_late=activity.is_late(at),
        )

    @property
    def gives_help(self) -> bool:
        """Whether drawings, nudges and diagnoses are shown and a head may be run; in an exam only once it is closed."""
        return self.policies.gives_help(self.phase)

    @property
    def gives_hints(self) -> bool:
        """Whether hints may be asked for, if the worksheet has any."""
        return self.policies.hints and self.gives_help

    @property
    def gives_examples(self) -> bool:
        """Whether a similar sheet may be seen worked out."""
        return (self.policies.examples and self.gives_hints) or self.shows_answers

    @property
    def shows_answers(self) -> bool:
        """Whether the right answers are shown, and the answers that count instead of the last typed ones."""
        return self.phase == "closed"

    @property
    def shows_marks_of_checks(self) -> bool:
        """Whether a student sees marks without handing in."""
        return self.marks_visible(handed_in=False)

    @property
    def shows_mismatches(self) -> bool:
        """Whether a drawing says which sides don't fit."""
        return self.policies.hints or self.shows_answers

    @property
    def can_check(self) -> bool:
        """Whether a check marks what was typed."""
        return self.policies.feedback == "immediate"

    @property
    def may_run_first(self) -> bool:
        """Whether a head may be run before the first attempt, though a run shows the answers."""
        return self.policies.run == "before"

    def marks_visible(self, *, handed_in: bool) -> bool:
        """Whether a student may see an attempt's marks, by whether it was handed in."""
        return self.policies.marks_visible(self.phase, handed_in)

    def attempts_left(self, attempts: int) -> int | None:
        """How many attempts are left after this many; None means no limit."""
        allowed = self.policies.max_attempts
        return max(allowed - attempts, 0) if allowed else None

    def is_locked(self, attempts: int) -> bool:
        """Whether the boxes of a sheet with this many attempts can no longer be typed in."""
        return not self.is_writable or self.attempts_left(attempts) == 0

    def can_hand_in(self, attempts: int, *, handed_in: bool) -> bool:
        """Whether the sheet can be handed in: while it is writable, the first time always."""
        return self.is_writable and not (handed_in and self.attempts_left(attempts) == 0)


PRACTICE_RULES = Rules(Policies(run="before"), "open", accepts=True, is_writable=True, is_late=False, in_practice=True)
