"""What a form says, cut to lengths that can be kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile

LONGEST_LINE, LONGEST_TEXT = 200, 4000


class Fields:
    """The texts of a form, and the one file that may come along."""

    def __init__(self, form: FormData, file: bytes = b"") -> None:
        self._form, self.file = form, file

    def line(self, name: str, longest: int = LONGEST_LINE) -> str:
        """One line of characters that can be shown."""
        return "".join(char for char in " ".join(self.raw(name).split()) if char.isprintable())[:longest].strip()

    def text(self, name: str, longest: int = LONGEST_TEXT) -> str:
        """Lines of characters that can be shown."""
        lines = self.raw(name).replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
        return "".join(char for char in lines if char == "\n" or char.isprintable())[:longest].strip()

    def raw(self, name: str) -> str:
        """As it was sent, such as a password or what stands in a box; half characters become question marks."""
        value = self._form.get(name)
        return value.encode(errors="replace").decode() if isinstance(value, str) else ""

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field that may be chosen more than once."""
        return tuple(value for value in self._form.getlist(name) if isinstance(value, str))


async def fields_of(request: Request) -> Fields:
    """The form that was sent."""
    async with request.form(max_fields=2000) as form:
        upload = next((value for value in form.values() if isinstance(value, UploadFile) and value.filename), None)
        return Fields(form, await upload.read() if upload else b"")


Sent = Annotated[Fields, Depends(fields_of)]
