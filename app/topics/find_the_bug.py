"""A program with one bug, in a model's sizes: its shapes, the wrong line, what clashes, why, and the repair."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from app.algebra.expression import ONE, Expression
from app.bugs.bank import BELIEFS, BUGS, Bug, RepairForm
from app.bugs.case import BugCase, bug_case, laboratory_for
from app.bugs.sizes import MIN_BATCH, BugError
from app.bugs.witnesses import Witness, healthy_witness
from app.models.architecture import Architecture
from app.shapes.table import PARTS, Filling, Joint, JointPart, OneOf, Tensor, TensorTable
from app.topics.requirements import ATTENTION, Requirement, TopicError, require
from app.topics.topic import Topic
from app.translation import N_

SHAPES = ("shape_1", "shape_2", "shape_3", "shape_4")  # rows that ask for the shape after a line, in order
ROWS = (*SHAPES, "where", "clash", "why", "repair")
REPAIR_POINTS = 2  # for all its blanks together, unless the worksheet says otherwise
NO_LINE = 0  # the choice "no line is wrong"
MAX_SIDES = 4
NO_WORD = "∅"  # the word that leaves a blank of a repair empty
NOTHING_WRONG = "nothing-wrong"  # the reason "nothing is wrong"


@dataclass(frozen=True, eq=False)
class BugTable(TensorTable):
    """The shapes after some lines of a program, and the questions about its bug.

    `reasons` (wrong) and `right_reason` are shown in an order that depends on the bug and the sizes.
    """

    case: BugCase | None = None
    reasons: tuple[str, ...] = ()
    right_reason: str = ""
    witness: Witness | None = None

    @property
    def has_more_sides(self) -> bool:
        """Always True: code keeps its tokens where they are and is never transposed."""
        return True

    def line_of(self, row: str) -> int:
        """The line after which a row asks for the shape; 0 for any other row."""
        lines = dict(zip(SHAPES, (traced.line for traced in self.case.trace), strict=False)) if self.case else {}
        return lines.get(row, 0)


def _bug_table(bug: Bug, architecture: Architecture, tokens: int) -> BugTable:
    require((ATTENTION,), architecture, tokens)
    try:
        case = bug_case(bug, architecture, tokens, _batch(architecture, tokens))
    except BugError as error:
        raise _refusal(bug, architecture, error) from None
    first, *others = case.reasons
    right = first if case.wrong_line else NOTHING_WRONG
    # Every sheet offers "nothing is wrong"; otherwise offering it would give it away.
    offered = (right, *others[:2], NOTHING_WRONG) if case.wrong_line else (right, *others)
    sheet = f"{bug.key} {sorted(case.sizes.items())}"
    reasons = tuple(sorted(offered, key=lambda key: hashlib.sha256(f"{sheet} {key}".encode()).digest()))
    return BugTable(
        "find-the-bug",
        tuple(Tensor(row, t.name, t.shape, "hidden") for row, t in zip(SHAPES, case.trace, strict=False)),
        questions=tuple(_questions(case, reasons.index(right) + 1, len(reasons))),
        case=case,
        reasons=reasons,
        right_reason=right,
        witness=None if case.wrong_line else healthy_witness(laboratory_for(case.program, architecture, case.sizes)),
    )


def _refusal(bug: Bug, architecture: Architecture, error: BugError) -> TopicError:
    if error.tokens is None:
        return TopicError(str(error))
    try:
        bug_case(bug, architecture, error.tokens, _batch(architecture, error.tokens))
    except BugError as again:
        return TopicError(str(again))
    return TopicError(str(error), error.tokens)


def _batch(architecture: Architecture, tokens: int) -> int:
    sizes = architecture.all_sizes
    heads = {symbol: sizes[symbol] for symbol in ("d", "H", "G", "d_h")}
    widths = {heads["H"] * heads["d_h"], heads["G"] * heads["d_h"], heads["d_h"] // 2}
    taken = {tokens, tokens + 1, *heads.values(), *architecture.decoder_sizes.values(), *widths}
    return next(batch for batch in count(MIN_BATCH) if batch not in taken)


def _questions(case: BugCase, right_reason: int, reasons: int) -> Iterator[OneOf | Joint]:
    yield OneOf("where", tuple(range(NO_LINE, len(case.lines) + 1)), case.wrong_line, offers="lines")
    if case.clash:
        yield Joint("clash", tuple(JointPart("size", size) for size in case.clash), ("",) * (len(case.clash) + 1))
    yield OneOf("why", tuple(range(1, reasons + 1)), right_reason, offers="reasons")
    if case.repair:
        yield _repair(tuple(_parts(case.repair)), case.repair.parts, partial(_works, case))


def _repair(
    parts: tuple[JointPart, ...], between: tuple[str, ...], works: Callable[[tuple[Filling, ...]], bool] | None = None
) -> Joint:
    return Joint("repair", parts, between, works, REPAIR_POINTS, reveals="where")


def misconception_of(reason: str) -> str:
    """The misconception that choosing this wrong reason shows, or ""."""
    return BELIEFS.get(reason, "")


def _works(case: BugCase, filled: Sequence[Filling]) -> bool:
    return case.repair_works(["" if text == NO_WORD else text for text in filled])


def _parts(repair: RepairForm) -> Iterator[JointPart]:
    for blank, text in zip(repair.blanks, repair.example, strict=True):
        if blank.kind == "word":
            words = tuple(word or NO_WORD for word in blank.words)
            yield JointPart("word", Expression.number(1 + blank.words.index(text)), words)
        else:
            yield JointPart(blank.kind, Expression.parse(text))


def _first_table(architecture: Architecture, tokens: int) -> BugTable:
    refusals = list[TopicError]()
    for bug in BUGS.values():
        try:
            return _bug_table(bug, architecture, tokens)
        except TopicError as error:
            refusals.append(error)
            if error.tokens:
                raise
    raise refusals[0]


def _with_sides(sides: int) -> TensorTable:
    size = JointPart("size", ONE)
    questions = (
        OneOf("where", (NO_LINE,), NO_LINE, offers="lines"),
        OneOf("why", (1,), 1, offers="reasons"),
        Joint("clash", (size,) * 2, ("",) * 3),
        _repair((size,) * len(PARTS), ("",) * (len(PARTS) + 1)),
    )
    shapes = tuple(Tensor(row, "", (ONE,) * sides, "hidden") for row in SHAPES)
    return TensorTable("find-the-bug", shapes, questions=questions)


def _tokens_that_show_a_bug(architecture: Architecture, tokens: int) -> int | None:
    try:
        _first_table(architecture, tokens)
    except TopicError as error:
        return error.tokens
    return tokens


SHOWS_A_BUG = Requirement(
    lambda architecture, tokens: _tokens_that_show_a_bug(architecture, tokens) is not None,
    N_("No program with a bug can be shown in the sizes of {model}: choose a model such as GPT-2."),
)
SHOWS_A_BUG_AT_THIS_LENGTH = Requirement(
    lambda architecture, tokens: _tokens_that_show_a_bug(architecture, tokens) == tokens,
    N_("With {tokens} tokens, {model} shows no bug: choose {number} tokens."),
    lambda architecture, tokens: _tokens_that_show_a_bug(architecture, tokens) or tokens,
)
TOPIC = Topic(
    "find-the-bug",
    "layer",
    _first_table,
    (SHOWS_A_BUG, SHOWS_A_BUG_AT_THIS_LENGTH),
    extra_sizes=lambda architecture, tokens: {"B": _batch(architecture, tokens)},
    extra_symbols="B",
    tables=tuple(map(_with_sides, range(1, MAX_SIDES + 1))),
    bugs=tuple(BUGS),
    build_for_bug=_bug_table,
)
