"""What a page promised a student: the form sends it back, so that no promise is broken.

A page tells rules: when marks are shown, how many attempts there are, whether a ticket is anonymous. If the instructor
changes a rule while the page is open, the form still has the old promise, and is shown again with the new rule instead
of being stored.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from app.activities.activity import Feedback
from app.store import Activity
from app.translation import N_, ngettext
from app.translation import gettext as _

_MARKS: dict[Feedback, str] = {
    "immediate": N_("Marks are shown each time you check."),
    "after_hand_in": N_("Marks are shown after you hand in."),
    "after_close": N_("Marks are shown after the activity closes."),
}


def sheet_promise(activity: Activity, number: int) -> str:
    """Twelve characters that change with sheet `number`, from 1, and with the rules on marks, attempts and exam
    conditions.
    """
    policies, item = activity.policies, activity.content.items[number - 1]
    return _short_hash([item.sheet_key, policies.feedback, policies.max_attempts, policies.exam])


def ticket_promise(activity: Activity) -> str:
    """Twelve characters that change with the exit ticket's questions and with what is promised about its answers."""
    ticket = activity.content.ticket
    asked = ticket and [ticket.ticket["questions"], ticket.ticket.get("pick_at_least", 0)]
    return _short_hash([asked, activity.policies.ticket_anonymous])


def rules_in_words(activity: Activity) -> tuple[str, ...]:
    """The rules for handing in a sheet, as students read them."""
    policies, rules = activity.policies, [_(_MARKS[activity.policies.feedback])]
    if most := policies.max_attempts:
        attempts = ngettext("You have one attempt on each sheet.", "You have {count} attempts on each sheet.", most)
        rules.append(attempts.format(count=most))
    if policies.auto_submit:
        rules.append(_("When the activity closes, what you have typed is submitted automatically."))
    if policies.exam:
        rules.append(_("Exam conditions: no drawings, hints or runs until the activity closes."))
    return tuple(rules)


def _short_hash(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]
