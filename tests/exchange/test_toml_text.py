"""Settings in a TOML file: the lines they are in, and the messages about other texts."""

from __future__ import annotations

import tomllib
from random import Random

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from app.exchange.toml_text import MAX_SETTINGS, MAX_TOML_BYTES, TomlError, line_of, lines_of_settings, read_toml
from tests.helpers.processor_time import processor_time_s

TEXT = '''# A comment with a [bracket] and a "quote
title = "One # head"
"rows" = [
  "input", # the first ]
  "queries",
]
introduction = """
notation = "not this"
[row_points]
"""
row_hints.queries = 'Q'

[row_points] # points
"queries" = 2

[[questions]]
text = "Why?"

[[questions]]
key = "b"
text = """two
lines"""

[[misconceptions]]
name = "M"
[misconceptions.boxes]
"queries.columns" = "H*d"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2), (("rows",), 3), (("rows", 1), 3), (("introduction",), 7), (("row_hints", "queries"), 11),
        (("row_points",), 13), (("row_points", "queries"), 14), (("questions",), 16), (("questions", 0, "text"), 17),
        (("questions", 1), 19), (("questions", 1, "text"), 21), (("questions", 0, "key"), 16),
        (("misconceptions", 0, "boxes"), 26), (("misconceptions", 0, "boxes", "queries.columns"), 27),
        (("notation",), None),
    ],
)  # fmt: skip
def test_every_setting_has_its_line(path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(lines_of_settings(TEXT), path) == line


@given(seed=st.integers(0, 10**6))
def test_lines_are_those_where_the_parser_first_sees_a_setting(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - so that it can be repeated
    names = ["a", "b.c", "d e", "é", '"', "'", "#"]
    values = [1, True, "x\n[y]\nz = 1\n", 'q"""q', "'''", "#", ["[", "]"], {"k": "v = 1"}, [{"n": "="}, {"n": 2}]]
    settings = {name: chance.choice(values) for name in chance.sample(names, chance.randrange(1, len(names)))}
    text = tomli_w.dumps(settings, multiline_strings=chance.random() < 0.5)
    lines = lines_of_settings(text)
    for name in settings:
        before = "\n".join(text.split("\n")[: lines[name,] - 1])
        assert name not in tomllib.loads(before)
        assert {path[0] for path, line in lines.items() if line < lines[name,]} == set(tomllib.loads(before))


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\ntokens 100\n", 2), ('a = 1\ntitle = “One head”\n', 2), ("a = 1\na = 2", 2), ('a = """\n\n', 3),
     ("a = [", 1), ("a = " + "[" * 5000, 1), ("a = " + "9" * 5000, 1), ("\0", 1), ("\n" + "a." * 9**5, 2),
     ("a = {" + "a." * 9**5, 1), ("x" * (MAX_TOML_BYTES + 1), 0)],
    ids=["no equals sign", "curly quotes", "twice", "no end", "open", "deep", "huge", "NUL", "dots", "inside", "long"],
)  # fmt: skip
def test_what_is_no_toml_is_refused_by_its_line(text: str, line: int) -> None:
    with pytest.raises(TomlError) as refusal:
        read_toml(text)
    assert str(refusal.value).startswith(f"Line {line}:") or not line
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    "line", ["k{}=1\n", "[t{}]\n", "a.b{}.c.d=1\n", "[a.b.c.d{}]\n", "[[t{}]]\n", "[[a]]\n[[a.b{}]]\n"]
)
def test_a_file_with_very_many_settings_is_refused_at_once(line: str) -> None:
    text = "".join(line.format(number) for number in range(MAX_TOML_BYTES // (len(line) + 4)))

    def refuse() -> None:
        for read in (read_toml, lines_of_settings):
            with pytest.raises(TomlError, match="5,000"):
                read(text)

    assert processor_time_s(refuse) < 0.5
    assert len(read_toml("".join(f"k{number} = 1\n" for number in range(MAX_SETTINGS)))) == MAX_SETTINGS
