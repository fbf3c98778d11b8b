"""A worksheet's menu of models, and the choice between numbers and symbols, with the reasons for refusals."""

from __future__ import annotations

from dataclasses import dataclass

from app.models.architecture import Architecture
from app.sheets.library import Library
from app.sheets.worksheet import Model, WorksheetError, is_in_symbols, key_in, library_key
from app.translation import gettext as _


@dataclass(frozen=True)
class ModelGroup:
    """Models of one kind, such as encoder-only models, under its name."""

    name: str
    models: tuple[Model, ...]


@dataclass(frozen=True)
class ModelMenu:
    """The models that can be chosen for a worksheet, the chosen one's key, and why the others are refused.

    `refused` is the chosen model if it is itself refused.
    """

    chosen: str
    groups: tuple[ModelGroup, ...]
    refusals: tuple[str, ...] = ()
    refused: Model | None = None


def model_menu(library: Library, worksheet: str, chosen: str) -> ModelMenu:
    """The models that a worksheet can use, in the non-empty groups of `_kind_names`, in its order."""
    known = library.find_worksheet(worksheet) is not None
    reasons = {key: library.refusal(worksheet, key) if known else None for key in library.models}
    by_kind = {kind: list[Model]() for kind in _kind_names()}
    for key, model in library.models.items():
        if reasons[key] is None:
            by_kind[_kind_name(model.architecture)].append(model)
    groups = tuple(ModelGroup(kind, tuple(models)) for kind, models in by_kind.items() if models)
    refused = library.models[chosen] if reasons.get(chosen) else None
    return ModelMenu(chosen, groups, tuple(filter(None, reasons.values())), refused)


@dataclass(frozen=True)
class AnswerChoice:
    """The keys of one sheet in numbers and in symbols, and why it can't be in symbols, if it can't."""

    numbers: str
    symbols: str
    in_symbols: bool
    refusal: str


def answer_choice(library: Library, worksheet: str, model: str) -> AnswerChoice | None:
    """The choice between numbers and symbols; None for an unknown worksheet or one in symbols only."""
    sheet = library.find_worksheet(library_key(worksheet))
    if sheet is None or sheet.in_letters:
        return None
    symbols = key_in(worksheet, "symbols")
    try:
        refusal = library.refusal(symbols, model if model in library.models else sheet.model) or ""
    except WorksheetError as error:
        refusal = str(error)
    return AnswerChoice(key_in(worksheet, "numbers"), symbols, is_in_symbols(worksheet), refusal)


def _kind_names() -> tuple[str, ...]:
    return (_("Decoder-only models"), _("Mixtures of experts"), _("Encoder-only models"), _("Encoder–decoder models"))


def _kind_name(architecture: Architecture) -> str:
    decoder_only, experts, encoder_only, both = _kind_names()
    if architecture.encoder_decoder:
        return both
    if architecture.has_experts:
        return experts
    return decoder_only if architecture.causal else encoder_only
