"""Requests that nobody should send: every route, and every form of a page, with values that break programs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import hypothesis
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.settings import Settings
from app.web.shared.rate_limits import RateLimits
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.permission_table import TABLE, TwoCourses
from tests.helpers.running_app import make_app

if TYPE_CHECKING:
    import schemathesis

NASTY = (
    "", " ", "0", "-1", "1", "2", "99999999999", "9" * 400, "1e309", "NaN", "٣", "a\x00b", "%ED%A0%80", "é🙂", "\u202e",
    "<script>alert(1)</script>", "'\"--; DROP TABLE students", "../../etc/passwd", "%s%n{}{0}", "x" * 5000,
    "1" * 20_000,
    "2026-02-30", "0001-01-01", "9999-12-31", "9999-12-31T23:59", "0001-01-01T00:00", "25:99", "2026-03-29T02:30",
    "\r\n\r\n", "=1+1", "[]", "{}", "null", "true", "yes", "on", "Europe/Berlin", "../Berlin", "Etc/GMT+12", "2**63",
    "(" * 3000, "N*" * 900 + "N", "9**9**9", "1/0", "llama-7b", "gpt2", "cfg-" + "0" * 20,
    "a@b", "a@b" + "." * 300, "//x.y", "\ufeff",
)  # fmt: skip
REQUESTS_PER_COURSES = 400  # then new courses are added, since much is deleted or closed by then
ALWAYS = ("/", "/sheet", "/practice", "/models", "/sign-in", "/join", "/resume", "/mine", "/courses")


@dataclass
class Form:
    """A page's form: its target, and its fields with their possible values."""

    method: str
    action: str
    fields: dict[str, list[str]] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


class Forms(HTMLParser):
    """Every form of a page, with its buttons' addresses, and every link."""

    def __init__(self, page: str, address: str) -> None:
        super().__init__()
        self.forms, self.links, self._address = list[Form](), list[str](), address
        self._select = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if tag == "a" and known.get("href", "").startswith("/"):
            self.links.append(known["href"])
        elif tag == "form":
            self.forms.append(Form(known.get("method", "get").upper(), known.get("action") or self._address))
        elif self.forms and (name := known.get("name") or (self._select if tag == "option" else "")):
            self._select = name if tag in ("select", "option") else ""
            if known.get("type") == "file":
                self.forms[-1].files.append(name)
            elif tag != "select":
                self.forms[-1].fields.setdefault(name, []).append(known.get("value", ""))
        if self.forms and known.get("formaction"):
            self.forms.append(replace(self.forms[-1], action=known["formaction"]))


@dataclass
class Fuzzer:
    """Requests by nobody, a student and an instructor, the same for the same seed."""

    app: FastAPI
    seed: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def run(self, requests: int) -> None:
        """Send so many requests, counting statuses, with failures in `broken`."""
        self._chance = random.Random(self.seed)  # noqa: S311 - so that it can be repeated
        while (left := requests - sum(self.statuses.values())) > 0:
            self._in_new_courses(min(left, REQUESTS_PER_COURSES))

    def _in_new_courses(self, requests: int) -> None:
        courses = TwoCourses(self.app)
        self.app.state.services = replace(
            self.app.state.services, limits=RateLimits()
        )  # wrong guesses are the point here
        for role, share in (("instructor", 0.5), ("student", 0.35), ("nobody", 1.0)):
            with courses.school.browser(**courses.people[role]) as browser:
                forms, links = self._harvest(browser, courses)
                for _ in range(int(requests * share) + 1 if role != "nobody" else requests):
                    if requests <= 0:
                        return
                    requests -= 1
                    self._send(browser, courses, forms, links)

    def _harvest(self, browser: TestClient, courses: TwoCourses) -> tuple[list[Form], list[str]]:
        pages = [*ALWAYS, *(courses.path(route[4:]) for route in TABLE if route.startswith("GET "))]
        forms, links = list[Form](), set[str]()
        for path in dict.fromkeys(pages):
            answer = browser.get(path, follow_redirects=True)
            self._record("GET", path, answer.status_code)
            if answer.headers.get("content-type", "").startswith("text/html"):
                page = Forms(answer.text, path)
                forms += page.forms
                links.update(page.links)
        return forms, sorted(links)

    def _send(self, browser: TestClient, courses: TwoCourses, forms: Sequence[Form], links: Sequence[str]) -> None:
        if self._chance.random() < 0.6:
            form = self._chance.choice(forms)
        else:
            method, path = self._chance.choice(tuple(TABLE)).split(" ")
            form = replace(self._chance.choice(forms), method=method, action=self._path(courses, path))
        if form.method == "GET" and links and self._chance.random() < 0.3:
            form = replace(form, action=self._chance.choice(links))
        self._submit(browser, form)

    def _path(self, courses: TwoCourses, route: str) -> str:
        pieces = list[str]()
        for piece in route.split("/"):
            odd = piece.startswith("{") and self._chance.random() < 0.2
            pieces.append(
                quote(self._chance.choice(NASTY)[:300], safe="") if odd else courses.path(piece) if piece else ""
            )
        return "/".join(pieces)

    def _submit(self, browser: TestClient, form: Form) -> None:
        sent = dict[str, list[str]]()
        for name, values in form.fields.items():
            turn = self._chance.random()
            if turn < 0.5:
                sent[name] = [self._chance.choice(values)]
            elif turn < 0.8:
                sent[name] = [self._chance.choice(NASTY)]
            elif turn < 0.9:
                sent[name] = [self._chance.choice(NASTY), *values[:50]]
        if self._chance.random() < 0.1:
            sent[self._chance.choice(NASTY)[:100] or "x"] = ["1"]
        headers = {"hx-request": "true"} if self._chance.random() < 0.4 else {}
        files = {name: ("f.csv", self._chance.choice(NASTY).encode("utf-8", "surrogatepass")) for name in form.files}
        path = form.action
        if form.method == "GET":
            query = "&".join(f"{quote(name)}={quote(value[:2000])}" for name, all_ in sent.items() for value in all_)
            answer = browser.get(f"{urlsplit(path).path}?{query}"[:30_000], headers=headers)
        else:
            answer = browser.request(form.method, path, data=sent, files=files or None, headers=headers)
        self._record(form.method, f"{path} {str(sent)[:1500]}", answer.status_code)

    def _record(self, method: str, request: str, status: int) -> None:
        self.statuses[status] += 1
        if status >= 500:
            self.broken.append(f"{status} {method} {request}")


def fuzzed_app(folder: Path) -> FastAPI:
    """The app without torch and network, on an empty database."""
    return make_app(Settings(data_dir=folder, database_url="", hub=False), FakeRunner())


def fuzz_api(app: FastAPI, examples: int) -> tuple[int, list[str]]:
    """Send up to `examples` requests to each operation of /openapi.json; return how many, and those that got 5xx."""
    import schemathesis  # takes half a second, which other tests needn't wait for

    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    made, broken = Counter[str](), list[str]()
    for operation in _operations(schema):

        @hypothesis.settings(
            max_examples=examples, deadline=None, database=None, phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )  # fmt: skip
        @hypothesis.seed(7)
        @hypothesis.given(case=operation.as_strategy())
        def ask(case: schemathesis.Case[Any]) -> None:
            answer = case.call()
            made[case.operation.label] += 1
            if answer.status_code >= 500:
                broken.append(f"{answer.status_code} {case.as_curl_command()}"[:1500])

        ask()
    return sum(made.values()), broken


def _operations(schema: schemathesis.BaseSchema) -> Iterator[Any]:
    for result in schema.get_all_operations():
        yield result.ok()  # type: ignore[union-attr]  # our description has no error
