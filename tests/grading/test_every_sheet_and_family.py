"""Every shipped sheet is graded for a model of every family, whatever is typed."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache

import pytest

from app.algebra.expression import Formula
from app.grading.grade import grade
from app.grading.hints import HINT_LEVELS, write_hint
from app.grading.mistaken_sheets import right_texts
from app.misconceptions import predictions
from app.misconceptions.catalogue import MISCONCEPTIONS, Misconception, Prediction
from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture, read_config
from app.sheets.worksheet import Model
from tests.helpers.families_cases import CASES, LLAMA
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")


@cache
def one_of_each_family() -> tuple[Model, ...]:
    """Each family's first config, without a context length where the family can do without."""
    models = list[Model]()
    for case in CASES:
        config, name = next(case.configs())
        for left_out in (LENGTHS, ()):
            stated = {field: size for field, size in config.items() if field not in left_out}
            with suppress(ConfigError):
                architecture = build_architecture({**stated, "architectures": [name]}, case.model_type)
                key = f"{case.model_type}-{len(models)}"
                models.append(Model(key, case.model_type, "", "", architecture, json.dumps(stated)))
                break
    return tuple(models)


def test_some_models_have_a_context_length_and_some_have_none() -> None:
    lengths = [model.architecture.C for model in one_of_each_family()]
    assert len(lengths) == len(CASES)
    assert lengths.count(None) > 2
    assert len(lengths) - lengths.count(None) > 10


@pytest.mark.parametrize("sheet", one_in(12, LIBRARY.worksheets))
def test_a_sheet_is_graded_for_every_family(sheet: str, caplog: pytest.LogCaptureFixture) -> None:
    library = LIBRARY.with_added(models=one_of_each_family())
    for model in one_of_each_family():
        if library.refusal(sheet, model.key):
            continue
        variant = library.variant(sheet, model.key)
        right = right_texts(variant)
        assert grade(variant, right).complete, model.name
        assert grade(variant, {}).score == 0, model.name
        wrong = dict.fromkeys(right, "7919")
        report = grade(variant, wrong)
        assert report.score < report.out_of, model.name
        for level in HINT_LEVELS:
            write_hint(variant, report, level)
    assert caplog.records == []


def test_a_misconception_that_cannot_be_worked_out_is_left_out_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prediction = Prediction({"embedding.count": Formula.parse("right + k*d")})
    faulty = Misconception("faulty", 999, {"parameter-count": (prediction,)})
    monkeypatch.setattr(predictions, "MISCONCEPTIONS", (faulty, *MISCONCEPTIONS))
    config = json.dumps({**LLAMA, "model_type": "llama"})
    model = Model("faulty", "Without experts", "", "", read_config(config, "A model of this test’s own"), config)
    variant = LIBRARY.with_added(models=[model]).variant("count-llama-7b", "faulty")
    without_head = right_texts(variant) | {"output_head.count": "0"}
    for row in ("total", "used"):
        if f"{row}.count" in without_head:
            without_head[f"{row}.count"] = str(variant.key[f"{row}.count"] - variant.key["output_head.count"])
    report = grade(variant, without_head)
    assert report.diagnosis
    assert report.diagnosis.key == "separate-head-forgotten"
    assert {"faulty" in record.message for record in caplog.records} == {True}
