"""The settings of a course, its title and its time zone, and copies of a course and of an activity."""

from __future__ import annotations

from dataclasses import replace
from zoneinfo import available_timezones

from app.classes.materials import copy_materials, with_new_keys
from app.sheets.wording import Wording
from app.store import Activity, Course, Store, Teacher

MAX_TIME_ZONE_LENGTH, MAX_TITLE_LENGTH = 64, 200  # characters
_OBSOLETE_AREAS = ("Etc/", "SystemV/", "US/")


def settings_problem(wording: Wording, title: str, time_zone: str) -> str:
    """The sentence about a missing title or an unknown IANA time zone; empty where both can be used."""
    if not title:
        return wording.say("class", "no-title")
    return "" if time_zone in available_timezones() else wording.say("class", "no-zone", zone=time_zone)


def copy_course(store: Store, course: Course, title: str, teacher: Teacher) -> Course:
    """A new course with the activities of another one as drafts, without students, dates or times.

    Its own worksheets and exit tickets are copied as well, and the copies of the activities have the copies of those.
    The teacher is its only staff. Either all of it is made or nothing.
    """
    with store.transaction():
        copy = store.courses.add(title, course.time_zone, teacher)
        keys = copy_materials(store, course, copy, teacher)
        for activity in reversed(store.activities.of_course(course)):  # the oldest first, as they were made
            renamed = replace(activity, content=with_new_keys(activity.content, keys))
            duplicate_activity(store, renamed, copy, activity.plan.title)
    return copy


def duplicate_activity(store: Store, activity: Activity, course: Course, title: str) -> Activity:
    """A draft in a course with the content and the rules of another activity, without its date and times."""
    plan = replace(activity.plan, title=title[:MAX_TITLE_LENGTH], day=None, opens_at=None, closes_at=None)
    return store.activities.add(course, plan, activity.content)


def time_zone_names() -> tuple[str, ...]:
    """The time zones to offer: UTC first, then those named as area and place, such as 'Europe/Berlin', by name.

    Any other name that the IANA database knows can be typed.
    """
    places = (name for name in available_timezones() if "/" in name and not name.startswith(_OBSOLETE_AREAS))
    return ("UTC", *sorted(places))
