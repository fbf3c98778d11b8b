"""The catalogue of all sheets: a name without a model and one line for each, and which fit a search.

A model and symbols are chosen for the whole catalogue; a sheet that can't have them keeps its own model or numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.practice.lessons import Lesson, lessons_of
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet, WorksheetError, key_in
from app.translation import N_
from app.translation import gettext as _

MAX_SEARCH_WORDS = 8

_NAMES_AND_LINES = {
    "first-steps": (N_("First steps"), N_("One token, then four, then all. One question at a time.")),
    "llama-7b": (N_("One head"), N_("From the input to Q, K, V, the scores and back.")),
    "softmax-of-a-model": (N_("From scores to weights"), N_("Scale, mask, softmax: what changes?")),
    "it-attends-smollm2": (N_("What one head does with “it”"), N_("The shapes, then the real weights.")),
    "bug-one-head": (N_("Find the bug: one head"), N_("One line is wrong. Which, why, and what would you write?")),
    "head-parameters-gpt2": (N_("Inside one head’s parameters"), N_("Multiply two parameters first: what comes out?")),
    "qwen2.5-0.5b": (N_("One head with shared keys"), N_("14 query heads share two key heads.")),
    "bidirectional-bert-base": (N_("One head that looks both ways"), N_("No mask: every token sees every other.")),
    "bidirectional-vit-base": (N_("One head over an image"), N_("Patches become tokens.")),
    "bidirectional-whisper-tiny": (N_("One head over sound"), N_("1500 frames become tokens.")),
    "layer-mistral-7b": (N_("A whole attention layer"), N_("All heads in one product, then split.")),
    "three-dimensions-llama-7b": (N_("All heads in three dimensions"), N_("Heads get their own dimension.")),
    "four-dimensions-gpt2": (N_("A batch in four dimensions"), N_("Several texts at once, as PyTorch holds them.")),
    "bug-layer": (N_("Find the bug: a layer"), N_("The shapes fit, or don’t: one line is to blame.")),
    "index-gpt2": (N_("Index notation"), N_("Which index disappears, and which stays?")),
    "same-shapes-gpt2": (N_("What shapes can’t show"), N_("Right shape, wrong numbers.")),
    "broadcasting-gpt2": (N_("Broadcasting in a layer"), N_("What a mask, a bias or a norm is stretched to.")),
    "rotary-mistral-7b": (N_("Rotary positions"), N_("Which features form a pair, and how far they turn.")),
    "latent-deepseek-v2-lite": (N_("Latent attention"), N_("Keys and values from one small vector.")),
    "decode-gpt2": (N_("One decoding step"), N_("One new token, and a cache of keys and values.")),
    "cache-qwen3-0.6b": (N_("The KV cache as a tensor"), N_("What is stored, and what each step adds.")),
    "costs-llama-7b": (N_("FLOPs and memory"), N_("What a prompt costs, and what one more token costs.")),
    "bug-decoding": (N_("Find the bug: decoding"), N_("The cache grows, but something goes wrong.")),
    "growth-llama-7b": (N_("What grows with what"), N_("Twice the tokens: twice, four times, or no change?")),
    "decode-phi-3-mini-4k": (N_("Decoding with a full window"), N_("More tokens than the window holds.")),
    "cache-whisper-tiny": (N_("The cache of a decoder that listens"), N_("Two caches: its own words, and the sound.")),
    "cross-bart-base": (N_("Cross-attention"), N_("Queries from one text, keys from another.")),
    "model-costs-llama-3.2-1b": (N_("What a model costs"), N_("Prompt, decoding and training.")),
    "model-costs-mixtral-8x7b": (N_("What a mixture of experts costs"), N_("Stored is not the same as used.")),
    "matrices-llama-7b": (N_("The weight matrices of one layer"), N_("Shapes and sizes, attention and feed-forward.")),
    "count-llama-7b": (N_("How many parameters?"), N_("Add them up, and meet the model’s name.")),
    "walk-llama-3.2-1b": (N_("From tokens to logits"), N_("The whole model, layer by layer.")),
    "loss-gpt2": (N_("From text to loss"), N_("Logits, targets, one number.")),
    "bug-or-none": (N_("Find the bug, if there is one"), N_("“No line” is an answer, too.")),
    "width-llama-7b": (N_("Where does 11,008 come from?"), N_("The inner dimension of the feed-forward block.")),
    "stored-of-a-model": (N_("What the file holds"), N_("Names, shapes, and which way round.")),
    "count-mixtral-8x7b": (N_("How many parameters are used?"), N_("Stored, and at work for each token.")),
    "experts-mixtral-8x7b": (N_("A mixture-of-experts layer"), N_("Many experts, few of them at work.")),
    "lora-llama-7b": (N_("LoRA"), N_("Two thin matrices instead of a large one.")),
    "loss-vit-base": (N_("From an image to loss"), N_("Patches in, one label out.")),
    "loss-whisper-tiny": (N_("From sound and text to loss"), N_("Encoder and decoder together.")),
}  # fmt: skip


@dataclass(frozen=True)
class CatalogueEntry:
    """A sheet with the model and the answers that it opens with; `keeps_model` if the chosen one doesn't fit it."""

    name: str
    line: str
    lesson: Lesson
    variant: Variant
    drawn: Variant  # in numbers
    keeps_model: bool

    @property
    def words(self) -> str:
        """What a search looks in: names, words of its topic and rows, and the models it was made for."""
        sheet, wording = self.variant.worksheet, self.variant.wording
        models = {sheet.model, self.variant.model.key, self.variant.model.name, *sheet.models}
        rows = (row.name for row in self.variant.rows)
        return " ".join((self.name, self.line, wording.topics[sheet.topic].name, *rows, *models)).casefold()


def short_name(variant: Variant) -> str:
    """A sheet's name without its model; its title with another model than its own."""
    sheet = variant.worksheet
    is_named = sheet.key in _NAMES_AND_LINES and variant.model.key == sheet.model
    return _(_NAMES_AND_LINES[sheet.key][0]) if is_named else variant.title


def catalogue(library: Library, model: str, *, in_symbols: bool) -> tuple[CatalogueEntry, ...]:
    """The sheets in the order of the lessons, with this model ("" for each sheet's own) and symbols where possible."""
    return tuple(_entries(library, model, in_symbols=in_symbols))


def _entries(library: Library, model: str, *, in_symbols: bool) -> Iterator[CatalogueEntry]:
    titles = set[str]()
    for lesson in lessons_of(library):
        for key in lesson.worksheets:
            if sheet := library.worksheets.get(key):
                fits = not model or library.refusal(key, model) is None
                chosen = model if model and fits else sheet.model
                in_numbers = library.variant(key, chosen)
                name, line = in_numbers.title, ""
                # A name may be true only of the sheet's own model, but not one of a bug.
                if key in _NAMES_AND_LINES and (chosen == sheet.model or sheet.bug):
                    name, line = map(_, _NAMES_AND_LINES[key])
                elif name in titles:  # another sheet has become the same with this model
                    continue
                titles.add(in_numbers.title)
                variant = library.variant(_in_symbols(library, sheet, chosen), chosen) if in_symbols else in_numbers
                yield CatalogueEntry(name, line, lesson, variant, in_numbers, keeps_model=not fits)


def _in_symbols(library: Library, sheet: Worksheet, model: str) -> str:
    symbols = key_in(sheet.key, "symbols")
    try:
        return symbols if library.refusal(symbols, model) is None else sheet.key
    except WorksheetError:  # this sheet has only numbers
        return sheet.key


def search(entries: tuple[CatalogueEntry, ...], text: str) -> tuple[CatalogueEntry, ...]:
    """The entries that have every word of the text, or its beginning, somewhere in them."""
    words = text.casefold().split()[:MAX_SEARCH_WORDS]
    return tuple(entry for entry in entries if all(word in entry.words for word in words))
