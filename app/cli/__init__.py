"""The program `attention-shapes`: its commands, each in the module with its (or its group's) name.

Exit status 0: done; 1: check-worksheets found something to fix; 2: unusable input, explained in one line.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from app import __version__
from app.checkpoints.checkpoint import CheckpointError
from app.exchange.class_list import RosterError
from app.exchange.hub import HubError
from app.forward.lines import ForwardError
from app.handout.options import HandoutError
from app.models.architecture import TokensError
from app.models.config_fields import ConfigError
from app.quizzes.quiz import QuizError
from app.sheets.seeds import SeedError
from app.sheets.worksheet import WorksheetError
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.translation import preferred_language, speak

from .terminal import Commands, InputError, Parser, refuse

# The commands of each module. Only the typed command's module is imported, so that `shapes` starts without database and
# web.
COMMANDS_BY_MODULE = {
    "models": ("models", "shapes", "parameters"),
    "run": ("run",),
    "worksheets": ("check-worksheets",),
    "handout": ("handout",),
    "export": ("export",),
    "teacher": ("teacher",),
    "platforms": ("platforms",),
    "backup": ("backup",),
    "serve": ("serve",),
    "worker": ("worker",),
}
INPUT_ERRORS = (
    ConfigError,
    TokensError,
    TopicError,
    WorksheetError,
    SeedError,
    ForwardError,
    CheckpointError,
    HubError,
    RosterError,
    HandoutError,
    QuizError,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command given by `arguments` (default: `sys.argv[1:]`)."""
    terminal = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    speak(preferred_language(terminal))  # "de_DE.UTF-8"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for characters that the terminal's encoding lacks
    parsed = _parser(sys.argv[1:] if arguments is None else arguments).parse_args(arguments)
    try:
        parsed.run(parsed)
        sys.stdout.flush()  # so that a closed pipe raises here and not while Python exits
    except (InputError, *INPUT_ERRORS) as error:
        refuse(str(error))
    except BrokenPipeError:  # such as `attention-shapes models | head -1`: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)


def _parser(arguments: Sequence[str]) -> Parser:
    parser = Parser(
        prog="attention-shapes", description=_("Worksheets about the shapes inside a transformer’s attention.")
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = Commands(parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser))
    needed = [module for module, names in COMMANDS_BY_MODULE.items() if arguments and arguments[0] in names]
    for module in needed or COMMANDS_BY_MODULE:
        import_module(f"{__name__}.{module}").add_to(commands)
    return parser
