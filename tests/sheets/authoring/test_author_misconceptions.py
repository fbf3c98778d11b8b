"""A teacher's own misconceptions: sheets filled in as one says are put down to it, or the checker says why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from app.grading.grade import grade
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.misconceptions.predictions import cannot_tell_apart
from app.sheets.authoring.author_misconceptions import AuthorFinding, author_findings, read_formula
from app.sheets.variant import Variant
from app.sheets.worksheet import AuthorMisconception, derived_key
from tests.helpers.shipped import LIBRARY

WIDE = {"queries.columns": "H*d", "keys.columns": "H*d + 1"}


def own(boxes: Mapping[str, str], name: str = "Mine") -> AuthorMisconception:
    """A misconception that writes these formulas into these boxes."""
    return AuthorMisconception(name, boxes, f"{name}?", f"{name}.", key=derived_key(name, "own-"))


def sheet_with(variant: Variant, *misconceptions: AuthorMisconception, **changes: object) -> Variant:
    """The sheet, had its author described these misconceptions."""
    return replace(variant, worksheet=replace(variant.worksheet, misconceptions=misconceptions, **changes))  # type: ignore[arg-type]


def filled_in(variant: Variant, boxes: Mapping[str, str]) -> dict[str, str]:
    """The texts of a sheet that is right but for these boxes, in which the formulas' numbers stand."""
    wrong = {box: str(read_formula(variant, formula).size(variant.sizes)) for box, formula in boxes.items()}
    return {**{box: str(number) for box, number in variant.key.items()}, **wrong}


def held(variant: Variant, boxes: Mapping[str, str]) -> str:
    """The key of the misconception that such a sheet is put down to."""
    report = grade(variant, filled_in(variant, boxes))
    return report.diagnosis.key if report.diagnosis else ""


def findings_by_kind(*misconceptions: AuthorMisconception, **changes: object) -> dict[str, AuthorFinding]:
    """What is found on the sheet of LLaMA 7B."""
    sheet = sheet_with(LIBRARY.variant("llama-7b"), *misconceptions, **changes)
    return {finding.kind: finding for finding in author_findings(sheet)}


def random_own(variant: Variant, random: Random) -> AuthorMisconception:
    """A misconception that writes random products and sums into some boxes of the sheet."""
    boxes = [str(blank) for blank in variant.blanks]
    names = variant.symbols.written
    formulas = [
        random.choice(("{}", "{}*{}", "{} + {}", "2*{}", "{} + 1", "{}*{} / {}")).format(*random.choices(names, k=3))
        for _ in range(random.randint(1, 3))
    ]
    chosen = random.sample(boxes, random.randint(1, min(8, len(boxes))))
    return own({box: random.choice(formulas) for box in chosen}, name=f"Mine {random.random()}")


@pytest.mark.parametrize("seed", range(60))
def test_a_sheet_filled_in_as_one_says_is_put_down_to_it(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - test data
    worksheets = [key for key, sheet in LIBRARY.worksheets.items() if sheet.answers == "numbers"]
    plain = LIBRARY.seeded(random.choice(worksheets), seed)
    described = [random_own(plain, random) for _ in range(4)]
    variant = sheet_with(plain, *described)
    hidden = {finding.key for finding in author_findings(variant) if not finding.shows}
    for each in described:
        if not any(finding.kind == "formula" and finding.key == each.key for finding in author_findings(variant)):
            assert (held(variant, each.boxes) == each.key) == (each.key not in hidden), each


def test_on_a_sheet_in_letters_formulas_are_compared_by_meaning() -> None:
    plain = LIBRARY.variant("llama-7b~symbols")
    box = next(str(blank) for blank in plain.blanks if "N" not in plain.expression(blank).symbols)
    other = next(str(blank) for blank in plain.blanks if str(blank) != box)
    symbol = plain.notation.symbol
    formulas = {box: f"{symbol('N')}*{symbol('H')}", other: f"{symbol('N')}*{symbol('d')}"}
    variant = sheet_with(plain, own(formulas))
    answers = {str(blank): plain.notation.write(plain.expression(blank)) for blank in plain.blanks} | formulas
    report = grade(variant, answers)
    assert report.diagnosis is not None
    assert report.diagnosis.key == "own-mine"
    assert author_findings(variant) == ()


def test_a_formula_may_use_more_than_students_may() -> None:
    variant = LIBRARY.variant("llama-7b")
    blank = variant.blanks_by_name["queries.columns"]
    for formula, number in (("2", 2), ("2*right", 256), ("other_side", 100), ("d_ff", 11008), ("d_model/H", 128)):
        boxes = {str(blank): formula, "keys.columns": "7"}
        changed = sheet_with(variant, own(boxes))
        [(_, predicted)] = [pair for pair in changed.problem.author_misconceptions.items() if pair[0] == "own-mine"]
        assert predicted.keys() == {blank, variant.blanks_by_name["keys.columns"]}
        sheet = {**{box: str(n) for box, n in variant.key.items()}, str(blank): str(number), "keys.columns": "7"}
        report = grade(changed, sheet)
        assert report.diagnosis is not None, formula
        assert report.diagnosis.key == "own-mine", formula


def test_what_is_alike_or_cannot_be_seen_is_said() -> None:
    as_built_in = {f"{row}.columns": "d" for row in ("queries", "keys", "values")}
    same = findings_by_kind(own(as_built_in))["same"]
    assert same.other == "head-as-wide-as-model"
    assert LIBRARY.wording.misconception_name("head-as-wide-as-model") in same.message
    assert held(sheet_with(LIBRARY.variant("llama-7b"), own(as_built_in)), as_built_in) == "own-mine"
    assert findings_by_kind(own({"queries.columns": "d/H"})).keys() == {"right"}
    assert findings_by_kind(own({"queries.columns": "right + 1"})).keys() == {"slip"}
    formula = findings_by_kind(own({"queries.columns": "d/7", "keys.columns": "d"}))["formula"]
    assert formula.box == "queries.columns"
    twice = findings_by_kind(own(WIDE), own(WIDE, name="Yours"))
    assert (twice["same"].key, twice["hidden"].key, twice["hidden"].other) == ("own-mine", "own-yours", "own-mine")
    assert ("own-mine", None) in cannot_tell_apart(
        sheet_with(LIBRARY.variant("llama-7b"), own({"queries.columns": "d/H"})).problem
    )


def test_the_catalogue_stays_as_it_is() -> None:
    plain = LIBRARY.variant("llama-7b")
    variant = sheet_with(plain, own(WIDE))
    boxes = {f"{row}.columns": "d" for row in ("queries", "keys", "values")}
    assert held(variant, boxes) == held(plain, boxes) == "head-as-wide-as-model"
    assert not any(each.key.startswith("own-") for each in MISCONCEPTIONS)
