"""The database: tables, migrations and named questions. It grades nothing."""

from .store import Answers, Attempt, Draft, KeptModel, Learner, Run, Store

__all__ = ["Answers", "Attempt", "Draft", "KeptModel", "Learner", "Run", "Store"]
