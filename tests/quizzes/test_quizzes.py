"""Sheets as questions of other systems, answered by small readers of what those systems do with such files."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import unescape
from itertools import groupby
from xml.etree import ElementTree as ET

import pytest

from app.grading.grade import grade
from app.grading.mistaken_sheets import mistaken_texts, right_texts
from app.quizzes.formats import FORMATS
from app.quizzes.quiz import Quiz, QuizError, draw_versions, quiz_of
from app.sheets.library import Library
from app.sheets.variant import Variant

QTI12 = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"
QTI21 = "{http://www.imsglobal.org/xsd/imsqti_v2p1}"
GAP = re.compile(r"\{(\d+):NUMERICAL:((?:\\.|[^\\}])*)\}")


def read_xml(data: bytes) -> ET.Element:
    return ET.fromstring(data)  # noqa: S314 - written here


class MoodleGap:
    """A gap of a cloze question, by Moodle's rules: answers at ~, feedback after #, the first that fits counts."""

    def __init__(self, weight: str, answers: str) -> None:
        self.weight = int(weight)
        self.answers = [self._answer(each) for each in answers.split("~")]

    def _answer(self, text: str) -> tuple[float, str, str]:
        answer, _sign, feedback = re.sub(r"\\([}#])", lambda at: f"&#{ord(at[1])};", text).partition("#")
        share = 1.0 if answer.startswith("=") else 0.0
        if percent := re.match(r"%(-?\d+)%", answer):
            share, answer = int(percent[1]) / 100, answer[percent.end() :]
        return share, answer.removeprefix("=").removesuffix(":0"), unescape(feedback)

    def mark(self, typed: str) -> tuple[float, str]:
        """The points and the feedback for a typed number."""
        for share, answer, feedback in self.answers:
            if answer in (typed, "*"):
                return share * self.weight, feedback
        return 0.0, ""


def moodle_gaps(quiz: Quiz) -> list[MoodleGap]:
    root = read_xml(FORMATS["moodle"].write([quiz]))
    text = root.findtext("question[@type='cloze']/questiontext/text") or ""
    return [MoodleGap(*gap.groups()) for gap in GAP.finditer(text)]


def qti21_item(quiz: Quiz) -> ET.Element:
    with zipfile.ZipFile(io.BytesIO(FORMATS["qti21"].write([quiz]))) as archive:
        return read_xml(archive.read(f"{quiz.code}.xml"))


def score_by_qti21(item: ET.Element, typed: Mapping[str, int]) -> float:
    """The score of an item for these responses, following its response processing."""
    score = 0.0
    for condition in item.iterfind(f"{QTI21}responseProcessing/{QTI21}responseCondition"):
        branch = condition[0]
        variable, value = branch[0]
        if typed[variable.attrib["identifier"]] == int(value.text or ""):
            score += float(branch.findtext(f"{QTI21}setOutcomeValue//{QTI21}baseValue") or 0)
    return score


def exportable(library: Library) -> Iterator[tuple[Variant, Quiz]]:
    for key in library.worksheets:
        variant = library.variant(key)
        try:
            yield variant, quiz_of(variant)
        except QuizError:
            assert any(row.is_question for row in variant.rows) or variant.worksheet.in_letters


def test_right_answers_to_every_sheet_earn_everything_in_every_format(library: Library) -> None:
    sheets = list(exportable(library))
    assert len(sheets) > 30
    for variant, quiz in sheets:
        key, best = variant.key, variant.best_score
        assert {box.name: box.right for box in quiz.boxes} == key
        gaps = moodle_gaps(quiz)
        assert len(gaps) == len(key)
        assert sum(gap.mark(str(number))[0] for gap, number in zip(gaps, key.values(), strict=True)) == best
        typed = {box.key: key[box.name] for box in quiz.boxes}
        assert score_by_qti21(qti21_item(quiz), typed) == best


@pytest.mark.parametrize("worksheet", ["llama-7b", "layer-mistral-7b", "count-llama-7b"])
def test_a_misconception_costs_its_boxes_and_is_named_at_the_first(library: Library, worksheet: str) -> None:
    variant = library.variant(worksheet)
    quiz, right = quiz_of(variant), right_texts(variant)
    gaps = dict(zip((box.name for box in quiz.boxes), moodle_gaps(quiz), strict=True))
    named = 0
    for mistaken in mistaken_texts(variant).values():
        marks = {box: gaps[box].mark(text) for box, text in mistaken.items()}
        every_box_costs = replace(grade(variant, mistaken), marking="boxes")
        assert sum(points for points, _said in marks.values()) == every_box_costs.score
        first = next(box for box in mistaken if mistaken[box] != right[box])
        otherwise = gaps[first].mark("7")[1]
        named += marks[first][1] != otherwise
        assert marks[first][1].endswith(("?", "."))
    assert named >= 6


def test_a_sentence_may_hold_what_separates_answers(library: Library) -> None:
    quiz = quiz_of(library.variant("llama-7b"))
    said = r"Is it {d}/H, ~ 50 % of #3 & <b>more</b>?"
    first = replace(quiz.rows[0], boxes=tuple(replace(box, otherwise=said) for box in quiz.rows[0].boxes))
    gaps = moodle_gaps(replace(quiz, rows=(first, *quiz.rows[1:])))
    assert gaps[0].mark("7") == (0.0, said)
    assert len(gaps) == len(quiz.boxes)


def test_no_text_offers_what_other_systems_cannot_read(library: Library) -> None:
    for _variant, quiz in exportable(library):
        for said in ("3*5*7", "7.25"):
            assert said not in quiz.text, quiz.title


def test_canvas_sees_only_right_answers_in_its_conditions(library: Library) -> None:
    quizzes = draw_versions(library, "count-llama-7b", None, None, 3, 7)
    with zipfile.ZipFile(io.BytesIO(FORMATS["qti12"].write(quizzes))) as archive:
        for quiz in quizzes:
            root = read_xml(archive.read(f"{quiz.code}/{quiz.code}.xml"))
            items = list(root.iter(f"{QTI12}item"))
            assert len(items) == 1 + len(quiz.boxes)
            for item, box in zip(items[1:], quiz.boxes, strict=True):
                [condition] = [c for c in item.iter(f"{QTI12}respcondition") if c.find(f"{QTI12}setvar") is not None]
                numbers = [each.text for each in condition.iter() if "respident" in each.attrib]
                assert numbers == [str(box.right)] * 3
                shape = [each.tag.removeprefix(QTI12) for each in condition.iter()][2:6]
                assert shape == ["or", "varequal", "and", "vargte"]
        listed = {
            each.attrib["href"] for each in read_xml(archive.read("imsmanifest.xml")).iter() if "href" in each.attrib
        }
        assert listed == set(archive.namelist()) - {"imsmanifest.xml"}


def test_versions_differ_and_are_the_same_for_a_seed(library: Library) -> None:
    quizzes = draw_versions(library, "llama-7b", None, None, 20, 7)
    assert len({quiz.code for quiz in quizzes}) == 20
    for chosen in FORMATS.values():
        assert chosen.write(quizzes) == chosen.write(draw_versions(library, "llama-7b", None, None, 20, 7))
    assert len(draw_versions(library, "bidirectional-vit-base", None, None, 20, 7)) == 1
    [fixed] = draw_versions(library, "llama-7b", "gpt2", 64, 20, 7)
    assert fixed.boxes[0].right == 64


@pytest.mark.parametrize("worksheet", ["llama-7b~symbols", "bug-one-head", "index-gpt2"])
def test_what_other_systems_cannot_mark_is_refused(library: Library, worksheet: str) -> None:
    with pytest.raises(QuizError):
        draw_versions(library, worksheet, None, None, 1, 0)


# What text2qti 0.8.0, whose files both of Canvas's quiz engines import, writes for a numerical question with a comment
# on wrong answers: its elements, and how many of each there are.
TEXT2QTI_QUESTION = """
item(itemmetadata(qtimetadata(4*qtimetadatafield(fieldlabel fieldentry))) presentation(material(mattext)
response_str(render_fib(response_label)))
resprocessing(outcomes(decvar) respcondition(conditionvar(or(varequal and(vargte varlte))) setvar)
respcondition(conditionvar(other) displayfeedback)) itemfeedback(flow_mat(material(mattext))))
"""


def skeleton(element: ET.Element) -> str:
    """An element's name and, in parentheses, the skeletons of its children; equal ones in a row are counted."""
    inside = [(written, len(list(same))) for written, same in groupby(map(skeleton, element))]
    children = " ".join(f"{number}*{written}" if number > 1 else written for written, number in inside)
    return element.tag.removeprefix(QTI12) + (f"({children})" if children else "")


def test_a_question_for_canvas_has_the_elements_that_text2qti_writes(library: Library) -> None:
    [quiz] = draw_versions(library, "llama-7b", None, None, 1, 7)
    with zipfile.ZipFile(io.BytesIO(FORMATS["qti12"].write([quiz]))) as archive:
        items = list(read_xml(archive.read(f"{quiz.code}/{quiz.code}.xml")).iter(f"{QTI12}item"))
    assert {skeleton(item) for item in items[1:]} == {" ".join(TEXT2QTI_QUESTION.split())}
