"""The launch of a learning platform that this browser has begun: its state in a cookie, and its row in the database.

The state goes to the platform and back. Whoever sends it back without the cookie isn't the browser that began, and
gets nothing: otherwise a stranger could sign somebody in as themselves.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response

from app.refusal import Refusal
from app.store import Launch, Platform, Store
from app.translation import gettext as _
from app.web.shared.cookies import set_private_cookie
from app.web.shared.services import StoreDep

STATE_COOKIE = "attention_shapes_lti"
FRAME_COOKIE = "attention_shapes_lti_frame"  # the platform's page around the frame gets a cookie of its own
STATE_COOKIE_MAX_AGE_S = 3600
STATE_LIFETIME_S = 600  # in which the platform answers
MAX_STATE = 200


class LaunchLostError(Refusal):
    """The browser has no launch: its cookie didn't come, or the launch is too old or was used."""

    status = 400

    def __init__(self) -> None:
        super().__init__(
            _(
                "Your browser didn’t keep the connection with your course, or it is too old. Go back to the course and "
                "open the activity again, in a new window if it was inside the page. Teachers who add the activity to "
                "a course: add it without choosing content, open it in a new window, and choose there."
            )
        )


@dataclass(frozen=True)
class OpenLaunch:
    """A launch with its state, by which it is found again."""

    state: str
    launch: Launch


def begin_launch(request: Request, store: Store, platform: Platform, response: Response) -> tuple[str, str]:
    """A state and its nonce for a new launch; the response gets the cookie. Nothing is stored yet."""
    state = f"{secrets.token_urlsafe(32)}.{platform.id}.{int(store.now().timestamp())}"
    if is_framed(request):
        # By hand, since Python's cookies don't know Partitioned before 3.14.
        kept = f"{FRAME_COOKIE}={state}; Max-Age={STATE_COOKIE_MAX_AGE_S}; Path=/lti"
        response.headers.append("Set-Cookie", f"{kept}; HttpOnly; SameSite=None; Secure; Partitioned")
    else:
        set_private_cookie(request, response, STATE_COOKIE, state, STATE_COOKIE_MAX_AGE_S, "/lti")
    return state, nonce_of(store, state)


def nonce_of(store: Store, state: str) -> str:
    """The nonce that the platform signs: a state of somebody else's making has none."""
    return store.key.signature(f"lti launch {state}")


def platform_of(store: Store, state: str) -> Platform | None:
    """The platform that a state was made for, unless the state is too old."""
    parts = state.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) <= 12 for part in parts[1:]):
        return None
    is_recent = 0 <= store.now().timestamp() - int(parts[2]) <= STATE_LIFETIME_S
    return store.lti.platform(int(parts[1])) if is_recent and int(parts[1]) < 2**31 else None


def is_framed(request: Request) -> bool:
    """Whether the page is shown inside another one."""
    return request.headers.get("sec-fetch-dest") in ("iframe", "frame", "embed", "object")


def current_launch(request: Request, store: StoreDep) -> OpenLaunch:
    """The launch that this browser has begun. Raises LaunchLostError."""
    state = request.cookies.get(FRAME_COOKIE if is_framed(request) else STATE_COOKIE, "")
    launch = store.lti.find_launch(state) if state else None
    if launch is None:
        raise LaunchLostError
    return OpenLaunch(state, launch)


CurrentLaunch = Annotated[OpenLaunch, Depends(current_launch)]
