"""Reading a config.json: sizes and where they came from, shapes measured on transformers, and clear refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.architecture import Architecture, TokensError
from app.models.config_fields import MAX_SIZE, ConfigError
from app.models.parameter_count import parameter_counts, parameters_json
from app.models.read_config import build_architecture, read_config
from app.shapes.table import TensorTable
from app.topics.attention_layer import ATTENTION_LAYER, DIRECT_LATENT_ATTENTION_LAYER, LATENT_ATTENTION_LAYER
from app.topics.decode_step import WINDOWED_DECODE_STEP, decode_step_table
from app.topics.four_dimensions import FOUR_DIMENSIONS
from app.topics.shapes_json import shapes
from app.topics.three_dimensions import THREE_DIMENSIONS
from tests.helpers.families_cases import BART, CASES, LATENT, LLAMA, Case
from tests.helpers.tables import TABLES

Record = dict[str, Any]
RECORDS: list[Record] = json.loads((Path(__file__).parents[1] / "data" / "transformers_shapes.json").read_text())
MEASURED_SIZES = {
    "d": "d_model", "H": "n_heads", "G": "n_kv_heads", "d_h": "head_dim", "d_v": "v_head_dim", "d_ff": "d_ff",
    "V": "vocab", "L": "n_layers",
}  # fmt: skip
LENGTHS = [(record, tokens) for record in RECORDS for tokens in record["expected"]["activations"]]

every_record = pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["name"]))
every_length = pytest.mark.parametrize(
    ("record", "tokens"), LENGTHS, ids=[f"{record['name']}-{tokens}" for record, tokens in LENGTHS]
)


def read(record: Record) -> Architecture:
    return build_architecture(record["config"], record["name"])


def llama(**changed: Any) -> Architecture:
    return build_architecture({"model_type": "llama", **LLAMA, **changed})


@every_record
def test_every_size_is_the_measured_one(record: Record) -> None:
    sizes, expected = read(record).sizes, record["expected"]
    assert {symbol: sizes[symbol] for symbol in MEASURED_SIZES} == {
        symbol: expected[name] for symbol, name in MEASURED_SIZES.items()
    }


@every_record
def test_every_size_remembers_where_it_came_from(record: Record) -> None:
    architecture = read(record)
    readings = {reading.symbol: reading for reading in architecture.size_sources}
    assert len(readings) == len(architecture.size_sources)
    assert readings.keys() >= {symbol for symbol, size in architecture.sizes.items() if size is not None}
    for reading in architecture.size_sources:
        stated = reading.field is not None and record["config"][reading.field] == reading.value
        assert stated == (not reading.rule and not reading.is_default)


@every_length
def test_a_head_has_the_shapes_seen_in_a_real_forward_pass(record: Record, tokens: str) -> None:
    computed, measured = shapes(read(record), int(tokens)), record["expected"]["activations"][tokens]
    head = computed["head"]
    assert head == {**{key: measured[key] for key in head if key in measured}, "output": measured["head_output"]}


@every_length
def test_a_layer_and_the_logits_have_the_shapes_seen_in_a_real_forward_pass(record: Record, tokens: str) -> None:
    computed, expected = shapes(read(record), int(tokens)), record["expected"]
    measured = expected["activations"][tokens]
    outputs = [shape[1:] for shape in measured["projection_outputs"].values()]
    q, k, v = (computed["layer"][key] for key in ("queries", "keys", "values"))
    apart = expected["projection_style"] == "separate"
    assert outputs[:-1] == ([q, k, v] if apart else [[int(tokens), q[1] + k[1] + v[1]]])
    assert outputs[-1] == computed["layer"]["output"]
    assert computed["model"]["logits"] == measured["logits"]
    assert computed["causal"] == expected["causal"]


@every_length
def test_a_decode_step_has_the_shapes_seen_with_a_real_cache(record: Record, tokens: str) -> None:
    computed, measured = (
        shapes(read(record), int(tokens))["decode"],
        record["expected"]["activations"][tokens]["decode"],
    )
    assert (computed is None) == (measured is None)
    for key, shape in (computed or {}).items():
        assert shape == measured.get(key, computed["output"])


def test_cross_attention_has_the_shapes_seen_with_unequal_lengths() -> None:
    (t5,) = (record for record in RECORDS if record["model_type"] == "t5")
    measured = t5["expected"]["encoder100_decoder7"]["cross"]
    computed = shapes(read(t5), 100, 7)["cross"]
    assert {key: computed[key] for key in measured} == measured
    assert shapes(read(t5), 100)["cross"]["scores"] == [100, 100]
    assert "cross" not in shapes(llama(), 100)


@pytest.mark.parametrize(
    ("model_type", "changed", "window"),
    [
        ("mistral", {}, 4096),
        ("mistral", {"sliding_window": 5}, 5),
        ("mistral", {"sliding_window": None}, None),
        ("qwen2", {"sliding_window": 5}, None),
        ("qwen2", {"sliding_window": 5, "use_sliding_window": True, "max_window_layers": 0}, 5),
        ("qwen2", {"sliding_window": 5, "use_sliding_window": True, "max_window_layers": 2}, None),
        ("gemma2", {"sliding_window": 5}, 5),
        ("gemma3_text", {"sliding_window": 5, "layer_types": ["full_attention"] + ["sliding_attention"] * 4}, None),
        ("gpt_oss", {"num_local_experts": 5, "num_experts_per_tok": 2}, 128),
        ("phi3", {"sliding_window": 2047}, 2047),
    ],
)
def test_a_window_caps_the_keys_of_a_decode_step(model_type: str, changed: Record, window: int | None) -> None:
    architecture = build_architecture({"model_type": model_type, **LLAMA, **changed})
    assert architecture.window == window
    for tokens in (1, 4, 5, 6, 4096, 9000):
        keys = min(tokens + 1, window or tokens + 1)
        assert shapes(architecture, tokens)["decode"]["scores"] == [1, keys]
        assert shapes(architecture, tokens)["head"]["scores"] == [tokens, tokens]
    assert (decode_step_table(architecture, 9000) is WINDOWED_DECODE_STEP) == (window is not None)


def test_chunks_are_no_window() -> None:
    """A token of Llama 4 sees its own chunk: within the first one all keys so far, then no step is described."""
    llama4 = build_architecture({"model_type": "llama4_text", **LLAMA, "attention_chunk_size": 5, "head_dim": 6})
    assert (llama4.window, llama4.chunk) == (None, 5)
    assert shapes(llama4, 4)["decode"]["scores"] == [1, 5]
    assert shapes(llama4, 5)["decode"] is None


def test_latent_attention_keeps_a_latent_and_a_rotary_key() -> None:
    architecture = build_architecture({"model_type": "deepseek_v3", **LLAMA, **LATENT, "q_lora_rank": 14})
    assert (architecture.d_h, architecture.d_v, architecture.G) == (14, 7, 9)
    for topic in (LATENT_ATTENTION_LAYER, DIRECT_LATENT_ATTENTION_LAYER):
        computed = topic.shapes({**architecture.all_sizes, "N": 100})
        assert (computed["cache"], computed["keys"], computed["values"]) == ((100, 17), (100, 9 * 14), (100, 9 * 7))


def test_null_is_not_missing() -> None:
    """DeepSeek without q_lora_rank has latent queries of 1536; with null it projects the queries at once."""
    config = {"model_type": "deepseek_v3", **LLAMA, **LATENT, "n_shared_experts": 1}
    latent, direct = build_architecture(config), build_architecture({**config, "q_lora_rank": None})
    names = [{t["name"].split(".")[-2] for t in parameters_json(a)["tensors"]} for a in (latent, direct)]
    assert latent.extra["r_q"] == 1536
    assert names[0] - names[1] == {"q_a_proj", "q_a_layernorm", "q_b_proj"}
    assert names[1] - names[0] == {"q_proj"}


@pytest.mark.parametrize("model_type", ["llama", "mistral", "qwen2", "qwen3", "gemma2"])
def test_a_share_of_rope_is_ignored_as_in_transformers(model_type: str) -> None:
    config = {"model_type": model_type, **LLAMA, "head_dim": 6}
    rotary = build_architecture({**config, "partial_rotary_factor": 0.5}).rotary
    assert rotary
    assert rotary.width == 6


@pytest.mark.parametrize("model_type", ["mistral", "phi3"])
def test_kinds_of_layers_are_ignored_as_in_transformers(model_type: str) -> None:
    layers = ["sliding_attention", "full_attention"] * 2 + ["full_attention"]
    a = build_architecture({"model_type": model_type, **LLAMA, "sliding_window": 4, "layer_types": layers})
    assert {run.window for run in a.runs} == {4}


def test_missing_key_value_heads_are_as_many_as_heads_and_say_so() -> None:
    config = {name: value for name, value in LLAMA.items() if name != "num_key_value_heads"}
    architecture = build_architecture({"model_type": "llama", **config})
    assert architecture.G == architecture.H == 9
    (reading,) = (reading for reading in architecture.size_sources if reading.symbol == "G")
    assert (reading.field, reading.rule) == (None, "H")


def test_the_class_that_is_counted_is_the_one_the_file_names() -> None:
    bert = {"model_type": "bert", **{k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}}
    counted = {name: build_architecture({**bert, "architectures": [name]}) for name in ("BertModel", "BertForMaskedLM")}
    assert parameter_counts(counted["BertModel"]).total != parameter_counts(counted["BertForMaskedLM"]).total
    assert shapes(counted["BertModel"], 7)["model"]["logits"] is None
    other = build_architecture({**bert, "architectures": ["BertForJuggling"]})
    assert other.model_class == "BertForMaskedLM"
    assert tuple(map(str, other.notes)) == ("'BertForJuggling' is not counted here: BertForMaskedLM is.",)


def test_a_class_name_is_read_to_its_end() -> None:
    (t5,) = (record for record in RECORDS if record["model_type"] == "t5")
    architecture = build_architecture({**t5["config"], "architectures": ["T5WithLMHeadModel"]})
    assert architecture.model_class == "T5ForConditionalGeneration"
    assert shapes(architecture, 7)["model"]["logits"] == [7, 32128]


def test_a_switch_that_adds_unknown_parts_is_refused() -> None:
    with pytest.raises(ConfigError, match="add_cross_attention"):
        llama(add_cross_attention=True)


@pytest.mark.parametrize(
    ("outer", "part", "family", "sizes"),
    [
        ("llava", {"model_type": "llama", "vocab_size": 32064}, "llama", (4096, 32, 32, 128)),
        ("gemma3", {"hidden_size": 2560, "num_hidden_layers": 34}, "gemma3_text", (2560, 8, 4, 256)),
        ("clip", {"hidden_size": 512, "num_attention_heads": 8}, "clip_text_model", (512, 8, 8, 64)),
        ("some-new-viewer", {"model_type": "llama", **LLAMA}, "llama", (54, 9, 3, 6)),
    ],
)  # fmt: skip
def test_of_a_multimodal_file_the_text_part_is_read(outer: str, part: Record, family: str, sizes: Any) -> None:
    architecture = build_architecture({"model_type": outer, "vision_config": {}, "text_config": part})
    assert (architecture.family, architecture.d, architecture.H, architecture.G, architecture.d_h) == (family, *sizes)
    assert 'Only its text part, "text_config", is read.' in str(architecture.notes[0])
    assert all("tie_word_embeddings" in str(note) for note in architecture.notes[1:])
    defaults = {reading.symbol for reading in architecture.size_sources if reading.is_default}
    assert ("L" in defaults) == ("num_hidden_layers" not in part)


@pytest.mark.parametrize("model_type", ["qwen2_vl", "qwen2_5_vl"])
def test_sizes_beside_the_other_parts_of_a_multimodal_file_are_read(model_type: str) -> None:
    architecture = build_architecture({"model_type": model_type, "vision_config": {"depth": 2}, **LLAMA})
    assert (architecture.d, architecture.L, architecture.V) == (54, 5, 101)


@pytest.mark.parametrize("model_type", ["hyena", "frobnicator"])
def test_an_unknown_family_is_named_and_refused(model_type: str) -> None:
    with pytest.raises(ConfigError, match=f'"{model_type}"') as refused:
        build_architecture({"model_type": model_type, **LLAMA})
    assert_is_one_sentence(str(refused.value))


def test_a_layer_type_without_scores_is_refused() -> None:
    with pytest.raises(ConfigError, match="linear_attention"):
        build_architecture({"model_type": "gemma2", **LLAMA, "layer_types": ["linear_attention"] * 5})


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("hidden_size", None, '"hidden_size" is null'),
        ("num_attention_heads", None, '"num_attention_heads" is null'),
        ("num_hidden_layers", None, '"num_hidden_layers" is null'),
        ("vocab_size", None, '"vocab_size" is null'),
        ("intermediate_size", None, '"intermediate_size" is null'),
        ("hidden_size", "4096", "must be a whole number"),
        ("hidden_size", 4096.0, "must be a whole number"),
        ("hidden_size", -1, "must be a whole number"),
        ("hidden_size", True, "must be a whole number"),
        ("hidden_size", MAX_SIZE + 1, "from 1 to 10,000,000"),
        ("num_hidden_layers", 10**6, "at most 10,000 layers"),
        ("hidden_size", 55, "d/H is 55/9, which is not a whole number"),
        ("num_key_value_heads", 4, "cannot share 4 key/value heads"),
        ("attention_bias", "yes", "must be true or false"),
        ("rope_scaling", [1], "must be a JSON object"),
        ("model_type", 7, '"model_type"'),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(field: str, value: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        build_architecture({"model_type": "llama", **LLAMA, field: value})
    assert_is_one_sentence(str(refused.value))


def test_a_number_too_long_to_be_written_is_refused_like_any_other() -> None:
    with pytest.raises(ConfigError, match="of very many digits"):
        llama(hidden_size=10**5000)


def test_a_token_cannot_be_sent_to_more_experts_than_there_are() -> None:
    with pytest.raises(ConfigError, match="9 of 8 experts"):
        build_architecture({"model_type": "mixtral", **LLAMA, "num_local_experts": 8, "num_experts_per_tok": 9})


@pytest.mark.parametrize(
    ("model_type", "config", "longest"),
    [
        ("gpt2", {"n_embd": 54, "n_head": 9, "n_layer": 3, "vocab_size": 101}, 1024),
        ("bert", LLAMA, 63),
        ("roberta", {**LLAMA, "max_position_embeddings": 514}, 512),
        ("opt", {**LLAMA, "ffn_dim": 77, "max_position_embeddings": 2048}, 2048),
        ("clip_text_model", {name: LLAMA[name] for name in LLAMA if name != "max_position_embeddings"}, 77),
    ],
)
def test_a_position_table_ends_the_sheet(model_type: str, config: Record, longest: int) -> None:
    architecture = build_architecture({"model_type": model_type, **config}, "this one")
    assert architecture.check_tokens(longest) == architecture.max_tokens == longest
    with pytest.raises(TokensError, match=f"this one has a table of {longest:,} positions"):
        shapes(architecture, longest + 1)
    assert shapes(architecture, longest)["decode"] is None


@pytest.mark.parametrize(("model_type", "tokens"), [("vit", 197), ("whisper", 1500)])
def test_a_model_that_reads_one_length_takes_no_other(model_type: str, tokens: int) -> None:
    config = {"vit": {**LLAMA, "image_size": 224, "patch_size": 16}, "whisper": {**BART, "max_source_positions": 1500}}
    architecture = build_architecture({"model_type": model_type, **config[model_type]}, "this one")
    assert architecture.check_tokens(tokens) == tokens
    for other in (1, tokens - 1, tokens + 1):
        with pytest.raises(TokensError, match=f"this one always reads exactly {tokens:,} tokens"):
            architecture.check_tokens(other)


def test_the_decoder_has_a_feed_forward_width_of_its_own() -> None:
    bart = build_architecture({"model_type": "bart", **BART})
    assert (bart.all_sizes["d_ff"], bart.decoder_sizes["d_ff"]) == (77, 91)
    assert shapes(bart, 10, 7)["model"]["up"] == [7, 91]


def test_the_decoders_table_is_its_own() -> None:
    (whisper,) = (case for case in CASES if case.model_type == "whisper")
    config = whisper.config({"max_source_positions": 1500, "max_target_positions": 448})
    architecture = build_architecture(config)
    assert shapes(architecture, 1500)["cross"]["scores"] == [448, 1500]
    assert shapes(architecture, 1500, 10)["model"]["logits"] == [10, 101]
    with pytest.raises(TokensError, match="from 1 to 448"):
        shapes(architecture, 1500, 449)
    with pytest.raises(TokensError, match="not an encoder-decoder model"):
        shapes(llama(), 100, 10)


def test_text_that_is_no_json_object_is_refused() -> None:
    for text in ('{"model_type": "llama"', "[1, 2]", "", "[" * 100_000, b"\xff\xfe", " " * 1_000_001):
        with pytest.raises(ConfigError) as refused:
            read_config(text)
        assert_is_one_sentence(str(refused.value))


leaf = st.none() | st.booleans() | st.integers() | st.integers(0, 9) | st.floats() | st.text("a0|-.é", max_size=50)
names = st.sampled_from(["model_type", "rope_theta", "text_config", "0", ""])
flat = leaf | st.lists(leaf, max_size=6) | st.dictionaries(names, leaf, max_size=2)
junk = flat | st.lists(flat, max_size=2) | st.dictionaries(names, flat, max_size=2)
FIELDS = sorted(
    {name for case in CASES for name in (*case.base, *case.settings)}
    | {"text_config", "architectures", "layer_types", "sliding_window", "rope_theta", "rope_scaling", "id2label"}
    | {"no_rope_layers", "use_sliding_window", "max_window_layers", "initializer_range", "partial_rotary_factor"}
)


@given(case=st.sampled_from(CASES), broken=st.dictionaries(st.sampled_from(FIELDS), junk, max_size=4), data=st.data())
def test_a_broken_config_gives_one_readable_error_and_no_other(
    case: Case, broken: dict[str, Any], data: st.DataObject
) -> None:
    config = {**case.config({name: values[-1] for name, values in case.settings.items()}), **broken}
    for name in data.draw(st.lists(st.sampled_from(sorted(config)), max_size=2, unique=True)):
        del config[name]
    try:
        architecture = build_architecture(config)
    except ConfigError as refused:
        assert_is_one_sentence(str(refused))
    else:
        parameters_json(architecture)
        shapes(architecture, architecture.fixed_tokens or 1)


def assert_is_one_sentence(message: str) -> None:
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 350


@given(case=st.sampled_from(CASES), tokens=st.integers(1, 20), data=st.data())
def test_no_shape_contradicts_the_equation_that_makes_it(case: Case, tokens: int, data: st.DataObject) -> None:
    changed = {name: data.draw(st.sampled_from(values)) for name, values in case.settings.items()}
    architecture = build_architecture(case.config(changed))
    sizes = {**architecture.decoder_sizes, "N": tokens, "M": 3, "W": 5, "d_rot": 4}
    for table in TABLES.values():
        needed = {symbol for t in table.tensors for dim in t.shape for symbol in dim.symbols}
        if table in (THREE_DIMENSIONS, FOUR_DIMENSIONS) and sizes["G"] != sizes["H"]:
            continue  # in which no key/value head is repeated
        if needed <= sizes.keys():
            assert_letters_agree(table, sizes)


def assert_letters_agree(table: TensorTable, sizes: dict[str, int]) -> None:
    for tensor in table.tensors:
        for blanks in tensor.equal_sides.values():
            lengths = {table[blank.tensor].expression(blank.field).value(sizes) for blank in blanks}
            assert len(lengths) == 1, (table.key, tensor.key)


def test_a_key_value_head_for_each_query_head_is_the_simplification_of_courses() -> None:
    simple = llama().as_multi_head()
    computed = ATTENTION_LAYER.shapes({**simple.all_sizes, "N": 7})
    assert computed["keys"] == computed["queries"] == (7, 54)
