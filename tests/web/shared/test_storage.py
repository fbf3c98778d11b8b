"""What a visitor may store is counted by network and hour, and what a student does in a class by student.

What is imported is trimmed to what is read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.exchange.imported_models import import_config
from app.models.config_fields import ConfigError
from app.sheets.answers import MAX_BOX_TEXT
from app.store import Policies, PracticeSheetKey, Store, Student
from app.store.tables import attempts, drafts, models
from app.web.shared import rate_limits
from app.web.shared.rate_limits import (
    BYTES_OF_ATTEMPT,
    BYTES_OF_RUN,
    BYTES_PER_HOUR,
    BudgetSpentError,
    StorageBudget,
)
from tests.helpers.answer_keys import KEY
from tests.helpers.processor_time import processor_time_s
from tests.helpers.school import SCRIPT, Classroom, School
from tests.helpers.sheet_form import LLAMA_FORM
from tests.helpers.stored_class import save

CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 32, "vocab_size": 100, "num_hidden_layers": 2, "rms_norm_eps": 1e-5,
}  # fmt: skip


def test_a_network_has_a_budget_that_fills_again() -> None:
    at = [0.0]
    budget = StorageBudget(clock=lambda: at[0])
    budget.charge("here", BYTES_PER_HOUR)
    with pytest.raises(BudgetSpentError) as refused:
        budget.charge("here", 1000)
    budget.charge("elsewhere", 1000)
    at[0] += refused.value.seconds
    budget.charge("here", 1000)


def test_saving_the_same_sheet_again_costs_nothing() -> None:
    budget = StorageBudget(clock=lambda: 0.0)
    answers = {f"box {number}": "4096" for number in range(14)}
    for _save in range(200):
        for visitor in range(1000):
            budget.charge_sheet("campus", str(visitor), "sheet", answers, again=False)
    long_answers = {f"box {number}": "9" * MAX_BOX_TEXT for number in range(14)}

    def store_new_sheets() -> None:
        for number in range(20_000):
            budget.charge_sheet("campus", str(number), f"sheet {number}", long_answers, again=False)

    with pytest.raises(BudgetSpentError):
        store_new_sheets()


def test_no_class_is_ever_refused_however_many_are_behind_one_address() -> None:
    budget = StorageBudget(4, clock=lambda: 0.0)
    for student in range(1499):
        budget.charge_new_name("campus")
        for _ in range(50):
            budget.charge_student(student, BYTES_OF_ATTEMPT)
        for _ in range(10):
            budget.charge_student(student, BYTES_OF_RUN)
    budget.charge("campus", 1000)


def test_a_student_and_new_names_have_budgets_that_end() -> None:
    budget = StorageBudget(clock=lambda: 0.0)

    def count_until_refused(charge: Callable[[], None]) -> int:
        for count in itertools.count():
            try:
                charge()
            except BudgetSpentError:
                return count
        raise AssertionError

    for student in (1, 2):
        assert 300 < count_until_refused(partial(budget.charge_student, student, BYTES_OF_ATTEMPT)) < 1000
    for network in ("here", "elsewhere"):
        assert 1000 < count_until_refused(partial(budget.charge_new_name, network)) < 3000


def test_attempts_in_a_class_are_counted_and_nothing_is_lost(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "BYTES_OF_STUDENT_PER_HOUR", 3.5 * BYTES_OF_ATTEMPT)
    classroom = Classroom(app, Policies(feedback="immediate"))
    (kim, browser), (lou, other) = classroom.join("Kim"), classroom.join("Lou")

    def press(browser: TestClient, what: str, number: int, path: str = classroom.sheet_path) -> Any:
        form = {**KEY, "input.rows": str(number), "form_id": f"form-{number:04}"}
        return browser.post(f"{path}/{what}", data=form, headers=SCRIPT)

    def attempts(student: Student) -> list[tuple[str, bool]]:
        return [(each.answers["input.rows"], each.handed_in) for each in work.attempts_of_student(student.id)]

    work = classroom.store.classwork
    assert [press(browser, "check", number).status_code for number in (1, 2, 3)] == [200] * 3
    for what in ("check", "hand-in"):
        refused = press(browser, what, 4)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert press(browser, "save", 5).status_code == 200
    assert press(browser, "check", 6).status_code == 429
    assert [draft.answers["input.rows"] for draft in work.drafts_of_activity(classroom.activity.id)] == ["6"]
    assert press(browser, "hand-in", 3).status_code == 200
    assert attempts(kim) == [("1", False), ("2", False), ("3", True)]
    limited = f"/class/{classroom.open(feedback='immediate', max_attempts=2).id}/1"
    assert [press(browser, "check", number, limited).status_code for number in (7, 8, 9)] == [200] * 3
    assert press(browser, "hand-in", 9, limited).status_code == 200
    assert attempts(kim)[3:] == [("7", False), ("8", True)]
    assert press(other, "check", 1).status_code == 200
    assert attempts(lou) == [("1", False)]


def test_an_attempt_is_counted_once_though_a_save_came_first(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "BYTES_OF_STUDENT_PER_HOUR", BYTES_OF_ATTEMPT)
    classroom = Classroom(app, Policies(feedback="immediate"))
    kim, browser = classroom.join("Kim")
    work, tries = classroom.store.classwork, list[str]()
    record = work.record

    def record_after_a_save(key: Any, attempt: Any, draft: Any, allowed: int) -> Any:
        if not tries:
            save(classroom.store, key, {"input.rows": "7"})
        tries.append(attempt.answers["input.rows"])
        return record(key, attempt, draft, allowed)

    monkeypatch.setattr(work, "record", record_after_a_save)
    answer = browser.post(f"{classroom.sheet_path}/check", data={**KEY, "form_id": "form-0001"}, headers=SCRIPT)
    assert (answer.status_code, len(tries)) == (200, 2)
    assert len(work.attempts_of_student(kim.id)) == 1


def test_what_is_stored_of_long_answers_is_what_is_counted(app_on_each_database: FastAPI) -> None:
    classroom = Classroom(app_on_each_database, Policies(feedback="immediate"))
    (kim, browser), charged = classroom.join("Kim"), list[float]()
    storage, full = classroom.school.services.storage, dict.fromkeys(KEY, "🙂" * MAX_BOX_TEXT)
    storage._take = lambda key, part, share=1: charged.append(part)  # type: ignore[method-assign]

    def largest(column: sa.Column[Any]) -> int:
        with classroom.store.engine.connect() as connection:
            texts = connection.scalars(sa.select(sa.cast(column, sa.Text)))
            return max(len(text.encode()) for text in texts)

    browser.post(f"{classroom.sheet_path}/check", data={**full, "input.rows": "100", "form_id": "form-0001"})
    assert largest(attempts.c.answers) <= charged[-1] * rate_limits.BYTES_OF_STUDENT_PER_HOUR
    assert classroom.store.classwork.attempts_of_student(kim.id)[0].answers["keys.rows"] == full["keys.rows"]
    browser.post("/sheet/check", data={**LLAMA_FORM, **full, "input.rows": "100"})
    both = largest(drafts.c.answers) + largest(attempts.c.answers)
    assert both <= charged[-1] * BYTES_PER_HOUR < 2 * both


def test_half_a_character_can_be_stored(store: Store) -> None:
    visitor = store.add_visitor()
    here = PracticeSheetKey(visitor.id, "sheet")
    save(store, here, {"a": "\ud800", "b": "🙂"})
    kept = store.classwork.draft(here)
    assert kept
    assert dict(kept.answers) == {"a": "\ud800", "b": "🙂"}


def test_the_disk_cannot_be_filled_with_models(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    school = School(app)
    client = TestClient(app)
    labels = {str(number): "x" * 50 for number in range(5000)}
    rest: list[dict[str, Any]] = [{"id2label": labels}, {"note": "x" * 900_000}, {"list": ["x"] * 100_000}]
    for number, padding in enumerate(rest):
        config = {**CONFIG, **padding, "vocab_size": 200 + number}
        assert client.post("/api/v1/models", json={"config": config}).status_code == 200
    with school.store.engine.connect() as connection:
        sizes = list(connection.scalars(sa.select(sa.func.length(models.c.config))))
    assert max(sizes) < 500
    many = {f"field_{number}": number for number in range(5000)}
    answer = client.post("/api/v1/models", json={"config": {**CONFIG, **many}})
    assert answer.status_code == 422
    assert "holds too much" in answer.text
    most = CONFIG | {f"field_{number}": number for number in range(300_000)}

    def refuse_most() -> None:
        with pytest.raises(ConfigError):
            import_config(school.store, most, "pasted")

    assert processor_time_s(refuse_most) < 0.1
    monkeypatch.setattr(school.services.storage, "_bytes_per_hour", 100.0)
    answer = client.post("/api/v1/models", json={"config": CONFIG})
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert client.post("/models", data={"way": "text", "text": json.dumps(CONFIG)}).status_code == 429


def test_the_same_import_has_the_same_address_and_a_given_name_is_its_own(app: FastAPI) -> None:
    school = School(app)
    store = school.store
    rude = import_config(store, CONFIG, "pasted", "Rude name")
    plain = import_config(store, CONFIG, "pasted")
    assert rude.key != plain.key
    assert "Rude" not in plain.name
    assert import_config(store, CONFIG, "file", "Rude name").key == rude.key
    assert import_config(store, {**CONFIG, "label2id": {}}, "pasted").key == plain.key
    whole = {**CONFIG, "label2id": {"cat": 0}, "hidden_size": 32}
    earlier = store.keep_model("Old", whole, "pasted")
    assert import_config(store, whole, "pasted").key == earlier.key


def test_a_box_holds_no_more_than_can_be_read_twice(app: FastAPI) -> None:
    client = TestClient(app)
    client.post("/sheet/save", data={**LLAMA_FORM, "queries.rows": "7" * 10_000, "version": "1"})
    with School(app).store.engine.connect() as connection:
        [answers] = connection.scalars(sa.select(drafts.c.answers).where(drafts.c.visitor_id.is_not(None)))
    assert len(answers["queries.rows"]) == MAX_BOX_TEXT
