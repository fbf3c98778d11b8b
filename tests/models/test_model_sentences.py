"""What a model's page says of it in sentences: its sizes, how it computes, and its number of parameters."""

from __future__ import annotations

import re

import pytest

from app.models.model_sentences import count_remarks, property_sentences, size_meanings, unstated_reason
from app.models.parameter_count import parameter_counts
from app.models.parameter_formula import parameter_formula
from app.sheets.library import Library
from app.web.models import NINE
from tests.helpers.families_cases import every_architecture


def reasons(library: Library, key: str) -> dict[str, str]:
    """Why each size of a model has its value, by symbol; empty where a field states it."""
    a = library.model(key).architecture
    sizes = {**{source.symbol: source.value for source in a.size_sources}, **a.all_sizes}
    return {source.symbol: unstated_reason(a, source, sizes) for source in a.size_sources}


def remarks(library: Library, key: str) -> str:
    """The sentences about a model's number of parameters."""
    a = library.model(key).architecture
    return " ".join(count_remarks(a, parameter_counts(a), parameter_formula(a)))


def test_every_size_of_every_family_has_a_meaning() -> None:
    symbols = {symbol for a in every_architecture() for symbol in a.all_sizes}
    of_deberta = {"max_relative_positions", "position_buckets", "attention_head_size", "conv_groups"}
    assert symbols - size_meanings().keys() == {*of_deberta}
    assert size_meanings().keys() >= set(NINE)


def test_a_size_without_a_field_has_a_reason(library: Library) -> None:
    said = reasons(library, "llama-7b")
    assert {symbol for symbol, reason in said.items() if reason} >= {"G", "d_h"}
    assert "num_key_value_heads" in said["G"]
    assert "d/H = 4096/32" in said["d_h"]
    assert said["d"] == ""


PROPERTIES = [
    ("llama-7b", ["No sliding window", "rotates all 128 dimensions", "base 10,000", "RMSNorm before attention"]),
    ("mistral-7b", ["in every layer, ", "the last 4096 tokens", "√d_h = √128"]),
    ("gpt-neo-125m", ["in 6 of 12 layers", "last 256 tokens", "not scaled"]),
    ("modernbert-base", ["in 14 of 22 layers", "64 tokens on each side", "base of their own, 10,000"]),
    ("gemma-2-2b", ["in 13 of 26 layers", "last 4096 tokens", "50·tanh(s/50)"]),
    ("pythia-160m", ["rotates 16 of the 64", "base 10,000", "parallel", "(LayerNorm)"]),
    ("phi-3.5-mini", ["window of 262,144 tokens, but the context length is 131,072"]),
    ("t5-small", ["32 buckets", "not scaled", "Tied embeddings"]),
    ("flan-t5-small", ["a matrix of its own", "Gated"]),
    ("whisper-tiny", ["3000 frames (30 seconds", "1500 positions"]),
    ("vit-base", ["exactly 197 tokens", "no LM head"]),
    ("olmo-2-7b", ["RMSNorm on the output"]),
    (
        "deepseek-v2-lite",
        ["in 26 of 27 layers", "6 of 64 experts", "2 shared experts", "√192", "1.59", "mscale_all_dim", "0.1147"],
    ),
    ("deepseek-v3", ["in 58 of 61 layers", "8 of 256 experts", "one shared expert"]),
    ("mixtral-8x7b", ["in 32 of 32 layers", "2 of 8 experts.", "32 query heads share 8", "4 query heads each"]),
]


@pytest.mark.parametrize(("key", "parts"), PROPERTIES, ids=[key for key, _parts in PROPERTIES])
def test_how_a_model_computes_is_told(library: Library, key: str, parts: list[str]) -> None:
    sentences = " ".join(property_sentences(library.model(key).architecture))
    assert [part for part in parts if part not in sentences] == []


def test_every_model_of_every_family_is_told_without_a_gap() -> None:
    for a in every_architecture():
        sizes = {**{source.symbol: source.value for source in a.size_sources}, **a.all_sizes}
        counted = count_remarks(a, parameter_counts(a), parameter_formula(a))
        why = (unstated_reason(a, source, sizes) for source in a.size_sources)
        assert not any("{" in sentence for sentence in (*property_sentences(a), *counted, *why)), a.model_class


def test_a_table_of_positions_counts_by_its_rows(library: Library) -> None:
    assert "P·d (1024 rows)" in remarks(library, "gpt2")
    assert "not a factor" not in remarks(library, "gpt2")
    assert re.search(r"\(1500 rows\) and \S+ \(448 rows\)", remarks(library, "whisper-tiny"))
    assert "(C = 2048) is not a factor" in remarks(library, "llama-7b")


def test_what_one_token_uses_is_told_with_and_without_the_embedding_table(library: Library) -> None:
    said = remarks(library, "deepseek-v2-lite")
    assert all(part in said for part in ("2,661,150,208", "6 of the 64", "2 shared ones", "2,451,435,008"))
