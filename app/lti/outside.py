"""Requests to platforms, whose addresses strangers may have given: https only, and never into our own network."""

from __future__ import annotations

import ipaddress
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from app import __version__
from app.refusal import Refusal
from app.translation import gettext as _

MAX_BYTES = 1_000_000
TIMEOUT_S = 5  # for connecting, and for each further piece of the answer
WHOLE_TIMEOUT_S = 15
USER_AGENT = f"attention-shapes/{__version__}"  # some platforms refuse requests without one


class OutsideError(Refusal):
    """A platform that can't be asked, or didn't answer; the message names its host."""

    status = 502


@dataclass(frozen=True)
class PlatformAnswer:
    """What a platform answered; header names are in lower case."""

    status: int
    reason: str
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        """The content read as JSON. Raises OutsideError if it is something else."""
        import json

        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            raise OutsideError(_("The learning platform’s answer can’t be read: it isn’t JSON.")) from None


def ask(
    method: str,
    url: str,
    *,
    allow_private: bool,
    headers: dict[str, str] | None = None,
    content: bytes | None = None,
    form: dict[str, str] | None = None,
) -> PlatformAnswer:
    """Send one request and return the answer, whatever its status; redirects are answers as well.

    With `allow_private`, platforms may be in a private network and on plain http. Raises OutsideError.
    """
    import httpx  # not at the top of the file, so that the app starts without it

    host, address = _checked_address(url, allow_private)
    deadline = time.monotonic() + WHOLE_TIMEOUT_S
    try:
        target = httpx.URL(url)
        sent = {"Host": target.netloc.decode(), "User-Agent": USER_AGENT, "Accept": "application/json"}
        # Connects to the address that was checked: a second look-up of the name could give another one.
        with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client:
            request = client.build_request(
                method,
                target.copy_with(host=address),
                headers={**sent, **(headers or {})},
                content=content,
                data=form,
                extensions={"sni_hostname": host},
            )
            answer = client.send(request, stream=True)
            body = bytearray()
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > MAX_BYTES or time.monotonic() > deadline:
                    raise OutsideError(_("{host} sent too much, or too slowly.").format(host=host))
            answer.close()
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError, ValueError) as error:
        if isinstance(error, OutsideError):
            raise
        raise OutsideError(_("{host} could not be reached. Try again in a moment.").format(host=host)) from error
    return PlatformAnswer(answer.status_code, answer.reason_phrase, dict(answer.headers), bytes(body))


def _checked_address(url: str, allow_private: bool) -> tuple[str, str]:
    """The host in the URL, and the address to connect to, after all of its addresses were checked."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if (
        not host
        or parts.username is not None
        or parts.scheme not in (("https", "http") if allow_private else ("https",))
    ):
        sentence = _("“{url}” isn’t an https address. Set ATTENTION_SHAPES_LTI_PRIVATE to allow http.")
        raise OutsideError(sentence.format(url=url[:80]))
    try:
        found = socket.getaddrinfo(host, port or parts.scheme, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        raise OutsideError(_("There is no host {host}.").format(host=host[:80])) from None
    addresses = [str(each[4][0]).partition("%")[0] for each in found]
    if not allow_private and not all(_is_public(address) for address in addresses):
        sentence = _("{host} is in a private network. Set ATTENTION_SHAPES_LTI_PRIVATE to allow that.")
        raise OutsideError(sentence.format(host=host[:80]))
    return host, addresses[0]


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner:
            return _is_public(str(inner))
        if address in _TRANSLATED:
            return _is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
        if address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast


_UNICAST = ipaddress.ip_network("2000::/3")  # of IPv6: all addresses of the internet
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # IPv4 addresses by way of NAT64
