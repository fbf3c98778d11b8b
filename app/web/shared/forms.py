"""Reading a form: texts cleaned and cut to storable lengths, whole numbers, and one uploaded file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile

from app.names import JOINERS, LOOKED_AT, clean_line
from app.web.shared.request_guard import MAX_BODY

MAX_LINE, MAX_TEXT = 200, 4000  # characters
MAX_CLAMPED = 999  # larger numbers in an address are ignored
PAGE_LENGTH = 100  # lines of a long list on one page

Line = TypeVar("Line")  # anything in a list


class FormReader:
    """The fields of a sent form, and the content of its file, if any.

    Every reader cuts a field to `longest` characters; none refuses a longer one.
    """

    def __init__(self, form: FormData, file: bytes = b"", file_name: str = "") -> None:
        self._form, self.file, self.file_name = form, file, file_name

    def single_line(self, name: str, longest: int = MAX_LINE) -> str:
        """A field as `clean_line` keeps it, or "" if it wasn't sent."""
        return clean_line(self.raw(name, LOOKED_AT * longest), longest)

    def multi_line(self, name: str, longest: int = MAX_TEXT) -> str:
        """A field as `typed_lines` gives it, stripped."""
        return self.typed_lines(name, longest).strip()

    def typed_lines(self, name: str, longest: int) -> str:
        """A field as `clean_lines` keeps it, not stripped, for text that may still be edited."""
        return clean_lines(self.raw(name, LOOKED_AT * longest), longest)

    def raw(self, name: str, longest: int = MAX_LINE) -> str:
        """A field as sent, such as a password or a box's text; "" if it wasn't sent."""
        return self.optional(name, longest) or ""

    def optional(self, name: str, longest: int = MAX_LINE) -> str | None:
        """A field as `raw` gives it, or None if it wasn't sent."""
        value = self._form.get(name)
        return _storable(value, longest) if isinstance(value, str) else None

    def texts(self) -> dict[str, str]:
        """Every text field by name, as `raw` gives it, cut to MAX_TEXT."""
        return {name: text for name in self.names("") if (text := self.optional(name, MAX_TEXT)) is not None}

    def all(self, name: str, longest: int = MAX_TEXT) -> tuple[str, ...]:
        """Every value of a repeatable field, such as ticked boxes, as `raw` gives it."""
        return tuple(_storable(value, longest) for value in self._form.getlist(name) if isinstance(value, str))

    def names(self, prefix: str) -> tuple[str, ...]:
        """The distinct names of the fields with a prefix, in the order they were sent."""
        return tuple(dict.fromkeys(n for n in self._form if n.startswith(prefix) and len(n) <= MAX_LINE))


def _storable(text: str, longest: int) -> str:
    return text[:longest].encode(errors="replace").decode()


async def read_form(request: Request) -> FormReader:
    """A request's form, with name and content of its first named file."""
    async with request.form(max_fields=2000, max_part_size=MAX_BODY) as form:
        upload = next((value for value in form.values() if isinstance(value, UploadFile) and value.filename), None)
        return FormReader(form, await upload.read(), upload.filename or "") if upload else FormReader(form)


FormDep = Annotated[FormReader, Depends(read_form)]


def clean_lines(text: str, longest: int) -> str:
    r"""A text of several lines: line breaks as \n, tabs as spaces, cut to a length.

    Example:
        clean_lines("one\r\ntwo\t2", 100)   "one\ntwo 2"
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
    return "".join(char for char in lines if char.isprintable() or char in f"\n{JOINERS}")[:longest]


def whole_number(text: str, highest: int, *, lowest: int = 0) -> int | None:
    """The number written in ASCII digits, from `lowest` to `highest` inclusive; None for anything else.

    Example:
        whole_number("12", 99)    12
        whole_number("120", 99)   None
        whole_number("012", 99)   None
        whole_number("+1", 99)    None
    """
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(highest))):
        return None
    number = int(text)
    return number if lowest <= number <= highest else None


def clamped_number(text: str, highest: int) -> int:
    """The number from 1 to `highest` nearest to the whole number in a text; 0 if `highest` is 0.

    Example:
        clamped_number("7", 3)    3
        clamped_number("x", 3)    1
        clamped_number("1", 0)    0
    """
    number = whole_number(text, MAX_CLAMPED)
    return min(max(1 if number is None else number, 1), highest)


@dataclass(frozen=True)
class Pager:
    """Which page of a long list is shown, and of how many: lines `first` to `last` of `total`, from 1."""

    number: int  # from 1; 0 for an empty list
    pages: int
    total: int
    length: int = PAGE_LENGTH

    @property
    def first(self) -> int:
        return (self.number - 1) * self.length + 1 if self.number else 0

    @property
    def last(self) -> int:
        return min(self.number * self.length, self.total)

    @property
    def previous(self) -> int | None:
        return self.number - 1 if self.number > 1 else None

    @property
    def next(self) -> int | None:
        return self.number + 1 if self.number < self.pages else None


def cut_page(lines: Sequence[Line], page: str, length: int | None = None) -> tuple[tuple[Line, ...], Pager]:
    """The lines of one page of at most `length`, and which page it is, by `clamped_number` for `page`.

    Example: cut_page(range(250), "3") gives the lines 200 to 249 and Pager(3, 3, 250).
    """
    length = length or PAGE_LENGTH
    pages = -(-len(lines) // length)
    pager = Pager(clamped_number(page, pages), pages, len(lines), length)
    return tuple(lines[max(pager.first - 1, 0) : pager.last]), pager
