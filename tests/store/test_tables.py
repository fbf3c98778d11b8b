"""The tables as they are defined: what every one of them has to have."""

from __future__ import annotations

import sqlalchemy as sa

from app.store.tables import metadata


def test_every_reference_to_another_row_begins_an_index() -> None:
    for table in metadata.tables.values():
        keys = (c for c in table.constraints if isinstance(c, sa.PrimaryKeyConstraint | sa.UniqueConstraint))
        indexed = {next(iter(each.columns)).name for each in (*table.indexes, *keys)}
        assert {each.column_keys[0] for each in table.foreign_key_constraints} <= indexed, table.name
