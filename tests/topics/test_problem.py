"""A Problem: table, sizes, blanks and key of one sheet, only in numbers."""

from __future__ import annotations

import pytest

from app.shapes.table import Blank
from app.topics.problem import problem_for
from app.topics.requirements import TopicError
from tests.helpers.shipped import LIBRARY

LLAMA = LIBRARY.models["llama-7b"].architecture


def test_rows_that_the_table_lacks_are_left_out() -> None:
    gpt2 = LIBRARY.models["gpt2"].architecture
    problem = problem_for("whole-model", gpt2, ("up", "gate", "embedded"), 100)
    assert problem.rows == ("up", "embedded")
    assert [str(blank) for blank in problem.blanks] == [
        "up.rows",
        "up.columns",
        "embedded.rows",
        "embedded.columns",
    ]


def test_a_parameter_is_asked_for_its_count_too() -> None:
    problem = problem_for("layer-parameters", LLAMA, ("W_up",), 100)
    assert list(problem.answers.values()) == [4096, 11_008, 4096 * 11_008]


def test_without_decoder_tokens_the_decoder_reads_as_many_as_the_encoder() -> None:
    t5 = next(model.architecture for model in LIBRARY.models.values() if model.architecture.encoder_decoder)
    assert problem_for("cross-attention", t5, ("queries",), 40).sizes["M"] == 40
    assert problem_for("cross-attention", t5, ("queries",), 40, 30).answers[Blank("queries", "rows")] == 30


def test_a_decoder_reads_no_more_tokens_than_it_has_positions() -> None:
    whisper = LIBRARY.models["whisper-tiny"].architecture
    problem = problem_for("cross-attention", whisper, ("queries", "keys"), 1500)
    assert (problem.sizes["M"], problem.sizes["N"]) == (448, 1500)
    assert LIBRARY.variant("cross-bart-base", "whisper-tiny").problem.sizes["N"] == 1500
    assert LIBRARY.variant("decode-gpt2", "whisper-tiny").tokens == LIBRARY.worksheets["decode-gpt2"].tokens


def test_a_problem_is_equal_to_itself_alone() -> None:
    first, second = (problem_for("single-head", LLAMA, ("queries",), 100) for _ in range(2))
    assert first != second
    assert first.answers == second.answers
    with pytest.raises(TopicError):
        problem_for("cross-attention", LLAMA, ("queries",), 100)
