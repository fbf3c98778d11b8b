"""Sheets as items of QTI 2.1, which OpenOlat, ILIAS, TAO and others read: one item per version, with its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree as ET

from app.quizzes.package import Resource, package, to_bytes
from app.quizzes.quiz import Quiz, QuizBox, QuizRow

_QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
_MOST_OF_AN_INTEGER = 2**31 - 1  # in QTI; a float is exact up to 2^53


def qti21_package(quizzes: Sequence[Quiz]) -> bytes:
    """The zip file of all versions."""
    resources = list[Resource]()
    for quiz in quizzes:
        drawing, name = (f"drawings/{quiz.code}.svg", f"drawing-{quiz.code}") if quiz.drawing else ("", "")
        item = _item(quiz, drawing)
        needs = (name,) if name else ()
        resources.append(Resource(f"item-{quiz.code}", "imsqti_item_xmlv2p1", f"{quiz.code}.xml", item, needs))
        if quiz.drawing:
            resources.append(Resource(name, "webcontent", drawing, quiz.drawing.svg.encode()))
    return package(resources, "QTIv2.1 Package", "1.0.0")


def _item(quiz: Quiz, drawing: str) -> bytes:
    root = ET.Element(
        "assessmentItem", xmlns=_QTI, identifier=f"item-{quiz.code}", title=f"{quiz.title} ({quiz.code})",
        adaptive="false", timeDependent="false", toolName="Attention Shapes",
    )  # fmt: skip
    for box in quiz.boxes:
        declared = _declare(root, "responseDeclaration", box.key, "single", _base_type(box))
        right = ET.SubElement(declared, "correctResponse")
        ET.SubElement(right, "value").text = str(box.right)
    for outcome, start in (("SCORE", 0), ("MAXSCORE", sum(box.points for box in quiz.boxes))):
        declared = _declare(root, "outcomeDeclaration", outcome, "single", "float")
        ET.SubElement(ET.SubElement(declared, "defaultValue"), "value").text = str(start)
    _declare(root, "outcomeDeclaration", "FEEDBACK", "multiple", "identifier")
    root.append(_body(quiz, drawing))
    processing = ET.SubElement(root, "responseProcessing")
    for box in quiz.boxes:
        processing.append(_marking(box))
    for box in quiz.boxes:
        for key, sentence in _feedback(box).items():
            shown = ET.SubElement(
                root, "modalFeedback", outcomeIdentifier="FEEDBACK", identifier=key, showHide="show", title=box.label
            )
            shown.text = sentence
    return to_bytes(root)


def _declare(root: ET.Element, kind: str, identifier: str, cardinality: str, base_type: str) -> ET.Element:
    return ET.SubElement(root, kind, identifier=identifier, cardinality=cardinality, baseType=base_type)


def _base_type(box: QuizBox) -> str:
    largest = max(box.right, *(wrong.number for wrong in box.wrong), 0)
    return "integer" if largest <= _MOST_OF_AN_INTEGER else "float"


def _body(quiz: Quiz, drawing: str) -> ET.Element:
    alt_text = escape(quiz.drawing.alt_text) if quiz.drawing else ""
    image = f'<p><img src="{drawing}" alt="{alt_text}"/></p>' if drawing else ""
    rows = "".join(map(_row, quiz.rows))
    body = f"<itemBody>{quiz.text}{image}<table><tbody>{rows}</tbody></table></itemBody>"
    return ET.fromstring(body)  # noqa: S314 - it was written here


def _row(row: QuizRow) -> str:
    *signs, last = row.signs
    cells = " ".join(
        f'{escape(sign)} <textEntryInteraction responseIdentifier="{box.key}" expectedLength="12"/>'
        for sign, box in zip(signs, row.boxes, strict=True)
    )
    return f"<tr><td>{row.name}</td><td>{cells} {escape(last)}</td></tr>"


def _feedback(box: QuizBox) -> dict[str, str]:
    likely = {f"{box.key}-is-{wrong.number}": wrong.sentence for wrong in box.wrong}
    return {**likely, f"{box.key}-is-wrong": box.otherwise}


def _marking(box: QuizBox) -> ET.Element:
    condition = ET.Element("responseCondition")
    right = ET.SubElement(condition, "responseIf")
    right.append(_equals(box, box.right))
    total = ET.SubElement(ET.SubElement(right, "setOutcomeValue", identifier="SCORE"), "sum")
    ET.SubElement(total, "variable", identifier="SCORE")
    ET.SubElement(total, "baseValue", baseType="float").text = str(box.points)
    for wrong in box.wrong:
        branch = ET.SubElement(condition, "responseElseIf")
        branch.append(_equals(box, wrong.number))
        branch.append(_say(f"{box.key}-is-{wrong.number}"))
    ET.SubElement(condition, "responseElse").append(_say(f"{box.key}-is-wrong"))
    return condition


def _equals(box: QuizBox, number: int) -> ET.Element:
    same = ET.Element("equal", toleranceMode="exact")
    ET.SubElement(same, "variable", identifier=box.key)
    ET.SubElement(same, "baseValue", baseType=_base_type(box)).text = str(number)
    return same


def _say(key: str) -> ET.Element:
    change = ET.Element("setOutcomeValue", identifier="FEEDBACK")
    both = ET.SubElement(change, "multiple")
    ET.SubElement(both, "variable", identifier="FEEDBACK")
    ET.SubElement(both, "baseValue", baseType="identifier").text = key
    return change
