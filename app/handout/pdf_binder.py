"""Bind the PDFs of several Typst documents into one, with all their accessibility tags.

A large handout is typeset as several documents, to bound memory and show progress. Pages and links point by number into
their document's tree of tags, so the numbers of later documents are shifted. Typst names table header cells alike in
every document (U10x0y0), so each document gets another letter.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pikepdf import Pdf

_HEADER_CELL = re.compile(rb"\(U(\d+x\d+y\d+)\)")
_CELL_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MAX_DOCUMENTS = len(_CELL_LETTERS)


class PdfBinder:
    """Binds PDFs in the order in which they are added, while later ones are still being typeset."""

    def __init__(self) -> None:
        self._whole: Pdf | None = None
        self._count = 0

    def add(self, pdf: bytes) -> None:
        """Append a PDF, with its table header cells renamed so that names stay unique.

        Raises ValueError once MAX_DOCUMENTS have been added.
        """
        from pikepdf import Pdf  # not at the top of the file, so that the app starts without it

        if self._count == MAX_DOCUMENTS:
            raise ValueError(f"at most {MAX_DOCUMENTS} documents can be bound")
        opened = Pdf.open(io.BytesIO(_with_cell_letter(pdf, _CELL_LETTERS[self._count])))
        self._count += 1
        if self._whole is None:
            self._whole = opened
            return
        with opened:  # its memory is freed once it is copied
            _append_pdf(self._whole, opened)

    def to_bytes(self) -> bytes:
        """The whole PDF, compressed; the same documents give the same bytes."""
        from pikepdf import ObjectStreamMode

        assert self._whole is not None  # noqa: S101 - every handout has a document
        file = io.BytesIO()
        self._whole.save(file, object_stream_mode=ObjectStreamMode.generate, deterministic_id=True)
        return file.getvalue()


def _with_cell_letter(pdf: bytes, letter: int) -> bytes:
    return _HEADER_CELL.sub(b"(" + bytes([letter]) + rb"\1)", pdf)


def _append_pdf(target: Pdf, source: Pdf) -> None:
    from pikepdf import Name

    tree = target.Root.StructTreeRoot
    shift = int(tree.ParentTreeNextKey)
    for page in source.pages:
        page.StructParents = int(page.StructParents) + shift
        for annotation in page.obj.get("/Annots", ()):
            annotation.StructParent = int(annotation.StructParent) + shift
    target.pages.extend(source.pages)
    copied_tree = target.copy_foreign(source.Root.StructTreeRoot)  # the pages it points to were copied just above
    chapter = copied_tree.K[0]
    chapter.S, chapter.P = Name.Part, tree.K[0]
    tree.K[0].K.append(chapter)
    numbers: list[Any] = list(copied_tree.ParentTree.Nums)  # number, entry, number, entry …
    shifted: list[Any] = [int(entry) + shift if index % 2 == 0 else entry for index, entry in enumerate(numbers)]
    tree.ParentTree.Nums.extend(shifted)
    tree.ParentTreeNextKey = shift + int(copied_tree.ParentTreeNextKey)
    tree.IDTree.Names.extend(copied_tree.IDTree.Names)
