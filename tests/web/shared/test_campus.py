"""The app on a campus: several workers behind TLS, what is cleared away, and what no log says."""

from __future__ import annotations

import http.client
import logging
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import httpx
import psutil
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from pydantic import ValidationError

from app.logs import LogFormatter
from app.settings import PROJECT, Settings
from app.store import AuditAction, PracticeSheetKey, Store
from app.store.housekeeping import delete_expired
from app.store.tables import (
    account_links,
    attempts,
    audit_log,
    drafts,
    runs,
    sessions,
    students,
    visitors,
)
from app.web.shared import errors
from tests.helpers.running_app import running_app
from tests.helpers.school import School
from tests.helpers.stored_class import record

pytestmark = pytest.mark.slow

PROXIED = {"Host": "shapes.example.org", "X-Forwarded-Proto": "https", "X-Forwarded-For": "198.51.100.7"}


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[tuple[int, str, psutil.Process]]:
    """The app in processes of its own: its port, the path of the set-up link, and the first process."""
    own = {f"ATTENTION_SHAPES_{name.upper()}": value for name, value in settings.items()}
    environment = {**os.environ, "ATTENTION_SHAPES_PORT": "0", "ATTENTION_SHAPES_DATA_DIR": str(folder), **own}
    environment.pop("DATABASE_URL", None)
    command = [sys.executable, "-c", "from app.cli import main; main()", "serve"]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = re.search(r":(\d+) ", process.stdout.readline())
        link = re.search(r"(/links/\S+)", process.stdout.readline())
        assert port
        assert link
        try:
            yield int(port[1]), link[1], psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(120)


def ask(
    port: int, path: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> http.client.HTTPResponse:
    """One request on a connection of its own, as Caddy passes it on."""
    body = urlencode(form) if form is not None else None
    kind = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        connection.request("POST" if body else "GET", path, body, {**PROXIED, **kind, **(headers or {})})
        response = connection.getresponse()
        response.read()
        return response


def test_several_workers_behind_tls_are_one_app(tmp_path: Path) -> None:
    with serving(tmp_path, workers="2") as (port, link, process):
        account = {"email": "ada@example.org", "name": "Ada", "password": "correct horse battery"}
        elsewhere = ask(port, link, account, {"Origin": "https://evil.example"})
        assert elsewhere.status == 403
        made = ask(port, link, account, {"Origin": "https://shapes.example.org"})
        assert made.status == 303
        cookie = made.headers["Set-Cookie"]
        assert {"secure", "httponly", "samesite=lax"} <= set(re.split("; *", cookie.lower()))
        workers = [child for child in process.children() if "spawn_main" in " ".join(child.cmdline())]
        assert len(workers) == 2
        signed_in = {"Cookie": cookie.partition(";")[0]}
        for worker in (None, *workers):
            if worker:  # while one is frozen, the other answers
                worker.suspend()
            assert ask(port, "/courses", None, signed_in).status == 200
            if worker:
                worker.resume()
    assert not process.is_running()


def test_without_a_known_proxy_nobody_says_who_they_are(tmp_path: Path) -> None:
    with serving(tmp_path, proxies="192.0.2.1") as (port, link, _):
        account = {"email": "ada@example.org", "name": "Ada", "password": "correct horse battery"}
        cookie = ask(port, link, account).headers["Set-Cookie"]
        assert "secure" not in re.split("; *", cookie.lower())


# Proxies

NGINX = """
daemon off; pid {folder}/nginx.pid; error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{app};
      proxy_set_header Host $host:$server_port;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-For $remote_addr;
    }}
  }}
}}
"""
CADDY = """
{{
  admin off
  auto_https off
}}
http://127.0.0.1:{port} {{
  reverse_proxy 127.0.0.1:{app}
}}
"""
PROXIES = {
    "nginx": (NGINX, ["nginx", "-p", "{folder}", "-c", "{folder}/config", "-e", "stderr"]),
    "caddy": (CADDY, ["caddy", "run", "--adapter", "caddyfile", "--config", "{folder}/config"]),
}


@contextmanager
def proxy(kind: str, folder: Path, app: int) -> Iterator[int]:
    """A real nginx or Caddy in front of the app, set up as docs/campus.md says; its port."""
    config, command = PROXIES[kind]
    assert shutil.which(command[0]), f"{kind} is not installed: “make programs” installs it"
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    folder.mkdir()
    (folder / "config").write_text(config.format(folder=folder, port=port, app=app))
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    filled_in = [part.format(folder=folder) for part in command]
    with subprocess.Popen(filled_in, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 120
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert time.monotonic() < until, f"{kind} does not listen"
                    time.sleep(0.1)
            yield port
        finally:
            process.terminate()
            process.wait(120)


@pytest.mark.parametrize("kind", PROXIES)
def test_behind_a_proxy_nobody_chooses_who_they_are(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path / "data") as (app, _, _), proxy(kind, tmp_path / kind, app) as port:
        statuses = Counter[int]()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            for number in range(400):
                invented = {
                    "X-Forwarded-For": f"198.51.{number // 250}.{number % 250}",
                    "Sec-Fetch-Site": "same-origin",
                }
                statuses[client.post("/resume", data={"code": "AAAAA-AAAAA"}, headers=invented).status_code] += 1
                if statuses[429]:
                    break
    assert statuses[429], statuses


def test_a_proxy_is_named_and_not_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(proxies="127.0.0.1, 10.0.0.0/8,::1").proxies
    for wrong in ("*", "caddy", ""):
        with pytest.raises(ValidationError, match="networks"):
            Settings(proxies=wrong)


@pytest.mark.parametrize("when", ["they serve", "they have just begun"])
def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path: Path, when: str) -> None:
    with serving(tmp_path, workers="2") as (port, _, process):
        workers = list[psutil.Process]()
        while len(workers) < 2:
            workers = [child for child in process.children() if "spawn_main" in " ".join(child.cmdline())]
        if when == "they serve":
            assert ask(port, "/healthz/ready").status == 200
        process.kill()
        assert psutil.wait_procs(workers, timeout=300)[1] == []
        socket.create_server(("127.0.0.1", port)).close()


def test_the_limit_of_files_is_raised_to_what_the_system_allows(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, limits[1]), limits[1]))
    try:
        with serving(tmp_path) as (_, _, process):
            assert process.rlimit(psutil.RLIMIT_NOFILE) == (limits[1], limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_more_workers_than_the_database_has_connections_for_do_not_start(
    new_postgres_database: str, tmp_path: Path
) -> None:
    options = {"DATA_DIR": str(tmp_path), "PORT": "0", "WORKERS": "64"}
    settings = {f"ATTENTION_SHAPES_{name}": value for name, value in options.items()}
    told = subprocess.run(
        [sys.executable, "-c", "from app.cli import main; main()", "serve"], cwd=PROJECT, capture_output=True,
        text=True, env={**os.environ, **settings, "DATABASE_URL": new_postgres_database}, timeout=300,
    )  # fmt: skip
    assert told.returncode == 2
    assert re.search(r"64 web processes and 0 workers need 256 connections .* allows \d+:", told.stderr)


# What is cleared away


def test_what_is_of_no_more_use_goes_and_everything_else_stays(store: Store) -> None:
    teacher = store.people.add_teacher("ada@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    forgotten, enrolled, active, fresh = (store.add_visitor() for _ in range(4))
    store.roster.enrol_new_student(course, "Kim", enrolled.id)
    for visitor in (forgotten, active):
        record(store, PracticeSheetKey(visitor.id, "s"), {})
    old_run, new_run = store.add_run(store.new_run({}, {})), store.add_run(store.new_run({}, {}))
    store.people.open_session(teacher)
    store.people.add_link("invite", "bo@example.org")
    store.audit_log.record(teacher, AuditAction.SIGNED_IN)
    ago = datetime.now(UTC) - timedelta(days=800)
    with store.engine.begin() as connection:
        for table, column, key in (
            (runs, "created_at", old_run.id), (attempts, "created_at", 1), (drafts, "saved_at", 1),
            (account_links, "expires_at", 1), (sessions, "created_at", 1), (audit_log, "at", 1),
        ):  # fmt: skip
            connection.execute(sa.update(table).where(table.c.id == key).values({column: ago}))
        connection.execute(sa.update(visitors).where(visitors.c.id != fresh.id).values(created_at=ago))
    assert delete_expired(store.engine, store.now()) == 7  # each of these six, and the visitor
    assert delete_expired(store.engine, store.now()) == 0
    assert store.find_visitor(forgotten.token) is None
    assert all(store.find_visitor(kept.token) for kept in (enrolled, active, fresh))
    assert store.find_run(old_run.id) is None
    assert store.find_run(new_run.id)
    with store.engine.connect() as connection:
        counts = [
            connection.scalar(sa.select(sa.func.count()).select_from(t))
            for t in (sessions, account_links, audit_log, students)
        ]
    assert counts == [0, 0, 0, 1]


# What no log says


@pytest.fixture
def app_that_breaks(bare_database_url: str, tmp_path: Path) -> Iterator[FastAPI]:
    """An app for one test, on each database, whose tables may be dropped."""
    with running_app(tmp_path, bare_database_url) as running:
        yield running


def test_no_line_of_a_log_has_a_name_or_an_answer(app_that_breaks: FastAPI, caplog: pytest.LogCaptureFixture) -> None:
    errors._last_logged.clear()
    school = School(app_that_breaks)
    ada = school.teacher("ada@example.org")
    course = school.course("Transformers", ada)
    activity = school.activity(course)
    _, visitor = school.student(course, "Kim Secretname")
    caplog.set_level(logging.DEBUG)
    with school.browser(visitor=visitor) as browser, school.browser(teacher=ada) as staff:
        sheet = f"/class/{activity.id}/1"
        assert browser.post(f"{sheet}/save", data={"queries.rows": "4711 secret"}).status_code == 200
        staff.post(f"/courses/{course.id}/students", data={"roster": "Lou Secretname, 1017"})
        with school.store.engine.begin() as connection:
            drafts.drop(connection)
        assert browser.post(f"{sheet}/save", data={"queries.rows": "4711 secret"}).status_code == 500
        browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": "a secret"})
        staff.post(f"/courses/{course.id}/students", data={"roster": "Max Secretname, 1018"})
    said = " ".join(LogFormatter().format(record) for record in caplog.records)
    assert "bug: POST" in said
    for secret in ("Secretname", "4711", "a secret", "ada@example.org", visitor.token, activity.join_code):
        assert secret not in said
