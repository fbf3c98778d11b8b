"""Typesets handouts with the Typst compiler, which stays in memory, as one PDF or as pictures of pages.

Only the app's fonts and those in the folder `fonts` are used, never the system's, so that a handout has the same bytes
on every machine. A letter that no font has, such as an emoji in a name, is printed as “□”.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

from app.handout.document import MakeDocument, TypstData
from app.handout.pdf_binder import PdfBinder
from app.handout.sheet_plan import ReportProgress
from app.translation import gettext as _

if TYPE_CHECKING:
    from typst import Compiler

_PROJECT = Path(__file__).resolve().parents[2]
TEMPLATE = _PROJECT / "templates" / "print" / "handout.typ"
# Typst brings Libertinus Serif (Latin, Greek, Cyrillic, Hebrew) and DejaVu Sans Mono; fonts/ has the other scripts.
SERIF = "Libertinus Serif"
APP_FONTS = ("Amiri", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR")  # Arabic; Chinese, Japanese and Korean names
COMPILERS_PER_RENDERER = 2
# Typst drops from its cache, shared by all compilers of a process, whatever the last 10 compilations didn't use.
TYPST_CACHE_MAX_AGE = 10  # compilations
PLACEHOLDER = "□"  # printed instead of letters that no font has
_MISSING_LETTERS = re.compile(r'the text `"(.*?)"` could not be displayed')
_ESCAPED = re.compile(r"\\u\{([0-9a-f]+)\}")  # how Typst writes an invisible letter
_ATTACHED = "\u200c\u200d\ufe0e\ufe0f"  # joiners and variation selectors, which belong to the letters around them


class TypstRenderer:
    """Compilers that stay in memory with their fonts; a thread waits until one is free."""

    def __init__(self, fonts: Path | None = None) -> None:
        self._font_folders = _font_folders(fonts)
        self._free_compilers: SimpleQueue[Compiler | None] = SimpleQueue()
        for _place in range(COMPILERS_PER_RENDERER):
            self._free_compilers.put(None)  # a slot for a compiler
        # Only one document's data is made in Python at a time, while the compiler typesets the one before it. Two
        # threads making data would delay each other and leave the compilers idle.
        self._making_data = Lock()
        self._missing_letters: frozenset[str] = frozenset()  # letters without a font, as far as documents have shown

    def render_handout(self, documents: Sequence[MakeDocument], progress: ReportProgress | None = None) -> bytes:
        """All documents bound in order into one tagged PDF (PDF/UA-1)."""
        binder = PdfBinder()
        with ThreadPoolExecutor(COMPILERS_PER_RENDERER) as pool:
            waiting = deque(pool.submit(self.render_pdf, document) for document in documents)
            for future in waiting if len(documents) > 1 else ():
                future.add_done_callback(_evict_typst_cache)
            try:
                while waiting:
                    binder.add(waiting.popleft().result())  # in order, while later ones are typeset
                    if progress:
                        progress(len(documents) - len(waiting), len(documents))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return binder.to_bytes()

    def render_svg_pages(self, data: TypstData) -> list[bytes]:
        """Every page of one document as an SVG picture."""
        pages = self._compile(data, format="svg")
        return pages if isinstance(pages, list) else [pages]

    def render_pdf(self, document: MakeDocument) -> bytes:
        """Typeset one document as a tagged PDF."""
        with self._making_data:
            data = document()
        return bytes(self._compile(data, format="pdf", pdf_standards=["ua-1"], timestamp=0))

    @property
    def missing_letters(self) -> str:
        """The letters that no font has, in all documents so far."""
        return "".join(sorted(self._missing_letters))

    def find_missing_letters(self, data: TypstData) -> str:
        """The letters of a document that no font has, in order of code point."""
        self._compile(data, format="pdf", pdf_standards=["ua-1"], timestamp=0)
        text = json.dumps(data, ensure_ascii=False)
        return "".join(sorted(letter for letter in self._missing_letters if letter in text))

    def _compile(self, data: TypstData, **options: Any) -> Any:
        from typst import Compiler, TypstError  # not at the top of the file, so that the app starts without it

        text = json.dumps({**data, "fonts": self._font_families}, ensure_ascii=False)
        compiler = self._free_compilers.get()
        try:
            compiler = compiler or Compiler(str(TEMPLATE), font_paths=self._font_folders, ignore_system_fonts=True)
            while True:
                known = self._missing_letters
                try:
                    return compiler.compile(sys_inputs={"data": _with_placeholders(text, known)}, **options)
                except TypstError as error:
                    letters = _letters_without_font(error)
                    if letters <= known:
                        raise
                    self._missing_letters = self._missing_letters | letters
        finally:
            self._free_compilers.put(compiler)

    @cached_property
    def _font_families(self) -> list[str]:
        from typst import Fonts

        fonts = Fonts(font_paths=self._font_folders, include_system_fonts=False).fonts()
        families = {font.family for font in fonts if font.path}
        return [SERIF, *APP_FONTS, *sorted(families - set(APP_FONTS))]


def _with_placeholders(text: str, missing: frozenset[str]) -> str:
    if not missing:
        return text
    letter = f"[{re.escape(''.join(sorted(missing)))}][\ufe0e\ufe0f]?"
    return re.sub(f"{letter}(?:\u200d{letter})*[{_ATTACHED}]*", PLACEHOLDER, text)


def _evict_typst_cache(_event: object = None) -> None:
    from typst import Compiler

    compiler = Compiler(str(TEMPLATE), ignore_system_fonts=True)
    for _round in range(TYPST_CACHE_MAX_AGE + 1):
        compiler.compile(input=b"nothing", format="svg")


def _font_folders(operators_fonts: Path | None) -> list[str]:
    return [str(folder) for folder in (_PROJECT / "fonts", operators_fonts) if folder and folder.is_dir()]


def _letters_without_font(error: Exception) -> set[str]:
    texts = _MISSING_LETTERS.findall(str(getattr(error, "diagnostic", error)))
    letters = set("".join(_ESCAPED.sub(lambda code: chr(int(code[1], 16)), text) for text in texts))
    return {letter for letter in letters if not letter.isascii() and letter not in _ATTACHED}


def missing_letters_note(letters: str) -> str:
    """Two sentences: which letters are printed as PLACEHOLDER, and that an operator can add a font."""
    points = ", ".join(f"U+{ord(char):04X}" for char in letters[:4]) + (", …" if len(letters) > 4 else "")
    listed = letters[:40] + ("…" if len(letters) > 40 else "")
    note = _("No font on this server has “{letters}” ({points}), so “{placeholder}” is printed in its place.")
    advice = _("An operator can add a font in the folder “fonts” of the app’s data folder.")
    return f"{note.format(letters=listed, points=points, placeholder=PLACEHOLDER)} {advice}"
