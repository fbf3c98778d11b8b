"""The answer to a platform's request to choose content: links to activities, each with its column for grades."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from app.lti.keys import sign
from app.store import Activity, Launch, Platform, Store

_CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
_DEEP_LINKING = "https://purl.imsglobal.org/spec/lti-dl/claim"


def deep_linking_answer(
    store: Store, platform: Platform, launch: Launch, chosen: Iterable[tuple[Activity, int]], address: str
) -> str:
    """The signed answer with links to these activities; each comes with its points, `address` is the app's."""
    asked = launch.deep_linking
    assert asked is not None  # noqa: S101 - only such a launch is answered
    items = list[dict[str, Any]]()
    for activity, points in chosen:
        number, title = str(activity.id), activity.plan.title
        # The id is in the path, since platforms lose custom parameters; Blackboard refuses links without an address.
        item: dict[str, Any] = {
            "type": "ltiResourceLink",
            "url": f"{address}/lti/activities/{number}",
            "title": title,
        }
        if asked.accept_lineitem and points:
            item["lineItem"] = {"label": title, "scoreMaximum": points, "resourceId": number, "tag": number}
        items.append(item)
    claims: dict[str, Any] = {
        "iss": platform.client_id,
        "aud": platform.issuer,
        "nonce": secrets.token_urlsafe(16),
        f"{_CLAIM}message_type": "LtiDeepLinkingResponse",
        f"{_CLAIM}version": "1.3.0",
        f"{_CLAIM}deployment_id": launch.deployment_id,
        f"{_DEEP_LINKING}/content_items": items,
    }
    if asked.data is not None:  # Brightspace refuses an answer with data that it didn't send
        claims[f"{_DEEP_LINKING}/data"] = asked.data
    return sign(store, claims)
