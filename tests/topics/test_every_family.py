"""Every family and every topic: refused with a sentence, or true of the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.architecture import Architecture
from app.models.config_fields import ConfigError
from app.models.parameter_count import parameter_counts
from app.models.parameter_specs import ParameterSpec
from app.models.read_config import build_architecture
from app.topics.decode_steps import decode_steps
from app.topics.registry import TOPICS, refusal, sizes_for, topic_for
from app.topics.requirements import visible_keys
from tests.helpers.every_family import TOKENS, are_possible, possible
from tests.helpers.families_cases import CASES


def count_rows(a: Architecture) -> dict[str, int]:
    """The answers of a model's parameter-count sheet."""
    sizes = sizes_for("parameter-count", a, TOKENS, TOKENS)
    return {key: entry.size("count", sizes) for key, entry in topic_for("parameter-count", a, 10).askable.items()}


@pytest.mark.parametrize("topic", TOPICS)
def test_an_answer_key_can_be_computed_for_every_family(topic: str) -> None:
    models = list(possible(topic))
    assert models
    for a in models:
        table, sizes = topic_for(topic, a, TOKENS), sizes_for(topic, a, TOKENS, TOKENS)
        assert table.askable
        assert are_possible(table, sizes), a.name


def test_steps_of_a_cache_are_true_of_every_family() -> None:
    dropping = set[str]()
    for a in possible("decode-step"):
        for step in decode_steps(replace(a, C=None), TOKENS, words=6):  # so that windows can be full
            runs = [run for run in a.stacks[-1].runs if run.window or not step.layers[0]]
            assert {visible_keys(run, step.cached) for run in runs} == {step.keys}, (a.name, step.cached)
            dropping |= {a.family} if step.dropped else set()
    assert {"gemma2", "mistral"} <= dropping


def test_the_parameter_count_sheet_has_the_true_total() -> None:
    for a in possible("parameter-count"):
        rows, true = count_rows(a), parameter_counts(a)
        assert rows["total"] == true.total, a.name
        assert rows.get("used", true.total) == true.active, a.name


def test_the_rows_of_a_parameter_count_sheet_add_up_to_its_total() -> None:
    for a in possible("parameter-count"):
        rows, asked = count_rows(a), topic_for("parameter-count", a, TOKENS).askable
        for key, row in asked.items():
            made_from = getattr(row, "made_from", None)
            if made_from is not None:
                parts = {part: rows[part] for part in made_from.parts}
                assert made_from.number(a.all_sizes, parts) == rows[key], (a.name, key)


def test_a_row_holds_only_what_it_names() -> None:
    for a in possible("parameter-count"):
        rows, d, width = count_rows(a), a.d, a.all_sizes.get("d_emb", a.d)
        assert rows.get("final_norm", d) in (d, 2 * d), a.name
        assert rows.get("embedding_norm", width) in (width, 2 * width), a.name
        assert rows.get("norms", d) in {n * d for n in range(1, 9)}, a.name
        if "V" in a.all_sizes:
            vocabulary = a.all_sizes["V"]
            assert rows.get("output_head", 0) in {
                m * width * vocabulary + n * vocabulary for m in (0, 1) for n in (0, 1, 2)
            }
        for kind in a.stacks[0].kinds:
            in_attention = " ".join(spec.name for spec in kind.rows["attention"])
            assert not any(other in in_attention for other in ("mlp", "fc", "ffn", "intermediate")), in_attention


def test_every_parameter_is_in_one_row() -> None:
    for a in possible("parameter-count"):
        per_layer = sum(kind.layers * sum(size(spec, a) for spec in kind.parameters) for kind in a.stacks[0].kinds)
        assert per_layer == count_rows(a)["all_layers"], a.name


def size(spec: ParameterSpec, a: Architecture) -> int:
    """How many numbers the tensors of one spec hold."""
    return spec.count.size(a.all_sizes)


SIZES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
    "inner": (
        "intermediate_size",
        "n_inner",
        "ffn_dim",
        "hidden_dim",
        "d_ff",
        "encoder_ffn_dim",
        "moe_intermediate_size",
    ),
    "vocabulary": ("vocab_size",),
    "positions": ("max_position_embeddings", "n_positions"),
}


@given(st.data())
def test_generated_configs_are_refused_or_counted_right(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    config, name = data.draw(st.sampled_from(list(case.configs())))
    drawn = {key: data.draw(st.integers(TOKENS + 1, 97)) for key in SIZES} | {"layers": data.draw(st.integers(1, 9))}
    changed = {field: drawn[key] for key, fields in SIZES.items() for field in fields if config.get(field) is not None}
    try:
        a = build_architecture({**config, **changed, "architectures": [name]}, "The model")
    except ConfigError:
        return  # a list in it has as many items as there were layers
    for topic in TOPICS:
        if refusal(topic, a, TOKENS) is None:
            table, sizes = topic_for(topic, a, TOKENS), sizes_for(topic, a, TOKENS, TOKENS)
            assert are_possible(table, sizes)
            if topic == "parameter-count":
                rows, true = count_rows(a), parameter_counts(a)
                assert (rows["total"], rows.get("used", true.active)) == (true.total, true.active)
