"""The settings of a course: its title and its time zone."""

from __future__ import annotations

from zoneinfo import available_timezones

from app.sheets.wording import Wording

MAX_TIME_ZONE_LENGTH = 64  # characters
_OBSOLETE_AREAS = ("Etc/", "SystemV/", "US/")


def settings_problem(wording: Wording, title: str, time_zone: str) -> str:
    """The sentence about a missing title or an unknown IANA time zone; empty where both can be used."""
    if not title:
        return wording.say("class", "no-title")
    return "" if time_zone in available_timezones() else wording.say("class", "no-zone", zone=time_zone)


def time_zone_names() -> tuple[str, ...]:
    """The time zones to offer: UTC first, then those named as area and place, such as 'Europe/Berlin', by name.

    Any other name that the IANA database knows can be typed.
    """
    places = (name for name in available_timezones() if "/" in name and not name.startswith(_OBSOLETE_AREAS))
    return ("UTC", *sorted(places))
