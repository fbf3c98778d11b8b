"""The page of machines in a real browser: it renews itself unless hidden, works by keyboard, and axe finds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.jobs.jobs import queue_name
from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import SILENT_AFTER, Job, Worker
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import add_teacher
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks, wait_until
from tests.helpers.clock import age_jobs
from tests.helpers.queued_jobs import add_job, start_first

pytestmark = pytest.mark.slow

GPU = Worker("gpu-1", [queue_name("handout")], "cuda:0", "NVIDIA L4")
TELLS_HIDDEN = "Object.defineProperty(document, 'hidden', {get: () => window.isHidden === true})"


@dataclass
class Day:
    """A server with workers and jobs, looked at from outside, and the session of its operator."""

    store: Store
    url: str
    session: str

    def add(self, key: str) -> Job:
        """Queue a handout that nobody makes."""
        return add_job(self.store, key, Client(key))

    def start(self) -> Job:
        """Let GPU start the first handout."""
        return start_first(self.store, worker=GPU.name)

    def open(self, context: BrowserContext) -> Page:
        """The page in a browser in which the operator is signed in."""
        context.add_cookies([{"name": TEACHER_COOKIE, "value": self.session, "url": self.url}])
        page = context.new_page()
        page.goto("/machines")
        return page


@pytest.fixture
def day(new_postgres_database: str, tmp_path: Path) -> Iterator[Day]:
    """A worker with a job, a silent one, and a job that failed."""
    server = Server(tmp_path, new_postgres_database)
    server.start()
    store = Store(server.database, server.folder)
    ada = add_teacher(store, "ada@example.org", "Ada")
    store.people.set_operator(ada, True)
    store.jobs.sign_on(Worker("cpu-2", [queue_name("run")]))
    age_jobs(store, SILENT_AFTER)
    store.jobs.sign_on(GPU)
    day = Day(store, server.url, store.people.open_session(ada))
    day.add("failed")
    store.jobs.finish(day.start(), "failed", "no", reason="stopped")
    day.add("working")
    day.start()
    yield day
    store.close()
    server.kill()


def test_it_renews_itself_while_it_is_seen(browser: Browser, day: Day) -> None:
    context = browser.new_context(base_url=day.url)
    context.add_init_script(TELLS_HIDDEN)
    page, asked = day.open(context), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    cancel = page.get_by_role("button", name="Cancel").first
    cancel.focus()
    job = day.add("new")
    expect(page.locator(f"#job-{job.id}")).to_be_visible()
    expect(cancel).to_be_focused()
    page.evaluate("window.isHidden = true")
    page.wait_for_timeout(500)  # for the answer to what was asked before
    asked.clear()
    page.wait_for_timeout(6000)
    assert asked == []
    page.evaluate("window.isHidden = false")
    wait_until(page, lambda: bool(asked))
    context.close()


def test_jobs_are_cancelled_by_keyboard(browser: Browser, day: Day) -> None:
    context = browser.new_context(base_url=day.url)
    page = day.open(context)
    page.goto("/courses")
    assert_accessible_in_all_looks(page)
    page.locator(".account summary").press("Enter")
    page.get_by_role("link", name="Machines").press("Enter")
    assert_accessible_in_all_looks(page)
    page.get_by_role("button", name="Cancel").press("Enter")
    expect(page.get_by_role("status").filter(visible=True)).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    assert_accessible_in_all_looks(page)
    context.close()


def test_it_works_without_script(browser: Browser, day: Day) -> None:
    """A link renews it, and the button does what it says."""
    context = browser.new_context(base_url=day.url, java_script_enabled=False)
    page = day.open(context)
    job = day.add("new")
    page.get_by_role("link", name="Refresh").click()
    page.get_by_role("button", name=f"Cancel {job.id}").click()
    expect(page.locator(f"#job-{job.id}")).to_have_count(0)
    found = day.store.jobs.find_numbered(job.id)
    assert found
    assert found.ending == "cancelled"
    context.close()
