"""Verbs for those who teach: accounts, and the sample course."""

from __future__ import annotations

import argparse

from app.classes.sample_course import add_sample_course
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.store import AuditAction, Store, Teacher
from app.store.people import as_email

from .opening import link_to, opened_store
from .terminal import InputError, Verbs, open_library, read_settings


def add_to(verbs: Verbs) -> None:
    """Add the verbs of this module."""
    teacher = verbs.add("teacher", _teacher, "Make accounts for those who teach.", printable=False)
    teacher.add_argument("action", choices=("add", "reset"), help="add one, or make a link that sets a new password")
    teacher.add_argument("email", metavar="EMAIL")
    teacher.add_argument("--name", default="", help="what colleagues see")
    sample = verbs.add(
        "sample-course", _sample, "Make a course with simulated students, to look around.", printable=False
    )
    sample.add_argument("email", metavar="EMAIL", nargs="?", help="whose it is; may be left out where one teacher is")
    sample.add_argument("--remove", action="store_true", help="remove it instead")


def _teacher(parsed: argparse.Namespace) -> None:
    email, settings = as_email(parsed.email), read_settings()
    if email is None:
        raise InputError(f"“{parsed.email[:60]}” is no e-mail address.")
    with opened_store(settings) as store:
        if parsed.action == "add" and store.people.add_teacher(email, parsed.name[:100]) is None:
            raise InputError(f"{email} has an account already; teacher reset {email} makes a link for a new password.")
        teacher = store.people.find_teacher(email)
        if teacher is None:
            raise InputError(f"Nobody has the address {email}; teacher add {email} makes an account.")
        token = store.people.add_link("reset", email)
        action = AuditAction.TEACHER_ADDED if parsed.action == "add" else AuditAction.PASSWORD_LINK_CREATED
        store.audit_log.record("terminal", action, teacher)
    print(f"With this link, once and within two days, {email} sets a password:\n{link_to(settings, token)}")


def _sample(parsed: argparse.Namespace) -> None:
    with opened_store(read_settings()) as store:
        teacher = _whose(store, parsed.email)
        if parsed.remove:
            _remove_samples(store, teacher)
            return
        course = add_sample_course(open_library(), load_tickets(PROJECT / "worksheets"), store, teacher)
        store.audit_log.record("terminal", AuditAction.SAMPLE_COURSE_CREATED, course)
        print(f"“{course.title}” is in the list of {teacher.email}; sample-course --remove removes it.")


def _remove_samples(store: Store, teacher: Teacher) -> None:
    found = [taught.course for taught in store.courses.taught_by(teacher) if taught.course.sample]
    for course in found:
        store.courses.delete(course)
        store.audit_log.record("terminal", AuditAction.SAMPLE_COURSE_DELETED, course)
    print("It is removed." if found else f"There is no sample course in the list of {teacher.email}.")


def _whose(store: Store, email: str | None) -> Teacher:
    """The teacher of that address, or the only one there is."""
    found = store.people.find_teacher(email) if email else store.people.only_teacher()
    if found is None:
        raise InputError("Say whose it is: sample-course EMAIL, of somebody with an account (teacher add makes one).")
    return found
