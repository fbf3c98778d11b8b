"""A language for tests: each message of the interface in ⟦brackets⟧, and each sentence of a sheet in ‹others›."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.frontend import CommandLineInterface
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from app import translation
from app.settings import PROJECT
from app.sheets.exit_tickets import Ticket, ticket_of_settings
from app.sheets.library import Library
from app.sheets.wording import Wording
from tests.helpers.template_text import READ_ATTRIBUTES, UNTRANSLATED_ELEMENTS, VOID_ELEMENTS

PSEUDO = "xx"
ASKED = {"Accept-Language": PSEUDO}
SYMBOLIC = UNTRANSLATED_ELEMENTS | {"sub"}  # a symbol's subscript
BRACKETS = {"⟦": 1, "⟧": -1, "‹": 1, "›": -1}


@cache
def extracted_messages() -> Catalog:
    """Every message to translate, extracted as `make messages` does."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT)
        target = Path(folder) / "messages.pot"
        arguments = ["pybabel", "--quiet", "extract", "-F", "pyproject.toml", "-o", str(target), "."]
        CommandLineInterface().run(arguments)  # type: ignore[no-untyped-call]
        with target.open("rb") as file:
            return read_po(file)


@contextmanager
def pseudo_language(folder: Path) -> Iterator[None]:
    """Give the app the language PSEUDO besides English, with its catalogue in the folder."""
    bracketed = Catalog(PSEUDO, fuzzy=False)
    for message in extracted_messages():
        if message.id:
            forms = (message.id,) if isinstance(message.id, str) else message.id
            texts = tuple(f"⟦{form}⟧" for form in forms)
            bracketed.add(message.id, texts if len(texts) > 1 else texts[0])
    file = folder / PSEUDO / "LC_MESSAGES" / f"{translation.DOMAIN}.mo"
    file.parent.mkdir(parents=True)
    with file.open("wb") as opened:
        write_mo(opened, bracketed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translation, "LOCALES", folder)
        translation.catalogues_by_language.cache_clear()
        yield
    translation.catalogues_by_language.cache_clear()


def in_brackets(library: Library) -> Library:
    """A library with sheets in PSEUDO: the wording, worksheet titles, and model names."""
    wording = Wording.model_validate(_bracketed(library.wording.model_dump(by_alias=True)))
    sheets = {key: replace(sheet, title=_bracketed(sheet.title)) for key, sheet in library.worksheets.items()}
    models = {
        key: replace(model, name=_bracketed(model.name), about=_bracketed(model.about))
        for key, model in library.models.items()
    }
    return Library(sheets, models, wording)


def tickets_in_brackets(tickets: Mapping[str, Ticket]) -> dict[str, Ticket]:
    """Exit tickets in PSEUDO."""
    return {key: ticket_of_settings(key, _bracketed(ticket.settings)) for key, ticket in tickets.items()}


def _bracketed(words: Any) -> Any:
    if isinstance(words, Mapping):
        stays = {name for name in ("letter", "size", "key", "kind") if " " not in str(words.get(name, " "))}
        stays |= {"when", "states", "aside"} if "text" in words else set()
        return {name: each if name in stays else _bracketed(each) for name, each in words.items()}
    if isinstance(words, list | tuple) and all(isinstance(each, Mapping) for each in words):
        return [_bracketed(each) for each in words]
    return f"‹{words}›" if isinstance(words, str) and words else words


def english_words(page: str) -> list[str]:
    """The words on a page in PSEUDO outside all brackets; codes in capital letters don't count."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    text = " ".join(map(_outside, ("".join(reader.texts), *reader.attributes)))
    in_sentences = re.findall(r"(?<![._])\b[^\W\d_]{3,}(?!\w*=)", text)  # not Q_head, .view() or dim=-1 in code
    return [word for word in in_sentences if not word.isupper()]


def _outside(text: str) -> str:
    depth, kept = 0, list[str]()
    for char in text:
        depth += BRACKETS.get(char, 0)
        if depth == 0:
            kept.append(" " if char in BRACKETS else char)
    return "".join(kept)


class _Reader(HTMLParser):
    """The text of a page, and each attribute that people read, without code and what is the same in every language."""

    def __init__(self) -> None:
        super().__init__()
        self.texts, self.attributes = list[str](), list[str]()
        self._skipped = list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        is_symbolic = tag in SYMBOLIC or values.get("class") == "sub" or values.get("translate") == "no"
        if self._skipped or (is_symbolic and tag not in VOID_ELEMENTS):
            self._skipped += [tag] if tag not in VOID_ELEMENTS else []
            return
        self.attributes += [value or "" for name, value in attrs if name in READ_ATTRIBUTES]
        if tag == "input" and values.get("type") in ("submit", "button"):
            self.attributes.append(values.get("value") or "")
        self.texts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and tag == self._skipped[-1]:
            self._skipped.pop()

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.texts.append(data)
