"""How well diagnoses do on simulated classes: misconceptions, slips, guesses and correct sheets of every worksheet.

A thousand seeds a worksheet take some three minutes; `python -m benchmarks.diagnosis --seeds 50` takes seconds. Targets
in per cent: B 99.5, C 98, D 90, E 100, F 95. A has no target: three key/value misconceptions cannot show on a model
whose key/value heads are as many as its query heads.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from app.settings import PROJECT
from app.sheets.library import load_library
from simulation.simulated_sheets import SHARES, Tally, simulate_class


def report(seeds: int = 1000) -> Iterator[str]:
    """A table in per cent, with a line for each worksheet and one for all; a dash where nothing was tried."""
    library, total = load_library(PROJECT / "worksheets"), Tally()
    yield from (f"{letter}: {share}" for letter, share in zip("ABCDEF", SHARES, strict=True))
    yield f"{'':26}" + "".join(f"{letter:>8}" for letter in "ABCDEF")
    for worksheet in library.worksheets:
        tally = simulate_class(library, worksheet, range(seeds))
        total.update(tally)
        yield f"{worksheet:26}" + "".join(_percent(tally, share) for share in SHARES)
    yield f"{'all':26}" + "".join(_percent(total, share) for share in SHARES)
    yield f"{'sheets tried':26}" + "".join(f"{total.tried(share):8}" for share in SHARES)
    yield f"{'of them wrong':26}" + "".join(f"{total[share, False]:8}" for share in SHARES)


def _percent(tally: Tally, share: str) -> str:
    return f"{100 * tally.share(share):8.2f}" if tally.tried(share) else f"{'-':>8}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    for line in report(parser.parse_args().seeds):
        print(line, flush=True)
