"""Somebody whom no cookie names yet, told by a secret in the form of their page.

A new browser may have several requests under way before the first answer brings its cookie: a save while somebody types
and the press of a button, or one button pressed twice. Each carries the same form, and so they are one person's.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from app.store import Learner
from app.store.courses import code_from
from app.web.shared.forms import Fields, Sent
from app.web.shared.services import MaybeLearner, ServicesDep


@dataclass(frozen=True)
class Newcomer:
    """Whoever sends a form with that secret: a learner's token is made from it alone, a resume code with a name."""

    secret: str

    @classmethod
    def new(cls) -> Newcomer:
        return cls(secrets.token_urlsafe(32))

    @classmethod
    def of(cls, sent: Fields) -> Newcomer:
        """Whoever sent this form; somebody new where its secret is none of ours."""
        given = sent.raw("newcomer")
        return cls(given) if re.fullmatch(r"[\w-]{43}", given, re.ASCII) else cls.new()

    @property
    def token(self) -> str:
        return base64.urlsafe_b64encode(self._made("token")).rstrip(b"=").decode()

    def code(self, name: str) -> str:
        """The resume code of whoever joins under that name: the same form with another name is another person."""
        return code_from(self._made(f"code for {name}"))

    def _made(self, what: str) -> bytes:
        return hashlib.sha256(f"{what} of {self.secret}".encode()).digest()


def owner_of(services: ServicesDep, learner: MaybeLearner, sent: Sent) -> Learner:
    """Whoever works in this browser, from the first thing they send."""
    return learner or services.store.add_learner(Newcomer.of(sent).token)


Owner = Annotated[Learner, Depends(owner_of)]
