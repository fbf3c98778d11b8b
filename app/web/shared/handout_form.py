"""A handout's options as typed into a form, which are also the query of its address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.handout.options import MAX_HANDOUT_SEED, MAX_SHEETS, HandoutError, HandoutOptions
from app.settings import Settings
from app.sheets.worksheet import key_in
from app.translation import gettext as _
from app.web.shared.forms import whole_number
from app.web.shared.urls import public_address

MAX_FIELD_LENGTH = 500  # longer texts are cut, and then refused as too long or unknown
MAX_TYPED_TOKENS = 10**9  # tokens; the library checks what a model can take
_MORE_OPTIONS = ("course", "date", "tokens", "decoder_tokens", "seed", "back")
_PLAIN_HOST = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")

Text = Annotated[str, BeforeValidator(lambda value: str(value)[:MAX_FIELD_LENGTH])]


class HandoutForm(BaseModel):
    """Each field of HandoutOptions as typed or chosen text, so that a form can show it again.

    `variants` and `large` are check boxes: any text means yes.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    worksheet: Text = "llama-7b"
    model: Text = ""
    tokens: Text = ""
    decoder_tokens: Text = Field("", alias="decoded")
    course: Text = ""
    date: Text = ""
    variants: Text = ""
    sheets: Text = "2"
    seed: Text = "0"
    layout: Text = "half"
    paper: Text = "letter"
    back: Text = "none"
    key: Text = "none"
    large: Text = ""
    figures: Text = "none"

    @staticmethod
    def read(values: Mapping[str, object]) -> HandoutForm:
        """The form of a query or a posted form; missing fields, and files, get defaults.

        The field `answers` becomes part of the worksheet's key.
        """
        form = HandoutForm.model_validate({key: value for key, value in values.items() if isinstance(value, str)})
        if values.get("answers") not in ("numbers", "symbols"):
            return form
        in_symbols = values["answers"] == "symbols"
        worksheet = key_in(form.worksheet, "symbols" if in_symbols else "numbers")
        return form.model_copy(update={"worksheet": worksheet})

    @property
    def listed_worksheet(self) -> str:
        """The worksheet's key as in the list of worksheets."""
        return key_in(self.worksheet, "numbers")

    @property
    def has_more(self) -> bool:
        """Whether an option under “More options” is set."""
        usual = HandoutForm()
        return any(getattr(self, name) != getattr(usual, name) for name in _MORE_OPTIONS)

    @property
    def query_fields(self) -> dict[str, str]:
        """Every field by its key in a query, for hidden inputs."""
        return self.model_dump(by_alias=True)

    @property
    def query(self) -> str:
        """The query of the handout's address: the worksheet, and every field with another value than its default."""
        changed = self.model_dump(by_alias=True, exclude_defaults=True)
        return urlencode({"worksheet": self.worksheet, **changed})

    def to_options(self, tickets: Iterable[str]) -> HandoutOptions:
        """The options that the texts mean; raises HandoutError about the first unusable one."""
        variants = bool(self.variants)
        choices: dict[str, Any] = {name: getattr(self, name) for name in ("layout", "paper", "key", "figures")}
        return HandoutOptions(
            worksheet=self.worksheet,
            model=self.model,
            course=self.course,
            date=self.date,
            sheets=_parse_number(self.sheets, "sheets", _("Number of sheets"), MAX_SHEETS, lowest=1),
            variants=variants,
            tokens=None if variants else _parse_length(self.tokens, "tokens", _("Tokens")),
            decoder_tokens=None if variants else _parse_length(self.decoder_tokens, "decoded", _("Decoder tokens")),
            seed=_parse_number(self.seed or "0", "seed", _("Seed"), MAX_HANDOUT_SEED),
            back=self.back,
            large=bool(self.large),
            **choices,  # which HandoutOptions checks
        ).check_back(dict.fromkeys(tickets))


def handout_base_url(request: Request, settings: Settings) -> str:
    """The address for students in links and QR codes on paper; "" if none would work for them."""
    address = public_address(request, settings)
    if not settings.practice or address.is_local:
        return ""
    return address.url if settings.address or _PLAIN_HOST.fullmatch(address.url) else ""


def pdf_response(pdf: bytes, name: str) -> Response:
    """A PDF to download as `name`.pdf, never cached."""
    return file_response(pdf, name, "pdf", "application/pdf")


def file_response(data: bytes, name: str, ending: str, media_type: str) -> Response:
    """A file to download, never cached."""
    safe_name = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in name)[:60]
    headers = {
        "Content-Disposition": f'attachment; filename="{safe_name}.{ending}"',
        "Cache-Control": "private, no-store",
    }
    return Response(data, media_type=media_type, headers=headers)


def _parse_length(text: str, field: str, label: str) -> int | None:
    return _parse_number(text, field, label, MAX_TYPED_TOKENS) if text.strip() else None


def _parse_number(text: str, field: str, label: str, highest: int, *, lowest: int = 0) -> int:
    number = whole_number(text.strip(), highest, lowest=lowest)
    if number is None:
        typed = text.strip()[:30]
        problem = _("“{label}” must be a whole number from {lowest:,} to {highest:,}, not “{typed}”.")
        raise HandoutError(problem.format(label=label, lowest=lowest, highest=highest, typed=typed), field)
    return number
