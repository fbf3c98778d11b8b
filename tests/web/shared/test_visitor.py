"""How a browser that nobody is signed in with is known again: by a cookie, or at first by a secret in its form."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from starlette.testclient import TestClient

from app.web.shared.cookies import VISITOR_COOKIE
from tests.helpers.html_page import Page
from tests.helpers.sheet_form import LLAMA_FORM, filled


def test_the_cookie_is_closed_to_scripts_and_other_sites(client: TestClient) -> None:
    assert "set-cookie" not in client.get("/sheet").headers
    cookie = client.post("/sheet/save", data=LLAMA_FORM).headers["set-cookie"]
    assert cookie.startswith(VISITOR_COOKIE)
    assert {"HttpOnly", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Secure" in client.post("https://testserver/sheet/save", data=LLAMA_FORM).headers["set-cookie"]


def test_what_a_new_browser_sends_at_once_is_one_persons(client: TestClient) -> None:
    newcomer = Page(client.get("/sheet").text).find("input", name="form_secret")[0][0]["value"]
    assert Page(client.get("/sheet").text).find("input", name="form_secret")[0][0]["value"] != newcomer
    sent = {"check": filled(queries__columns="4096"), "save": filled(queries__columns="4096")}
    browsers = {what: TestClient(client.app) for what in sent}
    with ThreadPoolExecutor(2) as pool:
        under_way = [
            pool.submit(browsers[what].post, f"/sheet/{what}", data={**form, "form_secret": newcomer})
            for what, form in sent.items()
        ]
    assert [one.result().status_code for one in under_way] == [200, 200]
    for browser in browsers.values():
        page = Page(browser.get("/sheet").text)
        assert page.marks()["queries.columns"] == "wrong"
        assert page.find("input", name="form_secret") == []
    assert Page(TestClient(client.app).get("/sheet").text).marks() == {}


def test_a_cookie_nobody_gave_out_is_a_new_visitor(client: TestClient) -> None:
    client.cookies.set(VISITOR_COOKIE, "made-up")
    assert client.get("/sheet").status_code == 200
    assert "made-up" not in client.post("/sheet/save", data=LLAMA_FORM).headers["set-cookie"]
