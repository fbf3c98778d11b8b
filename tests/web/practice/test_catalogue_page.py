"""The page of all sheets: what is chosen on it is in every link."""

from __future__ import annotations

from fastapi.testclient import TestClient

from app.practice.lessons import LESSONS
from tests.helpers.html_page import Page
from tests.helpers.school import SCRIPT, Classroom


def listed(client: TestClient, **query: str) -> list[str]:
    """The addresses of the sheets in the list."""
    page = Page(client.get("/sheets", params=query, headers=SCRIPT).text)
    return [link["href"] for link, _ in page.find("a") if link["href"].startswith(("/sheet?", "/sheet/"))]


def test_every_link_opens_a_sheet(client: TestClient) -> None:
    links = listed(client)
    assert len(links) == sum(len(lesson.worksheets) for lesson in LESSONS)
    assert {client.get(link).status_code for link in links} == {200}


def test_model_and_symbols_are_kept_when_a_sheet_is_opened(client: TestClient) -> None:
    links = listed(client, model="llama-3-8b", answers="symbols")
    assert any(link.startswith("/sheet?worksheet=llama-7b~symbols&model=llama-3-8b") for link in links)
    page = client.get(next(link for link in links if "llama-7b~symbols" in link)).text
    assert "One head of Llama 3 8B" in page


def test_sheets_are_found_by_words_lesson_and_topic_without_script(client: TestClient) -> None:
    page = Page(client.get("/sheets", params={"words": "cross"}).text)
    assert "Cross-attention" in [text for _, text in page.find("a")]
    assert [box["value"] for box, _ in page.find("input", type="search")] == ["cross"]
    assert len(listed(client, lesson="layer")) == len(LESSONS[1].worksheets)
    assert len(listed(client, topic="find-the-bug")) == 4
    assert listed(client, words="nothing like it") == []


def test_a_code_from_paper_is_found_by_the_search(client: TestClient) -> None:
    code = Page(client.get("/sheet?worksheet=llama-7b&tokens=77").text).find("a")
    [address] = [link["href"] for link, _ in code if link["href"].startswith("/v/")]
    typed = address.removeprefix("/v/").lower().replace("-", "")
    page = Page(client.get("/sheets", params={"words": typed}).text)
    assert address in [link["href"] for link, _ in page.find("a")]


def test_an_unknown_choice_shows_everything_or_nothing_but_no_error(client: TestClient) -> None:
    assert len(listed(client, model="no-such-model")) == sum(len(lesson.worksheets) for lesson in LESSONS)
    assert listed(client, lesson="no-such-lesson") == []
    assert client.get("/sheets", params={"words": "x" * 300}).status_code == 422


def test_the_real_head_and_a_random_bug_are_in_front(client: TestClient) -> None:
    links = [link["href"] for link, _ in Page(client.get("/sheets").text).find("a")]
    assert "/sheet?worksheet=it-attends-smollm2" in links
    bug = client.get("/sheet/another?worksheet=bug-or-none", follow_redirects=False)
    assert bug.headers["location"].startswith("/sheet?worksheet=bug-or-none~")


def test_a_teacher_copies_a_sheet_from_the_list(classroom: Classroom) -> None:
    page = Page(classroom.instructor.get("/sheets?words=decoding+step&model=gpt2").text)
    [(copy, _), *_others] = page.find("button", form="copy")
    opened = classroom.instructor.post(copy["formaction"])
    assert opened.status_code == 303
    assert "/worksheets/" in opened.headers["location"]
