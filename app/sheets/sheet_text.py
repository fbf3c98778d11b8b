"""The prose of one sheet: title, description, task, assumptions and footnote, with every number from the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.algebra.number_text import format_number
from app.shapes.problem import Problem
from app.shapes.table import Blank
from app.sheets.notation import NOTATIONS
from app.sheets.parameter_sentences import inventory_sentences
from app.sheets.wording import Wording
from app.sheets.worksheet import Model, Worksheet


@dataclass(frozen=True)
class SheetText:
    """Puts the sentences of one sheet together from the wording, its worksheet, model and problem.

    The wording lists the parts of a topic's description and assumptions; `_forms` says which sentence a part is here.
    Long because `_forms` is one table of them all.
    """

    worksheet: Worksheet
    model: Model
    problem: Problem
    wording: Wording

    @property
    def title(self) -> str:
        """The worksheet's title; with another model than its own, a title made from the topic and the model's name."""
        if self.model.key == self.worksheet.model:
            return self.worksheet.title
        return self.wording.say("titles", self.worksheet.topic, model=self.model.name)

    @property
    def description(self) -> str:
        """What the sheet tells about the model: the sentences of its topic that fit the model."""
        sentences = [*self._sentences("description")]
        if self.worksheet.topic == "parameter-count":
            sentences += inventory_sentences(self.wording, self.problem.architecture)
        return " ".join(sentences)

    @property
    def task(self) -> str:
        """The sentences on what to write: the topic's, then tokens as rows or columns, then the symbols to answer in.

        The second is left out on sheets of parameters and counts, the third unless the sheet asks for letters.
        """
        sheet, say = self.worksheet, self.wording.say
        sentences = [say("tasks", sheet.topic)]
        if self.problem.table.activations:  # parameters and counts have no token in either direction
            sentences.append(say("tokens-are", sheet.tokens_are))
        if sheet.answers == "letters":
            sentences.append(say("answers", "letters", list=", ".join(self._named_symbols())))
        return " ".join(sentences)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the sheet asks to assume, a sentence each: those of its topic that fit the model."""
        return tuple(self._sentences("assumption"))

    @property
    def footnote(self) -> str | None:
        """A sentence that the sheet gives every query head a key/value head of its own, though the model shares them.

        None on every other sheet.
        """
        real = self.model.architecture
        if self.problem.architecture.G == real.G:
            return None
        key = "kv-head-per-query-head-one" if real.G == 1 else "kv-head-per-query-head"
        words = {"model": self.model.name, "share": real.query_heads_per_kv_head, **_numbers(real.all_sizes)}
        return self.wording.say("footnotes", key, **words)

    def nudge(self, blank: Blank) -> str:
        """The question that points to what is wrong in a box, which is given as the table's blank."""
        return self.wording.nudge(self.worksheet.topic, blank)

    def misconception(self, key: str, kind: str) -> str:
        """A misconception's "nudge", "hint" or "explanation", as it is said on this sheet."""
        return self.wording.misconception(key, kind, self.worksheet.tokens_are)

    @property
    def _tokens(self) -> int:
        """N, the number of (encoder) tokens."""
        return self.problem.sizes["N"]

    def _sentences(self, kind: str) -> Iterator[str]:
        """The sentences of the topic's "description" or "assumption" parts, without those that don't fit the model."""
        a, sizes, sections = self.problem.architecture, self.problem.sizes, self.wording.sections
        words = {
            **_numbers(sizes),
            "model": self.model.name,
            "share": sizes["H"] // sizes["G"],
            "d_rot": a.rotary.width if a.rotary else 0,
            "windowed": sum(run.count for run in a.stacks[0].runs if run.window),
        }
        forms, section = self._forms(), kind if kind == "description" else f"{kind}s"
        for part in sections[f"{kind}-parts"][self.worksheet.topic]:
            # A part without forms is itself the key of its only sentence.
            key = next((key for key, fits in forms.get(part, {part: True}).items() if fits), "")
            if key:
                yield self.wording.say(section, key, **words)

    def _forms(self) -> Mapping[str, Mapping[str, bool]]:
        """For each part with several forms, its sentences by key and whether each fits; the first that fits is said.

        A part is left out if none fits, or the empty key does: it doesn't concern the model.
        """
        a, sizes, tokens = self.problem.architecture, self.problem.sizes, self._tokens
        heads, kv_heads, width = sizes["H"], sizes["G"], sizes["d_h"]
        is_latent = "r_kv" in sizes
        position = tokens + 1 if self.worksheet.topic == "decode-step" else tokens
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
                "": is_latent,  # said with the heads
                "head-dimensions-differ": width != sizes["d_v"],
                "head-dimension-derived": width * heads == a.d,
                "head-dimension-stated": True,
            },
            "latent": {"latent": is_latent},
            "latent-queries": {"latent-queries": "r_q" in sizes},
            "rotary": {
                "rotary-partial": a.rotary is not None and a.rotary.width < width,
                "rotary": a.rotary is not None,
            },
            "tokens": {
                "tokens-one": tokens == 1,
                "tokens-causal": a.causal,
                "tokens-encoder": a.encoder_decoder,
                "tokens-bidirectional": True,
            },
            "window": {"window": a.causal and a.window is not None and a.window < tokens},
            "step": {
                "step-decoder-one": a.encoder_decoder and tokens == 1,
                "step-decoder": a.encoder_decoder,
                "step-one": tokens == 1,
                "step": True,
            },
            "dropped": {"dropped": a.window is not None and a.window <= tokens},
            "long-input": {"long-input": a.C is not None and not a.has_position_table and position > a.C},
            "feed-forward": {"feed-forward-gated": a.gated, "feed-forward-plain": True},
            "layers": {"layers": a.stacks[0].spec.count == "L", "layers-shared": True},
            "work": {"work-with-cache": "cache_16_bit" in self.problem.table.asked, "work": True},
            "cached": _cached_forms(self.problem),
            "vocabulary": {"vocabulary": "V" in sizes},
            "positions": {"positions": a.has_position_table},
            "tied": {"tied": a.tied_embeddings, "untied": "V" in sizes},
            "masked-entries": {"masked-entries": a.causal},
        }

    def _named_symbols(self) -> Iterator[str]:
        """What a sheet answered in symbols says of them: "T = number of tokens", for those that its answers need.

        d, H and d_h are always among them; G and d_v only where they differ from H and d_h.
        """
        sizes, notation = self.problem.sizes, NOTATIONS[self.worksheet.notation]
        asked = (self.problem.table.asked[b.tensor].expression(b.field) for b in self.problem.blanks)
        symbols = frozenset({"d", "H", "d_h"}).union(*(expression.symbols for expression in asked))
        doubled = {double for double, symbol in (("G", "H"), ("d_v", "d_h")) if sizes[double] == sizes[symbol]}
        for symbol, name in self.wording.sections["symbol-names"].items():
            if symbol in symbols - doubled:
                yield f"{notation.symbols.get(symbol, symbol)} = {name}"


def _cached_forms(problem: Problem) -> Mapping[str, bool]:
    """The sentences on a KV cache in which sliding windows keep fewer than all tokens, in all layers or in some."""
    runs = problem.architecture.stacks[0].runs
    full = [run.window is not None and run.window < problem.sizes["N"] for run in runs]
    cached = "cache_16_bit" in problem.table.asked
    return {"cached-window": cached and all(full), "cached-some-windows": cached and any(full)}


def _numbers(sizes: Mapping[str, int]) -> dict[str, str]:
    """The sizes as sheets write them: 131,072 for 131072."""
    return {symbol: format_number(size) for symbol, size in sizes.items()}
