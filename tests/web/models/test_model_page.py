"""One model's page: where its sizes come from, its tensors and its total."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.models.parameter_count import parameters_json
from app.models.parameter_formula import parameter_formula
from app.sheets.library import Library
from app.sheets.wording import InterfaceSection
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


def told(library: Library, section: InterfaceSection, key: str, **words: object) -> str:
    """The sentence of the wording as it stands on a page."""
    return library.wording.say(section, key, **words)


def test_where_each_size_came_from_is_told(client: TestClient, library: Library) -> None:
    """Fields by name; LLaMA 7B states no key/value heads and no head dimension, and the page says what follows."""
    page = text_of(client.get("/models/llama-7b").text)
    assert "4096 hidden_size" in page
    assert told(library, "readings", "missing", field="num_key_value_heads", why=told(library, "why", "G-H")) in page
    assert told(library, "readings", "missing", field="head_dim", why="d/H = 4096/32") in page


def test_the_total_stands_as_its_sum(client: TestClient, library: Library) -> None:
    """LLaMA 7B: 6,738,415,616 in symbols and numbers, and that the context length is in none of its factors."""
    page = text_of(client.get("/models/llama-7b").text)
    assert "= V·d + L·(4·d·d + 3·d·dff + 2·d) + d + V·d" in page
    assert "= 32,000·4096 + 32·(4·4096·4096 + 3·4096·11,008 + 2·4096) + 4096 + 32,000·4096" in page
    assert told(library, "parameters", "length-free", C="2048") in page


def test_every_term_has_its_piece_of_the_bar_and_its_row(client: TestClient, library: Library) -> None:
    """For every model: what lights up together has one key, and the terms are the whole formula."""
    for key, model in library.models.items():
        page = client.get(f"/models/{key}").text
        terms = re.findall(r'<span class="term" data-piece="([^"]+)"', page)
        assert terms == re.findall(r'<g data-piece="([^"]+)"', page), key
        assert set(terms) == set(re.findall(r'<tr data-piece="([^"]+)"', page)), key
        symbols = text_of(page).partition("= ")[2].partition(" =")[0]
        assert symbols == parameter_formula(model.architecture).symbols.replace("_", ""), key


def test_a_table_of_positions_is_told(client: TestClient, library: Library) -> None:
    """GPT-2's total does hold the length of its input, and Whisper's two: of its encoder and of its decoder."""
    page = text_of(client.get("/models/gpt2").text)
    assert told(library, "parameters", "length-counted", products="P·d (1024 rows)") in page
    assert told(library, "parameters", "length-free", C="1024") not in page
    both = told(library, "parameters", "length-counted", products="Pd (1500 rows) and Pdecd (448 rows)")
    assert both in text_of(client.get("/models/whisper-tiny").text).replace("·", "")


@pytest.mark.parametrize(
    ("key", "sentences"),
    [
        (
            "llama-7b",
            {"window-none": {}, "rotary-all": {"width": 128, "theta": "10,000"}, "norm-pre": {"norm": "RMSNorm"}},
        ),
        ("mistral-7b", {"window-all": {"n": 32, "L": 32, "W": "4096"}, "scale-inverse-sqrt": {"d_h": 128}}),
        ("gpt-neo-125m", {"window-some": {"n": 6, "L": 12, "W": "256"}, "scale-none": {}}),
        ("modernbert-base", {"window-centred": {"n": 14, "L": 22, "side": 64}, "rotary-local": {"theta": "10,000"}}),
        ("gemma-2-2b", {"window-some": {"n": 13, "L": 26, "W": "4096"}, "softcap": {"cap": 50}}),
        (
            "pythia-160m",
            {"rotary-part": {"width": 16, "d_h": 64, "theta": "10,000"}, "norm-parallel": {"norm": "LayerNorm"}},
        ),
        ("phi-3.5-mini", {"window-beyond": {"W": "262,144", "C": "131,072"}}),
        ("t5-small", {"positions-relative": {"n_buckets": 32}, "scale-none": {}, "tied": {}}),
        ("flan-t5-small", {"untied": {}, "gated": {}}),
        ("whisper-tiny", {"fixed-tokens-sound": {"n": "1500", "frames": "3000", "seconds": "30"}}),
        ("vit-base", {"fixed-tokens-image": {"n": "197"}, "no-output": {}}),
        ("olmo-2-7b", {"norm-output": {"norm": "RMSNorm"}}),
        (
            "deepseek-v2-lite",
            {
                "experts-shared": {"n": 26, "L": 27, "k": 6, "E": 64, "n_sh": 2},
                "scale-yarn": {
                    "d_h": 192,
                    "number": "1.59",
                    "field": "rope_scaling.mscale_all_dim",
                    "factor": "0.1147",
                },
            },
        ),
        ("deepseek-v3", {"experts-one-shared": {"n": 58, "L": 61, "k": 8, "E": 256}}),
        (
            "mixtral-8x7b",
            {"experts": {"n": 32, "L": 32, "k": 2, "E": 8}, "heads-grouped": {"H": 32, "G": 8, "share": 4}},
        ),
    ],
)
def test_how_a_model_computes_is_told(client: TestClient, library: Library, key: str, sentences: Any) -> None:
    """As its paper or card says: windows, chunks, RoPE, scale, softcap, norms, experts, fixed lengths."""
    page = text_of(client.get(f"/models/{key}").text)
    for sentence, words in sentences.items():
        # d_h is set as d with a small h
        assert told(library, "kinds", sentence, **words).replace("_", "") in page.replace("_", "")


def test_what_one_token_uses_is_told_with_and_without_the_embedding_table(client: TestClient, library: Library) -> None:
    """DeepSeek-V2-Lite: 2.7 billion, or the 2.4 billion of its card without the table of 102,400 × 2,048."""
    page = text_of(client.get("/models/deepseek-v2-lite").text)
    assert told(library, "parameters", "active-shared", active="2,661,150,208", k=6, E=64, n_sh=2) in page
    assert told(library, "parameters", "active-embedding", rest="2,451,435,008") in page


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


@pytest.mark.slow
def test_every_family_has_a_page(client: TestClient) -> None:
    """Odd sizes of every family, with the first and the last of their settings, are read, told and summed."""
    for case in CASES:
        for which in (0, -1):
            config = case.config({name: values[which] for name, values in case.settings.items()})
            page = paste(client, config)
            assert (page.status_code, page.url.path[:8]) == (200, "/models/"), case.model_type
            assert f"<code>{case.model_type}</code>" in page.text


DATA = Path(__file__).parents[2] / "data"
RECORDS: list[dict[str, Any]] = [
    record
    for name in ("transformers_shapes.json", "published_totals.json")
    for record in json.loads((DATA / name).read_text(encoding="utf-8"))
]


@pytest.mark.slow
def test_every_known_config_has_a_page_and_links_to_sheets_that_open(client: TestClient) -> None:
    """Imported from text: its page, and a quarter of the sheets that it offers, answer 200.

    Every worksheet is opened with every family in tests/web/shared/test_every_family.py.
    """
    for number, record in enumerate(RECORDS):
        page = paste(client, record["config"])
        assert (page.status_code, page.url.path[:8]) == (200, "/models/"), record["name"]
        links = re.findall(r'href="(/sheet?[^"]*)"', page.text.partition('class="read"')[0])
        for link in links[number % 4 :: 4]:
            assert client.get(link.replace("&amp;", "&")).status_code == 200, (record["name"], link)
