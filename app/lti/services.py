"""Calls to a platform: access tokens, scores and the list of members.

All of them block, with time limits: they belong in a thread.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from app.lti.keys import sign
from app.lti.message import SCORE_SCOPE, identifier
from app.lti.outside import OutsideError, PlatformAnswer, ask
from app.names import clean_line
from app.store import Platform, Store
from app.store.lti_scores import Standing
from app.translation import gettext as _

MAX_PAGES = 400  # of members: some platforms send 20 at a time
LIST_TIMEOUT_S = 60  # for all pages
MAX_REFUSAL = 300  # characters of what a platform says
MAX_ECHO = 2000  # characters of an answer in which its message is looked for
MAX_MEMBER_NAME = 100
TOKEN_MARGIN, LONGEST_TOKEN_S = timedelta(seconds=60), 3600

# What is asked for: the scope of the access token, and the type of the content.
_SCORE = SCORE_SCOPE, "application/vnd.ims.lis.v1.score+json"
_MEMBERS = (
    "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly",
    "application/vnd.ims.lti-nrps.v2.membershipcontainer+json",
)
_MESSAGE = re.compile(r'"(?:message|error_description|error|reason)"\s*:\s*"([^"{]+)')


class PlatformError(Exception):
    """A platform can't be reached, is busy or refuses us; the message is its reason. Later the call may succeed."""

    def __init__(self, reason: str, retry_after_s: int = 0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class ScoreRefusedError(Exception):
    """A platform doesn't take this score; the message is its reason. Sending it again wouldn't help."""


@dataclass(frozen=True)
class Member:
    """One person in a platform's course; `name` is empty if the platform keeps it."""

    sub: str
    name: str
    roles: tuple[str, ...]
    is_active: bool


class PlatformServices:
    """The services of all platforms, with an access token for each as long as it lasts."""

    def __init__(self, store: Store, *, allow_private: bool) -> None:
        self._store, self.allow_private, self._lock = store, allow_private, threading.Lock()
        # By platform, since an issuer may have several clients, and scope: the token and its end.
        self._tokens = dict[tuple[int, str], tuple[str, datetime]]()

    def send_score(self, platform: Platform, line_item: str, sub: str, standing: Standing) -> None:
        """Store a score in the platform's gradebook. Raises PlatformError or ScoreRefusedError."""
        url, at = urlsplit(line_item), self._store.now()
        address = url._replace(path=f"{url.path.rstrip('/')}/scores").geturl()  # Moodle's ends in ?type_id=1
        answer = self._call(platform, _SCORE, address, _score(sub, standing, at))
        if answer.status == 409:  # the platform's clock is ahead of ours
            answer = self._call(platform, _SCORE, address, _score(sub, standing, _after(answer) or at))
        if not _is_success(answer):
            raise ScoreRefusedError(_reason(answer))

    def members(self, platform: Platform, memberships: str) -> tuple[Member, ...]:
        """Everybody in a platform's course, from all pages of the list. Raises PlatformError if one doesn't come."""
        found, url = dict[str, Member](), memberships  # some platforms repeat people on the next page
        until = time.monotonic() + LIST_TIMEOUT_S
        for _number in range(MAX_PAGES):
            if time.monotonic() > until:
                raise PlatformError(_("The list comes too slowly."))
            answer = self._call(platform, _MEMBERS, url)
            if not _is_success(answer):
                raise PlatformError(_reason(answer))
            found |= {member.sub: member for member in _members(_json(answer))}
            following = _next_page(answer, url)
            if following is None:
                return tuple(found.values())
            url = following
        raise PlatformError(_("The list has more than {most} pages.").format(most=MAX_PAGES))

    def _call(
        self, platform: Platform, service: tuple[str, str], url: str, content: Mapping[str, Any] | None = None
    ) -> PlatformAnswer:
        scope, kind = service

        def once() -> PlatformAnswer:
            headers = {"Authorization": f"Bearer {self._token(platform, scope)}"}
            if content is None:
                return self._ask("GET", url, headers={**headers, "Accept": kind})
            return self._ask(
                "POST", url, headers={**headers, "Content-Type": kind}, content=json.dumps(content).encode()
            )

        answer = once()
        if answer.status == 401:  # the token has ended early
            with self._lock:
                self._tokens.pop((platform.id, scope), None)
            answer = once()
        if answer.status in (401, 408, 429) or answer.status >= 500 or _is_rate_limit(answer):
            after = answer.headers.get("retry-after", "")
            raise PlatformError(_reason(answer), int(after) if re.fullmatch(r"[0-9]{1,4}", after) else 0)
        return answer

    def _token(self, platform: Platform, scope: str) -> str:
        at = self._store.now()
        with self._lock:
            token, ends_at = self._tokens.get((platform.id, scope), ("", at))
        if at < ends_at - TOKEN_MARGIN:
            return token
        client = {"iss": platform.client_id, "sub": platform.client_id, "aud": platform.audience}
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": sign(self._store, client),
            "scope": scope,
        }
        answer = self._ask("POST", platform.token_url, form=form)
        granted = _json(answer) if _is_success(answer) else {}
        given, lasts_s = granted.get("access_token"), granted.get("expires_in")
        if not isinstance(given, str) or not given.isascii() or not given.isprintable():
            raise PlatformError(_reason(answer))
        lasts_s = min(lasts_s, LONGEST_TOKEN_S) if isinstance(lasts_s, int) else LONGEST_TOKEN_S
        with self._lock:
            self._tokens[platform.id, scope] = given, at + timedelta(seconds=lasts_s)
        return given

    def _ask(self, method: str, url: str, **sent: Any) -> PlatformAnswer:
        try:
            return ask(method, url, allow_private=self.allow_private, **sent)
        except OutsideError as error:
            raise PlatformError(str(error)) from error


def _score(sub: str, standing: Standing, at: datetime) -> dict[str, Any]:
    score: dict[str, Any] = {"userId": sub, "timestamp": _written(at)}
    if standing.points is None:
        return {**score, "activityProgress": "Initialized", "gradingProgress": "NotReady"}
    score |= {"scoreGiven": standing.points, "scoreMaximum": standing.out_of}
    score |= {"activityProgress": "Completed", "gradingProgress": "FullyGraded"}
    # Without this, platforms take the time of sending for the time of handing in, which may be late.
    return score | ({"submission": {"submittedAt": _written(standing.submitted_at)}} if standing.submitted_at else {})


def _written(at: datetime) -> str:
    """Blackboard refuses times without a zone."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _members(page: Mapping[str, Any]) -> list[Member]:
    listed = page.get("members")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise PlatformError(_("The list of members can’t be read."))
    found = list[Member]()
    for each in listed:
        sub, roles, status = identifier(each.get("user_id")), each.get("roles"), each.get("status") or "Active"
        if not sub or not isinstance(roles, list):
            raise PlatformError(_("The list of members can’t be read."))
        parts = [each["name"]] if each.get("name") else [each.get("given_name"), each.get("family_name")]
        name = clean_line(" ".join(part for part in parts if isinstance(part, str)), MAX_MEMBER_NAME)
        found.append(Member(sub, name, tuple(map(str, roles)), str(status).lower() == "active"))
    return found


def _is_success(answer: PlatformAnswer) -> bool:
    return 200 <= answer.status < 300


def _is_rate_limit(answer: PlatformAnswer) -> bool:
    """Whether it is Canvas's way to say 429."""
    left = answer.headers.get("x-rate-limit-remaining", "")
    return answer.status == 403 and re.fullmatch(r"-[0-9.]+|0(\.0*)?", left) is not None


def _reason(answer: PlatformAnswer) -> str:
    """What a platform says. Moodle says it in the status line, followed by all that it was sent; others in a body."""
    body = answer.content[:MAX_ECHO].decode(errors="replace")
    said = _MESSAGE.search(body)
    is_prose = "html" not in answer.headers.get("content-type", "") and not body.lstrip().startswith(("{", "["))
    text = said[1] if said else body if is_prose else ""
    status = f"{answer.status} {answer.reason.partition('{')[0]}".strip()
    return clean_line(f"{status}: {text}" if text else status, MAX_REFUSAL)


def _json(answer: PlatformAnswer) -> Mapping[str, Any]:
    try:
        content = answer.json()
    except OutsideError as error:
        raise PlatformError(str(error)) from error
    return content if isinstance(content, dict) else {}


def _after(answer: PlatformAnswer) -> datetime | None:
    """The second after the answer, on the platform's clock."""
    try:
        return (parsedate_to_datetime(answer.headers.get("date", "")) + timedelta(seconds=1)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _next_page(answer: PlatformAnswer, url: str) -> str | None:
    for target, parameters in re.findall(r"<([^>]*)>([^<]*)", answer.headers.get("link", "")):
        if re.search(r"""\brel\s*=\s*["']?next\b""", parameters, re.IGNORECASE):
            with suppress(ValueError):
                following = str(urljoin(url, target))
                if _origin(following) == _origin(url):  # another site would get our token
                    return following
            raise PlatformError(_("The next page is on another site."))
    return None


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
