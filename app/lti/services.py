"""Calls to a platform: access tokens, line items, scores and the list of members.

All of them block, with time limits: they belong in a thread.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from app.lti.keys import sign
from app.lti.message import MAX_ID
from app.lti.outside import OutsideError, PlatformAnswer, ask
from app.names import clean_line
from app.store import Platform, Store
from app.translation import gettext as _

MAX_PAGES = 400  # of members: some platforms send 20 at a time
MAX_REFUSAL = 300  # characters of what a platform says
MAX_MEMBER_NAME = 100
TOKEN_MARGIN, LONGEST_TOKEN_S = timedelta(seconds=60), 3600

_AGS = "https://purl.imsglobal.org/spec/lti-ags/scope"
LINE_ITEM, LINE_ITEM_READ, SCORE = f"{_AGS}/lineitem", f"{_AGS}/lineitem.readonly", f"{_AGS}/score"
MEMBERS = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
GRADE_SCOPES = (LINE_ITEM, LINE_ITEM_READ, SCORE)

_LIS = "application/vnd.ims.lis"
_LINE_ITEM_TYPE, _LINE_ITEMS_TYPE = f"{_LIS}.v2.lineitem+json", f"{_LIS}.v2.lineitemcontainer+json"
_SCORE_TYPE, _MEMBERS_TYPE = f"{_LIS}.v1.score+json", "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"


class PlatformError(Exception):
    """A platform can't be reached, is busy or refuses us; the message is its reason. Later the call may succeed."""

    def __init__(self, reason: str, retry_after_s: int = 0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class ScoreRefusedError(Exception):
    """A platform doesn't take this score; the message is its reason. Sending it again wouldn't help."""


@dataclass(frozen=True)
class Score:
    """What a platform is told of one person's work. `points` is None if no points count any more."""

    sub: str
    points: float | None
    out_of: int
    submitted_at: datetime | None

    def as_json(self, at: datetime) -> dict[str, Any]:
        score: dict[str, Any] = {"userId": self.sub, "timestamp": written_time(at)}
        if self.points is None:
            return {**score, "activityProgress": "Initialized", "gradingProgress": "NotReady"}
        score |= {"scoreGiven": self.points, "scoreMaximum": self.out_of}
        score |= {"activityProgress": "Completed", "gradingProgress": "FullyGraded"}
        submitted = {"submission": {"submittedAt": written_time(self.submitted_at)}} if self.submitted_at else {}
        return {**score, **submitted}


@dataclass(frozen=True)
class Member:
    """One person in a platform's course; `name` is empty if the platform keeps it."""

    sub: str
    name: str
    roles: tuple[str, ...]
    is_active: bool


def written_time(at: datetime) -> str:
    """A time in UTC to the millisecond. Blackboard refuses times without a zone.

    Example:
        written_time(datetime(2026, 11, 29, 12, tzinfo=UTC))  # "2026-11-29T12:00:00.000Z"
    """
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class PlatformServices:
    """The services of all platforms, with an access token for each as long as it lasts."""

    def __init__(self, store: Store, *, allow_private: bool) -> None:
        self._store, self.allow_private, self._lock = store, allow_private, threading.Lock()
        # An issuer may have several clients: by platform, with the scopes asked for, each with its end.
        self._tokens = dict[tuple[int, tuple[str, ...]], tuple[str, datetime]]()

    def send_score(self, platform: Platform, scopes: Sequence[str], line_item: str, score: Score) -> None:
        """Store a score in the platform's gradebook. Raises PlatformError or ScoreRefusedError."""
        url = urlsplit(line_item)
        address = url._replace(path=f"{url.path.rstrip('/')}/scores").geturl()  # Moodle's ends in ?type_id=1
        granted = _granted(scopes)

        def post(at: datetime) -> PlatformAnswer:
            return self._call(platform, granted, "POST", address, _SCORE_TYPE, score.as_json(at))

        answer = post(self._store.now())
        if answer.status == 409:  # the platform's clock is ahead of ours
            answer = post((_date_of(answer) or self._store.now()) + timedelta(seconds=1))
        if not _is_success(answer):
            raise ScoreRefusedError(_reason(answer))

    def line_item(self, platform: Platform, scopes: Sequence[str], line_items: str, new: Mapping[str, Any]) -> str:
        """The address of the line item with the resource and the link of `new`; if there is none, it is created."""
        granted, url = _granted(scopes), urlsplit(line_items)
        query = "&".join(filter(None, (url.query, urlencode({"resource_id": new["resourceId"]}))))
        for page in self._pages(platform, granted, url._replace(query=query).geturl(), _LINE_ITEMS_TYPE):
            for item in _objects(page):
                same = (item.get("resourceId"), item.get("resourceLinkId") or new["resourceLinkId"])
                if same == (new["resourceId"], new["resourceLinkId"]):
                    return _text(item, "id")
        answer = self._call(platform, granted, "POST", line_items, _LINE_ITEM_TYPE, new)
        if not _is_success(answer):
            raise PlatformError(_reason(answer))
        return _text(_json(answer), "id")

    def members(self, platform: Platform, memberships: str) -> tuple[Member, ...]:
        """Everybody in a platform's course, from all pages of the list. Raises PlatformError if one doesn't come."""
        found = dict[str, Member]()  # some platforms repeat people on the next page
        for page in self._pages(platform, (MEMBERS,), memberships, _MEMBERS_TYPE):
            for each in _objects(page.get("members") if isinstance(page, dict) else None):
                parts = [each.get("name")] if each.get("name") else [each.get("given_name"), each.get("family_name")]
                name = clean_line(" ".join(part for part in parts if isinstance(part, str)), MAX_MEMBER_NAME)
                roles, status = each.get("roles"), each.get("status") or "Active"
                sub = _text(each, "user_id")
                if len(sub) > MAX_ID or sub.startswith("$") or not isinstance(roles, list):
                    raise PlatformError(_("The list of members can’t be read."))
                found[sub] = Member(sub, name, tuple(map(str, roles)), str(status).lower() == "active")
        return tuple(found.values())

    def _pages(self, platform: Platform, scopes: tuple[str, ...], first: str, kind: str) -> Iterator[Any]:
        url = first
        for _number in range(MAX_PAGES):
            answer = self._call(platform, scopes, "GET", url, kind)
            if not _is_success(answer):
                raise PlatformError(_reason(answer))
            yield _json(answer)
            following = _next_page(answer)
            if following is None:
                return
            url = urljoin(url, following)
            if _origin(url) != _origin(first):  # which would get our token
                raise PlatformError(_("The next page is on another site."))
        raise PlatformError(_("The list has more than {most} pages.").format(most=MAX_PAGES))

    def _call(
        self,
        platform: Platform,
        scopes: tuple[str, ...],
        method: str,
        url: str,
        kind: str,
        content: Mapping[str, Any] | None = None,
    ) -> PlatformAnswer:
        typed = {"Accept": kind} if content is None else {"Content-Type": kind}
        body = None if content is None else json.dumps(content).encode()
        answer = self._ask(method, url, headers=typed | self._authorization(platform, scopes), content=body)
        if answer.status == 401:  # the token has ended early
            with self._lock:
                self._tokens.pop((platform.id, scopes), None)
            answer = self._ask(method, url, headers=typed | self._authorization(platform, scopes), content=body)
        if answer.status in (401, 408, 429) or answer.status >= 500 or _is_rate_limit(answer):
            after = answer.headers.get("retry-after", "")
            raise PlatformError(_reason(answer), int(after) if re.fullmatch(r"[0-9]{1,4}", after) else 0)
        return answer

    def _authorization(self, platform: Platform, scopes: tuple[str, ...]) -> dict[str, str]:
        at, key = self._store.now(), (platform.id, scopes)
        with self._lock:
            token, ends_at = self._tokens.get(key, ("", at))
        if at >= ends_at - TOKEN_MARGIN:
            client = {"iss": platform.client_id, "sub": platform.client_id, "aud": platform.audience}
            form = {
                "grant_type": "client_credentials",
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "client_assertion": sign(self._store, client),
                "scope": " ".join(scopes),
            }
            answer = self._ask("POST", platform.token_url, form=form)
            if not _is_success(answer):
                raise PlatformError(_reason(answer))
            granted = _json(answer)
            token, lasts_s = _text(granted, "access_token"), granted.get("expires_in")
            lasts_s = min(lasts_s, LONGEST_TOKEN_S) if isinstance(lasts_s, int) else LONGEST_TOKEN_S
            with self._lock:
                self._tokens[key] = token, at + timedelta(seconds=lasts_s)
        return {"Authorization": f"Bearer {token}"}

    def _ask(self, method: str, url: str, **sent: Any) -> PlatformAnswer:
        try:
            return ask(method, url, allow_private=self.allow_private, **sent)
        except OutsideError as error:
            raise PlatformError(str(error)) from error


def _granted(scopes: Sequence[str]) -> tuple[str, ...]:
    return tuple(scope for scope in GRADE_SCOPES if scope in scopes)


def _is_success(answer: PlatformAnswer) -> bool:
    return 200 <= answer.status < 300


def _is_rate_limit(answer: PlatformAnswer) -> bool:
    """Whether it is Canvas's way to say 429."""
    left = answer.headers.get("x-rate-limit-remaining", "")
    return answer.status == 403 and re.fullmatch(r"-[0-9.]+|0(\.0*)?", left) is not None


def _reason(answer: PlatformAnswer) -> str:
    """What a platform says: Moodle in the status line, others in a body of text or JSON."""
    is_page = "html" in answer.headers.get("content-type", "")
    body = "" if is_page else answer.content[:MAX_REFUSAL].decode(errors="replace")
    return clean_line(f"{answer.status} {answer.reason} {body}", MAX_REFUSAL)


def _json(answer: PlatformAnswer) -> Any:
    try:
        return answer.json()
    except OutsideError as error:
        raise PlatformError(str(error)) from error


def _objects(listed: Any) -> list[Mapping[str, Any]]:
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise PlatformError(_("The learning platform’s answer isn’t the list that it should be."))
    return listed


def _text(content: Any, name: str) -> str:
    value = content.get(name) if isinstance(content, dict) else None
    if not isinstance(value, str) or not value:
        raise PlatformError(_("The learning platform’s answer has no {name}.").format(name=name))
    return value


def _date_of(answer: PlatformAnswer) -> datetime | None:
    try:
        return parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return None


def _next_page(answer: PlatformAnswer) -> str | None:
    for url, parameters in re.findall(r"<([^>]*)>([^<]*)", answer.headers.get("link", "")):
        if re.search(r"""\brel\s*=\s*["']?next\b""", parameters, re.IGNORECASE):
            return str(url)
    return None


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
