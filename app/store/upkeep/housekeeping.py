"""Deletes rows that are of no more use, at each start of the app."""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa

from app.store.people import MAX_SESSION_AGE
from app.store.queries import utc_now
from app.store.tables import (
    account_links,
    enrolments,
    practice_attempts,
    practice_drafts,
    revisions,
    runs,
    sessions,
    snapshots,
    visitors,
)

RUN_RETENTION, LINK_RETENTION, PRACTICE_RETENTION = timedelta(days=7), timedelta(days=30), timedelta(days=365)
SNAPSHOT_RETENTION = RUN_RETENTION + timedelta(days=1)  # runs name some too
MAX_DELETED_ROWS = 5000  # of each table at one start, so that the start is never slow


def delete_expired(engine: sa.Engine) -> int:
    """Delete old runs, sessions, account links and visitors, at most MAX_DELETED_ROWS of each; return how many rows.

    Runs go after a week, sessions when they are older than MAX_SESSION_AGE, links 30 days after they expired. A visitor
    goes, with practice drafts and attempts (which are not counted), after a year without either, but never while
    enrolled in a course. Snapshots go that nothing names.
    """
    at = utc_now()
    recent = at - PRACTICE_RETENTION
    active_visitors = (
        sa.select(enrolments.c.visitor_id),
        sa.select(practice_drafts.c.visitor_id).where(practice_drafts.c.saved_at > recent),
        sa.select(practice_attempts.c.visitor_id).where(practice_attempts.c.created_at > recent),
    )
    expired = (
        (runs.c.id, [runs.c.created_at < at - RUN_RETENTION]),
        (sessions.c.id, [sessions.c.created_at < at - MAX_SESSION_AGE]),
        (account_links.c.id, [account_links.c.expires_at < at - LINK_RETENTION]),
        (visitors.c.id, [visitors.c.created_at < recent, *(visitors.c.id.not_in(ids) for ids in active_visitors)]),
    )
    with engine.begin() as connection:
        unnamed = _delete_unnamed_snapshots(connection, at - SNAPSHOT_RETENTION)
        return unnamed + sum(_delete_matching(connection, key, conditions) for key, conditions in expired)


def _delete_unnamed_snapshots(connection: sa.Connection, kept_before: datetime) -> int:
    """Delete the snapshots that no revision names and nothing has kept since that time; return how many."""
    # The time is compared in the row itself, so that PostgreSQL looks again where somebody keeps it at this moment.
    named = sa.exists().where(sa.cast(revisions.c.content, sa.Text).contains(snapshots.c.hash))
    return connection.execute(sa.delete(snapshots).where(snapshots.c.kept_at < kept_before, ~named)).rowcount


def _delete_matching(connection: sa.Connection, key: sa.Column[int], conditions: list[sa.ColumnElement[bool]]) -> int:
    """Delete up to MAX_DELETED_ROWS rows of the key's table that meet every condition; return how many."""
    keys = sa.select(key).where(*conditions).limit(MAX_DELETED_ROWS)
    return connection.execute(sa.delete(key.table).where(key.in_(keys))).rowcount
