"""The app's source code as tests read it: modules, imports, definitions and their lengths."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from app.settings import PROJECT


def dotted_name(path: Path) -> str:
    """A module's name for imports."""
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def written_name(node: ast.AST) -> str:
    """A name as written, such as "log.error"; "" for any other expression. `ast.unparse` takes seconds for all."""
    if isinstance(node, ast.Attribute):
        return f"{written_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@cache
def app_modules() -> dict[str, ast.Module]:
    """Every module of app/ by its dotted name, parsed, without the migrations, which don't change."""
    paths = sorted((PROJECT / "app").rglob("*.py"))
    trees = {dotted_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    return {name: tree for name, tree in trees.items() if not name.startswith("app.store.migrations")}


@cache
def imported_names(name: str) -> tuple[str, ...]:
    """Every dotted name that a module imports, including in functions and under TYPE_CHECKING, relative ones
    resolved.
    """
    return tuple(_imported_names(name, app_modules()[name]))


def _imported_names(name: str, tree: ast.Module) -> Iterator[str]:
    is_package = (PROJECT / Path(*name.split("."), "__init__.py")).exists()
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def import_graph() -> dict[str, set[str]]:
    """For each module of app/, the other modules of app/ that it imports."""
    modules = app_modules()

    def module_of(dotted: str) -> str:
        while dotted not in modules and "." in dotted:
            dotted = dotted.rpartition(".")[0]
        return dotted

    return {
        name: {module_of(other) for other in imported_names(name) if other.startswith("app.")} - {name, "app"}
        for name in modules
    }


def package_of(module: str) -> str:
    """The package of app/ that a module is in: "store" for app.store.people, "main" for app.main, "" for app."""
    return module.split(".")[1] if "." in module else ""


def imports_from(module: str, libraries: Iterable[str]) -> bool:
    """Whether a module of app/ imports any of these libraries, anywhere in it."""
    return not set(libraries).isdisjoint(name.partition(".")[0] for name in imported_names(module))


def modules_in_cycles() -> set[str]:
    """Every module of app/ that imports itself by way of others."""
    graph = import_graph()

    def reachable(start: str) -> set[str]:
        reached, waiting = set[str](), [start]
        while waiting:
            new = graph[waiting.pop()] - reached
            reached |= new
            waiting += new
        return reached

    return {name for name in graph if name in reachable(name)}


def page_modules() -> set[str]:
    """Every module of app/web that has a router."""
    return {
        name
        for name, tree in app_modules().items()
        if name.startswith("app.web.")
        and any(isinstance(node, ast.Name) and node.id == "router" for node in ast.walk(tree))
    }


def duplicates(names: Iterable[tuple[str, str]]) -> set[str]:
    """The names that occur in more than one module, in pairs of module and name."""
    modules = defaultdict[str, set[str]](set)
    for module, name in names:
        modules[name].add(module)
    return {name for name, where in modules.items() if len(where) > 1}


def public_classes() -> Iterator[tuple[str, str]]:
    """Module and name of every public class at the top level of a module."""
    for module, tree in app_modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield module, node.name


def public_constants() -> Iterator[tuple[str, str]]:
    """Module and name of every UPPER_CASE name of at least two letters assigned at the top level of a module."""
    for module, tree in app_modules().items():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                for leaf in ast.walk(target) if target else ():
                    if isinstance(leaf, ast.Name) and re.fullmatch(r"[A-Z][A-Z0-9_]+", leaf.id):
                        yield module, leaf.id
