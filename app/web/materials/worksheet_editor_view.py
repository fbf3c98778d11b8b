"""The worksheet editor as its page shows it: the form as typed, its menus and rows, the checker and the preview."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import Response
from markupsafe import Markup

from app.bugs.bank import BUGS
from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.sources import listed_checkpoints, open_checkpoint
from app.classes.authoring.remarks import Proposal, Remark, remarks_on
from app.classes.authoring.worksheet_form import (
    EditorTexts,
    RowTexts,
    WorksheetFormError,
    automatic_title,
    bug_in,
    complete_rows,
    read_worksheet_form,
)
from app.exchange import hub
from app.exchange.imported_models import library_with_model
from app.names import clean_line
from app.sheets.library import Library
from app.sheets.notation import NOTATIONS, NotationKey
from app.sheets.variant import Variant
from app.sheets.worksheet import Model, Worksheet
from app.store import Course
from app.topics.registry import TOPICS
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.translation import ngettext
from app.web.materials.worksheet_preview import (
    PREVIEW_KEY,
    PREVIEW_VIEWS,
    PreviewView,
    make_preview,
)
from app.web.shared.conflicts import Conflict
from app.web.shared.import_form import ImportForm
from app.web.shared.model_menu import ModelMenu, model_menu
from app.web.shared.services import Services
from app.web.shared.templating import render, render_text
from app.web.shared.urls import url_for

MAX_EDITOR_MODELS = 20  # imported models in the menus of one form


@dataclass(frozen=True)
class WorksheetDraft:
    """A worksheet in the editor: its texts, and the worksheet they describe or why they describe none.

    `library` has the imported models that the form names; `imported` are the keys of those in its menus.
    """

    library: Library
    texts: EditorTexts
    imported: tuple[str, ...]
    worksheet: Worksheet | None
    error: WorksheetFormError | None


@dataclass(frozen=True)
class EditorPlace:
    """Which worksheet the form edits: a stored one in the opened version, or a new one for a course."""

    course_id: str = ""
    material_id: int = 0
    version: int = 0

    @property
    def save_address(self) -> str:
        """Where the form is sent to be saved."""
        if self.material_id:
            return url_for("save_worksheet", material_id=self.material_id)
        return url_for("add_worksheet")


@dataclass(frozen=True)
class EditorRow:
    """A row of the form: its texts, its name on the sheet, and its letter."""

    texts: RowTexts
    name: str
    note: str
    letter: str


@dataclass(frozen=True)
class WorksheetEditorPage:
    """Everything that templates/materials/worksheet_editor.html shows."""

    place: Annotated[EditorPlace, Doc("Which worksheet is edited, and in which version.")]
    course: Annotated[Course | None, Doc("The course of the worksheet, where it is one's and known here.")]
    texts: Annotated[EditorTexts, Doc("Everything typed and chosen.")]
    automatic: Annotated[str, Doc("The title that the sheet has where none is typed.")]
    topics: Annotated[Mapping[str, str], Doc("The names of all topics, by key.")]
    notations: Annotated[tuple[str, ...], Doc("The keys of all notations.")]
    model_menu: Annotated[ModelMenu, Doc("The models that the topic can have.")]
    unlisted: Annotated[Model | None, Doc("The chosen model, where the menu does not have it.")]
    drawn_models: Annotated[tuple[Model, ...], Doc("The models that a seed may draw.")]
    imported: Annotated[tuple[str, ...], Doc("The keys of imported models that the menus offer.")]
    typed_import: Annotated[ImportForm, Doc("What stands in the fields that import a model.")]
    hub_host: Annotated[str, Doc("Where models are fetched from; empty where that is switched off.")]
    reads_two_texts: Annotated[bool, Doc("Whether the topic has decoder tokens beside the tokens.")]
    bugs: Annotated[
        Mapping[str, Mapping[str, str]],
        Doc("The bugs that the topic has: by program, their names by key; empty for most topics."),
    ]
    rows: Annotated[tuple[EditorRow, ...], Doc("The rows that the topic has, in the order of the sheet.")]
    boxes: Annotated[tuple[str, ...], Doc("The boxes that a misconception can write into.")]
    symbols: Annotated[tuple[str, ...], Doc("The symbols of its formulas.")]
    views: Annotated[tuple[PreviewView, ...], Doc("The views of the preview.")]
    view: Annotated[PreviewView, Doc("The view that is chosen.")]
    preview: Annotated[Markup, Doc("The preview as HTML; empty while a field cannot be used.")]
    remarks: Annotated[tuple[Remark, ...], Doc("What the checker finds.")]
    sentence_tokens: Annotated[str, Doc("How many tokens the weights make of the sentence, or why nobody knows.")]
    told: Annotated[str, Doc("Stands for the remarks that are shown, so that a save knows they were.")]
    asked_anyway: Annotated[bool, Doc("Whether a save waits for the remarks to be read.")] = False
    saved: Annotated[int, Doc("The version that was just saved, or 0.")] = 0
    conflict: Annotated[Conflict | None, Doc("Somebody else's save that came first.")] = None
    removed: Annotated[bool, Doc("Whether somebody removed the worksheet meanwhile, so that nothing was saved.")] = (
        False
    )
    field: Annotated[str, Doc("The name of the field that the problem is about.")] = ""
    problem: Annotated[str, Doc("The sentence about what cannot be used, or empty.")] = ""
    focus: Annotated[str, Doc("The id of what has the focus; “problem” for the field it is about, or empty.")] = ""


def make_draft(services: Services, texts: EditorTexts, imported: Sequence[str] = ()) -> WorksheetDraft:
    """The draft of these texts, with all rows of its topic and model, and the worksheet or the error they make."""
    library, known = services.library, list[str]()
    for key in dict.fromkeys((texts.fields["model"], *texts.models, *imported)):
        if key and key not in library.models and len(known) < MAX_EDITOR_MODELS:
            library = library_with_model(library, services.store, key)
            known += [key] if key in library.models else []
    texts = complete_rows(library, texts)
    try:
        worksheet = read_worksheet_form(library, PREVIEW_KEY, texts)
    except WorksheetFormError as error:
        return WorksheetDraft(library, texts, tuple(known), None, error)
    return WorksheetDraft(library, texts, tuple(known), worksheet, None)


def editor_page(
    services: Services, place: EditorPlace, draft: WorksheetDraft, view: str = "", held: str = ""
) -> WorksheetEditorPage:
    """The page of a draft, without its course; with a preview and the checker's remarks if it has a worksheet."""
    library, texts, worksheet = draft.library, draft.texts, draft.worksheet
    topic, model = texts.fields["topic"], library.models.get(texts.fields["model"])
    menu = _menu(library, texts, worksheet)
    variant = _variant(library, texts, worksheet)
    shown: PreviewView = next((each for each in PREVIEW_VIEWS if each == view), "empty")
    sentence_tokens, remarks_on_sentence = _sentence_tokens(services, texts, worksheet)
    remarks = (*remarks_on_sentence, *(remarks_on(library, worksheet) if worksheet else ()))
    return WorksheetEditorPage(
        place=place,
        course=None,
        texts=texts,
        automatic=automatic_title(library, topic, texts.fields["model"]),
        topics={key: library.wording.topics[key].name for key in TOPICS},
        notations=tuple(NOTATIONS),
        model_menu=menu,
        unlisted=None if any(model in group.models for group in menu.groups) else model,
        drawn_models=tuple(library.models[key] for key in texts.models if key in library.models),
        imported=draft.imported,
        typed_import=ImportForm(),
        hub_host=hub.hub_host() if services.settings.hub else "",
        bugs=_bugs(library, topic),
        reads_two_texts=topic in TOPICS and TOPICS[topic].reads_two_texts,
        rows=_editor_rows(library, texts, variant),
        boxes=tuple(variant.blanks_by_name) if variant else (),
        symbols=tuple(variant.reader.written_symbols) if variant else (),
        views=PREVIEW_VIEWS,
        view=shown,
        preview=render_text("materials/_worksheet_preview.html", make_preview(library, worksheet, shown, held))
        if worksheet
        else Markup(""),
        remarks=remarks,
        sentence_tokens=sentence_tokens,
        told=told_token(remarks),
        field=draft.error.field if draft.error else "",
        problem=str(draft.error) if draft.error else "",
    )


def render_editor(page: WorksheetEditorPage, status: int = 200) -> Response:
    return render("materials/worksheet_editor.html", page, status)


def setting_labels() -> dict[str, str]:
    """The form's translated label of each worksheet setting, by the setting's name, in the form's order."""
    return {
        "title": _("Title"), "model": _("Model"), "topic": _("Topic"), "bug": _("Bug"),
        "bugs": _("Bugs to draw from"), "tokens": _("Tokens"),
        "rows": _("Rows"),
        "notation": _("Notation"), "kv_head_per_query_head": _("A key/value head for every query head"),
        "decoder_tokens": _("Decoder tokens"), "models": _("Models to draw from"), "answers": _("Students write"),
        "tokens_from": _("Tokens from"), "tokens_to": _("Tokens to"),
        "introduction": _("Introduction"), "footnote": _("Footnote"), "row_hints": _("Hints of rows"),
        "row_points": _("Points of rows"), "questions": _("Open questions"),
        "misconceptions": _("Misconceptions to look for"), "sentence": _("Sentence for a real head"),
        "checkpoint": _("Weights of the real head"), "layer": _("Layer of the real head"),
        "head": _("Head of the real head"),
    }  # fmt: skip


def told_token(remarks: Sequence[Remark]) -> str:
    """A hash of the important remarks, with which a form says that it has shown them; "" without any."""
    messages = [clean_line(remark.message) for remark in remarks if remark.matters]
    return hashlib.sha256("\n".join(messages).encode()).hexdigest()[:16] if messages else ""


def _sentence_tokens(
    services: Services, texts: EditorTexts, worksheet: Worksheet | None
) -> tuple[str, tuple[Remark, ...]]:
    sentence, key = texts.fields["sentence"], texts.fields["checkpoint"]
    if not sentence or not key:
        return "", ()
    folders = services.settings.weight_folders
    is_here = not services.jobs.has_workers  # they have the weights, and this process has no tokenizer
    listed = next((each for each in listed_checkpoints(folders) if is_here and each.key == key), None)
    if listed is None:
        return _(
            "These weights aren’t on the machine that sent this page, so it can’t count the tokens of the sentence."
        ), ()
    try:
        count = len(open_checkpoint(listed.source, folders).tokens(sentence))
    except CheckpointError as error:
        return str(error), ()
    said = ngettext("These weights make one token of it.", "These weights make {count} tokens of it.", count)
    if worksheet is None or worksheet.tokens == count:
        return said.format(count=count), ()
    wrong = _("The sentence for a real head has {count} tokens and the sheet {tokens}, so that the head could not run.")
    proposal = Proposal(ngettext("One token", "{count} tokens", count).format(count=count), f"set tokens {count}")
    return said.format(count=count), (Remark(wrong.format(count=count, tokens=worksheet.tokens), (proposal,)),)


def _menu(library: Library, texts: EditorTexts, worksheet: Worksheet | None) -> ModelMenu:
    topic, chosen = texts.fields["topic"], texts.fields["model"]
    if worksheet is None and topic in TOPICS:
        rows = tuple(library.wording.topics[topic].rows)
        title = automatic_title(library, topic, chosen) or "…"
        worksheet = Worksheet(PREVIEW_KEY, title, chosen, topic, 100, rows, bug=bug_in(texts.fields))
    sheets = {PREVIEW_KEY: worksheet} if worksheet else {}
    return model_menu(Library(sheets, library.models, library.wording), PREVIEW_KEY, chosen)


def _variant(library: Library, texts: EditorTexts, worksheet: Worksheet | None) -> Variant | None:
    model, fields = library.models.get(texts.fields["model"]), texts.fields
    if model is None or not texts.rows or texts.rows_of != fields["topic"] or fields["topic"] not in TOPICS:
        return None
    notation: NotationKey = next((name for name in NOTATIONS if name == fields["notation"]), "classic")
    architecture = model.architecture
    tokens = worksheet.tokens if worksheet else architecture.fixed_tokens or min(100, architecture.max_tokens)
    rows, simplified = tuple(row.key for row in texts.rows), fields["kv_head_per_query_head"] == "yes"
    decoder_tokens = worksheet.decoder_tokens if worksheet else None
    sheet = Worksheet(
        PREVIEW_KEY, "…", model.key, fields["topic"], tokens, rows, notation, simplified, decoder_tokens,
        bug=bug_in(fields),
    )  # fmt: skip
    variant = Variant(sheet, model, tokens, library.wording)
    try:
        return variant if variant.table else None
    except TopicError:
        return None


def _bugs(library: Library, topic: str) -> dict[str, dict[str, str]]:
    words, groups = library.wording.bugs, dict[str, dict[str, str]]()
    for bug in TOPICS[topic].bugs if topic in TOPICS else ():
        groups.setdefault(words.programs[BUGS[bug].program_key], {})[bug] = words.bugs[bug].name
    return groups


def _editor_rows(library: Library, texts: EditorTexts, variant: Variant | None) -> tuple[EditorRow, ...]:
    known = {row.key: row for row in variant.rows} if variant else {}
    words = library.wording.topics[texts.rows_of].rows if texts.rows_of in TOPICS else {}
    return tuple(
        EditorRow(row, known[row.key].name, known[row.key].note, known[row.key].letter)
        if row.key in known
        else EditorRow(row, words[row.key].name.replace("{line}", "…") if row.key in words else row.key, "", "")
        for row in texts.rows
    )
