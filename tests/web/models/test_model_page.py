"""One model's page: where its sizes come from, its tensors and its total."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.testclient import TestClient

from app.models.parameter_count import parameters_json
from app.sheets.library import Library
from tests.helpers.families_cases import CASES


def text_of(page: str) -> str:
    """A page's words without its tags."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


def paste(client: TestClient, config: Any, **more: str) -> Any:
    text = config if isinstance(config, str) else json.dumps(config)
    return client.post("/models", data={"way": "text", "text": text, **more}, files={"file": ("", b"")})


def imported(client: TestClient, config: Any, **more: str) -> str:
    """The key of a model after its import."""
    answer = paste(client, config, **more)
    assert answer.status_code == 200, answer.text
    return str(answer.url.path).removeprefix("/models/")


def test_where_each_size_came_from_is_told(client: TestClient) -> None:
    """Fields by name; LLaMA 7B states no key/value heads and no head width, and the page says what follows."""
    page = text_of(client.get("/models/llama-7b").text)
    assert "4096 hidden_size" in page
    assert "“num_key_value_heads” is not stated, so as many as query heads." in page
    assert "“head_dim” is not stated, so an even share of the width, d/H = 4096/32." in page


def test_the_total_stands_as_its_sum(client: TestClient) -> None:
    """LLaMA 7B: 6,738,415,616 in symbols and numbers, and that the context length is in none of its factors."""
    page = text_of(client.get("/models/llama-7b").text)
    assert "= V·d + L·(4·d·d + 3·d·dff + 2·d) + d + V·d" in page
    assert "= 32,000·4096 + 32·(4·4096·4096 + 3·4096·11,008 + 2·4096) + 4096 + 32,000·4096" in page
    assert "The context length (C = 2048) is in none of these factors" in page


def test_a_table_of_positions_is_told(client: TestClient) -> None:
    """GPT-2's total does hold the length of its input."""
    page = text_of(client.get("/models/gpt2").text)
    assert "The longest input is among these factors, in P·d" in page
    assert "in none of these factors" not in page


def test_every_tensor_stands_on_the_page(client: TestClient, library: Library) -> None:
    """By name, as often as the model holds it."""
    for key, model in library.models.items():
        page = client.get(f"/models/{key}").text
        for tensor in parameters_json(model.architecture)["tensors"]:
            assert f"<code>{tensor['name']}</code>" in page, (key, tensor["name"])


def test_a_model_that_is_not_there_is_a_404(client: TestClient) -> None:
    """With one sentence; a key that was never given out is no different."""
    for key in ("nothing", "cfg-" + "0" * 20, "cfg-1", "%00", "a" * 500):
        answer = client.get(f"/models/{key}")
        assert answer.status_code == 404
        assert "There is no model" in answer.text


def test_every_family_has_a_page(client: TestClient) -> None:
    """Odd sizes of every family are read, told and summed without an error."""
    for case in CASES:
        page = client.get(f"/models/{imported(client, {'model_type': case.model_type, **case.base})}")
        assert page.status_code == 200, case.model_type
        assert f"<code>{case.model_type}</code>" in page.text
