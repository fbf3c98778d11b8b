"""Our key pairs: the next, the current, which signs, and the last; platforms read all three from /lti/keys."""

from __future__ import annotations

import secrets
from datetime import timedelta
from functools import lru_cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from app.secret_key import SecretKey
from app.store import Store
from app.store.lti import StoredKey

KEY_LIFETIME = timedelta(days=90)
MESSAGE_LIFETIME = timedelta(minutes=5)


def rotate(store: Store) -> None:
    """Make a new key pair: the next one signs from now on, and the current one is still published."""
    key = generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    store.lti.add_signing_key(secrets.token_urlsafe(16), store.key.encrypt(private))


def rotate_old_keys(store: Store) -> None:
    """Rotate if the newest key pair is older than KEY_LIFETIME; without a platform there is nothing to do."""
    with store.transaction():
        store.lti.lock_signing_keys()  # several machines may do this at the same moment
        keys = store.lti.signing_keys()
        if keys and keys[0].created_at < store.now() - KEY_LIFETIME:
            rotate(store)


def key_set(store: Store) -> dict[str, Any]:
    """Our public keys, as a JSON Web Key Set."""
    return {"keys": [_public_key(store, stored) for stored in _keys(store)]}


def sign(store: Store, claims: dict[str, Any]) -> str:
    """A signed message of ours with its time, as a JSON Web Token: it is valid for MESSAGE_LIFETIME."""
    current = _keys(store)[1]
    at = int(store.now().timestamp())
    dated = {"iat": at, "exp": at + int(MESSAGE_LIFETIME.total_seconds()), "jti": secrets.token_urlsafe(16), **claims}
    return jwt.encode(dated, _private_key(store, current), algorithm="RS256", headers={"kid": current.key_id})


def _keys(store: Store) -> tuple[StoredKey, ...]:
    while len(keys := store.lti.signing_keys()) < 2:
        rotate(store)
    return keys


def _private_key(store: Store, stored: StoredKey) -> RSAPrivateKey:
    return _read_key(store.key, stored.private_key)


@lru_cache(8)  # since anybody may ask for the key set
def _read_key(secret_key: SecretKey, encrypted: str) -> RSAPrivateKey:
    key = serialization.load_pem_private_key(secret_key.decrypt(encrypted), None)
    assert isinstance(key, RSAPrivateKey)  # noqa: S101 - as `rotate` made it
    return key


def _public_key(store: Store, stored: StoredKey) -> dict[str, Any]:
    public = jwt.algorithms.RSAAlgorithm.to_jwk(_private_key(store, stored).public_key(), as_dict=True)
    return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": stored.key_id, "n": public["n"], "e": public["e"]}
