"""A child process does the work, gives its memory back, and is ended when it takes too much of anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from app.machine import child as child_module
from app.machine.child import ChildLost, ChildTooLarge, ChildTooSlow, WarmChild, enter_child
from app.settings import PROJECT

PATIENCE_S = 600  # for a test on a busy machine: a child works when nobody else does
PARENT = """
import sys
from app.machine.child import WarmChild
from tests.machine.test_child import serve

if __name__ == "__main__":
    child = WarmChild("test", serve, idle_limit_s=60)
    print(child.ask("who", 60)[1], flush=True)
    child.ask("sleep", 60)
"""


def serve(pipe: Connection) -> None:
    """A child that tells its process id, sleeps, grows by 200 MB, or dies, as it is asked to."""
    threads = enter_child()
    pipe.send(("ready", None))
    hoard = list[bytes]()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        if job == "sleep":
            time.sleep(60)
        elif job == "grow":
            hoard.append(os.urandom(1) * 200_000_000)
            pipe.send(("progress", 50))
            time.sleep(0.5)
        elif job == "die":
            os._exit(1)
        elif job == "niceness":
            score = Path("/proc/self/oom_score_adj")
            killed = score.read_text().strip() if score.exists() else "1000"
            pipe.send(("done", (os.nice(0), killed, os.sched_getscheduler(0))))
            continue
        elif job == "cores":
            pipe.send(("done", (threads, os.sched_getaffinity(0))))
            continue
        pipe.send(("done", os.getpid()))


@pytest.fixture
def child() -> Iterator[WarmChild]:
    """A child that is kept until the test ends."""
    warm = WarmChild("test", serve, idle_limit_s=60, start_limit_s=PATIENCE_S)
    yield warm
    warm.close()


def test_a_child_gives_way_to_the_app(child: WarmChild) -> None:
    assert child.ask("niceness", PATIENCE_S) == ("done", (min(os.nice(0) + 10, 19), "1000", os.sched_getscheduler(0)))


def test_a_child_leaves_one_core_to_the_app(child: WarmChild) -> None:
    cores = sorted(os.sched_getaffinity(0))
    left = set(cores[:-1] or cores)
    assert child.ask("cores", PATIENCE_S) == ("done", (len(left), left))


def test_a_child_nobody_waits_for_works_when_nothing_else_does() -> None:
    warm = WarmChild("test", serve, idle_limit_s=60, idle_time_only=True)
    running = warm._start()  # on a busy machine it would have no time to answer
    assert running.process.pid
    assert os.sched_getscheduler(running.process.pid) == os.SCHED_IDLE
    running.process.kill()
    running.process.join()
    running.pipe.close()


def test_a_child_that_takes_too_much_is_ended_and_the_next_call_has_another(child: WarmChild) -> None:
    first = child.ask("who", PATIENCE_S)[1]
    child.memory_limit = 150_000_000
    with pytest.raises(ChildTooLarge):
        child.ask("grow", PATIENCE_S)
    with pytest.raises(ChildTooSlow):
        child.ask("sleep", 0.3)
    with pytest.raises(ChildLost):
        child.ask("die", PATIENCE_S)

    def give_up() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        child.ask("sleep", PATIENCE_S, on_tick=give_up)
    assert not psutil.pid_exists(first)
    assert child.ask("who", PATIENCE_S)[1] != first


def test_a_child_that_has_grown_is_not_kept(child: WarmChild) -> None:
    child.kept_memory = 150_000_000
    progress = list[int]()
    kind, process_id = child.ask("grow", PATIENCE_S, progress.append)
    assert (kind, progress) == ("done", [50])
    assert not child.is_running
    assert not psutil.pid_exists(process_id)


def test_a_child_at_work_ends_with_the_app() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        process_id = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    for _ in range(1200):
        try:
            if psutil.Process(process_id).status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            return
        time.sleep(0.05)
    raise AssertionError(process_id)


def test_a_call_can_be_given_up_while_its_child_starts() -> None:
    warm = WarmChild("test", never_ready, idle_limit_s=60, start_limit_s=PATIENCE_S)
    ticks = iter(range(3))
    with pytest.raises(StopIteration):
        warm.ask("who", PATIENCE_S, on_tick=lambda: next(ticks))
    assert not warm.is_running
    warm.close()


def never_ready(_pipe: Connection) -> None:
    """A child that does not come to its work."""
    time.sleep(PATIENCE_S)


@pytest.mark.slow
def test_a_child_that_dies_as_it_starts_is_started_three_times(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(child_module, "PAUSE_BETWEEN_STARTS_S", 0)
    warm = WarmChild("test", partial(die_at_start, tmp_path), idle_limit_s=60, start_limit_s=PATIENCE_S)
    for _ in range(2):
        with pytest.raises(ChildLost):
            warm.ask("who", PATIENCE_S)
        assert len(list(tmp_path.iterdir())) == 3
    assert ["exit code 7" in record.getMessage() for record in caplog.records] == [True]
    monkeypatch.setattr(warm, "_rests_until", 0)
    with pytest.raises(ChildLost):
        warm.ask("who", PATIENCE_S)
    assert len(list(tmp_path.iterdir())) == 6
    warm.close()


def die_at_start(folder: Path, _pipe: Connection) -> None:
    """A child that notes that it was started, and ends."""
    (folder / str(os.getpid())).touch()
    os._exit(7)


@pytest.mark.slow
def test_a_parent_from_standard_input_is_told_why_it_has_no_child() -> None:
    program = PARENT.replace('if __name__ == "__main__":', "if True:")
    told = subprocess.run(
        [sys.executable, "-"], input=program, cwd=PROJECT, capture_output=True, text=True, timeout=600
    )
    assert "ChildLost" in told.stderr
    assert told.stderr.count("FileNotFoundError") == 3
    assert "standard input cannot start any" in told.stderr
