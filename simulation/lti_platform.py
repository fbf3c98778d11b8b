"""A learning management system for tests: the platform's side of LTI 1.3, with the quirks of four real ones.

    with running_platform(MOODLE) as platform:
        client = platform.add_client("https://tool.example")
        course = platform.add_course(Person("7", "Kim"), Person("1", "Ada", INSTRUCTOR))
        platform.initiation(client, course, "7")  # what a browser sends to the tool first

It runs in this process, so a test reads `course.line_items` and `platform.requests`, and rotates keys, removes people
or breaks services between two requests. It checks what it is sent as strictly as the strictest of the four.
"""

from __future__ import annotations

import html
import itertools
import json
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import jwt
import uvicorn
from anyio import to_thread
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

MEMBERSHIP = "http://purl.imsglobal.org/vocab/lis/v2/membership"
LEARNER, INSTRUCTOR, MENTOR = ((f"{MEMBERSHIP}#{role}",) for role in ("Learner", "Instructor", "Mentor"))
ASSISTANT = (*INSTRUCTOR, f"{MEMBERSHIP}/Instructor#TeachingAssistant")  # Canvas sends both
INSTITUTION_INSTRUCTOR = ("http://purl.imsglobal.org/vocab/lis/v2/institution/person#Instructor",)
TEST_USER = (*LEARNER, "http://purl.imsglobal.org/vocab/lti/system/person#TestUser")

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
DEEP_LINKING = "https://purl.imsglobal.org/spec/lti-dl/claim/"
SETTINGS = f"{DEEP_LINKING}deep_linking_settings"
ENDPOINT = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
ROSTER = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"
TOOL_CONFIGURATION = "https://purl.imsglobal.org/spec/lti-tool-configuration"
PLATFORM_CONFIGURATION = "https://purl.imsglobal.org/spec/lti-platform-configuration"
AGS = "https://purl.imsglobal.org/spec/lti-ags/scope/"
MEMBERSHIPS = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
SCOPES = (f"{AGS}lineitem", f"{AGS}lineitem.readonly", f"{AGS}result.readonly", f"{AGS}score", MEMBERSHIPS)
SCORE = "application/vnd.ims.lis.v1.score+json"
ROSTER_TYPE = "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"
TOKEN_LIFE_S = 3600


@dataclass(frozen=True)
class Quirks:
    """What one product does differently from another."""

    product: str
    issuer: str = ""  # the same for all its schools; empty: the platform's own address
    initiation: str = "POST"
    deployment_field: str = "lti_deployment_id"
    token_audience: str = ""  # empty: the token endpoint
    line_item_query: str = ""  # "/scores" belongs before it
    later_second: bool = False  # 409 unless a score is a second later than the grade's last change, on its own clock
    erases_unfinished: bool = False  # a score that is not FullyGraded empties the grade
    next_link: str = "absolute"
    shouts: bool = False  # statuses, and the rel of links, in upper case
    registration_token: bool = True
    registers_deployment: bool = False  # otherwise the tool learns it from the first launch
    wants_placements: bool = False
    data: str | None = "a token of the platform's, to be returned as it is"
    accept_multiple: object = True


CANVAS = Quirks("canvas", "https://canvas.instructure.com", deployment_field="deployment_id", wants_placements=True)
BLACKBOARD = Quirks("BlackboardLearn", "https://blackboard.com", initiation="GET", next_link="relative", shouts=True)
BRIGHTSPACE = Quirks("desire2learn", token_audience="https://api.brightspace.com/auth/token",  # noqa: S106
                     registration_token=False, data=None, accept_multiple="true")  # fmt: skip
MOODLE = Quirks("moodle", line_item_query="?type_id=3", later_second=True, erases_unfinished=True,
                registers_deployment=True)  # fmt: skip
ALL_PLATFORMS = (CANVAS, BLACKBOARD, BRIGHTSPACE, MOODLE)


@dataclass
class Person:
    """Somebody in a course; an empty name is not sent."""

    sub: str
    name: str = ""
    roles: tuple[str, ...] = LEARNER
    status: str = "Active"


@dataclass
class Grade:
    """What the gradebook has for one person; no points: erased."""

    points: float | None
    out_of: float | None
    changed_at: int
    score: Mapping[str, Any]  # as the tool sent it


@dataclass
class LineItem:
    """A column of the gradebook."""

    url: str
    fields: dict[str, Any]
    grades: dict[str, Grade] = field(default_factory=dict)  # by the person's sub


@dataclass
class Course:
    """A course with its people, its links to the tool (each a content item), and its gradebook."""

    id: str
    title: str
    people: dict[str, Person]
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    line_items: list[LineItem] = field(default_factory=list)

    def line_item(self, link_id: str) -> LineItem | None:
        """The column of a link, if it has exactly one."""
        items = [item for item in self.line_items if item.fields.get("resourceLinkId") == link_id]
        return items[0] if len(items) == 1 else None


@dataclass
class Client:
    """A registration of the tool."""

    id: str
    deployment_id: str
    login_url: str
    redirect_urls: Sequence[str]
    keys_url: str
    target_url: str
    keys: list[dict[str, Any]] = field(default_factory=list)  # as fetched, and kept


@dataclass
class Message:
    """A launch or a deep linking request on its way."""

    client: Client
    person: Person
    claims: dict[str, Any]


@dataclass(frozen=True)
class Initiation:
    """What the platform's page makes the browser send first."""

    method: str
    url: str
    fields: Mapping[str, str]


@dataclass
class Trouble:
    """What a service answers instead, a number of times."""

    service: str
    response: Response
    times: int
    after: int  # so many usual answers


class RefusalError(Exception):
    """What the platform doesn't accept, with the status it answers."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


def expect(is_right: object, reason: str, status: int = 400) -> None:
    """Raise RefusalError unless something is right."""
    if not is_right:
        raise RefusalError(reason, status)


@cache
def _private_key(number: int) -> RSAPrivateKey:
    """The number-th key of this process; making one takes a while."""
    return generate_private_key(65537, 2048)


def _now() -> datetime:
    return datetime.now(UTC)


def _fetch_keys(url: str) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = httpx.get(url, timeout=10).raise_for_status().json()["keys"]
    return keys


class Platform:
    """A platform at `url`; `app` answers there. `fetch_keys` gets a tool's key set, for a tool without a server."""

    def __init__(
        self,
        quirks: Quirks,
        url: str,
        *,
        clock: Callable[[], datetime] = _now,
        fetch_keys: Callable[[str], list[dict[str, Any]]] = _fetch_keys,
    ) -> None:
        self.quirks, self.url, self.clock, self.fetch_keys = quirks, url, clock, fetch_keys
        self.issuer = quirks.issuer or url
        self.token_audience = quirks.token_audience or f"{url}/token"
        self.clients = dict[str, Client]()
        self.courses = dict[str, Course]()
        self.messages = dict[str, Message]()
        self.requests = Counter[str]()  # how often each service was asked
        self.troubles = list[Trouble]()
        self.is_down = False
        self.page_size = 50  # members per page of the roster
        self.foreign_next = ""  # where the roster's next link leads instead
        self.numbers = itertools.count(1)
        self.key_number = 1
        self.published = [1]
        self.assertions = set[str]()  # the jti of each
        self.tokens = dict[str, tuple[float, frozenset[str]]]()  # until when, and for which scopes
        self.registration_tokens = set[str]()
        course, item = "/courses/{course}", "/courses/{course}/lineitems/{item}/lineitem"
        self.app = Starlette(
            routes=[
                self._route("/.well-known/openid-configuration", "configuration", self._configuration),
                self._route("/register", "register", self._register, "POST"),
                self._route("/keys", "keys", self._keys),
                self._route("/authorize", "authorize", self._authorize, "GET", "POST"),
                self._route("/token", "token", self._token, "POST"),
                self._route("/deep-links", "deep-links", self._deep_links, "POST"),
                self._route(f"{course}/members", "memberships", self._memberships),
                self._route(f"{item}/scores", "scores", self._scores, "POST"),
            ]
        )

    # What a test sets up

    def add_client(self, tool_url: str) -> Client:
        """Register the tool at this address by hand."""
        number = next(self.numbers)
        paths = (f"{tool_url}/lti/login", [f"{tool_url}/lti/launch"], f"{tool_url}/lti/keys", f"{tool_url}/lti/launch")
        client = Client(f"client-{number}", f"deployment-{number}", *paths)
        self.clients[client.id] = client
        return client

    def add_course(self, *people: Person, title: str = "Deep learning") -> Course:
        """A course with these people and one link, "link-1", which has a column in the gradebook."""
        course = Course(f"course-{next(self.numbers)}", title, {person.sub: person for person in people})
        self.courses[course.id] = course
        self.add_link(course, "link-1")
        return course

    def copy_course(self, course: Course) -> Course:
        """The next term's course: the same links under new ids, and nobody in it."""
        copy = Course(f"course-{next(self.numbers)}", f"{course.title} copy", {})
        self.courses[copy.id] = copy
        for item in course.links.values():
            self.add_link(copy, f"copy-{next(self.numbers)}", item)
        return copy

    def add_link(self, course: Course, link_id: str, item: Mapping[str, Any] | None = None) -> str:
        """A link to the tool; a content item without a line item gets no column."""
        course.links[link_id] = dict(item or {"title": "A worksheet", "lineItem": {"scoreMaximum": 100}})
        if line_item := course.links[link_id].get("lineItem"):
            fields = {"label": course.links[link_id].get("title", ""), **line_item, "resourceLinkId": link_id}
            self._add_line_item(course, fields)
        return link_id

    def rotate_keys(self, publish: int = 2) -> None:
        """Sign with a new key from now on, and publish only the newest few."""
        self.key_number += 1
        self.published = [*self.published, self.key_number][-publish:]

    def refuse(
        self, service: str, status: int, *, times: int = 1, after: int = 0, reason: str = "", **headers: str
    ) -> None:
        """Let a service answer with an error a number of times, `after` so many usual answers.

        Underscores in header names become hyphens.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.troubles.append(Trouble(service, Response(reason, status, named), times, after))

    def expire_tokens(self) -> None:
        """Accept none of the access tokens given so far."""
        self.tokens.clear()

    def change_grade(self, item: LineItem, sub: str, points: float) -> None:
        """A teacher types a grade into the gradebook."""
        item.grades[sub] = Grade(points, item.fields["scoreMaximum"], int(self.clock().timestamp()), {})

    def registration_query(self) -> dict[str, str]:
        """What the platform adds to the tool's registration address."""
        query = {"openid_configuration": f"{self.url}/.well-known/openid-configuration"}
        if self.quirks.registration_token:
            query["registration_token"] = secrets.token_urlsafe()
            self.registration_tokens.add(query["registration_token"])
        return query

    # Messages

    def initiation(
        self, client: Client, course: Course, sub: str, /, link_id: str = "link-1", *, target: str = "", **claims: Any
    ) -> Initiation:
        """Begin a launch; `claims` replace its token's by the last part of their names, and None removes one."""
        item = course.links[link_id]
        target = target or item.get("url") or client.target_url
        message = self._message(client, course, course.people[sub], "LtiResourceLinkRequest", target)
        message.claims[f"{CLAIM}resource_link"] = {"id": link_id, "title": item.get("title", "")}
        message.claims[ENDPOINT] = {"scope": SCOPES[:4], "lineitems": f"{self.url}/courses/{course.id}/lineitems"}
        if line_item := course.line_item(link_id):
            message.claims[ENDPOINT]["lineitem"] = line_item.url
        roster = {"context_memberships_url": f"{self.url}/courses/{course.id}/members", "service_versions": ["2.0"]}
        message.claims[ROSTER] = roster
        return self._initiate(message, target, claims)

    def deep_linking(self, client: Client, course: Course, sub: str, /, *, target: str, **claims: Any) -> Initiation:
        """Begin a deep linking request, which has no link yet; `claims` as for `initiation`."""
        message = self._message(client, course, course.people[sub], "LtiDeepLinkingRequest", target)
        settings = {
            "deep_link_return_url": f"{self.url}/deep-links?" + urlencode({"course": course.id, "client": client.id}),
            "accept_types": ["ltiResourceLink"],
            "accept_presentation_document_targets": ["iframe", "window"],
            "accept_multiple": self.quirks.accept_multiple,
            "data": self.quirks.data,
        }
        message.claims[SETTINGS] = {key: value for key, value in settings.items() if value is not None}
        return self._initiate(message, target, claims)

    def answer(self, authorization_url: str) -> tuple[str, dict[str, str]]:
        """What the page at this address posts by itself: where to, and the fields. Raises RefusalError."""
        sent = dict(parse_qsl(urlsplit(authorization_url).query, keep_blank_values=True))
        message = self.messages.get(sent.get("lti_message_hint", ""))
        wanted = {"scope": "openid", "response_type": "id_token", "response_mode": "form_post", "prompt": "none"}
        if message is None:
            raise RefusalError("unknown lti_message_hint", 400)
        wanted |= {"client_id": message.client.id, "login_hint": message.person.sub}
        expect(wanted.items() <= sent.items(), f"not an authorization request: {sent}")
        expect(sent.get("redirect_uri") in message.client.redirect_urls, "invalid redirect_uri")
        expect(sent.get("nonce") and sent.get("state"), "neither nonce nor state may be missing")
        claims = {"nonce": sent["nonce"], **message.claims}
        return sent["redirect_uri"], {"id_token": self.sign(claims), "state": sent["state"]}

    def sign(self, claims: Mapping[str, Any], *, algorithm: str = "RS256", key: Any = None, **header: Any) -> str:
        """A token with these claims as they are, except that those that are None are left out."""
        headers = {"kid": f"key-{self.key_number}", **header}
        claims = {name: value for name, value in claims.items() if value is not None}
        key = _private_key(self.key_number) if key is None else key
        return jwt.encode(claims, key, algorithm, {name: value for name, value in headers.items() if value is not None})

    def _message(self, client: Client, course: Course, person: Person, kind: str, target: str) -> Message:
        now = int(self.clock().timestamp())
        claims = {
            "iss": self.issuer,
            "aud": client.id,
            "azp": client.id,
            "sub": person.sub,
            "iat": now,
            "exp": now + 300,
            "name": person.name or None,
            f"{CLAIM}message_type": kind,
            f"{CLAIM}version": "1.3.0",
            f"{CLAIM}deployment_id": client.deployment_id,
            f"{CLAIM}target_link_uri": target,
            f"{CLAIM}roles": list(person.roles),
            f"{CLAIM}context": {"id": course.id, "title": course.title, "label": course.title},
            f"{CLAIM}launch_presentation": {"locale": "en", "return_url": f"{self.url}/back"},
        }
        return Message(client, person, claims)

    def _initiate(self, message: Message, target: str, claims: Mapping[str, Any]) -> Initiation:
        for name, value in claims.items():
            full = next((each for each in message.claims if each.rpartition("/")[2] == name), None)
            message.claims[full or (name if name in ("nonce", "email") else f"{CLAIM}{name}")] = value
        hint = secrets.token_urlsafe(12)
        self.messages[hint] = message
        fields = {
            "iss": self.issuer,
            "login_hint": message.person.sub,
            "target_link_uri": target,
            "lti_message_hint": hint,
            "client_id": message.client.id,
            self.quirks.deployment_field: message.client.deployment_id,
        }
        return Initiation(self.quirks.initiation, message.client.login_url, fields)

    # What the platform serves

    def _route(self, path: str, service: str, answer: Callable[..., Response], *methods: str) -> Route:
        async def endpoint(request: Request) -> Response:
            self.requests[service] += 1
            if self.is_down:
                return Response("down for maintenance", 503)
            for trouble in self.troubles:
                if trouble.service == service and trouble.after > 0:
                    trouble.after -= 1
                elif trouble.service == service and trouble.times > 0:
                    trouble.times -= 1
                    return trouble.response
            body = await request.body()
            try:
                # In a thread, since it may fetch the keys of a tool that waits for this answer.
                response = await to_thread.run_sync(partial(answer, request, body, **request.path_params))
            except RefusalError as refusal:
                response = Response(str(refusal), refusal.status)
            response.headers["date"] = self.clock().strftime("%a, %d %b %Y %H:%M:%S GMT")
            return response

        return Route(path, endpoint, methods=methods or ("GET",))

    def _configuration(self, _request: Request, _body: bytes) -> Response:
        urls = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys",
                "registration_endpoint": "register"}  # fmt: skip
        configuration = {
            "issuer": self.issuer,
            **{name: f"{self.url}/{path}" for name, path in urls.items()},
            "authorization_server": self.quirks.token_audience or None,
            "scopes_supported": ["openid", *SCOPES],
            PLATFORM_CONFIGURATION: {"product_family_code": self.quirks.product, "version": "1"},
        }
        return JSONResponse(configuration)

    def _register(self, request: Request, body: bytes) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        expect(
            token in self.registration_tokens or not self.quirks.registration_token, "no such registration token", 401
        )
        self.registration_tokens.discard(token)
        sent = json.loads(body)
        tool, wanted = sent[TOOL_CONFIGURATION], {
            "application_type": "web",
            "response_types": ["id_token"],
            "token_endpoint_auth_method": "private_key_jwt",
        }  # fmt: skip
        expect(all(sent.get(name) == value for name, value in wanted.items()), f"wanted {wanted}")
        expect({"implicit", "client_credentials"} <= set(sent["grant_types"]), "two grant types are needed")
        expect(urlsplit(tool["target_link_uri"]).netloc == tool["domain"], "domain and target_link_uri differ")
        expect(set(sent["scope"].split()) <= {"openid", *SCOPES}, "an unknown scope")
        placed = all(message.get("placements") for message in tool["messages"])
        expect(placed or not self.quirks.wants_placements, "a message without placements")
        client = self.add_client("")
        client.login_url, client.redirect_urls = sent["initiate_login_uri"], sent["redirect_uris"]
        client.keys_url, client.target_url = sent["jwks_uri"], tool["target_link_uri"]
        deployment = {"deployment_id": client.deployment_id} if self.quirks.registers_deployment else {}
        return JSONResponse({**sent, "client_id": client.id, TOOL_CONFIGURATION: {**tool, **deployment}}, 201)

    def _keys(self, _request: Request, _body: bytes) -> Response:
        public = {f"key-{number}": _private_key(number).public_key() for number in self.published}
        described = [
            {**jwt.algorithms.RSAAlgorithm.to_jwk(key, as_dict=True), "kid": kid, "alg": "RS256", "use": "sig"}
            for kid, key in public.items()
        ]
        return JSONResponse({"keys": described})

    def _authorize(self, request: Request, body: bytes) -> Response:
        query = request.url.query if request.method == "GET" else body.decode()
        action, fields = self.answer(f"?{query}")
        inputs = "".join(
            f'<input type="hidden" name="{name}" value="{html.escape(value)}">' for name, value in fields.items()
        )
        form = f'<form action="{html.escape(action)}" method="post">{inputs}</form>'
        return HTMLResponse(f"<!doctype html><title>Launch</title>{form}<script>document.forms[0].submit()</script>")

    def _token(self, _request: Request, body: bytes) -> Response:
        sent = dict(parse_qsl(body.decode()))
        expect(sent.get("grant_type") == "client_credentials", "unsupported_grant_type")
        expect(sent.get("client_assertion_type", "").endswith(":client-assertion-type:jwt-bearer"), "invalid_request")
        claims, scopes = self._read(sent["client_assertion"], self.token_audience), frozenset(sent["scope"].split())
        expect(claims["sub"] == claims["iss"] and claims["jti"] not in self.assertions, "invalid_client")
        expect(scopes <= set(SCOPES), "invalid_scope")
        self.assertions.add(claims["jti"])
        token = secrets.token_urlsafe()
        self.tokens[token] = (self.clock().timestamp() + TOKEN_LIFE_S, scopes)
        return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": TOKEN_LIFE_S,
                             "scope": " ".join(sorted(scopes))})  # fmt: skip

    def _deep_links(self, request: Request, body: bytes) -> Response:
        """Make a link of each content item that the tool has returned."""
        course = self.courses[request.query_params["course"]]
        claims = self._read(dict(parse_qsl(body.decode()))["JWT"], self.issuer)
        client = self.clients[claims["iss"]]
        kind = {f"{CLAIM}message_type": "LtiDeepLinkingResponse", f"{CLAIM}version": "1.3.0",
                f"{CLAIM}deployment_id": client.deployment_id}  # fmt: skip
        expect(kind.items() <= claims.items() and "nonce" in claims, f"wanted {kind} and a nonce")
        data = {} if self.quirks.data is None else {f"{DEEP_LINKING}data": self.quirks.data}
        expect(
            {name: claims[name] for name in claims if name == f"{DEEP_LINKING}data"} == data,
            "data is not what was sent",
        )
        items = claims.get(f"{DEEP_LINKING}content_items", [])
        expect(all(item["type"] == "ltiResourceLink" and item.get("url") for item in items), "Invalid link")
        expect(len(items) <= 1 or self.quirks.accept_multiple, "more than one item")
        made = [self.add_link(course, f"link-{next(self.numbers)}", item) for item in items]
        return JSONResponse({"links": made})

    def _memberships(self, request: Request, _body: bytes, course: str) -> Response:
        self._check_bearer(request, MEMBERSHIPS)
        people, query = list(self.courses[course].people.values()), request.query_params
        start = int(query.get("from", 0))
        members = [
            {
                "user_id": person.sub,
                "roles": person.roles,
                **({"name": person.name} if person.name else {}),
                **({"status": person.status.upper() if self.quirks.shouts else person.status} if person.status else {}),
            }
            for person in people[start : start + self.page_size]
        ]
        headers = {}
        if start + self.page_size < len(people):
            path = f"/courses/{course}/members?" + urlencode({**query, "from": start + self.page_size})
            address = self.foreign_next or (path if self.quirks.next_link == "relative" else f"{self.url}{path}")
            headers["Link"] = f'<{address}>; rel="{"NEXT" if self.quirks.shouts else "next"}"'
        found = {"id": str(request.url), "context": {"id": course}, "members": members}
        return JSONResponse(found, headers=headers, media_type=ROSTER_TYPE)

    def _scores(self, request: Request, body: bytes, course: str, item: str) -> Response:
        self._check_bearer(request, f"{AGS}score", SCORE)
        line_item, score = self._find_line_item(course, item), json.loads(body)
        person = self.courses[course].people.get(score["userId"])
        if person is None or LEARNER[0] not in person.roles:
            raise RefusalError("the user has no gradable role in the course", 400)
        sent_at = datetime.fromisoformat(score["timestamp"])
        expect(sent_at.tzinfo and {"activityProgress", "gradingProgress"} <= set(score), "no time zone, or no progress")
        expect("scoreGiven" not in score or score.get("scoreMaximum"), "scoreGiven without scoreMaximum")
        before, second = line_item.grades.get(person.sub), int(sent_at.timestamp())
        earliest = before.changed_at + self.quirks.later_second if before else second
        expect(second >= earliest, "Refusing score with an earlier timestamp", 409)
        is_final = score["gradingProgress"] == "FullyGraded"
        if is_final or self.quirks.erases_unfinished:
            points, maximum = (score.get("scoreGiven"), score.get("scoreMaximum")) if is_final else (None, None)
            line_item.grades[person.sub] = Grade(points, maximum, second, score)
        return Response(status_code=200)

    # What several of them need

    def _read(self, token: str, audience: str) -> dict[str, Any]:
        """The claims of a token that a tool signed; fetches the tool's keys only if the key isn't known yet."""
        kid = jwt.get_unverified_header(token).get("kid")
        client = self.clients.get(jwt.decode(token, options={"verify_signature": False}).get("iss", ""))
        if client is None or not kid:
            raise RefusalError("invalid_client: no such client, or no kid", 400)
        if kid not in [key["kid"] for key in client.keys]:
            client.keys = self.fetch_keys(client.keys_url)
        key = next((jwt.PyJWK(key, "RS256") for key in client.keys if key["kid"] == kid), None)
        try:
            claims: dict[str, Any] = jwt.decode(
                token, key or "", ["RS256"], audience=audience, options={"require": ["iss", "aud", "exp", "iat"],
                "verify_exp": False, "verify_iat": False})  # fmt: skip
        except jwt.InvalidTokenError as error:
            raise RefusalError(f"invalid_client: {error}", 400) from error
        is_now = claims["iat"] - 60 <= self.clock().timestamp() < claims["exp"] <= claims["iat"] + 3600
        expect(is_now, "invalid_client: iat or exp")
        return claims

    def _check_bearer(self, request: Request, scope: str, media_type: str = "") -> None:
        """Raise RefusalError unless the request has a token for the scope, a User-Agent, and this type of content."""
        until, scopes = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "), (0, ()))
        expect(until >= self.clock().timestamp(), "no token, or one that has expired", 401)
        expect(scope in scopes, f"the token isn't for {scope}", 403)
        expect(request.headers.get("user-agent"), "who are you?", 403)
        expect(media_type in ("", request.headers.get("content-type")), f"wanted {media_type}")

    def _add_line_item(self, course: Course, fields: Mapping[str, Any]) -> LineItem:
        path = f"/courses/{course.id}/lineitems/{next(self.numbers)}/lineitem"
        item = LineItem(f"{self.url}{path}{self.quirks.line_item_query}", dict(fields))
        course.line_items.append(item)
        return item

    def _find_line_item(self, course: str, number: str) -> LineItem:
        for item in self.courses[course].line_items:
            if f"/lineitems/{number}/" in item.url:
                return item
        raise RefusalError("no such line item", 404)


@contextmanager
def running_platform(quirks: Quirks, **options: Any) -> Iterator[Platform]:
    """A platform on a free port of this machine, stopped at the end; `options` as for Platform."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        platform = Platform(quirks, f"http://127.0.0.1:{listening.getsockname()[1]}", **options)
        server = uvicorn.Server(uvicorn.Config(platform.app, lifespan="off", log_config=None, date_header=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield platform
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
