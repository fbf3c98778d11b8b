"""A worksheet of an activity as one student has it: its sizes, and what of its report is stored."""

from __future__ import annotations

import pytest

from app.activities.work import Draft
from app.classes.student_sheet import (
    ChosenWorksheet,
    activity_variant,
    best_scores,
    choice_of,
    freeze,
    models_of,
    stored_marks,
    student_sheet,
    variant_seed,
)
from app.grading.grade import grade
from app.sheets.library import Library
from app.store import Policies, Store, VariantSizes
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.running_activity import RunningActivity


def test_students_have_numbers_of_their_own_where_the_policy_says(library: Library, store: Store) -> None:
    running = RunningActivity(library, store, policies=Policies(variants="per_student"))
    students = [running.student(f"S{number}") for number in range(6)]
    looks = [[student_sheet(library, store, running.activity, each, 1).sizes for each in students] for _ in range(2)]
    assert looks[0] == looks[1]
    assert len(set(looks[0])) > 1
    assert len({variant_seed(running.activity, each) for each in students}) == 6
    everybody = activity_variant(library, store, running.activity, 1)
    assert (everybody.model.key, everybody.tokens) == ("llama-7b", library.worksheets["llama-7b"].tokens)


def test_a_student_keeps_the_sizes_of_the_first_save(library: Library, store: Store) -> None:
    running = RunningActivity(library, store)
    kim, sizes = running.student(), VariantSizes("llama-13b", 7)
    sheet = student_sheet(library, store, running.activity, kim, 1)
    store.classwork.save(sheet.key, Draft({"queries.rows": "7"}, 1, sizes))
    kept = student_sheet(library, store, running.activity, kim, 1)
    assert (kept.sizes, kept.variant.sizes["N"], kept.variant.sizes["d"]) == (sizes, 7, 5120)
    assert kept.key == sheet.key


@pytest.mark.parametrize(
    ("choice", "models", "chosen"),
    [
        (ChosenWorksheet("llama-7b"), None, ChosenWorksheet("llama-7b")),
        (ChosenWorksheet("llama-7b", "gpt2", 64), ("gpt2",), ChosenWorksheet("llama-7b", "gpt2", 64)),
        (ChosenWorksheet("llama-7b", "", 64), None, ChosenWorksheet("llama-7b", "", 64)),
    ],
)
def test_a_worksheet_is_frozen_with_what_was_chosen(
    library: Library, choice: ChosenWorksheet, models: tuple[str, ...] | None, chosen: ChosenWorksheet
) -> None:
    content = freeze(library, [choice], None)
    [item] = content.items
    sheet = library.worksheets["llama-7b"]
    assert choice_of(item) == chosen
    assert models_of(item) == (models or (sheet.model, *sheet.models))
    assert {key: model["config"] for key, model in content.models.items()} == {
        key: library.models[key].config for key in models_of(item)
    }


def test_an_attempt_stores_marks_by_box_and_the_diagnosis_first(library: Library, store: Store) -> None:
    activity = RunningActivity(library, store).activity
    variant = library.variant("llama-7b")
    right, wide = (stored_marks(variant, grade(variant, answers)) for answers in (KEY, WIDE))
    assert (set(right.marks.values()), right.misconceptions, right.score) == ({"right"}, (), right.out_of)
    assert wide.misconceptions[0] == "head-as-wide-as-model"
    assert wide.marks.keys() == right.marks.keys() == KEY.keys()
    assert best_scores(library, store, activity) == (right.out_of,)
