"""The stages of a real head, from its tokens to its output: each with the sheet that asks for its shapes.

>>> from app.sheets.library import load_library
>>> from app.settings import PROJECT
>>> library = load_library(PROJECT / "worksheets", "en")
>>> stages = head_stages(library.model("smollm2-135m"), library.wording, tokens=12, head=3)
>>> [stage.variant.key["keys_by_head.dim0"] for stage in stages if stage.key == "heads"]
[3]
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from app.misconceptions.predictions import cannot_tell_apart
from app.sheets.variant import SENTINEL_LENGTHS, Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import Model, Worksheet
from app.topics import decode_step, scale_mask_softmax, single_head, stored_weights, three_dimensions
from app.topics.requirements import TopicError
from app.translation import gettext as _

StageKey = Literal["input", "file", "projections", "heads", "rope", "scores", "softmax", "context", "decode"]

# What each stage asks for: a topic's key, and its rows, except those that the model's table lacks.
_ASKED: dict[StageKey, tuple[str, tuple[str, ...]]] = {
    "input": (single_head.TOPIC.key, ("input",)),
    "file": (stored_weights.TOPIC.key, stored_weights.FILE_OF_ONE_HEAD),
    "projections": (single_head.TOPIC.key, ("queries", "keys", "values")),
    "heads": (three_dimensions.TOPIC.key, ("queries_by_head", "keys_by_head", "repeated_keys")),
    "scores": (single_head.TOPIC.key, ("scores",)),
    "softmax": (scale_mask_softmax.TOPIC.key, scale_mask_softmax.MASK_OF_ONE_HEAD),
    "context": (single_head.TOPIC.key, ("context", "output")),
    "decode": (decode_step.TOPIC.key, ("queries", "keys", "scores", "context")),
}
_WHOLE_HEAD = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")


@dataclass(frozen=True)
class HeadStage:
    """One stage: its key, its title, and the sheet that asks for its shapes; None if it changes no shape."""

    key: StageKey
    title: str
    variant: Variant | None


def head_stages(model: Model, wording: Wording, tokens: int, head: int) -> tuple[HeadStage, ...]:
    """The stages of query head `head`, from 0, with this many tokens, from "input" and "file" to "decode"."""
    titles: dict[StageKey, str] = {
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
    stages = list[HeadStage]()
    is_first_of_shared = head % (model.architecture.H // model.architecture.G) == 0
    for key, title in titles.items():
        if key == "rope":
            if model.architecture.rotary:
                stages.append(HeadStage(key, title, None))
            continue
        topic, rows = _ASKED[key]
        left_out = () if is_first_of_shared else stored_weights.OF_SHARED_HEAD
        choices = [(topic, tuple(row for row in rows if row not in left_out))]
        if key == "softmax":
            choices.append((single_head.TOPIC.key, ("weights",)))
        for chosen, asked in choices:
            with suppress(TopicError):
                variant = _sheet(f"head-{key}", title, chosen, asked, model, wording, tokens, head)
                if variant.blanks:
                    stages.append(HeadStage(key, title, variant))
                    break
    return tuple(stages)


def _sheet(
    key: str, title: str, topic: str, rows: tuple[str, ...], model: Model, wording: Wording, tokens: int, head: int
) -> Variant:
    variant = Variant(Worksheet(key, title, model.key, topic, tokens, rows), model, tokens, wording, head=head)
    if "j" in variant.sizes:
        variant = replace(variant, worksheet=replace(variant.worksheet, key=f"{key}-{head}"))
    return variant


def sizes_like(variant: Variant) -> tuple[str, ...]:
    """The sizes of a head that equal its number of tokens by chance, such as ("d_h",) with 64 tokens."""
    return tuple(symbol for symbol in ("d", "d_h", "d_v", "H", "G") if variant.sizes[symbol] == variant.tokens)


def hidden_by_tokens(model: Model, wording: Wording, tokens: int) -> tuple[str, ...]:
    """The misconceptions that a whole head with this many tokens can't show, or can't tell from another.

    Example: with 9 tokens in a layer of 9 heads, a student who writes H for N is right.
    """

    def confused(count: int) -> dict[str, frozenset[str | None]]:
        sheet = _sheet("head", _("One head"), single_head.TOPIC.key, _WHOLE_HEAD, model, wording, count, 0)
        pairs = cannot_tell_apart(sheet.problem)
        return {each: frozenset(pair.other for pair in pairs if pair.misconception == each) for each, _other in pairs}

    with suppress(TopicError):
        here, elsewhere = confused(tokens), confused(SENTINEL_LENGTHS["N"])
        return tuple(key for key, others in here.items() if others - elsewhere.get(key, frozenset()))
    return ()
