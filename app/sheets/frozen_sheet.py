"""A sheet as data: what it says, what it asks, and its key, so that it stays the same whatever happens to the library.

`sheet_data` writes a sheet as JSON values, which a `FrozenSheet` holds for the `Variant` made of them later.
Texts and key are then the frozen ones. Drawings, hints and diagnoses come from the app as it is, if its table asks and
answers the same; otherwise the sheet has none, and a table of only the frozen rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.table import Asked, Blank, Count, Joint, JointPart, OneOf, Tensor, TensorTable, WrittenPattern
from app.topics.problem import Problem
from app.topics.registry import NO_TOPIC


@dataclass(frozen=True, eq=False)
class FrozenSheet:
    """The values that `sheet_data` wrote for a sheet."""

    values: Mapping[str, Any]

    def asks_the_same(self, problem: Problem) -> bool:
        """Whether a problem has the frozen rows, answers and program."""
        today = {"asked": asked_data(problem), "key": key_data(problem), "program": program_data(problem)}
        return all(self.values[name] == value for name, value in today.items())

    def problem(self, architecture: Architecture) -> Problem:
        """What the sheet asks, in a table that says nothing about how its tensors are made."""
        asked = [_entry(key, values) for key, values in self.values["asked"].items()]
        table = TensorTable(
            NO_TOPIC,
            tuple(entry for entry in asked if isinstance(entry, Tensor)),
            tuple(entry for entry in asked if isinstance(entry, Count)),
            asks_parameters=True,
            questions=tuple(entry for entry in asked if isinstance(entry, OneOf | Joint)),
        )
        return Problem(NO_TOPIC, architecture, table, self.values["sizes"], tuple(self.values["asked"]))

    @property
    def texts(self) -> Mapping[str, Any]:
        """Title, description, asides, task, how to write, assumptions and footnote."""
        texts: Mapping[str, Any] = self.values["texts"]
        return texts

    @cached_property
    def letters(self) -> dict[str, str]:
        """The letter of each row by its key."""
        return {key: row["letter"] for key, row in self.values["rows"].items()}

    @cached_property
    def nudges(self) -> dict[str, str]:
        """The question next to each box when it is wrong, by the box's name."""
        return {name: box["nudge"] for name, box in self.values["boxes"].items()}

    def row(self, key: str) -> Mapping[str, Any] | None:
        """What the sheet says in a row: letter, name, note, code, points, step, options; None for other rows."""
        row: Mapping[str, Any] | None = self.values["rows"].get(key)
        return row

    def box(self, blank: Blank) -> Mapping[str, str] | None:
        """What the sheet calls a box, and the question next to it when it is wrong; None for other boxes."""
        box: Mapping[str, str] | None = self.values["boxes"].get(str(blank))
        return box


def asked_data(problem: Problem) -> dict[str, Any]:
    """What each row asks, as JSON values."""
    return {key: _entry_data(problem.table.askable[key]) for key in problem.rows}


def key_data(problem: Problem) -> dict[str, int]:
    return {str(blank): number for blank, number in problem.answers.items()}


def program_data(problem: Problem) -> list[str] | None:
    """The lines of the program that a sheet is about."""
    return list(problem.case.lines) if problem.case else None


def _entry_data(entry: Asked) -> dict[str, Any]:
    match entry:
        case Tensor():
            is_counted = "count" in entry.fields
            return {
                "kind": "tensor",
                "letter": entry.letter,
                "shape": list(map(str, entry.shape)),
                "counted": is_counted,
            }
        case Count():
            values = {name: getattr(entry, name) for name in ("letter", "unit", "rounds", "rounded", "dims")}
            return {"kind": "count", "total": str(entry.total), **values}
        case OneOf():
            kind = "pattern" if isinstance(entry, WrittenPattern) else "choice"
            return {"kind": kind, "options": list(entry.options), "right": entry.right, "letter": entry.letter,
                    "texts": list(entry.texts), "call": entry.call, "offers": entry.offers}  # fmt: skip
        case Joint():
            parts = [{"kind": part.kind, "right": str(part.right), "words": list(part.words)} for part in entry.parts]
            return {"kind": "joint", "parts": parts, "between": list(entry.between), "points": entry.points,
                    "letter": entry.letter, "reveals": entry.reveals}  # fmt: skip


def _entry(key: str, values: Mapping[str, Any]) -> Asked:
    others = {name: value for name, value in values.items() if name != "kind"}
    match values["kind"]:
        case "tensor":
            shape = tuple(map(Expression.parse, values["shape"]))
            return Tensor(key, values["letter"], shape, "hidden", parameter=values["counted"])
        case "count":
            return Count(key, **{**others, "total": Expression.parse(values["total"]), "formula": values["total"]})
        case "joint":
            parts = tuple(
                JointPart(part["kind"], Expression.parse(part["right"]), tuple(part["words"]))
                for part in values["parts"]
            )
            return Joint(key, **{**others, "parts": parts, "between": tuple(values["between"])})
        case kind:
            made = WrittenPattern if kind == "pattern" else OneOf
            return made(key, **{**others, "options": tuple(values["options"]), "texts": tuple(values["texts"])})
