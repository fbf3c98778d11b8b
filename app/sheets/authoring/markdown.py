"""What an author writes in Markdown: paragraphs, lists, emphasis and code, with formulas between dollar signs.

It is read once into values, which pages and paper set differently, so that an author's markup is never evaluated.
Headings, links, pictures and HTML aren't markup here: they stay as typed. A formula is written as on sheets:

    formula = { symbol | number | sign | "(" | ")" | "," | "sqrt(" formula ")" }
    symbol  = letters and digits, "_" with a subscript, "^" with a superscript: W_Q, d_model, K^T, x^{n+1}
    sign    = "+" | "-" | "×" | "·" | "*" | "/" | "=" | "≈" | "<" | ">" | "≤" | "≥"

>>> [(span.text, span.strong) for span in read_markdown("A **single** <b>head</b>")[0].spans]
[('A ', False), ('single', True), (' <b>head</b>', False)]
>>> read_formula_text("d/H = d_h")[-1]
FormulaSymbol(base='d', below='h', above='')
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from app.sheets.worksheet import WorksheetError
from app.translation import gettext as _

MAX_ROOTS = 10  # within each other
_SYMBOL = r"[A-Za-z\u0370-\u03ff][A-Za-z0-9\u0370-\u03ff]*[′']*"
_LOWERED, _RAISED = r"(?:\{[\w +−-]+\}|\w+)", r"(?:\{[\w +−-]+\}|[0-9]+|[A-Za-z]+|⊤)"
_TOKEN = re.compile(
    rf"(?P<root>sqrt\s*\()|(?P<base>{_SYMBOL}|\d+(?:[.,]\d+)*|\))(?:_(?P<below>{_LOWERED}))?"
    rf"(?:\^(?P<above>{_RAISED})|(?P<raised>[ᵀ²³]))?|(?P<sign>[+−×·*/=≈<>≤≥(,-])"
)
_FORMULA = re.compile(r"\$(?=[^\s$])([^$\n]*[^\s$\\])\$(?!\d)")
_RAISED_LETTERS = {"ᵀ": "T", "²": "2", "³": "3", "⊤": "T"}
_WRITTEN_SIGNS = {"*": "·", "-": "−"}
_SPACED_SIGNS = frozenset("+−×=≈<>≤≥")


@dataclass(frozen=True)
class FormulaSymbol:
    """A letter, word, number or sign of a formula, with its subscript (`below`) and superscript (`above`)."""

    base: str
    below: str = ""
    above: str = ""

    @property
    def is_letter(self) -> bool:
        """Whether it is a single letter, set in italics; words such as softmax aren't."""
        return len(self.base.rstrip("′")) == 1 and self.base[0].isalpha()


@dataclass(frozen=True)
class FormulaRoot:
    """A square root of the nodes `under` it."""

    under: tuple[FormulaNode, ...]


FormulaNode = FormulaSymbol | FormulaRoot


@dataclass(frozen=True)
class MarkdownSpan:
    r"""A run of text in one style, or a formula, whose text is its source; a line break is the text "\n"."""

    text: str
    strong: bool = False
    emphasis: bool = False
    code: bool = False
    formula: tuple[FormulaNode, ...] = ()


@dataclass(frozen=True)
class MarkdownParagraph:
    spans: tuple[MarkdownSpan, ...]


@dataclass(frozen=True)
class MarkdownList:
    """A list: the blocks of each item. `start` is the first number, None without numbers."""

    items: tuple[tuple[MarkdownBlock, ...], ...]
    start: int | None = None


MarkdownBlock = MarkdownParagraph | MarkdownList


@lru_cache(500)
def read_markdown(text: str) -> tuple[MarkdownBlock, ...]:
    """The blocks of a text; an unreadable formula stays as typed, including its dollar signs."""
    return tuple(_blocks(iter(_parser().parse(text))))


def check_markdown(text: str) -> None:
    """Raise WorksheetError for a text's first unreadable formula between dollar signs."""
    for token in _parser().parse(text):
        for child in token.children or ():
            if child.type == "formula":
                read_formula_text(child.content)


def read_formula_text(text: str) -> tuple[FormulaNode, ...]:
    """The nodes of a formula without dollar signs; raises WorksheetError for an unreadable one."""
    nodes, end = _read_nodes(text, 0, 0)
    if end < len(text):
        raise _unreadable(text)
    return nodes


def _read_nodes(text: str, position: int, roots: int) -> tuple[tuple[FormulaNode, ...], int]:
    nodes, depth = list[FormulaNode](), 0
    while position < len(text):
        if text[position] == " ":
            position += 1
            continue
        token = _TOKEN.match(text, position)
        if token is None or roots > MAX_ROOTS:
            raise _unreadable(text)
        if token["base"] == ")" and depth == 0:
            if roots and token[0] == ")":
                return tuple(nodes), position
            raise _unreadable(text)
        position = token.end()
        if token["root"]:
            under, end = _read_nodes(text, position, roots + 1)
            if end >= len(text) or not under:
                raise _unreadable(text)
            nodes.append(FormulaRoot(under))
            position = end + 1
            continue
        depth += (token["sign"] == "(") - (token["base"] == ")")
        nodes.append(_sign(token["sign"], nodes) if token["sign"] else _symbol(token))
    if depth:
        raise _unreadable(text)
    return tuple(nodes), position


def _symbol(token: re.Match[str]) -> FormulaSymbol:
    above = _RAISED_LETTERS.get(token["raised"] or token["above"] or "", token["above"] or "")
    return FormulaSymbol(token["base"].replace("'", "′"), (token["below"] or "").strip("{}"), above.strip("{}"))


def _sign(sign: str, before: Sequence[FormulaNode]) -> FormulaSymbol:
    sign = _WRITTEN_SIGNS.get(sign, sign)
    last = before[-1] if before else FormulaSymbol("(")
    negates = sign in "+−" and isinstance(last, FormulaSymbol) and last.base.strip() in {"(", ",", *_SPACED_SIGNS}
    if sign == ",":
        return FormulaSymbol(", ")
    return FormulaSymbol(f" {sign} " if sign in _SPACED_SIGNS and not negates else sign)


def _unreadable(text: str) -> WorksheetError:
    problem = _("${formula}$ cannot be read as a formula: use letters, digits, _ and ^, + − × · / = ( ) , and sqrt( ).")
    return WorksheetError(problem.format(formula=text[:60]))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("zero").enable(["emphasis", "list", "backticks", "escape", "newline"])
    parser.inline.ruler.before("escape", "formula", _formula_rule)
    return parser


def _formula_rule(state: StateInline, silent: bool) -> bool:
    formula = _FORMULA.match(state.src, state.pos)
    if formula is None:
        return False
    if not silent:
        state.push("formula", "", 0).content = formula[1]
    state.pos = formula.end()
    return True


def _blocks(tokens: Iterator[Token], closing: str = "") -> Iterator[MarkdownBlock]:
    for token in tokens:
        if token.type == closing:
            return
        if token.type == "inline":
            yield MarkdownParagraph(tuple(_spans(token.children or ())))
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            closes = token.type.replace("open", "close")
            start = int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None
            items = list[tuple[MarkdownBlock, ...]]()
            while next(tokens).type != closes:  # the token that opens an item
                items.append(tuple(_blocks(tokens, "list_item_close")))
            yield MarkdownList(tuple(items), start)


def _spans(tokens: Sequence[Token]) -> Iterator[MarkdownSpan]:
    style = MarkdownSpan("")
    for token in tokens:
        if token.type in ("strong_open", "strong_close"):
            style = replace(style, strong=token.nesting > 0)
        elif token.type in ("em_open", "em_close"):
            style = replace(style, emphasis=token.nesting > 0)
        elif token.type == "formula":
            yield _formula_span(token.content, style)
        else:
            text = {"softbreak": " ", "hardbreak": "\n"}.get(token.type, token.content)
            if text:
                yield replace(style, text=text, code=token.type == "code_inline")


def _formula_span(text: str, style: MarkdownSpan) -> MarkdownSpan:
    try:
        return replace(style, text=text, formula=read_formula_text(text))
    except WorksheetError:
        return replace(style, text=f"${text}$")
