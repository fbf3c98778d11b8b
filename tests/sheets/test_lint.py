"""What check-worksheets tells an author, on sheets that were spoilt by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.settings import PROJECT
from app.sheets.library import Library, load_library
from app.sheets.lint import Finding, findings, findings_on
from tests.helpers.own_sheets import own_sheet
from tests.helpers.shipped import LIBRARY


def lint_findings(folder: Path, text: str) -> list[Finding]:
    """What is to be mended in a worksheet of this text, beside the shipped models and wording."""
    folder.mkdir(exist_ok=True, parents=True)
    shutil.copytree(PROJECT / "worksheets" / "models", folder / "models")
    shutil.copytree(PROJECT / "worksheets" / "wording", folder / "wording")
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return [finding for finding in findings(load_library(folder)) if finding.fixable]


def sheet(**changes: object) -> str:
    rows = ["input", "queries", "keys", "values", "scores", "weights", "output"]
    own = {"title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 100, "rows": rows, **changes}
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in own.items())


def test_no_shipped_worksheet_has_anything_to_fix() -> None:
    assert [finding for finding in findings(LIBRARY) if finding.fixable] == []


def test_tokens_as_many_as_a_head_is_wide_are_reported(tmp_path: Path) -> None:
    told = lint_findings(tmp_path, sheet(tokens=128))
    assert "“transposed-product”" in told[0].message
    assert told[0].kind == "hides"
    assert any(finding.message.startswith("N and d_h are both 128") for finding in told)


def test_the_proposed_number_of_tokens_mends_all_that_tokens_can(tmp_path: Path) -> None:
    told = lint_findings(tmp_path / "128", sheet(tokens=128))
    assert {finding.kind for finding in told} == {"hides", "coincides", "same-answer"}
    assert "“Queries”, “Keys”, “Values”, “Attention scores”, “Attention weights”" in told[-1].message
    (proposed,) = {finding.proposed_tokens for finding in told}
    assert proposed == 130
    assert lint_findings(tmp_path / "130", sheet(tokens=proposed)) == []


def test_rows_that_mean_the_same_may_have_one_answer(library: Library) -> None:
    kinds = {finding.worksheet: finding.kind for finding in findings(library) if "answer" in finding.kind}
    assert kinds == dict.fromkeys(("latent-deepseek-v2-lite",), "must-have-same-answer")


def test_words_cost_no_second_look(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    first = findings_on(own_sheet(library, tokens=128))
    monkeypatch.setattr("app.sheets.lint.cannot_tell_apart", lambda _problem: pytest.fail("looked again"))
    words: dict[str, Any] = {"title": "Other", "introduction": "Hi", "row_points": {"keys": 2}, "footnote": "$d$"}
    assert findings_on(own_sheet(library, tokens=128, **words)) == first


def test_a_single_digit_for_a_number_hides_nothing(tmp_path: Path) -> None:
    assert lint_findings(tmp_path, sheet(tokens=21)) == []


def test_what_a_model_must_hide_is_told_but_not_to_be_mended(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check-worksheets"])
    out = capsys.readouterr().out
    assert "layer-mistral-7b: With Mistral 7B these misconceptions cannot be seen" in out
    assert out.endswith(f"Checked {len(LIBRARY.worksheets)} worksheets; to fix: 0.\n")


def test_the_command_reads_an_authors_folder_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lint_findings(tmp_path, sheet(tokens=128))
    with pytest.raises(SystemExit) as ended:
        cli.main(["check-worksheets", str(tmp_path), "--json"])
    assert ended.value.code == 1
    assert {"hides", "coincides"} <= {entry["kind"] for entry in json.loads(capsys.readouterr().out)}


def test_a_folder_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for prepare in (lambda: None, lambda: shutil.copytree(PROJECT / "worksheets" / "wording", tmp_path / "wording")):
        prepare()
        with pytest.raises(SystemExit) as ended:
            cli.main(["check-worksheets", str(tmp_path)])
        assert ended.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("line", ["tokens = 128", "tokens = many", "tokens = 0", ""])
def test_one_file_is_checked_as_its_import_is(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    shipped = (PROJECT / "worksheets" / "llama-7b.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(shipped.replace("tokens = 100", line), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        cli.main(["check-worksheets", str(tmp_path / "mine.toml")])
    assert ended.value.code == 1
    out = capsys.readouterr().out
    assert ("Line 4" in out) == (line in ("tokens = many", "tokens = 0"))
    assert out.startswith("mine")


def test_a_good_file_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("llama-7b.toml", "exit-tickets/classic.toml"):
        cli.main(["check-worksheets", str(PROJECT / "worksheets" / name)])
    assert capsys.readouterr().out == "Checked 1 worksheet; to fix: 0.\nclassic.toml: nothing to fix.\n"


def test_what_an_authors_misconception_cannot_show_is_reported(tmp_path: Path) -> None:
    def kinds(folder: str, tokens: int, **boxes: str) -> list[tuple[str, bool]]:
        table = "\n".join(f'"{box.replace("_", ".")}" = "{formula}"' for box, formula in boxes.items())
        own = f'name = "Mine"\nquestion = "?"\nexplanation = "!"\n[misconceptions.boxes]\n{table}'
        told = lint_findings(tmp_path / folder, f"{sheet(tokens=tokens)}\n[[misconceptions]]\n{own}\n")
        return [(finding.kind, "“own-mine”" in finding.message) for finding in told]

    assert kinds("shown", 100, queries_columns="H*d", keys_columns="2*d") == []
    assert kinds("right", 100, queries_columns="d/H") == [("author", False)]
    assert ("hides", True) in kinds("tokens", 128, queries_columns="N", keys_columns="N")
    alike = {f"{row}_columns": "d" for row in ("queries", "keys", "values")}
    assert kinds("alike", 100, **alike) == []  # it goes before the built-in one
    library = load_library(tmp_path / "alike")
    [same] = [finding.message for finding in findings(library) if finding.kind == "must-author"]
    assert library.wording.misconception_name("head-as-wide-as-model") in same
