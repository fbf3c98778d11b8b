"""Which practice sheet a request is about, what was typed into it and by whom; and links to sheets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from fastapi import Request, Response

from app.activities.rules import PRACTICE_RULES
from app.activities.work import Answers
from app.classes.course_settings import practice_library, practising
from app.classes.sheet_actions import Action, Outcome, SentSheet, perform
from app.classes.sheet_work import PracticeWork, practice_sheet_key
from app.exchange.imported_models import library_with_model
from app.figures.scale import ScaleName
from app.sheets.library import Library
from app.sheets.numbers import read_answer
from app.sheets.variant import Variant, box_texts
from app.sheets.worksheet import library_key
from app.store import Store, Visitor
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.forms import FormReader
from app.web.shared.services import Services
from app.web.shared.sheet_form import read_answers, read_edits, read_scale, saved_json
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, remember_visitor, visitor_of

FIRST_WORKSHEET = "llama-7b"  # shown if a request names none


@dataclass(frozen=True)
class SheetRequest:
    """A practice sheet, the texts in its boxes, and this browser's work on it.

    `work` is None for a browser that has stored nothing yet.
    """

    library: Library
    variant: Variant
    typed: Answers
    work: PracticeWork | None = None
    scale: ScaleName = "root"
    sent: SentSheet | None = None  # by a form

    @property
    def answers(self) -> Mapping[str, str]:
        """The texts of the boxes, by blank, for grading; `typed` also has the answers to open questions."""
        return box_texts(self.variant, self.typed)

    @property
    def visitor(self) -> Visitor | None:
        return self.work.owner if self.work else None

    @property
    def saved_state(self) -> str:
        """What the server has of this sheet (see saved_json)."""
        return saved_json(self.work.draft if self.work else None, self.sent.edits if self.sent else None)

    @property
    def was_checked(self) -> bool:
        """Whether this browser has checked the sheet before."""
        return self.work is not None and self.work.last is not None

    def done(self, action: Action) -> tuple[Outcome, Self]:
        """Do an action with the sent form, by the rules of practice, and store it."""
        assert self.work is not None  # noqa: S101 - only a posted form leads here
        assert self.sent is not None  # noqa: S101
        outcome, work = perform(action, self.variant, self.work, PRACTICE_RULES, self.sent)
        typed = work.draft.answers if work.draft else outcome.answers
        return outcome, replace(self, work=work, typed=typed)

    def with_cookie(self, request: Request, response: Response) -> Response:
        """The same response with the visitor's cookie, if there is a visitor."""
        if self.visitor:
            remember_visitor(request, response, self.visitor)
        return response


def opened_sheet(request: Request, store: Store, library: Library, variant: Variant) -> SheetRequest:
    """A sheet with this browser's last saved texts and work, if any."""
    token = request.cookies.get(VISITOR_COOKIE)
    work = PracticeWork.find(store, token, variant) if token else None
    return SheetRequest(library, variant, work.draft.answers if work and work.draft else {}, work)


def posted_sheet(request: Request, services: Services, form: FormReader, *, adds_visitor: bool = True) -> SheetRequest:
    """The sheet that a form was sent from, as typed, with this browser's work on it; nothing is saved yet.

    Raises BudgetSpentError, and what `find_variant` raises for an unknown sheet.
    """
    store, model = services.store, form.raw("model")
    worksheet = form.optional("worksheet") or FIRST_WORKSHEET
    library = library_with_model(library_for(request, services, worksheet), store, model)
    variant = find_variant(library, worksheet, model, form.optional("tokens"), form.raw("decoded"))
    sent = SentSheet(read_answers(form, variant), read_edits(form, variant))
    token = request.cookies.get(VISITOR_COOKIE, "")
    network, again = client_network(request), request.url.path != url_for("save_sheet")
    services.storage.charge_sheet(network, token, practice_sheet_key(variant), sent.answers, again=again)
    work = PracticeWork.find(store, token, variant) if token else None
    if work is None and adds_visitor:
        work = PracticeWork.find(store, store.add_visitor(FormSecret.of(form).token).token, variant)
    return SheetRequest(library, variant, sent.answers, work, read_scale(form.raw("scale")), sent)


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
    count = read_answer(text)
    return count if isinstance(count, int) else 0


def sheet_link(variant: Variant, route: str = "show_sheet", **more: object) -> str:
    """The sheet's address on a page that takes worksheet, model, tokens and decoded from the query.

    Example: '/sheet?worksheet=llama-7b&model=llama-7b&tokens=100'
    """
    query = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": variant.tokens, **more}
    if variant.decoder_tokens:
        query["decoded"] = variant.decoder_tokens
    return url_for(route, **query)
