"""The command `serve`: bind the address, open the database, then serve from one or several processes."""

from __future__ import annotations

import argparse
import errno
import logging
import multiprocessing
import os
import signal
import socket
import textwrap
import threading
from contextlib import suppress
from ipaddress import ip_address
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

from app import __version__, metrics
from app.addresses import is_local, lan_addresses, url_here
from app.jobs.jobs import CONNECTIONS_OF_ENGINE
from app.logs import LOGGING, configure_logging
from app.secret_key import SECRET_FILE
from app.settings import Settings
from app.store import Store
from app.store.database import (
    MIN_CONNECTIONS,
    another_key_signs,
    clock_ahead_s,
    connections_allowed,
    connections_of_each,
    count_locked,
    is_newer,
    revision_of,
)
from app.translation import ENGLISH
from app.translation import gettext as _

from .database import keep_private, link_to, report_database_errors
from .terminal import Commands, InputError, read_settings, variable

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger("attention_shapes")

MAX_CLOCK_DIFFERENCE_S = 2.0
SECONDS_UNTIL_REPLACED = 20  # a busy machine answers late, and a class would lose a worker


def add_to(commands: Commands) -> None:
    """Add the command `serve`, which has no options."""
    command = commands.add("serve", _serve, _("Serve the pages and the API."), printable=False)
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    paragraphs = (
        f"{variable(name)}\n{textwrap.fill(_(str(field.description)), 90, initial_indent='  ', subsequent_indent='  ')}"
        for name, field in Settings.model_fields.items()
    )
    heading = _("These environment variables hold the settings:")
    command.epilog = "\n\n".join((heading, *paragraphs)).replace("%", "%%")


def _serve(_parsed: argparse.Namespace) -> None:
    """Bind the address, open the database, print where the app is, and serve until Ctrl-C or a signal."""
    settings = read_settings()
    _raise_file_limit()
    listening = _listen(settings.host, settings.port)
    if settings.metrics:
        start_metrics(settings, settings.data_dir / "metrics")
    try:
        with report_database_errors(settings):
            keep_private(settings)
            _warn_of_lost_data(settings)
            app = _create_app(settings)
            _check_campus(settings, app.state.services.store)
    except InputError:
        listening.close()
        raise
    host, port = listening.getsockname()[:2]
    configure_logging()
    log.info("%s", start_line(settings))
    _greet(settings, app.state.services.store, host, port)
    with suppress(KeyboardInterrupt):  # the greeting says to press Ctrl-C, so it isn't an error
        _serve_at(listening, app, settings)


def start_line(settings: Settings) -> str:
    """What an operator asks first of a log: the version, the database, and what was set; no password."""
    database = "SQLite" if settings.database.startswith("sqlite") else "PostgreSQL"
    changed = settings.model_dump(exclude_defaults=True, exclude={"database_url", "smtp", "smtp_from"})
    told = " ".join(f"{name}={value}" for name, value in changed.items())
    return f"Attention Shapes {__version__}, {database}, settings: {told or 'none'}"


def _warn_of_lost_data(settings: Settings) -> None:
    file = settings.data_dir / "attention-shapes.sqlite3"
    is_lost = not file.exists() or not file.stat().st_size
    if not settings.database_url and is_lost and (settings.data_dir / SECRET_FILE).exists():
        warning = _("{folder} has a {key} but no data, so this is a new server. If it had data, restore a backup.")
        print(warning.format(folder=settings.data_dir, key=SECRET_FILE), flush=True)


def _check_campus(settings: Settings, store: Store) -> None:
    allowed = connections_allowed(store.engine)
    if allowed is None:
        if settings.machines > 1:
            problem = _("Several machines need PostgreSQL: set {database}, or {machines} to 1.")
            raise InputError(problem.format(database=variable("database_url"), machines=variable("machines")))
        return
    job_workers = sum(worker.is_alive for worker in store.jobs.workers())
    of_each = MIN_CONNECTIONS + CONNECTIONS_OF_ENGINE
    needed = settings.processes * connections_of_each(settings.processes) + job_workers * of_each
    if needed > allowed:
        problem = _(
            "{processes} web processes and {workers} workers need {needed} connections to the database, and PostgreSQL "
            "allows {allowed}: start fewer, or set a larger max_connections."
        )
        numbers = {"processes": settings.processes, "workers": job_workers, "needed": needed, "allowed": allowed}
        raise InputError(problem.format(**numbers))
    if another_key_signs(store.engine, store.key):
        problem = _(
            "Another machine serves this database with another secret key, so that neither would know the other’s "
            "resume codes. Copy its {file} to {folder}."
        )
        raise InputError(problem.format(file=SECRET_FILE, folder=settings.data_dir))


def _raise_file_limit() -> None:
    with suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        problem = _("Cannot serve at {host}:{port}: {reason}.")
        reason = (error.strerror or str(error)).partition(" (while")[0]  # Python repeats the address there
        advice = ""
        if error.errno == errno.EADDRINUSE:
            advice = " " + _("Stop the other program, or set {variable}.").format(variable=variable("port"))
        raise InputError(problem.format(host=host, port=port, reason=reason) + advice) from None


def start_metrics(settings: Settings, folder: Path) -> None:
    """Collect metrics of this process and its children in `folder`, which is created or emptied, and serve them."""
    metrics.switch_on(folder)
    try:
        metrics.serve_metrics(settings.metrics)
    except OSError as error:
        problem = _("Cannot serve metrics at {address}: {reason}.")
        raise InputError(problem.format(address=settings.metrics, reason=error.strerror or str(error))) from None


def _greet(settings: Settings, store: Store, host: str, port: int) -> None:
    is_everywhere, here = ip_address(host).is_unspecified, url_here(host, port)
    print(_("Attention Shapes is at {url} (stop it with Ctrl-C)").format(url=here), flush=True)
    if not settings.practice:
        print(_("Practice is closed to visitors."), flush=True)
    if settings.smtp and not settings.address:
        advice = _("No mail will be sent until {variable} is set, such as https://shapes.example.org.")
        print(advice.format(variable=variable("address")), flush=True)
    if locked := count_locked(store.engine, store.key):
        advice = _(
            "{count} resume codes were stored with another secret key. They work again once that key is back in "
            "{file}; until then, teachers can free a student’s name."
        )
        print(advice.format(count=locked, file=settings.data_dir / SECRET_FILE), flush=True)
    if abs(ahead_s := clock_ahead_s(store.engine)) > MAX_CLOCK_DIFFERENCE_S:
        advice = (
            _("This machine’s clock is {seconds:,.0f} s ahead of the database’s: activities close too early here.")
            if ahead_s > 0
            else _("This machine’s clock is {seconds:,.0f} s behind the database’s: activities close too late here.")
        )
        print(advice.format(seconds=abs(ahead_s)), flush=True)
    with store.engine.connect() as connection:
        is_behind = is_newer(revision_of(connection) or "")
    if is_behind:
        print(_("A newer version of this program uses this database: update this one as well."), flush=True)
    if not store.people.has_teacher():
        link = link_to(settings, store.people.add_link("setup"), here)
        print(_("Create the first teacher’s account with this one-time link: {link}").format(link=link), flush=True)
    if settings.address:
        return
    if is_everywhere:
        for address in lan_addresses():
            print(_("Students in your network open {url}").format(url=f"http://{address}:{port}"), flush=True)
    elif is_local(host):
        advice = _(
            "Students on other computers can’t open this address yet. To let them in, stop this server and start it "
            "with: {command}"
        )
        print(advice.format(command="ATTENTION_SHAPES_HOST=0.0.0.0 make serve"), flush=True)


def _serve_at(listening: socket.socket, app: FastAPI, settings: Settings) -> None:
    import uvicorn

    from app.web.shared.connection_limits import LimitedProtocol, listeners

    from .web_processes import Workers

    # a malformed form gets an answer, and isn't our fault
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    several = settings.workers > 1
    config = uvicorn.Config(
        "app.cli.serve:create_worker_app" if several else app,
        factory=several,
        workers=settings.workers,
        http=LimitedProtocol,
        log_config=LOGGING,
        log_level="warning",
        access_log=False,  # ours has routes, not addresses with tokens: see RequestLog
        server_header=False,
        timeout_graceful_shutdown=5,
        timeout_worker_healthcheck=SECONDS_UNTIL_REPLACED,
        forwarded_allow_ips=settings.proxies,
    )
    if several:
        app.state.services.store.close()
        workers = Workers(config, listeners(listening))
        workers.run()
        if workers.keep_dying:
            raise InputError(_("The workers end as soon as they start: see the lines above."))
    else:
        _fill_caches_of(app)
        uvicorn.Server(config).run(sockets=listeners(listening))


def create_worker_app() -> FastAPI:
    """Create the app of one of several worker processes, with the environment's settings."""

    def end_with(parent: BaseProcess) -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    if parent := multiprocessing.parent_process():
        threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    app = _create_app()
    _fill_caches_of(app)
    return app


def _fill_caches_of(app: FastAPI) -> None:
    from app.main import fill_caches

    threading.Thread(target=fill_caches, args=(app.state.services.libraries[ENGLISH],), daemon=True).start()


def _create_app(settings: Settings | None = None) -> FastAPI:
    from app.main import create_app  # not at the top of the file, so that `serve --help` starts without it

    return create_app(settings)
