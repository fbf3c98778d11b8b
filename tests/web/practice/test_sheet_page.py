"""The pages as a browser without script and as a script sees them; torch is not loaded."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from app import main
from app.forward.lines import ForwardError
from app.forward.process import RunnerBusy, RunnerFailed, RunTooLong
from app.settings import PROJECT, Settings
from app.store.tables import attempts, runs
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.request_guard import MAX_BODY
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page
from tests.helpers.runs import finished_run

if TYPE_CHECKING:
    from app.sheets.library import Library
    from tests.helpers.fake_runner import FakeRunner

SCRIPT = {"HX-Request": "true"}
HEADERS = ("content-security-policy", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy",
           "cache-control")  # fmt: skip
LLAMA = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}


def filled(**changes: str) -> dict[str, str]:
    """The form of the LLaMA sheet with every box right, but for the changes ('__' stands for the dot)."""
    return {**LLAMA, **KEY, **{name.replace("__", "."): value for name, value in changes.items()}}


# Choosing a sheet


@pytest.mark.parametrize("address", ["/", "/sheet"])
def test_the_first_screen_is_a_sheet_to_type_into(client: TestClient, address: str) -> None:
    """LLaMA 7B with 100 tokens, its fourteen boxes empty and each with a spoken label."""
    response = client.get(address)
    page = Page(response.text)
    assert response.status_code == 200
    assert page.text("h1") == "One head of LLaMA 7B"
    assert page.boxes() == dict.fromkeys(KEY, "")
    labels = [attrs["aria-label"] for attrs, _ in page.find("input") if "data-blank" in attrs]
    assert labels[:4] == [
        "Input to this head, rows",
        "Input to this head, columns",
        "Queries, rows",
        "Queries, columns",
    ]
    assert [attrs["value"] for attrs, _ in page.find("input", name="tokens")] == ["100", "100"]


def test_worksheet_model_and_tokens_can_be_chosen(client: TestClient) -> None:
    """The simplified Qwen sheet, with Qwen3 and 7 tokens in its place."""
    page = Page(client.get("/sheet?worksheet=qwen2.5-0.5b").text)
    assert "only 2 key/value heads" in page.text("p", class_="footnote")
    page = Page(client.get("/sheet?worksheet=llama-7b&model=qwen3-0.6b&tokens=7").text)
    assert page.text("h1") == "One head of Qwen3 0.6B"
    chosen = [attrs["value"] for attrs, _ in page.find("option") if "selected" in attrs]
    assert chosen == ["llama-7b", "qwen3-0.6b"]


@pytest.mark.parametrize("tokens", ["1,000", "１０００", "2*500"])
def test_tokens_are_read_as_boxes_are(client: TestClient, tokens: str) -> None:
    """A thousand in any spelling is a thousand."""
    page = Page(client.get("/sheet", params={"worksheet": "llama-7b", "tokens": tokens}).text)
    assert page.find("input", name="tokens")[-1][0]["value"] == "1000"


@pytest.mark.parametrize("tokens", ["0", "-3", "1000000000", "1.5", "", "   ", "many", "9**9**9", "1/0", "7" * 10_000])
def test_tokens_that_cannot_be_used_get_a_sentence(client: TestClient, tokens: str) -> None:
    """422, with the numbers that can be used, beside the box they were typed into."""
    response = client.get("/sheet", params={"worksheet": "llama-7b", "tokens": tokens})
    assert response.status_code == 422
    page = Page(response.text)
    assert page.text("p", id="chooser-problem") == "Tokens must be a whole number from 1 to 16,777,216."
    assert page.find("input", name="tokens")[0][0]["value"] == tokens
    assert page.boxes() == {}


def test_a_position_table_is_named_where_it_ends(client: TestClient) -> None:
    """GPT-2 takes 1,024 tokens and no more."""
    response = client.get("/sheet?worksheet=llama-7b&model=gpt2&tokens=1025")
    assert response.status_code == 422
    assert "GPT-2 has a table of 1,024 positions" in response.text


@pytest.mark.parametrize("query", ["worksheet=nope", "worksheet=llama-7b&model=nope", "worksheet=" + "x" * 5000])
def test_a_sheet_that_is_not_there_is_not_found(client: TestClient, query: str) -> None:
    """404, with the keys there are."""
    response = client.get(f"/sheet?{query}")
    assert response.status_code == 404
    assert "there are:" in Page(response.text).text("p", id="chooser-problem")


def test_what_was_typed_into_an_address_is_escaped(client: TestClient) -> None:
    """A worksheet called <script> comes back as text."""
    text = client.get("/sheet", params={"worksheet": "<script>alert(1)</script>"}).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


# Checking, saving, answering


def test_checking_without_script_marks_each_box(client: TestClient) -> None:
    """A plain form gives the whole page back: eleven right, one wrong, one unreadable, one empty."""
    form = filled(queries__columns="4096", keys__columns="about 128", values__columns="")
    response = client.post("/sheet/check", data=form)
    page = Page(response.text)
    assert response.status_code == 200
    assert page.find("title")
    special = {"queries.columns": "wrong", "keys.columns": "unreadable", "values.columns": "empty"}
    assert page.marks() == {**dict.fromkeys(KEY, "right"), **special}
    assert page.text("p", class_="result") == "11 of 14 boxes are right, 1 still empty."
    assert "“about” could not be read" in page.text("p", id="says-keys.columns")
    assert page.boxes() == {box: form[box] for box in KEY}


def test_a_script_gets_the_sheet_alone(client: TestClient) -> None:
    """With HX-Request the same marks come without the page around them."""
    text = client.post("/sheet/check", data=filled(), headers=SCRIPT).text
    assert "<html" not in text
    assert Page(text).text("p", class_="result") == "All 14 boxes are right."


def test_what_was_read_stands_beside_a_product(client: TestClient) -> None:
    """4096/32 is read as 128 and said so; a plain 128 is not repeated."""
    page = Page(client.post("/sheet/check", data=filled(queries__columns="4096/32")).text)
    assert [text for _, text in page.find("span", class_="read-as")] == ["= 128"]


def test_text_in_a_box_is_kept_as_typed_and_escaped(client: TestClient) -> None:
    """Quotes and tags come back in the box, and nowhere as markup."""
    typed = '"><script>alert(1)</script>'
    text = client.post("/sheet/check", data=filled(queries__rows=typed)).text
    assert Page(text).boxes()["queries.rows"] == typed
    assert "<script>alert" not in text


def test_ten_thousand_characters_are_unreadable_and_kept(client: TestClient) -> None:
    """No error, no wait: the box says that it is too long to read."""
    page = Page(client.post("/sheet/check", data=filled(queries__rows="9" * 10_000)).text)
    assert page.marks()["queries.rows"] == "unreadable"
    assert page.boxes()["queries.rows"] == "9" * 10_000


def test_a_saved_draft_is_there_after_a_reload(client: TestClient) -> None:
    """Saving gives the drawing back; the next visit has the texts, and says that they are saved."""
    response = client.post("/sheet/save", data={**LLAMA, "queries.rows": "4 096", "version": "5"}, headers=SCRIPT)
    assert response.status_code == 200
    assert {attrs["data-size"] for attrs, _ in Page(response.text).find("g", data_blank="queries.rows")} == {"4096"}
    page = Page(client.get("/").text)
    assert page.boxes()["queries.rows"] == "4 096"
    assert page.find("input", name="version")[0][0]["value"] == "5"
    assert page.text("output") == "Saved"


def test_an_older_save_does_not_cover_a_newer_one(client: TestClient) -> None:
    """Version 4 arrives after version 5 and is not kept; a version that is no number counts as oldest."""
    for version, text in (("5", "new"), ("4", "old"), ("-1", "odd"), ("9" * 30, "odd")):
        client.post("/sheet/save", data={**LLAMA, "queries.rows": text, "version": version})
    assert Page(client.get("/").text).boxes()["queries.rows"] == "new"


def test_drafts_belong_to_their_sheet_and_their_browser(client: TestClient) -> None:
    """Another length of the same sheet is empty, and so is the same sheet in another browser."""
    client.post("/sheet/save", data={**LLAMA, "queries.rows": "100", "version": "1"})
    assert Page(client.get("/sheet?worksheet=llama-7b&tokens=7").text).boxes()["queries.rows"] == ""
    client.cookies.clear()
    assert Page(client.get("/").text).boxes()["queries.rows"] == ""


def test_marks_come_back_with_the_texts_they_were_given_for(client: TestClient) -> None:
    """After a check, a reload shows the marks again; a box changed since has none."""
    client.post("/sheet/check", data={**filled(queries__columns="4096"), "version": "1"})
    assert Page(client.get("/").text).marks()["queries.columns"] == "wrong"
    client.post("/sheet/save", data={**filled(queries__columns="128"), "version": "2"})
    marks = Page(client.get("/").text).marks()
    assert "queries.columns" not in marks
    assert marks["queries.rows"] == "right"


def test_the_cookie_is_closed_to_scripts_and_other_sites(client: TestClient) -> None:
    """HttpOnly and SameSite=Lax always, Secure where the page came over https; a mere visit sets none."""
    assert "set-cookie" not in client.get("/").headers
    cookie = client.post("/sheet/save", data=LLAMA).headers["set-cookie"]
    assert cookie.startswith(VISITOR_COOKIE)
    assert {"HttpOnly", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Secure" in client.post("https://testserver/sheet/save", data=LLAMA).headers["set-cookie"]


def test_what_a_new_browser_sends_at_once_is_one_persons(client: TestClient) -> None:
    """A save and a check are under way before either brought a cookie: whichever is last, the try is kept."""
    newcomer = Page(client.get("/").text).find("input", name="form_secret")[0][0]["value"]
    assert Page(client.get("/").text).find("input", name="form_secret")[0][0]["value"] != newcomer
    sent = {"check": filled(queries__columns="4096"), "save": filled(queries__columns="4096")}
    browsers = {what: TestClient(client.app) for what in sent}
    with ThreadPoolExecutor(2) as pool:
        under_way = [
            pool.submit(browsers[what].post, f"/sheet/{what}", data={**form, "form_secret": newcomer})
            for what, form in sent.items()
        ]
    assert [one.result().status_code for one in under_way] == [200, 200]
    for browser in browsers.values():
        page = Page(browser.get("/").text)
        assert page.marks()["queries.columns"] == "wrong"
        assert page.find("input", name="form_secret") == []
    assert Page(TestClient(client.app).get("/").text).marks() == {}


def test_a_cookie_nobody_gave_out_is_a_new_learner(client: TestClient) -> None:
    """A made-up token finds no work, and saving gives another."""
    client.cookies.set(VISITOR_COOKIE, "made-up")
    assert client.get("/").status_code == 200
    assert "made-up" not in client.post("/sheet/save", data=LLAMA).headers["set-cookie"]


def test_answers_are_shown_only_after_a_try(client: TestClient) -> None:
    """Asked at once, the page advises a try; after one the shapes stand there with their symbols and equations."""
    assert "Show the answers" not in client.get("/").text
    page = Page(client.post("/sheet/answers", data=LLAMA).text)
    assert page.find("tr", class_="answer") == []
    assert page.text("p", class_="result").startswith("Check a try of your own first")
    client.post("/sheet/check", data={**LLAMA, "queries.rows": "what?"})
    assert Page(client.post("/sheet/answers", data=LLAMA).text).find("tr", class_="answer") == []
    checked = client.post("/sheet/check", data={**LLAMA, "queries.rows": "7"}).text
    assert "Show the answers" in checked
    answers = [text for _, text in Page(client.post("/sheet/answers", data=LLAMA).text).find("tr", class_="answer")]
    assert len(answers) == 7
    assert re.search(r"100\s?N × 128\s?d", answers[1])


def test_a_try_on_one_sheet_opens_the_answers_of_no_other(client: TestClient) -> None:
    """Another model, length or worksheet wants a try of its own."""
    client.post("/sheet/check", data={**LLAMA, "queries.rows": "7"})
    for change in ({"tokens": "101"}, {"model": "gpt2"}, {"worksheet": "qwen2.5-0.5b"}):
        page = Page(client.post("/sheet/answers", data={**LLAMA, **change}).text)
        assert page.find("tr", class_="answer") == [], change


def test_a_fresh_visitor_is_not_given_the_answers(client: TestClient) -> None:
    """No row with answers, no mark, no filled box, and no attribute of the page source that holds an answer.

    The sizes in the description are given; the numbers of the key stand nowhere else, since nothing was typed.
    """
    text = client.get("/").text
    page = Page(text)
    assert page.find("tr", class_="answer") == []
    assert page.marks() == {}
    assert set(page.boxes().values()) == {""}
    assert {attrs["data-size"] for attrs, _ in page.find("g") if "data-size" in attrs} == {"?"}
    about_the_sheet = {"data-keep", "data-copy-link", "href", "value", "viewbox", "width", "height", "d"}
    geometry = about_the_sheet | {"x", "y", "x1", "x2", "y1", "y2", "hx-trigger", "content", "class", "src"}
    for tag, attributes, _ in page.elements:
        for name, value in attributes.items():
            assert name in geometry or not re.search(r"\b(100|128|4096)\b", value), (tag, name, value)
    outside = text.replace(page.text("h1"), "")
    assert len(re.findall(r"\b128\b", outside)) == 1  # in the description: 4096/32 = 128
    assert "<!--" not in text


def test_the_drawing_of_an_empty_sheet_is_the_same_whatever_the_key(client: TestClient) -> None:
    """Models of one width but other heads are drawn alike before anything is typed."""
    drawings = [
        re.search(
            r'<div id="figures".*?</aside>', client.get(f"/sheet?worksheet=llama-7b&model={model}").text, re.DOTALL
        )
        for model in ("llama-7b", "mistral-7b")
    ]
    assert drawings[0]
    assert drawings[1]
    assert drawings[0].group() == drawings[1].group()


@pytest.mark.parametrize("scale", ["root", "true", "nonsense"])
def test_the_scale_can_be_switched(client: TestClient, scale: str) -> None:
    """Root or true; anything else is the root scale."""
    page = Page(client.get(f"/sheet?scale={scale}").text)
    checked = [attrs["value"] for attrs, _ in page.find("input", name="scale") if "checked" in attrs]
    assert checked == ["true" if scale == "true" else "root"]


@pytest.mark.parametrize("address", ["/sheet/check", "/sheet/save", "/sheet/answers", "/runs"])
@pytest.mark.parametrize(
    ("change", "status"),
    [({"worksheet": "nope"}, 404), ({"model": "nope"}, 404), ({"tokens": "0"}, 422), ({"tokens": "x"}, 422)],
)
def test_a_form_for_a_sheet_that_is_not_there_gets_a_sentence(
    client: TestClient, address: str, change: dict[str, str], status: int
) -> None:
    """The same refusals as when choosing, on a page of their own."""
    response = client.post(address, data={**LLAMA, **change})
    assert response.status_code == status
    assert Page(response.text).text("h1") == "That did not work"


# Running the head


def test_nothing_is_run_for_an_empty_sheet(client: TestClient, runner: FakeRunner) -> None:
    """The true shapes are answers: without a try of one's own there is a sentence, with and without script."""
    for headers in ({}, SCRIPT):
        response = client.post("/runs", data=LLAMA, headers=headers)
        assert response.status_code == 200
        assert "Write what you expect in at least one row first" in response.text
    assert "Write what you expect" in client.post("/runs", data={**LLAMA, "queries.rows": "N"}).text
    assert runner.calls == []


def test_the_head_is_run_beside_what_was_typed(client: TestClient, runner: FakeRunner) -> None:
    """The run's page has what was typed, what came out, whether they agree, device, time and memory."""
    text = finished_run(client, {**LLAMA, "queries.rows": "100", "queries.columns": "4096"})
    page = Page(text)
    architecture, tokens, options = runner.calls[0]
    assert (architecture.name, tokens) == ("LLaMA 7B", 100)
    assert options == {"topic": "single-head", "device": None, "dtype": "float32", "head": 0}
    rows = {row.split()[0]: row for _, row in page.find("tr")}
    assert "(100, 128)" in rows["QQueries"]
    assert "4096 (not what torch reports)" in rows["QQueries"]
    assert "100 (not" not in rows["QQueries"]
    assert "(100, 4096)" in rows["OOutput"]
    assert "agree on every shape" in page.text("p", class_="agree")
    facts = [text for _, text in page.find("dd")]
    assert facts[:5] == ["a processor that is not there (cpu)", "float32", "5.25 ms", "6.7 MB", "5.6 MB"]
    assert "the numbers are not the model’s: input and weights are random (seed 0)" in text
    assert "Q = X @ W_Q  # &lt;shape &amp; all&gt;" in text


def test_the_picture_of_weights_is_a_picture(client: TestClient) -> None:
    """A PNG of one pixel a cell, kept by the browser; a run without picture has none."""
    text = finished_run(client, {**LLAMA, "queries.rows": "100"})
    address = next(attrs["src"] for attrs, _ in Page(text).find("img"))
    response = client.get(address)
    assert response.headers["content-type"] == "image/png"
    assert response.content.startswith(b"\x89PNG")
    assert int.from_bytes(response.content[16:20]) == int.from_bytes(response.content[20:24]) == 2
    assert "immutable" in response.headers["cache-control"]
    assert client.get("/runs/nope/weights.png").status_code == 404


def test_a_run_on_the_meta_device_has_shapes_and_no_numbers(client: TestClient, runner: FakeRunner) -> None:
    """No picture, no time, no memory measured, and a sentence that says why."""
    runner.changes = {"device": "meta", "milliseconds": None, "peak_bytes": None, "row_sums": None, "picture": None}
    text = finished_run(client, {**LLAMA, "queries.rows": "100", "device": "meta", "head": "3", "dtype": "bfloat16"})
    assert runner.calls[0][2] == {"topic": "single-head", "device": "meta", "dtype": "bfloat16", "head": 3}
    assert "meta device keeps shapes" in text
    assert "<img" not in text
    assert " ms" not in text
    address = re.search(r"code-([\w-]{16})", text)
    assert address
    assert client.get(f"/runs/{address.group(1)}/weights.png").status_code == 404


def test_the_simplified_sheet_runs_the_model_as_it_is(client: TestClient, runner: FakeRunner) -> None:
    """Qwen2.5 0.5B runs with its 2 key/value heads, whatever the worksheet simplifies."""
    finished_run(client, {"worksheet": "qwen2.5-0.5b", "queries.rows": "50"})
    assert (runner.calls[0][0].H, runner.calls[0][0].G) == (14, 2)


def test_a_table_that_torch_contradicts_is_reported(client: TestClient, runner: FakeRunner) -> None:
    """Where torch and the table differ, the page names the matrices and says so aloud."""
    runner.changes = {"agrees": False, "disagreements": ["queries", "scores"]}
    page = Page(finished_run(client, {**LLAMA, "queries.rows": "100"}))
    assert "torch differ: queries, scores" in page.text("p", class_="agree")
    assert page.find("p", class_="agree", role="alert")


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (RunnerBusy(), "Many heads are being run just now."),
        (RunTooLong(), "This head took more than a minute and was stopped."),
        (RunnerFailed(), "The run ended before its result was there"),
        (ForwardError("This head needs 7 bytes too many."), "This head needs 7 bytes too many."),
    ],
)
def test_a_run_that_ends_without_result_says_why(
    client: TestClient, runner: FakeRunner, problem: Exception, sentence: str
) -> None:
    """One sentence, and a form to run it another way, beside the same answers, which are no try once more."""
    runner.problem = problem
    page = Page(finished_run(client, {**LLAMA, "queries.rows": "100"}))
    assert page.text("p", class_="problem").startswith(sentence)
    runner.problem = None
    form = page.find("form")[0][0]
    again = Page(finished_run(client, {"device": "meta", "dtype": "float16", "head": "1"}, form["action"]))
    assert "100" in next(row for _, row in again.find("tr") if row.startswith("QQueries"))
    assert runner.calls[-1][2] == {"topic": "single-head", "device": "meta", "dtype": "float16", "head": 1}
    with client.app.state.services.store.engine.connect() as connection:  # type: ignore[attr-defined]
        assert connection.scalar(sa.select(sa.func.count()).select_from(attempts)) == 1


def test_a_run_shows_that_it_runs_and_can_be_left(client: TestClient, runner: FakeRunner) -> None:
    """A script gets a part that asks again by itself, a plain page reloads; the address works from anywhere."""
    runner.gate.clear()
    text = client.post("/runs", data={**LLAMA, "queries.rows": "100"}, headers=SCRIPT).text
    part = Page(text).find("div", role="status")[0][0]
    assert part["hx-trigger"] == "every 500ms"
    client.cookies.clear()
    assert '<meta http-equiv="refresh"' in client.get(part["hx-get"]).text
    assert "Running." in client.get(part["hx-get"], headers=SCRIPT).text
    assert client.get(part["hx-get"] + "/weights.png").status_code == 404
    runner.gate.set()
    for _ in range(200):
        if "agree on every shape" in client.get(part["hx-get"]).text:
            return
        time.sleep(0.02)
    raise AssertionError("the run did not end")


def test_a_run_lost_with_the_server_says_so(client: TestClient, runner: FakeRunner) -> None:
    """A run that began long ago and has no result is not waited for; one that has ended keeps its end."""
    runner.gate.clear()
    address = client.post("/runs", data={**LLAMA, "queries.rows": "1"}, follow_redirects=False).headers["location"]
    store = client.app.state.services.store  # type: ignore[attr-defined]
    with store.engine.begin() as connection:
        connection.execute(sa.update(runs).values(created_at=sa.text("'2020-01-01 00:00:00.000000'")))
    assert "This run was lost when the server restarted." in client.get(address).text
    store.finish_run(address.rpartition("/")[2], None, "It ended long ago.")
    assert "It ended long ago." in client.get(address).text
    runner.gate.set()


@pytest.mark.parametrize("run_id", ["nope", "x" * 5000, "%00", "é", "..%2f..%2fetc%2fpasswd"])
def test_a_run_that_is_not_there_is_not_found(client: TestClient, run_id: str) -> None:
    """404 with a sentence."""
    response = client.get(f"/runs/{run_id}")
    assert response.status_code == 404
    assert Page(response.text).text("h1") == "That did not work"


@pytest.mark.parametrize("head", ["-1", "1.5", "x", "9" * 30, "²"])
def test_a_head_that_is_no_number_is_left_to_the_forward_pass_to_refuse(
    client: TestClient, runner: FakeRunner, head: str
) -> None:
    """What is typed for a head never breaks the form: the runner is asked for head -1, which no model has."""
    finished_run(client, {**LLAMA, "queries.rows": "100", "head": head})
    assert runner.calls[0][2]["head"] == -1


# Limits, headers, errors


def test_a_body_over_the_limit_is_refused(client: TestClient) -> None:
    """413 by the stated length, and 413 as soon as too much has come of a body that states none."""
    assert client.post("/sheet/check", content=b"x" * (MAX_BODY + 1)).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 100_000 + 2):
            yield b"x" * 100_000

    form = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/sheet/check", content=pieces(), headers=form).status_code == 413
    assert (
        client.post("/api/v1/grade", content=pieces(), headers={"content-type": "application/json"}).status_code == 413
    )
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
    ],
)
def test_a_form_from_another_site_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    """403 before anything is looked at; a page may be opened from anywhere."""
    response = client.post("/sheet/check", data=filled(), headers=headers)
    assert response.status_code == 403
    assert response.text == "This form was sent from another site."
    assert client.get("/", headers=headers).status_code == 200


def test_a_form_of_this_site_is_taken(client: TestClient) -> None:
    """Same origin, as browsers say it, and programs that say nothing."""
    for headers in ({"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}, {}):
        assert client.post("/sheet/check", data=filled(), headers=headers).status_code == 200


def broken(client: TestClient, monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    """Make the library fail, whatever it is asked."""

    def fail(*_arguments: object, **_named: object) -> None:
        raise problem

    monkeypatch.setattr("app.sheets.library.Library.variant", fail)


@pytest.mark.parametrize("address", ["/", "/api/v1/worksheets"])
def test_an_error_of_ours_is_one_sentence(client: TestClient, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """500, and nothing of the exception: no name, no text, no traceback."""
    broken(client, monkeypatch, RuntimeError("secret detail"))
    response = client.get(address)
    assert response.status_code == 500
    assert "Something went wrong on our side." in response.text
    assert not re.search(r"secret|Traceback|RuntimeError", response.text)


def test_a_database_that_does_not_answer_is_said(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with Retry-After on a page, in the API's health check too, and no word of SQL."""

    def fail(*_arguments: object) -> None:
        raise OperationalError("SELECT secret", {}, Exception("secret"))

    for question in ("add_learner", "ping"):
        monkeypatch.setattr(f"app.store.store.Store.{question}", fail)
    response = client.post("/sheet/save", data=LLAMA)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert "The database does not answer just now." in response.text
    assert client.get("/healthz").status_code == 503
    assert "secret" not in response.text + client.get("/healthz").text


def test_health_is_said_when_the_database_answers(client: TestClient) -> None:
    """200 and {"status": "ok"}."""
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("method", "address", "status", "sentence"),
    [
        ("GET", "/nope", 404, "There is no such page here."),
        ("GET", "/static/nope.css", 404, "There is no such page here."),
        ("GET", "/static/../app/main.py", 404, "There is no such page here."),
        ("GET", "/sheet/check", 405, "This address does not take that kind of request."),
        ("DELETE", "/", 405, "This address does not take that kind of request."),
    ],
)
def test_addresses_that_are_not_there_get_a_sentence(
    client: TestClient, method: str, address: str, status: int, sentence: str
) -> None:
    """404 and 405 as pages of ours."""
    response = client.request(method, address)
    assert response.status_code == status
    assert sentence in response.text


def test_a_form_that_is_no_form_gets_a_sentence(client: TestClient) -> None:
    """A multipart body without its boundary is refused with a status a client can act on."""
    response = client.post("/sheet/check", content=b"x", headers={"content-type": "multipart/form-data"})
    assert response.status_code == 400
    assert Page(response.text).text("h1") == "That did not work"


def test_every_answer_has_the_security_headers(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages, files, API, errors, refusals: whatever the status, the same headers, and no script from elsewhere."""
    other_site = {"Sec-Fetch-Site": "cross-site"}
    answers = [
        client.get("/"),
        client.get("/static/css/page.css"),
        client.get("/healthz"),
        client.get("/api/v1/models"),
        client.get("/openapi.json"),
        client.get("/nope"),
        client.get("/api/v1/worksheets/nope"),
        client.post("/api/v1/grade", json={}),
        client.post("/sheet/check", data=LLAMA),
        client.post("/sheet/check", content=b"x" * (MAX_BODY + 1)),
        client.post("/sheet/check", data=LLAMA, headers=other_site),
        client.post("/runs", data={**LLAMA, "queries.rows": "1"}, follow_redirects=False),
    ]
    broken(client, monkeypatch, RuntimeError())
    answers.append(client.get("/"))
    assert {answer.status_code for answer in answers} == {200, 303, 403, 404, 413, 422, 500}
    for answer in answers:
        assert [name for name in HEADERS if name not in answer.headers] == [], (answer.status_code, answer.url)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_vendored_files_are_kept_and_ours_are_asked_for_again(client: TestClient) -> None:
    """A name with a version never changes; our own files are revalidated, and unchanged ones are not sent again."""
    vendored = next((PROJECT / "static" / "vendor").glob("*.js")).name
    assert client.get(f"/static/vendor/{vendored}").headers["cache-control"] == "public, max-age=31536000, immutable"
    ours = client.get("/static/css/page.css")
    assert ours.headers["cache-control"] == "no-cache"
    assert client.get("/static/css/page.css", headers={"If-None-Match": ours.headers["etag"]}).status_code == 304


def test_pages_load_nothing_from_elsewhere(client: TestClient) -> None:
    """Every src and href of a page is ours, but for the link to the model's card; what they name is there."""
    texts = [client.get("/").text, client.get("/nope").text, finished_run(client, {**LLAMA, "queries.rows": "1"})]
    outside = set[str]()
    for text in texts:
        for tag, attributes, _ in Page(text).elements:
            for name in ("src", "href", "action", "formaction", "poster", "data"):
                address = attributes.get(name, "")
                if re.match(r"(\w+:)?//", address):
                    assert tag == "a"
                    outside.add(address)
                elif tag in ("script", "link", "img"):
                    assert client.get(address).status_code == 200, address
    assert outside == {"https://huggingface.co/huggyllama/llama-7b"}
    styles = [path.read_text(encoding="utf-8") for path in (PROJECT / "static" / "css").glob("*.css")]
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"/\*.*?\*/", "", "".join(styles), flags=re.DOTALL))


def test_the_first_load_is_light(client: TestClient) -> None:
    """The page and everything it loads come to at most 100 kB on the wire, as the issue asks."""
    page = Page(client.get("/").text)
    addresses = {attrs["href"] for attrs, _ in page.find("link")} | {attrs["src"] for attrs, _ in page.find("script")}
    sent = 0
    for address in ["/", *addresses]:
        with client.stream("GET", address, headers={"accept-encoding": "gzip"}) as response:
            sent += sum(len(piece) for piece in response.iter_raw())
    assert 10_000 < sent <= 100_000


def test_a_visit_starts_no_child_and_loads_no_torch(tmp_path: Path) -> None:
    """The app with its real runner serves a page, and the runner has no child yet."""
    app = main.create_app(Settings(data_dir=tmp_path, database_url=""))
    with TestClient(app) as opened:
        assert opened.get("/").status_code == 200
        assert app.state.services.runner._child is None


def test_answers_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    """A second app on the same folder shows what was typed at the first, to the same browser."""
    settings = Settings(data_dir=tmp_path, database_url="")
    with TestClient(main.create_app(settings)) as first:
        first.post("/sheet/save", data={**LLAMA, "queries.rows": "77", "version": "1"})
        cookies = dict(first.cookies)
    with TestClient(main.create_app(settings), cookies=cookies) as second:
        assert Page(second.get("/").text).boxes()["queries.rows"] == "77"


def test_half_a_form_is_no_fault_of_ours(client: TestClient) -> None:
    """Cut off in the middle of a save, the app raises nothing, and says 400 to nobody."""
    coming = iter(
        [{"type": "http.request", "body": b"queries.rows=12", "more_body": True}, {"type": "http.disconnect"}]
    )
    sent = list[Any]()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/sheet/save", "raw_path": b"/sheet/save", "query_string": b"", "root_path": "",
        "headers": [(b"host", b"testserver"), (b"content-type", b"application/x-www-form-urlencoded")],
        "client": ("testclient", 1), "server": ("testserver", 80),
    }  # fmt: skip

    async def receive() -> Any:
        return next(coming)

    async def send(message: Any) -> None:
        sent.append(message)

    assert client.portal
    client.portal.call(client.app, scope, receive, send)  # the app itself, as a server calls it
    assert sent[0]["status"] == 400


def test_many_browsers_are_served_at_once(client: TestClient) -> None:
    """Eight threads check and save at the same time; each gets its own marks."""
    results: list[Any] = []

    def work(number: int) -> None:
        response = client.post("/sheet/check", data=filled(queries__rows=str(number)), headers=SCRIPT)
        results.append((number, response.status_code, Page(response.text).boxes()["queries.rows"]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(number, 200, str(number)) for number in range(1, 9)]


def test_the_app_runs_on_postgresql_too(
    new_postgres_database: str, tmp_path: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved, checked and run on a real PostgreSQL, as several workers would be."""
    monkeypatch.setattr(main, "HeadRunner", lambda: runner)
    app = main.create_app(Settings(data_dir=tmp_path / "unused", database_url=new_postgres_database))
    with TestClient(app, raise_server_exceptions=False) as client:
        client.post("/sheet/save", data={**LLAMA, "queries.rows": "a\x00b", "version": "1"})
        assert Page(client.get("/").text).boxes()["queries.rows"].startswith("a")
        assert "agree on every shape" in finished_run(client, filled())
        assert client.get("/runs/%00").status_code == 404
    assert not (tmp_path / "unused").exists()


def test_openapi_is_json(client: TestClient) -> None:
    """The description that the footer links to is there, and is no page of another site."""
    text = client.get("/openapi.json").text
    assert "https://" not in text
    assert json.loads(text)["info"]["title"] == "Attention Shapes"


# Hints, and what is said once the sheet is done


TITLES = ("As that idea has it", "As it is")
WIDE = {"queries__columns": "4096", "keys__columns": "4096", "values__columns": "4096"}


def hint_of(page: Page) -> str:
    return next((text for _, text in page.find("p", class_="hint")), "")


def next_level(page: Page) -> str | None:
    """The level that the button for a hint sends; None where there is no button."""
    return next((attrs["value"] for attrs, _ in page.find("button") if attrs.get("name") == "hint"), None)


def test_hints_go_further_with_every_press(client: TestClient, library: Library) -> None:
    """A check says the first level and offers the second; the second offers the third; after that there is none."""
    page = Page(client.post("/sheet/check", data=filled(**WIDE)).text)
    assert page.text("p", class_="diagnosis") == library.wording.misconception("head-as-wide-as-model", "nudge")
    assert (hint_of(page), next_level(page)) == ("", "2")
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "hint": "2"}).text)
    assert hint_of(page) == library.wording.misconception("head-as-wide-as-model", "hint")
    assert (next_level(page), page.find("td", class_="hinted")) == ("3", [])
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "hint": "3"}).text)
    assert hint_of(page).startswith("Look again at “Queries” (columns), “Keys” (columns) and “Values” (columns).")
    assert (next_level(page), len(page.find("td", class_="hinted"))) == (None, 3)
    assert page.marks()["queries.columns"] == "explained"


@pytest.mark.parametrize("level", ["0", "4", "9" * 5000, "two", "", "²", "\x00"])
def test_a_hint_of_no_level_is_the_first(client: TestClient, library: Library, level: str) -> None:
    """Whatever a form says, there is a hint."""
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "hint": level}).text)
    assert hint_of(page) == library.wording.misconception("head-as-wide-as-model", "nudge")


def test_a_hint_is_a_check_of_what_has_changed_alone(client: TestClient, tmp_path: Path) -> None:
    """Marked and kept as a try like a check: the same texts, checked before or hinted at before, are no new try."""

    def tries() -> list[float]:
        with sqlite3.connect(tmp_path / "data" / "attention-shapes.sqlite3") as connection:
            return [score for (score,) in connection.execute("SELECT score FROM attempts ORDER BY id")]

    client.post("/sheet/check", data=filled(**WIDE))
    client.post("/sheet/hint", data={**filled(**WIDE), "hint": "2"})
    assert tries() == [11]
    page = Page(client.post("/sheet/hint", data={**filled(weights__columns="1"), "hint": "2"}).text)
    assert page.marks()["weights.columns"] == "wrong"
    client.post("/sheet/hint", data={**filled(weights__columns="1"), "hint": "3"})
    assert tries() == [11, 13]


def test_there_is_no_hint_to_press_for_where_there_is_none(client: TestClient) -> None:
    """Before a check, where nothing could be read, where all is right, and beside the answers."""
    assert next_level(Page(client.get("/").text)) is None
    assert next_level(Page(client.post("/sheet/check", data={**LLAMA, "queries.rows": "some"}).text)) is None
    assert next_level(Page(client.post("/sheet/check", data=filled()).text)) is None
    client.post("/sheet/check", data=filled(**WIDE))
    assert next_level(Page(client.post("/sheet/answers", data=filled(**WIDE)).text)) is None


def test_the_first_broken_link_is_said_once(client: TestClient) -> None:
    """In words after a check; not where the diagnosis is about one of its sides, nor beside a hint that names it."""
    said = "cannot be added to"
    narrow = {"values.rows": "31", "scores.columns": "77"}
    page = Page(client.post("/sheet/check", data={**filled(), **narrow}).text)
    assert [text for _, text in page.find("p", class_="diagnosis")] == [
        "“Input to this head” with 100 rows and “Values” with 31 rows leave a gap: these two edges have to meet."
    ]
    page = Page(client.post("/sheet/hint", data={**filled(), **narrow, "hint": "2"}).text)
    assert page.find("p", class_="diagnosis") == []
    page = Page(client.post("/sheet/check", data=filled(output__columns="128")).text)
    assert [said in text for _, text in page.find("p", class_="diagnosis")] == [False]
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "values.rows": "31", "hint": "2"}).text)
    assert [" leave a gap" in text for _, text in page.find("p", class_="diagnosis")] == [False, True]


def test_the_idea_behind_an_earlier_try_is_explained_once_all_is_right(client: TestClient, library: Library) -> None:
    """Not before: the newest try with a diagnosis counts, its figures stand as believed and as they are."""
    explanation = library.wording.misconception("no-output-projection", "explanation")
    client.post("/sheet/check", data=filled(**WIDE))
    text = client.post("/sheet/check", data=filled(output__columns="128")).text
    assert (explanation in text, Page(text).find("section", class_="explanation")) == (False, [])
    client.post("/sheet/check", data=filled(scores__rows="99"))
    for text in (client.post("/sheet/check", data=filled()).text, client.get("/").text):
        assert explanation in text
        figures = [said for _, said in Page(text).find("figure")][3:]
        assert [said.startswith(title) for said, title in zip(figures, TITLES, strict=True)] == [True, True]
        assert "cannot be added" in figures[0]
        assert "cannot be added" not in figures[1]


def test_it_is_explained_beside_the_answers_too(client: TestClient, library: Library) -> None:
    """With the answers shown; a learner without a diagnosis, and another learner, get none."""
    client.post("/sheet/check", data=filled(**WIDE))
    text = client.post("/sheet/answers", data=filled(**WIDE)).text
    assert library.wording.misconception("head-as-wide-as-model", "explanation") in text
    assert len(Page(text).find("div", class_="pair")) == 3
    client.cookies.clear()
    client.post("/sheet/check", data=filled(queries__rows="99"))
    assert Page(client.post("/sheet/answers", data=filled()).text).find("section", class_="explanation") == []


def test_an_explanation_without_a_drawing_is_words_alone(client: TestClient) -> None:
    """A count of parameters is not drawn, and what its misconception is about still is explained."""
    sheet = {"worksheet": "count-llama-7b", "model": "llama-7b", "tokens": "100"}
    wrong = {"embedding.count": "139460608", "total.count": "6746804224"}
    right = {"attention.count": "4*4096*4096", "final_norm.count": "4096"}
    client.post("/sheet/check", data={**sheet, **right, **wrong})
    page = Page(client.post("/sheet/answers", data={**sheet, **right, **wrong}).text)
    assert "Rotary positions" in page.text("section", class_="explanation")
    assert page.find("figure") == []
