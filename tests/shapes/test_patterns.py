"""Patterns as typed, against torch.einsum and einops: what is right computes the same, and nothing else is right."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pytest
import torch
from einops import EinopsError, einsum, rearrange, repeat

from app.algebra.parser import CannotReadError
from app.shapes.patterns import MAX_PATTERN_CHARACTERS, read_pattern

Numbers = torch.Tensor
SCORES, SPLIT, REPEATED = "b h q e, b h k e -> b h q k", "b n (h e) -> b h n e", "b g n e -> b (g r) n e"
# A spelling is read by both libraries, only by torch ("t") or only by einops ("e").
SPELLINGS = (
    (SCORES, "te"),
    ("bhqd,bhkd->bhqk", "t"),
    ("  BHIX , BHJX → BHIJ ", "t"),
    ("b h q d,bhkd->bhqk", "t"),
    ("b h q d, b h k d -> bhqk", "t"),
    ("... q e, ... k e -> ... q k", "te"),
    ("...qe,...ke->...qk", "t"),
    ("b ... q e, b ... k e -> b ... q k", "te"),
    ("batch head query dim, batch head key dim -> batch head query key", "e"),
    ("b head q_1 e, b head q_2 e -> b head q_1 q_2", "e"),
)


def small(*sizes: int) -> Numbers:
    generator = torch.Generator().manual_seed(sum(sizes))
    return torch.randint(-4, 5, sizes, generator=generator).double()


def is_read(pattern: str, ranks: tuple[int, ...], *, takes_groups: bool = False) -> bool:
    try:
        read_pattern(pattern, ranks, takes_groups=takes_groups)
    except CannotReadError:
        return False
    return True


@pytest.mark.parametrize(("spelling", "libraries"), SPELLINGS)
def test_every_accepted_spelling_computes_the_same(spelling: str, libraries: str) -> None:
    queries, keys = small(2, 3, 4, 5), small(2, 3, 4, 5) + 1
    expected = queries @ keys.mT
    assert read_pattern(spelling, (4, 4)) == read_pattern(SCORES, (4, 4))
    plain = spelling.replace("→", "->").strip()
    if "t" in libraries:
        assert torch.equal(torch.einsum(plain, queries, keys), expected)
    if "e" in libraries:
        assert torch.equal(einsum(queries, keys, plain), expected)


def random_patterns(chance: random.Random, letters: str, count: int) -> Iterator[str]:
    """Yield patterns of two operands with four sides each, and any result."""
    for _ in range(count):
        left, right = ("".join(chance.choices(letters, k=4)) for _ in range(2))
        result = chance.sample(sorted({*left, *right}), k=min(len({*left, *right}), chance.choice((2, 4, 4, 4, 5))))
        yield f"{left},{right}->{''.join(result)}"


def test_a_random_pattern_is_right_if_and_only_if_torch_computes_the_same() -> None:
    left, right = small(3, 3, 3, 3), small(3, 3, 3, 3).flip(0) + 1
    accepted = 0
    near = ["".join(each) for each in (("bhqe", ",bhke->bhqk"), ("bhqe", ",bhke->bhkq"), ("xyzt", ",xywt->xyzw"))]
    for right_one in (SCORES, "b h q k, b h k e -> b h q e"):
        expected, key = torch.einsum(right_one, left, right), read_pattern(right_one, (4, 4))
        for pattern in (*near, *random_patterns(random.Random(7), "bhqke", 600)):  # noqa: S311 - no secret
            computed = torch.einsum(pattern, left, right)
            is_same = computed.shape == expected.shape and torch.equal(computed, expected)
            assert (read_pattern(pattern, (4, 4)) == key) is is_same, pattern
            accepted += is_same
    assert accepted


def test_random_rearrangements_are_right_if_and_only_if_einops_computes_the_same() -> None:
    features, chance = small(2, 3, 20), random.Random(3)  # noqa: S311 - no secret
    expected, key = rearrange(features, SPLIT, h=4), read_pattern(SPLIT, (3,), takes_groups=True)
    accepted = 0
    for _ in range(300):
        names = chance.sample("bnhexy", k=4)
        pattern = f"{names[0]} {names[1]} ({names[2]} {names[3]}) -> {' '.join(chance.sample(names, k=4))}"
        is_same = any(
            (made := rearrange(features, pattern, **{axis: length})).shape == expected.shape
            and torch.equal(made, expected)
            for axis, length in ((names[2], 4), (names[2], 5))
        )
        assert (read_pattern(pattern, (3,), takes_groups=True) == key) is is_same, pattern
        accepted += is_same
    assert accepted
    heads = small(2, 3, 4, 5)
    again = read_pattern(REPEATED, (4,), takes_groups=True)
    for pattern, is_right in ((REPEATED, True), ("b g n e -> b (r g) n e", False), ("x y z w -> x (y k) z w", True)):
        new = (set(re.findall("[a-z]", pattern.partition("->")[2])) - set(pattern.partition("->")[0])).pop()
        made = repeat(heads, pattern, **{new: 2})
        assert torch.equal(made, heads.repeat_interleave(2, dim=1)) is is_right
        assert (read_pattern(pattern, (4,), takes_groups=True) == again) is is_right


def test_axes_that_are_never_apart_count_as_one() -> None:
    features = small(2, 3, 24)
    finer = "b n (h e f) -> b h n (e f)"
    assert torch.equal(rearrange(features, finer, h=4, e=2), rearrange(features, SPLIT, h=4))
    read = [read_pattern(each, (3,), takes_groups=True) for each in (SPLIT, finer, "b n (h e f) -> b h n (f e)")]
    assert read[0] == read[1] != read[2]


def test_a_1_in_brackets_is_no_axis() -> None:
    features = small(2, 3, 20)
    in_brackets = "b n (h 1 e) -> b (1 h) n e"
    assert torch.equal(rearrange(features, in_brackets, h=4), rearrange(features, SPLIT, h=4))
    assert read_pattern(in_brackets, (3,), takes_groups=True) == read_pattern(SPLIT, (3,), takes_groups=True)
    alone, plain = "b n d -> b n (1) d", "b n d -> b n 1 d"
    assert torch.equal(rearrange(features, alone), rearrange(features, plain))
    assert read_pattern(alone, (3,), takes_groups=True) == read_pattern(plain, (3,), takes_groups=True)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("b h q k", "pattern-arrow"),
        ("bhqd,bhkd->bhqk->bh", "pattern-arrow"),
        ("b,h,q,d , b,h,k,d -> b,h,q,k", "pattern-operands"),
        ("bhqd->bhqk", "pattern-operands"),
        ("bhqd,bhkd->bh,qk", "pattern-operands"),
        ("bhq(d,bhkd->bhqk", "pattern-brackets"),
        ("bhqd,bhk()->bhqk", "pattern-brackets"),
        ("bhq((d e)),bhkd->bhqk", "pattern-brackets"),
        ("b h q (d e), b h k (d e) -> b h q k", "pattern-groups"),
        ("b h q 1, b h k 1 -> b h q k", "pattern-groups"),
        ("b h q d * b h k d -> b h q k", "pattern-operands"),
        ("b h q d, b h k 64 -> b h q k", "pattern-sign"),
        ("b h q d, b h k ... ... -> b h q k", "pattern-sign"),
        ("βhqd,βhkd->βhqk", "pattern-sign"),
        ("__import__('os'), b -> b", "pattern-sign"),
        ("a" * (MAX_PATTERN_CHARACTERS + 1), "pattern-too-long"),
    ],
)
def test_what_is_no_pattern_has_a_reason(typed: str, reason: str) -> None:
    with pytest.raises(CannotReadError) as raised:
        read_pattern(typed, (4, 4))
    assert raised.value.unreadable.reason == reason


@pytest.mark.parametrize(
    ("typed", "rank"), [("bn(he)->bhne", 3), ("b n (he) -> b h n e", 3), ("bhne->bn(he)", 4), ("bgne->b(gr)ne", 4)]
)
def test_letters_that_einops_takes_for_one_name_are_not_wrong(typed: str, rank: int) -> None:
    with pytest.raises(CannotReadError) as raised:
        read_pattern(typed, (rank,), takes_groups=True)
    assert raised.value.unreadable.reason == "pattern-spaces"
    with pytest.raises(EinopsError):
        repeat(small(2, 3, 4, 5)[..., 0] if rank == 3 else small(2, 3, 4, 5), typed, r=2, h=2)


def test_hostile_texts_take_a_few_milliseconds() -> None:
    texts = [
        piece * 300 for piece in ("(", ")", "a(", "a b ", "(a b)", "... ", "->", ",", "é", "\u0301", "１", "𝔞", "a_")
    ]
    began = time.process_time()
    for text in [cut for each in texts for cut in (each, each[:190], f"{each[:90]},{each[:90]}->a")] * 100:
        is_read(text, (4, 4))
        is_read(text, (4,), takes_groups=True)
    assert (time.process_time() - began) / (len(texts) * 3 * 100 * 2) < 0.005
