"""Who may use which route: one row per route of the app, one column per kind of user."""

from __future__ import annotations

import itertools
from typing import Any

from fastapi import FastAPI

from app.classes.materials import settings_to_copy
from tests.helpers.school import School

NUMBERS = itertools.count(1)
ROLES = ("nobody", "other student", "student", "assistant", "other instructor", "instructor")
Row = tuple[int, int, int, int, int, int]

# The status that each of ROLES gets, in order. Somebody who isn't signed in gets 303, to the sign-in form, for a page
# and 401 for an action. Somebody who may not know that an object exists gets 404, and 403 otherwise.
ALL_200: Row = (200, 200, 200, 200, 200, 200)
ALL_303: Row = (303, 303, 303, 303, 303, 303)
ALL_400: Row = (400, 400, 400, 400, 400, 400)
ALL_404: Row = (404, 404, 404, 404, 404, 404)
ALL_422: Row = (422, 422, 422, 422, 422, 422)
STAFF_SEES: Row = (303, 303, 303, 200, 404, 200)
INSTRUCTOR_SEES: Row = (303, 303, 303, 403, 404, 200)
INSTRUCTOR_DOES: Row = (401, 401, 401, 403, 404, 303)
INSTRUCTOR_IS_TOLD: Row = (401, 401, 401, 403, 404, 422)  # what the empty form lacks
STUDENT_SEES: Row = (404, 404, 200, 404, 404, 404)
STUDENT_DOES: Row = (404, 404, 303, 404, 404, 404)

TABLE: dict[str, Row] = {
    # Practice, models, the API: for everybody.
    "GET /": ALL_200,
    "GET /teach": ALL_200,
    "GET /about": ALL_200,
    "GET /sheets": ALL_200,
    "GET /sheet": ALL_200,
    "GET /v": ALL_404,  # without a code
    "GET /v/{code}": ALL_404,  # an activity's code isn't a sheet's
    "POST /sheet/save": ALL_200,
    "POST /sheet/check": ALL_303,
    "POST /sheet/answers": ALL_303,
    "POST /sheet/hint": ALL_303,
    "GET /sheet/example": ALL_200,
    "POST /sheet/example": ALL_200,
    "GET /sheet/another": ALL_303,
    "GET /practice": ALL_200,
    "POST /practice/forget": ALL_303,
    "POST /runs": ALL_200,
    "GET /runs/{run_id}": ALL_404,
    "POST /runs/{run_id}/again": ALL_404,
    "POST /runs/{run_id}/cancel": ALL_404,
    "GET /runs/{run_id}/agreement": ALL_404,
    "GET /runs/{run_id}/notebook.ipynb": ALL_404,
    "GET /heads": ALL_200,
    "POST /heads": ALL_422,  # without a sentence
    "GET /heads/{key}": ALL_404,
    "GET /heads/{key}/notebook.ipynb": ALL_404,
    "GET /heads/{key}/picture": ALL_404,
    "GET /heads/{key}/picture/rows/{row:int}": ALL_404,
    "GET /heads/{key}/picture/{stage}.{kind}": ALL_404,
    "GET /heads/{key}/numbers.npz": ALL_404,
    "POST /heads/{key}/stages/{stage}": ALL_404,
    "POST /heads/{key}/cancel": ALL_404,
    "POST /heads/{key}/delete": ALL_404,
    "GET /glossary": ALL_200,
    "GET /see": ALL_200,
    "GET /see/heads": ALL_200,
    "GET /see/heads/embed": ALL_200,
    "GET /see/slide": ALL_200,
    "GET /see/slide/embed": ALL_200,
    "GET /see/token": ALL_200,
    "GET /see/token/embed": ALL_200,
    "GET /models": ALL_200,
    "POST /models": ALL_422,
    "GET /models/{key}": ALL_200,
    "GET /questions": (303, 303, 303, 200, 200, 200),
    "GET /questions/file": (303, 303, 303, 200, 200, 200),
    "GET /handout": ALL_200,
    "GET /handout/pages/{page}.svg": ALL_200,
    "GET /handout.pdf": ALL_200,
    "POST /handout/class": ALL_303,
    "GET /handout/jobs/{key}.pdf": ALL_404,
    "GET /handout/jobs/{key}": ALL_404,
    "POST /handout/jobs/{key}/cancel": ALL_404,
    "GET /marking": ALL_200,
    "POST /marking": ALL_404,  # without a code
    "POST /marking.csv": ALL_404,
    "GET /healthz": ALL_200,
    "GET /healthz/ready": ALL_200,
    "GET /openapi.json": ALL_200,
    "GET /api/v1/models": ALL_200,
    "POST /api/v1/models": ALL_422,
    "GET /api/v1/models/{key}": ALL_200,
    "GET /api/v1/models/{key}/parameters": ALL_200,
    "GET /api/v1/models/{key}/shapes": ALL_200,
    "GET /api/v1/worksheets": ALL_200,
    "GET /api/v1/worksheets/{key}": ALL_404,  # a model's key isn't a worksheet's
    "POST /api/v1/grade": ALL_422,
    "POST /api/v1/variants": ALL_422,
    "GET /api/v1/misconceptions": ALL_200,
    "POST /api/v1/forward": ALL_422,
    "GET /api/v1/heads": ALL_200,
    "POST /api/v1/heads": ALL_422,
    # Signing in.
    "GET /sign-in": (200, 200, 200, 303, 303, 303),
    "POST /sign-in": ALL_422,
    "POST /sign-in/first-link": ALL_303,
    "POST /sign-out": (303, 303, 303, 303, 303, 303),
    "GET /password": (303, 303, 303, 200, 200, 200),
    "POST /password": (401, 401, 401, 422, 422, 422),
    "GET /forgotten-password": ALL_200,
    "POST /forgotten-password": ALL_404,  # without a mail server
    "GET /links/{token}": ALL_404,
    "POST /links/{token}": ALL_404,
    # From a learning platform: without its message there is nothing.
    "GET /lti/login": ALL_400,
    "POST /lti/login": ALL_400,
    "POST /lti/launch": ALL_400,
    "GET /lti/open": ALL_400,
    "GET /lti/connect": ALL_400,
    "POST /lti/connect": ALL_400,
    "POST /lti/connect/invitation": ALL_400,
    "GET /lti/account": (303, 303, 303, 200, 200, 200),
    "POST /lti/account": (401, 401, 401, 303, 303, 303),
    "POST /lti/account/disconnect": (401, 401, 401, 303, 303, 303),
    "GET /lti/link": ALL_400,
    "POST /lti/link": ALL_400,
    "GET /lti/choose": ALL_400,
    "POST /lti/choose": ALL_400,
    "GET /lti/keys": ALL_200,
    # The public demonstration: a signed-in teacher goes to their own courses.
    "GET /demonstration": ALL_303,
    "POST /demonstration/leave": ALL_303,
    # The installation's machines and learning platforms, for operators; nobody here is one.
    "GET /machines": (303, 303, 303, 403, 403, 403),
    "POST /machines/jobs/{job_id:int}/cancel": (401, 401, 401, 403, 403, 403),
    "GET /platforms": (303, 303, 303, 403, 403, 403),
    "POST /platforms": (401, 401, 401, 403, 403, 403),
    "POST /platforms/link": (401, 401, 401, 403, 403, 403),
    "POST /platforms/{platform_id:int}/confirm": (401, 401, 401, 403, 403, 403),
    "POST /platforms/{platform_id:int}/remove": (401, 401, 401, 403, 403, 403),
    "GET /lti/register/{token}": ALL_404,
    # Courses.
    "GET /courses": (303, 303, 303, 200, 200, 200),
    "POST /courses": (401, 401, 401, 422, 422, 422),
    "GET /courses/{course_id:int}": STAFF_SEES,
    "POST /courses/{course_id:int}": INSTRUCTOR_IS_TOLD,
    "POST /courses/sample": (401, 401, 401, 303, 303, 303),
    "POST /courses/{course_id:int}/remove-sample": (401, 401, 401, 403, 404, 404),  # this one isn't a sample
    "POST /courses/{course_id:int}/students": INSTRUCTOR_IS_TOLD,
    "POST /courses/{course_id:int}/students/preview": INSTRUCTOR_IS_TOLD,
    "POST /courses/{course_id:int}/students/undo-import": INSTRUCTOR_DOES,
    "POST /courses/{course_id:int}/students/fetch": (401, 401, 401, 403, 404, 404),  # of no platform
    "POST /courses/{course_id:int}/unlink": (401, 401, 401, 403, 404, 404),  # of no platform
    "POST /courses/{course_id:int}/students/remove-idle": INSTRUCTOR_DOES,
    "GET /courses/{course_id:int}/students/{student_id:int}": INSTRUCTOR_SEES,
    "POST /courses/{course_id:int}/students/{student_id:int}": INSTRUCTOR_IS_TOLD,
    # without an activity
    "POST /courses/{course_id:int}/students/{student_id:int}/extra-time": (401, 401, 401, 403, 404, 404),
    # without another student
    "POST /courses/{course_id:int}/students/{student_id:int}/merge": (401, 401, 401, 403, 404, 404),
    "POST /courses/{course_id:int}/students/{student_id:int}/remove": INSTRUCTOR_DOES,
    "POST /courses/{course_id:int}/students/{student_id:int}/free": INSTRUCTOR_DOES,
    "POST /courses/{course_id:int}/staff": INSTRUCTOR_IS_TOLD,
    "POST /courses/{course_id:int}/staff/{teacher_id:int}/remove": INSTRUCTOR_DOES,
    "GET /courses/{course_id:int}/gradebook": STAFF_SEES,
    "GET /courses/{course_id:int}/practice": STAFF_SEES,
    "POST /courses/{course_id:int}/practice": (401, 401, 401, 403, 404, 409),  # without the form's version
    "GET /courses/{course_id:int}/exports": INSTRUCTOR_SEES,
    "GET /courses/{course_id:int}/exports/{file_name}": INSTRUCTOR_SEES,
    "POST /courses/{course_id:int}/copy": INSTRUCTOR_IS_TOLD,
    "POST /courses/{course_id:int}/archive": INSTRUCTOR_DOES,
    "POST /courses/{course_id:int}/bring-back": INSTRUCTOR_DOES,
    "POST /courses/{course_id:int}/delete": INSTRUCTOR_IS_TOLD,
    # Activities.
    "GET /courses/{course_id:int}/activities/new": INSTRUCTOR_SEES,
    "POST /courses/{course_id:int}/activities": INSTRUCTOR_IS_TOLD,
    "GET /activities/{activity_id:int}": STAFF_SEES,
    "GET /activities/{activity_id:int}/questions": STAFF_SEES,
    "GET /activities/{activity_id:int}/questions/file": STAFF_SEES,
    "GET /activities/{activity_id:int}/edit": INSTRUCTOR_SEES,
    "POST /activities/{activity_id:int}": INSTRUCTOR_IS_TOLD,
    "GET /tickets/new": (303, 303, 303, 200, 200, 200),
    "POST /tickets": (401, 401, 401, 422, 422, 422),
    "POST /tickets/preview": (401, 401, 401, 200, 200, 200),
    "GET /tickets/{material_id:int}/edit": (303, 303, 303, 403, 404, 404),  # a worksheet
    "POST /tickets/{material_id:int}": (401, 401, 401, 403, 404, 404),
    "GET /activities/{activity_id:int}/preview": (303, 303, 303, 303, 404, 303),  # leads to its first page
    "GET /activities/{activity_id:int}/preview/{number:int}": STAFF_SEES,
    "GET /activities/{activity_id:int}/preview/{number:int}/example": STAFF_SEES,
    "POST /activities/{activity_id:int}/preview/{number:int}/example": (401, 401, 401, 200, 404, 200),
    "POST /activities/{activity_id:int}/preview/{number:int}/{what}": (401, 401, 401, 200, 404, 200),
    "GET /activities/{activity_id:int}/preview/ticket": STAFF_SEES,
    "POST /activities/{activity_id:int}/preview/ticket": (401, 401, 401, 422, 404, 422),  # without an answer
    "POST /activities/{activity_id:int}/open": INSTRUCTOR_DOES,
    "POST /activities/{activity_id:int}/close": INSTRUCTOR_DOES,
    "POST /activities/{activity_id:int}/undo-close": INSTRUCTOR_DOES,
    "POST /activities/{activity_id:int}/extra-time": INSTRUCTOR_IS_TOLD,
    "GET /activities/{activity_id:int}/delete": INSTRUCTOR_SEES,
    "POST /activities/{activity_id:int}/delete": INSTRUCTOR_IS_TOLD,
    "POST /activities/{activity_id:int}/duplicate": INSTRUCTOR_DOES,
    "GET /activities/{activity_id:int}/qr.svg": STAFF_SEES,
    "GET /activities/{activity_id:int}/paper": INSTRUCTOR_SEES,
    "POST /activities/{activity_id:int}/paper": INSTRUCTOR_IS_TOLD,
    "GET /activities/{activity_id:int}/handout": STAFF_SEES,
    "POST /activities/{activity_id:int}/handout": (401, 401, 401, 303, 404, 303),
    # During the activity, and afterwards.
    "GET /activities/{activity_id:int}/now": STAFF_SEES,
    "GET /activities/{activity_id:int}/projector": STAFF_SEES,
    "GET /activities/{activity_id:int}/projector/now": STAFF_SEES,
    "POST /activities/{activity_id:int}/projector": INSTRUCTOR_IS_TOLD,
    "POST /activities/{activity_id:int}/results/send-again": INSTRUCTOR_DOES,
    "GET /activities/{activity_id:int}/results": STAFF_SEES,
    "GET /activities/{activity_id:int}/results/{student_id:int}": STAFF_SEES,
    "POST /activities/{activity_id:int}/results/{student_id:int}/points": INSTRUCTOR_IS_TOLD,
    "GET /activities/{activity_id:int}/summary": STAFF_SEES,
    "GET /activities/{activity_id:int}/results/written": STAFF_SEES,
    "GET /activities/{activity_id:int}/tickets": STAFF_SEES,
    "POST /activities/{activity_id:int}/tickets/{answer_id}": (401, 401, 401, 403, 404, 404),  # there is no such answer
    "GET /activities/{activity_id:int}/regrade": STAFF_SEES,
    "POST /activities/{activity_id:int}/regrade": (401, 401, 401, 403, 404, 409),  # without the preview's changes
    # Worksheets and exit tickets that teachers write.
    "GET /worksheets": (303, 303, 303, 200, 200, 200),
    "GET /worksheets/import": (303, 303, 303, 200, 200, 200),
    "POST /worksheets/import": (401, 401, 401, 422, 422, 422),  # an empty file
    "POST /worksheets/copy": (401, 401, 401, 404, 404, 404),
    "GET /worksheets/{material_id:int}": STAFF_SEES,
    "GET /worksheets/{material_id:int}/file.toml": STAFF_SEES,
    "GET /worksheets/{material_id:int}/print": STAFF_SEES,
    "POST /worksheets/{material_id:int}/print": (401, 401, 401, 303, 404, 303),
    "POST /worksheets/{material_id:int}/copy": (401, 401, 401, 303, 404, 303),
    "POST /worksheets/{material_id:int}/restore": (401, 401, 401, 403, 404, 404),  # no version
    "POST /worksheets/{material_id:int}/move": (401, 401, 401, 403, 404, 404),  # a course's stays there
    "POST /worksheets/{material_id:int}/share": INSTRUCTOR_DOES,
    "POST /worksheets/{material_id:int}/stop-sharing": INSTRUCTOR_DOES,
    "POST /worksheets/{material_id:int}/remove": INSTRUCTOR_DOES,
    "POST /worksheets/{material_id:int}/put-back": (401, 401, 401, 404, 404, 404),  # it was not removed
    "GET /worksheets/shared/{token}": (303, 303, 303, 404, 404, 404),  # there is no such link
    "POST /worksheets/shared/{token}/copy": (401, 401, 401, 404, 404, 404),
    "GET /worksheets/new": (303, 303, 303, 200, 200, 200),
    "POST /worksheets": (401, 401, 401, 422, 422, 422),
    "POST /worksheets/preview": (401, 401, 401, 200, 200, 200),
    "GET /worksheets/preview/page.svg": (303, 303, 303, 404, 404, 404),  # without a worksheet
    "GET /worksheets/{material_id:int}/edit": INSTRUCTOR_SEES,
    "POST /worksheets/{material_id:int}": INSTRUCTOR_IS_TOLD,
    # Students.
    "GET /join": ALL_200,
    "POST /join": ALL_404,
    "GET /join/{code}": ALL_200,  # everybody with the code
    "GET /join/{code}/names": ALL_200,  # everybody who types the beginning of a name
    "POST /join/{code}": ALL_422,
    "GET /resume": ALL_200,
    "POST /resume": ALL_422,
    "GET /mine": ALL_200,
    "POST /mine/{student_id:int}/code": STUDENT_DOES,
    "GET /mine/{student_id:int}/leave": STUDENT_SEES,
    "POST /mine/{student_id:int}/leave": STUDENT_DOES,
    "GET /class/{activity_id:int}": STUDENT_DOES,  # leads to where the student goes on
    "GET /class/{activity_id:int}/closing": STUDENT_SEES,
    "GET /class/{activity_id:int}/{number:int}": STUDENT_SEES,
    "POST /class/{activity_id:int}/{number:int}/save": STUDENT_SEES,
    "POST /class/{activity_id:int}/{number:int}/check": STUDENT_DOES,
    "POST /class/{activity_id:int}/{number:int}/hand-in": STUDENT_DOES,
    "POST /class/{activity_id:int}/{number:int}/hint": (404, 404, 409, 404, 404, 404),  # nothing was checked yet
    "GET /class/{activity_id:int}/{number:int}/example": STUDENT_SEES,
    "POST /class/{activity_id:int}/{number:int}/example": (404, 404, 200, 404, 404, 404),
    "POST /class/{activity_id:int}/{number:int}/run": (404, 404, 409, 404, 404, 404),  # nothing was tried yet
    "GET /class/{activity_id:int}/ticket": STUDENT_SEES,
    "POST /class/{activity_id:int}/ticket": (404, 404, 422, 404, 404, 404),
}


class TwoCourses:
    """Two courses with somebody for each role of the table, who is tried on the first course's objects.

    `people` holds for each role what School.browser takes; `values` holds an example for each path parameter.
    """

    def __init__(self, app: FastAPI) -> None:
        self.school, number = School(app), next(NUMBERS)
        ada, eve = self.school.teacher(f"ada@{number}"), self.school.teacher(f"eve@{number}")
        course, other = self.school.course("Transformers", ada), self.school.course("Another", eve)
        bo = self.school.teacher(f"bo@{number}", course, "assistant")
        kim, kims = self.school.student(course, "Kim")
        _, lous = self.school.student(other, "Lou")
        self.kim, self.activity = kim, self.school.activity(course)
        self.school.activity(other)
        content = settings_to_copy(self.school.library, "llama-7b")
        material = self.school.store.materials.add("worksheet", course, ada, content)
        self.people: dict[str, dict[str, Any]] = {
            "nobody": {}, "other student": {"visitor": lous}, "student": {"visitor": kims},
            "assistant": {"teacher": bo}, "other instructor": {"teacher": eve}, "instructor": {"teacher": ada},
        }  # fmt: skip
        self.values = {
            "{course_id:int}": course.id, "{student_id:int}": kim.id, "{teacher_id:int}": bo.id, "{number:int}": 1,
            "{activity_id:int}": self.activity.id, "{code}": self.activity.join_code, "{key}": "gpt2",
            "{answer_id}": "0123abcd", "{file_name}": "answers.csv", "{token}": "no-such-link",
            "{run_id}": "no-such-run", "{page}": 1, "{what}": "check", "{material_id:int}": material.id,
            "{row:int}": 0, "{job_id:int}": 1, "{platform_id:int}": 1, "{kind}": "png", "{stage}": "scores",
        }  # fmt: skip

    def path(self, route: str) -> str:
        """The path of a route with an example for each parameter; fails for a parameter without one.

        Example: path("/activities/{activity_id:int}") == "/activities/1"
        """
        for name, value in self.values.items():
            route = route.replace(name, str(value))
        assert "{" not in route, f"there is no example for {route}"
        return route
