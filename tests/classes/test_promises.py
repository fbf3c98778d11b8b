"""What a page tells a student of the rules, and a form that was made under other rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.activities.activity import Activity, Plan, Policies
from app.classes.promises import rules_in_words, sheet_promise, ticket_promise
from tests.helpers.stored_class import CONTENT, SHEET, TICKET

ACTIVITY = Activity(1, 1, "ABCDEF", "open", Plan("Week 3", policies=Policies()), 1, CONTENT)


def with_policies(**policies: Any) -> Activity:
    """The activity with other policies."""
    return replace(ACTIVITY, plan=replace(ACTIVITY.plan, policies=Policies(**policies)))


def with_sheet(**worksheet: Any) -> Activity:
    """The activity with another worksheet."""
    [item] = CONTENT.items
    return replace(ACTIVITY, content=replace(CONTENT, items=(replace(item, worksheet={**SHEET, **worksheet}),)))


def with_ticket(**ticket: Any) -> Activity:
    """The activity with another exit ticket."""
    assert CONTENT.ticket
    return replace(ACTIVITY, content=replace(CONTENT, ticket=replace(CONTENT.ticket, ticket={**TICKET, **ticket})))


@pytest.mark.parametrize(
    ("other", "sheet_changes", "ticket_changes"),
    [
        (with_policies(feedback="after_close"), True, False),
        (with_policies(max_attempts=2), True, False),
        (with_policies(exam=True), True, False),
        (with_policies(marking="rows"), True, False),
        (with_policies(counting="first"), True, False),
        (with_policies(ticket_anonymous=not Policies().ticket_anonymous), False, True),
        (with_policies(late_minutes=5), False, False),
        (with_sheet(tokens=50), True, False),
        (with_sheet(title="Heads"), False, False),
        (with_ticket(pick_at_least=1), False, True),
        (with_ticket(title="Bye"), False, False),
    ],
)
def test_a_form_made_under_another_rule_is_known(other: Activity, *, sheet_changes: bool, ticket_changes: bool) -> None:
    assert (sheet_promise(other, 1) != sheet_promise(ACTIVITY, 1)) == sheet_changes
    assert (ticket_promise(other) != ticket_promise(ACTIVITY)) == ticket_changes


def test_students_are_told_each_rule_that_holds() -> None:
    bare = {"max_attempts": 0, "auto_submit": False, "exam": False}
    of_marks = {rules_in_words(with_policies(**bare, feedback=each)) for each in ("immediate", "after_hand_in")}
    assert [len(rules) for rules in of_marks] == [3, 3]
    for policy in ({"max_attempts": 2}, {"auto_submit": True}, {"exam": True}):
        [_marks, _marking, _counting, rule] = rules_in_words(with_policies(**{**bare, **policy}))
        assert ("2" in rule) == ("max_attempts" in policy)
