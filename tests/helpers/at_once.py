"""Threads that do the same at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable


def all_at_once(count: int, work: Callable[[int], None]) -> list[Exception]:
    """Run the same in several threads that start together; return what they raised."""
    barrier, problems = threading.Barrier(count), list[Exception]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems
