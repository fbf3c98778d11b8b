"""Two days of a server in about ten minutes, by a clock that is put forward: memory, database, and what has expired."""

from __future__ import annotations

import argparse

from simulation.soak import HOURS, SoakResult, soak

VISITS_PER_HOUR = 60
MAX_MEMORY_GROWTH, MAX_DATABASE_GROWTH = 30_000_000, 1.1


def main() -> None:
    """Print a line for each hour, and at the end whether everything stayed flat and all that has expired is gone."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--visits", type=int, default=VISITS_PER_HOUR, help="visitors an hour")
    parser.add_argument("--hours", type=int, default=HOURS, help="hours of each day")
    arguments = parser.parse_args()
    for step in soak(arguments.visits, arguments.hours):
        if isinstance(step, SoakResult):
            flat = step.memory_growth <= MAX_MEMORY_GROWTH and step.database_growth <= MAX_DATABASE_GROWTH
            print(f"left over after 400 days: {step.left_over or 'nothing'}")
            print(
                f"second day against the first: memory {step.memory_growth / 1e6:+.1f} MB, "
                f"database × {step.database_growth:.2f}: {'flat' if flat else 'GROWING'}"
            )
        else:
            print(step, flush=True)


if __name__ == "__main__":
    main()
