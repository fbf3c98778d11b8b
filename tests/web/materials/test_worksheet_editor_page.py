"""The worksheet editor: what it makes and saves, what it refuses, and what its preview shows."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from app.sheets.authoring.worksheet_settings import read_settings
from app.store import Material
from app.web.worksheet_preview import PREVIEW_KEY
from tests.helpers.html_page import Page
from tests.helpers.random_worksheets import HOSTILE_TEXTS, random_settings
from tests.helpers.school import Browser, Classroom
from tests.helpers.sent_form import SentForm

PREVIEW = "/worksheets/preview"


def new_form(classroom: Classroom, **changes: Any) -> dict[str, Any]:
    """The form of a new worksheet as it is sent, with some fields otherwise."""
    return {**SentForm(classroom.get("/worksheets/new")).values, **changes}


def stored(classroom: Classroom, content: dict[str, Any] | None = None) -> Material:
    """A worksheet of the course: the one on LLaMA 7B unless other settings are given."""
    sheet = classroom.school.library.worksheet("llama-7b").settings
    return classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, content or sheet)


def post(classroom: Classroom, address: str, form: dict[str, Any]) -> Any:
    """The answer to a form that the instructor sends."""
    return classroom.instructor.post(address, data=form)


def test_a_new_worksheet_is_made_and_changed(classroom: Classroom) -> None:
    form = SentForm(classroom.get(f"/worksheets/new?course={classroom.course.id}&topic=costs")).values
    made = post(classroom, "/worksheets", {**form, "tokens": "90"})
    assert made.status_code == 303
    [material] = classroom.store.materials.of_course(classroom.course)
    assert (material.topic, material.content["tokens"], material.version) == ("costs", 90, 1)
    form = SentForm(classroom.get(made.headers["location"])).values
    assert post(classroom, f"/worksheets/{material.id}", {**form, "title": "Mine"}).status_code == 303
    saved = classroom.store.materials.find(material.id)
    assert saved
    assert (saved.title, saved.version, saved.content["tokens"]) == ("Mine", 2, 90)


def test_the_bug_of_a_program_is_chosen_in_the_editor(classroom: Classroom) -> None:
    form = SentForm(classroom.get("/worksheets/new?topic=find-the-bug")).values
    chosen = {**form, "model": "qwen2.5-0.5b", "tokens": "10", "bug": "heads-split-by-view"}
    assert post(classroom, "/worksheets", {**chosen, "title": "Mine"}).status_code == 303
    [material] = classroom.store.materials.readable_by(classroom.teacher)
    assert (material.content["bug"], material.content["title"]) == ("heads-split-by-view", "Mine")
    assert not Page(classroom.get("/worksheets/new?topic=costs")).find("select", name="bug")
    refused = post(classroom, "/worksheets", {**chosen, "tokens": "64"})
    assert refused.status_code == 422
    assert "64" in Page(refused.text).text("p", class_="problem")


def test_a_stored_worksheet_with_settings_that_are_gone_is_used_and_edited_without_them(classroom: Classroom) -> None:
    settings = {**classroom.school.library.worksheet("llama-7b").settings, "title": "Old"}
    material = stored(classroom, {**settings, "tolerance": 0.05, "show_hints": False, "notation": "framework"})
    assert "Old" in Page(classroom.get(f"/worksheets/{material.id}")).text("h1")
    form = SentForm(classroom.get(f"/worksheets/{material.id}/edit")).values
    assert post(classroom, f"/worksheets/{material.id}", form).status_code == 303
    kept = classroom.store.materials.find(material.id)
    assert kept
    assert kept.content == {name: value for name, value in settings.items() if name != "notation"}


@pytest.mark.parametrize("seed", range(6))
def test_a_stored_worksheet_is_saved_as_it_was(classroom: Classroom, seed: int) -> None:
    library = classroom.school.library
    worksheet = read_settings("own-1", random_settings(library, seed), library.models, library.wording)
    material = stored(classroom, worksheet.settings)
    page = classroom.get(f"/worksheets/{material.id}/edit")
    assert "<script>alert" not in page
    assert not re.search(r'href="javascript:|<img[^>]+src="http', page)
    form = SentForm(page).values
    assert post(classroom, f"/worksheets/{material.id}", form).status_code == 303
    kept = classroom.store.materials.find(material.id)
    assert kept
    cleaned = json.loads(json.dumps(kept.content).replace("\\u200f", ""))
    assert cleaned == json.loads(json.dumps(worksheet.settings).replace("\\u200f", ""))


@pytest.mark.parametrize(
    "field",
    [
        *("title", "tokens", "introduction", "footnote", "hint.queries", "points.queries"),
        *("question", "question_answer"),
    ],
)
def test_a_megabyte_is_refused_beside_its_field(classroom: Classroom, field: str) -> None:
    form = new_form(
        classroom, **{"question_key": "", "question": "Why?", "question_answer": "", field: "x" * 1_000_000}
    )
    answer = post(classroom, "/worksheets", form)
    assert answer.status_code == 422
    page = Page(answer.text)
    [(attributes, _)] = page.find("input", aria_invalid="true") or page.find("textarea", aria_invalid="true")
    assert attributes["name"] == field
    assert page.text("p", id="problem")
    assert classroom.store.materials.readable_by(classroom.teacher) == ()


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "#let x = 1; *bold*", "\u202eevil\u2066", "a\x00b", "{{ 7 * 7 }}"])
def test_hostile_texts_are_harmless_in_every_field(classroom: Classroom, text: str) -> None:
    own = {f"misconception_{name}": text for name in ("key", "name", "boxes", "question", "explanation")}
    texts = dict.fromkeys(
        ("title", "introduction", "footnote", "hint.keys", "question", "tokens",
         "model", "topic", "notation", "rows_of", "row", "models", "imported", "view", "arrange"),
        text,
    )  # fmt: skip
    form = new_form(classroom, question_key="", question_answer="", misconception_key="")
    for changes in (texts, own, {name: texts[name] for name in ("title", "introduction", "footnote", "question")}):
        answer = post(classroom, PREVIEW, {**form, **changes})
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "\u202e" not in answer.text


def test_what_is_ambiguous_is_saved_once_it_was_shown(classroom: Classroom) -> None:
    first = post(classroom, "/worksheets", new_form(classroom, tokens="128"))
    assert first.status_code == 422
    page = Page(first.text)
    [proposal] = [button for button, _ in page.find("button", name="arrange") if button["value"] == "set tokens 130"]
    mended = post(classroom, proposal["formaction"], {**SentForm(first.text).values, "arrange": proposal["value"]})
    assert SentForm(mended.text).values["tokens"] == ["130"]
    assert post(classroom, "/worksheets", SentForm(first.text).values).status_code == 303


def test_a_save_against_an_older_version_keeps_both(classroom: Classroom) -> None:
    material = stored(classroom)
    address = f"/worksheets/{material.id}"
    mine = {**SentForm(classroom.get(f"{address}/edit")).values, "tokens": "70", "introduction": "Mine"}
    theirs = {**material.content, "title": "Theirs"}
    classroom.store.materials.save(material, 1, theirs, classroom.teacher)
    refused = post(classroom, address, mine)
    assert refused.status_code == 409
    page = Page(refused.text)
    rows = {text for _, text in page.find("th", scope="row")}
    assert {"Title", "Tokens", "Introduction"} <= rows
    assert "Open questions" not in rows
    assert SentForm(refused.text).values["introduction"] == ["Mine"]
    newest = classroom.store.materials.find(material.id)
    assert newest
    assert newest.content == theirs
    assert post(classroom, address, SentForm(refused.text).values).status_code == 409
    [(button, _)] = page.find("button", name="overwrite")
    overwritten = post(classroom, address, {**SentForm(refused.text).values, "overwrite": button["value"]})
    assert overwritten.status_code == 303
    newest = classroom.store.materials.find(material.id)
    assert newest
    assert (newest.version, newest.content["introduction"]) == (3, "Mine")


def test_what_was_typed_into_a_removed_worksheet_is_not_lost(classroom: Classroom) -> None:
    material, school = stored(classroom), classroom.school
    address = f"/worksheets/{material.id}"
    opened = SentForm(classroom.get(f"{address}/edit")).values
    lou = school.browser(teacher=school.teacher(course=classroom.course))
    assert lou.post(f"{address}/remove").status_code == 303
    for typed in (opened, {**opened, "introduction": ["Long work"]}):
        refused = post(classroom, address, typed)
        assert refused.status_code == 409
        assert "was removed" in Page(refused.text).text("h2", id="conflict-title")
        assert SentForm(refused.text).values["introduction"] == typed["introduction"]
    assert school.browser(teacher=school.teacher()).post(address, data=opened).status_code == 404
    assert lou.post(f"{address}/put-back").status_code == 303
    assert post(classroom, address, SentForm(refused.text).values).status_code == 303
    newest = classroom.store.materials.find(material.id)
    assert newest
    assert (newest.version, newest.content["introduction"]) == (2, "Long work")


def boxes(text: str) -> dict[str, str]:
    """The texts in the boxes of a preview."""
    return {attrs["data-blank"]: attrs["value"] for attrs, _ in Page(text).find("input") if "data-blank" in attrs}


@pytest.mark.parametrize("answers", ["numbers", "letters"])
def test_the_preview_shows_a_wrong_and_a_right_attempt(classroom: Classroom, answers: str) -> None:
    own = {
        "misconception_key": "", "misconception_name": "Side by side", "misconception_boxes": "queries.columns = H*d",
        "misconception_question": "How many heads?", "misconception_explanation": "One head has d_h columns.",
        "question_key": "why-k", "question_answer": "It has $N$ rows.", "question": "Why does K have this shape?",
    }  # fmt: skip
    form = new_form(classroom, answers=answers, **own)
    right = post(classroom, PREVIEW, {**form, "view": "right"})
    assert set(Page(right.text).marks().values()) == {"right"}
    assert Page(right.text).text("label", for_="question.why-k") == own["question"]
    wrong = post(classroom, PREVIEW, {**form, "view": "wrong"})
    assert "Side by side" in Page(wrong.text).text("p", class_="held")
    changed = {box for box, text in boxes(wrong.text).items() if boxes(right.text)[box] != text}
    assert changed
    assert {box.partition(".")[0] for box in changed} == {"queries"}
    assert not set(SentForm(wrong.text).values) & {"queries.rows", "queries.columns"}


def test_the_preview_has_the_page_on_paper(classroom: Classroom) -> None:
    page = post(classroom, PREVIEW, {**new_form(classroom), "view": "paper"}).text
    [(picture, _)] = Page(page).find("img", class_="paper")
    assert classroom.instructor.get(picture["src"]).headers["content-type"] == "image/svg+xml"
    assert classroom.instructor.get(f"{PREVIEW}/page.svg?sheet=eJwDAAAAAAE").status_code == 404


def paper_picture(classroom: Classroom, browser: Browser, **changes: Any) -> str:
    """The editor's page on paper, as SVG, of a new worksheet with these fields, in a teacher's browser."""
    page = browser.post(PREVIEW, data={**new_form(classroom), "view": "paper", **changes}).text
    [(picture, _)] = Page(page).find("img", class_="paper")
    shown = browser.get(picture["src"])
    assert shown.headers["cache-control"] == "no-store"
    return shown.text


def test_the_page_on_paper_is_of_the_worksheet_that_was_typed(classroom: Classroom) -> None:
    eve = classroom.school.browser(teacher=classroom.school.teacher())
    ada = paper_picture(classroom, classroom.instructor, title="Ada’s exam", introduction="The secret question")
    changed = paper_picture(classroom, classroom.instructor, title="Ada’s exam", introduction="The other question")
    evas = paper_picture(classroom, eve, title="Eve’s sheet")
    assert len({ada, changed, evas}) == 3
    assert ada == paper_picture(classroom, eve, title="Ada’s exam", introduction="The secret question")


def test_nobody_sees_the_page_on_paper_of_another_by_the_address_of_handouts(classroom: Classroom) -> None:
    paper_picture(classroom, classroom.instructor, title="Ada’s exam")
    eve = classroom.school.browser(teacher=classroom.school.teacher())
    for browser in (classroom.school.browser(), eve, classroom.instructor):
        for address in ("/handout", "/handout/pages/1.svg", "/handout.pdf"):
            answer = browser.get(f"{address}?worksheet={PREVIEW_KEY}&sheets=1&layout=full")
            assert answer.status_code == 404, address
            assert "Ada’s exam" not in answer.text


def test_a_model_is_imported_and_chosen(classroom: Classroom) -> None:
    config = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2,
              "intermediate_size": 1024, "vocab_size": 1000}  # fmt: skip
    form = new_form(classroom, arrange="import-text", import_text="{", import_name="Small")
    refused = post(classroom, PREVIEW, form)
    assert Page(refused.text).text("p", id="problem")
    assert SentForm(refused.text).values["import_text"] == ["{"]
    imported = post(classroom, PREVIEW, {**form, "import_text": json.dumps(config)})
    [key] = SentForm(imported.text).values["model"]
    assert SentForm(imported.text).values["imported"] == [key]
    assert any("Small" in heading for _, heading in Page(imported.text).find("h1"))
    assert post(classroom, "/worksheets", SentForm(imported.text).values).status_code == 303


def test_the_tokens_of_a_sentence_are_counted(classroom: Classroom) -> None:
    sheet = classroom.school.library.worksheet("it-attends-smollm2")
    form = {**SentForm(classroom.get(f"/worksheets/{stored(classroom, sheet.settings).id}/edit")).values}

    def preview(**changes: str) -> Page:
        return Page(post(classroom, PREVIEW, {**form, **changes}).text)

    said = preview().text("p", id="about-sentence")
    assert re.findall(r"\d+", said) == [str(sheet.tokens)]
    assert preview(sentence="The cat").text("p", id="about-sentence") != said
    unknown = preview(checkpoint="another").text("p", id="about-sentence")
    assert unknown
    assert not re.search(r"\d", unknown)
    assert preview(sentence="", checkpoint="", layer="", head="").text("p", id="about-sentence") == ""
    wrong = {**form, "tokens": "21"}
    refused = post(classroom, "/worksheets", wrong)
    assert refused.status_code == 422
    [action] = settings_proposed(refused.text)
    mended = post(classroom, PREVIEW, {**wrong, "arrange": action}).text
    [(tokens, _)] = Page(mended).find("input", name="tokens")
    assert tokens["value"] == str(sheet.tokens)
    elsewhere = post(classroom, PREVIEW, {**wrong, "checkpoint": "another"}).text
    assert settings_proposed(mended) == settings_proposed(elsewhere) == []


def settings_proposed(page: str) -> list[str]:
    """What the buttons beside the checker's remarks would set."""
    buttons = Page(page).find("button", name="arrange")
    return [attributes["value"] for attributes, _ in buttons if attributes["value"].startswith("set ")]
