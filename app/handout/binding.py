"""Parts of one PDF bound into one, with their tags, and packed small.

A large handout is set in parts, so that memory stays bounded and a person can be told how far it is. Every page and
link of a part points to its place in the tree of tags by a number; the numbers of later parts are moved up. Header
cells have names that are alike in all parts, such as U10x0y0; each part gets another first letter.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pikepdf import Pdf

_CELL = re.compile(rb"\(U(\d+x\d+y\d+)\)")
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MOST_PARTS = len(LETTERS)


def bind(parts: Sequence[bytes]) -> bytes:
    """One tagged PDF of all parts in their order; the same parts give the same bytes."""
    from pikepdf import ObjectStreamMode, Pdf  # where something is bound, so that the app starts without it

    first, *rest = (_renamed(part, letter) for part, letter in zip(parts, LETTERS, strict=False))
    with Pdf.open(io.BytesIO(first)) as whole:
        for part in rest:
            with Pdf.open(io.BytesIO(part)) as more:
                _append(whole, more)
        packed = io.BytesIO()
        whole.save(packed, object_stream_mode=ObjectStreamMode.generate, deterministic_id=True)
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
