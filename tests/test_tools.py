"""tools/test_programs.sh, on a machine made of stand-ins: nothing is installed or downloaded here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.settings import PROJECT

SHELL_TOOLS = ("sh", "tr", "env", "touch", "chmod")
COMMANDS = {
    ".venv/bin/python": "test -e browser",  # -m simulation.browser: starts if there is one
    ".venv/bin/playwright": 'echo "playwright $*" >>calls; test "$1" != install || touch browser',
    "bin/id": "echo 1000",
    "bin/sudo": "exit 1",
    "bin/apt-get": 'echo "apt-get $*" >>calls; case $* in *chromium*) touch browser ;; *caddy*) touch bin/caddy; '
    "chmod +x bin/caddy ;; *nginx*) touch bin/nginx; chmod +x bin/nginx ;; esac",
}


def look(folder: Path, scope: str = "", changed: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Exit status, standard error and the installers' calls of the script, where these commands do something else."""
    for name, script in {**COMMANDS, **(changed or {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    for name in SHELL_TOOLS:
        (folder / "bin" / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run(
        ["sh", PROJECT / "tools/test_programs.sh", scope],
        cwd=folder, env={"PATH": str(folder / "bin")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    calls = (folder / "calls").read_text() if (folder / "calls").exists() else ""
    return done.returncode, done.stderr, calls.replace("playwright --version\n", "")


def test_what_is_there_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "browser").touch()
    assert look(tmp_path, "all", {"bin/nginx": "", "bin/caddy": ""}) == (0, "", "")


@pytest.mark.parametrize(
    "rights", [{"bin/id": "echo 0"}, {"bin/sudo": 'shift; test "$*" = true || "$@"'}], ids=["root", "sudo"]
)
def test_whoever_may_installs_debians_packages(tmp_path: Path, rights: dict[str, str]) -> None:
    status, problems, calls = look(tmp_path, "all", rights)
    assert (status, problems) == (0, "")
    installed = [line.split()[-1] for line in calls.splitlines() if " install " in line]
    assert installed == ["nginx-light", "caddy", "chromium-headless-shell"]


def test_without_rights_playwright_fetches_the_browser(tmp_path: Path) -> None:
    assert look(tmp_path) == (0, "", "playwright install --only-shell chromium\n")


def test_one_line_says_what_could_not_be_installed(tmp_path: Path) -> None:
    status, problems, calls = look(tmp_path, "all", {".venv/bin/playwright": ""})
    assert status == 2
    assert problems.count("\n") == 1
    assert problems.endswith("apt-get install nginx-light caddy chromium-headless-shell\n")
    assert "apt-get" not in calls
