"""What happens when an activity has ended: unsubmitted work is auto-submitted as an attempt.

A draft is auto-submitted if something in it is readable, it differs from the last attempt, and the student has an
attempt left. A draft typed late only counts for students who handed in nothing on time. It is graded like a submission.
"""

from __future__ import annotations

import hashlib
import logging
import random
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.activities.rules import Rules
from app.classes.frozen.given_sheets import given_variant
from app.classes.sheet_actions import auto_submit
from app.metrics import count_failure
from app.sheets.library import Library
from app.store import Activity, ClassSheetKey, NewAttempt, Store, UnfinishedWork
from app.store.limits import failure_of
from app.store.queries import batches

STUDENTS_AT_A_TIME = 50  # whose drafts are graded and then stored in one transaction
INTERVAL_S = 2.0  # between two checks for ended activities
RETRY_AFTER_S = 60.0  # after an activity couldn't be settled
STUCK_AFTER_S = 600.0  # longer than a large class takes

log = logging.getLogger("attention_shapes")


class AutoSubmitter:
    """Auto-submits the drafts of ended activities, in its own thread; no request waits for it."""

    def __init__(self, library: Library, store: Store, interval_s: float = INTERVAL_S) -> None:
        self._library, self._store, self._interval_s = library, store, interval_s
        self._turn = threading.Lock()  # grading a class takes seconds: one thread per process is enough
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked_at = time.monotonic()  # when the thread last checked all activities
        self._retry_at = dict[int, float]()  # by the id of an activity that couldn't be settled

    def start(self) -> None:
        """Look for ended activities every `interval_s` seconds, until `close`."""
        self._thread = threading.Thread(target=self._run, name="auto-submit", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after the batch that it is storing."""
        self._stopped.set()
        if self._thread:
            self._thread.join()

    @property
    def is_stuck(self) -> bool:
        """Whether the thread has died, or hasn't checked all activities for STUCK_AFTER_S."""
        if self._thread is None or self._stopped.is_set():
            return False
        return not self._thread.is_alive() or time.monotonic() - self._looked_at > STUCK_AFTER_S

    @property
    def unsettled(self) -> tuple[int, ...]:
        """The ids of activities whose drafts couldn't be auto-submitted; they are retried."""
        return tuple(sorted(self._retry_at))

    def settle(self, activity: Activity) -> None:
        """Auto-submit an activity's drafts if that is due (`auto_submit_due`), and mark it as done."""
        if activity.auto_submit_due(self._store.now()) and self._turn.acquire(blocking=False):
            try:
                self._auto_submit_all(activity)
            finally:
                self._turn.release()

    def settle_all(self) -> None:
        """Settle every ended activity; a failing one is logged, counted, and skipped for RETRY_AFTER_S."""
        ended = self._store.activities.ended()
        self._retry_at = {each: at for each, at in self._retry_at.items() if each in ended}
        for activity_id in ended:
            if time.monotonic() < self._retry_at.get(activity_id, 0):
                continue
            try:
                activity = self._store.activities.find(activity_id)
                if activity:
                    self.settle(activity)
                self._retry_at.pop(activity_id, None)
            except Exception:  # a problem with one activity must not keep the others from their marks
                self._retry_at[activity_id] = time.monotonic() + RETRY_AFTER_S
                count_failure("auto-submit")
                log.exception("the drafts of activity %s could not be auto-submitted; trying again", activity_id)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                self.settle_all()
                self._looked_at = time.monotonic()
            except Exception as error:
                count_failure("auto-submit")
                if failure_of(error) is None:
                    log.exception("looking for activities that have ended failed; trying again")

    def _auto_submit_all(self, activity: Activity) -> None:
        store = self._store
        ids = store.classwork.students_with_drafts(activity.id) if activity.policies.auto_submit else ()
        groups = list(batches(ids, STUDENTS_AT_A_TIME))
        # other processes start with other groups, and share the work
        for students in random.sample(groups, len(groups)):
            while not self._auto_submit(activity, students):
                if self._stopped.is_set() or not self._is_due(activity):
                    return
        with store.transaction():
            if self._is_due(activity):
                store.activities.note_auto_submitted(activity)

    def _is_due(self, activity: Activity) -> bool:
        """Inside a transaction the activity stays locked, so that the answer holds until its end."""
        current = self._store.activities.locked(activity)
        return current is not None and current.auto_submit_due(self._store.now())

    def _auto_submit(self, activity: Activity, students: Sequence[int]) -> bool:
        """False if some had changed; the unchanged ones are stored all the same, in one transaction."""
        store = self._store
        before = store.classwork.unfinished_work(activity.id, students)
        graded = list(_graded(self._library, store, activity, before.values()))
        with store.transaction():
            if not self._is_due(activity):
                return False
            now = store.classwork.unfinished_work(activity.id, students)
            store.classwork.add_attempts([(key, new) for work, key, new in graded if now.get(work.sheet) == work])
        return now == before


def _graded(
    library: Library, store: Store, activity: Activity, drafts: Iterable[UnfinishedWork]
) -> Iterator[tuple[UnfinishedWork, ClassSheetKey, NewAttempt]]:
    extra = store.activities.extra_times(activity.id)
    sheets = {  # the newest revision with the sheet, its number there from 1, and the revision's content
        item.sheet_key: (revision, number, content)
        for revision, content in store.activities.revisions(activity).items()
        for number, item in enumerate(content.items, start=1)
    }
    for work in drafts:
        draft = work.draft
        if not work.has_news or draft.sheet_key not in sheets:
            continue
        for_student = replace(activity, extra_minutes=extra.get(draft.student_id, 0))
        revision, number, content = sheets[draft.sheet_key]
        try:
            item = content.items[number - 1]
            variant = given_variant(library, store, activity, content, item, draft.variant)
            submitted = auto_submit(variant, work, Rules.of(for_student, draft.saved_at)).attempt
        except Exception:  # one sheet that can't be graded must not keep a class from its marks
            log.exception("a draft of activity %s could not be graded", activity.id)
            continue
        if submitted:
            key = ClassSheetKey(draft.student_id, activity.id, revision, number, draft.sheet_key)
            yield work, key, replace(submitted, client_id=_client_id(key, work))


def _client_id(key: ClassSheetKey, work: UnfinishedWork) -> str:
    sheet = f"{key.activity_id} {key.sheet_key}"
    return f"auto-submit {work.last_id} {hashlib.sha256(sheet.encode()).hexdigest()[:24]}"
