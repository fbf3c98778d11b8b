"""Daily work is done once a day on a machine, by the process that comes first, and again after a failure."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from app.machine.housekeeper import DAY_S, Housekeeper


def test_daily_work_is_done_once_a_day_by_one_process(tmp_path: Path) -> None:
    daily, often = list[int](), list[int]()

    def work(number: int) -> None:
        daily.append(number)
        time.sleep(0.3)

    keepers = [Housekeeper(tmp_path, lambda: often.append(0), lambda n=n: work(n)) for n in range(4)]  # type: ignore[misc]
    for _ in range(2):
        threads = [threading.Thread(target=keeper.tidy) for keeper in keepers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(daily) == 1
    assert len(often) == 8
    os.utime(tmp_path / "housekeeping-done", (time.time() - DAY_S - 1,) * 2)
    keepers[3].tidy()
    assert daily[1:] == [3]


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    tries = list[int]()

    def fail() -> None:
        tries.append(1)
        raise OSError

    keeper = Housekeeper(tmp_path, lambda: None, fail)
    keeper.tidy()
    keeper.tidy()
    assert len(tries) == 2
    keeper.start()
    keeper.close()


def test_frequent_work_that_fails_keeps_nothing_from_the_daily_work(tmp_path: Path) -> None:
    done = list[int]()

    def fail() -> None:
        raise OSError

    Housekeeper(tmp_path, fail, lambda: done.append(1)).tidy()
    assert done == [1]
