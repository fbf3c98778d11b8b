"""The prose of one sheet: title, description, task, assumptions and footnote, with every number from the config."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from app.algebra.number_text import format_number
from app.models.architecture import Architecture
from app.shapes.operation import Apply, Softmax
from app.shapes.parameter_inventory import Fact
from app.shapes.table import Blank, Count, Tensor
from app.sheets.notation import IN_CODE, NOTATIONS, without_own_name
from app.sheets.parameter_sentences import inventory_sentences
from app.sheets.wording import MisconceptionText, TopicWording, Wording, words_of
from app.sheets.worksheet import AuthorMisconception, Model, Worksheet, is_in_symbols, title_in_symbols
from app.topics.problem import Problem
from app.topics.registry import TOPICS
from app.topics.stored_weights import fused_order

# What a part of the description states without a {number} in its sentence: "a single token", or an image that is cut
# into patches.
_STATED_IN_WORDS: Mapping[str, frozenset[str]] = {
    "heads": frozenset({"H", "G"}),
    "tokens": frozenset({"N"}),
    "two-texts": frozenset({"N"}),
    "step": frozenset({"N"}),
}
# A whole number as sheets write it, 131,072 or 131072.
_NUMBER = r"[0-9]+(?:,[0-9]{3})*(?![0-9]|[.,][0-9])"
# Such a number by itself: not the 7 of 7B or of 2.7.
_NUMBER_ALONE = re.compile(rf"(?<![\w.,]){_NUMBER}(?!\w)")
# The rows that compare a gated feed-forward block with an ungated one; a sheet has both or none.
_COMPARED_BLOCKS = (
    frozenset({"gated_parameters", "ungated_parameters"}),
    frozenset({"block_parameters", "gated_width"}),
)
# Parts of a description or of the assumptions that are only about these rows, and left out of sheets without them.
_ABOUT_ROWS = {
    part: frozenset(rows.split())
    for part, rows in {
        "padded": "scores padding padding_mask masked_scores both_masks",
        "causal-table": "causal causal_mask both_masks",
        "positions-added": "embedded positions positions_of_batch positioned",
        "norm-scale": "normed norm_scale scaled",
        "cosines": "cosines rotary_by_head cosines_heads_first turned_by_head rotary_by_token cosines_tokens_first "
        "turned_by_token",
        "axes-of-groups": "keys keys_by_head repeated_keys values values_by_head repeated_values queries_of_input "
        "grouped_queries keys_of_input grouped_scores repeat_pattern grouped_pattern",
        "list-and-column": "number_row number_column grown",
        "masked-pairs": "attention_flops prefill_flops training_flops",
        "logits-of-all": "products_flops prefill_flops training_flops prefill_intensity",
        "mixed-precision": "gradients_bytes master_bytes moments_bytes training_bytes",
    }.items()
}
_GROUPED_ROWS = frozenset({"queries_of_input", "grouped_queries", "keys_of_input", "grouped_keys", "grouped_scores"})
_SOUND_ROWS = frozenset({"sound", "convolved", "strided", "heard"})
_LATENT_COSTS = frozenset({"prefill_flops", "decode_flops", "decode_intensity", "training_flops"})


@dataclass(frozen=True)
class StatedFact:
    """A part of the description: its sentence, and the `symbols` of the sizes it states."""

    part: str
    sentence: str
    symbols: frozenset[str]
    aside: bool


@dataclass(frozen=True)
class SheetText:
    """Puts the sentences of one sheet together from the wording, its worksheet, model and problem.

    The wording lists the parts of a topic's description and assumptions; `sentence_forms` decides which sentence this
    sheet uses for each part.
    """

    worksheet: Worksheet
    model: Model
    problem: Problem
    wording: Wording

    @property
    def title(self) -> str:
        """The worksheet's title; with another model, one made from the topic and the model's name."""
        if self.model.key == self.worksheet.model:
            return self.worksheet.title
        title = self._topic.title_for(self.model.name, self.model.architecture)
        return title_in_symbols(title) if is_in_symbols(self.worksheet.key) else title

    @property
    def _topic(self) -> TopicWording:
        return self.wording.topic(self.worksheet.topic)

    @property
    def description(self) -> str:
        """The description of the model: the sentences of the sheet's topic that fit it, without asides."""
        stated = [fact.sentence for fact in self.facts if not fact.aside]
        return " ".join([*stated, *inventory_sentences(self.wording, self._inventory)])

    @property
    def asides(self) -> str:
        """The sentences of the description that no row needs."""
        return " ".join(fact.sentence for fact in self.facts if fact.aside)

    @property
    def _inventory(self) -> tuple[Fact, ...]:
        inventory = TOPICS[self.worksheet.topic].inventory
        return tuple(inventory(self.problem.architecture)) if inventory else ()

    @cached_property
    def facts(self) -> tuple[StatedFact, ...]:
        """The parts of the description that apply to the model, in order, each with its sentence."""
        templates = self.wording.topic_section(self.worksheet.topic, "description")
        asides = _asides(self.problem)
        return tuple(
            StatedFact(
                part=part,
                sentence=sentence,
                symbols=words_of(templates[key]) | _STATED_IN_WORDS.get(part, frozenset()),
                aside=part in asides,
            )
            for part, key, sentence in self._sentences("description")
        )

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The sizes or symbols that the sheet gives, as typed: ("4096", "32", "128", "100"), or ("T", "d", "h")."""
        if self.worksheet.answers == "letters":
            return tuple(symbol for symbol, _name in self._named_symbols())
        sheet, sizes = self.worksheet, self.problem.sizes.values()
        texts = (self.description, *self.assumptions, self.footnote or "", sheet.introduction, sheet.footnote)
        return tuple(str(number) for number in dict.fromkeys(_numbers_in(*texts)) if number > 9 and number in sizes)

    @property
    def task(self) -> str:
        """The sentences on what to write, and how."""
        sheet, say = self.worksheet, self.wording.say
        compares = any(rows <= self.problem.asked for rows in _COMPARED_BLOCKS)
        sentences = [self._topic.task_compared if compares else self._topic.task]
        if self.problem.case and self.problem.case.error:
            sentences.append(self._topic.task_stopped)
        # Parameters and counts have no tokens, and for tensors with more dimensions the task already says it.
        if self.problem.table.activations and not self.problem.table.has_more_sides:
            sentences.append(say("answers", "tokens"))
        if sheet.answers == "letters":
            symbols = ", ".join(f"{symbol}\u00a0= {name}" for symbol, name in self._named_symbols())
            sentences.append(say("answers", "letters", list=symbols))
        return " ".join([*sentences, *self._ways_of_counting()])

    def _ways_of_counting(self) -> Iterator[str]:
        asks_no_sums = self.worksheet.answers == "letters" or TOPICS[self.worksheet.topic].in_steps
        if asks_no_sums or all(blank.field != "count" for blank in self.problem.blanks):
            return
        units = {entry.unit for row in self.problem.rows if isinstance(entry := self.problem.table.askable[row], Count)}
        if units:
            yield self.wording.say("answers", "calculations")
        if "bytes" in units:
            yield self.wording.say("answers", "rounded-bytes")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the sheet: the sentences of its topic that fit the model."""
        return tuple(sentence for _part, _key, sentence in self._sentences("assumptions"))

    @property
    def footnote(self) -> str | None:
        """A sentence that the sheet gives every query head its own key/value head, though the model shares them."""
        real = self.model.architecture
        if not self._simplifies_heads:
            return None
        key = "kv-head-per-query-head-one" if real.G == 1 else "kv-head-per-query-head"
        words = {"model": self.model.name, "share": real.query_heads_per_kv_head, **_numbers(real.all_sizes)}
        has_mark = any(fact.part == "heads" for fact in self.facts)
        return ("* " if has_mark else "") + self.wording.say("footnotes", key, **words)

    @property
    def report(self) -> str:
        """The address of a report on the model, for the footnote; "" without one."""
        return self.model.report if self._simplifies_heads else ""

    @property
    def _simplifies_heads(self) -> bool:
        return self.problem.architecture.G != self.model.architecture.G

    @property
    def cached(self) -> str:
        """Which layers' KV caches hold which tokens, if the text is longer than a sliding window."""
        form = next((key for key, fits in sentence_forms(self.problem)["cached"].items() if fits), "")
        return self.wording.say("description", form, **_words(self.problem)) if form else ""

    @property
    def exceeds_context(self) -> bool:
        """Whether the description says that the sequence exceeds the context length in the model's config."""
        return (
            "long-input" in self._topic.description_parts and sentence_forms(self.problem)["long-input"]["long-input"]
        )

    def nudge(self, blank: Blank) -> str:
        """The question next to a wrong box, which points to the idea without any number of the sheet."""
        return self._topic.nudge(blank)

    def size_in_words(self, symbol: str) -> str:
        """A size as this model's description names it, "the embedding dimension"; "" for any other symbol."""
        try:
            return self.wording.topic_section(self.worksheet.topic, "stated-sizes")[_size_key(self.problem, symbol)]
        except KeyError:
            return ""

    def misconception(self, key: str, kind: MisconceptionText) -> str:
        """A misconception's "nudge", "hint" or "explanation" in the sheet's notation; KeyError for an unknown key."""
        if described := self._author_misconception(key):
            return {"nudge": described.question, "explanation": described.explanation}.get(kind, "")
        sentence = self.wording.misconception(key, kind)
        notation = NOTATIONS[self.worksheet.notation]
        return re.sub(r"W_\w+", lambda match: notation.letter(match[0], match[0]), sentence)

    def misconception_name(self, key: str) -> str:
        """A misconception in a few words, such as 'Head as wide as the model'; raises KeyError for an unknown one."""
        if described := self._author_misconception(key):
            return described.name
        return self.wording.misconception_name(key)

    def _author_misconception(self, key: str) -> AuthorMisconception | None:
        return next((each for each in self.worksheet.misconceptions if each.key == key), None)

    def _sentences(self, kind: Literal["description", "assumptions"]) -> Iterator[tuple[str, str, str]]:
        forms, templates = sentence_forms(self.problem), self.wording.topic_section(self.worksheet.topic, kind)
        # The sheet is about an encoder's layers, or a decoder's, in a model with both.
        side = "decoder" if TOPICS[self.problem.topic].uses_decoder else "encoder"
        layer = self.wording.say("layer-names", side if self.problem.architecture.encoder_decoder else "layer")
        parts = self._topic.description_parts if kind == "description" else self._topic.assumption_parts
        words = {**_words(self.problem), "model": self.model.name, "layer": layer}
        for part in parts:
            # A part without forms is itself the key of its only sentence.
            key = next((key for key, fits in forms.get(part, {part: True}).items() if fits), "")
            if key:
                mark = "*" if part == "heads" and self._simplifies_heads else ""
                yield part, key, templates[key].format(**words) + mark

    def _named_symbols(self) -> Iterator[tuple[str, str]]:
        sizes = self.problem.sizes
        notation = (IN_CODE if self.problem.case else NOTATIONS[self.worksheet.notation]).for_sizes(sizes)
        asked = (self.problem.table.askable[b.tensor].expression(b.field) for b in self.problem.blanks)
        stated = frozenset[str]().union(*(fact.symbols for fact in self.facts))
        offered = {"H", "d_h", "d_nope", "d_rope"} & stated
        symbols = frozenset({"d", *offered}).union(*(expression.symbols for expression in asked))
        names = self.wording.topic_section(self.worksheet.topic, "symbol-names")
        for symbol in names:
            if symbol in symbols - without_own_name(sizes):
                yield notation.symbol(symbol), names[_size_key(self.problem, symbol)]


@dataclass(frozen=True)
class FrozenText(SheetText):
    """The prose of a sheet as it was frozen: `texts`, and the question next to each wrong box."""

    texts: Mapping[str, Any]
    nudges: Mapping[str, str]

    @property
    def title(self) -> str:
        return str(self.texts["title"])

    @property
    def description(self) -> str:
        return str(self.texts["description"])

    @property
    def asides(self) -> str:
        return str(self.texts["asides"])

    @property
    def task(self) -> str:
        return str(self.texts["task"])

    @property
    def assumptions(self) -> tuple[str, ...]:
        return tuple(self.texts["assumptions"])

    @property
    def footnote(self) -> str | None:
        footnote: str | None = self.texts["footnote"]
        return footnote

    def nudge(self, blank: Blank) -> str:
        return self.nudges[str(blank)]


def _size_key(problem: Problem, symbol: str) -> str:
    sizes, topic = problem.sizes, TOPICS[problem.topic]
    keys = {
        "N": "N-encoder" if topic.reads_two_texts else "N-processed" if topic.adds_tokens else "N",
        "d": "d-of-layers" if sizes.get("d_emb", sizes["d"]) != sizes["d"] else "d",
        "H": "heads" if sizes["G"] == sizes["H"] else "H",
        "G": "heads" if sizes["G"] == sizes["H"] else "G",
        "d_h": "d_h" if sizes["d_v"] == sizes["d_h"] else "d_h-of-keys",
        "d_v": "d_h" if sizes["d_v"] == sizes["d_h"] else "d_v",
    }
    return keys.get(symbol, symbol)


@dataclass(frozen=True)
class _LocalLayers:
    """The layers of a model (or its encoder) in which a token doesn't see all others: `count` of `layers`."""

    count: int
    layers: int
    window: int
    chunk: int

    @classmethod
    def of(cls, architecture: Architecture) -> _LocalLayers:
        """Count the first stack's layers with a window or chunks, and find the shortest of each."""
        runs = [run for stack in architecture.stacks[:1] for run in stack.runs]
        return cls(
            count=sum(run.count for run in runs if run.window or run.chunk),
            layers=sum(run.count for run in runs),
            window=min((run.window for run in runs if run.window), default=0),
            chunk=min((run.chunk for run in runs if run.chunk), default=0),
        )


def _numbers_in(*texts: str) -> tuple[int, ...]:
    return tuple(_number(match[0]) for text in texts for match in _NUMBER_ALONE.finditer(text))


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _words(problem: Problem) -> dict[str, object]:
    a, sizes, local = problem.architecture, problem.sizes, _LocalLayers.of(problem.architecture)
    numbers = {
        **sizes,
        "share": sizes["H"] // sizes["G"],
        "d_rot": a.rotary.width if a.rotary else 0,
        "local_layers": local.count,
        "W": local.window,
        "side": (local.window - 1) // 2,
        "chunk": local.chunk,
    }
    return {**_numbers(numbers), "norm": a.norm}


def _asides(problem: Problem) -> frozenset[str]:
    asked = [problem.table.askable[row] for row in problem.rows]
    made_by = [entry.made_by for entry in asked if isinstance(entry, Tensor)]
    symbols = frozenset[str]().union(*(problem.expression(blank).symbols for blank in problem.blanks))
    asides = {"scale", "softcap", "bias"}
    if not any(isinstance(operation, Softmax) for operation in made_by):
        asides.add("sinks")
    if "d_rot" not in symbols:
        asides.add("position-encoding")
    if not any(isinstance(operation, Apply) and operation.function == "{norm}" for operation in made_by):
        asides.add("norms")
    return frozenset(asides)


def sentence_forms(problem: Problem) -> Mapping[str, Mapping[str, bool]]:
    """For each part that depends on the model, the rows or the program: its sentences' keys, and which fit."""
    a, sizes, tokens = problem.architecture, problem.sizes, problem.sizes["N"]
    heads, kv_heads, width, is_latent = sizes["H"], sizes["G"], sizes["d_h"], a.has_latent_attention
    reach = tokens + bool(TOPICS[problem.topic].adds_tokens)  # for the first token after N
    # Whether a window or chunk hides tokens that would otherwise be seen.
    local = _LocalLayers.of(a)
    has_window = 0 < a.reach_of(local.window) < reach
    has_chunks = 0 < local.chunk < reach
    has_cache = a.has_kv_cache
    is_masked = a.causal or has_window or has_chunks
    has_lm_head, order, case = a.has_lm_head, fused_order(a), problem.case
    given = {name for name, _shape in case.inputs} if case else set[str]()
    return {
        "width": {"width-projected": sizes.get("d_emb", a.d) != a.d, "width": True},
        "heads": {
            "heads-latent": is_latent,
            "heads-single": heads == 1,
            "heads-own": kv_heads == heads,
            "heads-shared-by-all": kv_heads == 1,
            "heads-grouped": True,
        },
        "head-dimension": {
            "": is_latent,  # stated with the heads
            "head-dimensions-differ": width != sizes["d_v"],
            "head-dimension-derived": width * heads == a.d,
            "head-dimension-stated": True,
        },
        "latent": {"latent": is_latent},
        "latent-queries": {"latent-queries": a.has_latent_queries},
        "absorption": {"absorption": is_latent and not _LATENT_COSTS.isdisjoint(problem.asked)},
        "scale": {f"scale-{kind}": a.score_scale.kind == kind for kind in ("none", "stated", "root", "yarn")},
        "softcap": {"softcap": a.score_softcap is not None},
        "sinks": {"sinks": a.has_sinks},
        "bias": {f"{bias}-bias": a.position_bias == bias for bias in ("relative", "alibi", "disentangled")},
        "position-encoding": {
            "rotary-partial": a.rotary is not None and a.rotary.width < width,
            "rotary": a.rotary is not None,
            "positions": a.has_position_table,
        },
        "rotation": {
            "rotation-partial": a.rotary is not None and a.rotary.width < width,
            "rotation": a.rotary is not None,
        },
        "pairing": {
            "pairs-neighbours": a.rotary is not None and a.rotary.adjacent_pairs,
            "pairs-halves": a.rotary is not None,
        },
        "norms": {f"norms-{place}": a.norm_placement == place for place in ("pre", "sandwich", "output")},
        "tokens": {
            "tokens-patches": a.input == "image",
            "tokens-frames": a.input == "sound",
            "tokens-one": tokens == 1,
            "tokens-predicting": a.causal and a.has_lm_head,
            "tokens-causal": a.causal,
            "tokens-encoder": a.encoder_decoder,
            "tokens-both-ways": has_window or has_chunks,
            "tokens-bidirectional": True,
        },
        "way-in": {"way-in-image": a.input == "image", "way-in-sound": not _SOUND_ROWS.isdisjoint(problem.asked)},
        "training": {"training-classes": a.input == "image", "training-decoder": a.encoder_decoder, "training": True},
        "every-position": {"every-position": a.input != "image"},
        "two-texts": {"two-texts-frames": a.input == "sound", "two-texts": True},
        "local": {
            "chunks": has_chunks,
            "window-both-ways": has_window and not a.causal,
            "window-all": has_window and local.count == local.layers,
            "window-some": has_window,
        },
        "step": {
            "step-decoder-one": a.encoder_decoder and tokens == 1,
            "step-decoder": a.encoder_decoder,
            "step-one": tokens == 1,
            "step": True,
        },
        "dropped": {"dropped": has_window},
        "long-input": {"long-input": a.C is not None and not a.has_position_table and reach > a.C},
        "projection-class": {
            "projections-conv1d": any(spec.stored_shape == spec.in_out_shape for spec in a.attention_matrices),
            "projections-linear": True,
        },
        "masks": {"masks": a.causal},
        "neighbours": {"neighbours": 1 < kv_heads < heads},
        "fused-order": {
            "fused-by-matrix": order == "by-matrix",
            "fused-by-head": order == "by-head" and kv_heads == heads,
            "fused-by-group": order == "by-head",
        },
        "feed-forward": {"feed-forward-gated": a.gated, "feed-forward-plain": True},
        "layers": {"layers": a.stacks[0].spec.count == "L", "layers-shared": True},
        "work": {"work-with-cache": has_cache, "work": True},
        "all-parameters": {"all-parameters-active": "active" in sizes, "all-parameters": True},
        "cached": {
            "cached-window": has_cache and has_window and local.count == local.layers,
            "cached-some-windows": has_cache and has_window,
        },
        "vocabulary": {"vocabulary": "V" in sizes},
        "chosen-token": {"chosen-token": "i" in sizes},
        **{part: {part: not rows.isdisjoint(problem.asked)} for part, rows in _ABOUT_ROWS.items()},
        "groups": {"": _GROUPED_ROWS.isdisjoint(problem.asked), "groups-of-one": kv_heads == 1, "groups": True},
        "mask-added": {"mask-added": "mask" in problem.table.by_key},
        "evenly-routed": {"evenly-routed": "expert_input" in problem.table.by_key},
        "masked-entries": {"masked-entries": is_masked},
        "products-only": {"products-only": a.rotary is not None, "products-only-without-rope": True},
        "bytes-of-cache": {"bytes-of-cache": "cache_of_token" in problem.asked},
        "tied-once": {"tied-once": a.tied_embeddings and has_lm_head},
        "rope-left-out": {"rope-left-out": a.rotary is not None},
        "width-rule": {
            "width-rule-plain": not a.gated,
            "width-rule-multiplied": sizes.get("percent", 100) != 100,
            "width-rule-rounded": True,
        },
        "no-padding": {"no-padding": is_masked},
        "repeated": {"repeated": kv_heads < heads},
        "no-mask": {"no-mask": not is_masked},
        "code-padding": {"code-padding": "padding" in given},
        "code-mask": {"code-mask": "mask" in given},
        "code": {
            "": case is None,
            "code-head": case is not None and "H" not in case.sizes,
            "code-two-texts": case is not None and case.program.two_texts,
            "code-decoding": case is not None and case.program.decodes,
            "code": True,
        },
    }


def _numbers(sizes: Mapping[str, int]) -> dict[str, str]:
    return {symbol: format_number(size) for symbol, size in sizes.items()}
