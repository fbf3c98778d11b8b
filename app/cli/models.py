"""The commands `models`, `shapes` and `parameters`: what a model is made of."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from app.exchange.hub import fetch_config, repository_name
from app.models.architecture import Architecture
from app.models.parameter_count import parameters_json
from app.models.read_config import build_architecture, read_config
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
    """Add `models`, `shapes MODEL… [--tokens N] [--decoder-tokens N]` and `parameters MODEL…`, all with --json."""
    commands.add("models", _list_models, _("List the models of the library."))
    shapes_command = commands.add(
        "shapes", _show_shapes, _("Print the shapes of every matrix in a head, a layer and the model.")
    )
    parameters = commands.add("parameters", _show_parameters, _("List and count a model’s parameters."))
    for command in (shapes_command, parameters):
        command.add_argument("models", metavar="MODEL_OR_CONFIG.json", nargs="+", help=_(MODEL_HELP))
    shapes_command.add_argument(
        "--tokens", help=_("number of input tokens (default 100, or as many as the model can take)")
    )
    shapes_command.add_argument("--decoder-tokens", help=_("number of decoder tokens, for an encoder-decoder model"))


def _list_models(parsed: argparse.Namespace) -> None:
    models = open_models().values()
    if parsed.json:
        print_json([{"key": m.key, "name": m.name, "family": m.architecture.family, "card": m.card} for m in models])
    else:
        print_table([(m.key, m.name, m.architecture.family, m.card) for m in models])


def _show_shapes(parsed: argparse.Namespace) -> None:
    tokens = optional_whole_number(parsed.tokens, "--tokens")
    decoder_tokens = optional_whole_number(parsed.decoder_tokens, "--decoder-tokens")
    for name in parsed.models:
        architecture = architecture_named(name)
        most = architecture.fixed_tokens or min(100, architecture.max_tokens)
        described = shapes(architecture, most if tokens is None else tokens, decoder_tokens)
        if parsed.json:
            print_json(described)
            continue
        heading = _("{model} ({family}), {tokens} tokens")
        print(heading.format(model=architecture.name, family=described["family"], tokens=described["tokens"]))
        print("  ".join(f"{symbol}={size}" for symbol, size in described["sizes"].items() if size is not None))
        for part, title in PART_TITLES.items():
            if shapes_of_part := described.get(part):
                print(f"\n{_(title)}")
                print_table([shape_row(key, shape) for key, shape in shapes_of_part.items() if isinstance(shape, list)])
        print()


def _show_parameters(parsed: argparse.Namespace) -> None:
    for name in parsed.models:
        architecture = architecture_named(name)
        count = parameters_json(architecture)
        if parsed.json:
            print_json(count)
            continue
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
            sums = ", ".join(f"{key} {run[key]:,}" for key in ("attention", "attention_norms", "mlp", "norms", "other"))
            layers = ngettext(
                "{count} layer of {total:,}: {parts}", "{count} layers of {total:,}: {parts}", run["count"]
            )
            print(layers.format(count=run["count"], total=run["total"], parts=sums))
        for key in ("embedding", "output_head", "other", "active", "total"):
            print(f"{key.replace('_', ' ')}: {count[key]:,}")
        print()


def shape_row(key: str, shape: list[int]) -> tuple[str, str]:
    """A tensor's key and its shape as text, rows × columns: (" queries", "100 × 128")."""
    return f"  {key}", " × ".join(map(str, shape))


def architecture_named(name: str) -> Architecture:
    """The model with this key in the library, at this path, or with this Hub name.

    Raises InputError for any other name and for bad settings, ConfigError and HubError.
    """
    models = open_models()
    if name in models:
        return models[name].architecture
    path = Path(name)
    if not os.path.isfile(path):  # also False for text that can't be a path, such as a very long one
        if repository_name(name) and not name.endswith(".json"):
            settings = read_settings()
            return build_architecture(fetch_config(name, settings.data_dir / "hub", allowed=settings.hub), name)
        problem = _("There is no model or file “{name}”. Models: {models}.")
        raise InputError(problem.format(name=name[:60], models=", ".join(models)))
    return read_config(read_file(path), path.parent.name if path.name == "config.json" else path.stem)
