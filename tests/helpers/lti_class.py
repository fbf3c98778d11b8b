"""A running app that a simulated platform opens: browsers that go through a launch as real ones do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from fastapi import FastAPI

from app.lti.keys import key_set
from simulation.lti_platform import INSTRUCTOR, MOODLE, Course, Initiation, Person, Platform, Quirks, running_platform
from tests.helpers.clock import CLOCK
from tests.helpers.school import Browser, School

Class = TypeVar("Class", bound="LtiClass")
TOOL = "http://testserver"
IN_FRAME = {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"}
IN_WINDOW = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"}


class LtiClass:
    """A platform that is registered in the app, and its course with Ada, who teaches, and Kim."""

    def __init__(self, app: FastAPI, platform: Platform) -> None:
        self.school, self.platform = School(app), platform
        self.store = self.school.store
        self.client = platform.add_client(TOOL)
        self.course = platform.add_course(Person("1", "Ada", INSTRUCTOR), Person("7", "Kim"))
        self.registered = self.register(self.client.id)

    def register(self, client_id: str, deployment_id: str = "") -> Any:
        """Register the platform in the app by hand, with its client's deployment confirmed."""
        added = self.store.lti.add_platform(
            "Moodle",
            self.platform.issuer,
            client_id,
            f"{self.platform.url}/authorize",
            f"{self.platform.url}/token",
            f"{self.platform.url}/keys",
            self.platform.token_audience,
            deployment_id or self.client.deployment_id,
        )
        assert added
        return added

    def begin(
        self, browser: Browser, initiation: Initiation, headers: Mapping[str, str] = IN_WINDOW
    ) -> httpx2.Response:
        """The browser's first request, from the platform's page."""
        path = urlsplit(initiation.url).path
        how = {"data": initiation.fields} if initiation.method == "POST" else {"params": initiation.fields}
        return browser.request(initiation.method, path, headers=headers, **how)  # type: ignore[arg-type]

    def message(self, begun: httpx2.Response) -> dict[str, str]:
        """What the platform makes the browser post to the app, after the app has sent it there."""
        assert begun.status_code == 303, begun.text
        address, fields = self.platform.answer(begun.headers["location"])
        assert address == f"{TOOL}/lti/launch"
        return fields

    def post(
        self, browser: Browser, fields: Mapping[str, str], headers: Mapping[str, str] = IN_WINDOW
    ) -> httpx2.Response:
        """The platform's form. Its request has no cookies in a window, since it comes from another site."""
        with self.school.browser() as without_cookies:
            return (browser if headers is IN_FRAME else without_cookies).post(
                "/lti/launch", data=fields, headers=headers
            )

    def launch(
        self, browser: Browser, sub: str, course: Course | None = None, link_id: str = "link-1", **claims: Any
    ) -> httpx2.Response:
        """Open a link of a course in a window, up to where /lti/open leads."""
        initiation = self.platform.initiation(self.client, course or self.course, sub, link_id, **claims)
        taken = self.post(browser, self.message(self.begin(browser, initiation)))
        if taken.status_code != 303:
            return taken
        assert taken.headers["location"] == "/lti/open"
        return browser.get("/lti/open", headers=IN_WINDOW)


@contextmanager
def running_class(kind: type[Class], app: FastAPI, quirks: Quirks = MOODLE) -> Iterator[Class]:
    """A class whose platform runs; the app may ask it although it is on this machine."""
    app.state.services.settings.lti_private = app.state.services.platform_services.allow_private = True

    def our_keys(_url: str) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = key_set(app.state.services.store)["keys"]
        return keys

    with running_platform(quirks, clock=CLOCK, fetch_keys=our_keys) as platform:
        yield kind(app, platform)


def lti_class(app: FastAPI, quirks: Quirks = MOODLE) -> AbstractContextManager[LtiClass]:
    return running_class(LtiClass, app, quirks)
