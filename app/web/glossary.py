"""/glossary: every term of the sheets in two sentences, with its symbol, a drawing, and its other names."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Depends, Response

from app.figures.glossary_drawings import DRAWING_HEIGHT, DRAWING_WIDTH, GLOSSARY_DRAWINGS
from app.sheets.notation import NOTATIONS
from app.sheets.wording import Wording
from app.topics.registry import TOPICS
from app.web.shared.permissions import require_practice
from app.web.shared.services import LibraryDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class GlossaryTerm:
    """One term: its name, its symbol (if any), its explanation, and its names in code and papers."""

    key: str
    name: str
    symbol: str
    symbol_name: str
    text: str
    elsewhere: tuple[str, ...]


def glossary_terms(wording: Wording) -> tuple[GlossaryTerm, ...]:
    """Every term in reading order, with the symbols of sheets in the default notation."""
    terms = []
    for key, entry in wording.glossary.items():
        symbol, symbol_name = entry.letter, ""
        if entry.size:
            symbol, name = NOTATIONS["classic"].symbol(entry.size), wording.usual_size_name(entry.size)
            symbol_name = name if name != entry.term.lower() else ""
        terms.append(GlossaryTerm(key, entry.term, symbol, symbol_name, entry.text, entry.elsewhere))
    return tuple(terms)


def shared_letters(wording: Wording) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The letters with several meanings on different sheets in the default notation, each with its meanings."""
    notation, meanings = NOTATIONS["classic"], dict[str, dict[object, str]]()
    for topic in sorted(TOPICS.values(), key=lambda topic: topic.in_steps):  # whose rows have longer names
        rows = wording.topics[topic.key].rows
        tensors = (each for table in topic.tables for each in table.tensors if each.key in rows and each.letter)
        for tensor in tensors:
            meant = meanings.setdefault(tensor.letter, {})
            meant.setdefault((tensor.role, tensor.parameter), rows[tensor.key].name)
    for symbol in wording.symbol_names:
        meanings.setdefault(notation.symbol(symbol), {})[symbol] = wording.usual_size_name(symbol)
    return tuple((letter, tuple(meant.values())) for letter, meant in sorted(meanings.items()) if len(meant) > 1)


@router.get("/glossary")
def show_glossary(library: LibraryDep) -> Response:
    """The glossary; sheets link to its terms by their keys, /glossary#head-dimension."""
    return render(
        "practice/glossary.html",
        entries=[(term, GLOSSARY_DRAWINGS[term.key]) for term in glossary_terms(library.wording)],
        view_box=f"-2 -2 {DRAWING_WIDTH + 4} {DRAWING_HEIGHT + 4}",
        shared_letters=shared_letters(library.wording),
    )
