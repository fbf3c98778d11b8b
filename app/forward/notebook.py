"""A run as a Jupyter notebook: the lines that ran, with the shapes that a sheet asks as assertions to complete.

After the line that makes an asked tensor comes `assert Q.shape == (..., ...)`, which fails until each `...` is replaced
by the right number. No line shows a shape. Equal runs give equal bytes.
"""

from __future__ import annotations

import base64
import re
import textwrap
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from app.forward.lines import ForwardError, ProgramLine
from app.forward.run import HeadRun
from app.translation import gettext as _

if TYPE_CHECKING:
    from app.checkpoints.checkpoint import StoredPart
    from app.forward.real_head import RealHead

NOTEBOOK_TYPE = "application/x-ipynb+json"
MAX_CARRIED_BYTES = 32 * 2**20  # with more, Jupyter opens the file slowly
CHECKED_NUMBERS = 8  # the last ones of the weights' last row, and of the output
TOLERANCE: Mapping[str, float] = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}
Cell = dict[str, Any]

# Reads one tensor from a folder of safetensors, a single file, or a repository on the Hub.
_READER = '''
def path_of(name):
    """The path of a file of the checkpoint; one on the Hub is downloaded first."""
    place = Path(CHECKPOINT)
    if place.is_dir():
        return place / name
    if place.is_file():
        return place if name.endswith(".safetensors") else place.parent / name
    from huggingface_hub import hf_hub_download  # installed with tokenizers
    return Path(hf_hub_download(CHECKPOINT, name, revision=REVISION))

def stored(name):
    """A tensor as it is stored; only the slice that is taken of it is read."""
    file = "model.safetensors"
    try:
        file = json.loads(path_of(file + ".index.json").read_text())["weight_map"][name]
    except OSError:
        pass  # no index: one file holds all tensors
    return safe_open(path_of(file), "pt").get_slice(name)
'''.strip()


# Reads one tensor of a GGUF file, dequantized.
_GGUF_READER = '''
in_gguf = {tensor.name: tensor for tensor in GGUFReader(CHECKPOINT).tensors}

def stored(name):
    """A tensor in float32, dequantized."""
    return torch.from_numpy(dequantize(in_gguf[name].data, in_gguf[name].tensor_type))
'''.strip()


def run_notebook(run: HeadRun, asked: Collection[str] | None = None) -> bytes:
    """The notebook of a run with random numbers, as an .ipynb file; it only needs torch and draws the same numbers.

    `asked` are the tensors to assert, by default all.
    """
    title = _("An attention layer of {model}, {count} tokens")
    if run.head is not None:
        title = _("Head {head} of {model}, {count} tokens")
    title = title.format(head=run.head, model=_escaped(run.model), count=run.tokens)
    about = _("The input and the weights are random numbers (seed {seed}). Only torch is needed.").format(seed=run.seed)
    return _notebook_bytes([_introduction(title, [about], run.device), *_program_cells(run.lines, asked)])


def head_notebook(head: RealHead, text: str) -> bytes:
    """The .ipynb of a run with stored weights on the tokens of `text`; its last cell compares it with the run.

    Raises ForwardError if the input, which it contains, takes more than MAX_CARRIED_BYTES.
    """
    if head.arrays["input"].nbytes > MAX_CARRIED_BYTES:
        raise ForwardError(_("The input of this head is too large for a notebook. Choose fewer tokens."))
    first = next(number for number, line in enumerate(head.lines) if "tensors[" in line.code)
    move = ProgramLine("tensors = {name: tensor.to(device, dtype) for name, tensor in tensors.items()}")
    return _notebook_bytes(
        [
            *_opening_cells(head),
            _markdown("## " + _("The tokens")),
            _code(_token_rows(head, text)),
            _markdown("## " + _("What the run gave: {names}").format(names="`X`")),
            _code(_input_rows(head), {"jupyter": {"source_hidden": True}}),
            _markdown("## " + _("As stored, and as used: x · W")),
            *_stored_cells(head),
            *_program_cells((*head.lines[:first], move, *head.lines[first:]), None),
            *_comparison_cells(head),
        ]
    )


def _introduction(title: str, about: Iterable[str], device: str) -> Cell:
    task = _(
        "Replace each `...` in an assertion by a number, and run the cells from top to bottom. A cell stops with an "
        "`AssertionError` until the shape in it is right."
    )
    paragraphs = [f"# {title}", *about, task]
    if device in ("cuda", "mps"):
        paragraphs.append(_('It ran on "{device}". Without such a GPU, write `device = "cpu"`.').format(device=device))
    return _markdown("\n\n".join(paragraphs))


def _opening_cells(head: RealHead) -> Iterator[Cell]:
    title = _("Head {head} of layer {layer} of {model}, {count} tokens")
    weights = _(
        "The weights are those of the checkpoint {model}. `CHECKPOINT` is a folder, a file or a name on the Hugging "
        "Face Hub. torch, safetensors and tokenizers are needed."
    )
    imports = ["import json", "from pathlib import Path", "", "import torch"]
    imports += ["from safetensors import safe_open", "from tokenizers import Tokenizer"]
    commit = head.revision if re.fullmatch("[0-9a-f]{40}", head.revision) else None
    where = "a folder or a file of safetensors, or a name on the Hugging Face Hub"
    reader = [f"REVISION = {commit!r}  # on the Hub", "", _READER]
    if head.is_gguf:
        weights = _(
            "The weights are those of the GGUF file {model}. `CHECKPOINT` is its path. torch and gguf are needed."
        )
        imports = ["import torch", "from gguf import GGUFReader, dequantize"]
        where, reader = "the path of the GGUF file", ["", _GGUF_READER]
    origin = _("The notebook also contains the input `X`: the embeddings of the tokens after the norm of layer 0.")
    if head.layer:
        origin = _(
            "The notebook also contains the input `X`: the tokens after the layers below and the norm of layer {layer}."
        )
    model = _escaped(head.checkpoint)
    numbers = {"head": head.head, "layer": head.layer, "model": model, "count": len(head.tokens)}
    about = [weights.format(**numbers), origin.format(**numbers)]
    yield _introduction(title.format(**numbers), about, head.device)
    yield _code(["from base64 import b64decode", "from zlib import decompress", *imports])
    yield _code([f"CHECKPOINT = {head.checkpoint!r}  # {where}", *reader])


def _token_rows(head: RealHead, text: str) -> list[str]:
    ids, names = [token.id for token in head.tokens], [token.text for token in head.tokens]
    rows = [f"text = {text!r}", f"tokens = {names!r}", f"ids = {ids!r}"]
    if not head.is_gguf:
        rows += [
            'tokenizer = Tokenizer.from_file(str(path_of("tokenizer.json")))',
            "tokenizer.no_truncation()",
            "tokenizer.no_padding()",
            "assert tokenizer.encode(text).ids == ids  # as in the run",
        ]
    return [*rows, "assert len(ids) == ..."]


def _input_rows(head: RealHead) -> list[str]:
    packed = base64.b64encode(zlib.compress(head.arrays["input"].astype("<f4").tobytes(), 6)).decode()
    numbers = ['numbers = decompress(b64decode("""', *textwrap.wrap(packed, 120), '"""))']
    return [*numbers, 'tensors = {"X": torch.frombuffer(bytearray(numbers), dtype=torch.float32).view(len(ids), -1)}']


def _stored_cells(head: RealHead) -> Iterator[Cell]:
    used = {name for line in head.lines for name in line.names}
    return (_code(_stored_rows(head, part)) for part in head.parts if part.variable in used)


def _stored_rows(head: RealHead, part: StoredPart) -> list[str]:
    slices = [":"] * len(part.stored.shape)
    if part.length < part.stored.shape[part.dim]:
        slices[part.dim] = f"{part.start}:{part.start + part.length}"
    while len(slices) > 1 and slices[-1] == ":":
        slices.pop()
    code = f'tensors["{part.variable}"] = in_file[{", ".join(slices)}].float()'
    if "permuted" in part.notes:  # in the file, the rows of both halves of a head alternate
        code += f".unflatten(0, (-1, {head.architecture.d_h // 2}, 2)).transpose(1, 2).flatten(0, 2)"
    code += ".T" * part.is_turned + " + 1" * ("plus-one" in part.notes)
    sides = ", ".join(["..."] * len(part.stored.shape))
    shape = f"shape == ({sides},)" if head.is_gguf else f"get_shape() == [{sides}]"
    return [f"in_file = stored({part.stored.name!r})", f"assert in_file.{shape}", code]


def _program_cells(lines: Iterable[ProgramLine], asked: Collection[str] | None) -> Iterator[Cell]:
    rows, done = list[str](), set[str]()
    for line in lines:
        if not line.code:
            if rows:
                yield _code(rows)
            rows = []
            yield _markdown(f"## {line.comment}")
            continue
        rows.append(ProgramLine(line.code, comment=line.comment).text)  # without its shapes
        if line.makes and line.makes not in done and (asked is None or line.makes in asked):
            done.add(line.makes)
            sides = ", ".join(["..."] * len(line.shapes[0])) + "," * (len(line.shapes[0]) == 1)
            yield _code([*rows, f"assert {line.names[0]}.shape == ({sides})"])
            rows = []
    if rows:
        yield _code(rows)


def _comparison_cells(head: RealHead) -> Iterator[Cell]:
    variables = {line.makes: line.names[0] for line in head.lines if line.makes}
    yield _markdown("## " + _("What the last token attends to"))
    yield _code(
        [
            f"shares = sorted(zip({variables['weights']}[-1].tolist(), tokens), reverse=True)",
            'print(tokens[-1], "→", ", ".join(f"{token} {share:.0%}" for share, token in shares[:5]))',
        ]
    )
    yield _markdown("## " + _("The same numbers as in the run"))
    rows, tolerance = [], TOLERANCE[head.dtype]
    for key in ("weights", "output"):
        numbers = ", ".join(f"{number:.7g}" for number in head.arrays[key][-1, -CHECKED_NUMBERS:])
        mine = f"{variables[key]}[-1, -{CHECKED_NUMBERS}:].cpu().float()"
        rows.append(
            f"torch.testing.assert_close({mine}, torch.tensor([{numbers}]).float(), atol={tolerance}, rtol={tolerance})"
        )
    yield _code(rows)


def _markdown(source: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(rows: Iterable[str], metadata: Mapping[str, Any] | None = None) -> Cell:
    cell = {"cell_type": "code", "execution_count": None, "metadata": dict(metadata or {}), "outputs": list[Any]()}
    return {**cell, "source": "\n".join(rows)}


def _escaped(name: str) -> str:
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(name.split()))


def _notebook_bytes(cells: Iterable[Cell]) -> bytes:
    import nbformat  # it takes 0.2 s to load

    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    numbered = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells, 1)]
    content = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    notebook = nbformat.from_dict(content)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)).encode()  # type: ignore[no-untyped-call]
