"""Finds visible words of a template that aren't in a translation call: in text, attributes and expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from jinja2 import nodes

from app.web.shared.templating import template_environment

TRANSLATION_CALLS = {"_", "N_", "gettext", "ngettext"}
READ_ATTRIBUTES = {"title", "alt", "placeholder", "label", "aria-label", "aria-description", "hx-confirm"}
UNTRANSLATED_ELEMENTS = {"script", "style", "code", "kbd", "var"}  # and every element with translate="no"
VOID_ELEMENTS = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
WORD = re.compile(r"[^\W\d_]{2,}")
SENTENCE = re.compile(r"[A-Z]\w|\w+ \w+")
ENTITY = re.compile(r"&#?\w+;")


def unmarked_texts(source: str) -> list[str]:
    """What readers of a template see without a translation call, in order."""
    flat = _Flat()
    flat.add(template_environment().parse(source))
    reader = _Reader(flat.expressions)
    reader.feed("".join(flat.html))
    reader.close()
    return reader.found + [text for node in flat.named_values for text in _constants(node) if SENTENCE.search(text)]


class _Flat:
    """A template as one HTML text, all branches one after another, each expression a numbered placeholder."""

    def __init__(self) -> None:
        self.html: list[str] = []
        self.expressions: list[nodes.Expr] = []
        self.named_values: list[nodes.Node] = []  # from {% set %}, {% call %} and {% with %}

    def add(self, node: nodes.Node) -> None:
        """Add a node with everything in it."""
        if isinstance(node, nodes.TemplateData):
            self.html.append(node.data)
        elif isinstance(node, nodes.Expr):
            self.html.append(f"\ue000{len(self.expressions)}\ue001")
            self.expressions.append(node)
        else:
            self.named_values += [getattr(node, "node", None) or node] if isinstance(node, nodes.Assign) else []
            self.named_values += [node.call] if isinstance(node, nodes.CallBlock) else []
            self.named_values += node.values if isinstance(node, nodes.With) else []
            shown = node.iter_child_nodes()
            for child in shown:
                if isinstance(node, nodes.Output) or not isinstance(child, nodes.Expr):
                    self.add(child)


class _Reader(HTMLParser):
    """Reads the HTML of a _Flat and collects visible, untranslated text."""

    def __init__(self, expressions: list[nodes.Expr]) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[str] = []
        self._expressions = expressions
        self._open: list[tuple[str, bool]] = []  # elements, and whether their text is left as it is

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        kept = tag in UNTRANSLATED_ELEMENTS or given.get("translate") == "no" or self._is_kept()
        for name, value in given.items():
            is_button = name == "value" and tag == "input" and given.get("type") in ("submit", "button", "reset")
            is_description = name == "content" and given.get("name") == "description"
            is_sentence = name.startswith("data-") and re.search(r"[a-z] [a-z]", value)
            if not kept and (name in READ_ATTRIBUTES or is_button or is_description or is_sentence):
                self._read(value)
        if tag not in VOID_ELEMENTS:
            self._open.append((tag, kept))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        tags = [name for name, _ in self._open]
        if tag in tags:
            del self._open[len(tags) - 1 - tags[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        if not self._is_kept():
            self._read(data)

    def _is_kept(self) -> bool:
        return any(kept for _, kept in self._open)

    def _read(self, text: str) -> None:
        plain = re.sub(r"\ue000\d+\ue001", " ", text)
        if WORD.search(ENTITY.sub("", plain)):
            self.found.append(" ".join(plain.split()))
        for number in re.findall(r"\ue000(\d+)\ue001", text):
            self.found += [text for text in _constants(self._expressions[int(number)]) if WORD.search(text)]


def _constants(node: nodes.Node | None) -> Iterator[str]:
    match node:
        case nodes.Const(value=str(value)) | nodes.TemplateData(data=value):
            yield value
        case nodes.Call(node=nodes.Name(name=name)) if name in TRANSLATION_CALLS:
            return
        case nodes.Call(node=function, args=args):  # a macro may show its arguments; url_for("show_sheet") doesn't
            if isinstance(function, nodes.Getattr):
                yield from _constants(function.node)
            yield from (text for argument in args for text in _constants(argument) if SENTENCE.search(text))
        case nodes.CondExpr(expr1=first, expr2=second):
            yield from (text for branch in (first, second) for text in _constants(branch))
        case nodes.Filter(node=inner, name=name, args=args):
            yield from _constants(inner)
            yield from (text for argument in args if name in ("default", "d") for text in _constants(argument))
        case nodes.Getitem(node=inner):
            yield from _constants(inner)
        case nodes.Dict(items=pairs):
            yield from (text for pair in pairs for text in _constants(pair.value))
        case nodes.List(items=items) | nodes.Tuple(items=items) | nodes.Concat(nodes=items):
            yield from (text for item in items for text in _constants(item))
        case nodes.BinExpr(left=left, right=right):  # a sum, or a choice
            yield from (text for side in (left, right) for text in _constants(side))
