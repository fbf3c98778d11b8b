"""The database: tables, migrations and named queries. It grades nothing."""

from app.activities.activity import Activity, Phase, Plan, Policies, PoliciesError, Projection, State
from app.activities.content import Content, FrozenTicket, FrozenWorksheet, question_name, questions_asked
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
from .classwork import Classwork, LastAttempt, StoredMarks
from .courses import Course, Courses, StaffMember, TaughtCourse
from .exit_tickets import ExitTickets, TicketAnswer
from .grades import AttemptedSheet, AttemptScore, GradeChange, Grades
from .lti import Launch, Lti, LtiCourse, LtiLink, Platform
from .materials import Material, MaterialKind, Materials, MaterialSave, MaterialVersion
from .people import AccountLink, LinkKind, People, Role, Teacher
from .regrades import NewMarks, OldMarks, Regrade, Regrades
from .roster import Enrolment, Roster, Student
from .store import Run, Store, StoredModel, Visitor
