"""The settings of a course: its title, its time zone and its practice; and copies of a course and an activity.

The practice record of a course's student is stored with the student rather than in the browser's cookie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import available_timezones

from app.classes.materials import copy_materials, library_with_materials, with_new_keys
from app.sheets.library import Library
from app.store import Activity, Course, Enrolment, Material, Store, Teacher, Visitor
from app.translation import gettext as _

MAX_TIME_ZONE_LENGTH, MAX_TITLE_LENGTH = 64, 200  # characters
MAX_PRACTICE_SHEETS = 20  # own worksheets in a course's practice
_OBSOLETE_AREAS = ("Etc/", "SystemV/", "US/")


def settings_problem(title: str, time_zone: str) -> str:
    """The sentence about an empty title or an unknown IANA time zone; "" if both can be used."""
    if not title:
        return _("Enter a title.")
    if time_zone in available_timezones():
        return ""
    problem = _("“{zone}” is not a known time zone. Enter one such as Europe/Berlin or America/New_York.")
    return problem.format(zone=time_zone)


def copy_course(store: Store, course: Course, title: str, teacher: Teacher) -> Course:
    """Add a course called `title` with the same time zone, and its activities as drafts, in one transaction."""
    with store.transaction():
        copy = store.courses.add(title, course.time_zone, teacher)
        keys = copy_materials(store, course, copy, teacher)
        for activity in reversed(store.activities.of_course(course)):  # oldest first, as they were made
            renamed = replace(activity, content=with_new_keys(activity.content, keys))
            duplicate_activity(store, renamed, copy, activity.plan.title)
        practice = practice_of(store, course)
        if practice:
            store.courses.set_practice(copy, practice.with_new_keys(keys).as_json)
    return copy


def duplicate_activity(store: Store, activity: Activity, course: Course, title: str) -> Activity:
    """Add a draft with an activity's content and rules to a course, without date and times."""
    plan = replace(activity.plan, title=title[:MAX_TITLE_LENGTH], day=None, opens_at=None, closes_at=None)
    return store.activities.add(course, plan, activity.content)


def time_zone_names() -> tuple[str, ...]:
    """The time zones to offer: UTC first, then those with area and place, such as 'Europe/Berlin', by name."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith(_OBSOLETE_AREAS))
    return ("UTC", *sorted(places))


# Practice for a course


@dataclass(frozen=True)
class CoursePractice:
    """What a course practises besides the lessons: own worksheets by their keys, such as "own-12"."""

    worksheets: tuple[str, ...] = ()

    @property
    def as_json(self) -> dict[str, Any]:
        return {"worksheets": list(self.worksheets)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CoursePractice:
        return cls(tuple(stored["worksheets"]))

    def with_new_keys(self, keys: Mapping[str, str]) -> CoursePractice:
        """The practice with its worksheets' new keys; worksheets missing from `keys` were removed."""
        return CoursePractice(tuple(keys[key] for key in self.worksheets if key in keys))


@dataclass(frozen=True)
class Practising:
    """A browser's student in a course, the course's practice, and the student's record, if any."""

    enrolment: Enrolment
    practice: CoursePractice
    record: str | None


def practice_of(store: Store, course: Course) -> CoursePractice | None:
    """A course's practice, or None."""
    stored = store.courses.practice(course)
    return None if stored is None else CoursePractice.from_json(stored)


def practising(store: Store, visitor: Visitor) -> Practising | None:
    """The enrolment for which this browser practises, with the course's practice and the student's record."""
    stored = store.roster.practising(visitor.id)
    if stored is None:
        return None
    enrolment, practice, record = stored
    return Practising(enrolment, CoursePractice.from_json(practice), record)


def practice_library(library: Library, store: Store, course: Course, practice: CoursePractice) -> Library:
    """The library with the course's worksheets that its practice names."""
    if not practice.worksheets:
        return library
    materials = [material for material in course_worksheets(store, course) if material.key in practice.worksheets]
    return library_with_materials(library, store, materials)


def course_worksheets(store: Store, course: Course) -> tuple[Material, ...]:
    """The worksheets of a course, by title, without removed ones."""
    return tuple(material for material in store.materials.of_course(course) if material.kind == "worksheet")
