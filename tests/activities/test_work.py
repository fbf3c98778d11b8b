"""One sheet open in several tabs: their saves merge box by box, in whatever order they arrive, however often."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from app.activities.work import MAX_TABS, Draft, Edit, VariantSizes, merged_draft

BOXES = ("input.rows", "queries.rows", "queries.columns")
SIZES = VariantSizes("llama-7b", 100)


@dataclass
class OpenTab:
    """A tab of a browser: what is in its boxes, and its edits that were not acknowledged yet."""

    name: str
    number: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    last_texts: dict[str, str] = field(default_factory=dict)  # boxes that were ever typed into here

    def type_into(self, box: str) -> None:
        self.number += 1
        self.texts[box] = self.last_texts[box] = f"{self.name} {self.number}"
        self.edits[box] = Edit(self.name, self.number)

    def request(self) -> tuple[dict[str, str], dict[str, Edit]]:
        return dict(self.texts), dict(self.edits)


@given(st.data())
def test_whatever_arrives_in_whatever_order_each_box_has_the_last_text_of_a_tab(data: st.DataObject) -> None:
    tabs = [OpenTab("tab-a"), OpenTab("tab-b")]
    under_way = list[tuple[dict[str, str], dict[str, Edit]]]()
    stored: Draft | None = None
    for _ in range(data.draw(st.integers(1, 12))):
        tab = data.draw(st.sampled_from(tabs))
        tab.type_into(data.draw(st.sampled_from(BOXES)))
        under_way.append(tab.request())
        if data.draw(st.booleans()):  # an earlier request arrives, and perhaps once more later
            arrived = data.draw(st.sampled_from(under_way))
            stored = merged_draft(stored, *arrived, SIZES) or stored
    for request in data.draw(st.permutations([*under_way, *(tab.request() for tab in tabs)])):
        stored = merged_draft(stored, *request, SIZES) or stored
    assert stored
    for box in BOXES:
        typed = {tab.last_texts[box] for tab in tabs if box in tab.last_texts}
        assert stored.answers.get(box, "") in (typed or {""})
    assert dict(stored.tab_versions) == {tab.name: tab.number for tab in tabs if tab.number}


def test_a_form_without_script_counts_whole_and_only_the_newest_tabs_are_remembered() -> None:
    stored = merged_draft(None, {"a.rows": "1", "b.rows": "2"}, None, SIZES)
    assert stored == Draft({"a.rows": "1", "b.rows": "2"}, 1, SIZES)
    for number in range(MAX_TABS + 5):
        stored = merged_draft(stored, {"a.rows": str(number)}, {"a.rows": Edit(f"tab-{number:03}", 1)}, SIZES)
        assert stored
    assert list(stored.tab_versions) == [f"tab-{number:03}" for number in range(5, MAX_TABS + 5)]
    assert stored.answers == {"a.rows": str(MAX_TABS + 4), "b.rows": "2"}


def test_the_sizes_of_the_first_save_stay() -> None:
    stored = merged_draft(None, {"a.rows": "1"}, None, SIZES)
    assert merged_draft(stored, {"a.rows": "2"}, None, VariantSizes("gpt2", 7)) == Draft({"a.rows": "2"}, 2, SIZES)
