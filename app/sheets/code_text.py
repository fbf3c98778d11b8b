"""The sentences of questions about code: their options, why a row is right, and hints.

They are in the topic's wording, under "code"; those about bugs are in the bugs' wording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.algebra.expression import Expression
from app.bugs.case import BugCase
from app.bugs.witnesses import Witness
from app.shapes.table import OTHER_PATTERN, Blank, Joint, OneOf, WrittenPattern
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.topics.find_the_bug import NO_LINE, NO_WORD, NOTHING_WRONG, BugTable
from app.topics.registry import TOPICS

MEASURED = frozenset({"row-sums", "spread"})  # probes whose cells are numbers


@dataclass(frozen=True)
class WitnessShown:
    """What a program that runs to its end shows: a caption, the words for an empty and a filled cell, and the cells.

    A cell is a number as text or, if `kinds` has words, whether it is filled.
    """

    caption: str
    kinds: tuple[str, ...]
    cells: tuple[tuple[str | bool, ...], ...]


@dataclass(frozen=True)
class CodeShown:
    """What a sheet shows of its program: its lines, the name and shape of each input, and what happened when it ran."""

    lines: tuple[str, ...]
    given: tuple[tuple[str, str], ...]
    stops: int
    error: str
    witness: WitnessShown | None


def code_shown(variant: Variant) -> CodeShown | None:
    """A sheet's program, with its inputs' shapes, and its error's line and text; None without a program."""
    if variant.frozen:
        code = variant.frozen.values["code"]
        return _code_again(code) if code else None
    case = variant.problem.case
    if case is None:
        return None
    in_letters = variant.worksheet.in_letters

    def written(shape: tuple[Expression, ...]) -> str:
        sides = (variant.notation.write(each) if in_letters else str(each.size(variant.sizes)) for each in shape)
        return f"({', '.join(sides)})"

    given = tuple((name, written(shape)) for name, shape in case.inputs)
    error = f"{case.error}: {case.message}" if case.error else ""
    witness = _witness_shown(variant, case.witness or _table(variant).witness)
    return CodeShown(case.lines, given, case.raises_at, error, witness)


def _code_again(values: Mapping[str, Any]) -> CodeShown:
    witness = values["witness"]
    shown = witness and WitnessShown(witness["caption"], tuple(witness["kinds"]), tuple(map(tuple, witness["cells"])))
    given = tuple((name, shape) for name, shape in values["given"])
    return CodeShown(tuple(values["lines"]), given, values["stops"], values["error"], shown)


def _witness_shown(variant: Variant, witness: Witness | None) -> WitnessShown | None:
    if witness is None:
        return None
    words = variant.topic_wording.code
    shows = f"{words['numbers']} {variant.wording.bugs.probes[witness.probe].shows}"
    if witness.probe in MEASURED:
        return WitnessShown(shows, (), tuple(tuple(f"{number:g}" for number in row) for row in witness.cells))
    cells = tuple(tuple(bool(number) for number in row) for row in witness.cells)
    return WitnessShown(shows, (words["empty"], words["marked"]), cells)


def rows_in_vain(variant: Variant) -> tuple[Joint, ...]:
    """What the worksheet asks for after a check although this sheet doesn't: the repair of a program without a bug."""
    late_rows = TOPICS[variant.worksheet.topic].late_rows
    return tuple(
        late_rows[row] for row in variant.worksheet.rows if row in late_rows and row not in variant.problem.asked
    )


def gives_line_away(worksheet: Worksheet) -> bool:
    """Whether the worksheet asks for the wrong line, and also for a repair, whose blanks show which line that is."""
    late_rows = TOPICS[worksheet.topic].late_rows
    return any(row in late_rows and late_rows[row].reveals in worksheet.rows for row in worksheet.rows)


def option_text(variant: Variant, row: str, option: int) -> str:
    """The text of a choice's option, counted from 1."""
    if variant.frozen and (said := variant.frozen.row(row)):
        return str(said["options"][str(option)])
    words, asked = variant.topic_wording.code, variant.table.askable[row]
    if isinstance(asked, WrittenPattern) and option == OTHER_PATTERN:
        return words["other-pattern"]
    if isinstance(asked, OneOf) and asked.texts:
        return asked.texts[option - 1] or words["no-axis"]
    case = _case(variant)
    if isinstance(asked, OneOf) and asked.offers == "reasons":
        reason = _table(variant).reasons[option - 1]
        return words[reason] if reason == NOTHING_WRONG else variant.wording.bugs.reason(reason)
    return words["none"] if option == NO_LINE else case.lines[option - 1]


def option_label(variant: Variant, row: str, option: int) -> str:
    """The text of an option; a line's is after its number: "4: S = Q @ K"."""
    text, asked = option_text(variant, row, option), variant.table.askable[row]
    is_line = isinstance(asked, OneOf) and asked.offers == "lines" and option != NO_LINE
    return f"{option}: {text}" if is_line else text


def answer_in_words(variant: Variant, row: str) -> str:
    """The right answer to a question about code: its option's label, the repaired line, or its boxes, "4096, 128".

    Raises KeyError for a row that the topic doesn't have.
    """
    asked = variant.table.askable[row]
    if isinstance(asked, OneOf):
        return option_label(variant, row, asked.right)
    if isinstance(asked, Joint) and asked.is_code:
        return _filled_in(variant, asked)
    return ", ".join(variant.written_answer(Blank(row, field)) for field in asked.fields)


def code_reason(variant: Variant, row: str) -> str:
    """Why the answer to a row on a sheet about a program is right, by the row's key."""
    case, words, asked = _case(variant), variant.topic_wording.code, variant.table.askable[row]
    if line := _table(variant).line_of(row):
        return words["traced"].format(code=case.lines[line - 1])
    if isinstance(asked, Joint) and asked.is_code:
        return words[row].format(code=_filled_in(variant, asked))
    offers = asked.offers if isinstance(asked, OneOf) else ""
    if offers == "reasons":
        return variant.wording.bugs.bugs[case.bug.key].explanation
    sentence = words[row if case.wrong_line else "no-line"].format(line=case.wrong_line, stops=case.raises_at)
    witness = case.witness or _table(variant).witness
    if witness and offers == "lines":
        return f"{sentence} {variant.wording.bugs.probes[witness.probe].right}"
    return sentence


def _filled_in(variant: Variant, joint: Joint) -> str:
    """A line of code with a right answer in each blank, sizes in symbols."""
    filled = (variant.written_answer(Blank(joint.key, field), in_symbols=True) for field in joint.fields)
    pieces = zip(joint.between, (*filled, ""), strict=True)
    return "".join(text for pair in pieces for text in pair).replace(NO_WORD, "")


def code_hint(variant: Variant, blank: Blank, level: int) -> str:
    """What to do next about a box: a step of the procedure at level 2, and how to do it at level 3.

    Raises KeyError for another level.
    """
    words, asked = variant.topic_wording.code, variant.table.askable[blank.tensor]
    if isinstance(asked, OneOf) and asked.call:
        return words[f"hint-{'pattern' if isinstance(asked, WrittenPattern) else 'summed'}-{level}"]
    case = _case(variant)
    row = "line" if _table(variant).line_of(blank.tensor) else blank.tensor
    key = f"hint-{row}-{level}"
    if level == 2 and isinstance(asked, OneOf) and asked.offers == "lines":
        key += "-loud" if case.raises_at else "-silent"
    return words[key]


def _case(variant: Variant) -> BugCase:
    case = variant.problem.case
    assert case is not None  # noqa: S101 - the caller asks about a row that only such sheets have
    return case


def _table(variant: Variant) -> BugTable:
    assert isinstance(variant.table, BugTable)  # noqa: S101 - as above
    return variant.table
