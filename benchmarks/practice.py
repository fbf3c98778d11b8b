"""How long practice is: boxes that simulated beginners fill in, and that no sheet comes before what it builds on.

Ten thousand runs without grading take some minutes; `python -m benchmarks.practice --runs 100` takes seconds.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Iterator

from app.misconceptions.catalogue import MISCONCEPTIONS
from app.practice.levels import LEVELS
from app.practice.record import PracticeRecord, SheetResult
from app.practice.scheduler import Practice
from app.settings import PROJECT
from app.sheets.library import Library
from app.sheets.worksheet_files import load_library
from simulation.beginners import Beginner

BEGINNERS = 300
RUNS = 10_000
SHEETS_OF_A_RUN = 20
RUNS_OF_A_START = 50  # deal from the same random numbers, so that many of their sheets are made once
MOST_SHEETS = 300  # of a beginner on the way to the top


def report(beginners: int = BEGINNERS, runs: int = RUNS) -> Iterator[str]:
    """Median and most boxes to the decode step and to the top, and how many sheets came before what they build on."""
    library = load_library(PROJECT / "worksheets")
    to_decode, to_top = zip(*(boxes_of(library, Beginner(seed)) for seed in range(beginners)), strict=True)
    _, without_mistakes = boxes_of(library, Beginner(0, careful=True))
    for place, boxes in (("the decode step", to_decode), ("the top", to_top)):
        yield f"boxes to {place:15} median {statistics.median(boxes):6.0f}   most {max(boxes):6}"
    yield f"boxes to the top without a mistake {without_mistakes:6}"
    early = sum(sheets_too_early(library, seed) for seed in range(runs))
    yield f"sheets before what they build on, in {runs:,} runs of {SHEETS_OF_A_RUN}: {early}"


def boxes_of(library: Library, beginner: Beginner) -> tuple[int, int]:
    """How many boxes a beginner fills in before the first sheet of the decode step, and before all is passed."""
    filled, to_decode = 0, 0
    for step in beginner.practise(library, MOST_SHEETS):
        to_decode = to_decode or filled * (step.coming.level.key == "decode-step")
        filled += step.boxes
        if all(level.passed for level in Practice(library, step.record).progress()):
            break
    return to_decode, filled


def sheets_too_early(library: Library, seed: int) -> int:
    """How many sheets of one run are of a level whose prerequisites were not passed.

    At random, sheets are right, show a misconception or are skipped, levels are chosen, open or not, and tested.
    """
    chance = random.Random(seed)  # noqa: S311 - so that it can be repeated
    record, early = PracticeRecord(seed // RUNS_OF_A_START), 0
    before = {spec.key: set(spec.after) for spec in LEVELS}
    shown = {spec.topic: [each.key for each in MISCONCEPTIONS if spec.topic in each.predictions] for spec in LEVELS}
    for _ in range(SHEETS_OF_A_RUN):
        practice = Practice(library, record)
        coming, levels = practice.coming, {level.key for level in practice.levels}
        early += not before[coming.level.key] & levels <= set(record.passed)
        held = () if chance.random() < 0.6 else (chance.choice(shown[coming.level.topic]),)
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
