"""Handouts: sheets for a class become a PDF through Typst, and the marks of answers on paper become CSV."""
