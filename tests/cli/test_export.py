"""attention-shapes export: the same file each time, and one line for what can't be exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli import main
from app.quizzes.formats import FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_the_terminal_writes_a_file_of_each_format(tmp_path: Path, name: str) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        main(["export", "llama-7b", "--format", name, "--variants", "2", "--seed", "7", "-o", str(file)])
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes()[:2] == (b"<?" if name == "moodle" else b"PK")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["llama-7b~symbols"], "symbols"),
        (["bug-one-head"], "code"),
        (["llama-7b", "--variants", "0"], "versions"),
        (["llama-7b", "--variants", "5000"], "versions"),
        (["llama-7b", "--model", "nobody"], "nobody"),
        (["llama-7b", "--tokens", "many"], "--tokens"),
    ],
)
def test_what_cannot_be_exported_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", *arguments, "--format", "moodle", "-o", str(tmp_path / "x.xml")])
    line = capsys.readouterr().err
    assert (ended.value.code, line.count("\n"), said in line) == (2, 1, True)
    assert not (tmp_path / "x.xml").exists()
