"""Symbols, products and sums of symbols, and the parser of typed arithmetic."""
