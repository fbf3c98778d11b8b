"""The audit log: bounded however many wrong passwords are typed, and read by its indexes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from app.store import Store
from app.store.audit import REFUSALS_NOTED_EVERY, AuditAction
from app.store.queries import utc_now
from app.store.tables import audit_log


def test_wrong_passwords_leave_one_entry_in_ten_minutes(store: Store) -> None:
    for _ in range(30):
        store.audit_log.record_refused_sign_in()
    assert count(store) == 1
    with store.engine.begin() as connection:
        connection.execute(sa.update(audit_log).values(at=utc_now() - REFUSALS_NOTED_EVERY - timedelta(seconds=1)))
    store.audit_log.record_refused_sign_in()
    assert count(store) == 2


def test_the_log_of_a_course_is_read_by_an_index(store: Store) -> None:
    at = datetime.now(UTC)
    row = {"at": at, "actor_kind": "terminal", "action": AuditAction.STUDENT_RENAMED.value, "detail": ""}
    rows = [{**row, "object_kind": "student", "object_id": number} for number in range(4_000)]
    query = "SELECT * FROM audit_log WHERE object_kind = 'student' AND object_id IN (5, 6)"
    explain = "EXPLAIN QUERY PLAN" if store.engine.dialect.name == "sqlite" else "EXPLAIN"
    with store.engine.begin() as connection:
        connection.execute(sa.insert(audit_log), rows)
        connection.exec_driver_sql("ANALYZE")
        told = connection.exec_driver_sql(f"{explain} {query}").all()
    assert "ix_audit_log_object_kind_object_id" in str(told)
    assert store.audit_log.entries({"student": [5, 6]}, at - timedelta(days=1), 10)[0].object_id == 6


def count(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(audit_log)) or 0)
