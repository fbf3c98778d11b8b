"""What came of an activity: tables, exit tickets, the page for the next meeting, and marks that were put right."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.classes.student_sheet import freeze, student_sheet
from app.grading.grade import grade
from app.main import create_app
from app.settings import PROJECT, Settings
from app.store import Activity, Course, Graded, Learner, Plan, Policies, Spotlight, Store, Student, Teacher, Try
from app.store.classwork import Draft
from app.store.tables import log, old_marks, regrades, teachers
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.classes import World
from tests.helpers.html_page import Page
from tests.helpers.stored_class import CONTENT, HALF, LLAMA, seated, spot, teacher

NUMBERS = itertools.count(1)
TYPED = itertools.count(1)
FOLLOWING = {**KEY, "input.rows": "99", "queries.rows": "99"}
NO_PROJECTION = {**KEY, "output.columns": "128"}


class Class:
    """A course with an open activity of one sheet, and whoever teaches it."""

    def __init__(self, app: FastAPI, policies: Policies | None = None, sheets: tuple[str, ...] = ("llama-7b",)) -> None:
        self.world = World(app)
        self.ada: Teacher = self.world.teacher(f"ada@{next(NUMBERS)}.example")
        self.course: Course = self.world.course("Transformers", self.ada)
        self.activity: Activity = self.world.activity(self.course, policies, sheets)
        self.path = f"/activities/{self.activity.id}"
        self.learners = dict[int, Learner]()

    def mistake(self) -> None:
        """The sheet stands as if it had been frozen with tokens as columns by mistake, and with a row too many."""
        services = self.world.services
        content = freeze(services.library, ("llama-7b",), None)
        [item] = content.items
        asked = [*item.worksheet["rows"], "context"]
        mistaken = replace(item, worksheet={**item.worksheet, "tokens_are": "columns", "rows": asked})
        services.store.activities.revise(self.activity, replace(content, items=(mistaken,)))

    def student(self, name: str) -> Student:
        student, learner = self.world.student(self.course, name)
        self.learners[student.id] = learner
        self.world.services.store.classwork.arrive(self.activity.id, student.id)
        return student

    def tries(self, student: Student, answers: Mapping[str, str], number: int = 0) -> Try:
        """A try as the student's page would keep it, handed in."""
        activity = self.world.again(self.activity)
        services = self.world.services
        sheet = student_sheet(services.library, services.store, activity, student, number + 1)
        report = grade(sheet.variant, answers)
        held = (report.diagnosis.key,) if report.diagnosis else ()
        marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
        graded = Graded(marks, held, report.score, report.out_of)
        draft = Draft(answers, next(TYPED), sheet.sizes)
        record = self.world.services.store.classwork.record
        return record(sheet.key, f"form-{draft.version}", draft, graded, handed_in=True)

    def share(self, follow_share: float) -> None:
        """The instructor changes what a box is worth that follows."""
        plan = self.activity.plan
        changed = replace(plan, policies=replace(plan.policies, follow_share=follow_share))
        self.world.services.store.activities.change(self.activity, changed)

    def page(self, path: str = "") -> Page:
        with self.world.browser(teacher=self.ada) as browser:
            response = browser.get(self.path + path)
        assert response.status_code == 200
        return Page(response.text)

    def seen_by(self, student: Student) -> tuple[Page, str]:
        """The first sheet as a student has it now, and what their own page says of it."""
        address = f"/class/{self.activity.id}/1"
        with self.world.browser(learner=self.learners[student.id]) as browser:
            sheet, mine = Page(browser.get(address).text), Page(browser.get("/mine").text)
        return sheet, next(text for _, text in mine.find("li") if text.startswith(sheet.text("h1")))

    def regrade(self, data: Mapping[str, str]) -> int:
        with self.world.browser(teacher=self.ada) as browser:
            return browser.post(f"{self.path}/regrade", data=data).status_code


def lines(page: Page) -> list[list[str]]:
    """The cells of every row of every table, as they are read."""
    found = list[list[str]]()
    for tag, _, texts in page.elements:
        if tag == "tr":
            found.append([])
        elif tag in ("th", "td") and found:
            found[-1].append(" ".join("".join(texts).split()))
    return found


def beside(sheet: Page) -> dict[str, str]:
    """The mark beside each box that has one."""
    marks = [attrs.get("data-mark", "") for attrs, _ in sheet.find("td", class_="box")]
    return {box: mark for box, mark in zip(sheet.boxes(), marks, strict=True) if mark}


def changes(page: Page) -> str:
    return page.find("input", name="changes")[0][0]["value"]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    made = create_app(Settings(data_dir=tmp_path_factory.mktemp("afterwards"), database_url=""))
    with TestClient(made):
        yield made


# Results


def test_the_table_shows_last_tries_and_the_rows_first_ones(app: FastAPI) -> None:
    """Kim put a misconception right, Lou kept one, Ned's rows follow, Mo did nothing: marks of last tries, shares of
    first.
    """
    room = Class(app)
    kim, lou, ned, _ = (room.student(name) for name in ("Kim", "Lou", "Ned", "Mo"))
    room.tries(ned, FOLLOWING)
    room.tries(kim, WIDE)
    room.tries(kim, KEY)
    room.tries(lou, WIDE)
    table = {line[0]: line[1:] for line in lines(room.page("/results"))}
    assert table["Kim"][:2] == ["14", "2"]
    assert [mark[0] for mark in table["Kim"][2:]] == ["✓"] * 7
    assert [mark[0] for mark in table["Lou"][2:]] == ["✓", "↺", "↺", "↺", "✓", "✓", "✓"]
    assert [mark[0] for mark in table["Ned"][2:]] == ["↺", "→", "✓", "✓", "✓", "✓", "✓"]
    assert table["Mo"] == [""] * 9
    assert table["Queries Q"][1:] == ["0 %", "1 of 3", "too few", "columns 4096 (d_model) × 2"]
    assert table["Input to this head X"][1:] == ["67 %", "2 of 3", "too few", "rows 99 × 1"]
    assert table["A head is as wide as the model"] == ["2", "1"]


def test_a_students_page_shows_every_try(app: FastAPI) -> None:
    """In their order, with what was typed and how it was marked; another student's are elsewhere."""
    room = Class(app)
    kim, lou = room.student("Kim"), room.student("Lou")
    room.tries(kim, WIDE)
    room.tries(kim, {**KEY, "keys.rows": "??"})
    room.tries(lou, {**KEY, "keys.rows": "77777"})
    page = room.page(f"/results/{kim.id}")
    heads, *rows = lines(page)
    assert [head.split("handed")[0].rpartition(" of ")[0].split()[-1] for head in heads[1:]] == ["11", "13"]
    table = {row[0]: row[1:] for row in rows}
    assert table["Keys"] == ["100 right × 4096 not right", "?? could not be read × 128 right"]
    assert table["Believed"] == ["A head is as wide as the model", "–"]
    assert "77777" not in str(rows)


def test_ten_students_are_enough_to_say_how_a_row_discriminates(app: FastAPI) -> None:
    """Five with all right and five with nothing but the input: every other row goes with the rest wholly."""
    room = Class(app)
    weak = dict.fromkeys(KEY, "1") | {"input.rows": "100", "input.columns": "4096"}
    for number in range(10):
        room.tries(room.student(f"S{number}"), KEY if number < 5 else weak)
    table = {line[0]: line[1:] for line in lines(room.page("/results"))}
    assert table["Keys K"][3] == "1.00"
    assert table["Input to this head X"][3] == "all alike"


def test_wrong_answers_of_different_numbers_are_counted_by_their_symbol(app: FastAPI) -> None:
    """Three students with numbers of their own who all took the model's width for the head's gave one answer."""
    room = Class(app, Policies(variants="per_student"))
    typed = set[str]()
    for number in range(3):
        student = room.student(f"S{number}")
        services = room.world.services
        variant = student_sheet(services.library, services.store, room.activity, student, 1).variant
        wide = {str(blank): str(variant.answer(blank)) for blank in variant.blanks}
        wide |= {f"{row}.columns": str(variant.sizes["d"]) for row in ("queries", "keys", "values")}
        room.tries(student, wide)
        typed.add(str(variant.tokens))
    assert len(typed) > 1
    table = {line[0]: line[1:] for line in lines(room.page("/results"))}
    assert table["Queries Q"] == ["", "0 %", "0 of 3", "too few", "columns d_model × 3"]
    assert table["A head is as wide as the model"] == ["3", "3"]
    assert "All 3 tries would keep" in str(room.page("/regrade").find("p"))


def test_a_student_of_another_course_has_no_page_here(app: FastAPI) -> None:
    """Their number under one's own activity is 404, as a number that nobody has is."""
    room, other = Class(app), Class(app)
    stranger = other.student("Lou")
    with room.world.browser(teacher=room.ada) as browser:
        for number in (stranger.id, 999_999, 10**30):
            assert browser.get(f"{room.path}/results/{number}").status_code == 404


# Exit tickets


def ticketed(app: FastAPI, *, anonymous: bool) -> Class:
    room = Class(app, Policies(ticket_anonymous=anonymous))
    for name, text in (("Kim", "Why √d?"), ("Lou", "The output PROJECTION"), ("Mo", "a rude word")):
        answers = {"muddiest": text, "curious": f"{name} is curious"} if name == "Mo" else {"muddiest": text}
        classwork, student = room.world.services.store.classwork, room.student(name)
        classwork.hand_in_ticket(room.activity.id, student.id, f"{name} {next(NUMBERS)}", answers, anonymous=anonymous)
    return room


def said(page: Page) -> list[str]:
    return sorted(text for _, text in page.find("p") if text.startswith(("Why", "The output", "a rude", "★", "Mo is")))


def test_exit_tickets_are_searched_starred_and_hidden(app: FastAPI) -> None:
    """Words in any case; a star comes first and shows on its own; what is hidden shows only among the hidden."""
    room = ticketed(app, anonymous=True)
    page = room.page("/tickets")
    assert said(page) == ["Mo is curious", "The output PROJECTION", "Why √d?", "a rude word"]
    assert "Kim" not in str(said(page))
    assert said(room.page("/tickets?q=projection+OUT")) == ["The output PROJECTION"]
    assert said(room.page("/tickets?q=%25")) == []
    kept = {one.text: one.id for one in room.world.services.store.classwork.tickets(room.activity.id)}
    with room.world.browser(teacher=room.ada) as browser:
        for text, mark in (("Why √d?", "starred"), ("a rude word", "hidden"), ("Why √d?", "follow_up")):
            address = f"{room.path}/tickets/{kept[text]}"
            done = browser.post(f"{address}?q=x", data={"mark": mark, "on": "yes"})
            assert (done.status_code, done.headers["location"]) == (303, f"{room.path}/tickets?q=x")
            assert browser.post(address, data={"mark": "student_id", "on": "yes"}).status_code == 404
    assert said(room.page("/tickets")) == ["Mo is curious", "The output PROJECTION", "★Starred: Why √d? follow up"]
    assert said(room.page("/tickets?show=hidden")) == ["a rude word"]
    assert said(room.page("/tickets?show=follow_up")) == said(room.page("/tickets?show=starred"))
    with room.world.browser(teacher=room.ada) as browser:
        left = browser.post(f"{room.path}/tickets/{kept['Why √d?']}", data={"mark": "starred", "on": "no"},
                            headers={"HX-Request": "true"})  # fmt: skip
    assert "★" not in left.text


def test_another_activitys_answer_cannot_be_marked_through_ones_own(app: FastAPI) -> None:
    """The key of an answer is good under its own activity alone."""
    theirs, mine = ticketed(app, anonymous=True), Class(app)
    [answer, *_] = theirs.world.services.store.classwork.tickets(theirs.activity.id)
    with mine.world.browser(teacher=mine.ada) as browser:
        data = {"mark": "hidden", "on": "yes"}
        assert browser.post(f"{mine.path}/tickets/{answer.id}", data=data).status_code == 404
    assert not any(one.hidden for one in theirs.world.services.store.classwork.tickets(theirs.activity.id))


def test_named_tickets_say_whose_they_are(app: FastAPI) -> None:
    """Where the activity asked for names, each answer has one."""
    assert "Why √d? Kim" in said(ticketed(app, anonymous=False).page("/tickets"))


def test_muddy_points_stand_beside_what_was_believed(app: FastAPI) -> None:
    """The same page counts the misconceptions of the same session."""
    room = ticketed(app, anonymous=True)
    room.tries(room.student("Ned"), WIDE)
    page = room.page("/tickets")
    assert ["A head is as wide as the model", "1"] in lines(page)
    assert page.text("h2", id="q-muddiest").endswith("3")


def test_one_page_for_the_next_meeting(app: FastAPI) -> None:
    """The misconception that most hold with its explanation, the row that fewest had right first, and starred
    sentences.
    """
    room = ticketed(app, anonymous=True)
    for number, answers in enumerate([WIDE, WIDE, NO_PROJECTION]):
        room.tries(room.student(f"S{number}"), answers)
    classwork = room.world.services.store.classwork
    for one in classwork.tickets(room.activity.id):
        classwork.mark_ticket(room.activity.id, one.id, starred=one.text != "Why √d?", hidden=one.text == "a rude word")
    page = room.page("/summary")
    explanation = room.world.services.library.wording.misconception("head-as-wide-as-model", "explanation")
    headings = [text for _, text in page.find("h3")]
    assert headings[0] == "“A head is as wide as the model”? 2 of 6, 2 at first"
    assert explanation in [text for _, text in page.find("p")]
    lowest = next(text for _, text in page.find("li") if "% right" in text)
    assert lowest == "Queries Q One head of LLaMA 7B: 33 % right"
    assert sorted(text for _, text in page.find("blockquote")) == ["Mo is curious", "The output PROJECTION"]


# Marking again


def test_a_changed_share_is_shown_first_then_applied_with_the_old_marks_kept(database_url: str, tmp_path: Path) -> None:
    """Lou's following box loses its half: told before, then applied and logged; a second time nothing is left."""
    made = create_app(Settings(data_dir=tmp_path, database_url=database_url))
    with TestClient(made):
        room = Class(made)
        store = room.world.services.store
        kim, lou = room.student("Kim"), room.student("Lou")
        first, right = room.tries(lou, FOLLOWING), room.tries(kim, KEY)
        assert (first.score, right.score) == (12.5, 14)
        assert room.page("/regrade").find("button", type="submit") == []
        room.share(0)
        dry = room.page("/regrade")
        assert lines(dry)[1:] == [["Lou", "One head of LLaMA 7B", "12.5 of 14", "12 of 14", "−0.5"]]
        assert store.classwork.tries_of_activity(room.activity.id) == (first, right)
        assert room.regrade({"changes": "something else"}) == 409
        assert store.classwork.tries_of_activity(room.activity.id) == (first, right)
        assert room.regrade({"changes": changes(dry)}) == 303
        assert store.classwork.tries_of_activity(room.activity.id) == (replace(first, score=12.0), right)
        [old] = store.regrades.old_marks(room.activity.id, lou.id)[first.id]
        assert old.graded == Graded(first.marks, first.misconceptions, first.score, first.out_of)
        assert store.regrades.old_marks(room.activity.id, kim.id) == {}
        [done] = store.regrades.of_activity(room.activity.id)
        assert (done.by, done.changed) == (room.ada.name, 1)
        with store.engine.connect() as connection:
            noted = connection.execute(sa.select(log.c.who, log.c.object).where(log.c.what == "regraded 1")).all()
        assert [tuple(row) for row in noted] == [(f"teacher {room.ada.id}", f"activity {room.activity.id}")]
        head = lines(room.page(f"/results/{lou.id}"))[0][1]
        assert "12 of 14" in head
        assert "was 12.5 of 14 until" in head
        assert "All 2 tries would keep the marks they have." in str(room.page("/regrade").find("p"))
        assert room.regrade({"changes": changes(dry)}) == 409


def test_a_corrected_worksheet_is_what_tries_are_marked_by_again(app: FastAPI) -> None:
    """Frozen with tokens as columns by mistake: answers with tokens as rows become right, and a dropped row goes."""
    room = Class(app)
    room.mistake()
    services = room.world.services
    kim = room.student("Kim")
    before = room.tries(kim, KEY)
    assert before.score < 14
    assert before.out_of == 16
    dry = room.page("/regrade")
    assert lines(dry)[1][3] == "14 of 14"
    assert room.regrade({"changes": changes(dry)}) == 303
    [after] = services.store.classwork.tries_of_activity(room.activity.id)
    assert (after.score, after.out_of, set(after.marks.values())) == (14, 14, {"right"})
    assert after.answers == before.answers


def test_a_student_sees_the_marks_that_the_instructor_sees(database_url: str, tmp_path: Path) -> None:
    """Kim's wrong boxes are right once marked again: on her own page, beside the boxes, in words and in the answers."""
    made = create_app(Settings(data_dir=tmp_path, database_url=database_url))
    with TestClient(made):
        room = Class(made, Policies(tries=2))
        room.mistake()
        kim = room.student("Kim")
        answers = {**KEY, "output.columns": "4095", "context.rows": "", "context.columns": "128"}
        before = room.tries(kim, answers)
        sheet, mine = room.seen_by(kim)
        assert beside(sheet) == before.marks
        assert f"{before.score:g} of 16" in mine
        assert room.regrade({"changes": changes(room.page("/regrade"))}) == 303
        right = {**dict.fromkeys(KEY, "right"), "output.columns": "wrong"}
        [after] = room.world.services.store.classwork.tries_of_activity(room.activity.id)
        assert (after.score, after.marks) == (13, right)
        sheet, mine = room.seen_by(kim)
        assert beside(sheet) == right
        assert "another version of this sheet" in sheet.text("p", class_="result")
        assert "13 of 14 boxes are right" in sheet.text("p", class_="result")
        assert "13 of 14" in mine
        table = {line[0]: line[1:] for line in lines(room.page("/results"))}
        assert table["Kim"][0] == "13"
        with room.world.browser(learner=room.learners[kim.id]) as browser:
            address = f"/class/{room.activity.id}/1"
            hinted = Page(browser.post(f"{address}/hint", data={**answers, "hint": "3", "version": "9"}).text)
        assert "Look again at “Output of this head” (columns)" in hinted.text("p", class_="hint")
        room.world.services.store.activities.set_state(room.activity, "closed")
        sheet, _ = room.seen_by(kim)
        told = [line for line in lines(sheet) if line[0].startswith("Answer")]
        assert [line[1] for line in told] == ["100N"] * 7
        assert beside(sheet) == right


def test_marks_that_no_sheet_gives_are_shown_as_they_are_kept(app: FastAPI) -> None:
    """What is said of a box goes with its mark, and no misconception is told that the marks do not hold."""
    room = Class(app)
    kim = room.student("Kim")
    one = room.tries(kim, WIDE)
    sheet, _ = room.seen_by(kim)
    assert sheet.find("p", class_="diagnosis") != []
    assert sheet.text("p", id="says-keys.columns").endswith("look again")
    nudge = room.world.services.library.wording.sections["nudges"]["single-head"]["keys.columns"]
    marks = {**one.marks, "queries.columns": "right", "input.rows": "wrong", "scores.rows": "follows"}
    room.world.services.store.regrades.apply(room.activity.id, room.ada.id, {one.id: Graded(marks, (), 10.5, 14)})
    sheet, mine = room.seen_by(kim)
    assert beside(sheet) == marks
    assert sheet.find("p", class_="diagnosis") == []
    assert sheet.text("p", id="says-keys.columns") == f"Columns. {nudge}"
    assert "10 of 14 boxes are right, 1 more given your earlier answers" in sheet.text("p", class_="result")
    assert "10.5 of 14" in mine


def test_the_live_view_forgets_marks_that_were_put_right(app: FastAPI) -> None:
    """After a regrade the room is counted from the new marks."""
    room = Class(app)
    room.tries(room.student("Kim"), KEY)
    services = room.world.services

    def input_right() -> int:
        services.live_snapshots.expire(room.activity.id)
        snapshot = services.live_snapshots.get(services.library, services.store, room.activity)
        return snapshot.sheets[0].rows[0].right

    assert input_right() == 1
    [one] = room.world.services.store.classwork.tries_of_activity(room.activity.id)
    wrong = Graded({**one.marks, "input.rows": "wrong"}, (), 13, 14)
    room.world.services.store.regrades.apply(room.activity.id, room.ada.id, {one.id: wrong})
    assert input_right() == 0


# The store


def activity_of(store: Store) -> tuple[Activity, Student, Teacher]:
    owner = teacher(store)
    course = store.courses.add("C", "UTC", owner)
    made = store.activities.add(course, Plan("A"), CONTENT)
    return made, seated(store, course)[0], owner


def test_the_room_is_asked_alike_on_both_databases(store: Store) -> None:
    """The newest try counts and handing in sticks; drafts have versions; one misconception is shown at a time."""
    activity, kim, _ = activity_of(store)
    here = spot(kim, activity)
    store.classwork.save(here, Draft({"queries.rows": "1"}, 5, LLAMA))
    whose = (kim.id, here.sheet)
    assert store.live.drafts(activity.id) == {whose: 5}
    assert store.live.draft_texts(activity.id, [kim.id])[whose] == Draft({"queries.rows": "1"}, 5, LLAMA)
    assert store.live.draft_texts(activity.id, []) == {}
    assert store.live.last_tries(activity.id) == {}
    store.classwork.record(here, "a", Draft({}, 6, LLAMA), HALF, handed_in=True)
    newest = store.classwork.record(here, "b", Draft({}, 7, LLAMA), replace(HALF, misconceptions=()), handed_in=False)
    [last] = store.live.last_tries(activity.id).values()
    assert (last.id, last.handed_in) == (newest.id, True)
    assert store.live.held([last.id])[last.id].misconceptions == ()
    assert store.live.held(range(1, 2000)).keys() == {newest.id - 1, newest.id}
    for light in (Spotlight(0, "one", False), Spotlight(1, "two", True), None):
        store.live.show(activity.id, light)
        assert store.live.spotlight(activity.id) == light


def test_old_marks_outlive_the_teacher_and_go_with_the_student(store: Store) -> None:
    """A regrade of another activity's try changes nothing; without the teacher it has no name."""
    activity, kim, owner = activity_of(store)
    one = store.classwork.record(spot(kim, activity), "a", Draft({}, 1, LLAMA), HALF, handed_in=True)
    new = replace(HALF, score=2)
    store.regrades.apply(activity.id, owner.id, {one.id: new, one.id + 99: new})
    assert store.classwork.tries(spot(kim, activity))[0].score == 2
    assert [old.graded for old in store.regrades.old_marks(activity.id, kim.id)[one.id]] == [HALF]
    with store.engine.begin() as connection:
        connection.execute(sa.delete(teachers).where(teachers.c.id == owner.id))
    [done] = store.regrades.of_activity(activity.id)
    assert (done.by, done.changed) == ("", 1)
    store.courses.remove_student(kim)
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(old_marks)) == 0
        assert connection.scalar(sa.select(sa.func.count()).select_from(regrades)) == 1


def test_what_was_there_before_regrades_stays(database_url: str) -> None:
    """A database at the third migration with a try in it is brought to the newest, keeps it, and can be regraded."""
    store = Store(database_url)
    activity, kim, owner = activity_of(store)
    one = store.classwork.record(spot(kim, activity), "a", Draft({}, 1, LLAMA), HALF, handed_in=True)
    config = Config()
    config.set_main_option("script_location", str(PROJECT / "app" / "store" / "migrations"))
    with store.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0003")
        assert "old_marks" not in sa.inspect(connection).get_table_names()
    store.close()
    again = Store(database_url)
    assert again.classwork.tries_of_activity(activity.id) == (one,)
    again.regrades.apply(activity.id, owner.id, {one.id: replace(HALF, score=0)})
    assert again.classwork.tries_of_activity(activity.id)[0].score == 0
    again.close()
