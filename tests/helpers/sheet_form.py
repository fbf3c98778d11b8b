"""The form of the LLaMA 7B sheet on the practice page, as a browser sends it."""

from __future__ import annotations

from tests.helpers.answer_keys import KEY

LLAMA_FORM = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}


def filled(**changes: str) -> dict[str, str]:
    """The form of the LLaMA sheet with every box right, except for the changes ('__' means a dot)."""
    return {**LLAMA_FORM, **KEY, **{name.replace("__", "."): value for name, value in changes.items()}}
