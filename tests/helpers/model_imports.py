"""Importing a model as a teacher does who pastes its config."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient


def paste(client: TestClient, config: Any, **more: str) -> Any:
    """The answer to an import of a config, of any JSON, or of a text as it stands; `more` are other fields."""
    text = config if isinstance(config, str) else json.dumps(config)
    return client.post("/models", data={"way": "text", "text": text, **more}, files={"file": ("", b"")})


def imported(client: TestClient, config: Any, **more: str) -> str:
    """The key of a model after its import."""
    answer = paste(client, config, **more)
    assert answer.status_code == 200, answer.text
    return str(answer.url.path).removeprefix("/models/")
