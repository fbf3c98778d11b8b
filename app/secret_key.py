"""The secret key: 32 random bytes in a file beside the database, so that the database gives nothing away by itself.

Resume codes are stored as a hash that needs the key. Nothing in the database contains the key; a backup has a copy of
it in a separate file.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

SECRET_FILE, SECRET_BYTES = "secret.key", 32


class SecretFileError(ValueError):
    """The secret key's file doesn't contain SECRET_BYTES bytes; the message is its path."""


def read_or_make_secret(folder: Path) -> bytes:
    """The secret in the data folder; raises SecretFileError if its file doesn't contain SECRET_BYTES bytes."""
    path = folder / SECRET_FILE
    if not path.exists():
        _make_secret(path)
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise SecretFileError(str(path))
    return secret


def _make_secret(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle, unfinished = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        error.filename = str(path.parent)  # a meaningful name instead of the random one
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(unfinished, path)  # like O_EXCL: fails if the name is taken, so that no secret is replaced
        except FileExistsError:
            return
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    finally:
        Path(unfinished).unlink()


class SecretKey:
    """Hashes resume codes and signs texts with the secret. `mark` is a short public name of the key."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.mark = self._derive("mark").hex()[:8]

    def code_hash(self, code: str) -> str:
        """The stored hash of a resume code, 52 characters: without the key, the code can't be found by trying."""
        digest = hmac.digest(self._secret, f"resume code {code}".encode(), "sha256")
        return f"{self.mark}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    def signature(self, text: str) -> str:
        """43 characters that can't be found without the key, always the same for one text."""
        return base64.urlsafe_b64encode(hmac.digest(self._derive("sign"), text.encode(), "sha256")).decode().rstrip("=")

    def encrypt(self, data: bytes) -> str:
        """The data as a text that only this key reads."""
        return self._cipher().encrypt(data).decode()

    def decrypt(self, encrypted: str) -> bytes:
        """What `encrypt` was given."""
        return self._cipher().decrypt(encrypted)

    def _cipher(self) -> Fernet:
        from cryptography.fernet import Fernet  # slow to import, and most commands don't need it

        return Fernet(base64.urlsafe_b64encode(self._derive("encrypt")))

    def _derive(self, purpose: str) -> bytes:
        return hmac.new(self._secret, purpose.encode(), hashlib.sha256).digest()
