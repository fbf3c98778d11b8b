"""What came of an activity: tables, exit tickets, the page for the next meeting, and marks that were put right."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from fastapi import FastAPI

from app.classes.student_sheet import freeze, student_sheet
from app.grading.grade import grade
from app.settings import PROJECT
from app.store import Activity, Graded, Plan, Policies, Spotlight, Store, Student, Teacher, Try
from app.store.classwork import Draft
from app.store.tables import log, old_marks, regrades, teachers
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.stored_class import CONTENT, HALF, LLAMA, seated, spot, teacher

NUMBERS = itertools.count(1)
TYPED = itertools.count(1)
FOLLOWING = {**KEY, "input.rows": "99", "queries.rows": "99"}
NO_PROJECTION = {**KEY, "output.columns": "128"}


class MarkedClassroom(Classroom):
    """A classroom whose students hand in sheets that are stored with their marks, without a page between."""

    def freeze_mistaken_sheet(self) -> None:
        """Make the sheet stand as if it had been frozen with tokens as columns by mistake, and with a row too many."""
        content = freeze(self.school.library, ("llama-7b",), None)
        [item] = content.items
        asked = [*item.worksheet["rows"], "context"]
        mistaken = replace(item, worksheet={**item.worksheet, "tokens_are": "columns", "rows": asked})
        self.store.activities.revise(self.activity, replace(content, items=(mistaken,)))

    def hand_in(self, student: Student, answers: Mapping[str, str], number: int = 0) -> Try:
        """Store an attempt as the student's page would, handed in."""
        activity = self.school.reload(self.activity)
        services = self.school.services
        sheet = student_sheet(services.library, services.store, activity, student, number + 1)
        report = grade(sheet.variant, answers)
        held = (report.diagnosis.key,) if report.diagnosis else ()
        marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
        graded = Graded(marks, held, report.score, report.out_of)
        draft = Draft(answers, next(TYPED), sheet.sizes)
        record = self.school.store.classwork.record
        return record(sheet.key, f"form-{draft.version}", draft, graded, handed_in=True)

    def change_follow_share(self, follow_share: float) -> None:
        """The instructor changes what a blank is worth that follows from an earlier mistake."""
        plan = self.activity.plan
        changed = replace(plan, policies=replace(plan.policies, follow_share=follow_share))
        self.school.store.activities.change(self.activity, changed)

    def seen_by(self, student: Student) -> tuple[Page, str]:
        """The first sheet as a student has it now, and the line about it on their own page."""
        with self.browser_of(student) as browser:
            sheet, mine = Page(browser.get(self.sheet_path).text), Page(browser.get("/mine").text)
        return sheet, next(text for _, text in mine.find("li") if text.startswith(sheet.text("h1")))

    def regrade(self, data: Mapping[str, str]) -> int:
        """Send the form of the regrade page as the instructor; the status."""
        return self.instructor.post(f"{self.path}/regrade", data=data).status_code


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


# Results


def test_the_table_shows_last_tries_and_the_rows_first_ones(app: FastAPI) -> None:
    """Kim put a misconception right, Lou kept one, Ned's rows follow, Mo did nothing: marks of last tries, shares of
    first.
    """
    classroom = MarkedClassroom(app)
    kim, lou, ned, _ = (classroom.student(name) for name in ("Kim", "Lou", "Ned", "Mo"))
    classroom.hand_in(ned, FOLLOWING)
    classroom.hand_in(kim, WIDE)
    classroom.hand_in(kim, KEY)
    classroom.hand_in(lou, WIDE)
    table = {line[0]: line[1:] for line in lines(classroom.page("/results"))}
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
    classroom = MarkedClassroom(app)
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    classroom.hand_in(kim, WIDE)
    classroom.hand_in(kim, {**KEY, "keys.rows": "??"})
    classroom.hand_in(lou, {**KEY, "keys.rows": "77777"})
    page = classroom.page(f"/results/{kim.id}")
    heads, *rows = lines(page)
    assert [head.split("handed")[0].rpartition(" of ")[0].split()[-1] for head in heads[1:]] == ["11", "13"]
    table = {row[0]: row[1:] for row in rows}
    assert table["Keys"] == ["100 right × 4096 not right", "?? could not be read × 128 right"]
    assert table["Believed"] == ["A head is as wide as the model", "–"]
    assert "77777" not in str(rows)


def test_ten_students_are_enough_to_say_how_a_row_discriminates(app: FastAPI) -> None:
    """Five with all right and five with nothing but the input: every other row goes with the rest wholly."""
    classroom = MarkedClassroom(app)
    weak = dict.fromkeys(KEY, "1") | {"input.rows": "100", "input.columns": "4096"}
    for number in range(10):
        classroom.hand_in(classroom.student(f"S{number}"), KEY if number < 5 else weak)
    table = {line[0]: line[1:] for line in lines(classroom.page("/results"))}
    assert table["Keys K"][3] == "1.00"
    assert table["Input to this head X"][3] == "all alike"


def test_wrong_answers_of_different_numbers_are_counted_by_their_symbol(app: FastAPI) -> None:
    """Three students with numbers of their own who all took the model's width for the head's gave one answer."""
    classroom = MarkedClassroom(app, Policies(variants="per_student"))
    typed = set[str]()
    for number in range(3):
        student = classroom.student(f"S{number}")
        services = classroom.school.services
        variant = student_sheet(services.library, services.store, classroom.activity, student, 1).variant
        wide = {str(blank): str(variant.answer(blank)) for blank in variant.blanks}
        wide |= {f"{row}.columns": str(variant.sizes["d"]) for row in ("queries", "keys", "values")}
        classroom.hand_in(student, wide)
        typed.add(str(variant.tokens))
    assert len(typed) > 1
    table = {line[0]: line[1:] for line in lines(classroom.page("/results"))}
    assert table["Queries Q"] == ["", "0 %", "0 of 3", "too few", "columns d_model × 3"]
    assert table["A head is as wide as the model"] == ["3", "3"]
    assert "All 3 tries would keep" in str(classroom.page("/regrade").find("p"))


def test_a_student_of_another_course_has_no_page_here(app: FastAPI) -> None:
    """Their number under one's own activity is 404, as a number that nobody has is."""
    classroom, other = MarkedClassroom(app), MarkedClassroom(app)
    stranger = other.student("Lou")
    with classroom.instructor as browser:
        for number in (stranger.id, 999_999, 10**30):
            assert browser.get(f"{classroom.path}/results/{number}").status_code == 404


# Exit tickets


def ticketed(app: FastAPI, *, anonymous: bool) -> MarkedClassroom:
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=anonymous))
    for name, text in (("Kim", "Why √d?"), ("Lou", "The output PROJECTION"), ("Mo", "a rude word")):
        answers = {"muddiest": text, "curious": f"{name} is curious"} if name == "Mo" else {"muddiest": text}
        classwork, student = classroom.store.classwork, classroom.student(name)
        form_id = f"{name} {next(NUMBERS)}"
        classwork.hand_in_ticket(classroom.activity.id, student.id, form_id, answers, anonymous=anonymous)
    return classroom


def said(page: Page) -> list[str]:
    return sorted(text for _, text in page.find("p") if text.startswith(("Why", "The output", "a rude", "★", "Mo is")))


def test_exit_tickets_are_searched_starred_and_hidden(app: FastAPI) -> None:
    """Words in any case; a star comes first and shows on its own; what is hidden shows only among the hidden."""
    classroom = ticketed(app, anonymous=True)
    page = classroom.page("/tickets")
    assert said(page) == ["Mo is curious", "The output PROJECTION", "Why √d?", "a rude word"]
    assert "Kim" not in str(said(page))
    assert said(classroom.page("/tickets?q=projection+OUT")) == ["The output PROJECTION"]
    assert said(classroom.page("/tickets?q=%25")) == []
    kept = {one.text: one.id for one in classroom.store.classwork.tickets(classroom.activity.id)}
    with classroom.instructor as browser:
        for text, mark in (("Why √d?", "starred"), ("a rude word", "hidden"), ("Why √d?", "follow_up")):
            address = f"{classroom.path}/tickets/{kept[text]}"
            done = browser.post(f"{address}?q=x", data={"mark": mark, "on": "yes"})
            assert (done.status_code, done.headers["location"]) == (303, f"{classroom.path}/tickets?q=x")
            assert browser.post(address, data={"mark": "student_id", "on": "yes"}).status_code == 404
    assert said(classroom.page("/tickets")) == ["Mo is curious", "The output PROJECTION", "★Starred: Why √d? follow up"]
    assert said(classroom.page("/tickets?show=hidden")) == ["a rude word"]
    assert said(classroom.page("/tickets?show=follow_up")) == said(classroom.page("/tickets?show=starred"))
    with classroom.instructor as browser:
        left = browser.post(f"{classroom.path}/tickets/{kept['Why √d?']}", data={"mark": "starred", "on": "no"},
                            headers={"HX-Request": "true"})  # fmt: skip
    assert "★" not in left.text


def test_another_activitys_answer_cannot_be_marked_through_ones_own(app: FastAPI) -> None:
    """The key of an answer is good under its own activity alone."""
    theirs, mine = ticketed(app, anonymous=True), MarkedClassroom(app)
    [answer, *_] = theirs.school.store.classwork.tickets(theirs.activity.id)
    with mine.school.browser(teacher=mine.teacher) as browser:
        data = {"mark": "hidden", "on": "yes"}
        assert browser.post(f"{mine.path}/tickets/{answer.id}", data=data).status_code == 404
    assert not any(one.hidden for one in theirs.school.store.classwork.tickets(theirs.activity.id))


def test_named_tickets_say_whose_they_are(app: FastAPI) -> None:
    """Where the activity asked for names, each answer has one."""
    assert "Why √d? Kim" in said(ticketed(app, anonymous=False).page("/tickets"))


def test_muddy_points_stand_beside_what_was_believed(app: FastAPI) -> None:
    """The same page counts the misconceptions of the same session."""
    classroom = ticketed(app, anonymous=True)
    classroom.hand_in(classroom.student("Ned"), WIDE)
    page = classroom.page("/tickets")
    assert ["A head is as wide as the model", "1"] in lines(page)
    assert page.text("h2", id="q-muddiest").endswith("3")


def test_one_page_for_the_next_meeting(app: FastAPI) -> None:
    """The misconception that most hold with its explanation, the row that fewest had right first, and starred
    sentences.
    """
    classroom = ticketed(app, anonymous=True)
    for number, answers in enumerate([WIDE, WIDE, NO_PROJECTION]):
        classroom.hand_in(classroom.student(f"S{number}"), answers)
    classwork = classroom.store.classwork
    for one in classwork.tickets(classroom.activity.id):
        starred, hidden = one.text != "Why √d?", one.text == "a rude word"
        classwork.mark_ticket(classroom.activity.id, one.id, starred=starred, hidden=hidden)
    page = classroom.page("/summary")
    explanation = classroom.school.library.wording.misconception("head-as-wide-as-model", "explanation")
    headings = [text for _, text in page.find("h3")]
    assert headings[0] == "“A head is as wide as the model”? 2 of 6, 2 at first"
    assert explanation in [text for _, text in page.find("p")]
    lowest = next(text for _, text in page.find("li") if "% right" in text)
    assert lowest == "Queries Q One head of LLaMA 7B: 33 % right"
    assert sorted(text for _, text in page.find("blockquote")) == ["Mo is curious", "The output PROJECTION"]


# Marking again


def test_a_changed_share_is_shown_first_then_applied_with_the_old_marks_kept(app_on_each_database: FastAPI) -> None:
    """Lou's following box loses its half: told before, then applied and logged; a second time nothing is left."""
    classroom = MarkedClassroom(app_on_each_database)
    store = classroom.store
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    first, right = classroom.hand_in(lou, FOLLOWING), classroom.hand_in(kim, KEY)
    assert (first.score, right.score) == (12.5, 14)
    assert classroom.page("/regrade").find("button", type="submit") == []
    classroom.change_follow_share(0)
    dry = classroom.page("/regrade")
    assert lines(dry)[1:] == [["Lou", "One head of LLaMA 7B", "12.5 of 14", "12 of 14", "−0.5"]]
    assert store.classwork.tries_of_activity(classroom.activity.id) == (first, right)
    assert classroom.regrade({"changes": "something else"}) == 409
    assert store.classwork.tries_of_activity(classroom.activity.id) == (first, right)
    assert classroom.regrade({"changes": changes(dry)}) == 303
    assert store.classwork.tries_of_activity(classroom.activity.id) == (replace(first, score=12.0), right)
    [old] = store.regrades.old_marks(classroom.activity.id, lou.id)[first.id]
    assert old.graded == Graded(first.marks, first.misconceptions, first.score, first.out_of)
    assert store.regrades.old_marks(classroom.activity.id, kim.id) == {}
    [done] = store.regrades.of_activity(classroom.activity.id)
    assert (done.by, done.changed) == (classroom.teacher.name, 1)
    with store.engine.connect() as connection:
        noted = connection.execute(sa.select(log.c.who, log.c.object).where(log.c.what == "regraded 1")).all()
    expected = (f"teacher {classroom.teacher.id}", f"activity {classroom.activity.id}")
    assert [tuple(row) for row in noted] == [expected]
    head = lines(classroom.page(f"/results/{lou.id}"))[0][1]
    assert "12 of 14" in head
    assert "was 12.5 of 14 until" in head
    assert "All 2 tries would keep the marks they have." in str(classroom.page("/regrade").find("p"))
    assert classroom.regrade({"changes": changes(dry)}) == 409


def test_a_corrected_worksheet_is_what_tries_are_marked_by_again(app: FastAPI) -> None:
    """Frozen with tokens as columns by mistake: answers with tokens as rows become right, and a dropped row goes."""
    classroom = MarkedClassroom(app)
    classroom.freeze_mistaken_sheet()
    services = classroom.school.services
    kim = classroom.student("Kim")
    before = classroom.hand_in(kim, KEY)
    assert before.score < 14
    assert before.out_of == 16
    dry = classroom.page("/regrade")
    assert lines(dry)[1][3] == "14 of 14"
    assert classroom.regrade({"changes": changes(dry)}) == 303
    [after] = services.store.classwork.tries_of_activity(classroom.activity.id)
    assert (after.score, after.out_of, set(after.marks.values())) == (14, 14, {"right"})
    assert after.answers == before.answers


def test_a_student_sees_the_marks_that_the_instructor_sees(app_on_each_database: FastAPI) -> None:
    """Kim's wrong boxes are right once marked again: on her own page, beside the boxes, in words and in the answers."""
    classroom = MarkedClassroom(app_on_each_database, Policies(tries=2))
    classroom.freeze_mistaken_sheet()
    kim = classroom.student("Kim")
    answers = {**KEY, "output.columns": "4095", "context.rows": "", "context.columns": "128"}
    before = classroom.hand_in(kim, answers)
    sheet, mine = classroom.seen_by(kim)
    assert beside(sheet) == before.marks
    assert f"{before.score:g} of 16" in mine
    assert classroom.regrade({"changes": changes(classroom.page("/regrade"))}) == 303
    right = {**dict.fromkeys(KEY, "right"), "output.columns": "wrong"}
    [after] = classroom.store.classwork.tries_of_activity(classroom.activity.id)
    assert (after.score, after.marks) == (13, right)
    sheet, mine = classroom.seen_by(kim)
    assert beside(sheet) == right
    assert "another version of this sheet" in sheet.text("p", class_="result")
    assert "13 of 14 boxes are right" in sheet.text("p", class_="result")
    assert "13 of 14" in mine
    table = {line[0]: line[1:] for line in lines(classroom.page("/results"))}
    assert table["Kim"][0] == "13"
    with classroom.browser_of(kim) as browser:
        address = f"/class/{classroom.activity.id}/1"
        hinted = Page(browser.post(f"{address}/hint", data={**answers, "hint": "3", "version": "9"}).text)
    assert "Look again at “Output of this head” (columns)" in hinted.text("p", class_="hint")
    classroom.store.activities.set_state(classroom.activity, "closed")
    sheet, _ = classroom.seen_by(kim)
    told = [line for line in lines(sheet) if line[0].startswith("Answer")]
    assert [line[1] for line in told] == ["100N"] * 7
    assert beside(sheet) == right


def test_marks_that_no_sheet_gives_are_shown_as_they_are_kept(app: FastAPI) -> None:
    """What is said of a box goes with its mark, and no misconception is told that the marks do not hold."""
    classroom = MarkedClassroom(app)
    kim = classroom.student("Kim")
    one = classroom.hand_in(kim, WIDE)
    sheet, _ = classroom.seen_by(kim)
    assert sheet.find("p", class_="diagnosis") != []
    assert sheet.text("p", id="says-keys.columns").endswith("look again")
    nudge = classroom.school.library.wording.sections["nudges"]["single-head"]["keys.columns"]
    marks = {**one.marks, "queries.columns": "right", "input.rows": "wrong", "scores.rows": "follows"}
    classroom.store.regrades.apply(classroom.activity.id, classroom.teacher.id, {one.id: Graded(marks, (), 10.5, 14)})
    sheet, mine = classroom.seen_by(kim)
    assert beside(sheet) == marks
    assert sheet.find("p", class_="diagnosis") == []
    assert sheet.text("p", id="says-keys.columns") == f"Columns. {nudge}"
    assert "10 of 14 boxes are right, 1 more given your earlier answers" in sheet.text("p", class_="result")
    assert "10.5 of 14" in mine


def test_the_live_view_forgets_marks_that_were_put_right(app: FastAPI) -> None:
    """After a regrade the classroom is counted from the new marks."""
    classroom = MarkedClassroom(app)
    classroom.hand_in(classroom.student("Kim"), KEY)
    services = classroom.school.services

    def input_right() -> int:
        services.live_snapshots.expire(classroom.activity.id)
        snapshot = services.live_snapshots.get(services.library, services.store, classroom.activity)
        return snapshot.sheets[0].rows[0].right

    assert input_right() == 1
    [one] = classroom.store.classwork.tries_of_activity(classroom.activity.id)
    wrong = Graded({**one.marks, "input.rows": "wrong"}, (), 13, 14)
    classroom.store.regrades.apply(classroom.activity.id, classroom.teacher.id, {one.id: wrong})
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
