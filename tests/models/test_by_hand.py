"""Tables written by hand, for types that transformers doesn't have: published totals, layers, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.models.config_fields import ConfigError
from app.models.model_sentences import property_sentences
from app.models.parameter_count import parameter_counts
from app.models.read_config import build_architecture
from app.models.read_table import read_table
from app.models.table import BY_HAND_FOLDER, family_file, is_by_hand
from app.topics.registry import TOPICS, refusal, sizes_for, topic_for
from tests.helpers.every_family import TOKENS, are_possible

Record = dict[str, Any]
# Published configs; "source" says where the total was published, and what was taken off.
PUBLISHED: list[Record] = json.loads((Path(__file__).parents[1] / "data" / "by_hand_totals.json").read_text("utf-8"))
REFUSED = sorted(
    path.name for path in BY_HAND_FOLDER.iterdir() if (file := family_file(path.name)) is not None and file.refused
)


@pytest.mark.parametrize("record", PUBLISHED, ids=[record["name"] for record in PUBLISHED])
def test_a_table_by_hand_gives_the_published_total_and_the_tensors_of_layer_0(record: Record) -> None:
    config: Record = record["config"]
    file = family_file(config["model_type"])
    assert file
    table = file.table_of(config["architectures"][0]) or file.tables[0]
    a = read_table(table, config, record["name"], file.model_type, table.classes[0], ())
    assert parameter_counts(a).total == record["total"]
    first = a.stacks[0].runs[0].parameters
    assert {spec.name: [axis.size(a.all_sizes) for axis in spec.stored_shape] for spec in first} == record["layer_0"]


def test_every_table_by_hand_names_its_sources_and_is_checked_or_refused() -> None:
    checked = {record["config"]["model_type"] for record in PUBLISHED}
    for path in BY_HAND_FOLDER.iterdir():
        first, *_rest = path.read_text("utf-8").splitlines()
        assert first.startswith(f"# {path.name}")
        assert "by hand" in first.lower()
        if is_by_hand(path.name):  # the others are compared with transformers in test_families.py
            assert (path.name in checked) != (path.name in REFUSED)


@pytest.mark.parametrize("model_type", REFUSED)
def test_a_type_without_a_table_is_refused_by_what_is_missing(model_type: str) -> None:
    with pytest.raises(ConfigError, match=model_type) as refused:
        build_architecture({"model_type": model_type, "hidden_size": 64, "auto_map": {}})
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("record", PUBLISHED, ids=[record["name"] for record in PUBLISHED])
def test_every_topic_is_refused_or_its_answers_can_be_computed(record: Record) -> None:
    a = build_architecture(record["config"], record["name"])
    for topic in TOPICS:
        reason = refusal(topic, a, TOKENS)
        if reason is None:
            assert are_possible(topic_for(topic, a, TOKENS), sizes_for(topic, a, TOKENS, TOKENS)), topic
        else:
            assert a.name in reason
            assert reason.endswith(".")


def test_a_file_read_by_a_table_by_hand_says_so() -> None:
    assert any("written by hand" in str(note) for note in build_architecture(PUBLISHED[0]["config"]).notes)


def test_baichuan_13b_adds_alibi_to_its_scores_and_7b_does_not() -> None:
    config = next(record["config"] for record in PUBLISHED if record["config"]["model_type"] == "baichuan")
    smaller = {**config, "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}
    assert build_architecture(config).position_bias == "alibi"
    assert not build_architecture(smaller).position_bias


def test_no_sentence_says_that_transformers_has_a_type_of_a_table_by_hand() -> None:
    sentences = " ".join(property_sentences(build_architecture(PUBLISHED[0]["config"])))
    assert "in transformers" not in sentences
