"""attention-shapes handout: the same options in the terminal, the same bytes, and one line for what cannot be used."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app.cli import main
from tests.helpers.printed import read_pdf
from tests.helpers.shipped import LIBRARY


def handout(path: Path, *arguments: str) -> bytes:
    """The PDF that the terminal writes."""
    main(["handout", *arguments, "-o", str(path)])
    return path.read_bytes()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error, with exit status 2."""
    with pytest.raises(SystemExit) as ended:
        main(["handout", *arguments])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


def test_the_terminal_writes_the_same_bytes_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_ADDRESS", "https://shapes.example.org/")
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    roster = tmp_path / "names.csv"
    roster.write_text("Name,ID\nAda Lovelace,1\nعمر الخيام,2\n", encoding="utf-8")
    wanted = ["softmax-of-a-model", "--roster", str(roster), "--back", "exit-ticket", "--with-key", "--course", "COS 1"]
    first = handout(tmp_path / "a.pdf", *wanted)
    assert first == handout(tmp_path / "b.pdf", *wanted)
    pages = read_pdf(first)
    assert "Ada Lovelace" in pages[0].text
    assert all(code.startswith("https://shapes.example.org/v/") for code in pages[0].codes)
    assert len(pages[0].codes) == 2
    assert len(pages) == 2 + 1 + 2


def test_the_terminal_takes_every_option(tmp_path: Path) -> None:
    one = read_pdf(handout(tmp_path / "a.pdf", "llama-7b", "--tokens", "57", "--copies", "1", "--date", "1 May"))[0]
    assert "57 tokens" in one.text
    assert "1 May" in one.text
    decoded = read_pdf(handout(tmp_path / "f.pdf", "cross-bart-base", "--decoder-tokens", "7", "--copies", "1"))[0]
    assert LIBRARY.variant("cross-bart-base", None, None, 7).code in decoded.text
    pages = read_pdf(handout(tmp_path / "b.pdf", "llama-7b", "--variants", "3", "--layout", "full", "--paper", "a4"))
    assert len(pages) == 3
    assert round(pages[0].width) == 595
    other = read_pdf(handout(tmp_path / "c.pdf", "llama-7b", "--variants", "3", "--layout", "full", "--seed", "9"))
    assert [page.text for page in other] != [page.text for page in pages]
    drawn = read_pdf(handout(tmp_path / "d.pdf", "llama-7b", "--copies", "1", "--large-print", "--figures", "blank"))
    assert len(drawn) > 1
    assert "Answer key:" in read_pdf(handout(tmp_path / "e.pdf", "llama-7b", "--key"))[0].text


def test_a_roster_comes_through_a_pipe_and_the_pdf_goes_out_through_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Ada\n田中さくら".encode())))
    main(["handout", "llama-7b", "--roster", "-", "--same", "-o", "-"])
    written = capfdbinary.readouterr().out
    assert "Ada" in read_pdf(written)[0].text


def test_standard_output_without_room_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(SystemExit) as ended:
            main(["handout", "llama-7b", "--copies", "1", "-o", "-"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nope", "-o", "x.pdf"], "There is no worksheet “nope”"),
        (["llama-7b"], "-o/--output"),
        (["llama-7b", "-o", "x.pdf", "--tokens", "ten"], "--tokens must be a whole number"),
        (["llama-7b", "-o", "x.pdf", "--roster", "/nowhere.csv"], "/nowhere.csv cannot be read"),
        (["llama-7b", "-o", "/nowhere/x.pdf"], "/nowhere/x.pdf cannot be written"),
        (["llama-7b", "-o", "x.pdf", "--back", "diary"], "“diary” is not an option"),
        (["llama-7b", "-o", "x.pdf", "--variants", "2", "--copies", "2"], "not allowed with"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, *arguments)
    assert not (tmp_path / "x.pdf").exists()


def test_a_public_address_that_is_none_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_ADDRESS", "javascript:alert(1)")
    line = refused(capsys, "llama-7b", "-o", "x.pdf")
    assert "ATTENTION_SHAPES_ADDRESS: must begin with https://" in line


def test_a_letter_without_a_font_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["handout", "llama-7b", "-o", str(tmp_path / "x.pdf"), "--course", "ᚠ"])
    assert "ᚠ" in capsys.readouterr().err
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
