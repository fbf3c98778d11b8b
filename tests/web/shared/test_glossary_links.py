"""The glossary's terms, and which places of a sheet's sentences link to them."""

from __future__ import annotations

from collections import Counter

from app.figures.glossary_drawings import GLOSSARY_DRAWINGS
from app.sheets import prose
from app.sheets.library import Library
from app.web.glossary import glossary_terms
from app.web.shared.glossary_links import link_terms


def test_every_term_has_its_own_words_and_a_drawing(library: Library) -> None:
    entries = library.wording.glossary
    words = Counter(word.lower() for entry in entries.values() for word in entry.words)
    assert [word for word, count in words.items() if count > 1] == []
    assert [term.key for term in glossary_terms(library.wording)] == list(GLOSSARY_DRAWINGS)


def test_links_change_no_sentence_and_link_each_term_once(library: Library) -> None:
    for key in library.worksheets:
        variant = library.variant(key)
        texts = (prose.description(variant), prose.task(variant), *(row.name for row in variant.rows))
        linked = link_terms(library.wording.glossary, texts)
        assert tuple("".join(piece.text for piece in pieces) for pieces in linked) == texts
        terms = [piece.term for pieces in linked for piece in pieces if piece.term]
        assert len(terms) == len(set(terms)) > 2


def test_a_longer_expression_wins_and_words_inside_words_are_left_alone(library: Library) -> None:
    pieces = link_terms(library.wording.glossary, ("The headline: a Head dimension of 128.",))[0]
    assert [(piece.text, piece.term) for piece in pieces if piece.term] == [("Head dimension", "head-dimension")]
