"""The command `check-worksheets`: what an author should fix."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path

from app.exchange.material_file import MaterialFileError, decode_file, read_material_file
from app.sheets.library import Library
from app.sheets.lint import findings
from app.sheets.worksheet import Worksheet
from app.translation import gettext as _
from app.translation import ngettext

from .terminal import Commands, InputError, open_library, print_json, read_file


def add_to(commands: Commands) -> None:
    """Add the command `check-worksheets [FOLDER_OR_FILE] [--json]`."""
    about = _("Check worksheet files, and report what their author should fix.")
    commands.add("check-worksheets", _check_worksheets, about).add_argument(
        "folder",
        metavar="FOLDER_OR_FILE",
        nargs="?",
        help=_("folder with worksheets, models/ and wording/, or one file (default: the app’s own folder)"),
    )


def _check_worksheets(parsed: argparse.Namespace) -> None:
    path = Path(parsed.folder) if parsed.folder else None
    if path and not path.exists():
        raise InputError(_("There is no folder or file {folder}.").format(folder=path))
    if path and path.is_file():
        library = _library_of_file(path, as_json=parsed.json)
    else:
        library = open_library(path) if path else open_library()
    if path and path.is_file() and not library.worksheets:  # an exit ticket, in which nothing else can be found
        print_json([]) if parsed.json else print(_("{file}: nothing to fix.").format(file=path.name))
        return
    if not library.worksheets:
        raise InputError(_("There is no worksheet (*.toml) in {folder}.").format(folder=str(parsed.folder)[:60]))
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
