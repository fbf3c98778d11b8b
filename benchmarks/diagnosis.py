"""Simulated classes with a thousand seeds for each worksheet: what is said of misconceptions, slips, guesses and right
sheets.

A thousand take some three minutes; `python -m benchmarks.diagnosis --seeds 50` takes seconds. Aims: B 99.5, C 98, D 90,
E 100, F 95 in 100. A is no aim: what models hide (three key/value misconceptions where G = H) no seed can show.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from app.settings import PROJECT
from app.sheets.library import load_library
from simulation.simulated_sheets import SHARES, Tally, simulate_class


def report(seeds: int = 1000) -> Iterator[str]:
    """One line for each worksheet and one for all, in per cent; a dash where there was nothing to try."""
    library, total = load_library(PROJECT / "worksheets"), Tally()
    yield from (f"{letter}: {share}" for letter, share in zip("ABCDEF", SHARES, strict=True))
    yield f"{'':26}" + "".join(f"{letter:>8}" for letter in "ABCDEF")
    for worksheet in library.worksheets:
        figures = simulate_class(library, worksheet, range(seeds))
        total.update(figures)
        yield f"{worksheet:26}" + "".join(_percent(figures, share) for share in SHARES)
    yield f"{'all':26}" + "".join(_percent(total, share) for share in SHARES)
    yield f"{'sheets tried':26}" + "".join(f"{total.tried(share):8}" for share in SHARES)
    yield f"{'of them otherwise':26}" + "".join(f"{total[share, False]:8}" for share in SHARES)


def _percent(figures: Tally, share: str) -> str:
    return f"{100 * figures.share(share):8.2f}" if figures.tried(share) else f"{'-':>8}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    for line in report(parser.parse_args().seeds):
        print(line, flush=True)
