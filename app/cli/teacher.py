"""The commands `teacher` and `sample-course`: accounts of teachers, and a course with simulated students."""

from __future__ import annotations

import argparse

from app.classes.sample_course import add_sample_course
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.store import AuditAction, Store, Teacher
from app.store.people import parse_email
from app.translation import gettext as _

from .database import link_to, open_store
from .terminal import Commands, InputError, open_library, read_settings


def add_to(commands: Commands) -> None:
    """Add `teacher add|reset|operator [EMAIL] [--name] [--remove]` and `sample-course [EMAIL] [--remove]`."""
    teacher = commands.add(
        "teacher",
        _change_teacher,
        _("Create a teacher’s account, or a link to reset a password; or make a teacher an operator."),
        printable=False,
    )
    teacher.add_argument(
        "action",
        metavar="add|reset|operator",
        choices=("add", "reset", "operator"),
        help=_("add an account, reset its password, or let it see machines and jobs; “operator” alone lists who may"),
    )
    teacher.add_argument("email", metavar="EMAIL", nargs="?")
    teacher.add_argument("--name", default="", help=_("with add: the name that colleagues see"))
    teacher.add_argument("--remove", action="store_true", help=_("with operator: the teacher is no longer one"))
    about = _("Create a sample course with simulated students.")
    sample = commands.add("sample-course", _add_or_remove_sample, about, printable=False)
    sample.add_argument(
        "email", metavar="EMAIL", nargs="?", help=_("the teacher’s e-mail; optional if there is only one teacher")
    )
    sample.add_argument("--remove", action="store_true", help=_("remove the sample course instead"))


def _change_teacher(parsed: argparse.Namespace) -> None:
    if parsed.remove and parsed.action != "operator":
        raise InputError(_("“--remove” goes with “teacher operator EMAIL” only."))
    if parsed.action == "operator" and not (parsed.email or parsed.remove):
        with open_store(read_settings()) as store:
            emails = [teacher.email for teacher in store.people.operators()]
        print("\n".join(emails) or _("There is no operator: “teacher operator EMAIL” makes a teacher one."))
        return
    email = parse_email(parsed.email or "")
    if email is None:
        raise InputError(_("“{email}” is not an e-mail address.").format(email=(parsed.email or "")[:60]))
    if parsed.action == "operator":
        _change_operator(email, not parsed.remove)
    else:
        _print_password_link(parsed, email)


def _change_operator(email: str, is_operator: bool) -> None:
    with open_store(read_settings()) as store, store.transaction():
        teacher = _existing_teacher(store, email)
        store.people.set_operator(teacher, is_operator)
        action = AuditAction.OPERATOR_ADDED if is_operator else AuditAction.OPERATOR_REMOVED
        store.audit_log.record("terminal", action, teacher)
    made, removed = _("{email} is an operator now."), _("{email} is no longer an operator.")
    print((made if is_operator else removed).format(email=email))


def _existing_teacher(store: Store, email: str) -> Teacher:
    teacher = store.people.find_teacher(email)
    if teacher is None:
        problem = _("No account has the address {email}: “teacher add {email}” creates one.")
        raise InputError(problem.format(email=email))
    return teacher


def _print_password_link(parsed: argparse.Namespace, email: str) -> None:
    settings = read_settings()
    with open_store(settings) as store, store.transaction():
        if parsed.action == "add" and store.people.add_teacher(email, parsed.name[:100]) is None:
            problem = _("{email} already has an account: “teacher reset {email}” creates a link for a new password.")
            raise InputError(problem.format(email=email))
        teacher = _existing_teacher(store, email)
        token = store.people.add_link("reset", email)
        action = AuditAction.TEACHER_ADDED if parsed.action == "add" else AuditAction.PASSWORD_LINK_CREATED
        store.audit_log.record("terminal", action, teacher)
    done = _("Send {email} this link to set a password. It works once, within two days:")
    print(f"{done.format(email=email)}\n{link_to(settings, token)}")


def _add_or_remove_sample(parsed: argparse.Namespace) -> None:
    with open_store(read_settings()) as store:
        teacher = store.people.find_teacher(parsed.email) if parsed.email else store.people.only_teacher()
        if teacher is None:
            problem = _(
                "Name a teacher: “sample-course EMAIL”, with the e-mail of an account. “teacher add EMAIL” creates one."
            )
            raise InputError(problem)
        if parsed.remove:
            samples = [taught.course for taught in store.courses.taught_by(teacher) if taught.course.sample]
            for course in samples:
                with store.audit_log.recording("terminal", AuditAction.SAMPLE_COURSE_DELETED, course):
                    store.courses.delete(course)
            nothing = _("{email} has no sample course.").format(email=teacher.email)
            print(_("The sample course was removed.") if samples else nothing)
            return
        had = any(taught.course.sample for taught in store.courses.taught_by(teacher))
        course = add_sample_course(open_library(), load_tickets(PROJECT / "worksheets"), store, teacher, "terminal")
        done = _("Created “{course}” for {email}. “sample-course --remove” removes it.")
        already = _("{email} has “{course}” already. “sample-course --remove” removes it.")
        print((already if had else done).format(course=course.title, email=teacher.email))
