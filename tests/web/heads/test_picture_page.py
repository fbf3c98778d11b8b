"""The page of the picture: what it shows of a head that has run, and the files it gives."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from app.exchange.spreadsheet import BOM
from app.forward.real_head import RealHead
from app.web.shared.picture_view import picture_view
from tests.helpers.finished_heads import finished_head, stored_head

SENTENCE = "a cat and a dog and a cow and a tall tree"  # twelve words, each of them a token


@pytest.fixture(scope="module")
def real_head() -> RealHead:
    return finished_head(SENTENCE)


@pytest.fixture
def key(client: TestClient, real_head: RealHead) -> str:
    """The key of that head on the client's server."""
    return stored_head(client.app.state.services.store, real_head)  # type: ignore[attr-defined]


def test_the_page_shows_every_stage_with_the_numbers_of_the_run(client: TestClient, key: str) -> None:
    page = client.get(f"/heads/{key}/picture")
    assert page.status_code == 200
    pictures = page.text.split('data-stage="')[1:]
    assert len(pictures) == 5
    cells = [json.loads(unescape(each.partition('"')[0]))["cells"] for each in pictures]
    assert [(len(each), each[0].count("|") + 1) for each in cells] == [(12, 12)] * 4 + [(12, 11)]
    assert "style=" not in page.text
    assert "<style" not in page.text


def test_a_row_that_is_named_is_read(client: TestClient, key: str, real_head: RealHead) -> None:
    page = client.get(f"/heads/{key}/picture?row=5&cell=1").text
    assert re.search(r'data-row="5"\s+data-column="1"', page)
    heaviest = int(real_head.arrays["weights"][7].argmax())
    assert re.search(rf'data-row="7"\s+data-column="{heaviest}"', client.get(f"/heads/{key}/picture?row=7").text)
    fragment = client.get(f"/heads/{key}/picture/rows/7").text
    assert fragment.lstrip().startswith("<div")
    assert 'data-query="7"' in fragment
    assert fragment.count('class="product"') == 12


@pytest.mark.parametrize("query", ["row=12", "row=-1", "row=x", "cell=99&row=²", "row=" + "9" * 9000])
def test_what_cannot_be_read_counts_as_missing(client: TestClient, key: str, query: str) -> None:
    plain, odd = (client.get(f"/heads/{key}/picture?{text}") for text in ("", query))
    assert odd.status_code == 200
    assert [each.text.count('data-stage="') for each in (plain, odd)] == [5, 5]


def test_the_last_query_alone_is_the_decode_step(client: TestClient, key: str) -> None:
    page = client.get(f"/heads/{key}/picture?show_decode=1").text
    stage = json.loads(unescape(page.split('data-stage="')[4].partition('"')[0]))
    [line] = stage["cells"]
    assert len(line.split("|")) == 12
    assert "" not in line.split("|")


def test_every_head_of_the_layer_is_shown(client: TestClient, key: str, real_head: RealHead) -> None:
    page = client.get(f"/heads/{key}/picture").text
    assert page.count('class="heat small"') == real_head.architecture.H
    others = [head for head in range(real_head.architecture.H) if head != real_head.head]
    assert all(f"/heads?from={key}&amp;layer={real_head.layer}&amp;head={head}" in page for head in others)


def test_a_text_of_one_token_has_no_column_to_leave_out() -> None:
    view = picture_view(finished_head("a"), "k", {})
    assert [stage.key for stage in view.stages] == ["products", "scaled", "masked", "weights"]
    assert view.first_token == ()


def test_a_layer_too_large_to_keep_has_no_small_pictures(real_head: RealHead) -> None:
    view = picture_view(replace(real_head, layer_weights=np.zeros((0, 12, 12), np.float16)), "k", {})
    assert view.cards == ()


def test_files_hold_the_numbers_of_the_run(client: TestClient, key: str, real_head: RealHead) -> None:
    text = client.get(f"/heads/{key}/picture/weights.csv")
    assert text.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(text.text.removeprefix(BOM))))
    weights = np.array([float(row["weight"]) for row in rows], np.float32).reshape(12, 12)
    assert (weights == real_head.arrays["weights"]).all()
    stored = np.load(io.BytesIO(client.get(f"/heads/{key}/numbers.npz").content))
    assert (stored["scores"] == real_head.arrays["scores"]).all()
    png = client.get(f"/heads/{key}/picture/masked.png?show_decode=1")
    image = Image.open(io.BytesIO(png.content))
    assert (png.headers["content-type"], image.format) == ("image/png", "PNG")
    assert image.width > 2 * image.height
    svg = client.get(f"/heads/{key}/picture/rest.svg")
    assert svg.headers["content-type"] == "image/svg+xml"
    ElementTree.fromstring(svg.text)  # noqa: S314 - our own
    assert all("attachment" in each.headers["content-disposition"] for each in (text, png, svg))


@pytest.mark.parametrize("name", ["weights.gif", "softmax.png", "weights.npz", "numbers.csv"])
def test_there_are_no_other_files(client: TestClient, key: str, name: str) -> None:
    assert client.get(f"/heads/{key}/picture/{name}").status_code == 404
