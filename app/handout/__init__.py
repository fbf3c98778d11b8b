"""Handouts: a class's sheets as a PDF, typeset with Typst, and the marks of answers on paper as CSV."""
