"""Teachers, how they get an account, and their sessions."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import sqlalchemy as sa

from .questions import Questions, added_id, columns, hashed, now
from .tables import account_links, sessions, staff, teachers

Role = Literal["instructor", "assistant"]
LinkKind = Literal["setup", "invite", "reset"]

IDLE = timedelta(hours=12)
LONGEST = timedelta(days=30)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
LINK_LASTS: dict[LinkKind, timedelta] = {
    "setup": timedelta(days=7),
    "invite": timedelta(days=14),
    "reset": timedelta(days=2),
}
MAILED_LASTS = timedelta(hours=1)  # a link that anybody may ask for
MAILED_MOST = 3  # of them that live beside each other


@dataclass(frozen=True)
class Teacher:
    """Someone with an account; without a password, nobody can sign in to it yet."""

    id: int
    email: str
    name: str
    password_hash: str | None


@dataclass(frozen=True)
class AccountLink:
    """A link that can still be followed, once; `email` is empty where whoever follows it may choose."""

    id: int
    kind: LinkKind
    email: str
    course_id: int | None
    role: Role | None


class People(Questions):
    """Who teaches here."""

    def has_teacher(self) -> bool:
        """Whether anybody can sign in at all."""
        return self._one(sa.select(teachers.c.id).where(teachers.c.password_hash.is_not(None)).limit(1)) is not None

    def find_teacher(self, email: str) -> Teacher | None:
        """The teacher of that address, in whatever case it is written."""
        row = self._one(sa.select(*columns(teachers, Teacher)).where(teachers.c.email == email.lower()))
        return Teacher(*row) if row else None

    def only_teacher(self) -> Teacher | None:
        """The teacher, where there is one alone."""
        rows = self._all(sa.select(*columns(teachers, Teacher)).limit(2))
        return Teacher(*rows[0]) if len(rows) == 1 else None

    def add_teacher(self, email: str, name: str) -> Teacher | None:
        """A teacher without a password; None if the address is taken."""
        values = {"email": email.lower(), "name": name, "created_at": now()}
        insert = self._insert(teachers).values(values).on_conflict_do_nothing(index_elements=[teachers.c.email])
        with self._writing() as connection:
            added = connection.scalar(insert.returning(teachers.c.id))
        return None if added is None else self.find_teacher(email)

    def add_link(self, kind: LinkKind, email: str = "", course_id: int | None = None, role: Role | None = None) -> str:
        """The token of a new link. Of set-up links, and of those to reset one password, the newest alone works."""
        token = secrets.token_urlsafe(32)
        values = {"kind": kind, "token_hash": hashed(token), "email": email.lower(), "course_id": course_id,
                  "role": role, "expires_at": now() + LINK_LASTS[kind]}  # fmt: skip
        with self._writing() as connection:
            if kind != "invite":
                self._void(connection, kind, account_links.c.email == email.lower())
            connection.execute(sa.insert(account_links).values(values))
        return token

    def add_mailed_link(self, teacher: Teacher) -> str | None:
        """The token of a link that sets a new password within an hour; None where three were made in the last hour.

        Since anybody may ask for it, it leaves the teacher's other links as they are.
        """
        token, ends = secrets.token_urlsafe(32), now() + MAILED_LASTS
        values = {"kind": "reset", "token_hash": hashed(token), "email": teacher.email, "expires_at": ends}
        recent = (
            account_links.c.email == teacher.email,
            account_links.c.kind == "reset",
            account_links.c.expires_at.between(now(), ends),
        )
        with self._writing() as connection:
            made = connection.scalar(sa.select(sa.func.count()).select_from(account_links).where(*recent)) or 0
            if made >= MAILED_MOST:
                return None
            connection.execute(sa.insert(account_links).values(values))
        return token

    def drop_link(self, token: str) -> None:
        """Forget a link that reached nobody."""
        self._write(sa.delete(account_links).where(account_links.c.token_hash == hashed(token)))

    def find_link(self, token: str) -> AccountLink | None:
        """The link of a token, unless it was used, is too old or was replaced."""
        usable = (account_links.c.used_at.is_(None), account_links.c.expires_at > now())
        row = self._one(
            sa.select(*columns(account_links, AccountLink)).where(account_links.c.token_hash == hashed(token), *usable)
        )
        return AccountLink(*row) if row else None

    def follow_link(
        self, link: AccountLink, email: str, name: str = "", password_hash: str | None = None
    ) -> Teacher | None:
        """Do what a link is for, once: set a password, make the teacher if there is none, put them on the staff.

        Without a password the teacher must be there. None if somebody else followed the link just before.
        """
        with self._writing() as connection:
            used = (
                sa.update(account_links)
                .where(account_links.c.id == link.id, account_links.c.used_at.is_(None))
                .values(used_at=now())
            )
            if not connection.execute(used).rowcount:
                return None
            teacher_id = connection.scalar(sa.select(teachers.c.id).where(teachers.c.email == email.lower()))
            if teacher_id is None:
                row = {"email": email.lower(), "name": name, "created_at": now()}
                teacher_id = added_id(connection, teachers, row)
            if password_hash:
                self._set_password(connection, teacher_id, name, password_hash)
                self._void(connection, "reset", account_links.c.email == email.lower())
            if link.course_id is not None:
                self._put_on_staff(connection, link.course_id, teacher_id, link.role or "assistant")
        return self.find_teacher(email)

    def _set_password(self, connection: sa.Connection, teacher_id: int, name: str, password_hash: str) -> None:
        values = {"password_hash": password_hash} | ({"name": name} if name else {})
        connection.execute(sa.update(teachers).where(teachers.c.id == teacher_id).values(values))
        theirs = (sessions.c.teacher_id == teacher_id, sessions.c.ended_at.is_(None))
        connection.execute(sa.update(sessions).where(*theirs).values(ended_at=now()))
        self._void(connection, "setup")  # there is somebody now

    def _void(self, connection: sa.Connection, kind: LinkKind, *conditions: sa.ColumnElement[bool]) -> None:
        """Use up the unused links of a kind, all of them or those that meet the conditions."""
        unused = (account_links.c.kind == kind, account_links.c.used_at.is_(None), *conditions)
        connection.execute(sa.update(account_links).where(*unused).values(used_at=now()))

    def _put_on_staff(self, connection: sa.Connection, course_id: int, teacher_id: int, role: Role) -> None:
        row = {"course_id": course_id, "teacher_id": teacher_id, "role": role}
        place = [staff.c.course_id, staff.c.teacher_id]
        # Somebody who is an instructor already does not become less by an invitation.
        keep = staff.c.role != "instructor"
        insert = self._insert(staff).values(row)
        connection.execute(insert.on_conflict_do_update(index_elements=place, set_={"role": role}, where=keep))

    def open_session(self, teacher: Teacher) -> str:
        """Sign a teacher in: the token for their cookie."""
        token, at = secrets.token_urlsafe(32), now()
        row = {"token_hash": hashed(token), "teacher_id": teacher.id, "created_at": at, "seen_at": at}
        self._write(sa.insert(sessions).values(row))
        return token

    def find_session(self, token: str) -> Teacher | None:
        """Whoever is signed in with that token; not after twelve idle hours, nor thirty days."""
        at = now()
        query = (
            sa.select(sessions.c.id, sessions.c.seen_at, *columns(teachers, Teacher))
            .join(teachers, teachers.c.id == sessions.c.teacher_id)
            .where(sessions.c.token_hash == hashed(token), sessions.c.ended_at.is_(None))
            .where(sessions.c.seen_at > at - IDLE, sessions.c.created_at > at - LONGEST)
        )
        row = self._one(query)
        if row is None:
            return None
        self._seen(row[0], row[1], at)
        return Teacher(*row[2:])

    def _seen(self, session_id: int, seen_at: datetime, at: datetime) -> None:
        if at - seen_at > timedelta(minutes=1):  # so that looking around costs no write
            self._write(sa.update(sessions).where(sessions.c.id == session_id).values(seen_at=at))

    def end_session(self, token: str) -> None:
        """Sign out of one browser."""
        self._write(sa.update(sessions).where(sessions.c.token_hash == hashed(token)).values(ended_at=now()))

    def end_sessions(self, teacher: Teacher) -> None:
        """Sign out everywhere."""
        theirs = (sessions.c.teacher_id == teacher.id, sessions.c.ended_at.is_(None))
        self._write(sa.update(sessions).where(*theirs).values(ended_at=now()))


def as_email(text: str) -> str | None:
    """An e-mail address in lower case, None for what is none."""
    plain = text.strip().lower()
    return plain if len(plain) <= 254 and plain.isprintable() and _EMAIL.fullmatch(plain) else None
