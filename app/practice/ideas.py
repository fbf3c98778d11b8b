"""What a record of practice tells of each misconception: where it showed, whether it waits, and what is solid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Literal

from app.misconceptions.catalogue import MISCONCEPTION_GROUPS, group_of
from app.misconceptions.predictions import PROBLEMS_REMEMBERED, cannot_tell_apart, expectations
from app.practice.record import PracticeRecord, SheetResult
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError
from app.topics.problem import Problem

SHEETS_TO_SOLID = 3  # all right, that could have shown a misconception of the group
FAILURES_TO_LOOK_AGAIN = 2  # sheets in a row that leave a group in doubt, though no misconception was named

# How well a group of misconceptions is overcome: not met; met; SHEETS_TO_SOLID sheets without them; held, and not
# avoided since.
GroupState = Literal["new", "growing", "solid", "again"]


@dataclass(frozen=True)
class PastSheet:
    """A result with its sheet opened again, and the misconceptions that this sheet can show unmistakably."""

    result: SheetResult
    variant: Variant
    shows: frozenset[str]

    def avoided(self, misconception: str) -> bool:
        """Whether the sheet would have shown this misconception, and left neither it nor its group in doubt."""
        in_doubt = misconception in self.result.held or group_of(misconception) in self.result.unexplained_groups
        return not in_doubt and misconception in self.shows

    def meets(self, group: str) -> bool:
        """Whether a misconception of this group would have shown on the sheet."""
        return not self.shows.isdisjoint(MISCONCEPTION_GROUPS[group])

    def missed(self, group: str) -> bool:
        """Whether a misconception of this group was held on the sheet, or the group was left in doubt."""
        return group in self.result.unexplained_groups or group in map(group_of, self.result.held)


def past_sheets(library: Library, record: PracticeRecord) -> list[PastSheet]:
    """The record's results with their sheets, oldest first; a code that opens no sheet any more is left out."""
    opened = ((result, _open_sheet(library, result.code)) for result in record.results)
    return [PastSheet(result, sheet, distinguishable_misconceptions(sheet)) for result, sheet in opened if sheet]


def _open_sheet(library: Library, code: str) -> Variant | None:
    try:
        return library.variant_from_code(code)
    except WorksheetError:
        return None


def distinguishable_misconceptions(variant: Variant) -> frozenset[str]:
    """The misconceptions that show on this sheet and that no other one, nor the right answer, looks like."""
    return _distinguishable(variant.problem)


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _distinguishable(problem: Problem) -> frozenset[str]:
    hidden = {key for confusion in cannot_tell_apart(problem) for key in confusion}
    return frozenset(entry.misconception for entry in expectations(problem)) - hidden


def misconceptions_to_repeat(past: Sequence[PastSheet]) -> dict[str, int]:
    """For each misconception that was held and not avoided since, how many sheets it has waited; longest first."""
    # For each, the turn of the last sheet that could show it, and whether that sheet left it in doubt without its being
    # diagnosed.
    waiting = dict[str, tuple[int, bool]]()
    for turn, sheet in enumerate(past):
        for misconception in list(waiting):
            if sheet.avoided(misconception):
                del waiting[misconception]
            elif misconception in sheet.shows:
                waiting[misconception] = turn, misconception not in sheet.result.held
        for misconception in sheet.result.held:
            # One that is held again on a sheet that cannot prove it keeps its old place in the queue.
            waiting.setdefault(misconception, (turn, False))
    return {
        misconception: len(past) - waiting[misconception][0]
        for misconception in sorted(waiting, key=waiting.__getitem__)
    }


def group_states(past: Sequence[PastSheet]) -> dict[str, GroupState]:
    """The state of every misconception group, in catalogue order."""
    again = {group_of(misconception) for misconception in misconceptions_to_repeat(past)}
    return {group: "again" if group in again else _group_state(group, past) for group in MISCONCEPTION_GROUPS}


def _group_state(group: str, past: Sequence[PastSheet]) -> GroupState:
    met = [sheet for sheet in past if sheet.meets(group)]
    last = met[-FAILURES_TO_LOOK_AGAIN:]
    if len(last) == FAILURES_TO_LOOK_AGAIN and all(group in sheet.result.unexplained_groups for sheet in last):
        return "again"
    # Among all sheets, as one may be held on a sheet that another one fills in alike, and that so does not meet it.
    since = takewhile(lambda sheet: not sheet.missed(group), reversed(past))
    right = sum(sheet.result.right and sheet.meets(group) for sheet in since)
    return "solid" if right >= SHEETS_TO_SOLID else "growing" if met else "new"
