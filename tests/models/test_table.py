"""Tables of model types: what absence, null and lists mean, what a model then has, and what is refused by name."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import transformers

from app.models.architecture import Architecture
from app.models.config_fields import MAX_LAYERS, ConfigError
from app.models.parameter_count import parameter_counts, parameter_tensors
from app.models.read_config import build_architecture
from app.models.read_table import read_table
from app.models.table import TableError, family_file, parse_tables, table_names
from app.models.table_values import TableValues
from app.refusal import Refusal
from app.topics.shapes_json import shapes
from tests.helpers.reference import ALWAYS_TIED, built

DATA = Path(__file__).parents[1] / "data"

Record = dict[str, Any]
TYPES: list[Record] = json.loads((DATA / "model_types.json").read_text())
VARIANTS: dict[str, Record] = json.loads((DATA / "model_variants.json").read_text())

TABLE = """\
# made_up
class  MadeUpForCausalLM
sizes
  V       vocab_size           100
  d       hidden_size dim      48
  d_ff    inner                stated
  L       num_layers           4
  H       heads                6
  G       kv_heads             2       null H
  d_h     head_dim             d/H
  d_exp   expert_size          8
  E       experts              4
  k       experts_per_token    2
  -       first_dense          1
  n_sh    shared               0
  d_up    =                    up(d_ff/3, 8)
  -       window               none
numbers
  scalar  64
switches
  tie_word_embeddings  false
  bias                 false  null true
lists
  layer_types  linear if (i + 1) % 2 != 0; full  linear full old=full
  dense        []
words
  act  plain  plain gated
fixed
  interleaved  true
outside the layers
  token_table  embed    V × d
  output_head  lm_head  V × d  if not tie_word_embeddings
layers  blocks × L
  norms  norm  d
  if layer_types[i] == 'full'
    attention  attn.o_proj         d × H·d_h
    attention  attn.q_proj         H·d_h × d  bias if bias
    attention  attn.k_proj v_proj  G·d_h × d  bias if bias
  mixer  mixer.conv  d × 1 × 3  if layer_types[i] == 'linear'
  if i >= first_dense and i not in dense
    experts         mlp.up    E × d_exp × d  bare
    experts         mlp.down  E × d × d_exp  bare
    router          mlp.gate  E × d
    shared_experts  mlp.shared  d_exp·n_sh × d  if n_sh > 0
  if i < first_dense or i in dense
    feed_forward  mlp.up_proj    d_ff × d
    feed_forward  mlp.down_proj  d × d_ff
    feed_forward  mlp.extra      d_up  bare  if act == 'gated'
attention
  blocks  attn  H  G  d_h  d_h  1/sqrt(scalar)  causal  window window if i > 1  if layer_types[i] == 'full'
harmless
  eps act_fn
"""
CONFIG: Record = {"inner": 20}


def read(**changed: object) -> Architecture:
    (table,) = parse_tables("made_up", TABLE).tables
    return read_table(table, {**CONFIG, **changed}, "Made up", "made_up", "MadeUpForCausalLM", ())


def tensors(a: Architecture) -> dict[str, tuple[tuple[int, ...], int]]:
    return {each.name: (each.stored_shape, each.instances) for each in parameter_tensors(a)}


def test_a_scale_that_also_depends_on_yarn_is_not_stated() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "mscale_all_dim": 1.0}
    assert not build_architecture({"model_type": "glm4_moe_lite"}).attention_problem
    for field in ("rope_scaling", "rope_parameters"):
        model = build_architecture({"model_type": "glm4_moe_lite", field: yarn})
        assert "mscale_all_dim" in model.attention_problem


def test_a_table_gives_every_tensor_with_its_shape_and_number() -> None:
    assert tensors(read()) == {
        "embed.weight": ((100, 48), 1),
        "lm_head.weight": ((100, 48), 1),
        "blocks.{i}.norm.weight": ((48,), 4),
        "blocks.{i}.attn.q_proj.weight": ((48, 48), 2),
        "blocks.{i}.attn.k_proj.weight": ((16, 48), 2),
        "blocks.{i}.attn.v_proj.weight": ((16, 48), 2),
        "blocks.{i}.attn.o_proj.weight": ((48, 48), 2),
        "blocks.{i}.mixer.conv.weight": ((48, 1, 3), 2),
        "blocks.{i}.mlp.up": ((4, 8, 48), 3),
        "blocks.{i}.mlp.down": ((4, 48, 8), 3),
        "blocks.{i}.mlp.gate.weight": ((4, 48), 3),
        "blocks.{i}.mlp.up_proj.weight": ((20, 48), 1),
        "blocks.{i}.mlp.down_proj.weight": ((48, 20), 1),
    }


@pytest.mark.parametrize(
    ("changed", "name", "shape_and_number"),
    [
        ({"dim": 60}, "embed.weight", ((100, 60), 1)),
        ({"kv_heads": None}, "blocks.{i}.attn.k_proj.weight", ((48, 48), 2)),
        ({"head_dim": None, "hidden_size": 96}, "blocks.{i}.attn.q_proj.weight", ((96, 96), 2)),
        ({"head_dim": 5}, "blocks.{i}.attn.q_proj.weight", ((30, 48), 2)),
        ({"bias": None}, "blocks.{i}.attn.k_proj.bias", ((16,), 2)),
        ({"layer_types": ["old"] * 4}, "blocks.{i}.attn.q_proj.weight", ((48, 48), 4)),
        ({"dense": [2, 3]}, "blocks.{i}.mlp.up_proj.weight", ((20, 48), 3)),
        ({"shared": 3}, "blocks.{i}.mlp.shared.weight", ((24, 48), 3)),
        ({"act": "gated"}, "blocks.{i}.mlp.extra", ((8,), 1)),
    ],
)
def test_what_a_config_states_changes_the_tensors(
    changed: Record, name: str, shape_and_number: tuple[tuple[int, ...], int]
) -> None:
    assert tensors(read(**changed))[name] == shape_and_number


def test_the_output_head_is_the_embedding_if_they_are_tied() -> None:
    tied = read(tie_word_embeddings=True)
    assert "lm_head.weight" not in tensors(tied)
    assert tied.tied_embeddings
    assert tied.has_lm_head


def test_heads_masks_windows_and_scales_are_those_of_the_attention_line() -> None:
    a = read(window=3)
    assert (a.H, a.G, a.d_h, a.d_v, a.causal) == (6, 2, 8, 8, True)
    assert (a.score_scale.kind, a.score_scale.factor) == ("root", 1 / 8)
    assert (read(scalar=8).score_scale.kind, read(scalar=1).score_scale.kind) == ("inverse-sqrt", "none")
    assert a.attention_layers == (1, 3)
    assert [run.window for run in a.stacks[0].attending] == [None, 3]
    assert a.window is None


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"inner": None}, '"inner"'),
        ({"num_layers": None}, '"num_layers"'),
        ({"hidden_size": 50}, '"hidden_size"'),
        ({"hidden_size": True}, '"hidden_size"'),
        ({"hidden_size": 0}, '"hidden_size"'),
        ({"kv_heads": 4}, "4 key/value heads"),
        ({"tie_word_embeddings": None}, '"tie_word_embeddings"'),
        ({"bias": 1}, '"bias"'),
        ({"act": "odd"}, '"act"'),
        ({"layer_types": ["full"]}, '"layer_types"'),
        ({"layer_types": ["full", "linear", "full", "odd"]}, "odd"),
        ({"dense": "no"}, '"dense"'),
        ({"interleaved": False}, '"interleaved"'),
        ({"scalar": "no"}, '"scalar"'),
        ({"scalar": 0}, '"scalar"'),
        ({"num_layers": 10**6}, "layers"),
        ({"experts_per_token": 5}, "5 of 4 experts"),
    ],
)
def test_what_is_wrong_is_refused_by_name(changed: Record, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as refused:
        read(**changed)
    assert str(refused.value).endswith(".")


LISTS = """\
class  MadeUpForCausalLM
sizes
  L  layers  4
  -  step    2
  d  width dim  8
  -  reach   -1    null refused
switches
  bias use_bias  false
lists
  kinds kinds_of_layers  local if i % 2 != 0; global  global local
  special                if (i + 1) % step == 0
  terms                  []  c2p p2c
layers  blocks × L
"""


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        ({}, "kinds", ["global", "local", "global", "local"]),
        ({"kinds": [[["global", "local"], 1], [["local"], 2]]}, "kinds", ["global", "local", "local", "local"]),
        ({"kinds_of_layers": ["local"] * 4, "kinds": ["global"] * 4}, "kinds", ["local"] * 4),
        ({}, "special", {1, 3}),
        ({"step": 1}, "special", {0, 1, 2, 3}),
        ({"special": [0]}, "special", {0}),
        ({}, "terms", []),
        ({"terms": "c2p|p2c"}, "terms", ["c2p", "p2c"]),
        ({"terms": None}, "terms", []),
        ({}, "reach", -1),
        ({"reach": -1}, "reach", -1),
        ({"width": 8, "dim": 16}, "d", 16),  # GPT2Config(n_embd=8, hidden_size=16).n_embd is 16
        ({"use_bias": True, "bias": False}, "bias", True),
    ],
)
def test_a_list_may_be_nested_a_set_of_words_or_follow_a_rule(config: Record, name: str, value: object) -> None:
    (table,) = parse_tables("made_up", LISTS).tables
    assert TableValues(table, config, "made_up")[name] == value


@pytest.mark.parametrize(
    "kinds", [5, ["odd"] * 4, [[["global"], 10**9]], [[["global"], -1]], [["global", 4]], ["global"]]
)
def test_a_list_that_does_not_fit_the_layers_is_refused(kinds: object) -> None:
    (table,) = parse_tables("made_up", LISTS).tables
    with pytest.raises(ConfigError, match="kinds"):
        TableValues(table, {"kinds": kinds}, "made_up")["kinds"]


@pytest.mark.parametrize(
    "stated",
    [
        {"hybrid_override_pattern": "M*-EM-", "num_hidden_layers": 6},
        {"layers_block_type": ["mamba", "mlp", "attention", "moe"]},
        {"layers_block_type": ["mlp"] * 3, "hybrid_override_pattern": "M*"},
        {},
    ],
)
def test_layers_of_nemotron_h_are_stated_by_letters_or_by_words(stated: Record) -> None:
    config = {"model_type": "nemotron_h", "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 101, **stated}
    architecture = build_architecture({**config, "architectures": ["NemotronHForCausalLM"]})
    expected = sum(math.prod(shape) for shape in built(config, "NemotronHForCausalLM").values())
    assert parameter_counts(architecture).total == expected


GEMMA_4: Record = {
    "hidden_size": 48,
    "intermediate_size": 40,
    "num_hidden_layers": 7,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "global_head_dim": 16,
    "vocab_size": 101,
    "pad_token_id": 0,
    "attention_k_eq_v": True,
}
INPUTS_OF_LAYERS = {"vocab_size_per_layer_input": 97, "hidden_size_per_layer_input": 6}
EXPERTS = {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 20}


@pytest.mark.parametrize("is_saved_again", [False, True])
@pytest.mark.parametrize(
    ("kind", "name", "changed"),
    [
        ("gemma4_text", "Gemma4ForCausalLM", {**INPUTS_OF_LAYERS, **EXPERTS, "tie_word_embeddings": False}),
        ("gemma4_text", "Gemma4ForCausalLM", {"hidden_size_per_layer_input": 0, "num_global_key_value_heads": 1}),
        ("gemma4_text", "Gemma4ForCausalLM", {"layer_types": ["full_attention", *["sliding_attention"] * 6]}),
        ("gemma4_unified_text", "Gemma4UnifiedForCausalLM", {"num_kv_shared_layers": 2, "use_double_wide_mlp": True}),
        ("gemma4_unified_text", "Gemma4UnifiedForCausalLM", {"attention_bias": True, "attention_k_eq_v": False}),
    ],
)
def test_gemma_4_has_heads_of_two_kinds(kind: str, name: str, changed: Record, *, is_saved_again: bool) -> None:
    config = {**GEMMA_4, "model_type": kind, **INPUTS_OF_LAYERS, **changed}
    if changed.get("num_kv_shared_layers"):  # of both kinds of layers, some have keys of their own
        config["layer_types"] = ["sliding_attention", "full_attention"] * 3 + ["full_attention"]
    expected = built(config, name)
    if is_saved_again:
        config = transformers.CONFIG_MAPPING[kind](**config).to_dict()
    architecture = build_architecture({**config, "architectures": [name]})
    assert parameter_counts(architecture).total == sum(math.prod(shape) for shape in expected.values())


SMALL = {"hidden_size": 192, "num_attention_heads": 8, "num_hidden_layers": 2, "intermediate_size": 40}


@pytest.mark.parametrize(
    ("kind", "name", "part", "of_text"),
    [  # Voxtral fills in a width of heads; ModernVBERT has no layer before its LM head
        ("voxtral", "VoxtralForConditionalGeneration", {**SMALL, "model_type": "llama"}, "model.language_model."),
        ("modernvbert", "ModernVBertForMaskedLM", {**SMALL, "model_type": "modernbert"}, "model.text_model."),
    ],
)
def test_a_part_is_read_as_its_file_fills_it_in(kind: str, name: str, part: Record, of_text: str) -> None:
    config: Record = {"model_type": kind, "text_config": {**part, "vocab_size": 101, "pad_token_id": 0}}
    config["tie_word_embeddings"] = False
    parameters = built(config, name).items()
    expected = sum(math.prod(shape) for name, shape in parameters if name.startswith((of_text, "lm_head.")))
    assert parameter_counts(build_architecture(config)).total == expected


def test_mamba_2_may_have_other_widths() -> None:
    config = {"model_type": "mamba2", "hidden_size": 96, "num_heads": 24, "head_dim": 8, "num_hidden_layers": 2}
    expected = sum(math.prod(shape) for shape in built(config, "Mamba2ForCausalLM").values())
    assert parameter_counts(build_architecture(config)).total == expected


def test_sizes_that_differ_by_layer_are_refused() -> None:
    by_layer = {"1": {"intermediate_size": 64}}  # which transformers 5 reads in every model
    with pytest.raises(ConfigError, match="per_layer_config"):
        build_architecture({"model_type": "llama", "hidden_size": 48, "per_layer_config": by_layer})


@pytest.mark.parametrize("experts", [0, 4])
def test_granite_4_may_have_no_experts(experts: int) -> None:
    config = {"model_type": "granitemoehybrid", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    config |= {"num_local_experts": experts, "layer_types": ["attention", "mamba"], "mamba_n_heads": 4}
    architecture = build_architecture({**config, "architectures": ["GraniteMoeHybridForCausalLM"]})
    expected = sum(math.prod(shape) for shape in built(config, "GraniteMoeHybridForCausalLM").values())
    assert parameter_counts(architecture).total == expected


@pytest.mark.parametrize("letters", ["M?", 5, "M" * (MAX_LAYERS + 1), ""])
def test_letters_that_name_no_layer_are_refused(letters: object) -> None:
    with pytest.raises(ConfigError):
        build_architecture({"model_type": "nemotron_h", "hybrid_override_pattern": letters})


def test_a_table_that_cannot_be_read_says_where() -> None:
    for wrong in ("  what  is × this  d", "  attention  q  d × d  sideways", "strange"):
        with pytest.raises(TableError, match="line 5"):
            parse_tables("made_up", f"# c\nclass  A\nsizes\nlayers  x × 2\n{wrong}\n")


def test_every_table_can_be_read() -> None:
    files = [family_file(name) for name in table_names()]
    assert all(file and (file.refused or file.tables) for file in files)


def problem_with(record: Record) -> str:
    """What is wrong with a config's total or heads; "" if nothing is, or if it is refused."""
    try:
        a = build_architecture(record["config"], record["name"])
    except ConfigError:
        return ""
    total = parameter_counts(a).total
    if total != record["total"]:
        return f"{record['name']}: {total}, not {record['total']}"
    try:
        head = shapes(a, 7)["head"]
    except Refusal:
        return ""
    return (
        "" if all(head[row] == shape for row, shape in record.get("head", {}).items()) else f"{record['name']}: heads"
    )


def test_totals_and_heads_are_those_of_transformers() -> None:
    assert list(filter(None, map(problem_with, TYPES))) == []


def test_every_field_changes_the_total_as_in_transformers() -> None:
    wrong = list[tuple[str, Record]]()
    for model_type, family in VARIANTS.items():
        file = family_file(model_type)
        for table in file.tables[:1] if file else ():
            for change, total in family["cases"]:
                config = {name: value for name, value in {**family["base"], **change}.items() if value != "__DELETE__"}
                with suppress(ConfigError):
                    a = read_table(table, config, "", model_type, table.classes[0], ())
                    wrong += [] if parameter_counts(a).total == total else [(model_type, change)]
    # Published files of T5's kin that state false hold a separate LM head, which transformers 5 doesn't build.
    of_t5 = [(name, change) for name, change in wrong if name in ALWAYS_TIED and "tie_word_embeddings" in change]
    assert [each for each in wrong if each not in of_t5] == []


@pytest.mark.parametrize("stated", [0.5, True, {"c2p": 1}])
def test_kinds_of_scores_that_are_no_words_are_refused(stated: object) -> None:
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 99}
    with pytest.raises(ConfigError, match="pos_att_type"):
        build_architecture({"model_type": "deberta", **sizes, "pos_att_type": stated})
