"""The texts of drawings as Chromium sets them: none lies on another one, and none leaves its drawing."""

from __future__ import annotations

import random

import pytest
from playwright.sync_api import Page

from app.figures.parts import Figure
from app.figures.sheet_figures import draw_figures
from app.web.shared.templating import template_environment
from tests.helpers.shipped import LIBRARY

pytestmark = pytest.mark.slow

DRAWINGS = """
{% from "shared/_figure.html" import draw_figure %}
<div class="figures">{% for figure in figures %}{{ draw_figure(figure) }}{% endfor %}</div>
"""
# Measures every text; a line of type is somewhat higher than what is printed in it, so a little of it may overlap.
COLLISIONS = """async () => {
  delete document.documentElement.dataset.arriving;
  await Promise.allSettled([...document.fonts].map((face) => face.load())); // those of the system need not be there
  const problems = [];
  for (const svg of document.querySelectorAll(".figures svg")) {
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.getClientRects().length);
    const boxes = texts.map((text) => {
      const box = text.getBBox();
      const [right, bottom] = [box.x + box.width, box.y + box.height - 3];
      return { text: text.textContent, label: text.closest("g") ?? text, left: box.x, top: box.y + 3, right, bottom };
    });
    const view = svg.viewBox.baseVal;
    boxes.forEach((a, index) => {
      if (a.left < view.x || a.right > view.x + view.width || a.top < view.y || a.bottom > view.y + view.height)
        problems.push(`${a.text} leaves ${svg.ariaLabel}`);
      for (const b of boxes.slice(index + 1))
        if (a.label !== b.label && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
          problems.push(`${a.text} on ${b.text} in ${svg.ariaLabel}`);
    });
  }
  return problems;
}"""


def some_figures() -> list[Figure]:
    """Figures of every worksheet, right, unfinished, and with any sizes."""
    library, chance = LIBRARY, random.Random(14)  # noqa: S311 - a sample
    figures = list[Figure]()
    for variant in map(library.variant, library.worksheets):
        answers = {blank: variant.answer(blank) for blank in variant.blanks if chance.random() < 0.9}
        sizes = (int(10 ** chance.uniform(0, 6)) for _ in answers)
        wrong = answers | {blank: size for blank, size in zip(answers, sizes, strict=True) if chance.random() < 0.2}
        figures += draw_figures(variant, answers)
        figures += draw_figures(variant, wrong)
    return figures


def test_texts_of_drawings_stand_free_as_they_are_set(page: Page) -> None:
    drawings = template_environment().from_string(DRAWINGS).render(figures=some_figures())
    page.evaluate("html => { document.querySelector('main').innerHTML = html }", drawings)
    problems = page.evaluate(COLLISIONS)
    assert not problems, "\n".join(problems)
