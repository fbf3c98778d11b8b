"""The same verbs from a terminal. Exit status 0: done; 2: input that cannot be used, said in one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from app import __version__
from app.exchange.hub import HubError
from app.exchange.roster import RosterError
from app.forward.lines import ForwardError
from app.grading.grade import AnswersError
from app.handout.options import HandoutError
from app.models.architecture import TokensError
from app.models.config_fields import ConfigError
from app.shapes.topics import TopicError
from app.sheets.seeds import SeedError
from app.sheets.worksheet import WorksheetError

from .terminal import InputError, Parser, Verbs, refuse

# The verbs by their module: only what is asked for is loaded, so that shapes needs neither database nor web.
GROUPS = {
    "models": ("models", "shapes", "parameters", "run"),
    "sheets": ("worksheets", "variant", "grade", "check-worksheets"),
    "handouts": ("handout",),
    "classes": ("teacher", "sample-course"),
    "backups": ("backup", "restore"),
    "serving": ("serve",),
}
UNUSABLE = (
    ConfigError,
    TokensError,
    TopicError,
    WorksheetError,
    SeedError,
    AnswersError,
    ForwardError,
    HubError,
    RosterError,
    HandoutError,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; exits with 2 and one line on standard error if its input cannot be used."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a terminal or a file's text cannot show
    parsed = _parser(sys.argv[1:] if arguments is None else arguments).parse_args(arguments)
    try:
        parsed.run(parsed)
        sys.stdout.flush()  # or a pipe that is closed would be found out after the last line of this program
    except (InputError, *UNUSABLE) as error:
        refuse(str(error))
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)


def _parser(arguments: Sequence[str]) -> Parser:
    """The parser of the group that the first argument is a verb of, else of all groups."""
    parser = Parser(prog="attention-shapes", description="Worksheets on the shapes inside attention.")
    parser.add_argument("--version", action="version", version=__version__)
    verbs = Verbs(parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser))
    asked = [group for group, names in GROUPS.items() if arguments and arguments[0] in names]
    for group in asked or GROUPS:
        import_module(f"{__name__}.{group}").add_to(verbs)
    return parser
