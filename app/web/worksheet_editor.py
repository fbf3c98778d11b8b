"""The editor of a worksheet as its page shows it: the form as typed, its menus, the checker, the preview.

Its addresses are in `worksheets.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Response
from markupsafe import Markup

from app.bugs.bank import BUGS
from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.files import listed_checkpoints, open_checkpoint
from app.classes.authoring.remarks import Proposal, Remark, remarks_on
from app.classes.authoring.worksheet_form import (
    Typed,
    WorksheetFormError,
    automatic_title,
    bug_in,
    complete_rows,
    read_worksheet_form,
)
from app.exchange import hub
from app.exchange.imported_models import library_with_model
from app.names import clean_line
from app.sheets import prose
from app.sheets.library import Library
from app.sheets.notation import NOTATIONS, NotationKey
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.store import Course
from app.topics.registry import TOPICS
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.conflicts import Conflict
from app.web.shared.forms import FormReader
from app.web.shared.import_form import ImportForm
from app.web.shared.model_menu import ModelMenu, model_menu
from app.web.shared.services import Services
from app.web.shared.templating import render, render_text
from app.web.worksheet_preview import PREVIEW_KEY, PREVIEW_VIEWS, PreviewView, preview_of

MAX_EDITOR_MODELS = 20  # imported models in the menus of one form


@dataclass(frozen=True)
class WorksheetDraft:
    """A worksheet in the editor: its form, and the worksheet that the form means or why it means none.

    `library` has the imported models that the form names; `imported` are their keys.
    """

    library: Library
    typed: Typed
    imported: tuple[str, ...]
    worksheet: Worksheet | None
    error: WorksheetFormError | None
    sentence_tokens: str  # how many tokens the real head's sentence has, or why nobody knows
    remarks: tuple[Remark, ...]

    @property
    def told(self) -> str:
        """A hash of the important remarks, with which the form says that it has shown them; "" without any."""
        messages = [clean_line(remark.message) for remark in self.remarks if remark.matters]
        return hashlib.sha256("\n".join(messages).encode()).hexdigest()[:16] if messages else ""


def make_draft(services: Services, typed: Typed, imported: Sequence[str] = ()) -> WorksheetDraft:
    """The draft of a form, completed with all rows of its topic and model."""
    library, known = services.library, list[str]()
    for key in dict.fromkeys((typed["model"], *typed["models"], *imported)):
        if key and key not in library.models and len(known) < MAX_EDITOR_MODELS:
            library = library_with_model(library, services.store, key)
            known += [key] if key in library.models else []
    typed = complete_rows(library, typed)
    worksheet, error = None, None
    try:
        worksheet = read_worksheet_form(library, PREVIEW_KEY, typed)
    except WorksheetFormError as found:
        error = found
    sentence_tokens, remarks = _sentence_tokens(services, typed, worksheet)
    if worksheet:
        remarks += remarks_on(library, worksheet)
    return WorksheetDraft(library, typed, tuple(known), worksheet, error, sentence_tokens, remarks)


def render_editor(
    services: Services,
    draft: WorksheetDraft,
    course: Course | None,
    material_id: int = 0,
    version: int = 0,
    *,
    form: FormReader | None = None,
    status: int = 200,
    focus: str = "",
    typed_import: ImportForm | None = None,
    import_problem: str = "",
    asked_anyway: bool = False,
    saved: int = 0,
    conflict: Conflict | None = None,
    removed: bool = False,
) -> Response:
    """The editor's page, with the view of the preview that the form asks for."""
    library, typed, worksheet = draft.library, draft.typed, draft.worksheet
    topic, model = typed["topic"], library.models.get(typed["model"])
    menu, variant = _menu(draft), _variant(draft)
    asked_for, held = (form.raw("view"), form.raw("held")) if form else ("", "")
    view: PreviewView = next((each for each in PREVIEW_VIEWS if each == asked_for), "empty")
    preview = Markup("")
    if worksheet:
        preview = render_text("materials/_worksheet_preview.html", **preview_of(library, worksheet, view, held))
    field, problem = (draft.error.field, str(draft.error)) if draft.error else ("", "")
    if import_problem:
        field, problem = "import", import_problem
    return render(
        "materials/worksheet_editor.html",
        status=status,
        draft=draft,
        typed=typed,
        course=course,
        material_id=material_id,
        version=version,
        automatic=automatic_title(library, topic, typed["model"]),
        topics={key: library.wording.topics[key].name for key in TOPICS},
        notations=tuple(NOTATIONS),
        model_menu=menu,
        unlisted=None if any(model in group.models for group in menu.groups) else model,
        drawn_models=[library.models[key] for key in typed["models"] if key in library.models],
        typed_import=typed_import or ImportForm(),
        hub_host=hub.hub_host() if services.settings.hub else "",
        bugs=_bugs(library, topic),
        reads_two_texts=topic in TOPICS and TOPICS[topic].reads_two_texts,
        rows=_rows(draft, variant),
        hints=_built_in_hints(variant) if variant else {},
        boxes=tuple(variant.blanks_by_name) if variant else (),
        symbols=tuple(variant.symbols.written) if variant else (),
        views=PREVIEW_VIEWS,
        view=view,
        preview=preview,
        field=field,
        problem=problem,
        focus=focus,
        asked_anyway=asked_anyway,
        saved=saved,
        conflict=conflict,
        removed=removed,
    )


def _sentence_tokens(services: Services, typed: Typed, worksheet: Worksheet | None) -> tuple[str, tuple[Remark, ...]]:
    sentence, key = typed["sentence"], typed["checkpoint"]
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


def _menu(draft: WorksheetDraft) -> ModelMenu:
    library, worksheet = draft.library, draft.worksheet
    topic, chosen = draft.typed["topic"], draft.typed["model"]
    if worksheet is None and topic in TOPICS:
        rows = tuple(library.wording.topics[topic].rows)
        title = automatic_title(library, topic, chosen) or "…"
        worksheet = Worksheet(PREVIEW_KEY, title, chosen, topic, 100, rows, bug=bug_in(draft.typed))
    sheets = {PREVIEW_KEY: worksheet} if worksheet else {}
    return model_menu(Library(sheets, library.models, library.wording), PREVIEW_KEY, chosen)


def _variant(draft: WorksheetDraft) -> Variant | None:
    """The sheet with every row that can be asked, even while another field can't be used."""
    library, typed = draft.library, draft.typed
    model, topic = library.models.get(typed["model"]), typed["topic"]
    if model is None or not typed["all_rows"] or typed["rows_of"] != topic or topic not in TOPICS:
        return None
    notation: NotationKey = next((name for name in NOTATIONS if name == typed["notation"]), "classic")
    tokens = model.architecture.fixed_tokens or min(100, model.architecture.max_tokens)
    sheet = Worksheet(
        PREVIEW_KEY,
        "…",
        model.key,
        topic,
        draft.worksheet.tokens if draft.worksheet else tokens,
        typed["all_rows"],
        notation,
        typed["kv_head_per_query_head"],
        draft.worksheet.decoder_tokens if draft.worksheet else None,
        bug=bug_in(typed),
    )
    variant = Variant(sheet, model, sheet.tokens, library.wording)
    try:
        return variant if variant.table else None
    except TopicError:
        return None


def _bugs(library: Library, topic: str) -> dict[str, dict[str, str]]:
    words, groups = library.wording.bugs, dict[str, dict[str, str]]()
    for bug in TOPICS[topic].bugs if topic in TOPICS else ():
        groups.setdefault(words.programs[BUGS[bug].program_key], {})[bug] = words.bugs[bug].name
    return groups


def _built_in_hints(variant: Variant) -> Mapping[str, str]:
    """The first hint of each row by its key, which an author's hint replaces."""
    return {
        row.key: " ".join(dict.fromkeys(prose.nudge(variant, blank) for blank in row.blanks)) for row in variant.rows
    }


def _rows(draft: WorksheetDraft, variant: Variant | None) -> Mapping[str, Any]:
    """The name, note and letter of each row by its key, as far as they are known."""
    topic = draft.typed["rows_of"]
    words = draft.library.wording.topics[topic].rows if topic in TOPICS else {}
    names = {key: words[key].name.replace("{line}", "…") if key in words else key for key in draft.typed["all_rows"]}
    shown = {row.key: row for row in variant.rows} if variant else {}
    return {key: shown.get(key) or {"name": name, "note": "", "letter": ""} for key, name in names.items()}
