"""The form of an activity without pages: texts become a plan and its content, or one sentence about one field."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from app.classes.activity_form import (
    ActivityFormError,
    field_labels,
    form_in_words,
    new_activity,
    read_activity_form,
    typed_activity,
    typed_sheet,
)
from app.classes.frozen.offered_worksheets import Offer
from app.classes.student_sheet import item_sizes
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import Library
from app.store import Content, Plan, Policies

TICKETS = load_tickets(PROJECT / "worksheets")
FIELDS = {
    "title": "Week 3", "ticket": "classic", "ticket_anonymous": "no", "variants": "per_student",
    "feedback": "after_close", "run": "before", "marking": "rows", "max_attempts": "3", "hints": "", "exam": "yes",
    "opens": "2026-03-31T10:00", "closes": "2026-03-31T11:30", "late_minutes": "5", "names_listed": "no",
    "auto_submit": "", "examples": "",
    "day": "2026-03-31",
}  # fmt: skip


def read(library: Library, worksheets: tuple[str, ...] = ("llama-7b",), **fields: str) -> tuple[Plan, Content]:
    typed = {**FIELDS, **fields, "worksheet": list(map(typed_sheet, worksheets))}
    return read_activity_form(Offer(library, TICKETS), "Europe/Berlin", typed)


def test_texts_become_a_plan_and_back(library: Library) -> None:
    plan, content = read(library, ("qwen2.5-0.5b", "llama-7b"))
    policies = Policies("per_student", "after_close", 3, "rows", hints=False, examples=False, run="before",
                        ticket_anonymous=False, exam=True, late_minutes=5, auto_submit=False)  # fmt: skip
    opens, closes = datetime(2026, 3, 31, 8, tzinfo=UTC), datetime(2026, 3, 31, 9, 30, tzinfo=UTC)
    assert plan == Plan("Week 3", date(2026, 3, 31), policies, opens, closes)
    assert [item.worksheet["key"] for item in content.items] == ["qwen2.5-0.5b", "llama-7b"]
    assert content.ticket
    chosen = [typed_sheet("qwen2.5-0.5b"), typed_sheet("llama-7b")]
    assert typed_activity(plan, content, "Europe/Berlin") == {**FIELDS, "worksheet": chosen}


def test_what_is_left_empty_has_no_value(library: Library) -> None:
    plan, content = read(library, day="", opens="", closes="", late_minutes="", max_attempts="", ticket="")
    assert (plan.day, plan.opens_at, plan.closes_at) == (None, None, None)
    assert (plan.policies.max_attempts, plan.policies.late_minutes) == (0, 0)
    assert content.ticket is None


def test_every_field_has_a_label_and_words(library: Library) -> None:
    typed = {**FIELDS, "worksheet": [typed_sheet("llama-7b", "llama-13b", "7"), typed_sheet("gone")]}
    told = form_in_words(typed, {"llama-7b": "One head"})
    assert set(field_labels()) == {*FIELDS, "worksheet"} == set(told)
    assert told["worksheet"] == "One head, llama-13b, 7\ngone"
    assert told["exam"] != form_in_words({**typed, "exam": ""}, {})["exam"]


def test_a_new_form_has_the_default_policies(library: Library) -> None:
    typed = {**new_activity(TICKETS, "UTC"), "title": "T"}
    plan, content = read_activity_form(Offer(library, TICKETS), "UTC", typed)
    assert plan == Plan("T")
    assert content.ticket
    assert content.ticket.key == next(iter(TICKETS))


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"title": ""}, "title", "a title"),
        ({"title": "", "opens": "soon"}, "title", "a title"),
        ({"opens": "soon"}, "opens", "“soon” is not a date and time"),
        ({"closes": "0001-01-01T00:00", "opens": ""}, "closes", "years 1900 to 9998"),
        ({"closes": "9999-12-31T23:59"}, "closes", "years 1900 to 9998"),
        ({"closes": "2026-03-31T10:00"}, "closes", "after the opening"),
        ({"day": "20"}, "day", "“20” is not a date"),
        ({"late_minutes": "-1"}, "late_minutes", "up to 10080"),
        ({"max_attempts": "0"}, "max_attempts", "from 1 to 99"),
        ({"max_attempts": "100"}, "max_attempts", "from 1 to 99"),
        ({"max_attempts": "+1"}, "max_attempts", "from 1 to 99"),
        ({"marking": "half"}, "marking", "“marking”"),
        ({"variants": "many"}, "variants", "“variants”"),
        ({"ticket": "own-7"}, "ticket", "exit ticket isn’t here"),
        ({"feedback": ""}, "feedback", "“feedback”"),
        ({"run": "never"}, "run", "“run”"),
        ({"worksheets": (), "ticket": ""}, "worksheet", "at least one worksheet"),
        ({"worksheets": ("llama-7b", "llama-7b")}, "worksheet", "only once"),
        ({"worksheets": ("llama-7b", "nonsense")}, "worksheet", "no worksheet “nonsense”"),
    ],
)
def test_the_first_field_that_cannot_be_used_is_named(
    library: Library, change: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(ActivityFormError) as refused:
        read(library, **change)
    assert refused.value.field == field
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("sheet", "sizes", "title"),
    [
        (typed_sheet("llama-7b"), ("llama-7b", 100), "One head of LLaMA 7B"),
        (typed_sheet("llama-7b", "mistral-7b"), ("mistral-7b", 100), "One head of Mistral 7B"),
        (typed_sheet("llama-7b", "", "64"), ("llama-7b", 64), "One head of LLaMA 7B"),
        (typed_sheet("llama-7b", "vit-base", ""), ("vit-base", 197), None),
    ],
    ids=["own", "model", "tokens", "fixed-length"],
)
def test_a_worksheet_can_have_another_model_and_length(
    library: Library, sheet: dict[str, str], sizes: tuple[str, int], title: str | None
) -> None:
    typed = {**FIELDS, "worksheet": [typed_sheet("qwen2.5-0.5b"), sheet]}
    plan, content = read_activity_form(Offer(library, TICKETS), "UTC", typed)
    item = content.items[1]
    assert (item_sizes(item).model, item_sizes(item).tokens) == sizes
    assert title is None or item.title == title
    assert item.key == "llama-7b"
    again = typed_activity(plan, content, "UTC")
    assert read_activity_form(Offer(library, TICKETS), "UTC", again)[1].items == content.items


@pytest.mark.parametrize(
    "sheet",
    [
        typed_sheet("llama-7b", "nope"),
        typed_sheet("llama-7b", "", "many"),
        typed_sheet("llama-7b", "", "0"),
        typed_sheet("qwen2.5-0.5b", "", "9" * 30),
        typed_sheet("cross-bart-base", "llama-7b"),
        typed_sheet("decode-phi-3-mini-4k", "gpt2"),  # which is shorter than its range of tokens
    ],
    ids=lambda sheet: f"{sheet['model']}-{sheet['tokens'][:5]}",
)
def test_a_model_or_length_that_a_worksheet_cannot_have_is_refused_beside_it(
    library: Library, sheet: dict[str, str]
) -> None:
    with pytest.raises(ActivityFormError) as refused:
        read_activity_form(Offer(library, TICKETS), "UTC", {**FIELDS, "worksheet": [sheet]})
    assert refused.value.field == f"sheet.{sheet['key']}"
