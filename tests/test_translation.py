"""Everything that the interface says can be translated: marked in templates, extracted, and sound as a format."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po

from app.settings import PROJECT
from app.translation import gettext, ngettext
from app.web.shared.templating import template_environment
from tests.helpers.source_code import app_modules
from tests.helpers.template_text import TRANSLATION_CALLS, unmarked_texts

TEMPLATES = sorted(path.relative_to(PROJECT / "templates").as_posix() for path in PROJECT.glob("templates/**/*.html"))


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """Every sentence to translate, extracted as `make messages` does."""
    target = tmp_path_factory.mktemp("messages") / "attention_shapes.pot"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT)
        arguments = ["pybabel", "--quiet", "extract", "-F", "pyproject.toml", "-o", str(target), "."]
        CommandLineInterface().run(arguments)  # type: ignore[no-untyped-call]
    with target.open("rb") as file:
        return read_po(file)


def forms(message: Message) -> tuple[str, ...]:
    """The singular and, if there is one, the plural of a message."""
    return (message.id,) if isinstance(message.id, str) else tuple(map(str, message.id))


def test_every_sentence_of_a_template_is_marked() -> None:
    """No visible text and no title, label or placeholder stands outside a translation call."""
    texts = {name: unmarked_texts((PROJECT / "templates" / name).read_text(encoding="utf-8")) for name in TEMPLATES}
    assert {name: found for name, found in texts.items() if found} == {}


# Errors whose sentence somebody reads, on a page, in the terminal or from the API.
SHOWN_ERRORS = {"WorksheetError", "TokensError", "TopicError", "ConfigError", "AnswersError", "SeedError",
                "HandoutError", "RosterError", "HubError", "ForwardError", "InputError", "HTTPException"}  # fmt: skip


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
    raised = [
        (module, node.exc)
        for module, tree in app_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    ]
    shown = [(module, error) for module, error in raised if ast.unparse(error.func) in SHOWN_ERRORS]
    assert len(shown) > 50
    assert [(module, text) for module, error in shown for text in unmarked_constants(error)] == []


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


def test_messages_are_sound_formats(catalogue: Catalog) -> None:
    """Templates fill %(name)s and write a per cent sign as %%; Python fills {name}. Placeholders always have names."""
    assert len(catalogue) > 0
    for message in catalogue:
        for form in forms(message) if message.id else ():
            assert form.strip() == form, message.locations
            if any(Path(file).parts[0] == "templates" for file, _ in message.locations):
                form % _AnyName()  # raises where a per cent sign is alone or has no name
            else:
                names = [name for _, name, _, _ in Formatter().parse(form) if name is not None]
                assert all(name.isidentifier() for name in names), (form, message.locations)


class _AnyName(dict[str, int]):
    """A value for every name."""

    def __missing__(self, key: str) -> int:
        return 1


def test_a_message_without_translation_is_said_in_english() -> None:
    """The number chooses the form."""
    assert gettext("No such sheet.") == "No such sheet."
    assert [ngettext("{count} byte", "{count} bytes", number) for number in (0, 1, 2)] == [
        "{count} bytes",
        "{count} byte",
        "{count} bytes",
    ]


def test_templates_escape_what_fills_a_message() -> None:
    """A message may hold HTML, a name that somebody typed may not."""
    template = template_environment().from_string("{% trans name='<i>' %}<b>{{ name }}</b>{% endtrans %}")
    assert template.render() == "<b>&lt;i&gt;</b>"
