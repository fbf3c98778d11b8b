"""Static files are cached for a year under an address with their hash, and revalidated under any other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.settings import PROJECT, Settings
from app.web.shared.static_files import IMMUTABLE, REVALIDATE, STATIC, static_url
from tests.helpers.html_page import Page
from tests.helpers.running_app import make_app
from tests.helpers.runs import run_and_wait
from tests.helpers.sheet_form import LLAMA_FORM

FILES = sorted(str(path.relative_to(STATIC)) for path in STATIC.rglob("*.*") if path.is_file())


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with TestClient(make_app(Settings(data_dir=tmp_path_factory.mktemp("static"), database_url=""))) as client:
        yield client


@pytest.mark.parametrize("path", FILES)
def test_the_address_of_a_file_serves_it_for_a_year(browser: TestClient, path: str) -> None:
    answer = browser.get(static_url(path))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, IMMUTABLE)
    assert answer.content == (STATIC / path).read_bytes()


@pytest.mark.parametrize("kind", ["css", "js"])
def test_pages_load_one_stylesheet_and_one_script_made_of_small_files(browser: TestClient, kind: str) -> None:
    bundle = browser.get(static_url(f"{kind}/all.{kind}")).text
    parts = sorted((STATIC / kind).iterdir())
    in_bundle = [path for path in parts if _longest_rule(path) in bundle]
    left_out = [path.stem for path in parts if path not in in_bundle]
    assert (
        left_out == ["code", "exhibits", "handout", "heads", "live", "materials", "models", "picture"]
        if kind == "css"
        else 5 < len(in_bundle) < len(parts)
    )
    named = re.findall(rf'"(/static/{kind}/[^"]+)"', browser.get("/sheet").text)
    assert named == [static_url(f"{kind}/all.{kind}")]


def _longest_rule(path: Path) -> str:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return max((line for line in lines if not line.startswith(("//", "/*", "@layer"))), key=len)


def _selectors(stylesheet: str) -> Iterator[tuple[tuple[str, ...], str]]:
    nested, start = list[str](), 0
    text = re.sub(r"/\*.*?\*/", "", stylesheet, flags=re.DOTALL)
    for end in re.finditer(r"[{};]", text):
        piece, start = text[start : end.start()].strip(), end.end()
        if end[0] == "{":
            outer = tuple(each for each in nested if not each.startswith("@"))
            parts = () if piece.startswith("@") else re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", piece).split(",")
            yield from ((outer, part.strip()) for part in parts)
            nested.append(piece)
        elif end[0] == "}":
            nested.pop()


def test_a_class_is_styled_in_one_file() -> None:
    homes = dict[str, set[str]]()
    for path in (STATIC / "css").glob("*.css"):
        for outer, selector in _selectors(path.read_text(encoding="utf-8")):
            if not outer and (alone := re.fullmatch(r"(\w*\.[\w-]+)[\w.:\[\]=\"-]*", selector)):
                homes.setdefault(alone[1], set()).add(path.name)
    several = {
        name: files for name, files in homes.items() if len(files | homes.get(f".{name.partition('.')[2]}", set())) > 1
    }
    assert several == {}


def test_stylesheets_are_layers_in_one_order_with_three_breakpoints() -> None:
    orders, widths = set[str](), set[str]()
    for path in (STATIC / "css").glob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert f"@layer {path.stem} {{" in text
        orders |= set(re.findall(r"@layer ([^{;]*);", text))
        widths |= set(re.findall(r"\(([^()]*(?:width)[^()]*)\)", " ".join(re.findall(r"@media[^{]*", text))))
    [order] = orders
    assert sorted(order.split(", ")) == sorted(path.stem for path in (STATIC / "css").glob("*.css"))
    assert widths == {
        "width <= 600px",
        "width > 600px",
        "width <= 900px",
        "width > 900px",
        "width <= 1100px",
        "width > 1100px",
    }


def test_every_class_that_a_stylesheet_names_is_given_to_something() -> None:
    sources = [*PROJECT.glob("templates/**/*.html"), *STATIC.glob("**/*.js"), *PROJECT.glob("app/**/*.py")]
    words = set(re.findall(r"[\w-]+", " ".join(path.read_text(encoding="utf-8") for path in sources)))
    text = " ".join(path.read_text(encoding="utf-8") for path in (STATIC / "css").glob("*.css"))
    named = {name for _, selector in _selectors(text) for name in re.findall(r"\.([A-Za-z][\w-]*)", selector)}
    assert sorted(name for name in named if name not in words and f"{name.rpartition('-')[0]}-" not in words) == []


def test_no_text_in_a_script_or_stylesheet_goes_over_several_lines() -> None:
    for path in (*(STATIC / "js").iterdir(), *(STATIC / "css").iterdir()):
        for line in re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL).splitlines():
            code = line.split("// ")[0] if not line.strip().startswith("//") else ""
            assert code.count("`") % 2 == 0, (path.name, line)
            assert not code.endswith("\\"), (path.name, line)


@pytest.mark.parametrize("query", ["", "?v=", "?v=000000000000", "?w=1"])
def test_any_other_address_is_asked_for_again(browser: TestClient, query: str) -> None:
    answer = browser.get(f"/static/css/all.css{query}")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, REVALIDATE)
    again = browser.get(f"/static/css/all.css{query}", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("path", ["/static/css/none.css?v=1", "/static/../app/main.py?v=1", "/static/?v=1"])
def test_a_file_that_is_not_there_is_404(browser: TestClient, path: str) -> None:
    assert browser.get(path).status_code == 404


def test_every_file_that_a_page_names_has_such_an_address(browser: TestClient) -> None:
    named = re.findall(r'"(/static/[^"]+)"', browser.get("/sheet").text)
    assert len(named) >= 5
    assert {browser.get(address).headers["cache-control"] for address in named} == {IMMUTABLE}


def test_vendored_files_are_kept_and_ours_are_asked_for_again(client: TestClient) -> None:
    vendored = next((PROJECT / "static" / "vendor").glob("*.js")).name
    assert client.get(f"/static/vendor/{vendored}").headers["cache-control"] == "public, max-age=31536000, immutable"
    ours = client.get("/static/css/all.css")
    assert ours.headers["cache-control"] == "no-cache"
    assert client.get("/static/css/all.css", headers={"If-None-Match": ours.headers["etag"]}).status_code == 304


def test_pages_load_nothing_from_elsewhere(client: TestClient) -> None:
    texts = [
        client.get("/sheet").text,
        client.get("/nope").text,
        run_and_wait(client, {**LLAMA_FORM, "queries.rows": "1"}),
    ]
    outside = set[str]()
    for text in texts:
        for tag, attributes, _ in Page(text).elements:
            for name in ("src", "href", "action", "formaction", "poster", "data"):
                address = attributes.get(name, "")
                if re.match(r"(\w+:)?//", address):
                    assert tag == "a"
                    outside.add(address)
                elif tag in ("script", "link", "img"):
                    assert client.get(address).status_code == 200, address
    assert outside == {"https://github.com/facebookresearch/llama/blob/llama_v1/MODEL_CARD.md"}
    styles = [path.read_text(encoding="utf-8") for path in (PROJECT / "static" / "css").glob("*.css")]
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"/\*.*?\*/", "", "".join(styles), flags=re.DOTALL))


def test_the_first_load_is_light(client: TestClient) -> None:
    page = Page(client.get("/sheet").text)
    addresses = {attrs["href"] for attrs, _ in page.find("link")} | {attrs["src"] for attrs, _ in page.find("script")}
    sent = 0
    for address in ["/sheet", *addresses]:
        with client.stream("GET", address, headers={"accept-encoding": "gzip"}) as response:
            sent += sum(len(piece) for piece in response.iter_raw())
    assert 10_000 < sent <= 100_000


@pytest.mark.parametrize(
    ("site", "arrives"), [("none", True), ("cross-site", True), ("same-origin", False), ("", False)]
)
def test_the_first_page_of_a_visit_is_marked(client: TestClient, site: str, arrives: bool) -> None:
    page = Page(client.get("/join", headers={"sec-fetch-site": site} if site else {}).text)
    assert ("data-arriving" in page.find("html")[0][0]) == arrives


def test_the_stylesheet_of_a_students_page_arrives_with_the_first_packets(client: TestClient) -> None:
    page = Page(client.get("/sheet").text)
    styles = [attributes["href"] for attributes, _ in page.find("link") if attributes["rel"] == "stylesheet"]
    assert len(styles) == 1
    with client.stream("GET", styles[0], headers={"accept-encoding": "gzip"}) as response:
        assert sum(len(piece) for piece in response.iter_raw()) < 14_000
