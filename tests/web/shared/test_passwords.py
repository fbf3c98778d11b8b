"""Passwords are hashed a few at a time, so that a crowd signing in does not take all memory."""

from __future__ import annotations

import threading

import pytest

from app.web.shared.passwords import MAX_HASHES_AT_ONCE, MAX_WAITING, Passwords, PasswordsBusyError


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
