"""The Typst compiler, kept warm: a handout's content becomes a PDF, or its pages as pictures.

Nothing of the system is used but the fonts that are installed with the app and those in `fonts`, so that the same
handout has the same bytes on every machine.
"""

from __future__ import annotations

import importlib.util
import json
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binding import bind
from .content import Content
from .options import HandoutError
from .sheets import Progress

if TYPE_CHECKING:
    from typst import Compiler

TEMPLATE = Path(__file__).resolve().parents[2] / "templates" / "handout.typ"
# Typst brings Libertinus Serif (Latin, Greek, Cyrillic, Hebrew) and DejaVu Sans Mono; these packages the other letters.
FONT_PACKAGES = {"fontpkg_amiri": "Amiri", "cvttf_NotoSansCJK_Regular": "Noto Sans CJK TC"}
SERIF = "Libertinus Serif"
RUNS_KEPT = 10  # of the compiler, after which it drops what it has not used again
_MISSING = re.compile(r'the text `"(.*?)"` could not be displayed')


class Press:
    """One compiler and its fonts; a thread waits for its turn, and other threads of the app go on meanwhile."""

    def __init__(self, fonts: Path | None = None) -> None:
        self._fonts = fonts
        self._turn = threading.Lock()
        self._compiler: Compiler | None = None
        self._families: list[str] = []

    def pdf(self, parts: Sequence[Callable[[], Content]], progress: Progress | None = None) -> bytes:
        """One tagged PDF (PDF/UA-1) of all parts; raises HandoutError naming letters that no font has."""
        made = list[bytes]()
        for part in parts:
            made.append(self._set(part(), format="pdf", pdf_standards=["ua-1"], timestamp=0))
            if len(parts) > 1:
                self._forget()
            if progress:
                progress(len(made), len(parts))
        return bind(made)

    def pages(self, part: Content) -> list[bytes]:
        """Every page of one part as an SVG picture, in order."""
        made = self._set(part, format="svg")
        return made if isinstance(made, list) else [made]

    def _set(self, part: Content, **how: Any) -> Any:
        from typst import TypstError  # where something is set, so that the app starts without it

        with self._turn:
            compiler = self._ready()
            data = json.dumps({**part, "fonts": self._families}, ensure_ascii=False)
            try:
                return compiler.compile(sys_inputs={"data": data}, **how)
            except TypstError as error:
                raise _explained(error) from error

    @staticmethod
    def _forget() -> None:
        """Let go of what the compiler keeps of a part: it drops what was of no use in its last few runs."""
        from typst import Compiler

        other = Compiler(str(TEMPLATE), ignore_system_fonts=True)
        for _ in range(RUNS_KEPT + 1):
            other.compile(input=b"nothing", format="svg")

    def _ready(self) -> Compiler:
        if self._compiler is None:
            from typst import Compiler, Fonts

            paths = _font_folders(self._fonts)
            self._compiler = Compiler(str(TEMPLATE), font_paths=paths, ignore_system_fonts=True)
            found = {font.family for font in Fonts(font_paths=paths, include_system_fonts=False).fonts() if font.path}
            known = [family for family in FONT_PACKAGES.values() if family in found]
            self._families = [SERIF, *known, *sorted(found - set(known))]
        return self._compiler


def _font_folders(own: Path | None) -> list[str]:
    specs = filter(None, map(importlib.util.find_spec, FONT_PACKAGES))
    packages = [str(Path(spec.origin).parent) for spec in specs if spec.origin]
    return [*packages, str(own)] if own and own.is_dir() else packages


def _explained(error: Exception) -> Exception:
    """A sentence about letters that no font has; anything else is a mistake of ours and stays what it is."""
    missing = _MISSING.search(str(error))
    if not missing:
        return error
    letters = missing.group(1)[:40]
    points = ", ".join(f"U+{ord(char):04X}" for char in dict.fromkeys(letters[:4]))
    absent = [package for package in FONT_PACKAGES if importlib.util.find_spec(package) is None]
    installed = f"install {' and '.join(absent)}, or " if absent else ""
    return HandoutError(
        f"No installed font has the letters “{letters}” ({points}): {installed}put a font that has them into "
        "the folder “fonts” in the app's data folder, or change the text."
    )
