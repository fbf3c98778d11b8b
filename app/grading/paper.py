"""Answers on paper, typed in: one line per student, marked like any other sheet.

A line is `name: answer answer …`, in the order of the sheet's blanks; `-` stands for an empty blank. The name and its
colon are optional. An answer with spaces needs double quotes, except the choices that the sheet offers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.grading.grade import AnswersError, Report, grade
from app.names import clean_line
from app.shapes.table import Blank, Joint, OneOf, WrittenPattern
from app.sheets.answers import MAX_BOX_TEXT
from app.sheets.code_text import option_text
from app.sheets.variant import Variant
from app.translation import gettext as _

MAX_PAPER_LINES = 500  # per form: marking them takes up to half a second
MAX_PAPER_LINE_LENGTH = 4_000  # characters
MAX_TYPED_NAME_LENGTH = 120  # characters
_ANSWER = re.compile(r'"[^"]*"|\S+')
EMPTY_ANSWERS = ("-", "–", "—", "_")
EMPTY_CELL = '""'  # of a grid, where nobody has typed a dash


@dataclass(frozen=True)
class MarkedPaper:
    """One student's sheet as typed in: the name, a text for every blank in order, and the marks.

    `given` is how many answers the line has, dashes included; missing ones and empty cells count as empty boxes.
    """

    name: str
    texts: tuple[str, ...]
    report: Report
    given: int


def mark_lines(variant: Variant, typed: str) -> tuple[MarkedPaper, ...]:
    """Mark every line that isn't blank; raises AnswersError about the first that can't be used."""
    papers = list[MarkedPaper]()
    for number, line in numbered_lines(typed):
        name, answers = split_name(line)
        if ":" not in line and "：" not in line:
            _check_first_answer(variant, answers, number)
        papers.append(mark_line(variant, name, answers, number))
    return tuple(papers)


def _check_first_answer(variant: Variant, answers: str, line_number: int) -> None:
    if len(answers) > MAX_PAPER_LINE_LENGTH:
        return
    first = _split_answers(variant, answers)[0]
    mark = grade(variant, {str(variant.blanks[0]): _unquoted(first)}).marks[variant.blanks[0]]
    if mark.kind == "unreadable" and any(char.isalpha() for char in first):
        problem = _(
            "Line {number} begins with “{word}”, which can’t be read as an answer. If it is a name, put a colon after "
            "the name; if the student wrote that, begin the line with a colon."
        )
        raise AnswersError(problem.format(number=line_number, word=first[:30]))


def numbered_lines(typed: str) -> tuple[tuple[int, str], ...]:
    """Every line that isn't blank, with its number; AnswersError for more than MAX_PAPER_LINES."""
    lines = typed.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    filled = tuple((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    if len(filled) > MAX_PAPER_LINES:
        problem = _("At most {most:,} lines can be graded at once: enter them in parts.")
        raise AnswersError(problem.format(most=MAX_PAPER_LINES))
    return filled


def split_name(line: str) -> tuple[str, str]:
    """The text before the first colon, full-width or not, and the text after it; without a colon the name is ''.

    >>> split_name("Ada Lovelace: 100 4096")
    ('Ada Lovelace', ' 100 4096')
    """
    before, colon, after = line.replace("：", ":").partition(":")
    return (before, after) if colon else ("", line)


def grid_line(name: str, cells: Sequence[str]) -> str:
    """A row of a grid as a line, with quotes around an answer with spaces.

    >>> grid_line("Ada", ["100", "-", "", "left line"])
    'Ada: 100 - "" "left line"'
    """
    texts = (cell.replace('"', "").strip() for cell in cells)
    answers = (f'"{text}"' if " " in text else text or EMPTY_CELL for text in texts)
    return f"{name.replace(':', ' ').strip()}: {' '.join(answers)}"


def mark_line(variant: Variant, name: str, answers: str, line_number: int) -> MarkedPaper:
    """The name, the text of every blank, the report, and the number of answers on the line."""
    if len(name) + len(answers) > MAX_PAPER_LINE_LENGTH:
        problem = _("Line {number} is too long: write the answers of one student on each line.")
        raise AnswersError(problem.format(number=line_number))
    answered = _split_answers(variant, answers)
    texts = tuple("" if text in EMPTY_ANSWERS else _unquoted(text) for text in answered)
    if len(texts) > len(variant.blanks):
        problem = _(
            "Line {number} has {answers} answers, but the sheet has {boxes} boxes: "
            "put an answer with spaces in double quotes, and a colon after the name."
        )
        raise AnswersError(problem.format(number=line_number, answers=len(texts), boxes=len(variant.blanks)))
    filled = texts + ("",) * (len(variant.blanks) - len(texts))
    by_blank = dict(zip(variant.blanks_by_name, texts, strict=False))
    given = len(answered) - answered.count(EMPTY_CELL)
    return MarkedPaper(_printable_name(name), filled, grade(variant, by_blank), given)


def _unquoted(answer: str) -> str:
    return answer.strip('"')[:MAX_BOX_TEXT]


def _split_answers(variant: Variant, answers: str) -> list[str]:
    split, left = list[str](), " ".join(answers.split())
    while left:
        offered = _offered(variant, variant.blanks[len(split)]) if len(split) < len(variant.blanks) else {}
        printed = max((text for text in offered if f"{left} ".startswith(f"{text} ")), key=len, default="")
        found = printed or next(_ANSWER.finditer(left))[0]
        split.append(offered.get(found.strip('"'), found))
        left = left[len(found) :].lstrip()
    return split


def _offered(variant: Variant, blank: Blank) -> dict[str, str]:
    asked = variant.table.askable.get(blank.tensor)
    if isinstance(asked, Joint):
        return {word: word for word in asked.part(blank.field).words if word}
    if not isinstance(asked, OneOf) or isinstance(asked, WrittenPattern):
        return {}
    return {option_text(variant, blank.tensor, option): str(option) for option in reversed(asked.options)}


def blank_order(variant: Variant) -> tuple[Mapping[str, str], ...]:
    """The blanks in the order in which they are typed: the row's letter (or name) and the word for the field.

    Example: ({"row": "Q", "axis": "rows"}, {"row": "Q", "axis": "columns"}, …)
    """
    blanks = ((row.letter or row.name, blank) for row in variant.rows for blank in row.blanks)
    return tuple({"row": name, "axis": variant.axis(blank)} for name, blank in blanks)


def _printable_name(name: str) -> str:
    shown = clean_line(name)
    if len(shown) > MAX_TYPED_NAME_LENGTH:
        problem = _("The name “{start}…” has {length:,} characters: shorten it to {most} at most.")
        raise AnswersError(problem.format(start=shown[:30], length=len(shown), most=MAX_TYPED_NAME_LENGTH))
    return shown
