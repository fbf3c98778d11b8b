"""Addresses of practice sheets: worksheet, model, tokens and decoder tokens in the query."""

from __future__ import annotations

from fastapi import Request

from app.classes.course_settings import practice_library, practising
from app.sheets.answers import read_number
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import library_key
from app.web.shared.services import Services
from app.web.shared.urls import url_for
from app.web.shared.visitor import visitor_of

FIRST_WORKSHEET = "llama-7b"  # shown if a request names none


def library_for(request: Request, services: Services, worksheet: str) -> Library:
    """The library with a worksheet of this key, or with the worksheet that a part belongs to."""
    if library_key(worksheet) in services.library.worksheets:
        return services.library
    visitor = visitor_of(request, services.store)
    if visitor and (found := practising(services.store, visitor)):
        return practice_library(services.library, services.store, found.enrolment.course, found.practice)
    return services.library


def find_variant(library: Library, worksheet: str, model: str, tokens: str | None, decoded: str) -> Variant:
    """The sheet of a worksheet with a model, tokens and decoder tokens as typed.

    Raises WorksheetError, TokensError or TopicError for unusable ones, such as an empty text as `tokens`.
    """
    lengths = (None if tokens is None else _read_length(tokens), _read_length(decoded) if decoded else None)
    return library.variant(worksheet, model or None, *lengths)


def _read_length(text: str) -> int:
    count = read_number(text)
    return count if isinstance(count, int) else 0


def sheet_link(variant: Variant, route: str = "show_sheet", **more: object) -> str:
    """The sheet's address on a page that takes worksheet, model, tokens and decoded from the query.

    Example: '/sheet?worksheet=llama-7b&model=llama-7b&tokens=100'
    """
    query = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": variant.tokens, **more}
    if variant.decoder_tokens:
        query["decoded"] = variant.decoder_tokens
    return url_for(route, **query)
