"""The public demonstration's databases: one per day, shared by all processes, and all read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from app.classes.demonstration import Demonstration
from tests.helpers.shipped import LIBRARY, TICKETS

MONDAY = datetime(2026, 11, 23, 9, tzinfo=UTC)


class Processes:
    """Two processes that share a folder, and the time that both are told."""

    def __init__(self, folder: Path) -> None:
        self.now, self.folder = MONDAY, folder
        self.one, self.other = (Demonstration(folder, LIBRARY, TICKETS, lambda: self.now) for _ in range(2))


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Two processes with an empty folder."""
    both = Processes(tmp_path)
    yield both
    both.one.close()
    both.other.close()


def test_one_process_makes_the_days_course_and_the_other_opens_it(processes: Processes) -> None:
    assert processes.other.current() is None
    store = processes.one.begin()
    assert processes.one.begin() is store
    assert processes.one.current() is store
    other = processes.other.current()
    assert other
    teacher = store.people.only_teacher()
    assert teacher
    course = store.courses.taught_by(teacher)[0].course
    assert course.sample
    assert len(store.roster.students(course)) == 30
    codes = [activity.join_code for activity in store.activities.of_course(course)]
    assert codes == [activity.join_code for activity in other.activities.of_course(course)]


def test_nothing_can_be_written(processes: Processes) -> None:
    """Each kind of change is refused by the database, in a process that made it and in one that opened it."""
    processes.one.begin()
    for store in filter(None, (processes.one.current(), processes.other.current())):
        teacher = store.people.only_teacher()
        assert teacher
        course = store.courses.taught_by(teacher)[0].course
        writes: tuple[tuple[Callable[..., object], tuple[object, ...]], ...] = (
            (store.courses.add, ("Another", "UTC", teacher)),
            (store.courses.delete, (course,)),
            (store.people.open_session, (teacher,)),
            (store.add_visitor, ()),
            (store.check_writable, ()),
        )
        for write, arguments in writes:
            with pytest.raises(OperationalError, match="readonly"):
                write(*arguments)
        assert [each.course for each in store.courses.taught_by(teacher)] == [course]


def test_a_new_day_has_a_new_course_and_the_one_before_yesterday_goes(processes: Processes) -> None:
    monday = processes.one.begin()
    processes.now += timedelta(days=1)
    assert processes.one.current() is monday
    tuesday = processes.other.begin()
    assert processes.one.current() is not monday
    assert tuesday.people.only_teacher()
    processes.now += timedelta(days=1)
    processes.one.begin()
    assert sorted(path.name for path in processes.folder.glob("2026-*")) == ["2026-11-24", "2026-11-25"]
