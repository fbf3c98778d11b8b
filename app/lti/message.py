"""What a platform's signed message says, once its signature, its times and its claims have been checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import jwt
from jwt.types import Options

from app.lti.outside import ask
from app.names import clean_line
from app.refusal import Refusal
from app.store import Launch, Platform, Store
from app.store.lti import DeepLinking, LaunchRole
from app.translation import gettext as _

LEEWAY_S = 30  # between the clocks of platforms and ours
MAX_LIFETIME_S, MAX_AGE_S = 3600, 600
LATEST = 1e11  # seconds since 1970
MAX_TOKEN, MAX_ID, MAX_ADDRESS, MAX_DATA = 32_000, 255, 1000, 8000  # characters
MAX_ROLES = 50
SCORE_SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"

_CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
_GRADES = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
_ROSTER = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"
_DEEP_LINKING = "https://purl.imsglobal.org/spec/lti-dl/claim/deep_linking_settings"
_MEMBERSHIP = "http://purl.imsglobal.org/vocab/lis/v2/membership"
_ASSISTANTS = (f"{_MEMBERSHIP}/Instructor#TeachingAssistant", f"{_MEMBERSHIP}/Instructor#Grader")
_TEST_USER = "http://purl.imsglobal.org/vocab/lti/system/person#TestUser"
_TARGET = re.compile(r"/lti/activities/([1-9]\d{0,9})$", re.ASCII)


class MessageError(Refusal):
    """A message that opens nothing; the sentence is for the person who sent it, or for their operator."""

    status = 400


def verify(store: Store, platform: Platform, token: str, nonce: str, *, allow_private: bool) -> Launch:
    """The launch that a platform's id_token describes. Raises MessageError or OutsideError."""
    claims = _signed_claims(store, platform, token, allow_private)
    _check_times(claims, store.now().timestamp())
    audience = claims["aud"]
    if (
        claims.get("azp", platform.client_id if isinstance(audience, str) or len(audience) == 1 else "")
        != platform.client_id
    ):
        raise MessageError(_("This message was made for another tool."))
    if claims["nonce"] != nonce:
        raise MessageError(_("This message doesn’t answer our request. Go back to the course and open it again."))
    return _launch(platform, claims)


def _signed_claims(store: Store, platform: Platform, token: str, allow_private: bool) -> Mapping[str, Any]:
    unreadable = _("The learning platform’s message can’t be read, or its signature is wrong.")
    try:
        header = jwt.get_unverified_header(token[:MAX_TOKEN])
        key_id = header.get("kid")
        if header.get("alg") != "RS256" or not isinstance(key_id, str) or not key_id:
            raise MessageError(unreadable)
        key = _platform_key(store, platform, key_id, allow_private)
        # The times are checked with the store's clock.
        options: Options = {"require": ["exp", "iat", "iss", "aud", "sub", "nonce"], "verify_exp": False,
                            "verify_iat": False, "verify_nbf": False}  # fmt: skip
        return jwt.decode(token, key, ["RS256"], options, audience=platform.client_id, issuer=platform.issuer)
    except (jwt.PyJWTError, RecursionError, ValueError, TypeError) as error:
        if isinstance(error, Refusal):
            raise
        raise MessageError(unreadable) from error


def _platform_key(store: Store, platform: Platform, key_id: str, allow_private: bool) -> jwt.PyJWK:
    if key := _key_in(platform.key_set, key_id):
        return key
    # It may have rotated its keys: they are fetched again, but not for every message with an invented key.
    if not store.lti.claim_key_fetch(platform):
        fetched = store.lti.platform(platform.id)  # perhaps another process has just fetched them
        key = _key_in(fetched.key_set, key_id) if fetched else None
    else:
        answer = ask("GET", platform.keys_url, allow_private=allow_private)
        key_set = answer.json() if answer.status == 200 else None
        key = _key_in(key_set, key_id)
        if key and key_set:
            store.lti.keep_key_set(platform, key_set)
    if key is None:
        raise MessageError(
            _("The learning platform signed with a key that it hasn’t published. Try again in a minute.")
        )
    return key


def _key_in(key_set: Any, key_id: str) -> jwt.PyJWK | None:
    keys = key_set.get("keys") if isinstance(key_set, dict) else None
    for key in keys if isinstance(keys, list) else ():
        if isinstance(key, dict) and key.get("kid") == key_id and key.get("kty") == "RSA":
            return jwt.PyJWK(key, "RS256")
    return None


def _check_times(claims: Mapping[str, Any], at: float) -> None:
    issued, expires = claims["iat"], claims["exp"]
    # JSON in Python may hold NaN, infinity, and whole numbers that are too large for a float.
    if not all(isinstance(time, int | float) and abs(time) < LATEST for time in (issued, expires)):
        raise MessageError(_("The learning platform’s message has no valid time."))
    is_now = abs(at - issued) <= MAX_AGE_S and at - LEEWAY_S < expires and 0 < expires - issued <= MAX_LIFETIME_S
    if not is_now:
        raise MessageError(
            _(
                "This message from the learning platform is too old, or the platform’s clock is wrong. Go back to the "
                "course and open it again."
            )
        )


def _launch(platform: Platform, claims: Mapping[str, Any]) -> Launch:
    kind = claims.get(f"{_CLAIM}message_type")
    if claims.get(f"{_CLAIM}version") != "1.3.0" or kind not in ("LtiResourceLinkRequest", "LtiDeepLinkingRequest"):
        raise MessageError(_("The learning platform sent a message that this tool doesn’t know."))
    context, link = _object(claims, f"{_CLAIM}context"), _object(claims, f"{_CLAIM}resource_link")
    if not context.get("id"):
        raise MessageError(_("Open this from within a course: the learning platform didn’t say which one it is."))
    grades, is_choosing = _object(claims, _GRADES), kind == "LtiDeepLinkingRequest"
    roles = _texts(claims.get(f"{_CLAIM}roles"))
    target = _TARGET.search(urlsplit(web_address(claims.get(f"{_CLAIM}target_link_uri"))).path)
    return Launch(
        platform_id=platform.id,
        deployment_id=_identifier(claims.get(f"{_CLAIM}deployment_id")),
        sub=_identifier(claims["sub"]),
        role=role_of(roles),
        name=_name(claims),
        is_test_user=is_test_user(roles),
        context_id=_identifier(context.get("id")),
        context_title=_line(context.get("title")) or _line(context.get("label")),
        resource_link_id="" if is_choosing else _identifier(link.get("id")),
        resource_link_title=_line(link.get("title")),
        activity_id=int(target[1]) if target else None,
        memberships_url=web_address(_object(claims, _ROSTER).get("context_memberships_url")),
        lineitem_url=web_address(grades.get("lineitem")) if SCORE_SCOPE in _texts(grades.get("scope")) else "",
        deep_linking=_deep_linking(_object(claims, _DEEP_LINKING)) if is_choosing else None,
    )


def role_of(roles: Iterable[str]) -> LaunchRole:
    """The role that somebody's context roles give them here; empty for mentors, observers and guests."""
    # Roles in the institution say nothing: a student may be an instructor elsewhere.
    held = set(roles)
    if any(role.startswith(_ASSISTANTS) for role in held):  # first: they are called instructors as well
        return "assistant"
    if held & {f"{_MEMBERSHIP}#Instructor", "Instructor"}:
        return "instructor"
    return "student" if held & {f"{_MEMBERSHIP}#Learner", "Learner"} else ""


def is_test_user(roles: Iterable[str]) -> bool:
    """Whether it is a teacher who looks at a course as a student would."""
    return _TEST_USER in roles


def _deep_linking(settings: Mapping[str, Any]) -> DeepLinking:
    return_url = web_address(settings.get("deep_link_return_url"))
    data = settings.get("data")
    if not return_url or (data is not None and not (isinstance(data, str) and len(data) <= MAX_DATA)):
        raise MessageError(_("The learning platform’s request to choose content can’t be answered."))
    return DeepLinking(
        return_url=return_url,
        accepts_links="ltiResourceLink" in _texts(settings.get("accept_types")),
        accept_multiple=_is_true(settings.get("accept_multiple", False)),
        accept_lineitem=_is_true(settings.get("accept_lineitem", True)),
        data=data,
    )


def _name(claims: Mapping[str, Any]) -> str:
    parts = (_line(claims.get("given_name")), _line(claims.get("family_name")))
    return _line(claims.get("name")) or clean_line(" ".join(filter(None, parts)), 100)


def identifier(value: object) -> str:
    """An id, which is compared and so never cut; empty for a missing or unusable one."""
    is_usable = isinstance(value, str) and len(value) <= MAX_ID and value.isprintable()
    # Platforms send the name of a variable, such as $User.id, instead of what they don't know.
    return str(value) if is_usable and not str(value).startswith("$") else ""


def _identifier(value: object) -> str:
    if found := identifier(value):
        return found
    raise MessageError(_("The learning platform’s message lacks something that identifies the person or the course."))


def _line(value: object) -> str:
    return clean_line(value, 100) if isinstance(value, str) and not value.startswith("$") else ""


def web_address(value: object, longest: int = MAX_ADDRESS) -> str:
    """An http or https address; empty for anything else, such as a script."""
    if not isinstance(value, str) or len(value) > longest or not value.isascii() or not value.isprintable():
        return ""
    try:
        parts = urlsplit(value)
        return value if parts.scheme in ("https", "http") and parts.hostname and " " not in value else ""
    except ValueError:
        return ""


def _object(claims: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = claims.get(name)
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    found = value[:MAX_ROLES] if isinstance(value, list) else ()
    return tuple(text for text in found if isinstance(text, str) and len(text) <= MAX_ID)


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")
