"""The tables as they are after the newest migration."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator


class Moment(TypeDecorator[datetime]):
    """A time that comes back in UTC with its zone; SQLite alone would drop the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "fk": "fk_%(table_name)s_%(column_0_N_name)s",
                       "uq": "uq_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}
)  # fmt: skip

learners = Table(
    "learners",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),  # the cookie itself is never stored
    Column("created_at", DateTime(timezone=True), nullable=False),
)

drafts = Table(
    "drafts",
    metadata,
    Column("learner_id", ForeignKey("learners.id", ondelete="CASCADE"), primary_key=True),
    Column("sheet", String(200), primary_key=True),
    Column("answers", JSON, nullable=False),  # texts as typed, by place
    Column("version", BigInteger, nullable=False),  # the browser's clock: a late save never covers a newer one
    Column("saved_at", DateTime(timezone=True), nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("learner_id", ForeignKey("learners.id", ondelete="CASCADE"), nullable=False),
    Column("sheet", String(200), nullable=False),
    Column("answers", JSON, nullable=False),
    Column("score", Float, nullable=False),
    Column("out_of", Integer, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)
Index(None, attempts.c.learner_id, attempts.c.sheet)

runs = Table(
    "runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("sheet", String(200), nullable=False),
    Column("answers", JSON, nullable=False),  # what stood on the sheet when the head was run
    Column("result", JSON),  # null until it is there
    Column("problem", String(500)),  # the sentence shown where there is no result
    Column("created_at", DateTime(timezone=True), nullable=False),
)

models = Table(
    "models",
    metadata,
    Column("key", String(32), primary_key=True),  # the beginning of the config's hash: one config, one key
    Column("name", String(100), nullable=False),
    Column("config", Text, nullable=False),  # JSON in one order of keys and in ASCII, as it was hashed
    Column("source", String(200), nullable=False),  # pasted, file, or the model's name on the Hub
    Column("created_at", DateTime(timezone=True), nullable=False),
)

# People

teachers = Table(
    "teachers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("email", String(254), nullable=False, unique=True),  # in lower case
    Column("name", String(100), nullable=False),
    Column("password_hash", String(200)),  # null until a password was set through a link
    Column("created_at", Moment, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("teacher_id", ForeignKey("teachers.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),  # to the minute
    Column("ended_at", Moment),
)

log = Table(
    "log",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("who", String(40), nullable=False),  # such as "teacher 3": numbers, never names
    Column("what", String(40), nullable=False),
    Column("object", String(100), nullable=False),
)

# Courses

courses = Table(
    "courses",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("title", String(200), nullable=False),
    Column("time_zone", String(64), nullable=False),  # such as Europe/Berlin
    Column("sample", Boolean, nullable=False),  # its students are simulated
    Column("created_at", Moment, nullable=False),
    Column("archived_at", Moment),
)

staff = Table(
    "staff",
    metadata,
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True),
    Column("teacher_id", ForeignKey("teachers.id", ondelete="CASCADE"), primary_key=True),
    Column("role", String(10), nullable=False),  # instructor or assistant
)

links = Table(
    "links",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", String(10), nullable=False),  # setup, invite or reset
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("email", String(254), nullable=False),  # empty where whoever has the link may choose
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE")),
    Column("role", String(10)),
    Column("expires_at", Moment, nullable=False),
    Column("used_at", Moment),
)

students = Table(
    "students",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(100), nullable=False),
    Column("roster_key", String(100)),  # the number the roster has for them, if any
    Column("resume_hash", String(64), unique=True),
    Column("joined_at", Moment),  # null while nobody has taken this name of the roster
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("course_id", "roster_key"),
)

seats = Table(
    "seats",
    metadata,
    Column("learner_id", ForeignKey("learners.id", ondelete="CASCADE"), primary_key=True),
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True),  # one student a browser
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Moment, nullable=False),
)

activities = Table(
    "activities",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("course_id", ForeignKey("courses.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("title", String(200), nullable=False),
    Column("day", Date),
    Column("join_code", String(12), nullable=False, unique=True),
    Column("state", String(10), nullable=False),  # draft, open or closed; the times below narrow "open"
    Column("policies", JSON, nullable=False),  # see activities.Policies
    Column("opens_at", Moment),
    Column("closes_at", Moment),
    Column("created_at", Moment, nullable=False),
)

revisions = Table(
    "revisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", JSON, nullable=False),  # see activities.Content; never changed once students have seen it
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("activity_id", "number"),
)

# What students do

attendance = Table(
    "attendance",
    metadata,
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), primary_key=True),
    Column("arrived_at", Moment, nullable=False),
    Column("ticket_in", Boolean, nullable=False),  # that an exit ticket was handed in, not which
)

work = Table(
    "work",
    metadata,
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), primary_key=True),
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
    Column("sheet", String(120), primary_key=True),  # see activities.Item: changes where the questions change
    Column("answers", JSON, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("variant", JSON, nullable=False),  # model, tokens, decoder_tokens
    Column("saved_at", Moment, nullable=False),
)

tries = Table(
    "tries",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), nullable=False),
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False),
    Column("revision", Integer, nullable=False),  # number of the revision that was answered
    Column("item", Integer, nullable=False),  # which worksheet of that revision, from 0
    Column("sheet", String(120), nullable=False),
    Column("client_id", String(80), nullable=False),  # made by the browser: a request that is sent again counts once
    Column("variant", JSON, nullable=False),
    Column("answers", JSON, nullable=False),
    Column("marks", JSON, nullable=False),  # kind of mark by place
    Column("misconceptions", JSON, nullable=False),  # keys, the diagnosis first
    Column("score", Float, nullable=False),
    Column("out_of", Integer, nullable=False),
    Column("handed_in", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("student_id", "client_id"),
)
Index(None, tries.c.activity_id, tries.c.student_id)

ticket_answers = Table(
    "ticket_answers",
    metadata,
    Column("id", String(64), primary_key=True),  # random, so that no order of rows tells who wrote when
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("question", String(80), nullable=False),
    Column("text", Text, nullable=False),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE")),  # null where anonymous
    Column("day", Date, nullable=False),  # and no finer time
    Column("starred", Boolean, nullable=False),
    Column("follow_up", Boolean, nullable=False),
    Column("hidden", Boolean, nullable=False),
    sqlite_with_rowid=False,  # a hidden row number would keep the order after all
)

# What the class is shown, and marks that were put right

spotlights = Table(
    "spotlights",
    metadata,
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),  # one at a time
    Column("item", Integer, nullable=False),  # which worksheet of the newest revision, from 0
    Column("misconception", String(80), nullable=False),
    Column("drawn", Boolean, nullable=False),  # whether the truth stands beside it, which tells answers
)

regrades = Table(
    "regrades",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("activity_id", ForeignKey("activities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("teacher_id", ForeignKey("teachers.id", ondelete="SET NULL")),
    Column("at", Moment, nullable=False),
)

old_marks = Table(
    "old_marks",
    metadata,
    Column("regrade_id", ForeignKey("regrades.id", ondelete="CASCADE"), primary_key=True),
    Column("try_id", ForeignKey("tries.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("marks", JSON, nullable=False),  # these four as they were before
    Column("misconceptions", JSON, nullable=False),
    Column("score", Float, nullable=False),
    Column("out_of", Integer, nullable=False),
)
