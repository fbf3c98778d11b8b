"""The database: tables, migrations and named questions. It grades nothing."""

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
    Attendance,
    ClassAttempt,
    ClassDraft,
    Classwork,
    Graded,
    NoAttemptsLeftError,
    SheetProgress,
    StoredClassDraft,
    SubmissionKey,
    TicketAnswer,
    VariantSizes,
)
from .courses import Course, Courses, Enrolment, StaffMember, Student, TaughtCourse
from .live import LastAttempt, Live, Spotlight, StoredMarks
from .people import AccountLink, LinkKind, People, Role, Teacher
from .regrades import NewMarks, OldMarks, Regrade, Regrades
from .store import Answers, KeptModel, PracticeAttempt, PracticeDraft, Run, Store, Visitor

__all__ = [
    "AccountLink", "Activities", "Activity", "Answers", "Attendance", "AuditAction", "AuditEntry", "AuditLog",
    "ClassAttempt", "ClassDraft", "Classwork", "Content", "Course", "Courses", "Enrolment", "FrozenTicket",
    "FrozenWorksheet", "Graded", "KeptModel", "LastAttempt", "LinkKind", "Live", "NewMarks", "NoAttemptsLeftError",
    "OldMarks", "People", "Phase", "Plan", "Policies", "PoliciesError", "PracticeAttempt", "PracticeDraft", "Regrade",
    "Regrades", "Role", "Run", "SheetProgress", "Spotlight", "StaffMember", "State", "Store", "StoredClassDraft",
    "StoredMarks", "Student", "SubmissionKey", "TaughtCourse", "Teacher", "TicketAnswer", "VariantSizes", "Visitor",
]  # fmt: skip
