"""The rooms of the house: what may import what, and the core that needs nothing but Python."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import PROJECT

CORE = ("algebra", "models", "shapes", "misconceptions", "sheets", "figures", "forward", "grading", "practice")
LOAD_THE_CORE = f"""
import sys
before = set(sys.modules)
import importlib, json, pkgutil
for package in {CORE}:
    core = importlib.import_module("app." + package)
    for module in pkgutil.walk_packages(core.__path__, core.__name__ + "."):
        importlib.import_module(module.name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""

# Each package, and the packages it may reach into.
BELOW: dict[str, set[str]] = {
    **{package: set(CORE) for package in CORE},
    "store": set(CORE),
    "handout": {*CORE, "store"},
    "exchange": {*CORE, "store"},
    "classes": {*CORE, "store", "exchange", "handout"},
    "web": {*CORE, "store", "handout", "exchange", "classes", "settings"},
    "settings": {"exchange"},  # which reads the address of a mail server
    "main": {*CORE, "store", "handout", "exchange", "classes", "web", "settings"},
    "cli": {*CORE, "store", "handout", "exchange", "classes", "web", "settings", "main"},
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the app by its dotted name, parsed."""
    for path in sorted((PROJECT / "app").rglob("*.py")):
        dotted = ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
        yield dotted, ast.parse(path.read_text(encoding="utf-8"))


def imported(name: str, tree: ast.Module) -> set[str]:
    """The dotted names a module imports anywhere in it, functions included, relative ones written out."""
    package = name if (PROJECT / Path(*name.split("."), "__init__.py")).exists() else name.rpartition(".")[0]
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def room(name: str) -> str | None:
    """The room of a dotted name: 'algebra' of app.algebra.dims, none of what is not the app's."""
    parts = name.split(".")
    return parts[1] if parts[0] == "app" and len(parts) > 1 and parts[1] in BELOW else None


def test_the_core_brings_in_the_standard_library_alone() -> None:
    """Importing every module of the core in a fresh interpreter loads nothing that was installed."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD_THE_CORE], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert "app.forward.run" in loaded
    outside = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"app", "__mp_main__"}
    assert outside == set()
    assert not {name for name in loaded if room(name) not in (None, *CORE)}


def test_imports_go_from_the_outer_rooms_to_the_core_and_never_back() -> None:
    """Every import inside the app goes from a package to one it may reach into."""
    crossings = {(room(name), room(other)) for name, tree in modules() for other in imported(name, tree)}
    inside = {(a, b) for a, b in crossings if a and b and a != b}
    assert ("web", "sheets") in inside
    assert {(a, b) for a, b in inside if b not in BELOW[a]} == set()


def test_page_modules_never_import_each_other() -> None:
    """A module that has a router is a page, and no page imports another."""
    trees = dict(modules())
    pages = {
        name
        for name, tree in trees.items()
        if any(isinstance(node, ast.Name) and node.id == "router" for node in ast.walk(tree) if name != "app.main")
    }
    assert pages >= {"app.web.practice.sheet_page", "app.web.runs.run_page", "app.web.api.v1", "app.web.api.health"}
    for name in pages:
        assert imported(name, trees[name]) & (pages - {name}) == set(), name


@pytest.mark.parametrize("wanted", ["torch", "numpy"])
def test_torch_is_imported_where_a_head_is_run_and_nowhere_else(wanted: str) -> None:
    """Torch is for forward.py and devices.py of the core, and for the runner's child process; numpy for nothing."""
    users = {name for name, tree in modules() if wanted in {other.partition(".")[0] for other in imported(name, tree)}}
    assert users <= ({"app.forward.run", "app.forward.devices", "app.forward.process"} if wanted == "torch" else set())


def test_no_module_evaluates_text_but_the_forward_pass() -> None:
    """eval, exec and compile are called in forward.py alone, on the program it has written itself."""
    callers = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec", "compile")
    }
    assert callers == {"app.forward.run"}
