"""How far a record is, in words: levels and ideas, as the map and the panel around a sheet show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.practice.ideas import SHEETS_TO_SOLID, GroupState
from app.practice.levels import PracticeLevel
from app.practice.record import PracticeRecord
from app.practice.scheduler import NextReason, NextSheet, Practice
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.topics.registry import TOPICS
from app.topics.topic import Subject
from app.translation import gettext as _

LevelState = Literal["passed", "current", "open", "closed"]
Chapter = Literal["head", "layer", "parameters", "counts"]
CHAPTERS: Mapping[Subject, Chapter] = {
    "head": "head",
    "softmax": "head",
    "layer": "layer",
    "model": "layer",
    "parameters": "parameters",
    "counts": "counts",
}


@dataclass(frozen=True)
class LevelView:
    """One level on the map: its number (see `first_number`), its name, and how many of its sheets are done."""

    number: int
    key: str
    name: str
    chapter: Chapter
    state: LevelState
    done: int
    needed: int
    can_test_out: bool
    missed: tuple[str, ...] = ()
    before: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """How many of its sheets are still to be done."""
        return self.needed - self.done


@dataclass(frozen=True)
class MisconceptionGroupView:
    """The name of a misconception group, and its state by the record: new, growing, solid or again."""

    name: str
    state: GroupState
    state_text: str


@dataclass(frozen=True)
class PracticePanel:
    """What stands around a sheet of practice: its level, the way to the next, why this sheet comes, and the groups."""

    level: LevelView
    why: str  # empty where there is nothing to say, or the sheet is not the one that the record asks for
    testing: bool  # whether the sheet tests out of its level
    other_kind: Literal["letters", "numbers", ""]  # what sheets can be answered in instead, "" where there is no choice
    reached: str  # the level that this sheet leads up to, empty where it does not
    groups: tuple[MisconceptionGroupView, ...]
    sheets_to_solid: int = SHEETS_TO_SOLID
    course: str = ""  # whose teachers see how far the student is; empty for practice of one's own


def practice_panel(
    library: Library, record: PracticeRecord, after: PracticeRecord, variant: Variant | None
) -> PracticePanel:
    """The panel around a sheet: the level of `record`, how far it is to the next, and the state of every group."""
    practice, following = Practice(library, record), Practice(library, after)
    level = next(view for view in level_views(following) if view.key == practice.level.key)
    passed_now = practice.level.key in after.passed and practice.level.key not in record.passed
    return PracticePanel(
        level=level,
        why=_why_this_sheet(library.wording, practice.coming) if practice.coming.variant == variant else "",
        testing=record.testing,
        other_kind=("numbers" if record.in_letters else "letters") if practice.level.has_both_kinds else "",
        reached=level_name(library.wording, following.level) if passed_now and not following.all_passed else "",
        groups=group_views(following),
    )


def level_views(practice: Practice) -> tuple[LevelView, ...]:
    """Every level of the library with the record's progress, the lowest first."""
    return tuple(_level_view(practice, level) for level in practice.levels)


def first_number(practice: Practice) -> int:
    """The number of the lowest level: 0 if its sheets are in steps, which teach and don't test; else 1."""
    return 0 if TOPICS[practice.levels[0].topic].in_steps else 1


def _level_view(practice: Practice, level: PracticeLevel) -> LevelView:
    wording, passed, first = practice.library.wording, practice.record.passed, first_number(practice)
    before = [each for each in practice.levels if each.key in level.after and each.key not in passed]
    state: LevelState = "passed" if level.key in passed else "closed" if before else "open"
    return LevelView(
        number=first + practice.levels.index(level),
        key=level.key,
        name=level_name(wording, level),
        chapter=CHAPTERS[TOPICS[level.topic].subject],
        state="current" if level == practice.level and not practice.all_passed else state,
        done=len(level.steps) - (0 if level.key in passed else len(practice.steps_left(level))),
        needed=len(level.steps),
        can_test_out=not TOPICS[level.topic].in_steps,
        missed=tuple(wording.misconception_groups[group].name for group in practice.groups_missed_on(level)),
        before=tuple(
            _("{number}. {level}").format(number=first + practice.levels.index(each), level=level_name(wording, each))
            for each in before
        ),
    )


def group_views(practice: Practice) -> tuple[MisconceptionGroupView, ...]:
    """Every group of misconceptions with its state, also in a word ("learning" for "growing"), in catalogue order."""
    names = practice.library.wording.misconception_groups
    words: dict[GroupState, str] = {
        "new": _("new"),
        "growing": _("learning"),
        "solid": _("solid"),
        "again": _("look again"),
    }
    return tuple(
        MisconceptionGroupView(names[group].name, state, words[state]) for group, state in practice.groups.items()
    )


def level_name(wording: Wording, level: PracticeLevel) -> str:
    """The name of a level: that of its topic, with "with latent attention" added for a level about that."""
    name = wording.topics[level.topic].name
    return _("{level}, with latent attention").format(level=name) if level.about_latent_attention else name


def _why_this_sheet(wording: Wording, coming: NextSheet) -> str:
    sentences: dict[NextReason, str] = {
        "first": "",
        "more": "",
        "step": _("New level: {level}."),
        "back": _("This sheet comes back to something you missed: {groups}."),
        "test": _("Get all of this sheet right at the first check, and you have passed the level."),
        "mixed": _("You have passed every level. From now on sheets come from all of them; this one is from {level}."),
    }
    groups = ", ".join(wording.misconception_groups[group].name for group in coming.groups)
    return sentences[coming.reason].format(groups=groups, level=level_name(wording, coming.level))
