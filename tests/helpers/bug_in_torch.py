"""Programs with a bug in the installed torch, which the app itself doesn't need."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from app.bugs.case import BugCase

Outcome = tuple[list[list[tuple[str, tuple[int, ...]]]], str, str, int]  # shapes by line, error, message, line


def torch_line(line: str, variables: dict[str, Any]) -> list[str]:
    """Run one line in torch; return the names that it assigns."""
    names = line.partition(" = ")[0].split(", ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(line, {"torch": torch, "F": torch.nn.functional, "float": float}, variables)  # noqa: S102 - the bank's own line
    return names


def outcome_in_torch(case: BugCase) -> Outcome:
    """What the lines do in torch with the model's sizes."""
    variables: dict[str, Any] = dict(case.sizes)
    for name, shape in case.inputs:
        dtype = torch.bool if name in ("padding", "mask") else torch.int64 if name == "position" else torch.float32
        variables[name] = torch.empty([side.size(case.sizes) for side in shape], dtype=dtype, device="meta")
    made = list[list[tuple[str, tuple[int, ...]]]]()
    for number, line in enumerate(case.lines, 1):
        try:
            names = torch_line(line, variables)
        except (RuntimeError, IndexError, ValueError, TypeError):
            on_cpu = {
                name: torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                if isinstance(value, torch.Tensor)
                else value
                for name, value in variables.items()
            }
            with pytest.raises(Exception) as caught:  # noqa: PT011 - compared below
                torch_line(line, on_cpu)
            return made, type(caught.value).__name__, str(caught.value), number
        made.append([(name, tuple(variables[name].shape)) for name in names])
    return made, "", "", 0
