"""How platforms become known: by a registration link that fetches everything, or by what an operator types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from app.lti.message import MAX_ID, web_address
from app.lti.outside import ask
from app.names import clean_line
from app.refusal import Refusal
from app.store import Platform, Store
from app.translation import gettext as _

SCOPES = (
    "https://purl.imsglobal.org/spec/lti-ags/scope/lineitem.readonly",
    "https://purl.imsglobal.org/spec/lti-ags/scope/score",
    "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly",
)
# These products have one issuer for all schools, whose hosts have names of their own.
SHARED_ISSUERS = ("canvas.instructure.com", "blackboard.com")
ADDRESSES = ("authorization_url", "token_url", "keys_url")  # of a platform
MAX_PLATFORM_NAME, MAX_URL, MAX_CLIENT_ID = 100, 500, 200  # characters
_TOOL = "https://purl.imsglobal.org/spec/lti-tool-configuration"
_PLATFORM = "https://purl.imsglobal.org/spec/lti-platform-configuration"


class RegistrationError(Refusal):
    """A platform that can't be registered, and why."""


def add_by_hand(store: Store, typed: Mapping[str, str]) -> Platform:
    """Register a platform by its fields, cleaned before; `token_audience` and `deployment_id` may be empty.

    Raises RegistrationError.
    """
    if not all(typed.get(name) for name in ("name", "issuer", "client_id")):
        raise RegistrationError(
            _("Enter the platform’s name, its issuer, and the client ID that it has given the app.")
        )
    if len(typed["issuer"]) > MAX_URL or len(typed["client_id"]) > MAX_CLIENT_ID:
        raise RegistrationError(_("The issuer or the client ID is too long."))
    for name in ADDRESSES:
        if not web_address(typed.get(name), MAX_URL):
            problem = _("“{address}” isn’t an address. Copy all three from the platform; each begins with https://.")
            raise RegistrationError(problem.format(address=typed.get(name, "")[:80]))
    if len(typed.get("token_audience", "")) > MAX_URL or len(typed.get("deployment_id", "")) > MAX_ID:
        raise RegistrationError(_("The audience or the deployment ID is too long."))
    platform = store.lti.add_platform(**typed)
    if platform is None:
        raise RegistrationError(_("A platform with this issuer and client ID is registered already."))
    return platform


def register(
    store: Store, tool: Mapping[str, str], configuration_url: str, registration_token: str, *, allow_private: bool
) -> Platform:
    """Register the app at the platform with this configuration, and the platform here.

    `tool` is `tool_addresses`. Raises RegistrationError or OutsideError.
    """
    answer = ask("GET", configuration_url, allow_private=allow_private)
    configuration = answer.json() if answer.status == 200 else None
    if not isinstance(configuration, dict):
        raise RegistrationError(_("The learning platform didn’t send its configuration."))
    issuer = _text(configuration.get("issuer"))
    issuing, asked = _host(issuer), _host(configuration_url)
    if issuing != asked and issuing not in SHARED_ISSUERS:
        raise RegistrationError(
            _("The learning platform calls itself {issuer}, but its address is another one.").format(issuer=issuer[:80])
        )
    described = configuration.get(_PLATFORM)
    product = _text(described.get("product_family_code")) if isinstance(described, dict) else ""
    headers = {"Content-Type": "application/json"}
    if registration_token:  # not every platform sends one
        headers["Authorization"] = f"Bearer {registration_token}"
    answer = ask(
        "POST",
        _text(configuration.get("registration_endpoint")),
        allow_private=allow_private,
        headers=headers,
        content=json.dumps(_client(tool, placements=product.lower() == "canvas")).encode(),
    )
    registered = answer.json() if answer.status in (200, 201) else None
    if not isinstance(registered, dict):
        problem = _("The learning platform refused the registration: {status} {reason}.")
        raise RegistrationError(problem.format(status=answer.status, reason=clean_line(answer.reason, 100)))
    answered = registered.get(_TOOL)
    return add_by_hand(
        store,
        {
            "name": clean_line(f"{product.capitalize()} ({asked})" if product else asked, MAX_PLATFORM_NAME),
            "issuer": issuer,
            "client_id": _text(registered.get("client_id")),
            "authorization_url": _text(configuration.get("authorization_endpoint")),
            "token_url": _text(configuration.get("token_endpoint")),
            "keys_url": _text(configuration.get("jwks_uri")),
            "token_audience": _text(configuration.get("authorization_server")),
            "deployment_id": _text(answered.get("deployment_id")) if isinstance(answered, dict) else "",
        },
    )


def tool_addresses(public_url: str) -> dict[str, str]:
    """Our addresses that a platform needs, by what they are for."""
    return {page: f"{public_url}/lti/{page}" for page in ("login", "launch", "choose", "keys")}


def _client(tool: Mapping[str, str], *, placements: bool) -> dict[str, Any]:
    label = "Attention Shapes"
    messages: list[dict[str, Any]] = [
        {"type": "LtiDeepLinkingRequest", "target_link_uri": tool["choose"], "label": label},
        {"type": "LtiResourceLinkRequest", "target_link_uri": tool["launch"], "label": label},
    ]
    if placements:  # Canvas shows a tool nowhere else, and other platforms may refuse its names
        messages = [{**message, "placements": ["assignment_selection", "link_selection"]} for message in messages]
    return {
        "application_type": "web",
        "response_types": ["id_token"],
        "grant_types": ["implicit", "client_credentials"],
        "client_name": label,
        "initiate_login_uri": tool["login"],
        "redirect_uris": [tool["launch"]],
        "jwks_uri": tool["keys"],
        "token_endpoint_auth_method": "private_key_jwt",
        "id_token_signed_response_alg": "RS256",
        "scope": " ".join(SCOPES),
        _TOOL: {
            "domain": urlsplit(tool["launch"]).netloc,
            "target_link_uri": tool["launch"],
            "description": _("Worksheets on the shapes inside attention"),
            "claims": ["iss", "sub", "name", "given_name", "family_name"],
            "messages": messages,
        },
    }


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _text(value: object) -> str:
    return clean_line(value) if isinstance(value, str) and len(value) <= MAX_URL else ""
