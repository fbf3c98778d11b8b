"""Deletes rows that are of no more use, once a day while the app runs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa

from app.store.limits import without_limits
from app.store.people import MAX_SESSION_AGE
from app.store.queries import batches, transactional
from app.store.tables import (
    account_links,
    attempts,
    audit_log,
    drafts,
    enrolments,
    material_versions,
    materials,
    models,
    regrade_snapshots,
    revision_snapshots,
    revisions,
    runs,
    sessions,
    snapshots,
    visitors,
)

RUN_RETENTION, LINK_RETENTION, PRACTICE_RETENTION = timedelta(days=7), timedelta(days=30), timedelta(days=365)
SNAPSHOT_RETENTION = RUN_RETENTION + timedelta(days=1)  # runs name some too
MODEL_RETENTION = timedelta(days=42)
REMOVED_RETENTION = timedelta(days=30)  # of worksheets and exit tickets that their teachers removed
AUDIT_RETENTION = timedelta(days=2 * 365)
ROWS_AT_A_TIME, PAUSE_S = 500, 0.05  # in one transaction, and between two, so that saves go on meanwhile
_MODEL_KEY = re.compile(r"cfg-[0-9a-f]{20}")
# Where the key of an imported model may stand; an activity's revision has a copy of the model as well.
_KEY_COLUMNS = (
    drafts.c.variant,
    attempts.c.variant,
    revisions.c.content,
    material_versions.c.content,
)


def delete_expired(engine: sa.Engine, at: datetime) -> int:
    """Delete what is older at `at` than the times above, and sessions older than MAX_SESSION_AGE; return how many rows.

    A visitor goes, with practice drafts and attempts, after a year without either, but never while enrolled in a
    course. Practice drafts and attempts go after a year even if their visitor stays. Worksheets and exit tickets go
    with all their versions. Snapshots go that nothing names; so do imported models, some weeks after they were last
    used, unless a sheet, run or activity names them.

    Each kind of row is a step by itself, whose statements may take any time. If steps fail, the others are done all the
    same, and an ExceptionGroup is raised at the end.
    """
    recent = at - PRACTICE_RETENTION
    is_active = (
        sa.exists().where(enrolments.c.visitor_id == visitors.c.id),
        sa.exists().where(drafts.c.visitor_id == visitors.c.id, drafts.c.saved_at > recent),
        sa.exists().where(attempts.c.visitor_id == visitors.c.id, attempts.c.created_at > recent),
    )
    expired: tuple[sa.ColumnElement[bool], ...] = (
        runs.c.created_at < at - RUN_RETENTION,
        sessions.c.created_at < at - MAX_SESSION_AGE,
        account_links.c.expires_at < at - LINK_RETENTION,
        audit_log.c.at < at - AUDIT_RETENTION,
        materials.c.removed_at < at - REMOVED_RETENTION,
    )
    named_in = (revision_snapshots, regrade_snapshots)
    unnamed = (~sa.exists().where(names.c.hash == snapshots.c.hash) for names in named_in)
    last_use = sa.func.coalesce(models.c.used_at, models.c.created_at)
    steps = [
        *(partial(_delete_rows, condition.left.table, condition) for condition in expired),
        partial(_delete_rows, drafts, drafts.c.visitor_id.is_not(None), drafts.c.saved_at < recent),
        partial(_delete_rows, attempts, attempts.c.visitor_id.is_not(None), attempts.c.created_at < recent),
        partial(_delete_rows, visitors, visitors.c.created_at < recent, *(~each for each in is_active)),
        partial(_delete_rows, snapshots, snapshots.c.kept_at < at - SNAPSHOT_RETENTION, *unnamed),
        partial(_delete_unnamed_models, last_use < at - MODEL_RETENTION),
    ]
    count, errors = 0, list[Exception]()
    for step in steps:
        try:
            with transactional(engine).connect() as connection, without_limits(connection):
                count += step(connection=connection)
        except Exception as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("some expired rows could not be deleted", errors)
    return count


def _delete_rows(table: Any, *conditions: sa.ColumnElement[bool], connection: sa.Connection) -> int:
    """Delete the rows that meet every condition, ROWS_AT_A_TIME in a transaction; return how many.

    They are looked for once, and each must still meet the conditions when it is deleted.
    """
    key = list(table.primary_key.columns)
    expired = connection.execute(sa.select(*key).where(*conditions)).all()
    connection.commit()
    count = 0
    for rows in batches(expired, ROWS_AT_A_TIME):
        these = key[0].in_([row[0] for row in rows]) if len(key) == 1 else sa.tuple_(*key).in_([tuple(r) for r in rows])
        count += connection.execute(sa.delete(table).where(these, *conditions)).rowcount
        connection.commit()
        time.sleep(PAUSE_S)
    return count


def _delete_unnamed_models(is_old: sa.ColumnElement[bool], connection: sa.Connection) -> int:
    """Delete the imported models that are old and whose key occurs in none of _KEY_COLUMNS; return how many.

    Each column is read once, so that it takes as long as there is text, however many models are old.
    """
    unnamed = set(connection.scalars(sa.select(models.c.key).where(is_old)))
    for column in _KEY_COLUMNS if unnamed else ():
        for text in _texts(connection, column):
            unnamed.difference_update(_MODEL_KEY.findall(text))
    connection.commit()
    # The time is compared in the row itself, so that PostgreSQL looks again where somebody keeps it at this moment.
    return sum(
        _delete_rows(models, models.c.key.in_(keys), is_old, connection=connection)
        for keys in batches(sorted(unnamed), ROWS_AT_A_TIME)
    )


def _texts(connection: sa.Connection, column: sa.Column[Any]) -> Iterator[str]:
    """The texts of a column, a few rows in memory at a time."""
    query = sa.select(sa.cast(column, sa.Text)).where(column.is_not(None)).execution_options(yield_per=100)
    yield from connection.scalars(query)
