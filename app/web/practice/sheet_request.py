"""Which sheet a request is about and what was typed into it: shared by the pages that show a sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from app.exchange.imported_models import library_with_model
from app.figures.scale import ScaleName
from app.grading.grade import Report
from app.sheets.library import Library
from app.sheets.numbers import read_answer
from app.sheets.worksheet import Variant
from app.store import PracticeAttempt, PracticeDraft, Visitor
from app.web.shared.services import Services, ServicesDep
from app.web.shared.urls import url_for

DEFAULT = "llama-7b"
MAX_KEPT = 10_000  # characters of one box that are kept as typed


@dataclass(frozen=True)
class Asked:
    """What a request says about a sheet: which one, what stands in its boxes, how old that is, how to draw it."""

    variant: Variant
    draft: PracticeDraft
    scale: ScaleName = "root"
    practising: bool = False  # whether another sheet can be asked for from here

    @property
    def answers(self) -> Mapping[str, str]:
        return self.draft.answers


async def posted(request: Request, services: ServicesDep) -> Asked:
    """The sheet that a form was sent from, with its boxes as typed."""
    async with request.form() as sent:  # closes a file that somebody sends along
        form = {key: value for key, value in sent.items() if isinstance(value, str)}
    model = form.get("model", "")
    library = await run_in_threadpool(library_with_model, services.library, services.store, model)
    variant = find_variant(library, form.get("worksheet", DEFAULT), model, form.get("tokens"), form.get("decoded", ""))
    answers = {str(blank): form.get(str(blank), "")[:MAX_KEPT] for blank in variant.blanks}
    draft = PracticeDraft(answers, read_version(form.get("version", "")))
    return Asked(variant, draft, read_scale(form.get("scale", "")), "practice" in form)


Posted = Annotated[Asked, Depends(posted)]


def keep_try(services: Services, visitor: Visitor, asked: Asked, report: Report) -> None:
    """Store the draft, and the try if anything on it could be read."""
    key = sheet_key(asked.variant)
    services.store.save_draft(visitor, key, asked.draft)
    if report.tried:
        services.store.record_attempt(visitor, key, PracticeAttempt(asked.answers, report.score, report.out_of))


def find_variant(
    library: Library, worksheet: str, model: str = "", tokens: str | None = None, decoded: str = ""
) -> Variant:
    """The sheet that was chosen, as long as its own if no tokens are given; raises WorksheetError or TokensError."""
    lengths = (None if tokens is None else _length(tokens), _length(decoded) if decoded else None)
    return library.variant(worksheet, model or None, *lengths)


def _length(text: str) -> int:
    """A number as typed, or else 0: it is refused as every impossible one is, with the numbers that can be used."""
    count = read_answer(text)
    return count if isinstance(count, int) else 0


def sheet_key(variant: Variant) -> str:
    """What drafts and attempts are stored under: worksheet, model and tokens, and the decoder's if not its own."""
    decoded = f"/{variant.decoder_tokens}" if variant.decoder_tokens else ""
    return f"{variant.worksheet.key}/{variant.model.key}/{variant.tokens}{decoded}"


def sheet_link(variant: Variant, route: str = "show_sheet", **more: object) -> str:
    """The address of this sheet on a page that takes worksheet, model, tokens and decoded from the query."""
    query = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": variant.tokens, **more}
    if variant.decoder_tokens:
        query["decoded"] = variant.decoder_tokens
    return url_for(route, **query)


def variant_at(services: Services, key: str) -> Variant:
    """The sheet that something was stored under; raises WorksheetError or TokensError if it is no longer there."""
    worksheet, model, *lengths = key.split("/")
    return library_with_model(services.library, services.store, model).variant(worksheet, model, *map(int, lengths))


def read_version(text: str) -> int:
    """How new the texts of a form are; what is no number is the oldest."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 17 else 0


def read_scale(text: str) -> ScaleName:
    return cast(ScaleName, text) if text in ("root", "true") else "root"
