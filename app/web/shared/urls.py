"""Addresses of routes (so that no handler or template spells one out), of the app for people, and of clients.

Example:
    url_for("show_class_sheet", activity_id=3, number=1)   '/class/3/1'
    url_for("show_sheet", worksheet="gpt2", tokens=64)     '/sheet?worksheet=gpt2&tokens=64'
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, urlencode, urlsplit

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from app.addresses import is_local, lan_addresses
from app.settings import Settings

ALL_INTERFACES = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


class RouteNameError(Exception):
    """A route that doesn't exist, a path parameter that is missing, or a name that two routes have."""


@dataclass(frozen=True)
class _Route:
    """One route's address: '/class/{activity_id}/{number}' and the names between its braces."""

    path_format: str
    parameters: tuple[str, ...]
    opens: re.Pattern[str] | None  # the paths that a browser can open here; None if only forms are sent


_routes: dict[str, _Route] = {}  # the app's only set of routes, filled by register_routes


def register_routes(routes: Iterable[BaseRoute]) -> None:
    """Read every route's name and address, and whether it answers GET, once at start.

    Raises RouteNameError if two routes share a name; then the routes read before are kept.
    """
    named = dict[str, _Route]()
    for route in (route for route in routes if isinstance(route, Route)):
        if route.name in named:
            raise RouteNameError(f"two routes are named {route.name!r}")
        opens = route.path_regex if "GET" in (route.methods or ()) else None
        named[route.name] = _Route(route.path_format, tuple(re.findall(r"{(\w+)}", route.path_format)), opens)
    _routes.clear()
    _routes.update(named)


def url_for(name: str, **values: object) -> str:
    """The address of a route, without scheme and host. Raises RouteNameError for an unknown route or a missing path
    parameter.
    """
    try:
        route = _routes[name]
        quoted = {key: quote(str(values.pop(key)), safe="") for key in route.parameters}
    except KeyError as missing:
        raise RouteNameError(f"url_for({name!r}): {missing} is unknown or missing") from None
    path = route.path_format.format_map(quoted)
    return f"{path}?{urlencode(values, safe='/')}" if values else path


@dataclass(frozen=True)
class StudentLinks:
    """The addresses of an activity's student pages or, with a made-up student's number (`example`), of its preview."""

    activity_id: int
    example: int = 0

    @property
    def activity(self) -> str:
        """Where the student goes on, and the end of an activity without a ticket; in a preview, its first page."""
        return self._address("show_class_activity", "preview_activity")

    @property
    def ticket(self) -> str:
        """The end of an activity with an exit ticket, which is handed in at the same address."""
        return self._address("show_exit_ticket", "preview_ticket")

    def sheet(self, number: int) -> str:
        return self._address("show_class_sheet", "preview_sheet", number=number)

    def press(self, number: int, what: str) -> str:
        """Where sheet `number`'s form is sent: to "save", "check", "hint", "hand-in" or "run"."""
        if self.example:
            return self._address("", "press_in_preview", number=number, what=what)
        return self._address(f"{what.replace('-', '_')}_class_sheet", "", number=number)

    def _address(self, page: str, preview: str, **values: object) -> str:
        if self.example:
            return url_for(preview, activity_id=self.activity_id, **values, example=self.example)
        return url_for(page, activity_id=self.activity_id, **values)

    def sheet_like(self, number: int, kind: str, **seed: object) -> str:
        """A sheet like sheet `number` with other numbers, of a kind of `example_view`."""
        return self._address("show_class_example", "preview_example", number=number, kind=kind, **seed)


def page_above(path: str) -> str:
    """The nearest address above a path that a browser can open with GET, or "/".

    Example: '/courses/1' for '/courses/1/students/preview', '/marking' for '/marking.csv', '/' for '/sign-out'
    """
    above = (path.rpartition(".")[0], *map(str, PurePosixPath(path).parents))
    openable = [route.opens for route in _routes.values() if route.opens]
    return next((each for each in above if any(pattern.match(each) for pattern in openable)), "/")


@dataclass(frozen=True)
class PublicAddress:
    """The app's address for links that are passed on."""

    url: str  # without a trailing slash: 'https://shapes.example.org'
    listens: bool  # whether other computers can connect
    in_network: str  # this computer's host and port in the local network: '192.168.1.20:8000'; "" if there is none

    @property
    def is_local(self) -> bool:
        """Whether only this computer can open it."""
        return is_local(urlsplit(self.url).hostname or "")

    @property
    def typed(self) -> str:
        """What people type: '192.168.1.20:8000'."""
        return self.url.partition("://")[2]


def public_address(request: Request, settings: Settings) -> PublicAddress:
    """The address in the settings or else this request's, in the local network for a browser at localhost."""
    served_at, listens = settings.public_url(str(request.base_url)), settings.host in ALL_INTERFACES
    if settings.address or not is_local(request.url.hostname or ""):
        return PublicAddress(served_at, listens, "")
    client, server = request.client, request.scope.get("server")
    # A connection to localhost from elsewhere was forwarded, as by Docker, whose own addresses are useless to others.
    near = lan_addresses() if client and is_local(client.host) else []
    in_network = f"{near[0]}:{server[1]}" if near and server else ""
    url = f"{request.url.scheme}://{in_network}" if in_network and listens else served_at
    return PublicAddress(url, listens, in_network)


def public_url(request: Request, settings: Settings) -> str:
    """The URL of `public_address`."""
    return public_address(request, settings).url


def client_network(request: Request) -> str:
    """The network of the client's address as the server has it; headers aren't read here."""
    return network_of(request.client.host if request.client else "")


def network_of(host: str) -> str:
    """An IPv4 address, or an IPv6 address's /64 network, which belongs to one customer.

    Examples: '192.0.2.7', also for '::ffff:192.0.2.7'; '2001:db8:1:2::/64' for '2001:db8:1:2::9'. A name that is no
    address, such as that of a test, is returned unchanged.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped:  # a dual-stack socket's form of an IPv4 client; as IPv6, all of them would be one network
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network(f"{address}/64", strict=False))
