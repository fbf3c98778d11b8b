"""The command `run`: a head or layer in torch, with random numbers, or with a checkpoint’s weights and a text."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from app.checkpoints.checkpoint import Checkpoint, StoredPart
from app.checkpoints.files import SMOLLM2, open_checkpoint
from app.checkpoints.hub import fetch_checkpoint
from app.exchange.hub import repository_name
from app.forward.program import BYTES_BY_DTYPE, DEVICES, RUNNABLE_TOPICS
from app.forward.real_head import HiddenStates, RealHead, likelihood, run_real_head, save_npz
from app.forward.run import run_head
from app.topics.registry import possible_tokens
from app.translation import N_
from app.translation import gettext as _

from .models import MODEL_HELP, architecture_named, shape_row
from .terminal import Commands, InputError, optional_whole_number, print_json, print_table, read_settings, whole_number

ROWS_PRINTED = 12  # the last queries of the text, whose strongest keys are printed
KEYS_PRINTED = 3
# What a stored part's note says about it.
PART_NOTES = {
    "permuted": N_("rows put back into order"),
    "fused": N_("of queries, keys and values"),
    "shared": N_("shared by several heads"),
    "plus-one": N_("1 is added"),
}


def add_to(commands: Commands) -> None:
    """Add the command `run`: a model with random numbers, or a checkpoint's --weights over --text."""
    run = commands.add("run", _run, _("Run a head or a layer in PyTorch and print the shapes of its tensors."))
    run.add_argument("model", metavar="MODEL_OR_CONFIG.json", nargs="?", help=_(MODEL_HELP))
    run.add_argument("--tokens", help=_("number of input tokens (default 100, or as many as the model can take)"))
    run.add_argument("--decoder-tokens", help=_("number of decoder tokens, for an encoder-decoder model"))
    run.add_argument("--topic", choices=RUNNABLE_TOPICS, help=_("what to run (default single-head)"))
    run.add_argument("--device", choices=DEVICES, help=_("where to run (default: CUDA, else MPS, else CPU)"))
    run.add_argument("--dtype", choices=BYTES_BY_DTYPE, default="float32", help=_("number format (default float32)"))
    run.add_argument(
        "--head",
        default="0",
        help=_("which query head, counted from 0; for a layer, the one in the picture (default 0)"),
    )
    weights = _("in place of a model: file or folder of a checkpoint, org/name on the Hugging Face Hub, or smollm2")
    run.add_argument("--weights", metavar="PATH_OR_HUB_NAME", help=weights)
    run.add_argument("--text", help=_("with --weights: the text whose tokens the head reads"))
    run.add_argument("--layer", help=_("with --weights: which layer, counted from 0 (default 0)"))
    run.add_argument(
        "--save", type=Path, metavar="FILE.npz", help=_("with --weights: save the tokens’ ids and the head’s tensors")
    )
    run.add_argument(
        "--likelihood",
        action="store_true",
        help=_("with --weights: add the text’s mean negative log-likelihood through the whole model"),
    )


def _run(parsed: argparse.Namespace) -> None:
    of_weights = {"--text": parsed.text, "--layer": parsed.layer, "--save": parsed.save}
    of_weights["--likelihood"] = parsed.likelihood or None
    of_model = {"--tokens": parsed.tokens, "--decoder-tokens": parsed.decoder_tokens, "--topic": parsed.topic}
    if (parsed.model is None) == (parsed.weights is None):
        raise InputError(_("Type a model, or --weights with a checkpoint."))
    unused = [name for name, typed in (of_weights if parsed.model else of_model).items() if typed is not None]
    if unused:
        problem = _("{option} cannot be used with --weights.") if parsed.weights else _("{option} needs --weights.")
        raise InputError(problem.format(option=unused[0]))
    if parsed.weights is None:
        _run_random_head(parsed)
    else:
        _run_real_head(parsed)


def _run_random_head(parsed: argparse.Namespace) -> None:
    head = whole_number(parsed.head, "--head")
    decoder_tokens = optional_whole_number(parsed.decoder_tokens, "--decoder-tokens")
    topic = parsed.topic or RUNNABLE_TOPICS[0]
    options = {"topic": topic, "head": head, "device": parsed.device, "dtype": parsed.dtype}
    architecture = architecture_named(parsed.model)
    tokens = optional_whole_number(parsed.tokens, "--tokens")
    tokens = possible_tokens(topic, architecture, 100) if tokens is None else tokens
    run = run_head(architecture, tokens, decoder_tokens=decoder_tokens, **options)
    if parsed.json:
        print_json(run.as_dict())
        return
    heading = _("{model}, {tokens} tokens, on {device_name} in {dtype}")
    print(heading.format(model=run.model, tokens=run.tokens, device_name=run.device_name, dtype=run.dtype))
    print_table([shape_row(key, shape) for key, shape in run.shapes.items()])
    differences = _("The answer key and PyTorch differ: {tensors}").format(tensors=run.disagreements)
    print(_("The answer key and PyTorch agree.") if run.agrees else differences)


def _run_real_head(parsed: argparse.Namespace) -> None:
    if parsed.text is None:
        raise InputError(_("--weights needs --text with a sentence."))
    layer = whole_number(parsed.layer or "0", "--layer")
    head = whole_number(parsed.head, "--head")
    checkpoint = _open(parsed.weights, None if parsed.likelihood else layer)
    states, report = HiddenStates(), _progress(_("Layer {done} of {total}"))
    where = {"layer": layer, "head": head, "device": parsed.device, "dtype": parsed.dtype}
    real_head = run_real_head(checkpoint, parsed.text, **where, states=states, report=report)
    mean = None
    if parsed.likelihood:
        as_before = {"device": real_head.device, "dtype": real_head.dtype}
        mean = likelihood(checkpoint, parsed.text, **as_before, states=states, report=report)
    if parsed.save:
        try:
            with parsed.save.open("wb") as file:
                save_npz(real_head, file)
        except OSError as error:
            problem = _("{file} cannot be written: {reason}.")
            raise InputError(problem.format(file=str(parsed.save)[:60], reason=error.strerror)) from None
    if parsed.json:
        print_json(real_head.as_dict() | ({"likelihood": mean} if parsed.likelihood else {}))
        return
    _print_real_head(real_head)
    if mean is not None:
        print("\n" + _("Mean negative log-likelihood of the text: {mean:.4f} per token").format(mean=mean))


def _open(source: str, layer: int | None) -> Checkpoint:
    path, hub_name, settings = Path(source), repository_name(source), read_settings()
    if source == SMOLLM2 or os.path.exists(path):  # False for text that can't be a path
        return open_checkpoint(source, [Path(path.absolute().anchor)])
    if hub_name is None or not settings.hub:
        raise InputError(_("There is no file or folder “{name}”.").format(name=source[-60:]))
    cache = settings.data_dir / "weights"
    fetched = fetch_checkpoint(hub_name, cache, layer=layer, report=_progress(_("Fetched {done:,} of {total:,} bytes")))
    return open_checkpoint(fetched, [cache])


def _progress(sentence: str) -> Callable[[int, int], None]:
    def report(done: int, total: int) -> None:
        if total and sys.stderr.isatty():
            end = "\n" if done >= total else ""
            print(f"\r{sentence.format(done=done, total=total)}", end=end, file=sys.stderr, flush=True)

    return report


def _print_real_head(real_head: RealHead) -> None:
    heading = _("{model}, layer {layer}, head {head} (key/value head {shared})")
    numbers = {"layer": real_head.layer, "head": real_head.head, "shared": real_head.kv_head}
    print(heading.format(model=real_head.checkpoint, **numbers))
    device = _("{tokens} tokens, on {device_name} in {dtype}")
    print(device.format(tokens=len(real_head.tokens), device_name=real_head.device_name, dtype=real_head.dtype))
    if real_head.is_quantized:
        print(_("The file’s weights are quantized: they are rounded to few bits each."))
    print("\n" + "  ".join(token.text for token in real_head.tokens) + "\n")
    used = {line.names[0]: line.shapes[0] for line in real_head.lines if line.makes in line.names}
    columns = (_("parameter"), _("in the file"), _("stored"), _("type"), _("this head’s"), _("used"))
    print_table([columns, *(_part_row(part, used.get(part.variable, ())) for part in real_head.parts)])
    print()
    print_table([shape_row(key, list(array.shape)) for key, array in real_head.arrays.items()])
    print("\n" + _("Each token’s strongest keys:"))
    print_table(list(_strongest_rows(real_head)))


def _part_row(part: StoredPart, used: tuple[int, ...]) -> tuple[str, ...]:
    last, is_whole = part.start + part.length - 1, part.length == part.stored.shape[part.dim]
    kind = _("columns {first} to {last}") if part.dim else _("rows {first} to {last}")
    if len(part.stored.shape) == 1:
        kind = _("numbers {first} to {last}")
    which = _("all") if is_whole else kind.format(first=part.start, last=last)
    notes = [_(PART_NOTES[note]) for note in part.notes]
    slices = ", ".join([which, *notes] + [_("transposed")] * part.is_turned)
    stored = " × ".join(map(str, part.stored.shape))
    in_use = " × ".join(map(str, used or (part.length,)))
    return f"  {part.variable}", part.stored.name, stored, part.stored.dtype, slices, in_use


def _strongest_rows(real_head: RealHead) -> Iterator[tuple[str, str]]:
    tokens = [token.text for token in real_head.tokens]

    def named(key: int) -> str:
        return f"{tokens[key]} ({key + 1})" if tokens.count(tokens[key]) > 1 else tokens[key]

    for row in range(max(0, len(tokens) - ROWS_PRINTED), len(tokens)):
        keys = real_head.strongest_keys(row, KEYS_PRINTED)
        yield f"  {row + 1} {tokens[row]}", ", ".join(f"{named(key)} {weight:.0%}" for key, weight in keys)
