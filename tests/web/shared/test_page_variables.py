"""What templates may show is what their page classes hold; and every setting is explained."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import fields
from functools import cache
from typing import Any

import pytest
from jinja2 import meta

import app.web
from app.settings import PROJECT, Settings
from app.web.shared.templating import template_environment


@cache
def page_classes() -> list[type[Any]]:
    """Every class of app/web whose name ends in Page or Fragment, except base classes."""
    modules = [importlib.import_module(module.name) for module in pkgutil.walk_packages(app.web.__path__, "app.web.")]
    classes = dict.fromkeys(value for module in modules for value in vars(module).values() if isinstance(value, type))
    return [page for page in classes if page.__name__.endswith(("Page", "Fragment")) and not page.__subclasses__()]


def templates_of(page: type[Any]) -> list[str]:
    """The templates that a page class fills, as its docstring names them; those after the first lie in its folder.

    Example: ["runs/run.html", "runs/_run.html"] for "Everything that templates/runs/run.html and _run.html show."
    """
    names = re.findall(r"(?:templates/)?([a-z_/]+\.html)", page.__doc__ or "")
    folder = names[0].partition("/")[0] if names else ""
    return [name if "/" in name else f"{folder}/{name}" for name in names]


# Which page a template is given; what it includes or extends is checked with it.
PAGES = {template: page for page in page_classes() for template in templates_of(page)}


@cache
def read_template(name: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """The text of a template, the templates that it extends or includes, and the names that it does not make itself."""
    text = (PROJECT / "templates" / name).read_text(encoding="utf-8")
    tree = template_environment().parse(text)
    others = frozenset(other for other in meta.find_referenced_templates(tree) if other)
    return text, others, frozenset(meta.find_undeclared_variables(tree))


def parts_of(template: str) -> set[str]:
    """A template with all that it extends and includes."""
    found, waiting = set[str](), {template}
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= read_template(name)[1] - found
    return found


def variables(template: str) -> set[str]:
    """The names that a template and its parts read and don't define."""
    parts = [read_template(name) for name in parts_of(template)]
    undeclared = set[str]().union(*(names for _text, _others, names in parts))
    if any("{% set tab = " in text for text, _others, _names in parts):  # a page says which tab of its layout it is
        undeclared.discard("tab")
    # An exhibit adds something to each frame.
    if any("{% block with_frame scoped %}" in text for text, _others, _names in parts):
        undeclared -= {"frame", "loop"}
    # _trans is a name of Jinja's own, for {% trans url=url_for(…) %}.
    return undeclared - set(template_environment().globals) - {"_trans"}


def test_every_template_belongs_to_a_page() -> None:
    assert len(PAGES) == sum(len(templates_of(page)) for page in page_classes())
    shown = set().union(*(parts_of(template) for template in PAGES))
    assert shown == {str(path.relative_to(PROJECT / "templates")) for path in (PROJECT / "templates").rglob("*.html")}


@pytest.mark.parametrize(("template", "page"), PAGES.items(), ids=list(PAGES))
def test_a_template_shows_nothing_but_its_page(template: str, page: type[Any]) -> None:
    assert variables(template) <= {field.name for field in fields(page)}


@pytest.mark.parametrize("page", page_classes(), ids=lambda page: page.__name__)
def test_a_page_holds_nothing_that_no_template_shows(page: type[Any]) -> None:
    read = set().union(*(variables(template) for template, shown in PAGES.items() if shown is page))
    assert {field.name for field in fields(page)} <= read


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_and_stands_in_the_docs(name: str) -> None:
    field = Settings.model_fields[name]
    assert field.description
    assert field.description.endswith(".")
    variable = "DATABASE_URL" if name == "database_url" else f"ATTENTION_SHAPES_{name.upper()}"
    default = "data" if name == "data_dir" else str(field.default)
    shown = default.lower() if isinstance(field.default, bool) else default
    page = (PROJECT / "docs" / "installing.md").read_text(encoding="utf-8")
    assert f"| `{variable}` | {f'`{shown}` ' if shown else ''}|" in page


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ATTENTION_SHAPES_HOST", "ATTENTION_SHAPES_PORT", "ATTENTION_SHAPES_DATA_DIR", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert (Settings().host, Settings().port, Settings().data_dir) == ("127.0.0.1", 8000, PROJECT / "data")
    assert Settings().database == f"sqlite:///{PROJECT / 'data' / 'attention-shapes.sqlite3'}"
    monkeypatch.setenv("ATTENTION_SHAPES_HOST", "0.0.0.0")  # noqa: S104 - read, not bound
    monkeypatch.setenv("ATTENTION_SHAPES_PORT", "81")
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", "/somewhere")
    monkeypatch.setenv("DATABASE_URL", "postgresql://h/d")
    assert (Settings().host, Settings().port, str(Settings().data_dir)) == ("0.0.0.0", 81, "/somewhere")  # noqa: S104
    assert Settings().database == "postgresql+psycopg://h/d"
