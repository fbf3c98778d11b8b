"""What is shipped in worksheets/, read once for all tests of a process: nothing changes a library."""

from __future__ import annotations

from app.settings import PROJECT
from app.sheets.worksheet_files import load_library

LIBRARY = load_library(PROJECT / "worksheets")
MODELS = {key: model.architecture for key, model in LIBRARY.models.items()}
