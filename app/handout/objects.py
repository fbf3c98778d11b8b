"""Objects of a PDF file: cut out of one as Typst writes it, and packed into a small one.

Nothing of an object is understood but the references in it, `12 0 R`; what stands in a text or a stream is none.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Callable
from itertools import pairwise

HEAD = b"%PDF-1.7\n%\x80\x80\x80\x80\n"
PACK = 200  # objects that are pressed together: more are smaller, but a reader opens all of them for one
ROW = 20  # bytes of one line in the table of a file's objects
_PARENTHESES = re.compile(rb"\\.|[()]", re.DOTALL)
_NESTED = re.compile(rb"\([^)\\]*[(\\]")  # or likely so
_TABLE = re.compile(rb"startxref\s+(\d+)\s+%%EOF\s*\Z")
_BODY = re.compile(rb"\A(\d+) 0 obj\s(.*)\sendobj\s*\Z", re.DOTALL)
_STREAM = b">>\nstream\n"


def objects_of(file: bytes) -> tuple[dict[int, bytes], bytes]:
    """Every object of a PDF by its number, and its trailer; raises ValueError where no plain table leads to them."""
    found = _TABLE.search(file[-64:])
    table = int(found[1]) if found else -1
    end = file.find(b"trailer", table)
    if end < 0 or not file.startswith(b"xref\n0 ", table):
        raise ValueError("this PDF is not written as Typst writes one: it has no plain table of its objects")
    rows = range(file.index(b"\n", table + 5) + 1, end, ROW)
    places = sorted(int(file[row : row + 10]) for row in rows if file[row + 17 : row + 18] == b"n")
    return dict(_object(file[at:until]) for at, until in pairwise([*places, table])), file[end:]


def _object(written: bytes) -> tuple[int, bytes]:
    body = _BODY.match(written)
    if not body:
        raise ValueError(f"this PDF is not written as Typst writes one: an object begins with {written[:20]!r}")
    return int(body[1]), body[2]


def replaced(body: bytes, sought: re.Pattern[bytes], new: Callable[[re.Match[bytes]], bytes]) -> bytes:
    """An object with `new` for what is sought, by a pattern of `outside_texts`; a stream after it stays as it is.

    >>> replaced(b"<</Next 3 0 R/Title(3 0 R)>>", REFERENCE, lambda found: b"40 0 R")
    b'<</Next 40 0 R/Title(3 0 R)>>'
    """
    told, stream, drawn = body.partition(_STREAM)
    if _NESTED.search(told):
        told = _flat(told)
    return sought.sub(lambda found: new(found) if found[1] else found[0], told) + stream + drawn


def outside_texts(pattern: bytes) -> re.Pattern[bytes]:
    """A pattern, with one group at least, that finds nothing within a text."""
    return re.compile(rb"\((?:[^()\\]|\\.)*\)|" + pattern, re.DOTALL)


REFERENCE = outside_texts(rb"\b(\d+) 0 R\b")


def _flat(told: bytes) -> bytes:
    """The same object with a backslash before each parenthesis within a text, as both ways of writing mean one text."""
    depth = 0

    def marked(found: re.Match[bytes]) -> bytes:
        nonlocal depth
        if found[0] == b"(":
            depth += 1
            return b"(" if depth == 1 else rb"\("
        if found[0] == b")":
            depth -= 1
            return b")" if depth == 0 else rb"\)"
        return found[0]

    return _PARENTHESES.sub(marked, told)


class Packed:
    """A PDF file that is written object by object: all but streams are pressed together, PACK at a time."""

    def __init__(self) -> None:
        self._written = [HEAD]
        self._length = len(HEAD)
        self._places: list[tuple[int, int, int]] = [(0, 0, 65535)]  # by number: kind, where, which there
        self._waiting: list[tuple[int, bytes]] = []

    def number(self) -> int:
        """A number for one more object."""
        self._places.append((0, 0, 65535))
        return len(self._places) - 1

    def add(self, number: int, body: bytes) -> None:
        """Write one object under its number."""
        if _STREAM in body:
            self._stand_alone(number, body)
            return
        self._waiting.append((number, body))
        if len(self._waiting) == PACK:
            self._press()

    def file(self, root: int, info: int) -> bytes:
        """The whole file, with the numbers of the two objects that a reader begins with."""
        self._press()
        number, at = self.number(), self._length
        self._places[number] = (1, at, 0)
        rows = b"".join(struct.pack(">BIH", *place) for place in self._places)
        digest = hashlib.sha256(b"".join(self._written)).hexdigest()[:32].encode()
        told = b"/Type/XRef/W[1 4 2]/Size %d/Root %d 0 R/Info %d 0 R/ID[<%b><%b>]"
        self._stand_alone(number, _stream(told % (len(self._places), root, info, digest, digest), rows))
        return b"".join((*self._written, b"startxref\n%d\n%%%%EOF\n" % at))

    def _press(self) -> None:
        if not self._waiting:
            return
        number, starts, length = self.number(), list[bytes](), 0
        for at, (inside, body) in enumerate(self._waiting):
            starts.append(b"%d %d" % (inside, length))
            self._places[inside] = (2, number, at)
            length += len(body) + 1
        head = b" ".join(starts) + b"\n"
        told = b"/Type/ObjStm/N %d/First %d" % (len(starts), len(head))
        self._stand_alone(number, _stream(told, head + b"\n".join(body for _, body in self._waiting)))
        self._waiting = []

    def _stand_alone(self, number: int, body: bytes) -> None:
        self._places[number] = (1, self._length, 0)
        written = b"%d 0 obj\n%b\nendobj\n" % (number, body)
        self._written.append(written)
        self._length += len(written)


def _stream(told: bytes, drawn: bytes) -> bytes:
    pressed = zlib.compress(drawn)
    return b"<<%b/Filter/FlateDecode/Length %d%b%b\nendstream" % (told, len(pressed), _STREAM, pressed)
