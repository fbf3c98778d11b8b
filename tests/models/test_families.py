"""Every family against the transformers library: each parameter's name, shape and number, and each layer's sum."""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest

from app.models.architecture import Architecture
from app.models.computation import computation_of
from app.models.parameter_count import layer_counts, parameter_counts, parameter_tensors
from app.models.parameter_specs import ModelPart
from app.models.read_config import build_architecture
from app.models.table import family_file, table_names
from app.topics.shapes_json import shapes
from tests.helpers.families_cases import CASES, GPT, LATENT, LLAMA, MOE, Case, Config
from tests.helpers.reference import Shapes, attention_of_a_step, built, by_pattern, per_layer
from tests.helpers.slow import one_in

# transformers registers the output head of these before the embedding it is tied to, and so names the one tensor.
OTHER_NAMES = {"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight"}
KNOWN = {name for name in table_names() if computation_of(name).is_known}
RENAMED = {"RefinedWeb", "RefinedWebModel"}  # Falcon's first files


def read(config: Config, class_name: str) -> Architecture:
    return build_architecture({**config, "architectures": [class_name]}, config["model_type"])


def ours(architecture: Architecture) -> Shapes:
    computed: Shapes = {}
    for parameter in parameter_tensors(architecture):
        computed.setdefault(parameter.name, Counter())[parameter.stored_shape] += parameter.instances
    return computed


def theirs(parameters: dict[str, tuple[int, ...]], architecture: Architecture) -> Shapes:
    renamed = {
        OTHER_NAMES.get(name, name) if architecture.tied_embeddings else name: n for name, n in parameters.items()
    }
    return by_pattern(renamed)


@pytest.mark.parametrize("case", one_in(6, CASES), ids=lambda case: case.model_type)
def test_every_parameter_has_the_name_shape_and_number_that_transformers_gives_it(case: Case) -> None:
    for config, class_name in case.configs():
        architecture, parameters = read(config, class_name), built(config, class_name)
        assert ours(architecture) == theirs(parameters, architecture), (class_name, config)
        assert architecture.model_class == class_name
    assert_every_layer_holds_as_many(architecture, parameters)


def assert_every_layer_holds_as_many(architecture: Architecture, parameters: dict[str, tuple[int, ...]]) -> None:
    """Layer by layer, so that experts, first layers and cross attention are in the right place."""
    computed: dict[tuple[str, int], int] = {}
    for part in architecture.stacks:
        rows = [run.total for run in layer_counts(architecture, part) for _ in range(run.count)]
        stack = architecture.task_head.prefix + part.spec.name.split("{i}")[0]
        computed |= {(stack, number): total for number, total in enumerate(rows)}
    assert computed == per_layer(parameters)
    assert parameter_counts(architecture).total == sum(math.prod(shape) for shape in parameters.values())


def test_every_type_that_is_known_whole_has_a_case() -> None:
    assert KNOWN - {case.model_type for case in CASES} == RENAMED


# What transformers calls the tensors of some parts, anywhere in their names.
NAMES = {
    ModelPart.SINKS: r"sinks",
    ModelPart.EXPERTS: r"\bexperts\.",
    ModelPart.SHARED_EXPERTS: r"shared_experts?\.",
    ModelPart.SHARED_GATE: r"shared_expert_gate",
    ModelPart.QUERY_NORM: r"(?<!cross_attn\.)\bq_(a_)?(layer)?norm",
    ModelPart.KEY_NORM: r"(?<!cross_attn\.)\bkv?_(a_)?(layer)?norm",
    ModelPart.POSITION_TABLE: r"wpe|position_embeddings?\b|positions_embed|embed_positions",
    ModelPart.TYPE_TABLE: r"token_type",
    ModelPart.RELATIVE_TABLE: r"rel_embeddings",
    ModelPart.PATCHES: r"patch_embeddings|cls_token",
    ModelPart.EMBEDDING_NORM: r"embeddings\.(LayerNorm|norm)|embeddings_layernorm|layernorm_embedding",
    ModelPart.EMBEDDING_PROJECTION: r"embeddings_project|embedding_hidden_mapping_in|project_(in|out)\b|embed_proj",
    ModelPart.CROSS_ATTENTION: r"cross_attn|crossattention|EncDecAttention|encoder_attn\.",
    ModelPart.RELATIVE_POSITIONS: r"relative_attention_bias|self\.pos_|encoder\.LayerNorm",
    ModelPart.CONVOLUTION: r"conv\d?\.",
}


def test_a_tensor_belongs_to_the_part_that_its_name_in_transformers_says() -> None:
    for table in (file.tables[0] for file in map(family_file, KNOWN) if file):
        in_layers = [tensor.spec for stack in table.stacks for tensor in stack.tensors]
        for spec in (*(tensor.spec for tensor in table.outside), *in_layers):
            parts = {part for part, pattern in NAMES.items() if re.search(pattern, spec.name)}
            assert parts == ({spec.part} & NAMES.keys()), spec.name
            called_bias = (
                bool(re.search(r"bias$", spec.name)) or spec.part == ModelPart.SINKS or spec.name.endswith("gate")
            )
            assert called_bias == (spec.kind == "bias"), spec.name


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
    config = {"model_type": model_type, **REQUIRED, "hidden_size": 2048, "num_attention_heads": 32}
    architecture = build_architecture(config)
    assert ours(architecture) == theirs(built(config, architecture.model_class), architecture)


WINDOW = {"sliding_window": 4}


@pytest.mark.parametrize(
    ("model_type", "changed"),
    [
        ("llama", {}),
        ("mistral", WINDOW),
        ("mistral", {"sliding_window": None}),
        ("mixtral", {**MOE, **WINDOW}),
        ("qwen2", {**WINDOW, "use_sliding_window": True, "max_window_layers": 0}),
        ("qwen2", {**WINDOW, "use_sliding_window": True, "max_window_layers": 2}),
        ("qwen2_moe", {**MOE, **WINDOW, "use_sliding_window": True, "shared_expert_intermediate_size": 37}),
        ("qwen3_moe", {**MOE, **WINDOW, "use_sliding_window": True, "head_dim": 8}),
        ("gemma2", {**WINDOW, "head_dim": 8}),
        ("gemma3_text", {**WINDOW, "head_dim": 8}),
        ("gemma3_text", {**WINDOW, "head_dim": 8, "layer_types": ["full_attention"] + ["sliding_attention"] * 4}),
        ("cohere2", WINDOW),
        ("olmo3", WINDOW),
        ("exaone4", {**WINDOW, "head_dim": 8}),
        ("smollm3", {**WINDOW, "use_sliding_window": True, "no_rope_layer_interval": 1}),
        ("phi3", WINDOW),
        ("starcoder2", WINDOW),
        ("gpt_oss", {**MOE, **WINDOW, "head_dim": 8}),
        ("llama4_text", {**MOE, "attention_chunk_size": 10, "head_dim": 8, "intermediate_size_mlp": 95}),
        ("deepseek_v2", {**LATENT, "kv_lora_rank": 12, "q_lora_rank": None}),
        ("deepseek_v3", {**LATENT, "q_lora_rank": 14}),
        ("falcon", {"multi_query": True}),
        ("gpt_bigcode", GPT),
    ],
)
def test_a_decode_step_has_the_keys_that_a_real_cache_leaves(model_type: str, changed: Config) -> None:
    config = {"model_type": model_type, **LLAMA, **changed}
    architecture = build_architecture(config)
    for tokens in (1, 3, 4, 9):
        computed = shapes(architecture, tokens)
        whole, step = attention_of_a_step(config, architecture.model_class, tokens)
        assert (computed["head"]["weights"], computed["decode"]["weights"]) == (whole, step)


def test_the_first_files_of_falcon_are_the_same_models_under_other_names() -> None:
    new = {
        "hidden_size": 54,
        "num_hidden_layers": 3,
        "num_attention_heads": 9,
        "vocab_size": 101,
        "model_type": "falcon",
    }
    old = {"hidden_size": 54, "n_layer": 3, "n_head": 9, "vocab_size": 101, "architectures": ["RWForCausalLM"]}
    small = build_architecture({**old, "model_type": "RefinedWebModel", "multi_query": True, "parallel_attn": True})
    large = build_architecture({**old, "model_type": "RefinedWeb", "n_head_kv": 3, "parallel_attn": True})
    assert ours(small) == by_pattern(built(new, "FalconForCausalLM"))
    grouped = {**new, "num_kv_heads": 3, "new_decoder_architecture": True}
    assert ours(large) == by_pattern(built(grouped, "FalconForCausalLM"))
