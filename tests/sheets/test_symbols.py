"""Answers in letters, marked by meaning; and sheets whose tokens are columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.algebra.expression import Expression
from app.algebra.parser import Unreadable
from app.figures.sheet_figures import draw_figures
from app.grading.explain import mistaken_expression
from app.grading.grade import grade
from app.misconceptions.predictions import expectations
from app.shapes.table import Blank, Count
from app.sheets import prose
from app.sheets.answers import Answer, answer_tokens, read_symbols
from app.sheets.notation import SheetSymbols
from app.sheets.variant import Variant
from app.topics.registry import possible_tokens
from app.topics.requirements import TopicError
from tests.helpers.processor_time import processor_time_s
from tests.helpers.shipped import FIRST_OF_TOPIC, IN_SYMBOLS, LIBRARY, MODELS, UNLIKE_MODELS

NAMES = {"T": "N", "d": "d", "h": "H", "d_h": "d_h"}
SIZES = {"N": 7, "d": 60, "H": 5, "d_h": 13}


def in_symbols(name: str) -> Variant:
    """A sheet in symbols by its worksheet, with a model after a space if it isn't the worksheet's."""
    key, _space, model = name.partition(" ")
    return LIBRARY.variant(f"{key}~symbols", model or None)


def mark(variant: Variant, blank: str, text: str) -> str:
    return grade(variant, {blank: text}).marks[Blank(*blank.split("."))].kind  # type: ignore[arg-type]


texts = st.recursive(
    st.sampled_from(sorted(NAMES)) | st.integers(1, 9).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "·", "×"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, st.sampled_from(sorted(NAMES))).map(lambda parts: f"({parts[0]} / {parts[1]})"),
    ),
    max_leaves=8,
)


@given(texts)
def test_letters_come_to_what_arithmetic_says(text: str) -> None:
    found = read_symbols(text, NAMES)
    numbers = {name: Fraction(SIZES[symbol]) for name, symbol in NAMES.items()}
    spelled = text.replace("×", "*").replace("·", "*")
    expected = eval(spelled, {"__builtins__": {}}, numbers)  # noqa: S307 - made of NAMES and digits above
    if isinstance(found, Expression):
        assert found.value(SIZES) == expected
    else:
        assert isinstance(found, Unreadable)
        assert not any(name in text for name in NAMES) or "-" in text or "/" in text


@given(st.text(max_size=120))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_symbols(text, NAMES) is None or isinstance(read_symbols(text, NAMES), Expression | Unreadable)


@pytest.mark.parametrize(
    "text",
    [
        "d/h",
        "d_h",
        "d / h",
        "2*d/(2*h)",
        "d_v",
        "dh",
        "d_{h}",
        "dₕ",
        "d_k",
        "d_head",
        "head_dim",
        "d/32",
        "4096/h",
        "D/H",
    ],
)
def test_what_the_model_makes_equal_is_equal(text: str) -> None:
    assert mark(LIBRARY.variant("llama-7b~symbols"), "queries.columns", text) == "right"


@pytest.mark.parametrize("text", ["h d_h", "hd_h", "h·d_h", "32 d_h", "32d_h", "d_model", "D", "(h)(d_h)", "h*d_h^1"])
def test_two_symbols_side_by_side_are_a_product(text: str) -> None:
    assert mark(LIBRARY.variant("llama-7b~symbols"), "input.columns", text) == "right"


@pytest.mark.parametrize("model", ["llama-7b", "gpt2-xl"])  # in GPT-2, d_ff is 4·d
def test_a_number_may_stand_for_either_of_two_widths(model: str) -> None:
    sheet = LIBRARY.variant("matrices-llama-7b~symbols", model)
    d, d_ff = sheet.sizes["d"], sheet.sizes["d_ff"]
    for text in ("d*d_ff", f"{d}*d_ff", f"d*{d_ff}"):
        assert (text, mark(sheet, "W_up.count", text)) == (text, "right")
    for text in (f"2*d*{d_ff // 2}", f"{d}*d", f"T*{d * d_ff // sheet.sizes['N']}"):
        assert (text, mark(sheet, "W_Q.count", text)) == (text, "wrong")


@pytest.mark.parametrize("text", ["4h", "d/64", "2*d/32", "32*T", "4096/d_h*4"])
def test_a_number_stands_only_for_the_size_that_it_is(text: str) -> None:
    assert mark(LIBRARY.variant("llama-7b~symbols"), "queries.columns", text) == "wrong"


@pytest.mark.parametrize(
    ("blank", "text"), [("queries.columns", "T"), ("scores.columns", "d_h"), ("input.columns", "h")]
)
def test_equal_numbers_from_other_letters_are_not_the_answer(blank: str, text: str) -> None:
    assert mark(LIBRARY.variant("llama-7b~symbols", None, 128), blank, text) == "wrong"


def test_a_stated_head_width_is_no_share_of_the_width() -> None:
    sheet = LIBRARY.variant("llama-7b~symbols", "qwen3-0.6b")
    assert (mark(sheet, "keys.columns", "d/h"), mark(sheet, "keys.columns", "d_h")) == ("wrong", "right")
    assert (mark(sheet, "keys.columns", "2*d_h"), mark(sheet, "keys.columns", "128*d_h/d_h")) == ("wrong", "unreadable")


def test_a_multiple_of_the_width_is_right_only_where_heads_share_it() -> None:
    for model in LIBRARY.models:
        if LIBRARY.refusal("layer-mistral-7b~symbols", model):
            continue
        variant = LIBRARY.variant("layer-mistral-7b~symbols", model)
        d, is_shared = variant.sizes["d"], variant.sizes["d"] == variant.sizes["H"] * variant.sizes["d_h"]
        for blank in ("queries.columns", "keys.columns"):
            ratio = Fraction(variant.key[blank], d)
            answer = f"{ratio.numerator}*{variant.notation.symbol('d')}/{ratio.denominator}"
            assert (model, mark(variant, blank, answer)) == (model, "right" if is_shared else "wrong")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("4096", "numbers"),
        ("q", "unknown-letter"),
        ("d/0", "division-by-zero"),
        ("d 2", "two-numbers"),
        ("d/2h", "divisor"),
        ("d^h", "exponent"),
        ("d½", "special-digit"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, reason: str) -> None:
    assert read_symbols(text, NAMES) == Unreadable(
        reason, {"unknown-letter": "q", "special-digit": "½"}.get(reason, "")
    )
    assert mark(LIBRARY.variant("llama-7b~symbols"), "input.rows", text) == "unreadable"


@pytest.mark.parametrize(
    "text", ["((d^99)^99)^99", "(d+h+T+1)^99", "9^99*d^50*9^99", "d" * 400, "(" * 400, "-" * 499, "d*" * 249 + "d"]
)
def test_powers_of_symbols_are_bounded(text: str) -> None:
    assert isinstance(read_symbols(text, NAMES), Unreadable)


@pytest.mark.parametrize(
    ("worksheet", "blank", "text", "kind"),
    [
        ("layer-mistral-7b", "keys.columns", "G*d/H", "right"),
        ("layer-mistral-7b", "keys.columns", "2G*d_h", "wrong"),  # twice G, and not two billion
        ("layer-mistral-7b", "queries.columns", "d", "right"),
        ("decode-gpt2 llama-3.2-1b", "scores.columns", "1+N", "right"),
        ("decode-gpt2 llama-3.2-1b", "scores.columns", "N", "wrong"),
        ("cross-bart-base t5-small", "scores.rows", "M", "right"),
        ("cross-bart-base t5-small", "scores.rows", "N", "wrong"),
        ("matrices-llama-7b mistral-7b", "W_K.count", "d*G*d_h", "right"),
        ("matrices-llama-7b mistral-7b", "W_Q.count", "d^2", "right"),
        ("matrices-llama-7b mistral-7b", "W_K.rows", "N", "wrong"),
        ("count-llama-7b mistral-7b", "attention.count", "2*d*d_h*(H+G)", "right"),
        (
            "count-llama-7b mistral-7b",
            "total.count",
            "2*V*d + d + L*(2*d^2 + 2*d*G*d_h + 3*d*d_ff + 2*d)",
            "right",
        ),
        (
            "count-llama-7b mistral-7b",
            "total.count",
            "V*d + d + L*(2*d^2 + 2*d*G*d_h + 3*d*d_ff + 2*d)",
            "wrong",
        ),
        ("costs-llama-7b mistral-7b", "queries_flops.count", "2*N*d^2", "right"),
        ("costs-llama-7b mistral-7b", "scores_flops.count", "2*N²*d", "right"),
        ("costs-llama-7b mistral-7b", "scores_flops.count", "2*N*d^2", "wrong"),
        ("costs-llama-7b mistral-7b", "cache_16_bit.count", "2*2*L*N*G*d_h", "right"),
        ("softmax-of-a-model llama-3.2-1b", "masked.count", "N(N-1)/2", "right"),
        ("softmax-of-a-model llama-3.2-1b", "masked.count", "N^2/2", "wrong"),
        ("softmax-of-a-model llama-3.2-1b", "all_weights.count", "N*(N + 1)/2", "right"),
        ("three-dimensions-llama-7b mistral-7b", "repeated_keys.dim0", "H", "right"),
        ("three-dimensions-llama-7b mistral-7b", "repeated_keys.dim0", "G", "wrong"),
        ("four-dimensions-gpt2", "joined_context.dim2", "h*d_h", "right"),
        ("four-dimensions-gpt2", "scores.dim1", "T", "wrong"),
        ("walk-llama-3.2-1b", "angles.columns", "d_h/2", "right"),  # all of a head is rotated
        ("rotary-mistral-7b pythia-160m", "angles.columns", "d_h/2", "wrong"),  # a quarter of it
        ("rotary-mistral-7b pythia-160m", "partner.count", "2 + d_rot/2", "right"),
        ("rotary-mistral-7b pythia-160m", "layer_rotated.count", "2*N*H*d_rot", "right"),
        ("head-parameters-gpt2 mistral-7b", "rank_W_VO.count", "d/H", "right"),
        ("width-llama-7b llama-3.2-3b", "multiples.count", "8d/(3m)", "right"),
        ("width-llama-7b llama-3.2-3b", "width.count", "d_ff", "unreadable"),
        (
            "width-llama-7b llama-3.2-3b",
            "gated_parameters.count",
            "8*d^2",
            "right",
        ),  # as many as without a gate
        ("experts-mixtral-8x7b", "expert_input.rows", "k/E*N", "right"),
        ("experts-mixtral-8x7b", "total.count", "rest + 3*L*E*d*d_ff", "right"),
        ("experts-mixtral-8x7b", "total.count", "E*(rest + 3*L*d*d_exp)", "wrong"),
        ("growth-llama-7b llama-3.2-1b", "crossing.count", "d*(H + G)/H", "right"),
        ("growth-llama-7b llama-3.2-1b", "crossing.count", "2d", "wrong"),
        ("latent-deepseek-v2-lite", "cache.columns", "r_kv + d_rope", "right"),
        ("latent-deepseek-v2-lite", "keys.columns", "H*(d_nope + d_rope)", "right"),
        ("latent-deepseek-v2-lite", "keys.columns", "2*d*d_h/d_nope", "wrong"),
    ],
)
def test_whole_layers_and_counts_are_marked_by_meaning(worksheet: str, blank: str, text: str, kind: str) -> None:
    assert mark(in_symbols(worksheet), blank, text) == kind


@pytest.mark.parametrize(
    ("worksheet", "typed", "misconception"),
    [
        ("layer-mistral-7b", {"keys.columns": "H*d_h", "values.columns": "H*d_h"}, "one-kv-per-query-head"),
        (
            "decode-gpt2 llama-3.2-1b",
            dict.fromkeys(("scores.rows", "scores.columns", "weights.rows", "weights.columns"), "N"),
            "decode-step-square",
        ),
        ("costs-llama-7b mistral-7b", {"scores_flops.count": "2*N*N*d_h", "context_flops.count": "2*N*N*d_h"},
         "one-head-for-layer"),
        ("matrices-llama-7b mistral-7b", {"W_O.rows": "G*d_h", "W_O.count": "G*d_h*d"}, "shrunken-output-projection"),
        ("layer-mistral-7b", {"context.columns": "8*d_h"}, "shrunken-output-projection"),
        (
            "matrices-llama-7b mistral-7b",
            dict.fromkeys(("W_gate.columns", "W_up.columns", "W_down.rows"), "4d")
            | dict.fromkeys(("W_gate.count", "W_up.count", "W_down.count"), "4d^2"),
            "feed-forward-four-d",
        ),
        ("costs-llama-7b mistral-7b", {"feed_forward_flops.count": "24*N*d^2"}, "feed-forward-four-d"),
        ("softmax-of-a-model llama-3.2-1b", {"under_root.count": "d"}, "scale-by-model-width"),
        ("three-dimensions-llama-7b mistral-7b", {"joined_context.columns": "h_kv*d_h"}, "shrunken-output-projection"),
        ("rotary-mistral-7b pythia-160m", {"angles.columns": "d_rot", "layer_angles.count": "N*d_rot"},
         "angle-per-dimension"),
        ("latent-deepseek-v2-lite", {"cache.columns": "H*d_h + H*d_v"}, "latent-cache-of-full-keys"),
        ("experts-mixtral-8x7b",
         {"block_active.count": "d*E + 3*E*d*d_exp", "used.count": "rest + 3*L*E*d*d_exp"}, "all-experts-active"),
    ],
)  # fmt: skip
def test_a_misconception_in_letters_is_named(worksheet: str, typed: dict[str, str], misconception: str) -> None:
    variant = in_symbols(worksheet)
    right = {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}
    report = grade(variant, {**right, **typed})
    assert report.diagnosis is not None
    assert report.diagnosis.key == misconception


def test_what_a_sheet_asks_for_is_no_symbol_to_answer_with() -> None:
    worksheet, tried = LIBRARY.worksheet("width-llama-7b~symbols"), 0
    for model in MODELS:
        if LIBRARY.refusal(worksheet.key, model) is None:
            variant, tried = LIBRARY.variant(worksheet.key, model), tried + 1
            assert "d_ff" not in variant.symbols.in_order
            assert "d_ff" not in prose.task(variant)
            for text in ("d_ff", "3*d_model*d_ff", "d_ff/m"):
                marks = grade(variant, {str(blank): text for blank in variant.blanks}).marks.values()
                assert {mark.kind for mark in marks} == {"unreadable"}, (model, text)
    assert tried


def test_whatever_a_misconception_writes_in_symbols_is_named() -> None:
    tried = untold = 0
    for variant in map(LIBRARY.variant, IN_SYMBOLS):
        right = {blank: variant.expression(blank) for blank in variant.blanks}
        held = expectations(variant.problem)
        for expected in held:
            wrong = {blank: mistaken_expression(variant, expected, blank) for blank in expected.wrong_answers}
            tried, untold = tried + 1, untold + (None in wrong.values())
            if None not in wrong.values():
                texts = {str(b): variant.notation.write(wrong.get(b) or meaning) for b, meaning in right.items()}
                found = grade(variant, texts).diagnosis
                alike = [e for e in held if e.wrong_answers == expected.wrong_answers]
                if len({e.misconception for e in alike}) > 1:  # nobody can tell them apart, so none of them is named
                    assert found is None
                    continue
                assert found, (variant.worksheet.key, expected.misconception)
                assert expected.misconception in (found.key, *found.also), variant.worksheet.key
    assert (tried > 250, untold < 0.15 * tried) == (True, True)


def test_a_number_alone_is_asked_back_and_no_misconception() -> None:
    report = grade(in_symbols("matrices-llama-7b mistral-7b"), {"W_up.columns": "16384", "W_O.rows": "1,024"})
    assert {mark.kind for mark in report.marks.values()} == {"unreadable", "empty"}
    assert report.diagnosis is None


def test_what_is_rounded_in_a_model_is_not_asked_in_letters() -> None:
    refused = {key: bool(LIBRARY.refusal("width-llama-7b~symbols", key)) for key in LIBRARY.models}
    assert (refused["llama-7b"], refused["llama-3-8b"], refused["smollm2-135m"]) == (True, True, False)


@pytest.mark.parametrize("key", IN_SYMBOLS)
def test_an_answer_with_numbers_in_place_of_sizes_means_what_the_definition_says(key: str) -> None:
    variant = LIBRARY.variant(key)
    symbols, sizes = variant.symbols, variant.problem.sizes
    lengths = sorted({side for entry in variant.table.tensors for side in entry.shape}, key=str)
    for length in lengths:
        for count in (1, 2):
            for chosen in combinations(sorted(length.symbols), count):
                typed = length.substitute({name: Expression.number(sizes[name]) for name in chosen})
                for other in lengths:
                    value = typed.value(sizes)
                    if typed.symbols and value == other.value(sizes):
                        assert symbols.are_equal(typed, other) == _means_by_definition(symbols, typed, other)


def _means_by_definition(symbols: SheetSymbols, typed: Expression, length: Expression) -> bool:
    if symbols.canonical(typed) == symbols.canonical(length):
        return True
    sizes, symbol = symbols.problem.sizes, Expression.symbol
    is_split = sizes["d"] == sizes["H"] * sizes["d_h"]
    for by_head in (True, False):
        first, second = symbols.canonical(typed), symbols.canonical(length)
        if not by_head and is_split:
            by_width = {"d_h": symbol("d") / symbol("H")}
            first, second = first.substitute(by_width), second.substitute(by_width)
        constants = sorted((first.symbols | second.symbols) - {"N", "M"})
        for count in range(1, len(constants) + 1):
            for chosen in combinations(constants, count):
                numbers = {name: Expression.number(sizes[name]) for name in chosen}
                left = first.substitute(numbers)
                if left.symbols and left == second.substitute(numbers):
                    return True
    return False


@pytest.mark.parametrize("key", IN_SYMBOLS)
def test_no_answer_takes_long_to_compare(key: str) -> None:
    variant = LIBRARY.variant(key)
    names = [name for name in variant.symbols.written if name not in ("T", "S", "N", "M")]
    sizes = {name: variant.problem.sizes[variant.symbols.by_name[name]] for name in names}
    zero = "*".join(f"({name} - {sizes[name]})" for name in names[:5])
    of_all = "+".join((*names, "*".join(names)))
    right = {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}
    padded = ({blank: f"{text} + {each}" for blank, text in right.items()} for each in (zero, f"{zero}*H^9"))
    for answers in (*padded, dict.fromkeys(right, of_all)):
        typed = {blank: variant.read(blank, answers[str(blank)]) for blank in variant.blanks}
        lengths = {blank: length for blank, length in typed.items() if isinstance(length, Answer)}
        assert len(lengths) > len(right) / 2
        assert processor_time_s(partial(grade, variant, answers)) < 0.3
        assert processor_time_s(partial(draw_figures, variant, lengths)) < 0.3


@pytest.mark.parametrize("text", ["T" * 1999, "d_" * 999, "Td" * 999 + "q", "h" * 1998 + "(", "d_h" * 600])
def test_a_long_word_takes_no_time(text: str) -> None:
    assert processor_time_s(lambda: [read_symbols(text, NAMES) for _ in range(20)]) < 0.5


def test_letters_are_cut_into_the_longest_names_that_leave_names() -> None:
    assert answer_tokens("abcab", {"a", "ab", "bc", "c"}) == ["ab", "c", "ab"]
    assert answer_tokens("abc", {"a", "ab", "bc"}) == ["a", "bc"]
    assert answer_tokens("hd_hT", NAMES) == ["h", "d_h", "T"]


FREE = ("N", "M", "W", "i", "B")


def sheets_in_symbols() -> Iterator[Variant]:
    """Every topic with all its rows, of every kind of model that it can be asked of in symbols."""
    for topic, key in product(FIRST_OF_TOPIC, dict.fromkeys((*UNLIKE_MODELS, "mistral-7b"))):
        model = LIBRARY.models[key]
        # 5000 tokens do not fit into the sliding window of Mistral 7B.
        tokens = possible_tokens(topic, model.architecture, 5000 if key == "mistral-7b" else 96)
        with suppress(TopicError):
            sheet = replace(FIRST_OF_TOPIC[topic], model=key, tokens=tokens, answers="letters")
            table = Variant(sheet, model, tokens, LIBRARY.wording).table
            rows = tuple(
                row for row, entry in table.askable.items() if not isinstance(entry, Count) or not entry.rounds
            )
            yield Variant(replace(sheet, rows=rows), model, tokens, LIBRARY.wording)


def test_free_sizes_never_coincide_on_a_sheet_in_symbols() -> None:
    seen = set[str]()
    for variant in sheets_in_symbols():
        sizes, canonical = variant.problem_for_marking.sizes, variant.symbols.canonical
        free = [symbol for symbol in FREE if symbol in sizes]
        assert len({sizes[symbol] for symbol in free}) == len(free)
        assert not {sizes[symbol] for symbol in free} & {size for symbol, size in sizes.items() if symbol not in free}
        meanings = dict[int, list[Expression]]()
        for blank, number in variant.problem_for_marking.answers.items():
            seen |= (size := variant.problem.table.askable[blank.tensor].expression(blank.field)).symbols & set(free)
            meanings.setdefault(number, []).append(canonical(size))
        for alike in meanings.values():
            with_free = [meaning for meaning in alike if not meaning.symbols.isdisjoint(free)]
            assert not with_free or len(set(alike)) == 1, (variant.worksheet.topic, variant.model.key, alike)
    assert seen == set(FREE)


def test_the_width_of_a_window_is_no_embedding_dimension() -> None:
    model = LIBRARY.models["mistral-7b"]
    sheet = replace(FIRST_OF_TOPIC["decode-step"], model=model.key, tokens=5000, answers="letters")
    variant = Variant(sheet, model, 5000, LIBRARY.wording)
    assert variant.sizes["W"] == variant.sizes["d"]
    blank = Blank("keys", "rows")
    report = grade(variant, {str(blank): variant.notation.symbol("d")})
    assert report.marks[blank].kind == "wrong"
    assert variant.problem_for_marking.answers[blank] != variant.problem_for_marking.sizes["d"]
