"""Teachers, the links that open their accounts, and their sessions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import sqlalchemy as sa
from email_validator import EmailNotValidError, validate_email

from .limits import tolerated_failure
from .queries import QueryBase, columns, from_row, hash_secret, insert_row
from .tables import account_links, sessions, staff, teachers

Role = Literal["instructor", "assistant"]
# The first account, a place on a course's staff, a new password; and for learning platforms: a code that connects a
# person there with an account here, and the registration of a platform.
LinkKind = Literal["setup", "invite", "reset", "connect", "platform"]
FOLLOWED: tuple[LinkKind, ...] = ("setup", "invite", "reset")  # those that are opened at /links

MAX_SESSION_IDLE = timedelta(hours=12)
MAX_SESSION_AGE = timedelta(days=30)
SEEN_INTERVAL = timedelta(minutes=1)  # the precision of a session's last use
LINK_LIFETIME: dict[LinkKind, timedelta] = {
    "setup": timedelta(days=7),
    "invite": timedelta(days=14),
    "reset": timedelta(days=2),
    "connect": timedelta(minutes=10),
    "platform": timedelta(days=2),
}
MAILED_LINK_LIFETIME = timedelta(hours=1)  # shorter, since anybody can have one mailed
MAX_MAILED_LINKS = 3  # for one teacher within MAILED_LINK_LIFETIME


@dataclass(frozen=True)
class Teacher:
    """A person with an account. Without a password (None) they can't sign in yet."""

    id: int
    email: str
    name: str
    password_hash: str | None
    is_operator: bool = False


@dataclass(frozen=True)
class AccountLink:
    """An account link that can still be followed, once.

    `email` is empty if the follower may choose one.
    """

    id: int
    kind: LinkKind
    email: str
    course_id: int | None
    role: Role | None


_TEACHERS = sa.select(*columns(teachers, Teacher))


class People(QueryBase):
    """Queries on teachers, account links and sessions."""

    def has_teacher(self) -> bool:
        """Whether any teacher has a password, so that somebody can sign in."""
        query = sa.select(teachers.c.id).where(teachers.c.password_hash.is_not(None)).limit(1)
        return self._fetch_one(query) is not None

    def find_teacher(self, email: str) -> Teacher | None:
        """The teacher with this e-mail address, ignoring case, or None."""
        return self._value(Teacher, _TEACHERS.where(teachers.c.email == email.lower()))

    def only_teacher(self) -> Teacher | None:
        """The teacher if there is exactly one, with or without a password."""
        found = self._values(Teacher, _TEACHERS.limit(2))
        return found[0] if len(found) == 1 else None

    def add_teacher(self, email: str, name: str) -> Teacher | None:
        """Add a teacher without a password, with the e-mail address in lower case."""
        values = {"email": email.lower(), "name": name, "created_at": self.now()}
        insert = self._insert_into(teachers).values(values).on_conflict_do_nothing(index_elements=[teachers.c.email])
        with self.transaction() as connection:
            teacher_id = connection.scalar(insert.returning(teachers.c.id))
        return None if teacher_id is None else self.find_teacher(email)

    def operators(self) -> tuple[Teacher, ...]:
        """The teachers who are operators, oldest account first."""
        return self._values(Teacher, _TEACHERS.where(teachers.c.is_operator).order_by(teachers.c.id))

    def set_operator(self, teacher: Teacher, is_operator: bool) -> None:
        self._execute(sa.update(teachers).where(teachers.c.id == teacher.id).values(is_operator=is_operator))

    def lock(self, teacher: Teacher) -> None:
        """Inside `transaction()`, wait for and hold the lock on a teacher's account until the transaction ends."""
        self._fetch_all(sa.select(teachers.c.id).where(teachers.c.id == teacher.id).with_for_update(key_share=True))

    # Account links

    def add_link(
        self, kind: LinkKind, email: str = "", course_id: int | None = None, role: Role | None = None, token: str = ""
    ) -> str:
        """Add an account link that expires after its kind's LINK_LIFETIME, and return its token, stored as a hash."""
        token = token or secrets.token_urlsafe(32)
        values = {"kind": kind, "token_hash": hash_secret(token), "email": email.lower(), "course_id": course_id,
                  "role": role, "expires_at": self.now() + LINK_LIFETIME[kind]}  # fmt: skip
        with self.transaction() as connection:
            if kind == "reset":
                self._void_links(connection, kind, account_links.c.email == email.lower())
            connection.execute(sa.insert(account_links).values(values))
        return token

    def add_mailed_link(self, teacher: Teacher) -> str | None:
        """Add a "reset" link for a teacher that expires after MAILED_LINK_LIFETIME (an hour), and return its token."""
        token, expires_at = secrets.token_urlsafe(32), self.now() + MAILED_LINK_LIFETIME
        values = {"kind": "reset", "token_hash": hash_secret(token), "email": teacher.email, "expires_at": expires_at}
        recent = (
            account_links.c.email == teacher.email,
            account_links.c.kind == "reset",
            account_links.c.expires_at.between(self.now(), expires_at),
        )
        with self.transaction() as connection:
            count = connection.scalar(sa.select(sa.func.count()).select_from(account_links).where(*recent)) or 0
            if count >= MAX_MAILED_LINKS:
                return None
            connection.execute(sa.insert(account_links).values(values))
        return token

    def drop_link(self, token: str) -> None:
        """Delete the account link with this token, used or not."""
        self._execute(sa.delete(account_links).where(account_links.c.token_hash == hash_secret(token)))

    def find_link(self, token: str, kinds: Sequence[LinkKind] = FOLLOWED) -> AccountLink | None:
        """The account link of these kinds with this token; None if it is used, void, expired or unknown."""
        this = (account_links.c.token_hash == hash_secret(token)) & account_links.c.kind.in_(kinds)
        usable = (account_links.c.used_at.is_(None), account_links.c.expires_at > self.now())
        return self._value(AccountLink, sa.select(*columns(account_links, AccountLink)).where(this, *usable))

    def use_link(self, link: AccountLink) -> bool:
        """Use a link up; False if it was already used."""
        unused = (account_links.c.id == link.id, account_links.c.used_at.is_(None))
        return bool(self._execute(sa.update(account_links).where(*unused).values(used_at=self.now())))

    def restore_link(self, link: AccountLink) -> None:
        """Make a used link work again, since what it was for has failed."""
        self._execute(sa.update(account_links).where(account_links.c.id == link.id).values(used_at=None))

    def follow_link(
        self, link: AccountLink, email: str, name: str = "", password_hash: str | None = None
    ) -> Teacher | None:
        """Use a link, do what it is for, and return the teacher; None, changing nothing, if it was already used."""
        with self.transaction() as connection:
            if link.kind == "setup":  # there may be several, but only one may create the first account
                every = sa.select(account_links.c.id).where(account_links.c.kind == "setup")
                connection.execute(every.order_by(account_links.c.id).with_for_update())
            if not self.use_link(link):
                return None
            teacher_id = connection.scalar(sa.select(teachers.c.id).where(teachers.c.email == email.lower()))
            if teacher_id is None:
                row = {"email": email.lower(), "name": name, "created_at": self.now()}
                teacher_id = insert_row(connection, teachers, row)
            if link.kind == "setup":
                connection.execute(sa.update(teachers).where(teachers.c.id == teacher_id).values(is_operator=True))
            if password_hash:
                self._set_password(connection, teacher_id, name, password_hash)
                self._void_links(connection, "reset", account_links.c.email == email.lower())
                self._void_links(connection, "setup")
            if link.course_id is not None:
                row = {"course_id": link.course_id, "teacher_id": teacher_id, "role": link.role or "assistant"}
                key, lower = [staff.c.course_id, staff.c.teacher_id], staff.c.role != "instructor"
                insert = self._insert_into(staff).values(row)
                connection.execute(
                    insert.on_conflict_do_update(index_elements=key, set_={"role": row["role"]}, where=lower)
                )
        return self.find_teacher(email)

    def change_password(self, teacher: Teacher, password_hash: str) -> None:
        """Store a teacher's new password hash: their sessions end, and their "reset" links stop working."""
        with self.transaction() as connection:
            self._set_password(connection, teacher.id, "", password_hash)
            self._void_links(connection, "reset", account_links.c.email == teacher.email)

    def _set_password(self, connection: sa.Connection, teacher_id: int, name: str, password_hash: str) -> None:
        values = {"password_hash": password_hash} | ({"name": name} if name else {})
        connection.execute(sa.update(teachers).where(teachers.c.id == teacher_id).values(values))
        open_sessions = (sessions.c.teacher_id == teacher_id, sessions.c.ended_at.is_(None))
        connection.execute(sa.update(sessions).where(*open_sessions).values(ended_at=self.now()))

    def _void_links(self, connection: sa.Connection, kind: LinkKind, *conditions: sa.ColumnElement[bool]) -> None:
        unused = (account_links.c.kind == kind, account_links.c.used_at.is_(None), *conditions)
        connection.execute(sa.update(account_links).where(*unused).values(used_at=self.now()))

    # Sessions

    def open_session(self, teacher: Teacher) -> str:
        """Start a session for a teacher, and return its random token, for the cookie."""
        token, at = secrets.token_urlsafe(32), self.now()
        row = {"token_hash": hash_secret(token), "teacher_id": teacher.id, "created_at": at, "seen_at": at}
        self._execute(sa.insert(sessions).values(row))
        return token

    def find_session(self, token: str) -> Teacher | None:
        """The teacher signed in with this token; the session's use is stored once per SEEN_INTERVAL."""
        at = self.now()
        query = (
            _TEACHERS.add_columns(sessions.c.id.label("session_id"), sessions.c.seen_at)
            .join(sessions, sessions.c.teacher_id == teachers.c.id)
            .where(sessions.c.token_hash == hash_secret(token), sessions.c.ended_at.is_(None))
            .where(sessions.c.seen_at > at - MAX_SESSION_IDLE, sessions.c.created_at > at - MAX_SESSION_AGE)
            .where(sessions.c.seen_at < at + MAX_SESSION_IDLE)  # ignores sessions from when the clock was days ahead
        )
        row = self._fetch_one(query)
        if row is None:
            return None
        if at - row.seen_at > SEEN_INTERVAL:  # so that most requests need no write
            with tolerated_failure():  # such as a full disk
                self._execute(sa.update(sessions).where(sessions.c.id == row.session_id).values(seen_at=at))
        return from_row(Teacher, row)

    def end_session(self, token: str) -> None:
        """Sign out the one browser with this token."""
        this = sessions.c.token_hash == hash_secret(token)
        self._execute(sa.update(sessions).where(this).values(ended_at=self.now()))

    def end_sessions(self, teacher: Teacher) -> None:
        """Sign a teacher out of every browser."""
        open_sessions = (sessions.c.teacher_id == teacher.id, sessions.c.ended_at.is_(None))
        self._execute(sa.update(sessions).where(*open_sessions).values(ended_at=self.now()))


def parse_email(text: str) -> str | None:
    """A typed e-mail address, stripped and in lower case; None if its syntax is wrong."""
    email = text.strip().lower()
    try:
        validate_email(email, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return None
    return email
