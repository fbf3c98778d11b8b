"""Launches that are forged, replayed, expired or meant for somebody else, sent to the running app by a platform."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from fastapi import FastAPI

from app.web.shared.cookies import CLASS_COOKIE, TEACHER_COOKIE, VISITOR_COOKIE
from simulation.lti_platform import (
    ALL_PLATFORMS,
    ASSISTANT,
    CANVAS,
    CLAIM,
    INSTITUTION_INSTRUCTOR,
    INSTRUCTOR,
    LEARNER,
    MENTOR,
    TEST_USER,
    Person,
    Platform,
    Quirks,
)
from tests.helpers.clock import Clock
from tests.helpers.lti_class import IN_WINDOW, TOOL, LtiClass, running_class
from tests.helpers.running_app import make_app
from tests.helpers.school import Browser, Classroom

SESSIONS = {TEACHER_COOKIE, VISITOR_COOKIE, CLASS_COOKIE}
SHEET = "/class/1/1"
UNICODE_NAME = "Zoë <b>O'Neill</b>"


class Lms(LtiClass):
    """A platform whose course is the classroom's, and whose "link-1" opens its activity."""

    def __init__(self, app: FastAPI, platform: Platform) -> None:
        super().__init__(app, platform)
        self.app, self.classroom = app, Classroom(app)
        self.course.people |= {"8": Person("8", "Lee Roe"), "9": Person("9", "Eve", INSTRUCTOR)}
        self.course.people["7"].name = "Kim Doe"
        self.store.lti.connect(self.registered.id, "1", self.classroom.teacher)
        with self.browser() as browser:
            self.launch(browser, "1")
            browser.post("/lti/link", data={"course": self.classroom.course.id})
            browser.post("/lti/link", data={"activity": self.classroom.activity.id})

    def browser(self, app: FastAPI | None = None) -> Browser:
        """A browser that nobody has used yet."""
        return Browser(app or self.app, raise_server_exceptions=False, follow_redirects=False)

    def fields(self, browser: Browser, sub: str, /, link_id: str = "link-1", **claims: Any) -> dict[str, str]:
        """What the platform's form sends after this browser has begun a launch."""
        return self.message(self.begin(browser, self.platform.initiation(
            self.client, self.course, sub, link_id, **claims)))  # fmt: skip

    def open(
        self, sub: str, browser: Browser | None = None, /, link_id: str = "link-1", **claims: Any
    ) -> httpx2.Response:
        """Open a link in a window; the response is the first page that isn't a redirect."""
        browser = browser or self.browser()
        return follow(browser, self.post(browser, self.fields(browser, sub, link_id, **claims)))

    def students(self) -> list[str]:
        """The names of the classroom's students."""
        return [student.name for student in self.store.roster.students(self.classroom.course)]


def follow(browser: Browser, response: httpx2.Response, most: int = 5) -> httpx2.Response:
    """Follow redirects within the app."""
    while response.is_redirect and most:
        response = browser.get(response.headers["location"])
        most -= 1
    return response


@pytest.fixture
def lms(new_app: FastAPI, clock: Clock) -> Iterator[Lms]:
    with running_class(Lms, new_app) as made:
        yield made


def is_refused(response: httpx2.Response, browser: Browser) -> bool:
    """Whether it is a page that says no, and the browser is nobody."""
    assert response.status_code < 500, response.text
    return response.status_code >= 400 and not SESSIONS & set(browser.cookies)


# The way it should go


@pytest.mark.parametrize("quirks", ALL_PLATFORMS, ids=lambda quirks: quirks.product)
def test_a_student_comes_to_the_sheet_with_one_click(new_app: FastAPI, clock: Clock, quirks: Quirks) -> None:
    with running_class(Lms, new_app, quirks) as lms:
        page = lms.open("7")
        assert (page.status_code, page.url.path) == (200, SHEET)
        assert "Kim Doe" in page.text
        assert lms.open("7").url.path == SHEET
        assert lms.students() == ["Kim Doe"]


# Replays


def test_a_launch_opens_the_app_once(lms: Lms) -> None:
    browser = lms.browser()
    fields = lms.fields(browser, "7")
    assert follow(browser, lms.post(browser, fields)).url.path == SHEET
    other = lms.browser()
    assert is_refused(follow(other, lms.post(other, fields)), other)
    other.cookies.update({name: value for name, value in browser.cookies.items() if name not in SESSIONS})
    assert is_refused(follow(other, lms.post(other, fields)), other)
    assert is_refused(other.get("/lti/open", headers=IN_WINDOW), other)
    assert lms.students() == ["Kim Doe"]


def test_nobody_opens_a_launch_that_began_in_another_browser(lms: Lms) -> None:
    attacker, victim = lms.browser(), lms.browser()
    fields = lms.fields(attacker, "7")
    assert is_refused(follow(victim, lms.post(victim, fields)), victim)
    assert lms.students() == []
    mine = lms.fields(victim, "8")
    assert is_refused(follow(victim, lms.post(victim, {**fields, "state": mine["state"]})), victim)


def test_a_nonce_is_used_once_in_all_processes(lms: Lms) -> None:
    other_process = make_app(lms.app.state.services.settings)
    browser, stranger = lms.browser(), lms.browser(other_process)
    fields = lms.fields(browser, "7")
    assert lms.post(browser, fields).status_code == 303
    stranger.cookies.update(dict(browser.cookies))
    assert is_refused(lms.post(stranger, fields), stranger)
    other_process.state.services.store.close()


def test_an_old_launch_is_refused(lms: Lms, clock: Clock) -> None:
    browser = lms.browser()
    fields = lms.fields(browser, "7")
    clock.pass_minutes(11)
    assert is_refused(follow(browser, lms.post(browser, fields)), browser)
    fields = lms.fields(browser, "7")
    posted = lms.post(browser, fields)
    clock.pass_minutes(61)
    assert is_refused(follow(browser, posted), browser)


# Forged and malformed tokens

DAY_S = 24 * 3600


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"exp": 4_102_444_800},  # in 2100
        {"exp": "soon"},
        {"exp": 10**400},
        {"iat": None},
        {"iat": 10**400},
        {"iat": -(10**400), "exp": 10**400},
        {"iat": float("nan"), "exp": float("nan")},
        {"iat": True, "exp": True},
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "client-of-somebody-else"},
        {"aud": []},
        {"aud": {"client-1": 1}},
        {"azp": "client-of-somebody-else"},
        {"nonce": None},
        {"nonce": "of somebody else"},
        {"nonce": 7},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "$User.id"},
        {"sub": "x" * 5000},
        {"version": None},
        {"version": "1.1.0"},
        {"message_type": None},
        {"message_type": "LtiSubmissionReviewRequest"},
        {"deployment_id": None},
        {"deployment_id": ["deployment"]},
        {"context": None},
        {"context": "course-1"},
        {"context": {"id": "$Context.id"}},
        {"resource_link": None},
        {"resource_link": {"id": ""}},
        {"roles": None},
        {"roles": "Learner"},
        {"roles": [["Learner"]]},
        {"roles": list(MENTOR)},
        {"roles": list(INSTITUTION_INSTRUCTOR)},
        {"roles": ["http://purl.imsglobal.org/vocab/lis/v2/membership#Observer"]},
    ],
    ids=lambda claims: str(claims)[:60],
)
def test_a_token_with_wrong_claims_opens_nothing(lms: Lms, claims: dict[str, Any]) -> None:
    browser = lms.browser()
    assert is_refused(lms.open("7", browser, **claims), browser)
    assert lms.students() == []


def test_a_token_that_is_a_day_old_opens_nothing(lms: Lms, clock: Clock) -> None:
    at, browser = int(clock.now.timestamp()), lms.browser()
    dated: tuple[dict[str, Any], ...] = (
        {"iat": at - DAY_S},
        {"iat": at - DAY_S, "exp": at - DAY_S + 300},
        {"iat": at + DAY_S},
    )
    for claims in dated:
        assert is_refused(lms.open("7", browser, **claims), browser), claims
    assert lms.open("7", browser, iat=at - 20, exp=at - 10).url.path == SHEET  # its clock is slow


def test_several_audiences_need_this_tool_as_the_authorized_one(lms: Lms) -> None:
    browser, both = lms.browser(), [lms.client.id, "another"]
    assert is_refused(lms.open("7", browser, aud=both, azp="another"), browser)
    assert is_refused(lms.open("7", browser, aud=both, azp=None), browser)
    assert lms.open("7", browser, aud=both[::-1]).url.path == SHEET


def encoded(data: bytes) -> str:
    return jwt.utils.base64url_encode(data).decode()


def forged_tokens(platform: Platform, token: str) -> dict[str, str]:
    """Tokens with the claims of a good one that nobody or somebody else signed."""
    claims = jwt.decode(token, options={"verify_signature": False})
    header, payload, _signature = token.split(".")
    other, public = generate_private_key(65537, 2048), "a shared secret that is long enough to be used with HMAC"
    return {
        "unsigned": jwt.encode(claims, "", "none", {"kid": "key-1"}),
        "unsigned with a signature": f"{jwt.encode(claims, '', 'none', {'kid': 'key-1'})}x",
        "symmetric": jwt.encode(claims, public, "HS256", {"kid": "key-1"}),
        "another key": platform.sign(claims, key=other),
        "another algorithm": platform.sign(claims, algorithm="RS512"),
        "no kid": platform.sign(claims, kid=None),
        "kid of another type": encoded(b'{"alg": "RS256", "kid": [1]}') + f".{payload}.x",
        "kid as an address": platform.sign(claims, kid="http://127.0.0.1/keys"),
        "critical header": platform.sign(claims, crit=["exp"]),
        "no signature": f"{header}.{payload}.",
        "a part": header,
        "nothing": "",
        "garbage": "\x00é" * 100,
        "too long": f"{header}.{payload}.{'A' * 50_000}",
        "deep": f"{header}.{encoded(b'[' * 20_000)}.x",
        "not an object": f"{header}.{encoded(b'7')}.x",
    }


def test_nobody_but_the_platform_signs_tokens(lms: Lms) -> None:
    browser = lms.browser()
    good = lms.fields(browser, "7")
    for name, token in forged_tokens(lms.platform, good["id_token"]).items():
        assert is_refused(follow(browser, lms.post(browser, {**good, "id_token": token})), browser), name
    for state in ("", "x", "a.b.c", "é\x00", "A" * 20_000):
        assert is_refused(follow(browser, lms.post(browser, {**good, "state": state})), browser), state[:9]
    assert is_refused(lms.post(browser, {}), browser)
    assert follow(browser, lms.post(browser, good)).url.path == SHEET


# Keys and clients


def test_keys_may_be_rotated(lms: Lms, clock: Clock) -> None:
    assert lms.open("7").url.path == SHEET
    fetched = lms.platform.requests["keys"]
    assert lms.open("8").url.path == SHEET
    assert lms.platform.requests["keys"] == fetched
    clock.pass_minutes(2)
    lms.platform.rotate_keys()
    assert lms.open("7").url.path == SHEET
    assert lms.platform.requests["keys"] == fetched + 1
    clock.pass_minutes(2)
    lms.platform.rotate_keys(publish=1)
    assert lms.open("8").url.path == SHEET


def test_unknown_keys_are_looked_up_once_a_minute_by_all_processes(lms: Lms) -> None:
    assert lms.open("7").url.path == SHEET
    other_process = make_app(lms.app.state.services.settings)
    before = lms.platform.requests["keys"]
    for number in range(10):
        browser = lms.browser(other_process if number % 2 else lms.app)
        good = lms.fields(browser, "7")
        claims = jwt.decode(good["id_token"], options={"verify_signature": False})
        forged = lms.platform.sign(claims, kid=f"invented-{number}")
        assert is_refused(lms.post(browser, {**good, "id_token": forged}), browser)
    assert lms.platform.requests["keys"] <= before + 1
    assert lms.open("8").url.path == SHEET
    other_process.state.services.store.close()


def test_a_key_set_that_is_out_of_order_is_no_fault_of_ours(lms: Lms, clock: Clock) -> None:
    for status in (500, 404, 302, 200):  # the last is empty, so not JSON
        lms.platform.rotate_keys()
        lms.platform.refuse("keys", status, location="http://127.0.0.1:1/keys")
        clock.pass_minutes(2)
        browser = lms.browser()
        assert lms.open("7", browser).status_code in (400, 502, 503)
        assert not SESSIONS & set(browser.cookies)
    clock.pass_minutes(2)
    assert lms.open("7").url.path == SHEET


def test_two_clients_of_one_issuer_are_told_apart(new_app: FastAPI, clock: Clock) -> None:
    with running_class(Lms, new_app, CANVAS) as lms:
        other = lms.platform.add_client(TOOL)
        lms.register(other.id, other.deployment_id)
        initiation = lms.platform.initiation(lms.client, lms.course, "7")
        anonymous = {name: value for name, value in initiation.fields.items() if name != "client_id"}
        browser = lms.browser()
        assert is_refused(browser.post("/lti/login", data=anonymous, headers=IN_WINDOW), browser)
        good = lms.message(lms.begin(browser, initiation))
        claims = jwt.decode(good["id_token"], options={"verify_signature": False})
        claims |= {"aud": other.id, "azp": other.id, f"{CLAIM}deployment_id": other.deployment_id}
        for_the_other = {**good, "id_token": lms.platform.sign(claims)}
        assert is_refused(follow(browser, lms.post(browser, for_the_other)), browser)
        assert follow(browser, lms.post(browser, good)).url.path == SHEET
        # The same person by way of the other client is a stranger in another context.
        initiation, browser = lms.platform.initiation(other, lms.course, "7"), lms.browser()
        page = follow(browser, lms.post(browser, lms.message(lms.begin(browser, initiation))))
        assert page.url.path != SHEET
        assert lms.students() == ["Kim Doe"]


def test_unknown_platforms_and_deployments_wait_outside(lms: Lms) -> None:
    browser = lms.browser()
    fields = dict(lms.platform.initiation(lms.client, lms.course, "7").fields)
    for name in ("iss", "client_id"):
        assert is_refused(browser.post("/lti/login", data={**fields, name: "https://x.example"}), browser), name
    for changed in ({}, {"iss": "x" * 9000}, {**fields, "login_hint": ""}, {**fields, "target_link_uri": "x" * 20_000}):
        assert browser.post("/lti/login", data=changed, headers=IN_WINDOW).status_code < 500
        assert browser.get("/lti/login", params=changed, headers=IN_WINDOW).status_code < 500
    assert is_refused(lms.open("7", browser, deployment_id="another"), browser)
    assert [each.deployment_id for each in lms.store.lti.deployments() if not each.confirmed] == ["another"]
    assert lms.students() == []


# What is in a message


def test_forged_target_links_lead_nowhere(lms: Lms) -> None:
    school = lms.classroom.school
    theirs = school.course("Not theirs", school.teacher())
    foreign = school.activity(theirs)
    for target in (
        "https://evil.example/",
        "//evil.example/",
        "javascript:alert(1)",
        f"{TOOL}/lti/activities/{foreign.id}",
        f"https://evil.example/lti/activities/{foreign.id}",
        f"{TOOL}/lti/activities/99999999999999999999",
        f"{TOOL}/lti/activities/../../courses/1",
        f"{TOOL}/sign-out",
        "x" * 3000,
    ):
        browser = lms.browser()
        first = lms.begin(browser, lms.platform.initiation(lms.client, lms.course, "7", target=target))
        assert first.status_code < 500
        if first.is_redirect:
            assert first.headers["location"].startswith(lms.platform.url)
        page = lms.open("7", browser, target=target)
        assert page.status_code < 500
        assert page.url.host == "testserver"
        assert f"/class/{foreign.id}/" not in page.url.path
        # A link that isn't bound yet doesn't become bound to an activity of others either.
        lms.platform.add_link(lms.course, "link-2", {"title": "Another"})
        page = lms.open("8", lms.browser(), link_id="link-2", target=target)
        assert page.url.path.startswith("/lti/"), target
    assert lms.store.roster.students(theirs) == ()


def test_return_addresses_are_web_addresses(lms: Lms) -> None:
    for address in ("javascript:alert(1)", "data:text/html,x", "//evil.example", 'https://x.example/"><script>', 7):
        for sub, roles in (("7", list(MENTOR)), ("9", list(INSTRUCTOR)), ("7", list(TEST_USER))):
            page = lms.open(sub, roles=roles, launch_presentation={"return_url": address})
            assert page.status_code < 500
            assert "javascript:" not in page.text
            assert "data:text" not in page.text
            assert "<script>" not in page.text.replace("<script>\n", "")


def test_names_are_text(lms: Lms) -> None:
    name = UNICODE_NAME
    lms.course.title = "<script>alert(1)</script>"
    page = lms.open("7", name=name, context={"id": lms.course.id, "title": "<script>alert(1)</script>"},
                    resource_link={"id": "link-1", "title": "<img src=x onerror=alert(1)>"})  # fmt: skip
    assert page.url.path == SHEET
    for text in (page.text, lms.classroom.get(f"/courses/{lms.classroom.course.id}")):
        assert "<b>O'Neill" not in text
        assert "<script>alert" not in text
        assert "onerror=alert(1)>" not in text
    lms.platform.add_link(lms.course, "link-2", {"title": "<img src=x onerror=alert(1)>"})
    page = lms.open("1", link_id="link-2", context={"id": lms.course.id, "title": "<script>alert(1)</script>"})
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text


@pytest.mark.parametrize("name", ["", "$Person.name.full", "x" * 5000, "\u202eevil\x00", "   "])
def test_people_without_a_usable_name_get_one(lms: Lms, name: str) -> None:
    assert lms.open("7", name=name).url.path == SHEET
    [given] = lms.students()
    assert 0 < len(given) <= 100
    assert given.isprintable()
    assert not given.startswith("$")


def test_roles_of_the_course_count_and_no_others(lms: Lms) -> None:
    student = [*LEARNER, *INSTITUTION_INSTRUCTOR]
    assert lms.open("7", roles=student).url.path == SHEET
    for roles in (list(ASSISTANT), list(INSTRUCTOR)):
        browser = lms.browser()
        page = lms.open("8", browser, roles=roles)
        assert page.url.path.startswith("/lti/")
        assert not SESSIONS & set(browser.cookies)
    assert lms.students() == ["Kim Doe"]


def test_the_student_view_of_a_teacher_leaves_nothing_behind(lms: Lms) -> None:
    browser = lms.browser()
    page = lms.open("7", browser, roles=list(TEST_USER))
    assert page.status_code < 500
    assert lms.students() == []
    assert not {TEACHER_COOKIE, CLASS_COOKIE} & set(browser.cookies)


def test_a_copied_course_does_not_lead_into_the_old_activity(lms: Lms) -> None:
    lms.course.links["link-1"]["url"] = f"{TOOL}/lti/activities/{lms.classroom.activity.id}"
    copy = lms.platform.copy_course(lms.course)
    copy.people["7"] = Person("7", "Kim Doe")
    [link_id] = copy.links
    browser = lms.browser()
    fields = lms.message(lms.begin(browser, lms.platform.initiation(lms.client, copy, "7", link_id)))
    page = follow(browser, lms.post(browser, fields))
    assert page.url.path.startswith("/lti/")
    assert lms.students() == []


# The log


def test_the_log_names_nobody(lms: Lms, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    name = "Perceval Nomenclature"
    lms.open("7", name=name)
    lms.open("7", name=name, exp=None)
    lms.open("7", name=name, roles=list(MENTOR))
    lms.platform.is_down = True
    lms.platform.rotate_keys()
    lms.open("8", name=name)
    logged = "\n".join(f"{record.getMessage()} {record.exc_info or ''}" for record in caplog.records)
    for private in (name, "Perceval", "id_token", "eyJ"):
        assert private not in logged
