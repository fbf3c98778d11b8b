"""The layout of the project: which package imports which, what each holds, and names that are used once."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest
from starlette.routing import Route

from app.main import find_routers
from app.models.computation import computation_of
from app.models.parameter_specs import Row
from app.models.recognition import FAMOUS
from app.models.table import table_names
from app.settings import PROJECT
from app.topics.registry import TOPICS
from app.topics.topic import Topic
from tests.helpers.source_code import (
    app_modules,
    duplicates,
    import_graph,
    imported_names,
    imports_from,
    modules_in_cycles,
    package_of,
    page_modules,
    public_classes,
    public_constants,
    written_name,
)

# Each package of app/ (or module, for main and settings), and the packages it may import from besides itself.
# All of them may import SHARED modules, which import nothing of the app.
SHARED = {"addresses", "logs", "metrics", "names", "refusal", "translation"}
BELOW_SHEETS = {"algebra", "models", "shapes", "bugs", "topics", "misconceptions"}
CORE = {*BELOW_SHEETS, "checkpoints", "sheets", "figures", "forward", "grading", "machine", "practice"}
MAY_IMPORT: Mapping[str, set[str]] = {
    "algebra": set(),
    "models": {"algebra"},
    "shapes": {"algebra", "models"},
    "bugs": {"algebra", "models", "shapes"},
    "topics": {"algebra", "models", "shapes", "bugs"},
    "misconceptions": {"algebra", "models", "shapes", "bugs", "topics"},
    "sheets": BELOW_SHEETS,
    "figures": {*BELOW_SHEETS, "sheets"},
    "machine": set(),
    "checkpoints": {"algebra", "models", "shapes", "bugs", "topics"},
    "forward": {*BELOW_SHEETS, "checkpoints", "sheets", "machine"},
    "grading": {*BELOW_SHEETS, "sheets", "figures", "forward"},
    "practice": CORE - {"practice"},
    "secret_key": set(),
    "activities": set(),
    "store": {"machine", "secret_key", "activities"},
    "exchange": {*BELOW_SHEETS, "sheets", "machine", "activities", "store"},
    "handout": {*CORE, "activities", "store", "exchange"} - {"practice"},
    "quizzes": {*CORE, "activities", "store", "exchange", "handout"} - {"practice"},
    "classes": {*CORE, "activities", "store", "exchange"},
    "jobs": {"machine", "store"},
    "lti": {"activities", "secret_key", "classes", "store", "exchange", *CORE},
    "settings": {"exchange"},  # which parses the URL of a mail server
    "web": {*CORE, "activities", "store", "exchange", "handout", "quizzes", "classes", "jobs", "lti", "settings"},
    "main": {
        *CORE,
        "activities",
        "store",
        "exchange",
        "handout",
        "quizzes",
        "classes",
        "jobs",
        "lti",
        "settings",
        "web",
    },
    "cli": {
        *CORE,
        "activities",
        "store",
        "exchange",
        "handout",
        "quizzes",
        "classes",
        "jobs",
        "lti",
        "settings",
        "secret_key",
        "web",
        "main",
    },
}
MARKDOWN = {"markdown_it", "mdurl"}
PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
# The files of checkpoints are read into torch's tensors; they import it in functions, as the process that runs a head.
TORCH_MODULES = {
    "app.forward.run",
    "app.forward.process",
    "app.forward.real_head",
    "app.checkpoints.checkpoint",
    "app.checkpoints.gguf",
    "app.checkpoints.files",
}
NUMPY_MODULES = {
    "app.bugs.tensors",
    "app.bugs.witnesses",
    "app.checkpoints.gguf",
    "app.figures.head_readout",
    "app.figures.heat_map",
    "app.forward.real_head",
}  # in functions, where numbers are made
EVALUATING_MODULES = {"app.forward.run"}  # runs the program that it has written itself
HTTP_FRAMEWORKS = {"fastapi", "starlette"}

LOAD_THE_CORE = f"""
import sys
before = set(sys.modules)
import importlib, json, pkgutil
for package in {sorted(CORE)}:
    core = importlib.import_module("app." + package)
    for module in pkgutil.walk_packages(core.__path__, core.__name__ + "."):
        importlib.import_module(module.name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def forbidden_imports() -> set[tuple[str, str]]:
    """Every import between modules of app/ that MAY_IMPORT does not allow."""
    return {
        (name, other)
        for name, others in import_graph().items()
        for other in others
        if package_of(name)
        and package_of(other) != package_of(name)
        and package_of(other) not in MAY_IMPORT[package_of(name)] | SHARED
    }


def web_modules_without_http() -> set[str]:
    """Every module of app/web, but for web/shared and __init__, that does not import fastapi or starlette."""
    modules = {name for name in app_modules() if name.startswith("app.web.") and name.count(".") > 2}
    return {
        name for name in modules if not name.startswith("app.web.shared.") and not imports_from(name, HTTP_FRAMEWORKS)
    }


# Which package imports which


def test_packages_import_only_what_lies_below_them() -> None:
    assert set(MAY_IMPORT) == {package_of(name) for name in import_graph()} - {"", *SHARED}
    assert all(import_graph()[f"app.{module}"] == set() for module in SHARED)
    assert forbidden_imports() == set()


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert modules_in_cycles() == set()


def test_page_modules_never_import_each_other() -> None:
    pages = page_modules()
    assert pages >= {"app.web.practice", "app.web.runs", "app.web.api", "app.web.health"}
    assert {(name, other) for name in pages for other in import_graph()[name] & pages} == set()


def test_the_core_loads_nothing_but_the_standard_library_and_pydantic() -> None:
    result = subprocess.run(
        [sys.executable, "-c", LOAD_THE_CORE], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(result.stdout))
    assert "app.forward.run" in loaded
    # _sysconfigdata__… is the standard library's, under a name that differs from one platform to the next.
    roots = {name.partition(".")[0] for name in loaded if not name.startswith("_sysconfigdata_")}
    assert roots - set(sys.stdlib_module_names) - {"app", "__mp_main__"} <= PYDANTIC | MARKDOWN
    assert {package_of(name) for name in loaded if name.startswith("app.")} - SHARED == CORE


@pytest.mark.parametrize(
    ("library", "modules"),
    [("torch", TORCH_MODULES), ("numpy", NUMPY_MODULES), ("transformers", set())],
    ids=["torch", "numpy", "transformers"],
)
def test_torch_is_imported_only_where_a_head_is_run(library: str, modules: set[str]) -> None:
    assert {name for name in app_modules() if imports_from(name, {library})} <= modules


def test_only_the_forward_pass_evaluates_text() -> None:
    callers = {
        name
        for name, tree in app_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec", "compile")
    }
    assert callers == EVALUATING_MODULES


def test_the_time_is_passed_in() -> None:
    clock = "app.store.queries.utc_now"
    users = {name for name in app_modules() if clock in imported_names(name)}
    assert users == {"app.main", "app.store.store"}
    machine = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
    asked = {
        name
        for name, tree in app_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and written_name(node) in machine
    }
    assert asked == {"app.store.queries"}


def imports_in(folder: str) -> Iterator[tuple[Path, str]]:
    """Every file under a folder with each line that imports, read as text: parsing all tests takes seconds."""
    for path in (PROJECT / folder).rglob("*.py"):
        for line in re.findall(r"^\s*((?:from|import) .*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            yield path, line


def test_tests_and_benchmarks_do_not_import_each_other() -> None:
    forbidden = {"tests": {"benchmarks"}, "benchmarks": {"tests"}, "simulation": {"tests", "benchmarks"},
                 "app": {"tests", "benchmarks", "simulation"}}  # fmt: skip
    for folder, others in forbidden.items():
        for path, line in imports_in(folder):
            assert re.split(r"[ .]", line)[1] not in others, path


def test_no_test_file_imports_another() -> None:
    for path, line in imports_in("tests"):
        itself = path.stem in line  # in the program that a child process is given
        assert itself or not re.match(r"(from|import) tests\b.*\b(test_|conftest)", line), path


# What modules hold


def test_app_web_holds_http_and_nothing_below_it_does() -> None:
    assert web_modules_without_http() == set()
    below = [name for name in app_modules() if package_of(name) not in ("web", "main", "cli")]
    assert [name for name in below if imports_from(name, HTTP_FRAMEWORKS)] == []


def test_only_data_knows_a_model_type() -> None:
    known = {name for name in table_names() if computation_of(name).is_known}
    named = {
        (name, node.value)
        for name, tree in app_modules().items()
        if name != "app.sheets.replaced"  # keys of models aren't types
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in known
    }
    of_examples = {("app.models.recognition", name) for name in FAMOUS}
    assert {each for each in named if each[0] != "app.checkpoints.rules"} == of_examples


def test_only_its_module_knows_a_topic() -> None:
    keys = {key for key in TOPICS if "-" in key}
    named = {
        (name, node.value)
        for name, tree in app_modules().items()
        if not name.startswith("app.topics.")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in keys
    }
    assert named == {
        ("app.figures.glossary_drawings", "cross-attention"),  # the term of the glossary
        ("app.cli.models", "cross-attention"),  # in a table of the terminal
        ("app.practice.lessons", "first-steps"),  # the worksheet of that key
        ("app.practice.catalogue", "first-steps"),  # likewise
    }


# Rows of a single topic whose keys are also ordinary words or names of other things.
WORDS = {
    "cache", "causal", "chosen", "classifier", "gate", "hidden", "latent", "latent_queries", "mask", "padding",
    "patches", "positions", "residual", "scaled", "sound", "token", "up", "where", "why", "width",
}  # fmt: skip


def test_only_its_module_knows_a_row_of_a_topic() -> None:
    """Rows that several topics have, such as queries, are words of the subject; so are the parts of a model."""
    topics = Counter(key for topic in TOPICS.values() for key in topic.rows | tensors_of(topic))
    own = {key for key, count in topics.items() if count == 1} - WORDS - {*get_args(Row)}
    known = set[tuple[str, str]]()
    for name, tree in app_modules().items():
        if not name.startswith("app.topics."):
            strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
            known |= {(name, row) for row in own & strings}
    assert known == set()


def tensors_of(topic: Topic) -> set[str]:
    return {tensor.key for table in topic.tables for tensor in table.tensors}


def test_no_two_public_classes_share_a_name() -> None:
    assert duplicates(public_classes()) == set()


def test_no_public_constant_is_defined_twice() -> None:
    assert duplicates(public_constants()) == {"TOPIC"}


# Rules and pages


def rules() -> list[str]:
    """Every module of the packages of rules and queries that decide anything."""
    decisions = ast.If | ast.IfExp | ast.While | ast.Match | ast.Try | ast.BoolOp
    packages = ("activities", "classes", "practice", "store")
    return [
        name
        for name, tree in app_modules().items()
        if package_of(name) in packages and any(isinstance(node, decisions) for node in ast.walk(tree))
    ]


def test_a_rule_has_a_test_of_its_name() -> None:
    split = [module.split(".") for module in rules()]
    tests = [PROJECT / "tests" / Path(*folders) / f"test_{name}.py" for _app, *folders, name in split]
    assert [test for test in tests if not test.exists()] == []


def rooms() -> set[tuple[str, str]]:
    """Addresses with their folder or module in the table of ARCHITECTURE.md, such as "/sheet" and "practice"."""
    table = (PROJECT / "ARCHITECTURE.md").read_text().partition("## Where is the page?")[2].partition("## Words")[0]
    rows = re.findall(r"^\| ([^|]+) \| `([a-z_]+)(?:/|\.py)` \|", table, re.MULTILINE)
    return {
        (re.sub(r"/[A-Z]+\b", "/*", address), folder) for row, folder in rows for address in re.findall("`(.+?)`", row)
    }


def test_a_page_lies_where_its_address_suggests() -> None:
    places, used = rooms(), set[tuple[str, str]]()
    for route in (route for router in find_routers() for route in router.routes if isinstance(route, Route)):
        address = re.sub(r"{.*?}", "*", route.path)
        # The row of the longest beginning, up to a slash or a dot.
        beginnings = [address[: end.start()] for end in re.finditer("(?<=.)(?:[/.]|$)", address)]
        nearest = max({place for place, _ in places}.intersection(beginnings), key=len)
        used.add((nearest, route.endpoint.__module__.split(".")[2]))
    assert used == places


def test_the_architecture_names_no_missing_file() -> None:
    text = (PROJECT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`((?:app|templates|tests|docs)/[a-z0-9_/]+(?:\.[a-z]+|/))`", text)
    assert [name for name in named if not (PROJECT / name).exists()] == []


def test_every_template_is_used() -> None:
    folder = PROJECT / "templates"
    texts = [path.read_text() for path in (*folder.rglob("*.html"), *(PROJECT / "app").rglob("*.py"))]
    named = {name for text in texts for name in re.findall(r'"([a-z_]+/[a-z_]+\.html)"', text)}
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.html")} == named
