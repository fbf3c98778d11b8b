"""The catalogue, and the diagnosis of whole sheets filled in as it predicts, alone, with slips and two at once."""

from __future__ import annotations

import random
import re
import shutil
from contextlib import suppress
from itertools import combinations, product
from pathlib import Path

import pytest

from app.grading.causes import worked_out
from app.grading.grade import grade
from app.misconceptions.catalogue import FOLDER, MISCONCEPTIONS, CatalogueError, read_catalogue
from app.misconceptions.diagnosis import Diagnosis, diagnose
from app.misconceptions.predictions import cannot_tell_apart, expectations, wrong_expression
from app.models.architecture import TokensError
from app.models.read_config import build_architecture
from app.shapes.table import MATRIX_FIELDS, Blank
from app.sheets import prose
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.topics.find_the_bug import BugTable, misconception_of
from app.topics.problem import problem_for
from app.topics.registry import TOPICS, possible_tokens, topic_for
from app.topics.requirements import TopicError
from simulation.misconception_students import FilledSheet, misconception_sheets, right_sheet, typed_boxes, with_slip
from simulation.simulated_sheets import SimulatedSheet
from tests.helpers.answer_keys import LLAMA
from tests.helpers.families_cases import CASES, Case
from tests.helpers.shipped import FIRST_OF_TOPIC, LIBRARY, MODELS
from tests.helpers.slow import one_in

# In numbers; letters are in tests/sheets/test_symbols.py.
SHEETS = [v for v in map(LIBRARY.variant, LIBRARY.worksheets) if v.worksheet.answers == "numbers"]
ON_EACH_SHEET = pytest.mark.parametrize("sheet", one_in(8, SHEETS), ids=lambda sheet: sheet.worksheet.key)
SEEDS = 200


def diagnosed(variant: Variant, boxes: FilledSheet) -> Diagnosis | None:
    values = {blank: boxes[box] for box, blank in variant.blanks_by_name.items() if box in boxes}
    return diagnose(variant.problem, values, worked_out(variant.problem, values))


def hidden(variant: Variant) -> set[str]:
    """Every misconception that the sheet says it cannot tell from another, or from the truth."""
    return {key for pair in cannot_tell_apart(variant.problem) for key in pair if key}


def told_apart(variant: Variant) -> list[tuple[str, FilledSheet]]:
    return SimulatedSheet(variant).distinguishable


def test_a_key_stands_for_one_misconception() -> None:
    assert len({misconception.key for misconception in MISCONCEPTIONS}) == len(MISCONCEPTIONS)
    assert all(misconception.topics for misconception in MISCONCEPTIONS)
    assert all(set(misconception.topics) <= set(TOPICS) for misconception in MISCONCEPTIONS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the catalogue's files, to change."""
    shutil.copytree(FOLDER, tmp_path / "en")
    return tmp_path / "en"


TYPOS = [
    ("mask", "[mask-forgotten]", "[mask-forgotten", "", ""),  # no TOML
    ("mask", 'hint = "Take the first query.', 'hnt = "Take the first query.', "mask-forgotten", "hint"),
    ("mask", 'name = "Mask forgotten"', 'name = ""', "mask-forgotten", "name"),
    ("mask", 'name = "Mask forgotten"', 'name = "Mask"\nwhere = "?"', "mask-forgotten", "where"),
    ("mask", "number = 58", 'number = "58"', "mask-forgotten", "number"),
    ("mask", "number = 58", "number = 60", "diagonal-masked", "mask-forgotten"),
    ("scores", "softmax-collapses", "mask-forgotten", "mask-forgotten", "mask-forgotten"),
    ("mask", 'when = "!causal"', 'when = "!casual"', "causal-mask-everywhere", "casual"),
    ("mask", 'masked = "8"', 'masced = "8"', "half-of-all-masked", "masced"),
    ("mask", 'masked = "8"', '"masked.counts" = "8"', "half-of-all-masked", "masked.counts"),
    ("mask", 'masked = "8"', 'masked = "8, 8"', "half-of-all-masked", "masked"),
    ("mask", 'masked = "8"', 'masked = ["8", 9]', "half-of-all-masked", "masked"),
    ("mask", 'masked = ["0", "right", "right", "0"]', 'masked = ["0", "right"]', "mask-forgotten", "lists"),
    ("scores", 'under_root = "d"', 'under_root = "D"', "scale-by-model-width", "D"),
    ("scores", 'under_root = "d"', 'under_root = "params"', "scale-by-model-width", "params"),  # of another topic
    ("scores", 'key-side = "M"', 'keys-side = "M"', "texts-mixed-up", "keys-side"),
    ("scores", 'mask = ["right", "d_h, d_h"]', 'mask = ["right", "d_h"]', "transposed-product", "mask"),
    ("scores", "symbols = { N =", "symbols = { N_q =", "texts-mixed-up", "N_q"),
    ("scores", 'symbols = { N = "M"', 'symbols = { N = "S"', "texts-mixed-up", "S"),
    ("tokens", 'transposed = "keys"', 'transposed = "key"', "keys-already-transposed", "key"),
    ("costs", '"growth model-costs"', '"growths model-costs"', "decoding-costs-a-prefill", "growths"),
]  # fmt: skip


@pytest.mark.parametrize(("group", "right", "typo", "key", "named"), TYPOS)
def test_a_typo_is_an_error_with_its_file_and_line(
    folder: Path, group: str, right: str, typo: str, key: str, named: str
) -> None:
    path = folder / "misconceptions" / f"{group}.toml"
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, typo), encoding="utf-8")
    with pytest.raises(CatalogueError) as refused:
        read_catalogue(folder)
    line = text[: text.index(right)].count("\n") + 1
    said = str(refused.value)
    assert str(path) in said
    assert key in said
    assert named in said
    if key and named in typo:
        assert f", line {line + typo[: typo.index(named)].count(chr(10))}: " in said


@pytest.mark.parametrize(("right", "typo"), [("scores.rows", "score.rows"), ("first-steps", "first-step")])
def test_a_typo_in_a_set_is_an_error(folder: Path, right: str, typo: str) -> None:
    path = folder / "misconceptions.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(right, typo, 1), encoding="utf-8")
    with pytest.raises(CatalogueError, match=rf"misconceptions.toml, line \d+: .*“{typo}”"):
        read_catalogue(folder)


@pytest.mark.parametrize("formula", ["H*", "2d", "floor(d", "round(d)", "1.5*d", "d/(d + 1)", "d/0", ""])
def test_a_formula_that_cannot_be_read_is_an_error(folder: Path, formula: str) -> None:
    path = folder / "misconceptions" / "scores.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('under_root = "d"', f'under_root = "{formula}"'), encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"scores.toml, line \d+: scale-by-model-width: "):
        read_catalogue(folder)


def test_where_an_entry_is_decides_nothing(folder: Path) -> None:
    (folder / "misconceptions" / "mask.toml").rename(folder / "misconceptions" / "a.toml")
    assert read_catalogue(folder) == MISCONCEPTIONS


@ON_EACH_SHEET
def test_of_two_that_explain_as_much_the_lower_number_is_named_first(sheet: Variant) -> None:
    true, numbers = right_sheet(sheet), {misconception.key: misconception.number for misconception in MISCONCEPTIONS}
    transposing = {e.misconception for e in expectations(sheet.problem) if e.transposed}
    wrong = [(key, {box: n for box, n in boxes.items() if n != true[box]}) for key, boxes in told_apart(sheet)]
    for (one, first), (other, second) in combinations(wrong, 2):
        if (
            one != other
            and len(first) == len(second)
            and not first.keys() & second.keys()
            and not {one, other} & transposing
        ):
            found = diagnosed(sheet, {**true, **first, **second})
            if found and {found.key, *found.also} == {one, other}:
                assert numbers[found.key] < numbers[found.also[0]]


@pytest.mark.parametrize("case", one_in(6, CASES), ids=lambda case: case.model_type)
def test_where_a_misconception_applies_it_has_all_sizes(case: Case) -> None:
    for config, name in case.configs():
        architecture = build_architecture({**config, "architectures": [name]}, "The model")
        for topic in TOPICS:
            with suppress(TopicError):
                tokens = possible_tokens(topic, architecture, 20)
                rows = tuple(topic_for(topic, architecture, tokens).askable)
                assert expectations(problem_for(topic, architecture, rows, tokens))


def test_every_box_that_the_catalogue_names_is_on_some_sheet() -> None:
    models = [LIBRARY.models[key].architecture for key in LIBRARY.models]
    named = {
        (m.key, topic, place, box)
        for m in MISCONCEPTIONS
        for topic, predictions in m.predictions.items()
        for place, prediction in enumerate(predictions)
        for box in prediction.overrides
    }
    boxes = dict[str, set[str]]()
    for topic, architecture in product(TOPICS, models):
        with suppress(TopicError):
            table = topic_for(topic, architecture, possible_tokens(topic, architecture, 96))
            asked = {str(Blank(key, field)) for key, entry in table.askable.items() for field in entry.fields}
            boxes.setdefault(topic, set()).update(asked)
    shared = {(key, box) for key, topic, _place, box in named if box in boxes[topic]}
    assert {(key, box) for key, _topic, _place, box in named} == shared


@pytest.mark.parametrize("topic", TOPICS)
def test_numbers_and_symbols_of_a_prediction_agree(topic: str) -> None:
    for architecture in MODELS.values():
        tokens = possible_tokens(topic, architecture, 96)
        with suppress(TopicError):
            rows = tuple(topic_for(topic, architecture, tokens).askable)
            problem = problem_for(topic, architecture, rows, tokens)
            for expected in expectations(problem):
                for blank, number in expected.wrong_answers.items():
                    size = wrong_expression(problem, expected, blank)
                    formula = expected.prediction.overrides.get(str(blank))
                    rounded = problem.table.askable[blank.tensor].key in ("multiples", "weights_4_bit") or (
                        formula and formula.rounded != "never"
                    )
                    assert rounded if size is None else size.value(problem.sizes) == number


def test_every_misconception_has_its_sentences(library: Library) -> None:
    keys = {misconception.key for misconception in MISCONCEPTIONS}
    sentences = [library.wording.misconception(key, kind) for key in keys for kind in ("nudge", "explanation")]
    assert len(set(sentences)) == 2 * len(keys)
    assert not [sentence for sentence in sentences if re.search(r"\d", sentence) or sentence[-1] not in ".?"]


@ON_EACH_SHEET
def test_a_sheet_filled_in_by_a_misconception_is_diagnosed_as_it(sheet: Variant) -> None:
    for key, boxes in told_apart(sheet):
        found = diagnosed(sheet, boxes)
        assert found is not None, key
        assert (found.key, found.also) == (key, ())
        assert {str(blank) for blank in found.explains} == {
            box for box, n in right_sheet(sheet).items() if n != boxes[box]
        }


@pytest.mark.parametrize(
    ("model", "tokens", "kept_in_all_layers"),
    [("mistral-7b", 10_000, 32 * 4096), ("gemma-2-2b", 6000, 13 * 4096 + 13 * 6000)],
)
def test_a_factor_that_the_cache_forgets_is_named_where_windows_drop_tokens(
    model: str, tokens: int, kept_in_all_layers: int
) -> None:
    variant = LIBRARY.variant("costs-llama-7b", model, tokens)
    s, right = variant.sizes, dict(variant.key)
    of_keys = 2 * kept_in_all_layers * s["d_h"]
    assert right["cache_16_bit.count"] == 2 * s["G"] * of_keys
    for wrong in (2 * s["H"] * of_keys, s["G"] * of_keys, s["H"] * of_keys, 2 * s["G"] * of_keys // s["L"]):
        if wrong == right["cache_16_bit.count"]:  # only the keys, of twice as many heads
            continue
        found = diagnosed(variant, {**right, "cache_16_bit.count": wrong, "cache_8_bit.count": wrong // 2})
        assert found is not None
        assert (found.key, found.also) == ("cache-forgets-factor", ())


@ON_EACH_SHEET
def test_other_models_and_lengths_are_diagnosed_alike(sheet: Variant) -> None:
    chance = random.Random(sheet.worksheet.key)  # noqa: S311 - a simulated student
    for model in LIBRARY.models:
        try:
            variant = LIBRARY.variant(sheet.worksheet.key, model, chance.randrange(3, 500))
        except (TokensError, TopicError):
            continue
        assert diagnosed(variant, right_sheet(variant)) is None
        for key, boxes in told_apart(variant):
            found = diagnosed(variant, boxes)
            assert (model, found and (found.key, found.also)) == (model, (key, ()))


@ON_EACH_SHEET
def test_one_slip_hides_no_misconception(sheet: Variant) -> None:
    true, wrong, tried = right_sheet(sheet), 0, 0
    for key, boxes in told_apart(sheet):
        untouched = [box for box in typed_boxes(sheet) if boxes[box] == true[box]]
        for seed in range(SEEDS // 6 if untouched else 0):
            chance = random.Random(f"{key} {seed}")  # noqa: S311 - a simulated student
            found = diagnosed(sheet, with_slip(boxes, chance.choice(untouched), chance))
            tried += 1
            wrong += found is None or found.key != key
    assert wrong <= 0.02 * tried


@ON_EACH_SHEET
def test_a_right_sheet_and_a_single_slip_get_no_diagnosis(sheet: Variant) -> None:
    true = right_sheet(sheet)
    longer = [box for box in typed_boxes(sheet) if true[box] > 9]
    assert diagnosed(sheet, true) is None
    assert diagnosed(sheet, {}) is None
    for seed in range(SEEDS):
        chance = random.Random(seed)  # noqa: S311 - a simulated student
        box = chance.choice(longer or typed_boxes(sheet))
        slipped = with_slip(true, box, chance)
        assert diagnosed(sheet, slipped) is None or min(slipped[box], true[box]) < 10
        assert diagnosed(sheet, {box: true[box]}) is None


@ON_EACH_SHEET
def test_random_numbers_of_the_sheet_are_rarely_diagnosed(sheet: Variant) -> None:
    words = f"{prose.description(sheet)} {prose.footnote(sheet) or ''}".replace(",", "")
    numbers = [int(number) for number in re.findall(r"\b[1-9]\d*\b", words)]
    found = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)  # noqa: S311 - a simulated student
        found += diagnosed(sheet, {box: chance.choice(numbers) for box in right_sheet(sheet)}) is not None
    assert found < 0.05 * SEEDS


@ON_EACH_SHEET
def test_two_misconceptions_are_both_named(sheet: Variant) -> None:
    true, kept = right_sheet(sheet), 0
    made = [(key, {box: n for box, n in boxes.items() if n != true[box]}) for key, boxes in told_apart(sheet)]
    pairs = [(a, b) for a, b in combinations(made, 2) if a[0] != b[0] and not a[1].keys() & b[1].keys()]
    for (one, first), (other, second) in pairs:
        found = diagnosed(sheet, {**true, **first, **second})
        kept += found is not None and {found.key, *found.also} == {one, other}
    assert kept >= 0.9 * len(pairs)


@ON_EACH_SHEET
def test_what_a_sheet_hides_is_named(sheet: Variant) -> None:
    filled = misconception_sheets(sheet)
    for at, (one, boxes) in enumerate(filled):
        for other, others in filled[at + 1 :]:
            if boxes == others and one != other:
                assert (one, other) in cannot_tell_apart(sheet.problem) or (other, one) in cannot_tell_apart(
                    sheet.problem
                )
    shown = {
        misconception.key
        for misconception in MISCONCEPTIONS
        if sheet.worksheet.topic in misconception.topics and misconception.applies_to(sheet.architecture)
    }
    if isinstance(sheet.table, BugTable):
        shown = {misconception_of(r) for r in sheet.table.reasons if r != sheet.table.right_reason} - {""}
    assert shown == hidden(sheet) - {"right"} | {e.misconception for e in expectations(sheet.problem)}


def test_of_two_misconceptions_that_fill_in_a_sheet_alike_neither_is_named() -> None:
    pairs = set()
    for worksheet in FIRST_OF_TOPIC.values():
        for model in MODELS:
            if LIBRARY.refusal(worksheet.key, model) is None:
                problem = LIBRARY.variant(worksheet.key, model).problem
                for first, second in cannot_tell_apart(problem):
                    both = [e.wrong_answers for e in expectations(problem) if e.misconception == first]
                    theirs = [e.wrong_answers for e in expectations(problem) if e.misconception == second]
                    for wrong in (each for each in both if each in theirs):
                        values = {**problem.answers, **wrong}
                        named = diagnose(problem, values, worked_out(problem, values))
                        assert named is None, (worksheet.topic, model, first, second)
                        pairs.add((first, second))
    assert len(pairs) >= 4


def test_the_formula_of_a_student_who_leaves_out_the_embedding_dimension(library: Library) -> None:
    for model, kv_heads in (("llama-7b", 32), ("mistral-7b", 8)):
        variant = library.variant("count-llama-7b", model)
        attention = 2 * 32 * 128**2 + 2 * kv_heads * 128**2
        assert model != "llama-7b" or attention == 32 * 4 * 128**2 == 2_097_152
        right = dict(variant.key)
        change = attention - right["attention.count"]
        wrong = {"attention.count": attention}
        wrong |= {box: right[box] + 32 * change for box in ("all_layers.count", "total.count")}
        diagnosis = grade(variant, {box: str(size) for box, size in (right | wrong).items()}).diagnosis
        if model == "llama-7b":
            assert diagnosis is None
            assert ("square-head-projection", "one-head-for-layer") in cannot_tell_apart(variant.problem)
        else:
            assert diagnosis is not None
            assert diagnosis.key == "square-head-projection"


def test_what_a_model_lacks_is_not_called_hidden(library: Library) -> None:
    assert cannot_tell_apart(library.variant("llama-7b").problem) == ()
    grouped = {e.misconception for e in expectations(library.variant("llama-7b", "qwen3-0.6b").problem)}
    assert {"all-kv-heads-in-one", "width-always-divided", "layer-for-one-head"} <= grouped
    plain = {e.misconception for e in expectations(library.variant("llama-7b").problem)}
    assert not plain & {"all-kv-heads-in-one", "width-always-divided", "layer-for-one-head", "wider-kv-heads"}


@ON_EACH_SHEET
def test_each_sheet_tells_at_least_two_misconceptions_apart(sheet: Variant) -> None:
    assert sheet.worksheet.bug or len({key for key, _ in told_apart(sheet)}) >= 2


def test_a_right_answer_is_not_explained_away(library: Library) -> None:
    found = diagnosed(library.variant("llama-7b"), LLAMA | {"queries.columns": 4096, "keys.columns": 4096})
    assert found is not None
    assert (found.key, found.explains) == (
        "head-as-wide-as-model",
        (Blank("queries", "columns"), Blank("keys", "columns")),
    )


def test_swapped_rows_and_columns_are_named_as_the_other_convention(library: Library) -> None:
    transposed = {f"{row}.{axis}": LLAMA[f"{row}.{other}"] for row in {box.split(".")[0] for box in LLAMA}
              for axis, other in (("rows", "columns"), ("columns", "rows"))}  # fmt: skip
    report = grade(library.variant("llama-7b"), {box: str(n) for box, n in transposed.items()})
    assert report.diagnosis is not None
    assert report.diagnosis.key == "columns-are-tokens"
    assert "convention" in report.diagnosis.message
    assert (report.right, report.score) == (4, 13)


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ({"input": (4096, 100)}, None),
        ({"values": (128, 100), "input": (100, 4096)}, None),
        ({"input": (4096, 100), "scores": (100, 100), "weights": (100, 100)}, None),  # squares have no orientation
        ({"input": (4096, 100), "queries": (100, 128), "keys": (100, 128)}, "mixed-orientations"),
        ({"input": (4096, 100), "queries": (128, 100)}, "columns-are-tokens"),
        ({"values": (128, 100), "queries": (128, 100), "input": (100, 4096)}, "mixed-orientations"),
        ({"keys": (128, 100)}, "keys-already-transposed"),  # compares with no other matrix
    ],
)
def test_a_matrix_is_compared_with_others_only_if_there_are_others(
    library: Library, typed: dict[str, tuple[int, int]], key: str | None
) -> None:
    boxes = {f"{row}.{side}": n for row, shape in typed.items() for side, n in zip(MATRIX_FIELDS, shape, strict=True)}
    found = diagnosed(library.variant("llama-7b"), boxes)
    assert (found and found.key) == key


def test_the_diagnosis_as_json(library: Library) -> None:
    """Key, sentence, boxes in the order of the sheet, and further misconceptions."""
    wrong = {"queries.columns": 4096, "keys.columns": 4096, "values.columns": 4096, "weights.columns": 1}
    variant = library.variant("llama-7b")
    found = grade(variant, {box: str(n) for box, n in (LLAMA | wrong).items()}).as_json()
    assert found["diagnosis"] == {
        "key": "head-as-wide-as-model",
        "message": library.wording.misconception("head-as-wide-as-model", "nudge"),
        "explains": list(wrong),
        "also": ["softmax-collapses"],
    }
