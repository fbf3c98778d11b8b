"""The number of parameters as a sum of products, against the tensors and against sums written out by hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import pytest

from app.models.architecture import Architecture
from app.models.config_fields import ConfigError
from app.models.parameter_count import parameter_counts, parameters_json
from app.models.parameter_formula import in_numbers, length_symbols, parameter_formula
from app.models.read_config import build_architecture
from app.settings import PROJECT
from app.sheets.library import Library
from tests.helpers.families_cases import CASES, Case

RECORDS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "transformers_shapes.json").read_text(encoding="utf-8")
)
# Worked out from the tensors of each model: embedding, layers, what follows them, and the head where it is not tied.
BY_HAND = {
    "llama-7b": "V·d + L·(4·d·d + 3·d·d_ff + 2·d) + d + V·d",
    "llama-3.2-1b": "V·d + L·((2·G·d·d_h + 2·d·d) + 3·d·d_ff + 2·d) + d",
    "gpt2": "P·d + V·d + L·((4·d·d + 4·d) + (2·d·d_ff + d + d_ff) + 4·d) + 2·d",
    "mixtral-8x7b-v0.1": "V·d + L·((2·G·d·d_h + 2·d·d) + (3·E·d·d_ff + E·d) + 2·d) + d + V·d",
    "t5-small": "V·d + (4·d·d + 2·d·d_ff + 2·d + H·n_buckets) + 5·(4·d·d + 2·d·d_ff + 2·d)"
    " + (4·d·d + 2·d·d_ff + 3·d + (H·n_buckets + 4·d·d)) + 5·(4·d·d + 2·d·d_ff + 3·d + 4·d·d) + 2·d",
}


def cases() -> Iterator[Architecture]:
    """Every family with odd sizes, in each of its classes and settings."""
    for case in CASES:
        for name in case.classes:
            for setting, values in {"": ("",), **case.settings}.items():
                for value in values:
                    changed = {setting: value} if setting else {}
                    config = {"model_type": case.model_type, **case.base, "architectures": [name], **changed}
                    yield build_architecture(config)


def evaluated(numbers: str) -> int:
    """The value of a sum of products and brackets, reckoned without the code that wrote it."""
    text = numbers.replace(",", "").replace(" ", "")
    while match := re.search(r"\(([^()]+)\)", text):
        text = text.replace(match[0], str(evaluated(match[1])))
    total = Fraction(0)
    for product in text.split("+"):
        total += prod(map(Fraction, product.split("·")))
    return int(total)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["name"]))
def test_the_written_sum_comes_to_the_measured_total(record: dict[str, Any]) -> None:
    formula = parameter_formula(build_architecture(record["config"], record["name"]))
    assert evaluated(formula.numbers) == formula.total == record["expected"]["total_parameters"]
    assert formula.symbols == BY_HAND.get(record["name"], formula.symbols)


def test_the_sum_of_every_family_is_that_of_its_tensors() -> None:
    families = set()
    for architecture in cases():
        formula = parameter_formula(architecture)
        assert formula.total == parameter_counts(architecture).total == evaluated(formula.numbers), architecture.family
        families.add(architecture.family)
    assert families == {case.model_type for case in CASES}


OF_ALL_FAMILIES = """
from app.models.parameter_formula import parameter_formula
from app.models.read_config import build_architecture
from tests.helpers.families_cases import CASES
for case in CASES:
    architecture = build_architecture(case.config({}))
    print(parameter_formula(architecture), architecture.size_sources)
"""


def test_no_formula_depends_on_the_hash_seed() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", OF_ALL_FAMILIES],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(PROJECT)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1


def test_the_sum_of_llama_7b_in_numbers(library: Library) -> None:
    formula = parameter_formula(library.model("llama-7b").architecture)
    expected = "32,000·4096 + 32·(4·4096·4096 + 3·4096·11,008 + 2·4096) + 4096 + 32,000·4096"
    assert (formula.total, formula.numbers) == (6_738_415_616, expected)
    assert [(each.first, each.second, each.size) for each in formula.equalities] == [
        ("G", "H", 32), ("H·d_h", "d", 4096), ("d_v", "d_h", 128)
    ]  # fmt: skip


def test_sizes_that_only_happen_to_divide_are_not_merged() -> None:
    record = next(record for record in RECORDS if record["name"] == "qwen3-0.6b")
    assert "2·H·d·d_h" in parameter_formula(build_architecture(record["config"])).symbols


@pytest.mark.parametrize(
    ("model", "length"),
    [
        ("llama-7b", {}),
        ("gpt2", {"P·d": 1024}),
        ("bert-base", {"P·d": 512}),
        ("t5-small", {}),
        ("whisper-tiny", {"P·d": 1500, "P_dec·d": 448}),
    ],
)
def test_the_length_of_the_input_is_found_where_a_table_holds_it(
    library: Library, model: str, length: dict[str, int]
) -> None:
    assert parameter_formula(library.model(model).architecture).position_products == length


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "deberta" not in case.model_type],  # its table of relative positions depends on C too
    ids=lambda case: case.model_type,
)
def test_the_rows_of_position_tables_are_those_of_the_tensors(case: Case) -> None:
    for config, model_class in case.configs():
        with suppress(ConfigError):
            architecture = build_architecture({**config, "architectures": [model_class]})
            tables = [t["shape"] for t in parameters_json(architecture)["tensors"] if re.search("posit|wpe", t["name"])]
            products = parameter_formula(architecture).position_products
            expected = sum(shape[-2] for shape in tables if len(shape) > 1)
            assert sum(rows for product, rows in products.items() if "R" not in product) == expected


def test_a_size_that_follows_from_the_length_counts_as_one(library: Library) -> None:
    record = next(record for record in RECORDS if record["name"] == "opt-125m")
    assert "P" in length_symbols(build_architecture(record["config"]))
    assert "n_buckets" not in length_symbols(library.model("t5-small").architecture)


def test_a_rule_is_written_in_numbers() -> None:
    sizes = {"d": 768, "H": 12, "C": 131_072}
    assert [in_numbers(rule, sizes) for rule in ("4*d", "d/H", "C + 2")] == ["4·768", "768/12", "131,072 + 2"]
