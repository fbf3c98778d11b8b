"""Runs migrations on the store's connection."""

from alembic import context

from app.store.jobs import is_ours
from app.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    include_name=is_ours,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
