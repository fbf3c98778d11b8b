"""Parameter counts against numbers measured on transformers' own modules, and against totals the world knows."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.architecture import Architecture
from app.models.parameter_count import parameter_counts, parameter_tensors, parameters_json
from app.models.read_config import build_architecture
from app.topics.single_head import SINGLE_HEAD
from tests.helpers.families_cases import CASES, Case
from tests.helpers.reference import built

DATA = Path(__file__).parents[1] / "data"
Record = dict[str, Any]
RECORDS: list[Record] = json.loads((DATA / "transformers_shapes.json").read_text())
PUBLISHED: list[Record] = json.loads((DATA / "published_totals.json").read_text())
LAYER_ROW = ("attention", "attention_norms", "mlp", "norms", "total")


def read(record: Record) -> Architecture:
    return build_architecture(record["config"], record["name"])


def named(records: list[Record]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=lambda record: str(record["name"]))


@named(RECORDS)
def test_totals_and_buckets_are_those_measured(record: Record) -> None:
    counts, expected = parameters_json(read(record)), record["expected"]
    assert counts["total"] == expected["total_parameters"]
    assert counts["embedding"] == expected["parameters_embedding"]
    assert counts["output_head"] == expected["parameters_lm_head"]
    assert counts["other"] == expected["parameters_other_non_layer"]
    assert read(record).model_class == expected["model_class"]


@named(RECORDS)
def test_layers_are_counted_run_by_run(record: Record) -> None:
    measured = [run for runs in record["expected"]["parameters_by_layer"].values() for run in runs]
    runs = parameters_json(read(record))["layers"]
    assert [run["count"] for run in runs] == [run["layers"] for run in measured]
    assert [[run[key] for key in LAYER_ROW] for run in runs] == [[run[key] for key in LAYER_ROW] for run in measured]
    assert [run["other"] for run in runs] == [run["attention_other"] + run["cross_attention"] for run in measured]


@named(RECORDS)
def test_every_stored_shape_is_the_one_in_transformers(record: Record) -> None:
    shapes = {tensor["name"]: tensor["shape"] for tensor in parameters_json(read(record))["tensors"]}
    expected = record["expected"]
    outside = {name: shape for name, shape in shapes.items() if "{i}" not in name}
    assert outside == expected["non_layer_parameter_shapes"]
    layers = [expected["layer0_parameter_shapes"], expected.get("decoder_layer0_parameter_shapes", {})]
    stacks = [f"{stack}.{{i}}." for stack in expected["parameters_by_layer"]]
    for stack, layer in zip(stacks, layers, strict=False):
        numbered = {re.sub(r"^layer\.\d", "layer.{j}", name): shape for name, shape in layer.items()}
        assert {name.removeprefix(stack): s for name, s in shapes.items() if name.startswith(stack)} == numbered


@named(RECORDS)
def test_one_heads_matrices_stand_in_the_orientation_of_the_product(record: Record) -> None:
    sizes = {**read(record).all_sizes, "N": 7}
    for key, shape in record["expected"]["weights_per_head"].items():
        assert [side.size(sizes) for side in SINGLE_HEAD[key].shape] == shape


@named(RECORDS)
def test_biases_and_tied_embeddings_are_those_built(record: Record) -> None:
    architecture, expected = read(record), record["expected"]
    assert {letter: letter in architecture.biases for letter in "qkvo"} == expected["attention_bias"]
    assert architecture.tied_embeddings == expected["tied_embeddings"]


@named(PUBLISHED)
def test_a_published_model_has_as_many_parameters_as_transformers_builds(record: Record) -> None:
    config = record["config"]
    name = "LlamaForCausalLM" if config["model_type"] == "internlm3" else config["architectures"][0]
    assert parameter_counts(read(record)).total == record["total"]
    assert sum(math.prod(shape) for shape in built(config, name).values()) == record["total"]


LIBRARY = sorted((Path(__file__).parents[2] / "worksheets" / "models").glob("*.json"))
# Rounded as their papers and cards round them: LLaMA (arXiv:2302.13971, table 2), DeepSeek-V3 (README_WEIGHTS.md).
AS_PUBLISHED = {
    "llama-7b": (6.7e9, 1), "llama-13b": (13.0e9, 1), "llama-33b": (32.5e9, 1), "llama-65b": (65.2e9, 1),
    "deepseek-v3": (671e9, 0), "llama-3.1-405b": (405e9, 0), "gpt2-xl": (1.5e9, 1), "smollm2-135m": (0.135e9, 3),
    "flan-t5-small": (0.077e9, 3), "whisper-tiny": (0.038e9, 3), "vit-base": (0.086e9, 3), "gpt-oss-20b": (20.9e9, 1),
}  # fmt: skip


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_a_model_of_the_library_has_as_many_parameters_as_transformers_builds(path: Path) -> None:
    entry = json.loads(path.read_text())
    total = parameter_counts(build_architecture(entry["config"], entry["name"])).total
    built_config = {**entry["config"], "pad_token_id": 0}
    assert sum(math.prod(shape) for shape in built(built_config, entry["config"]["architectures"][0]).values()) == total
    published, digits = AS_PUBLISHED.get(path.stem, (float(total), 3))
    assert abs(total - published) < 10 ** (9 - digits)
    assert entry["card"].startswith("https://")


def test_a_token_meets_only_its_experts() -> None:
    (mixtral,) = (record for record in RECORDS if record["model_type"] == "mixtral")
    counts = parameter_counts(read(mixtral))
    assert counts.active == counts.total - 32 * 6 * 3 * 4096 * 14336 == 12_879_925_248


def test_llama_7b_is_a_sum_of_products_without_the_context_length() -> None:
    (llama,) = (record for record in RECORDS if record["name"] == "llama-7b")
    tensors = parameter_tensors(read(llama))
    assert sum(t.total for t in tensors) == 2 * 32000 * 4096 + 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 4096
    symbols = {symbol for t in tensors for dim in t.spec.stored_shape for symbol in dim.symbols}
    assert symbols == {"V", "d", "H", "d_h", "G", "d_v", "d_ff"}


@given(case=st.sampled_from(CASES), data=st.data())
def test_sums_over_tensors_layers_and_buckets_agree_for_any_sizes(case: Case, data: st.DataObject) -> None:
    architecture = build_architecture(drawn(case, data))
    counts = parameters_json(architecture)
    total = sum(tensor["count"] * tensor["layers"] for tensor in counts["tensors"])
    layers = sum(run["count"] * run["total"] for run in counts["layers"])
    assert counts["total"] == total == counts["embedding"] + counts["output_head"] + counts["other"] + layers
    assert 0 < counts["active"] <= total
    for parameter in parameter_tensors(architecture):
        assert sorted(parameter.stored_shape) == sorted(parameter.in_out_shape)
        assert parameter.count == math.prod(parameter.stored_shape)


def drawn(case: Case, data: st.DataObject) -> dict[str, Any]:
    """A config of the case with random settings, its widths and counts multiplied so that they stay legal."""
    changed = {name: data.draw(st.sampled_from(values)) for name, values in case.settings.items()}
    config = case.config(changed)
    free = ("vocab_size", "intermediate_size", "ffn_dim", "d_ff", "hidden_dim", "kv_lora_rank", "moe_intermediate_size")
    for name in free:
        if isinstance(config.get(name), int):
            config[name] = data.draw(st.integers(1, 300_000), label=name)
    wider = data.draw(st.integers(1, 500), label="times wider")
    for name in ("hidden_size", "n_embd", "d_model", "dim"):
        if name in config:
            config[name] *= wider
    return config
