"""A run as a notebook: valid, complete, and right only with the right shapes in its blanks."""

from __future__ import annotations

import json
import re
from typing import Any

import nbformat
import pytest
import torch

from app.forward.notebook import run_notebook
from app.forward.program import RUNNABLE_TOPICS
from app.forward.run import HeadRun, run_head
from app.models.read_config import read_config

Shapes = dict[str, tuple[int, ...]]
T5 = (
    '{"model_type": "t5", "d_model": 48, "d_kv": 8, "num_heads": 4, "d_ff": 64, "num_layers": 2,'
    ' "num_decoder_layers": 2, "vocab_size": 99}'
)
LLAMA = (
    '{"model_type": "llama", "hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 99,'
    ' "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 10, "max_position_embeddings": 64}'
)
ASSERTION = re.compile(r"^assert (.+?)(\.get_shape\(\)|\.shape) == ([\[(]).*?([\])])$", re.MULTILINE)


def code_cells(notebook: bytes) -> list[str]:
    """The code of a notebook, cell by cell; it is valid, and nothing has been run in it."""
    read = nbformat.reads(notebook.decode(), as_version=4)
    nbformat.validate(read)
    assert all(not cell.outputs and cell.execution_count is None for cell in read.cells if cell.cell_type == "code")
    return [cell.source for cell in read.cells if cell.cell_type == "code"]


def completed(code: str, shapes: Shapes, wrong: str = "") -> str:
    """The code with the shape of each variable in its assertion; that of `wrong` has one column too many."""

    def fill(match: re.Match[str]) -> str:
        variable, attribute, opening, closing = match.groups()
        *others, last = shapes[variable]
        numbers = "".join(f"{number}, " for number in (*others, last + (variable == wrong)))
        return f"assert {variable}{attribute} == {opening}{numbers}{closing}"

    return ASSERTION.sub(fill, code)


def shapes_of(run: HeadRun) -> Shapes:
    """The shapes that torch reported when each tensor was first made, by variable; the lines of a layer overwrite."""
    return {line.names[0]: line.shapes[0] for line in reversed(run.lines) if line.makes}


def variables_after(code: str) -> dict[str, Any]:
    """Run the code; its variables."""
    variables: dict[str, Any] = {}
    exec(compile(code, "notebook", "exec"), variables)  # noqa: S102 - the notebook that the app wrote
    return variables


@pytest.mark.parametrize("topic", RUNNABLE_TOPICS)
def test_a_run_with_random_numbers_comes_out_of_its_notebook(topic: str) -> None:
    """Completed it gives what the program gives; with a blank left or wrong, it stops at that assertion."""
    model = read_config(T5 if topic in ("cross-attention", "bidirectional-head") else LLAMA)
    run = run_head(model, 7, head=2, device="cpu", topic=topic)
    notebook = run_notebook(run)
    assert notebook == run_notebook(run)
    code = "\n".join(code_cells(notebook))
    shapes = shapes_of(run)
    asked = [match[1] for match in ASSERTION.finditer(code)]
    assert asked == list(dict.fromkeys(line.names[0] for line in run.lines if line.makes))

    made = variables_after(completed(code, shapes))
    assert {name: tuple(made[name].shape) for name in asked} == {name: tuple(shapes[name]) for name in asked}
    torch.manual_seed(1)
    program = variables_after("\n".join(line.code for line in run.lines))
    assert torch.equal(made[asked[-1]], program[asked[-1]])

    for unfinished in (code, completed(code, shapes, wrong=asked[-1])):
        with pytest.raises(AssertionError):
            variables_after(unfinished)


def test_only_what_the_sheet_asks_is_asserted_and_nothing_shows_a_shape() -> None:
    """The queries alone, once, although rotation makes them a second time; no comment has the shape of any tensor."""
    run = run_head(read_config(LLAMA), 7, device="cpu")
    source = "\n".join(code_cells(run_notebook(run, {"queries", "count"})))
    assert [match[1] for match in ASSERTION.finditer(source)] == ["Q"]
    assert not any(f"# {shape}" in source for line in run.lines for shape in line.shapes)


def test_a_name_that_somebody_typed_is_shown_as_it_is() -> None:
    """Nothing in it is markdown, HTML or a formula, and a line break does not end the heading."""
    model = read_config(json.dumps(json.loads(LLAMA) | {"_name_or_path": "x"}))
    run = run_head(model, 7, device="cpu")
    named = run_notebook(type(run)(**{**vars(run), "model": "<b>$x$\n# *y*"}))
    heading = nbformat.reads(named.decode(), as_version=4).cells[0].source.split("\n")[0]
    assert heading.startswith("# ")
    assert r"\<b\>\$x\$ \# \*y\*" in heading
