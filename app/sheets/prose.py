"""What a sheet says: description, task, assumptions, footnote, steps and formulas, with every number from the config.

Which sentences a sheet has is written in the wording, each with its condition; `app.topics.facts` says what a condition
can name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import NamedTuple

from app.algebra.number_text import format_number
from app.shapes.parameter_inventory import Fact
from app.shapes.table import Blank, Count, Joint, OneOf
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


def task(sheet: Variant, *, in_digits: bool = False) -> str:
    """The sentences on what to write, and how; `in_digits` leaves out the other ways to write a number."""
    return " ".join(filter(None, (what_to_write(sheet, in_digits=in_digits), how_to_write(sheet))))


def what_to_write(sheet: Variant, *, in_digits: bool = False) -> str:
    """What a page says above the boxes."""
    if sheet.frozen:
        return str(sheet.frozen.texts["task"])
    problem, say = sheet.problem, sheet.wording.say
    sentences = [fitting_text(sheet.topic_wording.task, problem)]
    # Parameters and counts have no tokens, and for tensors with more dimensions the task already says it.
    if problem.table.activations and not problem.table.has_more_sides:
        sentences.append(say("answers", "tokens"))
    if sheet.worksheet.in_letters:
        sentences.append(say("answers", "letters"))
    return " ".join([*sentences, *(() if in_digits else _ways_of_counting(sheet))])


def how_to_write(sheet: Variant) -> str:
    """The rest of the task, which a page folds: what the symbols stand for, and rules of the topic; "" without any."""
    if sheet.frozen:
        return str(sheet.frozen.texts["how"])
    sentences = [fitting_text(sheet.topic_wording.how, sheet.problem)]
    if sheet.worksheet.in_letters:
        symbols = ", ".join(f"{symbol}\u00a0= {name}" for symbol, name in _named_symbols(sheet))
        sentences.append(sheet.wording.say("answers", "symbols", list=symbols))
    return " ".join(filter(None, sentences))


def _ways_of_counting(sheet: Variant) -> Iterator[str]:
    asks_no_sums = sheet.worksheet.in_letters or TOPICS[sheet.worksheet.topic].in_steps
    if asks_no_sums or all(not blank.is_count for blank in sheet.blanks):
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
    for symbol, forms in sheet.wording.forms(sheet.worksheet.topic, "symbol_names").items():
        if symbol in symbols:
            yield sheet.notation.symbol(symbol), fitting_text(forms, sheet.problem)


def given(sheet: Variant) -> tuple[str, ...]:
    """The sizes or symbols that the sheet gives, as typed: ("4096", "32", "128", "100"), or ("T", "d", "h")."""
    if sheet.worksheet.in_letters:
        return tuple(symbol for symbol, _name in _named_symbols(sheet))
    worksheet = sheet.worksheet
    texts = (description(sheet), *assumptions(sheet), footnote(sheet) or "", worksheet.introduction, worksheet.footnote)
    numbers = _numbers_in(" ".join(texts))
    return tuple(str(number) for number in numbers if number > 9 and number in sheet.sizes.values())


def ruler_words(sheet: Variant) -> Iterator[tuple[str, str]]:
    """Yield the symbols of the sizes that the description gives as numbers, with the words after each number."""
    stated = frozenset[str]().union(*(fact.symbols for fact in stated_facts(sheet)))
    numbers = _numbers_in(description(sheet))
    for symbol, forms in sheet.wording.forms(sheet.worksheet.topic, "ruler").items():
        words = fitting_text(forms, sheet.problem)
        if words and symbol in stated and sheet.sizes.get(symbol) in numbers:
            yield symbol, words


def _numbers_in(text: str) -> dict[int, None]:
    return dict.fromkeys(int(number.replace(",", "")) for number in _NUMBER.findall(text))


def size_in_words(sheet: Variant, symbol: str) -> str:
    """A size as this model's description names it, "the embedding dimension"; "" for any other symbol."""
    return fitting_text(sheet.wording.forms(sheet.worksheet.topic, "stated_sizes").get(symbol, ()), sheet.problem)


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
    letters = NOTATIONS[sheet.worksheet.notation].letters
    return re.sub(r"W_\w+", lambda match: letters.get(match[0], match[0]), sheet.wording.misconception(key, kind))


def misconception_name(sheet: Variant, key: str) -> str:
    """A misconception in a few words, such as 'Head as wide as the model'; raises KeyError for an unknown one."""
    described = _author_misconception(sheet, key)
    return described.name if described else sheet.wording.misconception_name(key)


def _author_misconception(sheet: Variant, key: str) -> AuthorMisconception | None:
    return next((each for each in sheet.worksheet.misconceptions if each.key == key), None)


# Steps: the question that asks for a row and, once it is right, the reason

_NO_BREAK = "\u00a0"  # a non-breaking space


@dataclass(frozen=True)
class StepSentences:
    """A step's question and, once it is answered, a follow-up question with the reason; both give the answer away."""

    question: str
    why: str
    reason: str


@dataclass(frozen=True)
class _Matrix:
    """A matrix in a sentence: {queries} is its letter; {queries.shape} and {queries.formula} work as well."""

    letter: str
    shape: str
    formula: str

    def __str__(self) -> str:
        return self.letter


def step_of(variant: Variant, row: str) -> StepSentences | None:
    """The step that asks for a row, in the sheet's letters and with the model's numbers, or None."""
    if variant.frozen:
        said = variant.frozen.row(row)
        return StepSentences(**said["step"]) if said and said["step"] else None
    wording = variant.topic_wording.steps.get(row)
    if wording is None:
        return None
    sizes = {symbol: format_number(size) for symbol, size in variant.sizes.items()}
    matrices = {tensor.key: _matrix(variant, tensor.key) for tensor in variant.table.tensors}
    words = {
        **sizes,
        **matrices,
        "d_h-symbol": variant.notation.symbol("d_h"),
        "pairs": format_number(variant.tokens**2),
        "each-query": variant.wording.say("formulas", "each-query"),
    }
    question, reason = (fitting_text(forms, variant.problem) for forms in (wording.question, wording.reason))
    return StepSentences(*(sentence.format_map(words) for sentence in (question, wording.why, reason)))


def rows_so_far(variant: Variant, filled_in: Collection[Blank], step: str = "") -> tuple[str, ...]:
    """The rows of a sheet in steps up to the one being asked: `step`, or the first with an empty box."""
    rows = list[str]()
    for row in variant.rows:
        rows.append(row.key)
        if row.key == step or (not step and not all(blank in filled_in for blank in row.blanks)):
            break
    return tuple(rows)


def given_matrices(variant: Variant, rows: Collection[str]) -> Iterator[str]:
    """Yield the inputs and parameters in these rows' questions that the sheet doesn't ask for."""
    for row in rows:
        if wording := variant.topic_wording.steps.get(row):
            question = fitting_text(wording.question, variant.problem)
            names = (name or "" for _text, name, _spec, _conversion in Formatter().parse(question))
            named = {name.removesuffix(".shape") for name in names} & variant.table.by_key.keys()
            yield from (key for key in named - {*variant.worksheet.rows} if variant.table[key].made_by is None)


def _matrix(variant: Variant, key: str) -> _Matrix:
    lengths = (format_number(side.size(variant.sizes)) for side in variant.table[key].shape)
    shape = " × ".join(lengths).replace(" ", _NO_BREAK)
    return _Matrix(variant.letters[key], shape, write_formula(variant, key).replace(" · ", f"{_NO_BREAK}·{_NO_BREAK}"))


# Formulas in the letters of the sheet: '{input} · {W_Q}' is "X · W_Q" on one and "E · W'_Q" on another.
# Braces name a tensor or count of the table, a size, or a phrase of the wording's section "formulas", which may itself
# name tensors.

_NAME_IN_BRACES = re.compile(r"\{([\w-]+)\}")
_SUM_OF_SIZES = re.compile(r"\(\{(\w+)\} \+ \{(\w+)\}\)")


class FormulaPiece(NamedTuple):
    """A part of a formula as text: a symbol, which is set as mathematics, or the text between symbols."""

    text: str
    is_symbol: bool


def formula_pieces(variant: Variant, key: str) -> tuple[FormulaPiece, ...]:
    """The formula of a tensor or count in the sheet's notation, cut into symbols and text.

    Raises KeyError for an unknown key.

    Example: the scores of a head in the classic notation are "Q", " · ", "K", "ᵀ".
    """
    entry = variant.table.askable.get(key) or variant.table[key]
    if isinstance(entry, OneOf | Joint):
        return ()
    if isinstance(entry, Count):
        return tuple(_pieces(variant, _with_alike_sizes_added(variant, entry.formula)))
    return tuple(_pieces(variant, variant.table.formula(key)))


def write_formula(variant: Variant, key: str) -> str:
    """The pieces of `formula_pieces` as one text, "Q · Kᵀ"; cached, since each drawing of a sheet repeats it."""
    if key not in variant.written_formulas:
        variant.written_formulas[key] = "".join(piece.text for piece in formula_pieces(variant, key))
    return variant.written_formulas[key]


def _with_alike_sizes_added(variant: Variant, formula: str) -> str:
    def added(match: re.Match[str]) -> str:
        first, second = (variant.notation.symbol(name) for name in match.groups())
        return f"2 · {{{match[1]}}}" if first == second else match[0]

    return _SUM_OF_SIZES.sub(added, formula)


def _pieces(variant: Variant, formula: str) -> Iterator[FormulaPiece]:
    phrases = {**variant.wording.sheets["formulas"], "norm": variant.architecture.norm}

    def phrase(match: re.Match[str]) -> str:
        name = match[1]
        return match[0] if name in variant.letters or name in variant.sizes else str(phrases.get(name, match[0]))

    for at, text in enumerate(_NAME_IN_BRACES.split(_NAME_IN_BRACES.sub(phrase, formula))):
        if at % 2:
            yield _named(variant, text)
        elif text:
            yield FormulaPiece(text, is_symbol=False)


def _named(variant: Variant, name: str) -> FormulaPiece:
    if letter := variant.letters.get(name):
        return FormulaPiece(letter, is_symbol=True)
    if name in variant.table.askable:
        row = variant.row_name(name)
        stays = row[1:2].isupper()  # "LM head"
        return FormulaPiece(row if stays else row[:1].lower() + row[1:], is_symbol=False)
    return FormulaPiece(variant.notation.symbol(name), is_symbol=True)
