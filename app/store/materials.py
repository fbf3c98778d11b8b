"""Materials: worksheets and exit tickets that teachers write, with every saved version."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from app.names import clean_line, name_key

from .courses import Course
from .people import Teacher
from .queries import QueryBase, hash_secret, insert_row
from .tables import courses, imported_model, material_versions, materials, staff, teachers, version_models

MaterialKind = Literal["worksheet", "ticket"]


@dataclass(frozen=True)
class Material:
    """The last saved version of a worksheet or an exit ticket, owned by a course or by one teacher.

    Either `course_id` or `teacher_id` is None.
    """

    id: int
    kind: MaterialKind
    course_id: int | None
    teacher_id: int | None
    title: str
    topic: str
    model: str
    version: int
    is_shared: bool  # by a link
    removed_at: datetime | None
    content: Mapping[str, Any]
    saved_at: datetime
    saved_by: str

    @property
    def key(self) -> str:
        """Its key in a library, such as "own-12"."""
        return f"own-{self.id}"


@dataclass(frozen=True)
class MaterialVersion:
    """One save of a material: its number, from 1, the settings, when and by whom ("" if the account is gone)."""

    number: int
    content: Mapping[str, Any]
    saved_at: datetime
    saved_by: str


@dataclass(frozen=True)
class MaterialSave:
    """The result of a save: the material as it is now, and whether it was saved.

    `is_stored` is False if somebody else had saved a version first; then nothing was changed.
    """

    material: Material
    is_stored: bool
    has_new_version: bool


class Materials(QueryBase):
    """Queries on materials. Only `find_removed` and `removed` find removed ones."""

    def add(
        self, kind: MaterialKind, owner: Course | Teacher, teacher: Teacher, content: Mapping[str, Any]
    ) -> Material:
        """Add a material of `owner`, with these settings as version 1, saved by `teacher`; return it."""
        owned = {"course_id": owner.id} if isinstance(owner, Course) else {"teacher_id": owner.id}
        row = {"kind": kind, **owned, **_listed(content), "version": 1, "created_at": self.now()}
        with self.transaction() as connection:
            material_id = insert_row(connection, materials, row)
            self._add_version(connection, material_id, 1, teacher, content)
            return self._found(material_id)

    def save(self, material: Material, based_on: int, content: Mapping[str, Any], teacher: Teacher) -> MaterialSave:
        """Save settings edited from the version `based_on` as the next version."""
        this = (materials.c.id == material.id, materials.c.removed_at.is_(None))
        # Decided by one statement: of two servers saving at once, the second finds another number.
        update = sa.update(materials).where(*this, materials.c.version == based_on)
        with self.transaction() as connection:
            newest = self._found(material.id)
            if newest.content == content:
                return MaterialSave(newest, is_stored=True, has_new_version=False)
            values = {**_listed(content), "version": based_on + 1}
            is_stored = connection.execute(update.values(values)).rowcount == 1
            if is_stored:
                self._add_version(connection, material.id, based_on + 1, teacher, content)
            return MaterialSave(self._found(material.id), is_stored, has_new_version=is_stored)

    def restore(self, material: Material, number: int, teacher: Teacher) -> MaterialSave | None:
        """Save version `number`'s settings again as the newest version; None if it doesn't exist."""
        old = self.version(material, number)
        return self.save(material, material.version, old.content, teacher) if old else None

    def find(self, material_id: int) -> Material | None:
        """The material with that id; None if there is none, or it was removed."""
        return self._one(materials.c.id == material_id, materials.c.removed_at.is_(None))

    def find_removed(self, material_id: int) -> Material | None:
        """The removed material with that id, if it is still kept."""
        return self._one(materials.c.id == material_id, materials.c.removed_at.is_not(None))

    def find_shared(self, token: str) -> Material | None:
        """The material shared by the link with this token, or None."""
        return self._one(materials.c.share_hash == hash_secret(token), materials.c.removed_at.is_(None))

    def versions(self, material: Material, first: int = 1, last: int | None = None) -> tuple[MaterialVersion, ...]:
        """The versions of a material from number `first` to `last` (by default the newest), newest first."""
        number = material_versions.c.number
        return self._versions(material, number >= first, *([] if last is None else [number <= last]))

    def version(self, material: Material, number: int) -> MaterialVersion | None:
        return next(iter(self._versions(material, material_versions.c.number == number)), None)

    # Lists: by title, without removed materials

    def of_course(self, course: Course) -> tuple[Material, ...]:
        return self._all(materials.c.course_id == course.id)

    def usable_in(self, course: Course, teacher: Teacher) -> tuple[Material, ...]:
        """What a teacher may use in a course: the course's materials and their own."""
        return self._all(sa.or_(materials.c.course_id == course.id, materials.c.teacher_id == teacher.id))

    def readable_by(self, teacher: Teacher) -> tuple[Material, ...]:
        """A teacher's own materials and those of every course where they are on the staff."""
        taught = sa.select(staff.c.course_id).where(staff.c.teacher_id == teacher.id)
        return self._all(sa.or_(materials.c.course_id.in_(taught), materials.c.teacher_id == teacher.id))

    def removed(self, teacher: Teacher) -> tuple[Material, ...]:
        """The removed materials that a teacher can put back, by title: their own, and those of some courses."""
        is_led = (staff.c.teacher_id == teacher.id, staff.c.role == "instructor", courses.c.archived_at.is_(None))
        led = sa.select(staff.c.course_id).join(courses, courses.c.id == staff.c.course_id).where(*is_led)
        owned = sa.or_(materials.c.course_id.in_(led), materials.c.teacher_id == teacher.id)
        return self._all(owned, removed=True)

    def titles(self, course: Course) -> dict[int, str]:
        """The titles of a course's materials by id, including removed ones."""
        query = sa.select(materials.c.id, materials.c.title).where(materials.c.course_id == course.id)
        return {row.id: row.title for row in self._fetch_all(query)}

    # What else can be done with one

    def move(self, material: Material, course: Course) -> bool:
        """Move a teacher's own material to a course; False, changing nothing, if it already belongs to one."""
        is_own = (materials.c.id == material.id, materials.c.course_id.is_(None))
        return self._execute(sa.update(materials).where(*is_own).values(course_id=course.id, teacher_id=None)) == 1

    def remove(self, material: Material, *, removed: bool = True) -> None:
        """Remove a material, or put it back if `removed` is False; removed ones are deleted after 30 days."""
        self._change(material, removed_at=self.now() if removed else None)

    def share(self, material: Material) -> str:
        """Make a link that lets other teachers see and copy a material, and return its token.

        Older links stop working.
        """
        token = secrets.token_urlsafe(24)
        self._change(material, share_hash=hash_secret(token))
        return token

    def stop_sharing(self, material: Material) -> None:
        self._change(material, share_hash=None)

    def _change(self, material: Material, **values: Any) -> None:
        self._execute(sa.update(materials).where(materials.c.id == material.id).values(**values))

    def _add_version(
        self, connection: sa.Connection, material_id: int, number: int, teacher: Teacher, content: Mapping[str, Any]
    ) -> None:
        row = {"material_id": material_id, "number": number}
        rest = {"content": dict(content), "teacher_id": teacher.id, "at": self.now()}
        connection.execute(sa.insert(material_versions).values(row | rest))
        if imported := [row | {"model_key": key} for key in models_named(content) if imported_model(key)]:
            connection.execute(sa.insert(version_models), imported)

    def _found(self, material_id: int) -> Material:
        material = self._one(materials.c.id == material_id)
        assert material is not None  # noqa: S101 - it was there in this transaction
        return material

    def _one(self, *conditions: sa.ColumnElement[bool]) -> Material | None:
        return self._value(Material, _NEWEST_VERSIONS.where(*conditions))

    def _all(self, condition: sa.ColumnElement[bool], *, removed: bool = False) -> tuple[Material, ...]:
        is_listed = materials.c.removed_at.is_not(None) if removed else materials.c.removed_at.is_(None)
        listed = self._values(Material, _NEWEST_VERSIONS.where(condition, is_listed))
        return tuple(sorted(listed, key=lambda material: (name_key(material.title), material.id)))

    def _versions(self, material: Material, *conditions: sa.ColumnElement[bool]) -> tuple[MaterialVersion, ...]:
        query = (
            sa.select(material_versions.c.number, material_versions.c.content, *_SAVED)
            .join(teachers, teachers.c.id == material_versions.c.teacher_id, isouter=True)
            .where(material_versions.c.material_id == material.id, *conditions)
            .order_by(material_versions.c.number.desc())
        )
        return self._values(MaterialVersion, query)


_LISTED = {"title": 200, "topic": 80, "model": 200}  # the lengths of their columns in characters
_NAME = sa.func.coalesce(sa.func.nullif(teachers.c.name, ""), teachers.c.email, "")
_SAVED = (material_versions.c.at.label("saved_at"), _NAME.label("saved_by"))


_OF_MATERIAL = ("id", "kind", "course_id", "teacher_id", "title", "topic", "model", "version", "removed_at")
_NEWEST_VERSIONS = (
    sa.select(
        *(materials.c[name] for name in _OF_MATERIAL),
        materials.c.share_hash.is_not(None).label("is_shared"),
        material_versions.c.content,
        *_SAVED,
    )
    .join(
        material_versions,
        (material_versions.c.material_id == materials.c.id) & (material_versions.c.number == materials.c.version),
    )
    .join(teachers, teachers.c.id == material_versions.c.teacher_id, isouter=True)
)


def models_named(content: Mapping[str, Any]) -> list[str]:
    """The distinct keys in "model" and "models" of a worksheet's settings; anything that isn't text is ignored."""
    names = content.get("models")
    keys = (content.get("model"), *(names if isinstance(names, list) else ()))
    return [*dict.fromkeys(key for key in keys if isinstance(key, str))]


def _listed(content: Mapping[str, Any]) -> dict[str, str]:
    return {name: clean_line(str(content.get(name, "")), longest) for name, longest in _LISTED.items()}
