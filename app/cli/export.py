"""The command `export`, which writes a worksheet as questions of another system."""

from __future__ import annotations

import argparse

from app.quizzes.formats import FORMATS
from app.quizzes.quiz import draw_versions
from app.translation import gettext as _

from .terminal import Commands, open_library, optional_whole_number, whole_number, write_file


def add_to(commands: Commands) -> None:
    """Add the command `export WORKSHEET --format FORMAT -o FILE`, which has no --json."""
    command = commands.add(
        "export", _export, _("Write a worksheet as quiz questions for Moodle, Canvas or QTI."), printable=False
    )
    command.add_argument("worksheet", metavar="WORKSHEET", help=_("key of a worksheet"))
    command.add_argument("--format", choices=[*FORMATS], required=True, help=_("docs/teaching.md compares them"))
    command.add_argument(
        "-o", "--output", metavar="FILE", required=True, help=_("where to write; - is standard output")
    )
    command.add_argument("--model", help=_("key of another model"))
    command.add_argument("--tokens", help=_("number of tokens; then there is one version"))
    command.add_argument("--variants", default="20", help=_("how many different versions (default 20)"))
    command.add_argument("--seed", default="0", help=_("a different seed gives different versions (default 0)"))


def _export(parsed: argparse.Namespace) -> None:
    quizzes = draw_versions(
        open_library(),
        parsed.worksheet,
        parsed.model,
        optional_whole_number(parsed.tokens, "--tokens"),
        whole_number(parsed.variants, "--variants"),
        whole_number(parsed.seed, "--seed"),
    )
    write_file(parsed.output, FORMATS[parsed.format].write(quizzes))
