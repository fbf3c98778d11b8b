"""Settings are explained, read from the environment, and refused before anything is opened if they can’t be meant."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from app.cli.serve import _check_campus, _greet
from app.cli.terminal import InputError, read_settings
from app.settings import PROJECT, Settings
from app.store import Store
from app.store.jobs import Worker


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("ATTENTION_SHAPES_HOST", "", "127.0.0.1"),
        ("ATTENTION_SHAPES_HOST", " ", "127.0.0.1"),
        ("ATTENTION_SHAPES_DATA_DIR", "", "must name a folder"),
        ("ATTENTION_SHAPES_METRICS", "127.0.0.1:65536", "port"),
        ("ATTENTION_SHAPES_WEIGHTS", "/no/such/folder", "can read"),
        ("ATTENTION_SHAPES_WEIGHTS", "/" + 3000 * "w", "can read"),
        ("DATABASE_URL", "sqlite://", "leave it empty"),
        ("DATABASE_URL", "sqlite:///:memory:", "leave it empty"),
        ("DATABASE_URL", "sqlite://host/file", "leave it empty"),
        ("DATABASE_URL", "mysql://host/shapes", "postgresql://"),
        ("DATABASE_URL", "postgresql://host:port/shapes", "postgresql://"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, advice: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"^{name}: .*{advice}"):
        read_settings()


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("ATTENTION_SHAPES_PRACTISE", "ATTENTION_SHAPES_PRACTICE"),
        ("attention_shapes_worker", "ATTENTION_SHAPES_WORKERS"),
        ("ATTENTION_SHAPE_PRACTICE", "ATTENTION_SHAPES_PRACTICE"),
        ("ATTENTIONSHAPES_METRICS", "ATTENTION_SHAPES_METRICS"),
        ("ATTENTION_SHAPES_DATABASE_URL", "DATABASE_URL"),
    ],
)
def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, nearest: str) -> None:
    monkeypatch.setenv(name, "false")
    with pytest.raises(InputError, match=f"^{name} .* {nearest}"):
        read_settings()


def test_a_server_for_exams_says_that_practice_is_closed(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for practice in (True, False):
        _greet(Settings(data_dir=tmp_path, practice=practice), store, "127.0.0.1", 8000)
        assert ("closed to visitors" in capsys.readouterr().out) is not practice


def test_an_empty_database_url_means_sqlite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    for url, file in (("", "attention-shapes.sqlite3"), (f"sqlite:///{tmp_path}/other", "other")):
        monkeypatch.setenv("DATABASE_URL", url)
        assert read_settings().database == f"sqlite:///{tmp_path / file}"


def test_several_machines_need_a_database_that_they_can_share(store: Store, tmp_path: Path) -> None:
    is_sqlite = store.engine.dialect.name == "sqlite"
    settings = Settings(data_dir=tmp_path, workers=4, machines=1 if is_sqlite else 5)
    _check_campus(settings, store)
    advice = "DATABASE_URL" if is_sqlite else "64 web processes and 0 workers need 256 connections"
    with pytest.raises(InputError, match=advice):
        _check_campus(Settings(data_dir=tmp_path, workers=16, machines=4), store)
    for number in range(5):
        store.jobs.sign_on(Worker(f"worker {number}", []))
    with nullcontext() if is_sqlite else pytest.raises(InputError, match="5 workers need 125 connections"):
        _check_campus(settings, store)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_and_stands_in_the_docs(name: str) -> None:
    field = Settings.model_fields[name]
    assert field.description
    assert field.description.endswith(".")
    variable = "DATABASE_URL" if name == "database_url" else f"ATTENTION_SHAPES_{name.upper()}"
    default = "data" if name == "data_dir" else str(field.default)
    shown = default.lower() if isinstance(field.default, bool) else default
    page = (PROJECT / "docs" / "installing.md").read_text(encoding="utf-8")
    assert f"| `{variable}` | {f'`{shown}` ' if shown else ''}|" in page


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ATTENTION_SHAPES_HOST", "ATTENTION_SHAPES_PORT", "ATTENTION_SHAPES_DATA_DIR", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert (Settings().host, Settings().port, Settings().data_dir) == ("127.0.0.1", 8000, PROJECT / "data")
    assert Settings().database == f"sqlite:///{PROJECT / 'data' / 'attention-shapes.sqlite3'}"
    monkeypatch.setenv("ATTENTION_SHAPES_HOST", "0.0.0.0")  # noqa: S104 - read, not bound
    monkeypatch.setenv("ATTENTION_SHAPES_PORT", "81")
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", "/somewhere")
    monkeypatch.setenv("DATABASE_URL", "postgresql://h/d")
    assert (Settings().host, Settings().port, str(Settings().data_dir)) == ("0.0.0.0", 81, "/somewhere")  # noqa: S104
    assert Settings().database == "postgresql+psycopg://h/d"
