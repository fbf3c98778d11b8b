"""The services of platforms, against a platform that checks what it is sent: lists in pages, and access tokens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from types import SimpleNamespace

import pytest

from app.lti import services
from app.lti.services import PlatformError, ScoreRefusedError
from app.sheets.library import Library
from app.store import Store
from app.store.lti_scores import Standing
from simulation.lti_platform import BLACKBOARD, BRIGHTSPACE, INSTRUCTOR, MOODLE, Person, Quirks
from tests.helpers.clock import Clock
from tests.helpers.lti_context import LinkedActivity, linked_activity

SOMETHING = Standing(1, 2, None)
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def linked(library: Library, store: Store, clock: Clock) -> Iterator[LinkedActivity]:
    with linked_activity(library, store) as activity:
        yield activity


def members(linked: LinkedActivity) -> list[str]:
    return [member.sub for member in linked.services.members(linked.known, linked.context.memberships_url)]


@pytest.mark.parametrize("quirks", [MOODLE, BLACKBOARD, BRIGHTSPACE], ids=lambda quirks: quirks.product)
def test_a_thousand_people_come_in_pages_of_any_platform(
    library: Library, store: Store, clock: Clock, quirks: Quirks
) -> None:
    with linked_activity(library, store, quirks) as linked:
        everybody = [Person(str(number), f"Person {number}") for number in range(1000)]
        linked.lms_course.people.update({person.sub: person for person in everybody})
        linked.lms_course.people["t"] = Person("t", "", INSTRUCTOR, status="")
        linked.lms_course.people["gone"] = Person("gone", "Gone", status="Inactive")
        found = linked.services.members(linked.known, linked.context.memberships_url)
    assert [member.sub for member in found] == list(linked.lms_course.people)
    assert {member.sub for member in found if not member.is_active} == {"gone"}
    assert (found[-2].name, found[-2].roles) == ("", INSTRUCTOR)
    assert linked.platform.requests["token"] == 1


def test_a_list_that_comes_too_slowly_is_given_up(linked: LinkedActivity, monkeypatch: pytest.MonkeyPatch) -> None:
    linked.lms_course.people.update({str(number): Person(str(number)) for number in range(120)})
    half_of_the_time = SimpleNamespace(monotonic=count(0, services.LIST_TIMEOUT_S / 2 + 1).__next__)
    monkeypatch.setattr(services, "time", half_of_the_time)
    with pytest.raises(PlatformError):
        members(linked)
    assert linked.platform.requests["memberships"] == 1


def test_a_token_that_ends_early_is_replaced_between_two_pages(linked: LinkedActivity) -> None:
    linked.lms_course.people.update({str(number): Person(str(number)) for number in range(120)})
    assert len(members(linked)) == 120
    linked.platform.expire_tokens()
    assert len(members(linked)) == 120
    assert linked.platform.requests["token"] == 2


def test_a_token_is_used_for_as_long_as_it_lasts(linked: LinkedActivity, clock: Clock) -> None:
    for minutes in (0, 50, 20):
        clock.pass_minutes(minutes)
        members(linked)
    assert linked.platform.requests["token"] == 2


def test_a_next_page_on_another_site_never_gets_our_token(linked: LinkedActivity) -> None:
    linked.lms_course.people.update({str(number): Person(str(number)) for number in range(120)})
    linked.platform.foreign_next = linked.platform.url.replace("127.0.0.1", "localhost")
    with pytest.raises(PlatformError):
        members(linked)
    assert linked.platform.requests["memberships"] == 1


def test_a_score_is_refused_with_the_platforms_reason(linked: LinkedActivity) -> None:
    with pytest.raises(ScoreRefusedError, match=r"400.*no gradable role"):
        linked.services.send_score(linked.known, linked.link.lineitem_url, "nobody", SOMETHING)
    linked.platform.refuse("scores", 422, reason="<b>much</b>\x00 too late" * 500)
    with pytest.raises(ScoreRefusedError) as refused:
        linked.services.send_score(linked.known, linked.link.lineitem_url, "nobody", SOMETHING)
    assert len(str(refused.value)) <= 300
    assert str(refused.value).isprintable()


def test_a_reason_is_found_in_the_answers_of_each_platform(linked: LinkedActivity) -> None:
    said = {
        '{"errors": [{"message": "The score is too high"}], "userId": "7"}': "The score is too high",
        '{"status": 400, "reason": "Incorrect score received{\\"userId\\": \\"7\\"}"}': "Incorrect score received",
        "<html><title>Oh</title></html>": "<html><title>Oh</title></html>",  # unless its type says that it is a page
        '{"userId": "7"}': "",
    }
    for body, reason in said.items():
        linked.platform.refuse("scores", 422, reason=body)
        with pytest.raises(ScoreRefusedError) as refused:
            linked.services.send_score(linked.known, linked.link.lineitem_url, "nobody", SOMETHING)
        assert str(refused.value).partition(": ")[2] == reason
        assert "userId" not in str(refused.value)


@pytest.mark.parametrize("status", [429, 500, 503, 403])
def test_a_platform_that_is_busy_can_be_asked_later(linked: LinkedActivity, status: int) -> None:
    linked.platform.refuse("scores", status, X_Rate_Limit_Remaining="0.0", Retry_After="90")
    with pytest.raises(PlatformError) as failed:
        linked.services.send_score(linked.known, linked.link.lineitem_url, "nobody", SOMETHING)
    assert failed.value.retry_after_s == 90


def test_a_refused_token_is_a_failure_of_the_platform(linked: LinkedActivity, store: Store) -> None:
    linked.platform.clients.clear()
    with pytest.raises(PlatformError, match="invalid_client"):
        members(linked)


def test_a_platform_with_a_clock_ahead_takes_the_score_at_the_second_try(linked: LinkedActivity, clock: Clock) -> None:
    linked.come("7")
    linked.platform.clock = lambda: clock.now + timedelta(minutes=2)
    linked.platform.change_grade(linked.column, "7", 3)
    linked.services.send_score(linked.known, linked.link.lineitem_url, "7", Standing(11, 14, clock.now))
    assert linked.grades == {"7": 11}
    assert linked.platform.requests["scores"] == 2


@pytest.mark.parametrize(
    "trouble",
    [
        {"reason": "[]"},
        {"reason": '{"members": [{"user_id": "\\ud800", "roles": []}]}'},
        {"reason": '{"members": [{"user_id": "$User.id", "roles": []}]}'},
        {"reason": '{"members": []}', "Link": '<http://[::1>; rel="next"'},
        {"reason": "[" * 5000},
    ],
)
def test_a_list_that_makes_no_sense_is_a_failure_of_the_platform(
    linked: LinkedActivity, trouble: dict[str, str]
) -> None:
    linked.platform.refuse("memberships", 200, times=9, after=0, **trouble)
    with pytest.raises(PlatformError):
        members(linked)


def test_a_conflict_at_the_end_of_time_is_refused(linked: LinkedActivity) -> None:
    for date in ("Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 0001 00:00:00 +2359", "soon"):
        linked.platform.refuse("scores", 409, times=2, Date=date)
        with pytest.raises(ScoreRefusedError):
            linked.services.send_score(linked.known, linked.link.lineitem_url, "nobody", SOMETHING)
