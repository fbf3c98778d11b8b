"""The families: one row each, with the names of its config fields and how it differs from the others.

A row states sizes in the form `size_spec` reads ("num_key_value_heads = H": the field, and what its absence means),
flags (a name that conditions in the layouts ask for, and the config field that sets it), and a layout. What an absent
field means follows the family's config class in transformers 5; sizes that every published config states have no
default, so that a config without them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.models.families import encoders, gpt, llama
from app.models.families import moe as mixtures
from app.models.families.family import Family, Flag, Rope
from app.models.families.unsupported import ONLY, PART_FAMILIES, REFUSED, TEXT_PARTS

__all__ = ["FAMILIES", "ONLY", "PART_FAMILIES", "REFUSED", "TEXT_PARTS", "Family", "Flag", "Rope"]

FAMILIES: Mapping[str, Family] = {
    **llama.FAMILIES,
    **mixtures.FAMILIES,
    **gpt.FAMILIES,
    **encoders.FAMILIES,
}
