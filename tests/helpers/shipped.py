"""What is shipped in worksheets/, read once per process: nothing changes a library."""

from __future__ import annotations

from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library

LIBRARY = load_library(PROJECT / "worksheets")
TICKETS = load_tickets(PROJECT / "worksheets")
FIRST_OF_TOPIC = {sheet.topic: sheet for sheet in reversed([*LIBRARY.worksheets.values()])}
# The keys of all sheets that worksheets can make in symbols.
IN_SYMBOLS = [
    f"{key}~symbols"
    for key, sheet in LIBRARY.worksheets.items()
    if not sheet.why_not_in_symbols and not LIBRARY.refusal(f"{key}~symbols", sheet.model)
]
MODELS = {key: model.architecture for key, model in LIBRARY.models.items()}
# The first model of each family, with or without shared key/value heads and tied embeddings.
UNLIKE_MODELS = list({(a.family, a.H == a.G, a.tied_embeddings): key for key, a in reversed(MODELS.items())}.values())
