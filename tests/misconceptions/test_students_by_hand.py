"""One student for each misconception: what they write on a sheet, worked out by hand from the sheet's description.

Nothing here is computed by the app. Boxes that are not named are right.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from app.grading.grade import grade
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.topics.registry import TOPICS
from simulation.misconception_students import right_sheet
from tests.helpers.own_sheets import own_sheet
from tests.helpers.shipped import LIBRARY

Boxes = dict[str, int | str]


# Sheets of other models than the worksheet's, or with other rows, by a name.
SHEETS = {
    "costs-mistral-7b": LIBRARY.variant("costs-llama-7b", "mistral-7b", 100),
    "decode-llama-3.2-1b": LIBRARY.variant("decode-gpt2", "llama-3.2-1b", 99),
    "four-dimensions-qwen3-0.6b": own_sheet(
        LIBRARY,
        "four-dimensions-gpt2",
        model="qwen3-0.6b",
        models=(),
        tokens=80,
        rows=(
            "queries",
            "split_queries",
            "queries_by_head",
            "split_keys",
            "keys_by_head",
            "repeated_keys",
            "scores",
            "context",
            "context_by_token",
            "joined_context",
            "output",
        ),
    ),
    "experts-deepseek-v2-lite": LIBRARY.variant("experts-mixtral-8x7b", "deepseek-v2-lite", 96),
    "softmax-gpt2": own_sheet(
        LIBRARY,
        "softmax-of-a-model",
        model="gpt2",
        models=(),
        tokens=100,
        rows=(
            "scores",
            "under_root",
            "mask",
            "masked",
            "weights",
            "first_weights",
            "chosen_weights",
            "last_weights",
            "row_sum",
            "weights_sum",
        ),
    ),
    "softmax-bert-base": own_sheet(
        LIBRARY,
        "softmax-of-a-model",
        model="bert-base",
        models=(),
        tokens=80,
        rows=(
            "scores",
            "under_root",
            "weights",
            "first_weights",
            "chosen_weights",
            "last_weights",
            "row_sum",
            "weights_sum",
        ),
    ),
    "count-larger-llama": LIBRARY.variant("count-llama-7b", "llama-13b", 100),
    "count-bert-base": LIBRARY.variant("count-llama-7b", "bert-base", 100),
    "rotary-pythia-160m": LIBRARY.variant("rotary-mistral-7b", "pythia-160m", 70),
    "width-llama-3-8b": LIBRARY.variant("width-llama-7b", "llama-3-8b", 100),
    "growth-llama-3.2-1b": LIBRARY.variant("growth-llama-7b", "llama-3.2-1b", 100),
    "three-dimensions-qwen2.5-0.5b": own_sheet(
        LIBRARY,
        "three-dimensions-llama-7b",
        model="qwen2.5-0.5b",
        models=(),
        tokens=50,
        rows=(
            "queries",
            "split_queries",
            "queries_by_head",
            "keys",
            "split_keys",
            "keys_by_head",
            "repeated_keys",
            "scores",
            "context",
            "context_by_token",
            "joined_context",
            "output",
        ),
    ),
    "matrices-qwen2.5-0.5b": LIBRARY.variant("matrices-llama-7b", "qwen2.5-0.5b", 50),
    "count-qwen2.5-0.5b": LIBRARY.variant("count-llama-7b", "qwen2.5-0.5b", 50),
    "lora-qwen3-0.6b": LIBRARY.variant("lora-llama-7b", "qwen3-0.6b", 60),
    "stored-qwen3-0.6b": LIBRARY.variant("stored-of-a-model", "qwen3-0.6b", 100),
    "broadcasting-llama-3.2-1b": LIBRARY.variant("broadcasting-gpt2", "llama-3.2-1b", 100),
    "index-llama-3.2-1b": own_sheet(
        LIBRARY,
        "index-gpt2",
        model="llama-3.2-1b",
        models=(),
        tokens=100,
        rows=(
            "keys",
            "keys_by_head",
            "context_by_token",
            "joined_context",
            "summed_in_scores",
            "split_pattern",
            "repeat_pattern",
            "sums_pattern",
            "grouped_pattern",
        ),
    ),
}


class Student(NamedTuple):
    """Whoever holds this misconception writes these numbers on this worksheet."""

    sheet: str
    misconception: str
    wrong: Boxes
    model: str | None = None
    tokens: int | None = None


def shape(rows: int | None, columns: int | None, *keys: str) -> Boxes:
    """These rows and columns of each matrix; None is a side that is right."""
    sides = {"rows": rows, "columns": columns}
    return {f"{key}.{side}": length for key in keys for side, length in sides.items() if length is not None}


def dims(*lengths: int | None, of: str) -> Boxes:
    """These sides of each tensor, from dim0 on; None is a side that is right."""
    return {f"{key}.dim{at}": length for key in of.split() for at, length in enumerate(lengths) if length is not None}


def counts(**numbers: int) -> Boxes:
    """These counts."""
    return {f"{key}.count": number for key, number in numbers.items()}


def patterns(**typed: str) -> Boxes:
    """These patterns, by what they compute."""
    return {f"{key}_pattern.choice": text for key, text in typed.items()}


def on(worksheet: str, **wrong: Boxes) -> list[Student]:
    """What students write on one worksheet, by the misconception, with _ for - in its key."""
    return [Student(worksheet, key.replace("_", "-"), boxes) for key, boxes in wrong.items()]


QKV, SCORES = ("queries", "keys", "values"), ("scores", "weights")


def matrix(rows: int, columns: int, key: str) -> Boxes:
    """A matrix of parameters, with the count of its numbers."""
    return {**shape(rows, columns, key), f"{key}.count": rows * columns}


# Of Llama 3.2 1B: the entries of the matrices in its layers, and with the LM head; operations of a pair of tokens.
IN_LAYERS = 16 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192)
MULTIPLIED, PAIR = IN_LAYERS + 128_256 * 2048, 16 * 32 * 4 * 64


def whole_model(entries: int) -> Boxes:
    """What Llama 3.2 1B costs on 2000 tokens if a token is multiplied by this many entries."""
    prefill = 4000 * entries + 4_000_000 * PAIR
    return counts(
        multiplied=entries, token_flops=2 * entries, prefill_flops=prefill, decode_flops=2 * entries + 2001 * PAIR,
        training_flops=3 * prefill,
    )  # fmt: skip


STUDENTS = [
    # One head of LLaMA 7B from one token to 100: d = 4096, H = 32, d_h = 128.
    *on(
        "first-steps",
        head_as_wide_as_model={
            **shape(None, 4096, "token_query", "queries", "all_queries"),
            "transposed_key.rows": 4096,
        },
        transposed_product=shape(128, 128, "scores"),
        model_wide_scores=shape(4096, 4096, "all_scores"),
        elementwise_product=shape(None, 128, "token_score"),
        columns_are_tokens={
            **shape(128, 1, "token_query"), **shape(1, 128, "transposed_key"), **shape(128, 4, "queries", "context"),
            **shape(4096, 4, "output"), **shape(128, 100, "all_queries"),
        },
        no_output_projection=shape(None, 128, "output"),
        full_width_values=shape(None, 4096, "context"),
        scale_by_model_width=counts(under_root=4096),
        only_last_token_asks=shape(1, None, "all_queries"),
    ),
    # One head of Llama 3.2 1B, a token after 99: d = 2048, H = 32, G = 8, d_h = 64, 131,072 positions.
    *on(
        "decode-llama-3.2-1b",
        head_as_wide_as_model=shape(None, 2048, *QKV),
        heads_multiply_width=shape(None, 32 * 2048, *QKV),
        transposed_product=shape(64, 64, *SCORES),
        model_wide_scores=shape(2048, 2048, *SCORES),
        elementwise_product=shape(None, 64, *SCORES),
        keys_already_transposed=shape(64, 100, "keys"),
        columns_are_tokens={
            **shape(64, 1, "queries", "context"), **shape(64, 100, "keys", "values"), **shape(100, 1, *SCORES),
            **shape(2048, 1, "output"),
        },
        weights_for_activations=shape(2048, None, *QKV),
        no_output_projection=shape(None, 64, "output"),
        full_width_values=shape(None, 2048, "values"),
        wider_kv_heads=shape(None, 2048 // 8, "keys", "values"),
        all_kv_heads_in_one=shape(None, 8 * 64, "keys", "values"),
        context_for_tokens={**shape(131_073, None, "keys", "values"), **shape(None, 131_073, *SCORES)},
        all_heads_stacked=shape(32, None, *SCORES),
        softmax_collapses=shape(None, 1, "weights"),
        decode_step_square=shape(99, 99, *SCORES),
        layer_for_one_head={**shape(None, 32 * 64, "queries"), **shape(None, 8 * 64, "keys", "values")},
        mixed_orientations={**shape(64, 1, "queries"), **shape(64, 100, "keys", "values")},
        scores_transposed=shape(100, 1, *SCORES),
        keys_left_out={**shape(99, None, "keys", "values"), **shape(None, 99, *SCORES)},
        all_queries_recomputed=shape(100, None, "queries", *SCORES, "context", "output"),
    ),
    # A layer of Qwen3 0.6B, 10 inputs of 80 tokens: d = 1024, H = 16, G = 8, d_h = 128.
    *on(
        "four-dimensions-qwen3-0.6b",
        one_kv_per_query_head={**dims(None, None, 16, of="split_keys"), **dims(None, 16, of="keys_by_head")},
        shrunken_output_projection=dims(None, None, 8 * 128, of="joined_context"),
        width_always_divided={
            **dims(None, None, 1024, of="queries joined_context"),
            **dims(None, None, None, 1024 // 16, of="split_queries queries_by_head split_keys keys_by_head"),
            **dims(None, None, None, 1024 // 16, of="repeated_keys context context_by_token"),
        },
        one_head_for_layer={
            **dims(None, None, 128, of="queries joined_context"),
            **dims(None, None, 1, of="split_queries split_keys context_by_token"),
            **dims(None, 1, of="queries_by_head keys_by_head repeated_keys scores context"),
        },
        view_heads_first={**dims(None, 16, 80, of="split_queries"), **dims(None, 8, 80, of="split_keys")},
        wrong_axes_transposed={
            **dims(None, 80, 128, 16, of="queries_by_head"), **dims(None, 80, 128, 8, of="keys_by_head"),
            **dims(None, 16, 128, 80, of="context_by_token"),
        },
        heads_attend_to_heads={
            **dims(None, 80, 16, of="queries_by_head context"), **dims(None, 80, 8, of="keys_by_head"),
            **dims(None, 80, 16, 16, of="scores"),
        },
        merged_without_transpose=dims(None, 16, 80, of="context_by_token"),
        repeat_forgotten=dims(None, 8, of="repeated_keys scores context"),
        batch_mixed_with_heads={
            **dims(None, None, 160, of="split_queries context_by_token"), **dims(None, None, 80, of="split_keys"),
            **dims(None, 160, of="queries_by_head repeated_keys scores context"), **dims(None, 80, of="keys_by_head"),
        },
        tokens_across_batch=dims(None, None, 800, 800, of="scores"),
    ),
    # A mixture of DeepSeek-V2-Lite, 96 tokens: d = 2048, 64 experts of 3 · 2048 · 1408 numbers, of which 6 are chosen,
    # and 2 shared ones, in 26 layers; 1,311,632,896 other parameters.
    *on(
        "experts-deepseek-v2-lite",
        stored_layout={
            **shape(64, 2048, "W_router"), **shape(1408, 2048, "W_up"), **shape(2048, 1408, "W_down"),
        },
        all_experts_active={
            **shape(None, 64, "chosen"), **shape(96, None, "expert_input", "expert_hidden"),
            **counts(block_active=2048 * 64 + 66 * 3 * 2048 * 1408, used=1_311_632_896 + 26 * 64 * 3 * 2048 * 1408),
        },
        whole_model_per_expert=counts(
            total=64 * (1_311_632_896 + 26 * 3 * 2048 * 1408), used=6 * (1_311_632_896 + 26 * 3 * 2048 * 1408)
        ),
        one_expert_per_token={
            **shape(None, 1, "chosen"), **shape(2, None, "expert_input", "expert_hidden"),
            **counts(block_active=2048 * 64 + 3 * 3 * 2048 * 1408, used=1_311_632_896 + 26 * 3 * 2048 * 1408),
        },
        one_choice_for_all_tokens={
            **shape(1, None, "router_logits", "chosen"), **shape(96, None, "expert_input", "expert_hidden"),
        },
    ),
    # A layer of DeepSeek-V2-Lite with latent attention: d = 2048, H = 16, d_h = 128 + 64, d_v = 128, a latent of 512.
    *on(
        "latent-deepseek-v2-lite",
        input_sliced=shape(None, 192, "input"),
        input_repeated=shape(None, 16 * 2048, "input"),
        embedding_table_as_input=shape(102_400, None, "input"),
        only_last_token_asks=shape(1, None, "queries", *SCORES, "context", "output"),
        latent_cache_of_full_keys=shape(None, 16 * (192 + 128), "cache"),
    ),
    # From scores to weights in GPT-2, 100 tokens, token 34: d = 768, d_h = 64.
    *on(
        "softmax-gpt2",
        scale_by_model_width=counts(under_root=768),
        mask_forgotten=counts(masked=0, first_weights=100, chosen_weights=100),
        diagonal_masked=counts(masked=5050, first_weights=0, chosen_weights=33, last_weights=99),
        half_of_all_masked=counts(masked=100 * 100 // 2),
        mask_hides_earlier=counts(first_weights=100, chosen_weights=67, last_weights=1),
        softmax_over_all=counts(weights_sum=1),
    ),
    # The same without a mask in BERT, token 27.
    *on("softmax-bert-base", causal_mask_everywhere=counts(first_weights=1, chosen_weights=27)),
    # LLaMA 13B: d = 5120 = 40 · 128, d_ff = 13,824, 40 layers, a vocabulary of 32,000, 2,048 positions; of its
    # 13,015,864,320 parameters 12,688,179,200 are matrices and norms of its layers.
    *on(
        "count-larger-llama",
        heads_change_parameters=counts(attention=40 * 4 * 5120**2),
        positions_are_parameters=counts(
            embedding=(32_000 + 2048) * 5120, total=13_015_864_320 + 2048 * 5120
        ),
        separate_head_forgotten=counts(output_head=0, total=13_015_864_320 - 32_000 * 5120),
        square_head_projection=counts(
            attention=40 * 3 * 128**2 + 5120**2,
            all_layers=12_688_179_200 - 40 * 3 * (5120**2 - 40 * 128**2),
            total=13_015_864_320 - 40 * 3 * (5120**2 - 40 * 128**2),
        ),
        output_projection_forgotten=counts(
            attention=3 * 5120**2,
            all_layers=12_688_179_200 - 40 * 5120**2, total=13_015_864_320 - 40 * 5120**2,
        ),
        gate_forgotten=counts(
            feed_forward=2 * 5120 * 13_824,
            all_layers=12_688_179_200 - 40 * 5120 * 13_824, total=13_015_864_320 - 40 * 5120 * 13_824,
        ),
        feed_forward_four_d=counts(
            feed_forward=3 * 5120 * 4 * 5120,
            all_layers=12_688_179_200 + 40 * 3 * 5120 * (4 * 5120 - 13_824),
            total=13_015_864_320 + 40 * 3 * 5120 * (4 * 5120 - 13_824),
        ),
    ),
    # BERT base, whose output matrix is its embedding of 30,522 tokens: 109,514,298 parameters.
    *on("count-bert-base", tied_embedding_twice=counts(total=109_514_298 + 30_522 * 768)),
    # Rotary pairs of Pythia 160M, 70 tokens: H = 12, d = 768, d_h = 64, of which 16 numbers are rotated.
    *on(
        "rotary-pythia-160m",
        angle_per_dimension={**shape(None, 16, "angles", "cosines"), **counts(layer_angles=70 * 16)},
        angles_for_all_heads={**shape(None, 384, "angles", "cosines"), **counts(layer_angles=70 * 384)},
        all_dimensions_rotated={
            **shape(None, 32, "angles", "cosines"),
            **counts(unrotated=0, layer_angles=70 * 32, layer_rotated=2 * 70 * 12 * 64),
        },
        pairs_of_the_other_kind=counts(partner=3),
        values_rotated_too=counts(layer_rotated=3 * 70 * 12 * 16),
    ),
    # The width of Llama 3 8B, d = 4096: two thirds of 4 · 4096, times 1.3, rounded up to a multiple of 1024.
    *on(
        "width-llama-3-8b",
        two_thirds_of_d=counts(two_thirds=2 * 4096 // 3),
        one_width_for_both_blocks=counts(ungated_parameters=2 * 4096 * 14_336),
    ),
    # The parameters of one head of GPT-2: d = 768, d_h = 64.
    *on(
        "head-parameters-gpt2",
        whole_output_projection={**shape(768, None, "W_O"), **counts(W_O=768 * 768)},
        tokens_in_weights={**shape(100, None, "W_Q"), **counts(W_Q=100 * 64)},
    ),
    # What a layer of LLaMA 7B costs for 100 tokens: d = 4096 = 32 · 128, d_ff = 11,008; 6,738,415,616 parameters.
    *on(
        "costs-llama-7b",
        cache_forgets_factor=counts(cache_16_bit=2 * 32 * 100 * 4096, cache_8_bit=32 * 100 * 4096),
        flops_are_macs=counts(
            queries_flops=100 * 4096 * 4096, keys_flops=100 * 4096 * 4096, output_flops=100 * 4096 * 4096,
            scores_flops=100 * 100 * 4096, context_flops=100 * 100 * 4096, feed_forward_flops=3 * 100 * 4096 * 11_008,
        ),
        bits_for_bytes=counts(
            weights_16_bit=16 * 6_738_415_616, weights_8_bit=8 * 6_738_415_616, weights_4_bit=4 * 6_738_415_616,
            cache_16_bit=16 * 2 * 32 * 100 * 4096, cache_8_bit=8 * 2 * 32 * 100 * 4096,
        ),
        layers_miscounted=counts(
            queries_flops=32 * 2 * 100 * 4096**2, keys_flops=32 * 2 * 100 * 4096**2,
            scores_flops=32 * 2 * 100**2 * 4096, context_flops=32 * 2 * 100**2 * 4096,
            output_flops=32 * 2 * 100 * 4096**2,
            feed_forward_flops=32 * 6 * 100 * 4096 * 11_008,
        ),
    ),
    # Growth in Llama 3.2 1B, 100 tokens: d = 2048 = 32 · 64, G = 8.
    *on(
        "growth-llama-3.2-1b",
        everything_grows_alike=counts(projections_doubled=4, kv_cache_doubled=4),
        decoding_costs_a_prefill=counts(decode_flops=4 * 101 * 2048 * (2048 + 512) + 4 * 101**2 * 2048),
    ),
    # From tokens to logits in Llama 3.2 1B: d = 2048, d_ff = 8192.
    *on(
        "walk-llama-3.2-1b",
        logits_as_wide_as_model=shape(None, 2048, "logits", "last_logits"),
    ),
    # Cross-attention in BART: 25 tokens of the decoder attend to 90 of the encoder.
    *on(
        "cross-bart-base",
        texts_mixed_up={
            **shape(90, None, "queries", "context", "output"), **shape(25, None, "keys", "values"),
            **shape(90, 25, *SCORES),
        },
        scores_transposed=shape(90, 25, *SCORES),
    ),
    # One head of GPT-2 writes the token after 85, with 1,024 positions.
    *on(
        "decode-gpt2",
        scores_transposed=shape(86, 1, *SCORES),
        keys_left_out={**shape(85, None, "keys", "values"), **shape(None, 85, *SCORES)},
        context_for_tokens={**shape(1024, None, "keys", "values"), **shape(None, 1024, *SCORES)},
    ),
    # One head of LLaMA 7B, 100 tokens: d = 4096 = 32 · 128.
    *on(
        "llama-7b",
        weights_for_activations={**shape(4096, None, *QKV), **shape(4096, 4096, *SCORES)},
        only_last_token_asks=shape(1, None, "queries", *SCORES, "output"),
    ),
    # One head of BERT, 40 tokens: d = 768, d_h = 64, 512 positions.
    *on(
        "bidirectional-bert-base",
        full_width_values=shape(None, 768, "values"),
        context_for_tokens={**shape(512, None, "input", *QKV, "output"), **shape(512, 512, *SCORES)},
    ),
    # A layer of Mistral 7B, 60 tokens: d = 4096 = 32 · 128, G = 8.
    *on(
        "layer-mistral-7b",
        one_head_for_layer=shape(None, 128, *QKV, "context"),
        one_kv_per_query_head=shape(None, 4096, "keys", "values"),
        shrunken_output_projection=shape(None, 8 * 128, "context"),
        columns_are_tokens={
            **shape(4096, 60, "input", "queries", "context", "output"), **shape(1024, 60, "keys", "values"),
        },
    ),
    # All heads of Qwen2.5 0.5B, 50 tokens: d = 896 = 14 · 64, G = 2.
    *on(
        "three-dimensions-qwen2.5-0.5b",
        view_heads_first={**dims(14, 50, of="split_queries"), **dims(2, 50, of="split_keys")},
        repeat_forgotten=dims(2, of="repeated_keys scores context"),
    ),
    # The matrices of a layer of the same model: d_ff = 4864; and its 494,032,768 parameters, 24 layers.
    *on(
        "matrices-qwen2.5-0.5b",
        heads_multiply_width={
            **matrix(896, 14 * 896, "W_Q"), **matrix(896, 2 * 896, "W_K"), **matrix(896, 2 * 896, "W_V"),
            **matrix(14 * 896, 896, "W_O"),
        },
        one_kv_per_query_head={**matrix(896, 896, "W_K"), **matrix(896, 896, "W_V")},
        stored_layout={
            **shape(128, 896, "W_K", "W_V"), **shape(4864, 896, "W_gate", "W_up"), **shape(896, 4864, "W_down"),
        },
        feed_forward_four_d={
            **matrix(896, 3584, "W_gate"), **matrix(896, 3584, "W_up"), **matrix(3584, 896, "W_down"),
        },
    ),
    *on(
        "count-qwen2.5-0.5b",
        one_kv_per_query_head=counts(
            attention=1_836_160 + 2 * 12 * 64 * (896 + 1),  # with biases of keys and values
            all_layers=357_897_216 + 24 * 2 * 12 * 64 * (896 + 1), total=494_032_768 + 24 * 2 * 12 * 64 * (896 + 1),
        ),
    ),
    Student(
        "costs-llama-7b",
        "one-kv-per-query-head",
        counts(keys_flops=2 * 100 * 4096**2, cache_16_bit=4 * 32 * 100 * 4096, cache_8_bit=2 * 32 * 100 * 4096),
        "mistral-7b",
    ),
    # LoRA with r = 8 beside W_Q of Qwen3 0.6B: d = 1024, 16 heads of 128.
    *on(
        "lora-qwen3-0.6b",
        rank_instead_of_width={**matrix(8, 8, "lora_B"), **shape(60, 8, "query_update"), **counts(trained=8 * 1032)},
        frozen_counted_as_trained=counts(trained=8 * (1024 + 2048) + 1024 * 2048),
        heads_multiply_width={
            **matrix(1024, 16 * 1024, "W_Q"), **matrix(8, 16 * 1024, "lora_B"), **counts(trained=8 * 17 * 1024),
            **shape(60, 16 * 1024, "query_update", "queries"),
        },
        one_head_for_layer={
            **matrix(1024, 128, "W_Q"), **matrix(8, 128, "lora_B"), **counts(trained=8 * (1024 + 128)),
            **shape(60, 128, "query_update", "queries"),
        },
        stored_layout={**shape(2048, 1024, "W_Q"), **shape(8, 1024, "lora_A"), **shape(2048, 8, "lora_B")},
    ),
    # The cache of Qwen3 0.6B, 10 texts of 80 tokens, then 7 more: H = 16, G = 8, d_h = 128, 28 layers.
    *on(
        "cache-qwen3-0.6b",
        one_kv_per_query_head={
            **dims(None, 16, of="cached_keys new_keys keys"),
            **counts(cached_numbers=91_750_400, cache_bytes=183_500_800),
        },
        repeat_forgotten=dims(None, 8, of="repeated_keys scores context"),
        cache_forgets_factor=counts(cached_numbers=10 * 28 * 8 * 80 * 128, cache_bytes=45_875_200),
        more_than_keys_and_values_cached=counts(
            cached_numbers=45_875_200 + 10 * 28 * 16 * 80 * 128, cache_bytes=2 * (45_875_200 + 10 * 28 * 16 * 80 * 128)
        ),
        bits_for_bytes=counts(cache_bytes=16 * 45_875_200),
        all_queries_recomputed=dims(None, None, 87, of="queries scores context"),
        keys_left_out={**dims(None, None, 80, of="keys repeated_keys"), "scores.dim3": 80},
    ),
    # After 5000 tokens of 9 texts, each of 32 layers of Mistral 7B has kept 4096.
    Student(
        "cache-qwen3-0.6b",
        "window-forgotten",
        {
            **dims(None, None, 5000, of="cached_keys"), **dims(None, None, 5007, of="keys repeated_keys"),
            "scores.dim3": 5007,
            **counts(cached_numbers=9 * 32 * 8 * 5000 * 256, cache_bytes=2 * 9 * 32 * 8 * 5000 * 256),
        },
        "mistral-7b",
        5000,
    ),
    # 6 texts of 50 tokens on the way to the loss of GPT-2: d = 768, a vocabulary of 50,257.
    *on(
        "loss-gpt2",
        logits_as_wide_as_model={
            **dims(None, None, 768, of="logits shifted_logits"), **shape(None, 768, "flat_logits"),
        },
        targets_not_shifted={
            **dims(None, 50, of="shifted_logits"), **shape(None, 50, "targets"), **shape(300, None, "flat_logits"),
            "flat_targets.dim0": 300,
        },
        loss_of_last_position={
            **dims(None, 1, of="logits shifted_logits"), **shape(None, 1, "targets"), **shape(6, None, "flat_logits"),
            "flat_targets.dim0": 6,
        },
        vocabulary_flattened=shape(6, 49 * 50_257, "flat_logits"),
        targets_one_hot={**shape(None, 50_257, "targets"), "flat_targets.dim0": 6 * 49 * 50_257},
        embedding_table_as_input=dims(None, 50_257, of="embedded"),
    ),
    # 6 images of 224 × 224 pixels, in 14 × 14 patches of 16 × 16, on the way to 1000 classes in ViT base: d = 768.
    *on(
        "loss-vit-base",
        class_token_forgotten=dims(None, 196, of="image_tokens final"),
        patch_size_for_patches={
            **dims(None, None, 16, 16, of="patches"), **dims(None, 256, of="patch_tokens"),
            **dims(None, 257, of="image_tokens final"),
        },
    ),
    # Head 10 of 16 in Qwen3 0.6B, which reads key/value head 5 of 8: d = 1024, d_h = 128.
    *on(
        "stored-qwen3-0.6b",
        slices_counted_from_one=counts(q_start=9 * 128, k_start=4 * 128, o_start=9 * 128),
        one_kv_per_query_head={**shape(2048, None, "stored_W_K"), **counts(kv_head=10, k_start=10 * 128)},
        width_always_divided={
            **shape(1024, None, "stored_W_Q"), **shape(512, None, "stored_W_K"), **shape(None, 1024, "stored_W_O"),
            **counts(q_start=640, q_length=64, k_start=320, o_start=640),
        },
        kv_heads_in_turn=counts(kv_head=2, k_start=2 * 128),
    ),
    # Head 5 of 12 in GPT-2, d_h = 64, after 768 numbers of queries and 768 of keys; in Pythia 160M after five heads.
    *on(
        "stored-of-a-model",
        slices_counted_from_one=counts(q_start=256, k_start=1024, v_start=1792, o_start=256),
        fused_read_head_by_head=counts(q_start=960, k_start=1024, v_start=1088),
    ),
    Student("stored-of-a-model", "stored-layout", shape(2304, 768, "stored_W_QKV")),
    # 20 tokens in GPT-2: token 6, head 5 of 12, feature 3 of 64. The wrong view has query 5 · 20 + 6 = 8 · 12 + 10.
    *on(
        "same-shapes-gpt2",
        softmax_over_queries=counts(softmax_dim=1, softmax_dim_batched=2),
        mask_forgotten=counts(seen_keys=20),
        diagonal_masked=counts(seen_keys=6, reversed_keys=14, turned_weights=13),
        mask_hides_earlier=counts(seen_keys=14, reversed_keys=6, turned_weights=7),
        weights_turned_alike=counts(turned_weights=7),
    ),
    # Llama 3.2 1B on 2000 tokens: 16 layers of 2048, 32 query heads and 8 key/value heads of 64, gates of 8192; 128,256
    # tokens in the vocabulary, and 1,235,814,400 parameters.
    *on(
        "model-costs-llama-3.2-1b",
        every_parameter_multiplied=whole_model(1_235_814_400),
        only_parameters_cost=counts(
            prefill_flops=4000 * MULTIPLIED, decode_flops=2 * MULTIPLIED, training_flops=12000 * MULTIPLIED
        ),
        backward_costs_a_forward=counts(training_flops=2 * (4000 * MULTIPLIED + 4_000_000 * PAIR)),
    ),
    Student("model-costs-mixtral-8x7b", "optimizer-forgotten", counts(training_bytes=4 * 46_702_792_704)),
    # Six inputs of 50 tokens in GPT-2, with 12 heads and vectors of 768.
    *on(
        "broadcasting-gpt2",
        misaligned_dimensions={
            **dims(6, 50, 1, 1, of="padding_mask"), **dims(50, 50, 1, 1, of="causal_mask"),
            **dims(50, 768, 1, of="positions_of_batch"), **dims(768, 1, 1, of="norm_scale"),
        },
        repeated_by_hand={
            **dims(6, 12, 50, 50, of="padding_mask causal_mask both_masks"),
            **dims(6, 50, 768, of="positions_of_batch norm_scale"),
        },
        padding_hides_queries=dims(6, 1, 50, 1, of="padding_mask"),
        elementwise_keeps_shape={**dims(6, 1, 1, 50, of="both_masks"), **shape(1, 50, "grown")},
    ),
    # Nine inputs of 100 tokens in Llama 3.2 1B: 32 query heads of 64 in 8 groups.
    Student(
        "broadcasting-llama-3.2-1b",
        "misaligned-dimensions",
        {
            **dims(1, 1, 9, 100, of="padding_mask"), **dims(1, 1, 100, 64, of="cosines_tokens_first"),
            **dims(1, 8, 100, 64, of="grouped_keys"),
        },
    ),
    # Six inputs of 50 tokens in GPT-2 again.
    *on(
        "index-gpt2",
        result_axes_swapped=patterns(scores="bhqd,bhkd->bhkq", sums="bhqk,bhkd->bhdq"),
        one_name_for_two_axes=patterns(scores="bhtd,bhtd->bhtt"),
        batch_axis_dropped=patterns(scores="hqd,hkd->hqk", sums="hqk,hkd->hqd", merge="h n d -> n (h d)"),
        shared_axes_summed={**patterns(scores="bhqd,bhkd->qk"), "summed_in_own_scores.choice": 1},
        group_order_swapped=patterns(merge="b head n width -> b n (width head)"),
    ),
    # In Llama 3.2 1B, 32 heads of 64 features; 8 groups of 4 query heads.
    Student("index-llama-3.2-1b", "group-order-swapped", patterns(repeat="b g n d -> b (copy g) n d")),
    Student(
        "index-llama-3.2-1b",
        "one-kv-per-query-head",
        {**dims(9, 32, 100, 64, of="keys_by_head"), "keys.dim2": 2048, **patterns(grouped="grqd,grkd->grqk")},
    ),
    # One rotary key of 64 for all 16 heads, next to 16 parts of 128.
    # Mistral 7B sees 4096 tokens: after 5000, the new one has 4096 keys.
    Student(
        "decode-gpt2",
        "window-forgotten",
        {**shape(5001, None, "keys", "values"), **shape(None, 5001, *SCORES)},
        "mistral-7b",
        5000,
    ),
    *(Student("llama-7b", "mixed-orientations", shape(128, 100, key)) for key in ("queries", "values")),
    *(Student("llama-7b", "mixed-orientations", shape(4096, 100, key)) for key in ("input", "output")),
    # LLaMA 7B: 32 layers of 67,108,864 + 135,266,304 + 2 · 4096 parameters, 131,072,000 at either end, and a last norm.
    *(
        Student("count-llama-7b", "norms-forgotten", counts(**numbers))
        for numbers in (
            {"all_layers": 6_476_005_376, "total": 6_738_415_616 - 32 * 2 * 4096},
            {"all_layers": 6_476_005_376, "total": 6_738_415_616 - 65 * 4096},
            {"total": 6_738_415_616 - 4096},
            {"norms": 4096, "all_layers": 6_476_267_520 - 32 * 4096, "total": 6_738_415_616 - 32 * 4096},
        )
    ),
    Student("count-llama-7b", "layers-miscounted", counts(all_layers=202_383_360, total=464_531_456)),
    Student(
        "count-llama-7b",
        "heads-multiply-width",
        counts(
            attention=32 * 67_108_864,
            all_layers=6_476_267_520 + 32 * 31 * 67_108_864,
            total=6_738_415_616 + 32 * 31 * 67_108_864,
        ),
    ),
    # Llama 3.2 1B: 6 · N · P; and the embedding taken for a product when it is looked up.
    Student(
        "model-costs-llama-3.2-1b", "every-parameter-multiplied", counts(training_flops=6 * 2000 * 1_235_814_400)
    ),
    Student(
        "model-costs-llama-3.2-1b",
        "every-parameter-multiplied",
        {**counts(outside_multiplied=2 * 128_256 * 2048), **whole_model(MULTIPLIED + 128_256 * 2048)},
    ),
    # Each key head repeated along 87 tokens: still 8 heads where 16 query heads need one each.
    Student("cache-qwen3-0.6b", "repeat-forgotten", dims(None, 8, 2 * 87, of="repeated_keys")),
    # The matrices in place of what they make: W_Q, W_K, W_V and the head's part of W_O; in a layer, all of W_O.
    Student("llama-7b", "weights-for-activations", {**shape(4096, None, *QKV), **shape(128, None, "output")}),
    Student("layer-mistral-7b", "weights-for-activations", shape(4096, None, *QKV, "output")),
    Student("three-dimensions-llama-7b", "keys-already-transposed", dims(32, 128, 100, of="keys_by_head")),
    # 90 tokens are read by the encoder, 25 written by the decoder.
    Student(
        "cross-bart-base",
        "texts-mixed-up",
        {
            **shape(90, None, "input", "queries", "context", "output"), **shape(25, None, "encoded", "keys", "values"),
            **shape(90, 25, *SCORES),
        },
    ),
    # Q @ K raises; the second of the four reasons is that the softmax sums a dimension of the scores away.
    Student("bug-one-head", "softmax-collapses", {"why.choice": 2}),
    # Mixtral 8x7B: 8 times 7 billion; or 8 Mistrals of 7,241,732,096 parameters.
    Student("count-mixtral-8x7b", "whole-model-per-expert", counts(total=56_000_000_000)),
    Student("count-mixtral-8x7b", "whole-model-per-expert", counts(total=8 * 7_241_732_096, used=2 * 7_241_732_096)),
    Student("experts-mixtral-8x7b", "whole-model-per-expert", counts(total=56_000_000_000, used=14_000_000_000)),
    Student("count-mixtral-8x7b", "all-experts-active", counts(used=46_702_792_704)),
    # Less one of two experts of 3 · 4096 · 14336 in each of 32 layers.
    Student("count-mixtral-8x7b", "one-expert-per-token", counts(used=12_879_925_248 - 32 * 176_160_768)),
    Student("experts-mixtral-8x7b", "all-experts-active", shape(96, None, "expert_input", "expert_hidden")),
    # LLaMA 13B with the heads of all 2,048 positions flattened for W_O.
    Student(
        "count-larger-llama",
        "tokens-in-weights",
        counts(
            attention=3 * 5120**2 + 2048 * 5120**2,
            all_layers=12_688_179_200 + 40 * 2047 * 5120**2, total=13_015_864_320 + 40 * 2047 * 5120**2,
        ),
    ),
    # Q 2048 × 1024 as an nn.Linear stores it; all three projections of GPT-2, 768 × 2304, as a Conv1D does.
    Student(
        "stored-qwen3-0.6b",
        "stored-layout",
        {**shape(1024, 2048, "stored_W_Q"), **shape(2048, 1024, "stored_W_O"), **counts(q_dim=1, o_dim=0)},
    ),
    Student("stored-of-a-model", "stored-layout", {**shape(2304, 768, "stored_W_QKV"), **counts(q_dim=0, o_dim=1)}),
    # A head of GPT-2 whose W_O is written like its W_Q.
    Student("head-parameters-gpt2", "stored-layout", shape(768, 64, "W_O")),
    # Only a head's new key, or the keys of 7 new tokens.
    Student("decode-llama-3.2-1b", "keys-left-out", {**shape(1, None, "keys", "values"), **shape(None, 1, *SCORES)}),
    Student("cache-qwen3-0.6b", "keys-left-out", {**dims(None, None, 7, of="keys repeated_keys"), "scores.dim3": 7}),
    # One of ten inputs.
    Student("cache-qwen3-0.6b", "cache-forgets-factor", counts(cached_numbers=4_587_520, cache_bytes=9_175_040)),
    Student(
        "four-dimensions-qwen3-0.6b",
        "batch-mixed-with-heads",
        {**dims(16, 10, of="queries_by_head repeated_keys scores context"), **dims(8, 10, of="keys_by_head")},
    ),
    # The decoder attends to itself: 25 tokens in BART, 50 in Whisper.
    Student("cross-bart-base", "texts-mixed-up", {**shape(25, None, "keys", "values"), **shape(None, 25, *SCORES)}),
    Student("cache-whisper-tiny", "texts-mixed-up", dims(None, None, 50, of="cross_keys") | {"cross_scores.dim3": 50}),
    Student("same-shapes-gpt2", "view-heads-first", counts(viewed_token=6, viewed_head=5)),
    Student("broadcasting-gpt2", "misaligned-dimensions", dims(1, 1, 6, 50, of="padding_mask")),
    Student(
        "broadcasting-gpt2",
        "repeated-by-hand",
        {
            **dims(6, 12, 1, 50, of="padding_mask"), **dims(1, 12, 50, 50, of="causal_mask"),
            **dims(6, 12, 50, 50, of="both_masks"),
        },
    ),
    Student(
        "index-gpt2",
        "result-axes-swapped",
        {**dims(6, 50, 12, 64, of="queries_by_head"), **dims(6, 12, 50, 64, of="context_by_token")},
    ),
    Student("growth-llama-3.2-1b", "everything-grows-alike", counts(pairwise_doubled=2, score_entries_doubled=2)),
    Student("rotary-pythia-160m", "angles-for-all-heads", counts(layer_angles=12 * 70 * 8)),
]  # fmt: skip


@pytest.mark.parametrize("student", STUDENTS, ids=lambda student: f"{student.sheet} {student.misconception}")
def test_what_students_write_is_diagnosed_as_what_they_hold(student: Student) -> None:
    variant = SHEETS.get(student.sheet) or LIBRARY.variant(student.sheet, student.model, student.tokens)
    right = {box: variant.typed(variant.blanks_by_name[box], size) for box, size in right_sheet(variant).items()}
    report = grade(variant, {**right, **{box: str(wrong) for box, wrong in student.wrong.items()}})
    assert report.diagnosis is not None
    assert (report.diagnosis.key, report.diagnosis.also) == (student.misconception, ())
    wrong = {blank for blank, mark in report.marks.items() if mark.kind == "wrong" and blank.field != "choice"}
    assert wrong <= {*report.diagnosis.explains}


def test_every_misconception_and_topic_has_a_student() -> None:
    assert {misconception.key for misconception in MISCONCEPTIONS} == {each.misconception for each in STUDENTS}
    assert {(SHEETS.get(each.sheet) or LIBRARY.variant(each.sheet)).worksheet.topic for each in STUDENTS} == set(TOPICS)
