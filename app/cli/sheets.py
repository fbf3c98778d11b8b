"""Verbs about worksheets: their list, the sheet that a seed or a code draws, marks, and what authors should mend."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from app.grading.grade import Report, grade
from app.grading.hints import HINT_LEVELS, Hint, write_hint
from app.misconceptions.catalogue import cannot_tell_apart
from app.models.read_config import MAX_CONFIG_BYTES
from app.sheets.codes import read_code
from app.sheets.lint import findings
from app.sheets.seeds import variant_json
from app.sheets.worksheet import Variant, format_number

from .terminal import InputError, Verbs, open_library, print_json, print_table, read_file, whole


def add_to(verbs: Verbs) -> None:
    """Add the verbs of this module."""
    verbs.add("worksheets", _worksheets, "List the worksheets.")
    drawn = verbs.add("variant", _variant, "Print the sheet that a seed draws: the same seed, the same sheet.")
    drawn.add_argument("--key", action="store_true", help="print the answers too")
    graded = verbs.add("grade", _grade, "Mark answers to a worksheet.")
    for command in (drawn, graded):
        command.add_argument(
            "worksheet", metavar="WORKSHEET_OR_CODE", help="key of a worksheet, or the code of a sheet"
        )
        command.add_argument("--seed", help="a whole number; without one, the worksheet as it was written")
    graded.add_argument("answers", metavar="ANSWERS.json", help='{"queries.rows": "100", …}; - reads standard input')
    graded.add_argument("--hint", type=int, choices=HINT_LEVELS, help="a hint as well; a higher level goes further")
    checked = verbs.add("check-worksheets", _check_worksheets, "Report what an author should mend in worksheet files.")
    checked.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="folder with worksheets, models/ and wording/ (default: the app's own)",
    )


def _worksheets(parsed: argparse.Namespace) -> None:
    sheets = open_library().worksheets.values()
    if parsed.json:
        keys = ("key", "title", "model", "topic", "tokens")
        print_json([{key: getattr(sheet, key) for key in keys} for sheet in sheets])
    else:
        print_table([(s.key, s.title, s.model, s.topic, f"{s.tokens} tokens") for s in sheets])


def _sheet(parsed: argparse.Namespace) -> Variant:
    """The sheet of a worksheet and seed, or of a code."""
    library, name = open_library(), parsed.worksheet
    if name not in library.worksheets and read_code(name):
        if parsed.seed is not None:
            raise InputError("A code says all sizes of its sheet: leave out --seed.")
        return library.variant_from_code(name)
    return library.variant(name) if parsed.seed is None else library.seeded(name, whole(parsed.seed, "--seed"))


def _variant(parsed: argparse.Namespace) -> None:
    variant = _sheet(parsed)
    if parsed.json:
        answers = {"key": {str(blank): size for blank, size in variant.key.items()}} if parsed.key else {}
        seed = None if parsed.seed is None else whole(parsed.seed, "--seed")
        print_json({**variant_json(variant), "seed": seed, **answers})
    else:
        _print_variant(variant, parsed.key)


def _print_variant(variant: Variant, key: bool) -> None:
    print(f"{variant.title}   {variant.code}\n\n{variant.description}\n{variant.task}\n")
    rows = [("", *variant.fields)]
    for row in variant.rows:
        sides = [
            f"{format_number(variant.answer(p))} = {variant.notation.write(variant.dim(p))}" if key else "____"
            for p in row.blanks
        ]
        note = f" ({row.note})" if row.note else ""
        rows.append((f"{row.letter}  {row.name}{note}", *sides))
    print_table([[*row, *[""] * (len(variant.fields) + 1 - len(row))] for row in rows])
    for one, other in cannot_tell_apart(variant.with_tokens_as_rows):
        print(f"cannot tell apart: {one}, {other}")


def _grade(parsed: argparse.Namespace) -> None:
    variant = _sheet(parsed)
    report = grade(variant, _answers(parsed.answers))
    hinted = write_hint(variant, report, parsed.hint) if parsed.hint else None
    if parsed.json:
        asked = {"hint": hinted and hinted.as_json()} if parsed.hint else {}
        print_json({**report.as_json(), **asked})
    else:
        _print_report(report, hinted)


def _answers(name: str) -> dict[str, str]:
    text = sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1) if name == "-" else read_file(Path(name))
    if len(text) > MAX_CONFIG_BYTES:
        raise InputError(f"{name} is longer than {MAX_CONFIG_BYTES:,} bytes: answers are short texts.")
    try:
        answers = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f'{name} is not JSON: write {{"queries.rows": "100", …}}.') from None
    if not isinstance(answers, dict) or not all(isinstance(value, str) for value in answers.values()):
        raise InputError(f'{name} must hold one object of texts: {{"queries.rows": "100", …}}.')
    return answers


def _print_report(report: Report, hinted: Hint | None) -> None:
    print_table([(blank, mark.kind, mark.text[:40], mark.message) for blank, mark in report.marks.items()])
    print(f"{report.score} of {report.out_of}")
    if report.diagnosis:
        print(report.diagnosis.message)
    if hinted and not (report.diagnosis and hinted.message == report.diagnosis.message):
        print(hinted.message)


def _check_worksheets(parsed: argparse.Namespace) -> None:
    """Exit status 1 where something is to be mended."""
    library = open_library(Path(parsed.folder)) if parsed.folder else open_library()
    if not library.worksheets:
        raise InputError(f"There is no worksheet (*.toml) in {str(parsed.folder)[:60]}.")
    found = list(findings(library))
    if parsed.json:
        print_json([{"worksheet": f.worksheet, "kind": f.kind, "message": f.message} for f in found])
    else:
        for finding in found:
            print(f"{finding.worksheet}: {finding.message}")
        mend = len({finding.worksheet for finding in found if finding.to_mend})
        print(f"{len(library.worksheets)} worksheets read, {mend} with something to mend.")
    if any(finding.to_mend for finding in found):
        sys.exit(1)
