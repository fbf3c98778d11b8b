"""Activities of a course: policies, times, and what students see, frozen in numbered revisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from app.activities.activity import Activity, Plan, Projection, State, UndoableClose
from app.activities.content import Content
from app.activities.work import WorkDone

from .classwork import select_work, work_of
from .courses import Course
from .queries import QueryBase, columns, from_row, hash_secret
from .roster import Student, new_code, normalised_code
from .tables import (
    activities,
    courses,
    enrolments,
    extra_time,
    given_sheets,
    lti_links,
    revisions,
    students,
    undoable_closes,
    visitors,
)

JOIN_CODE_LENGTH = 6
MAX_CODES_TRIED = 5  # there are more than a hundred million codes


@dataclass(frozen=True)
class VisitorsActivity:
    """An activity, its course, the browser's student, and their work on the requested sheet."""

    activity: Activity
    course: Course
    student: Student
    work: WorkDone | None = None  # if no sheet was requested


_STORED = ("id", "course_id", "join_code", "state", "title", "day", "policies", "opens_at", "closes_at",
           "answers_shown_at", "auto_submitted_at")  # fmt: skip
_COLUMNS = [
    *(activities.c[name] for name in _STORED),
    sa.func.coalesce(
        sa.select(sa.func.max(extra_time.c.minutes))
        .where(extra_time.c.activity_id == activities.c.id)
        .correlate(activities)
        .scalar_subquery(),
        0,
    ).label("longest_extra"),
    revisions.c.number.label("revision"),
    revisions.c.content,
    courses.c.archived_at.is_not(None).label("is_archived"),
]
_OTHERS = revisions.alias()
_NEWEST = sa.select(sa.func.max(_OTHERS.c.number)).where(_OTHERS.c.activity_id == activities.c.id).scalar_subquery()
_IN_COURSE = activities.join(
    revisions, (revisions.c.activity_id == activities.c.id) & (revisions.c.number == _NEWEST)
).join(courses, courses.c.id == activities.c.course_id)
_SELECT = sa.select(*_COLUMNS).select_from(_IN_COURSE).order_by(activities.c.id.desc())
_SELECT_WITH_COURSE = sa.select(*_COLUMNS, *columns(courses, Course, "course__")).select_from(_IN_COURSE)
_OF_VISITOR = (
    *_COLUMNS,
    sa.func.coalesce(extra_time.c.minutes, 0).label("extra_minutes"),
    *columns(courses, Course, "course__"),
    *columns(students, Student, "student__"),
)
_VISITORS_ACTIVITY = (
    _IN_COURSE.join(enrolments, enrolments.c.course_id == activities.c.course_id)
    .join(visitors, visitors.c.id == enrolments.c.visitor_id)
    .join(students, students.c.id == enrolments.c.student_id)
    .outerjoin(extra_time, (extra_time.c.activity_id == activities.c.id) & (extra_time.c.student_id == students.c.id))
)
_IS_VISITORS = (activities.c.id == sa.bindparam("activity_id"), visitors.c.token_hash == sa.bindparam("token_hash"))
# Built once: a class runs these with every save, and building one takes as long as executing it.
_SELECT_OF_VISITOR = sa.select(*_OF_VISITOR).select_from(_VISITORS_ACTIVITY).where(*_IS_VISITORS)
_OF_STUDENT = {"student_id": students.c.id, "activity_id": activities.c.id, "sheet_key": sa.bindparam("sheet_key")}
_SELECT_AT_WORK = select_work(_VISITORS_ACTIVITY, _OF_VISITOR, _OF_STUDENT).where(*_IS_VISITORS)


class Activities(QueryBase):
    """Queries on activities and their revisions."""

    def add(self, course: Course, plan: Plan, content: Content) -> Activity:
        """Create an activity in state "draft", with a random unused join code and this content as revision 1.

        Raises IntegrityError if the course no longer exists, RuntimeError after MAX_CODES_TRIED codes in use.
        """
        for _ in range(MAX_CODES_TRIED):
            row = {"course_id": course.id, "join_code": new_code(JOIN_CODE_LENGTH), "state": "draft",
                   "created_at": self.now(), **vars(plan)}  # fmt: skip
            insert = self._insert_into(activities).values(row)
            unless_used = insert.on_conflict_do_nothing(index_elements=[activities.c.join_code])
            with self.transaction() as connection:
                activity_id = connection.scalar(unless_used.returning(activities.c.id))
                if activity_id is not None:
                    self._insert_revision(connection, activity_id, 1, content)
                    return Activity(activity_id, course.id, str(row["join_code"]), "draft", plan, 1, content)
        raise RuntimeError("every join code that was tried is in use")

    def find(self, activity_id: int) -> Activity | None:
        return next(iter(self._select(activities.c.id == activity_id)), None)

    def by_code(self, typed: str) -> tuple[Activity, Course] | None:
        """The activity with this join code, and its course; None for an unknown code, a draft or an archived course."""
        joinable = (activities.c.state != "draft", courses.c.archived_at.is_(None))
        this = activities.c.join_code == normalised_code(typed)
        row = self._fetch_one(_SELECT_WITH_COURSE.where(this, *joinable))
        return (_activity(row), from_row(Course, row, "course__")) if row else None

    def of_visitor(self, token: str, activity_id: int, sheet_key: str = "") -> VisitorsActivity | None:
        """An activity and its course, with the student enrolled in this token's browser, and their work."""
        this = {"activity_id": activity_id, "token_hash": hash_secret(token)}
        query = _SELECT_AT_WORK if sheet_key else _SELECT_OF_VISITOR
        row = self._fetch_one(query, **this, **({"sheet_key": sheet_key} if sheet_key else {}))
        if row is None:
            return None
        activity = replace(_activity(row), extra_minutes=row.extra_minutes)
        course, student = from_row(Course, row, "course__"), from_row(Student, row, "student__")
        return VisitorsActivity(activity, course, student, work_of(row) if sheet_key else None)

    def of_course(self, course: Course) -> tuple[Activity, ...]:
        """The activities of a course in any state, newest first."""
        return self._select(activities.c.course_id == course.id)

    def linked(self) -> dict[int, Activity]:
        """The activities that links of platforms open, by id, without their content: there may be hundreds."""
        brief = sa.select(*(each for each in _COLUMNS if each.name != "content")).select_from(_IN_COURSE)
        rows = self._fetch_all(brief.where(activities.c.id.in_(sa.select(lti_links.c.activity_id))))
        return {row.id: _activity(row, Content((), None)) for row in rows}

    def of_student(self, student: Student) -> tuple[Activity, ...]:
        """All activities of a student's course, including drafts and closed ones, newest first."""
        query = sa.select(extra_time.c.activity_id, extra_time.c.minutes)
        rows = self._fetch_all(query.where(extra_time.c.student_id == student.id))
        minutes = {row.activity_id: row.minutes for row in rows}
        of_course = self._select(activities.c.course_id == student.course_id)
        return tuple(replace(activity, extra_minutes=minutes.get(activity.id, 0)) for activity in of_course)

    def change(self, activity: Activity, plan: Plan) -> None:
        """Store another plan, and what its policies and times mean for drafts and answers: see Activity.changed."""
        self._store_times(activity.changed(self.now(), plan=plan), vars(plan))

    def delete(self, activity: Activity) -> None:
        """Delete an activity for good, with its revisions and everything students did in it."""
        self._execute(sa.delete(activities).where(activities.c.id == activity.id))

    def set_state(self, activity: Activity, state: State) -> None:
        """Set an activity's state only; the given Activity keeps its old one."""
        self._execute(sa.update(activities).where(activities.c.id == activity.id).values(state=state))

    def close(self, activity: Activity, at: datetime | None = None) -> None:
        """Set an activity's closing time, by default to now, and its opening time as in Plan.closed_at."""
        plan = activity.plan.closed_at(at or self.now())
        times = {"closes_at": plan.closes_at, "opens_at": plan.opens_at}
        self._store_times(activity.changed(self.now(), plan=plan), times)

    def note_restored(self, course: Course) -> None:
        """After restoring a course, update its activities whose extra time or late window resumes."""
        if course.archived_at is None:
            return
        with self.transaction():
            for listed in self.of_course(course):
                restored = self.locked(listed)
                if restored and restored.ends_at and self.now() < restored.ends_at:
                    archived = replace(restored, is_archived=True)
                    self._store_times(archived.changed(self.now(), is_archived=False), {})

    def last_close(self, activity: Activity) -> UndoableClose | None:
        """The last press of Close that was kept, or None."""
        query = sa.select(*columns(undoable_closes, UndoableClose))
        return self._value(UndoableClose, query.where(undoable_closes.c.activity_id == activity.id))

    def keep_close(self, activity: Activity, press: UndoableClose | None) -> None:
        """Replace the activity's stored press of Close; None deletes it."""
        if press is None:
            self._execute(sa.delete(undoable_closes).where(undoable_closes.c.activity_id == activity.id))
            return
        insert = self._insert_into(undoable_closes).values(activity_id=activity.id, **vars(press))
        key = [undoable_closes.c.activity_id]
        self._execute(insert.on_conflict_do_update(index_elements=key, set_=vars(press)))

    def projection(self, activity_id: int) -> Projection:
        """What the activity's projector shows."""
        row = self._fetch_one(sa.select(activities.c.projection).where(activities.c.id == activity_id))
        return row.projection if row and row.projection else Projection()

    def set_projection(self, activity_id: int, projection: Projection) -> None:
        self._execute(sa.update(activities).where(activities.c.id == activity_id).values(projection=projection))

    def extra_times(self, activity_id: int) -> dict[int, int]:
        """Each student's extra minutes in an activity, by student id."""
        query = sa.select(extra_time.c.student_id, extra_time.c.minutes)
        rows = self._fetch_all(query.where(extra_time.c.activity_id == activity_id))
        return {row.student_id: row.minutes for row in rows}

    def set_extra_time(self, activity: Activity, student_id: int, minutes: int) -> None:
        """Set a student's extra minutes in an activity; 0 removes them."""
        this = (extra_time.c.activity_id == activity.id, extra_time.c.student_id == student_id)
        with self.transaction():
            stored = self.locked(activity) or activity  # another teacher may give extra time at this moment
            of_others = [m for student, m in self.extra_times(activity.id).items() if student != student_id]
            changed = stored.changed(self.now(), longest_extra=max([minutes, *of_others]))
            self._execute(sa.delete(extra_time).where(*this))
            if minutes:
                row = {"activity_id": activity.id, "student_id": student_id, "minutes": minutes}
                self._execute(sa.insert(extra_time).values(row))
            self._store_times(changed, {})

    def ended(self) -> tuple[int, ...]:
        """The ids of open activities whose closing time has passed and whose drafts aren't auto-submitted yet,
        ascending.
        """
        at, submitted_at = self.now(), activities.c.auto_submitted_at
        not_yet = (activities.c.state == "open", sa.or_(submitted_at.is_(None), submitted_at > at))
        query = sa.select(activities.c.id).where(*not_yet, activities.c.closes_at <= at)
        return tuple(row.id for row in self._fetch_all(query.order_by(activities.c.id)))

    def locked(self, activity: Activity) -> Activity | None:
        """The activity as it is now, locked until this thread's `transaction()` ends; None if it is gone.

        Waits for other holders of the lock.
        """
        self._fetch_one(sa.select(activities.c.id).where(activities.c.id == activity.id).with_for_update())
        return self.find(activity.id)  # a separate statement, which sees what was stored while it waited for the lock

    def note_auto_submitted(self, activity: Activity) -> None:
        """Store that the drafts of an ended activity have been submitted."""
        self._execute(sa.update(activities).where(activities.c.id == activity.id).values(auto_submitted_at=self.now()))

    def _store_times(self, activity: Activity, values: Mapping[str, Any]) -> None:
        times = {"auto_submitted_at": activity.auto_submitted_at, "answers_shown_at": activity.answers_shown_at}
        self._execute(sa.update(activities).where(activities.c.id == activity.id).values(**values, **times))

    def revise(self, activity: Activity, content: Content) -> int:
        """Store new content; return the number of the revision that holds it now."""
        if content.as_json() == activity.content.as_json():
            return activity.revision
        with self.transaction() as connection:
            if activity.state == "draft":
                self._replace_revision(connection, activity.id, activity.revision, content)
                return activity.revision
            self._insert_revision(connection, activity.id, activity.revision + 1, content)
            return activity.revision + 1

    def complete(self, activity_id: int, revision: int, content: Content) -> None:
        """Replace a revision's content by the same with more models; the caller ensures that nothing else differs."""
        this = (revisions.c.activity_id == activity_id, revisions.c.number == revision)
        self._execute(sa.update(revisions).where(*this).values(content=content))

    def given_sheet(self, activity_id: int, key: str) -> str | None:
        """The sheet that students were given under this key, as JSON, or None."""
        this = (given_sheets.c.activity_id == activity_id, given_sheets.c.key == key)
        row = self._fetch_one(sa.select(given_sheets.c.sheet).where(*this))
        return row.sheet if row else None

    def give_sheet(self, activity_id: int, key: str, sheet: str) -> None:
        """Store a sheet that students are given, as JSON, unless there is one under this key."""
        insert = self._insert_into(given_sheets).values(activity_id=activity_id, key=key, sheet=sheet)
        self._execute(insert.on_conflict_do_nothing())

    def content(self, activity_id: int, revision: int) -> Content | None:
        """The content of one revision, or None."""
        this = (revisions.c.activity_id == activity_id, revisions.c.number == revision)
        row = self._fetch_one(sa.select(revisions.c.content).where(*this))
        return row.content if row else None

    def revisions(self, activity: Activity) -> dict[int, Content]:
        """The content of every revision of an activity by number, in ascending order."""
        query = sa.select(revisions.c.number, revisions.c.content).where(revisions.c.activity_id == activity.id)
        rows = self._fetch_all(query.order_by(revisions.c.number))
        return {row.number: row.content for row in rows}

    def _replace_revision(self, connection: sa.Connection, activity_id: int, number: int, content: Content) -> None:
        this = (revisions.c.activity_id == activity_id, revisions.c.number == number)
        connection.execute(sa.delete(revisions).where(*this))
        self._insert_revision(connection, activity_id, number, content)

    def _insert_revision(self, connection: sa.Connection, activity_id: int, number: int, content: Content) -> None:
        row = {"activity_id": activity_id, "number": number, "content": content, "created_at": self.now()}
        connection.execute(sa.insert(revisions).values(row))

    def _select(self, *conditions: sa.ColumnElement[bool]) -> tuple[Activity, ...]:
        return tuple(_activity(row) for row in self._fetch_all(_SELECT.where(*conditions)))


def _activity(row: Any, content: Content | None = None) -> Activity:
    plan = Plan(row.title, row.day, row.policies, row.opens_at, row.closes_at)
    return Activity(row.id, row.course_id, row.join_code, row.state, plan, row.revision, content or row.content,
                    row.answers_shown_at, row.auto_submitted_at, row.longest_extra,
                    is_archived=row.is_archived)  # fmt: skip
