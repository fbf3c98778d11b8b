"""The audit log: who did what to which course, activity, student or account, and when."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

import sqlalchemy as sa

from app.activities.activity import Activity

from .courses import Course
from .jobs import Job
from .materials import Material
from .people import Teacher
from .queries import QueryBase, batches, columns
from .roster import Student
from .tables import audit_log

Actor = Teacher | Literal["nobody", "terminal"]  # not signed in, or a command on the server
AuditObject = Activity | Course | Job | Material | Student | Teacher
ObjectKind = Literal["activity", "course", "job", "material", "student", "teacher"]

REFUSALS_NOTED_EVERY = timedelta(minutes=10)

_KINDS: dict[type, ObjectKind] = {
    Activity: "activity",
    Course: "course",
    Job: "job",
    Material: "material",
    Student: "student",
    Teacher: "teacher",
}


class AuditAction(StrEnum):
    """What can be logged; the value is stored, and shown on the course's page."""

    PRACTICE_SET = "practice set"
    PRACTICE_ENDED = "practice ended"
    ACTIVITY_CREATED = "activity created"
    ACTIVITY_SAVED = "activity saved"
    ACTIVITY_REVISED = "activity revised"
    ACTIVITY_OPENED = "activity opened"
    ACTIVITY_CLOSED = "activity closed"
    CLOSE_UNDONE = "close undone"
    ACTIVITY_DELETED = "activity deleted"  # about the course; detail: the activity's title
    MATERIAL_CREATED = "worksheet or ticket created"
    MATERIAL_SAVED = "worksheet or ticket saved"  # detail: the version's number
    MATERIAL_RESTORED = "worksheet or ticket restored"  # detail: the restored version's number
    MATERIAL_MOVED = "moved into the course"
    MATERIAL_REMOVED = "worksheet or ticket removed"
    MATERIAL_PUT_BACK = "worksheet or ticket put back"
    MATERIAL_SHARED = "link made"
    MATERIAL_UNSHARED = "link withdrawn"
    COURSE_COPIED = "course copied"
    ATTEMPTS_REGRADED = "regraded"  # detail: how many attempts changed
    POINTS_CHANGED = "points changed"  # about the student; detail: the points, and the activity's id
    HANDOUT_CREATED = "handout created"
    PAPER_ANSWERS_ENTERED = "paper answers entered"
    COURSE_ARCHIVED = "course archived"
    COURSE_RESTORED = "course restored"
    COURSE_DELETED = "course deleted"
    COURSE_EXPORTED = "exported"  # detail: the file's name
    SAMPLE_COURSE_CREATED = "sample course created"
    SAMPLE_COURSE_DELETED = "sample course deleted"
    STAFF_INVITED = "invited"  # detail: the role
    STAFF_REMOVED = "staff removed"
    # detail: the student's id, in an entry about the course, which outlives the student
    STUDENT_REMOVED = "student removed"
    STUDENTS_ADDED = "students added"  # detail: how many
    IMPORT_UNDONE = "import of students undone"  # detail: how many were removed
    NEWCOMERS_REMOVED = "idle students removed"  # detail: how many had joined with the code and done nothing
    EXTRA_TIME_SET = "extra time set"  # detail: the activity and the minutes
    STUDENT_RENAMED = "student renamed"
    STUDENT_NUMBER_CHANGED = "student number changed"
    STUDENTS_MERGED = "students merged"  # about the student who stays; detail: the removed student's id
    STUDENT_RELEASED = "student released"
    LMS_CONNECTED = "account connected with a learning platform"
    LMS_DISCONNECTED = "account disconnected from learning platforms"
    LMS_COURSE_LINKED = "linked with a course of a learning platform"
    LMS_COURSE_UNLINKED = "unlinked from a course of a learning platform"
    PLATFORM_ADDED = "learning platform added"  # detail: its id
    PLATFORM_REMOVED = "learning platform removed"  # detail: its id
    DEPLOYMENT_CONFIRMED = "deployment confirmed"  # detail: the platform's id
    SIGNED_IN = "sign-in"
    SIGN_IN_REFUSED = "sign-in refused"  # one entry for all within REFUSALS_NOTED_EVERY
    SIGNED_OUT = "sign-out"
    PASSWORD_SET = "password set"  # noqa: S105 - no password
    PASSWORD_LINK_MAILED = "password link mailed"  # noqa: S105 - no password
    PASSWORD_LINK_NOT_MAILED = "password link not mailed"  # noqa: S105 - no password
    PASSWORD_LINK_CREATED = "password link created"  # noqa: S105 - no password
    TEACHER_ADDED = "teacher added"
    OPERATOR_ADDED = "operator added"
    OPERATOR_REMOVED = "operator removed"
    JOB_CANCELLED = "job cancelled"


@dataclass(frozen=True)
class AuditEntry:
    """One line of the audit log: numbers, never names or answers.

    Missing ids are None; missing `object_kind` and `detail` are empty.
    """

    id: int
    at: datetime
    actor_kind: str
    actor_id: int | None
    action: str
    object_kind: ObjectKind | Literal[""]
    object_id: int | None
    detail: str


class AuditLog(QueryBase):
    """The audit log, kept for two years (AUDIT_RETENTION in housekeeping.py)."""

    def record(self, actor: Actor, action: AuditAction, about: AuditObject | None = None, detail: str = "") -> None:
        """Add an entry with the current time: who did what, and to which object, if any."""
        self._execute(
            sa.insert(audit_log).values(
                at=self.now(),
                actor_kind=actor if isinstance(actor, str) else "teacher",
                actor_id=None if isinstance(actor, str) else actor.id,
                action=action.value,
                object_kind=_KINDS[type(about)] if about else "",
                object_id=about.id if about else None,
                detail=detail[:40],
            )
        )

    @contextmanager
    def recording(
        self, actor: Actor, action: AuditAction, about: AuditObject | None = None, detail: str = ""
    ) -> Iterator[None]:
        """A transaction for this `with` that also records it: both are stored, or neither."""
        with self.transaction():
            yield
            self.record(actor, action, about, detail)

    def record_refused_sign_in(self) -> None:
        """Add an entry for a wrong password, by nobody and about nobody, at most one within REFUSALS_NOTED_EVERY."""
        recent = self.now() - REFUSALS_NOTED_EVERY
        refused = (audit_log.c.action == AuditAction.SIGN_IN_REFUSED.value, audit_log.c.at > recent)
        if self._fetch_one(sa.select(audit_log.c.id).where(*refused).limit(1)) is None:
            self.record("nobody", AuditAction.SIGN_IN_REFUSED)

    def entries(self, about: Mapping[ObjectKind, Collection[int]], since: datetime, limit: int) -> list[AuditEntry]:
        """The newest `limit` entries about any of these objects since a time, newest first.

        Example: entries({"course": [7], "student": [12, 13]}, since, 200).
        """
        entries = list[AuditEntry]()
        for kind, ids in about.items():
            for some in batches(sorted(ids), 500):  # statements take a limited number of values
                query = (
                    sa.select(*columns(audit_log, AuditEntry))
                    .where(audit_log.c.object_kind == kind, audit_log.c.object_id.in_(some), audit_log.c.at >= since)
                    .order_by(audit_log.c.id.desc())
                    .limit(limit)
                )
                entries += self._values(AuditEntry, query)
        return sorted(entries, key=lambda entry: entry.id, reverse=True)[:limit]
