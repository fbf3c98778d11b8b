"""The form of an activity: what it makes and changes, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI

from app.classes.activity_form import field_labels, read_activity_form
from app.exchange.imported_models import import_config
from app.store import Activity
from app.web.activity_form import MAX_IMPORTED
from tests.helpers.activity_form import FORM
from tests.helpers.class_sheet import HALF, press
from tests.helpers.clock import Clock
from tests.helpers.html_page import Page
from tests.helpers.model_imports import SMALL_LLAMA
from tests.helpers.school import Classroom
from tests.helpers.sent_form import SentForm
from tests.helpers.versioned_form import change_activity, save


def test_another_teachers_exit_ticket_is_refused(classroom: Classroom) -> None:
    eve = classroom.school.teacher()
    hers = classroom.store.materials.add("ticket", eve, eve, classroom.school.services.tickets["classic"].settings)
    answer = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data={**FORM, "ticket": hers.key})
    assert answer.status_code == 422
    assert Page(answer.text).find("p", id="problem")
    assert classroom.store.activities.of_course(classroom.course) == ()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": " "}, "Enter a title"),
        ({"worksheet": [], "ticket": ""}, "at least one worksheet or an exit ticket"),
        ({"worksheet": ["nonsense"]}, "There is no worksheet “nonsense”"),
        ({"worksheet": ["llama-7b", "llama-7b"]}, "once"),
        ({"max_attempts": "0"}, "a whole number of attempts from 1 to 99"),
        ({"max_attempts": "many"}, "a whole number of attempts"),
        ({"marking": "half"}, "“marking”"),
        ({"feedback": "never"}, "“feedback”"),
        ({"day": "tomorrow"}, "“tomorrow” is not a date"),
        ({"opens": "soon"}, "“soon” is not a date and time"),
        ({"opens": "2026-03-31T10:00", "closes": "2026-03-31T10:00"}, "must be after"),
        ({"closes": "0001-01-01T00:00"}, "years 1900 to"),
    ],
)
def test_a_form_that_cannot_be_used_comes_back(classroom: Classroom, change: dict[str, Any], sentence: str) -> None:
    answer = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data={**FORM, **change})
    assert answer.status_code == 422
    page = Page(answer.text)
    assert sentence in page.text("p", class_="problem")
    assert page.find("input", name="day")[0][0]["value"] == change.get("day", "2026-03-31")
    assert classroom.store.activities.of_course(classroom.course) == ()


def test_times_are_those_of_the_course(classroom: Classroom) -> None:
    form = {**FORM, "opens": "2026-03-31T10:00", "closes": "2026-03-31T11:30"}
    made = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form)
    [activity] = classroom.store.activities.of_course(classroom.course)
    assert activity.plan.opens_at == datetime(2026, 3, 31, 8, 0, tzinfo=UTC)
    page = Page(classroom.instructor.get(f"{made.headers['location']}/edit").text)
    assert page.find("input", name="opens")[0][0]["value"] == "2026-03-31T10:00"


def opened_form(classroom: Classroom, activity: Activity) -> dict[str, Any]:
    """The form of an activity as a browser that opens it now would send it back."""
    fields = SentForm(classroom.get(f"/activities/{activity.id}/edit")).values
    return {name: value for name, value in fields.items() if name not in ("search", "searched", "import")}


def test_saving_a_form_leaves_a_closed_activity_closed(classroom: Classroom, clock: Clock) -> None:
    activity = classroom.open(feedback="after_close")
    classroom.instructor.post(f"/activities/{activity.id}/close", data={"back": "progress"})
    form = opened_form(classroom, activity)
    clock.pass_minutes(1)
    closed = classroom.school.reload(activity)
    classroom.school.services.auto_submitter.settle(closed)
    saved = classroom.instructor.post(f"/activities/{activity.id}", data={**form, "title": "Week 4"})
    assert saved.status_code == 303
    after = classroom.school.reload(activity)
    assert (after.phase(clock.now), after.plan) == ("closed", replace(closed.plan, title="Week 4"))
    assert after.answers_shown_at is None


@pytest.mark.parametrize("change", [{"closes": ["2099-01-01T10:00"]}, {"closes": [""]}, {"late_minutes": ["60"]}])
def test_times_that_open_a_closed_activity_again_are_asked_about(
    classroom: Classroom, clock: Clock, change: dict[str, list[str]]
) -> None:
    activity = classroom.open()
    classroom.instructor.post(f"/activities/{activity.id}/close")
    clock.pass_minutes(1)
    classroom.school.services.auto_submitter.settle(classroom.school.reload(activity))
    closed = classroom.school.reload(activity)
    form = {**opened_form(classroom, activity), "title": ["Week 4"], **change}
    warning = Page(classroom.get(f"/activities/{activity.id}")).text("details", id="reopen")
    for _ in range(2):
        refused = classroom.instructor.post(f"/activities/{activity.id}", data=form)
        problem = Page(refused.text).text("p", class_="problem")
        assert (refused.status_code, problem.partition("again. ")[2] in warning) == (422, True)
        assert "late" in problem
        assert classroom.school.reload(activity) == closed
        form = {**SentForm(refused.text).values}
        assert {name: form[name] for name in ("title", *change)} == {"title": ["Week 4"], **change}
    assert Page(refused.text).find("input", name="reopens")
    saved = classroom.instructor.post(f"/activities/{activity.id}", data={**form, "reopens": "yes"})
    after = classroom.school.reload(activity)
    assert (saved.status_code, after.plan.title, after.is_writable(clock.now)) == (303, "Week 4", True)
    assert after.answers_shown_at == clock.now


def test_a_form_from_before_does_not_open_what_is_just_closing(classroom: Classroom, clock: Clock) -> None:
    activity = classroom.open()
    form = {**opened_form(classroom, activity), "closes": ["2099-01-01T10:00"]}
    classroom.instructor.post(f"/activities/{activity.id}/close")
    clock.pass_seconds(10)
    address = f"/activities/{activity.id}"
    form = SentForm(classroom.instructor.post(address, data={**form, "arrange": "add"}).text).values
    refused = classroom.instructor.post(address, data=form)
    assert (refused.status_code, classroom.school.reload(activity).phase(clock.now)) == (409, "closing")
    assert classroom.instructor.post(address, data=opened_form(classroom, activity) | {"closes": ""}).status_code == 303
    assert classroom.school.reload(activity).phase(clock.now) == "open"


def test_the_second_of_two_teachers_sees_both_versions_and_chooses(app_on_each_database: FastAPI) -> None:
    classroom = Classroom(app_on_each_database, sheets=None)
    activity = classroom.school.activity(classroom.course)
    address, second = f"/activities/{activity.id}", classroom.school.teacher("bo@example.org", classroom.course)
    theirs = opened_form(classroom, activity)
    mine = {**theirs, "title": "Week 4", "worksheet": ["llama-7b"], "exam": "yes"}
    assert classroom.instructor.post(address, data={**theirs, "closes": "2099-01-01T10:00"}).status_code == 303
    stored = classroom.school.reload(activity)
    with classroom.school.browser(teacher=second) as browser:
        for _ in range(2):
            refused = browser.post(address, data=mine)
            page = Page(refused.text)
            assert (refused.status_code, classroom.school.reload(activity)) == (409, stored)
            differing = [text for _, text in page.find("th", scope="row") if text in field_labels().values()]
            assert differing == ["Title", "Worksheets", "Exam conditions", "Closes"]
            assert {"Week 3", "Week 4", "2099-01-01T10:00"} <= {text for _, text in page.find("td")}
            mine = SentForm(refused.text).values
        assert (mine["title"], mine["worksheet"], mine["exam"]) == (["Week 4"], ["llama-7b"], ["yes"])
        [(button, _)] = page.find("button", name="overwrite")
        assert browser.post(address, data={**mine, "overwrite": button["value"]}).status_code == 303
    after = classroom.school.reload(activity)
    assert (after.plan.title, after.policies.exam, after.plan.closes_at) == ("Week 4", True, None)
    assert [item.key for item in after.content.items] == ["llama-7b"]


def test_a_version_that_was_stored_meanwhile_is_not_overwritten_either(classroom: Classroom) -> None:
    activity = classroom.open()
    address, mine = f"/activities/{activity.id}", {**opened_form(classroom, activity), "title": "Mine"}
    for title in ("First", "Second"):
        change_activity(classroom.instructor, address, {**FORM, "title": title})
        refused = classroom.instructor.post(address, data=mine)
        assert refused.status_code == 409
        [(button, _)] = Page(refused.text).find("button", name="overwrite")
        if title == "First":
            mine = {**mine, "overwrite": button["value"]}
    assert classroom.school.reload(activity).plan.title == "Second"


def test_a_form_is_refused_if_the_activity_is_closed_while_it_is_saved(
    app_on_each_database: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    classroom = Classroom(app_on_each_database)
    form = opened_form(classroom, classroom.activity)

    def close_first(*arguments: Any) -> Any:
        classroom.instructor.post(f"{classroom.path}/close")
        return read_activity_form(*arguments)

    monkeypatch.setattr("app.web.activity_form.read_activity_form", close_first)
    saved = classroom.instructor.post(classroom.path, data={**form, "title": "Week 4"})
    after = classroom.school.reload(classroom.activity)
    assert (saved.status_code, after.plan.title) == (409, classroom.activity.plan.title)
    assert after.plan.closes_at


def test_a_time_that_clocks_show_twice_stays_the_one_it_was(classroom: Classroom) -> None:
    activity = classroom.open()
    closes = datetime(2099, 10, 25, 1, 30, 17, tzinfo=UTC)
    classroom.store.activities.change(activity, replace(activity.plan, closes_at=closes))
    form = opened_form(classroom, activity)
    assert form["closes"] == ["2099-10-25T02:30"]
    assert classroom.instructor.post(f"/activities/{activity.id}", data={**form, "title": "Late"}).status_code == 303
    assert classroom.school.reload(activity).plan == replace(activity.plan, title="Late", closes_at=closes)


@pytest.mark.parametrize(
    ("time", "zone"), [("9998-12-31T23:59", "Pacific/Kiritimati"), ("1900-01-01T00:00", "Pacific/Niue")]
)
def test_pages_show_the_furthest_times(classroom: Classroom, time: str, zone: str) -> None:
    course = f"/courses/{classroom.course.id}"
    form = {**FORM, "closes": time, "late_minutes": "10080"}
    address = classroom.instructor.post(f"{course}/activities", data=form).headers["location"]
    classroom.instructor.post(f"{address}/open")
    assert change_activity(classroom.instructor, address, form).status_code == 303
    assert save(classroom.instructor, course, {"title": "T", "zone": zone}).status_code == 303
    assert {classroom.instructor.get(address + below).status_code for below in ("", "/edit", "/projector")} == {200}
    assert (
        classroom.instructor.post(f"{course}/activities", data={**form, "closes": "9999-12-31T23:59"}).status_code
        == 422
    )


def test_a_later_edit_makes_a_new_revision(classroom: Classroom) -> None:
    activity = classroom.open()
    _, kim = classroom.join()
    press(kim, activity, "check", HALF)
    change_activity(classroom.instructor, f"/activities/{activity.id}", {**FORM, "title": "Week 4"})
    assert classroom.school.reload(activity).revision == 1
    change_activity(classroom.instructor, f"/activities/{activity.id}", {**FORM, "worksheet": ["qwen2.5-0.5b"]})
    assert classroom.school.reload(activity).revision == 2
    assert "Qwen2.5" in Page(kim.get(f"/class/{activity.id}/1").text).text("h1")
    [kept] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (kept.revision, kept.answers["queries.columns"]) == (1, "4096")
    change_activity(classroom.instructor, f"/activities/{activity.id}", FORM)
    assert Page(kim.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"


def chosen_order(text: str) -> list[str]:
    """The worksheets of the activity on its form, in order."""
    return [attrs["value"] for attrs, _ in Page(text).find("input", name="worksheet") if "checked" in attrs]


def test_worksheets_are_put_in_order_without_saving(classroom: Classroom) -> None:
    address = f"/courses/{classroom.course.id}/activities"
    sheets = {**FORM, "title": "", "worksheet": ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"], "tokens.decode-gpt2": "12"}
    for button, order in (
        ("add", ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"]),
        ("up decode-gpt2", ["llama-7b", "decode-gpt2", "qwen2.5-0.5b"]),
        ("down llama-7b", ["qwen2.5-0.5b", "llama-7b", "decode-gpt2"]),
        ("up llama-7b", ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"]),
        ("up nonsense", ["llama-7b", "qwen2.5-0.5b", "decode-gpt2"]),
    ):
        answer = classroom.instructor.post(address, data={**sheets, "arrange": button})
        assert (answer.status_code, chosen_order(answer.text)) == (200, order), button
        assert Page(answer.text).find("input", name="tokens.decode-gpt2")[0][0]["value"] == "12"
    assert classroom.store.activities.of_course(classroom.course) == ()


def test_students_get_the_model_and_the_length_that_were_chosen(classroom: Classroom) -> None:
    config = {"model_type": "llama", "hidden_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2,
              "intermediate_size": 200, "vocab_size": 500, "max_position_embeddings": 512}  # fmt: skip
    imported = import_config(classroom.store, config, "pasted", "Our tiny model")
    address = f"/courses/{classroom.course.id}/activities"
    form = {**FORM, "arrange": "import", "import": f"http://testserver/models/{imported.key}/"}
    offered = Page(classroom.instructor.post(address, data=form).text)
    assert "Our tiny model" in offered.text("select", name="model.llama-7b")
    classroom.instructor.post(address, data={**FORM, "model.llama-7b": imported.key, "tokens.llama-7b": "7"})
    [activity] = classroom.store.activities.of_course(classroom.course)
    classroom.instructor.post(f"/activities/{activity.id}/open")
    _, kim = classroom.join()
    page = Page(kim.get(f"/class/{activity.id}/1").text)
    assert "Our tiny model" in page.text("h1")
    answers = {"queries.rows": "7", "queries.columns": "24", "output.rows": "7", "output.columns": "96"}
    press(kim, activity, "check", answers)
    marks = Page(kim.get(f"/class/{activity.id}/1").text).marks()
    assert {marks[box] for box in answers} == {"right"}
    again = Page(classroom.instructor.get(f"/activities/{activity.id}/edit").text)
    assert again.find("input", name="tokens.llama-7b")[0][0]["value"] == "7"
    assert "Our tiny model" in classroom.instructor.get(f"/activities/{activity.id}").text


@pytest.mark.parametrize("text", ["nonsense", "/models/cfg-00000000000000000000"])
def test_an_imported_model_that_is_not_there_is_said(classroom: Classroom, text: str) -> None:
    form, address = {**FORM, "import": text}, f"/courses/{classroom.course.id}/activities"
    answer = Page(classroom.instructor.post(address, data={**form, "arrange": "import"}).text)
    assert "no imported model" in answer.text("p", class_="problem")
    refused = Page(classroom.instructor.post(address, data={**form, "title": ""}).text)
    assert [page.find("input", id="import")[0][0]["value"] for page in (answer, refused)] == [text, text]


def test_half_a_surrogate_pair_is_no_worksheet(classroom: Classroom) -> None:
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    fields = {**FORM, "worksheet": "+2AA-"}
    body = "".join(part.format(name, text) for name, text in fields.items()) + "--b--\r\n"
    headers = {"content-type": "multipart/form-data; boundary=b; charset=utf-7"}
    address = f"/courses/{classroom.course.id}/activities"
    refused = classroom.instructor.post(address, content=body.encode(), headers=headers)
    assert refused.status_code == 422
    assert "“?”" in Page(refused.text).text("p", id="problem")


def test_a_form_offers_so_many_imported_models(classroom: Classroom) -> None:
    key = classroom.store.keep_model("One more", SMALL_LLAMA, "pasted").key
    others = [f"cfg-{number:020}" for number in range(MAX_IMPORTED)]
    form = {**FORM, "arrange": "import", "import": key, "imported": others}
    answer = Page(classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form).text)
    assert "room" in answer.text("p", class_="problem")


def worksheet_material(classroom: Classroom, owner: Any, title: str) -> Any:
    """A worksheet of a course or a teacher, on one head of LLaMA 7B."""
    content = {"title": title, "topic": "single-head", "model": "llama-7b", "tokens": 40, "rows": ["queries"]}
    return classroom.store.materials.add("worksheet", owner, classroom.teacher, content)


def offered(page: Page) -> dict[str, list[str]]:
    """The worksheets that can be added and are not hidden by the search, under their headings."""
    groups, heading = dict[str, list[str]](), ""
    for tag, attributes, texts in page.elements:
        text = " ".join("".join(texts).split())
        if tag == "summary":
            heading = text
        elif tag == "label" and "data-words" in attributes and "hidden" not in attributes and heading:
            groups.setdefault(heading, []).append(text.removesuffix(" preview"))
        elif tag == "legend":
            heading = ""
    return groups


def test_own_worksheets_stand_beside_the_librarys(classroom: Classroom) -> None:
    of_course = worksheet_material(classroom, classroom.course, "A head of ours")
    mine = worksheet_material(classroom, classroom.teacher, "A head of mine")
    worksheet_material(classroom, classroom.school.teacher(), "Another teacher’s")
    address = f"/courses/{classroom.course.id}/activities"
    groups = offered(Page(classroom.get(f"{address}/new")))
    assert groups["This course’s worksheets"] == ["A head of ours"]
    assert groups["My worksheets"] == ["A head of mine"]
    assert not any("Another teacher’s" in titles for titles in groups.values())
    classroom.instructor.post(address, data={**FORM, "worksheet": [of_course.key, "llama-7b", mine.key]})
    [activity] = classroom.store.activities.of_course(classroom.course)
    assert [item.key for item in activity.content.items] == [of_course.key, "llama-7b", mine.key]
    classroom.instructor.post(f"/activities/{activity.id}/open")
    _, kim = classroom.join()
    assert "40 tokens" in kim.get(f"/class/{activity.id}/1").text


def test_a_newer_version_is_used_where_the_form_asks_for_it(classroom: Classroom) -> None:
    first, second = (worksheet_material(classroom, classroom.course, title) for title in ("First", "Second"))
    sheets = {**FORM, "worksheet": [first.key, second.key]}
    classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=sheets)
    [activity] = classroom.store.activities.of_course(classroom.course)
    classroom.instructor.post(f"/activities/{activity.id}/open")
    for material in (first, second):
        classroom.store.materials.save(material, 1, {**material.content, "tokens": 41}, classroom.teacher)
    form = Page(classroom.get(f"/activities/{activity.id}/edit"))
    assert [attributes["value"] for attributes, _ in form.find("input", name="corrected")] == [first.key, second.key]
    change_activity(classroom.instructor, f"/activities/{activity.id}", sheets)
    assert classroom.school.reload(activity).revision == 1
    change_activity(classroom.instructor, f"/activities/{activity.id}", {**sheets, "corrected": second.key})
    tokens = [item.worksheet["tokens"] for item in classroom.school.reload(activity).content.items]
    assert tokens == [40, 41]


def test_the_lists_are_narrowed_by_a_search(classroom: Classroom) -> None:
    address = f"/courses/{classroom.course.id}/activities"
    name = "One bidirectional head of BERT base"
    for pressed in ({"arrange": "search"}, {"by": "enter", "searched": ""}):
        page = Page(classroom.instructor.post(address, data={**FORM, "search": "BERT bidirectional", **pressed}).text)
        assert [*offered(page).values()] == [[name]]
        assert page.find("input", name="title")[0][0]["value"] == "Week 3"
    none = Page(classroom.instructor.post(address, data={**FORM, "search": "nonsense", "arrange": "search"}).text)
    assert offered(none) == {}
    assert none.text("p", class_="none")
    assert classroom.store.activities.of_course(classroom.course) == ()
    saved = classroom.instructor.post(address, data={**FORM, "search": "BERT", "searched": "BERT", "by": "enter"})
    assert saved.status_code == 303


def test_a_worksheet_of_an_activity_can_be_in_symbols(classroom: Classroom) -> None:
    address = f"/courses/{classroom.course.id}/activities"
    form = {**FORM, "worksheet": "llama-7b", "answers.llama-7b": "symbols", "tokens.llama-7b": "7"}
    page = Page(classroom.instructor.post(address, data={**form, "arrange": "add"}).text)
    radios = page.find("input", type="radio", name="answers.llama-7b~symbols")
    assert [attributes["value"] for attributes, _ in radios if "checked" in attributes] == ["symbols"]
    assert page.find("input", name="tokens.llama-7b~symbols")[0][0]["value"] == "7"
    assert classroom.instructor.post(address, data=form).status_code == 303
    (activity,) = classroom.store.activities.of_course(classroom.course)
    (item,) = activity.content.items
    assert (item.key, item.worksheet["answers"], item.chosen["tokens"]) == ("llama-7b~symbols", "letters", 7)
    refused = {**FORM, "worksheet": "first-steps", "answers.first-steps": "symbols"}
    assert classroom.instructor.post(address, data=refused).status_code == 422


def test_a_length_over_the_context_is_remarked(classroom: Classroom) -> None:
    form = {**FORM, "tokens.llama-7b": "3000", "arrange": "add"}
    page = Page(classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form).text)
    assert "2048" in " ".join(text for _, text in page.find("p", class_="remark"))


@pytest.mark.parametrize(("sheet", "warned"), [("bug-one-head", True), ("llama-7b", False)])
def test_a_repair_that_tells_the_line_is_pointed_out(classroom: Classroom, sheet: str, warned: bool) -> None:
    form = {**FORM, "worksheet": sheet, "arrange": "add"}
    page = Page(classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form).text)
    assert bool(page.find("p", class_="about-repair")) is warned


def test_a_newer_exit_ticket_is_used_where_the_form_asks_for_it(classroom: Classroom) -> None:
    content = {"title": "Go", "instruction": "Pick.", "questions": [{"key": "why", "text": "Why?"}]}
    own = classroom.store.materials.add("ticket", classroom.course, classroom.teacher, content)
    classroom.store.materials.add("ticket", classroom.teacher, classroom.teacher, {"title": "Broken"})
    form = {**FORM, "ticket": own.key}
    classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form)
    [activity] = classroom.store.activities.of_course(classroom.course)
    classroom.instructor.post(f"/activities/{activity.id}/open")
    page = Page(classroom.get(f"/activities/{activity.id}/edit"))
    assert not page.find("input", name="new_ticket")
    assert "“Broken”" in " ".join(text for _, text in page.find("p", class_="remark"))
    classroom.store.materials.save(own, 1, {**content, "title": "Before you go"}, classroom.teacher)
    assert Page(classroom.get(f"/activities/{activity.id}/edit")).find("input", name="new_ticket")
    for more, title in (({}, "Go"), ({"new_ticket": "yes"}, "Before you go")):
        change_activity(classroom.instructor, f"/activities/{activity.id}", {**form, **more})
        ticket = classroom.school.reload(activity).content.ticket
        assert ticket
        assert ticket.title == title


def test_looking_at_a_worksheet_leaves_the_form(classroom: Classroom) -> None:
    activity = classroom.open()
    for address in (f"/courses/{classroom.course.id}/activities/new", f"/activities/{activity.id}/edit"):
        html = classroom.get(address)
        links = Page(html[html.index('<form id="activity-form"') : html.rindex("</form>")]).find("a")
        assert links
        assert {link.get("target") for link, _ in links} == {"_blank"}


def test_a_worksheet_leads_from_its_page_into_a_new_activity(classroom: Classroom) -> None:
    settings = classroom.school.library.worksheets["llama-7b"].settings
    for owner in (classroom.course, classroom.teacher):
        own = classroom.store.materials.add("worksheet", owner, classroom.teacher, settings)
        address = f"/courses/{classroom.course.id}/activities/new?worksheet={own.key}"
        assert f'href="{address}"' in classroom.get(f"/worksheets/{own.id}")
        assert SentForm(classroom.get(address)).values["worksheet"] == [own.key]
    assert "worksheet" not in SentForm(classroom.get(address.replace(own.key, "nonsense"))).values
