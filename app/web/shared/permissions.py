"""Who may do what with which object. Handlers get the objects they work on from these dependencies, nowhere else.

What somebody may not know of does not exist for them (404); what they know of and may not do is refused (403).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from app.store import Activity, Course, Enrolment, Role, Student, Teacher, Visitor
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from app.web.shared.services import Services, ServicesDep
from app.web.shared.visitor import MaybeVisitor

LARGEST_ID = 2**31 - 1


class NotSignedInError(Exception):
    """The page is for teachers, and nobody is signed in here."""


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
    """An activity of the course."""

    activity: Activity


@dataclass(frozen=True)
class StudentAccess:
    """An activity as one of its students sits before it."""

    activity: Activity
    course: Course
    student: Student


def teacher_of(request: Request, services: ServicesDep) -> Teacher | None:
    """Whoever is signed in in this browser."""
    token = request.cookies.get(TEACHER_COOKIE)
    return services.store.people.find_session(token) if token else None


MaybeTeacher = Annotated[Teacher | None, Depends(teacher_of)]


def signed_in(teacher: MaybeTeacher) -> Teacher:
    if teacher is None:
        raise NotSignedInError
    return teacher


SignedIn = Annotated[Teacher, Depends(signed_in)]


def staff_course(services: ServicesDep, teacher: SignedIn, course_id: int) -> CourseAccess:
    """For the staff of the course."""
    role, course = _staffed(services, course_id, teacher)
    return CourseAccess(course, teacher, role)


StaffCourse = Annotated[CourseAccess, Depends(staff_course)]


def instructor_course(services: ServicesDep, access: StaffCourse) -> CourseAccess:
    """For the instructors of the course, archived or not."""
    _only_instructors(services, access.role)
    return access


InstructorCourse = Annotated[CourseAccess, Depends(instructor_course)]


def editable_course(services: ServicesDep, access: InstructorCourse) -> CourseAccess:
    """For the instructors of the course, unless it is archived."""
    _only_current(services, access.course)
    return access


EditableCourse = Annotated[CourseAccess, Depends(editable_course)]


def editable_student(services: ServicesDep, access: EditableCourse, student_id: int) -> RosterStudentAccess:
    """For the instructors of the student's course."""
    student = services.store.roster.find_student(_known(student_id))
    if student is None or student.course_id != access.course.id:
        raise HTTPException(404)
    return RosterStudentAccess(student, access.course, access.teacher)


EditableStudent = Annotated[RosterStudentAccess, Depends(editable_student)]


def staff_activity(services: ServicesDep, teacher: SignedIn, activity_id: int) -> ActivityAccess:
    """For the staff of the activity's course."""
    activity = services.store.activities.find(_known(activity_id))
    if activity is None:
        raise HTTPException(404)
    role, course = _staffed(services, activity.course_id, teacher)
    return ActivityAccess(course, teacher, role, activity)


StaffActivity = Annotated[ActivityAccess, Depends(staff_activity)]


@dataclass(frozen=True)
class StudentResultsAccess:
    """A student of an activity's course, with the activity and who looks at it."""

    at: ActivityAccess
    student: Student


def staff_student_results(services: ServicesDep, access: StaffActivity, student_id: int) -> StudentResultsAccess:
    """For the staff of the course of both."""
    student = services.store.roster.find_student(_known(student_id))
    if student is None or student.course_id != access.course.id:
        raise HTTPException(404)
    return StudentResultsAccess(access, student)


StaffStudentResults = Annotated[StudentResultsAccess, Depends(staff_student_results)]


def editable_activity(services: ServicesDep, access: StaffActivity) -> ActivityAccess:
    """For the instructors of the activity's course, unless it is archived."""
    _only_instructors(services, access.role)
    _only_current(services, access.course)
    return access


EditableActivity = Annotated[ActivityAccess, Depends(editable_activity)]


def require_student(request: Request, services: ServicesDep, activity_id: int) -> StudentAccess:
    """For the students of the activity's course, once it is no draft; in an archived one it is closed."""
    token = request.cookies.get(VISITOR_COOKIE)
    found = (
        services.store.activities.of_visitor(token, activity_id) if token and 0 < activity_id <= LARGEST_ID else None
    )
    if found is None or found[0].state == "draft":
        raise HTTPException(404, services.library.wording.say("class", "no-enrolment"))
    activity, course, student = found
    return StudentAccess(replace(activity, state="closed") if course.archived_at else activity, course, student)


StudentAccessDep = Annotated[StudentAccess, Depends(require_student)]


@dataclass(frozen=True)
class EnrolmentAccess:
    """An enrolment, and the browser that has it."""

    enrolment: Enrolment
    visitor: Visitor


def own_enrolment(services: ServicesDep, visitor: MaybeVisitor, student_id: int) -> EnrolmentAccess:
    """For the browser that sits as this student."""
    enrolments = services.store.roster.enrolments(visitor.id) if visitor else ()
    found = next((enrolment for enrolment in enrolments if enrolment.student.id == student_id), None)
    if found is None or visitor is None:
        raise HTTPException(404, services.library.wording.say("class", "no-enrolment"))
    return EnrolmentAccess(found, visitor)


OwnEnrolment = Annotated[EnrolmentAccess, Depends(own_enrolment)]


def _staffed(services: Services, course_id: int, teacher: Teacher) -> tuple[Role, Course]:
    role = services.store.courses.role(_known(course_id), teacher)
    course = services.store.courses.find(course_id) if role else None
    if role is None or course is None:
        raise HTTPException(404)
    return role, course


def _only_instructors(services: Services, role: Role) -> None:
    if role != "instructor":
        raise HTTPException(403, services.library.wording.say("class", "instructors-only"))


def _only_current(services: Services, course: Course) -> None:
    if course.archived_at:
        raise HTTPException(409, services.library.wording.say("class", "archived"))


def _known(number: int) -> int:
    """A number that can be an id; raises 404 for one that no database has."""
    if not 0 < number <= LARGEST_ID:
        raise HTTPException(404)
    return number
