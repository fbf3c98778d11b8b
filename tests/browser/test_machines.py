"""The page of machines in a real browser: it renews itself unless hidden, works by keyboard, and axe finds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from app.machine.jobs import Job, JobLimits, Runner
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import SILENT_AFTER
from app.store.tables import jobs
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import add_teacher
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks, wait_until
from tests.helpers.clock import age_jobs

pytestmark = pytest.mark.slow

LIMITS = JobLimits(total=99, visitors=99, visitor=99, member=99)
OTHER_FORM = 99  # jobs that the server doesn't touch
GPU = Runner("gpu-1", device="cuda:0", device_name="NVIDIA L4", concurrency=2, form=OTHER_FORM)
TELLS_HIDDEN = "Object.defineProperty(document, 'hidden', {get: () => window.isHidden === true})"


@dataclass
class Day:
    """A server with runners and jobs, looked at from outside, and the session of its operator."""

    store: Store
    url: str
    session: str

    def add(self, key: str) -> Job:
        """Queue a handout that only GPU can do."""
        with self.store.transaction() as connection:
            job = self.store.jobs.add("handout", Client(key), LIMITS, "request", key, None, {}, {})
            connection.execute(sa.update(jobs).where(jobs.c.id == job.id).values(form=OTHER_FORM))
        return job

    def start(self) -> Job:
        """Let GPU start the first handout."""
        claimed = self.store.jobs.claim("handout", GPU)
        assert claimed
        return claimed[0]

    def open(self, context: BrowserContext) -> Page:
        """The page in a browser in which the operator is signed in."""
        context.add_cookies([{"name": TEACHER_COOKIE, "value": self.session, "url": self.url}])
        page = context.new_page()
        page.goto("/machines")
        return page


@pytest.fixture
def day(own_app: Server) -> Iterator[Day]:
    """A runner at work, a silent one, and a job that failed."""
    store = Store(own_app.database, own_app.folder)
    ada = add_teacher(store, "ada@example.org", "Ada")
    store.people.set_operator(ada, True)
    store.jobs.sign_on(Runner("cpu-2"))
    age_jobs(store, SILENT_AFTER)
    store.jobs.sign_on(GPU)
    day = Day(store, own_app.url, store.people.open_session(ada))
    day.add("failed")
    store.jobs.finish(day.start(), "failed", "no", reason="stopped")
    day.add("working")
    day.start()
    yield day
    store.close()


def test_it_renews_itself_while_it_is_seen(browser: Browser, day: Day) -> None:
    context = browser.new_context(base_url=day.url)
    context.add_init_script(TELLS_HIDDEN)
    page, asked = day.open(context), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    retry = page.get_by_role("button", name="Retry")
    retry.focus()
    job = day.add("new")
    expect(page.locator(f"#job-{job.id}")).to_be_visible()
    expect(retry).to_be_focused()
    page.evaluate("window.isHidden = true")
    page.wait_for_timeout(500)  # for the answer to what was asked before
    asked.clear()
    page.wait_for_timeout(6000)
    assert asked == []
    page.evaluate("window.isHidden = false")
    wait_until(page, lambda: bool(asked))
    context.close()


def test_jobs_are_cancelled_and_retried_by_keyboard(browser: Browser, day: Day) -> None:
    context = browser.new_context(base_url=day.url)
    page = day.open(context)
    page.goto("/courses")
    assert_accessible_in_all_looks(page)
    page.get_by_role("link", name="Machines").press("Enter")
    assert_accessible_in_all_looks(page)
    page.get_by_role("button", name="Retry").press("Enter")
    expect(page.get_by_role("status").filter(visible=True)).to_be_visible()
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    assert_accessible_in_all_looks(page)
    buttons = page.get_by_role("button", name="Cancel")
    for left in (1, 0):
        buttons.first.press("Enter")
        expect(buttons).to_have_count(left)
    context.close()


def test_it_works_without_script(browser: Browser, day: Day) -> None:
    """A link renews it, and the buttons do what they say."""
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
