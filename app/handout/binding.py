"""Parts of one PDF bound into one, with their tags, and packed small.

A large handout is set in parts, so that memory stays bounded and a person can be told how far it is. The objects of a
part get numbers that go on from the parts before, and one tree of pages and one of tags hold all parts. Every page and
link points to its place in the tree of tags by a key; the keys of later parts are moved up. Header cells have names
that are alike in all parts, such as U10x0y0; each part gets another first letter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .objects import REFERENCE, Packed, objects_of, outside_texts, replaced

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MOST_PARTS = len(LETTERS)
_CELL = re.compile(rb"\(U(\d+x\d+y\d+)\)")
_KEY_OF = outside_texts(rb"(/StructParents? )(\d+)")
_KEY = re.compile(rb"(\d+) (?=\d+ 0 R)")


@dataclass(frozen=True)
class _Part:
    """A part as Typst wrote it: its objects by their numbers, and the numbers of those that hold it together."""

    objects: dict[int, bytes]
    root: int
    info: int
    pages: int
    tags: int
    chapter: int

    @classmethod
    def read(cls, file: bytes) -> _Part:
        objects, trailer = objects_of(file)
        root, info = int(_found(rb"/Root (\d+) 0 R", trailer)), int(_found(rb"/Info (\d+) 0 R", trailer))
        pages = int(_found(rb"/Pages (\d+) 0 R", objects[root]))
        tags = int(_found(rb"/StructTreeRoot (\d+) 0 R", objects[root]))
        return cls(objects, root, info, pages, tags, int(_found(rb"/K\[(\d+) 0 R\]", objects[tags])))

    @property
    def beside(self) -> set[int]:
        """What stands in a PDF once, such as its title."""
        named = {int(found[1]) for found in REFERENCE.finditer(self.objects[self.root]) if found[1]}
        return {self.root, self.info, *named} - {self.pages, self.tags}


@dataclass(frozen=True)
class _Change:
    """How the objects of a part are written in the whole."""

    to: dict[int, bytes]  # by their numbers in the part
    keys: int  # of the tree of tags that the parts before have taken
    letter: bytes

    def of(self, body: bytes) -> bytes:
        """One object of the part as it stands in the whole."""
        changed = replaced(body, REFERENCE, lambda found: self.to[int(found[1])])
        if b"/StructParent" in body:
            changed = replaced(changed, _KEY_OF, lambda found: found[1] + self.moved(found[2]))
        return _CELL.sub(rb"(%b\1)" % self.letter, changed) if b"/Table" in body or b"/IDTree" in body else changed

    def moved(self, key: bytes) -> bytes:
        """A key of the part's tree of tags in that of the whole."""
        return b"%d" % (int(key) + self.keys)


class Binder:
    """Takes the parts one after the other, so that the first are packed while the next are still being set."""

    def __init__(self) -> None:
        self._file = Packed()
        self._pages, self._tags, self._whole = (_to(self._file.number()) for _ in range(3))
        self._root = self._info = self._keys = self._count = 0
        self._roles = b""
        self._leaves: list[bytes] = []  # of each part: where its pages are, and then the same of its tags
        self._chapters: list[bytes] = []
        self._places: list[bytes] = []
        self._cells: list[bytes] = []

    def add(self, file: bytes) -> None:
        """Pack one more part; raises ValueError if it is not written as Typst writes one, or is one too many."""
        if len(self._chapters) == MOST_PARTS:
            raise ValueError(f"at most {MOST_PARTS} parts can be bound")
        part = _Part.read(file)
        left_out = {part.tags} | (part.beside if self._chapters else set())
        numbers = {at: self._file.number() for at in part.objects if at not in left_out}
        to = {at: _to(number) for at, number in numbers.items()} | {part.tags: self._tags}
        change = _Change(to, self._keys, LETTERS[len(self._chapters) :][:1])
        joints = self._joints(part, to)
        for at, number in numbers.items():
            body = change.of(part.objects[at])
            self._file.add(number, body.replace(*joints[at], 1) if at in joints else body)
        if not self._chapters:
            self._root, self._info = numbers[part.root], numbers[part.info]
        self._note(part, change)

    def bound(self) -> bytes:
        """The whole PDF."""
        pages = b"<</Type/Pages/Count %d/Kids[%b]>>" % (self._count, b" ".join(self._leaves))
        whole = b"<</Type/StructElem/S/Document/P %b/K[%b]>>" % (self._tags, b" ".join(self._chapters))
        found = b"/ParentTree<</Nums[%b]>>/IDTree<</Names[%b]>>" % (b" ".join(self._places), b"".join(self._cells))
        tags = b"<</Type/StructTreeRoot%b/K[%b]%b/ParentTreeNextKey %d>>" % (
            self._roles,
            self._whole,
            found,
            self._keys,
        )
        for reference, body in ((self._pages, pages), (self._whole, whole), (self._tags, tags)):
            self._file.add(int(reference.split()[0]), body)
        return self._file.file(self._root, self._info)

    def _joints(self, part: _Part, to: dict[int, bytes]) -> dict[int, tuple[bytes, bytes]]:
        """What is said otherwise in the few objects that hang in the whole: what stands there, and what shall."""
        return {
            part.root: (b"/Pages " + to[part.pages], b"/Pages " + self._pages),
            part.pages: (b"<<", b"<</Parent " + self._pages),
            part.chapter: (b"/S/Document/P " + self._tags, b"/S/Part/P " + self._whole),
        }

    def _note(self, part: _Part, change: _Change) -> None:
        """Keep what the whole says of a part at its end."""
        tags = change.of(part.objects[part.tags])
        places = _found(rb"/ParentTree<</Nums\[(.*?)\]", tags)
        self._places.append(_KEY.sub(lambda found: change.moved(found[1]) + b" ", places))
        self._cells.append(_found(rb"/IDTree<</Names\[(.*?)\]", tags) if b"/IDTree" in tags else b"")
        self._roles = _found(rb"(/RoleMap<<.*?>>)", tags)
        self._keys += int(_found(rb"/ParentTreeNextKey (\d+)", tags))
        self._count += int(_found(rb"/Count (\d+)", part.objects[part.pages]))
        self._leaves.append(change.to[part.pages])
        self._chapters.append(change.to[part.chapter])


def _to(number: int) -> bytes:
    return b"%d 0 R" % number


def _found(pattern: bytes, told: bytes) -> bytes:
    found = re.search(pattern, told, re.DOTALL)
    if not found:
        raise ValueError(f"this PDF is not written as Typst writes one: it has no {pattern.decode()}")
    return found[1]
