"""/courses/C/practice: what the students of a course practise with, and how far each of them is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from app.practice.levels import practice_levels
from app.practice.progress import LevelView, MisconceptionGroupView, group_views, level_views
from app.practice.record import RecordError, read_record
from app.practice.scheduler import Practice
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
    """A topic or a worksheet of the course that can be practised."""

    key: str
    name: str
    chosen: bool


@dataclass(frozen=True)
class StudentPractice:
    """How far a student is: the levels, how many sheets, how many of them were right, and the ideas. `levels` and
    `ideas` are as on the student's map of practice, empty for a record that can no longer be read.
    """

    name: str
    number: str
    levels: tuple[LevelView, ...]
    sheets: int
    right: int
    ideas: tuple[MisconceptionGroupView, ...]

    @property
    def passed(self) -> int:
        return sum(level.state == "passed" for level in self.levels)

    @property
    def solid(self) -> int:
        return sum(idea.state == "solid" for idea in self.ideas)

    @property
    def again(self) -> tuple[str, ...]:
        """The names of the ideas to look at again."""
        return tuple(idea.name for idea in self.ideas if idea.state == "again")

    @property
    def current(self) -> LevelView | None:
        """The level that the student is on; None once all are passed."""
        return next((level for level in self.levels if level.state == "current"), None)


@dataclass(frozen=True)
class CourseLevel:
    """One level of a course's practice: how many students have passed it, are on it, and got something on it wrong."""

    name: str
    passed: int
    here: int
    missed: int


@dataclass(frozen=True)
class CourseIdea:
    """One idea that students of a course have met: for how many it is solid, is being learnt, is to look at again."""

    name: str
    solid: int
    growing: int
    again: int


@dataclass(frozen=True)
class CoursePracticePage:
    """Everything that templates/teacher/course_practice.html shows."""

    access: Annotated[permissions.CourseAccess, Doc("The course, the signed-in teacher and their role in it.")]
    is_on: Annotated[bool, Doc("Whether the course has practice.")]
    topics: Annotated[tuple[PracticeChoice, ...], Doc("The topics to draw sheets from.")]
    worksheets: Annotated[tuple[PracticeChoice, ...], Doc("The course's own worksheets to draw from.")]
    ideas: Annotated[tuple[CourseIdea, ...], Doc("The ideas that anybody has met.")]
    levels: Annotated[tuple[CourseLevel, ...], Doc("The levels of what is practised, the lowest first.")]
    students: Annotated[tuple[StudentPractice, ...], Doc("Those who have practised, by name.")]
    numbered: Annotated[bool, Doc("Whether any of them has a number.")]
    enrolled: Annotated[int, Doc("How many students are on the roster.")]
    version: Annotated[str, Doc("The version of what is practised that the form was opened with.")]
    conflict: Annotated[Conflict | None, Doc("A newer version that somebody else saved.")] = None
    notice: Annotated[str, Doc("The sentence about what was just done, empty for none.")] = ""
    problem: Annotated[str, Doc("Why nothing was saved, empty where there is no problem.")] = ""


@router.get("/courses/{course_id:int}/practice")
def show_course_practice(services: ServicesDep, access: StaffCourse, done: str = "") -> Response:
    """What is practised and how far everybody is; `done` 'saved' or 'ended' adds a sentence, other text none."""
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
    """Save what is practised, or with `end` delete the practice and the students' progress in it."""
    store, course = services.store, access.course
    if form.raw("end"):
        with store.audit_log.recording(access.teacher, AuditAction.PRACTICE_ENDED, course):
            store.courses.set_practice(course, None)
        return RedirectResponse(url_for("show_course_practice", course_id=course.id, done="ended"), 303)
    ticked, titles = form.all("topic"), {each.key: each.title for each in course_worksheets(store, course)}
    topics = tuple(topic for topic in services.library.topics if topic in ticked)
    worksheets = tuple(dict.fromkeys(key for key in form.all("worksheet") if key in titles))
    practice = CoursePractice(topics, worksheets)
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
        conflict = _conflict(services.library, course, titles, newest, practice)
        page = replace(page, version=form.raw("version"), conflict=conflict)
        return render("teacher/course_practice.html", page, 409)
    return RedirectResponse(url_for("show_course_practice", course_id=course.id, done="saved"), 303)


def _version(practice: CoursePractice | None) -> str:
    return version_of(practice and practice.as_json)


def _conflict(
    library: Library, course: Course, titles: Mapping[str, str], newest: CoursePractice | None, typed: CoursePractice
) -> Conflict:
    names = {**{topic: library.wording.topics[topic].name for topic in library.topics}, **titles}
    both = (
        {"topics": _listed(names, each.topics), "worksheets": _listed(names, each.worksheets)}
        for each in (newest or CoursePractice(()), typed)
    )
    differing = differences({"topics": _("Topics"), "worksheets": _("Worksheets")}, *both)
    return Conflict(_version(newest), differing, url_for("show_course_practice", course_id=course.id))


def _listed(names: Mapping[str, str], keys: Sequence[str]) -> str:
    return "\n".join(names.get(key, key) for key in keys)


def _problem(library: Library, practice: CoursePractice, titles: Mapping[str, str]) -> str:
    if len(practice.worksheets) > MAX_PRACTICE_SHEETS:
        return _("Choose at most {most} own worksheets.").format(most=MAX_PRACTICE_SHEETS)
    if unusable := [titles[key] for key in practice.worksheets if key not in library.worksheets]:
        sentence = _("These can’t be used any more; their pages say why: {titles}.")
        return sentence.format(titles=", ".join(unusable))
    return "" if practice_levels(library) else _("Tick at least one topic or worksheet.")


def _practice_page(
    services: Services,
    access: permissions.CourseAccess,
    practice: CoursePractice | None,
    typed: CoursePractice | None = None,
) -> CoursePracticePage:
    store, course, library = services.store, access.course, services.library
    ticked = typed or practice or CoursePractice(library.topics)
    topics = [PracticeChoice(key, library.wording.topics[key].name, key in ticked.topics) for key in library.topics]
    worksheets = [
        PracticeChoice(each.key, each.title, each.key in ticked.worksheets) for each in course_worksheets(store, course)
    ]
    roster = store.roster.students(course)
    students = _students(services, course, practice, roster) if practice else ()
    return CoursePracticePage(
        access,
        practice is not None,
        tuple(topics),
        tuple(worksheets),
        tuple(_course_ideas(students)),
        tuple(_course_levels(students)),
        students,
        any(student.number for student in students),
        len(roster),
        _version(practice),
    )


def _students(
    services: Services, course: Course, practice: CoursePractice, roster: tuple[Student, ...]
) -> tuple[StudentPractice, ...]:
    records = services.store.roster.practice_records(course)
    library = practice_library(services.library, services.store, course, practice)
    if not practice_levels(library):
        return ()
    return tuple(_student(library, each, records[each.id]) for each in roster if each.id in records)


def _student(library: Library, student: Student, text: str) -> StudentPractice:
    number, name = student.roster_key or "", student.name
    try:
        practice = Practice(library, read_record(text))
    except RecordError:
        return StudentPractice(name, number, (), 0, 0, ())
    results = practice.record.results
    right = sum(result.right for result in results)
    return StudentPractice(name, number, level_views(practice), len(results), right, group_views(practice))


def _course_ideas(students: tuple[StudentPractice, ...]) -> Iterator[CourseIdea]:
    for views in zip(*(student.ideas for student in students if student.ideas), strict=True):
        states = Counter(view.state for view in views)
        if states["new"] < len(views):
            yield CourseIdea(views[0].name, states["solid"], states["growing"], states["again"])


def _course_levels(students: tuple[StudentPractice, ...]) -> Iterator[CourseLevel]:
    for views in zip(*(student.levels for student in students if student.levels), strict=True):
        states = Counter(view.state for view in views)
        missed = sum(bool(view.missed) for view in views)
        yield CourseLevel(views[0].name, states["passed"], states["current"], missed)
