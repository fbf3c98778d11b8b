"""Everything that the interface says can be translated: marked in templates, extracted, and sound as a format."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Message

from app import translation
from app.settings import PROJECT
from app.translation import alternatives, gettext, ngettext
from app.web.shared.templating import template_environment
from tests.helpers.pseudo_language import extracted_messages
from tests.helpers.source_code import app_modules, written_name
from tests.helpers.template_text import TRANSLATION_CALLS, unmarked_texts

TEMPLATES = sorted(path.relative_to(PROJECT / "templates").as_posix() for path in PROJECT.glob("templates/**/*.html"))


def forms(message: Message) -> tuple[str, ...]:
    """The singular and, if there is one, the plural of a message."""
    return (message.id,) if isinstance(message.id, str) else tuple(map(str, message.id))


def test_every_sentence_of_a_template_is_marked() -> None:
    texts = {name: unmarked_texts((PROJECT / "templates" / name).read_text(encoding="utf-8")) for name in TEMPLATES}
    assert {name: found for name, found in texts.items() if found} == {}


# The app's errors whose sentence only its programmers read; every other one is shown somewhere.
INTERNAL_ERRORS = {
    "DividedBySumError", "ExpressionError", "CatalogueError", "RouteNameError", "BankError", "CodeError", "RuleError",
    "TableError",
}  # fmt: skip
TORCH_ERRORS = {"TensorError"}  # in the words of torch, which are English
# Packages whose modules have no texts for programs, such as classes of CSS, and so no phrase that stays in English.
SPOKEN = {"models", "shapes", "misconceptions", "sheets", "grading", "practice", "cli"}
PHRASE = re.compile(r"(?<![\w.-])[A-Za-z’]{2,}(?: [a-z’]{2,}){2,}(?![\w.-])")  # three words or more
FRAGMENT = re.compile(r"^ [a-z]{2,}(?: |$)|(?:^| )[a-z]{2,} $")  # words to be joined to others
NOT_SAID = {
    ", null ",  # in the language of the tables of families
    "if ",  # and of the tables of data/families
    " if ",
    "null ",
    "outside the layers",
    "query key value",  # names of modules in transformers
    "query key value dense",
}


def unmarked_constants(node: ast.AST) -> Iterator[str]:
    """The texts of at least three words in an expression that are in no translation call."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TRANSLATION_CALLS:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\S \S+ \S", node.value):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from unmarked_constants(child)


def test_every_refusal_is_marked() -> None:
    """The sentence of an error that people read is in a translation call, or in the wording of sheets."""
    nodes = [(module, node) for module, tree in app_modules().items() for node in ast.walk(tree)]
    errors = {node.name for _module, node in nodes if isinstance(node, ast.ClassDef) and node.name.endswith("Error")}
    shown = (errors | {"HTTPException"}) - INTERNAL_ERRORS - TORCH_ERRORS
    assert len(shown) > 20
    made = [(module, node) for module, node in nodes if isinstance(node, ast.Call) and written_name(node.func) in shown]
    assert len(made) > 150
    assert [(module, text) for module, error in made for text in unmarked_constants(error)] == []


def unmarked_phrases(tree: ast.AST) -> Iterator[str]:
    """The texts of a module that read as a phrase, or as a part of one, and are in no translation call."""
    for field in ast.iter_child_nodes(tree):
        called = written_name(field.func) if isinstance(field, ast.Call) else ""
        not_said = {"ValueError", "KeyError", "PydanticCustomError", "log.error", "log.exception", "log.warning"}
        if called in TRANSLATION_CALLS | INTERNAL_ERRORS | not_said:
            continue
        if isinstance(field, ast.Expr) and isinstance(field.value, ast.Constant):
            continue
        if isinstance(field, ast.Constant) and isinstance(field.value, str) and field.value not in NOT_SAID:
            yield from [field.value] if PHRASE.search(field.value) or FRAGMENT.search(field.value) else []
        yield from unmarked_phrases(field)


def test_no_phrase_is_put_together_in_english() -> None:
    spoken = {m: tree for m, tree in app_modules().items() if m.split(".")[1:2] and m.split(".")[1] in SPOKEN}
    spoken |= {name: app_modules()[name] for name in ("app.figures.words", "app.figures.steps")}
    del spoken["app.misconceptions.catalogue"]  # it tells developers about mistakes in its files
    assert len(spoken) > 50
    assert {module: found for module, tree in spoken.items() if (found := [*unmarked_phrases(tree)])} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""A module with some words."""', []),
        ('x = Field(description="a list of texts")', ["a list of texts"]),
        ('x = f"{a} is not counted here: {b} is."', [" is not counted here: "]),
        ('x = " and ".join(y)', [" and "]),
        ('x = f"{a} has {b}"', [" has "]),
        ('x = _("a list of texts")', []),
        ('x = tensor("queries keys", "n h -> n h")', []),
    ],
)
def test_what_counts_as_a_phrase(source: str, found: list[str]) -> None:
    assert [*unmarked_phrases(ast.parse(source))] == found


def test_the_translation_call_is_not_overwritten() -> None:
    functions = [
        (module, function)
        for module, tree in app_modules().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for module, function in functions:
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == "_"]
        stored = [name for name in names if isinstance(name.ctx, ast.Store) and id(name) not in _loops(function)]
        called = {id(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
        assert not (stored and any(id(name) in called for name in names)), (module, function.name)


def test_nothing_is_translated_when_a_module_is_loaded() -> None:
    def loaded(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child
                yield from loaded(child)

    calls = [(m, node) for m, tree in app_modules().items() for node in loaded(tree) if isinstance(node, ast.Call)]
    assert [(m, ast.unparse(call)) for m, call in calls if written_name(call.func) in TRANSLATION_CALLS - {"N_"}] == []


def _loops(function: ast.AST) -> set[int]:
    targets = [node.target for node in ast.walk(function) if isinstance(node, ast.comprehension)]
    return {id(name) for target in targets for name in ast.walk(target)}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>{{ _('Right') }}</p>", []),
        ("<p>Right</p>", ["Right"]),
        ("<p>{% trans %}Right{% endtrans %} · <b>Wrong</b></p>", ["Wrong"]),
        ("<p title='Right' class='right'>{{ mark }}</p>", ["Right"]),
        ("<input type='submit' value='Check'><input value='Check'>", ["Check"]),
        ("<p>{{ 'right' if mark == 'wrong' else _('Wrong') }}</p>", ["right"]),
        ("<p class=\"{{ 'right' if mark else 'wrong' }}\">{{ url_for('show_sheet') }}</p>", []),
        ("<code>pip install</code> <span translate='no'>Attention</span> <i>d</i> &nbsp;&times; 3", []),
        ("{% set name = 'Right' %}{% set kind = 'right' %}{{ name }}{{ link('Courses', kind) }}", ["Courses", "Right"]),
        ("{% if x %}<p class='a'>{% else %}<p>{% endif %}Right</p>", ["Right"]),
    ],
)
def test_what_counts_as_unmarked(source: str, found: list[str]) -> None:
    """Text and the attributes that people read; not classes, addresses, code or symbols."""
    assert unmarked_texts(source) == found


def test_messages_are_sound_formats() -> None:
    """Templates fill %(name)s and write a per cent sign as %%; Python fills {name}."""
    assert len(extracted_messages()) > 1000
    for message in extracted_messages():
        for form in forms(message) if message.id else ():
            assert form.strip() == form, message.locations
            if any(Path(file).parts[0] == "templates" for file, _ in message.locations):
                form % _AnyName()  # raises if a per cent sign is isolated or has no name
            else:
                names = [name for _, name, _, _ in Formatter().parse(form) if name is not None]
                assert all(name.isidentifier() for name in names), (form, message.locations)


class _AnyName(dict[str, int]):
    """A value for every name."""

    def __missing__(self, key: str) -> int:
        return 1


def test_no_list_is_joined_in_english() -> None:
    conjunctions = {
        (module, node.value)
        for module, tree in app_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r",? (or|and) ", node.value)
    }
    assert conjunctions == set()


def test_alternatives_are_joined_by_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [alternatives(["d", "V", "H"][:count]) for count in range(4)] == ["", "d", "d or V", "d or V or H"]
    monkeypatch.setattr(translation, "gettext", {"{first} or {second}": "{second}なり{first}"}.__getitem__)
    assert alternatives(["d", "V"]) == "Vなりd"


def test_a_message_without_translation_is_said_in_english() -> None:
    assert gettext("No such sheet.") == "No such sheet."
    assert [ngettext("{count} byte", "{count} bytes", number) for number in (0, 1, 2)] == [
        "{count} bytes",
        "{count} byte",
        "{count} bytes",
    ]


def test_templates_escape_what_fills_a_message() -> None:
    template = template_environment().from_string("{% trans name='<i>' %}<b>{{ name }}</b>{% endtrans %}")
    assert template.render() == "<b>&lt;i&gt;</b>"
