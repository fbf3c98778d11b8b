"""The four lessons: which worksheets each has, in the recommended order.

All are open. A lesson takes about 20 minutes: three or four sheets in a row, then a bug hunt; somebody who knows it
already tries its harder sheet. The order has a reason: a layer is many heads, generating is a layer with a cache, and
the whole model is all of its layers.

>>> [lesson.key for lesson in LESSONS]
['head', 'layer', 'generating', 'model']
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.sheets.library import Library
from app.sheets.worksheet import Worksheet
from app.translation import N_


@dataclass(frozen=True)
class Lesson:
    """One lesson: its sheets in a row, a bug hunt and a harder sheet ("" for none), and more on the same things."""

    key: str
    title: str
    line: str
    sheets: tuple[str, ...]
    hunt: str = ""
    harder: str = ""
    more: tuple[str, ...] = ()

    @property
    def worksheets(self) -> tuple[str, ...]:
        return (*self.sheets, *filter(None, (self.hunt, self.harder)), *self.more)


LESSONS = (
    Lesson(
        "head",
        N_("One head"),
        N_("Q, K, V, scores, weights, and back."),
        ("first-steps", "llama-7b", "softmax-of-a-model", "it-attends-smollm2"),
        hunt="bug-one-head",
        harder="head-parameters-gpt2",
        more=("qwen2.5-0.5b", "bidirectional-bert-base", "bidirectional-vit-base", "bidirectional-whisper-tiny"),
    ),
    Lesson(
        "layer",
        N_("A layer"),
        N_("Heads as a dimension, grouped queries, a batch."),
        ("layer-mistral-7b", "three-dimensions-llama-7b", "four-dimensions-gpt2"),
        hunt="bug-layer",
        harder="index-gpt2",
        more=("same-shapes-gpt2", "broadcasting-gpt2", "rotary-mistral-7b", "latent-deepseek-v2-lite"),
    ),
    Lesson(
        "generating",
        N_("Generating"),
        N_("KV cache, decoding, costs."),
        ("decode-gpt2", "cache-qwen3-0.6b", "costs-llama-7b"),
        hunt="bug-decoding",
        harder="growth-llama-7b",
        more=(
            "decode-phi-3-mini-4k", "cache-whisper-tiny", "cross-bart-base", "model-costs-llama-3.2-1b",
            "model-costs-mixtral-8x7b",
        ),
    ),
    Lesson(
        "model",
        N_("The whole model"),
        N_("Parameters, files, logits, loss."),
        ("matrices-llama-7b", "count-llama-7b", "walk-llama-3.2-1b", "loss-gpt2"),
        hunt="bug-or-none",
        harder="width-llama-7b",
        more=(
            "stored-of-a-model", "count-mixtral-8x7b", "experts-mixtral-8x7b", "lora-llama-7b", "loss-vit-base",
            "loss-whisper-tiny",
        ),
    ),
)  # fmt: skip


def lessons_of(library: Library) -> tuple[Lesson, ...]:
    """The lessons; own worksheets in the library form one more."""
    own = tuple(key for key, sheet in library.worksheets.items() if sheet.is_own)
    return (
        (*LESSONS, Lesson("own", N_("From your course"), N_("Sheets that your teachers chose."), own))
        if own
        else LESSONS
    )


def in_order_of_lessons(worksheets: Iterable[Worksheet]) -> list[Worksheet]:
    """The worksheets as the lessons have them, then all others."""
    order = [key for lesson in LESSONS for key in lesson.worksheets]
    return sorted(worksheets, key=lambda sheet: order.index(sheet.key) if sheet.key in order else len(order))


def lesson_with(library: Library, worksheet: str) -> Lesson | None:
    """The lesson that has a worksheet, or None."""
    return next((lesson for lesson in lessons_of(library) if worksheet in lesson.worksheets), None)


def worksheet_after(library: Library, worksheet: str) -> str:
    """The next worksheet in its lesson's row, or the first of the next lesson; "" after the last."""
    row = [key for lesson in lessons_of(library) for key in lesson.sheets]
    following = row.index(worksheet) + 1 if worksheet in row else len(row)
    return row[following] if following < len(row) else ""
