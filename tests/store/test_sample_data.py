"""What simulated students did, as it is stored with past times."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy.exc import IntegrityError

from app.store import Plan, Policies, Store
from app.store.sample_data import SimulatedAttempt, SimulatedStudent
from tests.helpers.closed_activity import close_activity
from tests.helpers.stored_class import CONTENT, HALF, LLAMA, course


@pytest.mark.parametrize("anonymous", [True, False])
def test_work_is_stored_with_the_times_it_was_made_at(store: Store, *, anonymous: bool) -> None:
    where = course(store)
    activity = store.activities.add(where, Plan("Week 3", policies=Policies(ticket_anonymous=anonymous)), CONTENT)
    store.activities.set_state(activity, "open")
    arrived = datetime(2026, 1, 15, 23, 30, tzinfo=UTC)
    attempts = [
        SimulatedAttempt(1, LLAMA, {"queries.rows": text}, HALF, arrived + timedelta(minutes=minutes), handed_in)
        for text, minutes, handed_in in (("1", 5, False), ("2", 9, True))
    ]
    kim = SimulatedStudent(0, activity, arrived, attempts, ticket={"muddiest": "Why?"})
    lou = SimulatedStudent(1, activity, arrived, typed=[(1, LLAMA, {"queries.rows": "3"})])
    store.sample_data.fill(where, ["Kim", "Lou", "Mo"], [kim, lou])

    ids = {student.name: student.id for student in store.roster.students(where)}
    assert list(ids) == ["Kim", "Lou", "Mo"]
    stored = store.classwork.attempts_of_activity(activity.id)
    assert [(each.student_id, each.created_at, each.handed_in) for each in stored] == [
        (ids["Kim"], attempt.at, attempt.handed_in) for attempt in attempts
    ]
    drafts = {draft.student_id: draft.answers for draft in store.classwork.drafts_of_activity(activity.id)}
    assert drafts == {ids["Kim"]: {"queries.rows": "2"}, ids["Lou"]: {"queries.rows": "3"}}
    [answer] = store.exit_tickets.answers(close_activity(store, activity))
    assert (answer.text, answer.day) == ("Why?", date(2026, 1, 16))
    assert answer.student_id == (None if anonymous else ids["Kim"])


def test_all_of_it_is_stored_or_nothing(store: Store) -> None:
    where = course(store)
    activity = store.activities.add(where, Plan("Week 3"), CONTENT)
    fine = SimulatedStudent(0, activity, store.now())
    wrong = SimulatedStudent(1, replace(activity, id=activity.id + 1), store.now())
    with pytest.raises(IntegrityError):
        store.sample_data.fill(where, ["Kim", "Lou"], [fine, wrong])
    assert store.roster.students(where) == ()
