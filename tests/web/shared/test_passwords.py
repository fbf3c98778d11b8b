"""Passwords are hashed a few at a time, so that a crowd signing in does not take all memory."""

from __future__ import annotations

import threading

import pytest
from pwdlib import PasswordHash

from app.web.shared.passwords import MAX_HASHES_AT_ONCE, MAX_WAITING, Passwords, PasswordsBusyError

RECOMMENDED = PasswordHash.recommended  # before conftest.py puts a quick one in its place


def test_a_password_is_hashed_as_rfc_9106_recommends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second choice, for where memory is short: Argon2id with 3 passes, 4 lanes and 64 MiB (section 4)."""
    monkeypatch.setattr(PasswordHash, "recommended", RECOMMENDED)
    stored = Passwords().hash("a long password")
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert Passwords().verify("a long password", stored)
    assert not Passwords().verify("another password", stored)


def test_password_hashes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are worked on at once, eight wait, and the next is told to come back."""
    passwords, gate, working, most = Passwords(), threading.Event(), list[int](), list[int]()

    def slow(self: object, password: str) -> str:
        working.append(1)
        most.append(len(working))
        gate.wait(10)
        working.pop()
        return "hash"

    monkeypatch.setattr(type(passwords._hasher), "hash", slow)
    threads = [threading.Thread(target=passwords.hash, args=("x",)) for _ in range(MAX_HASHES_AT_ONCE + MAX_WAITING)]
    for thread in threads:
        thread.start()
    while passwords._room._value:  # how many may still come in
        threading.Event().wait(0.01)
    with pytest.raises(PasswordsBusyError):
        passwords.hash("x")
    gate.set()
    for thread in threads:
        thread.join()
    assert max(most) <= MAX_HASHES_AT_ONCE
    assert passwords.hash("x") == "hash"


def test_who_guesses_from_one_network_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a guess of one network waits, another of it is told to come back; one from elsewhere is verified."""
    monkeypatch.setattr("app.web.shared.passwords.SLOW_VERIFY_S", 0.5)
    passwords = Passwords()
    stored = passwords.hash("right")
    guess = threading.Thread(target=passwords.verify_slowly, args=("wrong", stored, "192.0.2.1"))
    guess.start()
    while not passwords._slow_networks:
        threading.Event().wait(0.01)
    with pytest.raises(PasswordsBusyError):
        passwords.verify_slowly("wrong", stored, "192.0.2.1")
    assert passwords.verify_slowly("right", stored, "192.0.2.2")
    guess.join()
