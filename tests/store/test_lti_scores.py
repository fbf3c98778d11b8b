"""The outbox of grades: one process works on a link at a time, and only what differs is queued."""

from __future__ import annotations

from dataclasses import replace

from app.lti.grades import standings
from app.sheets.library import Library
from app.store import Store
from app.store.lti_scores import LEASE
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF
from tests.helpers.clock import Clock
from tests.helpers.lti_context import linked_activity


def test_a_process_that_dies_while_sending_leaves_its_grades_to_others(
    library: Library, store: Store, clock: Clock
) -> None:
    with linked_activity(library, store) as linked:
        linked.answer("7", KEY)
        [link] = store.lti_scores.links()
        assert store.lti_scores.claim(link)
        assert not store.lti_scores.claim(link)
        linked.sender().sweep()
        assert linked.grades == {}
        clock.pass_seconds(LEASE.total_seconds() + 1)
        linked.sender().sweep()
        assert linked.grades == {"7": 14}


def test_only_what_differs_is_queued(library: Library, store: Store, clock: Clock) -> None:
    with linked_activity(library, store) as linked:
        student = linked.answer("7", KEY).student_id
        linked.answer("8", KEY)
        [link], wanted = store.lti_scores.links(), standings(library, store, linked.activity, clock.now)
        store.lti_scores.want(link, wanted, "marker")
        [link] = store.lti_scores.links()
        assert link.marker == "marker"
        for due in store.lti_scores.due(link):
            store.lti_scores.settle(link, due)
        store.lti_scores.want(link, wanted, "marker")
        assert store.lti_scores.due(link) == ()
        less = replace(wanted[student], points=0.1 + 0.2)
        store.lti_scores.want(link, {**wanted, student: less}, "marker")
        [due] = store.lti_scores.due(link)
        assert (due.sub, due.standing) == ("7", less)


def test_students_merged_while_grades_are_compared_are_compared_again(
    library: Library, store: Store, clock: Clock
) -> None:
    with linked_activity(library, store) as linked:
        bound = linked.come("7")
        linked.attempt(bound, HALF)
        linked.sender().sweep()
        [link], before = store.lti_scores.links(), standings(library, store, linked.activity, clock.now)
        joined = linked.student("Kim")
        linked.attempt(joined, KEY)
        assert store.student_merge.merge(joined, bound)
        store.lti_scores.want(link, before, "computed before the merge")
        clock.pass_seconds(2)
        linked.sender().sweep()
        assert linked.grades == {"7": 14}
