"""The prose of a sheet: complete, true of its model, and enough to solve every box; nudges that tell nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pytest
import torch

from app.figures.sheet_figures import draw_figures
from app.models.architecture import Architecture, TokensError
from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture
from app.shapes.table import MATRIX_FIELDS, Blank, BlankField
from app.sheets import prose
from app.sheets.library import Library
from app.sheets.notation import NotationKey
from app.sheets.variant import Variant
from app.sheets.worksheet import Answers, Model, Worksheet
from app.topics.registry import TOPICS, topic_for
from app.topics.requirements import TopicError
from tests.helpers.every_family import bug_shown
from tests.helpers.families_cases import CASES, LATENT
from tests.helpers.own_sheets import own_sheet
from tests.helpers.reference import running
from tests.helpers.shipped import FIRST_OF_TOPIC, LIBRARY

LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "num_hidden_layers": 3,
    "intermediate_size": 1376,
    "vocab_size": 777,
    "max_position_embeddings": 300,
}
HEAD_TOPICS = ("single-head", "bidirectional-head", "attention-layer", "decode-step", "cross-attention", "whole-model")
# Layers that don't see all tokens: windows of 16 in all layers, in some, to both sides, and chunks of 16.
LOCAL = {
    "mistral": {"sliding_window": 16},
    "gemma2": {"sliding_window": 16},
    "gpt_neo": {"window_size": 16},
    "modernbert": {"local_attention": 16},
    "llama4_text": {"attention_chunk_size": 16},
}
# What a symbol of the answers can be worked out from, where it isn't among the numbers of the description.
WORKED_OUT = {"d_rot": ("d_h",), "G": ("H",), "d_v": ("d_h",), "M": ("N",), "N": ("I", "frames")}


def sheet(
    library: Library, architecture: Architecture, topic: str, tokens: int, answers: Answers = "numbers"
) -> Variant:
    """A sheet that asks every row of the topic which has a name, about a model of no library."""
    named = library.wording.topics[topic].rows
    table = topic_for(topic, architecture, tokens)
    rows = tuple(key for key in table.askable if key in named)
    notation: NotationKey = "lecture" if answers == "letters" else "classic"
    bug = bug_shown(table)
    worksheet = Worksheet("asked", "Title", "model", topic, tokens, rows, notation, answers=answers, bug=bug)
    return Variant(worksheet, Model("model", "The model", "", "", architecture, "{}"), tokens, library.wording)


def llama_sheet(library: Library, topic: str, tokens: int = 40, **changed: object) -> Variant:
    """A sheet of a small LLaMA with some fields changed."""
    return sheet(library, build_architecture({**LLAMA, **changed}, "The model"), topic, tokens)


@pytest.fixture(scope="module", params=["few", pytest.param("all", marks=pytest.mark.slow)])
def tries_all(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "all")


@pytest.fixture(scope="module")
def every_sheet(tries_all: bool, library: Library) -> tuple[Variant, ...]:
    """Every topic with every family that has it, with the first values of all its settings and the last, or each."""
    return tuple(made_sheets(library, every_setting=tries_all))


def made_sheets(library: Library, *, every_setting: bool) -> Iterator[Variant]:
    """Every topic with every family that has it, with one token and with forty, or its fixed number."""
    for case in CASES:
        for config, model_class in islice(case.configs(), None if every_setting else 2):
            with suppress(ConfigError):
                local = LOCAL.get(case.model_type, {})
                architecture = build_architecture({**config, **local, "architectures": [model_class]}, "The model")
                for topic in TOPICS:
                    for tokens in {1, 40} if architecture.fixed_tokens is None else {architecture.fixed_tokens}:
                        with suppress(TopicError, TokensError):
                            yield sheet(library, architecture, topic, architecture.check_tokens(tokens))


def sentences(variant: Variant) -> list[str]:
    """Everything a sheet says before anything is typed."""
    rows = [part for row in variant.rows for part in (row.name, row.note)]
    texts = (prose.description(variant), prose.asides(variant), prose.task(variant), *prose.assumptions(variant))
    return [variant.title, *texts, prose.footnote(variant) or "", *rows]


def numbers(text: str) -> set[int]:
    """The numbers in a text, of which 12,288 is one."""
    return {int(number.replace(",", "")) for number in re.findall(r"\d+(?:,\d{3})*", text)}


@pytest.mark.slow
def test_the_text_is_complete_for_every_family_and_topic(every_sheet: tuple[Variant, ...]) -> None:
    topics = set()
    for variant in every_sheet:
        for sentence in sentences(variant):
            assert not re.search(r"[{}]|None", sentence), (variant.architecture.family, sentence)
        a = variant.architecture
        runs = [run for run in a.stacks[0].runs if run.window or run.chunk]
        known = {*variant.sizes.values(), variant.sizes["H"] // variant.sizes["G"], a.rotary.width if a.rotary else 0}
        if inventory := TOPICS[variant.worksheet.topic].inventory:
            known |= numbers(repr(list(inventory(a))))
        for run in runs:
            known |= {run.window or 0, ((run.window or 0) - 1) // 2, run.chunk or 0, sum(run.count for run in runs)}
        said = numbers(prose.description(variant))
        assert said <= known, (a.family, variant.worksheet.topic, prose.description(variant))
        topics.add(variant.worksheet.topic)
    assert topics == set(TOPICS)


def test_the_description_states_what_every_box_needs(every_sheet: tuple[Variant, ...]) -> None:
    for variant in every_sheet:
        if variant.worksheet.topic in HEAD_TOPICS and variant.tokens > 1 and "V" in variant.sizes:
            said = numbers(prose.description(variant))
            for symbol in frozenset[str]().union(*(variant.expression(blank).symbols for blank in variant.blanks)):
                sources = (symbol, *WORKED_OUT.get(symbol, ()))
                stated = [source for source in sources if variant.sizes.get(source) in said]
                assert stated, (
                    variant.architecture.family,
                    variant.worksheet.topic,
                    symbol,
                    prose.description(variant),
                )


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, "multi-head"),
        ({"num_key_value_heads": 2}, "grouped-query"),
        ({"num_key_value_heads": 1}, "multi-query"),
        ({"num_attention_heads": 1, "num_key_value_heads": 1}, "single attention head"),
    ],
)
def test_the_kind_of_attention_has_its_name(library: Library, changed: Mapping[str, int], kind: str) -> None:
    description = prose.description(llama_sheet(library, "attention-layer", **changed))
    kinds = ("multi-head", "grouped-query", "multi-query", "single attention head")
    assert [each for each in kinds if each in description] == [kind]


def test_latent_attention_has_its_name_and_both_parts_of_a_key(library: Library) -> None:
    case = next(case for case in CASES if case.model_type == "deepseek_v2")
    config, model_class = next(case.configs())
    variant = sheet(
        library, build_architecture({**config, "architectures": [model_class]}, "The model"), "attention-layer", 5
    )
    assert "multi-head latent attention" in prose.description(variant)
    assert {10, 4, 14, LATENT["kv_lora_rank"], 5} <= numbers(prose.description(variant))


def test_a_head_dimension_is_said_to_be_divided_only_where_it_is(library: Library) -> None:
    assert "512/8 = 64" in prose.description(llama_sheet(library, "single-head"))
    stated = prose.description(llama_sheet(library, "single-head", head_dim=100))
    assert "not 512/8" in stated
    assert numbers(stated) >= {100}
    assert 64 not in numbers(stated)


@pytest.mark.parametrize(
    ("model_type", "topic", "words"),
    [
        ("mistral", "single-head", "All layers use sliding-window attention"),
        ("gemma2", "single-head", "attention has a sliding window"),
        ("mistral", "decode-step", "have been dropped"),
        ("gpt_neo", "single-head", "attention has a sliding window"),
        ("modernbert", "bidirectional-head", "tokens on either side"),
        ("llama4_text", "attention-layer", "chunked"),
    ],
)
def test_local_layers_are_spoken_of_where_they_hide_tokens(
    library: Library, model_type: str, topic: str, words: str
) -> None:
    case = next(case for case in CASES if case.model_type == model_type)
    config, model_class = next(case.configs())
    config = {**config, **LOCAL[model_type], "architectures": [model_class]}
    few, many = (sheet(library, build_architecture(config, "The model"), topic, tokens) for tokens in (5, 40))
    assert words in prose.description(many)
    assert words not in prose.description(few)
    assert not re.search(r"attends to all|nothing is .*masked", " ".join(sentences(many)))


@pytest.mark.parametrize("topic", ["single-head", "bidirectional-head", "attention-layer", "three-dimensions"])
@pytest.mark.parametrize("tokens", [8, 9, 10, 16, 17, 18])
def test_a_local_layer_is_said_to_hide_what_transformers_hides(library: Library, topic: str, tokens: int) -> None:
    case = next(case for case in CASES if case.model_type == "modernbert")
    config = case.config({"hidden_size": 72, **LOCAL["modernbert"], "architectures": ["ModernBertModel"]})
    with torch.no_grad():
        model = running(config, "ModernBertModel")
        attentions = model(torch.arange(1, tokens + 1)[None], output_attentions=True).attentions
    hides = any(bool((weights == 0).any()) for weights in attentions)
    variant = sheet(library, build_architecture(config, "The model"), topic, tokens)
    assert hides != bool(re.search("attends to all", prose.description(variant)))
    assert hides != ("Assume that nothing is padded or masked." in prose.assumptions(variant))
    figures = draw_figures(variant, {blank: variant.answer(blank) for blank in variant.blanks})
    assert hides == any("distant tokens" in each for figure in figures for each in figure.explanations)


@pytest.mark.parametrize(
    ("model_type", "said", "tokens"), [("vit", {35, 7}, (35 // 7) ** 2 + 1), ("whisper", {62}, 62 // 2)]
)
def test_tokens_that_are_no_words_are_worked_out(
    library: Library, model_type: str, said: set[int], tokens: int
) -> None:
    case = next(case for case in CASES if case.model_type == model_type)
    config, model_class = next(case.configs())
    architecture = build_architecture({**config, "architectures": [model_class]}, "The model")
    assert architecture.fixed_tokens == tokens
    for topic in ("bidirectional-head", "attention-layer", "cross-attention"):
        with suppress(TopicError):
            described = numbers(prose.description(sheet(library, architecture, topic, tokens)))
            assert said <= described
            assert tokens not in described


def test_the_assumptions_fit_the_mask(library: Library) -> None:
    causal, both_ways = library.variant("llama-7b"), library.variant("llama-7b", "bert-base")
    assert any("masked entries" in sentence for sentence in prose.assumptions(causal))
    assert not any("masked entries" in sentence for sentence in prose.assumptions(both_ways))


@pytest.fixture(scope="module")
def shipped_sheets(tries_all: bool) -> tuple[Variant, ...]:
    """Worksheets of the library with every model that they can have: one of each topic, or all."""
    worksheets = LIBRARY.worksheets if tries_all else [each.key for each in FIRST_OF_TOPIC.values()]
    sheets = ((worksheet, model) for worksheet in worksheets for model in LIBRARY.models)
    return tuple(LIBRARY.variant(*each) for each in sheets if not LIBRARY.refusal(*each))


def test_the_scale_of_the_scores_is_said_as_it_is(
    library: Library, every_sheet: tuple[Variant, ...], shipped_sheets: tuple[Variant, ...]
) -> None:
    gemma = {**LLAMA, "model_type": "gemma2", "head_dim": 64, "query_pre_attn_scalar": 144}
    granite = {**LLAMA, "model_type": "granite", "attention_multiplier": 0.015625}
    other = [
        sheet(library, build_architecture(config, "The model"), topic, 40)
        for config in (gemma, granite)
        for topic in ("single-head", "attention-layer")
    ]
    kinds = set()
    for variant in (*every_sheet, *shipped_sheets, *other):
        a = variant.architecture
        for fact in prose.stated_facts(variant):
            if fact.part == "scale":
                divides = re.search(r"(?<!not )divided by the square root of the head dimension", fact.sentence)
                assert bool(divides) == (a.score_scale.kind == "yarn"), fact.sentence
                assert ("config" in fact.sentence) == (a.score_scale.kind == "stated"), fact.sentence
                kinds.add(a.score_scale.kind)
        said = {fact.part for fact in prose.stated_facts(variant)}
        if "scale" in library.wording.topics[variant.worksheet.topic].description_parts:
            assert ("scale" in said) == (a.score_scale.kind != "inverse-sqrt")
        if variant.worksheet.topic == "scale-mask-softmax":
            is_asked = a.score_scale.factor * a.d_h**0.5 == pytest.approx(a.score_scale.number)
            assert ("under_root" in variant.table.askable) == is_asked
    assert kinds == {"none", "root", "yarn", "stated"}


SINK_TOPICS = {
    *("first-steps", "single-head", "attention-layer", "three-dimensions", "four-dimensions", "decode-step"),
    *("cache-tensor", "index-notation"),
}


def test_what_no_row_needs_is_an_aside(every_sheet: tuple[Variant, ...], shipped_sheets: tuple[Variant, ...]) -> None:
    without_norms = own_sheet(LIBRARY, "walk-llama-3.2-1b", rows=("embedded", "gate"))
    parts = set()
    for variant in (*every_sheet, *shipped_sheets, without_norms):
        needed = frozenset[str]().union(*(variant.expression(blank).symbols for blank in variant.blanks))
        rows = " ".join(f"{row.name} {row.note}" for row in variant.rows)
        for fact in prose.stated_facts(variant):
            assert (fact.sentence in prose.asides(variant)) == fact.aside
            assert (fact.sentence in prose.description(variant)) != fact.aside
            if fact.aside:
                assert not {"d_rot", "W"} & fact.symbols & needed
                assert fact.part not in ("sinks", "norms") or fact.part[:-1] not in rows
                parts.add(fact.part)
    assert parts == {"scale", "softcap", "bias", "sinks", "position-encoding", "norms"}


def test_weights_beside_a_sink_are_asked_without_it(
    every_sheet: tuple[Variant, ...], shipped_sheets: tuple[Variant, ...]
) -> None:
    topics = set()
    for variant in (*every_sheet, *shipped_sheets):
        if weights := next((row for row in variant.rows if row.key == "weights"), None):
            has_sink = variant.architecture.has_sinks
            assert ("sink" in weights.note) == has_sink, (variant.worksheet.topic, weights.note)
            assert ("leave the sink out" in prose.description(variant)) == has_sink
            topics |= {variant.worksheet.topic} if has_sink else set()
    assert topics == SINK_TOPICS


def test_assumptions_speak_only_of_what_the_model_and_the_sheet_have(
    every_sheet: tuple[Variant, ...], shipped_sheets: tuple[Variant, ...]
) -> None:
    found = set()
    for variant in (*every_sheet, *shipped_sheets):
        said, text = " ".join(prose.assumptions(variant)), prose.description(variant)
        assert ("RoPE" not in said) or variant.architecture.rotary is not None
        assert ("tied" not in said) or "LM head is tied" in text
        assert ("Cached numbers" not in said) or "cache_of_token" in variant.worksheet.rows
        assert not re.search("no bias(es| terms)", said) or "projections have no biases" in said
        found |= {word for word in ("RoPE", "tied", "Cached numbers", "no biases") if word in said}
        is_missing = "LM head is tied" in text and variant.worksheet.topic == "parameter-count" and "tied" not in said
        assert not is_missing
        for row in variant.rows:
            assert row.key != "cache_of_token" or "layer" in row.note
    assert found == {"RoPE", "tied", "Cached numbers", "no biases"}


def test_a_decoding_step_does_not_tell_how_many_keys_there_are(library: Library) -> None:
    said = sentences(llama_sheet(library, "decode-step"))
    assert numbers(" ".join(said)) == {512, 8, 64, 40, 1}  # a batch size of 1


def test_one_token_is_said_in_the_singular(every_sheet: tuple[Variant, ...]) -> None:
    for variant in every_sheet:
        if variant.tokens == 1 and variant.worksheet.topic in HEAD_TOPICS[:4]:
            assert "1 token" not in prose.description(variant)
            assert re.search("single token|one token", prose.description(variant))


def test_an_input_beyond_the_context_length_draws_a_remark(library: Library) -> None:
    for topic, longest in (("single-head", 300), ("decode-step", 299)):
        assert "context length" not in prose.description(llama_sheet(library, topic, longest))
        assert "context length of 300 tokens" in prose.description(llama_sheet(library, topic, longest + 1))


def test_the_simplified_sheet_owns_up_in_its_footnote(library: Library) -> None:
    simplified = library.variant("qwen2.5-0.5b")
    assert "multi-head" in prose.description(simplified)
    assert {14, 2} <= numbers(prose.footnote(simplified) or "")
    assert prose.footnote(library.variant("layer-mistral-7b", "qwen2.5-0.5b")) is None


def test_what_a_sheet_says_against_the_truth_has_the_asterisk_of_its_footnote(
    shipped_sheets: tuple[Variant, ...],
) -> None:
    marked = set()
    for variant in shipped_sheets:
        for simplified in (False, True):
            changed = replace(variant.worksheet, kv_head_per_query_head=simplified)
            with suppress(TopicError):
                changed_sheet = replace(variant, worksheet=changed)
                said = any(fact.part == "heads" for fact in prose.stated_facts(changed_sheet))
                footnote = prose.footnote(changed_sheet)
                is_corrected = simplified and variant.model.architecture.G < variant.model.architecture.H
                assert (footnote is not None) == is_corrected
                assert prose.description(changed_sheet).count("*") == (is_corrected and said)
                assert (footnote or "").startswith("*") == (is_corrected and said)
                assert prose.report(changed_sheet) == (variant.model.report if is_corrected else "")
                marked |= {variant.worksheet.topic} if is_corrected and said else set()
    assert {"single-head", "attention-layer", "parameter-count"} <= marked
    assert "2412.15115" in prose.report(LIBRARY.variant("qwen2.5-0.5b"))


def test_the_symbols_to_answer_in_are_listed(library: Library) -> None:
    assert "N = number of tokens, d_model = embedding dimension, H = number of heads, d_head = head dimension" in (
        prose.task(library.variant("llama-7b~symbols")).replace("\u00a0", " ")
    )
    architecture = library.model("mistral-7b").architecture
    variant = sheet(library, architecture, "attention-layer", 40, answers="letters")
    assert "h_kv\u00a0= number of key/value heads" in prose.task(variant)


def test_every_symbol_of_an_answer_has_a_name(library: Library, every_sheet: tuple[Variant, ...]) -> None:
    names = library.wording.symbol_names
    for variant in every_sheet:
        if variant.worksheet.topic in (*HEAD_TOPICS, "layer-parameters"):
            for blank in variant.blanks:
                assert variant.expression(blank).symbols <= set(names), (variant.architecture.family, str(blank))


def names_of_symbols(variant: Variant) -> dict[str, str]:
    """What each of the sheet's symbols would mean if it were answered in symbols."""
    asked = replace(variant, worksheet=replace(variant.worksheet, answers="letters", notation="lecture"))
    listed = re.findall(r"(\S+)\u00a0= ([^,.]+)", prose.task(asked))
    return {asked.symbols.by_name[written]: name for written, name in listed}


@pytest.mark.slow
def test_a_symbol_stands_for_what_the_description_calls_it(every_sheet: tuple[Variant, ...]) -> None:
    for variant in every_sheet:
        names, description, sizes = names_of_symbols(variant), prose.description(variant), variant.sizes
        assert len(set(names.values())) == len(names), names
        if variant.worksheet.topic == "decode-step":
            assert "processed before" in names.get("N", "processed before")
        if variant.worksheet.topic == "cross-attention":
            assert ("encoder" in names["N"], "decoder" in names["M"]) == (True, True)
        if "H" in names:
            assert ("query heads" in names["H"]) == (sizes["G"] != sizes["H"]) == ("query head" in description)
        if "d_h" in names:
            assert (names["d_h"] == "head dimension") == (sizes["d_h"] == sizes["d_v"])
        assert ("embedding" in names["d"]) == (sizes.get("d_emb", sizes["d"]) == sizes["d"])


def test_blocks_are_to_be_compared_only_where_rows_ask_for_both() -> None:
    for worksheet in (sheet for sheet in LIBRARY.worksheets.values() if sheet.topic == "feed-forward-width"):
        for model in LIBRARY.models:
            if LIBRARY.refusal(worksheet.key, model) is None:
                variant = LIBRARY.variant(worksheet.key, model)
                asked = {row.key for row in variant.rows}
                both = {"gated_parameters", "ungated_parameters"} <= asked or {
                    "block_parameters",
                    "gated_width",
                } <= asked
                assert ("compare" in prose.task(variant)) == both, (worksheet.key, model)
    one_row = own_sheet(LIBRARY, "width-llama-7b", rows=("width",))
    assert "compare" not in prose.task(one_row)


def test_no_two_rows_of_a_sheet_have_one_name(every_sheet: tuple[Variant, ...]) -> None:
    for variant in every_sheet:
        names = [row.name for row in variant.rows]
        assert len(set(names)) == len(names), (variant.worksheet.topic, sorted(names))


def test_no_activation_has_the_name_of_a_parameter(every_sheet: tuple[Variant, ...]) -> None:
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for variant in every_sheet:
        for key, tensor in variant.table.by_key.items():
            if key in variant.problem.asked:
                names[tensor.parameter].add(variant.row_name(key))
    assert not names[True] & names[False]


def test_angles_are_counted_as_their_row_says(every_sheet: tuple[Variant, ...]) -> None:
    rotary = [variant for variant in every_sheet if variant.worksheet.topic == "rotary-pairs"]
    for variant in rotary:
        pairs = range(variant.sizes["d_rot"] // 2)
        angles = {
            (token, pair): token * 10_000 ** (-pair / len(pairs)) for token in range(variant.tokens) for pair in pairs
        }
        assert variant.answer(Blank("layer_angles", "count")) == len(angles)
        assert len(set(angles.values())) < len(angles) or len(pairs) == 1
        assert not re.search("(?i)different angles", " ".join(sentences(variant)))


def test_what_counts_as_an_embedding_table_is_said(every_sheet: tuple[Variant, ...]) -> None:
    counted = [variant for variant in every_sheet if variant.worksheet.topic == "parameter-count"]
    with_patches = [variant for variant in counted if "patch_embedding" in variant.table.askable]
    for variant in counted:
        notes = {row.key: row.note for row in variant.rows}
        assert bool(notes.get("embedding")) == (variant in with_patches), variant.architecture.family
    for variant in with_patches:
        sizes = variant.sizes
        assert variant.answer(Blank("embedding", "count")) == sizes["P"] * sizes["d"]
    assert with_patches


# What only some nudges may take for granted, and whether it is true of this sheet.
NUDGE_CLAIMS: dict[str, tuple[str, Callable[[Variant], bool]]] = {
    "keys differ from queries": (r"^How is this different", lambda v: v.sizes["G"] != v.sizes["H"]),
    "a token goes to several experts": (r"to several experts", lambda v: v.sizes.get("k") != 1),
    "this is the original inner dimension": (r"^This is the inner dimension of", lambda v: 4 * v.sizes["d"] == 2048),
}


@pytest.mark.parametrize("claim", NUDGE_CLAIMS)
def test_a_nudge_takes_nothing_for_granted(library: Library, every_sheet: tuple[Variant, ...], claim: str) -> None:
    pattern, is_true = NUDGE_CLAIMS[claim]
    mixture = next(case for case in CASES if case.model_type == "mixtral").config({"num_experts_per_tok": 1})
    one_expert = build_architecture({**mixture, "architectures": ["MixtralForCausalLM"]}, "The model")
    for variant in (*every_sheet, sheet(library, one_expert, "experts", 40), library.variant("width-llama-7b")):
        if variant.worksheet.topic in ("experts", "costs", "feed-forward-width") and not is_true(variant):
            said = [prose.nudge(variant, blank) for blank in variant.blanks]
            assert not [nudge for nudge in said if re.search(pattern, nudge)], variant.architecture.family


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_has_its_wording(library: Library, topic: str) -> None:
    words, asked = library.wording.topics[topic], dict[str, object]()
    assert words.title
    assert words.task
    for model in library.models.values():
        with suppress(TopicError):
            asked |= topic_for(topic, model.architecture, 7).askable
    assert set(words.rows) & set(asked)
    for key, row in words.rows.items():
        assert row.name, key
        counts: tuple[BlankField, ...] = ("count",) if TOPICS[topic].subject == "counts" else MATRIX_FIELDS
        for axis in getattr(asked.get(key), "fields", counts):
            assert words.nudge(Blank(key, axis)), key


def test_the_output_of_a_head_is_what_follows_its_output_projection(library: Library) -> None:
    for sentence in sentences_in(library.wording.model_dump()):
        if re.search("concaten", sentence, re.IGNORECASE):
            assert not re.search(r"\boutputs?\b(?! projection)", sentence), sentence
        if re.search(r"\boutputs of (all|the|its) heads", sentence):
            assert "add up" in sentence


def sentences_in(section: Mapping[str, object]) -> Iterator[str]:
    """Every sentence of a section and those within it."""
    for entry in section.values():
        if isinstance(entry, Mapping):
            yield from sentences_in(entry)
        elif isinstance(entry, str):
            yield from re.split(r"(?<=[.:?]) ", entry)


def test_no_nudge_has_a_digit_or_names_rows_and_columns(library: Library) -> None:
    nudges = [nudge for topic in library.wording.topics.values() for nudge in topic.nudges.values()]
    assert len(nudges) >= 32
    assert [nudge for nudge in nudges if re.search(r"\d|\brows?\b|\bcolumns?\b", nudge)] == []


@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_what_a_sheet_gives_is_written_on_it(key: str) -> None:
    sheet = LIBRARY.variant(key)
    words, given = " ".join(sentences(sheet)).replace(",", ""), prose.given(sheet)
    assert all(re.search(rf"(?<![\w.]){re.escape(each)}(?!\w)", words) for each in given)
    assert len(given) <= (13 if sheet.architecture.has_latent_attention else 8)
    assert given or sheet.worksheet.answers == "numbers"


def test_no_sheet_asks_for_bytes_that_no_row_asks_for() -> None:
    for key, sheet in LIBRARY.worksheets.items():
        variant = LIBRARY.variant(key)
        units = {getattr(variant.table.askable[row], "unit", "") for row in variant.problem.rows}
        assert "bytes" in units or "byte" not in prose.task(variant).lower(), (sheet.title, prose.task(variant))
