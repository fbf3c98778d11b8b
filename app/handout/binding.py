"""Parts of one PDF bound into one, with their tags, and packed small.

A large handout is set in parts, so that memory stays bounded and a person can be told how far it is. Every page and
link of a part points to its place in the tree of tags by a number; the numbers of later parts are moved up. Header
cells have names that are alike in all parts, such as U10x0y0; each part gets another first letter.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pikepdf import Pdf

_CELL = re.compile(rb"\(U(\d+x\d+y\d+)\)")
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MOST_PARTS = len(LETTERS)


class Binder:
    """Takes the parts one after the other, so that the first are bound while the next are still being set."""

    def __init__(self) -> None:
        self._whole: Pdf | None = None
        self._count = 0

    def add(self, file: bytes) -> None:
        """Bind one more part; raises ValueError if it is one too many."""
        from pikepdf import Pdf  # where something is bound, so that the app starts without it

        if self._count == MOST_PARTS:
            raise ValueError(f"at most {MOST_PARTS} parts can be bound")
        part = Pdf.open(io.BytesIO(_renamed(file, LETTERS[self._count])))
        self._count += 1
        if self._whole is None:
            self._whole = part
            return
        with part:  # what it held goes once it is copied
            _append(self._whole, part)

    def bound(self) -> bytes:
        """The whole PDF, after the first part at least; the same parts give the same bytes."""
        from pikepdf import ObjectStreamMode

        assert self._whole is not None  # noqa: S101 - a handout has a part
        packed = io.BytesIO()
        self._whole.save(packed, object_stream_mode=ObjectStreamMode.generate, deterministic_id=True)
        return packed.getvalue()


def _renamed(part: bytes, letter: int) -> bytes:
    """The part with another first letter in the names of its header cells; no byte moves, so that it stays whole."""
    return _CELL.sub(b"(" + bytes([letter]) + rb"\1)", part)


def _append(whole: Pdf, more: Pdf) -> None:
    from pikepdf import Name

    tree = whole.Root.StructTreeRoot
    moved = int(tree.ParentTreeNextKey)
    for page in more.pages:
        page.StructParents = int(page.StructParents) + moved
        for note in page.obj.get("/Annots", ()):
            note.StructParent = int(note.StructParent) + moved
    whole.pages.extend(more.pages)
    theirs = whole.copy_foreign(more.Root.StructTreeRoot)  # its pages are already here, and found again
    chapter = theirs.K[0]
    chapter.S, chapter.P = Name.Part, tree.K[0]
    tree.K[0].K.append(chapter)
    numbered: list[Any] = list(theirs.ParentTree.Nums)
    moved_up: list[Any] = [int(entry) + moved if at % 2 == 0 else entry for at, entry in enumerate(numbered)]
    tree.ParentTree.Nums.extend(moved_up)
    tree.ParentTreeNextKey = moved + int(theirs.ParentTreeNextKey)
    tree.IDTree.Names.extend(theirs.IDTree.Names)
