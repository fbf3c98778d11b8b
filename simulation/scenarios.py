"""What a class does together: a lesson, joining, handing in at once, a steady stream of saves, a dying server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence

from simulation.class_students import ClassStudent, Timings, watch_live_view
from simulation.lesson import Lesson

SAVE_PAUSE_S = 3.0  # between two saves of one student in a lesson
JOIN_TOGETHER = 20  # students in a group


async def hold_lesson(lesson: Lesson, students: Sequence[ClassStudent], timings: Timings, length_s: float) -> None:
    """All join in the first quarter, save every three seconds, and hand in within the last quarter."""
    watching = asyncio.create_task(watch_live_view(lesson, timings))
    begin = time.perf_counter()
    await asyncio.gather(*(_attend(student, begin, length_s, len(students)) for student in students))
    watching.cancel()


async def _attend(student: ClassStudent, begin: float, length_s: float, class_size: int) -> None:
    share = student.number / class_size
    await asyncio.sleep(share * length_s / 4)
    await student.join()
    last_save, next_save = begin + (0.75 + share / 4) * length_s - 0.5, time.perf_counter()
    while (next_save := next_save + SAVE_PAUSE_S) < last_save:
        await asyncio.sleep(next_save - time.perf_counter())
        await student.save()
    await asyncio.sleep(max(0.0, last_save - time.perf_counter()))
    await student.hand_in()


async def join_all(students: Sequence[ClassStudent]) -> None:
    """All join and save once, one group of JOIN_TOGETHER after another."""
    for group in (students[start : start + JOIN_TOGETHER] for start in range(0, len(students), JOIN_TOGETHER)):
        await asyncio.gather(*(student.join() for student in group))
        await asyncio.gather(*(student.save() for student in group))


async def hand_in_together(students: Sequence[ClassStudent], within_s: float) -> float:
    """All hand in at random moments within so many seconds; return the seconds until the last acknowledgement."""
    chance, begin = random.Random(1), time.perf_counter()  # noqa: S311 - so that it can be repeated

    async def hand_in_after(student: ClassStudent, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        await student.hand_in()

    await asyncio.gather(*(hand_in_after(student, chance.uniform(0, within_s)) for student in students))
    return time.perf_counter() - begin


async def save_steadily(students: Sequence[ClassStudent], per_second: float, length_s: float) -> None:
    """Start saves at a steady rate, students in turn, whether earlier ones are answered or not."""
    begin = time.perf_counter()

    async def save_in_turn(student: ClassStudent, first_turn: int) -> None:
        for turn in range(first_turn, int(per_second * length_s), len(students)):
            await asyncio.sleep(max(0.0, begin + turn / per_second - time.perf_counter()))
            await student.save()

    await asyncio.gather(*(save_in_turn(student, number) for number, student in enumerate(students)))


async def work_during(
    students: Sequence[ClassStudent], trouble: Callable[[asyncio.Event], Awaitable[object]], most_pause_s: float = 0.2
) -> None:
    """All save repeatedly during `trouble`, and hand in once it sets its event."""
    chance, stop = random.Random(2), asyncio.Event()  # noqa: S311 - so that it can be repeated

    async def work(student: ClassStudent) -> None:
        while not stop.is_set():
            await student.save()
            await asyncio.sleep(chance.uniform(0, most_pause_s))
        await student.hand_in()

    await asyncio.gather(trouble(stop), *(work(student) for student in students))


async def work_while_server_dies(
    lesson: Lesson, students: Sequence[ClassStudent], kills: int, pause_s: tuple[float, float]
) -> None:
    """Kill and restart the server repeatedly while all save; the last time while they hand in."""
    chance = random.Random(2)  # noqa: S311 - so that it can be repeated

    async def kill_and_restart(stop: asyncio.Event) -> None:
        for number in range(kills):
            if number == kills - 1:
                stop.set()
            await asyncio.sleep(chance.uniform(*pause_s))
            await asyncio.to_thread(lesson.server.kill)
            await asyncio.to_thread(lesson.server.start)

    await work_during(students, kill_and_restart)
