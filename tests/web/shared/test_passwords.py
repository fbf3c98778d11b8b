"""Passwords are hashed a few at a time, so that a crowd signing in does not take all memory."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest
from pwdlib import PasswordHash

from app.web.shared.passwords import (
    MAX_HASHES_AT_ONCE,
    MAX_SLOW_WAIT_S,
    MAX_WAITING,
    Passwords,
    PasswordsBusyError,
)

RECOMMENDED = PasswordHash.recommended  # before conftest.py puts a quick one in its place


def test_a_password_is_hashed_as_rfc_9106_recommends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PasswordHash, "recommended", RECOMMENDED)
    stored = Passwords().hash("a long password")
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert Passwords().verify("a long password", stored)
    assert not Passwords().verify("another password", stored)


def test_password_hashes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are worked on at once, eight wait, and the next must come back later."""
    passwords, gate, working, most = Passwords(), threading.Event(), list[int](), list[int]()

    def slow(self: object, password: str) -> str:
        working.append(1)
        most.append(len(working))
        gate.wait(60)
        working.pop()
        return "hash"

    monkeypatch.setattr(type(passwords._hasher), "hash", slow)
    threads = [threading.Thread(target=passwords.hash, args=("x",)) for _ in range(MAX_HASHES_AT_ONCE + MAX_WAITING)]
    for thread in threads:
        thread.start()
    while passwords._room.held.total() < len(threads):
        threading.Event().wait(0.01)
    with pytest.raises(PasswordsBusyError):
        passwords.hash("x")
    gate.set()
    for thread in threads:
        thread.join()
    assert max(most) <= MAX_HASHES_AT_ONCE
    assert passwords.hash("x") == "hash"


class Turns:
    """Slow turns by a clock of our own, without any waiting."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.passwords = Passwords(clock=lambda: self.now)

    def wait_s(self, network: str, account: str) -> float:
        """How long somebody waits who comes now."""
        return self.passwords._reserve_turn(network, account)


def test_guesses_at_one_account_delay_no_other() -> None:
    turns = Turns()
    assert [turns.wait_s("here", "ada") for _ in range(6)] == [3, 6, 9, 12, 15, 15]
    assert turns.wait_s("here", "bo") == 4
    assert turns.wait_s("elsewhere", "ada") == 3.5
    turns.now += 6
    assert turns.wait_s("here", "ada") == 9


def test_guesses_are_slow_whatever_they_are_aimed_at() -> None:
    cases: dict[int, Callable[[int], tuple[str, str]]] = {
        60: lambda number: ("here", f"{number}"),
        120: lambda number: (f"{number}", "ada"),
        20: lambda _: ("here", "ada"),
    }
    for most, names in cases.items():
        turns, ends = Turns(), list[float]()
        for number in range(600):
            turns.now = 1000 + number / 10
            if (wait_s := turns.wait_s(*names(number))) <= MAX_SLOW_WAIT_S:
                ends.append(turns.now + wait_s)
        assert len(set(ends)) == len(ends) <= most + MAX_SLOW_WAIT_S / 60 * most + 1
        assert len(ends) > most / 2


def test_a_turn_too_late_is_refused_when_it_is_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.shared.passwords.MAX_SLOW_OF_NETWORK", 6)
    passwords, waited_s, refused = Passwords(clock=lambda: 0.0), list[float](), list[str]()

    async def no_sleep(seconds: float) -> None:
        waited_s.append(seconds)
        await anyio.sleep(0)

    monkeypatch.setattr("app.web.shared.passwords.sleep", no_sleep)

    async def ask(network: str) -> None:
        try:
            await passwords.wait_for_slow_turn(network, "ada")
        except PasswordsBusyError:
            refused.append(network)

    async def crowd() -> None:
        async with anyio.create_task_group() as group:
            for network in ("here",) * 8 + ("elsewhere",):
                group.start_soon(ask, network)

    loop = threading.Thread(target=anyio.run, args=(crowd,))  # playwright may have a loop in this thread
    loop.start()
    loop.join()
    assert waited_s == [3, 6, 9, 12, 12, 12, 3.5]
    assert refused == ["here"] * 4
    assert not passwords._slow
