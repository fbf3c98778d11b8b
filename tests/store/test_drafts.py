"""One sheet open on several pages: their saves merge box by box, in whatever order they arrive, however often."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from app.activities.work import MAX_PAGES, ClassDraft, MergedBoxes, merge_boxes
from app.store import Activity, Plan, PracticeDraft, Stamp, Store, Student
from tests.helpers.stored_class import CONTENT, HALF, LLAMA, enrol_student, key, teacher

BOXES = ("input.rows", "queries.rows", "queries.columns")


@dataclass
class OpenPage:
    """A page in a browser: what stands in its boxes, and its changes that were not acknowledged yet."""

    name: str
    number: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    changed: dict[str, Stamp] = field(default_factory=dict)
    last_texts: dict[str, str] = field(default_factory=dict)  # of the boxes that were ever typed into here

    def type_into(self, box: str) -> None:
        self.number += 1
        self.texts[box] = self.last_texts[box] = f"{self.name} {self.number}"
        self.changed[box] = Stamp(self.name, self.number)

    def request(self) -> tuple[dict[str, str], dict[str, Stamp]]:
        return dict(self.texts), dict(self.changed)


def opened(store: Store) -> tuple[Activity, Student]:
    course = store.courses.add("Transformers", "UTC", teacher(store))
    return store.activities.add(course, Plan("Week 3"), CONTENT), enrol_student(store, course)[0]


@given(st.data())
def test_whatever_arrives_in_whatever_order_each_box_has_the_last_text_of_a_page(data: st.DataObject) -> None:
    """Requests late, twice, and unanswered: no box goes back to an older text of a page, and no page is left out."""
    pages = [OpenPage("page-a"), OpenPage("page-b")]
    under_way = list[tuple[dict[str, str], dict[str, Stamp]]]()
    stored: MergedBoxes | None = None
    for _ in range(data.draw(st.integers(1, 12))):
        page = data.draw(st.sampled_from(pages))
        page.type_into(data.draw(st.sampled_from(BOXES)))
        under_way.append(page.request())
        if data.draw(st.booleans()):  # an earlier request arrives, and perhaps once more later
            arrived = data.draw(st.sampled_from(under_way))
            stored = merge_boxes(stored, *arrived) or stored
    for request in data.draw(st.permutations([*under_way, *(page.request() for page in pages)])):
        stored = merge_boxes(stored, *request) or stored
    assert stored
    for box in BOXES:
        typed = {page.last_texts[box] for page in pages if box in page.last_texts}
        assert stored.answers.get(box, "") in (typed or {""})
    assert dict(stored.pages) == {page.name: page.number for page in pages if page.number}


def test_a_form_without_script_counts_whole_and_only_the_newest_pages_are_remembered() -> None:
    """Every text of such a form replaces the stored one; the numbers of the thirty pages that saved last are kept."""
    stored = merge_boxes(None, {"a.rows": "1", "b.rows": "2"}, None)
    assert stored == MergedBoxes({"a.rows": "1", "b.rows": "2"})
    for number in range(MAX_PAGES + 5):
        stored = merge_boxes(stored, {"a.rows": str(number)}, {"a.rows": Stamp(f"page-{number:03}", 1)})
        assert stored
    assert list(stored.pages) == [f"page-{number:03}" for number in range(5, MAX_PAGES + 5)]
    assert stored.answers == {"a.rows": str(MAX_PAGES + 4), "b.rows": "2"}


def test_pages_that_save_at_the_same_time_lose_nothing(store: Store) -> None:
    """Eight threads, each with a box of its own and one that all share, save ten times on what they saw at first."""
    activity, kim = opened(store)
    here = key(kim, activity)
    boxes = [f"row{number}.rows" for number in range(8)]
    empty = dict.fromkeys((*boxes, "shared.rows"), "")
    versions = list[int]()

    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        seen = store.classwork.draft(here)
        for change in range(1, 11):
            stamp = Stamp(f"page-{number:04}", change)
            texts = {**empty, boxes[number]: str(change), "shared.rows": f"{number}: {change}"}
            sent = ClassDraft(texts, 0, LLAMA, {boxes[number]: stamp, "shared.rows": stamp})
            kept = store.classwork.save(here, sent, seen)
            assert kept.answers[boxes[number]] == str(change)
            versions.append(kept.version)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    kept = store.classwork.draft(here)
    assert kept
    assert {box: kept.answers[box] for box in boxes} == dict.fromkeys(boxes, "10")
    assert kept.answers["shared.rows"].endswith(": 10")
    assert sorted(versions) == list(range(1, 81))


def test_a_save_that_comes_twice_or_late_changes_nothing(store: Store) -> None:
    """In class and in practice: the answer tells what is stored, which is what another page has typed meanwhile."""
    activity, kim = opened(store)
    here, visitor = key(kim, activity), store.add_visitor()
    first, late = {"a.rows": Stamp("page-one", 2)}, {"a.rows": Stamp("page-one", 1)}
    other = {"a.rows": Stamp("page-two", 1)}
    for changed, text, expected in ((first, "1", "1"), (other, "2", "2"), (first, "1", "2"), (late, "0", "2")):
        in_class = store.classwork.save(here, ClassDraft({"a.rows": text}, 0, LLAMA, changed))
        in_practice = store.save_draft(visitor, "s/m/1", PracticeDraft({"a.rows": text}, 0, changed))
        assert (in_class.answers, in_practice.answers) == ({"a.rows": expected}, {"a.rows": expected})
    assert in_class == store.classwork.draft(here)
    assert in_practice == store.find_draft(visitor, "s/m/1")


def test_handing_in_records_what_was_sent_and_keeps_what_another_page_typed(store: Store) -> None:
    """The attempt has the texts of the page; in the draft, boxes that the page did not change keep theirs."""
    activity, kim = opened(store)
    here = key(kim, activity)
    store.classwork.save(here, ClassDraft({"a.rows": "1", "b.rows": ""}, 0, LLAMA, {"a.rows": Stamp("page-one", 1)}))
    sent = ClassDraft({"a.rows": "", "b.rows": "2"}, 0, LLAMA, {"b.rows": Stamp("page-two", 1)})
    attempt = store.classwork.record(here, "form", sent, HALF, handed_in=True).attempt
    kept = store.classwork.draft(here)
    assert (attempt.answers, kept and kept.answers) == ({"a.rows": "", "b.rows": "2"}, {"a.rows": "1", "b.rows": "2"})
