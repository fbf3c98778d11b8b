"""The formats in which a sheet is exported, by the name that people choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.quizzes.moodle_xml import moodle_xml
from app.quizzes.qti12 import qti12_package
from app.quizzes.qti21 import qti21_package
from app.quizzes.quiz import Quiz
from app.translation import N_


@dataclass(frozen=True)
class Format:
    """A format with its name and what it can do, the end of its files, and what writes it."""

    name: str
    about: str
    ending: str
    media_type: str
    write: Callable[[Sequence[Quiz]], bytes]


FORMATS: Mapping[str, Format] = {
    "moodle": Format(
        N_("Moodle XML"),
        N_("one question per version, with a sentence for each likely misconception"),
        "xml",
        "application/xml",
        moodle_xml,
    ),
    "qti12": Format(
        N_("QTI 1.2, for Canvas"),
        N_("one quiz per version and one question per box, without sentences for misconceptions"),
        "zip",
        "application/zip",
        qti12_package,
    ),
    "qti21": Format(
        N_("QTI 2.1, for OpenOlat, ILIAS and others"),
        N_("one item per version, with a sentence for each likely misconception"),
        "zip",
        "application/zip",
        qti21_package,
    ),
}
