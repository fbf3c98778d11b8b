"""Who may do what with which object: handlers get their objects only from these dependencies.

What somebody may not know of doesn't exist for them (404); what they may see but not do is refused (403).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated

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
        "Students: press Enter code, and type the code of your class. Instructors: sign in under Teach."
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
            "Only an operator can see the machines and their jobs. Whoever installed this server can make you one "
            "with “attention-shapes teacher operator {email}”."
        )
        raise HTTPException(403, sentence.format(email=teacher.email))
    return teacher


def staff_course(services: ServicesDep, teacher: SignedIn, course_id: int) -> CourseAccess:
    """A course for its staff: teachers and assistants."""
    role, course = _require_staff(services, course_id, teacher)
    return CourseAccess(course, teacher, role)


def instructor_course(access: StaffCourse) -> CourseAccess:
    """A course, archived or not, for its teachers; assistants get 403, others 404."""
    _require_instructor(access.role)
    return access


def editable_course(access: InstructorCourse) -> CourseAccess:
    """A course for its teachers, to change it; assistants get 403, others 404, and 409 if it is archived."""
    _require_unarchived(access.course)
    return access


def editable_student(services: ServicesDep, access: EditableCourse, student_id: int) -> RosterStudentAccess:
    """A student on a course's roster, for a teacher to change; 404 if there is none, or in another course."""
    return RosterStudentAccess(_find_student(services, access.course, student_id), access.course, access.teacher)


def staff_activity(services: ServicesDep, teacher: SignedIn, activity_id: int) -> ActivityAccess:
    """An activity for its course's staff, including drafts and archived courses."""
    activity = services.store.activities.find(valid_id(activity_id))
    if activity is None:
        raise HTTPException(404)
    role, course = _require_staff(services, activity.course_id, teacher)
    return ActivityAccess(course, teacher, role, activity, services.store.now())


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
    _require_instructor(access.at.role)
    _require_unarchived(access.at.course)
    return access


def instructor_activity(access: StaffActivity) -> ActivityAccess:
    """An activity for its course's teachers, even if the course is archived; assistants get 403, others 404."""
    _require_instructor(access.role)
    return access


def require_editable_course(services: Services, teacher: Teacher, course_id: int) -> CourseAccess:
    """A course named in a form, for its teachers to change; like EditableCourse for one in the address."""
    return editable_course(instructor_course(staff_course(services, teacher, course_id)))


def editable_activity(access: StaffActivity) -> ActivityAccess:
    """An activity for its course's teachers, to change it; assistants get 403, and 409 if it is archived."""
    _require_instructor(access.role)
    _require_unarchived(access.course)
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


def readable_material(services: ServicesDep, teacher: SignedIn, material_id: int) -> MaterialAccess:
    """A material for its owner or its course's staff, to read and copy, even if the course is archived."""
    material = services.store.materials.find(valid_id(material_id))
    if material is None:
        raise HTTPException(404)
    return _material_access(services, teacher, material)


def editable_material(access: ReadableMaterial) -> MaterialAccess:
    """A material for its owner or its course's teachers, to change it."""
    if access.course and not access.can_edit:
        _require_unarchived(access.course)
        _require_instructor("assistant")
    return access


def material_to_save(services: ServicesDep, teacher: SignedIn, material_id: int) -> MaterialAccess:
    """A material to save, even if it was removed meanwhile."""
    materials = services.store.materials
    material = materials.find(valid_id(material_id)) or materials.find_removed(material_id)
    if material is None:
        raise HTTPException(404)
    return editable_material(_material_access(services, teacher, material))


def removed_material(services: ServicesDep, teacher: SignedIn, material_id: int) -> MaterialAccess:
    """A removed material, to restore it."""
    material = services.store.materials.find_removed(valid_id(material_id))
    if material is None:
        raise HTTPException(404)
    return editable_material(_material_access(services, teacher, material))


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
    _require_staff(services, activity.course_id, teacher)


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


def _material_access(services: Services, teacher: Teacher, material: Material) -> MaterialAccess:
    if material.course_id is None:
        if material.teacher_id != teacher.id:
            raise HTTPException(404)
        return MaterialAccess(material, teacher, None, True)
    role, course = _require_staff(services, material.course_id, teacher)
    return MaterialAccess(material, teacher, course, CourseAccess(course, teacher, role).can_edit)


def _find_student(services: Services, course: Course, student_id: int) -> Student:
    student = services.store.roster.find_student(valid_id(student_id))
    if student is None or student.course_id != course.id:
        raise HTTPException(404)
    return student


def _require_staff(services: Services, course_id: int, teacher: Teacher) -> tuple[Role, Course]:
    role = services.store.courses.role(valid_id(course_id), teacher)
    course = services.store.courses.find(course_id) if role else None
    if role is None or course is None:
        raise HTTPException(404)
    return role, course


def _require_instructor(role: Role) -> None:
    if role != "instructor":
        raise HTTPException(403, _("Only teachers of this course can do that; you are an assistant."))


def _require_unarchived(course: Course) -> None:
    if course.archived_at:
        raise HTTPException(409, _("This course is archived and read-only. A teacher can restore it."))


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
StaffCourse = Annotated[CourseAccess, Depends(staff_course)]
InstructorCourse = Annotated[CourseAccess, Depends(instructor_course)]
EditableCourse = Annotated[CourseAccess, Depends(editable_course)]
EditableStudent = Annotated[RosterStudentAccess, Depends(editable_student)]
StaffActivity = Annotated[ActivityAccess, Depends(staff_activity)]
StaffStudentResults = Annotated[StudentResultsAccess, Depends(staff_student_results)]
EditableStudentResults = Annotated[StudentResultsAccess, Depends(editable_student_results)]
InstructorActivity = Annotated[ActivityAccess, Depends(instructor_activity)]
EditableActivity = Annotated[ActivityAccess, Depends(editable_activity)]
EditableCourses = Annotated[tuple[Course, ...], Depends(editable_courses)]
ReadableMaterial = Annotated[MaterialAccess, Depends(readable_material)]
EditableMaterial = Annotated[MaterialAccess, Depends(editable_material)]
MaterialToSave = Annotated[MaterialAccess, Depends(material_to_save)]
RemovedMaterial = Annotated[MaterialAccess, Depends(removed_material)]
SharedMaterial = Annotated[Material, Depends(shared_material)]
StudentAccessDep = Annotated[StudentAccess, Depends(in_threads("class")(require_student))]
BrowserEnrolment = Annotated[EnrolmentAccess, Depends(in_threads("class")(browser_enrolment))]
