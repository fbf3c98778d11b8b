"""Materials: worksheets and exit tickets that teachers write, with every version that was saved."""

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
from .queries import QueryBase, from_row, hash_secret, insert_row
from .tables import courses, imported_model, material_versions, materials, staff, teachers, version_models

MaterialKind = Literal["worksheet", "ticket"]


@dataclass(frozen=True)
class Material:
    """A worksheet or an exit ticket of a course or of one teacher, as it was saved last. Either `course_id` or
    `teacher_id` is None.
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
    """One save of a material: its number, from 1, the settings, when and by whom ("" where the account is gone)."""

    number: int
    content: Mapping[str, Any]
    saved_at: datetime
    saved_by: str


@dataclass(frozen=True)
class MaterialSave:
    """What became of a save: the material as it is now, and whether it has what was to be saved. `is_stored` is
    False where somebody had saved another version first: nothing was changed, and that version is the material's
    newest.
    """

    material: Material
    is_stored: bool
    has_new_version: bool


class Materials(QueryBase):
    """Queries on materials. Those that were removed are found by `find_removed` and `removed` alone."""

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
        """Save settings that were changed from the version `based_on` as the newest version, numbered one higher."""
        this = (materials.c.id == material.id, materials.c.removed_at.is_(None))
        # One statement decides: of two servers that save at once, the second finds another number.
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
        """Save the settings of version `number` again, as the newest; None if there is no such version."""
        old = self.version(material, number)
        return self.save(material, material.version, old.content, teacher) if old else None

    def find(self, material_id: int) -> Material | None:
        """The material with that id; None if there is none, or it was removed."""
        return self._one(materials.c.id == material_id, materials.c.removed_at.is_(None))

    def find_removed(self, material_id: int) -> Material | None:
        """The material with that id that was removed and is still kept; None if there is none."""
        return self._one(materials.c.id == material_id, materials.c.removed_at.is_not(None))

    def find_shared(self, token: str) -> Material | None:
        """The material that the link with this token shares; None if no link has it, or the material was removed."""
        return self._one(materials.c.share_hash == hash_secret(token), materials.c.removed_at.is_(None))

    def versions(self, material: Material, first: int = 1, last: int | None = None) -> tuple[MaterialVersion, ...]:
        """The versions of a material from the number `first` to `last`, or to the newest; the newest first."""
        number = material_versions.c.number
        return self._versions(material, number >= first, *([] if last is None else [number <= last]))

    def version(self, material: Material, number: int) -> MaterialVersion | None:
        """The version of that number; None if there is none."""
        return next(iter(self._versions(material, material_versions.c.number == number)), None)

    # Lists: by title, those that were removed left out

    def of_course(self, course: Course) -> tuple[Material, ...]:
        """The materials of a course."""
        return self._all(materials.c.course_id == course.id)

    def usable_in(self, course: Course, teacher: Teacher) -> tuple[Material, ...]:
        """What a teacher may use in a course: the materials of the course and their own."""
        return self._all(sa.or_(materials.c.course_id == course.id, materials.c.teacher_id == teacher.id))

    def readable_by(self, teacher: Teacher) -> tuple[Material, ...]:
        """A teacher's own materials and those of every course they are on the staff of."""
        taught = sa.select(staff.c.course_id).where(staff.c.teacher_id == teacher.id)
        return self._all(sa.or_(materials.c.course_id.in_(taught), materials.c.teacher_id == teacher.id))

    def removed(self, teacher: Teacher) -> tuple[Material, ...]:
        """The removed materials that a teacher can put back, by title: their own, and those of some courses."""
        is_led = (staff.c.teacher_id == teacher.id, staff.c.role == "instructor", courses.c.archived_at.is_(None))
        led = sa.select(staff.c.course_id).join(courses, courses.c.id == staff.c.course_id).where(*is_led)
        owned = sa.or_(materials.c.course_id.in_(led), materials.c.teacher_id == teacher.id)
        return self._all(owned, removed=True)

    def titles(self, course: Course) -> dict[int, str]:
        """The titles of a course's materials by id, also of those that were removed."""
        query = sa.select(materials.c.id, materials.c.title).where(materials.c.course_id == course.id)
        return {row.id: row.title for row in self._fetch_all(query)}

    # What else can be done with one

    def move(self, material: Material, course: Course) -> bool:
        """Make a teacher's own material one of a course; False, with nothing changed, if it is a course's by now."""
        is_own = (materials.c.id == material.id, materials.c.course_id.is_(None))
        return self._execute(sa.update(materials).where(*is_own).values(course_id=course.id, teacher_id=None)) == 1

    def remove(self, material: Material, *, removed: bool = True) -> None:
        """Remove a material, or put it back if `removed` is False; a removed one is deleted after some weeks."""
        self._change(material, removed_at=self.now() if removed else None)

    def share(self, material: Material) -> str:
        """Make a link by which other teachers see and copy a material, and return its token; older links are void."""
        token = secrets.token_urlsafe(24)
        self._change(material, share_hash=hash_secret(token))
        return token

    def stop_sharing(self, material: Material) -> None:
        """Withdraw the link to a material."""
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
        row = self._fetch_one(_newest_versions().where(*conditions))
        return from_row(Material, row) if row else None

    def _all(self, condition: sa.ColumnElement[bool], *, removed: bool = False) -> tuple[Material, ...]:
        is_listed = materials.c.removed_at.is_not(None) if removed else materials.c.removed_at.is_(None)
        rows = self._fetch_all(_newest_versions().where(condition, is_listed))
        listed = [from_row(Material, row) for row in rows]
        return tuple(sorted(listed, key=lambda material: (name_key(material.title), material.id)))

    def _versions(self, material: Material, *conditions: sa.ColumnElement[bool]) -> tuple[MaterialVersion, ...]:
        query = (
            sa.select(material_versions.c.number, material_versions.c.content, *_SAVED)
            .join(teachers, teachers.c.id == material_versions.c.teacher_id, isouter=True)
            .where(material_versions.c.material_id == material.id, *conditions)
            .order_by(material_versions.c.number.desc())
        )
        return tuple(from_row(MaterialVersion, row) for row in self._fetch_all(query))


_LISTED = {"title": 200, "topic": 80, "model": 200}  # characters that their columns hold
_NAME = sa.func.coalesce(sa.func.nullif(teachers.c.name, ""), teachers.c.email, "")
_SAVED = (material_versions.c.at.label("saved_at"), _NAME.label("saved_by"))


def _newest_versions() -> sa.Select[Any]:
    names = ("id", "kind", "course_id", "teacher_id", "title", "topic", "model", "version", "removed_at")
    newest = (material_versions.c.material_id == materials.c.id, material_versions.c.number == materials.c.version)
    is_shared = materials.c.share_hash.is_not(None).label("is_shared")
    return (
        sa.select(*(materials.c[name] for name in names), is_shared, material_versions.c.content, *_SAVED)
        .join(material_versions, sa.and_(*newest))
        .join(teachers, teachers.c.id == material_versions.c.teacher_id, isouter=True)
    )


def models_named(content: Mapping[str, Any]) -> list[str]:
    """The distinct keys in "model" and "models" of a worksheet's settings; anything that is no text is ignored."""
    names = content.get("models")
    keys = (content.get("model"), *(names if isinstance(names, list) else ()))
    return [*dict.fromkeys(key for key in keys if isinstance(key, str))]


def _listed(content: Mapping[str, Any]) -> dict[str, str]:
    return {name: clean_line(str(content.get(name, "")), longest) for name, longest in _LISTED.items()}
