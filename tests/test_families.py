"""Every family against the transformers library: each parameter's name, shape and number, and each layer's sum."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from app.attention.architecture import Architecture, architecture_from
from app.attention.families import FAMILIES
from app.attention.parameters import layer_counts, parameter_counts, parameter_tensors
from tests.families_cases import CASES, LLAMA, Case, Config
from tests.reference import Shapes, built, by_pattern, per_layer

# transformers registers the output head of these before the embedding it is tied to, and so names the one tensor.
OTHER_NAMES = {"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight"}
# Rows that only rename another one, or that transformers has no class for.
RENAMED = {"RefinedWeb", "RefinedWebModel", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"}
PARTS = {"qwen3_vl_text"}


def read(config: Config, class_name: str) -> Architecture:
    return architecture_from({**config, "architectures": [class_name]}, config["model_type"])


def ours(architecture: Architecture) -> Shapes:
    found: Shapes = {}
    for parameter in parameter_tensors(architecture):
        found.setdefault(parameter.name, Counter())[parameter.stored] += parameter.places
    return found


def theirs(parameters: dict[str, tuple[int, ...]], architecture: Architecture) -> Shapes:
    renamed = {
        OTHER_NAMES.get(name, name) if architecture.tied_embeddings else name: n for name, n in parameters.items()
    }
    return by_pattern(renamed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model_type)
def test_every_parameter_has_the_name_shape_and_number_that_transformers_gives_it(case: Case) -> None:
    """Both settings of every flag, stated and derived head widths, every class of the family that we count."""
    for config, class_name in case.configs():
        architecture, parameters = read(config, class_name), built(config, class_name)
        assert ours(architecture) == theirs(parameters, architecture), (class_name, config)
        assert architecture.model_class == class_name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model_type)
def test_every_layer_holds_as_many_parameters_as_in_transformers(case: Case) -> None:
    """Layer by layer, so that experts, first layers and cross attention stand where they belong."""
    config, class_name = list(case.configs())[-1]
    architecture, parameters = read(config, class_name), built(config, class_name)
    found: dict[tuple[str, int], int] = {}
    for part in architecture.layers:
        rows = [run.total for run in layer_counts(architecture, part) for _ in range(run.count)]
        stack = architecture.head.prefix + part.stack.name.split("{i}")[0]
        found |= {(stack, number): total for number, total in enumerate(rows)}
    assert found == per_layer(parameters)
    assert parameter_counts(architecture).total == sum(math.prod(shape) for shape in parameters.values())


def test_every_family_has_a_case() -> None:
    """A row added without a comparison with transformers is a row nobody checked."""
    assert FAMILIES.keys() - {case.model_type for case in CASES} == RENAMED | PARTS


REQUIRED = {name: LLAMA[name] for name in ("vocab_size", "num_hidden_layers", "intermediate_size", "pad_token_id")}


@pytest.mark.parametrize(
    "model_type",
    [
        "llama", "mistral", "ministral3", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2",
        "gemma3_text", "phi", "phi3", "phimoe", "gpt_neox", "starcoder2", "falcon", "stablelm", "olmo", "olmo2",
        "olmo3", "olmoe", "cohere", "cohere2", "granite", "granitemoe", "glm", "glm4", "internlm3", "exaone4",
        "smollm3", "persimmon", "gpt_oss", "bert", "roberta", "albert", "electra", "modernbert", "deberta",
        "deberta-v2", "vit", "clip_text_model", "llama4_text",
    ],
)  # fmt: skip
def test_a_field_left_out_means_what_the_config_class_of_its_family_says(model_type: str) -> None:
    """Only the sizes that every file states are given: heads, widths, tables and biases follow by rule."""
    config = {"model_type": model_type, **REQUIRED, "hidden_size": 2048, "num_attention_heads": 32}
    class_name = FAMILIES[model_type].model_class
    name = "LlamaForCausalLM" if model_type == "internlm3" else class_name
    architecture = architecture_from(config)
    assert architecture.model_class == class_name
    assert ours(architecture) == theirs(built(config, name), architecture)
