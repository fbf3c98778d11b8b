"""One piece of work at a time: visitors have a few places each, leave some free, and give way to members."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from app.machine import work_queue
from app.machine.work_queue import THE_APP, Client, QueueFullError, WorkQueue

ADA, KIM = Client("teacher 1"), Client("student 1")


def visitor(number: int) -> Client:
    return Client(f"192.0.2.{number}", is_member=False)


class Waiting:
    """Threads that wait for their turn, while the test holds it; `order` is who had it, in turn."""

    def __init__(self, queue: WorkQueue) -> None:
        self.queue, self.order = queue, list[Client]()
        self.threads = list[threading.Thread]()

    def add(self, client: Client) -> None:
        """Let a client wait; returns once it has its place."""
        before = len(self.queue)
        self.threads.append(threading.Thread(target=self._work, args=(client,)))
        self.threads[-1].start()
        while len(self.queue) == before:
            threading.Event().wait(0.01)

    def _work(self, client: Client) -> None:
        with self.queue.turn(client):
            self.order.append(client)


def test_members_go_first_and_each_has_the_turn_alone() -> None:
    queue = WorkQueue(12, reserved=4, of_visitor=3)
    waiting = Waiting(queue)
    with queue.turn(visitor(1)):
        for client in (visitor(2), visitor(3), KIM, visitor(2), ADA):
            waiting.add(client)
        assert waiting.order == []
    for thread in waiting.threads:
        thread.join(60)
    assert {*waiting.order[:2]} == {KIM, ADA}
    assert len(waiting.order) == 5
    assert len(queue) == 0


def test_visitors_leave_places_to_members() -> None:
    queue = WorkQueue(12, reserved=4, of_visitor=3)
    waiting = Waiting(queue)
    with ExitStack() as held:
        held.enter_context(queue.turn(THE_APP))
        for number in (1, 1, 1, 2, 2, 2, 3, 3):
            waiting.add(visitor(number))
        for refused in (visitor(1), visitor(3), visitor(4)):
            with pytest.raises(QueueFullError), queue.turn(refused):
                pass
        for client in (ADA, KIM, THE_APP):
            waiting.add(client)
        with pytest.raises(QueueFullError), queue.turn(ADA):
            pass
    for thread in waiting.threads:
        thread.join(60)
    assert len(waiting.order) == 11


def test_who_gives_up_leaves_the_place() -> None:
    queue = WorkQueue(12, reserved=4, of_visitor=3)

    def give_up() -> None:
        raise TimeoutError

    with queue.turn(visitor(1)), pytest.raises(TimeoutError), queue.turn(ADA, give_up):
        pass
    assert len(queue) == 0
    with queue.turn(visitor(2), give_up):
        assert len(queue) == 1


def test_a_visitors_work_ends_for_a_member_who_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = WorkQueue(12, reserved=4, of_visitor=3)
    waiting = Waiting(queue)
    with queue.turn(visitor(1)):
        waiting.add(visitor(2))
        monkeypatch.setattr(work_queue, "MEMBER_WAIT_S", -1.0)
        queue.check_patience(visitor(1))
        waiting.add(ADA)
        with pytest.raises(QueueFullError):
            queue.check_patience(visitor(1))
        queue.check_patience(KIM)
        monkeypatch.setattr(work_queue, "MEMBER_WAIT_S", 60.0)
        queue.check_patience(visitor(1))
    for thread in waiting.threads:
        thread.join(60)
    assert waiting.order == [ADA, visitor(2)]
