"""The verb that makes a PDF to pass round."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.exchange.roster import MAX_ROSTER_BYTES, read_names
from app.handout.content import parts
from app.handout.options import FIGURES, LAYOUTS, NO_BACK, PAPERS, Options
from app.handout.sheets import Progress, plan
from app.handout.typesetting import Press
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets

from .terminal import InputError, Verbs, open_library, read_file, read_settings, whole, whole_or_none


def add_to(verbs: Verbs) -> None:
    """Add the verb of this module."""
    verb = verbs.add("handout", _handout, "Make a PDF to pass round, or its key.", printable=False)
    verb.add_argument("worksheet", metavar="WORKSHEET", help="key of a worksheet")
    verb.add_argument("-o", "--output", metavar="FILE.pdf", required=True, help="where to write; - is standard output")
    verb.add_argument("--model", default="", help="key of another model")
    verb.add_argument("--tokens", help="length of the input, the same on every sheet")
    verb.add_argument("--decoder-tokens", help="length of the decoder's text, where a sheet asks for it")
    verb.add_argument("--course", default="", help="what stands above the title")
    verb.add_argument("--date", default="", help="any text; without it no date is printed")
    wanted = verb.add_mutually_exclusive_group()
    wanted.add_argument(
        "--roster", metavar="NAMES.csv", help="class list: a version for each name; - is standard input"
    )
    wanted.add_argument("--variants", metavar="K", help="K versions that differ")
    wanted.add_argument("--copies", metavar="K", help="the same sheet K times (default 2)")
    verb.add_argument("--same", action="store_true", help="with --roster: the same sheet for everyone")
    verb.add_argument("--seed", default="0", help="another seed, other versions (default 0)")
    for name, choices in (("layout", LAYOUTS), ("paper", PAPERS), ("figures", FIGURES)):
        verb.add_argument(f"--{name}", choices=choices, default=choices[0], help=f"(default {choices[0]})")
    verb.add_argument("--back", metavar="TICKET", default=NO_BACK, help="exit-ticket, another of its kind, or none")
    keys = verb.add_mutually_exclusive_group()
    keys.add_argument("--key", dest="key", action="store_const", const="only", help="the key alone")
    keys.add_argument("--with-key", dest="key", action="store_const", const="with", help="the sheets, then the key")
    verb.set_defaults(key="none")
    verb.add_argument("--large-print", action="store_true", help="18 pt, on full pages")


def _handout(parsed: argparse.Namespace) -> None:
    settings = read_settings()
    tickets = load_tickets(PROJECT / "worksheets")
    options = _handout_of(parsed).checked(tickets)
    names = _roster(parsed.roster) if parsed.roster else ()
    sheets = plan(open_library(), options, names, _progress("sheets"))
    made = parts(options, sheets, tickets, settings.address)
    _write(parsed.output, Press(settings.data_dir / "fonts").pdf(made, _progress("parts set")))


def _handout_of(parsed: argparse.Namespace) -> Options:
    return Options(
        worksheet=parsed.worksheet,
        model=parsed.model,
        tokens=whole_or_none(parsed.tokens, "--tokens"),
        decoder_tokens=whole_or_none(parsed.decoder_tokens, "--decoder-tokens"),
        course=parsed.course,
        date=parsed.date,
        copies=whole(parsed.copies or "2", "--copies"),
        variants=whole(parsed.variants or "0", "--variants"),
        same=parsed.same,
        seed=whole(parsed.seed, "--seed"),
        layout=parsed.layout,
        paper=parsed.paper,
        back="classic" if parsed.back == "exit-ticket" else parsed.back,
        key=parsed.key,
        large=parsed.large_print,
        figures=parsed.figures,
    )


def _roster(name: str) -> tuple[str, ...]:
    return read_names(sys.stdin.buffer.read(MAX_ROSTER_BYTES + 1) if name == "-" else read_file(Path(name)))


def _progress(what: str) -> Progress | None:
    """Tells a person at a terminal how far a large handout is; a file or pipe gets nothing."""
    if not sys.stderr.isatty():
        return None

    def tell(done: int, of: int) -> None:
        if of > 1 and (of < 50 or done % 50 == 0 or done == of):
            print(f"\r{done} of {of} {what}", end="\n" if done == of else "", file=sys.stderr, flush=True)

    return tell


def _write(name: str, made: bytes) -> None:
    if name == "-":
        sys.stdout.buffer.write(made)
        return
    try:
        Path(name).write_bytes(made)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{name[:60]} cannot be written: {reason}.") from None
