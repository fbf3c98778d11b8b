"""The app served to a real browser, and what tests ask of a page in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page

from app.settings import PROJECT, Settings
from app.store import Store

AXE = (PROJECT / "tests" / "browser" / "vendor" / "axe-4.14.1.min.js").read_text(encoding="utf-8")
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules of axe that see a difference between light and dark
LOOKS: tuple[tuple[int, Literal["light", "dark"]], ...] = (
    (1280, "light"),
    (1280, "dark"),
    (360, "light"),
    (360, "dark"),
)


def violations(page: Page, rules: Collection[str] = ()) -> list[Any]:
    """What axe objects to, by all rules unless some are named: rule and elements, once the page has its styles."""
    page.wait_for_load_state()
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]


def assert_accessible(page: Page, rules: Collection[str] = ()) -> None:
    """As it stands, axe is silent and nothing is wider than the window."""
    assert violations(page, rules) == [], page.url
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page.url


def assert_accessible_in_all_looks(page: Page) -> None:
    """It is clean on a desk, then on a phone, each in light and dark."""
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert_accessible(page, COLOURS if scheme == "dark" else ())


class Served:
    """The app in a process of its own, on a port that stays the same when it is restarted."""

    def __init__(self, data: Path, program: str = "from app.cli import main; main(['serve'])") -> None:
        self.data, self.port, self._program = data, 0, program
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        environment = {
            **os.environ,
            "ATTENTION_SHAPES_PORT": str(self.port),
            "ATTENTION_SHAPES_DATA_DIR": str(self.data),
        }
        environment.pop("DATABASE_URL", None)
        command = [sys.executable, "-c", self._program]
        self.process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, f"serve printed {line!r} and no address"
        self.port = int(found.group(1))

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


def set_up_link(app: Served) -> str:
    """What `serve` prints at its first start, made anew."""
    store = Store(Settings(data_dir=app.data, database_url="").database)
    token = store.people.add_link("setup")
    store.close()
    return f"/links/{token}"


def wait_until(page: Page, condition: str) -> None:
    """Wait until a condition in JavaScript holds; asked from outside, since the pages run no text as script."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"in ten seconds it did not come about that {condition}")
