"""How many bytes a head's program moves between memory and processor, counted without running it on numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from app.forward.program import program
from app.models.architecture import Architecture


def bytes_moved(architecture: Architecture, tokens: int, dtype: str) -> int:
    """The bytes that a head's timed lines read and write; each operation reads its operands once."""
    lines = program(architecture, tokens, dtype=dtype, device="meta")
    variables: dict[str, Any] = {}
    for line in lines:
        if not line.timed:
            exec(line.code, variables)  # noqa: S102 - the program's own lines
    with _MovedBytes() as count:  # type: ignore[no-untyped-call]
        for line in lines:
            if line.timed:
                exec(line.code, variables)  # noqa: S102
    return int(count.bytes)


class _MovedBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the bytes of each operation's operands and results."""

    bytes: int = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation; count it unless its result is a view."""
        result = function(*args, **(kwargs or {}))
        if not function.is_view:
            operands = [part for part in args for part in (part if isinstance(part, list | tuple) else (part,))]
            self.bytes += sum(
                part.untyped_storage().nbytes() if 0 in part.stride() else part.numel() * part.element_size()
                for part in (*operands, result)
                if isinstance(part, torch.Tensor)
            )
        return result
