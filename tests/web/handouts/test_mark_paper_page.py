"""Paper answers typed in: marked line by line, exported as CSV, refused with the line that cannot be used."""

from __future__ import annotations

import csv
import io

import pytest
from starlette.testclient import TestClient

from app.grading.paper import MAX_PAPER_LINES
from app.sheets.library import Library


def right(library: Library) -> list[str]:
    return [str(size) for size in library.variant("llama-7b").key.values()]


def test_lines_typed_from_paper_are_marked(client: TestClient, library: Library) -> None:
    code = library.variant("llama-7b").code
    assert client.get(f"/marking?code={code.lower()}").text.count('name="cell"') % 14 == 0
    wide = ["4096" if text == "128" else text for text in right(library)]
    typed = "\r\n".join([f"Ada: {' '.join(right(library))}", " ".join(wide), "<Bo>: 100 - 4096/32"])
    page = client.post("/marking", data={"code": code, "typed": typed}).text
    assert "14 of 14" in page
    assert "13 of 14" in page
    assert library.wording.misconception_name("head-as-wide-as-model") in page
    assert "&lt;Bo&gt;" in page
    assert page.count('data-mark="empty"') == 12
    assert "Ada: 100 4096" in page


def test_marks_are_saved_as_a_harmless_csv(client: TestClient, library: Library) -> None:
    code = library.variant("llama-7b").code
    typed = f"=cmd(): {' '.join(right(library))}\n@x: =1+1 ＝1+1 -12.5 -5-5 +3\n"
    answer = client.post("/marking.csv", data={"code": code, "typed": typed})
    assert answer.headers["content-type"].startswith("text/csv")
    first, second = csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff")))
    assert (first["name"], first["sheet"], first["score"], first["out_of"]) == ("'=cmd()", code, "14", "14")
    assert first["queries.columns"] == "128"
    assert first["queries.columns mark"] == "right"
    assert list(second.values())[:7] == ["'@x", code, "'=1+1", "'＝1+1", "-12.5", "'-5-5", "+3"]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("Ada: " + "1 " * 15, "Line 1 has 15 answers, but the sheet has 14 boxes"),
        ("\n\n" + "1" * 5_000, "Line 3 is too long"),
        ("1\n" * (MAX_PAPER_LINES + 1), f"At most {MAX_PAPER_LINES} lines"),
        ("1 2\nNoor 100 4096 100", "Line 2 begins with “Noor”"),
        ("Noor Ali 100 4096 100", "Line 1 begins with “Noor”"),
    ],
)
def test_lines_that_cannot_be_marked_come_back(client: TestClient, library: Library, typed: str, sentence: str) -> None:
    code = library.variant("llama-7b").code
    answer = client.post("/marking", data={"code": code, "typed": typed})
    assert answer.status_code == 422
    assert sentence in answer.text
    assert typed.split("\n")[0] in answer.text


def test_a_word_is_an_answer_where_a_colon_says_so(client: TestClient, library: Library) -> None:
    code = library.variant("llama-7b").code
    for typed in (": Noor 100", "Noor: 100 4096 100", "1-- 4096"):
        answer = client.post("/marking", data={"code": code, "typed": typed})
        assert (answer.status_code, answer.text.count("ruled marked")) == (200, 1)
    letters = library.variant("llama-7b~symbols")
    typed = " ".join(str(expression) for expression in letters.key.values())
    assert client.post("/marking", data={"code": letters.code, "typed": "N d N"}).status_code == 200


def test_an_unknown_code_is_told(client: TestClient) -> None:
    answer = client.get("/marking?code=BBB-BB-%3Cb%3E")
    assert answer.status_code == 404
    assert "BBB-BB-&lt;b&gt;" in answer.text
    assert client.post("/marking", data={"code": "zz", "typed": "1"}).status_code == 404


def test_a_grid_says_the_same_as_lines(client: TestClient, library: Library) -> None:
    code, answers = library.variant("llama-7b").code, right(library)
    form = {"code": code, "grid": ["Ada", "", "Bo"], "cell": [*answers, *[""] * 14, "100", *[""] * 13]}
    marked = client.post("/marking", data=form).text
    assert "14 of 14" in marked
    ada, bo = csv.DictReader(io.StringIO(client.post("/marking.csv", data=form).text.removeprefix("\ufeff")))
    assert [(line["name"], line["input.rows"], line["input.columns"]) for line in (ada, bo)] == [
        ("Ada", "100", "4096"), ("Bo", "100", ""),
    ]  # fmt: skip
