"""People, courses and what students do, asked of SQLite and of a real PostgreSQL alike."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from app.activities.work import ClassDraft
from app.names import name_key
from app.store import (
    Activity,
    Content,
    Course,
    FrozenWorksheet,
    NoAttemptsLeftError,
    Plan,
    Policies,
    PoliciesError,
    Store,
    Student,
    Teacher,
    VariantSizes,
)
from app.store.roster import UNAMBIGUOUS_LETTERS, NameTakenError
from app.store.tables import account_links, sessions, students, teachers
from tests.helpers.stored_class import CONTENT, HALF, LLAMA, SHEET, enrol_student, key, teacher


def course(store: Store) -> Course:
    return store.courses.add("Transformers", "Europe/Berlin", teacher(store))


def all_at_once(count: int, work: Callable[[int], None]) -> list[Exception]:
    """Run the same in several threads that start together; what they raised."""
    barrier, problems = threading.Barrier(count), list[Exception]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


# Transactions


def write_and_fail(store: Store, token: str) -> None:
    """A transaction that adds a visitor and then raises ZeroDivisionError."""
    with store.transaction():
        store.add_visitor(token)
        raise ZeroDivisionError


def test_what_an_exception_leaves_is_taken_back(store: Store) -> None:
    """Of a transaction all, of one inside another what it wrote itself; the outer one may go on."""
    with pytest.raises(ZeroDivisionError):
        write_and_fail(store, "alone")
    with store.transaction():
        store.add_visitor("outside")
        with pytest.raises(ZeroDivisionError):
            write_and_fail(store, "inside")
    assert [store.find_visitor(token) is None for token in ("alone", "inside", "outside")] == [True, True, False]


def test_an_attempt_is_recorded_inside_a_transaction(store: Store) -> None:
    """With the others of the transaction, and refused where none is left without taking them back."""
    activity, kim = opened(store)
    here = key(kim, activity)
    with store.transaction():
        store.classwork.record(here, "a", ClassDraft({}, 1, LLAMA), HALF, handed_in=False, allowed=1)
        with pytest.raises(NoAttemptsLeftError):
            store.classwork.record(here, "b", ClassDraft({}, 2, LLAMA), HALF, handed_in=False, allowed=1)
    [attempt] = store.classwork.attempts(here)
    assert (attempt.client_id, attempt.marked_by) == ("a", here.sheet_key)


# People


def test_a_teacher_is_found_by_e_mail_in_any_case(store: Store) -> None:
    """Kept in lower case, found in any, and an address is given once."""
    made = store.people.add_teacher("Ada@Example.ORG", "Ada")
    assert made
    assert (made.email, made.password_hash) == ("ada@example.org", None)
    assert store.people.find_teacher("ADA@example.org") == made
    assert store.people.add_teacher("ada@example.org", "Another") is None
    assert not store.people.has_teacher()


def test_a_link_works_once(store: Store) -> None:
    """Of two who follow it at once, one gets in; afterwards nobody."""
    token = store.people.add_link("setup")
    link = store.people.find_link(token)
    assert link
    got = list[Teacher | None]()
    problems = all_at_once(2, lambda n: got.append(store.people.follow_link(link, f"t{n}@example.org", "T", "hash")))
    assert problems == []
    assert sorted(found is None for found in got) == [False, True]
    assert store.people.find_link(token) is None


def test_links_end_by_age_and_by_a_newer_one(store: Store) -> None:
    """A new set-up link voids the one before, and time voids any."""
    first, second = store.people.add_link("setup"), store.people.add_link("setup")
    assert store.people.find_link(first) is None
    assert store.people.find_link(second)
    with store.engine.begin() as connection:
        connection.execute(sa.update(account_links).values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    assert store.people.find_link(second) is None


def test_the_first_password_voids_every_set_up_link(store: Store) -> None:
    """Once somebody can sign in, whoever finds the old line in a terminal cannot make an account with it."""
    token = store.people.add_link("setup")
    teacher(store)
    assert store.people.has_teacher()
    assert store.people.find_link(token) is None


def test_no_secret_is_stored_in_clear(store: Store) -> None:
    """Tokens of links and sessions and resume codes are hashes in the database."""
    token = store.people.add_link("setup")
    owner = teacher(store)
    session = store.people.open_session(owner)
    _, _, code = enrol_student(store, store.courses.add("C", "UTC", owner))
    with store.engine.connect() as connection:
        rows = [
            str(row) for table in (account_links, sessions, students) for row in connection.execute(sa.select(table))
        ]
    for secret in (token, session, code):
        assert secret not in " ".join(rows)


def test_a_session_ends_by_signing_out_idleness_and_age(store: Store) -> None:
    """One browser, all of them, twelve idle hours, thirty days: none finds anybody afterwards."""
    owner = teacher(store)
    first, second, third = (store.people.open_session(owner) for _ in range(3))
    assert store.people.find_session(first) == owner
    store.people.end_session(first)
    assert store.people.find_session(first) is None
    for column, age in (("seen_at", timedelta(hours=12, minutes=1)), ("created_at", timedelta(days=30, minutes=1))):
        assert store.people.find_session(second) == owner
        with store.engine.begin() as connection:
            connection.execute(sa.update(sessions).values({column: datetime.now(UTC) - age}))
        assert store.people.find_session(second) is None
        with store.engine.begin() as connection:
            connection.execute(sa.update(sessions).values({column: datetime.now(UTC)}))
    store.people.end_sessions(owner)
    assert store.people.find_session(second) is None
    assert store.people.find_session(third) is None


def test_being_seen_keeps_a_session_alive(store: Store) -> None:
    """Somebody who looked eleven hours ago and now may look again in eleven hours."""
    token = store.people.open_session(teacher(store))
    with store.engine.begin() as connection:
        connection.execute(sa.update(sessions).values(seen_at=datetime.now(UTC) - timedelta(hours=11)))
    assert store.people.find_session(token)
    with store.engine.connect() as connection:
        seen = connection.scalar(sa.select(sessions.c.seen_at))
    assert seen
    assert datetime.now(UTC) - seen < timedelta(minutes=1)


def test_a_new_password_ends_every_session(store: Store) -> None:
    """Whoever was signed in with the old one is out."""
    token = store.people.open_session(teacher(store))
    link = store.people.find_link(store.people.add_link("reset", "ada@example.org"))
    assert link
    found = store.people.follow_link(link, link.email, password_hash="another")  # noqa: S106 - no password's hash
    assert found
    assert (found.name, found.password_hash) == ("Ada", "another")
    assert store.people.find_session(token) is None


def test_an_invitation_puts_on_the_staff_and_never_takes_down(store: Store) -> None:
    """An assistant is made; an instructor who follows an assistant's link stays one."""
    where = course(store)
    for email, role in (("bo@example.org", "assistant"), ("ada@example.org", "instructor")):
        link = store.people.find_link(store.people.add_link("invite", email, where.id, "assistant"))
        assert link
        member = store.people.follow_link(link, email, "Bo")
        assert member
        assert store.courses.role(where.id, member) == role


# Courses


def test_the_last_instructor_of_a_course_stays(store: Store) -> None:
    """An assistant can be taken off, the only instructor cannot."""
    where = course(store)
    link = store.people.find_link(store.people.add_link("invite", "bo@example.org", where.id, "assistant"))
    assert link
    helper = store.people.follow_link(link, "bo@example.org", "Bo")
    assert helper
    ada, bo = store.courses.staff(where)
    assert [(ada.role, ada.name), (bo.role, bo.name)] == [("instructor", "Ada"), ("assistant", "Bo")]
    assert not store.courses.remove_from_staff(where, ada.teacher_id)
    assert store.courses.remove_from_staff(where, bo.teacher_id)
    assert len(store.courses.staff(where)) == 1
    assert store.courses.role(where.id, helper) is None


def test_a_roster_pasted_twice_is_there_once(store: Store) -> None:
    """By number where there is one, else by name; the same name with two numbers is two people."""
    where = course(store)
    roster = [("Kim", "1"), ("Kim", "2"), ("Lou", None), ("lou", None)]
    assert store.roster.add_students(where, roster) == 3
    assert store.roster.add_students(where, roster) == 0
    assert [(s.name, s.roster_key) for s in store.roster.students(where)] == [
        ("Kim", "1"),
        ("Kim", "2"),
        ("Lou", None),
    ]


def test_a_name_of_the_roster_is_taken_once(store: Store) -> None:
    """Of four browsers that take it together, one sits as this student, until the instructor frees the name."""
    where = course(store)
    store.roster.add_students(where, [("Kim", None)])
    [kim] = store.roster.students(where)
    visitors = [store.add_visitor() for _ in range(4)]
    codes = list[str | None]()
    assert all_at_once(4, lambda n: codes.append(store.roster.claim_name(kim, visitors[n].id))) == []
    [code] = [found for found in codes if found]
    assert [store.roster.enrolled_student(visitor.id, where.id) is not None for visitor in visitors].count(True) == 1
    store.roster.release_student(kim)
    assert not any(store.roster.enrolled_student(visitor.id, where.id) for visitor in visitors)
    assert store.roster.find_by_resume_code(code) is None
    assert store.roster.claim_name(kim, visitors[0].id)


def test_a_resume_code_is_read_as_it_was_typed(store: Store) -> None:
    """Ten letters out of 21, in any case and spacing; a new code voids the old one; no other code is anybody's."""
    kim, _, code = enrol_student(store, course(store))
    assert len(code) == 10
    assert set(code) <= set(UNAMBIGUOUS_LETTERS)
    other = store.add_visitor()
    assert store.roster.find_by_resume_code(f" {code[:5].lower()}-{code[5:]} ") == kim
    store.roster.resume(kim, other.id)
    assert [enrolment.student for enrolment in store.roster.enrolments(other.id)] == [kim]
    fresh = store.roster.renew_code(kim)
    for wrong in (code, "", "\x00", "A" * 500, "é"):
        assert store.roster.find_by_resume_code(wrong) is None
    assert store.roster.find_by_resume_code(fresh) == kim


def test_a_browser_sits_as_one_student_of_a_course(store: Store) -> None:
    """Sitting down as somebody else moves it; getting up leaves the student there."""
    where = course(store)
    kim, visitor, _ = enrol_student(store, where)
    lou, _ = store.roster.enrol_new_student(where, "Lou", visitor.id)
    assert store.roster.enrolled_student(visitor.id, where.id) == lou
    store.roster.leave(kim, visitor.id)
    assert store.roster.enrolled_student(visitor.id, where.id) == lou
    store.roster.leave(lou, visitor.id)
    assert store.roster.enrolments(visitor.id) == ()
    assert store.roster.students(where) == (kim, lou)


def test_a_student_who_begins_while_idle_ones_are_removed_stays(store: Store) -> None:
    """The first save is under way when the button is pressed: the student and the save are there afterwards."""
    where = course(store)
    kim, _, _ = enrol_student(store, where, "Kim")
    lou, _, _ = enrol_student(store, where, "Lou")
    activity = store.activities.add(where, Plan("Week 3", None), CONTENT)
    removed = list[int]()
    remover = threading.Thread(target=lambda: removed.append(store.roster.remove_idle_newcomers(where, lou.id)))
    with store.transaction():
        store.classwork.save(key(kim, activity), ClassDraft({"queries.rows": "100"}, 0, LLAMA))
        remover.start()
        remover.join(0.3)
        assert not removed
    remover.join()
    assert removed == [1]
    assert store.roster.students(where) == (kim,)
    assert store.classwork.draft(key(kim, activity))


# Activities


@pytest.mark.parametrize(
    "wrong",
    [
        {"variants": "x"},
        {"feedback": ""},
        {"max_attempts": -1},
        {"max_attempts": 100},
        {"follow_share": 1.1},
        {"run": None},
    ],
)
def test_policies_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    """By the name of the field that is wrong."""
    with pytest.raises(PoliciesError, match=next(iter(wrong))):
        Policies.from_json(wrong)


def test_an_activity_comes_back_as_it_was_made(store: Store) -> None:
    """Policies, times and content, and it is found by its code, in any case, once it is no draft."""
    plan = Plan("Week 3", None, Policies("per_student", "after_close", 2, 0.25, False, "before", False),
                datetime(2026, 3, 1, 9, tzinfo=UTC), datetime(2026, 3, 1, 10, tzinfo=UTC))  # fmt: skip
    where = course(store)
    made = store.activities.add(where, plan, CONTENT)
    assert store.activities.find(made.id) == made
    assert store.activities.by_code(made.join_code) is None
    store.activities.set_state(made, "open")
    opened = store.activities.by_code(f"{made.join_code[:3].lower()} {made.join_code[3:]}")
    assert opened == (replace(made, state="open"), where)
    found, _ = opened
    assert found.content == CONTENT
    nine = datetime(2026, 3, 1, 9, tzinfo=UTC)
    phases = [found.phase(nine + timedelta(minutes=minutes)) for minutes in (-1, 0, 59, 60)]
    assert phases == ["waiting", "open", "open", "closing"]


def test_what_students_saw_is_never_changed(store: Store) -> None:
    """A draft's content is replaced; after opening, other content is a new revision, and the same is none."""
    made = store.activities.add(course(store), Plan("Week 3"), CONTENT)
    other = replace(CONTENT, items=(FrozenWorksheet({**SHEET, "tokens": 50}),))
    assert store.activities.revise(made, other) == 1
    store.activities.set_state(made, "open")
    opened = store.activities.find(made.id)
    assert opened
    assert store.activities.revise(opened, other) == 1
    assert store.activities.revise(opened, CONTENT) == 2
    newest = store.activities.find(made.id)
    assert newest
    assert (newest.revision, newest.content) == (2, CONTENT)
    assert store.activities.content(made.id, 1) == other


def test_a_sheet_is_the_same_as_long_as_its_questions_are() -> None:
    """Another title keeps drafts and attempts in place; another length does not."""
    assert FrozenWorksheet({**SHEET, "title": "Heads"}).sheet_key == FrozenWorksheet(SHEET).sheet_key
    assert FrozenWorksheet({**SHEET, "tokens": 50}).sheet_key != FrozenWorksheet(SHEET).sheet_key
    assert FrozenWorksheet({**SHEET, "tolerance": 0.0}).sheet_key == FrozenWorksheet(SHEET).sheet_key
    assert FrozenWorksheet({**SHEET, "tolerance": 0.01}).sheet_key != FrozenWorksheet(SHEET).sheet_key


# What students do


def opened(store: Store) -> tuple[Activity, Student]:
    where = course(store)
    activity = store.activities.add(where, Plan("Week 3"), CONTENT)
    kim, _, _ = enrol_student(store, where)
    store.classwork.arrive(activity.id, kim.id)
    return activity, kim


def test_the_variant_of_the_first_save_stays(store: Store) -> None:
    """The sizes are those of the first save, and every save that changes something counts."""
    activity, kim = opened(store)
    here = key(kim, activity)
    store.classwork.save(here, ClassDraft({"queries.rows": "1"}, 0, LLAMA))
    store.classwork.save(here, ClassDraft({"queries.rows": "2"}, 0, VariantSizes("gpt2", 7)))
    assert store.classwork.draft(here) == ClassDraft({"queries.rows": "2"}, 2, LLAMA)


def test_an_attempt_that_is_sent_again_counts_once(store: Store) -> None:
    """Eight threads hand in the same attempt; it is there once, and each is given that one."""
    activity, kim = opened(store)
    here, got = key(kim, activity), list[int]()
    draft = ClassDraft({"queries.rows": "100"}, 1, LLAMA)

    def hand_in(_: int) -> None:
        got.append(store.classwork.record(here, "a" * 32, draft, HALF, handed_in=True, allowed=1).attempt.id)

    assert all_at_once(8, hand_in) == []
    [kept] = store.classwork.attempts(here)
    assert set(got) == {kept.id}
    assert (kept.answers, kept.marks, kept.misconceptions, kept.score) == (
        draft.answers,
        HALF.marks,
        HALF.misconceptions,
        1,
    )
    assert kept.variant == LLAMA


def test_attempts_are_not_more_than_allowed(store: Store) -> None:
    """Six threads check with six ids where two attempts are allowed: two are kept, four refused, none half kept."""
    activity, kim = opened(store)
    here = key(kim, activity)

    def check(number: int) -> None:
        draft = ClassDraft({"queries.rows": str(number)}, number, LLAMA)
        store.classwork.record(here, f"attempt {number}", draft, HALF, handed_in=False, allowed=2)

    problems = all_at_once(6, check)
    assert [type(problem) for problem in problems] == [NoAttemptsLeftError] * 4
    assert len(store.classwork.attempts(here)) == 2
    made = store.classwork.last_attempt(here)
    assert made
    last = store.classwork.hand_in(made)
    assert [found.handed_in for found in store.classwork.attempts(here)] == [False, True]
    assert store.classwork.last_attempt(here) == last


def test_a_named_ticket_says_whose_it_is(store: Store) -> None:
    """And can be starred, marked and hidden; an answer of another activity cannot."""
    activity, kim = opened(store)
    assert store.exit_tickets.hand_in(activity.id, kim.id, "form", {"muddiest": "why √d"}, anonymous=False)
    [answer] = store.exit_tickets.answers(activity.id)
    assert (answer.student_id, answer.text, answer.starred) == (kim.id, "why √d", False)
    assert store.exit_tickets.mark(activity.id, answer.id, starred=True, follow_up=True)
    assert not store.exit_tickets.mark(activity.id + 1, answer.id, hidden=True)
    [answer] = store.exit_tickets.answers(activity.id)
    assert (answer.starred, answer.follow_up, answer.hidden) == (True, True, False)


def test_a_removed_student_takes_their_work_along(store: Store) -> None:
    """Drafts, attempts and named tickets go with the student; the teacher stays."""
    activity, kim = opened(store)
    here = key(kim, activity)
    store.classwork.record(here, "a", ClassDraft({}, 1, LLAMA), HALF, handed_in=True)
    store.exit_tickets.hand_in(activity.id, kim.id, "form", {"muddiest": "x"}, anonymous=False)
    store.roster.remove_student(kim)
    assert store.classwork.attempts_of_activity(activity.id) == ()
    assert store.classwork.draft(here) is None
    assert store.exit_tickets.answers(activity.id) == ()
    assert store.classwork.attendance(activity.id) == ()
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(teachers)) == 1


def test_an_activity_of_a_course_that_is_gone_is_refused_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a join code that is in use is replaced by another one, a few times."""
    teacher = store.people.add_teacher("gone@example.org", "Ada")
    assert teacher
    kept, gone = (store.courses.add("C", "UTC", teacher) for _ in range(2))
    store.courses.delete(gone)
    with pytest.raises(IntegrityError):
        store.activities.add(gone, Plan("Week 3"), Content((), None, ""))
    codes = iter(("AAAAAA", "AAAAAA", "BBBBBB", *["AAAAAA"] * 9))
    monkeypatch.setattr("app.store.activities.new_code", lambda _length: next(codes))
    made = [store.activities.add(kept, Plan("Week 3"), Content((), None, "")) for _ in range(2)]
    assert [activity.join_code for activity in made] == ["AAAAAA", "BBBBBB"]
    with pytest.raises(RuntimeError):
        store.activities.add(kept, Plan("Week 3"), Content((), None, ""))


def test_two_imports_at_once_add_everybody_once(store: Store) -> None:
    """Students with and without a number, and one who joins under a name of the list meanwhile."""
    teacher = store.people.add_teacher("twice@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    entries = [*((f"Student {number}", str(number)) for number in range(300)), ("Lee", None), ("LOU", None)]

    def join(name: str) -> int:
        try:
            store.roster.enrol_new_student(course, name)
        except NameTakenError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as threads:
        joined = threads.submit(join, "Lou")
        added = sum(threads.map(lambda _: store.roster.add_students(course, entries), range(3)))
    assert added + joined.result() == len(entries) == len(store.roster.students(course))


def test_a_name_without_a_number_is_there_once(store: Store) -> None:
    """However it is typed; with a number, two students may share a name."""
    teacher = store.people.add_teacher("names@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    store.roster.add_students(course, [("Zoë", None), ("Zoë", "17"), ("Kim", "18")])
    with pytest.raises(NameTakenError):
        store.roster.enrol_new_student(course, "ZOË")
    kim = store.roster.students(course)[0]
    assert not store.roster.rename(kim, "zoë", None)
    assert store.roster.rename(kim, "zoë", "18")
    assert [each.name for each in store.roster.namesakes(course, "Zoe\u0308")] == ["Zoë", "Zoë", "zoë"]


def test_students_are_sorted_by_name_alike_on_both_databases(store: Store) -> None:
    """Without regard to case, by code point, as Python sorts text."""
    teacher = store.people.add_teacher("sorted@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    names = ["Zoë", "zoe", "ada", "Ada B", "Émile", "李小龍", "o'Brien", "Ole", "ﬁ", "Straße", "_x"]
    store.roster.add_students(course, [(name, None) for name in names])
    assert [each.name for each in store.roster.students(course)] == sorted(names, key=name_key)
