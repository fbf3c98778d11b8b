"""Sheets as questions of Moodle: one cloze question per version, all in one category, from which a quiz draws one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree as ET

from app.quizzes.package import to_bytes
from app.quizzes.quiz import Quiz, QuizBox, QuizRow

_PENALTY = "0.3333333"  # of each further try, where a quiz allows them
_DRAWING = "drawing.svg"


def moodle_xml(quizzes: Sequence[Quiz]) -> bytes:
    """The file that Moodle imports as “Moodle XML”."""
    root = ET.Element("quiz")
    category = ET.SubElement(root, "question", type="category")
    names = ("Attention Shapes", quizzes[0].title if len(quizzes) == 1 else _shared_title(quizzes))
    _text(category, "category", "top/" + "/".join(name.replace("/", "//") for name in names))
    for quiz in quizzes:
        _add_question(root, quiz)
    return to_bytes(root)


def _shared_title(quizzes: Sequence[Quiz]) -> str:
    titles = list(dict.fromkeys(quiz.title for quiz in quizzes))
    return titles[0] if len(titles) == 1 else f"{titles[0]} …"


def _add_question(root: ET.Element, quiz: Quiz) -> None:
    question = ET.SubElement(root, "question", type="cloze")
    _text(question, "name", f"{quiz.title} ({quiz.code})")
    drawing = (
        f'<p><img src="@@PLUGINFILE@@/{_DRAWING}" alt="{escape(quiz.drawing.alt_text)}"></p>' if quiz.drawing else ""
    )
    rows = "".join(map(_row, quiz.rows))
    body = _text(question, "questiontext", f"{quiz.text}{drawing}<table><tbody>{rows}</tbody></table>")
    body.set("format", "html")
    if quiz.drawing:
        file = ET.SubElement(body, "file", name=_DRAWING, path="/", encoding="base64")
        file.text = b64encode(quiz.drawing.svg.encode()).decode()
    _text(question, "generalfeedback", "").set("format", "html")
    for name, value in {"penalty": _PENALTY, "hidden": "0", "idnumber": quiz.code}.items():
        ET.SubElement(question, name).text = value
    tags = ET.SubElement(question, "tags")
    for tag in (quiz.model, quiz.topic):
        _text(tags, "tag", tag)


def _row(row: QuizRow) -> str:
    *signs, last = row.signs
    cells = " ".join(f"{sign} {_gap(box)}" for sign, box in zip(signs, row.boxes, strict=True))
    return f"<tr><td>{row.name}</td><td>{cells} {last}</td></tr>"


def _gap(box: QuizBox) -> str:
    answers = [f"={box.right}:0", *(f"%0%{wrong.number}:0#{_in_gap(wrong.sentence)}" for wrong in box.wrong)]
    return f"{{{box.points}:NUMERICAL:{'~'.join(answers)}~*#{_in_gap(box.otherwise)}}}"


def _in_gap(text: str) -> str:
    return re.sub(r"([}#])", r"\\\1", escape(text, quote=False)).replace("~", "&#126;")


def _text(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, name)
    ET.SubElement(element, "text").text = text
    return element
