"""The form of the sheet LLaMA 7B on the practice page, as a browser sends it."""

from __future__ import annotations

from tests.helpers.answer_keys import KEY

LLAMA_FORM = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}


def filled(**changes: str) -> dict[str, str]:
    """The form of the LLaMA sheet with every box right, but for the changes ('__' stands for the dot)."""
    return {**LLAMA_FORM, **KEY, **{name.replace("__", "."): value for name, value in changes.items()}}
