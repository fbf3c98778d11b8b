"""What is of no more use to anybody, cleared away at each start."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from .people import LONGEST
from .questions import now
from .tables import account_links, enrolments, practice_attempts, practice_drafts, runs, sessions, visitors

RUNS_KEPT, LINKS_KEPT, PRACTICE_KEPT = timedelta(days=7), timedelta(days=30), timedelta(days=365)
AT_ONCE = 5000  # rows of a kind at one start, so that nobody waits long for it


def tidy(engine: sa.Engine) -> int:
    """Delete old runs, sessions and links nobody can use, and practice nobody came back to in a year; how many rows.

    Whoever sits in a course stays with all their work, and so does the log.
    """
    at = now()
    recent = at - PRACTICE_KEPT
    used = (
        sa.select(enrolments.c.visitor_id),
        sa.select(practice_drafts.c.visitor_id).where(practice_drafts.c.saved_at > recent),
        sa.select(practice_attempts.c.visitor_id).where(practice_attempts.c.created_at > recent),
    )
    old = (
        (runs.c.id, [runs.c.created_at < at - RUNS_KEPT]),
        (sessions.c.id, [sessions.c.created_at < at - LONGEST]),
        (account_links.c.id, [account_links.c.expires_at < at - LINKS_KEPT]),
        (visitors.c.id, [visitors.c.created_at < recent, *(visitors.c.id.not_in(who) for who in used)]),
    )
    with engine.begin() as connection:
        return sum(_delete(connection, key, conditions) for key, conditions in old)


def _delete(connection: sa.Connection, key: sa.Column[int], conditions: list[sa.ColumnElement[bool]]) -> int:
    some = sa.select(key).where(*conditions).limit(AT_ONCE)
    return connection.execute(sa.delete(key.table).where(key.in_(some))).rowcount
