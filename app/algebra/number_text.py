"""Whole numbers as text, in the one way in which sheets, figures and pages write them.

>>> format_number(4096), format_number(131072)
('4096', '131,072')
"""

from __future__ import annotations


def format_number(number: int) -> str:
    """A number as text: whole below 10,000 (4096), in groups of three above (131,072)."""
    return str(number) if number < 10_000 else f"{number:,}"
