"""The database: tables, migrations and named queries. It grades nothing."""

from app.activities.activity import Activity, Phase, Plan, Policies, PoliciesError, State
from app.activities.content import Content, FrozenTicket, FrozenWorksheet, Snapshot, question_name, questions_asked
from app.activities.work import (
    Answers,
    Attendance,
    ClassAttempt,
    ClassDraft,
    ClassSheetKey,
    Graded,
    NoAttemptsLeftError,
    SheetProgress,
    Stamp,
    StoredClassDraft,
    TakenIn,
    UnfinishedWork,
    VariantSizes,
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
from .store import PracticeAttempt, PracticeDraft, Run, Store, StoredModel, Visitor

__all__ = [
    "AccountLink",
    "Activities",
    "Activity",
    "Answers",
    "AttemptScore",
    "AttemptedSheet",
    "Attendance",
    "AuditAction",
    "AuditEntry",
    "AuditLog",
    "ClassAttempt",
    "ClassDraft",
    "ClassSheetKey",
    "Classwork",
    "Content",
    "Course",
    "Courses",
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
    "NewMarks",
    "NoAttemptsLeftError",
    "OldMarks",
    "People",
    "Phase",
    "Plan",
    "Policies",
    "PoliciesError",
    "PracticeAttempt",
    "PracticeDraft",
    "Regrade",
    "Regrades",
    "Role",
    "Roster",
    "Run",
    "SheetProgress",
    "Snapshot",
    "Spotlight",
    "StaffMember",
    "Stamp",
    "State",
    "Store",
    "StoredClassDraft",
    "StoredMarks",
    "StoredModel",
    "Student",
    "TakenIn",
    "TaughtCourse",
    "Teacher",
    "TicketAnswer",
    "UnfinishedWork",
    "VariantSizes",
    "Visitor",
    "question_name",
    "questions_asked",
]  # fmt: skip
