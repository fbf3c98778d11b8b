"""The search on the models page: models, imported models and model types."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture
from app.models.recognition import known_types, text_type, why_refused
from app.sheets.model_search import MAX_FOUND
from app.store import Store
from app.topics.registry import TOPICS
from app.topics.requirements import unmet
from app.web.models import MAX_MODEL_SEARCH_LENGTH
from tests.helpers.families_cases import CASES
from tests.helpers.html_page import Page
from tests.helpers.model_imports import SMALL_LLAMA, imported


def _search(client: TestClient, text: str) -> Page:
    answer = client.get("/models", params={"q": text})
    assert answer.status_code == 200
    return Page(answer.text)


def _types(page: Page) -> dict[str, str]:
    """The types that were found, and which sheets each gets."""
    return {item["data-type"]: item["data-sheets"] for item, _ in page.find("li") if "data-type" in item}


def _models(page: Page) -> list[str]:
    return [item["data-model"] for item, _ in page.find("li") if "data-model" in item]


@pytest.mark.parametrize(
    ("text", "model_type"),
    [
        ("qwen3_moe", "qwen3_moe"),
        ("Qwen 3 MoE", "qwen3_moe"),
        ("qwen3moeforcausallm", "qwen3_moe"),
        ("Glm4MoeForCausalLM", "glm4_moe"),
        ("GPT-2", "gpt2"),
        ("mamba", "mamba"),
        ("llava", "llava"),
        ("InternLM 2", "internlm2"),
    ],
)
def test_a_type_is_found_by_type_family_or_class(client: TestClient, text: str, model_type: str) -> None:
    assert model_type in _types(_search(client, text))


def test_models_are_found_among_types_of_their_family(client: TestClient) -> None:
    page = _search(client, "qwen")
    assert [text for _, text in page.find("h3")] == ["qwen"]
    assert {"qwen2.5-0.5b", "qwen3-0.6b"} <= set(_models(page))
    assert {"qwen2", "qwen3_moe"} <= set(_types(page))
    assert _models(_search(client, "Mistral 7B")) == ["mistral-7b"]


def test_a_name_longer_than_its_type_finds_what_begins_like_it(client: TestClient) -> None:
    for text, model_type in (("GLM-4.5", "glm4_moe"), ("meta-llama/Llama-9.1-8B", "llama")):
        page = _search(client, text)
        assert model_type in _types(page)
        assert page.find("p", role="status")


@pytest.mark.parametrize("text", ["zzz", "-", "%", "_", "<b>zzz", "x" * 5000])
def test_a_search_that_finds_nothing_says_what_to_do(client: TestClient, text: str) -> None:
    page = _search(client, text)
    assert not _types(page)
    assert not _models(page)
    assert page.find("p", role="status")
    assert page.find("a", href="#import-title")
    [field] = [attributes for attributes, _ in page.find("input", name="q")]
    assert field["value"] == text[:MAX_MODEL_SEARCH_LENGTH]


def test_a_search_that_finds_much_is_cut(client: TestClient) -> None:
    assert len(_types(_search(client, "e"))) == MAX_FOUND


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_without_a_search_the_models_of_the_app_are_listed(client: TestClient, text: str) -> None:
    page = _search(client, text)
    assert not _types(page)
    assert page.find("table", class_="models")


def test_only_refused_types_have_no_link_to_import_a_config(client: TestClient) -> None:
    page = client.get("/models", params={"q": "mamba"}).text
    items = page.split("<li ")[1:]
    assert len(items) >= 3
    for item in items:
        assert ('href="#import-title"' in item) != ('data-sheets="refused"' in item)


def test_models_from_the_hub_are_found_but_not_names_that_visitors_typed(client: TestClient) -> None:
    store: Store = client.app.state.services.store  # type: ignore[attr-defined]
    store.keep_model("ada/zebra-1b", SMALL_LLAMA, "ada/zebra-1b")
    store.keep_model("My zebra", {**SMALL_LLAMA, "vocab_size": 7}, "ada/zebra-2b", "My zebra")
    imported(client, {**SMALL_LLAMA, "vocab_size": 9}, name="A zebra")
    page = _search(client, "Zebra")
    [key] = _models(page)
    assert "ada/zebra-1b" in client.get(f"/models/{key}").text


# What is said of a type


def _has_sheets(config: dict[str, object]) -> set[str]:
    architecture = build_architecture(config)
    topics = [topic for topic in TOPICS.values() if unmet(topic.requirements, architecture, 16) is None]
    return {"attention" if topic.about_attention else "counts" for topic in topics}


def test_families_with_a_row_have_sheets_about_attention_and_counts() -> None:
    for case in CASES:
        if text_type(case.model_type) is None:
            assert _has_sheets({"model_type": case.model_type, **case.base}) == {"attention", "counts"}, case.model_type


@pytest.mark.slow
def test_every_type_says_what_an_import_says(client: TestClient) -> None:
    for model_type in sorted(known_types()):
        sheets = _types(_search(client, model_type))[model_type]
        of_text = text_type(model_type)
        if of_text == "":
            assert sheets == "text-part"
            continue
        reason = why_refused(of_text or model_type)
        assert (sheets == "refused") == bool(reason), model_type
        if reason:
            with pytest.raises(ConfigError, match=r".") as refusal:
                build_architecture({"model_type": of_text or model_type})
            assert str(refusal.value) == reason
