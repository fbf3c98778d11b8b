"""The outbox of grades: what people at platforms should have in their gradebooks, and whether it was sent.

One process at a time works on a link, while it holds the link's lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from .queries import QueryBase
from .tables import (
    MAX_PROBLEM,
    attempts,
    courses,
    grade_changes,
    lti_courses,
    lti_links,
    lti_people,
    lti_platforms,
    lti_scores,
    regrades,
)

LEASE = timedelta(minutes=3)  # longer than a process works on a link

ScoreState = Literal["waiting", "sent", "refused"]


@dataclass(frozen=True)
class Standing:
    """What a student should have in a platform's gradebook; `points` is None if nothing counts any more."""

    points: float | None
    out_of: int
    submitted_at: datetime | None


@dataclass(frozen=True)
class GradedLink:
    """A platform's link to an activity, with what its grades depend on and where they go.

    `newest` are the newest attempt, change of points, regrade and person, and the number of people.
    """

    id: int
    lti_course_id: int
    platform_id: int
    activity_id: int
    lineitem_url: str
    marker: str
    tries: int
    newest: tuple[int | None, ...]
    has_waiting: bool


@dataclass(frozen=True)
class DueScore:
    """A score to be sent: whose, by their row and by their id at the platform."""

    person_id: int
    sub: str
    standing: Standing


@dataclass(frozen=True)
class ShownScore:
    """A student's grade at a platform, as teachers see it. `problem` is the platform's reason for a refusal."""

    student_id: int
    platform: str
    points: float | None
    out_of: int
    state: ScoreState
    problem: str
    sent_at: datetime | None


@dataclass(frozen=True)
class ShownLink:
    """A platform that opens an activity: whether its gradebook has a column, and why grades don't reach it, if so."""

    platform: str
    has_column: bool
    problem: str
    next_at: datetime | None


def _newest(table: sa.Table) -> sa.ScalarSelect[Any]:
    newest = sa.select(sa.func.max(table.c.id)).where(table.c.activity_id == lti_links.c.activity_id)
    return newest.correlate(lti_links).scalar_subquery()


def _of_people(value: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    of_link = lti_people.c.lti_course_id == lti_links.c.lti_course_id
    return sa.select(value).where(of_link).correlate(lti_links).scalar_subquery()


_WAITS = lti_scores.c.state == "waiting"
_LINKS = (
    sa.select(
        *(lti_links.c[name] for name in ("id", "lti_course_id", "activity_id", "lineitem_url", "marker", "tries")),
        lti_courses.c.platform_id,
        *(_newest(table).label(table.name) for table in (attempts, grade_changes, regrades)),
        _of_people(sa.func.max(lti_people.c.id)).label("newest_person"),
        _of_people(sa.func.count()).label("people"),
        sa.exists().where(lti_scores.c.link_id == lti_links.c.id, _WAITS).label("has_waiting"),
    )
    .join_from(lti_links, lti_courses, lti_courses.c.id == lti_links.c.lti_course_id)
    .join(courses, courses.c.id == lti_courses.c.course_id)
    .order_by(lti_links.c.id)
)
_STANDING = tuple(field.name for field in fields(Standing))


class LtiScores(QueryBase):
    def links(self) -> tuple[GradedLink, ...]:
        """The links with a column that nobody is working on, of courses that aren't archived."""
        is_free = sa.or_(lti_links.c.next_at.is_(None), lti_links.c.next_at <= self.now())
        has_column = lti_links.c.lineitem_url != ""
        query = _LINKS.where(has_column, is_free, courses.c.archived_at.is_(None))
        return tuple(map(_graded_link, self._fetch_all(query)))

    def claim(self, link: GradedLink) -> bool:
        """Take the link's lease; False if another process has it."""
        at, next_at = self.now(), lti_links.c.next_at
        claim = sa.update(lti_links).where(lti_links.c.id == link.id, sa.or_(next_at.is_(None), next_at <= at))
        return bool(self._execute(claim.values(next_at=at + LEASE)))

    def release(self, link: GradedLink, wait: timedelta = timedelta(0), tries: int = 0, problem: str = "") -> None:
        """Give the link's lease back. Nobody takes it before `wait` is over."""
        values = {"next_at": self.now() + wait, "tries": tries, "problem": problem[:MAX_PROBLEM]}
        self._execute(sa.update(lti_links).where(lti_links.c.id == link.id).values(values))

    def count_handed_in(self, activity_id: int) -> int:
        """How many attempts are handed in; a checked one can be handed in later."""
        this = (attempts.c.activity_id == activity_id, attempts.c.handed_in)
        return int(self._fetch_one(sa.select(sa.func.count()).select_from(attempts).where(*this))[0])

    def want(self, link: GradedLink, standings: Mapping[int, Standing], marker: str) -> None:
        """Queue what differs from what the link's people were last meant to have, by student id."""
        people = sa.select(lti_people.c.id, lti_people.c.student_id)
        people = people.where(lti_people.c.lti_course_id == link.lti_course_id)
        of_link = lti_scores.c.link_id == link.id
        with self.transaction() as connection:
            known = {row.person_id: row for row in connection.execute(sa.select(lti_scores).where(of_link))}
            for person_id, student_id in connection.execute(people).all():
                standing, before = standings.get(student_id), known.get(person_id)
                if standing is None or (before is None and standing.points is None):
                    continue
                queued = {**vars(standing), "state": "waiting", "tries": 0, "problem": ""}
                if before is None:
                    row = {"link_id": link.id, "person_id": person_id, **queued}
                    connection.execute(sa.insert(lti_scores).values(row))
                elif any(getattr(before, name) != getattr(standing, name) for name in _STANDING):
                    this = (of_link, lti_scores.c.person_id == person_id)
                    connection.execute(sa.update(lti_scores).where(*this).values(queued))
            # Unless a merge of students has emptied it meanwhile, after the standings were computed.
            is_same = (lti_links.c.id == link.id, lti_links.c.marker == link.marker)
            connection.execute(sa.update(lti_links).where(*is_same).values(marker=marker))

    def due(self, link: GradedLink) -> tuple[DueScore, ...]:
        """The link's scores that wait, those that failed least first: one must not hold up the others."""
        query = sa.select(lti_scores, lti_people.c.sub).join(lti_people, lti_people.c.id == lti_scores.c.person_id)
        query = query.where(lti_scores.c.link_id == link.id, _WAITS)
        rows = self._fetch_all(query.order_by(lti_scores.c.tries, lti_scores.c.person_id))
        return tuple(
            DueScore(row.person_id, row.sub, Standing(row.points, row.out_of, row.submitted_at)) for row in rows
        )

    def settle(self, link: GradedLink, score: DueScore, problem: str = "") -> None:
        """Store that a score was sent, or why it was refused."""
        values = {"state": "refused" if problem else "sent", "problem": problem[:MAX_PROBLEM], "sent_at": self.now()}
        self._change(link, score, values)

    def note_failure(self, link: GradedLink, score: DueScore) -> None:
        self._change(link, score, {"tries": lti_scores.c.tries + 1})

    def send_again(self, activity_id: int) -> None:
        """Queue every score of an activity again, at once."""
        links = sa.select(lti_links.c.id).where(lti_links.c.activity_id == activity_id)
        with self.transaction() as connection:
            again = sa.update(lti_scores).where(lti_scores.c.link_id.in_(links))
            connection.execute(again.values(state="waiting", tries=0, problem=""))
            free = sa.update(lti_links).where(lti_links.c.activity_id == activity_id, lti_links.c.problem != "")
            connection.execute(free.values(next_at=None, tries=0, problem=""))

    # What teachers see

    def of_activity(self, activity_id: int, student_id: int | None = None) -> tuple[ShownScore, ...]:
        """The grades of an activity at all platforms, or one student's."""
        shown = [lti_scores.c[f.name] for f in fields(ShownScore) if f.name not in ("student_id", "platform")]
        query = (
            sa.select(lti_people.c.student_id, lti_platforms.c.name.label("platform"), *shown)
            .join_from(lti_scores, lti_links, lti_links.c.id == lti_scores.c.link_id)
            .join(lti_people, lti_people.c.id == lti_scores.c.person_id)
            .join(lti_platforms, lti_platforms.c.id == lti_people.c.platform_id)
            .where(lti_links.c.activity_id == activity_id)
            .order_by(lti_links.c.id, lti_people.c.id)
        )
        query = query if student_id is None else query.where(lti_people.c.student_id == student_id)
        return self._values(ShownScore, query)

    def links_of(self, activity_id: int) -> tuple[ShownLink, ...]:
        """The links of platforms to an activity."""
        query = (
            sa.select(
                lti_platforms.c.name.label("platform"),
                (lti_links.c.lineitem_url != "").label("has_column"),
                lti_links.c.problem,
                lti_links.c.next_at,
            )
            .join_from(lti_links, lti_courses, lti_courses.c.id == lti_links.c.lti_course_id)
            .join(lti_platforms, lti_platforms.c.id == lti_courses.c.platform_id)
            .where(lti_links.c.activity_id == activity_id)
        )
        return self._values(ShownLink, query.order_by(lti_links.c.id))

    def _change(self, link: GradedLink, score: DueScore, values: Mapping[str, Any]) -> None:
        this = (lti_scores.c.link_id == link.id, lti_scores.c.person_id == score.person_id)
        self._execute(sa.update(lti_scores).where(*this).values(values))


def _graded_link(row: Any) -> GradedLink:
    newest = (row.attempts, row.grade_changes, row.regrades, row.newest_person, row.people)
    values = {**row._mapping, "newest": newest, "has_waiting": bool(row.has_waiting)}
    return GradedLink(**{field.name: values[field.name] for field in fields(GradedLink)})
