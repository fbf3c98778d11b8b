"""The database: tables, migrations and named queries. It grades nothing."""

from .activities import (
    Activities,
    Activity,
    Content,
    FrozenTicket,
    FrozenWorksheet,
    Phase,
    Plan,
    Policies,
    PoliciesError,
    State,
)
from .audit import AuditAction, AuditEntry, AuditLog
from .classwork import (
    Answers,
    Attendance,
    ClassAttempt,
    ClassDraft,
    ClassSheetKey,
    Classwork,
    Graded,
    NoAttemptsLeftError,
    SheetProgress,
    StoredClassDraft,
    VariantSizes,
)
from .courses import Course, Courses, StaffMember, TaughtCourse
from .exit_tickets import ExitTickets, TicketAnswer
from .live import LastAttempt, Live, Spotlight, StoredMarks
from .people import AccountLink, LinkKind, People, Role, Teacher
from .regrades import NewMarks, OldMarks, Regrade, Regrades
from .roster import Enrolment, Roster, Student
from .store import PracticeAttempt, PracticeDraft, Run, Store, StoredModel, Visitor

__all__ = [
    "AccountLink", "Activities", "Activity", "Answers", "Attendance", "AuditAction", "AuditEntry", "AuditLog",
    "ClassAttempt", "ClassDraft", "ClassSheetKey", "Classwork", "Content", "Course", "Courses", "Enrolment",
    "ExitTickets", "FrozenTicket", "FrozenWorksheet", "Graded", "LastAttempt", "LinkKind", "Live", "NewMarks",
    "NoAttemptsLeftError", "OldMarks", "People", "Phase", "Plan", "Policies", "PoliciesError", "PracticeAttempt",
    "PracticeDraft", "Regrade", "Regrades", "Role", "Roster", "Run", "SheetProgress", "Spotlight", "StaffMember",
    "State", "Store", "StoredClassDraft", "StoredMarks", "StoredModel", "Student", "TaughtCourse", "Teacher",
    "TicketAnswer", "VariantSizes", "Visitor",
]  # fmt: skip
