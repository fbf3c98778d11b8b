"""The command `serve`: bind the address, open the database, then serve from one process or several."""

from __future__ import annotations

import argparse
import socket
from typing import TYPE_CHECKING

from app.settings import Settings
from app.store import Store
from app.store.housekeeping import delete_expired

from .database import link_to, report_database_errors
from .terminal import Commands, InputError, read_settings, variable

if TYPE_CHECKING:
    from fastapi import FastAPI


def add_to(commands: Commands) -> None:
    """Add the command `serve`, which has no options; its help explains every setting."""
    commands.add("serve", _serve, _serve_help(), printable=False)


def _serve_help() -> str:
    """Return the help of the command: a sentence for each environment variable, with %% for argparse."""
    settings = (f"{variable(name)}: {field.description}" for name, field in Settings.model_fields.items())
    return "Serve the pages and the API. Settings come from the environment. " + " ".join(settings).replace("%", "%%")


def _serve(_parsed: argparse.Namespace) -> None:
    """Bind the address, open the database, delete what has expired, print where the app is, and serve until the end.

    Raises InputError for bad settings, an address that cannot be bound, and a database that cannot be opened.
    """
    from app.main import create_app  # not at the top of the file, so that `serve --help` starts without it

    settings = read_settings()
    try:
        listening = socket.create_server((settings.host, settings.port))
    except OSError as error:
        raise InputError(f"Cannot serve at {settings.host}:{settings.port}: {error.strerror}.") from None
    try:
        with report_database_errors(settings):
            app = create_app(settings)
            delete_expired(app.state.services.store.engine)
    except InputError:
        listening.close()
        raise
    _greet(settings, app.state.services.store, *listening.getsockname()[:2])
    _serve_at(listening, app, settings)


def _greet(settings: Settings, store: Store, host: str, port: int) -> None:
    """Print where the app is; also that no mail is sent, if a mail server is set without the public URL.

    While no teacher has an account, also make and print a link that makes the first one.
    """
    print(f"Attention Shapes is at http://{host}:{port} (Ctrl-C ends it)", flush=True)
    if settings.smtp and not settings.address:
        print("No mail is sent: links need ATTENTION_SHAPES_ADDRESS, such as https://shapes.example.org", flush=True)
    if not store.people.has_teacher():
        link = link_to(settings, store.people.add_link("setup"), host, port)
        print(f"The first teacher's account is made here, once: {link}", flush=True)


def _serve_at(listening: socket.socket, app: FastAPI, settings: Settings) -> None:
    """Serve on the bound socket until the process ends: `app` in this process if the settings ask for one worker.

    Several workers are processes that each make an app of their own; then the store of `app` is closed first.
    """
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
        app.state.services.store.close()
        Multiprocess(config, [listening]).run()
    else:
        uvicorn.Server(config).run(sockets=[listening])
