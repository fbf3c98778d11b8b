"""The page of handouts: options in the address, real pages, class lists and large handouts."""

from __future__ import annotations

import base64
import re

import pytest
from starlette.testclient import TestClient

from app.machine.work_queue import Client
from tests.helpers.html_page import Page
from tests.helpers.print_jobs import finished_print_job
from tests.helpers.printed import read_pdf
from tests.helpers.school import Classroom, School

QUERY = "worksheet=llama-7b&variants=1&sheets=3&layout=full&back=classic&course=COS+597G&paper=a4"


def test_the_options_stand_in_the_address(client: TestClient) -> None:
    page = client.get(f"/handout?{QUERY}").text
    for chosen in (
        '"variants" value="1" checked',
        'value="full" checked',
        'value="a4" selected',
        'value="COS 597G"',
    ):
        assert chosen in page
    link = re.search(r'data-address="/handout\?([^"]*)"', page)
    assert link
    assert set(link.group(1).replace("&amp;", "&").split("&")) == set(QUERY.split("&"))


def test_the_pages_shown_are_those_of_the_pdf(client: TestClient) -> None:
    pictures = re.findall(r'<img\s+src="([^"]+)"', client.get(f"/handout?{QUERY}").text)
    answer = client.get(f"/handout.pdf?{QUERY}")
    assert answer.headers["content-type"] == "application/pdf"
    assert 'filename="llama-7b.pdf"' in answer.headers["content-disposition"]
    assert len(pictures) == len(read_pdf(answer.content)) == 6
    for source in pictures:
        picture = client.get(source.replace("&amp;", "&"))
        assert picture.headers["content-type"] == "image/svg+xml"
        assert 'viewBox="0 0 595.28' in picture.text
        assert "<script" not in picture.text
        assert "style=" not in picture.text
    assert client.get(f"/handout/pages/7.svg?{QUERY}").status_code == 404


def test_a_sheet_with_a_decoders_text_is_printed_as_it_is_shown(client: TestClient) -> None:
    sheet = client.get("/sheet?worksheet=cross-bart-base&tokens=40&decoded=7").text
    code = re.search(r'<a href="/v/([A-Z0-9-]+)">', sheet)
    link = re.search(r'<a href="(/handout\?[^"]*)">Print</a>', sheet)
    assert code
    assert link
    page = client.get(link[1].replace("&amp;", "&")).text
    assert re.search(r'name="decoded"\s+class="decodes"\s+value="7"', page)
    link = re.search(r'href="(/handout\.pdf\?[^"]*)"', page)
    assert link
    paper = read_pdf(client.get(link[1].replace("&amp;", "&")).content)[0].text
    assert f"Sheet {code[1]}," in paper


def test_a_script_gets_the_pages_alone(client: TestClient) -> None:
    part = client.get(f"/handout?{QUERY}", headers={"hx-request": "true"}).text
    assert "<html" not in part
    assert part.count("<img") == 6


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("sheets=many", 422, "“Number of sheets” must be a whole number from 1 to 5,000, not “many”."),
        ("sheets=0", 422, "from 1 to 5,000"),
        ("decoded=many", 422, "“Decoder tokens” must be a whole number from 0"),
        ("decoded=9", 422, "is not an encoder-decoder model"),
        ("worksheet=cross-bart-base&decoded=0", 422, "Decoder tokens must be a whole number from 1 to"),
        ("worksheet=nope", 404, "There is no worksheet “nope”"),
        ("model=nope", 404, "There is no model “nope”"),
        ("tokens=0", 422, "token"),
        ("layout=%3Cb%3E", 422, "“&lt;b&gt;” is not an option"),
        ("course=" + "x" * 130, 422, "130 characters"),
        ("course=%E1%9A%A0", 200, "ᚠ"),
        ("worksheet=count-mixtral-8x7b&variants=1&sheets=4", 422, "only 1 version"),
    ],
)
def test_options_that_cannot_be_used_are_told(client: TestClient, query: str, status: int, sentence: str) -> None:
    answer = client.get(f"/handout?{query}")
    assert answer.status_code == status
    assert sentence in answer.text


def test_a_download_says_what_cannot_be_printed(client: TestClient) -> None:
    pages = read_pdf(client.get("/handout.pdf?course=COS+%E1%9A%A0").content)
    assert "COS □" in pages[0].text
    assert "at most 100 sheets" in client.get("/handout.pdf?sheets=101").text


def test_a_class_list_becomes_a_handout(client: TestClient) -> None:
    roster = "First name,Last name\nAda,Lovelace\nعمر,الخيام\n王,小明\n".encode()
    answer = client.post(
        "/handout/class",
        data={"worksheet": "softmax-of-a-model", "variants": "1", "sheets": "2"},
        files={"roster": ("names.csv", roster, "text/csv")},
        follow_redirects=False,
    )
    assert answer.status_code == 303
    assert len(answer.headers["location"].rpartition("/")[2]) >= 20
    page = finished_print_job(client, answer.headers["location"])
    link = re.search(r'href="(/handout/jobs/[^"]+\.pdf)"', page)
    assert link
    text = " ".join(page.text for page in read_pdf(client.get(link.group(1)).content))
    assert "Ada Lovelace" in text
    assert set("王小明") <= set(text)
    assert len(set(re.findall(r"Sheet ([A-Z-]+), page 1", text))) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "sentence"),
    [("\n".join(["x"] * 6_000), "6,000 names"), ("y" * 90, "at most 80")],
)
def test_names_that_cannot_be_printed_come_back(client: TestClient, names: str, sentence: str) -> None:
    answer = client.post("/handout/class", data={"names": names, "course": "COS"})
    assert answer.status_code == 422
    assert sentence in answer.text
    assert names.splitlines()[0] in answer.text
    assert 'value="COS"' in answer.text


@pytest.mark.slow
def test_a_name_without_a_font_stops_nobody_elses_sheet(client: TestClient) -> None:
    names = "Ada ᚠᚢ\nAlex Smith, 1020\nAlex Smith, 1044"
    address = client.post("/handout/class", data={"names": names}, follow_redirects=False).headers["location"]
    page = finished_print_job(client, address)
    assert "No font on this server has “ᚠᚢ”" in page
    text = " ".join(page.text for page in read_pdf(client.get(f"{address}.pdf").content))
    assert all(name in text for name in ("Ada □□", "Alex Smith (1020)", "Alex Smith (1044)"))


def test_too_many_at_once_are_told_to_come_back(client: TestClient) -> None:
    school = School(client.app)  # type: ignore[arg-type]
    queue = school.services.printer._requests
    for network in ("testclient", "192.0.2.1", "192.0.2.2"):
        queue._places.held[Client(network, is_member=False)] = 3
    for address in ("/handout.pdf?seed=77", "/handout?seed=78"):
        answer = client.get(address)
        assert answer.status_code == 503
        assert "try again in a minute" in answer.text
    teacher = school.browser(teacher=school.teacher())
    assert teacher.get("/handout.pdf?seed=77").status_code == 200
    queue._places.held.clear()
    assert client.get("/handout.pdf?seed=79").status_code == 200


@pytest.mark.slow
def test_a_qr_code_leads_to_where_the_page_was_asked_for(client: TestClient) -> None:
    [here] = read_pdf(client.get("/handout.pdf", headers={"host": "127.0.0.1:8000"}).content)
    assert here.codes == []
    [there] = read_pdf(client.get("/handout.pdf", headers={"host": "shapes.example.org"}).content)
    assert len(there.codes) == 2
    assert all(code.startswith("http://shapes.example.org/v/") for code in there.codes)
    preview = client.get("/handout/pages/1.svg", headers={"host": "shapes.example.org"})
    codes = re.findall(r'<image[^>]*"data:image/svg\+xml;base64,([^"]+)"', preview.text)
    assert len(codes) == 2
    assert all(b'<svg xmlns="http://www.w3.org/2000/svg"' in base64.b64decode(code) for code in codes)


@pytest.mark.slow
def test_one_visitor_cannot_stop_the_server(client: TestClient) -> None:
    many = {"worksheet": "softmax-of-a-model", "variants": "1", "sheets": "900"}
    names = {"names": "\n".join(f"Student {number}" for number in range(5000))}
    for form in (many, many | names, {"worksheet": "llama-7b", "variants": "1", "sheets": "5000"}):
        answer = client.post("/handout/class", data=form)
        assert answer.status_code == 422
        assert "are for teachers" in answer.text or "at most 188 different versions" in answer.text
    statuses = [
        client.post("/handout/class", data={**many, "sheets": "100"}, follow_redirects=False).status_code
        for _ in range(8)
    ]
    assert statuses.count(303) >= 3
    assert set(statuses) <= {303, 503}
    assert statuses.count(503) >= 3


def test_a_visitor_cancels_a_handout(client: TestClient) -> None:
    form = {"worksheet": "softmax-of-a-model", "variants": "1", "sheets": "100", "layout": "full", "figures": "aid"}
    address = client.post("/handout/class", data=form, follow_redirects=False).headers["location"]
    assert f'action="{address}/cancel"' in client.get(address).text
    client.post(f"{address}/cancel")
    assert "was cancelled" in finished_print_job(client, address)


def test_an_empty_class_list_prints_no_sheets_without_names(client: TestClient) -> None:
    form = {"worksheet": "llama-7b", "sheets": "2"}
    upload = {"file": ("names.csv", b"", "text/csv")}
    refused = client.post("/handout/class", data=form, files=upload, follow_redirects=False)
    assert refused.status_code == 422
    typed = client.post("/handout/class", data={**form, "names": "Kim Lee"}, files=upload, follow_redirects=False)
    assert typed.status_code == 303
    client.post(f"{typed.headers['location']}/cancel")


def test_the_answer_key_is_only_for_signed_in_teachers(classroom: Classroom) -> None:
    _, student = classroom.join()
    for browser, may in ((classroom.instructor, True), (student, False), (classroom.school.browser(), False)):
        assert bool(Page(browser.get("/handout").text).find("select", name="key")) == may
        addresses = ("/handout?key=only", "/handout.pdf?key=only", "/handout/pages/1.svg?key=with")
        assert [browser.get(address).status_code for address in addresses] == [200 if may else 422] * 3
        printed = browser.post("/handout/class", data={"key": "with", "names": "Ada"})
        assert printed.status_code == (303 if may else 422)
