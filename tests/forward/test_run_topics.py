"""Runs of heads split off a layer, of a decode step and of cross-attention: shapes, weights, memory, the terminal."""

from __future__ import annotations

import json

import pytest
import torch

from app.cli import main
from app.forward.lines import ForwardError
from app.forward.process import run_sheet
from app.forward.program import check_modelled, program
from app.forward.run import bytes_needed, execute, run_head
from app.models.architecture import Architecture
from app.sheets.variant import Variant
from app.topics.registry import TOPICS, refusal
from tests.helpers.fake_runner import RunnerInThisProcess
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

SPLIT = ("three-dimensions", "four-dimensions")
TOPICS_TO_RUN = (*SPLIT, "decode-step", "cross-attention")
TOKENS = 60


def is_runnable(topic: str, a: Architecture, tokens: int) -> bool:
    try:
        check_modelled(a, topic)
    except ForwardError:
        return False
    return refusal(topic, a, tokens) is None


@pytest.mark.parametrize("key", one_in(6, list(LIBRARY.models)))
def test_every_model_of_the_library_has_the_shapes_of_its_sheets(key: str) -> None:
    a = LIBRARY.model(key).architecture
    tokens = a.fixed_tokens or TOKENS
    for topic in TOPICS_TO_RUN:
        if is_runnable(topic, a, tokens):
            run = run_head(a, tokens, topic=topic, device="meta")
            assert run.agrees, (topic, run.disagreements)
        else:
            with pytest.raises(ForwardError):
                run_head(a, tokens, topic=topic, device="meta")


def test_shapes_worked_out_by_hand() -> None:
    llama = LIBRARY.model("llama-3-8b").architecture
    heads = run_head(llama, 60, topic="three-dimensions", device="meta").shapes
    assert (heads["split_keys"], heads["repeated_keys"]) == ([60, 8, 128], [32, 60, 128])
    assert (heads["scores"], heads["joined_context"]) == ([32, 60, 60], [60, 4096])
    step = run_head(llama, 60, topic="decode-step", device="meta").shapes
    assert (step["new_key"], step["keys"], step["weights"]) == ([1, 128], [61, 128], [1, 61])
    two = run_head(LIBRARY.model("t5-small").architecture, 30, topic="cross-attention", decoder_tokens=25, device="cpu")
    assert (two.shapes["scores"], two.shapes["output"], two.picture) == ([25, 30], [25, 512], None)
    assert two.row_sums == pytest.approx((1, 1))


def test_the_weights_of_one_head_are_pictured() -> None:
    gpt2 = LIBRARY.model("gpt2").architecture
    run = run_head(gpt2, 8, topic="four-dimensions", head=5, device="cpu")
    weights = execute(program(gpt2, 8, topic="four-dimensions")).variables["A"]
    assert run.picture is not None
    torch.testing.assert_close(torch.tensor(run.picture.cells), weights[0, 5], atol=1e-5, rtol=0)
    assert run_head(gpt2, 8, topic="decode-step", device="cpu").picture is None


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS_TO_RUN)
@pytest.mark.parametrize("key", ["gpt2", "llama-3.2-1b", "gemma-2-2b", "gpt-oss-20b", "t5-small"])
def test_the_bytes_needed_are_those_left_at_the_end(key: str, topic: str) -> None:
    a = LIBRARY.model(key).architecture
    if not is_runnable(topic, a, 100):
        return
    variables = execute(program(a, 100, topic=topic)).variables
    tensors = [value for value in variables.values() if isinstance(value, torch.Tensor)]
    alive = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    assert bytes_needed(a, 100, topic=topic) == sum(alive.values())


def test_what_no_line_computes_is_refused() -> None:
    with pytest.raises(ForwardError, match="decode step cannot run"):
        run_head(LIBRARY.model("t5-small").architecture, 20, topic="decode-step", device="meta")
    with pytest.raises(ForwardError, match="from 1 to"):
        run_head(LIBRARY.model("t5-small").architecture, 20, topic="cross-attention", decoder_tokens=0)
    with pytest.raises(ForwardError, match="encoder-decoder"):
        run_head(LIBRARY.model("gpt2").architecture, 20, topic="cross-attention")


@pytest.mark.parametrize("topic", TOPICS_TO_RUN)
def test_a_sheet_has_torchs_shape_next_to_each_answer(topic: str) -> None:
    key = next(key for key, sheet in LIBRARY.worksheets.items() if sheet.topic == topic)
    variant: Variant = LIBRARY.variant(key)
    result = run_sheet(RunnerInThisProcess(), variant, device="meta")
    assert {row.key: result.shapes[row.key] for row in variant.rows} == {
        row.key: [variant.answer(blank) for blank in row.blanks] for row in variant.rows
    }


def test_a_topic_that_can_be_run_has_a_button() -> None:
    wording = LIBRARY.wording.topics
    assert {key for key, topic in TOPICS.items() if topic.runs} == {
        key for key, words in wording.items() if words.run_button and words.run_title
    }


def test_the_terminal_runs_two_texts(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "t5-small", "--tokens", "30", "--device", "meta", "--topic", "cross-attention", "--json"]
    main([*command, "--decoder-tokens", "25"])
    assert json.loads(capsys.readouterr().out)["shapes"]["scores"] == [25, 30]
