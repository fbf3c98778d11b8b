"""The tables as they are after the newest migration."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

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
