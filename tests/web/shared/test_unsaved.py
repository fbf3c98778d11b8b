"""static/js/unsaved.js with the merge of the server: docs/saving.md holds, whatever is lost, late, or closed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.activities.work import Draft, Edit, VariantSizes, merged_draft
from app.web.shared.sheet_form import saved_json
from tests.helpers.script import Script, running_script

BOXES = ("keys.rows", "keys.columns", "values.rows")
SIZES = VariantSizes("llama-7b", 100)
LOCKED = "values.rows"  # in a tab that was opened with it locked


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    with running_script("unsaved") as script:
        yield script


@dataclass
class Server:
    """The draft of one sheet, as saves that arrive change it."""

    draft: Draft | None = None

    def save(self, texts: dict[str, str], field: str) -> str:
        """Take in a save, and answer with the draft as JSON."""
        parts = [edit.split(":") for edit in field.split()]
        edits = {box: Edit(tab, int(number)) for box, tab, number in parts}
        self.draft = merged_draft(self.draft, texts, edits, SIZES) or self.draft
        return saved_json(self.draft, edits)


@dataclass
class Tab:
    """A sheet open in a browser tab, with the texts of its boxes; the edits are those of unsaved.js."""

    script: Script
    name: str
    storage: dict[str, Any]
    texts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(BOXES, ""))
    last_typed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.script("(globalThis.tabs ??= {}, tabs[$0] = new UnsavedEdits($0), null)", self.name)

    def type_into(self, box: str, text: str) -> None:
        self.texts[box] = self.last_typed[box] = text
        self.script("tabs[$0].record($1)", self.name, box)
        self.store()

    def store(self) -> None:
        """Store in the browser what is unsaved, as the page does after each edit and each answer."""
        stored = self.script("tabs[$0].toStore($1)", self.name, self.texts)
        self.storage.pop(self.name, None)
        if stored:
            self.storage[self.name] = stored

    def adopt(self, writable: tuple[str, ...] = BOXES) -> None:
        """Take over what closed tabs of this browser have left."""
        for other in [name for name in self.storage if name != self.name]:
            self.texts |= self.script("tabs[$0].adopt($1, $2)", self.name, self.storage[other], writable)
            del self.storage[other]
            self.store()

    def request(self) -> tuple[dict[str, str], str]:
        return dict(self.texts), self.script("tabs[$0].field()", self.name)

    def receive(self, answer: str) -> dict[str, dict[str, str]]:
        """Take in an answer; what is written into boxes because of it."""
        changes: dict[str, dict[str, str]] = self.script(
            "tabs[$0].confirm($1, $2)", self.name, json.loads(answer), self.texts
        )
        self.texts |= changes["own"] | changes["others"]
        self.store()
        return changes

    @property
    def unsaved(self) -> int:
        return int(self.script("tabs[$0].size", self.name))


@given(data=st.data())
def test_nothing_typed_is_lost_whatever_happens_on_the_way(script: Script, data: st.DataObject) -> None:
    server, names, counter = Server(), map("tab{:05}".format, itertools.count()), itertools.count(1)
    storages = list[dict[str, Any]]([{}, {}])  # two browsers
    tabs = [Tab(script, next(names), storage) for storage in (*storages, storages[0])]
    closed: list[Tab] = []
    requests: list[tuple[Tab, tuple[dict[str, str], str]]] = []
    answers: list[tuple[Tab, str]] = []
    for _ in range(data.draw(st.integers(1, 25))):
        tab = data.draw(st.sampled_from(tabs))
        match data.draw(st.sampled_from(("type", "type", "send", "arrive", "answer", "reload"))):
            case "type":
                tab.type_into(data.draw(st.sampled_from(BOXES)), f"text {next(counter)}")
            case "send":
                requests.append((tab, tab.request()))
            case "arrive" if requests:
                sender, request = data.draw(st.sampled_from(requests))
                answers.append((sender, server.save(*request)))
            case "answer" if answers:
                receiver, answer = data.draw(st.sampled_from(answers))
                if receiver in tabs:
                    receiver.receive(answer)
            case "reload":
                tabs.remove(tab)
                closed.append(tab)
                tabs.append(opened := Tab(script, next(names), tab.storage))
                opened.texts |= server.draft.answers if server.draft else {}
                opened.adopt()
    for _ in range(2):  # once everything arrives, and then each tab is looked at again
        for tab in tabs:
            tab.receive(server.save(*tab.request()))
    assert [tab.unsaved for tab in tabs] == [0, 0, 0]
    assert storages == [{}, {}]
    stored = server.draft.answers if server.draft else dict.fromkeys(BOXES, "")
    assert [tab.texts for tab in tabs] == [stored] * 3
    for box in BOXES:
        typed = {tab.last_typed[box] for tab in (*tabs, *closed) if box in tab.last_typed}
        assert stored[box] in (typed or {""})


def test_what_was_saved_but_not_answered_covers_nothing_newer(script: Script) -> None:
    server, storage = Server(), dict[str, Any]()
    closed, elsewhere = Tab(script, "closed01", storage), Tab(script, "phone001", {})
    closed.type_into("keys.rows", "old")
    server.save(*closed.request())
    elsewhere.type_into("keys.rows", "new")
    elsewhere.receive(server.save(*elsewhere.request()))
    opened = Tab(script, "opened01", storage)
    opened.adopt()
    assert opened.texts["keys.rows"] == "old"
    assert opened.receive(server.save(*opened.request())) == {"own": {"keys.rows": "new"}, "others": {}}


def test_an_answer_that_was_overtaken_changes_no_box(script: Script) -> None:
    server, tab, other = Server(), Tab(script, "laptop01", {}), Tab(script, "phone001", {})
    tab.type_into("keys.rows", "1")
    first = server.save(*tab.request())
    other.type_into("keys.columns", "2")
    server.save(*other.request())
    assert tab.receive(server.save(*tab.request())) == {"own": {}, "others": {"keys.columns": "2"}}
    assert tab.receive(first) == {"own": {}, "others": {}}
    assert tab.texts["keys.columns"] == "2"


def test_a_locked_box_is_not_adopted_and_a_typed_one_not_covered(script: Script) -> None:
    storage = dict[str, Any]()
    closed = Tab(script, "closed02", storage)
    for box in BOXES:
        closed.type_into(box, "left")
    opened = Tab(script, "opened02", storage)
    opened.type_into("keys.rows", "typed")
    opened.adopt(writable=("keys.rows", "keys.columns"))
    assert opened.texts == {"keys.rows": "typed", "keys.columns": "left", LOCKED: ""}
    assert opened.request()[1] == "keys.rows:opened02:1 keys.columns:closed02:2"


@pytest.mark.parametrize(
    ("status", "as_save", "as_press"),
    [
        (200, "taken", "taken"),
        (303, "taken", "taken"),
        (403, "refused", "refused"),
        (408, "failed", "failed"),
        (409, "refused", "refused"),
        (429, "failed", "refused"),
        (500, "failed", "failed"),
        (503, "failed", "failed"),
    ],
)
def test_a_refusal_is_not_sent_again(script: Script, status: int, as_save: str, as_press: str) -> None:
    outcomes = script("[outcomeOf($0, true), outcomeOf($0, false)]", status)
    assert outcomes == [as_save, as_press]


def test_a_save_is_tried_again_ever_more_slowly(script: Script) -> None:
    assert script("(globalThis.retries = new Retries(), Array.from({length: 7}, () => retries.next()))") == [
        *(1000, 2000, 4000, 8000, 16000),
        *(30000, 30000),
    ]
    assert script("(retries.succeed(), retries.next())") == 1000


def test_three_bugs_of_the_server_in_a_row_are_enough(script: Script) -> None:
    after = "(r => $0.map(status => (r.fail(status), r.isHopeless)))(new Retries())"
    assert script(after, [500, 500, 503, 500, 500, 500]) == [False] * 5 + [True]
    assert script(after, [500, 500, None, 500, 500]) == [False] * 5
