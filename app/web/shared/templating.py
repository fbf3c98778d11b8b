"""Templates: the Jinja environment with its filters, and `render`, which turns a page object into a response."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, MutableMapping
from datetime import date, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from app.algebra.number_text import format_measured, format_number
from app.figures.heat_map import decimal
from app.figures.ruler import ruler_of
from app.figures.svg import escaped, figure_svg, svg_symbol
from app.settings import PROGRAM, PROJECT
from app.sheets import prose
from app.sheets.authoring.markdown import (
    FormulaNode,
    FormulaRoot,
    MarkdownBlock,
    MarkdownList,
    MarkdownSpan,
    read_markdown,
)
from app.sheets.code_text import code_shown
from app.sheets.prose import FormulaPiece
from app.sheets.worksheet import AUTHOR_MISCONCEPTION_PREFIX
from app.translation import N_, gettext, language, ngettext
from app.translation import gettext as _
from app.web.shared.cookies import current_page_request
from app.web.shared.glossary_links import linked_sheet
from app.web.shared.sheet_view import exhibit_link, first_mistakes, repair_opens_later, slide_links
from app.web.shared.static_files import static_url
from app.web.shared.urls import url_for

_MONTHS = (
    *(N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June")),
    *(N_("July"), N_("August"), N_("September"), N_("October"), N_("November"), N_("December")),
)


class _Templates(FileSystemLoader):
    """The templates, each compiled once: right after a start a class asks for one in dozens of threads at once."""

    def __init__(self) -> None:
        super().__init__(PROJECT / "templates")
        self._compiled, self._lock = dict[str, Template](), threading.Lock()

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002
    ) -> Template:
        """The template of that name, compiled on first use by one thread; later changes of the file are ignored."""
        with self._lock:
            if name not in self._compiled:
                self._compiled[name] = super().load(environment, name, globals)
            return self._compiled[name]


@cache
def template_environment() -> Environment:
    """The Jinja environment of every template, made once, with translation and the globals and filters below."""
    environment = Environment(
        loader=_Templates(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # checking the files for every page costs as much as a database query
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True  # line breaks in a template aren't part of a message
    environment.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]
    environment.globals.update(
        url_for=url_for,
        static_url=static_url,
        language=language,
        code_shown=code_shown,
        repair_opens_later=repair_opens_later,
        first_mistakes=first_mistakes,
        ruler_of=ruler_of,
        linked_sheet=linked_sheet,
        current_page_request=current_page_request,
        slide_links=slide_links,
        exhibit_link=exhibit_link,
        program=PROGRAM,
        prose=prose,
    )
    environment.filters.update(
        number=format_number,
        measured=format_measured,
        decimal=decimal,
        percent=percent,
        symbol=symbol,
        svg=lambda figure: Markup(figure_svg(figure)),  # noqa: S704 - it has escaped all
        svg_symbol=lambda text: Markup(svg_symbol(text)),  # noqa: S704
        expression=expression,
        formula=formula,
        markdown=markdown,
        explanation_of=explanation_of,
        local_time=local_time,
        clock_time=clock_time,
        long_date=long_date,
    )
    return environment


def render(template: str, *, status: int = 200, **names: Any) -> HTMLResponse:
    """The HTML of a template with these names, and `status`."""
    return HTMLResponse(render_text(template, status=status, **names), status_code=status)


def render_text(template: str, **names: Any) -> Markup:
    """A template as HTML text, to be put into another one."""
    return Markup(template_environment().get_template(template).render(names))  # noqa: S704 - it has escaped all


def render_page_or_fragment(
    request: Request, page_template: str, fragment_template: str, *, status: int = 200, **names: Any
) -> HTMLResponse:
    """The fragment for an htmx request, which inserts it into its page; otherwise the whole page."""
    response = render(fragment_template if is_htmx(request) else page_template, status=status, **names)
    response.headers.add_vary_header("HX-Request")
    return response


def is_htmx(request: Request) -> bool:
    """Whether a script on one of our pages sent the request."""
    return "hx-request" in request.headers


def local_time(moment: datetime, time_zone: str, *, year: bool = False) -> str:
    """A moment in an IANA time zone: '3 April, 09:05', or with `year` '3 April 2026, 09:05'."""
    local = moment.astimezone(ZoneInfo(time_zone))
    written = _("{day} {month} {year}, {time}") if year else _("{day} {month}, {time}")
    return written.format(day=local.day, month=_(_MONTHS[local.month - 1]), year=local.year, time=f"{local:%H:%M}")


def clock_time(moment: datetime, time_zone: str) -> str:
    """A moment's clock time in an IANA time zone: '09:05'."""
    return moment.astimezone(ZoneInfo(time_zone)).strftime("%H:%M")


def percent(share: float) -> str:
    """A share as a whole number of per cent, without a sign: '50' for 0.5."""
    return f"{100 * share:.0f}"


def long_date(day: date) -> str:
    """A day as written in a sentence: '3 April 2026'."""
    return _("{day} {month} {year}").format(day=day.day, month=_(_MONTHS[day.month - 1]), year=day.year)


def symbol(text: str) -> Markup:
    """A sum of products as mathematics: 'H·d_h + 1' becomes <i>H</i>·<i>d</i><sub>h</sub> + 1."""
    return Markup("").join(_symbol(piece) for piece in re.split(r"(·|/| \+ )", text))


def formula(pieces: Iterable[FormulaPiece]) -> Markup:
    """A formula as HTML: symbols in italics with subscripts, ᵀ as <sup>T</sup>, other text escaped."""
    return Markup("").join(
        _symbol(piece.text) if piece.is_symbol else escape(piece.text).replace("ᵀ", Markup("<sup>T</sup>"))
        for piece in pieces
    )


def expression(text: str, known: Collection[str] | None = None) -> Markup:
    """A text as HTML, escaped, with the symbols in it in italics with subscripts: 'L·(4·d·d + d_ff)'."""
    pieces = re.split(r"((?<![\w’])[A-Za-zθ][\w']*)", text)  # not the s of "model’s"
    written = (
        _symbol(piece) if known is None or piece.removesuffix("ᵀ") in known else escaped(piece) for piece in pieces
    )
    return Markup("".join(written))  # noqa: S704 - each piece is escaped


def markdown(text: str) -> Markup:
    """An author's Markdown as HTML, limited to what `read_markdown` knows."""
    return _blocks(read_markdown(text))


def explanation_of(text: str, misconception: str) -> Markup:
    """The explanation of a misconception as HTML: an author's is Markdown, ours is one paragraph."""
    if misconception.startswith(AUTHOR_MISCONCEPTION_PREFIX):
        return Markup('<div class="own-words">{}</div>').format(markdown(text))
    return Markup("<p>{}</p>").format(text)


def _blocks(blocks: Iterable[MarkdownBlock]) -> Markup:
    written = Markup("")
    for block in blocks:
        if isinstance(block, MarkdownList):
            items = Markup("").join(Markup("<li>{}</li>").format(_blocks(item)) for item in block.items)
            if block.start is None:
                written += Markup("<ul>{}</ul>").format(items)
            else:
                written += Markup('<ol start="{}">{}</ol>').format(block.start, items)
        else:
            written += Markup("<p>{}</p>").format(_spans(block.spans))
    return written


def _spans(spans: Iterable[MarkdownSpan]) -> Markup:
    written = Markup("")
    for span in spans:
        if span.formula:
            part = Markup('<span class="formula">{}</span>').format(_formula_nodes(span.formula))
        elif span.text == "\n":
            part = Markup("<br>")
        else:
            part = Markup("<code>{}</code>").format(span.text) if span.code else escape(span.text)
        part = Markup("<em>{}</em>").format(part) if span.emphasis else part
        written += Markup("<strong>{}</strong>").format(part) if span.strong else part
    return written


def _formula_nodes(nodes: Iterable[FormulaNode]) -> Markup:
    written = Markup("")
    for node in nodes:
        if isinstance(node, FormulaRoot):
            written += Markup('√<span class="root">{}</span>').format(_formula_nodes(node.under))
            continue
        written += Markup("<i>{}</i>").format(node.base) if node.is_letter else escape(node.base)
        written += Markup("<sub>{}</sub>").format(node.below) if node.below else Markup("")
        written += Markup("<sup>{}</sup>").format(node.above) if node.above else Markup("")
    return written


def _symbol(text: str) -> Markup:
    base, _underscore, below = text.removesuffix("ᵀ").partition("_")
    if not base.replace("'", "").isalpha():
        return escape(text)
    written = Markup("<i>{}</i>").format(base.replace("'", "′"))
    written += Markup("<sub>{}</sub>").format(below) if below else Markup("")
    return written + Markup("<sup>T</sup>") if text.endswith("ᵀ") else written
