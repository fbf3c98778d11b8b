"""Deletes rows that are no longer needed, once a day while the app runs."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa

from app.store.limits import unlimited_connection
from app.store.people import MAX_SESSION_AGE
from app.store.queries import batches, transactional
from app.store.tables import (
    account_links,
    attempts,
    audit_log,
    drafts,
    enrolments,
    lti_launches,
    materials,
    models,
    runs,
    sessions,
    version_models,
    visitors,
)

RUN_RETENTION, LINK_RETENTION, PRACTICE_RETENTION = timedelta(days=7), timedelta(days=30), timedelta(days=365)
MODEL_RETENTION = timedelta(days=42)
REMOVED_RETENTION = timedelta(days=30)  # for worksheets and exit tickets that their teachers removed
AUDIT_RETENTION = timedelta(days=2 * 365)
ROWS_AT_A_TIME, PAUSE_S = 500, 0.05  # per transaction, and the pause in between, so that saves go on meanwhile
# Where imported models are named: in sheets and in teachers' worksheets.
_MODELS_NAMED = (drafts.c.model_key, attempts.c.model_key, version_models.c.model_key)


def delete_expired(engine: sa.Engine, at: datetime) -> int:
    """Delete what has expired at `at`, and sessions older than MAX_SESSION_AGE; return the number of rows."""
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
        lti_launches.c.expires_at < at,
        materials.c.removed_at < at - REMOVED_RETENTION,
    )
    unused = (~sa.exists().where(named == models.c.key) for named in _MODELS_NAMED)
    last_use = sa.func.coalesce(models.c.used_at, models.c.created_at)
    steps = [
        *(partial(_delete_rows, condition.left.table, condition) for condition in expired),
        partial(_delete_rows, drafts, drafts.c.visitor_id.is_not(None), drafts.c.saved_at < recent),
        partial(_delete_rows, attempts, attempts.c.visitor_id.is_not(None), attempts.c.created_at < recent),
        partial(_delete_rows, visitors, visitors.c.created_at < recent, *(~each for each in is_active)),
        partial(_delete_rows, models, last_use < at - MODEL_RETENTION, *unused),
    ]
    count, errors = 0, list[Exception]()
    for step in steps:
        try:
            with unlimited_connection(transactional(engine)) as connection:
                count += step(connection=connection)
        except Exception as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("some expired rows could not be deleted", errors)
    return count


def _delete_rows(table: Any, *conditions: sa.ColumnElement[bool], connection: sa.Connection) -> int:
    """Delete the matching rows, ROWS_AT_A_TIME per transaction; return how many."""
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
