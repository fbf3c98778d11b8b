"""The commands `models`, `shapes`, `parameters` and `run`: what a model is made of, and one head run in torch."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from app.exchange.hub import fetch_config, repository_name
from app.forward.devices import DEVICES
from app.forward.program import BYTES_BY_DTYPE, RUNNABLE_TOPICS
from app.forward.run import run_head
from app.models.architecture import Architecture
from app.models.parameter_count import parameters_json
from app.models.read_config import build_architecture, read_config
from app.topics.registry import possible_tokens
from app.topics.shapes_json import shapes
from app.translation import N_, ngettext
from app.translation import gettext as _

from .terminal import (
    Commands,
    InputError,
    open_models,
    optional_whole_number,
    print_json,
    print_table,
    read_file,
    read_settings,
    whole_number,
)

# What shapes_json describes a model in, in the order of printing.
PART_TITLES = {
    "head": N_("one head"),
    "layer": N_("one layer"),
    "decode": N_("one decoding step with a KV cache"),
    "cross": N_("cross-attention"),
    "model": N_("whole model"),
}
MODEL_HELP = N_("key of a model, path of a config.json, or org/name on the Hugging Face Hub")


def add_to(commands: Commands) -> None:
    """Add the commands `models`, `shapes`, `parameters` and `run`, with their options; `run` takes one model."""
    commands.add("models", _list_models, _("List the models of the library."))
    shapes_command = commands.add(
        "shapes", _show_shapes, _("Print the shapes of every matrix in a head, a layer and the model.")
    )
    parameters = commands.add("parameters", _show_parameters, _("List and count a model’s parameters."))
    run = commands.add("run", _run_head, _("Run a head or a layer in PyTorch and print the shapes of its tensors."))
    for command in (shapes_command, parameters):
        command.add_argument("models", metavar="MODEL_OR_CONFIG.json", nargs="+", help=_(MODEL_HELP))
    run.add_argument("model", metavar="MODEL_OR_CONFIG.json", help=_(MODEL_HELP))
    for command in (shapes_command, run):
        command.add_argument(
            "--tokens", help=_("number of input tokens (default 100, or as many as the model can take)")
        )
        command.add_argument("--decoder-tokens", help=_("number of decoder tokens, for an encoder-decoder model"))
    run.add_argument(
        "--topic", choices=RUNNABLE_TOPICS, default=RUNNABLE_TOPICS[0], help=_("what to run (default single-head)")
    )
    run.add_argument("--device", choices=DEVICES, help=_("where to run (default: CUDA, else MPS, else CPU)"))
    run.add_argument("--dtype", choices=BYTES_BY_DTYPE, default="float32", help=_("number format (default float32)"))
    run.add_argument(
        "--head",
        default="0",
        help=_("which query head, counted from 0; for a layer, the one in the picture (default 0)"),
    )


def _list_models(parsed: argparse.Namespace) -> None:
    """Print key, name, family and model card of every model of the library, as a table or with --json as a list."""
    models = open_models().values()
    if parsed.json:
        print_json([{"key": m.key, "name": m.name, "family": m.architecture.family, "card": m.card} for m in models])
    else:
        print_table([(m.key, m.name, m.architecture.family, m.card) for m in models])


def _show_shapes(parsed: argparse.Namespace) -> None:
    """Print the shapes of each given model for inputs of --tokens: as tables, or one line of JSON for each model.

    Raises InputError, ConfigError, HubError and TokensError at the first model with a problem; those before it are
    printed.
    """
    tokens = optional_whole_number(parsed.tokens, "--tokens")
    decoder_tokens = optional_whole_number(parsed.decoder_tokens, "--decoder-tokens")
    for name in parsed.models:
        architecture = _architecture(name)
        most = architecture.fixed_tokens or min(100, architecture.max_tokens)
        described = shapes(architecture, most if tokens is None else tokens, decoder_tokens)
        if parsed.json:
            print_json(described)
        else:
            _print_shapes(architecture, described)


def _print_shapes(architecture: Architecture, described: dict[str, Any]) -> None:
    """Print a heading, the sizes that the model has, then one titled table of shapes for each part that it has.

    `described` is the result of `shapes_json.shapes`. The parts are one head, one layer, a decode step, cross attention
    and the whole model, in this order.
    """
    heading = _("{model} ({family}), {tokens} tokens")
    print(heading.format(model=architecture.name, family=described["family"], tokens=described["tokens"]))
    print("  ".join(f"{symbol}={size}" for symbol, size in described["sizes"].items() if size is not None))
    for part, title in PART_TITLES.items():
        if shapes_of_part := described.get(part):
            print(f"\n{_(title)}")
            print_table([_shape_row(key, shape) for key, shape in shapes_of_part.items() if isinstance(shape, list)])
    print()


def _show_parameters(parsed: argparse.Namespace) -> None:
    """Print the parameter tensors and their sums for each given model: as tables, or one line of JSON for each."""
    for name in parsed.models:
        architecture = _architecture(name)
        if parsed.json:
            print_json(parameters_json(architecture))
        else:
            _print_parameters(architecture, parameters_json(architecture))


def _print_parameters(architecture: Architecture, count: dict[str, Any]) -> None:
    """Print a table of the parameter tensors, then a line of sums for each run of equal layers, then the model's sums.

    `count` is the result of `parameters_json`. The model's sums are embedding, output head, other, active and total.
    """
    heading = _("{model} ({family}), count as {model_class}")
    words = {"model": architecture.name, "family": architecture.family, "model_class": architecture.model_class}
    print(heading.format(**words) + "\n")
    print_table(
        [(_("tensor"), _("symbols"), _("shape"), _("parameters"), _("copies"))]
        + [
            (t["name"], " × ".join(t["symbols"]), " × ".join(map(str, t["shape"])), f"{t['count']:,}", t["layers"])
            for t in count["tensors"]
        ]
    )
    print()
    for run in count["layers"]:
        buckets = ", ".join(f"{key} {run[key]:,}" for key in ("attention", "attention_norms", "mlp", "norms", "other"))
        layers = ngettext("{count} layer of {total:,}: {parts}", "{count} layers of {total:,}: {parts}", run["count"])
        print(layers.format(count=run["count"], total=run["total"], parts=buckets))
    for key in ("embedding", "output_head", "other", "active", "total"):
        print(f"{key.replace('_', ' ')}: {count[key]:,}")
    print()


def _run_head(parsed: argparse.Namespace) -> None:
    """Run one head or layer in torch, as --topic says, and print its shapes and whether the table of tensors agrees.

    With --json, one line with everything that `run_head` reports is printed instead. Raises InputError for a --head,
    --tokens or --decoder-tokens that is no whole number, and ForwardError for a head or layer that cannot be run.
    """
    head = whole_number(parsed.head, "--head")
    decoder_tokens = optional_whole_number(parsed.decoder_tokens, "--decoder-tokens")
    options = {"topic": parsed.topic, "head": head, "device": parsed.device, "dtype": parsed.dtype}
    architecture = _architecture(parsed.model)
    tokens = optional_whole_number(parsed.tokens, "--tokens")
    tokens = possible_tokens(parsed.topic, architecture, 100) if tokens is None else tokens
    run = run_head(architecture, tokens, decoder_tokens=decoder_tokens, **options)
    if parsed.json:
        print_json(run.as_dict())
        return
    heading = _("{model}, {tokens} tokens, on {device_name} in {dtype}")
    print(heading.format(model=run.model, tokens=run.tokens, device_name=run.device_name, dtype=run.dtype))
    print_table([_shape_row(key, shape) for key, shape in run.shapes.items()])
    differences = _("The answer key and PyTorch differ: {tensors}").format(tensors=run.disagreements)
    print(_("The answer key and PyTorch agree.") if run.agrees else differences)


def _shape_row(key: str, shape: list[int]) -> tuple[str, str]:
    """Return a tensor's key and its shape as text, rows × columns: ("  queries", "100 × 128")."""
    return f"  {key}", " × ".join(map(str, shape))


def _architecture(name: str) -> Architecture:
    """Return the library's model with this key, else that of the config.json at this path, else of this Hub name.

    A model of a file is called after it, or after its folder if it is a config.json. Only org/name without ".json" at
    its end is looked up on the Hub, if the settings allow it. Raises InputError for any other name without a file and
    for bad settings, ConfigError and HubError.
    """
    models = open_models()
    if name in models:
        return models[name].architecture
    path = Path(name)
    if not _is_file(path):
        if repository_name(name) and not name.endswith(".json"):
            settings = read_settings()
            return build_architecture(fetch_config(name, settings.data_dir / "hub", allowed=settings.hub), name)
        problem = _("There is no model or file “{name}”. Models: {models}.")
        raise InputError(problem.format(name=name[:60], models=", ".join(models)))
    return read_config(read_file(path), path.parent.name if path.name == "config.json" else path.stem)


def _is_file(path: Path) -> bool:
    """Whether the path leads to a file; False also for a text that cannot be a path, such as a very long one."""
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long for any file
        return False
