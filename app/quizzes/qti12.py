"""Sheets as quizzes of Canvas: QTI 1.2 as both of its quiz engines read it, a quiz per version, a question per box.

Canvas takes every condition on an answer for a right answer. So likely wrong numbers have no sentences of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree as ET

from app.quizzes.package import Resource, package, to_bytes
from app.quizzes.quiz import Quiz, QuizBox

_QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
_FILES = "%24IMS-CC-FILEBASE%24"  # the folder of a package's files, once it is imported


def qti12_package(quizzes: Sequence[Quiz]) -> bytes:
    """The zip file that Canvas imports as “QTI .zip file”."""
    resources = list[Resource]()
    for quiz in quizzes:
        drawing = f"drawings/{quiz.code}.svg" if quiz.drawing else ""
        resources.append(
            Resource(f"quiz-{quiz.code}", "imsqti_xmlv1p2", f"{quiz.code}/{quiz.code}.xml", _quiz(quiz, drawing))
        )
        if quiz.drawing:
            resources.append(Resource(f"drawing-{quiz.code}", "webcontent", drawing, quiz.drawing.svg.encode()))
    return package(resources, "IMS Content", "1.1.3")


def _quiz(quiz: Quiz, drawing: str) -> bytes:
    root = ET.Element("questestinterop", xmlns=_QTI)
    assessment = ET.SubElement(root, "assessment", ident=f"quiz-{quiz.code}", title=f"{quiz.title} ({quiz.code})")
    section = ET.SubElement(assessment, "section", ident="root_section")
    alt_text = escape(quiz.drawing.alt_text) if quiz.drawing else ""
    image = f'<p><img src="{_FILES}/{drawing}" alt="{alt_text}"></p>' if drawing else ""
    introduction = _item(section, f"{quiz.code}-text", quiz.title, "text_only_question", 0)
    _material(introduction[-1], quiz.text + image)
    for row in quiz.rows:
        for box in row.boxes:
            _question(section, quiz, box, f"<p>{row.name}, {escape(box.axis)}</p>")
    return to_bytes(root)


def _question(section: ET.Element, quiz: Quiz, box: QuizBox, asked: str) -> None:
    ident = f"{quiz.code}-{box.key}"
    item = _item(section, ident, box.label, "numerical_question", box.points, f"{ident}-right")
    presentation = item[-1]
    _material(presentation, asked)
    response = ET.SubElement(presentation, "response_str", ident="response1", rcardinality="Single")
    ET.SubElement(ET.SubElement(response, "render_fib", fibtype="Decimal"), "response_label", ident="answer1")
    processing = ET.SubElement(item, "resprocessing")
    outcomes = ET.SubElement(processing, "outcomes")
    ET.SubElement(outcomes, "decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
    right = ET.SubElement(processing, "respcondition", {"continue": "No"})
    either = ET.SubElement(ET.SubElement(right, "conditionvar"), "or")
    _compare(either, "varequal", box.right)
    between = ET.SubElement(either, "and")
    _compare(between, "vargte", box.right)
    _compare(between, "varlte", box.right)
    ET.SubElement(right, "setvar", action="Set", varname="SCORE").text = "100"
    other = ET.SubElement(processing, "respcondition", {"continue": "Yes"})
    ET.SubElement(ET.SubElement(other, "conditionvar"), "other")
    ET.SubElement(other, "displayfeedback", feedbacktype="Response", linkrefid="general_incorrect_fb")
    feedback = ET.SubElement(item, "itemfeedback", ident="general_incorrect_fb")
    _material(ET.SubElement(feedback, "flow_mat"), f"<p>{escape(box.otherwise)}</p>")


def _item(section: ET.Element, ident: str, title: str, kind: str, points: int, answer: str = "") -> ET.Element:
    item = ET.SubElement(section, "item", ident=ident, title=title)
    metadata = ET.SubElement(ET.SubElement(item, "itemmetadata"), "qtimetadata")
    for label, entry in {
        "question_type": kind,
        "points_possible": str(points),
        "original_answer_ids": answer,
        "assessment_question_identifierref": f"{ident}-bank",
    }.items():
        field = ET.SubElement(metadata, "qtimetadatafield")
        ET.SubElement(field, "fieldlabel").text = label
        ET.SubElement(field, "fieldentry").text = entry
    ET.SubElement(item, "presentation")
    return item


def _material(parent: ET.Element, html: str) -> None:
    ET.SubElement(ET.SubElement(parent, "material"), "mattext", texttype="text/html").text = html


def _compare(parent: ET.Element, relation: str, number: int) -> None:
    ET.SubElement(parent, relation, respident="response1").text = str(number)
