"""The listing of a finished head program at the top of app.forward.program is what a run prints today."""

from __future__ import annotations

import doctest

from app.forward import program


def test_the_listing_at_the_top_of_the_program_module_is_what_a_run_prints() -> None:
    examples = doctest.DocTestFinder().find(program)
    assert "A = torch.softmax(S, dim=-1)  # (100, 100)" in examples[0].examples[-1].want
    assert doctest.testmod(program).failed == 0
