"""Who works in this browser: the visitor that its cookie names, and the first visit, when there is no cookie yet.

A new browser may have several requests under way before the first answer brings its cookie: a save while somebody types
and the press of a button, or one button pressed twice. All of them carry the same form with the same secret, and the
visitor's token is made from that secret, so that they become one visitor and not several.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response

from app.store import Store, Student, Visitor
from app.store.roster import resume_code_from
from app.web.shared.cookies import SECRET_COOKIE, VISITOR_COOKIE, set_private_cookie
from app.web.shared.forms import FormReader
from app.web.shared.services import StoreDep
from app.web.shared.threads import in_threads


def visitor_of(request: Request, store: StoreDep) -> Visitor | None:
    """The visitor named by this browser's cookie; None without a cookie or where the database knows no such visitor."""
    token = request.cookies.get(VISITOR_COOKIE)
    return store.find_visitor(token) if token else None


MaybeVisitor = Annotated[Visitor | None, Depends(visitor_of)]
VisitorInClass = Annotated[Visitor | None, Depends(in_threads("class")(visitor_of))]  # on the pages of students


def remember_visitor(request: Request, response: Response, visitor: Visitor) -> None:
    """Put the visitor's token into this browser's cookie."""
    set_private_cookie(request, response, VISITOR_COOKIE, visitor.token)


def new_resume_code(request: Request, store: Store, student: Student) -> str:
    """The student's resume code from this browser's cookie, in two halves, 'ABCDE-FGHJK'; it is there for minutes
    after the student joined (see `redirect_with_secret`).
    """
    code = request.cookies.get(SECRET_COOKIE, "")
    return f"{code[:5]}-{code[5:]}" if code and store.roster.is_resume_code(student, code) else ""


@dataclass(frozen=True)
class FormSecret:
    """The secret in the form of a page that was shown to a browser without a cookie: 43 URL-safe characters."""

    secret: str

    @classmethod
    def new(cls) -> FormSecret:
        """A random one, for a page that is about to be shown."""
        return cls(secrets.token_urlsafe(32))

    @classmethod
    def of(cls, form: FormReader) -> FormSecret:
        """The one that a form sent; a new one where the field is missing or malformed."""
        text = form.raw("form_secret")
        return cls(text) if re.fullmatch(r"[\w-]{43}", text, re.ASCII) else cls.new()

    @property
    def token(self) -> str:
        """The token of the visitor who sent this form: the same secret always gives the same token."""
        return base64.urlsafe_b64encode(self._derive("token")).rstrip(b"=").decode()

    def code(self, name: str) -> str:
        """The resume code of the student who joins under that name with this form."""
        return resume_code_from(self._derive(f"code for {name}"))

    def _derive(self, purpose: str) -> bytes:
        return hashlib.sha256(f"{purpose} of {self.secret}".encode()).digest()
