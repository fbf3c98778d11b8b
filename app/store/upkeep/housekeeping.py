"""Deletes rows that are of no more use, at each start of the app and once a day while it runs."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from app.store.people import MAX_SESSION_AGE
from app.store.queries import batches, utc_now
from app.store.tables import (
    account_links,
    class_attempts,
    class_drafts,
    enrolments,
    material_versions,
    materials,
    models,
    practice_attempts,
    practice_drafts,
    regrades,
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
MAX_DELETED_ROWS = 5000  # of each table at one start, so that the start is never slow
ROWS_AT_A_TIME, PAUSE_S = 500, 0.05  # in one transaction, and between two, so that saves go on meanwhile
_MODEL_KEY = re.compile(r"cfg-[0-9a-f]{20}")
# Where the key of an imported model may stand; an activity's revision has a copy of the model as well.
_KEY_COLUMNS = (
    practice_drafts.c.sheet_key,
    practice_attempts.c.sheet_key,
    runs.c.sheet_key,
    class_drafts.c.variant,
    class_attempts.c.variant,
    revisions.c.content,
    material_versions.c.content,
)


def delete_expired(engine: sa.Engine, most: int | None = MAX_DELETED_ROWS) -> int:
    """Delete old runs, sessions, account links and visitors, at most `most` of each; return how many rows.

    Runs go after a week, sessions when they are older than MAX_SESSION_AGE, links 30 days after they expired. A visitor
    goes, with practice drafts and attempts (which are not counted), after a year without either, but never while
    enrolled in a course. Practice drafts and attempts go after a year also where their visitor stays. Worksheets and
    exit tickets go with all their versions 30 days after a teacher removed them. Snapshots go that nothing names; so do
    imported models, some weeks after they were last used. With `most` None everything expired goes, a few hundred rows
    in a transaction.
    """
    at = utc_now()
    recent = at - PRACTICE_RETENTION
    active_visitors = (
        sa.select(enrolments.c.visitor_id),
        sa.select(practice_drafts.c.visitor_id).where(practice_drafts.c.saved_at > recent),
        sa.select(practice_attempts.c.visitor_id).where(practice_attempts.c.created_at > recent),
    )
    expired: tuple[tuple[sa.Column[Any], list[sa.ColumnElement[bool]]], ...] = (
        (runs.c.id, [runs.c.created_at < at - RUN_RETENTION]),
        (sessions.c.id, [sessions.c.created_at < at - MAX_SESSION_AGE]),
        (account_links.c.id, [account_links.c.expires_at < at - LINK_RETENTION]),
        (visitors.c.id, [visitors.c.created_at < recent, *(visitors.c.id.not_in(ids) for ids in active_visitors)]),
        (practice_attempts.c.id, [practice_attempts.c.created_at < recent]),
        (materials.c.id, [materials.c.removed_at < at - REMOVED_RETENTION]),
    )
    with engine.begin() as connection:
        count = _delete_unnamed_snapshots(connection, at - SNAPSHOT_RETENTION)
        connection.execute(sa.delete(practice_drafts).where(practice_drafts.c.saved_at < recent))
    count += sum(_delete_in_parts(engine, key, conditions, most) for key, conditions in expired)
    return count + _delete_unused_models(engine, at - MODEL_RETENTION, most)


def _delete_unused_models(engine: sa.Engine, used_before: datetime, most: int | None) -> int:
    """Delete imported models that nobody opened since that time, unless a sheet, run or activity names them."""
    last_use = sa.func.coalesce(models.c.used_at, models.c.created_at)
    with engine.connect() as connection:
        old = set(connection.scalars(sa.select(models.c.key).where(last_use < used_before).limit(most)))
        for column in _KEY_COLUMNS if old else ():
            text = sa.cast(column, sa.Text)
            for found in connection.scalars(sa.select(text).where(text.contains("cfg-")).distinct()):
                old.difference_update(_MODEL_KEY.findall(found))
    return sum(
        _delete_in_parts(engine, models.c.key, [models.c.key.in_(keys), last_use < used_before], None)
        for keys in batches(sorted(old), ROWS_AT_A_TIME)
    )


def _delete_in_parts(
    engine: sa.Engine, key: sa.Column[Any], conditions: list[sa.ColumnElement[bool]], most: int | None
) -> int:
    """Delete rows of the key's table that meet every condition, all or `most`, ROWS_AT_A_TIME in a transaction."""
    count = 0
    while most is None or count < most:
        keys = sa.select(key).where(*conditions).limit(min(ROWS_AT_A_TIME, (most or ROWS_AT_A_TIME + count) - count))
        with engine.begin() as connection:
            deleted = connection.execute(sa.delete(key.table).where(key.in_(keys))).rowcount
        count += deleted
        if deleted < ROWS_AT_A_TIME:
            break
        time.sleep(PAUSE_S)
    return count


def _delete_unnamed_snapshots(connection: sa.Connection, kept_before: datetime) -> int:
    """Delete the snapshots that no revision or regrade names and nothing has kept since that time; return how many."""
    # The time is compared in the row itself, so that PostgreSQL looks again where somebody keeps it at this moment.
    named = [
        sa.exists().where(sa.cast(column, sa.Text).contains(snapshots.c.hash))
        for column in (revisions.c.content, regrades.c.definitions)
    ]
    unnamed = sa.delete(snapshots).where(snapshots.c.kept_at < kept_before, ~sa.or_(*named))
    return connection.execute(unnamed).rowcount
