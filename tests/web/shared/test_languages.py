"""Each request is answered in the language that its browser asks for; a language of the tests shows what is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.cli import main
from app.exchange.mail import Outbox
from app.handout.options import HandoutOptions
from app.handout.print_child import pdf_task
from app.handout.sheet_plan import plan_sheets
from app.logs import request_thread
from app.translation import ENGLISH, in_language, language, languages, preferred_language
from tests.helpers.html_page import Page
from tests.helpers.permission_table import ROLES, TABLE, TwoCourses
from tests.helpers.pseudo_language import (
    ASKED,
    PSEUDO,
    english_words,
    in_brackets,
    pseudo_language,
    tickets_in_brackets,
)
from tests.helpers.running_app import running_app
from tests.helpers.sheet_form import LLAMA_FORM, filled
from tests.helpers.shipped import LIBRARY, TICKETS


@pytest.fixture(scope="module", autouse=True)
def two_languages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """English, and one in which every message is in brackets."""
    with pseudo_language(tmp_path_factory.mktemp("locales")):
        yield


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """An app that speaks both, on sheets too."""
    with running_app(tmp_path_factory.mktemp("app")) as running:
        libraries = {ENGLISH: LIBRARY, PSEUDO: in_brackets(LIBRARY)}
        tickets = tickets_in_brackets(TICKETS)
        running.state.services = replace(running.state.services, libraries=libraries, tickets=tickets)
        yield running


@pytest.mark.parametrize(
    ("accepted", "wanted"),
    [
        ("", ENGLISH),
        ("xx", PSEUDO),
        ("XX-CH,de;q=0.9", PSEUDO),
        ("en-GB,en;q=0.9,xx;q=0.8", ENGLISH),
        ("en;q=0.5, xx;q=0.8", PSEUDO),
        ("de, fr;q=0.9", ENGLISH),
        ("xx;q=0", ENGLISH),
        ("*;q=x;;,=xx", PSEUDO),
        ("q" * 500, ENGLISH),
    ],
)
def test_the_language_is_the_first_that_a_browser_prefers_of_those_there_are(accepted: str, wanted: str) -> None:
    assert languages() == (ENGLISH, PSEUDO)
    assert preferred_language(accepted) == wanted


def test_requests_at_the_same_time_have_each_its_own_language(app: FastAPI) -> None:
    asked: list[tuple[str, str, dict[str, str]]] = [
        ("GET", "/sheet", {}),
        ("POST", "/sheet/save", filled(queries__columns="4096")),
        ("POST", "/sheet/check", filled(queries__columns="4096")),
        ("GET", "/models/llama-7b", {}),
        ("POST", "/sign-in", {"email": "nobody@example.org", "password": "no"}),
        ("GET", "/nowhere", {}),
    ]
    start = Barrier(2)

    def pages(headers: dict[str, str]) -> list[str]:
        browser = TestClient(app, headers=headers)
        start.wait(timeout=60)
        return [browser.request(how, to, data=sent or None).text for _ in range(3) for how, to, sent in asked]

    with ThreadPoolExecutor(2) as pool:
        english, pseudo = pool.map(pages, ({"Accept-Language": "en"}, ASKED))
    assert [text for text in english if "⟦" in text or "‹" in text] == []
    assert [text for text in pseudo if "⟦" not in text and "‹" not in text] == []
    assert {attrs["lang"] for text in pseudo for attrs, _ in Page(text).find("html")} == {PSEUDO}


# What no translation changes on the pages below: typed names, tokens of examples, functions, a subscript.
NAMES = {"Week", "Transformers", "Another", "Kim", "Ada", "ada", "testserver", "join", "softmax", "The", "capital",
         "France", "Paris", "break", "able", "the", "cat", "sat", "smollm", "out", "view", "transpose",
         "mat", "because", "was", "tired"}  # fmt: skip
FILES = ("/api/", "/lti/keys", "/questions/file", ".svg", ".pdf", ".png", ".json", ".toml", "/exports/{", "/healthz")


@pytest.mark.slow
def test_no_sentence_of_a_page_stays_in_english(app: FastAPI) -> None:
    courses = in_language(PSEUDO, TwoCourses, app)
    browsers = {role: courses.school.browser(**courses.people[role]) for role in ROLES}
    english = dict[str, list[str]]()
    for route, statuses in TABLE.items():
        method, path = route.split(" ")
        role = next((role for role, status in zip(ROLES, statuses, strict=True) if status == 200), None)
        if method == "GET" and role and not any(part in path for part in FILES):
            answer = browsers[role].get(courses.path(path), headers=ASKED)
            assert answer.status_code == 200, route
            english[route] = [word for word in english_words(answer.text) if word not in NAMES]
    assert len(english) > 60
    assert {route: words for route, words in english.items() if words} == {}


def test_a_class_has_its_sheet_in_the_language_in_which_it_was_opened(app: FastAPI) -> None:
    courses = in_language(PSEUDO, TwoCourses, app)
    with courses.school.browser(**courses.people["student"]) as browser:
        page = browser.get(f"/class/{courses.activity.id}/1", headers={"Accept-Language": "en"}).text
    assert "⟦" not in page
    assert page.count("‹") > 20


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/sheet/check", filled(queries__columns="4096", keys__columns="?")),
        ("/sheet/hint", filled(queries__columns="4096") | {"level": "3"}),
        ("/sheet/answers", filled(queries__columns="4096")),
        ("/runs", LLAMA_FORM),
        ("/models", {"way": "text", "text": '{"model_type": "hyena"}'}),
        ("/sign-in", {"email": "x", "password": "y"}),
        ("/join", {"code": "nothing"}),
        ("/marking", {"code": "x"}),
    ],
)
def test_no_answer_to_a_form_stays_in_english(app: FastAPI, path: str, form: dict[str, str]) -> None:
    words = english_words(TestClient(app, headers=ASKED).post(path, data=form).text)
    assert [word for word in words if word not in NAMES | {"hyena"}] == []


@pytest.mark.parametrize(("terminal", "words"), [("xx_CH.UTF-8", ["⟦"]), ("C.UTF-8", []), ("", [])])
def test_a_command_speaks_the_language_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: str, words: list[str]
) -> None:
    monkeypatch.setenv("LC_ALL", terminal)
    monkeypatch.setenv("LANG", "en_GB.UTF-8")
    copy_context().run(main, ["parameters", "gpt2"])
    assert re.findall("⟦", capsys.readouterr().out)[:1] == words


def test_what_a_request_starts_speaks_its_language() -> None:
    heard = list[str]()

    def listen() -> None:
        heard.append(language())

    thread, outbox = in_language(PSEUDO, request_thread, listen), Outbox()
    thread.start()
    thread.join()
    in_language(PSEUDO, outbox.put, listen)
    outbox.close()
    assert heard == [PSEUDO, PSEUDO]

    documents = list[dict[str, Any]]()

    class Renderer:
        """Keeps what it is to typeset."""

        def render_handout(self, made: Any, _report: Any) -> bytes:
            documents.extend(make() for make in made)
            return b""

    options = HandoutOptions("llama-7b")
    task = in_language(PSEUDO, pdf_task, options, lambda: plan_sheets(LIBRARY, options), {}, "")
    assert language() == ENGLISH
    task(Renderer(), lambda _done, _total: None)  # type: ignore[arg-type]
    assert {document["lang"] for document in documents} == {PSEUDO}
    assert documents[0]["labels"]["name"] == "⟦Name⟧"
