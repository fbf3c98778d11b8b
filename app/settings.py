"""The app's settings, read from the environment, each with the sentence that `serve --help` prints."""

from __future__ import annotations

import os
import re
import shutil
from ipaddress import ip_network
from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.exchange.mail import read_sender, read_server
from app.translation import N_
from app.translation import gettext as _

PROJECT = Path(__file__).resolve().parent.parent
# The command as typed in the project's folder.
PROGRAM = "attention-shapes" if shutil.which("attention-shapes") else ".venv/bin/attention-shapes"


class Settings(BaseSettings):
    """What the operator can set. Each field is read from the environment: `port` from ATTENTION_SHAPES_PORT."""

    model_config = SettingsConfigDict(
        env_prefix="ATTENTION_SHAPES_",
        populate_by_name=True,
        hide_input_in_errors=True,  # some of them hold passwords
    )

    host: str = Field("127.0.0.1", description=N_("Address to listen on; 0.0.0.0 accepts other machines."))
    port: int = Field(8000, ge=0, le=65535, description=N_("Port to listen on; 0 means any free port."))
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description=N_("Number of server processes; two for a class of hundreds, more with PostgreSQL and many cores."),
    )
    machines: int = Field(
        1,
        ge=1,
        le=64,
        description=N_(
            "Number of machines that serve pages from the same PostgreSQL database, this one included. Their processes "
            "share its connections, and the limits on guesses and storage."
        ),
    )
    proxies: str = Field(
        "127.0.0.1,::1",
        description=N_(
            "Trusted proxies, as addresses or networks separated by commas: their headers say whether TLS was used and "
            "who the client is. Each must set X-Forwarded-For, not pass on what the client sent."
        ),
    )
    data_dir: Path = Field(
        PROJECT / "data", description=N_("Folder for everything the app stores; created if missing.")
    )
    database_url: str = Field(
        "",
        validation_alias="DATABASE_URL",
        description=N_(
            "PostgreSQL address (postgresql://…) for several processes, which leave heads and large handouts to the "
            "command `worker`; empty means SQLite in the data folder."
        ),
    )

    address: str = Field(
        "",
        description=N_(
            "Public address of the app, such as https://shapes.example.org, used in links and QR codes. "
            "Empty: the address that the browser or the terminal uses."
        ),
    )
    hub: bool = Field(
        True,
        description=N_(
            "Whether people may import a model's config.json from the Hugging Face Hub by name; "
            "nothing else is fetched."
        ),
    )

    practice: bool = Field(
        True,
        description=N_(
            "Whether visitors may practise, check sheets, look up models, print handouts and use the API. "
            "false, for a server that is used in exams, leaves them to signed-in teachers; classes work as usual."
        ),
    )

    weights: str = Field(
        "",
        description=N_(
            "Folders whose checkpoints (safetensors, GGUF) everybody may run heads of, separated by colons. "
            "No file outside them is opened."
        ),
    )

    lti_private: bool = Field(
        False,
        description=N_(
            "Whether learning platforms that open the app by LTI may be at private addresses, as on a campus network, "
            "and without https. Otherwise the app asks platforms at public https addresses only."
        ),
    )

    access_log: bool = Field(
        False,
        description=N_(
            "Whether the log has a line for every request: route, status and time, without addresses of people, "
            "names or answers."
        ),
    )

    metrics: str = Field(
        "",
        description=N_(
            "Address and port, such as 127.0.0.1:9100, at which Prometheus may read counts and times, without names "
            "or answers. Whoever reaches it can read them. Empty: nowhere."
        ),
    )

    smtp: str = Field(
        "",
        repr=False,
        description=N_(
            "Mail server for password links: smtps://user:password@host, or smtp:// with STARTTLS (no TLS to "
            "this machine, or with ?tls=none). Without it, or without a public address, no mail is sent."
        ),
    )
    smtp_from: str = Field(
        "", validate_default=True, description=N_("Sender of that mail, such as shapes@example.org.")
    )

    @field_validator("host")
    @classmethod
    def _check_host(cls, host: str) -> str:
        if host.strip():
            return host
        raise ValueError(_("must be an address such as 127.0.0.1, or 0.0.0.0 to accept other machines"))

    @field_validator("proxies")
    @classmethod
    def _check_proxies(cls, proxies: str) -> str:
        for proxy in proxies.split(","):
            try:
                ip_network(proxy.strip(), strict=False)
            except ValueError:
                problem = _("must be addresses or networks such as 127.0.0.1,10.0.0.0/24, not “{proxy}”")
                raise ValueError(problem.format(proxy=proxy.strip()[:40])) from None
        return proxies

    @field_validator("weights")
    @classmethod
    def _check_weights(cls, folders: str) -> str:
        for folder in filter(None, folders.split(os.pathsep)):
            if not (os.access(folder, os.R_OK) and Path(folder).is_dir()):
                problem = _("must be folders that this process can read, not “{folder}”")
                raise ValueError(problem.format(folder=folder[-60:]))
        return folders

    @field_validator("metrics")
    @classmethod
    def _check_metrics(cls, address: str) -> str:
        if not address or (re.fullmatch(r"\S+:\d{1,5}", address) and int(address.rpartition(":")[2]) <= 65535):
            return address
        raise ValueError(_("must be an address and a port such as 127.0.0.1:9100"))

    @field_validator("smtp")
    @classmethod
    def _check_mail_server(cls, url: str) -> str:
        if url:
            read_server(url)
        return url

    @field_validator("smtp_from")
    @classmethod
    def _check_sender(cls, sender: str, others: ValidationInfo) -> str:
        if sender or others.data.get("smtp"):
            read_sender(sender)
        return sender

    @field_validator("address")
    @classmethod
    def _check_address(cls, address: str) -> str:
        if not address or re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", address):
            return address.rstrip("/")
        raise ValueError(_("must begin with https:// or http:// and contain no question mark"))

    @field_validator("data_dir", mode="before")
    @classmethod
    def _check_data_dir(cls, folder: object) -> object:
        if isinstance(folder, str) and not folder.strip():
            raise ValueError(_("must name a folder, such as /var/lib/attention-shapes"))
        return folder

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, url: str) -> str:
        if not url:
            return url
        if url.partition("://")[0] not in ("postgres", "postgresql", "postgresql+psycopg", "sqlite"):
            raise ValueError(
                _("must begin with postgresql:// or sqlite:///; leave it empty for SQLite in the data folder")
            )
        from sqlalchemy.engine import make_url  # slow to import, and not needed by commands without a database
        from sqlalchemy.exc import ArgumentError

        try:
            parts = make_url(url)
        except (ArgumentError, ValueError):
            raise ValueError(_("must be like postgresql://user:password@host:5432/database")) from None
        is_file = parts.database and not parts.host and ":memory:" not in parts.database
        if parts.drivername == "sqlite" and not is_file:
            raise ValueError(_("must name a file after sqlite:///; leave it empty for SQLite in the data folder"))
        return url

    @property
    def processes(self) -> int:
        """How many processes of all machines serve pages from the database."""
        return self.workers * self.machines

    @property
    def weight_folders(self) -> tuple[Path, ...]:
        """The folders that checkpoints may be opened from."""
        return tuple(Path(folder).resolve() for folder in self.weights.split(os.pathsep) if folder)

    @property
    def database(self) -> str:
        """The database's URL for SQLAlchemy: postgres:// and postgresql:// become postgresql+psycopg://."""
        if not self.database_url:
            return f"sqlite:///{self.data_dir / 'attention-shapes.sqlite3'}"
        scheme, _separator, rest = self.database_url.partition("://")
        return f"postgresql+psycopg://{rest}" if scheme in ("postgres", "postgresql") else self.database_url

    def public_url(self, otherwise: str) -> str:
        """The app's URL for people, without a trailing slash: the configured one, or the one given here."""
        return (self.address or otherwise).rstrip("/")
