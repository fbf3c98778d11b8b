"""/lti: how a learning platform (Moodle, Canvas …) opens the app by LTI 1.3, and who somebody from there is here.

The browser goes: platform → /lti/login → platform → /lti/launch → /lti/open → the activity. Everybody works in a window
of their own, with the same cookies as everybody else: inside a platform's page, there is only a button that opens it,
or the choice of content (deep_linking.py).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from app.classes.course_settings import duplicate_activity, settings_problem, time_zone_names
from app.lti.keys import key_set
from app.lti.message import MAX_TOKEN, MessageError, verify
from app.store import Activity, AuditAction, Course, Launch, LtiCourse, Platform, Store, Teacher
from app.store.roster import CODE_LENGTH, MAX_TYPED_CODE, new_code, normalised_code
from app.translation import gettext as _
from app.web.shared.cookies import CLASS_COOKIE, SECRET_COOKIE, redirect_with_secret, set_private_cookie
from app.web.shared.forms import FormDep, FormReader, whole_number
from app.web.shared.lti_launch import (
    MAX_STATE,
    CurrentLaunch,
    LaunchLostError,
    OpenLaunch,
    begin_launch,
    is_framed,
    nonce_of,
    platform_of,
)
from app.web.shared.permissions import LARGEST_ID, SignedIn, teacher_of
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.teacher_session import start_session
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, public_url, url_for
from app.web.shared.visitor import MaybeVisitor, keep_resume_code, remember_visitor

router = APIRouter(include_in_schema=False)

MAX_HINT = 4000  # characters that only the platform understands
_PASSED_ON = ("login_hint", "lti_message_hint")


# The launch


@router.get("/lti/login")
@router.post("/lti/login", name="post_lti_login")
@in_threads("lti")
def begin_lti_login(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Send the browser to its platform, which says who it is; from inside a page, first into a new window."""
    names = ("iss", "client_id", "target_link_uri", "lti_deployment_id", "deployment_id", *_PASSED_ON)
    sent = {name: form.raw(name, MAX_HINT) or request.query_params.get(name, "")[:MAX_HINT] for name in names}
    asked = {name: value if value.isprintable() else "" for name, value in sent.items()}
    platform = services.store.lti.find_platform(asked["iss"], asked["client_id"])
    if platform is None:
        raise MessageError(
            _(
                "This learning platform, or its client ID, isn’t registered here. The operator of this server can "
                "register it under Learning platforms."
            )
        )
    # The target is only signed later; a false one leads to a frame without the cookies that it would need.
    is_choosing = urlsplit(asked["target_link_uri"]).path.endswith("/lti/choose")
    if is_framed(request) and not is_choosing:
        again = {name: value for name, value in asked.items() if value}
        return render("lti/new_window.html", address=f"{url_for('begin_lti_login')}?{urlencode(again)}")
    response = RedirectResponse(platform.authorization_url, 303)
    state, nonce = begin_launch(request, services.store, platform, response)
    query = {
        "scope": "openid",
        "response_type": "id_token",
        "response_mode": "form_post",
        "prompt": "none",
        "client_id": platform.client_id,
        "redirect_uri": public_url(request, services.settings) + url_for("take_launch"),
        "state": state,
        "nonce": nonce,
        **{name: asked[name] for name in _PASSED_ON if asked[name]},
    }
    separator = "&" if "?" in platform.authorization_url else "?"
    response.headers["location"] = platform.authorization_url + separator + urlencode(query)
    return response


@router.post("/lti/launch")
@in_threads("lti")
def take_launch(services: ServicesDep, form: FormDep) -> Response:
    """Check the platform's message and keep it for the browser that began; nobody is signed in by this request."""
    store, state = services.store, form.raw("state", MAX_STATE)
    platform = platform_of(store, state)
    if platform is None:
        raise LaunchLostError
    if not form.raw("id_token"):
        raise MessageError(_("The learning platform didn’t let you in. Sign in there, and open the activity again."))
    token, nonce = form.raw("id_token", MAX_TOKEN), nonce_of(store, state)
    launch = verify(store, platform, token, nonce, allow_private=services.settings.lti_private)
    if not store.lti.is_confirmed(platform.id, launch.deployment_id):
        return _tell("waiting", 403, platform)
    if not launch.role or (launch.deep_linking and launch.role == "student"):
        return _tell("no-access", 403, platform)
    if launch.is_test_user:
        return _tell("test-user", 200, platform)
    if not store.lti.keep_launch(state, nonce, launch):
        raise LaunchLostError
    return RedirectResponse(url_for("open_launch"), 303)


@router.get("/lti/open")
@in_threads("lti")
def open_launch(request: Request, services: ServicesDep, current: CurrentLaunch, visitor: MaybeVisitor) -> Response:
    """Let the person of this browser's launch in, and redirect (303) to their activity or to the next question."""
    store, launch = services.store, current.launch
    lti_course, activity = _linked(store, launch)
    if launch.role == "student":
        if lti_course is None or activity is None or not _is_open_to(store, launch, activity):
            return _tell("not-ready", 409, store.lti.platform(launch.platform_id))
        return _let_student_in(request, services, current, lti_course, activity, visitor)
    teacher = store.lti.teacher(launch.platform_id, launch.sub)
    if teacher is None:
        return RedirectResponse(url_for("show_connect"), 303)
    if lti_course:
        store.courses.add_to_staff(
            lti_course.course_id, teacher, "instructor" if launch.role == "instructor" else "assistant"
        )
    if launch.deep_linking and lti_course:
        return RedirectResponse(url_for("show_deep_linking"), 303)
    if activity is None or lti_course is None:
        path = url_for("show_lti_link")
    else:
        path = url_for("show_activity", activity_id=activity.id)
        store.lti.finish_launch(current.state)
    signed_in = teacher_of(request, services)
    if is_framed(request) or (signed_in and signed_in.id == teacher.id):
        return RedirectResponse(path, 303)
    return start_session(request, store, teacher, path)


def _linked(store: Store, launch: Launch) -> tuple[LtiCourse | None, Activity | None]:
    """The course and the activity that the launch opens; an address of another course's activity opens nothing."""
    lti_course = store.lti.find_course(launch)
    if lti_course is None or launch.deep_linking:
        return lti_course, None
    lti_course = store.lti.link_course(launch, lti_course.course_id)  # its services may have moved
    link = store.lti.find_link(lti_course, launch.resource_link_id)
    activity_id = link.activity_id if link else launch.activity_id
    activity = _find_activity(store, activity_id)
    if activity is None or activity.course_id != lti_course.course_id:
        return lti_course, None
    store.lti.link_activity(lti_course, launch, activity.id)
    return lti_course, activity


def _find_activity(store: Store, activity_id: int | None) -> Activity | None:
    return store.activities.find(activity_id) if activity_id and activity_id <= LARGEST_ID else None


def _is_open_to(store: Store, launch: Launch, activity: Activity) -> bool:
    """Whether a student may come in; nobody joins an archived course."""
    if activity.is_archived and not store.lti.student(launch.platform_id, launch.sub, activity.course_id):
        return False
    return activity.state != "draft"


def _let_student_in(
    request: Request,
    services: Services,
    current: OpenLaunch,
    lti_course: LtiCourse,
    activity: Activity,
    visitor: MaybeVisitor,
) -> Response:
    store, launch, code = services.store, current.launch, None
    with store.transaction():
        course = store.courses.find(lti_course.course_id)
        if course is None or not store.lti.finish_launch(current.state):
            raise LaunchLostError
        # On a shared computer, the last student's other courses must not become this one's.
        if visitor is None or store.lti.is_somebody_else(visitor.id, launch.platform_id, launch.sub):
            visitor = store.add_visitor()
        student = store.lti.add_student(lti_course, launch.sub, course, launch.name)
        if student.joined_at is None:
            code = store.roster.claim_name(student, visitor.id)
        else:
            store.roster.resume(student, visitor.id)
        store.classwork.arrive(activity.id, student.id)
    response = RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    remember_visitor(request, response, visitor)
    set_private_cookie(request, response, CLASS_COOKIE, "joined")
    if code:
        keep_resume_code(request, response, code)
    return response


def _tell(what: str, status: int, platform: Platform | None) -> Response:
    return render("lti/told.html", status=status, what=what, platform=platform.name if platform else "")


# A teacher's account, connected once: by a code that its owner sees here and types in the platform's window


@router.get("/lti/connect")
def show_connect(store: StoreDep, current: CurrentLaunch) -> Response:
    return _connect(store, current)


@router.post("/lti/connect")
def connect_account(request: Request, services: ServicesDep, current: CurrentLaunch, form: FormDep) -> Response:
    """Connect the person of this launch with the account that shows this code."""
    store, network, launch = services.store, client_network(request), current.launch
    if launch.role == "student":
        raise LaunchLostError
    typed = form.single_line("code", MAX_TYPED_CODE)
    link = store.people.find_link(normalised_code(typed), ("connect",))
    if link is None:
        services.limits.check("connect", network)
        services.limits.record_failure("connect", network)
        problem = _("That code doesn’t exist, or it is older than ten minutes. Show a new one.")
        return _connect(store, current, 422, code=typed, problem=problem)
    with store.transaction():
        teacher = store.people.follow_link(link, link.email)
        if teacher:
            store.lti.connect(launch.platform_id, launch.sub, teacher)
            store.audit_log.record(teacher, AuditAction.LMS_CONNECTED, teacher)
    return RedirectResponse(url_for("open_launch"), 303)


@router.post("/lti/connect/invitation")
def invite_from_platform(request: Request, services: ServicesDep, current: CurrentLaunch) -> Response:
    """Show an invitation, for a teacher of the platform who has no account yet."""
    network = client_network(request)
    services.limits.check("mail", network)
    services.limits.record_failure("mail", network)
    if current.launch.role == "student":
        raise LaunchLostError
    # No redirect: a new window can't come here, since a frame's cookie stays in the frame.
    return _connect(services.store, current, invitation=services.store.people.add_link("invite"))


def _connect(
    store: Store, current: OpenLaunch, status: int = 200, *, code: str = "", problem: str = "", invitation: str = ""
) -> Response:
    platform = store.lti.platform(current.launch.platform_id)
    name = platform.name if platform else ""
    return render("lti/connect.html", status=status, platform=name, code=code, problem=problem, invitation=invitation)


@router.get("/lti/account")
def show_connect_code(request: Request, store: StoreDep, teacher: SignedIn) -> Response:
    """The code that connects this account with a platform, if it has just been asked for."""
    code = request.cookies.get(SECRET_COOKIE, "")
    is_valid = len(code) == CODE_LENGTH and store.people.find_link(code, ("connect",)) is not None
    shown = f"{code[:5]}-{code[5:]}" if is_valid else ""
    return render("lti/account.html", teacher=teacher, code=shown, platforms=store.lti.platforms_of(teacher))


@router.post("/lti/account")
def make_connect_code(request: Request, store: StoreDep, teacher: SignedIn) -> Response:
    code, here = new_code(), url_for("show_connect_code")
    store.people.add_link("connect", teacher.email, token=code)
    return redirect_with_secret(request, here, code, here)


@router.post("/lti/account/disconnect")
def disconnect_account(store: StoreDep, teacher: SignedIn) -> Response:
    with store.audit_log.recording(teacher, AuditAction.LMS_DISCONNECTED, teacher):
        store.lti.disconnect(teacher)
    return RedirectResponse(url_for("show_connect_code"), 303)


# Which course and activity a platform's course and link open: chosen once by a teacher


@router.get("/lti/link")
def show_lti_link(services: ServicesDep, current: CurrentLaunch) -> Response:
    """What isn't known yet: the course, then the activity."""
    return _choose_link(services.store, current)


@router.post("/lti/link")
def choose_lti_link(services: ServicesDep, current: CurrentLaunch, form: FormDep) -> Response:
    """Link the platform's course with the chosen course, or its link with the chosen activity."""
    store, launch = services.store, current.launch
    teacher = _linking_teacher(store, launch)
    if teacher is None:
        return _choose_link(store, current)
    with store.transaction():
        lti_course = store.lti.find_course(launch)
        if lti_course is None:
            problem = _link_course(store, teacher, launch, form)
        else:
            problem = _link_activity(store, teacher, launch, lti_course, form)
    if problem:
        return _choose_link(store, current, 422, problem=problem, title=form.single_line("title"))
    return RedirectResponse(url_for("open_launch"), 303)


def _linking_teacher(store: Store, launch: Launch) -> Teacher | None:
    """The teacher who may link: a teacher there, and of the course here if there is one."""
    teacher = store.lti.teacher(launch.platform_id, launch.sub) if launch.role == "instructor" else None
    lti_course = store.lti.find_course(launch)
    if teacher is None or (lti_course and store.courses.role(lti_course.course_id, teacher) != "instructor"):
        return None
    return teacher


def _editable_courses(store: Store, teacher: Teacher) -> list[Course]:
    return [each.course for each in store.courses.taught_by(teacher) if each.can_edit]


def _source(store: Store, teacher: Teacher, launch: Launch) -> Activity | None:
    """The activity that the link's address names, if the teacher may copy it: the platform's course is a copy."""
    activity = _find_activity(store, launch.activity_id)
    return activity if activity and store.courses.role(activity.course_id, teacher) == "instructor" else None


def _link_course(store: Store, teacher: Teacher, launch: Launch, form: FormReader) -> str:
    if form.raw("course") == "new":
        title, zone = form.single_line("title"), form.single_line("zone")
        if problem := settings_problem(title, zone):
            return problem
        course = store.courses.add(title, zone, teacher)
    else:
        chosen = whole_number(form.raw("course"), LARGEST_ID)
        found = next((each for each in _editable_courses(store, teacher) if each.id == chosen), None)
        if found is None:
            return _("Choose a course.")
        course = found
    store.lti.link_course(launch, course.id)
    store.audit_log.record(teacher, AuditAction.LMS_COURSE_LINKED, course)
    return ""


def _link_activity(store: Store, teacher: Teacher, launch: Launch, lti_course: LtiCourse, form: FormReader) -> str:
    if launch.deep_linking or store.lti.find_link(lti_course, launch.resource_link_id):  # the form was sent twice
        return ""
    course, source = store.courses.find(lti_course.course_id), _source(store, teacher, launch)
    activity = _find_activity(store, whole_number(form.raw("activity"), LARGEST_ID))
    if form.raw("activity") == "copy" and source and course and course.archived_at is None:
        activity = duplicate_activity(store, source, course, source.plan.title)
        store.audit_log.record(teacher, AuditAction.ACTIVITY_CREATED, activity)
    if activity is None or activity.course_id != lti_course.course_id:
        return _("Choose an activity.")
    store.lti.link_activity(lti_course, launch, activity.id)
    return ""


def _choose_link(
    store: Store, current: OpenLaunch, status: int = 200, *, problem: str = "", title: str = ""
) -> Response:
    launch = current.launch
    platform, teacher = store.lti.platform(launch.platform_id), _linking_teacher(store, launch)
    if teacher is None:
        return _tell("not-ready", 409, platform)
    lti_course = store.lti.find_course(launch)
    course = store.courses.find(lti_course.course_id) if lti_course else None
    courses = _editable_courses(store, teacher)
    names: dict[str, Any] = {
        "platform": platform.name if platform else "",
        "launch": launch,
        "source": _source(store, teacher, launch),
        "course": course,
        "courses": courses,
        "activities": store.activities.of_course(course) if course else (),
        "title_typed": title or launch.context_title,
        "zone": courses[0].time_zone if courses else "",
        "zones": time_zone_names(),
        "problem": problem,
    }
    return render("lti/link.html", status=status, **names)


# Our keys


@router.get("/lti/keys")
@in_threads("lti")
def show_lti_keys(store: StoreDep) -> Response:
    """Our public keys, which platforms fetch."""
    return JSONResponse(key_set(store))
