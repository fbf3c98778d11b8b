"""Mail through a server that the operator names, over TLS whose certificate is checked, from a thread of its own.

Certificates are those the machine trusts; SSL_CERT_FILE names others, as everywhere in Python.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import smtplib
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from queue import Full, Queue
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

log = logging.getLogger("attention_shapes")

Security = Literal["tls", "starttls", "none"]
PORTS: dict[Security, int] = {"tls": 465, "starttls": 587, "none": 25}
_MAILBOX = r"[\w.+-]+@[\w.-]+"
_SENDER = re.compile(rf'(?P<bare>{_MAILBOX})|(?P<name>[^<>@,;:"\\\x00-\x1f\x7f]*)<(?P<mailbox>{_MAILBOX})>', re.ASCII)
NO_SERVER = (
    "must be as smtp://user:password@host:587 or smtps://user:password@host; in user and password, characters such as "
    "/ ? # @ : % are written %2F %3F %23 %40 %3A %25"
)
PATIENCE = 10.0  # seconds for each answer of the mail server
ROOM = 50  # letters that may wait
LAST_SECONDS = 5.0  # for what still waits when the app ends


class MailError(Exception):
    """A letter that was not sent: what kind of thing went wrong, without an address."""


@dataclass(frozen=True)
class MailServer:
    """Where letters are handed over, and how."""

    host: str
    port: int
    security: Security
    user: str = ""
    password: str = field(default="", repr=False)


def read_server(url: str) -> MailServer:
    """smtps://user:password@host:465, or smtp:// for STARTTLS, which ?tls=none leaves out, as a loopback address does.

    Raises ValueError with what to write instead, and nothing of the password.
    """
    try:
        parts = urlsplit(url)
        port, wanted = parts.port, dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        raise ValueError(NO_SERVER) from None
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path not in ("", "/") or parts.fragment:
        raise ValueError(NO_SERVER)
    if (parts.username is None) != (parts.password is None):
        raise ValueError("needs both user and password, or neither")
    security = _security(parts.scheme, wanted, parts.hostname)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(parts.hostname, port or PORTS[security], security, user, password)


def _security(scheme: str, wanted: Mapping[str, str], host: str) -> Security:
    if scheme == "smtps" and not wanted:
        return "tls"
    named = wanted.get("tls", "none" if _loopback(host) else "starttls")
    if scheme == "smtps" or set(wanted) - {"tls"} or named not in ("none", "starttls"):
        raise ValueError("takes ?tls=none or ?tls=starttls after smtp://host, and nothing after smtps://host")
    return cast(Security, named)


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_sender(text: str) -> Address:
    """shapes@example.org, or Attention Shapes <shapes@example.org>; raises ValueError."""
    found = _SENDER.fullmatch(text)
    try:
        if found:
            return Address((found["name"] or "").strip(), addr_spec=found["bare"] or found["mailbox"])
    except (ValueError, MessageError):
        pass
    raise ValueError("must be one e-mail address, such as shapes@example.org")


class Outbox:
    """Work done one piece after another in a thread, so that nobody waits for it or can tell how long it takes."""

    def __init__(self, room: int = ROOM) -> None:
        self._waiting: Queue[Callable[[], None] | None] = Queue(room)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, work: Callable[[], None]) -> bool:
        """Have it done; False where too much waits already."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="mail", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(work)
        except Full:
            return False
        return True

    def close(self) -> None:
        """Wait a moment for what is still to be done."""
        if self._thread is None:
            return
        with suppress(Full):
            self._waiting.put(None, timeout=LAST_SECONDS)
        self._thread.join(LAST_SECONDS)

    def _work(self) -> None:
        while work := self._waiting.get():
            try:
                work()
            except Exception as error:  # nobody stands behind this thread, and the next letter is another's
                log.error("mail: %s", type(error).__name__)


@dataclass(frozen=True)
class Mail:
    """A server, whoever letters come from, and what waits to be sent."""

    server: MailServer
    sender: Address
    outbox: Outbox = field(default_factory=Outbox)

    def send(self, email: str, subject: str, text: str) -> None:
        """Hand one letter over, now; raises MailError."""
        try:
            smtp = _connected(self.server)
            try:
                if self.server.user:
                    smtp.login(self.server.user, self.server.password)
                smtp.send_message(self._letter(email, subject, text), to_addrs=[_for_wire(email)])
            finally:
                with suppress(OSError):
                    smtp.quit()
        except (OSError, ValueError, MessageError) as error:  # those of smtplib and ssl are OSErrors
            raise MailError(f"{type(error).__name__} {_code(error)}".strip()) from None

    def _letter(self, email: str, subject: str, text: str) -> EmailMessage:
        letter = EmailMessage()
        letter["From"], letter["To"], letter["Subject"] = self.sender, Address(addr_spec=_for_wire(email)), subject
        letter["Date"], letter["Message-ID"] = formatdate(), make_msgid(domain=self.sender.domain)
        letter["Auto-Submitted"] = "auto-generated"  # so that no holiday notice comes back
        letter.set_content(text)
        return letter


def _connected(server: MailServer) -> smtplib.SMTP:
    trust = ssl.create_default_context()
    if server.security == "tls":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=PATIENCE, context=trust)
    smtp = smtplib.SMTP(server.host, server.port, timeout=PATIENCE)
    if server.security == "starttls":
        try:
            smtp.starttls(context=trust)
        except BaseException:
            smtp.close()
            raise
    return smtp


def _code(error: Exception) -> str:
    """The number that the mail server gave, whose own words may hold the address; nothing where it gave none."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return ", ".join(str(code) for code, _ in error.recipients.values())
    return str(error.smtp_code) if isinstance(error, smtplib.SMTPResponseException) else ""


def _for_wire(email: str) -> str:
    """The address with its domain in ASCII, as mail servers look it up; raises ValueError for what is no domain."""
    box, _, domain = email.partition("@")
    return f"{box}@{domain if domain.isascii() else domain.encode('idna').decode('ascii')}"
