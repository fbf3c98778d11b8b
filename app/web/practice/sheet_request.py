"""Which practice sheet a request is about and what was typed into it; and how a sheet is stored and linked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Request

from app.classes.course_settings import practice_library, practice_of, practising_enrolment
from app.exchange.imported_models import library_with_model
from app.figures.scale import ScaleName
from app.grading.grade import Report
from app.sheets.library import Library
from app.sheets.numbers import read_answer
from app.sheets.variant import Variant, box_texts
from app.sheets.worksheet import whole_key
from app.store import PracticeAttempt, PracticeDraft, Store, Visitor
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.forms import FormDep
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import read_answers, read_changed, read_scale
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import visitor_of

FIRST_WORKSHEET = "llama-7b"  # shown where a request names none


@dataclass(frozen=True)
class SheetRequest:
    """A sheet with what stands in its boxes, how to draw it, and whether it belongs to a round of practice."""

    variant: Variant
    draft: PracticeDraft
    scale: ScaleName = "root"
    practising: bool = False  # the page then offers another sheet

    @property
    def answers(self) -> Mapping[str, str]:
        """The texts of the boxes, by blank, which are graded; the draft also has the answers to open questions."""
        return box_texts(self.variant, self.draft.answers)


def read_sheet_form(request: Request, services: ServicesDep, form: FormDep) -> SheetRequest:
    """The sheet that a form was sent from, with its boxes as typed; it counts in what the client's network may store.

    Fields that are missing or empty mean FIRST_WORKSHEET, and the worksheet's own model and lengths. Raises
    WorksheetError, TokensError or TopicError for a sheet that does not exist, and BudgetSpentError.
    """
    model = form.raw("model")
    worksheet = form.optional("worksheet") or FIRST_WORKSHEET
    visitor = visitor_of(request, services.store)
    models = library_with_model(library_for(services, visitor, worksheet), services.store, model)
    variant = find_variant(models, worksheet, model, form.optional("tokens"), form.raw("decoded"))
    draft = PracticeDraft(read_answers(form, variant), 0, read_changed(form, variant))
    practising = form.optional("practice") is not None
    token, again = request.cookies.get(VISITOR_COOKIE, ""), request.url.path != url_for("save_sheet")
    services.storage.charge_sheet(client_network(request), token, sheet_key(variant), draft.answers, again=again)
    return SheetRequest(variant, draft, read_scale(form.raw("scale")), practising)


PostedSheet = Annotated[SheetRequest, Depends(read_sheet_form)]


def save_posted(store: Store, owner: Visitor, asked: SheetRequest) -> SheetRequest:
    """Store the draft; the same sheet with its boxes as they are stored now: another tab may have changed some."""
    stored = store.save_draft(owner, sheet_key(asked.variant), asked.draft)
    return replace(asked, draft=replace(asked.draft, answers=stored.answers))


def store_attempt(store: Store, owner: Visitor, asked: SheetRequest, report: Report) -> None:
    """Store an attempt with the report's score, if some text could be read."""
    if report.has_readable_answer:
        attempt = PracticeAttempt(asked.answers, report.score, report.out_of)
        store.record_attempt(owner, sheet_key(asked.variant), attempt)


def store_new_attempt(store: Store, owner: Visitor, asked: SheetRequest, report: Report) -> PracticeAttempt | None:
    """The same as `store_attempt`, but no attempt with the answers of the last one; returns that last one, if any."""
    last = store.last_attempt(owner, sheet_key(asked.variant))
    if last is None or dict(last.answers) != dict(asked.answers):
        store_attempt(store, owner, asked, report)
    return last


def library_for(services: Services, visitor: Visitor | None, worksheet: str) -> Library:
    """The library for a worksheet of this key: the app's, or that of the course for which this browser practises.

    So a worksheet that a teacher wrote is there for the students of her course, as long as it is practised.
    """
    if whole_key(worksheet) in services.library.worksheets or visitor is None:
        return services.library
    enrolment = practising_enrolment(services.store, visitor.id)
    practice = practice_of(services.store, enrolment.course) if enrolment else None
    if enrolment is None or practice is None:
        return services.library
    return practice_library(services.library, services.store, enrolment.course, practice)


def find_variant(
    library: Library, worksheet: str, model: str = "", tokens: str | None = None, decoded: str = ""
) -> Variant:
    """The sheet of a worksheet's key with a model and lengths as typed; where they are left out, the worksheet's own.

    Raises WorksheetError, TokensError or TopicError for what cannot be used.
    """
    lengths = (None if tokens is None else _read_length(tokens), _read_length(decoded) if decoded else None)
    return library.variant(worksheet, model or None, *lengths)


def _read_length(text: str) -> int:
    """A length as typed, such as '1,024' or '2*512'; 0, which every model refuses, for a text that is no number."""
    count = read_answer(text)
    return count if isinstance(count, int) else 0


def sheet_key(variant: Variant) -> str:
    """What drafts and attempts of a sheet are stored under: 'worksheet/model/tokens', or with '/decoder tokens'.

    Example: 'llama-7b/llama-7b/100'
    """
    decoded = f"/{variant.decoder_tokens}" if variant.decoder_tokens else ""
    return f"{variant.worksheet.key}/{variant.model.key}/{variant.tokens}{decoded}"


def variant_of_key(library: Library, store: Store, key: str) -> Variant:
    """The sheet of a `sheet_key`; raises WorksheetError or TokensError where it no longer exists."""
    worksheet, model, *lengths = key.split("/")
    return library_with_model(library, store, model).variant(worksheet, model, *map(int, lengths))


def sheet_link(variant: Variant, route: str = "show_sheet", **more: object) -> str:
    """The address of this sheet on a page that takes worksheet, model, tokens and decoded from the query.

    `decoded` is there only for a sheet with a decoder; `more` is added to the query.

    Example: '/sheet?worksheet=llama-7b&model=llama-7b&tokens=100'
    """
    query = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": variant.tokens, **more}
    if variant.decoder_tokens:
        query["decoded"] = variant.decoder_tokens
    return url_for(route, **query)
