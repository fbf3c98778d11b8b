"""Formulas and symbols as mathematics in HTML."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from jinja2 import nodes

from app.settings import PROJECT
from app.sheets.library import Library
from app.sheets.prose import formula_pieces
from app.web.shared.templating import expression, formula, markdown, template_environment

MAX_LINE = 160


def test_a_formula_has_its_symbols_in_italics_and_its_functions_upright(library: Library) -> None:
    walk, head = library.variant("walk-llama-3.2-1b"), library.variant("llama-7b~symbols")
    assert formula(formula_pieces(walk, "gate")) == "<i>R′</i> · <i>W</i><sub>gate</sub>"
    assert formula(formula_pieces(head, "scores")) == "<i>Q</i> · <i>K</i><sup>T</sup>"
    assert formula(formula_pieces(head, "weights")).startswith("softmax(<i>S</i>/√<i>d</i><sub>head</sub> + mask)")


def test_a_hint_sets_letters_and_no_words_as_mathematics(library: Library) -> None:
    decode = library.variant("decode-gpt2")
    assert "s" in decode.typeset_letters
    assert expression("A model’s s", decode.typeset_letters) == "A model’s <i>s</i>"


def test_threads_that_ask_at_once_get_one_template() -> None:
    environment, ready = template_environment.__wrapped__(), Barrier(8)

    def ask(_number: int) -> int:
        ready.wait()
        return id(environment.get_template("student/class_sheet.html"))

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(ask, range(8)))) == 1


def test_no_template_turns_escaping_off() -> None:
    for path in (PROJECT / "templates").rglob("*.html"):
        assert "autoescape" not in path.read_text(encoding="utf-8"), path.name


def test_no_line_of_a_template_is_too_long() -> None:
    for path in (PROJECT / "templates").rglob("*.html"):
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        too_long = [number for number, line in lines if len(line) > MAX_LINE]
        assert too_long == [], path


def test_no_template_computes_or_asks_the_clock() -> None:
    for path in (PROJECT / "templates").rglob("*.html"):
        tree = template_environment().parse(path.read_text(encoding="utf-8"))
        sums = tree.find_all((nodes.Add, nodes.Sub, nodes.Div, nodes.FloorDiv, nodes.Pow))
        products = tree.find_all((nodes.Mul,))
        assert all({type(each.left), type(each.right)} & {nodes.Tuple} for each in sums), path  # a longer list
        assert all(isinstance(each.left, nodes.Const) and isinstance(each.left.value, str) for each in products), path
        assert not {each.name for each in tree.find_all((nodes.Filter,))} & {"sum", "min", "max", "round"}, path
        calls = [each.node for each in tree.find_all((nodes.Call,))]
        assert not [call for call in calls if isinstance(call, nodes.Getattr) and call.attr in ("now", "phase")], path


def test_markdown_of_an_author_becomes_only_elements_that_it_may_be() -> None:
    text = "A **b** *c* `<d>` $W_Q·x^2/sqrt(d)$ <img src=x>\n\n2. [e](javascript:f)"
    assert markdown(text) == (
        "<p>A <strong>b</strong> <em>c</em> <code>&lt;d&gt;</code> "
        '<span class="formula"><i>W</i><sub>Q</sub>·<i>x</i><sup>2</sup>/√<span class="root"><i>d</i></span>'
        '</span> &lt;img src=x&gt;</p><ol start="2"><li><p>[e](javascript:f)</p></li></ol>'
    )
