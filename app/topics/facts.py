"""The facts on which sentences and misconceptions depend: `when = "window !causal"` names two of them.

A condition is made of words that must all be true of a sheet, each with an optional "!" in front for "not":

window                a fact from one of the two tables below
asks(queries keys)    the sheet asks for one of these rows
has(V)                the table has this tensor, or the sheet has this size

>>> [str(word) for word in words_of_condition("window !causal asks(queries keys)")]
['window', '!causal', 'asks(queries keys)']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from app.models.architecture import Architecture, LayerRun
from app.shapes.operation import Apply, Operation, Softmax
from app.shapes.table import Tensor
from app.topics.problem import Problem
from app.topics.registry import TOPICS
from app.topics.stored_weights import fused_order
from app.translation import gettext as _

# What is true of a model.
MODEL_FACTS: Mapping[str, Callable[[Architecture], bool]] = {
    "image": lambda model: model.input == "image",
    "tokens-looked-up": lambda model: model.fixed_tokens is None,
    "context-length": lambda model: model.C is not None,
    "sound": lambda model: model.input == "sound",
    "encoder-decoder": lambda model: model.encoder_decoder,
    "causal": lambda model: model.causal,
    "has-window": lambda model: model.window is not None,
    "lm-head": lambda model: model.has_lm_head,
    "tied": lambda model: model.tied_embeddings,
    "shared-layers": lambda model: model.stacks[0].spec.count != "L",
    "gated": lambda model: model.gated,
    "four-times-width": lambda model: model.d_ff == 4 * model.d,
    "experts": lambda model: model.has_experts,
    "several-experts-per-token": lambda model: model.all_sizes.get("k", 1) > 1,
    "attends": lambda model: model.H > 0,
    "hybrid": lambda model: model.is_hybrid,
    "mixer": lambda model: model.has_mixers,
    "one-head": lambda model: model.H == 1,
    "shared-keys": lambda model: model.G < model.H,
    "shared-keys-in-real-model": lambda model: model.kv_heads < model.H,
    "one-key-head": lambda model: model.G == 1,
    "derived-head-dimension": lambda model: model.H * model.d_h == model.d,
    "square-projections": lambda model: model.H * model.d_h == model.d and model.G == model.H,
    "latent": lambda model: model.has_latent_attention,
    "latent-queries": lambda model: model.has_latent_queries,
    "no-scale": lambda model: model.score_scale.kind == "none",
    "stated-scale": lambda model: model.score_scale.kind == "stated",
    "root-scale": lambda model: model.score_scale.kind == "root",
    "yarn-scale": lambda model: model.score_scale.kind == "yarn",
    "softcap": lambda model: model.score_softcap is not None,
    "sinks": lambda model: model.has_sinks,
    "relative-bias": lambda model: model.position_bias == "relative",
    "alibi": lambda model: model.position_bias == "alibi",
    "disentangled": lambda model: model.position_bias == "disentangled",
    "rope": lambda model: model.rotary is not None,
    "partial-rope": lambda model: model.rotary is not None and model.rotary.width < model.d_h,
    "neighbouring-pairs": lambda model: model.rotary is not None and model.rotary.adjacent_pairs,
    "position-table": lambda model: model.has_position_table,
    "norms-before": lambda model: model.norm_placement == "pre",
    "norms-around": lambda model: model.norm_placement == "sandwich",
    "norms-after": lambda model: model.norm_placement == "output",
    "kv-cache": lambda model: model.has_kv_cache,
    "local-everywhere": lambda model: all(run.window or run.chunk for run in _runs(model)),
    "conv1d": lambda model: any(spec.stored_shape == spec.in_out_shape for spec in model.attention_matrices),
    "fused-by-matrix": lambda model: fused_order(model) == "by-matrix",
    "fused-by-head": lambda model: fused_order(model) == "by-head",
}
# What is true of a sheet: of its sizes, tokens, rows or program.
SHEET_FACTS: Mapping[str, Callable[[Problem], bool]] = {
    "reads-two-texts": lambda sheet: TOPICS[sheet.topic].reads_two_texts,
    "adds-tokens": lambda sheet: bool(TOPICS[sheet.topic].adds_tokens),
    "one-token": lambda sheet: sheet.sizes["N"] == 1,
    "projected": lambda sheet: sheet.sizes.get("d_emb", sheet.sizes["d"]) != sheet.sizes["d"],
    "values-differ": lambda sheet: sheet.architecture.d_h != sheet.architecture.d_v,
    "multiplied-width": lambda sheet: sheet.sizes.get("percent", 100) != 100,
    "window": lambda sheet: _window_hides_tokens(sheet),
    "chunks": lambda sheet: _chunks_hide_tokens(sheet),
    "masked": lambda sheet: sheet.architecture.causal or _window_hides_tokens(sheet) or _chunks_hide_tokens(sheet),
    "long-input": lambda sheet: _exceeds_context(sheet),
    "asks-softmax": lambda sheet: any(isinstance(step, Softmax) for step in _steps_asked(sheet)),
    "asks-norm": lambda sheet: any(isinstance(s, Apply) and s.function == "{norm}" for s in _steps_asked(sheet)),
    "program": lambda sheet: sheet.case is not None,
    "program-of-one-head": lambda sheet: sheet.case is not None and "H" not in sheet.case.sizes,
    "program-of-two-texts": lambda sheet: sheet.case is not None and sheet.case.program.two_texts,
    "program-that-decodes": lambda sheet: sheet.case is not None and sheet.case.program.decodes,
    "program-that-stops": lambda sheet: sheet.case is not None and bool(sheet.case.error),
    "padding-given": lambda sheet: _is_given(sheet, "padding"),
    "mask-given": lambda sheet: _is_given(sheet, "mask"),
}
_WORD = re.compile(r"(!?)(?:(asks|has)\(([\w ]+)\)|([\w-]+))(?:\s+|$)")


@dataclass(frozen=True)
class Word:
    """One word of a condition; `names` are the rows, or the tensor or size, in its brackets."""

    fact: str
    names: tuple[str, ...] = ()
    negated: bool = False

    def __str__(self) -> str:
        return "!" * self.negated + self.fact + (f"({' '.join(self.names)})" if self.names else "")

    @property
    def is_about_model(self) -> bool:
        return self.fact in MODEL_FACTS


class ConditionError(ValueError):
    """A condition that can't be read; the message says which word, and what is allowed."""


@lru_cache(maxsize=1024)
def words_of_condition(condition: str) -> tuple[Word, ...]:
    """The words of a condition; raises ConditionError."""
    words, place = list[Word](), 0
    while place < len(condition):
        match = _WORD.match(condition, place)
        if not match:
            problem = _("“{text}” isn’t a condition: write facts, asks(…) or has(…), each after a “!” for “not”.")
            raise ConditionError(problem.format(text=condition[place:]))
        negation, function, names, fact = match.groups()
        if fact and fact not in MODEL_FACTS and fact not in SHEET_FACTS:
            known = ", ".join((*MODEL_FACTS, *SHEET_FACTS))
            raise ConditionError(_("There is no fact “{fact}”. The facts are {known}.").format(fact=fact, known=known))
        words.append(Word(function or fact, tuple((names or "").split()), bool(negation)))
        place = match.end()
    return tuple(words)


def is_true_of_model(condition: str, model: Architecture) -> bool:
    """Whether a condition that names only facts of the model is true."""
    return all(MODEL_FACTS[word.fact](model) != word.negated for word in words_of_condition(condition))


def is_true_of_sheet(condition: str, sheet: Problem) -> bool:
    """Whether a condition is true of a sheet. Facts are worked out one by one, up to the first that isn't."""
    return all(_is_true(word, sheet) != word.negated for word in words_of_condition(condition))


def _is_true(word: Word, sheet: Problem) -> bool:
    if word.fact == "asks":
        return not sheet.asked.isdisjoint(word.names)
    if word.fact == "has":
        return all(name in sheet.sizes or name in sheet.table.by_key for name in word.names)
    if word.is_about_model:
        return MODEL_FACTS[word.fact](sheet.architecture)
    return SHEET_FACTS[word.fact](sheet)


@dataclass(frozen=True)
class LocalLayers:
    """The layers of a model (or its encoder) in which a token doesn't see all others: `count` of them.

    `window` and `chunk` are the shortest, or 0.
    """

    count: int
    window: int
    chunk: int


def local_layers(model: Architecture) -> LocalLayers:
    """The layers with a window or chunks in the model's first stack."""
    runs = _runs(model)
    return LocalLayers(
        count=sum(run.count for run in runs if run.window or run.chunk),
        window=min((run.window for run in runs if run.window), default=0),
        chunk=min((run.chunk for run in runs if run.chunk), default=0),
    )


def _runs(model: Architecture) -> tuple[LayerRun, ...]:
    return model.stacks[0].attending if model.stacks else ()


def _tokens_read(sheet: Problem) -> int:
    return sheet.sizes["N"] + bool(TOPICS[sheet.topic].adds_tokens)


def _window_hides_tokens(sheet: Problem) -> bool:
    return 0 < sheet.architecture.reach_of(local_layers(sheet.architecture).window) < _tokens_read(sheet)


def _chunks_hide_tokens(sheet: Problem) -> bool:
    return 0 < local_layers(sheet.architecture).chunk < _tokens_read(sheet)


def _exceeds_context(sheet: Problem) -> bool:
    model = sheet.architecture
    return model.C is not None and not model.has_position_table and _tokens_read(sheet) > model.C


def _steps_asked(sheet: Problem) -> list[Operation]:
    asked = (sheet.table.askable[row] for row in sheet.rows)
    return [entry.made_by for entry in asked if isinstance(entry, Tensor) and entry.made_by]


def _is_given(sheet: Problem, name: str) -> bool:
    return sheet.case is not None and any(given == name for given, _shape in sheet.case.inputs)
