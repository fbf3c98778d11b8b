"""What a page promised a student: the form sends it back, so that no promise is broken.

A page tells rules: when marks are shown, how many attempts there are, whether a ticket is anonymous. If the instructor
changes a rule while the page is open, the form still has the old promise, and is shown again with the new rule instead
of being stored.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from app.activities.activity import Counting, Feedback
from app.sheets.worksheet import Marking
from app.store import Activity, Attempt, Policies
from app.translation import N_, ngettext
from app.translation import gettext as _

_MARKS: dict[Feedback, str] = {
    "immediate": N_("Marks are shown each time you check."),
    "after_hand_in": N_("Marks are shown after you hand in."),
    "after_close": N_("Marks are shown after the activity closes."),
}
_MARKING: dict[Marking, str] = {
    "causes": N_("One mistake costs one box."),
    "boxes": N_("Every wrong box costs."),
    "rows": N_("A row counts when all its boxes are right."),
}
_COUNTING: dict[Counting, str] = {
    "last": N_("Your last attempt counts."),
    "best": N_("Your best attempt counts."),
    "first": N_("Your first attempt counts."),
}


def sheet_promise(activity: Activity, number: int) -> str:
    """Twelve characters that change with sheet `number`, from 1, and with the rules on marking, attempts and
    exam conditions.
    """
    policies, item = activity.policies, activity.content.items[number - 1]
    marking = [policies.feedback, policies.max_attempts, policies.marking, policies.counting]
    return _short_hash([item.sheet_key, *marking, policies.exam])


def ticket_promise(activity: Activity) -> str:
    """Twelve characters that change with the exit ticket's questions and with what is promised about its answers."""
    ticket = activity.content.ticket
    asked = ticket and [ticket.ticket["questions"], ticket.ticket.get("pick_at_least", 0)]
    return _short_hash([asked, activity.policies.ticket_anonymous])


def rules_in_words(activity: Activity) -> tuple[str, ...]:
    """The rules for handing in a sheet, as students read them."""
    policies = activity.policies
    rules = [_(_MARKS[policies.feedback]), marking_in_words(policies), counting_in_words(policies)]
    if most := policies.max_attempts:
        attempts = ngettext("You have one attempt on each sheet.", "You have {count} attempts on each sheet.", most)
        rules.append(attempts.format(count=most))
    if policies.auto_submit:
        rules.append(_("When the activity closes, what you have typed is submitted automatically."))
    if policies.exam:
        rules.append(_("Exam conditions: no drawings, hints or runs until the activity closes."))
    return tuple(rules)


def marking_in_words(policies: Policies) -> str:
    """What a mistake costs, in a sentence."""
    return _(_MARKING[policies.marking])


def counting_in_words(policies: Policies) -> str:
    """Which attempt counts, in a sentence for students."""
    return _(_COUNTING[policies.counting])


def rule_in_words(policies: Policies) -> str:
    """What a mistake costs and which attempt counts, for teachers."""
    counting = {
        "last": _("The last attempt counts."),
        "best": _("The best attempt counts."),
        "first": _("The first attempt counts."),
    }
    return " ".join((marking_in_words(policies), counting[policies.counting]))


def counted_in_words(policies: Policies, counted: Attempt) -> str:
    """Which attempt counts and its score, in a sentence for students who see the marks of another one."""
    sentences = {
        "last": _("Your last attempt counts: {score:g} of {total} points."),
        "best": _("Your best attempt counts: {score:g} of {total} points."),
        "first": _("Your first attempt counts: {score:g} of {total} points."),
    }
    return sentences[policies.counting].format(score=counted.score, total=counted.out_of)


def _short_hash(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]
