"""Learning platforms as operators register them: by hand, by a link, and what waits to be confirmed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest
from fastapi import FastAPI

from app.store.tables import audit_log
from simulation.lti_platform import BRIGHTSPACE, CANVAS, MOODLE, Platform, Quirks, running_platform
from tests.helpers.html_page import Page
from tests.helpers.lti_class import lti_class
from tests.helpers.school import Browser, School

BY_HAND = {
    "name": "Moodle",
    "issuer": "https://lms.example.org",
    "client_id": "abc",
    "authorization_url": "https://lms.example.org/auth",
    "token_url": "https://lms.example.org/token",
    "keys_url": "https://lms.example.org/keys",
    "token_audience": "",
    "deployment_id": "1",
}


@pytest.fixture
def operator(new_app: FastAPI) -> Iterator[Browser]:
    school = School(new_app)
    teacher = school.teacher()
    school.store.people.set_operator(teacher, True)
    with school.browser(teacher=teacher) as browser:
        yield browser


def link_from(operator: Browser) -> str:
    shown = operator.post("/platforms/link", follow_redirects=True)
    found = re.search(r"/lti/register/[\w-]+", Page(shown.text).text("code", id="registration-link"))
    assert found
    return found[0]


def opened(browser: Browser, link: str, platform: Platform, **query: str) -> httpx2.Response:
    return browser.get(link, params={**platform.registration_query(), **query})


def test_a_platform_is_registered_by_hand_and_removed(new_app: FastAPI, operator: Browser) -> None:
    store = School(new_app).store
    page = operator.get("/platforms").text
    assert all(f"http://testserver/lti/{name}<" in page for name in ("login", "launch", "choose", "keys"))
    for broken in ({"name": ""}, {"keys_url": "javascript:alert(1)"}, {"token_url": "x"}, {"client_id": "x" * 201}):
        refused = operator.post("/platforms", data={**BY_HAND, **broken})
        assert refused.status_code == 422
        assert "https://lms.example.org/auth" in refused.text
    assert store.lti.platforms() == ()
    assert operator.post("/platforms", data=BY_HAND).headers["location"] == "/platforms?done=added"
    assert operator.post("/platforms", data=BY_HAND).status_code == 422
    [platform] = store.lti.platforms()
    assert store.lti.is_confirmed(platform.id, "1")
    assert operator.post(f"/platforms/{platform.id}/remove").status_code == 303
    assert store.lti.platforms() == ()
    assert operator.post(f"/platforms/{platform.id}/remove").status_code == 404


def test_a_deployment_that_waits_is_confirmed_on_the_page(new_app: FastAPI, operator: Browser) -> None:
    with lti_class(new_app) as there:
        there.client.deployment_id = "<school> 2"
        with there.school.browser() as browser:
            assert there.launch(browser, "1").status_code == 403
            page = Page(operator.get("/platforms").text)
            [(waiting, _text)] = page.find("input", name="deployment")
            confirm = f"/platforms/{there.registered.id}/confirm"
            assert operator.post(confirm, data={"deployment": "another"}).status_code == 404
            assert operator.post(confirm, data={"deployment": waiting["value"]}).status_code == 303
            assert there.launch(browser, "1").headers["location"] == "/lti/connect"


@pytest.mark.parametrize("quirks", [MOODLE, BRIGHTSPACE, CANVAS], ids=lambda quirks: quirks.product)
def test_a_platform_registers_itself_with_a_link_that_works_once(
    new_app: FastAPI, operator: Browser, quirks: Quirks
) -> None:
    with lti_class(new_app, quirks) as there, there.school.browser() as administrator:
        there.store.lti.remove_platform(there.registered)
        link = link_from(operator)
        assert administrator.get(link).status_code == 200
        done = opened(administrator, link, there.platform)
        assert done.status_code == 200, done.text
        assert "lti_close" in done.text
        assert "frame-ancestors *" in done.headers["content-security-policy"]
        [registered] = there.store.lti.platforms()
        there.client = there.platform.clients[registered.client_id]
        assert registered.audience == there.platform.token_audience
        assert opened(administrator, link, there.platform).status_code == 404
        first = there.launch(administrator, "1")
        if quirks.registers_deployment:
            assert first.headers["location"] == "/lti/connect"
        else:
            assert first.status_code == 403
            assert [each.deployment_id for each in there.store.lti.deployments()] == [there.client.deployment_id]
        with there.store.engine.connect() as connection:
            assert "learning platform added" in connection.execute(audit_log.select()).scalars("action").all()


def test_a_refused_registration_can_be_tried_again(new_app: FastAPI, operator: Browser) -> None:
    with lti_class(new_app) as there, there.school.browser() as administrator:
        link = link_from(operator)
        refused = opened(administrator, link, there.platform, registration_token="wrong")  # noqa: S106
        assert refused.status_code == 422
        there.platform.is_down = True
        assert opened(administrator, link, there.platform).status_code == 422
        there.platform.is_down = False
        assert opened(administrator, link, there.platform).status_code == 200


def test_a_private_or_foreign_configuration_is_not_registered(new_app: FastAPI, operator: Browser) -> None:
    store = School(new_app).store
    with running_platform(MOODLE) as moodle, running_platform(Quirks("x", "https://lms.example.org")) as foreign:
        link = link_from(operator)
        assert opened(operator, link, moodle).status_code == 502
        new_app.state.services.settings.lti_private = True
        assert opened(operator, link, foreign).status_code == 422
        for url in ("", "x", "file:///etc/passwd", "https://[::1", "http://127.0.0.1:1/"):
            assert operator.get(link, params={"openid_configuration": url}).status_code in (200, 422, 502), url
    assert store.lti.platforms() == ()


def test_a_registration_link_is_no_account_link(operator: Browser) -> None:
    token = link_from(operator).rpartition("/")[2]
    assert operator.get(f"/links/{token}").status_code == 404


def test_there_is_no_registration_without_a_link(new_app: FastAPI) -> None:
    with lti_class(new_app) as there, there.school.browser() as browser:
        assert opened(browser, "/lti/register/invented", there.platform).status_code == 404
        assert there.platform.requests["configuration"] == 0


def test_two_clients_of_one_issuer_are_told_apart_by_their_ids(new_app: FastAPI) -> None:
    with lti_class(new_app) as there, there.school.browser() as browser:
        second = there.platform.add_client("http://testserver")
        there.register(second.id, second.deployment_id)
        assert there.launch(browser, "1").headers["location"] == "/lti/connect"
        initiation = there.platform.initiation(second, there.course, "1")
        without = {name: value for name, value in initiation.fields.items() if name != "client_id"}
        assert browser.post("/lti/login", data=without).status_code == 400
        begun = there.begin(browser, initiation)
        assert f"client_id={second.id}" in begun.headers["location"]
