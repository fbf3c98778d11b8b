"""Which addresses of this computer others can open.

>>> is_local("127.0.0.1"), is_local("192.168.1.20"), is_local("shapes.example.org")
(True, False, False)
"""

from __future__ import annotations

import ipaddress
import os
import socket
from contextlib import suppress


def is_local(host: str) -> bool:
    """Whether a host in an address means the computer that opens it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return address.is_loopback or address.is_unspecified


def url_here(host: str, port: int) -> str:
    """Where a browser on this computer opens a server that listens at this address.

    >>> url_here("0.0.0.0", 8000), url_here("::1", 8000)
    ('http://localhost:8000', 'http://[::1]:8000')
    """
    with suppress(ValueError):  # a name is used as it is
        host = "localhost" if ipaddress.ip_address(host).is_unspecified else host
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def lan_addresses() -> list[str]:
    """The IPv4 addresses of this computer, one per network; none in a container."""
    if "container" in os.environ:  # Podman and our image set it: other computers can't open a container's own address
        return []
    import psutil  # most importers of this module don't need it

    is_up = {name: state.isup for name, state in psutil.net_if_stats().items()}
    return [
        address.address
        for name, addresses in psutil.net_if_addrs().items()
        for address in addresses
        if address.family == socket.AF_INET and is_up.get(name) and not is_local(address.address)
    ]
