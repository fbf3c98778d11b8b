"""A sheet's sentences and row names with links to the glossary, each term linked once.

>>> from pprint import pprint
>>> token = GlossaryEntry(term="Token", text="A piece of text. It is a unit.", elsewhere=(), words=("tokens",))
>>> pprint(link_terms({"token": token}, ("Tokens come in.", "100 tokens.")), width=100)
((LinkedText(text='Tokens', term='token'), LinkedText(text=' come in.', term='')),
 (LinkedText(text='100 tokens.', term=''),))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from app.sheets import prose
from app.sheets.variant import Variant
from app.sheets.wording import GlossaryEntry
from app.translation import gettext as _
from app.web.shared.cookies import current_page_request
from app.web.shared.urls import url_for


@dataclass(frozen=True)
class LinkedText:
    """A piece of a sentence, with the key of the glossary term that it links to, or ""."""

    text: str
    term: str = ""


@dataclass(frozen=True)
class LinkedSheet:
    """A sheet's texts as HTML with links to the glossary: description, asides, task, how, assumptions, names by row."""

    description: Markup
    asides: Markup
    task: Markup
    how: Markup
    assumptions: tuple[Markup, ...]
    names: Mapping[str, Markup]


def linked_sheet(variant: Variant) -> LinkedSheet:
    """A sheet's description, asides, task, how, assumptions and row names (by key) as escaped HTML."""
    assumptions = prose.assumptions(variant)
    task = (prose.what_to_write(variant), prose.how_to_write(variant))
    sentences = (prose.description(variant), prose.asides(variant), *task, *assumptions)
    texts = (*sentences, *(row.name for row in variant.rows))
    if current_page_request().may_practise:
        linked = [
            _markup(pieces, tab_stop=index < len(sentences))
            for index, pieces in enumerate(link_terms(variant.wording.glossary, texts))
        ]
    else:
        linked = list(map(escape, texts))
    names = dict(zip((row.key for row in variant.rows), linked[len(sentences) :], strict=True))
    description, asides, what, how, *linked_assumptions = linked[: len(sentences)]
    return LinkedSheet(description, asides, what, how, tuple(linked_assumptions), names)


def _markup(pieces: Iterable[LinkedText], *, tab_stop: bool) -> Markup:
    link = Markup('<a class="term" href="{}#{}" tabindex="{}" target="_blank" rel="noopener" title="{}">{}</a>')
    page, title, order = url_for("show_glossary"), _("Glossary, in a new tab"), 0 if tab_stop else -1
    return Markup("").join(
        link.format(page, piece.term, order, title, piece.text) if piece.term else Markup("{}").format(piece.text)
        for piece in pieces
    )


def link_terms(glossary: Mapping[str, GlossaryEntry], texts: Sequence[str]) -> tuple[tuple[LinkedText, ...], ...]:
    """The texts in pieces; each term is linked at its first occurrence in all of them."""
    keys = {word.lower(): key for key, entry in glossary.items() for word in entry.words}
    pattern, linked = _pattern(tuple(keys)), set[str]()
    return tuple(tuple(_pieces(text, pattern, keys, linked)) for text in texts)


def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])", re.IGNORECASE)


def _pieces(text: str, pattern: re.Pattern[str], keys: Mapping[str, str], linked: set[str]) -> Iterator[LinkedText]:
    end = 0
    for match in pattern.finditer(text):
        key = keys[match.group().lower()]
        if key in linked:
            continue
        linked.add(key)
        if text[end : match.start()]:
            yield LinkedText(text[end : match.start()])
        yield LinkedText(match.group(), key)
        end = match.end()
    if text[end:]:
        yield LinkedText(text[end:])
