"""The command `teacher`: accounts of teachers, links for their passwords, and who is an operator."""

from __future__ import annotations

import argparse

from app.store import AuditAction, Store, Teacher
from app.store.people import parse_email
from app.translation import gettext as _

from .database import link_to, open_store
from .terminal import Commands, InputError, read_settings


def add_to(commands: Commands) -> None:
    """Add the command `teacher add|reset|operator [EMAIL] [--name] [--remove]`, which has no --json."""
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
