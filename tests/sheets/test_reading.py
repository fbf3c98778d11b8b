"""What one sheet's boxes take: its symbols and no others, units that fit, one side a box, and rounded byte counts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations

import pytest
import torch

from app.algebra.parser import Unreadable
from app.grading.grade import Mark, grade
from app.models.architecture import MAX_TOKENS
from app.shapes.table import symbol_fields
from app.sheets.answers import Answer, box_unit
from app.sheets.library import Library
from app.sheets.notation import NOTATIONS, NotationKey
from app.sheets.variant import Variant
from app.topics.registry import TOPICS
from tests.helpers.processor_time import processor_time_s


def mark_of(variant: Variant, box: str, text: str) -> Mark:
    """The mark of one text in one box of an otherwise empty sheet."""
    return grade(variant, {box: text}).marks[variant.blanks_by_name[box]]


def kinds(variant: Variant, box: str, *texts: str) -> list[str]:
    """The kinds of the marks of several texts in one box, one after the other."""
    return [mark_of(variant, box, text).kind for text in texts]


def test_the_notations_letters_win_over_a_models_own(library: Library) -> None:
    variant = library.variant("llama-7b~symbols", "bert-base")
    variant = replace(variant, worksheet=replace(variant.worksheet, notation="lecture"))
    assert mark_of(variant, "input.rows", "T").kind == "right"
    right = {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}
    assert grade(variant, right).complete


@pytest.mark.parametrize("letter", ["L", "W", "P", "V", "C", "B", "M"])
def test_a_letter_that_is_not_on_the_sheet_cannot_be_read(library: Library, letter: str) -> None:
    for model in ("llama-7b", "bert-base", "gpt2"):
        mark = mark_of(library.variant("llama-7b~symbols", model), "input.rows", letter)
        assert (mark.kind, mark.message) == (
            "unreadable",
            f"“{letter}” is not a symbol of this sheet: use N, d_model, H, d_head.",
        )


@pytest.mark.parametrize("notation", NOTATIONS)
def test_tensors_with_two_letters_keep_two_in_every_notation(notation: NotationKey) -> None:
    for topic in TOPICS.values():
        for table in topic.tables:
            letters = NOTATIONS[notation].letters_in(table)
            for (one, first), (other, second) in combinations(table.by_key.items(), 2):
                assert (letters[one] == letters[other]) == (first.letter == second.letter), (topic.key, one, other)


@pytest.mark.parametrize(
    ("sheet", "box"),
    [
        ("llama-7b", "queries.rows"),
        ("llama-7b~symbols", "queries.rows"),
        ("costs-llama-7b", "weights_16_bit.count"),
        ("same-shapes-gpt2", "softmax_dim.count"),
        ("bug-layer", "where.choice"),
        ("bug-layer", "repair.part1"),
        ("bug-layer", "repair.part2"),
        ("index-gpt2", "scores_pattern.choice"),
    ],
)
def test_no_box_takes_long_to_read_whatever_is_typed(library: Library, sheet: str, box: str) -> None:
    variant = library.variant(sheet)
    blank = variant.blanks_by_name[box]
    for text in ("1" * 100_000, "(" * 100_000, "N+d" * 30_000, "½" * 100_000, "\u200b" * 100_000, "a b -> " * 10_000):
        assert processor_time_s(partial(variant.read, blank, text)) < 0.1
        assert not isinstance(variant.read(blank, text), Answer)


@pytest.mark.parametrize("text", ["(N+1)^49", "(N+H)^30", "(N+1)^20+(H+1)^20", "N^50*(N+H)^30"])
def test_a_power_of_a_sum_in_every_box_takes_no_time(library: Library, text: str) -> None:
    variant = library.variant("four-dimensions-gpt2~symbols")
    assert processor_time_s(lambda: [variant.read(blank, text) for blank in variant.blanks]) < 0.1


def test_two_widths_have_two_names_only_where_they_differ(library: Library) -> None:
    names = {
        "classic": ("d_k", "d_v", "d_head"),
        "lecture": ("d_h", "d_v", "d_h"),
    }
    sizes = {model: library.model(model).architecture.all_sizes for model in ("deepseek-v2-lite", "llama-7b")}
    for notation in NOTATIONS:
        queries, values, both = names[notation]
        differing = NOTATIONS[notation].for_sizes(sizes["deepseek-v2-lite"])
        equal = NOTATIONS[notation].for_sizes(sizes["llama-7b"])
        assert (differing.symbol("d_h"), differing.symbol("d_v")) == (queries, values)
        assert (equal.symbol("d_h"), equal.symbol("d_v")) == (both, both)


def test_symbols_of_the_sheet_can_stand_on_a_sheet_in_numbers(library: Library) -> None:
    variant = library.variant("llama-7b")
    assert kinds(variant, "queries.columns", "4096/H", "d_model/32", "d_head", "d/H") == ["right"] * 4
    assert kinds(variant, "queries.rows", "N", "T", "n", "d", "L") == ["right", "right", "right", "wrong", "unreadable"]


def test_every_symbol_of_a_sheet_in_numbers_is_read_in_its_boxes(library: Library) -> None:
    unread = set[tuple[str, str]]()
    for key, worksheet in library.worksheets.items():
        variant = library.variant(key)
        if worksheet.answers != "numbers":
            continue
        sizes = [blank for blank in variant.blanks if blank.field in symbol_fields(variant.table.askable[blank.tensor])]
        for blank in {box_unit(variant.problem, blank): blank for blank in sizes}.values():
            for name, symbol in variant.symbols.by_name.items():
                size = variant.sizes[symbol]
                for text, number in {name: size, f"2·{name}": 2 * size, f"3x{name} x 2": 6 * size}.items():
                    if variant.read(blank, text) != Answer(number):
                        unread.add((key, text))
    assert not unread


@pytest.mark.parametrize("text", ["6.7e9 params", "2 params", "2params"])
def test_a_symbol_behind_a_number_is_taken_for_a_unit(library: Library, text: str) -> None:
    variant = library.variant("costs-llama-7b")
    assert variant.read(variant.blanks[0], text) == Unreadable("unit", "params")


@pytest.mark.parametrize("text", ["100x128", "100 x 128", "100 × 128", "100X128", "(100, 128)", "100, 128", "100 128",
                                  "100,128", "[100;128]", "100 4096"])  # fmt: skip
def test_one_box_takes_one_side(library: Library, text: str) -> None:
    variant = library.variant("llama-7b")
    for box in ("queries.rows", "queries.columns"):
        assert mark_of(variant, box, text).kind == "unreadable"


@pytest.mark.parametrize(
    "text", ["4,096", "4 096", "4'096", "4_096", "32*128", "32·128", "4096 columns", "4096 numbers"]
)
def test_thousands_and_products_stay_one_number(library: Library, text: str) -> None:
    assert mark_of(library.variant("llama-7b"), "input.columns", text).kind == "right"


def test_a_unit_has_to_fit_the_box(library: Library) -> None:
    head, costs = library.variant("llama-7b"), library.variant("costs-llama-7b")
    count = library.variant("count-llama-7b")
    assert kinds(head, "queries.rows", "100 tokens", "100 rows", "100 bytes", "100 GB") == [
        "right", "right", "unreadable", "unreadable"
    ]  # fmt: skip
    assert kinds(costs, "weights_16_bit.count", "13,476,831,232 bytes", "100 tokens", "2*6738415616 B") == [
        "right", "unreadable", "right"
    ]  # fmt: skip
    assert kinds(costs, "queries_flops.count", "3355443200 FLOPs", "3.36 GFLOPs", "3355443200 GB") == [
        "right", "right", "unreadable"
    ]  # fmt: skip
    assert kinds(count, "total.count", "6,738,415,616 parameters", "6.738415616e9", "6.74e9") == [
        "right", "right", "wrong"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind"),
    [("13.5 GB", "right"), ("13.48 GB", "right"), ("13.476831232 GB", "right"), ("13477 MB", "right"),
     ("13500 MB", "right"), ("12.6 GiB", "right"), ("12.55GiB", "right"), ("13.5e9", "wrong"), ("13.4 GB", "wrong"),
     ("13 GB", "wrong"), ("13.49 GB", "wrong"), ("12.5 GiB", "wrong"), ("13.5 Gb", "unreadable"),
     ("13,5 GB", "unreadable"), ("13.5 gb", "right"), ("13.5gb ", "right"), ("12.6 gib", "right"), ("13 gb", "wrong")],
)  # fmt: skip
def test_a_byte_count_may_be_rounded_to_what_is_written(library: Library, text: str, kind: str) -> None:
    assert mark_of(library.variant("costs-llama-7b"), "weights_16_bit.count", text).kind == kind


def test_a_prefix_that_is_also_a_symbol_is_not_guessed(library: Library) -> None:
    costs = library.variant("costs-llama-7b", "mistral-7b")
    assert mark_of(costs, "cache_16_bit.count", "4G").kind == "unreadable"
    assert mark_of(costs, "cache_16_bit.count", "4*G").kind == "wrong"
    assert mark_of(library.variant("llama-7b"), "input.columns", "4Ki").kind == "right"


def test_the_longest_input_is_read(library: Library) -> None:
    for model in ("llama-7b", "mistral-7b"):
        variant = library.variant("costs-llama-7b", model, MAX_TOKENS)
        assert grade(variant, {box: str(number) for box, number in variant.key.items()}).complete


@pytest.mark.parametrize("tokens", [100, 128])
def test_letters_are_read_by_meaning_whatever_the_number_of_tokens(library: Library, tokens: int) -> None:
    variant = library.variant("llama-7b~symbols", None, tokens)
    assert kinds(variant, "values.columns", "T", "d_h") == ["wrong", "right"]


@pytest.mark.parametrize(
    ("sheet", "box", "sizes"),
    [
        ("same-shapes-gpt2", "softmax_dim.count", (2, 3, 4)),
        ("same-shapes-gpt2", "softmax_dim_batched.count", (2, 3, 4, 5)),
        ("stored-of-a-model qwen3-0.6b", "q_dim.count", (2, 3)),
        ("stored-of-a-model", "o_dim.count", (2, 3)),
    ],
)
def test_a_dimension_is_read_as_torch_reads_it(library: Library, sheet: str, box: str, sizes: tuple[int, ...]) -> None:
    key, _space, model = sheet.partition(" ")
    variant, tensor = library.variant(key, model or None), torch.zeros(sizes)
    right = tensor.sum(dim=variant.key[box]).shape
    for dim in range(-len(sizes), len(sizes)):
        expected = "right" if tensor.sum(dim=dim).shape == right else "wrong"
        assert kinds(variant, box, str(dim), str(dim).replace("-", "\u2212")) == [expected] * 2, dim
    mark = mark_of(variant, box, str(-len(sizes) - 1))
    assert (mark.kind, "counted from 0" in mark.message) == ("unreadable", True)


@pytest.mark.parametrize(
    ("sheet", "box"),
    [("same-shapes-gpt2", "softmax_dim.count"), ("bug-layer", "repair.part1"), ("bug-layer", "repair.part2")],
)
def test_a_special_digit_is_unreadable_in_every_kind_of_box(library: Library, sheet: str, box: str) -> None:
    variant = library.variant(sheet)
    assert variant.read(variant.blanks_by_name[box], "½") == Unreadable("special-digit", "½")


def test_a_box_is_called_what_its_number_is(library: Library) -> None:
    for sheet, row, name in (
        ("same-shapes-gpt2", "softmax_dim", "dim"), ("same-shapes-gpt2", "viewed_head", "head"),
        ("stored-of-a-model", "k_start", "start"), ("costs-llama-7b", "keys_flops", "count"),
    ):  # fmt: skip
        variant = library.variant(sheet)
        assert variant.axis(variant.blanks_by_name[f"{row}.count"]) == name


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4096 (d)", 4096),
        ("4096(d)", 4096),
        ("32*128 (d)", 4096),
        ("32*128 = 4096 (d)", 4096),
        ("4,096\u200b (d)", 4096),
        ("2 (d)", 8192),  # another number is a factor
        ("32 (d_h)", 4096),
        ("d (H)", 4096 * 32),
    ],
)
def test_a_symbol_in_brackets_after_its_size_is_a_note(library: Library, text: str, number: int) -> None:
    assert mark_of(library.variant("llama-7b"), "input.columns", text).read_as == number


@pytest.mark.parametrize(
    ("worksheet", "box", "text"),
    [("llama-7b", "queries.columns", "128\u200e"), ("llama-7b~symbols", "queries.columns", "\u2066d_h\u2069")],
)
def test_what_cannot_be_seen_is_not_read(library: Library, worksheet: str, box: str, text: str) -> None:
    assert kinds(library.variant(worksheet), box, text, "\u200b") == ["right", "empty"]
