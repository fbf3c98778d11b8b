"""/worksheets: the worksheets and exit tickets that a teacher can use: their own, their courses’, the library’s."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response

from app.classes.materials import with_materials
from app.names import name_key
from app.sheets.library import Library
from app.sheets.worksheet import Worksheet
from app.store import Material, TaughtCourse, Teacher
from app.topics.registry import TOPICS
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.forms import MAX_LINE, Pager, cut_page
from app.web.shared.model_menu import ModelMenu, model_menu
from app.web.shared.permissions import SignedIn
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import Drawing, draw_typed
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

FIRST_MODEL = "llama-7b"


@dataclass(frozen=True)
class MaterialQuery:
    """The filter of the list: words, the key of a topic, the key of a model, and a kind; "" for all."""

    words: str = ""
    topic: str = ""
    model: str = ""
    kind: str = ""

    def finds(self, line: MaterialLine) -> bool:
        """Whether a line has the query's topic, model and kind, if given, and contains all its words."""
        text = name_key(f"{line.title} {line.topic_name} {line.model_name}")
        return (
            (not self.topic or line.topic == self.topic)
            and (not self.model or self.model in line.models)
            and (not self.kind or line.kind == self.kind)
            and all(word in text for word in name_key(self.words).split())
        )


@dataclass(frozen=True)
class MaterialLine:
    """A worksheet or exit ticket in the list; missing fields, such as a ticket's topic, are empty.

    `group` is the part of the list: "mine", the id of a course as text, or "library".
    """

    group: str
    key: str
    title: str
    kind: str
    topic: str = ""
    topic_name: str = ""
    models: tuple[str, ...] = ()
    model_name: str = ""
    size: str = ""  # tokens or questions
    material: Material | None = None
    can_edit: bool = False
    problem: str = ""  # why it can't be used


@dataclass(frozen=True)
class MaterialTopic:
    """The lines of one topic, or of exit tickets, and a drawing of the first sheet, filled in, if it has one."""

    name: str
    lines: tuple[MaterialLine, ...]
    drawing: Drawing | None = None


@dataclass(frozen=True)
class MaterialGroup:
    """One part of the list: its key and name, its course, if any, and its lines on this page.

    `topics` are the same lines by topic, only in the library.
    """

    key: str
    name: str
    lines: tuple[MaterialLine, ...]
    course: TaughtCourse | None = None
    topics: tuple[MaterialTopic, ...] = ()


@dataclass(frozen=True)
class MaterialListPage:
    """Everything that templates/materials/material_list.html shows."""

    teacher: Annotated[Teacher, Doc("The teacher who is signed in.")]
    query: Annotated[MaterialQuery, Doc("What was searched for.")]
    groups: Annotated[tuple[MaterialGroup, ...], Doc("The parts of the list, as far as they are on this page.")]
    pager: Annotated[Pager, Doc("Which page of the list this is.")]
    topics: Annotated[Mapping[str, str], Doc("The names of all topics, by key.")]
    models: Annotated[Mapping[str, str], Doc("The names of the models that something in the list has, by key.")]
    model_menu: Annotated[ModelMenu, Doc("The models that a new worksheet can be about.")]
    removed: Annotated[tuple[Material, ...], Doc("What was removed and can be put back.")]
    notice: Annotated[str, Doc("The sentence about what was just done, empty for none.")] = ""


@router.get("/worksheets")
def list_materials(request: Request, services: ServicesDep, teacher: SignedIn) -> Response:
    """One `page` of the teacher's readable materials and the library's, in groups, filtered by the query."""
    values = request.query_params
    query = MaterialQuery(
        values.get("words", "").strip()[:MAX_LINE], *(values.get(name, "") for name in ("topic", "model", "kind"))
    )
    taught = {str(each.course.id): each for each in services.store.courses.taught_by(teacher)}
    lines = list(_all_lines(services, teacher, taught))
    shown, pager = cut_page([line for line in lines if query.finds(line)], values.get("page", ""))
    models = {key: line.model_name for line in lines if line.topic for key in line.models[:1]}
    page = MaterialListPage(
        teacher,
        query,
        _groups(services.library, shown, taught, is_whole=query == MaterialQuery() and pager.number <= 1),
        pager,
        {topic: services.library.wording.topics[topic].name for topic in TOPICS},
        dict(sorted(models.items(), key=lambda item: item[1].casefold())),
        model_menu(services.library, "", query.model or FIRST_MODEL),
        services.store.materials.removed(teacher),
        {"removed": _("It is removed. You can put it back within 30 days, at the end of this page.")}.get(
            values.get("done", ""), ""
        ),
    )
    return render("materials/material_list.html", page)


def _all_lines(services: Services, teacher: Teacher, taught: Mapping[str, TaughtCourse]) -> Iterator[MaterialLine]:
    library, materials = services.library, services.store.materials.readable_by(teacher)
    usable = with_materials(library, {}, services.store, materials)
    for key in ("mine", *taught):
        for material in materials:
            if key == str(material.course_id or "mine"):
                may_edit = key == "mine" or taught[key].can_edit
                yield _own_line(usable.library, key, material, may_edit, usable.unusable.get(material.id, ""))
    for sheet in library.worksheets.values():
        yield _sheet_line(library, "library", sheet)
    for ticket in services.tickets.values():
        yield MaterialLine("library", ticket.key, ticket.title, "ticket", size=_questions(len(ticket.questions)))


def _own_line(library: Library, group: str, material: Material, can_edit: bool, problem: str) -> MaterialLine:
    about: dict[str, Any] = {"material": material, "can_edit": can_edit, "problem": problem}
    if sheet := library.worksheets.get(material.key):
        return _sheet_line(library, group, sheet, **about)
    questions = material.content.get("questions")
    size = _questions(len(questions)) if material.kind == "ticket" and isinstance(questions, list) else ""
    return MaterialLine(group, material.key, material.title, material.kind, size=size, **about)


def _sheet_line(library: Library, group: str, sheet: Worksheet, **about: Any) -> MaterialLine:
    return MaterialLine(
        group,
        sheet.key,
        sheet.title,
        "worksheet",
        sheet.topic,
        library.wording.topics[sheet.topic].name,
        (sheet.model, *sheet.models),
        library.model(sheet.model).name,
        ngettext("{count} token", "{count} tokens", sheet.tokens).format(count=sheet.tokens),
        **about,
    )


def _questions(count: int) -> str:
    return ngettext("{count} question", "{count} questions", count).format(count=count)


def _groups(
    library: Library, lines: Iterable[MaterialLine], taught: Mapping[str, TaughtCourse], *, is_whole: bool
) -> tuple[MaterialGroup, ...]:
    names = {"mine": _("Mine"), **{key: each.course.title for key, each in taught.items()}, "library": _("Library")}
    by_group: dict[str, list[MaterialLine]] = {key: [] for key in names}
    for line in lines:
        by_group[line.group].append(line)
    return tuple(
        MaterialGroup(
            key,
            name,
            tuple(by_group[key]),
            taught.get(key),
            tuple(_topics(library, by_group[key])) if key == "library" else (),
        )
        for key, name in names.items()
        if by_group[key] or (is_whole and key != "library" and not (key in taught and taught[key].course.archived_at))
    )


def _topics(library: Library, lines: Iterable[MaterialLine]) -> Iterator[MaterialTopic]:
    by_topic: dict[str, list[MaterialLine]] = {}
    for line in lines:
        by_topic.setdefault(line.topic, []).append(line)
    for topic, its_lines in by_topic.items():
        if not topic:
            yield MaterialTopic(_("Exit tickets"), tuple(its_lines))
            continue
        sheet = library.variant(its_lines[0].key)
        texts = {str(blank): sheet.notation.write(sheet.expression(blank)) for blank in sheet.blanks}
        if sheet.worksheet.answers == "numbers":
            texts = {box: str(number) for box, number in sheet.key.items()}
        yield MaterialTopic(its_lines[0].topic_name, tuple(its_lines), draw_typed(sheet, texts, "root"))
