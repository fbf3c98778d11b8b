"""The families: one row per model_type, with the names of its config fields and its differences.

A row states sizes in the language of `app.models.size_specs` ("num_key_value_heads = H": the field, and what its
absence means), flags (names for the conditions in layouts, each with the config field that sets it), and a layout.
Defaults are those of the family's config class in transformers 5. Sizes that every published config states have no
default, so a config without them is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.models.families.encoders import ENCODER_FAMILIES
from app.models.families.family import Family
from app.models.families.gpt import GPT_FAMILIES
from app.models.families.llama import LLAMA_FAMILIES
from app.models.families.moe import MOE_FAMILIES
from app.models.parameter_specs import NEVER
from app.models.size_specs import parse_size_spec

# Every row by its model_type.
FAMILIES: Mapping[str, Family] = {**LLAMA_FAMILIES, **MOE_FAMILIES, **GPT_FAMILIES, **ENCODER_FAMILIES}
# The families that a refusal names as examples.
FAMOUS = ("llama", "mistral", "qwen3", "gemma3_text", "phi3", "deepseek_v3", "gpt2", "bert", "t5", "vit")
# The flags that no row sets: the LM head is tied; a layer is the first, has experts or cross-attention; the first layer
# has experts; the embedding is narrower than the model.
_DERIVED_FLAGS = {"tied", "first", "moe", "cross", "first_moe", "narrow_embedding", NEVER}
# The flags used while reading a config, besides the conditions of rows and layouts.
_FLAGS_READ = {"q", "k", "v", "o", "qk_norm", "decoder", "bidirectional", "temperature"}


def _conditions(family: Family) -> Iterator[str]:
    layout = family.layout
    yield from (layout.gated, family.position_table_when)
    yield from (*family.position_bias, *family.norm_placement, *family.not_modelled)
    yield from (flag.default for flag in family.flags.values() if isinstance(flag.default, str))
    if family.rotary:
        yield from (family.rotary.when, family.rotary.adjacent)
    for specs in family.sizes.values():
        yield from (parse_size_spec(spec).condition for spec in ([specs] if isinstance(specs, str) else specs))
    in_layers = (spec for stack in layout.stacks for spec in stack.parameters)
    on_top = (spec for task_head in layout.task_heads.values() for spec in task_head.parameters)
    yield from (spec.when for spec in (*layout.outside_layers, *in_layers, *on_top))


def check_flags(families: Mapping[str, Family]) -> None:
    """Raise ValueError for a flag that a family asks for but never sets, or sets but never asks for."""
    words = {name: " ".join(_conditions(family)).split() for name, family in families.items()}
    asked = {name: {word.removeprefix("!") for word in of_family} for name, of_family in words.items()}
    set_by = {
        name: {*" ".join(family.flags).split()}.union(*(head.flags for head in family.layout.task_heads.values()))
        for name, family in families.items()
    }
    known, used = _DERIVED_FLAGS.union(*set_by.values()), _FLAGS_READ.union(*asked.values())
    for name in families:
        if misspelt := (asked[name] - known) | (set_by[name] - used):
            raise ValueError(f"{name} has flags that nothing sets, or that nothing asks for: {sorted(misspelt)}")


check_flags(FAMILIES)
