"""Worksheets: the library, its variants, their codes, and reading what was typed."""
