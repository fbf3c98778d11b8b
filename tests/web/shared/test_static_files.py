"""Static files are cached for a year under an address with the present hash, and revalidated under any other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from starlette.testclient import TestClient

from app.settings import PROJECT, Settings
from app.web.shared import static_files
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


_OUTSIDE = r"(?![^()]*\))"  # of parentheses


def _selectors(stylesheet: str) -> Iterator[tuple[tuple[str, ...], str]]:
    nested, start = list[str](), 0
    text = re.sub(r"/\*.*?\*/", "", stylesheet, flags=re.DOTALL)
    for end in re.finditer(r"[{};]", text):
        piece, start = text[start : end.start()].strip(), end.end()
        if end[0] == "{":
            outer = tuple(each for each in nested if not each.startswith("@"))
            if not piece.startswith("@"):
                alternatives = re.sub(r":(has|not)\((?:[^()]|\([^()]*\))*\)", "", piece)
                yield from ((outer, each.strip()) for each in re.split(rf",{_OUTSIDE}", alternatives))
            nested.append(piece)
        elif end[0] == "}":
            nested.pop()


def test_a_class_is_styled_in_one_file() -> None:
    """Whatever else a rule names is a context, or a part, of the first element of its outermost selector."""
    homes = dict[str, set[str]]()
    for path in (STATIC / "css").glob("*.css"):
        for outer, selector in _selectors(path.read_text(encoding="utf-8")):
            if not outer:
                for name in re.findall(r"\.([\w-]+)", re.split(rf"[\s>+~]{_OUTSIDE}", selector)[0]):
                    homes.setdefault(name, set()).add(path.name)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_only_the_stylesheet_of_drawings_says_which_labels_are_shown() -> None:
    for path in set((STATIC / "css").glob("*.css")) - {STATIC / "css" / "drawing.css"}:
        alone = {selector for outer, selector in _selectors(path.read_text(encoding="utf-8")) if not outer}
        assert not alone & {".edge", ".here", ".away", ".start", ".middle", ".end"}, path.name


def test_stylesheets_are_layers_in_one_order_with_three_breakpoints() -> None:
    orders, widths = list[str](), set[str]()
    for path in (STATIC / "css").glob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert f"@layer {path.stem} {{" in text
        orders += re.findall(r"@layer ([^{;]*);", text)
        widths |= set(re.findall(r"\(([^()]*(?:width)[^()]*)\)", " ".join(re.findall(r"@media[^{]*", text))))
    [order] = orders
    assert sorted(order.split(", ")) == sorted(path.stem for path in (STATIC / "css").glob("*.css"))
    assert widths == {
        "width <= 600px",
        "width > 600px",
        "width <= 900px",
        "width > 900px",
        "width > 1100px",
    }


def test_every_class_that_a_stylesheet_names_is_given_to_something() -> None:
    sources = [*PROJECT.glob("templates/**/*.html"), *STATIC.glob("**/*.js"), *PROJECT.glob("app/**/*.py")]
    words = set(re.findall(r"[\w-]+", " ".join(path.read_text(encoding="utf-8") for path in sources)))
    text = " ".join(path.read_text(encoding="utf-8") for path in (STATIC / "css").glob("*.css"))
    named = {name for _, selector in _selectors(text) for name in re.findall(r"\.([A-Za-z][\w-]*)", selector)}
    assert sorted(name for name in named if name not in words and f"{name.rpartition('-')[0]}-" not in words) == []


def test_a_change_to_any_file_changes_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    address, contents = static_url("css/base.css"), static_files._contents()
    for changed in (
        {**contents, "js/save.js": contents["js/save.js"] + b" "},
        {**contents, "js/new.js": b""},
        {path: content for path, content in contents.items() if path != "js/save.js"},
    ):
        monkeypatch.setattr(static_files, "_contents", lambda changed=changed: changed)
        assert static_files._version.__wrapped__() not in address


def test_what_files_name_has_their_version(browser: TestClient) -> None:
    for path in FILES:
        text = (STATIC / path).read_bytes().decode(errors="replace") if path.endswith((".js", ".css")) else ""
        for named in re.findall(r"""(?m)^import .*"(.+)";|url\("(.+?)"\)""", text):
            address = urljoin(static_url(path), "".join(named))
            assert browser.get(address).headers["cache-control"] == IMMUTABLE, (path, address)


@pytest.mark.parametrize("version", ["000000000000", "v"])
def test_the_address_of_another_version_is_asked_for_again(browser: TestClient, version: str) -> None:
    answer = browser.get(f"/static/{version}/css/base.css")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, REVALIDATE)


@pytest.mark.parametrize("path", ["css/none.css", "../app/main.py", "..%2fapp/main.py", "", "css"])
def test_a_file_that_is_not_there_is_404(browser: TestClient, path: str) -> None:
    version = static_url("icon.svg").split("/")[2]
    assert browser.get(f"/static/{version}/{path}").status_code == 404
    with pytest.raises(KeyError):
        static_url(path)


def test_every_file_that_a_page_names_has_such_an_address(browser: TestClient) -> None:
    named = re.findall(r'"(/static/[^"]+)"', browser.get("/sheet").text)
    assert len(named) >= 5
    assert {browser.get(address).headers["cache-control"] for address in named} == {IMMUTABLE}


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
