"""The prose of a sheet: description, task, assumptions and footnote, with every number from the config.

Which sentences a sheet has is written in the wording, each with its condition; `app.topics.facts` says what a condition
can name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.algebra.number_text import format_number
from app.shapes.parameter_inventory import Fact
from app.shapes.table import Blank, Count
from app.sheets.notation import NOTATIONS, without_own_name
from app.sheets.variant import Variant
from app.sheets.wording import MisconceptionText, PartsSection, Wording, fitting, fitting_text
from app.sheets.worksheet import AuthorMisconception
from app.topics.facts import local_layers
from app.topics.registry import TOPICS

# A whole number as sheets write it, 131,072 or 131072, by itself: not the 7 of 7B or of 2.7.
_NUMBER = re.compile(r"(?<![\w.,])[0-9]+(?:,[0-9]{3})*(?![0-9]|[.,][0-9])(?!\w)")
# Sizes that a sheet in symbols may be answered with if the description states them.
_OFFERED = frozenset({"H", "d_h", "d_nope", "d_rope"})


@dataclass(frozen=True)
class StatedFact:
    """A part of the description: its sentence, and the `symbols` of the sizes it states."""

    part: str
    sentence: str
    symbols: frozenset[str]
    aside: bool


def description(sheet: Variant) -> str:
    """The description of the model: the sentences of the sheet's topic that fit it, without asides."""
    if sheet.frozen:
        return str(sheet.frozen.texts["description"])
    return " ".join([*(fact.sentence for fact in stated_facts(sheet) if not fact.aside), *_inventory(sheet)])


def asides(sheet: Variant) -> str:
    """The sentences of the description that no row needs."""
    if sheet.frozen:
        return str(sheet.frozen.texts["asides"])
    return " ".join(fact.sentence for fact in stated_facts(sheet) if fact.aside)


def stated_facts(sheet: Variant) -> tuple[StatedFact, ...]:
    """The parts of the description that apply to the model, in order, each with its sentence."""
    return tuple(_stated(sheet, "description"))


def assumptions(sheet: Variant) -> tuple[str, ...]:
    """The assumptions of the sheet: the sentences of its topic that fit the model."""
    if sheet.frozen:
        return tuple(sheet.frozen.texts["assumptions"])
    return tuple(fact.sentence for fact in _stated(sheet, "assumptions"))


def _stated(sheet: Variant, section: PartsSection) -> Iterator[StatedFact]:
    forms, words = sheet.wording.forms(sheet.worksheet.topic, section), _words(sheet)
    for part in sheet.topic_wording.parts(section):
        if form := fitting(forms[part], sheet.problem):
            mark = "*" if part == "heads" and _simplifies_heads(sheet) else ""
            sentence = form.text.format(**words) + mark
            yield StatedFact(part, sentence, form.symbols, form.is_aside(sheet.problem))


def _words(sheet: Variant) -> dict[str, str]:
    model, sizes, local = sheet.architecture, sheet.sizes, local_layers(sheet.architecture)
    # The sheet is about an encoder's layers, or a decoder's, in a model with both.
    side = "decoder" if TOPICS[sheet.worksheet.topic].uses_decoder else "encoder"
    layer = side if model.encoder_decoder else "hybrid" if model.is_hybrid else "layer"
    return {
        **_written(sizes),
        "share": format_number(model.query_heads_per_kv_head),
        "attention_layers": format_number(len(model.attention_layers)),
        "first_layer": format_number(model.attention_layers[0] + 1 if model.attention_layers else 0),
        "local_layers": format_number(local.count),
        "W": format_number(local.window),
        "side": format_number((local.window - 1) // 2),
        "chunk": format_number(local.chunk),
        "norm": model.norm,
        "model": sheet.model.name,
        "layer": sheet.wording.say("layer-names", layer),
    }


def _written(sizes: Mapping[str, int]) -> dict[str, str]:
    return {symbol: format_number(size) for symbol, size in sizes.items()}


# A sheet that counts parameters describes all of its model's parts.


def _inventory(sheet: Variant) -> Iterator[str]:
    inventory = TOPICS[sheet.worksheet.topic].inventory
    for fact in inventory(sheet.architecture) if inventory else ():
        yield _fact_in_words(sheet.wording, fact)


def _fact_in_words(wording: Wording, fact: Fact) -> str:
    return wording.say("inventory", fact.key, **{name: _in_words(wording, value) for name, value in fact.words.items()})


def _in_words(wording: Wording, value: int | str | Fact | tuple[Fact, ...]) -> str:
    if isinstance(value, int):
        return format_number(value)
    if isinstance(value, Fact):
        return _fact_in_words(wording, value)
    if isinstance(value, str):
        return value
    *others, last = (_fact_in_words(wording, each) for each in value)
    return wording.say("inventory", "and", before=", ".join(others), after=last) if others else last


# What to write, and how


def task(sheet: Variant) -> str:
    """The sentences on what to write, and how."""
    if sheet.frozen:
        return str(sheet.frozen.texts["task"])
    problem, say = sheet.problem, sheet.wording.say
    sentences = [fitting_text(sheet.topic_wording.task, problem)]
    # Parameters and counts have no tokens, and for tensors with more dimensions the task already says it.
    if problem.table.activations and not problem.table.has_more_sides:
        sentences.append(say("answers", "tokens"))
    if sheet.worksheet.answers == "letters":
        symbols = ", ".join(f"{symbol}\u00a0= {name}" for symbol, name in _named_symbols(sheet))
        sentences.append(say("answers", "letters", list=symbols))
    return " ".join([*sentences, *_ways_of_counting(sheet)])


def _ways_of_counting(sheet: Variant) -> Iterator[str]:
    asks_no_sums = sheet.worksheet.answers == "letters" or TOPICS[sheet.worksheet.topic].in_steps
    if asks_no_sums or all(blank.field != "count" for blank in sheet.blanks):
        return
    asked = (sheet.table.askable[row] for row in sheet.problem.rows)
    units = {entry.unit for entry in asked if isinstance(entry, Count)}
    if units:
        yield sheet.wording.say("answers", "calculations")
    if "bytes" in units:
        yield sheet.wording.say("answers", "rounded-bytes")


def _named_symbols(sheet: Variant) -> Iterator[tuple[str, str]]:
    stated = frozenset[str]().union(*(fact.symbols for fact in stated_facts(sheet)))
    asked = (sheet.expression(blank).symbols for blank in sheet.blanks)
    symbols = frozenset({"d", *(_OFFERED & stated)}).union(*asked) - without_own_name(sheet.sizes)
    for symbol, forms in sheet.wording.forms(sheet.worksheet.topic, "symbol-names").items():
        if symbol in symbols:
            yield sheet.notation.symbol(symbol), fitting_text(forms, sheet.problem)


def given(sheet: Variant) -> tuple[str, ...]:
    """The sizes or symbols that the sheet gives, as typed: ("4096", "32", "128", "100"), or ("T", "d", "h")."""
    if sheet.worksheet.answers == "letters":
        return tuple(symbol for symbol, _name in _named_symbols(sheet))
    worksheet = sheet.worksheet
    texts = (description(sheet), *assumptions(sheet), footnote(sheet) or "", worksheet.introduction, worksheet.footnote)
    numbers = dict.fromkeys(int(text.replace(",", "")) for text in _NUMBER.findall(" ".join(texts)))
    return tuple(str(number) for number in numbers if number > 9 and number in sheet.sizes.values())


def size_in_words(sheet: Variant, symbol: str) -> str:
    """A size as this model's description names it, "the embedding dimension"; "" for any other symbol."""
    return fitting_text(sheet.wording.forms(sheet.worksheet.topic, "stated-sizes").get(symbol, ()), sheet.problem)


# Below and beside the sheet


def footnote(sheet: Variant) -> str | None:
    """A sentence that the sheet gives every query head its own key/value head, though the model shares them."""
    if sheet.frozen:
        frozen_footnote: str | None = sheet.frozen.texts["footnote"]
        return frozen_footnote
    if not _simplifies_heads(sheet):
        return None
    real = sheet.model.architecture
    key = "kv-head-per-query-head-one" if real.G == 1 else "kv-head-per-query-head"
    words = {"model": sheet.model.name, "share": real.query_heads_per_kv_head, **_written(real.all_sizes)}
    has_mark = any(fact.part == "heads" for fact in stated_facts(sheet))
    return ("* " if has_mark else "") + sheet.wording.say("footnotes", key, **words)


def report(sheet: Variant) -> str:
    """The address of a report on the model, for the footnote; "" without one."""
    return sheet.model.report if _simplifies_heads(sheet) else ""


def _simplifies_heads(sheet: Variant) -> bool:
    return sheet.architecture.G != sheet.model.architecture.G


def cached(sheet: Variant) -> str:
    """Which layers' KV caches hold which tokens, if the text is longer than a sliding window."""
    return fitting_text(sheet.wording.description["cached"], sheet.problem).format(**_words(sheet))


def exceeds_context(sheet: Variant) -> bool:
    """Whether the description says that the sequence exceeds the context length in the model's config."""
    return any(fact.part == "long-input" for fact in stated_facts(sheet))


def nudge(sheet: Variant, blank: Blank) -> str:
    """The question next to a wrong box, which points to the idea without any number of the sheet."""
    return sheet.frozen.nudges[str(blank)] if sheet.frozen else sheet.topic_wording.nudge(blank)


def misconception(sheet: Variant, key: str, kind: MisconceptionText) -> str:
    """A misconception's "nudge", "hint" or "explanation" in the sheet's notation; KeyError for an unknown key."""
    if described := _author_misconception(sheet, key):
        return {"nudge": described.question, "explanation": described.explanation}.get(kind, "")
    notation = NOTATIONS[sheet.worksheet.notation]
    return re.sub(r"W_\w+", lambda match: notation.letter(match[0], match[0]), sheet.wording.misconception(key, kind))


def misconception_name(sheet: Variant, key: str) -> str:
    """A misconception in a few words, such as 'Head as wide as the model'; raises KeyError for an unknown one."""
    described = _author_misconception(sheet, key)
    return described.name if described else sheet.wording.misconception_name(key)


def _author_misconception(sheet: Variant, key: str) -> AuthorMisconception | None:
    return next((each for each in sheet.worksheet.misconceptions if each.key == key), None)
