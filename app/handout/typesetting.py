"""The Typst compiler, kept warm: a handout's content becomes a PDF, or its pages as pictures.

Nothing of the system is used but the fonts that are installed with the app and those in `fonts`, so that the same
handout has the same bytes on every machine.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

from .binding import Binder
from .content import Content
from .options import HandoutError
from .sheets import Progress

if TYPE_CHECKING:
    from typst import Compiler

TEMPLATE = Path(__file__).resolve().parents[2] / "templates" / "print" / "handout.typ"
# Typst brings Libertinus Serif (Latin, Greek, Cyrillic, Hebrew) and DejaVu Sans Mono; these packages the other letters.
FONT_PACKAGES = {"fontpkg_amiri": "Amiri", "cvttf_NotoSansCJK_Regular": "Noto Sans CJK TC"}
SERIF = "Libertinus Serif"
AT_ONCE = 2  # compilers of one press
RUNS_KEPT = 10  # of the compiler, after which it drops what it has not used again
_MISSING = re.compile(r'the text `"(.*?)"` could not be displayed')


class Press:
    """Compilers and their fonts, kept; a thread waits for a free one, and other threads of the app go on meanwhile."""

    def __init__(self, fonts: Path | None = None) -> None:
        self._paths = _font_folders(fonts)
        self._free: SimpleQueue[Compiler | None] = SimpleQueue()
        for _ in range(AT_ONCE):
            self._free.put(None)  # a compiler is made when one is first needed
        self._writing = Lock()  # of two contents written at once both would be late: one is set meanwhile

    def pdf(self, parts: Sequence[Callable[[], Content]], progress: Progress | None = None) -> bytes:
        """One tagged PDF (PDF/UA-1) of all parts; raises HandoutError naming letters that no font has."""
        binder = Binder()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            waiting = deque(pool.submit(self.tagged, part) for part in parts)
            for part in waiting if len(parts) > 1 else ():
                part.add_done_callback(_forget)
            try:
                while waiting:
                    binder.add(waiting.popleft().result())  # in the order of the parts, while later ones are being set
                    if progress:
                        progress(len(parts) - len(waiting), len(parts))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return binder.bound()

    def pages(self, part: Content) -> list[bytes]:
        """Every page of one part as an SVG picture, in order."""
        made = self._set(part, format="svg")
        return made if isinstance(made, list) else [made]

    def tagged(self, part: Callable[[], Content]) -> bytes:
        """One part as Typst writes it; raises HandoutError naming letters that no font has."""
        with self._writing:
            content = part()
        return bytes(self._set(content, format="pdf", pdf_standards=["ua-1"], timestamp=0))

    def _set(self, part: Content, **how: Any) -> Any:
        from typst import Compiler, TypstError  # where something is set, so that the app starts without it

        data = json.dumps({**part, "fonts": self._families}, ensure_ascii=False)
        compiler = self._free.get()
        try:
            compiler = compiler or Compiler(str(TEMPLATE), font_paths=self._paths, ignore_system_fonts=True)
            return compiler.compile(sys_inputs={"data": data}, **how)
        except TypstError as error:
            raise _explained(error) from error
        finally:
            self._free.put(compiler)

    @cached_property
    def _families(self) -> list[str]:
        """The fonts that are looked through for a letter, in this order."""
        from typst import Fonts

        found = {font.family for font in Fonts(font_paths=self._paths, include_system_fonts=False).fonts() if font.path}
        known = [family for family in FONT_PACKAGES.values() if family in found]
        return [SERIF, *known, *sorted(found - set(known))]


def _forget(_: object = None) -> None:
    """Let go of what the compilers keep of a part: they drop what was of no use in their last few runs."""
    from typst import Compiler

    other = Compiler(str(TEMPLATE), ignore_system_fonts=True)
    for _ in range(RUNS_KEPT + 1):
        other.compile(input=b"nothing", format="svg")


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
