"""The database: tables, migrations and named questions. It grades nothing."""

from .activities import Activities, Activity, Content, Item, Phase, Plan, Policies, PoliciesError, State, Ticket
from .classwork import Attendance, Classwork, Fixed, Graded, Progress, Spot, TicketAnswer, TriesUsedUpError, Try
from .courses import Course, Courses, Seat, StaffMember, Student, TaughtCourse
from .live import Held, LastTry, Live, Spotlight
from .people import Link, LinkKind, Noted, People, Role, Teacher
from .regrades import OldMarks, Regrade, Regrades
from .store import Answers, Attempt, Draft, KeptModel, Learner, Run, Store

__all__ = [
    "Activities", "Activity", "Answers", "Attempt", "Attendance", "Classwork", "Content", "Course", "Courses",
    "Draft", "Fixed", "Graded", "Held", "Item", "KeptModel", "LastTry", "Learner", "Link", "LinkKind", "Live", "Noted",
    "OldMarks", "People", "Phase", "Plan", "Policies", "PoliciesError", "Progress", "Regrade", "Regrades", "Role",
    "Run", "Seat", "Spot", "Spotlight", "StaffMember", "State", "Store", "Student", "TaughtCourse", "Teacher",
    "Ticket", "TicketAnswer", "TriesUsedUpError", "Try",
]  # fmt: skip
