"""The database: tables, migrations and named queries. It grades nothing."""

from app.activities.activity import Activity, Phase, Plan, Policies, PoliciesError, State
from app.activities.content import Content, FrozenTicket, FrozenWorksheet, Snapshot, question_name, questions_asked
from app.activities.work import (
    Answers,
    Attempt,
    Attendance,
    ClassSheetKey,
    Draft,
    Edit,
    Graded,
    NewAttempt,
    PracticeSheetKey,
    SheetProgress,
    StudentDraft,
    UnfinishedWork,
    VariantSizes,
    WorkChangedError,
    WorkDone,
)

from .activities import Activities
from .audit import AuditAction, AuditEntry, AuditLog
from .classwork import Classwork
from .courses import Course, Courses, StaffMember, TaughtCourse
from .exit_tickets import ExitTickets, TicketAnswer
from .grades import AttemptedSheet, AttemptScore, GradeChange, Grades
from .live import LastAttempt, Live, Spotlight, StoredMarks
from .materials import Material, MaterialKind, Materials, MaterialSave, MaterialVersion
from .people import AccountLink, LinkKind, People, Role, Teacher
from .regrades import NewMarks, OldMarks, Regrade, Regrades
from .roster import Enrolment, Roster, Student
from .store import Run, Store, StoredModel, Visitor

__all__ = [
    "AccountLink",
    "Activities",
    "Activity",
    "Answers",
    "Attempt",
    "AttemptScore",
    "AttemptedSheet",
    "Attendance",
    "AuditAction",
    "AuditEntry",
    "AuditLog",
    "ClassSheetKey",
    "Classwork",
    "Content",
    "Course",
    "Courses",
    "Draft",
    "Edit",
    "Enrolment",
    "ExitTickets",
    "FrozenTicket",
    "FrozenWorksheet",
    "GradeChange",
    "Graded",
    "Grades",
    "LastAttempt",
    "LinkKind",
    "Live",
    "Material",
    "MaterialKind",
    "MaterialSave",
    "MaterialVersion",
    "Materials",
    "NewAttempt",
    "NewMarks",
    "OldMarks",
    "People",
    "Phase",
    "Plan",
    "Policies",
    "PoliciesError",
    "PracticeSheetKey",
    "Regrade",
    "Regrades",
    "Role",
    "Roster",
    "Run",
    "SheetProgress",
    "Snapshot",
    "Spotlight",
    "StaffMember",
    "State",
    "Store",
    "StoredMarks",
    "StoredModel",
    "Student",
    "StudentDraft",
    "TaughtCourse",
    "Teacher",
    "TicketAnswer",
    "UnfinishedWork",
    "VariantSizes",
    "Visitor",
    "WorkChangedError",
    "WorkDone",
    "question_name",
    "questions_asked",
]  # fmt: skip
