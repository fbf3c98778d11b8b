"""The database: tables, migrations and named questions. It grades nothing."""

from .store import Attempt, Draft, Learner, Run, Store

__all__ = ["Attempt", "Draft", "Learner", "Run", "Store"]
