"""Addresses are only written by url_for, from names that no two routes share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import Request
from starlette.routing import Route

from app.settings import PROJECT, Settings
from app.web.shared import urls
from app.web.shared.urls import ALL_INTERFACES, RouteNameError, client_network, public_address, register_routes, url_for
from app.web.shared.urls import _routes as known_routes
from tests.helpers.running_app import make_app

# An address of the app in an attribute that a browser follows.
ADDRESS = re.compile(r"""(?:href|action|src|formaction|hx-(?:get|post|put|patch|delete)|data-address)=["']/""")
NAME = re.compile(r"""url_for\(\s*["'](\w+)["']""")


@pytest.fixture(scope="module", autouse=True)
def _routes(tmp_path_factory: pytest.TempPathFactory) -> None:
    make_app(Settings(data_dir=tmp_path_factory.mktemp("urls"), database_url=""))


def texts(folder: str, ending: str) -> Iterator[tuple[str, str]]:
    """Every file with that ending below a folder, as its path and its text."""
    for path in sorted((PROJECT / folder).rglob(f"*.{ending}")):
        yield str(path.relative_to(PROJECT)), path.read_text(encoding="utf-8")


def redirects(path: str, text: str) -> Iterator[str]:
    """Where a module redirects to an address that is spelled out, as path:line."""
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "RedirectResponse"):
            continue
        texts = (part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant))
        if any(isinstance(value, str) and value.startswith("/") for value in texts):
            yield f"{path}:{node.lineno}"


def test_the_examples_of_url_for() -> None:
    assert url_for("home") == "/"
    assert url_for("openapi") == "/openapi.json"
    assert url_for("show_class_sheet", activity_id=3, number=1) == "/class/3/1"
    assert url_for("show_sheet", worksheet="gpt2", tokens=64) == "/sheet?worksheet=gpt2&tokens=64"
    assert url_for("open_sheet_code", code="a/b c") == "/v/a%2Fb%20c"


@pytest.mark.parametrize(("name", "values"), [("no_such_route", {}), ("show_class_sheet", {"activity_id": 3})])
def test_an_unknown_name_or_a_missing_parameter_is_refused(name: str, values: dict[str, object]) -> None:
    with pytest.raises(RouteNameError):
        url_for(name, **values)


def test_no_two_routes_share_a_name() -> None:
    def page() -> None: ...

    with pytest.raises(RouteNameError, match="page"):
        register_routes([Route("/a", page), Route("/b", page)])


def test_no_template_spells_an_address_out() -> None:
    assert [f"{path}: {found}" for path, text in texts("templates", "html") for found in ADDRESS.findall(text)] == []


def test_no_handler_redirects_to_an_address_spelled_out() -> None:
    assert [place for path, text in texts("app/web", "py") for place in redirects(path, text)] == []


@pytest.mark.parametrize(
    "path", sorted([*(PROJECT / "templates").rglob("*.html"), *(PROJECT / "app/web").rglob("*.py")])
)
def test_every_name_that_is_linked_to_exists(path: Path) -> None:
    if path.name == "urls.py":
        return
    assert set(NAME.findall(path.read_text(encoding="utf-8"))) <= known_routes.keys()


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),  # how a socket for both kinds names an IPv4 client
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_the_network_of_a_client(host: str, network: str) -> None:
    assert client_network(Request({"type": "http", "client": (host, 50000)})) == network


@pytest.mark.parametrize(
    ("host", "listens_at", "client", "set_to", "url", "is_local"),
    [
        ("192.0.2.2:8000", ALL_INTERFACES[0], "192.0.2.7", "", "http://192.0.2.2:8000", False),
        (
            "localhost:9000",
            ALL_INTERFACES[0],
            "127.0.0.1",
            "",
            "http://192.0.2.2:8000",
            False,
        ),  # 9000 is forwarded by ssh
        ("[::1]:8000", ALL_INTERFACES[1], "::1", "", "http://192.0.2.2:8000", False),
        ("127.0.0.1:8000", "127.0.0.1", "127.0.0.1", "", "http://127.0.0.1:8000", True),
        ("localhost:8000", ALL_INTERFACES[0], "172.17.0.1", "", "http://localhost:8000", True),  # forwarded by Docker
        ("localhost:8000", ALL_INTERFACES[0], "127.0.0.1", "https://shapes.example", "https://shapes.example", False),
    ],
)
def test_people_are_sent_to_an_address_that_their_computers_can_open(
    monkeypatch: pytest.MonkeyPatch, host: str, listens_at: str, client: str, set_to: str, url: str, is_local: bool
) -> None:
    monkeypatch.setattr(urls, "lan_addresses", lambda: ["192.0.2.2"])
    scope = {
        "type": "http", "scheme": "http", "path": "/", "query_string": b"", "headers": [(b"host", host.encode())],
        "client": (client, 50_000), "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    address = public_address(Request(scope), Settings(host=listens_at, address=set_to))
    assert (address.url, address.is_local) == (url, is_local)
