"""Who works in this browser: the visitor named by its cookie, and the first visit, without a cookie.

A new browser may send several requests before the first answer brings its cookie: a save while somebody types, or one
button pressed twice. They all carry the same form with the same secret, and the visitor's token is made from that
secret, so that they become one visitor.
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
from app.web.shared.urls import url_for


def visitor_of(request: Request, store: StoreDep) -> Visitor | None:
    """The visitor named by this browser's cookie, or None."""
    token = request.cookies.get(VISITOR_COOKIE)
    return store.find_visitor(token) if token else None


MaybeVisitor = Annotated[Visitor | None, Depends(visitor_of)]
VisitorInClass = Annotated[Visitor | None, Depends(in_threads("class")(visitor_of))]  # on the pages of students


def remember_visitor(request: Request, response: Response, visitor: Visitor) -> None:
    """Set this browser's cookie to the visitor's token."""
    set_private_cookie(request, response, VISITOR_COOKIE, visitor.token)


def keep_resume_code(request: Request, response: Response, code: str) -> None:
    """Keep a resume code in this browser for the page My class; the server has only its hash."""
    set_private_cookie(request, response, SECRET_COOKIE, code, path=url_for("show_my_work"))


def kept_resume_code(request: Request, store: Store, student: Student) -> str:
    """The student's resume code as 'ABCDE-FGHJK', if this browser has it, otherwise ""."""
    code = request.cookies.get(SECRET_COOKIE, "")
    return f"{code[:5]}-{code[5:]}" if code and store.roster.is_resume_code(student, code) else ""


@dataclass(frozen=True)
class FormSecret:
    """The secret in a form shown to a browser without a cookie: 43 URL-safe characters."""

    secret: str

    @classmethod
    def new(cls) -> FormSecret:
        """A random secret for a new page."""
        return cls(secrets.token_urlsafe(32))

    @classmethod
    def of(cls, form: FormReader) -> FormSecret:
        """The form's secret; a new one if it is missing or malformed."""
        text = form.raw("form_secret")
        return cls(text) if re.fullmatch(r"[\w-]{43}", text, re.ASCII) else cls.new()

    @property
    def token(self) -> str:
        """The visitor's token for this form: the same secret always gives the same token."""
        return base64.urlsafe_b64encode(self._derive("token")).rstrip(b"=").decode()

    def code(self, name: str) -> str:
        """The resume code of the student who joins under that name with this form."""
        return resume_code_from(self._derive(f"code for {name}"))

    def _derive(self, purpose: str) -> bytes:
        return hashlib.sha256(f"{purpose} of {self.secret}".encode()).digest()
