"""A form as a browser would send it: every field of a page's form with its value."""

from __future__ import annotations

from html.parser import HTMLParser


class SentForm(HTMLParser):
    """The fields of all forms of a page, by name, each with its values in order, without buttons and files."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self._menu = self._area = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        name, kind = known.get("name", ""), known.get("type", "")
        if tag == "input" and name and kind != "file" and "data-blank" not in known:
            if kind not in ("checkbox", "radio") or "checked" in known:
                self._add(name, known.get("value", ""))
        elif tag == "select":
            self._menu = name
        elif tag == "option" and self._menu and "selected" in known:
            self._add(self._menu, known.get("value", ""))
        elif tag == "textarea" and name and "data-question" not in known:
            self._area = name
            self._add(name, "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._menu = ""
        if tag == "textarea" and self._area:
            self.values[self._area][-1] = self.values[self._area][-1].removeprefix("\n")
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area][-1] += data

    def _add(self, name: str, value: str) -> None:
        self.values.setdefault(name, []).append(value)
