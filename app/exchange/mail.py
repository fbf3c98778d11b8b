"""Send mail through the operator's server, from a separate thread.

TLS certificates are checked against those that the machine trusts, or those in SSL_CERT_FILE.
"""

from __future__ import annotations

import logging
import smtplib
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from functools import partial
from queue import Full, Queue
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from app.addresses import is_local
from app.translation import N_
from app.translation import gettext as _

log = logging.getLogger("attention_shapes")

Security = Literal["tls", "starttls", "none"]
PORTS: dict[Security, int] = {"tls": 465, "starttls": 587, "none": 25}
SERVER_URL_HELP = N_(
    "must look like smtp://user:password@host:587 or smtps://user:password@host; in user and password, write "
    "/ ? # @ : % as %2F %3F %23 %40 %3A %25"
)
SERVER_TIMEOUT_S = 10.0  # for each answer of the mail server
MAX_WAITING_MESSAGES = 50  # messages
CLOSE_TIMEOUT_S = 5.0  # for messages still waiting when the app ends


class MailError(Exception):
    """A message that wasn't sent: the kind of error and the server's code, without any e-mail address."""


@dataclass(frozen=True)
class MailServer:
    """The server that messages are handed to; without `user` there is no login."""

    host: str
    port: int
    security: Security
    user: str = ""
    password: str = field(default="", repr=False)


def read_server(url: str) -> MailServer:
    """Return the server of a URL such as smtps://user:password@host:465."""
    try:
        parts = urlsplit(url)
        port, query = parts.port, dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        raise ValueError(_(SERVER_URL_HELP)) from None
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path not in ("", "/") or parts.fragment:
        raise ValueError(_(SERVER_URL_HELP))
    if (parts.username is None) != (parts.password is None):
        raise ValueError(_("needs both user and password, or neither"))
    security = _security(parts.scheme, query, parts.hostname)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(parts.hostname, port or PORTS[security], security, user, password)


def _security(scheme: str, query: Mapping[str, str], host: str) -> Security:
    if scheme == "smtps" and not query:
        return "tls"
    security = query.get("tls", "none" if is_local(host) else "starttls")
    if scheme == "smtps" or set(query) - {"tls"} or security not in ("none", "starttls"):
        raise ValueError(_("allows ?tls=none or ?tls=starttls after smtp://host, and nothing after smtps://host"))
    return cast(Security, security)


def read_sender(text: str) -> Address:
    """Read a mailbox: "shapes@example.org" or "Attention Shapes <shapes@example.org>".

    Raises ValueError for anything else, and if the part before the @ isn't ASCII.
    """
    import email_validator  # only needed where mail is sent

    email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()  # a campus may use one, such as mail.local

    try:
        checked = email_validator.validate_email(
            text, allow_display_name=True, allow_smtputf8=False, check_deliverability=False
        )
        return Address(checked.display_name or "", addr_spec=checked.ascii_email or "")
    except (email_validator.EmailNotValidError, ValueError, MessageError):
        raise ValueError(_("must be a single e-mail address, such as shapes@example.org")) from None


class Outbox:
    """A thread that works off a queue, so that a request neither waits nor shows how long the work takes.

    The thread starts with the first piece of work.
    """

    def __init__(self, capacity: int = MAX_WAITING_MESSAGES) -> None:
        self._waiting: Queue[Callable[[], None] | None] = Queue(capacity)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def put(self, work: Callable[[], None]) -> bool:
        """Queue `work` for the thread, in the current language, and return True if there was room."""
        with self._starting:
            if self._is_closed:
                return False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mail", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(partial(copy_context().run, work))
        except Full:
            return False
        return True

    def close(self) -> None:
        """Wait at most twice CLOSE_TIMEOUT_S for the queue to empty, and end the thread."""
        with self._starting:
            self._is_closed = True
        if self._thread is None:
            return
        with suppress(Full):
            self._waiting.put(None, timeout=CLOSE_TIMEOUT_S)
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        while work := self._waiting.get():
            try:
                work()
            except Exception as error:  # nobody waits for this thread, and the next message is another person's
                log.error("mail: %s", type(error).__name__)


@dataclass(frozen=True)
class Mail:
    """The mail server, the sender of every message, and the outbox."""

    server: MailServer
    sender: Address
    outbox: Outbox = field(default_factory=Outbox)

    def send(self, email: str, subject: str, text: str) -> None:
        """Send one plain-text message to `email`."""
        try:
            smtp = _connect(self.server)
            try:
                if self.server.user:
                    smtp.login(self.server.user, self.server.password)
                smtp.send_message(self._message(email, subject, text), to_addrs=[_with_ascii_domain(email)])
            finally:
                with suppress(OSError):
                    smtp.quit()
        except (OSError, ValueError, MessageError) as error:  # the errors of smtplib and ssl are OSErrors
            raise MailError(f"{type(error).__name__} {_server_code(error)}".strip()) from None

    def _message(self, email: str, subject: str, text: str) -> EmailMessage:
        message = EmailMessage()
        message["From"], message["Subject"] = self.sender, subject
        message["To"] = Address(addr_spec=_with_ascii_domain(email))
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=self.sender.domain)
        message["Auto-Submitted"] = "auto-generated"  # suppresses automatic replies such as holiday notices
        message.set_content(text)
        return message


def _connect(server: MailServer) -> smtplib.SMTP:
    """Connect to the server, secured as its `security` says, without a login; certificates are checked."""
    trusted = ssl.create_default_context()
    if server.security == "tls":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=SERVER_TIMEOUT_S, context=trusted)
    smtp = smtplib.SMTP(server.host, server.port, timeout=SERVER_TIMEOUT_S)
    if server.security == "starttls":
        try:
            smtp.starttls(context=trusted)
        except BaseException:
            smtp.close()
            raise
    return smtp


def _server_code(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return ", ".join(str(code) for code, _ in error.recipients.values())
    return str(error.smtp_code) if isinstance(error, smtplib.SMTPResponseException) else ""


def _with_ascii_domain(email: str) -> str:
    box, _, domain = email.partition("@")
    return f"{box}@{domain if domain.isascii() else domain.encode('idna').decode('ascii')}"
