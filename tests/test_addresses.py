"""Which addresses other computers can open."""

from __future__ import annotations

import socket

import pytest

from app.addresses import is_local, lan_addresses


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "::"])
def test_this_computer_has_names_that_mean_another_one_elsewhere(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize("host", ["192.168.1.20", "10.0.0.5", "2001:db8::1", "shapes.example.org", "localhost.org", ""])
def test_other_hosts_mean_the_same_everywhere(host: str) -> None:
    assert not is_local(host)


def test_the_addresses_in_the_local_network_are_ones_that_this_computer_has() -> None:
    for address in lan_addresses():
        assert not is_local(address)
        socket.create_server((address, 0)).close()  # refused for any address that isn't its own
