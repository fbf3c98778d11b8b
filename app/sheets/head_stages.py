"""The stages of a real head, from its tokens to its output: each with the sheet that asks for its shapes.

>>> from app.sheets.worksheet_files import load_library
>>> from app.settings import PROJECT
>>> library = load_library(PROJECT / "worksheets", "en")
>>> stages = head_stages(library.model("smollm2-135m"), library.wording, tokens=12, head=3)
>>> [stage.variant.key["keys_by_head.dim0"] for stage in stages if stage.key == "heads"]
[3]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from app.misconceptions.predictions import cannot_tell_apart
from app.models.architecture import Architecture
from app.sheets.variant import SENTINEL_LENGTHS, Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import Model, Worksheet
from app.topics import decode_step, scale_mask_softmax, single_head, stored_weights, three_dimensions
from app.topics.requirements import TopicError
from app.translation import gettext as _

StageKey = Literal["input", "file", "projections", "heads", "rope", "scores", "softmax", "context", "decode"]

# What each stage asks for: a topic's key, and its rows; those that the model's table lacks are left out.
_ASKED: dict[StageKey, tuple[str, tuple[str, ...]]] = {
    "input": (single_head.TOPIC.key, ("input",)),
    "file": (
        stored_weights.TOPIC.key,
        ("stored_W_Q", "stored_W_K", "stored_W_QKV", "stored_W_O", "q_start", "kv_head", "k_start", "o_dim"),
    ),
    "projections": (single_head.TOPIC.key, ("queries", "keys", "values")),
    "heads": (three_dimensions.TOPIC.key, ("queries_by_head", "keys_by_head", "repeated_keys")),
    "scores": (single_head.TOPIC.key, ("scores",)),
    "softmax": (scale_mask_softmax.TOPIC.key, ("mask", "masked", "weights", "row_sum")),
    "context": (single_head.TOPIC.key, ("context", "output")),
    "decode": (decode_step.TOPIC.key, ("queries", "keys", "scores", "context")),
}
_OF_SHARED_HEAD = ("kv_head", "k_start")  # j·G/H is a whole number only for the first of the heads that share
_WHOLE_HEAD = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")


@dataclass(frozen=True)
class HeadStage:
    """One stage: its key, its title, and the sheet that asks for its shapes; None if it changes no shape."""

    key: StageKey
    title: str
    variant: Variant | None


def stage_titles() -> dict[StageKey, str]:
    """The titles of the stages, in their order."""
    return {
        "input": _("From text to the input"),
        "file": _("What the file holds"),
        "projections": _("Queries, keys and values of this head"),
        "heads": _("All heads of the layer"),
        "rope": _("Rotary positions"),
        "scores": _("Scores"),
        "softmax": _("Mask and softmax"),
        "context": _("Context and output"),
        "decode": _("One more token"),
    }


def head_stages(model: Model, wording: Wording, tokens: int, head: int) -> tuple[HeadStage, ...]:
    """The stages of query head `head`, counted from 0, with this many tokens.

    A stage whose topic is not true of the model is left out, such as one more token in a model without a KV cache; but
    where the topic of the softmax counts nothing, as with a single token, only the weights are asked for. A stage about
    rotary positions is there only if the model has them. In "file", the key/value head that several query heads share
    is asked for only if `head` is the first of them.
    """
    return tuple(_stages(model, wording, tokens, head))


def _stages(model: Model, wording: Wording, tokens: int, head: int) -> Iterator[HeadStage]:
    """Yield the stages that the model has.

    A stage is left out if its topic cannot ask for it in this model, or has no blank for it; but the softmax falls back
    on the topic of a single head. The rotation has no sheet.
    """
    for key, title in stage_titles().items():
        if key == "rope":
            if model.architecture.rotary:
                yield HeadStage(key, title, None)
            continue
        topic, rows = _ASKED[key]
        choices = [(topic, _rows(key, rows, model.architecture, head))]
        if key == "softmax":
            choices.append((single_head.TOPIC.key, ("weights",)))
        for chosen, asked in choices:
            with suppress(TopicError):
                variant = _sheet(f"head-{key}", title, chosen, asked, model, wording, tokens, head)
                if variant.blanks:
                    yield HeadStage(key, title, variant)
                    break


def _rows(key: StageKey, rows: tuple[str, ...], architecture: Architecture, head: int) -> tuple[str, ...]:
    """The rows that a stage asks for.

    Those of "file" include the shared key/value head only if `head` is the first query head that reads it.
    """
    is_first = head % (architecture.H // architecture.G) == 0
    return tuple(row for row in rows if key != "file" or is_first or row not in _OF_SHARED_HEAD)


def _sheet(
    key: str, title: str, topic: str, rows: tuple[str, ...], model: Model, wording: Wording, tokens: int, head: int
) -> Variant:
    """The sheet of one stage; its key says the head if the answers depend on it. Raises TopicError."""
    variant = Variant(Worksheet(key, title, model.key, topic, tokens, rows), model, tokens, wording, head=head)
    if "j" in variant.sizes:
        variant = replace(variant, worksheet=replace(variant.worksheet, key=f"{key}-{head}"))
    return variant


def sizes_like(variant: Variant) -> tuple[str, ...]:
    """The sizes of a head that equal its number of tokens by chance, such as ("d_h",) with 64 tokens."""
    return tuple(symbol for symbol in ("d", "d_h", "d_v", "H", "G") if variant.sizes[symbol] == variant.tokens)


def hidden_by_tokens(model: Model, wording: Wording, tokens: int) -> tuple[str, ...]:
    """The keys of the misconceptions that a whole head with this many tokens can't show, or can't tell from another.

    Left out are those that no number of tokens could show. Empty if the model's head is no topic of a sheet.

    Example: with 9 tokens in a layer of 9 heads, whoever writes H for N is right.
    """

    def confused(count: int) -> dict[str, frozenset[str | None]]:
        sheet = _sheet("head", _("One head"), single_head.TOPIC.key, _WHOLE_HEAD, model, wording, count, 0)
        pairs = cannot_tell_apart(sheet.problem)
        return {each: frozenset(pair.other for pair in pairs if pair.misconception == each) for each, _other in pairs}

    with suppress(TopicError):
        here, elsewhere = confused(tokens), confused(SENTINEL_LENGTHS["N"])
        return tuple(key for key, others in here.items() if others - elsewhere.get(key, frozenset()))
    return ()
