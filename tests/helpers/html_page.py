"""A page as a test reads it: its elements, boxes and marks, parsed from HTML."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """The elements of a page in document order: each one's tag, attributes and inner text, in pieces."""

    VOID = frozenset({"meta", "link", "input", "img", "br", "rect", "path", "line"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = (tag, {name: value or "" for name, value in attrs}, list[str]())
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}, []))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, _, texts in self._open:
            texts.append(data)

    def find(self, tag: str, **attributes: str) -> list[tuple[dict[str, str], str]]:
        """Every element of a tag with these attributes: its attributes, and all its text with single spaces."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            (attrs, " ".join("".join(texts).split()))
            for name, attrs, texts in self.elements
            if name == tag and all(value in attrs.get(key, "").split() for key, value in wanted.items())
        ]

    def text(self, tag: str, **attributes: str) -> str:
        """The text of the first such element; fails if there is none."""
        return self.find(tag, **attributes)[0][1]

    def boxes(self) -> dict[str, str]:
        """The text in each box of a sheet, by the blank's name, such as "queries.rows"."""
        return {attrs["name"]: attrs["value"] for attrs, _ in self.find("input") if "data-blank" in attrs}

    def marks(self) -> dict[str, str]:
        """The kind of mark of each marked blank, by the blank's name."""
        marks = {
            attrs["id"].removeprefix("says-"): attrs["data-mark"] for attrs, _ in self.find("p") if "data-mark" in attrs
        }
        return {blank: kind for blank, kind in marks.items() if kind}


def kept_in(text: str) -> Any:
    """What a page, or the answer to a save, tells its script about the server's state."""
    return json.loads(Page(text).find("data", class_="kept")[0][0]["value"])


def text_of(page: str) -> str:
    """The words of a page or a part of it, without tags and with single spaces; entities stay as written."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())
