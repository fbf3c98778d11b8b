"""Requests that are hard to answer: the longest and oddest possible texts in each field of each route."""

from __future__ import annotations

import inspect
import itertools
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from app.web import sheet_in_class, sheet_in_practice
from app.web.shared import cookies, sheet_form
from app.web.shared.rate_limits import RateLimits, StorageBudget
from app.web.shared.request_guard import MAX_HEADERS, MAX_PATH, MAX_TARGET, body_limit
from tests.helpers.fuzzing import Form, Forms
from tests.helpers.permission_table import ROLES, TABLE, Row, TwoCourses

# Each is repeated to a field's maximum length. Anything quadratic or worse takes minutes for one of them.
PIECES = (
    "a", "T", "1", " ", "(", "[", "\"", "\\", "\n", "a\n", "é", "\U0001f642", "\t", "\x00", ".", ",", ":", ";", "-",
    "_", "*", "`", "$", "<", "&", "#", "|", "=", "%", "'", "/", "@", "^", "~", "{", "}", "]", ")", "!", "?", "+",
    "\u200d", "\u202e", "ཱཱིུ", "٣", "²", "ﬃ", "\uff21", "\ufdfa", "\r", "\u2028", "1,", "1.", "1_", "1 ", "1e", "a.",
    "a:", "a-", "a_", "a@", "a,", "a;", "a b", "A ", "N*", "(N", "N+", "-N", "N^9", "1/", "d_h", "**a", "*a _b ",
    "![](", "[a](", "> ", "- ", "1. ", "# ", "```\n", "$a$ ", "&a;", "<a ", "a=1\n", "[a]\n", "a={", "a=\"",
    "{\"a\":", "[[", "\"a\",", "a: 1 2\n", "100 4096 ", "Lee, Kim\n", "=1+1", "x y z: ", "- - ", "\\(", "\\u0041",
    "%41", "..", "a/", "queries.rows:aaaaaaaa:1 ",
)  # fmt: skip
# A mark is sorted past those of a higher class before it, so the worst run isn't a repetition.
MARKS = ("a", "\u0301", "\u0316")
FEW = ("a", "T", "1", " ", "(", "\\", '"', "\n", "1,", "a.", "N*", "[a](", '{"a":', "\ufdfa", "a: 1 2\n")
_NAME_IN_SOURCE = re.compile(
    r'(?:form|values|query_params|sent)\.(?:raw|optional|single_line|multi_line|typed_lines|all|get)\(\s*"([\w.-]+)"'
)
_NO_PAGES = (".pdf", ".svg", ".png", ".toml", "{file_name}", "/now")
_ENDS = re.compile("delete|remove|archive|close|leave|free|sign-out")  # comes last, so that others find something
_COOKIES = [value for name, value in vars(cookies).items() if name.endswith("_COOKIE")]
_HEADERS = ("referer", "origin", "sec-fetch-site", "hx-request", "accept", "if-none-match", "x-forwarded-for", "range")


def repeated(piece: str, length: int) -> str:
    """A piece of text repeated up to `length` bytes."""
    return piece * max(length // len(piece.encode()), 1)


def marks(length: int) -> str:
    """A letter with combining marks, of at most `length` bytes."""
    letter, above, below = MARKS
    return letter + above * (length // 4 - 1) + below * (length // 4)


def texts(length: int, pieces: Sequence[str]) -> Iterator[str]:
    """A text of each piece, and the one with marks."""
    yield from (repeated(piece, length) for piece in pieces)
    yield marks(length)


ROLES_TRIED = ("nobody", "student", "instructor")
# Seconds of processor time, several times what `make bench-worst` allows: a busy machine makes everything slower.
MOST_S = {"nobody": 0.6, "student": 0.6, "instructor": 3.0}
FIELDS_TRIED = 2  # per form
RETRIED_S = 0.1
SHEETS = ("llama-7b", "experts-mixtral-8x7b~symbols", "costs-llama-7b", "latent-deepseek-v2-lite~symbols")


def _role_of(row: Row) -> str:
    by_role = dict(zip(ROLES, row, strict=True))
    if len(set(row)) == 1 or by_role["nobody"] == 200:
        return "nobody"
    return "student" if by_role["student"] != by_role["nobody"] else "instructor"


@dataclass(frozen=True)
class Timed:
    """A request, and how long the app computed for it."""

    seconds: float
    role: str
    request: str
    status: int


@dataclass
class HardRequests:
    """Sends hard requests as whoever gets furthest, and keeps how long each took.

    With `every_text`, each field of each form gets each of PIECES; otherwise FIELDS_TRIED of them get one of FEW, in
    turn.
    """

    app: FastAPI
    every_text: bool = False
    timed: list[Timed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._turn = itertools.cycle(range(len(FEW) + 1))
        self._chance = random.Random(1)  # noqa: S311 - so that it can be repeated
        self._pieces = PIECES if self.every_text else FEW
        self._routes = {
            f"{method} {route.path}": route
            for route in self.app.routes
            if isinstance(route, APIRoute)
            for method in route.methods or ()
        }
        self._renew()

    def run(self) -> None:
        """Send everything to every route."""
        routes = sorted(TABLE.items(), key=lambda each: bool(_ENDS.search(each[0])))
        for number, (route, row) in enumerate(routes):
            if self.every_text and number % 12 == 11:
                self._renew()
            self._forgive()
            method, path = route.split(" ")
            role = _role_of(row)
            self._send_paths(role, method, path)
            self._send_queries(role, method, path, route)
            if method == "POST":
                self._send_forms(role, path, route)
        self._send_headers()
        self._send_json()

    @property
    def too_hard(self) -> list[Timed]:
        """The requests that took too long or met a bug."""
        return [each for each in self.timed if each.seconds > MOST_S[each.role] or each.status == 500]

    def _renew(self) -> None:
        self._courses = TwoCourses(self.app)
        self._browsers = {role: self._courses.school.browser(**self._courses.people[role]) for role in ROLES_TRIED}
        self._forms = {role: self._forms_of(browser) for role, browser in self._browsers.items()}
        services = self.app.state.services
        services.store.people.change_password(
            self._courses.people["instructor"]["teacher"], services.passwords.hash("p")
        )

    def _forgive(self) -> None:
        self.app.state.services = replace(self.app.state.services, limits=RateLimits(), storage=StorageBudget())

    def _texts(self, length: int) -> Iterator[str]:
        if self.every_text:
            yield from texts(length, PIECES)
        else:
            yield [*texts(length, FEW)][next(self._turn)]

    def _send_paths(self, role: str, method: str, path: str) -> None:
        for parameter in re.findall(r"{[^}]+}", path):
            for text in self._texts(MAX_TARGET // 3 - 200):
                hard = self._courses.path(path.replace(parameter, "HARD")).replace("HARD", quote(text, safe=""))
                self._time(role, method, hard[: MAX_PATH - 10], f"{path} {parameter}={text[:20]!r}")

    def _send_queries(self, role: str, method: str, path: str, route: str) -> None:
        endpoint = self._routes.get(route)
        names = {each.name for each in endpoint.dependant.query_params} if endpoint else set()
        if endpoint and method == "GET":
            names |= self._names_in_source(endpoint)
        for name in sorted(names):
            for text in self._texts(MAX_TARGET // 3 - 200):
                query = f"?{quote(name)}={quote(text)}"[: MAX_TARGET - 500]
                self._time(role, method, self._courses.path(path) + query, f"{path} ?{name}={text[:20]!r}")

    def _send_forms(self, role: str, path: str, route: str) -> None:
        address = self._courses.path(path)
        forms = [form for form in self._forms[role] if form.action.partition("?")[0] == address] or [Form("POST", "")]
        endpoint = self._routes.get(route)
        for form in forms[:1]:
            values = {name: given[0] for name, given in form.fields.items()}
            names = [*values, *form.files, *(sorted(self._names_in_source(endpoint)) if endpoint else ())]
            tried = [*dict.fromkeys(names)]
            if not self.every_text:
                tried = self._chance.sample(tried, min(len(tried), FIELDS_TRIED))
            for name in tried:
                room = body_limit(address) - 1000 - sum(len(key) + len(text) + 150 for key, text in values.items())
                for text in self._texts(max(room, 1000)):
                    self._post(role, address, path, {**values, name: text}, name, is_file=name in form.files)
            for text in texts(body_limit(address) // (len(names) + 1) - 150, PIECES if self.every_text else FEW[:1]):
                self._post(role, address, path, dict.fromkeys(names, text), "all fields")
        self._post(role, address, path, {f"answer-{n}": "a" for n in range(900)}, "many fields")

    def _post(
        self, role: str, address: str, path: str, values: Mapping[str, str], name: str, *,
        is_file: bool = False,
    ) -> None:  # fmt: skip
        parts = {
            key: (("hard.csv" if is_file and key == name else None), text.encode("utf-8", "replace"))
            for key, text in values.items()
        }
        shown = values.get(name, "")[:20]
        self._time(role, "POST", address, f"{path} {name}={shown!r}", files=parts)

    def _forms_of(self, browser: TestClient) -> list[Form]:
        forms = list[Form]()
        for route in TABLE:
            if route.startswith("GET ") and not route.endswith(_NO_PAGES):
                path = self._courses.path(route[4:])
                answer = browser.get(path, follow_redirects=True)
                if answer.headers.get("content-type", "").startswith("text/html"):
                    forms += Forms(answer.text, path).forms
        return forms

    def _names_in_source(self, endpoint: APIRoute) -> set[str]:
        modules: list[Any] = [inspect.getmodule(endpoint.endpoint)]
        if "save" in endpoint.path or "check" in endpoint.path:
            modules += [sheet_form, sheet_in_practice, sheet_in_class]
        return {name for module in modules for name in _NAME_IN_SOURCE.findall(inspect.getsource(module))}

    def _send_headers(self) -> None:
        for path in ("/", "/mine", "/practice", "/courses", "/sheet", "/nope") if self.every_text else ("/", "/mine"):
            for text in texts(MAX_HEADERS - 1000, self._pieces):
                plain = "".join(char for char in text if char.isprintable() and char.isascii())
                if not plain.strip():
                    continue
                for name in _HEADERS if path == "/" else _HEADERS[:1]:
                    self._time("student", "GET", path, f"{path} {name}: {plain[:20]!r}", headers={name: plain})
                for name in _COOKIES if self.every_text else (_COOKIES if path == "/mine" else ())[:2]:
                    for value in (plain.replace(";", ""), f'"{plain.replace(";", "")}"', ";".join(plain)[:15_000]):
                        headers = {"cookie": f"{name}={value}"}
                        self._time("student", "GET", path, f"{path} {name}: {value[:20]!r}", headers=headers)

    def _send_json(self) -> None:
        sheets = {key: self._courses.school.library.variant(key).blanks for key in SHEETS}
        for text in texts(8_000, self._pieces if self.every_text else FEW[::3]):
            for key, blanks in sheets.items():
                answers = {str(blank): text[:4000] for blank in blanks}
                self._json("/api/v1/grade", {"worksheet": key, "answers": answers, "hint": 2}, text)
                short = {str(blank): text[:100] for blank in blanks}
                self._json("/api/v1/grade", {"worksheet": key, "answers": short, "hint": 2}, text)
            for name in ("worksheet", "code", "model", "hint", "seed", "tokens"):
                self._json("/api/v1/grade", {"answers": {}, name: text}, f"{name}={text[:20]}")
            self._json("/api/v1/grade", {"worksheet": "llama-7b", "answers": {text: "1"}}, f"key {text[:20]}")
            for name in ("config", "hub", "name"):
                self._json("/api/v1/models", {"hub": "a/b", name: text * 30}, f"{name}={text[:20]}")
            config = {"model_type": text, "hidden_size": text, "architectures": [text] * 10, text: text}
            self._json("/api/v1/models", {"config": config}, f"config {text[:20]}")
        wide = b"{" + b",".join(b'"k%d":1' % number for number in range(100_000)) + b"}"
        contents = (
            b"[" * 900_000,
            b'{"a":' * 180_000,
            b"1" * 900_000,
            b'{"config":%s}' % wide,
            b'{"answers":%s}' % wide,
            b'{"config":{"hidden_size":%s}}' % (b"9" * 900_000),
            b'{"config":[%s]}' % (b"1," * 400_000 + b"1"),
            b'{"config":%s}' % (b'{"a":' * 900 + b"1" + b"}" * 900),
            b'"' + b"\\u0041" * 150_000 + b'"',
        )
        for content in contents:
            for path in ("/api/v1/models", "/api/v1/forward", "/api/v1/grade", "/api/v1/variants"):
                cut = content[: body_limit(path) - 10]
                headers = {"content-type": "application/json"}
                self._time("student", "POST", path, f"{path} {content[:30]!r}", content=cut, headers=headers)

    def _json(self, path: str, body: Mapping[str, Any], shown: str) -> None:
        self._time("student", "POST", path, f"{path} {shown[:40]!r} {list(body)}", json=body)

    def _time(self, role: str, method: str, path: str, request: str, **sent: Any) -> None:
        seconds = float("inf")
        for _ in range(2):
            started = time.process_time()
            status = self._browsers[role].request(method, path, **sent).status_code
            seconds = min(seconds, time.process_time() - started)
            if seconds < RETRIED_S:
                break
        self.timed.append(Timed(seconds, role, f"{method} {request}", status))
