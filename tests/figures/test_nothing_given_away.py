"""The empty drawing shows what the sheet's text gives, and nothing else that a box asks for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import dist
from xml.etree import ElementTree as ET

import pytest

from app.figures.parts import Figure
from app.figures.scale import MIN_SIDE_PX
from app.figures.sheet_figures import draw_figures
from app.figures.svg import figure_svg
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.answers import box_unit
from app.sheets.notation import NOTATIONS
from app.sheets.prose import step_of
from app.sheets.variant import Variant
from app.topics.registry import TOPICS
from tests.helpers.shipped import LIBRARY

# The sizes that answers are made of. Heads and layers are not among them: the drawing may show how many there are.
SIZES = ("d", "d_h", "d_v", "d_ff")
# Of a sheet in steps, the drawing shows what the question states; see the last test.
SHEETS = [key for key, sheet in LIBRARY.worksheets.items() if not TOPICS[sheet.topic].in_steps]
DRAWN = [key for key in SHEETS if not TOPICS[LIBRARY.worksheets[key].topic].bugs]  # not what shows a program


def drawn_empty(variant: Variant) -> tuple[Figure, ...]:
    """The drawing before the first box is typed, as a student sees it."""
    return draw_figures(variant, {})


def written(figure: Figure) -> Iterator[str]:
    """Every text of the drawing, the data that scripts read, and its captions."""
    for element in ET.fromstring(figure_svg(figure)).iter():  # noqa: S314 - made here
        yield from filter(None, (element.text, element.tail, element.get("data-size")))
    yield from figure.captions
    yield from (each.sentence for each in figure.mismatches)


def with_other_sizes(variant: Variant) -> Variant:
    """The same sheet of a model that is larger in every size, with half of the tokens if they fill the same windows."""
    architecture = variant.architecture
    if variant.worksheet.topic == "feed-forward-width":
        return variant
    sizes = {name: getattr(architecture, name) * factor for name, factor in zip(SIZES, (3, 5, 5, 11), strict=True)}
    extra = {name: size * 13 for name, size in architecture.extra.items() if name.startswith("d_")}
    larger = replace(architecture, **sizes, extra={**architecture.extra, **extra})
    other = replace(variant, model=replace(variant.model, architecture=larger))
    if "E" in variant.sizes:
        return other  # experts divide the tokens among themselves
    shorter = replace(other, tokens=variant.tokens // 2)
    return shorter if shorter.table.key == variant.table.key else other


def asked_lengths(variant: Variant, figures: tuple[Figure, ...]) -> list[tuple[Blank | None, float]]:
    """How long the sides are drawn that boxes ask for."""
    edges = (edge for figure in figures for edge in figure.edges if edge.blank in variant.problem.answers)
    return [(edge.blank, round(dist(edge.start, edge.end), 6)) for edge in edges]


def check(variant: Variant) -> None:
    """The empty drawing shows no answer but what the text gives, and no side that a box asks for to scale."""
    figures, others = drawn_empty(variant), drawn_empty(with_other_sizes(variant))
    texts = [text for figure in figures for text in (*written(figure), figure.alt_text.split(". ")[-1])]
    numbers = {int(number.replace(",", "")) for text in texts for number in re.findall(r"\d[\d,]*", text)}
    labels = {edge.label for figure in figures for edge in figure.edges if edge.blank in variant.problem.answers}
    assert labels <= {"?", ""}, variant.code
    given = set(map(int, re.findall(r"\d+", re.sub(r"(?<=\d),(?=\d{3})", "", prose.description(variant)))))
    answers = {n for blank, n in variant.problem.answers.items() if box_unit(variant.problem, blank) != "index"}
    assert not numbers & answers - given, variant.code  # an index may be any small number, as that of drawn tokens
    assert all(len({box.rect.width for box in each.boxes}) <= 1 for each in figures if each.is_chart)
    assert asked_lengths(variant, figures) == asked_lengths(variant, others), variant.code


@pytest.mark.parametrize("worksheet", SHEETS)
def test_no_box_can_be_read_off_the_empty_drawing(worksheet: str) -> None:
    check(LIBRARY.variant(worksheet))


@pytest.mark.slow
@pytest.mark.parametrize("worksheet", DRAWN)
def test_no_box_of_any_model_can_be_read_off_in_any_notation(worksheet: str) -> None:
    models = [model for model in LIBRARY.models if LIBRARY.refusal(worksheet, model) is None]
    for model, notation in product(models, NOTATIONS):
        variant = LIBRARY.variant(worksheet, model)
        check(replace(variant, worksheet=replace(variant.worksheet, notation=notation)))


@pytest.mark.parametrize("model", ["llama-7b", "gpt2"])
def test_a_step_draws_what_its_question_states_and_not_what_it_asks_for(model: str) -> None:
    variant = LIBRARY.variant("first-steps", model)
    right, answers, introduced = variant.problem.answers, dict[Blank, int](), ""
    for row in variant.rows:
        step = step_of(variant, row.key)
        assert step
        introduced += step.question
        stated = re.findall(r"(\w+)(?: = [^:?]*)?: (\d[\d,]*\u00a0×\u00a0\d[\d,]*)", step.question)
        empty = draw_figures(variant, answers, step=row.key)
        for typed in ({}, dict.fromkeys(row.blanks, 777), {blank: right[blank] for blank in row.blanks}):
            [figure] = draw_figures(variant, {**answers, **typed}, step=row.key)
            assert figure.tensors == empty[0].tensors, row.key
            assert row.fields == ("count",) or row.key in figure.tensors or row.key == "transposed_key"
            assert bool(figure.mismatches) == (777 in typed.values() and row.fields != ("count",)), row.key
            new = [key for key in figure.tensors if not re.search(rf"(?<!\w){variant.letters[key]}\b", introduced)]
            assert new == ["token_score"] * (row.key == "transposed_key"), row.key
            drawn = dict(re.findall(r"(\S+) (\S+ × \S+)[,.]", figure.alt_text))
            for letter, shape in stated:
                assert drawn.get(letter, shape.replace("\u00a0", " ")) == shape.replace("\u00a0", " "), row.key
            labels = {edge.label for edge in figure.edges if edge.blank in row.blanks}
            assert labels <= ({f"{length}" for length in typed.values()} if typed else {"?"}), row.key
        answers |= {blank: right[blank] for blank in row.blanks}
    first = draw_figures(variant, {})[0]
    assert {box.tensor: box.incomplete for box in first.boxes} == {"token": False, "W_Q": False, "token_query": True}


def test_given_matrices_are_drawn_on_one_scale_with_what_is_typed() -> None:
    variant = LIBRARY.variant("first-steps", "llama-7b")
    wrong = {Blank("token_query", "rows"): 4096, Blank("token_query", "columns"): 128}
    for typed in ({}, wrong):
        sizes = {box.tensor: box.rect[2:] for box in draw_figures(variant, typed, step="token_query")[0].boxes}
        width, height = sizes["token"]
        assert width == pytest.approx(100)
        assert height == 7
        assert sizes["W_Q"] == pytest.approx((width * (128 / 4096) ** 0.5, width))
    assert sizes["token_query"] == sizes["W_Q"]


@pytest.mark.parametrize("worksheet", DRAWN)
def test_given_parameters_are_drawn_at_their_sizes_from_the_first_second(worksheet: str) -> None:
    variant = LIBRARY.variant(worksheet)
    asks_parameters = any(row.key in variant.table.by_key and variant.table[row.key].parameter for row in variant.rows)
    if variant.worksheet.answers == "letters" or asks_parameters:
        return
    stated = frozenset[str]().union(*(fact.symbols for fact in prose.stated_facts(variant)))
    for figure in draw_figures(variant, {}):
        lengths = dict[int, set[float]]()
        sides = ((edge, edge.blank) for edge in figure.edges if edge.blank)
        for edge, blank in ((edge, blank) for edge, blank in sides if blank.tensor in variant.table.by_key):
            tensor = variant.table[blank.tensor]
            if tensor.parameter and str(length := tensor.expression(blank.field)) in stated:
                size = length.size(variant.sizes)
                assert edge.label.replace(",", "") == str(size), edge
                if len(tensor.sides) == 2:  # not the cards of a deck, which are drawn slanting
                    lengths.setdefault(size, set()).add(round(dist(edge.start, edge.end), 3))
        assert all(len(drawn) == 1 for drawn in lengths.values()), lengths
        long = {size: min(drawn) for size, drawn in lengths.items() if min(drawn) > MIN_SIDE_PX}
        if long and not any(box.gaps for box in figure.boxes):
            assert [px / math.sqrt(size) for size, px in long.items()] == pytest.approx(
                [min(long.values()) / math.sqrt(min(long))] * len(long), rel=1e-3
            )
