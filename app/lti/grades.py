"""Grades for platforms' gradebooks: what students should have there is compared with what was sent, and sent.

Nothing is sent before students see their marks, and no request of a student waits for a platform.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from app.classes.gradebook import counted_attempts
from app.classes.student_sheet import best_scores
from app.lti.services import PlatformError, PlatformServices, ScoreRefusedError
from app.metrics import count_failure
from app.sheets.library import Library
from app.store import Activity, Platform, Store
from app.store.limits import failure_of
from app.store.lti_scores import GradedLink, Standing

SWEEP_EVERY_S = 5.0
ROUND_S = 30.0  # of sending, after which the next platform has its turn
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=30), timedelta(hours=1)  # after a platform could not be reached
MAX_DOUBLINGS = 7  # of the first wait, which reach the longest
SENDER_STOP_S = 5

log = logging.getLogger("attention_shapes")


def standings(library: Library, store: Store, activity: Activity, at: datetime) -> Mapping[int, Standing]:
    """What each student should have in a platform's gradebook, by student id, unrounded.

    A student whose marks aren't shown yet is left out, and so is one without any work, unless a grade has to be taken
    back.
    """
    policies, phase = activity.policies, activity.phase(at)
    points = best_scores(library, store, activity)
    found = dict[int, Standing]()
    if phase in ("draft", "waiting") or not sum(points):
        return found
    nothing = Standing(None, sum(points), None)
    if policies.marks_visible(phase, handed_in=False):
        found = {queued.student_id: nothing for queued in store.lti_scores.of_activity(activity.id)}
    made = store.grades.counted_scores({activity.id: policies.counting})
    for (student_id, sheet), attempt in counted_attempts(activity, made).items():
        if policies.marks_visible(phase, attempt.handed_in):
            earned = attempt.score / attempt.out_of * points[sheet] if attempt.out_of else 0.0
            others = found.get(student_id, nothing)
            newest = max(others.submitted_at or attempt.created_at, attempt.created_at)
            found[student_id] = replace(others, points=(others.points or 0.0) + earned, submitted_at=newest)
    for change in store.grades.overrides([activity.id]):
        if change.student_id in found or policies.marks_visible(phase, handed_in=False):
            before = found.get(change.student_id, nothing)
            found[change.student_id] = replace(before, points=change.points)
    return found


class GradeSender:
    """Sends grades to platforms in its own thread. With several processes, each link is one's at a time."""

    def __init__(self, library: Library, store: Store, services: PlatformServices) -> None:
        self._library, self._store, self._services = library, store, services
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Sweep every SWEEP_EVERY_S, until `close`."""
        self._thread = threading.Thread(target=self._run, name="grades", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after the score that it is sending."""
        self._stopped.set()
        if self._thread:
            self._thread.join(SENDER_STOP_S)

    def sweep(self) -> None:
        """Bring every link's grades up to date at its platform, as far as the platform answers."""
        activities = self._store.activities.linked()
        platforms = {platform.id: platform for platform in self._store.lti.platforms()}
        unreachable = set[int]()
        for link in self._store.lti_scores.links():
            if self._stopped.is_set():
                return
            activity = activities.get(link.activity_id)
            if activity is None or link.platform_id in unreachable:
                continue
            marker = self._marker(link, activity)
            if (link.has_waiting or marker != link.marker) and self._store.lti_scores.claim(link):
                try:
                    is_reached = self._update(link, platforms[link.platform_id], marker)
                except Exception:  # the lease ends by itself; one link must not hold up the others
                    count_failure("grades")
                    log.exception("the grades of link %s could not be sent; trying again", link.id)
                else:
                    unreachable |= set() if is_reached else {link.platform_id}

    def _run(self) -> None:
        while not self._stopped.wait(SWEEP_EVERY_S):
            try:
                self.sweep()
            except Exception as error:
                count_failure("grades")
                if failure_of(error) is None:
                    log.exception("looking for grades to send failed; trying again")

    def _marker(self, link: GradedLink, activity: Activity) -> str:
        """What the grades of a link depend on, hashed: while it stays the same, nothing needs computing."""
        phase = activity.phase(self._store.now())
        # Only here do marks become visible without a new attempt: when a checked one is handed in.
        waits = activity.policies.feedback == "after_hand_in" and phase != "closed"
        handed_in = self._store.lti_scores.count_handed_in(activity.id) if waits else 0
        state = (link.newest, handed_in, phase, activity.revision, activity.policies)
        return hashlib.sha256(repr(state).encode()).hexdigest()

    def _update(self, link: GradedLink, platform: Platform, marker: str) -> bool:
        """Queue what has changed, and send what waits; False if the platform is too slow, or can't be reached."""
        store = self._store
        activity = store.activities.find(link.activity_id)
        if activity is None:
            return True
        if marker != link.marker:
            store.lti_scores.want(link, standings(self._library, store, activity, store.now()), marker)
        until, tries = time.monotonic() + ROUND_S, link.tries
        for due in store.lti_scores.due(link):
            if self._stopped.is_set() or time.monotonic() > until:
                store.lti_scores.release(link)
                return False
            try:
                self._services.send_score(platform, link.lineitem_url, due.sub, due.standing)
            except ScoreRefusedError as error:
                store.lti_scores.settle(link, due, str(error))
            except PlatformError as error:
                wait = min(max(FIRST_WAIT * 2**tries, timedelta(seconds=error.retry_after_s)), LONGEST_WAIT)
                store.lti_scores.note_failure(link, due)
                store.lti_scores.release(link, wait, min(tries + 1, MAX_DOUBLINGS), str(error))
                return False
            else:
                store.lti_scores.settle(link, due)
            tries = 0
        store.lti_scores.release(link)
        return True
