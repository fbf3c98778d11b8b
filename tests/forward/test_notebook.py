"""A run as a notebook: valid, complete, and right only with the right shapes in its blanks."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel as ByteLevelSplit
from tokenizers.processors import TemplateProcessing

from app.checkpoints.files import SMOLLM2, open_checkpoint, smollm2_file
from app.forward.lines import ForwardError
from app.forward.notebook import MAX_CARRIED_BYTES, head_notebook, run_notebook
from app.forward.program import RUNNABLE_TOPICS
from app.forward.real_head import RealHead, run_real_head
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
TEXT = "The cat sat on the mat."
ASSERTION = re.compile(r"^assert (.+?)(\.get_shape\(\)|\.shape) == ([\[(]).*?([\])])$", re.MULTILINE)


def code_cells(notebook: bytes) -> list[str]:
    """The code of a notebook, cell by cell; it is valid, and nothing has been run in it."""
    read = nbformat.reads(notebook.decode(), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(read)
    assert all(not cell.outputs and cell.execution_count is None for cell in read.cells if cell.cell_type == "code")
    return [cell.source for cell in read.cells if cell.cell_type == "code"]


def completed(code: str, shapes: Shapes, wrong: str = "") -> str:
    """The code with each variable's shape in its assertion; the shape of `wrong` has one column too many."""

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
    run = run_head(read_config(LLAMA), 7, device="cpu")
    source = "\n".join(code_cells(run_notebook(run, {"queries", "count"})))
    assert [match[1] for match in ASSERTION.finditer(source)] == ["Q"]
    assert not any(f"# {shape}" in source for line in run.lines for shape in line.shapes)


def test_a_name_that_somebody_typed_is_shown_as_it_is() -> None:
    model = read_config(json.dumps(json.loads(LLAMA) | {"_name_or_path": "x"}))
    run = run_head(model, 7, device="cpu")
    named = run_notebook(type(run)(**{**vars(run), "model": "<b>$x$\n# *y*"}))
    heading = "".join(json.loads(named)["cells"][0]["source"]).split("\n")[0]
    assert heading.startswith("# ")
    assert r"\<b\>\$x\$ \# \*y\*" in heading


def write_checkpoint(folder: Path) -> Path:
    """A folder with a tiny llama of random weights in safetensors, and a tokenizer that takes TEXT letter by letter."""
    folder.mkdir()
    model = read_config(LLAMA)
    (folder / "config.json").write_text(LLAMA)
    specs = [(f"model.{spec.name}", spec) for spec in model.outside_parameters if spec.name != "lm_head.weight"]
    specs += [("lm_head.weight", spec) for spec in model.outside_parameters if spec.name == "lm_head.weight"]
    for layer in range(model.L):
        prefix = f"model.{model.stacks[0].spec.name.format(i=layer)}"
        specs += [(prefix + spec.name, spec) for spec in model.runs[0].parameters]
    shapes = {name: [side.size(model.all_sizes) for side in spec.stored_shape] for name, spec in specs}
    save_file({name: torch.randn(shape) / 4 for name, shape in shapes.items()}, folder / "model.safetensors")
    letters = sorted({letter.replace(" ", "Ġ") for letter in TEXT})
    tokenizer = Tokenizer(BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = ByteLevelSplit(add_prefix_space=False)
    tokenizer.decoder = ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def shapes_of_head(head: RealHead) -> Shapes:
    """The shapes by variable, and for `in_file`, which is many tensors in turn, nothing."""
    return {line.names[0]: line.shapes[0] for line in reversed(head.lines) if line.makes}


def completed_head(head: RealHead, code: str, wrong: str = "") -> str:
    """The code of a head's notebook with every blank filled; `wrong` is as in `completed`, or "tokens" or "in_file"."""
    stored = iter([part.stored.shape for part in head.parts if part.variable in shapes_of_head(head)])
    cells = []
    for cell in code.split("in_file = "):
        shapes = shapes_of_head(head) | ({"in_file": next(stored)} if "assert in_file." in cell else {})
        cells.append(completed(cell, shapes, wrong))
    return "in_file = ".join(cells).replace("len(ids) == ...", f"len(ids) == {len(head.tokens) + (wrong == 'tokens')}")


def assert_same_numbers(made: Mapping[str, Any], head: RealHead) -> None:
    """Queries, keys and so on equal the run's within 1e-5."""
    variables = {"Q": "queries", "K": "keys", "V": "values", "A": "weights", "C": "context", "O": "output"}
    for variable, key in variables.items():
        torch.testing.assert_close(made[variable], torch.from_numpy(head.arrays[key]), atol=1e-5, rtol=1e-5)


def test_a_real_head_comes_out_of_its_notebook_again(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny")
    head = run_real_head(open_checkpoint(folder, [tmp_path]), TEXT, layer=1, head=4, device="cpu")
    notebook = head_notebook(head, TEXT)
    assert notebook == head_notebook(RealHead.from_bytes(head.to_bytes()), TEXT)
    code = "\n".join(code_cells(notebook)).replace("CHECKPOINT = 'tiny'", f"CHECKPOINT = {str(folder)!r}")
    right = completed_head(head, code)
    assert_same_numbers(variables_after(right), head)
    for unfinished in (code, *(completed_head(head, code, wrong) for wrong in ("tokens", "in_file", "S"))):
        with pytest.raises(AssertionError):
            variables_after(unfinished)
    other = right.replace("in_file[40:50]", "in_file[30:40]")
    assert other != right
    with pytest.raises(AssertionError):
        variables_after(other)


def test_a_special_token_that_is_typed_is_none_that_the_tokenizer_adds(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(["<s>"])
    first = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", first)])
    tokenizer.save(str(folder / "tokenizer.json"))
    text = f"<s>{TEXT}"
    head = run_real_head(open_checkpoint(folder, [tmp_path]), text, layer=0, head=0, device="cpu")
    assert [token.id for token in head.tokens[:3]].count(head.tokens[0].id) == 2
    code = "\n".join(code_cells(head_notebook(head, text))).replace("'tiny'", repr(str(folder)))
    assert_same_numbers(variables_after(completed_head(head, code)), head)


def test_the_notebook_of_a_gguf_file_reads_that_file() -> None:
    head = run_real_head(open_checkpoint(SMOLLM2, ()), "The cat sat.", layer=0, head=4, device="cpu")
    code = "\n".join(code_cells(head_notebook(head, "The cat sat.")))
    path = smollm2_file()
    right = completed_head(head, code).replace(f"CHECKPOINT = {head.checkpoint!r}", f"CHECKPOINT = {str(path)!r}")
    assert_same_numbers(variables_after(right), head)
    with pytest.raises(ForwardError, match="fewer tokens"):
        head_notebook(replace(head, arrays={**head.arrays, "input": np.zeros(MAX_CARRIED_BYTES, np.float32)}), "")


CLEAN = """
import json, sys
variables = {}
exec(compile(sys.stdin.read(), "notebook", "exec"), variables)
loaded = {name.partition(".")[0] for name in sys.modules}
print(json.dumps({"output": variables["O"].tolist(), "forbidden": sorted(loaded & {"app", "transformers"})}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "qwen3", "gpt2", "gpt_neox", "phi3", "gemma2"])
def test_a_clean_process_needs_torch_safetensors_and_tokenizers_alone(kind: str, tmp_path: Path) -> None:
    from tests.helpers.small_checkpoints import small_model  # loads transformers

    folder = write_checkpoint(tmp_path / "tiny")
    small_model(kind).save_pretrained(folder)
    head = run_real_head(open_checkpoint(str(folder), (tmp_path,)), TEXT, layer=1, head=3, device="cpu")
    code = "\n".join(code_cells(head_notebook(head, TEXT))).replace("'tiny'", repr(str(tmp_path / "tiny")))
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    others = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names
    assert others <= {"torch", "safetensors", "tokenizers", "huggingface_hub"}  # the last for a name on the Hub
    command = [sys.executable, "-I", "-c", CLEAN]
    run = subprocess.run(
        command,
        input=completed_head(head, code),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    np.testing.assert_allclose(np.array(result["output"]), head.arrays["output"], rtol=1e-5, atol=1e-5)
    assert result["forbidden"] == []
