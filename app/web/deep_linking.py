"""/lti/choose: a teacher of a learning platform chooses which activities its course links to.

The page stands in a frame of the platform's page. It has no menus and no session: only the launch that the browser's
cookie names.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.student_sheet import best_scores
from app.lti.deep_linking import deep_linking_answer
from app.store import Activity, Course, Store
from app.translation import gettext as _
from app.web.shared.forms import FormDep
from app.web.shared.lti_launch import CurrentLaunch, LaunchLostError, OpenLaunch
from app.web.shared.request_guard import EMBEDDED_HEADERS
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import public_url, url_for

router = APIRouter(include_in_schema=False)

MAX_LINKS = 50  # in one answer


@router.get("/lti/choose")
def show_deep_linking(store: StoreDep, current: CurrentLaunch) -> Response:
    """The activities of the course that belongs to the platform's course."""
    course = _course(store, current)
    return _choose(store, current, course) if course else RedirectResponse(url_for("open_launch"), 303)


@router.post("/lti/choose")
@in_threads("lti")
def answer_deep_linking(request: Request, services: ServicesDep, current: CurrentLaunch, form: FormDep) -> Response:
    """Send the chosen activities to the platform, by a form of the browser."""
    store, launch, asked = services.store, current.launch, current.launch.deep_linking
    course, platform = _course(store, current), store.lti.platform(launch.platform_id)
    if course is None or platform is None or asked is None:
        raise LaunchLostError
    numbers = form.all("activity")[:MAX_LINKS]
    chosen = [activity for activity in store.activities.of_course(course)[::-1] if str(activity.id) in numbers]
    if not chosen or (len(chosen) > 1 and not asked.accept_multiple):
        problem = _("Choose at least one activity.") if asked.accept_multiple else _("Choose one activity.")
        return _choose(store, current, course, 422, problem, [activity.id for activity in chosen])
    with_points = [(activity, sum(best_scores(services.library, store, activity))) for activity in chosen]
    answer = deep_linking_answer(store, platform, launch, with_points, public_url(request, services.settings))
    if not store.lti.finish_launch(current.state):
        raise LaunchLostError
    # This page alone may send a form to the platform.
    parts = urlsplit(asked.return_url)
    there = f"{parts.scheme}://" + "".join(char for char in parts.netloc if char.isalnum() or char in ".-:[]")
    policy = EMBEDDED_HEADERS["Content-Security-Policy"].replace("form-action 'self'", f"form-action {there}")
    page = render("lti/answer.html", address=asked.return_url, answer=answer, platform=platform.name)
    page.headers["Content-Security-Policy"] = policy
    return page


def _course(store: Store, current: OpenLaunch) -> Course | None:
    """The course that the launch's teacher may choose from, if everything before the choice is settled."""
    launch = current.launch
    teacher, linked = store.lti.teacher(launch.platform_id, launch.sub), store.lti.find_course(launch)
    if launch.deep_linking is None or teacher is None or linked is None:
        return None
    return store.courses.find(linked.course_id) if store.courses.role(linked.course_id, teacher) else None


def _choose(
    store: Store,
    current: OpenLaunch,
    course: Course,
    status: int = 200,
    problem: str = "",
    chosen: Sequence[int] = (),
) -> Response:
    platform, asked = store.lti.platform(current.launch.platform_id), current.launch.deep_linking
    activities: Sequence[Activity] = store.activities.of_course(course)
    return render(
        "lti/choose.html",
        status=status,
        course=course,
        platform=platform.name if platform else "",
        asked=asked,
        activities=activities,
        chosen=chosen,
        problem=problem,
    )
