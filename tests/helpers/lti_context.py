"""A course of a store that a simulated platform has linked, with students on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from app.lti.grades import GradeSender
from app.lti.keys import key_set
from app.lti.services import PlatformServices
from app.sheets.library import Library
from app.store import Attempt, Launch, LtiCourse, Policies, Store, Student
from app.store import Platform as KnownPlatform
from simulation.lti_platform import MOODLE, Course, LineItem, Person, Platform, Quirks, running_platform
from tests.helpers.clock import CLOCK
from tests.helpers.lti import launch
from tests.helpers.running_activity import RunningActivity


class LinkedActivity(RunningActivity):
    """An open activity that a link of a platform opens, whose column the platform's gradebook has."""

    def __init__(
        self,
        library: Library,
        store: Store,
        platform: Platform,
        sheets: tuple[str, ...] = ("llama-7b",),
        policies: Policies | None = None,
    ) -> None:
        super().__init__(library, store, sheets, policies)
        self.platform = platform
        self.client = platform.add_client("https://shapes.example.org")
        self.lms_course = platform.add_course()
        login, token, keys = (f"{platform.url}/{name}" for name in ("authorize", "token", "keys"))
        audience = platform.quirks.token_audience
        known = store.lti.add_platform("Moodle", platform.issuer, self.client.id, login, token, keys, audience)
        assert known
        self.known: KnownPlatform = known
        self.context: LtiCourse = store.lti.link_course(self.launch, self.course.id)
        self.link = store.lti.link_activity(self.context, self.launch, self.activity.id)
        self.services = PlatformServices(store, allow_private=True)

    @property
    def launch(self) -> Launch:
        return self.launch_of(self.lms_course)

    def launch_of(self, course: Course, link: str = "link-1") -> Launch:
        """What a launch from this course of the platform says."""
        item, url = course.line_item(link), self.platform.url
        return launch(
            self.known,
            context_id=course.id,
            resource_link_id=link,
            memberships_url=f"{url}/courses/{course.id}/members",
            lineitem_url=item.url if item else "",
        )

    @property
    def column(self) -> LineItem:
        """The activity's column in the platform's gradebook."""
        [item] = self.lms_course.line_items
        return item

    @property
    def grades(self) -> Mapping[str, float | None]:
        """The points in the platform's gradebook, by person."""
        return {sub: grade.points for sub, grade in self.column.grades.items()}

    def come(self, sub: str) -> Student:
        """Let somebody of the platform's course become a student here."""
        self.lms_course.people[sub] = Person(sub, f"Person {sub}")
        return self.store.lti.add_student(self.context, sub, self.course, f"Person {sub}")

    def answer(self, sub: str, answers: Mapping[str, str]) -> Attempt:
        return self.attempt(self.come(sub), answers)

    def sender(self, store: Store | None = None) -> GradeSender:
        """What sends grades in one process."""
        own = store or self.store
        return GradeSender(self.library, own, PlatformServices(own, allow_private=True))


@contextmanager
def linked_activity(
    library: Library, store: Store, quirks: Quirks = MOODLE, policies: Policies | None = None
) -> Iterator[LinkedActivity]:
    """An activity that a running platform opens; both have the clock of the tests."""
    with running_platform(quirks, clock=CLOCK, fetch_keys=lambda _url: key_set(store)["keys"]) as platform:
        yield LinkedActivity(library, store, platform, policies=policies)
