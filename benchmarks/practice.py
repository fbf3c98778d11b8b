"""How long practice is: boxes that simulated beginners fill in, and that no sheet comes before what it builds on.

All of it takes some minutes; `python -m benchmarks.practice --beginners 100 --runs 100` takes seconds.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Iterator, Sequence
from itertools import takewhile

from app.misconceptions.catalogue import MISCONCEPTIONS
from app.practice.record import PracticeRecord, SheetResult
from app.practice.scheduler import Practice
from app.settings import PROJECT
from app.sheets.library import Library
from app.sheets.worksheet_files import load_library
from app.topics.registry import LEVELS
from simulation.beginners import Beginner

BEGINNERS, BEGINNERS_TO_TOP = 10_000, 300
RUNS = 10_000
SHEETS_OF_A_RUN = 20
RUNS_OF_A_START = 50  # deal from the same random numbers, so that many of their sheets are made once
MOST_SHEETS = 300  # of a beginner on the way to the top
DECODE, MOST_BOXES = "decode-step", 120  # to fill in before its first sheet


def report(beginners: int = BEGINNERS, runs: int = RUNS) -> Iterator[str]:
    """Median and most boxes to the decode step and to the top, and how many sheets came before what they build on."""
    library = load_library(PROJECT / "worksheets")
    to_decode = [boxes_to_decode(library, Beginner(seed)) for seed in range(beginners)]
    beyond = sum(boxes > MOST_BOXES for boxes in to_decode)
    yield f"{_boxes('the decode step', to_decode)}   beyond {MOST_BOXES}: {beyond} of {beginners:,}"
    to_top = [boxes_to_top(library, Beginner(seed)) for seed in range(min(beginners, BEGINNERS_TO_TOP))]
    yield f"{_boxes('the top', to_top)}   without a mistake {boxes_to_top(library, Beginner(0, careful=True))}"
    early = sum(sheets_too_early(library, seed) for seed in range(runs))
    yield f"sheets before what they build on, in {runs:,} runs of {SHEETS_OF_A_RUN}: {early}"


def _boxes(place: str, boxes: Sequence[int]) -> str:
    return f"boxes to {place:15} median {statistics.median(boxes):6.0f}   most {max(boxes):6}"


def boxes_to_decode(library: Library, beginner: Beginner) -> int:
    """How many boxes a beginner fills in before the first sheet of the decode step."""
    steps = takewhile(lambda step: step.coming.level.key != DECODE, beginner.practise(library, MOST_SHEETS))
    return sum(step.boxes for step in steps)


def boxes_to_top(library: Library, beginner: Beginner) -> int:
    """How many boxes a beginner fills in before all levels are passed."""
    filled = 0
    for step in beginner.practise(library, MOST_SHEETS):
        filled += step.boxes
        if Practice(library, step.record).all_passed:
            break
    return filled


def sheets_too_early(library: Library, seed: int) -> int:
    """How many sheets of one run are of a level whose prerequisites were not passed."""
    chance = random.Random(seed)  # noqa: S311 - so that it can be repeated
    record, early = PracticeRecord(seed // RUNS_OF_A_START), 0
    before = {spec.key: set(spec.after) for spec in LEVELS}
    shown = {spec.topic: [each.key for each in MISCONCEPTIONS if spec.topic in each.predictions] for spec in LEVELS}
    for _ in range(SHEETS_OF_A_RUN):
        practice = Practice(library, record)
        coming, levels = practice.coming, {level.key for level in practice.levels}
        early += not before[coming.level.key] & levels <= set(record.passed)
        keys = shown[coming.level.topic]  # none of a topic whose misconceptions differ from sheet to sheet
        held = (chance.choice(keys),) if keys and chance.random() > 0.6 else ()
        match chance.randrange(6):
            case 0:
                record = record.at_level(chance.choice(sorted(levels)), testing=chance.random() < 0.5)
            case 1:
                record = record.after_skipping()
            case _:
                record = practice.after(SheetResult(coming.variant.code, not held, held))
    return early


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beginners", type=int, default=BEGINNERS)
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    for line in report(arguments.beginners, arguments.runs):
        print(line, flush=True)
