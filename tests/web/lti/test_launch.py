"""Opening the app from a learning platform: who gets in, and into what."""

from __future__ import annotations

import httpx2
import pytest

from app.store import Activity, Course, Teacher
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from app.web.shared.lti_launch import FRAME_COOKIE, STATE_COOKIE, STATE_LIFETIME_S
from simulation.lti_platform import (
    ASSISTANT,
    INSTITUTION_INSTRUCTOR,
    INSTRUCTOR,
    LEARNER,
    MENTOR,
    TEST_USER,
    Person,
)
from simulation.lti_platform import Course as PlatformCourse
from tests.helpers.clock import Clock
from tests.helpers.html_page import Page
from tests.helpers.lti_class import IN_FRAME, LtiClass
from tests.helpers.school import Browser


def link(there: LtiClass, at: PlatformCourse | None = None) -> tuple[Teacher, Course, Activity]:
    """Connect the platform's teacher, and link its course (or another one there) and its link with an activity."""
    ada = there.store.lti.teacher(there.registered.id, "1") or there.school.teacher()
    there.store.lti.connect(there.registered.id, "1", ada)
    course = there.school.course("Transformers", ada)
    activity = there.school.activity(course)
    with there.school.browser() as browser:
        assert there.launch(browser, "1", at).headers["location"] == "/lti/link"
        assert browser.post("/lti/link", data={"course": course.id}).status_code == 303
        assert browser.post("/lti/link", data={"activity": activity.id}).headers["location"] == "/lti/open"
        assert browser.get("/lti/open").headers["location"] == f"/activities/{activity.id}"
    return ada, course, activity


def students(there: LtiClass, course: Course) -> list[str]:
    return [student.name for student in there.store.roster.students(course)]


def test_a_student_comes_to_the_sheet_without_a_code_and_stays_the_same_student(there: LtiClass) -> None:
    _ada, course, activity = link(there)
    with there.school.browser() as browser, there.school.browser() as at_home:
        assert there.launch(browser, "7").headers["location"] == f"/class/{activity.id}"
        assert browser.get(f"/class/{activity.id}", follow_redirects=True).status_code == 200
        there.course.people["7"].name = "Another name"
        assert there.launch(at_home, "7").headers["location"] == f"/class/{activity.id}"
        assert at_home.get(f"/class/{activity.id}/1").status_code == 200
    assert students(there, course) == ["Kim"]
    kim = there.store.roster.students(course)[0]
    assert kim.joined_at
    assert there.store.lti.student(there.registered.id, "7", course.id) == kim


def test_a_teacher_gets_a_session_and_the_staffs_place_that_the_platform_says(there: LtiClass) -> None:
    ada, course, activity = link(there)
    bo = there.school.teacher()
    there.course.people["2"] = Person("2", "Bo", ASSISTANT)
    there.store.lti.connect(there.registered.id, "2", bo)
    with there.school.browser() as browser, there.school.browser() as assistant:
        assert there.launch(browser, "1").headers["location"] == f"/activities/{activity.id}"
        assert browser.get(f"/activities/{activity.id}/edit").status_code == 200
        assert there.launch(assistant, "2").headers["location"] == f"/activities/{activity.id}"
        assert assistant.get(f"/activities/{activity.id}").status_code == 200
        assert assistant.get(f"/activities/{activity.id}/edit").status_code == 403
    assert there.store.courses.role(course.id, ada) == "instructor"
    assert there.store.courses.role(course.id, bo) == "assistant"


def test_on_a_shared_computer_nobody_gets_the_last_students_other_courses(there: LtiClass) -> None:
    _ada, course, activity = link(there)
    elsewhere = there.platform.add_course(*there.course.people.values(), Person("8", "Lou"))
    _ada, _other_course, other_activity = link(there, elsewhere)
    with there.school.browser() as shared:
        there.launch(shared, "7")
        assert shared.get(f"/class/{activity.id}/1").status_code == 200
        there.launch(shared, "8", elsewhere)
        assert shared.get(f"/class/{other_activity.id}/1").status_code == 200
        assert shared.get(f"/class/{activity.id}/1").status_code == 404
        there.launch(shared, "7", elsewhere)
        there.launch(shared, "7")
        for each in (activity, other_activity):
            assert shared.get(f"/class/{each.id}/1").status_code == 200
    assert students(there, course) == ["Kim"]


def test_nobody_joins_an_archived_course_and_its_students_look_back(there: LtiClass) -> None:
    _ada, course, activity = link(there)
    there.course.people["8"] = Person("8", "Lou")
    with there.school.browser() as kim, there.school.browser() as late:
        there.launch(kim, "7")
        there.store.courses.archive(course)
        assert there.launch(kim, "7").headers["location"] == f"/class/{activity.id}"
        assert there.launch(late, "8").status_code == 409
    assert students(there, course) == ["Kim"]


def test_signing_out_ends_a_launch_that_still_waits_for_a_choice(there: LtiClass) -> None:
    there.store.lti.connect(there.registered.id, "1", there.school.teacher())
    with there.school.browser() as shared:
        assert there.launch(shared, "1").headers["location"] == "/lti/link"
        shared.post("/sign-out")
        assert shared.get("/lti/open").status_code == 400
        assert TEACHER_COOKIE not in shared.cookies


def test_a_stranger_with_the_message_gets_nothing_without_the_cookie(there: LtiClass) -> None:
    _ada, course, _activity = link(there)
    initiation = there.platform.initiation(there.client, there.course, "7")
    with there.school.browser() as begun, there.school.browser() as victim:
        fields = there.message(there.begin(begun, initiation))
        taken = there.post(victim, fields)
        assert taken.headers["location"] == "/lti/open"
        assert not {VISITOR_COOKIE, TEACHER_COOKIE} & set(taken.cookies)
        assert victim.get("/lti/open").status_code == 400
        assert VISITOR_COOKIE not in victim.cookies
    assert students(there, course) == []


def test_a_message_counts_once(there: LtiClass) -> None:
    link(there)
    initiation = there.platform.initiation(there.client, there.course, "7")
    with there.school.browser() as browser:
        fields = there.message(there.begin(browser, initiation))
        assert there.post(browser, fields).status_code == 303
        assert there.post(browser, fields).status_code == 400
        assert browser.get("/lti/open").status_code == 303
        assert browser.get("/lti/open").status_code == 400
        assert there.post(browser, fields).status_code == 400


def test_a_state_is_bound_to_its_time_its_platform_and_its_message(there: LtiClass, clock: Clock) -> None:
    initiation = there.platform.initiation(there.client, there.course, "7")
    with there.school.browser() as browser:
        first, second = (there.message(there.begin(browser, initiation)) for _ in range(2))
        mixed = {**first, "state": second["state"]}
        assert there.post(browser, mixed).status_code == 400
        secret, platform, time = first["state"].split(".")
        for state in ("", "x", f"{secret}.{platform}.{int(time) + 1}", f"{secret}.99.{time}", f"{secret}.²2.{time}"):
            assert there.post(browser, {**first, "state": state}).status_code == 400, state
        clock.pass_seconds(STATE_LIFETIME_S + 1)
        assert there.post(browser, first).status_code == 400


def test_in_a_frame_there_is_a_button_that_starts_again_in_a_window(there: LtiClass) -> None:
    initiation = there.platform.initiation(there.client, there.course, "7")
    with there.school.browser() as browser:
        framed = there.begin(browser, initiation, IN_FRAME)
        assert framed.status_code == 200
        assert "frame-ancestors *" in framed.headers["content-security-policy"]
        assert not framed.cookies
        [(attributes, _text)] = Page(framed.text).find("a", target="_blank")
        again = browser.get(attributes["href"])
        assert again.status_code == 303
        assert STATE_COOKIE in browser.cookies
        there.message(again)


def test_deep_linking_stays_in_the_frame_with_a_cookie_of_its_own(there: LtiClass) -> None:
    asking = there.platform.deep_linking(there.client, there.course, "1", target="http://testserver/lti/choose")
    with there.school.browser() as browser:
        begun = there.begin(browser, asking, IN_FRAME)
        cookie = begun.headers["set-cookie"]
        assert cookie.startswith(FRAME_COOKIE)
        assert {"HttpOnly", "SameSite=None", "Secure", "Partitioned"} <= set(cookie.split("; "))
        state = cookie.partition("=")[2].partition(";")[0]
        assert there.post(browser, there.message(begun), IN_FRAME).headers["location"] == "/lti/open"
        kept = {**IN_FRAME, "Cookie": f"{FRAME_COOKIE}={state}"}
        opened = browser.get("/lti/open", headers=kept)
        assert opened.headers["location"] == "/lti/connect"
        connect = browser.get("/lti/connect", headers=kept)
        assert connect.status_code == 200
        assert "frame-ancestors *" in connect.headers["content-security-policy"]
        assert browser.get("/lti/connect").status_code == 400


@pytest.mark.parametrize(
    ("roles", "status"),
    [
        (MENTOR, 403),
        ((), 403),
        (INSTITUTION_INSTRUCTOR, 403),
        (("http://purl.imsglobal.org/vocab/lis/v2/membership/Learner#GuestLearner",), 403),
        ((*LEARNER, *INSTITUTION_INSTRUCTOR), 303),
        (TEST_USER, 200),
    ],
)
def test_only_roles_in_the_course_open_anything(there: LtiClass, roles: tuple[str, ...], status: int) -> None:
    _ada, course, activity = link(there)
    there.course.people["9"] = Person("9", "Lou", roles)
    with there.school.browser() as browser:
        answer = there.launch(browser, "9")
        assert answer.status_code == status
        if status == 303:
            assert answer.headers["location"] == f"/class/{activity.id}"
        else:
            assert browser.get("/lti/open").status_code == 400
    assert students(there, course) == (["Lou"] if status == 303 else [])


def test_a_new_deployment_waits_for_the_operator(there: LtiClass) -> None:
    link(there)
    there.client.deployment_id = "another school"
    with there.school.browser() as browser:
        assert there.launch(browser, "7").status_code == 403
        assert [each.deployment_id for each in there.store.lti.deployments() if not each.confirmed] == [
            "another school"
        ]
        there.store.lti.confirm_deployment(there.registered.id, "another school")
        assert there.launch(browser, "7").status_code == 409  # another context: not linked yet


def test_an_activity_opens_only_in_the_course_that_it_was_linked_with(there: LtiClass) -> None:
    """A copied course keeps the addresses of its links; a forged address names any activity."""
    ada, course, activity = link(there)
    copied = there.platform.copy_course(there.course)
    copied.people = dict(there.course.people)
    copied.links["again"] = {"title": "A worksheet", "url": f"http://testserver/lti/activities/{activity.id}"}
    with there.school.browser() as kim, there.school.browser() as teacher:
        assert there.launch(kim, "7", copied, "again").status_code == 409
        assert students(there, course) == []
        assert there.launch(teacher, "1", copied, "again").headers["location"] == "/lti/link"
        assert "become one class" in teacher.get("/lti/link").text
        chosen = {"course": "new", "title": "Next term", "zone": "Europe/Berlin"}
        assert teacher.post("/lti/link", data=chosen).headers["location"] == "/lti/open"
        assert teacher.get("/lti/open").headers["location"] == "/lti/link"
        assert teacher.post("/lti/link", data={"activity": activity.id}).status_code == 422
        for _ in range(2):  # pressed twice
            assert teacher.post("/lti/link", data={"activity": "copy"}).status_code == 303
        copy_address = teacher.get("/lti/open").headers["location"]
        assert copy_address != f"/activities/{activity.id}"
        copy = there.store.activities.find(int(copy_address.rpartition("/")[2]))
        assert copy
        assert there.launch(kim, "7", copied, "again").status_code == 409  # a draft
        there.store.activities.set_state(copy, "open")
        assert there.launch(kim, "7", copied, "again").headers["location"] == f"/class/{copy.id}"
    next_term = next(each.course for each in there.store.courses.taught_by(ada) if each.course.id == copy.course_id)
    assert (students(there, course), students(there, next_term)) == ([], ["Kim"])
    assert len(there.store.activities.of_course(next_term)) == 1


def test_both_courses_can_be_one_class(there: LtiClass) -> None:
    _ada, course, activity = link(there)
    copied = there.platform.copy_course(there.course)
    copied.people = dict(there.course.people)
    copied.links["again"] = {"title": "A worksheet", "url": f"http://testserver/lti/activities/{activity.id}"}
    with there.school.browser() as kim, there.school.browser() as teacher:
        there.launch(kim, "7")
        there.launch(teacher, "1", copied, "again")
        teacher.post("/lti/link", data={"course": course.id})
        assert teacher.get("/lti/open").headers["location"] == f"/activities/{activity.id}"
        assert there.launch(kim, "7", copied, "again").headers["location"] == f"/class/{activity.id}"
    assert students(there, course) == ["Kim"]


def test_a_wrong_choice_is_made_again_and_students_stay_the_same(there: LtiClass) -> None:
    ada, course, activity = link(there)
    other, right = there.school.course("Another", ada), there.school.activity(course)
    with there.school.browser() as kim, there.school.browser() as teacher:
        there.launch(kim, "7")
        there.launch(teacher, "1")
        [context] = there.store.lti.courses_of(course)
        assert teacher.post(f"/courses/{other.id}/unlink", data={"context": context.id}).status_code == 404
        assert there.store.lti.courses_of(course) == (context,)
        teacher.post(f"/courses/{course.id}/unlink", data={"context": context.id})
        assert there.launch(kim, "7").status_code == 409
        assert there.launch(teacher, "1").headers["location"] == "/lti/link"
        teacher.post("/lti/link", data={"course": course.id})
        teacher.post("/lti/link", data={"activity": right.id})
        assert there.launch(kim, "7").headers["location"] == f"/class/{right.id}"
    assert activity.id != right.id
    assert students(there, course) == ["Kim"]


def test_only_a_teacher_of_the_course_links_it(there: LtiClass) -> None:
    eve = there.school.teacher()
    others = there.school.course("Not Eve’s", there.school.teacher())
    there.store.lti.connect(there.registered.id, "1", eve)
    there.course.people["2"] = Person("2", "Bo", ASSISTANT)
    there.store.lti.connect(there.registered.id, "2", eve)
    with there.school.browser() as browser:
        there.launch(browser, "1")
        for refused in ({"course": others.id}, {"course": "x"}, {}, {"course": "new", "title": ""}):
            assert browser.post("/lti/link", data=refused).status_code == 422
        there.launch(browser, "2")
        assert browser.get("/lti/link").status_code == 409
        assert browser.post("/lti/link", data={"course": "new", "title": "A", "zone": "UTC"}).status_code == 409
    assert there.store.courses.taught_by(eve) == ()


def test_a_refusal_of_the_platform_is_told(there: LtiClass) -> None:
    with there.school.browser() as browser:
        begun = there.begin(browser, there.platform.initiation(there.client, there.course, "7"))
        fields = {"state": there.message(begun)["state"], "error": "login_required"}
        assert there.post(browser, fields).status_code == 400
        unknown = browser.get("/lti/login", params={"iss": "https://nobody.example", "login_hint": "1"})
        assert unknown.status_code == 400
        assert browser.get("/lti/login").status_code == 400
        assert browser.get("/lti/login", params={"iss": "a\0b", "client_id": "\0"}).status_code == 400


def test_names_in_html_stay_text_and_no_name_is_logged(there: LtiClass, caplog: pytest.LogCaptureFixture) -> None:
    _ada, course, activity = link(there)
    there.course.people["8"] = Person("8", "<script>alert(1)</script> Zuse")
    with caplog.at_level("DEBUG"), there.school.browser() as browser, there.school.browser() as teacher:
        there.launch(browser, "8")
        there.launch(teacher, "1")
        assert "<script>alert(1)" not in teacher.get(f"/courses/{course.id}").text
        assert browser.get(f"/class/{activity.id}/1").status_code == 200
    assert students(there, course) == ["<script>alert(1)</script> Zuse"]
    assert "Zuse" not in caplog.text


# A teacher's account


def code_of(teacher: Browser) -> str:
    shown = teacher.post("/lti/account", follow_redirects=True)
    return Page(shown.text).text("p", id="connect-code")


def test_a_code_from_the_account_connects_it_once(there: LtiClass) -> None:
    ada = there.school.teacher()
    with there.school.browser() as browser, there.school.browser(teacher=ada) as signed_in:
        assert there.launch(browser, "1").headers["location"] == "/lti/connect"
        assert browser.get("/lti/connect").status_code == 200
        code = code_of(signed_in)
        assert browser.post("/lti/connect", data={"code": "ABCDE-ABCDE"}).status_code == 422
        assert browser.post("/lti/connect", data={"code": code.lower()}).headers["location"] == "/lti/open"
        assert browser.get("/lti/open").headers["location"] == "/lti/link"
        assert browser.get("/courses").status_code == 200
        assert there.store.lti.teacher(there.registered.id, "1") == ada
        there.course.people["2"] = Person("2", "Eve", INSTRUCTOR)
        with there.school.browser() as eve:
            there.launch(eve, "2")
            assert eve.post("/lti/connect", data={"code": code}).status_code == 422
        assert "Moodle" in signed_in.get("/lti/account").text
        signed_in.post("/lti/account/disconnect")
        assert there.store.lti.teacher(there.registered.id, "1") is None


def test_wrong_codes_are_slowed_down_and_a_right_one_still_connects(there: LtiClass) -> None:
    with there.school.browser() as browser, there.school.browser(teacher=there.school.teacher()) as signed_in:
        there.launch(browser, "1")
        answers = [browser.post("/lti/connect", data={"code": "ABCDE-ABCDE"}).status_code for _ in range(40)]
        assert set(answers) == {422, 429}
        assert browser.post("/lti/connect", data={"code": code_of(signed_in)}).status_code == 303


def test_other_sites_send_nothing_but_the_launch(there: LtiClass) -> None:
    with there.school.browser() as browser:
        there.launch(browser, "1")
        for path in ("/lti/connect", "/lti/link", "/lti/connect/invitation", "/lti/account", "/lti/open"):
            assert browser.post(path, headers=IN_FRAME).status_code == 403, path


def test_a_connect_code_is_no_account_link(there: LtiClass, clock: Clock) -> None:
    ada = there.school.teacher()
    with there.school.browser() as browser, there.school.browser(teacher=ada) as signed_in:
        code = code_of(signed_in)
        assert browser.get(f"/links/{code.replace('-', '')}").status_code == 404
        there.launch(browser, "1")
        clock.pass_minutes(11)
        assert browser.post("/lti/connect", data={"code": code}).status_code == 422


def test_a_student_of_the_platform_connects_nothing(there: LtiClass) -> None:
    _ada, _course, activity = link(there)
    there.store.activities.set_state(activity, "draft")
    with there.school.browser() as browser, there.school.browser(teacher=there.school.teacher()) as signed_in:
        assert there.launch(browser, "7").status_code == 409
        assert browser.post("/lti/connect", data={"code": code_of(signed_in)}).status_code == 400
        assert browser.post("/lti/connect/invitation").status_code == 400
        assert browser.get("/lti/link").status_code == 409


def test_a_teacher_without_an_account_makes_one_in_a_window_that_has_none_of_the_frames_cookies(
    there: LtiClass,
) -> None:
    with there.school.browser() as frame, there.school.browser() as window:
        there.launch(frame, "1")
        answer: httpx2.Response = frame.post("/lti/connect/invitation")
        assert "frame-ancestors *" in answer.headers["content-security-policy"]
        page = Page(answer.text)
        invitation = next(attrs["href"] for attrs, _ in page.find("a", target="_blank") if "/links/" in attrs["href"])
        form = {"email": "new@example.org", "name": "Ada", "password": "ten chars!"}
        assert "new password" not in window.get(invitation).text
        assert window.post(invitation, data=form).headers["location"] == "/lti/account"
        assert frame.post("/lti/connect", data={"code": code_of(window)}).status_code == 303
        assert frame.get("/lti/open").headers["location"] == "/lti/link"


def test_our_keys_are_published_without_their_private_part(there: LtiClass) -> None:
    with there.school.browser() as browser:
        keys = browser.get("/lti/keys").json()["keys"]
    assert [set(key) for key in keys] == [{"kty", "alg", "use", "kid", "n", "e"}] * 2
