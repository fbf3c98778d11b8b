"""A program with one bug, in the sizes of a model: its shapes, the wrong line, what clashes, why, and the repair."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from app.algebra.expression import ONE, Expression
from app.bugs.bank import BUGS
from app.bugs.bug_case import BugCase, BugError, Repair, bug_case
from app.models.architecture import Architecture
from app.shapes.table import PARTS, Joint, JointPart, OneOf, Tensor, TensorTable
from app.topics.requirements import TopicError
from app.topics.topic import LevelSpec, Topic

MAX_LINES = 12
NO_LINE = 0  # the choice that says that no line is wrong
BATCH = 2
REASONS = 4
MAX_SIDES = 4
QUESTIONS = ("where", "clash", "why", "repair")


@dataclass(frozen=True)
class BugTable(TensorTable):
    """The shapes after some lines of a program, and the questions about its bug.

    `reasons` are those of the case in the order in which they are shown, which depends on the bug and on the sizes.
    """

    case: BugCase | None = None
    reasons: tuple[str, ...] = ()


def row_of_line(line: int) -> str:
    """The key of the row that asks for the shape after a line."""
    return f"line_{line}"


def line_of(row: str) -> int:
    """The line after which a row asks for the shape; 0 for any other row."""
    return int(row.removeprefix("line_")) if row.startswith("line_") else 0


def _bug_table(bug: str, architecture: Architecture, tokens: int) -> BugTable:
    """The table of a bug; raises TopicError with the reason if the model or the tokens don't show it.

    The order of the reasons is that of a hash of the bug, the sizes and each reason, which says nothing of the key.
    """
    try:
        case = bug_case(bug, architecture, tokens, BATCH)
    except BugError as error:
        raise TopicError(str(error)) from None
    sheet = f"{bug} {tokens} {sorted(architecture.all_sizes.items())}"
    reasons = tuple(sorted(case.reasons, key=lambda key: hashlib.sha256(f"{sheet} {key}".encode()).digest()))
    return BugTable(
        "find-the-bug",
        tuple(Tensor(row_of_line(traced.line), traced.name, traced.shape, "hidden") for traced in case.trace),
        questions=tuple(_questions(case, reasons)),
        case=case,
        reasons=reasons,
    )


def _questions(case: BugCase, reasons: tuple[str, ...]) -> Iterator[OneOf | Joint]:
    """Yield the line; the sizes that clash, of a program that stops; why; the repair, of one that has a bug."""
    yield OneOf("where", tuple(range(NO_LINE, len(case.lines) + 1)), case.wrong_line)
    if case.clash:
        yield Joint("clash", tuple(JointPart("size", size) for size in case.clash), ("",) * (len(case.clash) + 1))
    yield OneOf("why", tuple(range(1, len(reasons) + 1)), reasons.index(case.reasons[0]) + 1)
    if case.repair:
        yield Joint("repair", tuple(_parts(case.repair)), case.repair.parts, case.repair_works, points=2)


def _parts(repair: Repair) -> Iterator[JointPart]:
    """Yield the boxes of the repaired line, each with what the example has there."""
    for blank, right in zip(repair.blanks, repair.example, strict=True):
        if isinstance(right, Expression):
            yield JointPart(blank.kind, right)
        else:
            number = right if isinstance(right, int) else 1 + blank.words.index(right)
            yield JointPart(blank.kind, Expression.number(number), blank.words)


def _first_table(architecture: Architecture, tokens: int) -> BugTable:
    """The table of the first bug that the model shows; raises the TopicError of the first one if it shows none."""
    refusals = list[TopicError]()
    for bug in BUGS:
        try:
            return _bug_table(bug, architecture, tokens)
        except TopicError as error:
            refusals.append(error)
    raise refusals[0]


def _with_sides(sides: int) -> TensorTable:
    """A table with all that a sheet can ask for, in which the shapes have this many sides."""
    return TensorTable(
        "find-the-bug",
        tuple(Tensor(row_of_line(line), "", (ONE,) * sides, "hidden") for line in range(1, MAX_LINES + 1)),
        questions=(
            OneOf("where", (NO_LINE,), NO_LINE),
            OneOf("why", (1,), 1),
            Joint("clash", (JointPart("size", ONE),) * 2, ("",) * 3),
            Joint("repair", (JointPart("size", ONE),) * len(PARTS), ("",) * (len(PARTS) + 1)),
        ),
    )


TOPIC = Topic(
    "find-the-bug",
    "layer",
    _first_table,
    (),
    extra_sizes=lambda _architecture, _tokens: {"B": BATCH},
    extra_symbols="B",
    tables=tuple(map(_with_sides, range(1, MAX_SIDES + 1))),
    bugs=tuple(BUGS),
    build_for_bug=_bug_table,
    levels=(
        LevelSpec(
            "find-the-bug",
            "find-the-bug",
            after=("attention-layer", "three-dimensions"),
            steps=(("where", "why", "repair"),),
            begins_whole=True,
        ),
    ),
)
