"""Numbers as text, written the same way on sheets, in figures and on pages.

>>> format_number(4096), format_number(131072)
('4096', '131,072')
>>> format_measured(5.2519), format_measured(999.6), format_measured(1070.4)
('5.25', '1,000', '1,070')
"""

from __future__ import annotations


def format_number(number: int) -> str:
    """A number as text: 4096 as it is, and digits in groups of three from 10,000 on (131,072)."""
    return str(number) if number < 10_000 else f"{number:,}"


def format_measured(number: float) -> str:
    """A measured number as text, without an exponent: three significant digits, or whole from 1,000 on."""
    return f"{number:,.0f}" if number >= 999.5 else f"{number:.3g}"  # .3g would write 999.5 as 1e+03
