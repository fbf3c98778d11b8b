"""The commands `worksheets`, `variant`, `grade` and `check-worksheets`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from app.algebra.number_text import format_number
from app.exchange.material_file import MaterialFileError, decode_file, read_material_file
from app.figures.sheet_figures import draw_figures
from app.grading.grade import grade
from app.grading.hints import HINT_LEVELS, write_hint
from app.misconceptions.predictions import cannot_tell_apart, expectations
from app.models.architecture import TokensError
from app.models.read_config import MAX_CONFIG_BYTES
from app.shapes.table import Joint, OneOf, WrittenPattern
from app.sheets.code_text import CHECKED_FIRST, answer_in_words, code_shown, option_text
from app.sheets.codes import read_code
from app.sheets.formulas import write_formula
from app.sheets.library import Library
from app.sheets.lint import findings
from app.sheets.sheet_json import opened_rows, variant_json
from app.sheets.variant import Row, Variant
from app.sheets.worksheet import Worksheet
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.translation import ngettext

from .terminal import Commands, InputError, open_library, print_json, print_table, read_file, whole_number

MANY_TOKENS = 100_000  # more than the context length of most models


def add_to(commands: Commands) -> None:
    """Add the commands `worksheets`, `variant`, `grade` and `check-worksheets`, all with --json."""
    commands.add("worksheets", _list_worksheets, _("List the worksheets."))
    sheet = commands.add("variant", _show_variant, _("Print a worksheet; a seed chooses its numbers."))
    sheet.add_argument("--key", action="store_true", help=_("print the answers too"))
    grading = commands.add("grade", _grade_answers, _("Grade answers to a worksheet."))
    for command in (sheet, grading):
        command.add_argument("worksheet", metavar="WORKSHEET_OR_CODE", help=_("key of a worksheet, or code of a sheet"))
        command.add_argument("--seed", help=_("a whole number; by default the worksheet’s own numbers"))
    grading.add_argument(
        "answers",
        metavar="ANSWERS.json",
        help=_("JSON such as {example}; - is standard input").format(example='{"queries.rows": "100", …}'),
    )
    grading.add_argument("--hint", type=int, choices=HINT_LEVELS, help=_("also print a hint; a higher level says more"))
    check_help = _("Check worksheet files, and report what their author should fix.")
    check = commands.add("check-worksheets", _check_worksheets, check_help)
    check.add_argument(
        "folder",
        metavar="FOLDER_OR_FILE",
        nargs="?",
        help=_("folder with worksheets, models/ and wording/, or one file (default: the app’s own folder)"),
    )
    check.add_argument("--sentences", action="store_true", help=_("print every sentence of the sheets instead"))


def _list_worksheets(parsed: argparse.Namespace) -> None:
    sheets = open_library().worksheets.values()
    if parsed.json:
        keys = ("key", "title", "model", "topic", "tokens")
        print_json([{key: getattr(sheet, key) for key in keys} for sheet in sheets])
    else:
        print_table([(s.key, s.title, s.model, s.topic, _("{count} tokens").format(count=s.tokens)) for s in sheets])


def _sheet(parsed: argparse.Namespace) -> Variant:
    library, name = open_library(), parsed.worksheet
    if name not in library.worksheets and (read_code(name) or name.isupper()):
        if parsed.seed is not None:
            raise InputError(_("A code fixes all sizes of its sheet: leave out --seed."))
        return library.variant_from_code(name)
    return library.variant(name) if parsed.seed is None else library.seeded(name, whole_number(parsed.seed, "--seed"))


def _show_variant(parsed: argparse.Namespace) -> None:
    variant = _sheet(parsed)
    if parsed.json:
        answers = {"key": dict(variant.key)} if parsed.key else {}
        seed = None if parsed.seed is None else whole_number(parsed.seed, "--seed")
        print_json({**variant_json(variant), "seed": seed, **answers})
    else:
        _print_variant(variant, parsed.key)


def _print_variant(variant: Variant, key: bool) -> None:
    sheet = variant.worksheet
    words = (sheet.introduction, variant.text.description, variant.text.task)
    print(f"{variant.title}   {variant.code}\n\n" + "\n".join(filter(None, words)) + "\n")
    counts = (blank.field for blank in variant.blanks if blank.field == "count")
    columns = tuple(dict.fromkeys((*variant.fields, *counts)))
    rows = [("", *(variant.wording.axes[column].name for column in columns))]
    for row in variant.rows:
        if variant.is_question(row):
            continue
        boxes = {
            variant.column_of(blank): (
                f"{format_number(variant.answer(blank))} = {variant.notation.write(variant.expression(blank))}"
                if key
                else "____"
            )
            for blank in row.blanks
        }
        note = ", ".join(filter(None, (row.code, row.note, row.points_in_words)))
        name = f"{row.letter}  {row.name}{f' ({note})' if note else ''}"
        rows.append((name, *(boxes.get(column, "") for column in columns)))
    _print_program(variant)
    print_table(rows)
    _print_questions(variant, (row for row in variant.rows if key or row.key not in CHECKED_FIRST), key)
    if sheet.footnote:
        print(sheet.footnote)
    for first, second in cannot_tell_apart(variant.problem):
        print(_("cannot tell apart: {first}, {second}").format(first=first, second=second or "right"))


def _print_program(variant: Variant) -> None:
    if code := code_shown(variant):
        print("\n".join(f"{name} {shape}" for name, shape in code.given) + "\n")
        print("\n".join(f"{number:2}  {line}" for number, line in enumerate(code.lines, start=1)))
        if code.error:
            stops = _("Line {line} stops the program:").format(line=code.stops)
            print(f"\n{stops}\n{code.error}")
        if code.witness:
            print(f"\n{code.witness.caption}")
            print_table([tuple(map(_cell_text, row)) for row in code.witness.cells])
        print()


def _cell_text(cell: str | bool) -> str:
    return cell if isinstance(cell, str) else "■" if cell else "□"


def _print_questions(variant: Variant, rows: Iterable[Row], key: bool = False) -> None:
    for row in filter(variant.is_question, rows):
        asked = variant.table.askable[row.key]
        print(f"\n{row.name}" + (f" {answer_in_words(variant, row.key)}" if key else ""))
        if row.code:
            print(row.code)
        if isinstance(asked, OneOf) and not isinstance(asked, WrittenPattern):
            print("\n".join(f"{number:2}  {option_text(variant, row.key, number)}" for number in asked.options))
        elif isinstance(asked, Joint) and not key:
            print(" ".join(("____".join(asked.between)).split()))


def _grade_answers(parsed: argparse.Namespace) -> None:
    variant = _sheet(parsed)
    report = grade(variant, _answers(parsed.answers))
    hint = write_hint(variant, report, parsed.hint) if parsed.hint else None
    if parsed.json:
        with_hint = {"hint": hint and hint.as_json()} if parsed.hint else {}
        opened = opened_rows(variant) if report.has_readable_answer else []
        print_json({**report.as_json(), **({"opened": opened} if opened else {}), **with_hint})
        return
    print_table([(str(blank), mark.kind, mark.text[:40], mark.message) for blank, mark in report.marks.items()])
    print(_("{score} of {best}").format(score=report.score, best=report.out_of))
    if report.diagnosis:
        print(report.diagnosis.message)
    if hint and not (report.diagnosis and hint.message == report.diagnosis.message):
        print(hint.message)
    if report.has_readable_answer and not report.complete:
        _print_questions(variant, (row for row in variant.rows if row.key in CHECKED_FIRST))


def _answers(name: str) -> dict[str, str]:
    text = sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1) if name == "-" else read_file(Path(name))
    if len(text) > MAX_CONFIG_BYTES:
        problem = _("{file} is longer than {most:,} bytes, too long for a file of answers.")
        raise InputError(problem.format(file=name, most=MAX_CONFIG_BYTES))
    try:
        answers = json.loads(text)
    except (ValueError, RecursionError):
        problem = _('{file} is not JSON: write {{"queries.rows": "100", …}}.')
        raise InputError(problem.format(file=name)) from None
    if not isinstance(answers, dict) or not all(isinstance(value, str) for value in answers.values()):
        problem = _('{file} must hold one JSON object of texts: {{"queries.rows": "100", …}}.')
        raise InputError(problem.format(file=name))
    return answers


def _check_worksheets(parsed: argparse.Namespace) -> None:
    path = Path(parsed.folder) if parsed.folder else None
    if path and not path.exists():
        raise InputError(_("There is no folder or file {folder}.").format(folder=path))
    if path and path.is_file():
        library = _library_of_file(path, as_json=parsed.json)
    else:
        library = open_library(path) if path else open_library()
    if path and path.is_file() and not library.worksheets:  # an exit ticket, which has nothing else to be found
        print_json([]) if parsed.json else print(_("{file}: nothing to fix.").format(file=path.name))
        return
    if not library.worksheets:
        raise InputError(_("There is no worksheet (*.toml) in {folder}.").format(folder=str(parsed.folder)[:60]))
    if parsed.sentences:
        _print_sentences(library, as_json=parsed.json)
        return
    all_findings = list(findings(library))
    if parsed.json:
        print_json([asdict(finding) for finding in all_findings])
    else:
        for finding in all_findings:
            tokens = finding.proposed_tokens
            proposal = " " + _("{tokens} tokens would tell them apart.").format(tokens=tokens) if tokens else ""
            print(f"{finding.worksheet}: {finding.message}{proposal}")
        to_fix = len({finding.worksheet for finding in all_findings if finding.fixable})
        summary = ngettext(
            "Checked {count} worksheet; to fix: {to_fix}.", "Checked {count} worksheets; to fix: {to_fix}.",
            len(library.worksheets),
        )  # fmt: skip
        print(summary.format(count=len(library.worksheets), to_fix=to_fix))
    if any(finding.fixable for finding in all_findings):
        sys.exit(1)


def _library_of_file(path: Path, *, as_json: bool) -> Library:
    library = open_library()
    try:
        read = read_material_file(path.stem, decode_file(read_file(path)), library)
    except MaterialFileError as error:
        if as_json:
            print_json([{"worksheet": path.stem, "kind": "file", "message": problem} for problem in error.problems])
        else:
            print("\n".join(f"{path.name}: {problem}" for problem in error.problems))
        sys.exit(1)
    worksheets = {read.read.key: read.read} if isinstance(read.read, Worksheet) else {}
    return replace(library, worksheets=worksheets)


def _print_sentences(library: Library, *, as_json: bool) -> None:
    sentences: dict[str, dict[str, str]] = {}
    for worksheet in library.worksheets:
        for model in library.models:
            for tokens in (None, 1, MANY_TOKENS):
                with suppress(TopicError, TokensError):
                    variant = library.variant(worksheet, model, tokens)
                    for kind, sentence in _sentences(variant):
                        sentences.setdefault(kind, {}).setdefault(sentence, f"{worksheet}, {model}")
    if as_json:
        print_json({kind: list(sheets) for kind, sheets in sentences.items()})
        return
    for kind, sheets in sentences.items():
        print(f"\n{kind}")
        for sentence, sheet in sheets.items():
            print(f"  {sentence}  [{sheet}]")


def _sentences(variant: Variant) -> Iterator[tuple[str, str]]:
    text, topic = variant.text, variant.worksheet.topic
    yield "titles", text.title
    paragraphs = (text.description, text.asides, text.task, *text.assumptions, text.footnote or "")
    # Cut at a space between ".", "?" or ")" and a capital or "(".
    for sentence in re.split(r"(?<=[.?)]) (?=[A-Z(])", " ".join(paragraphs)):
        yield f"{topic}: description", sentence
    for row in variant.rows:
        yield f"{topic}: rows", f"{row.name} ({row.note})" if row.note else row.name
        if formula := write_formula(variant, row.key):
            yield "formulas", f"{row.letter or row.name}: {formula}"
    for box, blank in variant.blanks_by_name.items():
        yield f"{topic}: nudges", f"{box}: {text.nudge(blank)}"
    for key in dict.fromkeys(expected.misconception for expected in expectations(variant.problem)):
        for kind in ("nudge", "hint", "explanation"):
            if sentence := text.misconception(key, kind):  # an author's has no hint
                yield "misconceptions", sentence
    for figure in draw_figures(variant, variant.problem.answers):
        yield "drawings", figure.alt_text.rpartition(". ")[0]  # without the shapes
        yield from (("captions", caption) for caption in (*figure.explanations, *figure.captions))
