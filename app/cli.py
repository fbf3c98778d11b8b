"""The same verbs from a terminal. Exit status 0: done; 2: input that cannot be used, said in one line."""

from __future__ import annotations

import argparse
import io
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from alembic.util import CommandError
from pydantic import ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app import __version__
from app.attention.architecture import (
    MAX_CONFIG_BYTES,
    Architecture,
    ConfigError,
    TokensError,
    architecture_from,
    read_config,
)
from app.attention.codes import read_code
from app.attention.describe import shapes
from app.attention.forward import DEVICES, DTYPES, RUNNABLE, ForwardError, run_head
from app.attention.grading import AnswersError, Report, grade
from app.attention.hints import LEVELS, Hint, hint
from app.attention.library import Library, load_library
from app.attention.lint import findings
from app.attention.misconceptions import cannot_tell_apart
from app.attention.parameters import parameters_json
from app.attention.tickets import load_tickets
from app.attention.topics import TopicError
from app.attention.variants import SeedError, variant_json
from app.attention.worksheet import Variant, WorksheetError, plain
from app.exchange.hub import HubError, fetch_config, repository
from app.exchange.roster import LARGEST_ROSTER, RosterError, read_names
from app.handout.content import parts
from app.handout.options import FIGURES, LAYOUTS, NO_BACK, PAPERS, HandoutError, Options
from app.handout.sheets import Progress, plan
from app.handout.typesetting import Press
from app.settings import PROJECT, Settings
from app.store import Store, Teacher
from app.store.backup import BackupError, check_backup, restore_backup, write_backup
from app.store.database import open_engine
from app.store.housekeeping import tidy
from app.store.people import as_email
from app.web.simulated import make_sample

if TYPE_CHECKING:
    from fastapi import FastAPI

PARTS = {"head": "one head", "layer": "one layer", "decode": "one more token, with a cache", "cross": "cross attention",
         "model": "whole model"}  # fmt: skip
MODEL_HELP = "key of a model, path of a config.json, or org/name on the Hugging Face Hub"
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


class InputError(ValueError):
    """Something typed in the terminal that cannot be used; one line that says what to change."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; exits with 2 and one line on standard error if its input cannot be used."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a terminal or a file's text cannot show
    parsed = _parser().parse_args(arguments)
    try:
        parsed.run(parsed)
    except (InputError, *UNUSABLE) as error:
        _refuse(str(error))
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)


def _refuse(sentence: str) -> NoReturn:
    print(f"attention-shapes: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(2)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _refuse(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="attention-shapes", description="Worksheets on the shapes inside attention.")
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    def verb(name: str, run: Any, help_: str, *, printable: bool = True) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=help_, description=help_)
        added.set_defaults(run=run)
        if printable:
            added.add_argument("--json", action="store_true", help="print JSON instead of a table")
        return added

    verb("models", _models, "List the models that worksheets can be made from.")
    verb("worksheets", _worksheets, "List the worksheets.")
    shown = verb("shapes", _shapes, "Print every shape of one head and of its layer.")
    graded = verb("grade", _grade, "Mark answers to a worksheet.")
    drawn = verb("variant", _variant, "Print the sheet that a seed draws: the same seed, the same sheet.")
    drawn.add_argument("worksheet", metavar="WORKSHEET_OR_CODE", help="key of a worksheet, or the code of a sheet")
    drawn.add_argument("--key", action="store_true", help="print the answers too")
    graded.add_argument("worksheet", metavar="WORKSHEET_OR_CODE", help="key of a worksheet, or the code of a sheet")
    for command in (drawn, graded):
        command.add_argument("--seed", help="a whole number; without one, the worksheet as it was written")
    graded.add_argument("answers", metavar="ANSWERS.json", help='{"queries.rows": "100", …}; - reads standard input')
    graded.add_argument("--hint", type=int, choices=LEVELS, help="a hint as well; a higher level goes further")
    counted = verb("parameters", _parameters, "Count every parameter tensor of a model.")
    checked = verb("check-worksheets", _check_worksheets, "Report what an author should mend in worksheet files.")
    checked.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="folder with worksheets, models/ and wording/ (default: the app's own)",
    )
    run = verb("run", _run, "Run one head, or a layer, in torch and print the shapes it reports.")
    for command in (shown, counted):
        command.add_argument("models", metavar="MODEL_OR_CONFIG.json", nargs="+", help=MODEL_HELP)
    run.add_argument("model", metavar="MODEL_OR_CONFIG.json", help=MODEL_HELP)
    for command in (shown, run):
        command.add_argument("--tokens", default="100", help="length of the input (default 100)")
    shown.add_argument("--decoder-tokens", help="length of the decoder's text, for an encoder-decoder")
    run.add_argument(
        "--topic", choices=tuple(RUNNABLE), default="single-head", help="what to run (default single-head)"
    )
    run.add_argument("--device", choices=DEVICES, help="where to run (default: CUDA, else MPS, else CPU)")
    run.add_argument("--dtype", choices=DTYPES, default="float32", help="number format (default float32)")
    run.add_argument(
        "--head", default="0", help="which query head, counted from 0; of a layer, the one pictured (default 0)"
    )
    _handout_options(verb("handout", _handout, "Make a PDF to pass round, or its key.", printable=False))
    teacher = verb("teacher", _teacher, "Make accounts for those who teach.", printable=False)
    teacher.add_argument("action", choices=("add", "reset"), help="add one, or make a link that sets a new password")
    teacher.add_argument("email", metavar="EMAIL")
    teacher.add_argument("--name", default="", help="what colleagues see")
    sample = verb("sample-course", _sample, "Make a course with simulated students, to look around.", printable=False)
    sample.add_argument("email", metavar="EMAIL", nargs="?", help="whose it is; may be left out where one teacher is")
    sample.add_argument("--remove", action="store_true", help="remove it instead")
    backed = verb(
        "backup", _backup, "Write everything in the database into one file; safe while running.", printable=False
    )
    restored = verb("restore", _restore, "Put a backup in the place of everything in the database.", printable=False)
    for command in (backed, restored):
        command.add_argument("file", metavar="FILE", type=Path)
    restored.add_argument("--replace", action="store_true", help="even where there is data, which is gone then")
    verb("serve", _serve, _serve_help(), printable=False)
    return parser


def _handout_options(verb: argparse.ArgumentParser) -> None:
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


def _variable(name: str) -> str:
    """The environment variable of a setting."""
    return "DATABASE_URL" if name.lower() == "database_url" else f"ATTENTION_SHAPES_{name.upper()}"


def _serve_help() -> str:
    listed = (f"{_variable(name)}: {field.description}" for name, field in Settings.model_fields.items())
    return "Serve the pages and the API. Settings come from the environment. " + " ".join(listed).replace("%", "%%")


def _library(folder: Path = PROJECT / "worksheets") -> Library:
    return load_library(folder)


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InputError(f"{what} must be a whole number in digits, not “{text[:30]}”.")
    return int(text)


def _decoded(parsed: argparse.Namespace) -> int | None:
    return None if parsed.decoder_tokens is None else _whole(parsed.decoder_tokens, "--decoder-tokens")


def _tokens(parsed: argparse.Namespace) -> int:
    return _whole(parsed.tokens, "--tokens")


def _architecture(name: str) -> Architecture:
    library = _library()
    if name in library.models:
        return library.models[name].architecture
    path = Path(name)
    if not _is_file(path):
        if repository(name) and not name.endswith(".json"):
            return _from_hub(name)
        raise InputError(f"There is no model and no file “{name[:60]}”; models are: {', '.join(library.models)}.")
    return read_config(_read(path), path.parent.name if path.name == "config.json" else path.stem)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long for any file
        return False


def _from_hub(name: str) -> Architecture:
    settings = _settings()
    config = fetch_config(name, settings.data_dir / "hub", allowed=settings.hub)
    return architecture_from(config, name)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{str(path)[:60]} cannot be read: {reason}.") from None


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False))


def _print_table(rows: Sequence[Sequence[object]]) -> None:
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    for row in texts:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _models(parsed: argparse.Namespace) -> None:
    models = _library().models.values()
    if parsed.json:
        _print_json([{"key": m.key, "name": m.name, "family": m.architecture.family, "card": m.card} for m in models])
    else:
        _print_table([(m.key, m.name, m.architecture.family, m.card) for m in models])


def _worksheets(parsed: argparse.Namespace) -> None:
    sheets = _library().worksheets.values()
    if parsed.json:
        keys = ("key", "title", "model", "topic", "tokens")
        _print_json([{key: getattr(sheet, key) for key in keys} for sheet in sheets])
    else:
        _print_table([(s.key, s.title, s.model, s.topic, f"{s.tokens} tokens") for s in sheets])


def _shapes(parsed: argparse.Namespace) -> None:
    decoded = _decoded(parsed)
    for name in parsed.models:
        architecture = _architecture(name)
        described = shapes(architecture, _tokens(parsed), decoded)
        if parsed.json:
            _print_json(described)
        else:
            _print_shapes(architecture, described)


def _print_shapes(architecture: Architecture, described: dict[str, Any]) -> None:
    print(f"{architecture.name} ({described['family']}), {described['tokens']} tokens")
    print("  ".join(f"{symbol}={size}" for symbol, size in described["sizes"].items() if size is not None))
    for part, title in PARTS.items():
        if found := described.get(part):
            print(f"\n{title}")
            rows = [
                (f"  {key}", " × ".join(map(str, shape))) for key, shape in found.items() if isinstance(shape, list)
            ]
            _print_table(rows)
    print()


def _parameters(parsed: argparse.Namespace) -> None:
    for name in parsed.models:
        architecture = _architecture(name)
        if parsed.json:
            _print_json(parameters_json(architecture))
        else:
            _print_parameters(architecture, parameters_json(architecture))


def _print_parameters(architecture: Architecture, counted: dict[str, Any]) -> None:
    print(f"{architecture.name} ({architecture.family}), counted as {architecture.model_class}\n")
    _print_table(
        [("tensor", "symbols", "shape", "numbers", "times")]
        + [
            (t["name"], " × ".join(t["symbols"]), " × ".join(map(str, t["shape"])), f"{t['count']:,}", t["layers"])
            for t in counted["tensors"]
        ]
    )
    print()
    for run in counted["layers"]:
        buckets = ", ".join(f"{key} {run[key]:,}" for key in ("attention", "attention_norms", "mlp", "norms", "other"))
        print(f"{run['count']} layers of {run['total']:,}: {buckets}")
    for key in ("embedding", "output_head", "other", "active", "total"):
        print(f"{key.replace('_', ' ')}: {counted[key]:,}")
    print()


def _sheet(parsed: argparse.Namespace) -> Variant:
    """The sheet of a worksheet and seed, or of a code."""
    library, name = _library(), parsed.worksheet
    if name not in library.worksheets and read_code(name):
        if parsed.seed is not None:
            raise InputError("A code says all sizes of its sheet: leave out --seed.")
        return library.coded(name)
    return library.variant(name) if parsed.seed is None else library.seeded(name, _whole(parsed.seed, "--seed"))


def _variant(parsed: argparse.Namespace) -> None:
    variant = _sheet(parsed)
    if parsed.json:
        answers = {"key": {str(place): size for place, size in variant.key.items()}} if parsed.key else {}
        seed = None if parsed.seed is None else _whole(parsed.seed, "--seed")
        _print_json({**variant_json(variant), "seed": seed, **answers})
    else:
        _print_variant(variant, parsed.key)


def _print_variant(variant: Variant, key: bool) -> None:
    print(f"{variant.title}   {variant.code}\n\n{variant.description}\n{variant.task}\n")
    rows = [("", *variant.axes)]
    for row in variant.rows:
        sides = [
            f"{plain(variant.answer(p))} = {variant.notation.write(variant.side(p))}" if key else "____"
            for p in row.places
        ]
        note = f" ({row.note})" if row.note else ""
        rows.append((f"{row.letter}  {row.name}{note}", *sides))
    _print_table([[*row, *[""] * (len(variant.axes) + 1 - len(row))] for row in rows])
    for one, other in cannot_tell_apart(variant.standing):
        print(f"cannot tell apart: {one}, {other}")


def _check_worksheets(parsed: argparse.Namespace) -> None:
    """Exit status 1 where something is to be mended."""
    library = _library(Path(parsed.folder)) if parsed.folder else _library()
    if not library.worksheets:
        raise InputError(f"There is no worksheet (*.toml) in {str(parsed.folder)[:60]}.")
    found = list(findings(library))
    if parsed.json:
        _print_json([{"worksheet": f.worksheet, "kind": f.kind, "message": f.message} for f in found])
    else:
        for finding in found:
            print(f"{finding.worksheet}: {finding.message}")
        mend = len({finding.worksheet for finding in found if finding.to_mend})
        print(f"{len(library.worksheets)} worksheets read, {mend} with something to mend.")
    if any(finding.to_mend for finding in found):
        sys.exit(1)


def _grade(parsed: argparse.Namespace) -> None:
    variant = _sheet(parsed)
    report = grade(variant, _answers(parsed.answers))
    hinted = hint(variant, report, parsed.hint) if parsed.hint else None
    if parsed.json:
        asked = {"hint": hinted and hinted.as_json()} if parsed.hint else {}
        _print_json({**report.as_json(), **asked})
    else:
        _print_report(report, hinted)


def _answers(name: str) -> dict[str, str]:
    text = sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1) if name == "-" else _read(Path(name))
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
    _print_table([(place, mark.kind, mark.text[:40], mark.message) for place, mark in report.marks.items()])
    print(f"{report.score} of {report.out_of}")
    if report.diagnosis:
        print(report.diagnosis.message)
    if hinted and not (report.diagnosis and hinted.message == report.diagnosis.message):
        print(hinted.message)


def _run(parsed: argparse.Namespace) -> None:
    head = _whole(parsed.head, "--head")
    options = {"topic": parsed.topic, "head": head, "device": parsed.device, "dtype": parsed.dtype}
    result = run_head(_architecture(parsed.model), _tokens(parsed), **options).as_dict()
    if parsed.json:
        _print_json(result)
        return
    print(f"{result['model']}, {result['tokens']} tokens, on {result['device_name']} in {result['dtype']}")
    _print_table([(f"  {key}", " × ".join(map(str, shape))) for key, shape in result["shapes"].items()])
    print("table and torch agree" if result["agrees"] else f"table and torch differ: {result['disagreements']}")


def _handout(parsed: argparse.Namespace) -> None:
    settings = _settings()
    tickets = load_tickets(PROJECT / "worksheets")
    options = _handout_of(parsed).checked(tickets)
    names = _roster(parsed.roster) if parsed.roster else ()
    sheets = plan(_library(), options, names, _progress("sheets"))
    made = parts(options, sheets, tickets, settings.address)
    _write(parsed.output, Press(settings.data_dir / "fonts").pdf(made, _progress("parts set")))


def _handout_of(parsed: argparse.Namespace) -> Options:
    return Options(
        worksheet=parsed.worksheet,
        model=parsed.model,
        tokens=None if parsed.tokens is None else _whole(parsed.tokens, "--tokens"),
        decoder_tokens=_decoded(parsed),
        course=parsed.course,
        date=parsed.date,
        copies=_whole(parsed.copies or "2", "--copies"),
        variants=_whole(parsed.variants or "0", "--variants"),
        same=parsed.same,
        seed=_whole(parsed.seed, "--seed"),
        layout=parsed.layout,
        paper=parsed.paper,
        back="classic" if parsed.back == "exit-ticket" else parsed.back,
        key=parsed.key,
        large=parsed.large_print,
        figures=parsed.figures,
    )


def _roster(name: str) -> tuple[str, ...]:
    return read_names(sys.stdin.buffer.read(LARGEST_ROSTER + 1) if name == "-" else _read(Path(name)))


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


def _settings() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{_variable(str(first['loc'][0]))}: {reason}.") from None


def _teacher(parsed: argparse.Namespace) -> None:
    email, settings = as_email(parsed.email), _settings()
    if email is None:
        raise InputError(f"“{parsed.email[:60]}” is no e-mail address.")
    with _store(settings) as store:
        if parsed.action == "add" and store.people.add_teacher(email, parsed.name[:100]) is None:
            raise InputError(f"{email} has an account already; teacher reset {email} makes a link for a new password.")
        if store.people.find_teacher(email) is None:
            raise InputError(f"Nobody has the address {email}; teacher add {email} makes an account.")
        token = store.people.add_link("reset", email)
        store.people.note("terminal", f"teacher {parsed.action}")
    print(f"With this link, once and within two days, {email} sets a password:\n{_link(settings, token)}")


def _sample(parsed: argparse.Namespace) -> None:
    with _store(_settings()) as store:
        teacher = _whose(store, parsed.email)
        if parsed.remove:
            _remove_samples(store, teacher)
            return
        course = make_sample(_library(), load_tickets(PROJECT / "worksheets"), store, teacher)
        store.people.note("terminal", "sample course made", f"course {course.id}")
        print(f"“{course.title}” is in the list of {teacher.email}; sample-course --remove removes it.")


def _remove_samples(store: Store, teacher: Teacher) -> None:
    found = [taught.course for taught in store.courses.taught_by(teacher) if taught.course.sample]
    for course in found:
        store.courses.delete(course)
        store.people.note("terminal", "sample course removed", f"course {course.id}")
    print("It is removed." if found else f"There is no sample course in the list of {teacher.email}.")


def _whose(store: Store, email: str | None) -> Teacher:
    """The teacher of that address, or the only one there is."""
    found = store.people.find_teacher(email) if email else store.people.only_teacher()
    if found is None:
        raise InputError("Say whose it is: sample-course EMAIL, of somebody with an account (teacher add makes one).")
    return found


def _backup(parsed: argparse.Namespace) -> None:
    with _database() as engine, _told(parsed.file):
        try:
            contents = write_backup(engine, parsed.file)
        except OSError as error:
            raise InputError(f"{parsed.file} cannot be written: {error.strerror}.") from None
    tables = sum(1 for table in contents.tables.values() if table.rows)
    print(f"{contents.rows:,} rows of {tables} tables are in {parsed.file}; it holds names and answers: keep it safe.")


def _restore(parsed: argparse.Namespace) -> None:
    with _told(parsed.file):
        try:
            check_backup(parsed.file)  # before anything is made
        except OSError as error:
            raise InputError(f"{parsed.file} cannot be read: {error.strerror}.") from None
        with _database() as engine:
            contents = restore_backup(engine, parsed.file, replace=parsed.replace)
    print(f"{contents.rows:,} rows are restored, as they were on {contents.made_at[:16].replace('T', ' at ')} UTC.")


BACKUP_PROBLEMS = {
    "empty": "There is nothing to back up: the database has no tables yet.",
    "newer": "{file} or the database was made by a newer version of this program: update.",
    "no-backup": "{file} is no backup, or was cut short.",
    "damaged": "{file} is damaged: what is in it is not what was written. Nothing was changed; take another backup.",
    "not-empty": "There is data in the database already; restore --replace {file} puts the backup in its place.",
    "misfit": "{file} does not fit together with what it says of itself. Nothing was changed; take another backup.",
}


@contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except BackupError as error:
        raise InputError(BACKUP_PROBLEMS[error.reason].format(file=file)) from None


@contextmanager
def _database() -> Iterator[Engine]:
    """The database as it is, whatever its tables."""
    settings = _settings()
    with _opening(settings):
        engine = open_engine(settings.database)
        try:
            yield engine
        finally:
            engine.dispose()


@contextmanager
def _store(settings: Settings) -> Iterator[Store]:
    """The database, open for as long as a command needs it."""
    with _opening(settings):
        store = Store(settings.database)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _opening(settings: Settings) -> Iterator[None]:
    """Whatever keeps the database from being opened is said in one line."""
    try:
        yield
    except CommandError:
        raise InputError("The database was made by a newer version of this program: update, or name another.") from None
    except SQLAlchemyError as error:
        raise InputError(f"The database cannot be opened: {str(error.args[0]).splitlines()[0]}") from None
    except OSError as error:
        raise InputError(f"The folder {settings.data_dir} cannot be used: {error.strerror}.") from None


def _link(settings: Settings, token: str, host: str = "", port: int = 0) -> str:
    """A link to pass on, at the address that people type."""
    there = settings.address or f"http://{host or settings.host}:{port or settings.port}"
    return f"{there.rstrip('/')}/links/{token}"


def _serve(_parsed: argparse.Namespace) -> None:
    from app.main import create_app  # here, so that the other verbs start without a web server

    settings = _settings()
    try:
        listening = socket.create_server((settings.host, settings.port))
    except OSError as error:
        raise InputError(f"Cannot serve at {settings.host}:{settings.port}: {error.strerror}.") from None
    try:
        with _opening(settings):
            app = create_app(settings)
            tidy(app.state.parts.store.engine)
    except InputError:
        listening.close()
        raise
    _greet(settings, app.state.parts.store, *listening.getsockname()[:2])
    _serve_at(listening, app, settings)


def _greet(settings: Settings, store: Store, host: str, port: int) -> None:
    """Say where the app is, and while nobody has an account, how the first one is made."""
    print(f"Attention Shapes is at http://{host}:{port} (Ctrl-C ends it)", flush=True)
    if settings.smtp and not settings.address:
        print("No mail is sent: links need ATTENTION_SHAPES_ADDRESS, such as https://shapes.example.org", flush=True)
    if not store.people.has_teacher():
        link = _link(settings, store.people.add_link("setup"), host, port)
        print(f"The first teacher's account is made here, once: {link}", flush=True)


def _serve_at(listening: socket.socket, app: FastAPI, settings: Settings) -> None:
    """Serve until the process is ended: here, or in as many processes as are set, each with an app of its own."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    several = settings.workers > 1
    config = uvicorn.Config(
        "app.main:create_app" if several else app,
        factory=several,
        workers=settings.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        forwarded_allow_ips=settings.proxies,
    )
    if several:
        app.state.parts.store.close()
        Multiprocess(config, [listening]).run()
    else:
        uvicorn.Server(config).run(sockets=[listening])
