"""Whatever is sent, no page and no part of the API breaks; `make fuzz` sends twenty thousand requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.fuzzing import Forms, Fuzzer, fuzz_api, fuzzed_app

pytestmark = pytest.mark.slow


def test_no_page_breaks_whatever_its_forms_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.shared.passwords.SLOW_VERIFY_S", 0)  # there are many wrong passwords here
    fuzzer = Fuzzer(fuzzed_app(tmp_path), seed=1)
    fuzzer.run(350)
    assert fuzzer.broken == []
    assert {200, 303, 404, 422} <= set(fuzzer.statuses)


def test_no_part_of_the_api_breaks(tmp_path: Path) -> None:
    made, broken = fuzz_api(fuzzed_app(tmp_path), 12)
    assert broken == []
    assert made > 60  # fewer examples than allowed if there are no more


def test_the_forms_of_a_page_are_found_with_their_fields() -> None:
    page = (
        '<form method="post" action="/a"><input type="hidden" name="h" value="1"><select name="s"><option value="x">'
        '<option value="y"></select><input type="file" name="f"><button formaction="/b">B</button></form>'
    )
    first, second = Forms(page, "/here").forms
    assert (first.method, first.action, first.fields, first.files) == (
        "POST",
        "/a",
        {"h": ["1"], "s": ["x", "y"]},
        ["f"],
    )
    assert second.action == "/b"
