"""Handouts: sheets for a class become a PDF through Typst, and answers written on paper become marks."""
