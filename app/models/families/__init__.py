"""The families: one row for each model_type, with the names of its config fields and how it differs from the others.

A row states sizes in the language of `app.models.size_specs` ("num_key_value_heads = H": the field, and what its
absence means), flags (names that the conditions in layouts ask for, each with the config field that sets it), and a
layout. What an absent field means follows the family's config class in transformers 5. Sizes that every published
config states have no default, so that a config without them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.models.families.encoders import ENCODER_FAMILIES
from app.models.families.family import Family, Flag, RotaryRule, SoftcapRule
from app.models.families.gpt import GPT_FAMILIES
from app.models.families.llama import LLAMA_FAMILIES
from app.models.families.moe import MOE_FAMILIES
from app.models.families.multimodal import TEXT_PART_FAMILIES, TEXT_PART_FIELDS
from app.models.families.unsupported import REFUSED, SUPPORTED_VALUES

__all__ = [
    "FAMILIES",
    "REFUSED",
    "SUPPORTED_VALUES",
    "TEXT_PART_FAMILIES",
    "TEXT_PART_FIELDS",
    "Family",
    "Flag",
    "RotaryRule",
    "SoftcapRule",
]

# Every row by its model_type.
FAMILIES: Mapping[str, Family] = {**LLAMA_FAMILIES, **MOE_FAMILIES, **GPT_FAMILIES, **ENCODER_FAMILIES}
