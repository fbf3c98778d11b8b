"""Models in a real browser: imported as text and from a file, read, and made into a sheet that is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from simulation.server import Server
from tests.helpers.browser import SERVE_PATIENTLY, assert_accessible_in_all_looks

pytestmark = pytest.mark.slow

CONFIG = {
    "model_type": "llama", "hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2,
    "intermediate_size": 256, "vocab_size": 1000, "num_hidden_layers": 4,
}  # fmt: skip
TEXT = json.dumps(CONFIG, indent=2)


@pytest.fixture(scope="module")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app, with a Hub that no one serves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        server = Server(tmp_path_factory.mktemp("data"), program=SERVE_PATIENTLY)
        server.start()
    yield server
    server.kill()


def test_pasted_text_becomes_a_sheet_that_is_checked(page: Page) -> None:
    page.get_by_role("link", name="Models").click()
    page.get_by_label("As text").fill(TEXT)
    page.get_by_label("Name (optional)").fill("A tiny model")
    page.get_by_role("button", name="Import text").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A tiny model")
    expect(page.get_by_role("row", name="key/value heads per layer")).to_contain_text("num_key_value_heads")
    page.get_by_text("sheets with this model").click()
    page.get_by_role("link", name="One head", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("One head of A tiny model")
    expect(page.locator('select[name="model"] option:checked')).to_have_text("A tiny model")
    tokens = page.locator('input[name="tokens"]').first.input_value()
    for blank, text in {"input": (tokens, "96"), "queries": (tokens, "96/6"), "scores": (tokens, tokens)}.items():
        page.fill(f'input[name="{blank}.rows"]', text[0])
        page.fill(f'input[name="{blank}.columns"]', text[1])
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("6 of 14 right")
    page.get_by_role("link", name="Model details").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A tiny model")


def test_a_file_is_opened(page: Page, tmp_path: Path) -> None:
    """Its name is the model's name."""
    (tmp_path / "tiny-96.json").write_text(json.dumps({**CONFIG, "vocab_size": 1001}), encoding="utf-8")
    page.goto("/models")
    page.get_by_label("From a file").set_input_files(tmp_path / "tiny-96.json")
    page.get_by_role("button", name="Import file").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("tiny-96")


def test_what_cannot_be_imported_is_said_beside_its_field(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/models")
    page.get_by_label("As text").fill('{"model_type": "hyena"}')
    page.get_by_label("From the Hugging Face Hub").fill("org/name")
    page.get_by_role("button", name="Import text").click()
    field = page.get_by_label("As text")
    expect(field).to_have_value('{"model_type": "hyena"}')
    expect(field).to_have_accessible_description(re.compile("not supported"))
    page.get_by_label("From the Hugging Face Hub").press("Enter")
    expect(page.locator("#hub-problem")).to_contain_text("127.0.0.1:9")
    expect(field).to_have_value('{"model_type": "hyena"}')
    image: FilePayload = {"name": "photo.png", "mimeType": "image/png", "buffer": b"\x89PNG"}
    page.get_by_label("From a file").set_input_files(image)
    page.get_by_role("button", name="Import file").click()
    expect(page.locator("#file-problem")).to_contain_text("photo.png: This is not JSON")
    context.close()


def test_a_term_and_its_piece_of_the_bar_light_up_together(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/models/gpt2")
    term, piece = (page.locator(f'{which}[data-piece="1-mlp"]') for which in (".term", "g"))
    term.hover()
    expect(piece).to_have_class("lit")
    page.mouse.move(0, 0)
    expect(page.locator(".lit")).to_have_count(0)
    piece.focus()
    expect(term).to_have_class("term lit")
    context.close()


def test_axe_finds_nothing_on_the_pages_of_models(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    for address in ("/models", "/models/llama-7b", "/models/gpt2", "/models/t5-small", "/models/deepseek-v2-lite"):
        page.goto(address)
        assert_accessible_in_all_looks(page)
    page.goto("/models")
    page.get_by_label("As text").fill("{")
    page.get_by_role("button", name="Import text").click()
    expect(page.locator("#text-problem")).to_be_visible()
    assert_accessible_in_all_looks(page)
    context.close()


def test_the_pages_fit_a_screen_of_320_pixels(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport={"width": 320, "height": 700})
    page = context.new_page()
    for address in ("/models", "/models/llama-7b", "/models/deepseek-v2-lite"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, address
    context.close()


def test_importing_works_without_script(browser: Browser, shared_app: Server) -> None:
    """Only plain forms and links."""
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/models")
    page.get_by_label("As text").fill(TEXT)
    page.get_by_role("button", name="Import text").click()
    expect(page).to_have_url(f"{shared_app.url}/models/{page.url.rpartition('/')[2]}")
    expect(page.get_by_role("heading", name="Model details")).to_be_visible()
    context.close()
