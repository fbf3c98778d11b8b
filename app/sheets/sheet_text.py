"""The prose of one sheet: title, description, task, assumptions and footnote, with every number from the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.algebra.number_text import format_number
from app.models.architecture import Architecture
from app.shapes.problem import Problem
from app.sheets.notation import NOTATIONS
from app.sheets.wording import Wording
from app.sheets.worksheet import Model, Worksheet


@dataclass(frozen=True)
class SheetText:
    """Puts the sentences of one sheet together from the wording, its worksheet, model and problem."""

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
        words = {**_numbers(self.problem.sizes), **_words(self.model, self.problem.architecture, self._tokens)}
        return " ".join(self.wording.say("description", key, **words) for key in self._description_keys())

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
            symbols = NOTATIONS[sheet.notation].symbols
            sentences.append(say("answers", "letters", **{s: symbols.get(s, s) for s in ("N", "d", "H", "d_h", "G")}))
        return " ".join(sentences)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What holds on every sheet of this topic, a sentence each."""
        return tuple(self.wording.sections["assumptions"][self.worksheet.topic])

    @property
    def footnote(self) -> str | None:
        """A sentence that the sheet gives every query head a key/value head of its own, though the model shares them.

        None on every other sheet.
        """
        real = self.model.architecture
        if self.problem.architecture.G == real.G:
            return None
        return self.wording.say("footnotes", "kv-head-per-query-head", **_words(self.model, real, self._tokens))

    def misconception(self, key: str, kind: str) -> str:
        """A misconception's "nudge", "hint" or "explanation", as it is said on this sheet."""
        return self.wording.misconception(key, kind, self.worksheet.tokens_are)

    @property
    def _tokens(self) -> int:
        """N, the number of (encoder) tokens."""
        return self.problem.sizes["N"]

    def _description_keys(self) -> Iterator[str]:
        """The keys of the description's sentences, in the order of the topic's parts.

        A part with several forms, such as a gated or plain feed-forward block, gives the one that fits the model; a
        part that doesn't concern the model, such as RoPE, is left out; every other part is itself the key.
        """
        a = self.problem.architecture
        even = "head-width-derived" if a.d_h * a.H == a.d else "head-width-stated"
        # A part that is not listed here is the key of its only sentence.
        sentence_of_part = {
            "heads": even if a.d_h == a.d_v else "head-width-latent",
            "latent": "latent" if "r_kv" in self.problem.sizes else "",
            "rotary": "rotary" if a.rotary else "",
            "grouped": "grouped" if a.G != a.H else "",
            "tokens": "tokens-causal" if a.causal else "tokens-bidirectional",
            "feed-forward": "feed-forward-gated" if a.gated else "feed-forward-plain",
            "positions": "positions" if a.has_position_table else "",
            "tied": "tied" if a.tied_embeddings else "untied",
            "windowed": "window" if a.window and a.window <= self._tokens else "",
        }
        for part in self.wording.sections["description-parts"][self.worksheet.topic]:
            if key := sentence_of_part.get(part, part):
                yield key


def _words(model: Model, architecture: Architecture, tokens: int) -> dict[str, object]:
    """What a sentence about a model may name: its name, its sizes, N, W, and the query heads of one key/value head."""
    sizes = {"N": tokens, "W": architecture.window, **architecture.all_sizes}
    numbers = _numbers({symbol: size for symbol, size in sizes.items() if size is not None})
    return {"model": model.name, "share": architecture.query_heads_per_kv_head, **numbers}


def _numbers(sizes: Mapping[str, int]) -> dict[str, str]:
    """The sizes as sheets write them: 131,072 for 131072."""
    return {symbol: format_number(size) for symbol, size in sizes.items()}
