"""Messages of a platform, as PyJWT signs them: which are believed, and what they say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from app.lti.message import MessageError, role_of, verify
from app.refusal import Refusal
from app.settings import Settings
from app.store import Launch, Store
from app.store.lti import KEY_FETCH_INTERVAL
from simulation.lti_platform import (
    ASSISTANT,
    BLACKBOARD,
    CLAIM,
    INSTRUCTOR,
    MENTOR,
    SETTINGS,
    Client,
    Course,
    Person,
    Platform,
    running_platform,
)
from tests.helpers.clock import CLOCK, Clock

MEMBERSHIP = "http://purl.imsglobal.org/vocab/lis/v2/membership"


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with running_platform(BLACKBOARD, clock=CLOCK) as running:
        yield running


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    opened = Store(Settings(data_dir=data_dir, database_url="").database, data_dir, clock=CLOCK)
    yield opened
    opened.close()


class Sent:
    """What a platform sends, and what the app makes of it."""

    def __init__(self, store: Store, platform: Platform) -> None:
        self.store, self.platform = store, platform
        self.client: Client = platform.add_client("https://tool.example")
        self.course: Course = platform.add_course(Person("7", "Kim"), Person("1", "Ada", INSTRUCTOR))
        urls = (f"{platform.url}/{name}" for name in ("authorize", "token", "keys"))
        added = store.lti.add_platform("Blackboard", platform.issuer, self.client.id, *urls)
        assert added
        self.registered = added

    def claims(self, **changed: Any) -> dict[str, Any]:
        initiation = self.platform.initiation(self.client, self.course, "7", **changed)
        return {**self.platform.messages[initiation.fields["lti_message_hint"]].claims, "nonce": "n"}

    def verify(self, claims: dict[str, Any], **signed: Any) -> Launch:
        registered = self.store.lti.platform(self.registered.id)
        assert registered
        token = self.platform.sign(claims, **signed)
        return verify(self.store, registered, token, "n", allow_private=True)


@pytest.fixture
def sent(store: Store, platform: Platform) -> Sent:
    return Sent(store, platform)


def test_a_message_says_who_opens_what(sent: Sent) -> None:
    target = "https://tool.example/lti/activities/12"
    launch = sent.verify(sent.claims(target=target))
    assert (launch.sub, launch.name, launch.role, launch.activity_id) == ("7", "Kim", "student", 12)
    assert launch.context_id == sent.course.id
    assert launch.lineitem_url == sent.course.line_items[0].url
    assert launch.deep_linking is None


def now() -> int:
    return int(datetime.now(UTC).timestamp())


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"nonce": None},
        {"nonce": "another"},
        {"iss": "https://other.example"},
        {"aud": "another"},
        {"aud": ["another"]},
        {"azp": "another"},
        {"exp": 4102444800},
        {"exp": 10**400},
        {"iat": -(10**400)},
        {"exp": float("nan")},
        {"iat": float("inf")},
        {"iat": "yesterday"},
        {"iat": True},
        {"iat": now() - 24 * 3600, "exp": now() + 300},
        {"iat": now() - 400, "exp": now() - 200},
        {"iat": now() + 3600, "exp": now() + 3700},
        {"sub": ""},
        {"sub": "$User.id"},
        {"sub": "x" * 256},
        {"sub": "a\x00b"},
        {"sub": "\ud800"},
        {f"{CLAIM}version": "1.1.0"},
        {f"{CLAIM}version": None},
        {f"{CLAIM}message_type": "LtiSubmissionReviewRequest"},
        {f"{CLAIM}deployment_id": None},
        {f"{CLAIM}context": None},
        {f"{CLAIM}context": {"id": "$Context.id"}},
        {f"{CLAIM}context": ["id"]},
        {f"{CLAIM}resource_link": None},
    ],
    ids=repr,
)
def test_what_lacks_something_or_comes_at_another_time_opens_nothing(sent: Sent, changed: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        sent.verify({**sent.claims(), **changed})


def test_two_audiences_need_to_say_whom_the_message_is_for(sent: Sent) -> None:
    audience = {"aud": ["another", sent.client.id]}
    assert sent.verify({**sent.claims(), **audience}).sub == "7"
    with pytest.raises(MessageError):
        sent.verify({**sent.claims(), **audience, "azp": None})


def test_a_clock_that_is_a_little_ahead_is_fine(sent: Sent) -> None:
    assert sent.verify({**sent.claims(), "iat": now() + 20, "exp": now() + 200})


@pytest.mark.parametrize(
    "signed",
    [
        {"algorithm": "none", "key": ""},
        {"algorithm": "HS256", "key": "the platform's public key as a shared secret"},
        {"kid": None},
        {"kid": "nobody’s"},
        {"crit": ["exp"]},
    ],
    ids=repr,
)
def test_a_message_that_the_platform_did_not_sign_opens_nothing(sent: Sent, signed: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        sent.verify(sent.claims(), **signed)
    with pytest.raises(Refusal):
        sent.verify(sent.claims(), key=generate_private_key(65537, 2048))


def test_new_keys_are_found_by_one_request_and_invented_ones_cause_no_more(
    sent: Sent, platform: Platform, clock: Clock
) -> None:
    before = platform.requests["keys"]
    sent.verify(sent.claims())
    assert platform.requests["keys"] == before + 1
    platform.rotate_keys()
    for _ in range(10):
        with pytest.raises(MessageError):
            sent.verify(sent.claims())
    assert platform.requests["keys"] == before + 1
    clock.pass_seconds(KEY_FETCH_INTERVAL.total_seconds() + 1)
    assert sent.verify(sent.claims()).sub == "7"
    assert platform.requests["keys"] == before + 2


GRADER = "http://purl.imsglobal.org/vocab/lis/v2/membership/Instructor#Grader"


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        (INSTRUCTOR, "instructor"),
        (ASSISTANT, "assistant"),
        ([f"{MEMBERSHIP}#Instructor", GRADER], "assistant"),
        (MENTOR, ""),
        (["Learner"], "student"),
        (["Instructor"], "instructor"),
        ([f"{MEMBERSHIP}#Learner", f"{MEMBERSHIP}#Instructor"], "instructor"),
        (["http://purl.imsglobal.org/vocab/lis/v2/institution/person#Instructor", f"{MEMBERSHIP}#Learner"], "student"),
        (["http://purl.imsglobal.org/vocab/lis/v2/system/person#Administrator"], ""),
        ([f"{MEMBERSHIP}#Observer"], ""),
        ([], ""),
    ],
)
def test_roles_count_in_the_course_only(roles: list[str], role: str) -> None:
    assert role_of(roles) == role


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "//evil.example", "https://", 7, None])
def test_content_is_chosen_only_for_a_web_address(sent: Sent, address: Any) -> None:
    claims = sent.claims()
    claims |= {f"{CLAIM}message_type": "LtiDeepLinkingRequest", SETTINGS: {"deep_link_return_url": address}}
    with pytest.raises(MessageError):
        sent.verify(claims)


@pytest.mark.parametrize(
    ("settings", "multiple", "lineitem", "data"),
    [
        ({}, False, True, None),
        ({"accept_multiple": "true", "accept_lineitem": False, "data": ""}, True, False, ""),
        ({"accept_multiple": True, "accept_lineitem": "false", "data": '{"a": 1}'}, True, False, '{"a": 1}'),
    ],
)
def test_what_deep_linking_asks_for(
    sent: Sent, settings: dict[str, Any], multiple: bool, lineitem: bool, data: str | None
) -> None:
    asked = {"deep_link_return_url": "https://lms.example/return", "accept_types": ["ltiResourceLink"], **settings}
    launch = sent.verify({**sent.claims(), f"{CLAIM}message_type": "LtiDeepLinkingRequest", SETTINGS: asked})
    assert launch.deep_linking
    assert launch.deep_linking.accepts_links
    assert (launch.deep_linking.accept_multiple, launch.deep_linking.accept_lineitem) == (multiple, lineitem)
    assert launch.deep_linking.data == data


def test_names_are_cleaned_and_those_of_variables_left_out(sent: Sent) -> None:
    assert sent.verify({**sent.claims(), "name": "  Kim\x00\n Lee "}).name == "Kim Lee"
    assert sent.verify({**sent.claims(), "name": "$Person.name.full"}).name == ""
    unnamed = {**sent.claims(), "name": None, "given_name": "Kim", "family_name": "Lee"}
    assert sent.verify(unnamed).name == "Kim Lee"
    assert len(sent.verify({**sent.claims(), "name": "x" * 5000}).name) == 100
