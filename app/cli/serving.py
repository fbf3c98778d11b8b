"""The verb that serves: the address bound first, the database opened, then one process or several."""

from __future__ import annotations

import argparse
import socket
from typing import TYPE_CHECKING

from app.settings import Settings
from app.store import Store
from app.store.housekeeping import tidy

from .opening import link_to, opening
from .terminal import InputError, Verbs, read_settings, variable

if TYPE_CHECKING:
    from fastapi import FastAPI


def add_to(verbs: Verbs) -> None:
    """Add the verb of this module."""
    verbs.add("serve", _serve, _serve_help(), printable=False)


def _serve_help() -> str:
    listed = (f"{variable(name)}: {field.description}" for name, field in Settings.model_fields.items())
    return "Serve the pages and the API. Settings come from the environment. " + " ".join(listed).replace("%", "%%")


def _serve(_parsed: argparse.Namespace) -> None:
    from app.main import create_app  # here, so that the other verbs start without a web server

    settings = read_settings()
    try:
        listening = socket.create_server((settings.host, settings.port))
    except OSError as error:
        raise InputError(f"Cannot serve at {settings.host}:{settings.port}: {error.strerror}.") from None
    try:
        with opening(settings):
            app = create_app(settings)
            tidy(app.state.services.store.engine)
    except InputError:
        listening.close()
        raise
    _greet(settings, app.state.services.store, *listening.getsockname()[:2])
    _serve_at(listening, app, settings)


def _greet(settings: Settings, store: Store, host: str, port: int) -> None:
    """Say where the app is, and while nobody has an account, how the first one is made."""
    print(f"Attention Shapes is at http://{host}:{port} (Ctrl-C ends it)", flush=True)
    if settings.smtp and not settings.address:
        print("No mail is sent: links need ATTENTION_SHAPES_ADDRESS, such as https://shapes.example.org", flush=True)
    if not store.people.has_teacher():
        link = link_to(settings, store.people.add_link("setup"), host, port)
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
        app.state.services.store.close()
        Multiprocess(config, [listening]).run()
    else:
        uvicorn.Server(config).run(sockets=[listening])
