"""The database: tables, migrations and named questions. It grades nothing."""

from .activities import Activities, Activity, Content, Item, Phase, Plan, Policies, PoliciesError, State, Ticket
from .classwork import Attendance, Classwork, Fixed, Graded, Progress, Spot, TicketAnswer, TriesUsedUpError, Try
from .courses import Course, Courses, Seat, StaffMember, Student, TaughtCourse
from .people import Link, LinkKind, People, Role, Teacher
from .store import Answers, Attempt, Draft, KeptModel, Learner, Run, Store

__all__ = [
    "Activities", "Activity", "Answers", "Attempt", "Attendance", "Classwork", "Content", "Course", "Courses", "Draft",
    "Fixed", "Graded", "Item", "KeptModel", "Learner", "Link", "LinkKind", "People", "Phase", "Plan", "Policies",
    "PoliciesError", "Progress", "Role", "Run", "Seat", "Spot", "StaffMember", "State", "Store", "Student",
    "TaughtCourse", "Teacher", "Ticket", "TicketAnswer", "TriesUsedUpError", "Try",
]  # fmt: skip
