"""/worksheets/ID: a worksheet or exit ticket that a teacher wrote, its versions, its link, and its owner."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.materials import with_materials
from app.exchange.toml_text import write_toml
from app.handout.options import HandoutOptions, Paper
from app.sheets.exit_tickets import Ticket
from app.sheets.variant import Variant
from app.store import AuditAction, Course, Material, MaterialVersion, Teacher
from app.translation import gettext as _
from app.web.shared.cookies import SECRET_COOKIE, redirect_with_secret
from app.web.shared.forms import FormDep, Pager, cut_page, whole_number
from app.web.shared.handout_form import pdf_response
from app.web.shared.permissions import (
    EditableCourses,
    EditableMaterial,
    MaterialAccess,
    QueueClient,
    ReadableMaterial,
    RemovedMaterial,
    SharedMaterial,
    SignedIn,
)
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.sheet_view import QuestionView, RowView, question_views, row_views
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import public_url, url_for

router = APIRouter(include_in_schema=False)

MAX_VERSION = 10**6  # in an address or form
MAX_FILE_STEM = 60  # characters
VERSIONS_ON_A_PAGE = 7
MAX_CHANGED_LINES = 200  # lines of one version that are shown


@dataclass(frozen=True)
class MaterialContent:
    """What students would see: a sheet with empty rows, or an exit ticket, or why neither can be shown."""

    variant: Variant | None = None
    rows: tuple[RowView, ...] = ()
    questions: tuple[QuestionView, ...] = ()
    ticket: Ticket | None = None
    problem: str = ""


class ChangedLine(NamedTuple):  # there may be thousands
    """A line of the file that only one of two versions has."""

    kind: Literal["added", "removed"]
    text: str


@dataclass(frozen=True)
class VersionLine:
    """A version, with the number and the first of its file's lines that changed from the previous version."""

    version: MaterialVersion
    changes: tuple[ChangedLine, ...]
    changed: int

    @property
    def left_out(self) -> int:
        return self.changed - len(self.changes)


@dataclass(frozen=True)
class MaterialPage:
    """Everything that templates/materials/material.html shows."""

    access: Annotated[MaterialAccess, Doc("The worksheet or ticket, the teacher, and what they may do with it.")]
    content: Annotated[MaterialContent, Doc("What students would see of it.")]
    zone: Annotated[str, Doc("The time zone of the course, UTC for what belongs to no course.")]
    versions: Annotated[tuple[VersionLine, ...], Doc("Its versions, the newest first, on this page.")]
    pager: Annotated[Pager, Doc("Which page of the versions this is.")]
    courses: Annotated[tuple[Course, ...], Doc("The courses that it can be moved into.")]
    link: Annotated[str, Doc("The link that was just made, which is shown for some minutes; else empty.")] = ""
    notice: Annotated[str, Doc("The sentence about what was just done, empty for none.")] = ""
    # Further names that a sheet's rows need.
    variant: Annotated[Variant | None, Doc("The sheet of a worksheet that can be shown.")] = None
    rows: Annotated[tuple[RowView, ...], Doc("Its rows.")] = ()
    locked: Annotated[bool, Doc("Whether nothing can be typed: always.")] = True
    focused: Annotated[str, Doc("The box with the focus: none.")] = ""


@dataclass(frozen=True)
class SharedMaterialPage:
    """Everything that templates/materials/shared_material.html shows."""

    teacher: Annotated[Teacher, Doc("The teacher who is signed in.")]
    material: Annotated[Material, Doc("What somebody shared.")]
    content: Annotated[MaterialContent, Doc("What students would see of it.")]
    token: Annotated[str, Doc("The end of the link.")]
    variant: Annotated[Variant | None, Doc("The sheet of a worksheet that can be shown.")] = None
    rows: Annotated[tuple[RowView, ...], Doc("Its rows.")] = ()
    locked: Annotated[bool, Doc("Whether nothing can be typed: always.")] = True
    focused: Annotated[str, Doc("The box with the focus: none.")] = ""


@router.get("/worksheets/{material_id:int}")
def show_material(
    request: Request, services: ServicesDep, access: ReadableMaterial, courses: EditableCourses, done: str = ""
) -> Response:
    """A material as students would see it, its newest versions with their changes, and what the teacher can do
    with it.
    """
    notices = {
        "imported": _("The file is imported."),
        "restored": _("The older version is the newest again. The one before is still in the list."),
        "moved": _("It belongs to the course now."),
        "unshared": _("The link no longer works."),
        "put-back": _("It is back."),
    }
    material, store = access.material, services.store
    numbers, pager = cut_page(range(material.version, 0, -1), request.query_params.get("page", ""), VERSIONS_ON_A_PAGE)
    versions = tuple(_with_changes(store.materials.versions(material, numbers[-1] - 1, numbers[0]), len(numbers)))
    content, token = _content(services, material), request.cookies.get(SECRET_COOKIE, "")
    shared = store.materials.find_shared(token) if token and access.can_edit else None
    is_own_link = shared is not None and shared.id == material.id
    page = MaterialPage(
        access,
        content,
        access.course.time_zone if access.course else "UTC",
        versions,
        pager,
        courses if access.course is None else (),
        public_url(request, services.settings) + url_for("show_shared_material", token=token) if is_own_link else "",
        notices.get(done, ""),
        content.variant,
        content.rows,
    )
    return render("materials/material.html", page)


@router.get("/worksheets/{material_id:int}/file.toml")
def export_material(store: StoreDep, access: ReadableMaterial, version: str = "") -> Response:
    """The settings of a material as a TOML file, as in worksheets/ or worksheets/exit-tickets/."""
    number = whole_number(version, MAX_VERSION) or 0 if version else access.material.version
    saved = store.materials.version(access.material, number)
    if saved is None:
        raise HTTPException(404)
    stem = re.sub(r"[^a-z0-9]+", "-", access.material.title.lower()).strip("-")[:MAX_FILE_STEM].strip("-")
    name = f"{stem or access.material.key}{f'-{number}' if version else ''}.toml"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(write_toml(saved.content), headers=headers, media_type="application/toml")


@router.get("/worksheets/{material_id:int}/handout.pdf")
@in_threads("print")
def print_material(
    request: Request, services: ServicesDep, access: ReadableMaterial, client: QueueClient, paper: Paper = "letter"
) -> Response:
    """The newest version of a worksheet as PDF, named after its title: two half-sheets on a page, and the key."""
    material = access.material
    library = with_materials(services.library, {}, services.store, [material]).library
    if material.key not in library.worksheets:
        raise HTTPException(404)
    options = HandoutOptions(material.key, paper=paper, key="with")
    pdf = services.printer.render_small(library, options, "", client)
    return pdf_response(pdf, material.title)


@router.post("/worksheets/{material_id:int}/restore")
def restore_version(store: StoreDep, access: EditableMaterial, form: FormDep) -> Response:
    """Save the settings of the form's `version` again as the newest version, with its number in the audit log."""
    number = whole_number(form.raw("version"), MAX_VERSION) or 0
    with store.transaction():
        save = store.materials.restore(access.material, number, access.teacher)
        if save is None:
            raise HTTPException(404)
        if save.has_new_version:
            store.audit_log.record(access.teacher, AuditAction.MATERIAL_RESTORED, access.material, str(number))
    return _back(access, "restored" if save.is_stored else "")


@router.post("/worksheets/{material_id:int}/move")
def move_material(store: StoreDep, access: EditableMaterial, courses: EditableCourses, form: FormDep) -> Response:
    """Move a teacher's material into the form's `course`, with an audit entry, and go back to its page."""
    course = next((each for each in courses if str(each.id) == form.raw("course")), None)
    if course is None or access.course is not None:
        raise HTTPException(404)
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_MOVED, access.material):
        if not store.materials.move(access.material, course):  # another request has moved it meanwhile
            raise HTTPException(404)
    return _back(access, "moved")


@router.post("/worksheets/{material_id:int}/share")
def share_material(request: Request, store: StoreDep, access: EditableMaterial) -> Response:
    """Make a link by which every teacher signed in here can see and copy the material; an earlier link becomes void."""
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_SHARED, access.material):
        token = store.materials.share(access.material)
    address = url_for("show_material", material_id=access.material.id)
    return redirect_with_secret(request, f"{address}#share", token, address)


@router.post("/worksheets/{material_id:int}/stop-sharing")
def stop_sharing_material(store: StoreDep, access: EditableMaterial) -> Response:
    """Withdraw the link to a material, with an audit entry, and go back to its page."""
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_UNSHARED, access.material):
        store.materials.stop_sharing(access.material)
    return _back(access, "unshared")


@router.post("/worksheets/{material_id:int}/remove")
def remove_material(store: StoreDep, access: EditableMaterial) -> Response:
    """Remove a material, with an audit entry, and go to the list."""
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_REMOVED, access.material):
        store.materials.remove(access.material)
    return RedirectResponse(url_for("list_materials", done="removed"), 303)


@router.post("/worksheets/{material_id:int}/put-back")
def put_back_material(store: StoreDep, access: RemovedMaterial) -> Response:
    """Restore a removed material, with an audit entry, and go to its page."""
    with store.audit_log.recording(access.teacher, AuditAction.MATERIAL_PUT_BACK, access.material):
        store.materials.remove(access.material, removed=False)
    return _back(access, "put-back")


@router.get("/worksheets/shared/{token}")
def show_shared_material(services: ServicesDep, teacher: SignedIn, material: SharedMaterial, token: str) -> Response:
    """What somebody shared by a link, as students would see it, for copying."""
    content = _content(services, material)
    page = SharedMaterialPage(teacher, material, content, token, content.variant, content.rows)
    return render("materials/shared_material.html", page)


def _back(access: MaterialAccess, done: str) -> Response:
    values = {"done": done} if done else {}
    return RedirectResponse(url_for("show_material", material_id=access.material.id, **values), 303)


def _content(services: Services, material: Material) -> MaterialContent:
    materials = with_materials(services.library, {}, services.store, [material])
    if material.id in materials.unusable:
        return MaterialContent(problem=materials.unusable[material.id])
    if material.kind == "ticket":
        return MaterialContent(ticket=materials.tickets[material.key])
    variant = materials.library.variant(material.key)
    return MaterialContent(variant, row_views(variant, {}, None), question_views(variant, {}, locked=True))


def _with_changes(versions: Sequence[MaterialVersion], count: int) -> Iterator[VersionLine]:
    texts = [write_toml(version.content) for version in versions]
    for version, text, before in zip(versions[:count], texts, [*texts[1:], texts[-1]], strict=False):
        changes = changed_lines(before, text)
        yield VersionLine(version, changes[:MAX_CHANGED_LINES], len(changes))


def changed_lines(before: str, after: str) -> tuple[ChangedLine, ...]:
    """The lines that only one of two texts has, in order, each marked "removed" or "added"."""
    old, new = _numbered(before.splitlines()), _numbered(after.splitlines())
    place = {line: index for index, line in enumerate(new)}
    common = [(index, place[line]) for index, line in enumerate(old) if line in place]
    changed, old_from, new_from = list[ChangedLine](), 0, 0
    for old_to, new_to in [*_longest_growing(common), (len(old), len(new))]:
        changed += [ChangedLine("removed", line) for line, _number in old[old_from:old_to] if line]
        changed += [ChangedLine("added", line) for line, _number in new[new_from:new_to] if line]
        old_from, new_from = old_to + 1, new_to + 1
    return tuple(changed)


def _numbered(lines: Iterable[str]) -> list[tuple[str, int]]:
    counted, numbered = dict[str, int](), list[tuple[str, int]]()
    for line in lines:
        before = counted.get(line, 0)
        counted[line] = before + 1
        numbered.append((line, before))
    return numbered


def _longest_growing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    # the pair that ends the best choice of each length; of equal pairs, the last
    ends, before = list[int](), list[int]()
    values = list[int]()  # the second numbers of `ends`
    for index, (_first, second) in enumerate(pairs):
        length = bisect_left(values, second)
        before.append(ends[length - 1] if length else -1)
        if length == len(values):
            values.append(second)
            ends.append(index)
        else:
            values[length], ends[length] = second, index
    chosen, index = list[tuple[int, int]](), ends[-1] if ends else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]
