"""The keys of imported models in columns, or rows, of what needs them."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0003_model_keys"
down_revision = "0002_work"

IMPORTED = f"cfg-{20 * '_'}"  # a pattern for LIKE


def upgrade() -> None:
    for name in ("drafts", "attempts", "snapshots"):
        op.add_column(name, sa.Column("model_key", sa.String(length=32)))
    op.create_table(
        "version_models",
        sa.Column("material_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("model_key", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["material_id", "number"],
            ["material_versions.material_id", "material_versions.number"],
            name=op.f("fk_version_models_material_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("material_id", "number", "model_key", name=op.f("pk_version_models")),
    )
    op.create_index(op.f("ix_version_models_model_key"), "version_models", ["model_key"])
    connection = op.get_bind()
    for name in ("drafts", "attempts"):
        sheets = sa.table(name, sa.column("variant", sa.JSON()), sa.column("model_key"))
        model = sheets.c.variant["model"].as_string()
        connection.execute(sa.update(sheets).where(model.like(IMPORTED)).values(model_key=model))
    name_models_of_snapshots(connection)
    name_models_of_versions(connection)
    for name in ("drafts", "attempts", "snapshots"):
        index, some = op.f(f"ix_{name}_model_key"), sa.text("model_key IS NOT NULL")
        op.create_index(index, name, ["model_key"], sqlite_where=some, postgresql_where=some)


def name_models_of_snapshots(connection: sa.Connection) -> None:
    """Read the key in each frozen model."""
    snapshots = sa.table("snapshots", *map(sa.column, ("hash", "kind", "content", "model_key")))
    imported = (snapshots.c.kind == "model", snapshots.c.content.like('%"cfg-%'))
    for row in connection.execute(sa.select(snapshots.c.hash, snapshots.c.content).where(*imported)).all():
        key = str(json.loads(row.content)["key"])
        if is_imported(key):
            connection.execute(sa.update(snapshots).where(snapshots.c.hash == row.hash).values(model_key=key))


def name_models_of_versions(connection: sa.Connection) -> None:
    """Read the keys in "model" and "models" of each version of a worksheet."""
    versions = sa.table("material_versions", sa.column("material_id"), sa.column("number"),
                        sa.column("content", sa.JSON()))  # fmt: skip
    named = sa.table("version_models", *map(sa.column, ("material_id", "number", "model_key")))
    imported = sa.cast(versions.c.content, sa.Text).like('%"cfg-%')
    for row in connection.execute(sa.select(versions).where(imported)).all():
        for key in {row.content.get("model"), *(row.content.get("models") or ())}:
            if is_imported(str(key)):
                values = {"material_id": row.material_id, "number": row.number, "model_key": key}
                connection.execute(sa.insert(named).values(values))


def is_imported(key: str) -> bool:
    return key.startswith("cfg-") and len(key) == len(IMPORTED)
