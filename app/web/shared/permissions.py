"""Who may do what with which object: handlers get their objects only from these dependencies.

What somebody may not know of doesn't exist for them (404); what they may see but not do is refused (403).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, TypeVar

from fastapi import Depends, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from app.activities.rules import Rules
from app.activities.work import WorkDone
from app.machine.work_queue import Client
from app.store import Activity, Course, Enrolment, Material, Phase, Role, Student, Teacher, Visitor
from app.translation import gettext as _
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from app.web.shared.forms import whole_number
from app.web.shared.services import Services, ServicesDep
from app.web.shared.threads import in_threads
from app.web.shared.urls import StudentLinks, client_network
from app.web.shared.visitor import VisitorInClass, visitor_of

LARGEST_ID = 2**31 - 1


Access = TypeVar("Access", bound="CourseAccess")


class NotSignedInError(Exception):
    """The page is for teachers, and no teacher is signed in in this browser."""


@dataclass(frozen=True)
class CourseAccess:
    """A course, the signed-in teacher and their role in it."""

    course: Course
    teacher: Teacher
    role: Role

    @property
    def can_edit(self) -> bool:
        """Whether they may change anything; nobody may in an archived course."""
        return self.role == "instructor" and self.course.archived_at is None


@dataclass(frozen=True)
class RosterStudentAccess:
    """A student on the roster of a course that the signed-in teacher may edit."""

    student: Student
    course: Course
    teacher: Teacher


@dataclass(frozen=True)
class ActivityAccess(CourseAccess):
    """An activity, its course, the signed-in teacher with their role, and the time of the request."""

    activity: Activity
    now: datetime

    @property
    def phase(self) -> Phase:
        return self.activity.phase(self.now)


@dataclass(frozen=True)
class StudentAccess:
    """An activity, its course, this browser's student there, and the time of the request.

    `work` is the work on a sheet, with the sheet's key, if it has already been read.
    """

    activity: Activity
    course: Course
    student: Student
    now: datetime
    work: tuple[str, WorkDone] | None = field(default=None, kw_only=True)
    example: int = field(default=0, kw_only=True)
    closed: bool = field(default=False, kw_only=True)  # a preview as after closing

    @property
    def phase(self) -> Phase:
        return self.rules.phase

    @cached_property
    def rules(self) -> Rules:
        """What may be shown and done on the activity's sheets at the time of the request."""
        return Rules.of(self.activity, self.now)

    @property
    def links(self) -> StudentLinks:
        return StudentLinks(self.activity.id, self.example)

    @property
    def is_preview(self) -> bool:
        """Whether a teacher is only previewing what students see, so that nothing is stored."""
        return self.example > 0

    @property
    def next_example(self) -> int:
        """Another made-up student, with other numbers if each student has their own."""
        return self.example + 1


def teacher_of(request: Request, services: ServicesDep) -> Teacher | None:
    """The teacher signed in in this browser, or None."""
    if services.is_demonstration:
        return services.store.people.only_teacher()
    token = request.cookies.get(TEACHER_COOKIE)
    return services.store.people.find_session(token) if token else None


def queue_client(request: Request, services: ServicesDep) -> Client:
    """Whose work this request starts: a signed-in teacher's, an enrolled browser's, or a visitor's."""
    if services.is_demonstration:
        return Client(client_network(request), is_member=False)
    if teacher := teacher_of(request, services):
        return Client(f"teacher {teacher.id}")
    visitor = visitor_of(request, services.store)
    if visitor and services.store.roster.enrolments(visitor.id):
        return Client(f"student's browser {visitor.id}")
    return Client(client_network(request), is_member=False)


async def practice_is_open(request: Request, services: ServicesDep) -> bool:
    """Whether this browser may practise: only signed-in teachers if the operator has closed practice, as for exams."""
    return services.settings.practice or await run_in_threadpool(teacher_of, request, services) is not None


def practice_closed() -> HTTPException:
    """The error for a closed page (403), which says where students and teachers go instead."""
    sentence = _(
        "Practice, models, handouts, the glossary and the API are closed while this server is used for exams. "
        "Students: press Join a class, and type its code. Instructors: sign in under Teach."
    )
    return HTTPException(403, sentence)


async def require_practice(open_to_practice: PracticeOpen) -> None:
    """Raise 403 if this browser may not practise."""
    if not open_to_practice:
        raise practice_closed()


def require_teacher(teacher: MaybeTeacher) -> Teacher:
    """The signed-in teacher; raises NotSignedInError, which leads to the sign-in form."""
    if teacher is None:
        raise NotSignedInError
    return teacher


def operator(teacher: SignedIn) -> Teacher:
    """The signed-in teacher, if they are an operator; 403, with how to become one, for any other teacher."""
    if not teacher.is_operator:
        sentence = _(
            "Only an operator can see the machines and the learning platforms. Whoever installed this server can make "
            "you one with “attention-shapes teacher operator {email}”."
        )
        raise HTTPException(403, sentence.format(email=teacher.email))
    return teacher


def course_access(*, instructor: bool = False, editable: bool = False) -> Any:
    """A course for its staff, only for its teachers with `instructor`, and not if archived with `editable`.

    The address has its id.
    """

    def find(services: ServicesDep, teacher: SignedIn, course_id: int) -> CourseAccess:
        return _checked(_staff_course(services, teacher, course_id), instructor, editable)

    return Depends(find)


def activity_access(*, instructor: bool = False, editable: bool = False) -> Any:
    """An activity, drafts included, for the same people as its course."""

    def find(services: ServicesDep, teacher: SignedIn, activity_id: int) -> ActivityAccess:
        activity = services.store.activities.find(valid_id(activity_id))
        if activity is None:
            raise HTTPException(404)
        course = _staff_course(services, teacher, activity.course_id)
        access = ActivityAccess(course.course, teacher, course.role, activity, services.store.now())
        return _checked(access, instructor, editable)

    return Depends(find)


def require_editable_course(services: Services, teacher: Teacher, course_id: int) -> CourseAccess:
    """A course named in a form, for its teachers to change; like EditableCourse for one in the address."""
    return _checked(_staff_course(services, teacher, course_id), instructor=True, editable=True)


def _staff_course(services: Services, teacher: Teacher, course_id: int) -> CourseAccess:
    role = services.store.courses.role(valid_id(course_id), teacher)
    course = services.store.courses.find(course_id) if role else None
    if role is None or course is None:
        raise HTTPException(404)
    return CourseAccess(course, teacher, role)


def _checked(access: Access, instructor: bool, editable: bool) -> Access:
    if instructor and access.role != "instructor":
        raise HTTPException(403, _("Only teachers of this course can do that; you are an assistant."))
    if editable and access.course.archived_at:
        raise HTTPException(409, _("This course is archived and read-only. A teacher can restore it."))
    return access


def editable_student(services: ServicesDep, access: EditableCourse, student_id: int) -> RosterStudentAccess:
    """A student on a course's roster, for a teacher to change; 404 if there is none, or in another course."""
    return RosterStudentAccess(_find_student(services, access.course, student_id), access.course, access.teacher)


@dataclass(frozen=True)
class StudentResultsAccess:
    """A student of an activity's course, for a member of its staff."""

    at: ActivityAccess
    student: Student


def staff_student_results(services: ServicesDep, access: StaffActivity, student_id: int) -> StudentResultsAccess:
    """A student and an activity of one course, for its staff; 404 if the student isn't in the course."""
    return StudentResultsAccess(access, _find_student(services, access.course, student_id))


def editable_student_results(access: StaffStudentResults) -> StudentResultsAccess:
    """A student and an activity of one course, for its teachers to change the results."""
    _checked(access.at, instructor=True, editable=True)
    return access


def editable_courses(services: ServicesDep, teacher: SignedIn) -> tuple[Course, ...]:
    """The courses that the signed-in teacher may change: as a teacher, and not archived."""
    taught = services.store.courses.taught_by(teacher)
    return tuple(each.course for each in taught if each.can_edit)


@dataclass(frozen=True)
class MaterialAccess:
    """A teacher's worksheet or exit ticket, the signed-in teacher, and its course, if any.

    `can_edit` is True for its owner, and for the teachers of its course unless that is archived.
    """

    material: Material
    teacher: Teacher
    course: Course | None
    can_edit: bool


def material_access(*, editable: bool = False, removed: bool = False, kept: bool = True) -> Any:
    """A material for its owner or its course's staff, or its teachers alone with `editable`.

    It may have been removed with `removed`, and must have been without `kept`.
    """

    def find(services: ServicesDep, teacher: SignedIn, material_id: int) -> MaterialAccess:
        materials, number = services.store.materials, valid_id(material_id)
        material = materials.find(number) if kept else None
        if material is None and removed:
            material = materials.find_removed(number)
        if material is None:
            raise HTTPException(404)
        if material.course_id is None:
            if material.teacher_id != teacher.id:
                raise HTTPException(404)
            return MaterialAccess(material, teacher, None, True)
        access = _staff_course(services, teacher, material.course_id)
        if editable:
            _checked(access, instructor=True, editable=True)
        return MaterialAccess(material, teacher, access.course, access.can_edit)

    return Depends(find)


def shared_material(services: ServicesDep, _teacher: SignedIn, token: str) -> Material:
    """The material that a link shares, for every signed-in teacher."""
    material = services.store.materials.find_shared(token)
    if material is None:
        raise HTTPException(404, _("This link doesn’t work any more: it was withdrawn, or replaced by a newer one."))
    return material


def owner_of_new(services: Services, teacher: Teacher, course: str) -> Course | Teacher:
    """The owner of a new worksheet or exit ticket: the course if one is given, otherwise the teacher."""
    if not course:
        return teacher
    return require_editable_course(services, teacher, whole_number(course, LARGEST_ID) or 0).course


def require_student(request: Request, services: ServicesDep, activity_id: int) -> StudentAccess:
    """An activity with this browser's student in its course, by the visitor's cookie."""
    return student_access(request, services, activity_id, "")


def require_run(request: Request, services: ServicesDep, open_to_practice: PracticeOpen, run_id: str) -> None:
    """Raise 404 for an activity's run unless this browser is enrolled in its course or its staff is signed in.

    Raise 403 for a practice run if practice is closed to this browser: a run shows the true shapes.
    """
    run = services.store.find_run(run_id)
    if run is None:
        return
    if run.activity_id is None:
        if not open_to_practice:
            raise practice_closed()
        return
    token, activities = request.cookies.get(VISITOR_COOKIE), services.store.activities
    if token and activities.of_visitor(token, run.activity_id):
        return
    teacher, activity = teacher_of(request, services), activities.find(run.activity_id)
    if teacher is None or activity is None:
        raise HTTPException(404)
    _staff_course(services, teacher, activity.course_id)


def _not_enrolled() -> HTTPException:
    sentence = _(
        "You haven’t joined this class in this browser. Join with the join code, or enter your resume code at /resume."
    )
    return HTTPException(404, sentence)


def student_access(request: Request, services: Services, activity_id: int, sheet_key: str) -> StudentAccess:
    """The browser's access as a student to an activity, with their work on the sheet `sheet_key`."""
    token = request.cookies.get(VISITOR_COOKIE)
    valid = token is not None and 0 < activity_id <= LARGEST_ID
    find = services.store.activities.of_visitor
    enrolled = find(token, activity_id, sheet_key) if token and valid else None
    if enrolled is None or enrolled.activity.state == "draft":
        raise _not_enrolled()
    work = (sheet_key, enrolled.work) if enrolled.work else None
    return StudentAccess(enrolled.activity, enrolled.course, enrolled.student, services.store.now(), work=work)


@dataclass(frozen=True)
class EnrolmentAccess:
    """An enrolment of this browser, and its visitor."""

    enrolment: Enrolment
    visitor: Visitor


def browser_enrolment(services: ServicesDep, visitor: VisitorInClass, student_id: int) -> EnrolmentAccess:
    """The browser's enrolment as that student, archived courses included, with its visitor."""
    enrolments = services.store.roster.enrolments(visitor.id) if visitor else ()
    own = next((enrolment for enrolment in enrolments if enrolment.student.id == student_id), None)
    if own is None or visitor is None:
        raise _not_enrolled()
    return EnrolmentAccess(own, visitor)


def _find_student(services: Services, course: Course, student_id: int) -> Student:
    student = services.store.roster.find_student(valid_id(student_id))
    if student is None or student.course_id != course.id:
        raise HTTPException(404)
    return student


def valid_id(number: int) -> int:
    """The number, if it can be an id: from 1 to 2^31 - 1, PostgreSQL's range. Raises 404 otherwise."""
    if not 0 < number <= LARGEST_ID:
        raise HTTPException(404)
    return number


# What handlers ask for: the object that the function returns; an error that it raises is the response.
MaybeTeacher = Annotated[Teacher | None, Depends(teacher_of)]
QueueClient = Annotated[Client, Depends(queue_client)]
PracticeOpen = Annotated[bool, Depends(practice_is_open)]
SignedIn = Annotated[Teacher, Depends(require_teacher)]
Operator = Annotated[Teacher, Depends(operator)]
StaffCourse = Annotated[CourseAccess, course_access()]
InstructorCourse = Annotated[CourseAccess, course_access(instructor=True)]
EditableCourse = Annotated[CourseAccess, course_access(instructor=True, editable=True)]
EditableStudent = Annotated[RosterStudentAccess, Depends(editable_student)]
StaffActivity = Annotated[ActivityAccess, activity_access()]
StaffStudentResults = Annotated[StudentResultsAccess, Depends(staff_student_results)]
EditableStudentResults = Annotated[StudentResultsAccess, Depends(editable_student_results)]
InstructorActivity = Annotated[ActivityAccess, activity_access(instructor=True)]
EditableActivity = Annotated[ActivityAccess, activity_access(instructor=True, editable=True)]
EditableCourses = Annotated[tuple[Course, ...], Depends(editable_courses)]
ReadableMaterial = Annotated[MaterialAccess, material_access()]
EditableMaterial = Annotated[MaterialAccess, material_access(editable=True)]
MaterialToSave = Annotated[MaterialAccess, material_access(editable=True, removed=True)]
RemovedMaterial = Annotated[MaterialAccess, material_access(editable=True, removed=True, kept=False)]
SharedMaterial = Annotated[Material, Depends(shared_material)]
StudentAccessDep = Annotated[StudentAccess, Depends(in_threads("class")(require_student))]
BrowserEnrolment = Annotated[EnrolmentAccess, Depends(in_threads("class")(browser_enrolment))]
