"""A small model's config, and importing a model by pasting its config, as a teacher does."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient

SMALL_LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 128, "vocab_size": 100, "num_hidden_layers": 2,
}  # fmt: skip


def paste(client: TestClient, config: Any, **more: str) -> Any:
    """The answer to importing a config, any JSON, or a text as it is; `more` are other fields."""
    text = config if isinstance(config, str) else json.dumps(config)
    return client.post("/models", data={"way": "text", "text": text, **more}, files={"file": ("", b"")})


def imported(client: TestClient, config: Any, **more: str) -> str:
    """The key of a model after its import."""
    answer = paste(client, config, **more)
    assert answer.status_code == 200, answer.text
    return str(answer.url.path).removeprefix("/models/")
