"""Work that takes seconds: queued as rows, done in this process (SQLite) or by workers (PostgreSQL)."""
