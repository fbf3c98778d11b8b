"""What students were given stays, even when the code of a topic changes: its rows, its right answers, or all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from fastapi import FastAPI

from app.algebra.expression import Expression
from app.classes.frozen.given_sheets import given_variant, sheet_data
from app.classes.frozen.offered_worksheets import offer_of
from app.classes.regrade import Regrading
from app.classes.student_sheet import activity_variant, give_sheets, student_sheet
from app.grading.grade import grade
from app.models.architecture import Architecture
from app.shapes.table import Tensor, TensorTable
from app.sheets import prose
from app.sheets.frozen_sheet import FrozenSheet
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import WITHOUT_TOPIC
from app.store import FrozenWorksheet, Policies, Store
from app.topics.registry import TOPICS
from app.topics.topic import Topic
from app.translation import ENGLISH
from tests.helpers.answer_keys import KEY
from tests.helpers.changed_library import Change, without_topic
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom
from tests.helpers.running_activity import RunningActivity
from tests.helpers.shipped import LIBRARY
from tests.helpers.stored_class import record

TOPIC = "single-head"
ChangeCode = Callable[[pytest.MonkeyPatch], Change]


def renamed(tensor: Tensor) -> Tensor:
    return replace(tensor, key="question_vectors") if tensor.key == "queries" else replace(tensor, made_by=None)


def widened(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(tensor.rows, Expression.parse("2*d_h"))) if tensor.key == "keys" else tensor


def changes_tensors(change: Callable[[Tensor], Tensor]) -> ChangeCode:
    """Another version of the topic's code, which makes other tensors."""

    def change_code(monkeypatch: pytest.MonkeyPatch) -> Change:
        topic = TOPICS[TOPIC]

        def build_table(architecture: Architecture, tokens: int) -> TensorTable:
            tensors = topic.build_table(architecture, tokens).tensors
            return TensorTable("other", tuple(replace(change(tensor), made_by=None) for tensor in tensors))

        monkeypatch.setitem(cast("dict[str, Topic]", TOPICS), TOPIC, replace(topic, build_table=build_table))
        return lambda library: replace(library, worksheets=dict(library.worksheets))  # without its caches

    return change_code


def removes_topic(monkeypatch: pytest.MonkeyPatch) -> Change:
    topics = cast("dict[str, Topic]", TOPICS)
    others = {key: topic for key, topic in topics.items() if key != TOPIC}
    for key in reversed([*topics]):  # all of them, so that they come back in their order
        monkeypatch.delitem(topics, key)
    for key, topic in others.items():
        monkeypatch.setitem(topics, key, topic)
    return lambda library: without_topic(library, TOPIC)


CHANGES = {
    "a renamed row": changes_tensors(renamed),
    "a changed right answer": changes_tensors(widened),
    "a removed topic": removes_topic,
}


def said(variant: Variant) -> tuple[object, ...]:
    texts = [variant.title, prose.description(variant), prose.task(variant), prose.asides(variant)]
    texts += [*prose.assumptions(variant), prose.footnote(variant) or ""]
    rows = [(row, row.fields, row.offers, row.opens_late) for row in variant.rows]
    return (*texts, rows, variant.fields, dict(variant.key), [*map(variant.written_answer, variant.blanks)])


@pytest.mark.parametrize("change_code", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("variants", ["same", "per_student"])
def test_students_see_and_answer_the_same_sheet(
    new_app: FastAPI, monkeypatch: pytest.MonkeyPatch, change_code: ChangeCode, variants: str
) -> None:
    classroom = MarkedClassroom(new_app, Policies(variants=variants))  # type: ignore[arg-type]
    give_sheets(classroom.school.library, classroom.store, classroom.activity)  # as opening does
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    if variants == "same":
        classroom.hand_in(kim, KEY)
    sheets = [classroom.seen_by(student)[0] for student in (kim, lou)]
    services = classroom.school.services
    new_app.state.services = replace(services, libraries={ENGLISH: change_code(monkeypatch)(services.library)})
    for student, before in zip((kim, lou), sheets, strict=True):
        after = classroom.seen_by(student)[0]
        assert rows_of(after) == rows_of(before)
        assert after.text("h1") == before.text("h1")
    if variants == "same":
        assert "would keep its marks" in classroom.get(f"{classroom.path}/regrade")
        attempt = classroom.hand_in(lou, {**KEY, "keys.columns": "256"})
        assert {box for box, kind in attempt.marks.items() if kind == "wrong"} == {"keys.columns"}
        assert attempt.out_of == 14
    with classroom.browser_of(lou) as browser:
        for step in ("hint", "run"):
            assert browser.post(f"{classroom.sheet_path}/{step}", data=KEY).status_code < 500
    for path in ("", "/results", "/projector", "/summary", f"/results/{kim.id}"):
        assert classroom.get(f"{classroom.path}{path}")


def test_a_sheet_answered_with_other_numbers_opens_without_its_topic(
    new_app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    classroom = MarkedClassroom(new_app)
    library, store, kim = classroom.school.library, classroom.store, classroom.student("Kim")
    activity = classroom.school.reload(classroom.activity)
    sheet = student_sheet(library, store, activity, kim, 1)
    on_paper = replace(sheet.sizes, tokens=50)
    given_variant(library, store, activity, activity.content, activity.content.items[0], on_paper)
    with classroom.browser_of(kim) as browser:
        assert browser.post(f"{classroom.sheet_path}/save", data=KEY).status_code < 400
        record(store, sheet.key, KEY, sizes=on_paper)
        services = classroom.school.services
        changed = removes_topic(monkeypatch)(services.library)
        new_app.state.services = replace(services, libraries={ENGLISH: changed})
        assert browser.get(classroom.sheet_path).status_code == 200


def rows_of(page: Page) -> list[str]:
    return [re.sub(r"\s+", " ", text) for _, text in page.find("th", scope="row")]


def test_a_regrade_by_the_library_uses_the_code_as_it_is_now(
    library: Library, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = RunningActivity(library, store)
    before = running.attempt(running.student(), KEY)
    now = CHANGES["a changed right answer"](monkeypatch)(library)
    regrading, activity = Regrading(), running.activity
    assert regrading.preview(now, store, activity).changes == ()
    preview = regrading.preview(now, store, activity, "library")
    [change] = preview.changes
    assert (change.new.graded.score, before.score) == (13, 14)
    assert regrading.apply(now, store, activity, running.teacher, preview.fingerprint, "library")
    [after] = store.classwork.attempts_of_activity(activity.id)
    assert (after.score, after.marks["keys.columns"]) == (13, "wrong")
    assert regrading.preview(now, store, running.activity, "library").changes == ()


def test_a_teacher_may_give_the_sheet_as_the_code_asks_it_now(
    library: Library, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    activity = RunningActivity(library, store).activity
    give_sheets(library, store, activity)
    now = CHANGES["a changed right answer"](monkeypatch)(library)
    assert [sheet.key for sheet in offer_of(now, {}, store, activity).corrected] == ["llama-7b"]
    kept, taken = (
        offer_of(now, {}, store, activity, corrections=keys).freeze(("llama-7b",), "") for keys in ((), ("llama-7b",))
    )
    assert kept.items == activity.content.items
    corrected = replace(activity, content=taken)
    assert activity_variant(now, store, activity, 1).key["keys.columns"] == 128
    assert activity_variant(now, store, corrected, 1).key["keys.columns"] == 256
    assert offer_of(now, {}, store, corrected).corrected == ()


def test_a_sheet_is_kept_when_the_activity_opens_and_not_before(library: Library, store: Store) -> None:
    running = RunningActivity(library, store)
    longer = {key: replace(sheet, title="Other") for key, sheet in library.worksheets.items()}
    draft = replace(running.activity, state="draft")
    assert not activity_variant(library, store, draft, 1).frozen
    give_sheets(library, store, running.activity)
    assert activity_variant(replace(library, worksheets=longer), store, running.activity, 1).frozen


def test_a_worksheet_that_cannot_be_read_is_named(new_app: FastAPI) -> None:
    classroom = MarkedClassroom(new_app)
    kim, content = classroom.student("Kim"), classroom.activity.content
    unreadable = FrozenWorksheet({**content.items[0].worksheet, "tokens": "many"})
    classroom.store.activities.revise(classroom.activity, replace(content, items=(unreadable,)))
    with classroom.browser_of(kim) as browser:
        response = browser.get(classroom.sheet_path)
    assert response.status_code == 404
    assert unreadable.title in Page(response.text).text("main")


@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_every_sheet_is_read_back_as_it_was(key: str) -> None:
    model = LIBRARY.worksheets[key].model
    for worksheet in (key, f"{key}~symbols"):
        if LIBRARY.find_worksheet(worksheet) is None or LIBRARY.refusal(worksheet, model):
            continue
        variant = LIBRARY.variant(worksheet)
        frozen = FrozenSheet(json.loads(json.dumps(sheet_data(variant))))
        kept = replace(variant, frozen=frozen)
        alone = replace(kept, worksheet=replace(variant.worksheet, **WITHOUT_TOPIC))
        right = {str(blank): variant.written_answer(blank) for blank in variant.blanks}
        assert kept.asks_as_frozen
        assert grade(kept, dict.fromkeys(right, "7")) == grade(variant, dict.fromkeys(right, "7"))
        for again in (kept, alone):
            assert said(again) == said(variant)
            assert grade(again, right).complete
