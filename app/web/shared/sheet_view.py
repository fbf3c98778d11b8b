"""The rows of a sheet as a page shows them: each blank with its text, its mark and, if allowed, its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from app.algebra.number_text import format_number
from app.figures.steps import known_products
from app.grading.grade import Mark, MarkKind, Report, grade
from app.grading.hints import Hint
from app.shapes.table import Blank, BlankField, Joint, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.answers import Answer
from app.sheets.code_text import answer_in_words, option_text
from app.sheets.prose import FormulaPiece, formula_pieces, step_of
from app.sheets.reasons import row_reason
from app.sheets.variant import Row, Variant
from app.store import question_name
from app.topics.decode_step import DECODE_STEP
from app.topics.layer_heads import SEVERAL_HEADS
from app.topics.registry import TOPICS
from app.topics.requirements import unmet
from app.translation import gettext as _
from app.web.shared.cookies import current_page_request
from app.web.shared.urls import url_for

MANY = 3  # boxes with the same sentence


@dataclass(frozen=True)
class BoxView:
    """One box: its name and column, the word for its side, its screen-reader label, its text and the text's mark.

    The mark is None if the text wasn't marked.
    """

    name: str
    column: BlankField
    axis: str
    label: str
    text: str
    mark: Mark | None
    explained: str = ""
    hinted: bool = False  # the hint points to this box
    words: tuple[str, ...] = ()  # the words to choose from

    @property
    def kind(self) -> MarkKind | None:
        return self.mark.kind if self.mark else None

    @property
    def read_as(self) -> str:
        """The number that a text was read as: '4,096' for '32*128'."""
        value = self.mark.read_as if self.mark and self.column != "choice" else None
        digits = "".join(char for char in self.text if char.isdigit())
        return "" if value is None or not digits or str(abs(value)) == digits else format_number(value)


@dataclass(frozen=True)
class OptionView:
    """One option of a choice: the number that is sent, its text, and whether it is chosen."""

    number: int
    text: str
    is_chosen: bool


@dataclass(frozen=True)
class AnswerView:
    """The answer of a row: number and symbols of each blank, and the formula behind them.

    Example: (('100', 'N'), ('128', 'd_h')), formula X · W_Q in pieces; it is empty for a matrix that is given. Of a
    question about code it is a `text` alone.
    """

    fields: tuple[tuple[str, str], ...]
    formula: tuple[FormulaPiece, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class CellView:
    """One cell of a row: the sign before it, and its box with its answer; each may be None.

    The last cell of a row has at most a sign, such as a closing bracket.
    """

    sign: str | None
    box: BoxView | None
    answer: tuple[str, str] | None


@dataclass(frozen=True)
class Note:
    """A note on a row that no single mark says, with the key of the row it goes below.

    `letters` are written as mathematics in it.
    """

    kind: Literal["diagnosis", "hint", "reason", "question"]
    message: str
    row: str
    letters: tuple[str, ...] = ()
    working: str = ""
    title: str = ""


@dataclass(frozen=True)
class RowView:
    """One row of the sheet with its boxes and cells, and its answer once that may be shown."""

    row: Row
    boxes: tuple[BoxView, ...]
    cells: tuple[CellView, ...]
    answer: AnswerView | None
    notes: tuple[Note, ...] = ()
    span: int | None = None
    reason: Note | None = None
    question: Note | None = None
    given: bool = False
    steps: int = 0
    is_latest: bool = False
    options: tuple[OptionView, ...] = ()
    between: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepsDone:
    """How many steps of a sheet in steps are done, and of how many."""

    done: int
    steps: int


@dataclass(frozen=True)
class QuestionView:
    """An open question with its answer, which can't be changed once it is `locked`."""

    name: str
    text: str
    answer: str
    locked: bool = False


def question_views(variant: Variant, answers: Mapping[str, str], *, locked: bool = False) -> tuple[QuestionView, ...]:
    """The open questions of a sheet, in order, each with its answer; all or none are `locked`."""
    return tuple(
        QuestionView(question_name(each.key), each.text, answers.get(question_name(each.key), ""), locked)
        for each in variant.worksheet.questions
    )


def row_views(
    variant: Variant,
    answers: Mapping[str, str],
    report: Report | None,
    *,
    truth: Variant | None = None,
    pointed_at: Collection[Blank] = (),
    notes: Iterable[Note] = (),
    explains: bool = False,
    one_at_a_time: bool = False,
) -> tuple[RowView, ...]:
    """The rows of a sheet, top to bottom, with their boxes' texts; a mark goes only with the text it was for."""
    answered = {row.key for row in truth.rows} if truth else ()
    is_done = report is not None and report.complete
    typed = [at for at, row in enumerate(variant.rows) if any(answers.get(str(each)) for each in row.blanks)]
    done, steps = steps_done(variant, answers, report), len(variant.rows) if in_steps(variant) else 0
    shown = max(done, *typed, 0) + 1 if one_at_a_time and steps else None
    views = []
    waits = one_at_a_time and report is None and truth is None
    for at, row in enumerate(variant.rows[:shown]):
        if waits and row.opens_late and at not in typed:
            continue
        boxes = tuple(
            replace(_box_view(variant, row, blank, answers, report), hinted=blank in pointed_at) for blank in row.blanks
        )
        answer = _answer_view(truth, row) if truth and row.key in answered else None
        below = tuple(note for note in notes if note.row == row.key)
        reason, is_right = None, all(box.kind == "right" for box in boxes)
        if truth and answer:
            reason = reason_note(truth, row, works_out=True)
        elif explains and is_right:
            reason = reason_note(variant, row, works_out=is_done)
        step = None if is_right else step_of(variant, row.key)
        question = Note("question", step.question, row.key, variant.typeset_letters) if step else None
        views.append(
            RowView(
                row,
                boxes,
                _cells(variant, row, boxes, answer),
                answer,
                below,
                _span(variant, row),
                reason if reason and reason.message else None,
                question,
                steps=steps,
                is_latest=bool(steps) and at + 1 == done,
                **_question_parts(variant, row, answers),
            )
        )
    return tuple(views)


def in_steps(variant: Variant) -> bool:
    """Whether the sheet's topic asks for one row after another."""
    return TOPICS[variant.worksheet.topic].in_steps


def steps_done(variant: Variant, answers: Mapping[str, str], report: Report | None) -> int:
    """How many rows from the top are right and unchanged since they were marked."""
    if report is None:
        return 0
    right = {blank for blank, mark in report.marks.items() if mark.kind == "right"}
    unchanged = {blank for blank in right if report.marks[blank].text == answers.get(str(blank), "")}
    rows = enumerate(variant.rows)
    return next((at for at, row in rows if not unchanged.issuperset(row.blanks)), len(variant.rows))


def step_asked(variant: Variant, answers: Mapping[str, str], checked: Mapping[str, str] | None) -> str:
    """The first row of a sheet in steps that the last check, of the texts `checked`, didn't find right."""
    if not in_steps(variant):
        return ""
    done = steps_done(variant, answers, grade(variant, checked) if checked else None)
    return variant.rows[done].key if done < len(variant.rows) else ""


def progress(variant: Variant, answers: Mapping[str, str], report: Report | None) -> StepsDone | None:
    """The progress of a sheet in steps; None for any other sheet."""
    return StepsDone(steps_done(variant, answers, report), len(variant.rows)) if in_steps(variant) else None


def reason_note(variant: Variant, row: Row, *, works_out: bool) -> Note:
    """Why the answer to a row is right, with the working only if `works_out`."""
    if step := step_of(variant, row.key):
        return Note("reason", step.reason, row.key, variant.typeset_letters, title=step.why)
    text, working = row_reason(variant, row.key)
    return Note("reason", text, row.key, variant.typeset_letters, working if works_out else "")


def _span(variant: Variant, row: Row) -> int | None:
    if row.fields != ("count",) or len(variant.fields) == 1:
        return None
    return 2 * len(variant.fields) + (1 if "dim0" in variant.fields else -1)


def all_boxes_right(rows: Iterable[RowView]) -> bool:
    """Whether every box of a sheet was marked, and is right."""
    return all(box.kind == "right" for row in rows for box in row.boxes)


def changed_since_check(rows: Iterable[RowView]) -> bool:
    """Whether a box of a marked sheet has changed since."""
    return any(box.mark is None for row in rows for box in row.boxes)


def sheet_notes(
    variant: Variant,
    answers: Mapping[str, str],
    report: Report | None,
    hint: Hint | None = None,
    *,
    mismatch: bool = False,
) -> tuple[Note, ...]:
    """A marked sheet's notes besides its marks, each with the row that it goes below."""
    if report is None:
        return ()
    unchanged = [blank for blank, mark in report.marks.items() if mark.text == answers.get(str(blank), "")]
    explains = report.diagnosis.about if report.diagnosis else ()
    pointed_at = hint.blanks if hint else ()
    notes = []
    if repeated := _repeated_sentence(report):
        unreadable = [blank for blank, mark in report.marks.items() if mark.message == repeated]
        notes.append(Note("diagnosis", repeated, _first_row(variant, unreadable)))
    first = report.first_mismatch
    if mismatch and first and not {first.left, first.right} & {*explains, *pointed_at}:
        sides = [blank for blank in (first.left, first.right) if report.marks[blank].kind != "right"]
        notes.append(Note("diagnosis", first.message, _first_row(variant, sides or (first.right,))))
    if report.diagnosis and (still := [blank for blank in explains if blank in unchanged]):
        notes.append(Note("diagnosis", report.diagnosis.message, _first_row(variant, still)))
    if hint:
        row = _first_row(variant, pointed_at[:1] or explains)
        notes.append(Note("hint", hint.message, row, variant.typeset_letters))
    return tuple(notes)


def _first_row(variant: Variant, blanks: Collection[Blank]) -> str:
    return next((row.key for row in variant.rows if {*row.blanks} & {*blanks}), variant.rows[0].key)


def _repeated_sentence(report: Report) -> str:
    sentences = Counter(mark.message for mark in report.marks.values() if mark.kind == "unreadable")
    return next((sentence for sentence, count in sentences.most_common(1) if count >= MANY), "")


def first_to_fix(rows: Iterable[RowView]) -> str:
    """The name of the first box that was marked and isn't right, or ""."""
    rows = tuple(rows)
    hinted = [row for row in rows if any(note.kind == "hint" for note in row.notes)]
    boxes = [box for row in hinted or rows for box in row.boxes if box.kind not in (None, "right")]
    return min(boxes, key=lambda box: box.kind == "empty").name if boxes else ""


def first_mistakes(rows: Iterable[RowView]) -> Iterator[tuple[Row, BoxView]]:
    """Yield each row with a wrong or unreadable box, and its first one; what only follows isn't among them."""
    for view in rows:
        if mistakes := [box for box in view.boxes if box.kind in ("wrong", "unreadable")]:
            yield view.row, mistakes[0]


def readable_answers(variant: Variant, texts: Mapping[str, str]) -> dict[Blank, Answer]:
    """The meanings of a sheet's readable texts, without grading."""
    read = {blank: variant.read(blank, texts.get(box, "")) for box, blank in variant.blanks_by_name.items()}
    return {blank: answer for blank, answer in read.items() if isinstance(answer, Answer)}


def length_remark(variant: Variant) -> str:
    """The remark that the number of tokens exceeds the context length in the model's config."""
    if not prose.exceeds_context(variant):
        return ""
    most = format_number(variant.architecture.all_sizes["C"])
    sentence = _("More tokens than the {most} that the config of {model} states as its context length.")
    return sentence.format(most=most, model=variant.model.name)


def run_button(variant: Variant) -> str:
    """The button text for running this sheet's head; empty for a table that can't be run."""
    return variant.topic_wording.run_button


@dataclass(frozen=True)
class ExhibitLink:
    """The exhibit about a sheet's topic: its page's route, and its address for the same model and tokens."""

    route: str
    address: str


def exhibit_link(variant: Variant) -> ExhibitLink | None:
    """The exhibit that fits a sheet, with its model and tokens: a decode step, or a layer with several heads."""
    if not current_page_request().may_practise:
        return None
    query = {"model": variant.model.key, "tokens": variant.tokens, "step": 1}
    if variant.worksheet.topic == DECODE_STEP.key:
        return ExhibitLink("show_token", url_for("show_token", **query))
    topic = TOPICS[variant.worksheet.topic]
    is_layer = topic.subject == "layer" and not topic.uses_decoder and "context" in variant.table.by_key
    if is_layer and unmet(SEVERAL_HEADS, variant.architecture, variant.tokens) is None:
        return ExhibitLink("show_heads", url_for("show_heads", **query, groups=variant.architecture.G))
    return None


@dataclass(frozen=True)
class SlideLink:
    """The link of one product: its result's letter, its formula, and the address with what is typed."""

    letter: str
    formula: tuple[FormulaPiece, ...]
    address: str


def slide_links(variant: Variant, rows: Iterable[RowView], **sheet: object) -> Iterator[SlideLink]:
    """Yield a link for each product on a sheet that can be shown, in the order of computation."""
    worksheet = variant.worksheet
    differs = worksheet.is_own and worksheet.in_letters
    if differs or not current_page_request().may_practise:
        return
    query: dict[str, object] = {"worksheet": worksheet.key, "topic": worksheet.topic, "model": variant.model.key}
    query |= {"tokens": variant.tokens, "typed": 1, **sheet}
    if variant.decoder_tokens:
        query["decoded"] = variant.decoder_tokens
    if worksheet.is_own:
        query["rows"] = ",".join(worksheet.rows)
        query |= {"simplified": 1} if worksheet.kv_head_per_query_head else {}
    typed = {box.name: box.text for row in rows for box in row.boxes if box.text}
    of_sheet = url_for("show_slide", **query, **typed)  # written once: the address of many boxes is long
    for product in known_products(variant, variant.problem.answers):
        address = f"{of_sheet}&product={product.result}"
        yield SlideLink(variant.letters[product.result], formula_pieces(variant, product.result), address)


def _box_view(variant: Variant, row: Row, blank: Blank, answers: Mapping[str, str], report: Report | None) -> BoxView:
    mark = report.marks.get(blank) if report else None
    name, axis = str(blank), variant.axis(blank)
    text = answers.get(name, "")
    explained = ""
    if report and report.diagnosis and blank in report.diagnosis.about:
        explained = report.diagnosis.message
    elif report and mark and mark.message == _repeated_sentence(report):
        explained = mark.message
    mark = mark if mark and mark.text == text else None
    words = asked.part(blank.field).words if isinstance(asked := row.asked, Joint) else ()
    return BoxView(name, variant.column_of(blank), axis, f"{row.name}, {axis}", text, mark, explained, words=words)


def _question_parts(variant: Variant, row: Row, answers: Mapping[str, str]) -> dict[str, Any]:
    asked = row.asked
    if isinstance(asked, WrittenPattern):
        return {"between": ("", "")}
    if isinstance(asked, OneOf):
        chosen = answers.get(str(row.blanks[0]), "").strip()
        options = ((number, option_text(variant, row.key, number)) for number in asked.options)
        return {"options": tuple(OptionView(number, text, str(number) == chosen) for number, text in options)}
    return {"between": asked.between} if isinstance(asked, Joint) else {}


def _cells(variant: Variant, row: Row, boxes: tuple[BoxView, ...], answer: AnswerView | None) -> tuple[CellView, ...]:
    if row.is_question:
        return ()
    if _span(variant, row):
        return (CellView(None, boxes[0], answer.fields[0] if answer else None),)
    columns = [box.column for box in boxes]
    box_in: Mapping[str, BoxView] = dict(zip(columns, boxes, strict=True))
    answer_in: Mapping[str, tuple[str, str]] = dict(zip(columns, answer.fields, strict=True)) if answer else {}
    first, *between, last = variant.signs(row)
    signs = (first, *between, last) if variant.has_dimensions else (None, *between, None)
    return tuple(
        CellView(sign, box_in.get(column), answer_in.get(column))
        for column, sign in zip((*variant.fields, ""), signs, strict=True)
    )


def _answer_view(variant: Variant, row: Row) -> AnswerView:
    if row.is_question:
        return AnswerView((), text=answer_in_words(variant, row.key))
    fields = tuple(
        (format_number(variant.answer(blank)), variant.notation.write(variant.expression(blank)))
        for blank in row.blanks
    )
    formula = formula_pieces(variant, row.key)
    says_more = any(piece.is_symbol or "+" in piece.text for piece in formula)  # more than a name such as "biases"
    return AnswerView(fields, formula if says_more else ())


def repair_opens_later(variant: Variant, rows: Iterable[RowView]) -> bool:
    """Whether the sheet says that its repair opens after the first check."""
    asks = not TOPICS[variant.worksheet.topic].late_rows.keys().isdisjoint(variant.worksheet.rows)
    return asks and not any(view.row.opens_late or any(box.kind for box in view.boxes) for view in rows)
