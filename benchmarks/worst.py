"""The slowest texts that the limits allow, and the processor time they take: `make bench-worst`.

What a student or visitor sends may take 100 ms, what a teacher sends one second.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from app.exchange.changed_lines import changed_lines
from app.exchange.class_list import RosterError, read_roster
from app.exchange.material_file import MaterialFileError, read_material_file
from app.exchange.toml_text import MAX_TOML_BYTES, TomlError, read_toml, write_toml
from app.figures.sheet_figures import draw_figures
from app.grading.grade import AnswersError, grade
from app.grading.hints import write_hint
from app.grading.paper import mark_lines
from app.models.config_fields import ConfigError
from app.models.parameter_count import parameters_json
from app.models.read_config import read_config
from app.settings import PROJECT
from app.sheets.answers import MAX_BOX_TEXT, MAX_NUMBER_TEXT, MAX_SYMBOLS_TEXT, Answer, parse_formula
from app.sheets.authoring.markdown import check_markdown
from app.sheets.authoring.worksheet_settings import check_settings
from app.sheets.exit_tickets import check_ticket
from app.sheets.library import Library, load_library
from app.sheets.variant import Variant
from app.sheets.worksheet import MAX_FORMULA, MAX_MARKDOWN, WorksheetError
from app.web.shared.request_guard import MAX_PAPER

STUDENT_S, TEACHER_S = 0.1, 1.0
VERSION_S = 0.14  # a page of a worksheet compares seven
REFUSALS = (WorksheetError, TomlError, RosterError, AnswersError, ConfigError, MaterialFileError)
RANDOM_TEXTS = 8  # of each kind, besides those written by hand
SIGNS = (
    "+", "-", "*", "/", "^", "(", ")", " ", ",", ".", "1", "2", "9", "128", "4096", "e9", "k", "Ki", "N", "d", "d_h",
    "H", "T", "h", "G", "x", "=", "a", "'", "_",
)  # fmt: skip
MARKS = (
    "*", "_", "`", "[", "]", "(", ")", "$", "\n", " ", "> ", "- ", "#", "a", "\\", "<", "&", "|", "!", "1. ", "**",
    "~~",
)  # fmt: skip

Kind = tuple[str, float, Callable[[str], object], Iterable[str]]  # its name, its limit, what is done, and the texts


def main() -> None:
    """Print the slowest text of each kind; exit with status 1 if one took longer than it may."""
    library, failed = load_library(PROJECT / "worksheets"), False
    for name, most_s, work, texts in kinds(library):
        slowest = max(((seconds(work, text), text) for text in texts), key=lambda found: found[0])
        failed |= slowest[0] > most_s
        shown = json.dumps(slowest[1][:50], ensure_ascii=False)
        print(f"  {name}: {1e3 * slowest[0]:.0f} ms (at most {1e3 * most_s:.0f} ms): {shown}", flush=True)
    sys.exit(failed)


def seconds(work: Callable[[str], object], text: str) -> float:
    """The processor time that the work takes with a text, whether it is refused or not; the shorter of two tries."""
    times = list[float]()
    for _ in range(2):
        started = time.process_time()
        with suppress(*REFUSALS):
            work(text)
        times.append(time.process_time() - started)
    return min(times)


def kinds(library: Library) -> Iterator[Kind]:
    """Everything that somebody types or sends, with what the app does with it."""
    chance = random.Random(1)  # noqa: S311 - so that it can be repeated
    for key in ("llama-7b", "costs-llama-7b", "four-dimensions-gpt2", "whole-model-gpt2"):
        if key in library.worksheets:
            variant = library.variant(key)
            answers = [
                *_texts(SIGNS, MAX_NUMBER_TEXT, chance),
                "(" * 50 + "1" + ")" * 49,
                "9^99",
                "1" + "/7" * 49,
            ]
            yield (
                f"one answer in every box of {key}, graded with a hint and drawn",
                STUDENT_S,
                _filled(variant),
                answers,
            )
    in_symbols = [f"{key}~symbols" for key, sheet in library.worksheets.items() if not sheet.why_not_in_symbols]
    for key in (key for key in in_symbols if not library.refusal(key, library.worksheet(key).model)):
        variant = library.variant(key)
        yield f"symbols in every box of {key}", STUDENT_S, _filled(variant), _symbols(variant, chance)
    mixture = library.variant("experts-mixtral-8x7b~symbols")
    long = [*_texts(SIGNS, MAX_SYMBOLS_TEXT, chance), *(text * 8 for text in _symbols(mixture, chance))]
    yield "an answer of 1,000 characters in every box, by the API", STUDENT_S, _filled(mixture, drawn=False), long
    llama = library.variant("llama-7b")
    line = " ".join(["(((1)))*(2+3)-4"] * len(llama.blanks))
    lines = ["\n".join([f"Kim: {line}"] * 1000), *(text * 30 for text in _texts(SIGNS, 2000, chance, count=5))]
    yield "lines of paper answers, by a visitor", STUDENT_S, lambda text: mark_lines(llama, text[:MAX_PAPER]), lines
    yield from _of_authors(library, chance)
    yield from _files(library, chance)


def _of_authors(library: Library, chance: random.Random) -> Iterator[Kind]:
    llama, mixture = library.variant("llama-7b"), library.variant("experts-mixtral-8x7b~symbols")
    formulas = [*_texts(SIGNS, MAX_FORMULA, chance), *_symbols(mixture, chance), "(" + "+".join("NdHGVL") + ")^9"]
    for variant in (llama, mixture):
        read = partial(parse_formula, variant.symbols)
        yield f"a formula of an author on {variant.worksheet.key}", 0.025, read, formulas

    def checked(formula: str) -> object:
        own = [
            {
                "key": f"own-{number}",
                "name": f"M{number}",
                "question": "?",
                "explanation": "a *b* $d_h$ " * 300,
                "boxes": dict.fromkeys(llama.blanks_by_name, formula),
            }
            for number in range(10)
        ]
        settings = {**llama.worksheet.settings, "misconceptions": own}
        sheet, _errors = check_settings("own", settings, library.models, library.wording)
        if sheet is None:
            return None
        variant = replace(llama, worksheet=sheet)
        return grade(variant, dict.fromkeys(variant.blanks_by_name, "7"))

    yield "a worksheet with 140 formulas, checked and graded", TEACHER_S, checked, formulas
    yield "a text of an author in Markdown", 0.2, check_markdown, _texts(MARKS, MAX_MARKDOWN, chance)

    def ticket(text: str) -> object:
        questions = [
            {
                "key": f"q{number}",
                "text": text,
                "kind": "choose-one",
                "options": [text + str(option) for option in range(10)],
            }
            for number in range(20)
        ]
        return check_ticket("own", {"title": text, "instruction": text, "questions": questions})

    yield "an exit ticket", TEACHER_S, ticket, ["a" * 9_000, "a" + "\u0301" * 4_500 + "\u0316" * 4_500, " " * 9_000]


def _files(library: Library, chance: random.Random) -> Iterator[Kind]:
    pieces = (
        "k{}=1\n",
        "[t{}]\n",
        "a.b{}.c=1\n",
        "[[t{}]]\n",
        'a{}="x"\n',
        "#\n",
        "\n",
        "[",
        "a={{",
        "'",
        '"',
        '"""',
        "a.",
        "1,",
    )
    tomls = ["".join(map(piece.format, range(MAX_TOML_BYTES // (len(piece) + 5)))) for piece in pieces]
    tomls += [
        "rows = [" + '"a",' * 100_000 + "]",
        "models = [" + '"cfg-1",' * 60_000 + "]",
        "a=[" + "1," * 240_000 + "]",
    ]
    yield "a file of settings", TEACHER_S, lambda text: read_material_file("own", text, library), tomls
    yield "TOML", TEACHER_S, read_toml, tomls
    settings = library.worksheets["llama-7b"].settings
    before = write_toml({**settings, "introduction": "\n".join("ab"[n % 2] for n in range(1900))}) * 13
    versions = ["\n".join(chance.choice("abc") for _ in range(25_000)), before[::-1], before.replace("a\n", "c\na\n")]
    yield "the changes of one version", VERSION_S, lambda text: changed_lines(before, text), versions
    rosters = [
        "\n".join(f"Lee, Kim {number};{number}" for number in range(5_000)),
        "Name;Number\n" + "\n".join(f"é{'e' * 70}{number};{number}" for number in range(5_000)),
        "a" + "\u0301" * 240_000 + "\u0316" * 240_000,
        *(
            piece * (1_000_000 // len(piece))
            for piece in ('"', ",", "a,", '"a",', "Lee, Kim, ", "a@b ", "\t", "x\n", "Name,")
        ),
    ]
    yield "a class list", TEACHER_S, read_roster, rosters
    for path in sorted((PROJECT / "worksheets" / "models").glob("*.json"))[:2]:
        stated = json.loads(path.read_text(encoding="utf-8"))["config"]
        yield f"a config like {path.stem}", STUDENT_S, _counted, _configs(stated)


def _counted(text: str) -> object:
    return parameters_json(read_config(text))


def _configs(stated: Mapping[str, Any]) -> Iterator[str]:
    for name, value in stated.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield from (json.dumps({**stated, name: number}) for number in (10_000, 10_000_000, 1))
        yield json.dumps({**stated, name: [1] * 10_000})
        yield json.dumps({**stated, name: {str(number): number for number in range(10_000)}})
    yield json.dumps({**stated, "layer_types": ["full_attention", "sliding_attention"] * 5_000})
    yield json.dumps({**stated, **{f"k{number}": number for number in range(60_000)}})
    yield json.dumps(stated)[:-1] + ', "deep": ' + "[" * 400_000


def _texts(pieces: Iterable[str], length: int, chance: random.Random, count: int = RANDOM_TEXTS) -> list[str]:
    known = tuple(pieces)
    texts = [piece * length for piece in known]
    for _ in range(count):
        some = chance.sample(known, chance.randrange(2, 6))
        texts.append("".join(chance.choice(some) for _ in range(length)))
        texts.append("".join(some) * length)
    return [text[:length] for text in texts]


def _symbols(variant: Variant, chance: random.Random) -> list[str]:
    names = variant.symbols.written
    sizes = {name: variant.symbols.size_by_name[name] for name in names}
    right = variant.notation.write(variant.expression(variant.blanks[-1]))
    zeros = [f"({name}-{sizes[name]})" for name in names if name not in ("T", "S")]
    texts = [
        f"{right}+{'+'.join(names)}+{'*'.join(names)}",
        f"({'+'.join(names)})^4",
        f"({'+'.join(names[:3])})^9",
        f"{right}+{'*'.join(zeros[:5])}*{names[0]}^9",
        f"{right}+" + "+".join(f"{name}^20-{name}^20" for name in names),
        f"{right}*({names[-1]}/{sizes[names[-1]]})^40",
        *(f"{right}+{'*'.join(chance.sample(zeros, min(count, len(zeros))))}" for count in range(1, 7)),
        *_texts((*names, "+", "*", "(", ")", "^9", "/", "-", *map(str, range(1, 4))), MAX_BOX_TEXT, chance, count=4),
    ]
    return [text[:MAX_BOX_TEXT] for text in texts]


def _filled(variant: Variant, *, drawn: bool = True) -> Callable[[str], object]:
    def check(text: str) -> object:
        report = grade(variant, dict.fromkeys(variant.blanks_by_name, text))
        hint = write_hint(variant, report, 3)
        if not drawn:
            return hint
        typed = {blank: answer for blank in variant.blanks if isinstance(answer := variant.read(blank, text), Answer)}
        return hint, draw_figures(variant, typed)

    return check


if __name__ == "__main__":
    main()
