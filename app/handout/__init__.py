"""Handouts: variants, a roster and an exit ticket become a PDF through Typst, and answers on paper become marks."""
