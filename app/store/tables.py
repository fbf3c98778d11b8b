"""The tables, as they are after the newest migration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Constraint,
    Date,
    DateTime,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.types import TypeDecorator

from app.activities.activity import Policies, Projection
from app.activities.content import Content
from app.activities.work import VariantSizes
from app.names import name_key


class UtcDateTime(TypeDecorator[datetime]):
    """A column of times in UTC, read with their zone, which SQLite would drop."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


class JsonOf(TypeDecorator[Any]):
    """A column of JSON read as a value: `load` makes the value from what is stored, `dump` the reverse."""

    impl = JSON
    cache_ok = True

    def __init__(self, load: Callable[[Any], Any], dump: Callable[[Any], Any]) -> None:
        super().__init__(none_as_null=True)
        self.load, self.dump = load, dump

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return None if value is None else self.dump(value)

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return None if value is None else self.load(value)


Sizes = JsonOf(lambda stored: VariantSizes(**stored), asdict)
Misconceptions = JsonOf(tuple, list)

# Sorted as Python sorts text, whatever the server's language. Unlimited: letters can become several.
NameKey = Text().with_variant(Text(collation="C"), "postgresql")


def _name_key(context: Any) -> str:
    return name_key(context.get_current_parameters()["name"])


def imported_model(key: object) -> str | None:
    """The key, if it is an imported model's ("cfg-" and 20 hexadecimal digits), or None."""
    return key if isinstance(key, str) and _IMPORTED_KEY.fullmatch(key) else None


_IMPORTED_KEY = re.compile(r"cfg-[0-9a-f]{20}")


def _model_of_variant(context: Any) -> str | None:
    return imported_model(context.get_current_parameters()["variant"].model)


def _model_key(default: Callable[[Any], str | None]) -> Column[Any]:
    return Column("model_key", String(32), default=default)


def _one_of(column: str, *values: str) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(map(repr, values))})", name=column)


metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "fk": "fk_%(table_name)s_%(column_0_N_name)s",
                       "uq": "uq_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s",
                       "ck": "ck_%(table_name)s_%(constraint_name)s"}
)  # fmt: skip


def _numbered_table(name: str, *parts: Column[Any] | Constraint) -> Table:
    # Without sqlite_autoincrement, SQLite reuses the newest row's id once that row is deleted, and whatever remembers
    # the id, such as the audit log, would mean somebody else. PostgreSQL never reuses ids.
    return Table(name, metadata, Column("id", Integer, primary_key=True), *parts, sqlite_autoincrement=True)


MAX_PROBLEM = 500  # characters of the sentence on what went wrong

visitors = _numbered_table(
    "visitors",
    Column("token_hash", String(64), nullable=False, unique=True),  # the cookie itself is never stored
    Column("created_at", UtcDateTime, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("answers", JSON, nullable=False),  # as they were when the head was run
    Column("result", JSON),  # null until the run has finished
    Column("problem", String(MAX_PROBLEM)),  # the sentence shown instead of a result
    Column("created_at", UtcDateTime, nullable=False),
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), index=True),  # null in practice
    Column("frozen", JSON, nullable=False),  # the worksheet and model that were run; see frozen_run.py
)

models = Table(
    "models",
    metadata,
    Column("key", String(32), primary_key=True),  # cfg- and the beginning of the config's hash: one key per config
    Column("name", String(100), nullable=False),
    Column("config", Text, nullable=False),  # JSON with sorted keys and in ASCII, as it was hashed
    Column("source", String(200), nullable=False),  # pasted, file, or the model's name on the Hub
    Column("created_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime),  # to the day
)

# People

teachers = _numbered_table(
    "teachers",
    Column("email", String(254), nullable=False, unique=True),  # in lower case
    Column("name", String(100), nullable=False),
    Column("password_hash", String(200)),  # null until a password is set through an account link
    Column("created_at", UtcDateTime, nullable=False),
    Column("is_operator", Boolean, nullable=False, server_default=false()),  # sees machines, runners and all jobs
)

sessions = _numbered_table(
    "sessions",
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("teacher_id", ForeignKey("teachers.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),  # to the minute
    Column("ended_at", UtcDateTime),
)

audit_log = _numbered_table(
    "audit_log",
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("actor_kind", String(20), nullable=False),  # teacher, nobody or terminal
    Column("action", String(40), nullable=False),  # see audit.AuditAction
    Column("object_kind", String(20), nullable=False),  # see audit.ObjectKind; empty without an object
    Column("actor_id", Integer),  # numbers, never names: a log outlives what it is about
    Column("object_id", Integer),
    Column("detail", String(40), nullable=False),  # such as the exported file; may be empty
)
Index(None, audit_log.c.object_kind, audit_log.c.object_id)

# Courses

courses = _numbered_table(
    "courses",
    Column("title", String(200), nullable=False),
    Column("time_zone", String(64), nullable=False),  # such as Europe/Berlin
    Column("sample", Boolean, nullable=False),  # its students are simulated
    Column("created_at", UtcDateTime, nullable=False),
    Column("archived_at", UtcDateTime),
    Column("practice", JSON(none_as_null=True)),  # topics and own worksheets; null if it isn't switched on
)

staff = Table(
    "staff",
    metadata,
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True),
    Column("teacher_id", ForeignKey("teachers.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("role", String(10), nullable=False),
    _one_of("role", "instructor", "assistant"),
)

account_links = _numbered_table(
    "account_links",
    Column("kind", String(10), nullable=False),
    _one_of("kind", "setup", "invite", "reset", "connect", "platform"),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("email", String(254), nullable=False),  # empty if the follower may choose one
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), index=True),
    Column("role", String(10)),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime),
)

students = _numbered_table(
    "students",
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), nullable=False),
    Column("name", String(100), nullable=False),
    Column("name_key", NameKey, nullable=False, default=_name_key),  # for comparing and sorting names
    Column("roster_key", String(100)),  # the roster's number, if it has one
    Column("number_title", String(100)),  # the title of the number's column
    Column("canvas_id", String(100)),  # Canvas looks for the student by this first
    Column("resume_hash", String(64), unique=True),
    Column("joined_at", UtcDateTime),  # null until somebody has claimed the name
    Column("created_at", UtcDateTime, nullable=False),
    Column("import_key", String(32)),  # the roster import that added the name, which can be undone
    Column("practice_record", Text),  # course practice, as app/practice/record.py writes it
    UniqueConstraint("course_id", "roster_key"),
)
# Students without a number can only be told apart by name, so their names are unique.
_UNNUMBERED = students.c.roster_key.is_(None)
Index("ix_students_unnumbered_name", students.c.course_id, students.c.name_key, unique=True,
      sqlite_where=_UNNUMBERED, postgresql_where=_UNNUMBERED)  # fmt: skip
Index(None, students.c.course_id, students.c.name_key)

enrolments = Table(
    "enrolments",
    metadata,
    Column("visitor_id", ForeignKey("visitors.id", ondelete="CASCADE"), primary_key=True),
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True, index=True),  # one student each
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", UtcDateTime, nullable=False),
)

activities = _numbered_table(
    "activities",
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("title", String(200), nullable=False),
    Column("day", Date),
    Column("join_code", String(12), nullable=False, unique=True),
    Column("state", String(10), nullable=False),  # the times below narrow "open"
    _one_of("state", "draft", "open"),
    Column("policies", JsonOf(Policies.from_json, asdict), nullable=False),
    Column("opens_at", UtcDateTime),
    Column("closes_at", UtcDateTime, index=True),  # the Close button sets it to now; checked every two seconds
    Column("created_at", UtcDateTime, nullable=False),
    Column("answers_shown_at", UtcDateTime),  # when students could first see the answers: later attempts are late
    Column("projection", JsonOf(lambda stored: Projection(**stored), asdict)),  # None until it is first chosen
    Column("auto_submitted_at", UtcDateTime),  # when drafts became attempts after closing; null before
)

revisions = _numbered_table(
    "revisions",
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", JsonOf(Content.from_json, Content.as_json), nullable=False),  # fixed once students have seen it
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("activity_id", "number"),
)

given_sheets = Table(  # sheets as students have them, whatever happens to the library, and the sizes they drew
    "given_sheets",
    metadata,
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(64), primary_key=True),  # a hash of the frozen worksheet, and sizes or student
    Column("sheet", Text, nullable=False),  # JSON, see app/classes/frozen/given_sheets.py
)

# What students do, and who practises


def _owner_columns() -> Iterator[Column[Any]]:
    for name, table in (("visitor_id", "visitors"), ("student_id", "students"), ("activity_id", "activities")):
        yield Column(name, ForeignKey(f"{table}.id", ondelete="CASCADE"))
    yield Column("sheet_key", String(200), nullable=False)  # see FrozenWorksheet.sheet_key and practice_sheet_key


_ONE_OWNER = "(student_id IS NULL) = (activity_id IS NULL) AND (student_id IS NULL) = (visitor_id IS NOT NULL)"


def _index(table: Table, *names: str, unique: bool = False) -> None:
    has_first = table.c[names[0]].is_not(None)
    Index(None, *(table.c[n] for n in names), unique=unique, sqlite_where=has_first, postgresql_where=has_first)


attendance = Table(
    "attendance",
    metadata,
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("arrived_at", UtcDateTime, nullable=False),
    Column("ticket_in", Boolean, nullable=False),  # that an exit ticket was handed in, not which
)

drafts = _numbered_table(
    "drafts",
    *_owner_columns(),
    Column("answers", JSON, nullable=False),  # texts as typed, by blank
    Column("version", BigInteger, nullable=False),  # counts the saves merged into it
    Column("variant", Sizes, nullable=False),
    _model_key(_model_of_variant),
    Column("saved_at", UtcDateTime, nullable=False),
    Column("tab_versions", JSON, nullable=False),  # the highest edit number taken from each browser tab
    CheckConstraint(_ONE_OWNER, name="owner"),
)
_index(drafts, "student_id", "activity_id", "sheet_key", unique=True)
_index(drafts, "activity_id")
_index(drafts, "visitor_id", "sheet_key", unique=True)
_index(drafts, "model_key")

attempts = _numbered_table(
    "attempts",
    *_owner_columns(),
    Column("revision", Integer),  # number of the answered revision; null in practice
    Column("sheet_number", Integer),  # which worksheet of that revision, from 1; null in practice
    Column("client_id", String(80), nullable=False),  # made by the browser, so that a repeated request is stored once
    Column("variant", Sizes, nullable=False),
    _model_key(_model_of_variant),
    Column("answers", JSON, nullable=False),
    Column("marks", JSON, nullable=False),  # kind of mark by blank
    Column("misconceptions", Misconceptions, nullable=False),  # keys, the diagnosis first
    Column("score", Float, nullable=False),
    Column("out_of", Integer, nullable=False),
    Column("handed_in", Boolean, nullable=False),  # it is a submission
    Column("created_at", UtcDateTime, nullable=False),
    Column("marked_by", String(200), nullable=False),  # sheet key of the definition that gave the marks
    Column("auto_submitted", Boolean, nullable=False, default=False),  # a draft that was auto-submitted at closing
    Column("late", Boolean, nullable=False, default=False),  # made in the late window, or after answers had been shown
    ForeignKeyConstraint(  # checked at the end of a transaction, which may store a revision again with another id
        ["activity_id", "revision"],
        ["revisions.activity_id", "revisions.number"],
        deferrable=True,
        initially="DEFERRED",
    ),
    CheckConstraint(
        f"{_ONE_OWNER} AND (revision IS NULL) = (activity_id IS NULL)"
        " AND (sheet_number IS NULL) = (activity_id IS NULL)",
        name="owner",
    ),
    CheckConstraint("sheet_number > 0 AND score BETWEEN 0 AND out_of", name="score"),
)
_index(attempts, "student_id", "client_id", unique=True)
# For finding the last attempt on a sheet: a student's, a whole course's, or a visitor's.
_index(attempts, "activity_id", "student_id", "sheet_key", "id")
_index(attempts, "visitor_id", "sheet_key", "id")
_index(attempts, "model_key")

ticket_answers = Table(
    "ticket_answers",
    metadata,
    Column("id", String(64), primary_key=True),  # random, so that the order of rows reveals nothing
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("question", String(80), nullable=False),
    Column("text", Text, nullable=False),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), index=True),  # null if anonymous
    Column("day", Date, nullable=False),  # not the time, which could identify the student
    Column("starred", Boolean, nullable=False),
    Column("follow_up", Boolean, nullable=False),
    Column("hidden", Boolean, nullable=False),
    sqlite_with_rowid=False,  # a hidden row number would keep the order
)

extra_time = Table(
    "extra_time",
    metadata,
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("minutes", Integer, nullable=False),  # after the activity's closing time
    CheckConstraint("minutes > 0", name="minutes"),
)

undoable_closes = Table(  # what the Close button changed last, so that it can be undone
    "undoable_closes",
    metadata,
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
    Column("pressed_at", UtcDateTime, nullable=False),
    Column("closes_at", UtcDateTime, nullable=False),  # what it was set to
    Column("opens_before", UtcDateTime),  # these are restored
    Column("closes_before", UtcDateTime),
)

grade_changes = _numbered_table(  # rows are only ever added; the newest for a student and activity counts
    "grade_changes",
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("kind", String(10), nullable=False),  # undone: the attempts count again
    _one_of("kind", "points", "excused", "undone"),
    CheckConstraint("(kind = 'points') = (points IS NOT NULL)", name="points"),
    Column("points", Float),  # instead of the attempts'; null unless the kind is "points"
    Column("points_before", Float),  # what counted until then; null if nothing did
    Column("reason", String(300), nullable=False),  # empty if it was undone
    Column("teacher_id", ForeignKey("teachers.id", ondelete="SET NULL"), index=True),
    Column("at", UtcDateTime, nullable=False),
)
Index(None, grade_changes.c.activity_id, grade_changes.c.student_id, grade_changes.c.id)

# Regrades

regrades = _numbered_table(
    "regrades",
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("teacher_id", ForeignKey("teachers.id", ondelete="SET NULL"), index=True),
    Column("at", UtcDateTime, nullable=False),
    Column("definitions", JSON, nullable=False),  # the corrected worksheets that marked, by marked_by
)

old_marks = Table(
    "old_marks",
    metadata,
    Column("regrade_id", ForeignKey("regrades.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt_id", ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("marks", JSON, nullable=False),  # this and the columns below as they were before
    Column("misconceptions", Misconceptions, nullable=False),
    Column("score", Float, nullable=False),
    Column("out_of", Integer, nullable=False),
    Column("marked_by", String(120), nullable=False),
)

# What teachers write

materials = _numbered_table(
    "materials",
    Column("kind", String(10), nullable=False),
    _one_of("kind", "worksheet", "ticket"),
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), index=True),  # either this or teacher_id is set
    Column("teacher_id", ForeignKey("teachers.id", ondelete="CASCADE"), index=True),  # the owner
    Column("title", String(200), nullable=False),  # this and the next two belong to the newest version
    Column("topic", String(80), nullable=False),  # empty for an exit ticket
    Column("model", String(200), nullable=False),  # empty for an exit ticket
    Column("version", Integer, nullable=False),  # number of the newest version, from 1
    Column("share_hash", String(64), unique=True),  # the hash of the link for viewing and copying it; null without one
    Column("created_at", UtcDateTime, nullable=False),
    Column("removed_at", UtcDateTime),  # kept for a while, so that it can be restored
    CheckConstraint("(course_id IS NULL) <> (teacher_id IS NULL)", name="owner"),
)

material_versions = Table(
    "material_versions",
    metadata,
    Column("material_id", ForeignKey("materials.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("content", JSON, nullable=False),  # the settings of a worksheet file or an exit ticket file
    Column("teacher_id", ForeignKey("teachers.id", ondelete="SET NULL"), index=True),  # who saved it
    Column("at", UtcDateTime, nullable=False),
)

version_models = Table(  # which imported models a version of a worksheet names
    "version_models",
    metadata,
    Column("material_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("model_key", String(32), primary_key=True, index=True),
    ForeignKeyConstraint(
        ["material_id", "number"], ["material_versions.material_id", "material_versions.number"], ondelete="CASCADE"
    ),
)

# Learning management systems, by LTI 1.3: a platform is one installation, or one customer of a hosted one

lti_platforms = _numbered_table(
    "lti_platforms",
    Column("name", String(100), nullable=False),  # for people: "Moodle of the university"
    Column("issuer", String(500), nullable=False),
    Column("client_id", String(200), nullable=False),  # ours, at this platform
    Column("authorization_url", String(500), nullable=False),
    Column("token_url", String(500), nullable=False),
    Column("keys_url", String(500), nullable=False),
    Column("token_audience", String(500), nullable=False),  # empty: token_url
    Column("key_set", JSON, nullable=False),  # the platform's public keys, as fetched
    Column("key_set_fetched_at", UtcDateTime),
    UniqueConstraint("issuer", "client_id"),
)

lti_deployments = Table(
    "lti_deployments",
    metadata,
    Column("platform_id", ForeignKey("lti_platforms.id", ondelete="CASCADE"), primary_key=True),
    Column("deployment_id", String(255), primary_key=True),
    Column("confirmed", Boolean, nullable=False),  # an unknown one waits until an operator confirms it
)

lti_courses = _numbered_table(  # the course of each context that a teacher has linked
    "lti_courses",
    Column("platform_id", ForeignKey("lti_platforms.id", ondelete="CASCADE"), nullable=False),
    Column("deployment_id", String(255), nullable=False),
    Column("context_id", String(255), nullable=False),
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("memberships_url", String(1000), nullable=False),  # as the newest launch gave it; empty without one
    UniqueConstraint("platform_id", "deployment_id", "context_id"),
)

lti_links = _numbered_table(  # the activity that a resource link opens
    "lti_links",
    Column("lti_course_id", ForeignKey("lti_courses.id", ondelete="CASCADE"), nullable=False),
    Column("resource_link_id", String(255), nullable=False),
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("lineitem_url", String(1000), nullable=False),  # its column for grades; empty without one
    Column("marker", String(64), nullable=False),  # a hash of what the scores were last computed from; empty before
    Column("next_at", UtcDateTime),  # until then a process sends its scores, or they wait for the platform
    Column("tries", Integer, nullable=False, default=0),  # in vain, one after the other
    Column("problem", String(MAX_PROBLEM), nullable=False, default=""),  # why; empty without one
    UniqueConstraint("lti_course_id", "resource_link_id"),
)

lti_people = _numbered_table(  # who somebody at a platform is here: a teacher, and a student in each course
    "lti_people",
    Column("platform_id", ForeignKey("lti_platforms.id", ondelete="CASCADE"), nullable=False),
    Column("sub", String(255), nullable=False),
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), index=True),  # the student's
    Column("teacher_id", ForeignKey("teachers.id", ondelete="CASCADE"), index=True),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), index=True),
    # Where a student came from last: two contexts may share a course, and each has a gradebook of its own.
    Column("lti_course_id", ForeignKey("lti_courses.id", ondelete="CASCADE"), index=True),
    CheckConstraint(
        "(teacher_id IS NULL) <> (student_id IS NULL) AND (student_id IS NULL) = (course_id IS NULL)", name="person"
    ),
    UniqueConstraint("platform_id", "sub", "course_id"),
)
_IS_TEACHER = lti_people.c.teacher_id.is_not(None)
Index("ix_lti_people_teacher", lti_people.c.platform_id, lti_people.c.sub, unique=True,
      sqlite_where=_IS_TEACHER, postgresql_where=_IS_TEACHER)  # fmt: skip

lti_scores = Table(  # the outbox of grades: what a person at the platform should have, and whether it was sent
    "lti_scores",
    metadata,
    Column("link_id", ForeignKey("lti_links.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", ForeignKey("lti_people.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("points", Float),  # null: none, such as for an excused student
    Column("out_of", Integer, nullable=False),
    Column("submitted_at", UtcDateTime),
    Column("state", String(10), nullable=False),
    _one_of("state", "waiting", "sent", "refused"),
    Column("tries", Integer, nullable=False),
    Column("problem", String(MAX_PROBLEM), nullable=False),  # the platform's reason to refuse it; empty without one
    Column("sent_at", UtcDateTime),  # when the platform last answered
)

lti_launches = Table(  # verified launches, for as long as the browser may come back with its state cookie
    "lti_launches",
    metadata,
    Column("state_hash", String(64), primary_key=True),
    Column("nonce_hash", String(64), nullable=False, unique=True),
    Column("platform_id", ForeignKey("lti_platforms.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("claims", JSON(none_as_null=True)),  # null once they have been used: they hold the person's name
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

lti_keys = _numbered_table(  # ours, newest first: next, current and last
    "lti_keys",
    Column("key_id", String(64), nullable=False, unique=True),
    Column("private_key", Text, nullable=False),  # encrypted with the secret key
    Column("created_at", UtcDateTime, nullable=False),
)
