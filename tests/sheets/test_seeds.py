"""Seeds and codes: the same seed draws the same sheet, no misconception hides that need not, and a code opens its
sheet.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.architecture import TokensError
from app.models.read_config import read_config
from app.sheets.codes import CODE_LETTERS, read_code
from app.sheets.library import Library
from app.sheets.seeds import MAX_SHEET_SEED, SeedError, confusable_misconceptions
from app.sheets.worksheet import Model, WorksheetError
from app.web.api import variant_json
from simulation.misconception_students import misconception_sheets, right_sheet
from tests.helpers.own_sheets import with_own_worksheet
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

SHEETS = sorted(LIBRARY.worksheets)
SEEDS = st.integers(0, MAX_SHEET_SEED)


def test_a_seed_draws_what_it_drew_when_it_was_first_printed() -> None:
    drawn = [LIBRARY.seeded("llama-7b", seed) for seed in range(4)]
    assert [(sheet.tokens, sheet.code) for sheet in drawn] == [
        (145, "BHR-KQ-RM"),
        (171, "BHR-MB-HJ"),
        (66, "BHR-FM-MW"),
        (77, "BHR-GC-JZ"),
    ]


@pytest.mark.slow
@given(st.sampled_from(SHEETS), SEEDS)
def test_the_same_seed_draws_the_same_sheet_in_another_library(sheet: str, seed: int) -> None:
    again = Library(LIBRARY.worksheets, LIBRARY.models, LIBRARY.wording)
    assert variant_json(again.seeded(sheet, seed)) == variant_json(LIBRARY.seeded(sheet, seed))


@given(st.sampled_from(SHEETS), SEEDS)
def test_on_a_drawn_sheet_no_two_misconceptions_write_the_same(sheet: str, seed: int) -> None:
    variant = LIBRARY.seeded(sheet, seed)
    unavoidable = {frozenset(pair) for pair in LIBRARY.unavoidable_confusions(sheet, variant.model.key)}
    filled = misconception_sheets(variant)
    for (one, first), (other, second) in combinations(filled, 2):
        assert first != second or one == other or {one, other} in unavoidable
    assert all(boxes != right_sheet(variant) for _, boxes in filled)


@pytest.mark.parametrize("sheet", one_in(8, SHEETS))
def test_numbers_that_hide_are_never_drawn(sheet: str) -> None:
    drawn = [LIBRARY.seeded(sheet, seed) for seed in range(200)]
    for model in {variant.model.key for variant in drawn}:
        hidden = [confusable_misconceptions(variant) for variant in drawn if variant.model.key == model]
        assert len(set(hidden)) == 1
    if "scores" in LIBRARY.worksheets[sheet].rows and str(drawn[0].table["scores"].columns) == "N":
        assert all(variant.tokens != variant.architecture.d_h for variant in drawn)


@pytest.mark.parametrize(("positions", "sheet"), [(1, "llama-7b"), (2, "decode-gpt2")])
def test_a_seed_draws_the_only_length_that_a_model_can_take(positions: int, sheet: str) -> None:
    config = (
        '{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100, '
        f'"n_positions": {positions}}}'
    )
    model = Model(f"of-{positions}", "Short", "", "", read_config(config), config)
    library = LIBRARY.with_added(models=[model])
    assert library.seeded(sheet, 1, model.key).tokens == 1
    assert library.max_versions(sheet, model.key) == 1


def test_seeds_draw_every_model_that_the_worksheet_lists() -> None:
    listed = LIBRARY.worksheets["softmax-of-a-model"].models
    assert {LIBRARY.seeded("softmax-of-a-model", seed).model.key for seed in range(60)} == set(listed)
    assert {LIBRARY.seeded("softmax-of-a-model", seed, "bert-base").model.key for seed in range(9)} == {"bert-base"}


def test_where_tokens_show_nowhere_a_seed_leaves_them_alone() -> None:
    drawn = {LIBRARY.seeded("matrices-llama-7b", seed, "gpt2").code for seed in range(9)}
    assert drawn == {LIBRARY.variant("matrices-llama-7b", "gpt2").code}


@pytest.mark.parametrize("seed", [-1, MAX_SHEET_SEED + 1])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(SeedError, match="from 0 to 9,223,372,036,854,775,807"):
        LIBRARY.seeded("llama-7b", seed)


@given(st.sampled_from(SHEETS), SEEDS)
def test_a_code_opens_exactly_its_sheet(sheet: str, seed: int) -> None:
    variant = LIBRARY.seeded(sheet, seed)
    for text in (variant.code, variant.code.lower(), variant.code.replace("-", ""), variant.code.replace("-", " ")):
        assert LIBRARY.variant_from_code(text) == variant


@given(st.sampled_from(SHEETS), st.integers(1, 512), st.sampled_from(sorted(LIBRARY.models)))
def test_any_sheet_has_a_code_not_only_a_drawn_one(sheet: str, tokens: int, model: str) -> None:
    try:
        variant = LIBRARY.variant(sheet, model, tokens)
    except ValueError:
        return
    assert LIBRARY.variant_from_code(variant.code) == variant


def test_almost_no_mistyped_code_opens_another_sheet() -> None:
    code = LIBRARY.seeded("llama-7b", 7).code
    letters = [at for at, letter in enumerate(code) if letter != "-"]
    near = [code[:at] + other + code[at + 1 :] for at in letters for other in CODE_LETTERS if other != code[at]]
    assert sum(_opens(text) for text in near) < len(near) / 100


def test_a_code_of_a_worksheet_that_asks_other_things_now_is_refused() -> None:
    code = LIBRARY.seeded("llama-7b", 7).code
    sheet = LIBRARY.worksheets["llama-7b"]
    shorter = replace(sheet, rows=sheet.rows[:-1])
    changed = replace(LIBRARY, worksheets={**LIBRARY.worksheets, sheet.key: shorter})
    with pytest.raises(WorksheetError, match="check it for a typo"):
        changed.variant_from_code(code)


@given(st.text(max_size=80))
def test_any_text_is_a_code_or_is_refused_in_words(text: str) -> None:
    if read_code(text) is None:
        with pytest.raises(WorksheetError, match=r"letters such as [A-Z]{3}-[A-Z]{2}-[A-Z]{2}\."):
            LIBRARY.variant_from_code(text)


def _opens(text: str) -> bool:
    try:
        return bool(LIBRARY.variant_from_code(text))
    except WorksheetError:
        return False


@given(SEEDS, st.integers(30, 60))
def test_a_seed_stays_within_the_worksheets_range(seed: int, first: int) -> None:
    library = with_own_worksheet(LIBRARY, tokens_from=first, tokens_to=first + 3, models=["gpt2", "llama-7b"])
    assert first <= library.seeded("mine", seed).tokens <= first + 3
    assert library.max_versions("mine") == 8


def test_a_model_too_short_for_the_range_is_refused() -> None:
    library = with_own_worksheet(LIBRARY, tokens_from=2000, tokens_to=3000)
    assert 2000 <= library.seeded("mine", 1).tokens <= 3000
    with pytest.raises(TokensError, match="1,024"):
        library.seeded("mine", 1, "gpt2")
