"""Every type with a table and every topic: refused with a sentence, or computed, and the counts are the model's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from app.models.architecture import Architecture
from app.models.config_fields import ConfigError
from app.models.model_sentences import count_remarks, property_sentences
from app.models.parameter_count import parameter_counts
from app.models.parameter_formula import parameter_formula
from app.models.read_config import build_architecture
from app.models.table import table_names
from app.topics.registry import TOPICS, refusal, sizes_for, topic_for
from tests.helpers.every_family import TOKENS, are_possible
from tests.helpers.tables_cases import of_tables

RECORDS = json.loads((Path(__file__).parents[1] / "data" / "model_types.json").read_text())


def configs() -> Iterator[Mapping[str, object]]:
    """The configs of the oracle, then one with nothing but its type for every table."""
    yield from (record["config"] for record in RECORDS)
    yield from ({"model_type": name} for name in sorted(table_names()))


@cache
def models() -> tuple[Architecture, ...]:
    """Every model that a table describes, one of each type and class."""
    found = {(a.family, a.model_class): a for a in of_tables()}
    for config in configs():
        with suppress(ConfigError):
            a = build_architecture(config, f"The {config['model_type']}")
            if a.shapes_only:
                found.setdefault((a.family, a.model_class), a)
    return tuple(found.values())


def test_hybrids_and_models_without_attention_are_among_them() -> None:
    assert any(a.is_hybrid for a in models())
    assert any(a.H == 0 for a in models())


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_refused_or_its_answers_can_be_computed(topic: str) -> None:
    for a in models():
        reason = refusal(topic, a, TOKENS)
        if reason is None:
            table, sizes = topic_for(topic, a, TOKENS), sizes_for(topic, a, TOKENS, TOKENS)
            assert table.askable
            assert are_possible(table, sizes), a.name
        else:
            assert a.name in reason
            assert "choose" in reason.lower()
            assert reason.endswith(".")


def test_a_sheet_that_counts_a_model_counts_all_of_it() -> None:
    counted = list[Architecture]()
    for a in models():
        if refusal("parameter-count", a, TOKENS) is None:
            sizes, true = sizes_for("parameter-count", a, TOKENS, TOKENS), parameter_counts(a)
            rows = topic_for("parameter-count", a, TOKENS).askable
            assert rows["total"].size("count", sizes) == true.total, a.name
            assert (rows["used"].size("count", sizes) if "used" in rows else true.active) == true.active, a.name
            counted.append(a)
    assert any(a.is_hybrid for a in counted)


def test_the_page_of_a_model_has_its_sentences_and_its_sum() -> None:
    for a in models():
        counts, total = parameter_counts(a), parameter_formula(a)
        sentences = [*property_sentences(a), *count_remarks(a, counts, total)]
        assert total.total == counts.total, a.name
        assert all(text.endswith(".") and "{" not in text for text in sentences), a.name
