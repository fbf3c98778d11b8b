"""Learning management systems that open the app by LTI 1.3: platforms, their courses, links and people, our keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Literal

import sqlalchemy as sa

from app.translation import gettext as _

from .courses import Course
from .people import Teacher
from .queries import QueryBase, columns, from_row, hash_secret, insert_row
from .roster import Student
from .tables import (
    courses,
    enrolments,
    lti_courses,
    lti_deployments,
    lti_keys,
    lti_launches,
    lti_links,
    lti_people,
    lti_platforms,
    students,
    teachers,
)

LAUNCH_LIFETIME = timedelta(hours=1)  # a teacher may create an account or choose an activity meanwhile
KEY_FETCH_INTERVAL = timedelta(seconds=30)  # for one platform, by all processes together
MAX_UNCONFIRMED = 100  # deployments of one platform
KEYS_KEPT = 3  # next, current and last

LaunchRole = Literal["instructor", "assistant", "student", ""]


@dataclass(frozen=True)
class Platform:
    """An LMS, or one customer of a hosted LMS, where the app is registered as `client_id`."""

    id: int
    name: str
    issuer: str
    client_id: str
    authorization_url: str
    token_url: str
    keys_url: str
    token_audience: str
    key_set: Mapping[str, Any]

    @property
    def audience(self) -> str:
        """The audience of our requests for access tokens."""
        return self.token_audience or self.token_url


@dataclass(frozen=True)
class Deployment:
    """A place where a platform has installed the app, such as one school. Nobody gets in until it is confirmed."""

    platform_id: int
    deployment_id: str
    confirmed: bool


@dataclass(frozen=True)
class DeepLinking:
    """What a platform asks for when a teacher chooses content there. `data` goes back as it came; None without any."""

    return_url: str
    accepts_links: bool
    accept_multiple: bool
    accept_lineitem: bool
    data: str | None


@dataclass(frozen=True)
class Launch:
    """What a verified message says: who opens what, and from where. Missing texts are empty."""

    platform_id: int
    deployment_id: str
    sub: str  # the person's id at the platform
    role: LaunchRole  # in the context; empty: no access
    name: str
    is_test_user: bool  # a teacher looking at the course as a student would
    context_id: str
    context_title: str
    resource_link_id: str
    resource_link_title: str
    activity_id: int | None  # from the signed target link
    memberships_url: str
    lineitem_url: str  # the column for its grades, if it has one
    deep_linking: DeepLinking | None  # None for the launch of a resource link

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Launch:
        asked = stored["deep_linking"]
        deep_linking = DeepLinking(**asked) if asked else None
        return cls(**{**stored, "deep_linking": deep_linking})


@dataclass(frozen=True)
class LtiCourse:
    """The course that a platform's context is linked with, and the address of its class list, if it gives one."""

    id: int
    platform_id: int
    deployment_id: str
    context_id: str
    course_id: int
    memberships_url: str


@dataclass(frozen=True)
class LtiLink:
    """The activity that a resource link opens, and the link's column in the platform's gradebook, if it has one."""

    id: int
    lti_course_id: int
    resource_link_id: str
    activity_id: int
    lineitem_url: str
    marker: str


@dataclass(frozen=True)
class StoredKey:
    """One of our key pairs: its id and its encrypted private key."""

    key_id: str
    private_key: str
    created_at: datetime


_PLATFORMS = sa.select(*columns(lti_platforms, Platform)).order_by(lti_platforms.c.id)


class Lti(QueryBase):
    # Platforms and their deployments

    def platforms(self) -> tuple[Platform, ...]:
        return self._values(Platform, _PLATFORMS)

    def platform(self, platform_id: int) -> Platform | None:
        return self._value(Platform, _PLATFORMS.where(lti_platforms.c.id == platform_id))

    def find_platform(self, issuer: str, client_id: str = "") -> Platform | None:
        """The platform of an issuer; without a client id, only if the issuer has a single one."""
        this = [lti_platforms.c.issuer == issuer] + ([lti_platforms.c.client_id == client_id] if client_id else [])
        found = self._values(Platform, _PLATFORMS.where(*this).limit(2))
        return found[0] if len(found) == 1 else None

    def add_platform(
        self,
        name: str,
        issuer: str,
        client_id: str,
        authorization_url: str,
        token_url: str,
        keys_url: str,
        token_audience: str = "",
        deployment_id: str = "",
    ) -> Platform | None:
        """Add a platform, and a confirmed deployment if given; None if issuer and client id are known already."""
        row = {"name": name, "issuer": issuer, "client_id": client_id, "authorization_url": authorization_url,
               "token_url": token_url, "keys_url": keys_url, "token_audience": token_audience}  # fmt: skip
        insert = self._insert_into(lti_platforms).values({**row, "key_set": {}}).on_conflict_do_nothing()
        with self.transaction() as connection:
            platform_id = connection.scalar(insert.returning(lti_platforms.c.id))
            if platform_id is None:
                return None
            if deployment_id:
                self.confirm_deployment(platform_id, deployment_id)
        return self.platform(platform_id)

    def remove_platform(self, platform: Platform) -> None:
        """Forget a platform with its links and the identities of its people; students and activities stay."""
        self._execute(sa.delete(lti_platforms).where(lti_platforms.c.id == platform.id))

    def claim_key_fetch(self, platform: Platform) -> bool:
        """Whether the platform's keys may be fetched now; then nobody else may for KEY_FETCH_INTERVAL."""
        at, fetched_at = self.now(), lti_platforms.c.key_set_fetched_at
        due = fetched_at.is_(None) | (fetched_at < at - KEY_FETCH_INTERVAL)
        claim = sa.update(lti_platforms).where(lti_platforms.c.id == platform.id, due)
        return bool(self._execute(claim.values(key_set_fetched_at=at)))

    def keep_key_set(self, platform: Platform, key_set: Mapping[str, Any]) -> None:
        this = sa.update(lti_platforms).where(lti_platforms.c.id == platform.id)
        self._execute(this.values(key_set=key_set))

    def deployments(self) -> tuple[Deployment, ...]:
        """Every deployment, with those that wait for an operator first."""
        order = (lti_deployments.c.confirmed, lti_deployments.c.platform_id, lti_deployments.c.deployment_id)
        return self._values(Deployment, sa.select(*columns(lti_deployments, Deployment)).order_by(*order))

    def is_confirmed(self, platform_id: int, deployment_id: str) -> bool:
        """Whether an operator has confirmed a deployment. An unknown one is noted, and waits."""
        of_platform = lti_deployments.c.platform_id == platform_id
        query = sa.select(lti_deployments.c.confirmed).where(of_platform)
        row = self._fetch_one(query.where(lti_deployments.c.deployment_id == deployment_id))
        if row is not None:
            return bool(row.confirmed)
        waiting = sa.select(sa.func.count()).where(of_platform, ~lti_deployments.c.confirmed)
        if self._fetch_one(waiting)[0] < MAX_UNCONFIRMED:
            new = {"platform_id": platform_id, "deployment_id": deployment_id, "confirmed": False}
            self._execute(self._insert_into(lti_deployments).values(new).on_conflict_do_nothing())
        return False

    def confirm_deployment(self, platform_id: int, deployment_id: str) -> None:
        row = {"platform_id": platform_id, "deployment_id": deployment_id, "confirmed": True}
        key = [lti_deployments.c.platform_id, lti_deployments.c.deployment_id]
        insert = self._insert_into(lti_deployments).values(row)
        self._execute(insert.on_conflict_do_update(index_elements=key, set_={"confirmed": True}))

    # Launches

    def keep_launch(self, state: str, nonce: str, launch: Launch) -> bool:
        """Keep a verified launch for the browser that has its state; False, keeping nothing, if it was used before."""
        at = self.now()
        row = {"state_hash": hash_secret(state), "nonce_hash": hash_secret(nonce), "platform_id": launch.platform_id,
               "claims": asdict(launch), "expires_at": at + LAUNCH_LIFETIME}  # fmt: skip
        insert = self._insert_into(lti_launches).values(row).on_conflict_do_nothing()
        with self.transaction() as connection:
            connection.execute(sa.delete(lti_launches).where(lti_launches.c.expires_at < at))
            return connection.scalar(insert.returning(lti_launches.c.state_hash)) is not None

    def find_launch(self, state: str) -> Launch | None:
        """The launch of the browser with this state; None if there is none, or it has done its work."""
        this = (lti_launches.c.state_hash == hash_secret(state), lti_launches.c.expires_at > self.now())
        row = self._fetch_one(sa.select(lti_launches.c.claims).where(*this))
        return Launch.from_json(row.claims) if row and row.claims else None

    def finish_launch(self, state: str) -> bool:
        """Forget what a launch says, so that nobody uses it again; False if somebody else was faster."""
        this = (lti_launches.c.state_hash == hash_secret(state), lti_launches.c.claims.is_not(None))
        return bool(self._execute(sa.update(lti_launches).where(*this).values(claims=None)))

    # Courses and links

    def find_course(self, launch: Launch) -> LtiCourse | None:
        """The course that the launch's context is linked with."""
        this = (lti_courses.c.platform_id == launch.platform_id, lti_courses.c.deployment_id == launch.deployment_id,
                lti_courses.c.context_id == launch.context_id)  # fmt: skip
        return self._value(LtiCourse, sa.select(*columns(lti_courses, LtiCourse)).where(*this))

    def courses_of(self, course: Course) -> tuple[LtiCourse, ...]:
        """The contexts that are linked with a course."""
        query = sa.select(*columns(lti_courses, LtiCourse)).where(lti_courses.c.course_id == course.id)
        return self._values(LtiCourse, query.order_by(lti_courses.c.id))

    def link_course(self, launch: Launch, course_id: int) -> LtiCourse:
        """Link the launch's context with a course, unless it is linked already, and note its class list's address."""
        services = {"memberships_url": launch.memberships_url}
        key = {"platform_id": launch.platform_id, "deployment_id": launch.deployment_id,
               "context_id": launch.context_id}  # fmt: skip
        insert = self._insert_into(lti_courses).values({**key, **services, "course_id": course_id})
        self._execute(insert.on_conflict_do_update(index_elements=[lti_courses.c[name] for name in key], set_=services))
        linked = self.find_course(launch)
        assert linked is not None  # noqa: S101 - just stored
        return linked

    def unlink_course(self, lti_course: LtiCourse) -> None:
        """Forget which course and activities a context opens. Its students stay known in the course that it had."""
        stay = sa.update(lti_people).where(lti_people.c.lti_course_id == lti_course.id).values(lti_course_id=None)
        with self.transaction() as connection:
            connection.execute(stay)
            connection.execute(sa.delete(lti_courses).where(lti_courses.c.id == lti_course.id))

    def find_link(self, lti_course: LtiCourse, resource_link_id: str) -> LtiLink | None:
        this = (lti_links.c.lti_course_id == lti_course.id, lti_links.c.resource_link_id == resource_link_id)
        return self._value(LtiLink, sa.select(*columns(lti_links, LtiLink)).where(*this))

    def link_activity(self, lti_course: LtiCourse, launch: Launch, activity_id: int) -> LtiLink:
        """Link the launch's resource link with an activity, unless it is linked already; note its line item."""
        row = {"lti_course_id": lti_course.id, "resource_link_id": launch.resource_link_id, "activity_id": activity_id,
               "lineitem_url": launch.lineitem_url, "marker": ""}  # fmt: skip
        key = [lti_links.c.lti_course_id, lti_links.c.resource_link_id]
        insert = self._insert_into(lti_links).values(row)
        noted = {"lineitem_url": launch.lineitem_url} if launch.lineitem_url else {"marker": lti_links.c.marker}
        self._execute(insert.on_conflict_do_update(index_elements=key, set_=noted))
        link = self.find_link(lti_course, launch.resource_link_id)
        assert link is not None  # noqa: S101 - just stored
        return link

    # People

    def teacher(self, platform_id: int, sub: str) -> Teacher | None:
        """The account that somebody at a platform has connected."""
        query = sa.select(*columns(teachers, Teacher)).join(lti_people, lti_people.c.teacher_id == teachers.c.id)
        return self._value(Teacher, query.where(lti_people.c.platform_id == platform_id, lti_people.c.sub == sub))

    def platforms_of(self, teacher: Teacher) -> tuple[Platform, ...]:
        """The platforms where somebody has connected this account."""
        connected = sa.select(lti_people.c.platform_id).where(lti_people.c.teacher_id == teacher.id)
        return self._values(Platform, _PLATFORMS.where(lti_platforms.c.id.in_(connected)))

    def connect(self, platform_id: int, sub: str, teacher: Teacher) -> None:
        """Connect somebody at a platform with an account, unless they have connected one already."""
        row = {"platform_id": platform_id, "sub": sub, "teacher_id": teacher.id}
        self._execute(self._insert_into(lti_people).values(row).on_conflict_do_nothing())

    def disconnect(self, teacher: Teacher) -> None:
        """Forget which people at any platform are this teacher."""
        self._execute(sa.delete(lti_people).where(lti_people.c.teacher_id == teacher.id))

    def student(self, platform_id: int, sub: str, course_id: int) -> Student | None:
        """The student that somebody at a platform is in a course."""
        query = sa.select(*columns(students, Student)).join(lti_people, lti_people.c.student_id == students.c.id)
        this = (lti_people.c.platform_id == platform_id, lti_people.c.sub == sub, lti_people.c.course_id == course_id)
        return self._value(Student, query.where(*this))

    def is_somebody_else(self, visitor_id: int, platform_id: int, sub: str) -> bool:
        """Whether a browser's students came from a platform, and none of them is this person there."""
        enrolled = sa.select(lti_people.c.sub).join(enrolments, enrolments.c.student_id == lti_people.c.student_id)
        this = (enrolments.c.visitor_id == visitor_id, lti_people.c.platform_id == platform_id)
        subs = {row.sub for row in self._fetch_all(enrolled.where(*this))}
        return bool(subs) and sub not in subs

    def students_of(self, lti_course: LtiCourse) -> dict[str, Student]:
        """The students who came from a context, by their ids at the platform."""
        query = sa.select(lti_people.c.sub, *columns(students, Student))
        query = query.join(students, students.c.id == lti_people.c.student_id)
        rows = self._fetch_all(query.where(lti_people.c.lti_course_id == lti_course.id).order_by(students.c.name_key))
        return {row.sub: from_row(Student, row) for row in rows}

    def add_student(self, lti_course: LtiCourse, sub: str, course: Course, name: str) -> Student:
        """The student that somebody in a context is in its course; a new one, who hasn't joined yet, at first.

        A name that somebody else has gets a number. Without a name it is "Student 7 of the LMS".
        """
        with self.transaction() as connection:
            connection.execute(sa.select(courses.c.id).where(courses.c.id == course.id).with_for_update(key_share=True))
            if known := self.student(lti_course.platform_id, sub, course.id):
                this = (lti_people.c.platform_id == lti_course.platform_id, lti_people.c.sub == sub)
                comes = sa.update(lti_people).where(*this, lti_people.c.course_id == course.id)
                connection.execute(comes.values(lti_course_id=lti_course.id))
                return known
            bound = sa.select(sa.func.count()).where(lti_people.c.course_id == course.id)
            first = 1 if name else (connection.scalar(bound) or 0) + 1
            for number in count(first):
                suffix = f" ({number})" if number > 1 else ""
                unnamed = _("Student {number} of the LMS").format(number=number)
                shown = name[: 100 - len(suffix)] + suffix if name else unnamed
                row = {"course_id": course.id, "name": shown, "created_at": self.now()}
                insert = self._insert_into(students).values(row).on_conflict_do_nothing()
                student_id = connection.scalar(insert.returning(students.c.id))
                if student_id is not None:
                    break
            person = {"platform_id": lti_course.platform_id, "sub": sub, "course_id": course.id,
                      "student_id": student_id, "lti_course_id": lti_course.id}  # fmt: skip
            insert_row(connection, lti_people, person)
        student = self.student(lti_course.platform_id, sub, course.id)
        assert student is not None  # noqa: S101 - just stored
        return student

    # Our keys

    def signing_keys(self) -> tuple[StoredKey, ...]:
        """Our key pairs, newest first: next, current and last."""
        query = sa.select(*columns(lti_keys, StoredKey)).order_by(lti_keys.c.id.desc()).limit(KEYS_KEPT)
        return self._values(StoredKey, query)

    def lock_signing_keys(self) -> None:
        """Inside `transaction()`, wait for and hold the lock on our keys until the transaction ends."""
        self._fetch_all(sa.select(lti_keys.c.id).with_for_update())

    def add_signing_key(self, key_id: str, private_key: str) -> None:
        """Add the key pair that will sign after the next rotation, and delete the oldest beyond KEYS_KEPT."""
        with self.transaction() as connection:
            row = {"key_id": key_id, "private_key": private_key, "created_at": self.now()}
            insert_row(connection, lti_keys, row)
            kept = sa.select(lti_keys.c.id).order_by(lti_keys.c.id.desc()).limit(KEYS_KEPT)
            connection.execute(sa.delete(lti_keys).where(lti_keys.c.id.not_in(kept)))
