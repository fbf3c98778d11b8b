"""The command `handout`, which writes a PDF to hand out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.exchange.class_list import MAX_ROSTER_BYTES, read_names
from app.handout.document import handout_documents
from app.handout.options import FIGURES, LAYOUTS, NO_BACK, PAPERS, HandoutOptions
from app.handout.sheet_plan import ReportProgress, plan_sheets
from app.handout.typst_renderer import TypstRenderer, missing_letters_note
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.worksheet import key_in
from app.translation import gettext as _

from .terminal import (
    Commands,
    open_library,
    optional_whole_number,
    read_file,
    read_settings,
    whole_number,
    write_file,
)


def add_to(commands: Commands) -> None:
    """Add the command `handout WORKSHEET -o FILE.pdf`, which has no --json."""
    command = commands.add(
        "handout", _write_handout, _("Create a PDF of sheets to print, or its answer key."), printable=False
    )
    command.add_argument("worksheet", metavar="WORKSHEET", help=_("key of a worksheet"))
    command.add_argument(
        "-o", "--output", metavar="FILE.pdf", required=True, help=_("where to write; - is standard output")
    )
    command.add_argument("--symbols", action="store_true", help=_("with answers in symbols"))
    command.add_argument("--model", default="", help=_("key of another model"))
    command.add_argument("--tokens", help=_("number of tokens, the same on every sheet"))
    command.add_argument("--decoder-tokens", help=_("number of decoder tokens, for sheets on cross-attention"))
    command.add_argument("--course", default="", help=_("course or institution, printed above the title"))
    command.add_argument("--date", default="", help=_("any text; by default no date is printed"))
    count = command.add_mutually_exclusive_group()
    count.add_argument(
        "--roster", metavar="NAMES.csv", help=_("class list: a version for each name; - is standard input")
    )
    count.add_argument("--variants", metavar="K", help=_("K different versions"))
    count.add_argument("--copies", metavar="K", help=_("the same sheet K times (default 2)"))
    command.add_argument("--same", action="store_true", help=_("with --roster: the same sheet for everyone"))
    command.add_argument("--seed", default="0", help=_("a different seed gives different versions (default 0)"))
    for name, choices in (("layout", LAYOUTS), ("paper", PAPERS), ("figures", FIGURES)):
        command.add_argument(
            f"--{name}", choices=choices, default=choices[0], help=_("(default {choice})").format(choice=choices[0])
        )
    command.add_argument(
        "--back", metavar="TICKET", default=NO_BACK, help=_("key of an exit ticket for the back, or none (default)")
    )
    keys = command.add_mutually_exclusive_group()
    keys.add_argument("--key", dest="key", action="store_const", const="only", help=_("only the answer key"))
    keys.add_argument(
        "--with-key", dest="key", action="store_const", const="with", help=_("the sheets, then the answer key")
    )
    command.set_defaults(key="none")
    command.add_argument("--large-print", action="store_true", help=_("18 pt, on full pages"))


def _write_handout(parsed: argparse.Namespace) -> None:
    settings = read_settings()
    tickets = load_tickets(PROJECT / "worksheets")
    options = _options(parsed).check_back(tickets)
    names = _roster(parsed.roster) if parsed.roster else ()
    sheets = plan_sheets(open_library(), options, names, _progress_writer(_("{done} of {total} sheets planned")))
    documents = handout_documents(options, sheets, tickets, settings.address)
    renderer = TypstRenderer(settings.data_dir / "fonts")
    pdf = renderer.render_handout(documents, _progress_writer(_("{done} of {total} parts typeset")))
    write_file(parsed.output, pdf)
    if renderer.missing_letters:
        print(missing_letters_note(renderer.missing_letters), file=sys.stderr)


def _options(parsed: argparse.Namespace) -> HandoutOptions:
    tokens = optional_whole_number(parsed.tokens, "--tokens")
    decoder_tokens = optional_whole_number(parsed.decoder_tokens, "--decoder-tokens")
    one_for_all = parsed.same or (tokens, decoder_tokens) != (None, None)
    count, flag = (parsed.variants, "--variants") if parsed.variants else (parsed.copies or "2", "--copies")
    return HandoutOptions(
        worksheet=key_in(parsed.worksheet, "symbols") if parsed.symbols else parsed.worksheet,
        model=parsed.model,
        tokens=tokens,
        decoder_tokens=decoder_tokens,
        course=parsed.course,
        date=parsed.date,
        sheets=whole_number(count, flag),
        variants=bool(parsed.variants or (parsed.roster and not one_for_all)),
        seed=whole_number(parsed.seed, "--seed"),
        layout=parsed.layout,
        paper=parsed.paper,
        back="classic" if parsed.back == "exit-ticket" else parsed.back,
        key=parsed.key,
        large=parsed.large_print,
        figures=parsed.figures,
    )


def _roster(path: str) -> tuple[str, ...]:
    return read_names(sys.stdin.buffer.read(MAX_ROSTER_BYTES + 1) if path == "-" else read_file(Path(path)))


def _progress_writer(message: str) -> ReportProgress | None:
    if not sys.stderr.isatty():
        return None

    def write_progress(done: int, total: int) -> None:
        if total > 1 and (total < 50 or done % 50 == 0 or done == total):
            end = "\n" if done == total else ""
            print("\r" + message.format(done=done, total=total), end=end, file=sys.stderr, flush=True)

    return write_progress
