"""/courses/C/practice: what the students of a course practise with, and each student's progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.course_settings import (
    MAX_PRACTICE_SHEETS,
    CoursePractice,
    course_worksheets,
    practice_library,
    practice_of,
)
from app.practice.lessons import lessons_of
from app.practice.progress import ideas_to_repeat
from app.practice.record import PracticeRecord, RecordError, read_record
from app.sheets.library import Library
from app.store import AuditAction, Course, Student
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.conflicts import Conflict, differences, may_save, version_of
from app.web.shared.forms import FormDep
from app.web.shared.permissions import EditableCourse, StaffCourse
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class PracticeChoice:
    """A worksheet of the course that can be practised."""

    key: str
    name: str
    chosen: bool


@dataclass(frozen=True)
class StudentPractice:
    """A student's progress: how many sheets of each lesson's row are done, of how many, and what to repeat."""

    name: str
    number: str
    done: tuple[tuple[int, int], ...]
    again: tuple[str, ...]


@dataclass(frozen=True)
class CoursePracticePage:
    """Everything that templates/teacher/course_practice.html shows."""

    access: Annotated[permissions.CourseAccess, Doc("The course, the signed-in teacher and their role in it.")]
    is_on: Annotated[bool, Doc("Whether the course has practice.")]
    worksheets: Annotated[tuple[PracticeChoice, ...], Doc("The course's own worksheets to add.")]
    lessons: Annotated[tuple[str, ...], Doc("The titles of the lessons.")]
    students: Annotated[tuple[StudentPractice, ...], Doc("Those who have practised, by name.")]
    ideas: Annotated[tuple[tuple[str, int], ...], Doc("What is to be repeated, by how many students.")]
    numbered: Annotated[bool, Doc("Whether any of them has a number.")]
    enrolled: Annotated[int, Doc("How many students are on the roster.")]
    version: Annotated[str, Doc("The version of what is practised that the form was opened with.")]
    conflict: Annotated[Conflict | None, Doc("A newer version that somebody else saved.")] = None
    notice: Annotated[str, Doc("The sentence about what was just done, empty for none.")] = ""
    problem: Annotated[str, Doc("Why nothing was saved, empty where there is no problem.")] = ""


@router.get("/courses/{course_id:int}/practice")
def show_course_practice(services: ServicesDep, access: StaffCourse, done: str = "") -> Response:
    """What is practised and everybody's progress; `done` 'saved' or 'ended' adds a sentence."""
    notices = {
        "saved": _(
            "Saved. Students who practise in the browser they joined with are told that you see their progress."
        ),
        "ended": _("This course’s practice has ended, and its students’ progress is deleted."),
    }
    page = _practice_page(services, access, practice_of(services.store, access.course))
    return render("teacher/course_practice.html", replace(page, notice=notices.get(done, "")))


@router.post("/courses/{course_id:int}/practice")
def save_course_practice(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Save what is practised or, with `end`, delete the practice and the students' progress in it."""
    store, course = services.store, access.course
    if form.raw("end"):
        with store.audit_log.recording(access.teacher, AuditAction.PRACTICE_ENDED, course):
            store.courses.set_practice(course, None)
        return RedirectResponse(url_for("show_course_practice", course_id=course.id, done="ended"), 303)
    titles = {each.key: each.title for each in course_worksheets(store, course)}
    practice = CoursePractice(tuple(dict.fromkeys(key for key in form.all("worksheet") if key in titles)))
    if problem := _problem(practice_library(services.library, store, course, practice), practice, titles):
        page = _practice_page(services, access, practice_of(store, course), typed=practice)
        return render("teacher/course_practice.html", replace(page, version=form.raw("version"), problem=problem), 422)
    with store.transaction():
        store.courses.locked(course)
        newest = practice_of(store, course)
        is_newest = may_save(form, _version(newest), _version(practice))
        if is_newest:
            store.courses.set_practice(course, practice.as_json)
            store.audit_log.record(access.teacher, AuditAction.PRACTICE_SET, course)
    if not is_newest:
        page = _practice_page(services, access, newest, typed=practice)
        page = replace(page, version=form.raw("version"), conflict=_conflict(course, titles, newest, practice))
        return render("teacher/course_practice.html", page, 409)
    return RedirectResponse(url_for("show_course_practice", course_id=course.id, done="saved"), 303)


def _version(practice: CoursePractice | None) -> str:
    return version_of(practice and practice.as_json)


def _conflict(
    course: Course, titles: Mapping[str, str], newest: CoursePractice | None, typed: CoursePractice
) -> Conflict:
    both = (
        {"worksheets": "\n".join(titles.get(key, key) for key in each.worksheets)}
        for each in (newest or CoursePractice(), typed)
    )
    differing = differences({"worksheets": _("Worksheets")}, *both)
    return Conflict(_version(newest), differing, url_for("show_course_practice", course_id=course.id))


def _problem(library: Library, practice: CoursePractice, titles: Mapping[str, str]) -> str:
    if len(practice.worksheets) > MAX_PRACTICE_SHEETS:
        return _("Choose at most {most} own worksheets.").format(most=MAX_PRACTICE_SHEETS)
    if unusable := [titles[key] for key in practice.worksheets if key not in library.worksheets]:
        sentence = _("These can’t be used any more; their pages say why: {titles}.")
        return sentence.format(titles=", ".join(unusable))
    return ""


def _practice_page(
    services: Services,
    access: permissions.CourseAccess,
    practice: CoursePractice | None,
    typed: CoursePractice | None = None,
) -> CoursePracticePage:
    store, course = services.store, access.course
    ticked = (typed or practice or CoursePractice()).worksheets
    roster, records = store.roster.students(course), store.roster.practice_records(course)
    library = practice_library(services.library, store, course, practice) if practice else services.library
    students = tuple(_student(library, each, records[each.id]) for each in roster if each.id in records)
    ideas = Counter(idea for student in students for idea in student.again)
    return CoursePracticePage(
        access,
        practice is not None,
        tuple(PracticeChoice(each.key, each.title, each.key in ticked) for each in course_worksheets(store, course)),
        tuple(_(lesson.title) for lesson in lessons_of(library)),
        students,
        tuple(ideas.most_common()),
        any(student.number for student in students),
        len(roster),
        _version(practice),
    )


def _student(library: Library, student: Student, text: str) -> StudentPractice:
    try:
        record = read_record(library, text)
    except RecordError:
        record = PracticeRecord()
    done = tuple((len(set(lesson.sheets) & set(record.done)), len(lesson.sheets)) for lesson in lessons_of(library))
    return StudentPractice(student.name, student.roster_key or "", done, ideas_to_repeat(library, record))
